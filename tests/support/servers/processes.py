"""What servers that are processes have in common: a free port, a start that is waited for, and an
end by their pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

START_SECS, STOP_SECS = 20.0, 10.0
_HIGHEST = 55_535
"""Of the ports given: the bus of a Redis cluster listens 10,000 higher."""


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
    """Whether somebody accepts connections there."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_for(
    child: subprocess.Popen[bytes], log: Path, up: Callable[[], bool], secs: float = START_SECS
) -> None:
    """Look every 10 ms until it is up. Raises RuntimeError, with what it has written to ``log``,
    where it ends or is not up after ``secs``."""
    last = time.monotonic() + secs
    while not up():
        if child.poll() is not None or time.monotonic() > last:
            said = log.read_text("utf-8", "replace").strip()
            raise RuntimeError(f"{Path(str(child.args[0])).name} did not start: {said[-2000:]}")
        time.sleep(0.01)


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
