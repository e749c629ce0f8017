"""A made-up machine for the manager of crawls: its clock, its processes and its disk."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from larmspider.server.config.server_settings import ServerSettings
from larmspider.server.home import Home
from larmspider.server.runs import loop
from larmspider.server.runs.manager import Manager
from larmspider.server.runs.process import UNKNOWN, CrawlBusyError
from larmspider.server.runs.runs import Run

HOUR, DAY = 3_600.0, 86_400.0
BEGIN = datetime(2026, 3, 1, tzinfo=UTC).timestamp()


class KilledError(BaseException):
    """The server is gone."""


@dataclass
class FakeProcess:
    machine: Machine
    name: str
    pid: int
    ends: float
    born: int = 1
    code: int | None = None

    def status(self) -> int | None:
        if self.code is None and self.machine.now >= self.ends:
            self.code = 0
        return self.code

    def signal(self, number: int) -> None:
        self.code = 0


@dataclass
class Machine:
    """Time, processes and disk; it outlives its servers."""

    home: Path
    now: float = BEGIN
    secs: float = 600.0
    free: int = 10**12
    processes: dict[str, FakeProcess] = field(default_factory=dict)
    started: list[tuple[str, float, str]] = field(default_factory=list)
    acts: list[tuple[str, str]] = field(default_factory=list)
    said: str = ""
    together: int = 0
    dies: bool = False

    def manager(self, **settings: object) -> Manager:
        return Manager(
            Home.open(self.home), ServerSettings(**settings), self,  # type: ignore[arg-type]
            clock=lambda: self.now, act=self.act, free=lambda _: self.free, judge=self.judge,
        )  # fmt: skip

    async def act(self, directory: Path, what: str) -> None:
        self.acts.append((directory.name, what))

    def judge(self, folder: Path, directory: Path, run: Run, status: int) -> tuple[str, str]:
        words = {
            0: "finished",
            2: "refused",
            -9: "killed",
            UNKNOWN: "finished",
            75: "temporary failure",
        }
        name = directory.name
        if status == UNKNOWN and (name, run.began, run.refresh) not in self.started:
            return "not begun", ""
        stopped = status == 0 and self.now < self.processes[name].ends
        return "shutdown" if stopped else words[status], self.said

    def start(self, name: str, number: int, refresh: str) -> FakeProcess:
        running = self.processes.get(name)
        if running is not None and running.status() is None:
            raise CrawlBusyError(name)
        self.started.append((name, self.now, refresh))
        process = FakeProcess(self, name, 100 + len(self.started), self.now + self.secs)
        self.processes[name] = process
        self.together = max(self.together, len(self.running()))
        if self.dies:
            raise KilledError  # the server is killed before it notes the process
        return process

    def adopt(self, name: str, pid: int, born: int) -> FakeProcess | None:
        found = self.processes.get(name)
        return found if found is not None and found.status() is None else None

    def running(self) -> list[str]:
        return [name for name, one in self.processes.items() if one.status() is None]

    def run(self, manager: Manager, secs: float, step: float = 60.0) -> None:
        """Through the loop, which takes its wait from here."""
        end = self.now + secs

        async def sleep(_: float) -> None:
            self.now += step

        asyncio.run(loop.run(manager, sleep=sleep, goes_on=lambda: self.now < end))
