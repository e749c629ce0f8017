"""What groups of processes use while they run: CPU from tick to tick, memory, how each ended.

group = Group(pid)
group.tick()                     # False once it has ended, where it is our child
group.cpu_between(begin, end)    # seconds, of the process and its children
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from pathlib import Path

from benchmarks.measured_run import sample


class Group:
    """A process and its children; ``status`` is set when one that we started has ended."""

    def __init__(self, pid: int, *, ours: bool = False) -> None:
        self.pid, self.ours = pid, ours
        self.status: int | None = None
        self.peak_mb = 0.0
        """Anonymous memory of the process itself."""
        self._times: list[float] = []
        self._cpu: list[float] = []
        self._main: list[float] = []
        self.tick()

    def tick(self) -> bool:
        """Look again; whether it runs yet."""
        if self.status is not None:
            return False
        if self.ours:
            pid, status, _ = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return False
        used = [sample(pid) for pid in (self.pid, *_children(self.pid))]
        own = used[0]
        if own is not None and own.anonymous:
            self.peak_mb = max(self.peak_mb, own.anonymous / 1e6)
            self._times.append(time.time())
            self._cpu.append(sum(one.cpu for one in used if one is not None))
            self._main.append(own.main)
        return True

    def cpu_between(self, begin: float, end: float) -> float:
        """CPU seconds of all threads and children."""
        return _at(self._times, self._cpu, end) - _at(self._times, self._cpu, begin)

    def main_between(self, begin: float, end: float) -> float:
        """CPU seconds of its main thread."""
        return _at(self._times, self._main, end) - _at(self._times, self._main, begin)


def _at(times: list[float], values: list[float], when: float) -> float:
    """The value at a time, between two ticks on a straight line."""
    at = bisect_left(times, when)
    if at in (0, len(times)):
        return values[min(at, len(times) - 1)]
    part = (when - times[at - 1]) / (times[at] - times[at - 1])
    return values[at - 1] + (values[at] - values[at - 1]) * part


def _children(pid: int) -> list[int]:
    """Of all its threads."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue  # the thread has ended
    return found
