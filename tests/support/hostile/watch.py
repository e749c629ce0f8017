"""The costs of a running crawl, written to LARM_DIR/watch.json when it ends.

The longest time in which its event loop did nothing else: CPU of the loop's own thread between two
turns, which other programs on the machine do not change. And the most memory it ever held.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy import signals

from larmspider import options

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_EVERY_SECS = 0.01


class Watch:
    """An extension of Scrapy's."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.longest = 0.0
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        watch = cls(options.larm_dir(crawler.settings))
        crawler.signals.connect(watch.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(watch.engine_stopped, signal=signals.engine_stopped)
        return watch

    def spider_opened(self) -> None:
        self._task = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(_EVERY_SECS)
            self.longest = max(self.longest, time.thread_time() - before)

    def engine_stopped(self) -> None:
        assert self._task is not None
        self._task.cancel()
        status = Path("/proc/self/status").read_text("ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        found = {"longest_block_secs": self.longest, "peak_mb": int(peak.split()[1]) / 1024}
        (self.directory / "watch.json").write_text(json.dumps(found))
