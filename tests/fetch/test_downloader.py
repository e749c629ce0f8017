"""Scrapy's signals of its downloader: sent if there are receivers, and only then."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from itertools import repeat
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.exceptions import StopDownload
from scrapy.http import Response

from larmspider.fetch.downloader import LarmDownloader, Stopped
from larmspider.options import defaults
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import Raw, Reply, ScriptedServer

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


def test_a_fetch_may_be_let_go_of_twice(
    scripted_server: Callable[..., ScriptedServer],
) -> None:
    """Who waits for it goes on, and may be cancelled itself later."""
    server = scripted_server({"*": Raw(b"", hang=True)})

    async def let_go(downloader: LarmDownloader) -> int:
        fetch = asyncio.ensure_future(downloader._fetch(Request(server.url())))
        while not server.log:
            await asyncio.sleep(0.01)
        assert downloader.cancel_all() == downloader.cancel_all() == 1
        with pytest.raises(Stopped):
            await fetch
        return fetch.cancelling()

    with Fetcher(DOWNLOAD_HANDLERS=HANDLERS) as one:
        assert one.run(lambda: let_go(LarmDownloader(one.crawler))) == 0


# headers_received, bytes_received and StopDownload, as with Scrapy's own handlers.


Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]
MEGABYTE = b"x" * 1_000_000
ENDLESS = Raw([b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", *repeat(MEGABYTE, 1000)])


class Ear:
    """Keeps what it hears; raises StopDownload when ``stop`` says so."""

    def __init__(self, fetcher: Fetcher, stop: StopDownload | None = None) -> None:
        self.heads: list[dict[str, Any]] = []
        self.chunks: list[bytes] = []
        self.stop = stop
        self.fetcher = fetcher

    def hear_heads(self) -> Ear:
        self.fetcher.crawler.signals.connect(self.head, signals.headers_received)
        return self

    def hear_bytes(self) -> Ear:
        self.fetcher.crawler.signals.connect(self.bytes, signals.bytes_received)
        return self

    def head(self, headers: Any, body_length: Any, request: Request, spider: Any) -> None:
        self.heads.append({"a": headers["A"], "length": body_length, "url": request.url})
        if self.stop is not None:
            raise self.stop

    def bytes(self, data: bytes, request: Request) -> None:
        self.chunks.append(data)
        if self.stop is not None:
            raise self.stop


def test_who_listens_hears_all(scripted_server: Start, fetcher: Make) -> None:
    """The head once, and the body as it is received, before it is unpacked."""
    body = gzip.compress(MEGABYTE[:100_000])
    headers = {"Content-Encoding": "gzip", "A": "b"}
    server, one = scripted_server({"*": Reply(200, headers, body)}), fetcher()
    ear = Ear(one).hear_heads().hear_bytes()
    assert one.get(server.url()).body == MEGABYTE[:100_000]
    assert ear.heads == [{"a": b"b", "length": len(body), "url": server.url()}]
    assert b"".join(ear.chunks) == body


def test_a_head_without_a_body_is_heard_of(scripted_server: Start, fetcher: Make) -> None:
    server, one = scripted_server({"*": Reply(204, {"A": "b"})}), fetcher()
    ear = Ear(one).hear_heads()
    assert one.get(server.url()).flags == []
    assert len(ear.heads) == 1


def test_hints_are_no_heads(scripted_server: Start, fetcher: Make) -> None:
    """1xx before the answer: only the answer's head is reported, once."""
    answer = Raw(b"HTTP/1.1 103 H\r\nA: hint\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nx")
    server, one = scripted_server({"*": answer}), fetcher()
    ear = Ear(one).hear_heads()
    one.get(server.url())
    assert [head["a"] for head in ear.heads] == [b"b"]


def test_a_download_stops_at_its_head(scripted_server: Start, fetcher: Make) -> None:
    """fail=False: an answer without a body, flagged. The body has no end."""
    server, one = scripted_server({"*": ENDLESS}), fetcher(DOWNLOAD_MAXSIZE=0)
    ear = Ear(one, StopDownload(fail=False)).hear_heads()
    response = one.get(server.url())
    assert (response.body, response.flags) == (b"", ["download_stopped"])
    assert [head["a"] for head in ear.heads] == [response.headers["A"]]


def test_a_download_stops_at_its_first_bytes(scripted_server: Start, fetcher: Make) -> None:
    """The bytes that were heard are in the body."""
    server, one = scripted_server({"*": ENDLESS}), fetcher(DOWNLOAD_MAXSIZE=0)
    ear = Ear(one, StopDownload(fail=False)).hear_bytes()
    response = one.get(server.url())
    assert response.body == ear.chunks[0]
    assert len(ear.chunks) == 1
    assert response.flags == ["download_stopped"]


@pytest.mark.parametrize("where", ["hear_heads", "hear_bytes"])
def test_a_stop_that_fails_carries_the_response(
    scripted_server: Start, fetcher: Make, where: str
) -> None:
    """fail=True, the default: the errback's, with what there was."""
    server, one = scripted_server({"*": ENDLESS}), fetcher(DOWNLOAD_MAXSIZE=0)
    ear = Ear(one, StopDownload())
    getattr(ear, where)()
    error = one.failure(server.url())
    assert isinstance(error, StopDownload)
    assert error.response is not None
    assert error.response.body == b"".join(ear.chunks)
    assert error.response.flags == ["download_stopped"]


def test_the_fetch_after_a_stopped_one_is_whole(scripted_server: Start, fetcher: Make) -> None:
    server, one = scripted_server({"*": ENDLESS, "/next": Reply(body=b"next")}), fetcher()
    ear = Ear(one, StopDownload(fail=False)).hear_bytes()
    one.get(server.url())
    ear.stop = None
    response = one.get(server.url("/next"))
    assert (response.body, response.flags) == (b"next", [])


def test_an_ear_that_breaks_changes_nothing(
    scripted_server: Start, fetcher: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Its error is logged by Scrapy; the fetch goes on."""
    server, one = scripted_server({"*": Reply(body=b"x")}), fetcher()

    def broken(data: bytes) -> None:
        raise ValueError("broken ear")

    one.crawler.signals.connect(broken, signals.bytes_received)
    assert one.get(server.url()).body == b"x"
    assert "broken ear" in caplog.text


def test_nothing_is_sent_where_nobody_listens(
    scripted_server: Start, fetcher: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before anybody is connected nor after the last one left."""
    server, one = scripted_server({"*": Reply(body=b"x")}), fetcher()
    ear = Ear(one).hear_bytes()
    one.crawler.signals.disconnect(ear.bytes, signals.bytes_received)

    def send(*arguments: Any, **named: Any) -> None:
        raise AssertionError("a signal was sent")

    monkeypatch.setattr(one.crawler.signals, "send_catch_log", send)
    assert one.get(server.url()).body == b"x"
    assert ear.chunks == []
