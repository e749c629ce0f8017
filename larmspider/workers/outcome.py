"""The state and results of a crawl's workers, each and together, read from their directories.

4 workers: 812 pages (40.2/s), 1200 queued, 37 in flight, 3 failed, 512 MB

atlas-1     1,204 pages stored, 31 refused, 2 failed
atlas-2     1,187 pages stored, 12 refused, 0 failed
total       2,391 pages stored, 43 refused, 2 failed, in /home/me/crawl over all runs
refresh     31 changed, 4 new, 2,356 as before
            2,402 requests for known pages; 0 known pages not visited
2 of 4 workers had nothing to do: 2 hosts

Progress is the first line: the sums of the last lines of the workers' Monitor.log. Outcome is the
other lines: the results of each worker over all runs; their sum, in which a page that two workers
have fetched counts twice; and the observations of this run's revisits.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Self

from larmspider import stats
from larmspider.crawl.worker_dirs import CrawlOfWorkers
from larmspider.formatting import counted, utc
from larmspider.frontier.storage.records import UrlState, host_of
from larmspider.learned.deletes.table import Observation
from larmspider.status.freshness import requests_by_purpose
from larmspider.status.monitor import MONITOR_COLUMNS
from larmspider.status.summary import visited
from larmspider.status.totals import Totals

MONITOR_LOG = "Monitor.log"
_TAIL_BYTES = 4096
_TOTALS = ("pages", "failures")
"""Columns that restart at 0 with a worker; earlier values are added."""
_NOW = ("queued", "in-flight", "memory")
_OBSERVATIONS = frozenset(map(str, Observation))


class Progress:
    """``logs``: Monitor.log by worker. Older lines than this object belong to earlier runs."""

    def __init__(self, logs: Mapping[str, Path], clock: Callable[[], float] = time.time) -> None:
        self._logs, self._clock = logs, clock
        self._began = clock()
        self._begun = utc(self._began)
        self._last: dict[str, dict[str, float]] = {}
        self._before: dict[str, float] = dict.fromkeys(_TOTALS, 0.0)
        self._shown = self._began, 0.0

    def line(self, running: int) -> str:
        """The line while ``running`` workers run."""
        sums = self._sums()
        now = self._clock()
        passed, pages = now - self._shown[0], sums["pages"] - self._shown[1]
        self._shown = now, sums["pages"]
        workers = f"{running} worker{'' if running == 1 else 's'}"
        return (
            f"{workers}: {counted(round(sums['pages']), 'page')}"
            f" ({pages / passed if passed > 0 else 0.0:.1f}/s),"
            f" {sums['queued']:.0f} queued, {sums['in-flight']:.0f} in flight,"
            f" {sums['failures']:.0f} failed, {sums['memory'] / 1e6:.0f} MB"
        )

    def last_line(self) -> str:
        """The line when all have ended: their results since the beginning."""
        sums, passed = self._sums(), max(1.0, self._clock() - self._began)
        return (
            f"all workers have ended after {passed:.0f} s: {counted(round(sums['pages']), 'page')}"
            f" ({sums['pages'] / passed:.1f}/s), {sums['failures']:.0f} failed"
        )

    def _sums(self) -> dict[str, float]:
        """Sums by column."""
        for name, path in self._logs.items():
            numbers = self._read(path)
            earlier = self._last.get(name)
            if numbers is None:
                continue
            if earlier is not None and numbers["pages"] < earlier["pages"]:
                for total in _TOTALS:
                    self._before[total] += earlier[total]
            self._last[name] = numbers
        return {key: self._sum(key) for key in (*_TOTALS, *_NOW)}

    def _sum(self, key: str) -> float:
        return self._before.get(key, 0.0) + sum(last[key] for last in self._last.values())

    def _read(self, path: Path) -> dict[str, float] | None:
        """The last whole line, if it belongs to this run."""
        try:
            with path.open("rb") as log:
                log.seek(max(0, log.seek(0, 2) - _TAIL_BYTES))
                lines = log.read().decode("utf-8", "replace").split("\n")[:-1]
        except OSError:
            return None
        fields = lines[-1].split("\t") if lines else []
        if len(fields) != len(MONITOR_COLUMNS) or fields[0] < self._begun or fields[0] == "time":
            return None
        named = dict(zip(MONITOR_COLUMNS, fields, strict=True))
        try:
            return {key: float(named[key]) for key in (*_TOTALS, *_NOW)}
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Numbers of URLs by final state, for each worker. ``left``: the URLs still to be fetched, None
    if unknown. ``idle``: how many of the ``number`` workers of this run had nothing to do.
    ``hosts``: the number of hosts that the others fetched from."""

    root: Path
    workers: dict[str, Counter[UrlState]]
    left: int | None = None
    idle: int = 0
    number: int = 0
    hosts: int = 0
    refresh: Totals | None = None
    """The counts of this run, if it visited pages again."""

    @classmethod
    def of(
        cls,
        crawl: CrawlOfWorkers,
        names: Sequence[str] = (),
        began: float = inf,
        refresh: Totals | None = None,
    ) -> Self:
        """The outcome of a run. Reads every record: 1 s for 300,000. ``names``: the workers of this
        run. ``began``: its start in seconds since the epoch."""
        found = {}
        hosts: set[str] = set()
        idle = set(names)
        for worker in crawl.parts:
            name = worker.path.name
            states = found[name] = Counter[UrlState]()
            with worker.frontier() as frontier:
                for _, visit in () if frontier is None else frontier.visits():
                    states[visit.state] += not visit.shard
                    if visit.time >= began:
                        idle.discard(name)
                        hosts.add(host_of(visit.url))
        with crawl.frontier() as frontier:
            counts = None if frontier is None else frontier.counts()
        left = None if crawl.remark or counts is None else counts.to_fetch
        return cls(crawl.path, found, left, len(idle), len(names), len(hosts), refresh)

    @property
    def total(self) -> Counter[UrlState]:
        return sum(self.workers.values(), Counter())

    def lines(self) -> Iterator[str]:
        """The lines for the end of a crawl."""
        width = max(11, *map(len, self.workers), 0)
        for name, counts in sorted(self.workers.items()):
            yield f"{name:<{width}} {_listed(counts)}"
        left = (
            f"; {self.left:,} still queued; run the same command to continue" if self.left else ""
        )
        yield f"{'total':<{width}} {_listed(self.total)}, in {self.root} over all runs{left}"
        if self.refresh is not None:
            for number, line in enumerate(self._visited(self.refresh)):
                yield f"{'' if number else 'refresh':<{width}} {line}"
        if 0 < self.idle < self.number:
            hosts = counted(self.hosts, "host")
            yield f"{self.idle} of {self.number} workers had nothing to do: {hosts}"

    def _visited(self, run: Totals) -> list[str]:
        visits, ended = run.matching(stats.REFRESH), run.matching(stats.RUN)
        new = ended.get(UrlState.STORED.name.lower(), 0)
        seen = sum(number for word, number in visits.items() if word in _OBSERVATIONS)
        known = self.total[UrlState.STORED] + self.total[UrlState.FAILED]
        failed = ended.get(UrlState.FAILED.name.lower(), 0)
        visits["not_asked"] = max(0, known - seen - new - failed)  # hosts move: not their sum
        return visited(visits, new, requests_by_purpose(run.counters))


def _listed(counts: Counter[UrlState]) -> str:
    states = (UrlState.STORED, UrlState.REFUSED, UrlState.FAILED)
    stored, refused, failed = (counts[state] for state in states)
    return f"{counted(stored, 'page')} stored, {refused:,} refused, {failed:,} failed"
