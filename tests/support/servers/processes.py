"""Shared by servers that are processes: a free port, a wait for the start, and an end by their
pid.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECS, STOP_SECS = 60.0, 10.0
_HIGHEST = 55_535
"""The largest port that is given: the bus of a Redis cluster listens 10,000 higher."""


def free_port(*addresses: str) -> int:
    """A port that is free on all of these addresses now; another process may still take it first.
    Raises RuntimeError."""
    for _ in range(1000):
        port = _port_of(addresses)
        if 0 < port <= _HIGHEST:
            return port
    raise RuntimeError(f"no port is free on {', '.join(addresses)}")


def _port_of(addresses: Iterable[str]) -> int:
    held: list[socket.socket] = []
    port = 0
    try:
        for address in addresses:
            held.append(socket.socket())
            held[-1].bind((address, port))
            port = held[-1].getsockname()[1]
    except OSError:
        return 0
    finally:
        for one in held:
            one.close()
    return port


def listens(address: str, port: int) -> bool:
    """Whether a server accepts connections there."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_for(
    child: subprocess.Popen[bytes],
    log: Path,
    up: Callable[[], bool],
    secs: float = START_SECS,
    every: float = 0.01,
) -> None:
    """Look once in ``every`` seconds until it is up. Raises RuntimeError, with what it has written
    to ``log``, where it ends or is not up after ``secs``."""
    last = time.monotonic() + secs
    while not up():
        if child.poll() is not None or time.monotonic() > last:
            said = log.read_text("utf-8", "replace").strip()
            raise RuntimeError(f"{Path(str(child.args[0])).name} did not start: {said[-2000:]}")
        time.sleep(every)


def end(
    child: subprocess.Popen[bytes],
    how: signal.Signals = signal.SIGTERM,
    secs: float | None = None,
) -> None:
    """Tell a process to end. After ``secs`` (STOP_SECS) it gets SIGKILL, and so does what it leaves
    behind of the group that it leads. One that is stopped (SIGSTOP) goes on for it."""
    child.send_signal(signal.SIGCONT)
    child.send_signal(how)
    with suppress(subprocess.TimeoutExpired):
        child.wait(STOP_SECS if secs is None else secs)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()


# Servers in a process of their own, which prints its port when it listens.


PROJECT = Path(__file__).parents[3]
_STOP_SECS = 30.0


class OwnProcess:
    """``python -m module arguments``, from the start of its context to its end or ``stop``."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=PROJECT, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()  # it ends, with an empty line, if the process does
        if not line:
            raise RuntimeError(f"the hosts did not start: status {self._process.wait()}")
        self.port = int(line)
        return self

    def terminate(self) -> None:
        """SIGTERM; returns when it has ended."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_STOP_SECS)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
