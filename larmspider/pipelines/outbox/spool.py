"""The spool: pages and deletes in the order of the crawl, until every receiver has taken them.

    LARM_DIR/outbox/
        000000000000000.spool     entries, one after the other; named for its first byte
        000000064003211.spool     the next segment
        committed.json            what the last checkpoint has of them: nothing after it is sent
        SqlReceiver.json          how far that receiver is (`Cursor`)
        SqlReceiver.dead.log      what it refused, and why
        fill/SqlReceiver/         another spool, of what `scrapy outbox --fill` sends
        retry/SqlReceiver/        and of what `scrapy outbox --retry-dead` sends

An entry is its length (4 bytes, little endian) and a msgpack map. The map has ``stamp`` and
``url``. A removal has ``removed`` (the reason) and ``successor``. A page has its fields, ``links``
and the body. If the page files have the body, ``at`` names its place (number, offset, size). If a
receiver is an index, ``index`` has the facts for it (facts.py).

Stamps are microseconds since the epoch and grow from entry to entry, also when the clock is set
back. The version of a URL with the larger stamp counts, and (URL, stamp) names a version for ever.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgpack

from larmspider.checksums import forget_sums
from larmspider.errors import MEND, CommittedGoneError, CrawlDirError
from larmspider.files import is_locked, make_folder, replace_file
from larmspider.items import Page, Removed
from larmspider.pipelines.page_files import BLOBS, blob_file, body_file, read_body, sync_files
from larmspider.pipelines.records import AppendFile
from larmspider.redaction import told
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from larmspider.pipelines.outbox.facts import IndexFacts

FOLDER = "outbox"
FILL, RETRY = "fill", "retry"
"""Folders with a spool for each receiver that is filled, or gets dead letters again."""
FINISH = "finish"
"""Tells a sender that no more pages come: its receiver catches up."""
SEGMENT_BYTES = 64_000_000
_SUFFIX = ".spool"
COMMITTED = "committed.json"
LOCK = "lock"
"""The lock of a folder in FILL or RETRY, held while a command sends from there."""
_RETRIED = "retried"
_LENGTH = struct.Struct("<I")
PAGE_FIELDS = (
    "normalized", "exact", "status", "mime", "charset", "title", "text", "description", "language",
    "author", "modified", "from_page", "link_type", "depth", "fetched", "latency", "digest", "etag",
    "last_modified", "noindex", "unread", "fields",
)  # fmt: skip
"""Fields of a page's entry, by their names in Page."""


class Position(NamedTuple):
    """The position after an entry: the bytes and entries before it in all segments so far,
    including deleted ones, and its stamp."""

    offset: int = 0
    number: int = 0
    stamp: int = 0

    @classmethod
    def unpack(cls, position: bytes) -> Self:
        """``position`` as of pack(); b"" is the beginning."""
        return cls(*map(int, position.split()))

    def pack(self) -> bytes:
        return b"%d %d %d" % self


class Spool:
    """Writes it, in one process."""

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.directory, self.segment_bytes = directory, segment_bytes
        self.end = Position()
        self._packer = msgpack.Packer(unicode_errors="replace")
        self._file: AppendFile | None = None
        self._start = 0
        """The position of the first byte of the file."""
        self._full: list[AppendFile] = []
        """Full segments that are not synced yet."""

    def recover(self, position: Position) -> None:
        """Drop what lies behind ``position``. Raises CommittedGoneError if that is gone."""
        found = segments(self.directory)
        for start in [start for start in found if start > position.offset]:
            found.pop(start).unlink()
        if position.offset and not found:
            raise CommittedGoneError(f"{self.directory} has no segment of the outbox any more")
        if found:
            start, path = max(found.items())
            if start + path.stat().st_size < position.offset:
                raise CommittedGoneError(
                    f"{path} ends at {start + path.stat().st_size}, {position.offset} were"
                    " committed"
                )
            with path.open("r+b") as file:
                file.truncate(position.offset - start)
        self.end = position

    def open(self) -> None:
        """Raises OSError."""
        make_folder(self.directory)
        self._open(max(segments(self.directory), default=self.end.offset))

    def _open(self, start: int) -> None:
        if self._file is not None:
            self._file.let_go()
            self._full.append(self._file)
        self._start = start
        self._file = AppendFile(self.directory / f"{start:015d}{_SUFFIX}", summed=True)

    def append(
        self,
        item: Page | Removed,
        now: float,
        *,
        body: bool,
        again: bool = False,
        facts: IndexFacts | None = None,
    ) -> None:
        """Append an entry. ``now``: seconds since the epoch. ``body``: whether a receiver wants
        bodies. ``facts``: the data for a receiver that is an index. ``again``: the entry is an old
        version that was stored at ``now``, so stamps need not grow."""
        offset, number, stamp = self.end
        micros = round(now * 1_000_000)
        stamp = stamp if again else max(micros, stamp + 1)
        entry = _entry(item, facts, body=body)
        entry["stamp"] = micros if again else stamp
        packed = self._packer.pack(entry)
        assert self._file is not None
        if self._file.end and self._file.end + len(packed) > self.segment_bytes:
            self._open(offset)
        self._file.write(_LENGTH.pack(len(packed)) + packed)
        self.end = Position(offset + _LENGTH.size + len(packed), number + 1, stamp)

    def flush(self) -> Position:
        """Hand the buffer to the operating system. Raises OSError. Also after close()."""
        for file in self._files:
            file.flush()
        return self.end

    async def sync(self) -> None:
        """Wait until the flushed entries are on disk."""
        await asyncio.to_thread(sync_files, self._files)
        self._full = [file for file in self._full if file.is_unsynced]

    def forget(self, before: int) -> None:
        """Remove the segments that end before this offset; the last one stays."""
        found = segments(self.directory)
        for start, following in pairwise(found):
            if following <= before and start < self._start:
                found[start].unlink(missing_ok=True)
                forget_sums(found[start])

    def close(self) -> None:
        for file in self._files:
            file.close()

    @property
    def _files(self) -> list[AppendFile]:
        return [*self._full, *([] if self._file is None else [self._file])]


