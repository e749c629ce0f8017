"""The figures of the overview, /stats.json and /metrics, computed once for all readers.

    crawl_status.status(gauges)    at most once a second; gauges of the running crawl, or None

Curves and forecast are some seconds old, the size on disk a minute. Called in threads.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from larmspider import options, stats
from larmspider.crawl.state import RunState, State
from larmspider.frontier.storage.records import Counts
from larmspider.learned.shortfall import shortfalls_in
from larmspider.pipelines.outbox.spool import Standing, standings
from larmspider.status.crawl_view import Source
from larmspider.status.forecast import Forecast, HostLoad, forecast
from larmspider.status.freshness import Freshness, freshness, visits_again
from larmspider.status.history import History, history, together
from larmspider.status.refreshing import RefreshingCache
from larmspider.status.snapshot import Gauges
from larmspider.status.totals import Totals

RATE_SECS = 10.0
"""The span over which rates are measured."""
UNCOMMITTED = "not in a checkpoint yet"
"""Hosts that the table of hosts does not have."""
CURVES_SECS, DISK_SECS, FRESH_SECS = 5.0, 60.0, 60.0


@dataclass(frozen=True, slots=True)
class Status:
    """``urls`` of the whole crawl by state, the sum over the table of hosts, as of the last
    checkpoint; ``delayed``: queued URLs that failed before. ``pages`` and ``bytes`` a second over
    the last RATE_SECS.

    ``hosts`` counts hosts by state, and newer hosts as UNCOMMITTED;
    ``totals`` of all runs; ``disk`` and ``disk_free`` in bytes; ``memory`` of the crawl, None if it
    does not run.
    """

    time: float
    run_state: RunState
    gauges: Gauges | None
    urls: Mapping[str, int]
    pages: float
    bytes: float
    hosts: Mapping[str, int]
    logins: Mapping[str, int]
    """URLs of hosts that wait for their login, by host and reason."""
    totals: Totals
    history: History
    forecast: Forecast
    disk: int
    disk_free: int
    memory: int | None
    freshness: Freshness
    outbox: Mapping[str, Standing]
    """The state of the outbox, by receiver."""
    shortfalls: Sequence[str] = ()
    """Why little of seeds' hosts is stored, a sentence a host; of a crawl that does not run."""

    @property
    def in_flight(self) -> int:
        """URLs that were handed out and have no outcome yet."""
        return self.urls.get("leased", 0)

    @property
    def host_count(self) -> int:
        return sum(self.hosts.values())

    @property
    def visits_again(self) -> dict[str, int]:
        """The number of revisits in all runs, by observation."""
        return visits_again(self.totals)

    @property
    def rejected(self) -> dict[str, int]:
        """Links that each filter rejected, in all runs, without links to known URLs and URLs that
        robots.txt or a changed scope refused."""
        found = self.totals.matching(stats.FILTER_REJECTED)
        for other in ("visited", "robots", "last_check"):
            found.pop(other, None)
        return found


