"""Runs workers side by side until all have ended, with one line of progress for all.

A first SIGINT or SIGTERM is passed on as SIGTERM, and the workers stop in order; a second one ends
them at once. A SIGHUP, from a terminal that closes, counts once; later ones are ignored. If several
workers end with the same message, it is shown once.

A worker that ends with status 75 (its lease ran out while it was stopped or cut off) or by a signal
is restarted, and continues from its last checkpoint.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Self

from larmspider import program
from larmspider.formatting import printable
from larmspider.workers.outcome import Progress

TEMPORARY = 75
"""Exit status of a worker that may be started again (EX_TEMPFAIL of sysexits.h)."""
RESTARTS = 5
"""How often in a row a worker is started again; a run of GOOD_SECS ends the row."""
GOOD_SECS = 300.0
BACKOFF_SECS = 1.0
"""The pause before a restart; doubled each time in a row."""
_PR_SET_PDEATHSIG = 1
_SHOWN = (" ERROR: ", " CRITICAL: ", " WARNING: Waiting ", " WARNING: Redis ")
"""Lines of a worker's log with one of these go to the terminal too."""
_MESSAGE = f"{program.NAME} crawl: "


class WorkerProcess:
    """A worker: ``command`` as a process, with its output in ``log``."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name, self.command, self.log = name, list(command), log
        self.status: int | None = None
        """Its exit status, negative for a signal; None while it runs or waits for its start."""
        self.restarts = 0
        self.last_words = ""
        """The message with which it ended."""
        self._process: subprocess.Popen[bytes] | None = None
        self._in_a_row = 0
        self._began = 0.0
        self._due: float | None = 0.0
        self._read = 0
        self._stopping = False

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def ended(self) -> bool:
        """Whether it has ended and is not started again."""
        return self._process is None and self._due is None

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process is not None else 0

    def tend(self) -> str:
        """Start the process if it is due, or see how it ended. Returns a message, or ""."""
        now = time.monotonic()
        if self._due is not None and now >= self._due:
            self._start()
        elif self._process is not None and (status := self._process.poll()) is not None:
            return self._has_ended(status, now)
        return ""

    def _start(self) -> None:
        self._due, self.status, self._began = None, None, time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._read = log.tell()
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C of the terminal comes by way of us, once
                preexec_fn=partial(_end_with, os.getpid()) if sys.platform == "linux" else None,
            )

    def _has_ended(self, status: int, now: float) -> str:
        self._process, self.status = None, status
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        if self._stopping or (status != TEMPORARY and status >= 0):
            return ""
        if now - self._began >= GOOD_SECS:
            self._in_a_row = 0
        if self._in_a_row == RESTARTS:
            return f"it ended {how}, after {RESTARTS} restarts in a row: it is given up"
        wait = BACKOFF_SECS * 2**self._in_a_row
        self._in_a_row += 1
        self.restarts += 1
        self._due, self.status = now + wait, None
        return f"it ended {how}: started again in {wait:g} s"

    def send(self, number: signal.Signals) -> None:
        """Pass a signal on; the worker is not started again after that."""
        self._stopping = True
        self._due = None
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def news(self) -> Iterator[str]:
        """Lines of the log since the last call that the terminal shows."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._read)
                data = log.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            if line.startswith(_MESSAGE):
                self.last_words = line.removeprefix(_MESSAGE)
            elif any(word in line for word in _SHOWN):
                yield line


