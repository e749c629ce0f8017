"""/events: server-sent events that keep the overview up to date, once a second.

The update is made in a thread, once for all windows that listen. A window that does not keep up
misses updates; it never makes the crawl wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection

from aiohttp import web

from larmspider.errors import HttpError, LarmspiderError
from larmspider.status.crawl_workers import Controller
from larmspider.status.snapshot import Gauges
from larmspider.web.request import Work
from larmspider.web.words import LANGUAGES

logger = logging.getLogger(__name__)

TICK_SECS = 1.0
MAX_LISTENERS = 100
WHOLE_TICKS = 10
"""Every tenth tick sends everything, others only changes, because a window may miss a tick."""

NOTHING_NEW = b": nothing new\n\n"
Update = dict[str, dict[str, str]]


class Events:
    """``make`` is called in a thread with the gauges of the running crawl and the languages of the
    windows, and returns the update for each language."""

    def __init__(
        self,
        controller: Controller | None,
        work: Work,
        make: Callable[[Gauges | None, Collection[str]], dict[str, Update]],
    ) -> None:
        self._controller, self._work, self._make = controller, work, make
        self._listeners: dict[asyncio.Queue[bytes | None], str] = {}  # with their languages
        self._task: asyncio.Task[None] | None = None
        self._ticks = 0
        self._latest: tuple[float, Gauges | None] = (-TICK_SECS, None)

    async def gauges(self) -> Gauges | None:
        """The gauges of the running crawl, at most a tick old; None if no crawl runs or answers."""
        if self._controller is None:
            return None
        taken, gauges = self._latest
        if time.monotonic() >= taken + TICK_SECS / 2:
            gauges = await self._controller.gauges()
            self._latest = (time.monotonic(), gauges)
        return gauges

    def forget(self) -> None:
        """Drop the gauges after a change, so that the next request asks the crawl."""
        self._latest = (-TICK_SECS, None)

    async def listen(
        self,
        request: web.Request,
        may_read: Callable[[], bool] = lambda: True,
        language: str = LANGUAGES[0],
    ) -> web.StreamResponse:
        """Send updates until the window is closed, may read no more, or the server stops."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise HttpError("Too many windows get live updates already.", 503)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._listeners[queue] = language
        self._ticks = 0  # the next one is whole
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        response = web.StreamResponse()
        response.headers["Content-Type"] = "text/event-stream; charset=utf-8"
        response.headers["X-Accel-Buffering"] = "no"
        try:
            await response.prepare(request)
            while (message := await queue.get()) is not None and may_read():
                await response.write(message)
        except ConnectionError:
            pass  # the window is gone
        finally:
            self._listeners.pop(queue, None)
        return response

    async def _run(self) -> None:
        last: dict[str, Update] = {}
        while self._listeners:
            due = time.monotonic() + TICK_SECS
            try:
                languages = set(self._listeners.values())
                made = await self._work.run(self._make, await self.gauges(), languages)
                whole = self._ticks % WHOLE_TICKS == 0
                messages = {
                    language: _message(one if whole else changes(last.get(language, {}), one))
                    for language, one in made.items()
                }
                last, self._ticks = made, self._ticks + 1
            except LarmspiderError:  # the crawl was deleted, or its store cannot be reached
                self._send(None)  # the pages say that updates have stopped, and connect again
                return
            except Exception:
                logger.exception("Error while making the overview; its live updates stop")
                self._send(None)
                return
            self._send(messages)
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    def _send(self, messages: dict[str, bytes] | None) -> None:
        """Send the message of each language. None ends the stream."""
        for queue, language in self._listeners.items():
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None if messages is None else messages.get(language, NOTHING_NEW))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._send(None)


def _message(update: Update) -> bytes:
    return b"data: " + json.dumps(update).encode("ascii") + b"\n\n"


def changes(last: Update, made: Update) -> Update:
    """The parts of ``made`` that differ from ``last``.

    >>> changes({"texts": {"a": "1", "b": "2"}}, {"texts": {"a": "1", "b": "3"}})
    {'texts': {'b': '3'}}
    """
    return {
        kind: {name: value for name, value in some.items() if last.get(kind, {}).get(name) != value}
        for kind, some in made.items()
    }
