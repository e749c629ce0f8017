"""Takes up approvals of deletes, and reports to LARM_NOTIFY what waits for an operator.

    LARM_NOTIFY = "mail -s larmspider me@example"      # a command: the message is its input
    LARM_NOTIFY = "https://chat.example/hooks/larm"    # a webhook: {"what": ..., "host": ..., ...}

Both happen at each checkpoint, and what is over is forgotten at the last one: after it, the notes
of hosts cannot be read any more. An approval lasts until a run begins that finds its pages gone or
back, whatever happened in the runs before. Each event is reported once, however many runs and
workers in LARM_DIR find it: the brake holds deletes of a host, a login has expired, a host is
dead. It is reported again if a run in between has found that it was over. The log names it as often
as LARM_NOTIFY does, which need not be set.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy import signals

from larmspider import options, plugin, stats
from larmspider import signals as larm_signals
from larmspider.control.deletes import approved_in, write_approved
from larmspider.control.remove import take_out_host
from larmspider.errors import LarmspiderError
from larmspider.formatting import counted, printable, utc
from larmspider.frontier.hosts import name_of
from larmspider.learned.deletes.delete_gate import is_same_silence
from larmspider.learned.deletes.notes import (
    LOGIN,
    MOVED,
    SCOPE,
    UNDECIDED,
    UNDECIDED_SECS,
    WHOLE_HOST,
)
from larmspider.learned.deletes.table import Observation
from larmspider.pipelines.store import Store
from larmspider.redaction import told
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.urls.normalizer import forms_from_settings
from larmspider.workdir.restricted import restricted_by_moves, restricted_of_run

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.learned.deletes.notes import Notice
    from larmspider.scheduler.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

TIMEOUT_SECS = 30.0
"""Seconds for the command or the webhook."""
_CAUSES: Mapping[str, str] = {Observation.LOGIN: LOGIN, Observation.MOVED: MOVED}
"""Notices about a host that explain why some of its pages are undecided, by what visits see."""
TOLD = "deletes-told.json"
"""A file in LARM_DIR, for all workers: the time and message of each reported event, by name. A
server shows the events of its crawls (server/runs/watch.py)."""


class NotifyExtension:
    """``target`` is LARM_NOTIFY, "" for no reports; ``root`` is LARM_DIR."""

    def __init__(self, crawler: Crawler, target: str, root: Path) -> None:
        self.crawler, self.target, self.root = crawler, target, root
        self._approved: dict[str, dict[bytes, float]] = {}
        self._read = -1.0
        self._taken_up: set[str] = set()  # hosts with approvals; with workers some come later
        self._found: set[str] = set()  # events of this run
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler, _target(crawler), options.crawl_root(crawler.settings))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.look, signal=larm_signals.commit)
        crawler.signals.connect(extension.committed, signal=larm_signals.committed)
        crawler.signals.connect(extension.take_out, signal=larm_signals.host_abandoned)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    @property
    def _scheduler(self) -> FrontierScheduler | None:
        return scheduler_of(self.crawler)

    def spider_opened(self) -> None:
        scheduler = self._scheduler
        if scheduler is None:
            return
        self._drop_done(scheduler)
        self._take_approvals(scheduler)
        self._keep_rights(scheduler)

    def look(self) -> None:
        """Look for approvals and events, at a checkpoint."""
        scheduler = self._scheduler
        if scheduler is None or scheduler.closed:
            return
        self._take_approvals(scheduler)
        self._tell(scheduler)

    def _take_approvals(self, scheduler: FrontierScheduler) -> None:
        path, frontier = scheduler.directory.path, scheduler.frontier
        with suppress(OSError):
            changed = (path / "deletes-approved.json").stat().st_mtime
            if changed != self._read:
                self._read, self._taken_up = changed, set()
                self._approved = approved_in(path)
        self._taken_up.intersection_update(frontier.hosts)  # others may come back
        for host in self._approved.keys() - self._taken_up:
            if host in frontier.hosts:
                self._taken_up.add(host)
                self._approve(scheduler, host, self._approved[host])
                scheduler.wake()

    def _approve(
        self, scheduler: FrontierScheduler, host: str, keys: Mapping[bytes, float]
    ) -> None:
        frontier = scheduler.frontier
        since = keys.get(WHOLE_HOST)
        if since is not None and self._is_silent(scheduler, host, since):
            frontier.gate.abandon(host, since)
            record = frontier.hosts[host].record
            if record.is_silent:
                record.wake()  # the operator wants to know now whether it answers
                frontier.reschedule(frontier.hosts[host])
        frontier.gate.approve(host, {key: at for key, at in keys.items() if key != WHOLE_HOST})

    def _is_silent(self, scheduler: FrontierScheduler, host: str, since: float) -> bool:
        """Whether a host with pages has not answered since the time of an approval."""
        found = scheduler.frontier.hosts.get(host)
        pages = scheduler.frontier.backend.counts(host).stored
        return found is not None and pages > 0 and is_same_silence(found.record.silent_since, since)

    def take_out(self, host: str, since: float) -> bool:
        """Remove the pages of a host that still does not answer, while the crawl continues."""
        task = asyncio.get_running_loop().create_task(self._take_out_all(host, since))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return True

    async def _take_out_all(self, host: str, since: float) -> None:
        scheduler = self._scheduler
        assert scheduler is not None
        reason = f"no answer of the host since {utc(since)[:10]}, and approved"
        chain = self.crawler.engine.scraper.itemproc.middlewares
        stores = [one for one in chain if isinstance(one, Store)]
        forms, pages = forms_from_settings(self.crawler.settings), 0
        await asyncio.sleep(0)  # the request that has failed ends first
        try:
            for number in take_out_host(scheduler.frontier, host, stores, forms, reason):
                pages += number
                await asyncio.sleep(0)
        except LarmspiderError as error:  # a full disk, for one; the next run goes on
            scheduler.break_off(str(error))
        finally:
            scheduler.frontier.gate.leaving.discard(host)
        said = f"{counted(pages, 'page')} of {printable(host)} ({reason})"
        logger.warning("%s left the search", said)
        counters = self.crawler.stats
        assert counters is not None
        counters.inc_value(stats.REFRESH.format(seen="removed"), pages)
        others = counters.get_value(stats.REFRESH_DEAD, "")
        counters.set_value(stats.REFRESH_DEAD, f"{others}, {said}" if others else said)
        scheduler.wake()

    def _keep_rights(self, scheduler: FrontierScheduler) -> None:
        """A host to which a restricted host has moved is restricted, too."""
        frontier = scheduler.frontier
        moves = [
            (name_of(host), name_of(to))
            for host in frontier.hosts
            for to in frontier.gate.moved_to(host)
        ]
        if not moves:
            return
        known = restricted_of_run(self.crawler.settings)
        if new := restricted_by_moves(known, moves):
            logger.warning(
                "Not everybody may see %s any more: restricted hosts have moved there"
                " (LARM_SEARCH_GROUPS says who may)",
                printable(", ".join(sorted(new))),
            )
            scheduler.directory.restrict(new)

    def _tell(self, scheduler: FrontierScheduler) -> None:
        if any(notice.what == MOVED for notice in scheduler.frontier.gate.notes.notices):
            self._keep_rights(scheduler)
        found: dict[str, Notice] = {}
        for notice in scheduler.frontier.gate.notes.notices:
            if (name := notice.name) not in self._found:
                self._found.add(name)
                found[name] = notice
        scheduler.frontier.gate.notes.notices.clear()
        if not found:
            return
        with _told(self.root / TOLD) as told:
            new = found.keys() - told.keys()
            new -= {name for name in new if _is_cause_told(found[name], {*told, *found})}
            told |= {name: (time.time(), found[name].message) for name in new}
        for name in sorted(new):
            logger.warning("%s", printable(found[name].message))
            if not self.target:
                continue
            task = asyncio.get_running_loop().create_task(self._send(found[name]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _forget_over(self, scheduler: FrontierScheduler) -> None:
        """Forget events that are over, on the hosts of this worker."""
        gate, hosts = scheduler.frontier.gate, scheduler.frontier.hosts
        if not (path := self.root / TOLD).exists():
            return
        with _told(path) as told:
            for name in list(told):
                what, host, *seen = name.split()
                if seen and time.time() - told[name][0] < UNDECIDED_SECS:
                    continue  # the pages may alternate
                if (host in hosts or host == SCOPE) and gate.is_over(what, host, *seen):
                    del told[name]

    async def _send(self, notice: Notice) -> None:
        """Send a notice; the crawl continues even if this fails."""
        try:
            async with asyncio.timeout(TIMEOUT_SECS):
                await plugin.load("notify.send").send(self.target, notice)
        except (OSError, ValueError, TimeoutError, HTTPException, LarmspiderError) as error:
            logger.error("LARM_NOTIFY failed: %s", told(error) or "time-out")

    def committed(self) -> None:
        """Report and forget conditions that have ended. Called after the last checkpoint."""
        scheduler = self._scheduler
        if scheduler is None or not scheduler.closed:
            return
        for sentence in scheduler.frontier.gate.undecided.void_approvals():
            logger.warning("%s", printable(sentence))
        self._drop_void(scheduler)
        self._tell(scheduler)
        self._forget_over(scheduler)

    async def spider_closed(self) -> None:
        for task in self._leaving:  # the next run goes on
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=TIMEOUT_SECS)

    def _drop_done(self, scheduler: FrontierScheduler) -> None:
        """An approval is over when its page has left, or has come back, by the last commit."""
        gate, hosts = scheduler.frontier.gate, scheduler.frontier.hosts
        approved = approved_in(scheduler.directory.path)
        left = {
            host: gate.undecided.still_waiting(host, keys) if host in hosts else dict(keys)
            for host, keys in approved.items()
        }
        for host, keys in approved.items():
            since = keys.get(WHOLE_HOST)
            if since is not None and host in hosts and self._is_silent(scheduler, host, since):
                left[host][WHOLE_HOST] = since
        if left != approved:
            with suppress(OSError):
                write_approved(scheduler.directory.path, left)

    def _drop_void(self, scheduler: FrontierScheduler) -> None:
        """The approval of a host that has answered is void, and the operator reads it once."""
        path, hosts = scheduler.directory.path, scheduler.frontier.hosts
        approved = approved_in(path)
        void = [
            host
            for host, keys in approved.items()
            if WHOLE_HOST in keys
            and host in hosts
            and scheduler.frontier.backend.counts(host).stored
            and not self._is_silent(scheduler, host, keys[WHOLE_HOST])
        ]
        for host in void:
            del approved[host][WHOLE_HOST]
            logger.warning(
                "The approval for %s is void, and its pages stay: the host has answered since",
                printable(host),
            )
        if void:
            with suppress(OSError):
                write_approved(path, approved)


def _is_cause_told(notice: Notice, names: Collection[str]) -> bool:
    """Whether pages are undecided for a reason of their host that the operator knows: an expired
    login, or a move."""
    cause = _CAUSES.get(notice.seen) if notice.what == UNDECIDED else None
    return cause is not None and f"{cause} {notice.host}" in names


@contextmanager
def _told(path: Path) -> Iterator[dict[str, tuple[float, str]]]:
    """The content of the file, locked meanwhile; changes are written back. It is empty if the file
    is damaged or cannot be opened."""
    told: dict[str, tuple[float, str]] = {}
    try:
        file = path.open("a+b", buffering=0)
    except OSError:
        yield told
        return
    with file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        told |= _events(file.read())
        before = dict(told)
        yield told
        if told != before:
            with suppress(OSError):
                file.truncate(0)
                file.write(json.dumps(told).encode())


def _events(content: bytes) -> dict[str, tuple[float, str]]:
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        return {
            str(name): (float(at), str(message))
            for name, (at, message) in json.loads(content).items()
        }
    return {}


def told_of(directory: Path) -> dict[str, tuple[float, str]]:
    """The reported events of a crawl that are not over: time and message by name."""
    try:
        return _events((directory / TOLD).read_bytes())
    except OSError:
        return {}


def _target(crawler: Crawler) -> str:
    """LARM_NOTIFY. Raises ConfigError."""
    target = options.text(crawler.settings, "LARM_NOTIFY").strip()
    if target:
        plugin.load("notify.send").check(target)
    return target
