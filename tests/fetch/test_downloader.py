"""Scrapy's signals of its downloader: sent where somebody listens, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.http import Response

from larmspider.fetch.downloader import LarmDownloader
from larmspider.options import defaults
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import ScriptedServer

HANDLERS = defaults()["DOWNLOAD_HANDLERS"]
OURS = [
    signals.request_reached_downloader,
    signals.response_downloaded,
    signals.request_left_downloader,
]


@pytest.mark.parametrize("heard", [[], *([one] for one in OURS), OURS])
def test_a_signal_is_sent_where_somebody_listens(
    scripted_server: Callable[..., ScriptedServer],
    monkeypatch: pytest.MonkeyPatch,
    heard: list[object],
) -> None:
    server = scripted_server({"*": "x"})
    sent: list[object] = []
    got: list[dict[str, Any]] = []

    def hear(request: Request, spider: object, **arguments: Any) -> None:
        got.append({"url": request.url, "spider": spider} | arguments)

    with Fetcher(DOWNLOAD_HANDLERS=HANDLERS) as one:
        for signal in heard:
            one.crawler.signals.connect(hear, signal)
        send = one.crawler.signals.send_catch_log

        def count(signal: object, **arguments: Any) -> Any:
            sent.append(signal)
            return send(signal, **arguments)

        monkeypatch.setattr(one.crawler.signals, "send_catch_log", count)

        async def fetch() -> Response | Request:
            return await LarmDownloader(one.crawler)._fetch(Request(server.url()))

        response = one.run(fetch)
        assert isinstance(response, Response)
    assert [signal for signal in sent if signal in OURS] == [
        signal for signal in (OURS[0], OURS[2], OURS[1]) if signal in heard
    ]
    assert all(call["url"] == server.url() for call in got)
    assert all(call["spider"] is one.crawler.spider for call in got)
    assert len(got) == len(heard)
