"""A crawl as a separate process, which outlives the server.

    launcher = Launcher(home)
    running = launcher.start("wiki", number=7, refresh="due")
    running.status()                   # None while it runs
    launcher.adopt("wiki", pid, born)  # of a server that has gone; None if nothing runs

The process holds the lock of its runs' folder: it inherits the open file. The lock is free once the
process is gone, however it and the server end, and no crawl runs twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from larmspider.errors import ConfigError, LarmspiderError
from larmspider.files import is_locked, lock, make_folder
from larmspider.server.config.crawl_schema import Crawl
from larmspider.server.home import Home

LOCK = "lock"
LOG = "log"
UNKNOWN = 1_000
"""The exit status of a process that another server has started."""


class CrawlBusyError(LarmspiderError):
    """The crawl runs already."""


class Running(Protocol):
    """A crawl that was started or adopted."""

    pid: int
    born: int

    def status(self) -> int | None:
        """The exit status, or UNKNOWN; None while it runs."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal, if the process is still the same."""
        ...


class Starts(Protocol):
    """Starts and finds the processes of crawls."""

    def start(self, name: str, number: int, refresh: str) -> Running: ...
    def adopt(self, name: str, pid: int, born: int) -> Running | None: ...


class OnNodes(Protocol):
    """Starts and finds crawls on other machines (nodes.py)."""

    def start(self, name: str, crawl: Crawl, number: int, refresh: str) -> Running: ...
    def adopt(self, name: str, crawl: Crawl, number: int) -> Running | None: ...


@dataclass(slots=True)
class _Process:
    lock: Path
    pid: int
    born: int
    child: subprocess.Popen[bytes] | None = None

    def status(self) -> int | None:
        if self.child is not None and (found := self.child.poll()) is not None:
            return found
        return None if is_locked(self.lock) else UNKNOWN

    def signal(self, number: int) -> None:
        if self.pid and born_at(self.pid) == self.born:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Launcher:
    """``settings`` go to each crawl as -s options, which override its file."""

    def __init__(
        self, home: Home, settings: Mapping[str, str] | None = None, nodes: OnNodes | None = None
    ) -> None:
        self._home, self._nodes = home, nodes
        self._settings = {"LARM_WEB": "yes", "LARM_WEB_SOCKET": "yes"} | dict(settings or {})

    def start(self, name: str, number: int, refresh: str) -> Running:
        """Raises CrawlBusyError while the crawl runs, ConfigError if it cannot be started."""
        crawl = self._on_nodes(name)
        if crawl is not None and self._nodes is not None:
            return self._nodes.start(name, crawl, number, refresh)
        folder = self._home.runs_of(name)
        try:
            make_folder(folder)
            held = lock(folder / LOCK)
        except BlockingIOError:
            raise CrawlBusyError(f"{name} runs already") from None
        except OSError as error:
            raise ConfigError(f"{error.filename or folder}: {error.strerror or error}") from None
        with held:
            try:
                with log_of(folder, number).open("ab") as log:
                    child = subprocess.Popen(  # noqa: S603 - our own command
                        self._command(name, refresh),
                        cwd=self._home.path,
                        env=_environment(),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        pass_fds=(held.fileno(),),
                        start_new_session=True,
                    )
            except OSError as error:
                raise ConfigError(f"{name} cannot be started: {error.strerror}") from None
        return _Process(folder / LOCK, child.pid, born_at(child.pid), child)

    def _command(self, name: str, refresh: str) -> list[str]:
        file, entry = self._home.file_of(name), self._home.crawls().get(name)
        workers = entry.crawl.run.workers if entry is not None and entry.crawl is not None else 1
        command = crawl_command(sys.executable, file, self._settings, workers)
        # the file may have changed: links that were rejected are judged again
        command += ["-a", "resume=anyway"]
        return [*command, "-a", f"refresh={refresh}"] if refresh else command

    def _on_nodes(self, name: str) -> Crawl | None:
        """The crawl if it runs on nodes."""
        entry = self._home.crawls().get(name)
        crawl = entry.crawl if entry is not None else None
        return crawl if crawl is not None and crawl.run.nodes else None

    def adopt(self, name: str, pid: int, born: int) -> Running | None:
        """Take over the crawl that an earlier server started; None if it does not run."""
        crawl = self._on_nodes(name)
        if crawl is not None and self._nodes is not None:
            return self._nodes.adopt(name, crawl, born)
        place = self._home.runs_of(name) / LOCK
        if not is_locked(place):
            return None
        if not pid or born_at(pid) != born:  # that server was killed before it had noted them
            pid = _pid_of(str(self._home.file_of(name)))
            born = born_at(pid)
        return _Process(place, pid, born)


def _environment() -> dict[str, str]:
    """The environment of a crawl. A Redis is shared only if the crawl file names it."""
    found = {"SCRAPY_SETTINGS_MODULE": "larmspider.settings", **os.environ}
    found.pop("REDIS_URL", None)
    return found


def crawl_command(
    python: str, file: Path, settings: Mapping[str, str], workers: int = 1
) -> list[str]:
    """The command that crawls by a file; ``settings`` win over the file."""
    # -v: the log of each run is a separate file, not crawl.log
    words = ["crawl", "intranet", "-v"] if workers == 1 else ["workers", "-n", str(workers)]
    command = [python, "-m", "scrapy", *words, "--file", str(file)]
    for setting, value in settings.items():
        command += ["-s", f"{setting}={value}"]
    return command


def log_of(folder: Path, number: int) -> Path:
    """The log of a run in the folder of its crawl."""
    return folder / f"{number}.log"


def born_at(pid: int) -> int:
    """When a process began, in ticks of the system; 0 if there is none. The system may give
    the pid to another process later."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return int(fields[19])
    except (OSError, IndexError, ValueError):
        return 0


def _pid_of(file: str) -> int:
    """The process of this user that crawls by a file. With many workers it is the process that
    starts the others. 0 if none is found."""
    found = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if b"--file" in words and os.fsencode(file) in words:
                    if b"workers" in words:
                        return int(folder.name)
                    found = found or int(folder.name)
    return found


STOP = signal.SIGTERM
