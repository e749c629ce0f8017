"""Scrapy's download handler for files: ``file:///srv/share/`` below LARM_FILE_ROOTS.

    200   a file, with Last-Modified and ETag; a folder, as a page that lists it, in parts of PART
    301   to the real place: a folder without its slash, a symbolic link inside of the roots
    304   an unchanged file (If-None-Match, If-Modified-Since)
    403   outside of the roots, no file or folder (a device, a pipe), or not allowed by the system
    404   no such file

Files are read in separate threads: a hanging file server delays neither the crawl nor its stop.
A missing or empty root is a share that is not mounted: the fetch fails as for a host that cannot be
reached, so that no page counts as gone. A folder lists its regular files and folders. A folder that
contains itself (a bind mount) is left out, so a walk always ends.
"""

from __future__ import annotations

import bisect
import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from larmspider.fetch import errors
from larmspider.fetch.limits import Limits
from larmspider.fetch.source_handler import (
    Answer,
    Found,
    Row,
    SourceHandler,
    answer_of,
    folder_page,
)
from larmspider.formatting import printable
from larmspider.urls.file_urls import FILES, FROM, FileRoots, path_of, url_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

PART = 10_000
"""Entries of a folder in one list; the next part begins after them."""
LARGEST = 5_000_000
"""Entries of a folder that are listed at all, by name; and names of large folders that are kept
between two parts, of all folders together."""
_CHUNK = 1 << 20
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)
_REPLACED = "another file has taken its place"
_HAS_PROC = os.path.exists("/proc/self/fd")


class _Folder(NamedTuple):
    """The remembered state of a folder: its identity and time, and its sorted names."""

    key: tuple[int, int, int]
    names: list[bytes]


