"""A crawl at one moment: Gauges for the pages and the terminal, Snapshot for the monitor's log.

>>> state_of(RunState.of(Path("crawl")), gauges)
'paused'
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider import stats
from larmspider.crawl.state import RunState, State
from larmspider.frontier.overrides import Overrides
from larmspider.scheduler.scheduler import scheduler_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


@dataclass(frozen=True, slots=True)
class Gauges:
    """A running crawl, for the overview, /stats.json and /metrics.

    ``time`` and ``began`` (of this run) in seconds since the epoch; ``pages``, ``bytes``,
    ``links``, ``failures`` and ``counters`` (larmspider's Scrapy stats) since this run began;
    ``urls`` of the whole crawl by state. ``memory`` in bytes. ``waiting``: why an idle crawl waits.
    ``broken``: why nothing more is committed. ``scope``: the scope in force, in the form of
    LARM_RESTRICT. ``orders``: the operator's orders. ``threads``: the allowed fetches at a time;
    with many workers, of each worker.
    """

    time: float
    began: float
    pages: int
    bytes: int
    links: int
    in_flight: int
    failures: int
    memory: int
    paused: bool
    waiting: str
    broken: str
    hosts: int = 0
    """Hosts that have or had a URL; the table of hosts has them from the next checkpoint on."""
    urls: Mapping[str, int] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    scope: str = ""
    orders: Overrides = field(default_factory=Overrides)
    threads: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"orders": self.orders.as_json()}

    @classmethod
    def together(cls, found: Sequence[Self]) -> Self:
        """Gauges of workers added up. ``urls`` is empty: hosts move between workers, so only the
        table of hosts counts each URL once."""
        first = found[0]
        if len(found) == 1:
            return first
        sums = {name: sum(getattr(one, name) for one in found) for name in _SUMS}
        return replace(
            first,
            **sums,
            time=max(one.time for one in found),
            began=min(one.began for one in found),
            paused=all(one.paused for one in found),
            waiting=next((one.waiting for one in found if one.waiting), ""),
            broken=next((one.broken for one in found if one.broken), ""),
            urls={},
            counters=_summed([one.counters for one in found]),
            orders=Overrides.together(one.orders for one in found),
            threads=max(one.threads for one in found),
        )

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The reverse of as_json(). Raises TypeError or KeyError for anything else."""
        named = {one.name: found[one.name] for one in fields(cls)}
        return cls(**{**named, "orders": Overrides.from_json(found["orders"])})


_SUMS = ("pages", "bytes", "links", "in_flight", "failures", "memory", "hosts")


def _summed(found: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for one in found for name in one)
    return {name: sum(one.get(name, 0) for one in found) for name in names}


PAUSED = "paused"
"""The state text of a running crawl that is paused, in place of State.RUNNING's."""


def state_of(run_state: RunState, gauges: Gauges | None) -> str:
    """One of the words of State, or PAUSED."""
    return PAUSED if gauges is not None and gauges.paused else run_state.state.value


def state_text(run_state: RunState, gauges: Gauges | None) -> str:
    """The state of a crawl in a sentence."""
    if gauges is not None and gauges.broken:
        return f"Stopping after an error: {gauges.broken}."
    if gauges is not None and gauges.paused:
        sentence = run_state.sentence
        return f"Paused. {sentence}"
    if gauges is not None and gauges.waiting:
        return f"{run_state.sentence} It is {gauges.waiting}."
    return run_state.sentence


def why_stopped(run_state: RunState, gauges: Gauges | None) -> str:
    """Why the crawl sends no request to any host, a sentence; "" while it does."""
    if run_state.state is not State.RUNNING:
        return "The crawl does not run."
    if gauges is None:
        return ""
    if gauges.broken:
        return "The crawl stops after an error."
    return "The crawl is paused." if gauges.paused else ""


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
            in_flight=in_flight(crawler),
            hosts=count(stats.FOLLOW_HOSTS, 0),
            failures=failures,
            memory=resident_bytes(),
        )

    def pages_per_second(self, earlier: Snapshot) -> float:
        seconds = self.time - earlier.time
        return (self.pages - earlier.pages) / seconds if seconds > 0 else 0.0


def in_flight(crawler: Crawler) -> int:
    """URLs that were handed out and have no outcome yet; under another scheduler, fetches."""
    scheduler = scheduler_of(crawler)
    if scheduler is not None:
        return 0 if scheduler.closed else scheduler.frontier.backend.counts().leased
    return len(crawler.engine.downloader.active) if crawler.engine is not None else 0


def resident_bytes() -> int:
    """This process's memory: resident now on Linux, the peak elsewhere."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")
