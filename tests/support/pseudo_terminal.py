"""A command on a terminal of its own, which pyte draws: what a person would see.

with PseudoTerminal(["scrapy", ...], cwd=folder, columns=80) as terminal:
    terminal.until(lambda: "pages/s" in terminal.text)
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

WAIT_SECS = 60.0


class PseudoTerminal:
    """``raw`` is all that was written; ``text`` what is on the screen, ``all`` with what went off
    it above."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        columns: int = 100,
        lines: int = 30,
    ) -> None:
        self.raw = b""
        self.screen = pyte.HistoryScreen(columns, lines, history=5_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        self._set_size(columns, lines)
        self._process = subprocess.Popen(
            command, cwd=cwd, env={**os.environ, **env}, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def all(self) -> str:
        above = [
            "".join(line[x].data for x in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return "\n".join([*above, self.text])

    def until(self, true: Callable[[], object], seconds: float = WAIT_SECS) -> None:
        """Read on until it is true."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, self.text
            self._read(0.1)

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        self._set_size(columns, lines)

    def wait(self, seconds: float = WAIT_SECS) -> int:
        """Read to the end; the exit status."""
        self.until(lambda: self._process.poll() is not None, seconds)
        while self._read(0.0):
            pass
        return self._process.returncode

    def stop(self) -> None:
        """SIGTERM."""
        self._process.terminate()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            time.sleep(seconds)
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