class FileHandler(SourceHandler):
    """DOWNLOAD_HANDLERS["file"]."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.reader = FileReader(FileRoots.from_settings(crawler.settings), self.limits)

    def reader_of(self, url: str) -> FileReader:
        return self.reader


class FileReader:
    """Answers requests for files, in any thread."""

    def __init__(self, roots: FileRoots, limits: Limits) -> None:
        self.roots, self.limits = roots, limits
        self._folders: dict[bytes, _Folder] = {}
        self._keeping = threading.Lock()

    def read(self, url: str, asked: dict[str, str], blobs: Path | None = None) -> Answer:
        """``asked``: If-None-Match and If-Modified-Since, "" for none. ``blobs``: the folder for a
        body that is too large for memory."""
        path = path_of(url)
        root = self.roots.of(path)
        if root is None or b"\0" in path:
            return Answer(403 if root is None else 404)
        try:
            real = os.path.realpath(path, strict=True)
            place = self.roots.place_of(real)
            if place is None:
                return Answer(403)
            found = os.lstat(real)
            is_folder = stat.S_ISDIR(found.st_mode)
            if not is_folder and not stat.S_ISREG(found.st_mode):
                return Answer(403)
            target = place.rstrip(b"/") + b"/" if is_folder else place
            if path != target:
                return Answer(301, {"Location": url_of(target)})
            if is_folder:
                return self._list(real, found, place, url)
            return self._read(real, found, url, asked, blobs)
        except OSError as error:
            return self._failed(error, root)

    def _failed(self, error: OSError, root: bytes) -> Answer:
        """Raises Unmounted if the root is missing, and ConnectionLost for errors that say nothing
        about the file."""
        if error.errno in (errno.EACCES, errno.EPERM):
            return Answer(403)
        if error.errno not in _GONE:
            raise errors.ConnectionLost(error.strerror or str(error)) from None
        shown = printable(os.fsdecode(root).encode("utf-8", "replace").decode())
        try:
            with os.scandir(root) as entries:
                if next(entries, None) is None:
                    raise errors.Unmounted(f"{shown} is empty: is the share mounted?")
        except OSError as lost:
            raise errors.Unmounted(f"{shown}: {lost.strerror}: is the share mounted?") from None
        return Answer(404)

    def _read(
        self,
        real: bytes,
        found: os.stat_result,
        url: str,
        asked: dict[str, str],
        blobs: Path | None,
    ) -> Answer:
        file = Found(found.st_size, found.st_mtime_ns, lambda most: self._pieces(real, found, most))
        return answer_of(file, url, asked, self.limits, blobs)

    def _pieces(self, real: bytes, expected: os.stat_result, most: int) -> Iterator[bytes]:
        """The bytes of a regular file, at most one more than ``most``."""
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file:
            left = most + 1 if most else 1 << 62
            self._check(fd, real, expected)
            while left and (chunk := file.read(min(_CHUNK, left))):
                yield chunk
                left -= len(chunk)

    def _check(self, fd: int, real: bytes, expected: os.stat_result) -> None:
        """Check that the open file is the expected one, because a user who may write there may have
        put a link in its place. Raises OSError."""
        found = os.fstat(fd)
        opened = os.path.realpath(b"/proc/self/fd/%d" % fd) if _HAS_PROC else real
        is_other = (found.st_dev, found.st_ino) != (expected.st_dev, expected.st_ino)
        if is_other or self.roots.place_of(opened) is None:
            raise OSError(errno.ESTALE, _REPLACED)

    # folders

    def _list(self, real: bytes, looked: os.stat_result, place: bytes, url: str) -> Answer:
        query = url.partition("?")[2]
        if query and not query.startswith(FROM):
            return Answer(404)
        names = self._names(real, looked)
        if not names and place in self.roots.roots:
            # an answer of 200 would say that all is well here, and each file in turn that it is not
            raise errors.Unmounted(f"{_shown(place)} is empty: is the share mounted?")
        start = bisect.bisect_left(names, path_of(FILES + query.removeprefix(FROM))) if query else 0
        part = names[start : start + PART]
        begin = ""
        if len(names) > start + PART:
            begin = url_of(names[start + PART]).removeprefix(FILES)
        return folder_page(_shown(place), self._rows(real, place, part), begin)

    def _names(self, real: bytes, found: os.stat_result) -> list[bytes]:
        """The names in a folder, in order. A large one is read once for all of its parts."""
        key = found.st_dev, found.st_ino, found.st_mtime_ns
        known = self._folders.get(real)
        if known is not None and known.key == key:
            return known.names
        try:
            fd = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise OSError(errno.ESTALE, _REPLACED) from None
        try:
            self._check(fd, real, found)
            with os.scandir(fd) as entries:
                some = zip(range(LARGEST), entries)  # noqa: B905
                names = sorted(os.fsencode(entry.name) for _, entry in some)
        finally:
            os.close(fd)
        if len(names) > PART:
            with self._keeping:
                kept = self._folders
                kept.pop(real, None)
                while kept and sum(len(one.names) for one in kept.values()) + len(names) > LARGEST:
                    del kept[next(iter(kept))]
                kept[real] = _Folder(key, names)
        return names

    def _rows(self, real: bytes, place: bytes, names: list[bytes]) -> Iterator[Row]:
        above = _identities(real, self.roots)
        for name in names:
            row = None
            try:
                row = self._row(os.path.join(real, name), os.path.join(place, name), above)
            except OSError:
                continue  # gone meanwhile, or a link to nowhere
            if row is not None:
                target, when, size = row
                yield Row(url_of(target), _shown(name), when, size)

    def _row(
        self, real: bytes, place: bytes, above: set[tuple[int, int]]
    ) -> tuple[bytes, float, int] | None:
        """Path, time and size of an entry; None for an entry that is left out."""
        found = os.lstat(real)
        if stat.S_ISLNK(found.st_mode):
            real = os.path.realpath(real, strict=True)
            target = self.roots.place_of(real)
            if target is None:
                return None
            place, found = target, os.lstat(real)
            # a folder that is linked is listed where it lies
        if stat.S_ISDIR(found.st_mode):
            if (found.st_dev, found.st_ino) in above:
                return None
            return place + b"/", found.st_mtime, 0
        return (place, found.st_mtime, found.st_size) if stat.S_ISREG(found.st_mode) else None


def _identities(real: bytes, roots: FileRoots) -> set[tuple[int, int]]:
    """Device and inode of a folder and of its parents, up to its root."""
    found, path = set(), real
    while True:
        at = os.stat(path)
        found.add((at.st_dev, at.st_ino))
        parent = os.path.dirname(path)
        if parent == path or roots.place_of(parent) is None:
            return found
        path = parent


def _shown(name: bytes) -> str:
    return printable(name.decode("utf-8", "replace"))
