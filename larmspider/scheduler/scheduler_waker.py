"""Wakes Scrapy's engine when a host's turn has come: by itself it asks again only every 5 s."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult


class Waker:
    """One timer, for the earliest time asked for."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._timer: CallLaterResult | None = None
        self._at = 0.0

    def wake(self) -> None:
        """Now. The only place that touches what is private to Scrapy."""
        self.cancel()  # nothing if it is this timer that woke us
        slot = getattr(self.crawler.engine, "_slot", None)
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    def wake_at(self, at: float | None) -> None:
        """At a time in seconds since the epoch, unless an earlier one is set; None: never mind."""
        if at is None or (self._timer is not None and self._at <= at):
            return
        self.cancel()
        self._at = at
        self._timer = call_later(max(0.001, at - time.time()), self.wake)

    def cancel(self) -> None:
        """No timer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
