"""The endpoints for machines: /metrics, /stats.json, /healthz; and the Grafana dashboard."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from larmspider.web.events import changes
from tests.support.crawling import PROJECT
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.crawling import Crawling, endless
from tests.support.web.serving import Served

PROMTOOL = shutil.which("promtool")


def names_in(text: str) -> set[str]:
    """The metrics of an exposition."""
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


@pytest.mark.skipif(PROMTOOL is None, reason="not installed: Debian's prometheus")
def test_promtool_accepts_the_metrics(
    served: Callable[..., Served], demo_crawl: Path, tmp_path: Path
) -> None:
    """It has no complaints about them, nor about the metrics of a directory without a crawl."""
    assert PROMTOOL is not None
    for folder in (tmp_path / "missing", tmp_path, demo_crawl):
        got = served(folder).get("/metrics")
        assert (got.status, got.headers["Content-Type"].partition("=")[0]) == (
            200, "text/plain; version"
        )  # fmt: skip
        ran = subprocess.run(
            [PROMTOOL, "check", "metrics"], input=got.body, capture_output=True, check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert "larmspider_running 0.0" in got.text
    assert 'larmspider_urls{state="stored"}' in got.text
    assert 'larmspider_failed_urls_total{kind="http-500"}' in got.text
    assert "127.0.0.1" not in got.text


def test_a_running_crawl_in_metrics(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Counters grow and gauges are there; so do they over a restart of the crawl."""
    server = scripted_server({"/robots.txt": (404, {}, b""), "*": endless()})

    def pages(crawl: Crawling) -> float:
        found = re.search(
            r"^larmspider_pages_total (\S+)$", crawl.get("/metrics").text, re.MULTILINE
        )
        return float(found[1]) if found else 0.0

    with Crawling(tmp_path, server.url("/")) as crawl:
        crawl.until(lambda: pages(crawl) > 5, "pages")
        text = crawl.get("/metrics").text
        assert "larmspider_running 1.0" in text
        assert re.search(r"^larmspider_resident_memory_bytes [1-9]", text, re.MULTILINE)
        assert crawl.get("/healthz").json == {"status": "ok", "crawl": "running"}
        before = pages(crawl)
    with Crawling(tmp_path, server.url("/")) as again:
        again.until(lambda: pages(again) > before, "more pages")
        again.until(lambda: again.get("/stats.json").json["runs"] == 2, "the curves of both runs")
        again.until(lambda: again.gauges["pages"] < pages(again), "the pages of both runs")


def test_a_directory_without_a_crawl_in_json(served: Callable[..., Served], tmp_path: Path) -> None:
    """An empty one waits for its crawl; one that is missing, or another thing's, is a fault."""
    folder = tmp_path / "crawl"
    site = served(folder)

    def found() -> tuple[int, object, int, object]:
        health, stats = site.get("/healthz"), site.get("/stats.json")
        return health.status, health.json, stats.status, stats.json["state"]

    assert found() == (503, {"status": "broken", "crawl": "no crawl"}, 404, "no crawl")
    folder.mkdir()
    assert found() == (200, {"status": "ok", "crawl": "empty"}, 404, "empty")
    (folder / "x").touch()
    assert found()[0] == 503


def test_the_dashboard_asks_for_metrics_that_there_are(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """Each expression of deploy/grafana-dashboard.json."""
    there = names_in(served(demo_crawl).get("/metrics").text)
    dashboard = json.loads((PROJECT / "deploy" / "grafana-dashboard.json").read_text("utf-8"))
    asked = re.findall(r"larmspider_\w+", json.dumps(dashboard))
    assert len(dashboard["panels"]) >= 10
    assert set(asked) - {"larmspider_info"} <= there
    assert there <= {*asked, "larmspider_info", "larmspider_paused", "larmspider_links_total",
                     "larmspider_retries_total", "larmspider_stored_urls_total"}  # fmt: skip


def test_stats_json_is_safe_in_any_page(served: Callable[..., Served], demo_crawl: Path) -> None:
    """ASCII, and no character that could end a script element."""
    body = served(demo_crawl).get("/stats.json").body
    assert body.isascii()
    assert b"<" not in body
    assert json.loads(body)["runs"] == 1


# Server-sent events: one tick for all windows.


def listen(site: Served, ticks: int) -> list[Any]:
    """The first ticks that a new window gets."""
    connection = http.client.HTTPConnection(urlsplit(site.url).netloc, timeout=120)
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
    """The status is made once a second, for any number of viewers."""
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
