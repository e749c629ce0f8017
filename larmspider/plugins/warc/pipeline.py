"""WARC files: each page with the heads of its fetch, as archives keep them (docs/warc.md).

    ITEM_PIPELINES["larmspider.plugins.warc.pipeline.WarcPipeline"] = 250

warc/<LARM_DIR>-<time>-00000.warc.gz   at most LARM_WARC_BYTES each, as in records.py
warc/<LARM_DIR>-<time>-00000.cdxj      a line for each page of it, sorted once the file is full

Files grow by gzip members, a member a record, so that recovery cuts a file at a member's end. Each
line of CDXJ names the place of its record: lines with a place after the end are dropped.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from larmspider import options, stats
from larmspider.errors import CommittedGoneError, ConfigError
from larmspider.files import replace_file, sync_file, sync_folder
from larmspider.pipelines.page_files import WARC, bodies_in_warc
from larmspider.pipelines.records import AppendFile, truncate_file
from larmspider.pipelines.store import Store
from larmspider.plugins.warc.records import (
    Original,
    Record,
    cdxj_line,
    info_record,
    lost_record,
    page_records,
    payload_digest,
    removed_record,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

    from larmspider.items import Page, Removed

FOLDER = WARC
_NUMBER = re.compile(r"-(\d{5,})\.warc\.gz\Z")
_REMEMBERED = 32_768
"""Payloads that a later record may be a revisit of; 300 bytes each."""
_FREE_BYTES = 1 << 20
"""Free bytes that a folder must have when a crawl begins."""


class _Open(NamedTuple):
    """A WARC and its CDXJ."""

    warc: AppendFile
    cdxj: AppendFile


class WarcPipeline(Store):
    """Writes WARC/1.1 files and their CDXJ."""

    needs = ("url", "body")
    files = (FOLDER,)
    keeps_requisites = True

    def __init__(
        self, directory: Path, max_bytes: int, counters: StatsCollector, about: dict[str, str]
    ) -> None:
        """``directory`` is the crawl's; ``about`` is said in the first record of each file."""
        self.directory = directory / FOLDER
        self.name = re.sub(r"[^A-Za-z0-9_.-]+", "_", directory.name)
        self.max_bytes, self.counters, self.about = max_bytes, counters, about
        self.number = -1
        self._open: _Open | None = None
        self._full: list[_Open] = []
        """Full files that are not synced yet."""
        self._originals: dict[str, Original] = {}
        self.has_bodies = False
        """Whether readers find bodies by ``Page.stored_at`` here (LARM_BODIES)."""

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        directory = options.larm_dir(settings)
        max_bytes = options.integer(settings, "LARM_WARC_BYTES", minimum=1)
        _check_folder(directory / FOLDER)
        assert crawler.stats is not None
        robots = "obey" if options.scrapys_boolean(settings, "ROBOTSTXT_OBEY") else "ignore"
        agent = options.text(settings, "USER_AGENT")
        about = {"robots": robots, "http-header-user-agent": agent}
        store = cls(directory, max_bytes, crawler.stats, about)
        store.has_bodies = bodies_in_warc(settings)
        return store

    def open_spider(self) -> None:
        options.writable_dir(self.directory)
        there = warc_files(self.directory)
        known = (found for path in reversed(there.values()) for found in _originals(cdxj_of(path)))
        self._originals = dict(islice(known, _REMEMBERED))
        last = max(there, default=0)
        self._begin(last, there.get(last))

    def _begin(self, number: int, path: Path | None = None) -> None:
        if self._open is not None:
            for file in self._open:
                file.let_go()
            self._full.append(self._open)
        if path is None:
            stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime())
            path = self.directory / f"{self.name}-{stamp}-{number:05}.warc.gz"
        self.number = number
        self._open = _Open(AppendFile(path), AppendFile(cdxj_of(path)))
        if not self._open.warc.end:
            self._open.warc.write(info_record(path.name, **self.about).member)
        self.counters.set_value(stats.WARC_FILES, number + 1)

    def recover(self, position: bytes) -> None:
        """``position``: number and length of the WARC."""
        number, length = map(int, (position or b"0 0").split())
        there = warc_files(self.directory)
        if length and number not in there:
            raise CommittedGoneError(
                f"{self.directory}/*-{number:05}.warc.gz is gone, {length} bytes were committed"
            )
        for later, path in there.items():
            if later > number or not length:
                path.unlink()
                cdxj_of(path).unlink(missing_ok=True)
            elif later == number:
                truncate_file(path, b"%d" % length)
                _cut_cdxj(cdxj_of(path), length)

    def write(self, page: Page) -> None:
        self._put(page)
        self.counters.inc_value(stats.WARC_PAGES)

    def requisite(self, page: Page) -> None:
        self._put(page)
        self.counters.inc_value(stats.WARC_REQUISITES)

    def _put(self, page: Page) -> None:
        digest = payload_digest(page)
        original = self._originals.get(digest) if page.size else None
        records = list(page_records(page, original, digest))
        offset = self._append(records)
        if original is None:
            original = Original(records[0].url, records[0].date, self.number, offset)
            self._remember(digest, original)
        else:
            self.counters.inc_value(stats.WARC_REVISITS)
        if self.has_bodies:
            page.stored_at = -1 - original.file, original.offset

    def remove(self, removed: Removed) -> None:
        self._append([removed_record(removed)])

    def _append(self, records: list[Record]) -> int:
        """The offset of the first one."""
        first, *others = records
        size = sum(len(record.member) for record in records)
        if first.body_file is not None:
            size += first.body_file.stat().st_size
        assert self._open is not None
        if self._open.warc.end + size > self.max_bytes and self._has_pages():
            self._begin(self.number + 1)
        warc, cdxj = self._open
        at = warc.end
        for piece in first.pieces():
            warc.write(piece)
        if first.payload:
            cdxj.write(cdxj_line(first, warc.path.name, at, warc.end - at).encode())
        warc.write(b"".join(record.member for record in others))
        self.counters.inc_value(stats.WARC_BYTES, warc.end - at)
        return at

    def _has_pages(self) -> bool:
        return self._open is not None and self._open.cdxj.end > 0

    def _remember(self, digest: str, original: Original) -> None:
        if len(self._originals) >= _REMEMBERED:
            del self._originals[next(iter(self._originals))]
        self._originals[digest] = original

    def flush(self) -> bytes:
        if self._open is None:
            return b"0 0"
        for file in (file for pair in self._full for file in pair):
            file.flush()  # raises what sync() met
        self._open.cdxj.flush()
        return b"%d %d" % (self.number, self._open.warc.flush())

    async def commit(self) -> None:
        if self._open is not None:
            full = list(self._full)
            await asyncio.to_thread(_sync, full, self._open)
            self._full = [pair for pair in self._full if pair not in full]

    def close_spider(self) -> None:
        if self._open is not None:
            for pair in (*self._full, self._open):
                for file in pair:
                    file.close()
                _sort(pair.cdxj.path)


