"""The monitor, as in LARM: every LARM_MONITOR_SECS a line to Monitor.log, and one to the terminal.

Its first line names the columns. Counts are totals since the start, pages/s is since the last line.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from larmspider import options
from larmspider import signals as larm_signals
from larmspider.checksums import FOLDER as SUMS
from larmspider.formatting import counted, utc
from larmspider.frontier.hosts import HostState, local_hour
from larmspider.learned.describe import trouble_of
from larmspider.pipelines.records import RecordLog
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.status.snapshot import Snapshot

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

LONG_WAIT_SECS = 1.0
"""How long a crawl waits without a reason in the log."""
MONITOR_COLUMNS = (
    "time",
    "pages",
    "pages/s",
    "bytes",
    "links",
    "new-urls",
    "queued",
    "in-flight",
    "hosts",
    "failures",
    "memory",
)


class MonitorExtension:
    """Ticks while the spider is open, and once more at the end."""

    files = ("Monitor.log", SUMS)

    def __init__(self, crawler: Crawler, directory: Path, interval: float) -> None:
        self.crawler = crawler
        self.directory = directory
        self.interval = interval
        self._loop = create_looping_call(self.tick)
        self._log: RecordLog | None = None
        self._last: Snapshot | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        interval = options.seconds(crawler.settings, "LARM_MONITOR_SECS", minimum=0.1)
        extension = cls(crawler, options.larm_dir(crawler.settings), interval)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        for signal in (larm_signals.ended, signals.spider_closed):
            crawler.signals.connect(extension.spider_closed, signal=signal)
        return extension

    def spider_opened(self) -> None:
        directory = options.writable_dir(self.directory)
        self._log = RecordLog(directory / "Monitor.log", MONITOR_COLUMNS, summed=True)
        self._log.append(*MONITOR_COLUMNS)
        self._last = Snapshot.take(self.crawler)
        self._loop.start(self.interval, now=False)

    def spider_closed(self) -> None:
        if self._loop.running:
            self._loop.stop()
        if self._log is not None:
            self.tick()
            self._log.close()
            self._log = None

    def tick(self) -> None:
        """Write one line and flush it."""
        assert self._log is not None
        now = Snapshot.take(self.crawler)
        rate = now.pages_per_second(self._last or now)
        self._last = now
        self._log.append(
            utc(now.time),
            str(now.pages),
            f"{rate:.1f}",
            str(now.bytes),
            str(now.links),
            str(now.new_urls),
            str(now.queued),
            str(now.in_flight),
            str(now.hosts),
            str(now.failures),
            str(now.memory),
        )
        self._log.flush()
        logger.info(
            "%s (%.1f/s), %d queued, %d in flight, %s, %d failed, %.0f MB%s",
            counted(now.pages, "page"),
            rate,
            now.queued,
            now.in_flight,
            counted(now.hosts, "host"),
            now.failures,
            now.memory / 1e6,
            f"; {waiting}" if (waiting := what_it_waits_for(self.crawler, now.time)) else "",
        )


def what_it_waits_for(crawler: Crawler, now: float) -> str:
    """Why the crawl is idle: the host that is fetched next, when, and why not before; "" if it is
    not idle."""
    scheduler = scheduler_of(crawler)
    if scheduler is None or scheduler.closed:
        return ""
    frontier = scheduler.frontier
    if frontier.control.paused:
        return "paused by the operator"
    if scheduler.held:
        return f"waiting for {scheduler.held}"
    host = frontier.waits_for()
    if host is None and not frontier.in_flight and (names := frontier.control.waiting_hosts):
        others = f" and {len(names) - 1:,} more" if names[1:] else ""
        return f"waiting for {names[0]}{others}, paused by the operator"
    if host is None or host.next_fetch_time < now + LONG_WAIT_SECS:
        return ""
    record = host.record
    parts = [trouble_of(record, frontier.politeness.limits)]
    parts.append(host.rule.why_closed(max(now, record.next_time, record.until), local_hour))
    if not any(parts) and record.state is not HostState.READY:
        parts.append(record.state.name.lower())
    why = "; ".join(part for part in parts if part)
    waits = f"waiting {host.next_fetch_time - now:.0f} s for {record.host}"
    return f"{waits} ({why})" if why else waits
