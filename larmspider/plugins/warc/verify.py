"""Checks a crawl's WARC files."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from larmspider.crawl.verify.findings import Findings, Say
from larmspider.formatting import counted
from larmspider.frontier.storage.records import url_key
from larmspider.plugins.warc.pipeline import FOLDER as WARC
from larmspider.plugins.warc.pipeline import LEAST_FILLED, cdxj_of, lost_warc_files, warc_files

_PIECE = 1 << 20


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
        urls = _urls_of(found, cdxj_of(path)) if cdxj_of(path).exists() else {}
        _add_lost_end(found, path, (0, length), "is gone", urls)
    for path in lost.values():
        found.add(path, "is gone", mend=f"{_WARC_MEND}, or remove its .cdxj")
    for one, path in there.items():
        size = path.stat().st_size
        urls = _urls_of(found, cdxj_of(path))
        end = min(size, length) if one == number else size
        bad = list(_bad_members(path, end, urls, say))
        if one == number and size < length:
            is_cut = bool(bad) and bad[-1][1].endswith(_NOT_WHOLE)
            whole = bad.pop()[0] if is_cut else size
            if length - whole < LEAST_FILLED:
                whole = max((at for at in urls if at <= length - LEAST_FILLED), default=0)
            what = f"ends at {size:,}, {length:,} were committed"
            _add_lost_end(found, path, (whole, length), what, urls)
        for at, what in bad:
            url = urls.get(at, "")
            found.add(path, what, at, url, mend=_WARC_RECORD_MEND if url else _WARC_MEND)
            if url:
                found.due[url_key(url)] = url
                found.warc_lost.setdefault(path, set()).add(at)


def _add_lost_end(
    found: Findings, path: Path, span: tuple[int, int], what: str, urls: Mapping[int, str]
) -> None:
    """The records of ``span`` are gone, and their pages are due."""
    lost = {at: url for at, url in urls.items() if at >= span[0]}
    pages = f": {counted(len(lost), 'page')} of it lost" if lost else ""
    how = "--repair makes them due" if lost else "--repair begins another one"
    found.add(path, f"{what}{pages}. {_WARC_MEND.capitalize()}; else {how}")
    found.due.update((url_key(url), url) for url in lost.values())
    found.warc_lost[path], found.warc_short[path] = set(lost), span


_NOT_WHOLE = "are no whole record"
_WARC_MEND = "copy the file back from where you keep it"
_WARC_RECORD_MEND = f"{_WARC_MEND}. Else its page, which is due, goes to another record"
_GZIP = b"\x1f\x8b\x08"


def _urls_of(found: Findings, path: Path) -> dict[int, str]:
    urls: dict[int, str] = {}
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError:
        found.add(path, "is gone", mend="a tool that indexes WARC files restores it")
        return urls
    for number, line in enumerate(lines, 1):
        try:
            fields = json.loads(line.decode().split(" ", 2)[2])
            urls[int(fields["offset"])] = str(fields["url"])
        except (ValueError, KeyError, IndexError, TypeError):
            if line.endswith(b"\n"):
                mend = "a tool that indexes WARC files restores it"
                found.add(path, f"line {number} is no record", mend=mend)
    return urls


def _bad_members(
    path: Path, end: int, starts: Iterable[int], say: Say
) -> Iterator[tuple[int, str]]:
    """The beginning and the fault of each damaged member of a WARC file. ``starts``: known
    beginnings of members."""
    known = sorted(starts)
    with path.open("rb") as file:
        at = 0
        while at < end:
            say(path.name, at, end)
            size, what = _member(file, at)
            if what:
                yield at, what
                after = bisect_right(known, at)
                at = _next_member(file, at + 1, min([*known[after : after + 1], end]))
            else:
                at += size


def _member(file: IO[bytes], start: int) -> tuple[int, str]:
    """The size of a member, and its fault."""
    unpack, size = zlib.decompressobj(31), 0
    file.seek(start)
    try:
        while not unpack.eof and (piece := file.read(_PIECE)):
            unpack.decompress(piece)
            size += len(piece)
    except zlib.error as error:
        return size, f"a record cannot be read: {error}"
    if not unpack.eof:
        return size, f"{counted(size, 'byte')} {_NOT_WHOLE}"
    return size - len(unpack.unused_data), ""


def _next_member(file: IO[bytes], start: int, end: int) -> int:
    """Where the next record of WARC begins; ``end`` for nowhere."""
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
