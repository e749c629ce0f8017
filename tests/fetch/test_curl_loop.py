"""libcurl's transfers on the event loop: over when they are over, gone when they are cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pycurl
import pytest
from scrapy import Request
from scrapy.http import Response

from larmspider.fetch import curl_loop
from larmspider.fetch.curl_loop import EpollWatcher, LoopWatcher, set_send_gate
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import Raw, Reply, ScriptedServer

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]
HALF = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", hang=True)


@pytest.fixture(params=[EpollWatcher, LoopWatcher], autouse=True)
def _watcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it with Linux's epoll and without."""
    monkeypatch.setattr(curl_loop, "watcher", request.param)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it does not come true")


def test_many_fetches_end(scripted_server: Start, fetcher: Make) -> None:
    """Plain and over TLS, large and small, kept and closed connections, all at once."""
    routes = {
        "/small": Reply(body=b"x"),
        "/large": Reply(body=b"x" * 3_000_000),
        "/close": Reply(body=b"x", close=True),
    }
    servers = [scripted_server(routes), scripted_server(routes, tls=True)]
    one = fetcher(DOWNLOAD_VERIFY_CERTIFICATES=False)

    async def all_of_them() -> list[Response]:
        requests = [
            Request(server.url(path)) for _ in range(20) for server in servers for path in routes
        ]
        return await asyncio.gather(*map(one.handler.download_request, requests))

    sizes = [len(response.body) for response in one.run(all_of_them)]
    assert sizes == [1, 3_000_000, 1] * 40


def test_handles_of_the_event_loop_need_not_know_their_time(
    scripted_server: Start, fetcher: Make
) -> None:
    """Timers of uvloop do not, if their time has come already."""
    server, one = scripted_server({"*": Reply(body=b"x")}), fetcher()

    async def fetched() -> list[Response]:
        loop = asyncio.get_running_loop()
        loop.call_at = lambda when, callback: loop.call_soon(callback)  # type: ignore
        requests = [Request(server.url(f"/{number}")) for number in range(20)]
        return await asyncio.gather(*map(one.handler.download_request, requests))

    assert [response.body for response in one.run(fetched)] == [b"x"] * 20


def test_a_large_body_is_sent(scripted_server: Start, fetcher: Make) -> None:
    """More than a socket takes at once."""
    server, body = scripted_server({"*": "x"}), b"x" * 8_000_000
    fetcher().get(server.url(), method="POST", body=body)
    assert server.log[-1].body == body


@pytest.mark.parametrize("answer", [Raw(b"", hang=True), HALF], ids=["no word", "half a body"])
def test_a_cancelled_fetch_is_gone_at_once(
    scripted_server: Start, fetcher: Make, answer: Raw
) -> None:
    """Its connection is closed, its handle serves the next."""
    server, one = scripted_server({"*": answer, "/next": Reply(body=b"next")}), fetcher()

    async def cancel() -> int:
        request = Request(server.url())
        task = asyncio.ensure_future(one.handler.download_request(request))
        await until(lambda: len(server.log) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert one.handler._loop is not None
        left = len(one.handler._loop)
        await until(lambda: server.open == 0)
        return left

    assert one.run(cancel) == 0
    assert one.get(server.url("/next")).body == b"next"
    assert len(one.handler._idle) == 1


def test_a_fetch_cancelled_before_it_began(scripted_server: Start, fetcher: Make) -> None:
    server, one = scripted_server({"*": "x"}), fetcher()

    async def cancel() -> None:
        task = asyncio.ensure_future(one.handler.download_request(Request(server.url())))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    one.run(cancel)
    assert one.get(server.url()).body == b"x"


def test_closing_ends_what_is_under_way(scripted_server: Start, fetcher: Make) -> None:
    """Who waits is cancelled, and no descriptor stays open; closing twice is once."""
    server = scripted_server({"*": Raw(b"", hang=True)})
    before = descriptors()
    with Fetcher() as one:

        async def close() -> None:
            tasks = [
                asyncio.ensure_future(one.handler.download_request(Request(server.url())))
                for _ in range(5)
            ]
            await until(lambda: len(server.log) == 5)
            await one.handler.close()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(result) for result in results] == [asyncio.CancelledError] * 5
            await until(lambda: server.open == 0)

        one.run(close)
    deadline = time.monotonic() + 120
    while descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.01)  # the server's threads close theirs
    assert descriptors() <= before


def test_closing_does_not_wait_for_a_name_that_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """libcurl's own end does, for as long as the servers of names are silent."""
    go = threading.Event()

    class Multi:
        def setopt(self, option: int, value: object) -> None: ...

        def close(self) -> None:
            go.wait(20)

    monkeypatch.setattr(pycurl, "CurlMulti", Multi)

    async def play() -> None:
        began = time.monotonic()
        curl_loop.CurlLoop(1).close()
        assert time.monotonic() - began < 2

    asyncio.run(play())
    go.set()


def test_idle_connections_that_the_server_closes_cost_nothing(
    scripted_server: Start, fetcher: Make
) -> None:
    """No callback runs for a socket that no transfer waits for."""
    one = fetcher()
    with ScriptedServer({"*": Reply(body=b"x")}) as server:
        one.get(server.url())
    assert one.handler._loop is not None
    acted: list[int] = []
    one.handler._loop._watcher._act = lambda fd, events: acted.append(fd)  # type: ignore[attr-defined]
    one.run(lambda: asyncio.sleep(0.05))
    assert acted == []


def test_a_name_is_looked_up_without_stopping_the_loop() -> None:
    """By threads of libcurl's, or c-ares."""
    assert pycurl.version_info()[4] & pycurl.VERSION_ASYNCHDNS


def test_the_loop_is_the_running_one() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        curl_loop.CurlLoop(1)


def test_what_is_under_way_ends_when_nothing_may_be_sent_any_more(
    scripted_server: Start, fetcher: Make
) -> None:
    """And a fetch that begins then sends nothing; when it may again, all is as before."""
    server = scripted_server({"/half": HALF, "/": Reply(body=b"x")})
    one = fetcher()
    may = [True]
    set_send_gate(one.crawler, lambda: may[0])

    async def run() -> bytes:
        half = asyncio.ensure_future(one.handler.download_request(Request(server.url("/half"))))
        await until(lambda: bool(server.requests()))
        may[0] = False
        with pytest.raises(asyncio.CancelledError):
            await one.handler.download_request(Request(server.url("/")))
        with pytest.raises(asyncio.CancelledError):
            await half
        may[0] = True
        return (await one.handler.download_request(Request(server.url("/")))).body

    assert one.run(run) == b"x"
    assert [request.path for request in server.requests()] == ["/half", "/"]
