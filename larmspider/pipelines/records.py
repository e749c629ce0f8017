r"""Tab-separated logs, one record a line: LARM's format, which no byte from the web can break.

A field's tabs, line breaks, NUL and other control characters, and Unicode's line and paragraph
separators, become a space, so the fields read are the fields written. Characters that show nothing
but turn or hide text (formatting.INVISIBLE) become escapes, so a line reads as it is:

    >>> log.append("http://h/", "a\ttitle\nof two lines")   # two fields, one line
    >>> log.append("http://h/", "invoice\u202efdp.exe")     # invoice\u202efdp.exe, in ASCII
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from larmspider import options
from larmspider.checksums import Sums
from larmspider.files import sync_folder
from larmspider.formatting import escaped
from larmspider.pipelines.store import Store
from larmspider.workdir.frames import (
    FRAME_BYTES,
    compressed_name,
    cut_stored,
    frames_of,
    open_stored,
    packed_frames,
    present,
    stored_size,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


BUFFER_BYTES = 256 * 1024


_BREAKS = dict.fromkeys(
    (*range(32), *range(127, 160), 8232, 8233), " "
)  # C0, DEL and C1 (NEL among them), LINE SEPARATOR, PARAGRAPH SEPARATOR
_CONTROLS = bytes((*range(32), 127))
# the others, and INVISIBLE, in UTF-8: by the first byte, which most texts lack, or have in no such
# place; 6 to 17 us for a page of 140 links, one expression for all takes 50 to 120
_OTHERS = tuple(
    (pattern[0], re.compile(pattern))
    for pattern in (
        b"\xc2[\x80-\x9f\xad]",  # C1, SOFT HYPHEN
        b"\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])",  # U+200B to U+206F
        b"\xd8\x9c",  # ARABIC LETTER MARK
        b"\xe1\xa0\x8e",  # MONGOLIAN VOWEL SEPARATOR
        b"\xef(?:\xbb\xbf|\xbf[\xb9-\xbb])",  # ZERO WIDTH NO-BREAK SPACE, annotations
        b"\xf0(?:\x9b\xb2[\xa0-\xa3]|\x9d\x85[\xb3-\xba])",  # of shorthand and music
        b"\xf3\xa0[\x80\x81]",  # tags
    )
)


class RecordLog:
    """A file of records, each with the fields ``columns``; another number raises ValueError. Text
    is UTF-8; lone surrogates become ``?``."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        *,
        compressed: bool = False,
        summed: bool = False,
    ) -> None:
        self.path = path
        self.columns = tuple(columns)
        self._file = open_appending(path, compressed=compressed, summed=summed)

    def append(self, *fields: str) -> None:
        self.extend([fields])

    def extend(self, records: Iterable[Sequence[str]]) -> int:
        """Write records and return their number."""
        records = list(records)
        width = len(self.columns)
        if wrong := set(map(len, records)) - {width}:
            raise ValueError(f"{self.path.name} has {width} columns, the record {min(wrong)}")
        lines = _lines(records)
        # one check for all: a page has hundreds of links, and few need cleaning
        if _needs_cleaning(lines, width * len(records)):
            lines = _lines([[clean(field) for field in record] for record in records])
        self._file.write(lines)
        return len(records)

    def flush(self) -> bytes:
        """Hand the buffer to the operating system; return the position for ``truncate_file``.

        Raises OSError, after the first failed write each time.
        """
        return b"%d" % self._file.flush()

    def sync(self) -> None:
        """See AppendFile.sync()."""
        self._file.sync()

    def close(self) -> None:
        """See AppendFile.close()."""
        self._file.close()


def _lines(records: Sequence[Sequence[str]]) -> bytes:
    lines = ["\t".join(record) for record in records]
    lines.append("")
    return "\n".join(lines).encode("utf-8", "replace")


def _needs_cleaning(lines: bytes, ends: int) -> bool:
    """Whether there are more control characters than the ``ends`` of fields; 15 us for a page of
    140 links, where str.isprintable() takes 30."""
    if len(lines) - len(lines.translate(None, _CONTROLS)) > ends:
        return True
    if lines.isascii():
        return False
    return any(first in lines and pattern.search(lines) for first, pattern in _OTHERS)


def truncate_file(path: Path, position: bytes) -> None:
    """Drop what lies behind a position of flush(); b"" is the beginning.

    Raises CommittedGoneError if the file is shorter than that.
    """
    cut_stored(path, int(position or b"0"))


def read_records(path: Path, columns: int, start: int = 0) -> Iterable[list[str]]:
    """The records from the byte ``start`` on, without an incomplete last line."""
    with open_stored(path) as lines:
        lines.seek(start)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            fields = line[:-1].decode("utf-8", "replace").split("\t")
            if len(fields) == columns:
                yield fields


def clean(field: str) -> str:
    """``field`` on one line, without tabs and invisible characters; mostly unchanged."""
    return field if field.isprintable() else escaped(field.translate(_BREAKS))


