"""Finds conditions that need a person, in all crawls, and sends each notice once.

    watch = Watch(manager, "mail -s larmspider me@example")
    await watch.look()             # now and then; sends new notices
    watch.waits                    # {"refused wiki": Notice(...), ...}

It reports:

- a crawl file with a mistake, and a crawl with settings that cannot be used
- a crawl that failed 3 times in a row, and hosts that were given up
- a disk that is nearly full
- events of each crawl (extensions/notify.py): a login that expired, deletes that wait, a host that
  has not answered for 90 days

HOME/told.json lists the sent notices. A condition that ended is sent again if it comes back.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import msgspec
from msgspec import Struct

from larmspider import plugin, stats
from larmspider.errors import LarmspiderError
from larmspider.extensions.notify import TIMEOUT_SECS, told_of
from larmspider.files import replace_file
from larmspider.formatting import counted
from larmspider.learned.deletes.notes import Notice
from larmspider.redaction import told as redacted
from larmspider.server.home import CrawlEntry
from larmspider.server.runs.manager import Manager
from larmspider.status.totals import Totals

logger = logging.getLogger(__name__)

FILE = "told.json"
FAILURES = 3
"""Failures in a row, after which a crawl waits for a person."""
RETRY_SECS = 600.0
"""Wait after a notice that could not be sent."""
MAX_AT_ONCE = 20
"""Notices that one look() sends. The next one sends more."""
DISK, FILE_WRONG, REFUSED, FAILED, GIVEN_UP = "disk", "file", "refused", "failed", "given-up"

Send = Callable[[str, Notice], Awaitable[None]]


class _GivenUp(Struct):
    """Hosts that a crawl had given up before its ``run``, and at the last look. ``bad``: some hosts
    were given up in this run or, until this run has ended, in the run before."""

    run: int = 0
    base: int = 0
    last: int = 0
    bad: bool = False


class _Told(Struct):
    told: dict[str, float] = {}
    given_up: dict[str, _GivenUp] = {}


async def _send(target: str, notice: Notice) -> None:
    async with asyncio.timeout(TIMEOUT_SECS):
        await plugin.load("notify.send").send(target, notice)


class Watch:
    """``target`` is a command or a webhook; "" sends nothing. Raises ConfigError for a bad one."""

    def __init__(
        self,
        manager: Manager,
        target: str = "",
        *,
        clock: Callable[[], float] = time.time,
        send: Send = _send,
    ) -> None:
        if target:
            plugin.load("notify.send").check(target)
        self._manager, self._target, self._clock, self._send = manager, target, clock, send
        self._path: Path = manager.home.path / FILE
        self._kept = self._read()
        self._retry_at = 0.0
        self._sending: asyncio.Task[None] | None = None
        self.waits: dict[str, Notice] = {}

    async def look(self) -> None:
        """Look at all crawls, and send new notices."""
        before = msgspec.json.encode(self._kept)
        self.waits = await asyncio.to_thread(lambda: {one.name: one for one in self._found()})
        self._kept.told = {name: at for name, at in self._kept.told.items() if name in self.waits}
        if msgspec.json.encode(self._kept) != before:
            self._save()
        new = [notice for name, notice in self.waits.items() if name not in self._kept.told]
        busy = self._sending is not None and not self._sending.done()
        if new and not busy and self._clock() >= self._retry_at:
            self._sending = asyncio.create_task(self._tell(new[:MAX_AT_ONCE]))

    async def close(self) -> None:
        """Wait for notices that are being sent."""
        if self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending], timeout=TIMEOUT_SECS)

    async def _tell(self, notices: list[Notice]) -> None:
        for notice in notices:
            logger.warning("%s", notice.message)
            if self._target:
                try:
                    await self._send(self._target, notice)
                except (OSError, ValueError, TimeoutError, HTTPException, LarmspiderError) as error:
                    why = redacted(error) or "time-out"
                    logger.error(
                        "A notice could not be sent by %s: %s; retrying in %.0f minutes",
                        self._target.split()[0],
                        why,
                        RETRY_SECS / 60,
                    )
                    self._retry_at = self._clock() + RETRY_SECS
                    return
            self._kept.told[notice.name] = self._clock()
            self._save()

    def _found(self) -> Iterator[Notice]:
        manager = self._manager
        if manager.disk_full:
            yield Notice(DISK, "server", manager.disk_full)
        for entry in list(manager.entries().values()):
            yield from self._of_crawl(entry)
        self._kept.given_up = {
            name: one for name, one in self._kept.given_up.items() if name in manager.entries()
        }

    def _of_crawl(self, entry: CrawlEntry) -> Iterator[Notice]:
        name, state = entry.name, self._manager.state_of(entry.name)
        if entry.crawl is None:
            yield Notice(FILE_WRONG, name, f"{name}: {entry.problem}")
            return
        last = state.runs[-1] if state.runs else None
        if last is not None and state.run is None and not state.queued:
            if last.outcome == "refused":
                yield Notice(REFUSED, name, f"{name}: refused by its settings: {last.said}")
            elif last.outcome == "failed" or state.failures >= FAILURES:
                times = f", {state.failures} times in a row" if state.failures > 1 else ""
                yield Notice(FAILED, name, f"{name}: {last.outcome}{times}: {last.said}")
        directory = self._manager.directory_of(entry)
        for event, (_, message) in told_of(directory).items():
            what, _, about = event.partition(" ")
            notice = Notice(what, f"{name} {about}", f"{name}: {message}")
            if entry.crawl.settings.get("LARM_NOTIFY"):  # the crawl has told it by itself
                self._kept.told.setdefault(notice.name, self._clock())
            yield notice
        if (hosts := self._given_up(entry, directory)) is not None:
            were = counted(hosts, "host was", "hosts were")
            yield Notice(GIVEN_UP, name, f"{name}: {were} given up until the next run")

    def _given_up(self, entry: CrawlEntry, directory: Path) -> int | None:
        """The number of hosts that were given up in the present or the last run; None if there are
        none."""
        state = self._manager.state_of(entry.name)
        total = Totals.read(directory).counters.get(stats.HOSTS_GIVEN_UP, 0)
        kept = self._kept.given_up.setdefault(entry.name, _GivenUp())
        if kept.run != state.last:
            kept.run, kept.base = state.last, kept.last
        kept.last = total
        now = total > kept.base
        kept.bad = now or (kept.bad and state.run is not None)
        return max(1, total - kept.base) if kept.bad else None

    def _read(self) -> _Told:
        with suppress(OSError, msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(self._path.read_bytes(), type=_Told)
        return _Told()

    def _save(self) -> None:
        with suppress(OSError):  # a full disk; told once more after a restart
            replace_file(self._path, msgspec.json.encode(self._kept), private=True, synced=False)
