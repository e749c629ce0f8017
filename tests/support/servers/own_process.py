"""Servers in a process of their own, which prints its port when it listens.

class Hosts(OwnProcess):
    def __init__(self) -> None:
        super().__init__("tests.support.workers.hosts", "--hosts=40")

The process is another one, so that a crawler does not delay the clock by which it is judged.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

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
