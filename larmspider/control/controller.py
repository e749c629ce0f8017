"""The crawl of this process: its numbers, and control over it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from larmspider import options, stats
from larmspider.control.operator import operator_of
from larmspider.errors import ConfigError
from larmspider.frontier.politeness import Orders
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.status.monitor import what_it_waits_for
from larmspider.status.numbers import Numbers
from larmspider.status.snapshot import resident_bytes
from larmspider.web.request import Refused

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_STATES = ("discovered", "queued", "leased", "stored", "failed", "refused", "delayed")


class LocalCrawl:
    """``live`` of the pages that a crawl serves itself. ``settings`` are what the pages go by."""

    def __init__(self, crawler: Crawler, settings: BaseSettings, began: float) -> None:
        self.crawler, self.settings, self.began = crawler, settings, began
        self._go_by_the_scope()

    def _go_by_the_scope(self) -> None:
        """The pages explain URLs by the scope that holds, not by the one that the command named."""
        operator = operator_of(self.crawler)
        if operator is not None and (restrict := operator.scope.restrict):
            self.settings.set("LARM_RESTRICT", restrict, priority="cmdline")

    async def numbers(self) -> Numbers | None:
        """Some 50 us: nothing is looked up that is not kept anyway."""
        crawler = self.crawler
        engine = crawler.engine
        assert crawler.stats is not None
        if engine.spider is None:
            return None  # it has closed
        scheduler = scheduler_of(crawler)
        found = crawler.stats.get_stats()
        counters = {
            key: value
            for key, value in found.items()
            if stats.is_ours(key) and isinstance(value, int)
        }
        pages, failures = stats.pages_and_failures(counters)
        urls, paused, orders = {}, False, Orders()
        if scheduler is not None and not scheduler.closed:
            paused = scheduler.frontier.control.paused
            orders = scheduler.frontier.control.orders.copy()
            counts = scheduler.frontier.backend.counts()
            urls = {name: int(getattr(counts, name)) for name in _STATES}
        return Numbers(
            time=time.time(),
            began=self.began,
            pages=pages,
            bytes=counters.get(stats.FETCH_BYTES, 0),
            links=counters.get(stats.FOLLOW_LINKS, 0),
            in_flight=len(engine.downloader.active),
            failures=failures,
            memory=resident_bytes(),
            paused=paused,
            waiting=what_it_waits_for(crawler, time.time()),
            broken="" if scheduler is None else scheduler.broken,
            urls=urls,
            counters=counters,
            scope=options.text(self.settings, "LARM_RESTRICT"),
            orders=orders,
        )

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        operator = operator_of(self.crawler)
        if operator is None:
            raise Refused("This crawl's EXTENSIONS leave the operator out.", 409)
        try:
            done = await operator.act(name, form, who)
        except ConfigError as error:
            raise Refused(f"Refused: {error}", 409) from None
        self._go_by_the_scope()
        return done
