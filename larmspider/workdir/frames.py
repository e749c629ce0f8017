r"""Files that grow, compressed in frames of zstd: `links.log.zst` in place of `links.log`.

Offsets are offsets in the content, as in the uncompressed file, so that users of an offset need not
know. `open_stored` reads either form, `stored_size` measures and `cut_stored` cuts either::

    with open_stored(Path("crawl/links.log")) as log:     # or crawl/links.log.zst
        log.seek(81_264)
        log.readline()

Each frame holds at most FRAME_BYTES and follows a skippable frame (RFC 8878 3.1.2) of 20
bytes with its sizes: magic number 0x184D2A5C and length 12, then the bytes of the frame, the bytes
of its content, and the content's CRC-32, all in 32 bits, little endian. The frame with an offset is
found by hopping from header to header (3 us each, once a process). An end that a crash tore is
seen, and ``zstdcat`` prints the whole. A flush ends a frame: a commit is a whole number of frames.

Damage in the middle is not a torn end, because a frame follows it. Readers work around a
damaged header: the next header is looked for, and the frame itself gives the size of its content.
If that fails, the file ends there for its readers. A frame with damaged content is an error, or,
for ``open_stored(path, skip=True)``, a line of tabs of the same length, which is not a record. Each
place is logged once a process, and is in `damages`.
"""

from __future__ import annotations

import io
import logging
import os
import struct
import sys
import threading
import zlib
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

if sys.version_info >= (3, 14):
    from compression.zstd import (
        ZstdDecompressor,
        ZstdError,
        compress,
        decompress,
        get_frame_info,
    )
else:
    from backports.zstd import ZstdDecompressor, ZstdError, compress, decompress, get_frame_info

from larmspider.errors import MEND, CommittedGoneError, CrawlDirError

logger = logging.getLogger(__name__)

SUFFIX = ".zst"
FRAME_BYTES = 128 * 1024
"""The most content of a frame; a look-up decompresses one, in 0.1 ms."""
LEVEL = 3
_HEADER = struct.Struct("<IIIII")
_MAGIC = 0x184D2A5C
_MAGIC_BYTES = _MAGIC.to_bytes(4, "little")
_LOOK = _HEADER.size + 18
"""Bytes of a header and the first bytes of its frame, which repeat the size of the content."""
_START = struct.pack("<II", _MAGIC, _HEADER.size - 8)
"""The first bytes of each header."""
_MAX_FILES = 256
_MAX_PACKED = 2 * FRAME_BYTES
"""Bytes within which the next header begins, even if the content could not be compressed."""

LOST = b"\t" * 16
"""No record has 16 tabs in a row."""

damages: dict[tuple[Path, int], str] = {}
"""The damage that this process has found: by file and place in it, in words."""


def note_damage(path: Path, at: int, what: str) -> None:
    """Record a damage, and log it once."""
    if (path, at) not in damages:
        damages[path, at] = what
        logger.error("%s: damaged at byte %s: %s", path, f"{at:,}", what)


