"""Checks a crawl's WARC files: records against their own checksums, and against the CDXJ."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from larmspider.crawl.verify.findings import Findings, Say
from larmspider.formatting import counted
from larmspider.frontier.storage.records import url_key
from larmspider.plugins.warc.pipeline import FOLDER as WARC
from larmspider.plugins.warc.pipeline import LEAST_FILLED, cdxj_of, lost_warc_files, warc_files

_PIECE = 1 << 20
_HEAD_BYTES = 1 << 16
"""Bytes of a record whose fields are read."""


class Member(NamedTuple):
    """A member of a WARC file. ``fault``: why it cannot be read. ``head``: fields of the record,
    with names in lower case; ``block``: the first bytes after them."""

    at: int
    size: int
    fault: str = ""
    head: Mapping[str, str] = {}
    block: bytes = b""

    @property
    def url(self) -> str:
        return self.head.get("warc-target-uri", "")

    @property
    def payload(self) -> str:
        """The digest of a record that the CDXJ names; "" for other records."""
        named = self.head.get("warc-type") in ("response", "revisit", "resource")
        return self.head.get("warc-payload-digest", "") if named else ""


class _Line(NamedTuple):
    url: str
    digest: str


def check_warc(found: Findings, position: bytes, say: Say) -> None:
    """Each member of the WARC files has a checksum of its own (gzip)."""
    folder = found.path / WARC
    if not position:
        return
    number, length = map(int, position.split())
    there = warc_files(folder)
    lost = lost_warc_files(folder)
    if length and number not in there:
        path = lost.pop(number, folder / f"lost-{number:05}.warc.gz")
        lines = _lines_of(path)[0]
        _add_lost_end(found, path, (0, length), "is gone", lines)
    for path in lost.values():
        pages = {line.url for line in _lines_of(path)[0].values()}
        what = f"is gone: {counted(len(pages), 'page')} of it lost"
        found.add(path, f"{what}. {_WARC_MEND.capitalize()}; else --repair makes them due")
        found.due.update((url_key(url), url) for url in pages)
        found.gone.append(cdxj_of(path))
    for one, path in there.items():
        size = path.stat().st_size
        lines, faults = _lines_of(path)
        if cdxj_of(path) in found.strange:
            lines, faults = {}, ["has changed since the last run"]
        end = min(size, length) if one == number else size
        members = list(members_of(path, end, lines, say))
        if members and (other := _other_file(path, members[0])):
            what = f"is another file: {other}"
            _add_lost_end(found, path, (0, length if one == number else size), what, lines)
            continue
        bad = [member for member in members if member.fault]
        if one == number and size < length:
            is_cut = bool(bad) and bad[-1].fault.endswith(_NOT_WHOLE)
            whole = bad.pop().at if is_cut else size
            if length - whole < LEAST_FILLED:
                whole = max((at for at in lines if at <= length - LEAST_FILLED), default=0)
            what = f"ends at {size:,}, {length:,} were committed"
            _add_lost_end(found, path, (whole, length), what, lines)
        elif one != number and (lost_end := _lost_end(lines, bad, size)) is not None:
            what = f"ends at {size:,}, in a record or before one that its CDXJ names"
            _add_lost_end(found, path, (lost_end, lost_end), what, lines)
        for member in bad:
            _add_lost(found, path, member, member.fault, lines)
        _compare(found, path, members, lines, faults, found.warc_short.get(path, (end, end))[0])


def _compare(
    found: Findings,
    path: Path,
    members: Iterable[Member],
    lines: Mapping[int, _Line],
    faults: list[str],
    end: int,
) -> None:
    """The records before ``end`` against the lines of the CDXJ."""
    at_record = set()
    for member in members:
        at_record.add(member.at)
        line = lines.get(member.at)
        if member.fault or member.at >= end:
            continue
        if line is None:
            if member.payload:
                faults.append(f"has no line for the record at byte {member.at:,}")
        elif member.url and (member.url, member.payload) != (
            line.url,
            line.digest or member.payload,
        ):
            _add_lost(found, path, member, "is not the record that its CDXJ names", lines)
    faults += [
        f"names a record at byte {at:,}, where none begins"
        for at in lines
        if at < end and at not in at_record
    ]
    if faults:
        more = f" (and {counted(len(faults) - 1, 'more fault')})" if faults[1:] else ""
        found.add(cdxj_of(path), faults[0] + more)
        found.cdxj.add(path)


def _lost_end(lines: Iterable[int], bad: list[Member], size: int) -> int | None:
    """The end of the last whole record of a truncated file, whose last record is removed from
    ``bad``; None for a file that is not truncated."""
    if bad and bad[-1].fault.endswith(_NOT_WHOLE):
        return bad.pop().at
    return size if any(at >= size for at in lines) else None


def _other_file(path: Path, first: Member) -> str:
    """The name in the first record of a WARC file, if the file now has another name."""
    name = first.head.get("warc-filename", "")
    return name if name != path.name else ""


def _add_lost_end(
    found: Findings, path: Path, span: tuple[int, int], what: str, lines: Mapping[int, _Line]
) -> None:
    """The records of ``span`` are gone, and their pages are due."""
    lost = {at: line.url for at, line in lines.items() if at >= span[0]}
    pages = f": {counted(len(lost), 'page')} of it lost" if lost else ""
    how = "--repair makes them due" if lost else "--repair begins another one"
    found.add(path, f"{what}{pages}. {_WARC_MEND.capitalize()}; else {how}")
    found.due.update((url_key(url), url) for url in lost.values())
    found.warc_lost[path], found.warc_short[path] = dict.fromkeys(lost, 0), span


def _add_lost(
    found: Findings, path: Path, member: Member, what: str, lines: Mapping[int, _Line]
) -> None:
    line = lines.get(member.at)
    url = line.url if line is not None else ""
    what = f"{what}. {_WARC_MEND.capitalize()}; else --repair puts an empty record there"
    found.add(path, what, member.at, url)
    if url:
        found.due[url_key(url)] = url
    found.warc_lost.setdefault(path, {})[member.at] = member.size


_NOT_WHOLE = "are not a whole record"
_WARC_MEND = "copy the file back from where you keep it"
_GZIP = b"\x1f\x8b\x08"


def _lines_of(path: Path) -> tuple[dict[int, _Line], list[str]]:
    """The lines of a WARC file's CDXJ by the place of their record, and the CDXJ's faults."""
    lines: dict[int, _Line] = {}
    faults: list[str] = []
    try:
        read = cdxj_of(path).read_bytes().splitlines(keepends=True)
    except OSError:
        return lines, ["is gone"] if path.exists() else []
    for number, line in enumerate(read, 1):
        try:
            fields = json.loads(line.decode().split(" ", 2)[2])
            at, url = int(fields["offset"]), str(fields["url"])
            lines[at] = _Line(url, str(fields.get("digest", "")))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            if line.endswith(b"\n"):
                faults.append(f"line {number} is not a record")
    return lines, faults


def members_of(path: Path, end: int, starts: Iterable[int], say: Say) -> Iterator[Member]:
    """The members of a WARC file up to ``end``. An unreadable member ends where the next member
    begins. ``starts``: known beginnings of members."""
    known = sorted(starts)
    with path.open("rb") as file:
        at = 0
        while at < end:
            say(path.name, at, end)
            member = _member(file, at)
            if member.fault:
                after = bisect_right(known, at)
                following = _next_member(file, at + 1, min([*known[after : after + 1], end]))
                member = member._replace(size=following - at)
            yield member
            at += member.size


def _member(file: IO[bytes], start: int) -> Member:
    unpack, size, head = zlib.decompressobj(31), 0, b""
    file.seek(start)
    try:
        while not unpack.eof and (piece := file.read(_PIECE)):
            content = unpack.decompress(piece)
            head += content[: _HEAD_BYTES - len(head)]
            size += len(piece)
    except zlib.error as error:
        return Member(start, size, f"a record cannot be read: {error}")
    if not unpack.eof:
        return Member(start, size, f"{counted(size, 'byte')} {_NOT_WHOLE}")
    fields, _, block = head.partition(b"\r\n\r\n")
    pairs = (line.partition(":") for line in fields.decode("utf-8", "replace").split("\r\n")[1:])
    named = {name.lower(): value.strip() for name, _, value in pairs}
    return Member(start, size - len(unpack.unused_data), "", named, block)


def _next_member(file: IO[bytes], start: int, end: int) -> int:
    """Where the next WARC record begins; ``end`` if there is none."""
    at, before = start, b""
    while at < end:
        file.seek(at)
        piece = before + file.read(_PIECE)
        first, found = at - len(before), -1
        while (found := piece.find(_GZIP, found + 1)) >= 0:
            if first + found < end and _begins_record(file, first + found):
                return first + found
        at, before = first + len(piece), piece[-len(_GZIP) + 1 :]
        if len(piece) == len(before):
            break
    return end


def _begins_record(file: IO[bytes], at: int) -> bool:
    file.seek(at)
    try:
        return zlib.decompressobj(31).decompress(file.read(512), 5) == b"WARC/"
    except zlib.error:
        return False