class CrawlStatus:
    def __init__(self, source: Source, clock: Callable[[], float] = time.time) -> None:
        self.source, self._clock = source, clock
        self._lock = threading.Lock()
        self._recent: deque[Gauges] = deque()
        self._history = RefreshingCache(self._read_history, CURVES_SECS)
        self._disk = RefreshingCache(lambda: disk_usage(source.path), DISK_SECS)
        self._freshness = RefreshingCache(self._read_freshness, FRESH_SECS)
        self._forecast = RefreshingCache(self._make_forecast, CURVES_SECS)
        self._table: tuple[object, dict[str, int], dict[str, int], dict[str, int]]
        self._table = (None, {}, {}, {})
        self._little: tuple[object, Sequence[str]] = (None, ())

    def status(self, gauges: Gauges | None, *, wait: bool = False) -> Status:
        """``wait`` as in RefreshingCache.get(). Raises CrawlDirError if there is no crawl."""
        with self._lock:
            return self._status(gauges, wait=wait)

    def forget(self) -> None:
        """Read hosts and forecast again, after a change."""
        self.source.forget()
        self._forecast.forget()

    def _status(self, gauges: Gauges | None, *, wait: bool) -> Status:
        source, now = self.source, self._clock()
        urls, hosts, logins = self._sums(wait=wait)
        if gauges is not None and (since := gauges.hosts - sum(hosts.values())) > 0:
            hosts = {**hosts, UNCOMMITTED: since}
        past = self._history.get(wait=wait)
        pages, size = self._rates(gauges)
        run_state = source.run_state
        if gauges is None and run_state.state is State.RUNNING:
            pages = past.late_pages
        disk, free = self._disk.get(wait=wait)
        totals = Totals.together(Totals.read(path) for path in source.directories)
        return Status(
            time=now,
            run_state=run_state,
            gauges=gauges,
            urls=urls,
            pages=pages,
            bytes=size,
            hosts=hosts,
            logins=logins,
            totals=totals,
            history=past,
            forecast=self._expected(now, run_state, wait=wait),
            disk=disk,
            disk_free=free,
            memory=None if gauges is None else gauges.memory,
            freshness=self._freshness.get(wait=wait),
            outbox=standings(source.directories),
            shortfalls=() if run_state.state is State.RUNNING else self._shortfalls(),
        )

    def _shortfalls(self) -> Sequence[str]:
        """Read once for each table of hosts."""
        rows, source = self.source.hosts(), self.source
        if self._little[0] is not rows:
            restrict = bool(options.text(source.settings, "LARM_RESTRICT"))
            with source.crawl.frontier() as frontier:
                seeds = source.crawl.seeds
                found = (
                    [] if frontier is None else shortfalls_in(frontier, seeds, restrict=restrict)
                )
            self._little = rows, found
        return self._little[1]

    def _sums(self, *, wait: bool) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """URLs and hosts by state, and URLs of hosts that wait for their login; summed once for
        each table of hosts."""
        rows = self.source.hosts(wait=wait)
        if self._table[0] is not rows:
            counts = [row.counts for row in rows.values()]
            urls = {name: sum(getattr(one, name) for one in counts) for name in Counts.__slots__}
            states = Counter(row.state for row in rows.values())
            logins = {
                f"{row.host}: {row.reason}": row.counts.to_fetch
                for row in rows.values()
                if row.record.waits_for_login
            }
            self._table = (rows, urls, dict(states.most_common()), logins)
        return self._table[1], self._table[2], self._table[3]

    def _read_history(self) -> History:
        return together([history([path / "Monitor.log"]) for path in self.source.directories])

    def _read_freshness(self) -> Freshness:
        with self.source.crawl.frontier() as frontier:
            return Freshness() if frontier is None else freshness(frontier, self.source.now())

    def _expected(self, now: float, run_state: RunState, *, wait: bool) -> Forecast:
        """The end of a crawl that runs comes nearer while the forecast stays the same."""
        made, found = self._forecast.get(wait=wait)
        if run_state.state is not State.RUNNING or not found.seconds:
            return found
        past = now - made
        return replace(
            found,
            seconds=max(0.0, found.seconds - past),
            slowest=[replace(one, seconds=max(0.0, one.seconds - past)) for one in found.slowest],
        )

    def _make_forecast(self) -> tuple[float, Forecast]:
        """The forecast, and when it was made."""
        now, past = self._clock(), self._history.get(wait=True)
        limit = options.integer(self.source.settings, "LARM_MAX_PAGES", minimum=0)
        rows = self.source.hosts(wait=True).values()
        running = self.source.run_state.state is State.RUNNING
        if running and not any(row.counts.discovered for row in rows):
            none = "No forecast yet; it comes with the first checkpoint."
            return now, Forecast(None, [none])
        stored = sum(row.counts.stored for row in rows)
        most = max(0, limit - stored) if limit else None
        loads = (HostLoad.of(row, now) for row in rows)
        return now, forecast(loads, past.late_pages, past.late_found, most=most)

    def _rates(self, gauges: Gauges | None) -> tuple[float, float]:
        recent = self._recent
        if gauges is None:
            recent.clear()
            return 0.0, 0.0
        if recent and recent[-1].began != gauges.began:
            recent.clear()
        if not recent or recent[-1].time < gauges.time:
            recent.append(gauges)
        while len(recent) > 2 and recent[1].time < gauges.time - RATE_SECS:
            recent.popleft()
        first = recent[0]
        seconds = gauges.time - first.time
        if seconds < 0.5:  # the first look: since the run began
            seconds = max(1.0, gauges.time - gauges.began)
            return gauges.pages / seconds, gauges.bytes / seconds
        return (gauges.pages - first.pages) / seconds, (gauges.bytes - first.bytes) / seconds


def disk_usage(path: Path) -> tuple[int, int]:
    """Bytes of all files below ``path``, as allocated on disk, and bytes free there."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118
            except OSError:
                continue  # a segment of the index that is gone by now
    return total, shutil.disk_usage(path).free
