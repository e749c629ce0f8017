"""/events: server-sent events, one tick for all windows.

While somebody listens the overview's live parts are made once a second, in a thread, and sent as
they are to everybody. A window that does not keep up misses ticks; it never makes the crawl wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable

from aiohttp import web

from larmspider.errors import HttpError, LarmspiderError
from larmspider.status.crawl_workers import Live
from larmspider.status.snapshot import Gauges
from larmspider.web.request import Work

logger = logging.getLogger(__name__)

TICK_SECS = 1.0
LISTENERS_MOST = 100
WHOLE_TICKS = 10
"""Each so many ticks everything is sent, the others what has changed: a tick may be missed."""


class Events:
    """``make`` is called in a thread with the numbers of the running crawl; what it returns is
    sent as JSON."""

    def __init__(
        self,
        live: Live | None,
        work: Work,
        make: Callable[[Gauges | None], dict[str, dict[str, str]]],
    ) -> None:
        self._live, self._work, self._make = live, work, make
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._ticks = 0
        self._latest: tuple[float, Gauges | None] = (-TICK_SECS, None)

    async def numbers(self) -> Gauges | None:
        """Of the running crawl, not older than a tick; None where none runs that can be reached."""
        if self._live is None:
            return None
        taken, numbers = self._latest
        if time.monotonic() >= taken + TICK_SECS / 2:
            numbers = await self._live.numbers()
            self._latest = (time.monotonic(), numbers)
        return numbers

    def forget(self) -> None:
        """Something was changed: the next numbers are to show it."""
        self._latest = (-TICK_SECS, None)

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """Until the window goes, or the server stops."""
        if len(self._listeners) >= LISTENERS_MOST:
            raise HttpError("Too many windows get live updates already.", 503)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._listeners.add(queue)
        self._ticks = 0  # the next one is whole
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        response = web.StreamResponse()
        response.headers["Content-Type"] = "text/event-stream; charset=utf-8"
        response.headers["X-Accel-Buffering"] = "no"
        try:
            await response.prepare(request)
            while (message := await queue.get()) is not None:
                await response.write(message)
        except ConnectionError:
            pass  # the window is gone
        finally:
            self._listeners.discard(queue)
        return response

    async def _run(self) -> None:
        last: dict[str, dict[str, str]] = {}
        while self._listeners:
            due = time.monotonic() + TICK_SECS
            try:
                made = await self._work.run(self._make, await self.numbers())
                news = made if self._ticks % WHOLE_TICKS == 0 else changes(last, made)
                last, self._ticks = made, self._ticks + 1
                message = b"data: " + json.dumps(news).encode("ascii") + b"\n\n"
            except LarmspiderError:
                message = b": nothing new\n\n"
            except Exception:
                logger.exception("Error while making the overview; its live updates stop")
                self._send(None)
                return
            self._send(message)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _send(self, message: bytes | None) -> None:
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(message)

    def close(self) -> None:
        """Ends all of them."""
        if self._task is not None:
            self._task.cancel()
        self._send(None)


def changes(
    last: dict[str, dict[str, str]], made: dict[str, dict[str, str]]
) -> dict[str, dict[str, str]]:
    """What is not as it was.

    >>> changes({"texts": {"a": "1", "b": "2"}}, {"texts": {"a": "1", "b": "3"}})
    {'texts': {'b': '3'}}
    """
    return {
        kind: {name: value for name, value in some.items() if last.get(kind, {}).get(name) != value}
        for kind, some in made.items()
    }
