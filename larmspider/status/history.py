"""The curves of a crawl over all its runs, from Monitor.log.

>>> history([Path("crawl/Monitor.log")]).points[-1]
Point(time=1774958400.0, pages=14.2, bytes=581200.0, ...)

Each run writes the log's columns again and counts from 0. The counts are totals, so any two lines
of a run give the exact rate between them. Only SAMPLES lines of a long log are read, which takes
some milliseconds for any size.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

COLUMNS = 11
HEADING = b"time\t"
POINTS = 500
"""The most points of a curve."""
SAMPLES = 1_500
WHOLE_BYTES = 400_000
"""A log up to this size is read whole: half a day of lines every 5 seconds."""


LATE_SECS = 120.0
FIRST_SECS = 5.0
"""The interval before a run's first line, if its pages do not tell it: LARM_MONITOR_SECS."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of Monitor.log: ``time`` in seconds since the epoch, counts since its run began,
    ``rate`` of pages a second in the interval that it ends."""

    time: float
    pages: int
    bytes: int
    new_urls: int
    queued: int
    failures: int
    memory: int
    rate: float = 0.0
    begins: bool = False
    """Whether a run begins with this line: the heading is before it."""


@dataclass(frozen=True, slots=True)
class Point:
    """Rates a second in the interval that ends at ``time``; ``queued`` and ``memory`` then."""

    time: float
    pages: float
    bytes: float
    found: float
    queued: int
    memory: int


@dataclass(frozen=True, slots=True)
class History:
    """``pages``, ``bytes`` and ``failures``: sums over all runs. In a long log, a crash between two
    samples may hide some of them. ``late_pages`` and ``late_found``: pages and new URLs a second
    over the last LATE_SECS of the log."""

    points: list[Point] = field(default_factory=list)
    runs: int = 0
    pages: int = 0
    bytes: int = 0
    failures: int = 0
    last: Line | None = None
    late_pages: float = 0.0
    late_found: float = 0.0


def history(logs: Iterable[Path], points: int = POINTS) -> History:
    """The history of one log, or of several that follow each other."""
    lines = [line for log in logs for line in _lines(log)]
    rates: list[Point] = []
    spans: list[float] = []  # seconds that each stands for, of this run
    runs, totals = 0, [0, 0, 0]
    before: Line | None = None
    for line in lines:
        if before is None or line.begins or line.pages < before.pages or line.bytes < before.bytes:
            runs += 1
            start = line.time - _first_interval(line)
            if before is not None and start > before.time:
                rates.append(Point(start, 0.0, 0.0, 0.0, before.queued, 0))  # it did not run
            before = Line(start if before is None else max(start, before.time), 0, 0, 0, 0, 0, 0)
            spans = []
        seconds = line.time - before.time
        if seconds > 0:
            spans.append(seconds)
            rates.append(
                Point(
                    line.time,
                    (line.pages - before.pages) / seconds,
                    (line.bytes - before.bytes) / seconds,
                    max(0, line.new_urls - before.new_urls) / seconds,
                    line.queued,
                    line.memory,
                )
            )
        for at, name in enumerate(("pages", "bytes", "failures")):
            totals[at] += max(0, getattr(line, name) - getattr(before, name))
        before = line
    late = [
        (one, span)
        for one, span in zip(rates[-len(spans) :], spans, strict=False)
        if one.time > rates[-1].time - LATE_SECS
    ]
    lasted = sum(span for _, span in late) or 1.0
    return History(
        downsampled(rates, points),
        runs,
        pages=totals[0],
        bytes=totals[1],
        failures=totals[2],
        last=lines[-1] if lines else None,
        late_pages=sum(one.pages * span for one, span in late) / lasted,
        late_found=sum(one.found * span for one, span in late) / lasted,
    )


def _first_interval(line: Line) -> float:
    """Seconds before the first line of a run."""
    return line.pages / line.rate if line.pages and line.rate else FIRST_SECS


def together(found: Sequence[History], points: int = POINTS) -> History:
    """The history of workers that run side by side: their rates added, in equal steps of time."""
    some = [one for one in found if one.points]
    if len(some) < 2:
        return some[0] if some else History()
    first = min(one.points[0].time for one in some)
    step = (max(one.points[-1].time for one in some) - first) / points or 1.0
    sums = [[0.0, 0.0, 0.0] for _ in range(points)]
    for one in some:
        for before, point in pairwise([_start_of(one.points, first), *one.points]):
            at = before.time
            while at < point.time:
                number = min(points - 1, int((at - first) / step))
                end = min(point.time, first + (number + 1) * step)
                end = point.time if end <= at else end
                for column, rate in enumerate((point.pages, point.bytes, point.found)):
                    sums[number][column] += rate * (end - at) / step
                at = end
    stood = [_standing(one.points, first, step, points) for one in some]
    curve = [
        Point(
            first + (n + 1) * step,
            pages,
            size,
            new,
            queued=sum(worker[n][0] for worker in stood),
            memory=sum(worker[n][1] for worker in stood),
        )
        for n, (pages, size, new) in enumerate(sums)
    ]
    newest = max(one.points[-1].time for one in some)
    late = [one for one in some if one.points[-1].time > newest - LATE_SECS]
    return History(
        curve,
        max(one.runs for one in some),
        pages=sum(one.pages for one in some),
        bytes=sum(one.bytes for one in some),
        failures=sum(one.failures for one in some),
        last=max((one.last for one in some if one.last), key=lambda line: line.time, default=None),
        late_pages=sum(one.late_pages for one in late),
        late_found=sum(one.late_found for one in late),
    )


def _start_of(points: Sequence[Point], earliest: float) -> Point:
    """The start of the first point's interval, which is assumed to be as long as the second's."""
    length = points[1].time - points[0].time if len(points) > 1 else 1.0
    return replace(points[0], time=max(earliest, points[0].time - length))


def _standing(
    points: Sequence[Point], first: float, step: float, steps: int
) -> list[tuple[int, int]]:
    """Queued URLs and memory at the end of each step; 0 if the worker did not run."""
    found, at = [], -1
    for n in range(steps):
        end = first + (n + 1) * step
        while at + 1 < len(points) and points[at + 1].time <= end:
            at += 1
        runs = at >= 0 and points[-1].time >= end - step
        found.append((points[at].queued, points[at].memory) if runs else (0, 0))
    return found


def downsampled(found: Sequence[Point], points: int) -> list[Point]:
    """At most ``points`` points: means of neighbours, weighted by the length of their intervals."""
    if len(found) <= points:
        return list(found)
    result = []
    for at in range(points):
        some = found[at * len(found) // points : (at + 1) * len(found) // points]
        before = found[at * len(found) // points - 1].time if at else some[0].time - 1.0
        weights = [one.time - (some[n - 1].time if n else before) for n, one in enumerate(some)]
        total = sum(weights) or 1.0
        pages, size, new = (
            sum(getattr(one, name) * weight for one, weight in zip(some, weights, strict=True))
            / total
            for name in ("pages", "bytes", "found")
        )
        result.append(Point(some[-1].time, pages, size, new, some[-1].queued, some[-1].memory))
    return result


def _lines(log: Path) -> list[Line]:
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            raw = file.read().splitlines() if size <= WHOLE_BYTES else _samples(file, size)
    except OSError:
        return []
    found, begins = [], False
    for one in raw:
        if one.startswith(HEADING):
            begins = True
        elif (line := _parsed(one)) is not None:
            found.append(replace(line, begins=True) if begins else line)
            begins = False
    return found


def _samples(file: BinaryIO, size: int) -> list[bytes]:
    """Lines at equal distances, and the last lines."""
    found, last = [], -1
    for at in range(SAMPLES):
        start = max(last, at * size // SAMPLES)
        file.seek(start)
        if start != last:
            file.readline()
        if line := file.readline():
            found.append(line)
        last = file.tell()
    file.seek(max(last, size - 4_096))
    return [*found, *file.read().splitlines()[1:]]


def _parsed(line: bytes) -> Line | None:
    """The values of a line; None for a line that is damaged or still being written."""
    fields = line.decode("ascii", "replace").rstrip("\n").split("\t")
    if len(fields) != COLUMNS:
        return None
    when, pages, rate, size, _, new_urls, queued, _, _, failures, memory = fields
    try:
        at = calendar.timegm(time.strptime(when[:19], "%Y-%m-%dT%H:%M:%S")) + float(
            when[19:-1] or 0
        )
        return Line(
            at, int(pages), int(size), int(new_urls), int(queued), int(failures), int(memory),
            float(rate),
        )  # fmt: skip
    except ValueError:
        return None


def tail(path: Path, lines: int, max_bytes: int = 65_536) -> list[str]:
    """The last lines of a text file, from its last ``max_bytes``; [] where there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - max_bytes))
            found = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    whole = found[1:] if size > max_bytes else found
    return [line for line in whole if line][-lines:]
