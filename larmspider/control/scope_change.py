"""Changes the scope of a running crawl: drops queued URLs outside the new scope, and queues URLs
that were outside the old one.

    preview(crawl, pattern)    # "about 1,200 of 40,000 queued URLs would be dropped"
    await change.change("https?://[^/]*\\.example/.*")

The filters use the new scope at once. A thread reads the queues of the last checkpoint in slices,
and queued URLs outside the scope are refused, slice by slice. This is done twice, to include URLs
that were found meanwhile.

Then the links of links.log are judged again (link_replay.py), as at the start of a run whose seeds,
scope or filters have changed. The new scope is kept with the frontier and stays when the crawl is
continued.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larmspider import options, stats
from larmspider.control.link_replay import LinkReplay
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import counted, size
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import QueuedUrl
from larmspider.middlewares.filter_middleware import FilterMiddleware
from larmspider.middlewares.last_check import LastCheckMiddleware
from larmspider.middlewares.scope import ScopeFilter
from larmspider.scheduler.scheduler import FrontierScheduler, scheduler_of
from larmspider.urls.backtracking import LONGEST_MATCH_SECS
from larmspider.urls.patterns import Pattern, compile_pattern
from larmspider.workdir.directory import is_unjudged, worker_dirs
from larmspider.workdir.frames import present, stored_size

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.cluster.worker import ClusterWorker

logger = logging.getLogger(__name__)

PREVIEW_SECS = 2.0
REASON = "out of the scope that the operator set"
_SOON_SECS = 5.0
"""How long the reply waits for sweep and replay before they continue in the background."""


def preview(crawl: CrawlDir, restrict: str, seconds: float = PREVIEW_SECS) -> str:
    """How many queued URLs the scope ``restrict`` would drop, estimated from the URLs that can be
    checked in ``seconds``. Raises ConfigError for a bad pattern, or a pattern that takes too long
    for a queued URL (urls/backtracking.py tries examples only)."""
    pattern, end = compiled(restrict), time.monotonic() + seconds
    seen = dropped = 0
    example = ""
    with crawl.frontier() as frontier:
        if frontier is None:
            raise CrawlDirError("this crawl does not use larmspider's frontier")
        counts = frontier.counts()
        for entries in _slices(frontier.waiting):
            out, looked_at = _first_out_of(entries, pattern, end)
            seen, dropped = seen + looked_at, dropped + len(out)
            example = example or (out[0].normalized if out else "")
            if time.monotonic() > end:
                break
    total = counts.queued + counts.leased
    such = f", such as {example}" if example else ""
    if seen >= total:
        return f"{dropped:,} of {seen:,} queued URLs would be dropped{such}"
    share = dropped / max(1, seen)
    return (
        f"about {share * total:,.0f} of {total:,} queued URLs would be dropped ({dropped:,} of"
        f" {seen:,} checked){such}"
    )


def _first_out_of(
    entries: list[QueuedUrl], pattern: Pattern, end: float
) -> tuple[list[QueuedUrl], int]:
    """The entries that do not match, and how many were checked until ``end``."""
    out: list[QueuedUrl] = []
    began = time.thread_time()
    for number, entry in enumerate(entries, 1):
        if not pattern.fullmatch(entry.normalized):
            out.append(entry)
        now = time.thread_time()
        if pattern.engine != "re2" and now - began > LONGEST_MATCH_SECS:
            raise ConfigError(
                f"the scope: pattern {pattern.text!r} takes {now - began:.1f} s for the queued URL"
                f" {entry.normalized[:200]}, and RE2 does not support it; expected a pattern that"
                f" RE2 supports, or that takes less than {LONGEST_MATCH_SECS:g} s for a URL"
            )
        if time.monotonic() > end:
            return out, number
        began = now
    return out, len(entries)


def compiled(restrict: str) -> Pattern:
    """Raises ConfigError."""
    if not restrict.strip():
        raise ConfigError("empty scope: expected a regular expression such as .*")
    return compile_pattern(restrict.strip(), name="the scope")


def _slices(
    waiting: Callable[[bytes], tuple[list[QueuedUrl], bytes | None]],
) -> Iterator[list[QueuedUrl]]:
    after: bytes | None = b""
    while after is not None:
        entries, after = waiting(after)
        yield entries


class ScopeChange:
    """The scope of one crawl, changed by its operator."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._sweep: asyncio.Task[str] | None = None
        self.restrict = ""
        """The operator's scope, or ""."""

    @property
    def _scheduler(self) -> FrontierScheduler:
        scheduler = scheduler_of(self.crawler)
        assert scheduler is not None
        return scheduler

    def apply_order(self) -> None:
        """Use the scope that was set in an earlier run, unless the command names another scope.
        Called at the start of a run."""
        scheduler = scheduler_of(self.crawler)
        if scheduler is None:
            return
        orders = scheduler.frontier.control.overrides
        if orders.restrict and orders.instead_of == self._of_the_settings:
            logger.info("The scope is %s, set by the operator", orders.restrict)
            self._restrict(compiled(orders.restrict))

    def rejudge(self) -> None:
        """Judge the links of links.log again, if other rules judged them. Called at the start of a
        run."""
        scheduler = scheduler_of(self.crawler)
        if scheduler is None or not scheduler.directory.rejudge:
            return
        if not getattr(self.crawler.spider, "follows_links", True):
            scheduler.directory.note_rejudge(needed=False)
            return
        log = scheduler.directory.path / "links.log"
        if not present(log).exists() and scheduler.frontier.backend.counts().stored:
            logger.warning(
                "There is no %s (ITEM_PIPELINES without LinkLogPipeline): links that other seeds,"
                " scope or filters rejected cannot be judged again, and are lost",
                log,
            )
        logger.info(
            "Seeds, scope or filters have changed: the links of %s (%s) are judged again",
            log,
            size(stored_size(log, missing=0)),
        )
        self._begin(self._replay(LinkReplay(self.crawler)))

    def _begin(self, work: Coroutine[Any, Any, str]) -> asyncio.Task[str]:
        """Do ``work`` beside the crawl; the crawl does not end before it is done."""
        self._scheduler.searching = True
        self._sweep = asyncio.get_running_loop().create_task(work)
        self._sweep.add_done_callback(self._searched)
        return self._sweep

    def _searched(self, sweep: asyncio.Task[str]) -> None:
        self._scheduler.searching = False
        self._scheduler.wake()
        if not sweep.cancelled() and (error := sweep.exception()) is not None:
            # crawl.json says that it is still to be done: the next run begins again
            logger.error("The search for URLs that are in scope now failed: %r", error)

    async def _replay(self, replay: LinkReplay, *, running: bool = False) -> str:
        """Judge the links of links.log again. With ``running``, this includes links that were being
        stored when the scope changed. Returns the result."""
        await replay.run()
        if running:
            await self.checkpoint()
            await replay.run()
        await self.checkpoint()  # the queued URLs are durable
        self._scheduler.directory.note_rejudge(needed=False)
        logger.info("Judged again: %s", replay.found)
        if self._scheduler.worker is not None:
            await self._name_others(self._scheduler.worker)
        return str(replay.found)

    async def _name_others(self, worker: ClusterWorker) -> None:
        """Warn of workers that do not run: their links are not judged again."""
        names = await asyncio.to_thread(worker.ended_workers)
        root = options.crawl_root(self.crawler.settings)
        here = {path.name: path for path in worker_dirs(root)}
        left = [name for name in names if name not in here or is_unjudged(here[name], root)]
        if left:
            shown = ", ".join(
                name if name in here else f"{name} (its directory is not in {root})"
                for name in left
            )
            logger.warning(
                "Links that were found by workers which are not running are not judged again. Start"
                " these workers too, with resume=anyway: %s",
                shown,
            )

    @property
    def _of_the_settings(self) -> str:
        return options.text(self.crawler.settings, "LARM_RESTRICT")

    @property
    def _frontier(self) -> Path:
        return options.larm_dir(self.crawler.settings) / "frontier"

    async def change(self, restrict: str) -> str:
        """Raises ConfigError for a bad pattern, or while another change is under way."""
        if self._sweep is not None and not self._sweep.done():
            raise ConfigError(
                "the last change of the scope is still searching queues and logs; try again later"
            )
        if options.many_workers(self.crawler.settings):
            raise ConfigError(
                "workers share this crawl, and one cannot change the scope of all: stop them and"
                " start again with another restrict and resume=anyway"
            )
        pattern = await asyncio.to_thread(compiled, restrict)
        self._restrict(pattern)
        control = self._scheduler.frontier.control
        control.overrides.restrict, control.overrides.instead_of = (
            pattern.text,
            self._of_the_settings,
        )
        control.save()
        self._scheduler.directory.note_rejudge(needed=True)
        sweep = self._begin(self._sweep_and_replay(pattern))
        done, _ = await asyncio.wait([sweep], timeout=_SOON_SECS)
        if not done:
            return (
                f"the scope is now {pattern.text}; queued URLs outside it are being dropped, and"
                " links that were outside before are being looked for: the log will say how many"
            )
        return f"the scope is now {pattern.text}; {sweep.result()}"

    async def _sweep_and_replay(self, pattern: Pattern) -> str:
        dropped = counted(await self._drop(pattern), "queued URL was", "queued URLs were")
        return f"{dropped} dropped; {await self._replay(LinkReplay(self.crawler), running=True)}"

    def _restrict(self, pattern: Pattern) -> None:
        self.restrict = pattern.text
        engine = self.crawler.engine
        for one in engine.scraper.spidermw.middlewares:
            if isinstance(one, FilterMiddleware) and isinstance(one.filter, ScopeFilter):
                one.filter.restrict_to(pattern)
        for one in engine.downloader.middleware.middlewares:
            if isinstance(one, LastCheckMiddleware):
                one.scope.restrict_to(pattern)

    async def _drop(self, pattern: Pattern) -> int:
        """Refuse all queued URLs outside the scope; twice, for URLs that were queued after the
        first checkpoint."""
        dropped = 0
        for _ in range(2):
            await self.checkpoint()
            dropped += await self._drop_once(pattern)
        logger.info(
            "Control: %s outside the new scope",
            counted(dropped, "queued URL was", "queued URLs were"),
        )
        return dropped

    async def checkpoint(self) -> None:
        """Wait for a checkpoint that began after now."""
        assert self.crawler.stats is not None
        taken = self.crawler.stats.get_value(stats.CHECKPOINTS, 0)
        if self._scheduler.checkpointing.locked():
            taken += 1  # the running one began earlier
        while self.crawler.stats.get_value(stats.CHECKPOINTS, 0) <= taken:
            await asyncio.sleep(0.05)

    async def _drop_once(self, pattern: Pattern) -> int:
        dropped, after = 0, b""
        with FrontierReader(self._frontier) as reader:
            more: bytes | None = after
            while more is not None:
                out, more = await asyncio.to_thread(_out_of, reader, more, pattern)
                if out:
                    dropped += self._scheduler.frontier.control.refuse(out, REASON)
        self._count(dropped)
        return dropped

    async def purge(self, host: str) -> int:
        """Refuse all queued URLs of a host, a part at a time."""
        purged = 0
        while some := self._scheduler.frontier.control.purge_host(host):
            purged += some
            self._count(some)
            await asyncio.sleep(0)
        return purged

    def _count(self, refused: int) -> None:
        if refused:
            assert self.crawler.stats is not None
            self.crawler.stats.inc_value(stats.RUN.format(state="refused"), refused)

    def cancel(self) -> None:
        """Stop the sweep as the crawl ends; URLs left outside the scope are refused when their turn
        comes."""
        if self._sweep is not None:
            self._sweep.cancel()


def _out_of(
    reader: FrontierReader, after: bytes, pattern: Pattern
) -> tuple[list[QueuedUrl], bytes | None]:
    entries, more = reader.waiting(after)
    return [one for one in entries if not pattern.fullmatch(one.normalized)], more