def outbox_of(directory: Path) -> Path:
    """The outbox of a spool: the spool's own directory, or the one above `fill_folder`."""
    return directory.parents[1] if directory.parent.name in (FILL, RETRY) else directory


def fill_folder(crawl: Path, receiver: str, kind: str = FILL) -> Path:
    """The directory of the spool for entries that are sent again to a receiver; ``kind``: FILL or
    RETRY."""
    return crawl / FOLDER / kind / receiver


def segments(directory: Path) -> dict[int, Path]:
    """The segments in order, by the position of their first byte."""
    names = sorted(path for path in directory.glob(f"*{_SUFFIX}") if path.stem.isdecimal())
    return {int(path.stem): path for path in names}


def _entry(item: Page | Removed, facts: IndexFacts | None, *, body: bool) -> dict[str, Any]:
    entry: dict[str, Any]
    if isinstance(item, Removed):
        entry = {"url": without_userinfo(item.url), "exact": item.exact, "removed": item.reason}
        if facts is not None and (successor := facts.successor(item)):
            entry["successor"] = successor
        return entry
    entry = {name: getattr(item, name) for name in PAGE_FIELDS}
    if facts is not None:
        entry["index"] = facts.page(item)
    entry["url"], entry["from_page"] = without_userinfo(item.url), without_userinfo(item.from_page)
    links, urls = item.links, [link.url for link in item.links]
    if any("@" in url for url in urls):
        urls = list(map(without_userinfo, urls))
    entry["links"] = (
        # a list a column: a tuple for each link takes twice as long
        urls,
        [
            None if link.normalized == url else link.normalized
            for link, url in zip(links, urls, strict=True)
        ],
        [link.type for link in links],
        [link.anchor for link in links],
    )
    entry["size"] = item.size
    if item.stored_at is not None:
        entry["at"] = *item.stored_at, item.size
    elif body:
        entry["body"] = item.body
    return entry


class SpoolLink(NamedTuple):
    url: str
    normalized: str
    type: int
    anchor: str


class Entry:
    """One version of a page, or its removal; ``end`` is the offset after it. ``page`` has
    PAGE_FIELDS, ``url`` and ``size``."""

    def __init__(self, found: Mapping[str, Any], end: int, crawl: Path) -> None:
        self.page, self.end, self._crawl = found, end, crawl
        self.url: str = found["url"]
        self.stamp: int = found["stamp"]

    @property
    def removed(self) -> str | None:
        """Why the page was removed; None for a stored page."""
        return self.page.get("removed")

    @property
    def links(self) -> list[SpoolLink]:
        """Each once, although the page may repeat it."""
        rows = zip(*self.page["links"], strict=True) if "links" in self.page else ()
        return [
            SpoolLink(url, url if normalized is None else normalized, kind, anchor)
            for url, normalized, kind, anchor in dict.fromkeys(rows)
        ]

    @cached_property
    def body(self) -> bytes:
        """Raises CrawlDirError if the page files are damaged."""
        if "at" in self.page:
            number, offset, size = self.page["at"]
            if self.body_file is not None:
                return b""
            body = read_body(self._crawl, number, offset, size)
            if len(body) != size:
                name = body_file(self._crawl, number).name
                raise CrawlDirError(f"{name}: bytes are missing at {offset}")
            return body
        kept: bytes = self.page.get("body", b"")
        return kept

    @property
    def body_file(self) -> Path | None:
        """The file of a body that is too large for memory, where ``body`` is empty. Raises
        CrawlDirError if it is gone."""
        number, offset, _ = self.page.get("at", (0, 0, 0))
        return blob_file(self._crawl, offset) if number == BLOBS else None

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return int(self.page.get("size", 0))

    def __repr__(self) -> str:
        return f"<Entry {self.url} {self.stamp}{'' if self.removed is None else ' removed'}>"


