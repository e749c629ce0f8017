"""Stops a crawl soon after SIGTERM or Ctrl-C, with everything committed.

Scrapy waits for fetches under way without a limit; here hanging fetches and long extractions are
abandoned after STOP_SECS. Scrapy also ends the process while a spider is still being opened or
closed; this extension waits for it, or the last checkpoint would be missing. A second signal ends
the process at once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed

from larmspider import signals as larm_signals
from larmspider.scheduler.scheduler import scheduler_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

STOP_SECS = 2.0
"""How long fetches under way may take once the crawl is stopping."""
OPENING_SECS = 10.0
"""Seconds that a crawl may take to open once it has to stop."""
_TICK_SECS = 0.1
_OPENING_TICK_SECS = 0.01


class StopExtension:
    """Abandons what hangs, and keeps the process until the spider is closed."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._closed = asyncio.Event()
        self._starting = asyncio.Event()
        self._started = False
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler)
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.engine_started, signal=signals.engine_started)
        connect(extension.spider_closed, signal=signals.spider_closed)
        connect(extension.engine_stopped, signal=signals.engine_stopped)
        if is_reactor_installed():
            from twisted.internet import reactor

            on_event: Any = reactor.addSystemEventTrigger  # its stubs lack the event's name
            on_event("before", "shutdown", extension.before_shutdown)
            on_event("during", "shutdown", extension.let_go)
        return extension

    def spider_opened(self) -> None:
        self._watch = asyncio.get_running_loop().create_task(self._let_go())

    def engine_started(self) -> None:
        """The engine sets ``running`` after all handlers of this signal."""
        self._starting.set()

    def spider_closed(self) -> None:
        self._closed.set()
        if self._watch is not None:
            self._watch.cancel()

    async def engine_stopped(self) -> None:
        """Scrapy ends the process after the handlers of this signal."""
        if self._watch is not None:
            await self._closed.wait()

    def before_shutdown(self) -> Deferred[None] | None:
        """Stop a crawl that is just being opened before the process ends."""
        try:
            opening = self.crawler.engine.spider is not None
        except RuntimeError:  # no engine
            opening = False
        if not opening or self._started or self._closed.is_set():
            return None
        return deferred_from_coro(self._stop_once_it_runs())

    def let_go(self) -> None:
        """Abandon busy threads. Also called at a second signal; otherwise the process would wait
        for them."""
        self.crawler.signals.send_catch_log(larm_signals.let_go)

    async def _stop_once_it_runs(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(OPENING_SECS):
                while not self._started and not self._closed.is_set():
                    await asyncio.sleep(_OPENING_TICK_SECS)
        with suppress(RuntimeError):  # it has stopped by itself
            await self.crawler.engine.stop_async()

    def _broken(self) -> bool:
        scheduler = scheduler_of(self.crawler)
        return scheduler is not None and bool(scheduler.broken)

    async def _let_go(self) -> None:
        engine = self.crawler.engine
        await self._starting.wait()
        while not engine.running:
            await asyncio.sleep(0)  # it may be told to stop some milliseconds later
        self._started = True
        while engine.running and not self._broken():
            await asyncio.sleep(_TICK_SECS)
        await asyncio.sleep(STOP_SECS)
        self.let_go()
        while True:
            cancel = getattr(engine.downloader, "cancel_all", None)
            if cancel is not None:
                cancel()
            await asyncio.sleep(_TICK_SECS)