def compressed_name(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def present(path: Path) -> Path:
    """The existing file: ``path`` or its compressed form. ``path`` if neither exists."""
    packed = compressed_name(path)
    return packed if packed.exists() and not path.exists() else path


def open_stored(path: Path, *, buffered: bool = True, skip: bool = False) -> BinaryIO:
    """Open for reading; raises FileNotFoundError. ``buffered``: the file is read by readline.
    ``skip``: continue after a damaged frame."""
    there = present(path)
    if there == path:
        return path.open("rb") if buffered else path.open("rb", buffering=0)
    return io.BufferedReader(FramedReader(there, skip=skip), FRAME_BYTES if buffered else 1)


def stored_size(path: Path, missing: int | None = None) -> int:
    """Bytes inside; ``missing`` where there is no file, or FileNotFoundError is raised."""
    there = present(path)
    try:
        return there.stat().st_size if there == path else frames_of(there).size
    except FileNotFoundError:
        if missing is None:
            raise
        return missing


def cut_stored(path: Path, end: int) -> None:
    """Drop the content after ``end``. Raises CommittedGoneError if the file is shorter."""
    there = present(path)
    if there == path:
        size = path.stat().st_size if path.exists() else 0
        cut = end
    else:
        frames = frames_of(there)
        size, cut = frames.size, frames.end_of(end)
    if size < end:
        raise CommittedGoneError(f"{there} has {size} bytes, {end} were committed")
    if there.exists() and there.stat().st_size > cut:
        os.truncate(there, cut)
        forget(there)


def packed_frames(content: bytes, least: int) -> tuple[list[bytes], int]:
    """Frames with their headers, and how much of ``content`` is in them: all except a rest of fewer
    than ``least`` bytes."""
    frames: list[bytes] = []
    done = 0
    while len(content) - done >= least:
        piece = content[done : done + FRAME_BYTES]
        packed = compress(piece, level=LEVEL)
        frames += _header(len(packed), len(piece), zlib.crc32(piece)), packed
        done += len(piece)
    return frames, done


def _header(packed: int, size: int, crc: int) -> bytes:
    return _HEADER.pack(_MAGIC, _HEADER.size - 8, packed, size, crc)


def _size_inside(packed: bytes) -> int:
    """The size of the content of a frame that cannot be decompressed, according to its first bytes;
    0 if they have no plausible size."""
    try:
        size = get_frame_info(packed).decompressed_size or 0
    except ZstdError:
        return 0
    return size if size <= FRAME_BYTES else 0


class Frame(NamedTuple):
    """``at``: the place of its header in the file. ``start``: the offset of its first byte in the
    content."""

    at: int
    packed: int
    start: int
    size: int
    crc: int

    @property
    def end(self) -> int:
        """The place where the next frame begins."""
        return self.at + _HEADER.size + self.packed


class Frames:
    """Where the known frames of one file are; threads share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._inode = 0
        self._starts, self._places = array("Q"), array("Q")
        self._size = self._end = 0
        self._last = b""
        self._mended: dict[int, Frame] = {}  # frames with damaged headers, by place

    @property
    def size(self) -> int:
        """Bytes inside, of whole frames."""
        with self._lock, self.path.open("rb") as file:
            self._look(file)
            return self._size

    def seal(self) -> tuple[int, int]:
        """The bytes inside, and a CRC-32 of all headers."""
        crc = 0
        with self._lock, self.path.open("rb") as file:
            self._look(file)
            for place in self._places:
                crc = zlib.crc32(os.pread(file.fileno(), _HEADER.size, place), crc)
            return self._size, crc

    def end_of(self, size: int) -> int:
        """How long the file is with the frames that hold its first ``size`` bytes. Raises
        CrawlDirError if ``size`` is inside a frame."""
        with self._lock, self.path.open("rb") as file:
            self._look(file)
            if size >= self._size:
                return self._end
            number = bisect_right(self._starts, size) - 1
            if self._starts[number] != size:
                raise CrawlDirError(f"{self.path}: no frame ends at {size}: it is another file")
            return self._places[number]

    def span_at(self, place: int) -> tuple[int, int]:
        """The span of content of the frame that begins at a byte of the file; if no frame begins
        there, the span after the last frame."""
        with self._lock:
            number = bisect_right(self._places, place) - 1
            if number < 0 or self._places[number] != place:
                return self._size, self._size + 1
            following = self._starts[number + 1 : number + 2]
            return self._starts[number], following[0] if following else self._size

    def look(self, file: IO[bytes]) -> None:
        """Check the known frames against a file that was just opened, because another process may
        have cut it."""
        with self._lock:
            self._look(file)

    def frame_at(self, file: IO[bytes], offset: int) -> Frame | None:
        """The frame that holds ``offset``; None after the end."""
        with self._lock:
            if offset >= self._size:
                self._look(file)
            if offset >= self._size:
                return None
            number = bisect_right(self._starts, offset) - 1
            at, start = self._places[number], self._starts[number]
            mended = self._mended.get(at)
        if mended is not None:
            return mended
        header = os.pread(file.fileno(), _HEADER.size, at)
        if len(header) < _HEADER.size or header[:4] != _MAGIC_BYTES:
            return None  # it was cut meanwhile
        _, _, packed, size, crc = _HEADER.unpack(header)
        return Frame(at, packed, start, size, crc)

    def _look(self, file: IO[bytes]) -> None:
        """Hop on from where the last look ended; from the beginning in another file."""
        descriptor = file.fileno()
        status = os.fstat(descriptor)
        if status.st_ino != self._inode or status.st_size < self._end or not self._same(descriptor):
            self._forget()
            self._inode = status.st_ino
        header = os.pread(descriptor, _LOOK, self._end)
        while len(header) >= _HEADER.size:
            frame, following = self._frame(header, status.st_size), b""
            if frame is not None:
                following = os.pread(descriptor, _LOOK, frame.end)
            torn = following[: len(_START)] != _START[: len(following)]
            if frame is None or torn or _size_inside(header[_HEADER.size :]) != frame.size:
                mended = self._mend(descriptor, frame)
                if mended is None:
                    return  # torn: the rest counts for nothing
                if mended != frame:
                    frame = self._mended[mended.at] = mended
                    following = os.pread(descriptor, _LOOK, frame.end)
            assert frame is not None
            self._starts.append(frame.start)
            self._places.append(frame.at)
            self._size, self._last = self._size + frame.size, header[: _HEADER.size]
            self._end, header = frame.end, following

    def _frame(self, header: bytes, most: int) -> Frame | None:
        """The next frame, from its header, in a file of ``most`` bytes."""
        _, _, packed, size, crc = _HEADER.unpack(header[: _HEADER.size])
        frame = Frame(self._end, packed, self._size, size, crc)
        whole = header.startswith(_START) and packed and size
        return frame if whole and frame.end <= most else None

    def _mend(self, descriptor: int, found: Frame | None) -> Frame | None:
        """The frame with a damaged header, at the end of the last frame. ``found``: the frame by
        its header, if nothing contradicts it. None if no frame follows it: the file is torn,
        or its end is damaged."""
        at = self._end
        data = os.pread(descriptor, _MAX_PACKED, at)
        length = data.find(_START, _HEADER.size) - _HEADER.size
        if length < 0 and (found is None or len(data) == _MAX_PACKED):
            return found
        packed = data[_HEADER.size :][: length if length >= 0 else found.packed if found else 0]
        try:
            unpacker = ZstdDecompressor()
            content = unpacker.decompress(packed)
        except ZstdError:
            if found is not None:
                return found
            size = _size_inside(packed)
            if size:
                return Frame(at, length, self._size, size, 0)
            note_damage(self.path, at, "the data after that cannot be read")
            return None
        length = len(packed) - len(unpacker.unused_data)
        frame = Frame(at, length, self._size, len(content), zlib.crc32(content))
        if not content:
            return found
        if frame != found:
            note_damage(self.path, at, "the header of a frame, which is made up for")
        return frame

    def _same(self, descriptor: int) -> bool:
        """Whether the last known frame is still there; a crawl may have cut the file."""
        if not self._places:
            return True
        return os.pread(descriptor, _HEADER.size, self._places[-1]) == self._last


_frames: dict[Path, Frames] = {}
_frames_lock = threading.Lock()


def frames_of(path: Path) -> Frames:
    """The Frames of a file, shared by all callers in this process."""
    with _frames_lock:
        found = _frames.pop(path, None) or Frames(path)
        _frames[path] = found  # the last one used is the last one forgotten
        while len(_frames) > _MAX_FILES:
            del _frames[next(iter(_frames))]
        return found


def forget(path: Path) -> None:
    with _frames_lock:
        _frames.pop(path, None)


class FramedReader(io.RawIOBase):
    """The content, with seek and tell. Raises CrawlDirError for a damaged frame; ``skip`` reads
    such a frame as tabs."""

    def __init__(self, path: Path, *, skip: bool = False) -> None:
        self._skip = skip
        self._file = path.open("rb", buffering=0)
        self._frames = frames_of(path)
        self._frames.look(self._file)
        self._path = path
        self._position = 0
        self._at, self._content = -1, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence == os.SEEK_END:
            offset += self._frames.size
        self._position = max(0, offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        content, at = self._content, self._position - self._at
        if self._at < 0 or not 0 <= at < len(content):
            frame = self._frames.frame_at(self._file, self._position)
            if frame is None:
                return 0
            content = self._content = self._unpacked(frame)
            self._at, at = frame.start, self._position - frame.start
        piece = content[at : at + len(buffer)]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _unpacked(self, frame: Frame) -> bytes:
        packed = os.pread(self._file.fileno(), frame.packed, frame.at + _HEADER.size)
        try:
            content, problem = decompress(packed), "not what was written"
        except ZstdError as error:
            content, problem = b"", str(error)
        if len(content) == frame.size and zlib.crc32(content) == frame.crc:
            return content
        if not self._skip:
            raise CrawlDirError(f"{self._path}: damaged at byte {frame.at:,}: {problem}; {MEND}")
        passed = f"the records in a frame of {frame.size:,} bytes are lost, and passed over"
        note_damage(self._path, frame.at, f"{problem}: {passed}")
        return b"\t" * frame.size

    def close(self) -> None:
        self._file.close()
        super().close()
