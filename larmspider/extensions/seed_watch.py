"""Reports seeds that cannot be fetched, and ends a crawl if no seed can be fetched.

    Seed http://wiki.nosuch.example/: no such host: wiki.nosuch.example
    Seed http://wiki.example/Start: not found (HTTP 404)

Failed hosts are otherwise retried for hours, because a server may come back. At the start the
reason is more likely a typing error or a missing network, so a message tells the operator.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from larmspider import options, stats
from larmspider.fetch.dns import DnsCache
from larmspider.formatting import counted, duration
from larmspider.frontier.hosts import Host, name_of
from larmspider.frontier.storage.records import UrlState, host_of
from larmspider.learned.describe import failure_in_words
from larmspider.scheduler.scheduler import FrontierScheduler, scheduler_of
from larmspider.status.summary import NO_SEED
from larmspider.urls.normalizer import forms_from_settings

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.cluster.worker import ClusterWorker

logger = logging.getLogger(__name__)

SAY_SECS = 25.0
"""After 25 s a host that has neither answered nor failed is named as well."""
MAX_SEEDS = 1_000
"""Seeds of a crawl that are looked at one by one; of further seeds only the hosts."""
MAX_NAMED = 5
"""Failed seeds that are listed at the end of the crawl."""
_TICK_SECS = 1.0
_MOST_SECS = 2 * _TICK_SECS
"""Most seconds between two looks that count: a longer gap is a machine that slept, or is busy."""


def is_status(kind: str) -> bool:
    """Whether a failure is an answer to one URL, as ``http-503``; not one for robots.txt."""
    return kind.startswith("http-")


class SeedWatchExtension:
    """Looks once a second until each seed has its answer, or has been named. ``patience`` in
    seconds; 0: the crawl keeps trying."""

    def __init__(self, crawler: Crawler, seeds: list[str], patience: float) -> None:
        self.crawler, self.patience = crawler, patience
        self._by_host: dict[str, list[str]] = {}
        for seed in seeds:
            self._by_host.setdefault(host_of(seed), []).append(seed)
        self._seeds = set(seeds[:MAX_SEEDS])
        self._problems: list[str] = []
        self._forms = forms_from_settings(crawler.settings)
        self._loop = create_looping_call(self.tick)
        self._began, self._last, self._passed = 0.0, 0.0, 0.0
        self._anew = False  # nothing is stored by earlier runs
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        patience = options.seconds(crawler.settings, "LARM_SEED_PATIENCE_SECS", minimum=0)
        seeds = [str(seed) for seed in getattr(crawler.spider, "start_urls", ())]
        if not seeds:
            raise NotConfigured  # seeds in Redis may come at any time
        extension = cls(crawler, seeds, patience)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        scheduler = scheduler_of(self.crawler)
        if scheduler is None:
            return
        self._began, self._last = time.time(), time.monotonic()
        self._anew = not scheduler.frontier.backend.counts().stored
        self._loop.start(_TICK_SECS, now=False)

    def spider_idle(self) -> None:
        """The crawl may end before the first tick."""
        if self._loop.running:
            self.tick()

    def spider_closed(self) -> None:
        if self._loop.running:
            self._loop.stop()

    def tick(self) -> None:
        scheduler = scheduler_of(self.crawler)
        if scheduler is None or scheduler.closed:
            return
        now, worker = time.monotonic(), scheduler.worker
        if worker is None or worker.may_fetch:  # without its lease a worker fetches nothing
            self._passed += min(now - self._last, _MOST_SECS)
        self._last = now
        self._name_pages(scheduler)
        self._name_hosts(scheduler, late=self._passed >= SAY_SECS)
        ends = self._anew and self.patience and not self._has_pages()
        if ends and self._passed >= self.patience and self._in_vain(scheduler):
            if self._closing is None:
                self._closing = asyncio.get_running_loop().create_task(self._end(worker))
        elif not (ends or self._by_host or self._seeds) and self._loop.running:
            self._loop.stop()

    def _name_pages(self, scheduler: FrontierScheduler) -> None:
        """Report seeds that failed although their host has answered."""
        frontier = scheduler.frontier
        for seed in list(self._seeds):
            normalized, exact = self._forms(seed)
            visit = frontier.backend.visit(frontier.entry(seed, normalized, exact=exact).key)
            if visit is None:
                continue
            self._seeds.discard(seed)
            if visit.state is UrlState.FAILED and host_of(seed) in self._by_host:
                gone = visit.status in (404, 410)
                words = f"HTTP {visit.status}" if visit.status else failure_in_words(visit.reason)
                self._say([seed], f"not found ({words})" if gone else words)

    def _name_hosts(self, scheduler: FrontierScheduler, *, late: bool) -> None:
        """Name the seeds of hosts that have failed, or with ``late`` have not answered."""
        for name in list(self._by_host):
            host = scheduler.frontier.hosts.get(name)
            if host is None:
                continue  # refused by a filter, or another worker's
            if self._has_failed(host):
                states = self._states(scheduler, host, self._by_host[name])
                if UrlState.LEASED in states:
                    continue  # its page is being stored
                seeds = self._by_host.pop(name)
                if states != {UrlState.STORED}:
                    self._say(seeds, self._why(host))
            elif host.record.robots_time >= self._began or host.record.slot_secs is not None:
                if not self._seeds.intersection(self._by_host[name]):
                    del self._by_host[name]  # it has answered, and each of its seeds is done
            elif late and (host.in_flight or host.resolving):
                self._say(self._by_host.pop(name), f"no answer for {duration(SAY_SECS)}")

    def _has_failed(self, host: Host) -> bool:
        record = host.record
        if record.waits_for_login:
            return True
        return bool(record.failures or record.parks) and record.last_failure >= self._began

    def _states(self, scheduler: FrontierScheduler, host: Host, seeds: list[str]) -> set[UrlState]:
        """The states of seeds whose host failed because some page had an error status; such a
        failure says nothing about stored seeds. Empty for other failures."""
        if host.record.waits_for_login or not is_status(host.record.last_kind):
            return set()
        entry, backend = scheduler.frontier.entry, scheduler.frontier.backend
        forms = [(seed, *self._forms(seed)) for seed in seeds]
        keys = [entry(seed, normalized, exact=exact).key for seed, normalized, exact in forms]
        return {*backend.check(keys)}

    def _why(self, host: Host) -> str:
        if host.record.waits_for_login:
            return host.record.reason
        name, kind = name_of(host.record.host), host.record.last_kind
        words = failure_in_words(kind)
        if kind.rpartition(" ")[2] == "dns":
            known = DnsCache.from_crawler(self.crawler).known(name)
            if known is not None and known.final:
                return f"no such host: {name}"
            words = f"no DNS server answered for {name}"
        return words

    def _say(self, seeds: list[str], why: str) -> None:
        assert self.crawler.stats is not None
        more = f" and {len(seeds) - 1:,} more of its host" if seeds[1:] else ""
        logger.error("Seed %s%s: %s", seeds[0], more, why)
        self._problems.append(f"{seeds[0]}{more}: {why}")
        unnamed = len(self._problems) - MAX_NAMED
        said = "; ".join(self._problems[:MAX_NAMED])
        if unnamed > 0:
            said += f"; and {counted(unnamed, 'host')} more"
        self.crawler.stats.set_value(stats.SEED_PROBLEM, said)

    def _has_pages(self) -> bool:
        """Whether this run has stored a page, redirects apart; with many workers any."""
        assert self.crawler.stats is not None
        start = stats.RUN_STATUS.format(status="2")
        return any(key.startswith(start) for key in self.crawler.stats.get_stats())

    def _in_vain(self, scheduler: FrontierScheduler) -> bool:
        """Whether all hosts with URLs left have failed, or have not answered for long."""
        frontier = scheduler.frontier
        if frontier.control.paused or frontier.control.waiting_hosts or scheduler.searching:
            return False
        left = list(self._hosts_left(scheduler))
        return bool(left) and all(
            self._has_failed(host)
            or (host.record.slot_secs is None and bool(host.in_flight or host.resolving))
            for host in left
        )

    @staticmethod
    def _hosts_left(scheduler: FrontierScheduler) -> Iterator[Host]:
        backend = scheduler.frontier.backend
        for host in scheduler.frontier.hosts.values():
            counts = backend.counts(host.record.host)
            if counts.to_fetch or counts.leased:
                yield host

    async def _end(self, worker: ClusterWorker | None) -> None:
        """End the crawl, unless another worker has stored a page, or Redis does not answer."""
        if worker is not None and (stored := await asyncio.to_thread(worker.stored_in_all)) != 0:
            self._anew, self._closing = stored is None, None
            return
        self._loop.stop()
        after = duration(self.patience)
        logger.error("No seed answered within %s: the crawl ends", after)
        await self.crawler.engine.close_spider_async(reason=NO_SEED)
