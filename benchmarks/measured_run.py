"""Runs a program and says what it used: CPU by thread, memory, and how much of both when.

    run = measure(["scrapy", "crawl", ...], folder, seconds=600)
    run.cpu_between(began, ended)     # of the whole process, seconds
    run.main_between(began, ended)    # of its main thread alone
    run.peak_rss                      # bytes, of the largest process

Times are seconds since the epoch, as in nginx's log. CPU comes from /proc every _TICK_SECS (a clock
of 10 ms, which does not lose what lies between), and what children used from wait4() at the end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

_TICK_SECS = 0.05
_LATER_TICK_SECS = 0.5
_STOP_SECS = 20.0
_CLOCK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process had used at ``time``: CPU seconds of all threads and of the main one, and
    bytes in memory, anonymous and mapped from files."""

    time: float
    cpu: float
    main: float
    anonymous: int = 0
    mapped: int = 0


@dataclass
class Run:
    """A program that has ended. ``cpu`` counts its children too, ``killed``: it took too long."""

    status: int
    began: float
    ended: float
    cpu: float
    peak_rss: int
    killed: bool = False
    samples: list[Sample] = field(default_factory=list)

    def cpu_between(self, begin: float, end: float) -> float:
        """CPU seconds of all its threads between two times."""
        return self._at(end, "cpu") - self._at(begin, "cpu")

    def main_between(self, begin: float, end: float) -> float:
        """CPU seconds of its main thread between two times."""
        return self._at(end, "main") - self._at(begin, "main")

    def cpu_after(self, begin: float) -> float:
        """CPU seconds from a time to the end, children included."""
        return self.cpu - self._at(begin, "cpu")

    def _at(self, when: float, name: str) -> float:
        """Between two samples on a straight line."""
        at = bisect_left(self.samples, when, key=attrgetter("time"))
        if at == 0:
            return 0.0
        if at == len(self.samples):
            return float(getattr(self.samples[-1], name))
        before, after = self.samples[at - 1 : at + 1]
        part = (when - before.time) / (after.time - before.time)
        first, last = getattr(before, name), getattr(after, name)
        return float(first + (last - first) * part)


def measure(
    command: Sequence[str],
    folder: Path,
    *,
    seconds: float,
    environment: Mapping[str, str],
    watch: Callable[[int], None] = lambda _: None,
) -> Run:
    """Run it in ``folder``, what it says to ``folder``/output; interrupted after ``seconds``.

    ``watch`` is called with its process id all the time.
    """
    began, samples, killed = time.time(), [], False
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdout=output, stderr=subprocess.STDOUT
        )
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            samples.append(sample(process.pid))
            watch(process.pid)
            if time.time() > began + seconds:
                killed = True
                late = time.time() > began + seconds + _STOP_SECS
                process.send_signal(signal.SIGKILL if late else signal.SIGINT)
                time.sleep(1.0)
            # seldom in a long run: 100,000 samples an hour would do no good
            time.sleep(_TICK_SECS if len(samples) < 10_000 else _LATER_TICK_SECS)
    process.returncode = os.waitstatus_to_exitcode(status)  # it is reaped
    return Run(
        status=process.returncode,
        began=began,
        ended=time.time(),
        cpu=used.ru_utime + used.ru_stime,
        peak_rss=used.ru_maxrss * 1024,
        killed=killed,
        samples=[one for one in samples if one is not None],
    )


def sample(pid: int) -> Sample | None:
    """Of a process now; None if it has just ended."""
    process = Path("/proc", str(pid))
    try:
        cpu = _cpu(process / "stat")
        main = _cpu(process / "task" / str(pid) / "stat")
        memory = dict(
            line.split(":", 1)
            for line in (process / "status").read_text().splitlines()
            if line.startswith(("RssAnon", "RssFile"))
        )
    except (OSError, ValueError):
        return None
    anonymous, mapped = (int(memory.get(name, "0").split()[0]) for name in ("RssAnon", "RssFile"))
    return Sample(time.time(), cpu, main, anonymous * 1024, mapped * 1024)


def _cpu(path: Path) -> float:
    """utime and stime of a stat file, proc(5); the name in parentheses may hold anything."""
    fields = path.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK
