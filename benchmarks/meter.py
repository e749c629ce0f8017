"""What the benchmarks measure with: rates, CPU by step, CPU and memory of programs.

    with timer: ...                              # Timer: clock and CPU of a thread
    timer.rate(1000)                             # 1000 a clock second, and a CPU second

    steps = Steps()
    steps.wrap(PageBuilder, "fill", "links")     # the method of a class, from now on
    steps.total["links"]                         # nanoseconds; steps.calls["links"]

    run = measure(["scrapy", "crawl", ...], folder, seconds=600, environment=os.environ)
    run.cpu_between(began, ended)                # seconds, of the process and its children
    run.main_between(began, ended)               # of its main thread alone

Times are seconds since the epoch, as in nginx's log. CPU of programs comes from /proc, whose clock
ticks every 10 ms.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
_TICK_SECS = 0.05
_LATER_TICK_SECS = 0.5
_STOP_SECS = 20.0
_CLOCK = os.sysconf("SC_CLK_TCK")

# --- rates ---------------------------------------------------------------------------------------


class Rate(NamedTuple):
    """Operations a second, by the clock and by CPU time."""

    clock: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.clock:12,.0f}{self.cpu:14,.0f}"


class Timer:
    """``with timer: ...`` adds up what its blocks take, by the clock and by the thread's CPU."""

    def __init__(self) -> None:
        self.clock = self.cpu = 0.0

    def __enter__(self) -> None:
        self.clock -= time.perf_counter()
        self.cpu -= time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.cpu += time.thread_time()
        self.clock += time.perf_counter()

    def rate(self, count: int) -> Rate:
        return Rate(count / self.clock, count / self.cpu)


def median(rates: Sequence[Rate]) -> Rate:
    return Rate(*(statistics.median(column) for column in zip(*rates, strict=True)))


# --- programs ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process had used at ``time``: CPU seconds of all threads and children and of its main
    thread, and its bytes in memory, anonymous and mapped from files."""

    time: float
    cpu: float
    main: float
    anonymous: int
    mapped: int


class Process:
    """A process that is looked at while it runs. ``ours``: a child of this one, which is reaped.

    ``status`` is None while it runs; ``cpu`` and ``peak_rss`` (bytes, of the largest process) are
    known when one of ours has ended; ``killed``: it took too long.
    """

    def __init__(self, pid: int, *, ours: bool = False) -> None:
        self.pid, self.ours = pid, ours
        self.began = self.ended = time.time()
        self.status: int | None = None
        self.cpu, self.peak_rss, self.killed = 0.0, 0, False
        self.samples: list[Sample] = []
        self.tick()

    def tick(self) -> bool:
        """Look again; whether it runs yet."""
        if self.status is not None:
            return False
        if self.ours:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status, self.ended = os.waitstatus_to_exitcode(status), time.time()
                self.cpu, self.peak_rss = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
                return False
        sample = sample_of(self.pid)
        if sample is not None:
            self.samples.append(sample)
        return True

    @property
    def anonymous(self) -> int:
        """The most anonymous memory that it had, in bytes."""
        return max((sample.anonymous for sample in self.samples), default=0)

    def cpu_between(self, begin: float, end: float) -> float:
        """CPU seconds of all threads and children between two times."""
        return self._at(end, "cpu") - self._at(begin, "cpu")

    def main_between(self, begin: float, end: float) -> float:
        """CPU seconds of its main thread between two times."""
        return self._at(end, "main") - self._at(begin, "main")

    def cpu_after(self, begin: float) -> float:
        """CPU seconds from a time to its end."""
        return self.cpu - self._at(begin, "cpu")

    def _at(self, when: float, name: str) -> float:
        """Between two samples on a straight line."""
        at = bisect_left(self.samples, when, key=attrgetter("time"))
        if at == 0:
            return 0.0 if self.ours else float(getattr(self.samples[0], name))
        if at == len(self.samples):
            return float(getattr(self.samples[-1], name))
        before, after = self.samples[at - 1 : at + 1]
        part = (when - before.time) / (after.time - before.time)
        first, last = getattr(before, name), getattr(after, name)
        return float(first + (last - first) * part)


IMPOLITE = {"DOWNLOAD_DELAY": 0, "LARM_DELAY_RESPONSE_FACTOR": 0}
"""Settings for servers of our own."""


def crawl_command(settings: Mapping[str, object], *arguments: str) -> list[str]:
    """``scrapy crawl intranet`` from the seeds in the file "seeds", politeness off."""
    given = (f"-s{name}={value}" for name, value in (IMPOLITE | dict(settings)).items())
    words = [sys.executable, "-m", "scrapy", "crawl", "intranet", "-astart=@seeds"]
    return [*words, *(f"-a{argument}" for argument in arguments), *given]


def crawl_environment() -> dict[str, str]:
    own = {"PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "larmspider.settings"}
    return os.environ | own


def measure(
    command: Sequence[str],
    folder: Path,
    *,
    seconds: float,
    environment: Mapping[str, str],
    watch: Callable[[int], None] = lambda _: None,
) -> Process:
    """Run it in ``folder``, what it says to ``folder``/output; interrupted after ``seconds``.

    ``watch`` is called with its process id all the time.
    """
    # our modules are compiled once, as installed ones are
    environment = {k: v for k, v in environment.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    run = Process(process.pid, ours=True)
    while run.tick():
        watch(process.pid)
        if time.time() > run.began + seconds:
            run.killed = True
            late = time.time() > run.began + seconds + _STOP_SECS
            process.send_signal(signal.SIGKILL if late else signal.SIGINT)
            time.sleep(1.0)
        # seldom in a long run: 100,000 samples an hour would do no good
        time.sleep(_TICK_SECS if len(run.samples) < 10_000 else _LATER_TICK_SECS)
    process.returncode = run.status  # it is reaped
    return run


def sample_of(pid: int) -> Sample | None:
    """Of a process now; None if it has just ended."""
    process = Path("/proc", str(pid))
    try:
        cpu = _cpu(process / "stat", ended_children=True)
        main = _cpu(process / "task" / str(pid) / "stat")
        memory = dict(
            line.split(":", 1)
            for line in (process / "status").read_text().splitlines()
            if line.startswith(("RssAnon", "RssFile"))
        )
    except (OSError, ValueError):
        return None
    for path in process.glob("task/*/children"):
        try:
            children = path.read_text().split()
            cpu += sum(_cpu(Path("/proc", child, "stat")) for child in children)
        except (OSError, ValueError):
            continue  # it has just ended
    anonymous, mapped = (int(memory.get(name, "0").split()[0]) for name in ("RssAnon", "RssFile"))
    return Sample(time.time(), cpu, main, anonymous * 1024, mapped * 1024)


def _cpu(path: Path, *, ended_children: bool = False) -> float:
    """utime and stime of a stat file, proc(5); the name in parentheses may hold anything."""
    fields = path.read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if ended_children else 13])) / _CLOCK


# --- steps of this process -----------------------------------------------------------------------

StepName = str | Callable[..., str]
"""The step's name, or a function that makes it of the call's arguments."""
_END = object()


async def _next(generator: AsyncIterator[Any]) -> Any:
    return await anext(generator, _END)


class Steps:
    """CPU time of one thread by named step; what a step calls of another one is not its.

    ``total`` are nanoseconds by step, ``calls`` how often it ran. Functions, generators and
    coroutines can be wrapped; of the latter two each step between two waits is measured. Only the
    thread that made this object counts. A measured call costs some 1.3 us (``overhead()``); half of
    that is in the caller's figure.
    """

    def __init__(self) -> None:
        self.total: defaultdict[str, int] = defaultdict(int)
        self.calls: defaultdict[str, int] = defaultdict(int)
        self._inner = [0]  # nanoseconds of steps inside those that run now
        self._thread = threading.get_ident()

    def wrap(self, owner: Any, name: str, step: StepName) -> None:
        """Replace a class's or module's function by one that is measured."""
        function = inspect.getattr_static(owner, name)
        assert not isinstance(function, (staticmethod, classmethod, property)), name
        setattr(owner, name, self.measured(function, step))

    def measured(self, function: Callable[..., Any], step: StepName) -> Callable[..., Any]:
        """The same function, measured."""
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*arguments: Any, **named: Any) -> Iterator[Any]:
                name, generator = _name(step, arguments), function(*arguments, **named)
                while (item := self.run(name, next, generator, _END)) is not _END:
                    yield item

            return generate
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def stream(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
                name, generator = _name(step, arguments), function(*arguments, **named)
                while (item := await _Task(self, _next(generator), name)) is not _END:
                    yield item

            return stream
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def task(*arguments: Any, **named: Any) -> Any:
                return await _Task(self, function(*arguments, **named), _name(step, arguments))

            return task

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return self.run(_name(step, arguments), function, *arguments, **named)

        return call

    def run(self, step: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call the function; its time is the step's, less that of steps inside it."""
        if threading.get_ident() != self._thread:
            return function(*arguments, **named)
        inner = self._inner
        inner.append(0)
        begin = time.thread_time_ns()
        try:
            return function(*arguments, **named)
        finally:
            took = time.thread_time_ns() - begin
            self.total[step] += took - inner.pop()
            self.calls[step] += 1
            inner[-1] += took

    def overhead(self, calls: int = 20_000) -> float:
        """Nanoseconds that one measured call costs."""
        other = Steps()
        empty = other.measured(lambda: None, "empty")
        begin = time.thread_time_ns()
        for _ in range(calls):
            empty()
        return (time.thread_time_ns() - begin) / calls


def _name(step: StepName, arguments: tuple[Any, ...]) -> str:
    return step if isinstance(step, str) else step(*arguments)


class _Task:
    """A coroutine of which each step is measured."""

    def __init__(self, steps: Steps, coroutine: Any, step: str) -> None:
        self.steps, self.coroutine, self.step = steps, coroutine, step

    def __await__(self) -> Any:
        send, argument = self.coroutine.send, None
        while True:
            try:
                waits_for = self.steps.run(self.step, send, argument)
            except StopIteration as stop:
                return stop.value
            try:
                argument, send = (yield waits_for), self.coroutine.send
            except GeneratorExit:
                self.coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - the coroutine has to hear of it
                argument, send = error, self.coroutine.throw