class AppendFile:
    """A file that grows at its end. ``end`` is its length in bytes, including buffered bytes.

    When the disk is full, Python's close() drops the buffer, and the file looks whole.
    Here a failure is kept, so that no later flush() names a position for a checkpoint to commit.
    """

    def __init__(self, path: Path, *, summed: bool = False) -> None:
        """``summed``: keep checksums of the content beside the file (checksums.py)."""
        self.path = path
        self._file = path.open("ab", buffering=BUFFER_BYTES)
        self.end = self._file.tell()
        self._sums = Sums(path, self.end) if summed else None
        self._is_new = not self.end  # its name may not be on the disk yet
        self._failure: tuple[int, str, str] | None = None
        self._closing = threading.Lock()  # no close() while another thread syncs
        self._let_go = False

    def write(self, data: bytes) -> None:
        """Raises OSError, after the first failure each time."""
        self._put(data)
        self.end += len(data)
        if self._sums is not None:
            self._sums.add(data)

    def _put(self, data: bytes) -> None:
        self._raise_failure()
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> int:
        """Hand the buffer to the operating system; return the length. Also after close()."""
        self._raise_failure()
        if not self._file.closed:
            try:
                self._file.flush()
            except OSError as error:
                raise self._failed(error) from None
            if self._sums is not None:
                self._sums.end_stretch()
        return self.end

    def sync(self) -> None:
        """Wait until flushed data is on disk, in any thread; nothing after close()."""
        with self._closing:
            if self._file.closed and not self._let_go:
                return
            try:
                with self.path.open("rb") if self._let_go else nullcontext(self._file) as file:
                    os.fsync(file.fileno())
                if self._is_new:
                    sync_folder(self.path.parent)
                    self._is_new = False
                if self._sums is not None:
                    self._sums.write()
            except OSError as error:
                raise self._failed(error) from None
            self._let_go = False

    def let_go(self) -> None:
        """Flush and close, but leave the wait for the disk to sync() or close(). Raises OSError."""
        self.flush()
        if self._sums is not None:
            self._sums.end_stretch(1)
        with self._closing:
            try:
                self._file.close()
            except OSError as error:
                raise self._failed(error) from None
            self._let_go = True

    @property
    def is_unsynced(self) -> bool:
        """Whether let_go() ended the file after its last sync(). A file that fills up during a
        sync() has an end that this sync() did not write."""
        return self._let_go

    def close(self) -> None:
        """Flush, sync and close. May be called twice; flush() raises a failure."""
        try:
            self.flush()
            if self._sums is not None:
                self._sums.end_stretch(1)
            self.sync()
        except OSError:
            pass
        with self._closing:
            try:
                self._file.close()
            except OSError as error:
                self._failed(error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise OSError(*self._failure)

    def _failed(self, error: OSError) -> OSError:
        if self._failure is None:
            self._failure = error.errno or 0, error.strerror or str(error), str(self.path)
        return OSError(*self._failure)


class FramedFile(AppendFile):
    """An AppendFile in frames of zstd (frames.py): ``end`` and ``flush()`` count the bytes inside.
    A frame that a crash tore off is dropped when it is opened."""

    def __init__(self, path: Path) -> None:
        size = 0
        if path.exists():
            frames = frames_of(path)
            size = frames.size
            os.truncate(path, frames.end_of(size))
        super().__init__(path)
        self.end = size
        self._pieces: list[bytes] = []
        self._waiting = 0

    def write(self, data: bytes) -> None:
        self._raise_failure()
        self._pieces.append(data)
        self._waiting += len(data)
        self.end += len(data)
        if self._waiting >= FRAME_BYTES:
            self._pack(FRAME_BYTES)

    def flush(self) -> int:
        """This ends a frame."""
        self._raise_failure()
        if self._waiting and not self._file.closed:
            self._pack(1)
        return super().flush()

    def _pack(self, least: int) -> None:
        content = b"".join(self._pieces)
        frames, done = packed_frames(content, least)
        for piece in frames:
            self._put(piece)
        self._pieces = [content[done:]]
        self._waiting = len(content) - done


def open_appending(path: Path, *, compressed: bool, summed: bool = False) -> AppendFile:
    """Open a file for appending in its present form, compressed or not. ``compressed``: the form of
    a new file. A compressed file has its own checksums; ``summed`` gives checksums to an
    uncompressed one."""
    there = present(path)
    if there == path and not (compressed and stored_size(path, missing=0) == 0):
        return AppendFile(path, summed=summed)
    path.unlink(missing_ok=True)  # it is empty
    return FramedFile(compressed_name(path))


COMPRESSIONS = ("", "zstd")


def compression(settings: options.Settings) -> bool:
    """Whether LARM_COMPRESSION wants new files compressed. Raises ConfigError."""
    return bool(options.choice(settings, "LARM_COMPRESSION", COMPRESSIONS))


class LogStore(Store):
    """A store of one file of records in LARM_DIR; its position is the length of the file.

    class TitleLog(LogStore):
        file_name = "titles.log"
        files = (file_name,)
        columns = ("url", "title")

        def write(self, page: Page) -> None:
            self.log.append(page.url, page.title)
    """

    file_name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.compressed = False
        """Whether a new file begins compressed."""
        self._log: RecordLog | None = None

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        return cls(options.larm_dir(crawler.settings))

    @property
    def log(self) -> RecordLog:
        """Open from open_spider() on."""
        assert self._log is not None
        return self._log

    def open_spider(self) -> None:
        options.writable_dir(self.directory)
        path = self.directory / self.file_name
        self._log = RecordLog(path, self.columns, compressed=self.compressed, summed=True)

    def recover(self, position: bytes) -> None:
        truncate_file(self.directory / self.file_name, position)

    def flush(self) -> bytes:
        return b"" if self._log is None else self._log.flush()

    async def commit(self) -> None:
        if self._log is not None:
            await asyncio.to_thread(self._log.sync)

    def close_spider(self) -> None:
        if self._log is not None:
            self._log.close()