def warc_files(folder: Path) -> dict[int, Path]:
    """The WARC files by number, in order."""
    found = ((_NUMBER.search(path.name), path) for path in folder.glob("*.warc.gz"))
    return dict(sorted((int(match[1]), path) for match, path in found if match))


def lost_warc_files(folder: Path) -> dict[int, Path]:
    """The WARC files that are not there and whose CDXJ is, by number."""
    named = [path.with_suffix(".warc.gz") for path in folder.glob("*.cdxj")]
    found = [(_NUMBER.search(path.name), path) for path in named if not path.exists()]
    return {int(match[1]): path for match, path in found if match}


def fill_up(path: Path, whole: int, size: int) -> None:
    """Give a WARC file that was cut short ``size`` bytes again. ``whole`` is the end of its last
    whole record. Behind it comes a record of type warcinfo, with a long comment in its gzip header:
    the committed length stays right, and readers find the records that follow."""
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, whole)
    record = filler(path.name, size - whole)
    with path.open("ab") as file:
        # zeros in a file of hardly more than nothing
        file.writelines([bytes(size - whole)] if record is None else record)
    sync_file(path)
    sync_folder(path.parent)


def filler(name: str, size: int) -> Iterator[bytes] | None:
    """The pieces of a record of ``size`` bytes that says that others are lost; None if it is too
    long."""
    member = info_record(name, description="The records here are lost").member
    if len(member) + 1 > size:
        member = lost_record().member
    left = size - len(member) - 1
    return None if left < 0 else _padded(member, left)


