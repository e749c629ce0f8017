"""Scrapy's stats without the detour of each access.

StatsCollector of Scrapy 2.19 intercepts every attribute access, to warn callers that still hand
over a spider: 1.5 us more for each of some 15 counts a page.
"""

from __future__ import annotations

from scrapy.statscollectors import MemoryStatsCollector


class LarmStats(MemoryStatsCollector):
    """STATS_CLASS."""

    __getattribute__ = object.__getattribute__
