"""Bodies that are too large for memory: each is written to a file while it arrives.

    LARM_DIR/blobs/.5d0a....part       a body on its way
    LARM_DIR/blobs/17-2fd4e1c6...      the body with number 17, named for its SHA-1, as
                                       PageFilesPipeline keeps it

Only a page's Request may have such a body, with LARM_BLOB_BYTES: its Response has no body, and
``Request.meta[BLOB]`` is the Blob.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple
from uuid import uuid4

from larmspider import options
from larmspider.errors import CrawlDirError
from larmspider.fetch.errors import TooBig
from larmspider.files import make_folder

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.fetch.limits import Limits

FOLDER = "blobs"
PART = ".part"


class Blob:
    """A body on disk, to be written and then `finish`-ed. Its file is deleted with the last
    reference to the object, however the fetch has ended. A store that keeps the file renames it
    before.

    ``digest`` is the SHA-1 in hex, as of other bodies. Raises CrawlDirError if the disk refuses:
    the page has no fault then, and the crawl stops.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / f".{uuid4().hex}{PART}"
        self.size = 0
        self.digest = ""
        self._sha1 = hashlib.sha1(usedforsecurity=False)
        try:
            make_folder(folder)
            self._file = self.path.open("xb")
        except OSError as error:
            raise self._failed(error) from None
        self._forget = weakref.finalize(self, _forget, self._file, self.path)

    def write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failed(error) from None
        self._sha1.update(data)
        self.size += len(data)

    def finish(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(error) from None
        self.digest = self._sha1.hexdigest()

    def _failed(self, error: OSError) -> CrawlDirError:
        return CrawlDirError(f"{self.path.parent}: {error.strerror or error}")

    def __repr__(self) -> str:
        return f"<Blob {self.path.name} {self.size} bytes>"


def _forget(file: IO[bytes], path: Path) -> None:
    try:
        file.close()
    except OSError:
        pass  # the disk lacks room for buffered bytes; they are not needed any more
    path.unlink(missing_ok=True)


def folder_of(settings: BaseSettings, limits: Limits) -> Path | None:
    """The folder for bodies; None if LARM_BLOB_BYTES switches it off."""
    return options.larm_dir(settings) / FOLDER if limits.blob_bytes else None


class Room(NamedTuple):
    """The bytes that a body may have in memory (0: no limit), and in a file of ``folder`` (None: no
    file)."""

    memory_bytes: int = 0
    blob_bytes: int = 0
    folder: Path | None = None

    def take(self, pieces: Iterable[bytes]) -> tuple[bytes, Blob | None]:
        """A body that comes in pieces, or an empty one and its Blob. Raises TooBig,
        CrawlDirError."""
        kept: list[bytes] = []
        size, blob = 0, None
        limit = self.memory_bytes if self.folder is None else self.blob_bytes
        for piece in pieces:
            size += len(piece)
            if limit and size > limit:
                name = "DOWNLOAD_MAXSIZE" if self.folder is None else "LARM_BLOB_BYTES"
                raise TooBig(f"more than {limit} bytes ({name})")
            kept.append(piece)
            if self.folder is not None and size > self.memory_bytes:
                blob = blob or Blob(self.folder)
                for part in kept:
                    blob.write(part)
                kept.clear()
        if blob is not None:
            blob.finish()
        return b"".join(kept), blob


def digest_of(path: Path) -> str:
    """The digest of a kept body, from the name of its file."""
    return path.name.partition("-")[2]


def blob_files(folder: Path) -> dict[int, Path]:
    """The bodies that were kept, by number, in order."""
    found = ((path.name.partition("-")[0], path) for path in folder.glob("*-*"))
    return dict(sorted((int(number), path) for number, path in found if number.isdecimal()))
