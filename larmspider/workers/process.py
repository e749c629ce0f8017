"""One worker as a process: started, started again, told to stop, and what it had to say.

A worker that ends with status 75 (its lease ran out while it was stopped or cut off) or by a signal
goes on where its last checkpoint was when it is started again.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

TEMPORARY = 75
"""Exit status of a worker that may be started again (EX_TEMPFAIL of sysexits.h)."""
RESTARTS = 5
"""How often in a row; a run of `GOOD_SECS` ends the row."""
GOOD_SECS = 300.0
BACKOFF_SECS = 1.0
"""Before it is started again; doubled each time in a row."""
_PR_SET_PDEATHSIG = 1
_SHOWN = (" ERROR: ", " CRITICAL: ", " WARNING: Waiting ", " WARNING: Redis ")
"""In lines of its log that are for the terminal too: what is wrong, why nothing happens."""
_SAID = "scrapy crawl: "


class WorkerProcess:
    """``command`` is run with all that it says going to ``log``."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name, self.command, self.log = name, list(command), log
        self.status: int | None = None
        """Of its last end, negative for a signal; None while it runs or will."""
        self.restarts = 0
        self.last_words = ""
        """Its own message, where it ended with one."""
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
        """For good."""
        return self._process is None and self._due is None

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process is not None else 0

    def tend(self) -> str:
        """Start it if it is to run; note how it ended. What is to be told, or ""."""
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
        """Pass a signal on; from then on it is not started again."""
        self._stopping = True
        self._due = None
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def news(self) -> Iterator[str]:
        """The lines of its log since the last call that matter to who watches all workers."""
        try:
            with self.log.open("rb") as log:
                log.seek(self._read)
                data = log.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            if line.startswith(_SAID):
                self.last_words = line.removeprefix(_SAID)
            elif any(word in line for word in _SHOWN):
                yield line


def _end_with(parent: int) -> None:
    """Runs in the child: who starts workers and is killed leaves none behind; each stops in order,
    as told by a signal."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it was quicker
        os.kill(os.getpid(), signal.SIGTERM)