def _end_with(parent: int) -> None:
    """Ask the kernel to send SIGTERM to this worker if the supervisor is killed, so that it stops
    in order. Runs in the child."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # replaces the supervisor's, until exec
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it was killed before
        os.kill(os.getpid(), signal.SIGTERM)


TICK_SECS = 0.1
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ENDED_BY_US = {-signal.SIGTERM, -signal.SIGINT}
_MAX_NEWS = 20
"""Lines of a worker that are shown at a time."""


class StopSignals:
    """Counts the signals that tell the command to stop, while it is in ``with``.

        with StopSignals() as stop:
            ...                      # Redis is started, and so are workers
            for _ in range(stop.take()):
                ...                  # pass one on to each worker

    A handler that acted at once would miss the child that is just being started, which is unknown
    until its Popen returns. The handler therefore only counts; loops look at the count.
    """

    def __init__(self) -> None:
        self.count = 0
        self._taken = 0
        self._ending = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in _HEARD:
            handler = signal.getsignal(number)
            if handler is not signal.SIG_IGN:  # nohup
                self._before[number] = handler
                signal.signal(number, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def take(self) -> int:
        """How many signals have come since the last call."""
        new = self.count - self._taken
        self._taken += new
        return new

    def end_at_once(self) -> None:
        """Let signals raise SystemExit from now on, because no worker runs and no loop checks the
        count."""
        self._ending = True

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._ending:
            raise SystemExit(1)
        self.count += 1
        if number == signal.SIGHUP:  # both the system and the shell send it
            signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Supervisor:
    """``say`` shows a line on the terminal, a line of progress every ``interval`` seconds.
    ``beside`` tends the workers' helpers, and returns a message or ""; it must not wait."""

    def __init__(
        self,
        workers: Sequence[WorkerProcess],
        progress: Progress,
        interval: float,
        say: Callable[[str], object],
        stop: StopSignals,
        beside: Callable[[], str] = str,
    ) -> None:
        self.workers = list(workers)
        self._progress, self._interval, self._say = progress, interval, say
        self._stop, self._beside = stop, beside
        self._told: set[str] = set()
        self._shown = False  # some progress

    def run(self) -> None:
        """Run until the last worker has ended. No worker outlives this call."""
        try:
            self._watch()
        finally:
            for worker in self.workers:
                worker.send(signal.SIGTERM)
            while any(worker.running for worker in self.workers):
                self._tend()
                time.sleep(TICK_SECS)
            if self._shown:
                self._say(self._progress.last_line())

    def _watch(self) -> None:
        due = time.monotonic() + self._interval
        while not all(worker.ended for worker in self.workers):
            self._tend()
            if message := self._beside():
                self._say(message)
            if time.monotonic() >= due:
                due += self._interval
                if running := sum(worker.running for worker in self.workers):
                    self._say(self._progress.line(running))
                    self._shown = True
            time.sleep(TICK_SECS)

    def _tend(self) -> None:
        for worker in self.workers:
            self._pass_on()  # before each start: no worker is started only to be stopped
            was_running = worker.running
            event = worker.tend()
            shown = list(worker.news())
            for line in shown[:_MAX_NEWS]:
                self._say(f"[{worker.name}] {printable(line)}")
            if len(shown) > _MAX_NEWS:
                self._say(f"[{worker.name}] and {len(shown) - _MAX_NEWS} more in {worker.log}")
            if was_running and not worker.running and worker.last_words not in self._told:
                self._told.add(worker.last_words)
                if worker.last_words:
                    self._say(f"[{worker.name}] {printable(worker.last_words)}")
            if event:
                self._say(f"[{worker.name}] {event}")

    def _pass_on(self) -> None:
        for _ in range(self._stop.take()):
            for worker in self.workers:
                worker.send(signal.SIGTERM)

    @property
    def exit_status(self) -> int:
        """0: all workers ended well. 2: all were refused. 75: a worker was started again too often;
        the same command may start it once more. 1: a worker failed in another way."""
        statuses = {worker.status for worker in self.workers}
        if self._stop.count:
            statuses -= {None}  # never started
        if self._stop.count == 1:  # a signal ends a process that does not crawl yet
            statuses -= _ENDED_BY_US
        if statuses <= {0}:
            return 0
        if statuses <= {0, TEMPORARY}:
            return TEMPORARY
        return 2 if statuses == {2} else 1
