"""Server-sent events: one tick for all windows."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from larmspider.web.events import changes
from tests.support.web.serving import Served


def listen(site: Served, ticks: int) -> list[Any]:
    """The first ticks that a new window gets."""
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    found = []
    while len(found) < ticks:
        line = answer.readline()
        assert line, "the server has ended the events"
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    connection.close()
    return found


def test_the_first_tick_is_whole_the_next_have_what_changed(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """A finished crawl does not change; the next window gets all of it again."""
    site = served(demo_crawl)
    for _ in range(2):
        first, second = listen(site, 2)
        assert first["texts"]["stored"].isdigit()
        assert first["paths"]["pages-line"].startswith("M0,")
        assert "<h2>" in first["pieces"]["tables"]
        assert first["states"] == {"crawl": "ended"}
        assert second["paths"] == {}
        assert "stored" not in second["texts"]


def test_changes() -> None:
    """By kind and name; what is new counts."""
    assert changes({}, {"a": {"x": "1"}}) == {"a": {"x": "1"}}
    assert changes({"a": {"x": "1", "y": "2"}}, {"a": {"x": "1", "y": "3"}}) == {"a": {"y": "3"}}


def test_many_windows_share_a_tick(served: Callable[..., Served], demo_crawl: Path) -> None:
    """What is shown is made once a second, however many look."""
    site = served(demo_crawl)
    made: list[int] = []
    from larmspider.status import status as crawl_status

    real = crawl_status.CrawlStatus._status

    def counted(self: crawl_status.CrawlStatus, *arguments: Any, **named: Any) -> Any:
        made.append(1)
        return real(self, *arguments, **named)

    crawl_status.CrawlStatus._status = counted  # type: ignore[method-assign]
    try:
        import threading

        threads = [threading.Thread(target=listen, args=(site, 3)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        crawl_status.CrawlStatus._status = real  # type: ignore[method-assign]
    assert 2 <= len(made) <= 6
