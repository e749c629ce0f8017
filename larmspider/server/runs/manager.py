"""Decides which crawl runs: what is due, what waits, what has ended. loop.py lets it tick.

    manager = Manager(home, settings, Launcher(home), clock=time.time)
    manager.adopt()                        # crawls that still run
    await manager.tick()                   # every few seconds
    manager.start("wiki", who="operator")  # ... stop, visit, resume

All that has to survive is in the state of each crawl (runs.py), written before it is acted on.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from larmspider.crawl.state import FINISHED, RunState
from larmspider.errors import ConfigError, LarmspiderError
from larmspider.formatting import size
from larmspider.server.config.crawl_schema import Crawl, Schedule
from larmspider.server.config.schedule import Timetable, in_window, opening
from larmspider.server.config.server_settings import ServerSettings
from larmspider.server.home import CrawlEntry, Home
from larmspider.server.runs.gaps import Gaps
from larmspider.server.runs.process import STOP, UNKNOWN, CrawlBusyError, Running, Starts, log_of
from larmspider.server.runs.runs import (
    NOT_BEGUN,
    STOPPED,
    CrawlRuns,
    Run,
    cut_log,
    judge,
    judge_jobs,
    read_runs,
    trim,
    write_runs,
)
from larmspider.status.totals import Totals
from larmspider.workdir.pushed import PushWatch

logger = logging.getLogger(__name__)

GRACE_SECS = 300.0
"""A run that begins later than its time by more than this was missed."""
CLOCK_SECS = 86_400.0
"""A crawl that was due this much later than now was due by a wrong clock. Less may be the change of
an hour, whose runs begin once."""
RETRY_SECS, MAX_RETRY_SECS = 60.0, 3_600.0
"""Waits before a crawl that was killed is continued: doubled each time, up to the second."""
_RETRIED = ("killed", "temporary failure")
"""Outcomes after which a crawl is continued automatically."""
_UNENDED = "has not ended yet"
"""Says a crawl whose last revisit was broken off (preflight.py): it goes on without refresh."""
_DAYS = 100
"""Openings of a window that are looked at for the next run."""
_ENOUGH = 1.1
"""Paused crawls continue once 1.1 times the limit of the disk is free."""

Act = Callable[[Path, str], Awaitable[None]]
"""Sends `pause` or `resume` to the crawl of a directory. Raises LarmspiderError."""


async def _no_act(_: Path, __: str) -> None:
    """Does nothing, for tests without crawls."""


class Manager:
    def __init__(
        self,
        home: Home,
        settings: ServerSettings,
        launcher: Starts,
        *,
        clock: Callable[[], float] = time.time,
        act: Act = _no_act,
        free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
        judge: Callable[[Path, Path, Run, int], tuple[str, str]] = judge,
        waits: Callable[[Path], bool] | None = None,
    ) -> None:
        """``waits`` returns whether pushed documents wait in the directory of a collection."""
        self.home, self.settings = home, settings
        self._launcher, self._clock, self._act, self._free = launcher, clock, act, free
        self._judge, self._waits = judge, waits or PushWatch().waits
        self._running: dict[str, Running] = {}
        self._states: dict[str, CrawlRuns] = {}
        self._timetables: dict[tuple[str, str], Timetable] = {}
        self._next: dict[str, tuple[object, tuple[float | None, float | None]]] = {}
        self._entries: dict[str, CrawlEntry] = {}
        self.facts: dict[str, tuple[object, tuple[RunState, Totals]]] = {}
        """State and counts of the crawls' directories, as pages have read them (api.py)."""
        self._gaps, self._crawls = Gaps(home.path), dict[str, Crawl]()
        self.disk_full = ""
        """Why crawls are paused and none begins; "" if they are not."""

    # For pages and the API

    def entries(self) -> dict[str, CrawlEntry]:
        """All crawls by name. A crawl that runs without its file is listed, to be stopped."""
        found = self.home.crawls()
        for name in list(self._running):
            if name not in found:
                path = self.home.file_of(name)
                problem = f"{path}: the file is gone, and its crawl still runs: stop it"
                found[name] = CrawlEntry(name, path, None, problem)
        self._entries = found
        return found

    def entry(self, name: str) -> CrawlEntry:
        """Raises ConfigError."""
        found = self.entries().get(name)
        if found is None:
            raise ConfigError(f"there is no crawl {name[:64]!r}")
        return found

    def state_of(self, name: str) -> CrawlRuns:
        """The state of a crawl. Threads may call it; the first thread that reads a state makes its
        object."""
        found = self._states.get(name)
        if found is None:
            found = self._states.setdefault(name, read_runs(self.home.runs_of(name)))
        return found

    def directory_of(self, entry: CrawlEntry) -> Path:
        return self.home.directory_of(entry.name, entry.crawl)

    @property
    def running(self) -> list[str]:
        return list(self._running)

    @property
    def queue(self) -> list[str]:
        """Crawls that wait for a turn, the next one first."""
        waiting = [name for name in self._entries if self.state_of(name).queued]
        return sorted(waiting, key=lambda name: (self.state_of(name).queued_at, name))

    def next_run(self, entry: CrawlEntry) -> float | None:
        """When the schedule begins the next run; None without one. A time outside of the window
        waits for the window, or is skipped."""
        return None if entry.crawl is None else self._times(entry)[1]

    def _times(self, entry: CrawlEntry) -> tuple[float | None, float | None]:
        """The next time of the schedule, and when the run begins."""
        assert entry.crawl is not None
        timetable, done_until = self._timetable(entry), self.state_of(entry.name).done_until
        key = timetable, done_until, entry.crawl.schedule
        kept = self._next.get(entry.name)
        if kept is None or kept[0] != key:
            due = timetable.after(_utc(done_until))
            begins = None if due is None else _begins(timetable, entry.crawl.schedule, due)
            kept = self._next[entry.name] = key, (_epoch(due), _epoch(begins))
        return kept[1]

    def why_waiting(self, entry: CrawlEntry) -> str:
        """The reason why a crawl in the queue does not run yet, a sentence."""
        if self.disk_full:
            return "It waits for room on the disk."
        if entry.crawl is not None and not self._is_open(entry, self._clock()):
            return "It waits for its hours of the day."
        return "It waits for its turn."

    # Acts of an operator

    def start(self, name: str, who: str, refresh: str = "", why: str = "operator") -> str:
        """Queue a run. Raises ConfigError for a crawl that cannot run, or waits already."""
        entry, state = self.entry(name), self.state_of(name)
        if entry.crawl is None:
            raise ConfigError(entry.problem)
        if name in self._running and not refresh:
            raise ConfigError(f"{name} runs already")
        if state.queued:
            raise ConfigError(f"{name} waits for its turn already")
        if refresh and not state.complete and name not in self._running:
            raise ConfigError(f"{name} has not finished yet, so nothing can be visited again")
        state.held, state.failures, state.retry_at = False, 0, 0.0
        self._queue(name, why, who, refresh)
        if name in self._running:
            if self._timetable(entry).watch:
                self._running[name].signal(STOP)
            return f"{name} begins the visit when its present run has ended"
        if not self._is_open(entry, self._clock()):
            return f"{name} waits for its window"
        waits = self._crawling >= self.settings.at_once and not self._is_push(name)
        return f"{name} waits for its turn" if waits or self.disk_full else f"{name} starts"

    def stop(self, name: str) -> str:
        """Stop a run, or take a crawl out of the queue. Raises ConfigError if there is neither."""
        self.entry(name)
        state = self.state_of(name)
        if name not in self._running and not state.queued:
            raise ConfigError(f"{name} does not run, and does not wait")
        waited, state.queued, state.held = bool(state.queued), "", True
        self._save(name)
        if name not in self._running:
            return f"{name} no longer waits" if waited else ""
        self._running[name].signal(STOP)
        return f"{name} stops; its next start continues from there"

    async def tell(self, directory: Path, act: str) -> None:
        """Send `pause` or `resume` to the crawl of a directory. Raises LarmspiderError."""
        await self._act(directory, act)

    def forget(self, name: str) -> None:
        """Drop the state of a crawl that was deleted."""
        self._states.pop(name, None)
        self.facts.pop(name, None)

    # The passing of time

    def adopt(self) -> list[str]:
        """Find the crawls that still run, and say how the others ended meanwhile."""
        found = []
        for name in sorted({*self.entries(), *self.home.names_of_runs()}):
            state = self.state_of(name)
            run = state.run
            running = self._launcher.adopt(name, run.pid if run else 0, run.born if run else 0)
            if running is None:
                continue
            if run is None:
                state.last += 1
                run = state.run = Run(number=state.last, began=self._clock(), why="unknown")
            run.pid, run.born = running.pid, running.born
            self._running[name] = running
            self._save(name)
            found.append(name)
        for name in self.entries():
            state = self.state_of(name)
            if state.run is not None and name not in self._running:
                self._ended(name, UNKNOWN)
        return found

    async def tick(self) -> None:
        """Look at the time, the processes and the disk, and act."""
        now, entries = self._clock(), self.entries()
        for name, running in list(self._running.items()):
            if (status := running.status()) is not None:
                del self._running[name]
                self._ended(name, status)
        await self._look_at_disk()
        await self._share_gaps(entries)
        for entry in entries.values():
            if entry.crawl is not None:
                self._look_at_time(entry, now)
        if not self.disk_full:
            self._start_queued(now)

    async def _share_gaps(self, entries: Mapping[str, CrawlEntry]) -> None:
        """Write the hosts that crawls share, if a crawl file has changed."""
        crawls = {name: one.crawl for name, one in entries.items() if one.crawl is not None}
        if crawls == self._crawls:
            return
        try:
            await asyncio.to_thread(self._gaps.write, crawls)
            self._crawls = crawls
        except OSError as error:
            if not self.disk_full:
                logger.error("Gaps are not shared: %s", error)

    def _look_at_time(self, entry: CrawlEntry, now: float) -> None:
        name, state, timetable = entry.name, self.state_of(entry.name), self._timetable(entry)
        assert entry.crawl is not None
        text = f"{entry.crawl.schedule.run}|{timetable.zone.key}"
        # a schedule that is new is due from now on, and one from before the clock was set back
        if state.schedule != text or state.done_until > now + CLOCK_SECS:
            state.schedule, state.done_until = text, now
            self._save(name)
        busy = name in self._running or bool(state.queued)
        due, skips = self._times(entry)[0], entry.crawl.schedule.missed == "skip"
        if not self._is_open(entry, now):
            if skips and due is not None and due <= now:
                state.done_until = now
                self._save(name)
            if name in self._running and state.run is not None and not state.queued:
                self._queue(name, "window", "schedule", state.run.refresh)
                self._running[name].signal(STOP)
            return
        if due is not None and due <= now:
            state.done_until = now
            missed = now - due > GRACE_SECS
            if not busy and not (missed and skips):
                self._queue(name, "missed" if missed else "schedule", "schedule", self._mode(entry))
            else:
                self._save(name)
        elif not busy and not state.held and not now < state.retry_at <= now + MAX_RETRY_SECS:
            if entry.crawl.kind == "push":
                if self._waits(self.directory_of(entry)):
                    self._queue(name, "push", "server", "")
            elif timetable.watch:
                self._queue(name, "watch", "schedule", "watch" if state.complete else "")
            elif state.retry_at:
                self._queue(
                    name, "continue", "server", state.runs[-1].refresh if state.runs else ""
                )

    def _mode(self, entry: CrawlEntry) -> str:
        """The refresh of a scheduled run."""
        assert entry.crawl is not None
        return entry.crawl.refresh.mode if self.state_of(entry.name).complete else ""

    def _is_open(self, entry: CrawlEntry, now: float) -> bool:
        assert entry.crawl is not None
        window = entry.crawl.schedule.window
        hours = (window[0], window[1]) if window else None
        return in_window(hours, _utc(now), self._timetable(entry).zone)

    def _start_queued(self, now: float) -> None:
        """Collections with pushed documents need no turn: their senders do not wait for crawls."""
        for name in self.queue:
            entry, is_push = self._entries[name], self._is_push(name)
            if not is_push and self._crawling >= self.settings.at_once:
                continue
            if name in self._running or entry.crawl is None or not self._is_open(entry, now):
                continue
            self._begin(name, now)

    @property
    def _crawling(self) -> int:
        """Crawls that run and count for ``parallel``."""
        return sum(1 for name in self._running if not self._is_push(name))

    def _is_push(self, name: str) -> bool:
        entry = self._entries.get(name)
        return entry is not None and entry.crawl is not None and entry.crawl.kind == "push"

    def _begin(self, name: str, now: float) -> None:
        state = self.state_of(name)
        refresh = state.queued_refresh if state.complete else ""
        state.last += 1
        state.run = Run(
            number=state.last, began=now, why=state.queued, who=state.queued_by, refresh=refresh
        )
        state.queued, state.retry_at = "", 0.0
        try:
            self._save(name)
            running = self._launcher.start(name, state.last, refresh)
        except CrawlBusyError:
            # of a server that was killed, before it had noted the process
            found = self._launcher.adopt(name, 0, 0)
            if found is None:
                state.run, state.retry_at = None, now + RETRY_SECS
                return
            running = found
        except ConfigError as error:
            self._end_run(name, None, "refused", str(error))
            return
        self._running[name] = running
        state.run.pid, state.run.born = running.pid, running.born
        self._save(name)

    def _ended(self, name: str, status: int) -> None:
        entry = self._entries.get(name)
        directory = self.home.directory_of(name, entry.crawl if entry else None)
        run = self.state_of(name).run
        if run is not None:
            folder = self.home.runs_of(name)
            if entry is not None and entry.crawl is not None and entry.crawl.run.nodes:
                outcome, said = judge_jobs(folder, run.number, status)
            else:
                outcome, said = self._judge(folder, directory, run, status)
            self._end_run(name, None if status == UNKNOWN else status, outcome, said)

    def _end_run(self, name: str, status: int | None, outcome: str, said: str) -> None:
        state, now = self.state_of(name), self._clock()
        if state.run is None:
            return
        run, state.run = state.run, None
        run.ended, run.status, run.outcome, run.said = now, status, outcome, said
        state.runs.append(run)
        trim(self.home.runs_of(name), state, self.settings.kept_runs)
        state.paused_for_disk = False
        entry = self._entries.get(name)
        watches = entry is not None and entry.crawl is not None and self._timetable(entry).watch
        watches = watches or self._is_push(name)
        state.complete = state.complete or outcome == FINISHED
        if outcome == NOT_BEGUN or (outcome == "refused" and run.refresh and _UNENDED in said):
            state.complete = outcome == NOT_BEGUN and state.complete
            self._queue(name, run.why, run.who, run.refresh)
        failed = outcome in _RETRIED or (watches and outcome in ("failed", "refused", "unknown"))
        # by a signal of neither operator nor window, such as of the machine that shuts down
        failed = failed or (outcome == STOPPED and not state.queued)
        if failed and not state.held:
            wait = min(MAX_RETRY_SECS, RETRY_SECS * 2.0**state.failures)
            state.failures, state.retry_at = min(state.failures + 1, 10), now + wait
        elif not failed:
            state.failures, state.retry_at = 0, 0.0
        logger.info("%s: run %d ended: %s %s", name, run.number, outcome, said)
        self._save(name)

    async def _look_at_disk(self) -> None:
        limit = self.settings.min_free_bytes
        free = min(map(self._free, self._places()))
        if free < limit and not self.disk_full:
            self.disk_full = (
                f"{size(free)} of disk are free, less than min_free_bytes ({size(limit)}): crawls"
                " are paused, and none begins."
            )
            logger.warning("%s", self.disk_full)
        elif self.disk_full and free >= limit * _ENOUGH:
            self.disk_full = ""
            logger.info("Enough disk is free again: crawls continue")
        for name in self._running:
            state = self.state_of(name)
            if bool(self.disk_full) == state.paused_for_disk:
                continue
            entry = self._entries.get(name)
            directory = self.home.directory_of(name, entry.crawl if entry else None)
            if self.disk_full and Totals.of_crawl(directory).paused:
                continue  # by an operator: room on the disk is no reason to resume it
            try:
                await self._act(directory, "pause" if self.disk_full else "resume")
            except LarmspiderError as error:
                logger.warning("%s: %s", name, error)  # tried again at the next tick
                continue
            state.paused_for_disk = bool(self.disk_full)
            self._save(name)

    def _places(self) -> set[Path]:
        """Folders on the file systems that crawls fill."""
        own = {self.directory_of(entry) for entry in self._entries.values() if entry.crawl}
        return {self.home.path, *(path for path in own if path.is_dir())}

    def _queue(self, name: str, why: str, who: str, refresh: str) -> None:
        state = self.state_of(name)
        state.queued, state.queued_at, state.queued_by = why, self._clock(), who
        state.queued_refresh = refresh
        self._save(name)

    def _save(self, name: str) -> None:
        state = self.state_of(name)
        try:
            write_runs(self.home.runs_of(name), state)
        except ConfigError as error:
            if not self.disk_full:
                logger.error("%s", error)

    def _timetable(self, entry: CrawlEntry) -> Timetable:
        assert entry.crawl is not None
        schedule = entry.crawl.schedule
        key = schedule.run, schedule.time_zone or self.settings.time_zone
        if key not in self._timetables:
            self._timetables[key] = Timetable.parse(*key)
        return self._timetables[key]

    def trim_logs(self) -> None:
        """Cut the logs of crawls that run, and forget the gaps of idle hosts."""
        self._gaps.clean()
        for name in self._running:
            if (run := self.state_of(name).run) is not None:
                cut_log(log_of(self.home.runs_of(name), run.number), self.settings.log_bytes)


def _begins(timetable: Timetable, schedule: Schedule, due: datetime) -> datetime | None:
    """When the run begins that is ``due``, or the next one if times outside the window are
    skipped."""
    time: datetime | None = due
    for _ in range(_DAYS):
        if time is None:
            break
        opens = opening(schedule.window, time, timetable.zone)
        if opens == time or schedule.missed == "run":
            return opens
        time = timetable.after(opens - timedelta(seconds=1))
    return None


def _epoch(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def _utc(epoch: float) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)
