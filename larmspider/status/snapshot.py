"""A crawl in numbers at one moment: what the monitor logs and the terminal shows."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import stats

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``time`` in seconds since the epoch, ``bytes`` of bodies, ``memory`` in bytes resident."""

    time: float
    pages: int
    bytes: int
    links: int
    new_urls: int
    queued: int
    in_flight: int
    hosts: int
    failures: int
    memory: int

    @classmethod
    def take(cls, crawler: Crawler) -> Snapshot:
        assert crawler.stats is not None
        count = crawler.stats.get_value
        engine = crawler.engine
        scheduler = engine.scheduler if engine is not None else None
        pages, failures = stats.pages_and_failures(crawler.stats.get_stats())
        return cls(
            time=time.time(),
            pages=pages,
            bytes=count(stats.FETCH_BYTES, 0),
            links=count(stats.FOLLOW_LINKS, 0),
            new_urls=count(stats.FOLLOW_NEW_URLS, 0),
            queued=len(scheduler) if isinstance(scheduler, Sized) else 0,
            in_flight=len(engine.downloader.active) if engine is not None else 0,
            hosts=count(stats.FOLLOW_HOSTS, 0),
            failures=failures,
            memory=resident_bytes(),
        )

    def pages_per_second(self, earlier: Snapshot) -> float:
        seconds = self.time - earlier.time
        return (self.pages - earlier.pages) / seconds if seconds > 0 else 0.0


def resident_bytes() -> int:
    """This process's memory: resident now on Linux, the peak elsewhere."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")