def _padded(member: bytes, left: int) -> Iterator[bytes]:
    flags = member[3] | _HAS_COMMENT
    yield member[:3] + bytes((flags,)) + member[4:_GZIP_HEAD]
    for at in range(0, left, _PIECE):
        yield b" " * min(_PIECE, left - at)
    yield b"\0" + member[_GZIP_HEAD:]


LEAST_FILLED = 1_000
"""Bytes that are enough for the record of fill_up()."""
_GZIP_HEAD, _HAS_COMMENT = 10, 0x10  # RFC 1952 2.3
_PIECE = 1 << 20


def drop_records(path: Path, starts: Collection[int]) -> None:
    """Remove records that begin at ``starts`` from the CDXJ of a WARC file: they cannot be read, so
    no later page may refer to them."""
    cdxj = cdxj_of(path)
    lines = cdxj.read_bytes().splitlines(keepends=True) if cdxj.exists() else []
    kept = [line for line in lines if _offset(line) not in starts]
    if len(kept) < len(lines) or not cdxj.exists():
        replace_file(cdxj, b"".join(kept))


def _offset(line: bytes) -> int:
    """-1 for a line that names no record."""
    try:
        return int(_fields(line.decode()).get("offset", -1))
    except ValueError:
        return -1


def cdxj_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj")


def cdxj_records(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Date and fields of the lines of a CDXJ, without a torn line."""
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        if fields := _fields(line):
            moment = datetime.strptime(line.split(" ")[1], "%Y%m%d%H%M%S")
            yield f"{moment.isoformat()}Z", fields


def _originals(path: Path) -> Iterator[tuple[str, Original]]:
    """The payloads that a CDXJ names, by digest."""
    for date, fields in cdxj_records(path):
        if fields["mime"] != "warc/revisit":
            match = _NUMBER.search(fields["filename"])
            number = int(match[1]) if match else 0
            yield fields["digest"], Original(fields["url"], date, number, int(fields["offset"]))


def _fields(line: str) -> dict[str, str]:
    """The fields of a line; empty if a crash tore the line."""
    try:
        found: dict[str, str] = json.loads(line.split(" ", 2)[2])
    except (IndexError, ValueError):
        return {}
    return found


def _cut_cdxj(path: Path, length: int) -> None:
    """Drop the lines of records that are after ``length``."""
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    kept = [line for line in lines if int(_fields(line).get("offset", length)) < length]
    if len(kept) < len(lines):
        replace_file(path, "".join(kept).encode())


def _sort(path: Path) -> None:
    """Sort a CDXJ file, as its readers expect. Without room on the disk it stays unsorted."""
    with suppress(OSError):
        lines = path.read_bytes().splitlines(keepends=True)
        if lines != sorted(lines):
            replace_file(path, b"".join(sorted(lines)))


def _sync(full: list[_Open], current: _Open) -> None:
    for pair in full:
        for file in pair:
            file.sync()
        _sort(pair.cdxj.path)
    for file in current:
        file.sync()


def _check_folder(folder: Path) -> None:
    """Raise ConfigError if no WARC can be written."""
    options.check_writable(folder)
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < _FREE_BYTES:
        raise ConfigError(
            f"{folder} is full: {free:,} bytes are free, a WARC needs {_FREE_BYTES:,} to begin;"
            " make room, or take WarcPipeline out of ITEM_PIPELINES"
        )