def read_entries(directory: Path, start: int, end: int) -> Iterator[Entry]:
    """The entries between two positions. Raises CrawlDirError if the spool is damaged."""
    found = segments(directory)
    while start < end:
        begins = max((one for one in found if one <= start), default=None)
        if begins is None:
            raise CrawlDirError(f"{directory}: the segment with byte {start:,} is gone; {MEND}")
        with found[begins].open("rb") as file:
            file.seek(start - begins)
            while start < end and (head := file.read(_LENGTH.size)):
                packed = file.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
                start += _LENGTH.size + len(packed)
                try:
                    yield Entry(msgpack.unpackb(packed), start, outbox_of(directory).parent)
                except (ValueError, KeyError, TypeError) as error:
                    raise CrawlDirError(
                        f"{found[begins]}: damaged before byte {start - begins:,}: {error}; {MEND}"
                    ) from error
        following = min((one for one in found if one > begins), default=end)
        if start < end and start != following:
            at = f"byte {start - begins:,}"
            raise CrawlDirError(f"{found[begins]} is cut short at {at}; {MEND}")


@dataclass(slots=True)
class Cursor:
    """The progress of a receiver. ``offset`` and ``number``: as in Position. ``sent`` and ``dead``:
    the entries that it took and refused. ``left``: documents that it has to write again once the
    crawl ends (`Receiver.catch_up`). ``trouble``: one line that says why nothing is sent since
    ``since``; "" while entries are sent."""

    offset: int = 0
    number: int = 0
    sent: int = 0
    dead: int = 0
    trouble: str = ""
    since: float = 0.0
    left: int = 0

    @classmethod
    def read(cls, directory: Path, receiver: str) -> Self | None:
        """The stored cursor of a receiver; None for a new receiver."""
        with suppress(OSError, ValueError, TypeError):
            found = cls(**json.loads((directory / f"{receiver}.json").read_bytes()))
            found.trouble = told(found.trouble)
            return found
        return None

    def write(self, directory: Path, receiver: str) -> None:
        """Raises OSError."""
        replace_file(directory / f"{receiver}.json", json.dumps(asdict(self)).encode())


def cursors(directory: Path) -> dict[str, Cursor]:
    """The cursors of all present and former receivers, by name."""
    names = sorted(path.stem for path in directory.glob("*.json") if path.name != COMMITTED)
    return {name: found for name in names if (found := Cursor.read(directory, name)) is not None}


class Standing(NamedTuple):
    """How a receiver is doing: entries that wait, were taken and were refused."""

    waiting: int
    sent: int
    dead: int
    trouble: str


def standings(crawls: Iterable[Path]) -> dict[str, Standing]:
    """The progress of each receiver as of the last checkpoint. The numbers of several workers are
    added up, and entries that were sent again count again."""
    found: dict[str, Standing] = {}
    for crawl in crawls:
        committed = read_committed(crawl / FOLDER)
        for name, cursor in cursors(crawl / FOLDER).items():
            waiting = max(0, committed.number - cursor.number)
            _add(found, name, Standing(waiting, cursor.sent, cursor.dead, cursor.trouble))
        for kind in (FILL, RETRY):
            for folder in (crawl / FOLDER / kind).glob("*"):
                cursor = Cursor.read(folder, folder.name) or Cursor()
                running = is_locked(folder / LOCK)
                trouble = cursor.trouble if running else ""
                dead = cursor.dead - read_retried(folder)
                _add(found, folder.name, Standing(0, cursor.sent, dead, trouble))
    return {name: one._replace(dead=max(0, one.dead)) for name, one in found.items()}


def _add(found: dict[str, Standing], name: str, more: Standing) -> None:
    waiting, sent, dead, trouble = found.get(name, Standing(0, 0, 0, ""))
    found[name] = Standing(
        waiting + more.waiting, sent + more.sent, dead + more.dead, trouble or more.trouble
    )


def read_retried(folder: Path) -> int:
    """How many dead letters were taken up by `scrapy outbox --retry-dead` so far."""
    with suppress(OSError, ValueError):
        return int((folder / _RETRIED).read_text())
    return 0


def write_retried(folder: Path, number: int) -> None:
    """Raises OSError."""
    replace_file(folder / _RETRIED, b"%d" % number)


def first_page_file(crawl: Path, committed: Position) -> int | None:
    """The first page file with a body that some receiver has not taken yet; None if all receivers
    have all bodies. While a blob has not been taken, this is the first page file. Raises
    CrawlDirError."""
    directory = crawl / FOLDER
    offsets = [cursor.offset for cursor in cursors(directory).values()]
    start = max(min(offsets, default=0), min(segments(directory), default=0))
    for entry in read_entries(directory, start, committed.offset):
        number = entry.page["at"][0] if "at" in entry.page else -1
        if number >= 0 or number == BLOBS:  # no WARC file
            return max(0, int(number))
    return None


def write_committed(directory: Path, position: Position) -> None:
    """Raises OSError."""
    replace_file(directory / COMMITTED, json.dumps(position).encode())


def read_committed(directory: Path) -> Position:
    """The committed position, as of the last checkpoint."""
    with suppress(OSError, ValueError, TypeError):
        return Position(*json.loads((directory / COMMITTED).read_bytes()))
    return Position()
