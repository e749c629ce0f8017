"""Checksums of files that grow, and of files that stay as their last writer has left them.

    sums = Sums(Path("crawl/links.log"), size=81_264)    # crawl/sums/links.log
    sums.add(lines)                                      # as they are appended
    sums.end_stretch()                                   # at a checkpoint
    sums.write()                                         # after the file was synced

    for stretch in read_sums(Path("crawl/links.log")): ...

``sums/NAME`` has a line for each stretch of 256 KB or more: where it begins and ends, its CRC-32,
and the CRC-32 of these three. A stretch without a line is not checked. If a power loss takes a
line, the next line covers its stretch, too, if that is short.

A folder that is `sealed` has a file ``sealed.json`` with sizes and CRC-32 of its files. Its writer
breaks the seal before the first change and sets it when it ends, so a killed writer leaves none.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from larmspider.files import replace_file, sync_folder

FOLDER = "sums"
STRETCH = 256 * 1024
"""Bytes, at least, of a stretch but the last one of a run."""
_CATCH_UP = 64 * STRETCH
"""Bytes without a line that are read when a file is opened, so that the next line covers them."""
_PIECE = 1 << 20
SEAL = "sealed.json"
_PAGE_FILES = "pagefile_*.pfl"
_FOOTER = struct.Struct("<II")
_FOOTER_MAGIC = 1337
"""Ends each file of Tantivy, after the length of a footer that is JSON (tantivy, footer.rs)."""


class Stretch(NamedTuple):
    """Bytes of a file from ``start`` to ``end``."""

    start: int
    end: int
    crc: int

    def line(self) -> bytes:
        said = b"%d %d %08x" % self
        return b"%b %08x\n" % (said, zlib.crc32(said))


def sums_path(file: Path) -> Path:
    return file.parent / FOLDER / file.name


def read_sums(file: Path) -> tuple[list[Stretch], list[int]]:
    """The stretches of a file, in order, and the numbers of lines that are damaged."""
    found: list[Stretch] = []
    bad: list[int] = []
    try:
        lines = sums_path(file).read_bytes().splitlines(keepends=True)
    except OSError:
        return [], []
    for number, line in enumerate(lines, 1):
        stretch = _stretch_of(line)
        if stretch is None or (found and stretch.start < found[-1].end):
            bad.append(number)
        else:
            found.append(stretch)
    return found, bad


def _stretch_of(line: bytes) -> Stretch | None:
    with suppress(ValueError):
        start, end, crc, _ = line.split(b" ")
        stretch = Stretch(int(start), int(end), int(crc, 16))
        if stretch.line() == line and stretch.start < stretch.end:
            return stretch
    return None


class Sums:
    """The checksums of a file of ``size`` bytes that grows. `add` and `end_stretch` belong to one
    thread, `write` may run in another. Raises OSError."""

    def __init__(self, file: Path, size: int) -> None:
        self._path = sums_path(file)
        self._pending: list[Stretch] = []
        known, bad = read_sums(file)
        left = [stretch for stretch in known if stretch.end <= size]
        if bad or len(left) < len(known):
            replace_file(self._path, b"".join(stretch.line() for stretch in left))
        self._start = left[-1].end if left else 0
        if size - self._start > _CATCH_UP:
            self._start = size
        self._end, self._crc = size, crc_of(file, self._start, size)

    def add(self, data: bytes) -> None:
        """18 ms for 50 MB."""
        self._crc = zlib.crc32(data, self._crc)
        self._end += len(data)

    def end_stretch(self, least: int = STRETCH) -> None:
        """End a stretch, if at least ``least`` bytes were added since the last one."""
        if self._end - self._start >= max(1, least):
            self._pending.append(Stretch(self._start, self._end, self._crc))
            self._start, self._crc = self._end, 0

    def write(self) -> None:
        """Write the sums of ended stretches; the file is synced up to there."""
        pending, self._pending = self._pending, []
        if pending:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab") as out:
                out.write(b"".join(stretch.line() for stretch in pending))


def crc_of(file: Path, start: int, end: int) -> int:
    """The CRC-32 of the bytes between ``start`` and ``end``."""
    crc = 0
    if start < end:
        with file.open("rb") as content:
            content.seek(start)
            while start < end and (piece := content.read(min(_PIECE, end - start))):
                crc = zlib.crc32(piece, crc)
                start += len(piece)
    return crc


def sum_anew(file: Path) -> None:
    """Take the checksums of a whole file again. Raises OSError."""
    size, lines = file.stat().st_size, []
    for start in range(0, size, _PIECE):
        end = min(size, start + _PIECE)
        lines.append(Stretch(start, end, crc_of(file, start, end)).line())
    sums_path(file).parent.mkdir(exist_ok=True)
    replace_file(sums_path(file), b"".join(lines))


def forget_sums(file: Path) -> None:
    """Delete the checksums of a file that is deleted or replaced."""
    sums_path(file).unlink(missing_ok=True)


def seal(folder: Path, names: Iterable[str]) -> None:
    """Keep the checksums of the named files, and of all files of Tantivy in the folder. Raises
    OSError."""
    found = {}
    for name in names:
        with suppress(FileNotFoundError):
            size = (folder / name).stat().st_size
            found[name] = [size, crc_of(folder / name, 0, size)]
    for path in folder.iterdir():
        if footers := tantivy_crcs(path):
            found[path.name] = [path.stat().st_size, footers[0]]
    replace_file(folder / SEAL, packed_seal(found))


def packed_seal(files: Mapping[str, Sequence[int]]) -> bytes:
    """The content of a seal: size and checksum by name."""
    whole = {"files": files, "crc": zlib.crc32(json.dumps(files).encode())}
    return json.dumps(whole).encode()


def break_seal(folder: Path) -> None:
    """Remove the seal. Called before a change, because after a power loss there must be no seal.
    Raises OSError."""
    with suppress(FileNotFoundError):
        (folder / SEAL).unlink()
        sync_folder(folder)


def read_seal(folder: Path) -> Mapping[str, tuple[int, int]] | None:
    """Size and checksum by name; None if there is no seal. Raises ValueError for a damaged
    one."""
    try:
        found = json.loads((folder / SEAL).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(str(error)) from error
    except ValueError as error:
        raise ValueError("no seal") from error
    try:
        files, crc = found["files"], found["crc"]
    except (TypeError, KeyError) as error:
        raise ValueError("no seal") from error
    if zlib.crc32(json.dumps(files).encode()) != crc:
        raise ValueError("does not match its checksum")
    return {name: (size, crc) for name, (size, crc) in files.items()}


def kept_checksums(folder: Path) -> list[str]:
    """Names of the files with checksums in a crawl's directory, so that the next check misses lost
    ones. "pagefile_*.pfl" stands for all page files, if each has checksums."""
    names = [SEAL, *(f"{part}/{SEAL}" for part in ("frontier", "index"))]
    names += (f"{FOLDER}/{path.name}" for path in sorted((folder / FOLDER).glob("*.log")))
    found = [name for name in names if (folder / name).exists()]
    pages = [*folder.glob(_PAGE_FILES)]
    if pages and all(sums_path(path).exists() for path in pages if path.stat().st_size):
        found.append(f"{FOLDER}/{_PAGE_FILES}")
    return found


def lost_checksums(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Files of `kept_checksums` that are gone or empty, although their subject is there."""
    for name in names:
        part, _, last = name.rpartition("/")
        if last == SEAL:
            if not (folder / name).exists() and any((folder / part).glob("*")):
                yield folder / name
        else:
            for file in sorted(folder.glob(last)):
                if file.stat().st_size and not _size(sums_path(file)):
                    yield sums_path(file)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def tantivy_crcs(path: Path) -> tuple[int, ...]:
    """The checksums of a file of Tantivy that a seal may have: of its footer, which has the other
    one, of all before the footer. Seals have the first since a changed footer is a damage, too.
    Empty for a file without a footer."""
    footer = _footer(path)
    return () if footer is None else (footer.own_crc, footer.crc)


class _Footer(NamedTuple):
    """``begins``: the offset of the footer. ``crc``: the checksum of the bytes before it."""

    begins: int
    crc: int
    own_crc: int


def _footer(path: Path) -> _Footer | None:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _FOOTER.size:
                return None
            file.seek(size - _FOOTER.size)
            length, magic = _FOOTER.unpack(file.read())
            begins = size - _FOOTER.size - length
            if magic != _FOOTER_MAGIC or begins < 0:
                return None
            file.seek(begins)
            text = file.read(length)
            return _Footer(begins, int(json.loads(text)["crc"]), zlib.crc32(text))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_tantivy(path: Path) -> str:
    """Check a file of Tantivy by its own checksum. Returns the damage in words, "" for none."""
    footer = _footer(path)
    if footer is None:
        return "its footer is damaged"
    same = crc_of(path, 0, footer.begins) == footer.crc
    return "" if same else "it is not what its checksum says"
