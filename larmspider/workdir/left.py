"""sealed.json: the small files of a crawl's directory as the last run left them.

    leave(Path("crawl"))                            # at the end of a run, under its lock
    with changing(Path("crawl"), "removed.txt"):    # a command changes files afterwards
        ...
    for file in read_left(Path("crawl")).changed(): print(file.name, file.what)

The next run removes sealed.json before its first change, so a killed run leaves none. Files of at
most KEPT_BYTES are kept whole: `scrapy verify --repair` writes them again.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from larmspider.checksums import SEAL, break_seal, crc_of
from larmspider.errors import CrawlDirError
from larmspider.files import is_locked, replace_file, sync_file, sync_folder
from larmspider.workdir.frames import SUFFIX, frames_of
from larmspider.workdir.manifest import LOCK
from larmspider.workdir.manifest_copy import read_or_copy

KEPT_BYTES = 64 * 1024
"""A longer file is recognized by its checksum, and not kept."""
_KEPT = (
    "removed.txt", "not-traps.txt", "totals.json", "control.log", "outbox/*.json",
    "outbox/*.dead.log", "outbox/fill/*/*.json", "outbox/retry/*/*.json", "outbox/*/*/retried",
)  # fmt: skip
OPERATORS = ("synonyms.txt", "best_bets.txt")
"""Files of operators, who may change them at any time."""
_SUMMED = (
    *OPERATORS,
    "sums/*", "outbox/sums/*", "outbox/*/*/sums/*", f"frontier/{SEAL}", f"index/{SEAL}",
    "warc/*.cdxj", f"*{SUFFIX}",
)  # fmt: skip
"""Checksums of other files, indexes of WARC files, and compressed files, by the headers of their
frames: these have checksums of their contents."""
_EMPTY = ("*.log", "pagefile_*.pfl")
"""Only the empty ones of these are kept: nothing else tells that they were there."""
LOG_INDEX = "logs.idx/index.sqlite"
"""Commands that read the logs change it at any time: only whether it was there is kept."""
_GROWS = ".log"
"""Files with this suffix are appended to at any time: their beginning stays."""


class ChangedFile(NamedTuple):
    """``content``: what the last run left; None if it was not kept."""

    name: str
    what: str
    content: bytes | None


@dataclass
class Left:
    """``crawl`` identifies the crawl. ``files``: size, CRC-32 and content of each file by name."""

    folder: Path
    crawl: str
    files: dict[str, tuple[int, int, str | None]] = field(default_factory=dict)

    def changed(self) -> Iterator[ChangedFile]:
        """The files that are not as the last run left them."""
        for name, (size, crc, content) in self.files.items():
            path = self.folder / name
            if not path.exists():
                what = "is gone"
            elif name != LOG_INDEX and _sum_of(path, size) != (size, crc):
                what = "is not as the last run left it"
            else:
                continue
            kept = None if content is None else content.encode("utf-8", "surrogateescape")
            yield ChangedFile(name, what, kept)

    def take(self, *patterns: str) -> None:
        """Take the checksums of matching files again, and sync these files: sealed.json is synced,
        and must not outlive them in a power loss."""
        folders: set[Path] = set()
        for pattern in (*_KEPT, *_SUMMED, *_EMPTY, LOG_INDEX):
            for path in sorted(self.folder.glob(pattern)):
                name = path.relative_to(self.folder).as_posix()
                if not (path.is_file() and _matches(name, patterns)) or _is_sending(path):
                    continue
                if pattern not in _EMPTY or not path.stat().st_size:
                    sums = (0, 0) if pattern == LOG_INDEX else _sum_of(path)
                    self.files[name] = *sums, _content_of(path, pattern)
                    sync_file(path)
                    folders.update(one for one in path.parents if one.is_relative_to(self.folder))
        for folder in folders:
            sync_folder(folder)

    def drop(self, *patterns: str) -> None:
        self.files = {name: one for name, one in self.files.items() if not _matches(name, patterns)}

    def write(self) -> None:
        """Raises OSError."""
        replace_file(self.folder / SEAL, self.packed())

    def packed(self) -> bytes:
        """The content of sealed.json."""
        said = json.dumps({"crawl": self.crawl, "files": self.files})
        whole = {"left": said, "crc": zlib.crc32(said.encode())}
        return json.dumps(whole).encode()


def leave(folder: Path) -> None:
    """Write sealed.json. Raises CrawlDirError."""
    try:
        left = Left(folder, crawl_of(read_or_copy(folder).manifest or {}))
        left.take("*")
        left.write()
    except OSError as error:
        raise CrawlDirError(f"{folder / SEAL} cannot be written: {error}") from error


def read_left(folder: Path) -> Left | None:
    """The content of sealed.json; None if the last run did not end in order. Raises ValueError for
    a damaged sealed.json."""
    try:
        whole = json.loads((folder / SEAL).read_bytes())
        said = whole["left"]
        if zlib.crc32(said.encode()) != whole["crc"]:
            raise ValueError("does not match its checksum")
        found = json.loads(said)
        files = {name: (size, crc, kept) for name, (size, crc, kept) in found["files"].items()}
        return Left(folder, found["crawl"], files)
    except FileNotFoundError:
        return None
    except (OSError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no record of the last run: {error}") from error


def begin(folder: Path) -> None:
    """Remove sealed.json before the first change of a run. Raises CrawlDirError."""
    try:
        break_seal(folder)
    except OSError as error:
        raise CrawlDirError(f"{folder / SEAL} cannot be removed: {error}") from error


@contextmanager
def changing(folder: Path, *patterns: str) -> Iterator[None]:
    """A command changes files that match, all where no pattern is given. If it is killed, they are
    not compared until the next run ends. Raises CrawlDirError."""
    patterns = patterns or ("*",)
    _change(folder, lambda left: left.drop(*patterns))
    yield
    _change(folder, lambda left: left.take(*patterns))


_writing = threading.Lock()
"""At the end of a run several threads change their files."""


def _change(folder: Path, change: Callable[[Left], object]) -> None:
    with _writing:
        try:
            left = read_left(folder)
        except ValueError:
            return  # verify names it
        if left is not None:
            try:
                change(left)
                left.write()
            except OSError as error:
                raise CrawlDirError(f"{folder / SEAL} cannot be written: {error}") from error


def crawl_of(manifest: dict[str, Any]) -> str:
    """A name of the crawl that a manifest describes."""
    seeds = json.dumps(manifest.get("seeds"))
    return f"{manifest.get('began')} {zlib.crc32(seeds.encode()):08x}"


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_sending(path: Path) -> bool:
    """Whether a command sends pages again, from the spool of this file (pipelines/outbox)."""
    return is_locked(path.parent / LOCK) and path.parent.parent.name in ("fill", "retry")


def _sum_of(path: Path, size: int | None = None) -> tuple[int, int]:
    """Size and CRC-32 of a file; of one that grows, of its first ``size`` bytes."""
    if path.name.endswith(SUFFIX):
        return frames_of(path).seal()
    length = path.stat().st_size
    if size is not None and path.name.endswith(_GROWS):
        length = min(length, size)
    return length, crc_of(path, 0, length)


def _content_of(path: Path, pattern: str) -> str | None:
    if pattern not in (*_KEPT, *_EMPTY) or path.stat().st_size > KEPT_BYTES:
        return None
    return path.read_bytes().decode("utf-8", "surrogateescape")
