r"""Lines of a log against the columns that it has, the types of their fields, and its checksums.

A *hole* is a line that a repair has overwritten in place, so that all other lines keep their
places. It consists of tabs, or of spaces if the line is so short that tabs would be a record. A
frame of a compressed log that cannot be read is a hole, too (frames.LOST).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from larmspider.checksums import Stretch, crc_of, read_sums, sums_path
from larmspider.crawl.verify.findings import Findings, Say, joined
from larmspider.formatting import counted
from larmspider.workdir.frames import (
    LOST,
    damages,
    forget,
    frames_of,
    open_stored,
    present,
    stored_size,
)

WINDOW = 4 << 20
_TEXT = rb"[^\x00-\x1f\x7f]*+"
_SOME = rb"[^\x00-\x1f\x7f]++"
_WHEN = rb"\d{4}-\d\d-\d\dT[\d:.]++Z"
_NUMBER = rb"\d++"
_SIGNED = rb"-?\d++"


def _lines(*fields: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?:" + rb"\t".join(fields) + rb"\n)*+")


STORE_LOG = _lines(
    _TEXT, _SOME, _TEXT, _NUMBER, _NUMBER, _TEXT, _NUMBER, _TEXT, _SIGNED, _NUMBER
)  # fmt: skip
FORMS: dict[str, re.Pattern[bytes]] = {
    "store.log": STORE_LOG,
    "links.log": _lines(_SOME, _TEXT, _TEXT, rb"\d*+", _TEXT),
    "fetch.log": _lines(_WHEN, _SOME, _TEXT, _TEXT, _SOME, _NUMBER, rb"\d*+", _TEXT),
    "deleted.log": _lines(_WHEN, _SOME, _TEXT, _TEXT),
    "Monitor.log": re.compile(
        rb"(?:(?:time(?:\t[a-z/-]++){10}|" + _WHEN + rb"\t\d++\t[\d.]++(?:\t\d++){8})\n)*+"
    ),
}
_FILTER_LOG = _lines(_SOME, _SOME, _TEXT)


def form_of(name: str) -> re.Pattern[bytes] | None:
    """The format of the lines of a log; None for a log of another program."""
    return FORMS.get(name) or (_FILTER_LOG if name.endswith("Filter.log") else None)


class Scan(NamedTuple):
    """``bad``: where lines are damaged; ``doubtful``: stretches whose checksum does not fit, though
    their lines may be well-formed. ``size``: the size of the log in bytes."""

    bad: list[tuple[int, int]]
    doubtful: list[tuple[int, int]]
    size: int


def scan(path: Path, end: int, form: re.Pattern[bytes], say: Say, start: int = 0) -> Scan:
    """Look at a log from ``start``, where a line begins, to ``end``, which was committed. Raises
    OSError."""
    there = present(path)
    forget(there)
    known = set(damages)
    size = stored_size(path, missing=0)
    bad = list(_bad_lines(path, start, min(end, size), form, say))
    for place in set(damages) - known:
        if place[0] == there:
            del damages[place]  # it is among the findings
            bad.append(frames_of(there).span_at(place[1]))
    doubtful = []
    if there == path:
        doubtful = [
            (one.start, one.end)
            for one in read_sums(path)[0]
            if start < one.end <= end and not _fits(path, one, size)
        ]
    return Scan(joined(bad), joined(doubtful), size)


def _fits(path: Path, one: Stretch, size: int) -> bool:
    return one.end <= size and crc_of(path, one.start, one.end) == one.crc


def _bad_lines(
    path: Path, start: int, end: int, form: re.Pattern[bytes], say: Say
) -> Iterator[tuple[int, int]]:
    if not present(path).exists():
        return
    whole_end, window = end, WINDOW
    with open_stored(path, buffered=False, skip=True) as file:
        while start < end:
            say(path.name, start, whole_end)
            file.seek(start)
            data = file.read(min(window, end - start))
            whole = data.rfind(b"\n") + 1
            if not whole:
                if len(data) == window:
                    window *= 2
                    continue
                if LOST not in data:
                    yield start, start + len(data)
                return
            window = WINDOW
            chunk = data if whole == len(data) else data[:whole]
            if not _is_good(chunk, form):
                for text in chunk.split(b"\n")[:-1]:
                    line = text + b"\n"
                    if not (_is_good(line, form) or is_hole(line)):
                        yield start, start + len(line)
                    start += len(line)
            else:
                start += whole


def _is_good(lines: bytes, form: re.Pattern[bytes]) -> bool:
    if form.fullmatch(lines) is None:
        return False
    try:
        lines.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_hole(line: bytes) -> bool:
    return LOST in line or not line.strip(b" \n")


def hole(size: int) -> bytes:
    """A line of ``size`` bytes that is not a record."""
    return (b"\t" if size > len(LOST) else b" ") * (size - 1) + b"\n"


def lines_in(path: Path, spans: list[tuple[int, int]], end: int) -> Iterator[tuple[int, bytes]]:
    """Offset and content of the lines that touch one of the spans, without holes."""
    if not present(path).exists():
        return
    with open_stored(path, skip=True) as file:
        for start, stop in spans:
            file.seek(_line_start(file, start))
            at = file.tell()
            while at < min(stop, end) and (line := file.readline()):
                if not is_hole(line):
                    yield at, line
                at += len(line)


def _line_start(file: object, at: int) -> int:
    """Where the line begins that has this byte."""
    piece = 1 << 16
    while at > 0:
        start = max(0, at - piece)
        file.seek(start)  # type: ignore[attr-defined]
        before: bytes = file.read(at - start)  # type: ignore[attr-defined]
        found = before.rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


def fields_around(
    path: Path, span: tuple[int, int], end: int, field: int
) -> tuple[str | None, str | None]:
    """The values of a field in the last whole line before a span, and in the first whole line
    after it; None if there is no such line."""
    before = after = None
    if present(path).exists():
        with open_stored(path, skip=True) as file:
            at = _line_start(file, span[0])
            while at > 0 and before is None:
                begin = _line_start(file, at - 1)
                file.seek(begin)
                before, at = _field(file.read(at - begin), field), begin
            file.seek(span[1])
            at = span[1]
            while at < end and after is None and (line := file.readline()):
                after, at = _field(line, field), at + len(line)
    return before, after


def _field(line: bytes, field: int) -> str | None:
    fields = line.rstrip(b"\n").split(b"\t")
    usable = not is_hole(line) and len(fields) > field and fields[field]
    return fields[field].decode("utf-8", "replace") if usable else None


def check_log(found: Findings, path: Path, end: int, say: Say) -> Scan:
    """Report the faults of one log. Raises OSError."""
    form = form_of(path.name)
    assert form is not None
    there = present(path)
    result = scan(path, end, form, say)
    _, bad_sums = read_sums(path) if there == path else ([], [])
    for number in bad_sums:
        found.add(sums_path(path), f"line {number} is damaged")
    if result.size < end:
        lacks = f"ends at {result.size:,}, {end:,} bytes were committed"
        found.add(there, lacks if there.exists() else f"is gone, {end:,} bytes were committed")
        found.short[there] = end
    for start, _ in result.bad:
        found.add(there, f"a line is not a record of {path.name}", start)
    for start, stop in result.doubtful:
        if not any(start < bad_stop and bad_start < stop for bad_start, bad_stop in result.bad):
            what = f"{counted(stop - start, 'byte')} do not match their checksum"
            found.add(there, what, start)
    if result.bad:
        found.add_holes(there, result.bad)
    if bad_sums or result.bad or result.doubtful or result.size < end:
        found.unsummed.append(path)
    return result
