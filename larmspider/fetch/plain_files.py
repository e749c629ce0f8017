"""Plain files of an untrusted folder: no link in it leads out of it.

    folder = PlainFolder(Path("mirror/"))
    for found in folder.walk(b"wiki.example"):
        found.path, found.why             # b"wiki.example/a.html", ""
    with folder.open(b"wiki.example/a.html", found.stat) as file: ...

Each folder on the way is opened by its name inside its parent folder, and no symbolic link is
followed. If a file is replaced between the check and open(), open() raises NotPlainError. The
folder itself may be named by a link: the operator gave it.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

MAX_DEPTH = 200
"""Nested folders; deeper ones are refused."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: otherwise opening a pipe would hang."""
_EFFECTIVE = os.access in os.supports_effective_ids
_KINDS = (
    (stat.S_ISLNK, "it is a symbolic link"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISBLK, "it is a device"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISDIR, "it is a folder"),
)
LINKED = "it has another name outside of the folder (a hard link)"
CHANGED = "it has changed since it was looked at"


class NotPlainError(Exception):
    """An entry is not a plain file of its folder; the message says why."""


class Found(NamedTuple):
    """A file by its path inside of the folder, or why something there is refused."""

    path: bytes
    stat: os.stat_result | None = None
    why: str = ""


class PlainFolder:
    """The folder ``path``, kept open. Its files are read without following links. Raises
    OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, _FOLDER)
        weakref.finalize(self, os.close, self._fd)

    def names(self) -> list[bytes]:
        """Names at the top of the folder, in order."""
        return _names(self._fd)

    def kind(self, path: bytes) -> str:
        """Why ``path`` is not a plain file; "" if it is one. Raises OSError, NotPlainError."""
        folder, name = self._parent(path)
        try:
            return why_not_plain(os.stat(name, dir_fd=folder, follow_symlinks=False))
        finally:
            os.close(folder)

    def walk(self, top: bytes) -> Iterator[Found]:
        """All entries below ``top``, in order, folders before their contents; files with several
        names last."""
        linked: dict[tuple[int, int], list[Found]] = {}
        waiting = [top]
        while waiting:
            path = waiting.pop()
            if path.count(b"/") >= MAX_DEPTH:
                yield Found(path, why=f"it lies more than {MAX_DEPTH} folders deep")
                continue
            try:
                folder = self._folder(path)
            except (OSError, NotPlainError) as error:
                yield Found(path, why=in_words(error))
                continue
            try:
                inside = []
                for name in _names(folder):
                    found = _found(folder, path + b"/" + name, name)
                    if found.stat is not None and stat.S_ISDIR(found.stat.st_mode):
                        inside.append(found.path)
                    elif found.stat is not None and found.stat.st_nlink > 1:
                        linked.setdefault(_identity(found.stat), []).append(found)
                    else:
                        yield found
            finally:
                os.close(folder)
            waiting += reversed(inside)
        for same in linked.values():
            for found in same:
                names = found.stat.st_nlink if found.stat is not None else 0
                yield found if names <= len(same) else Found(found.path, why=LINKED)

    def open(self, path: bytes, expected: os.stat_result | None = None) -> IO[bytes]:
        """Open a plain file: the file of ``expected`` if given, else a file with a single name.
        Raises OSError, NotPlainError."""
        folder, name = self._parent(path)
        try:
            looked = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if why := why_not_plain(looked):
                raise NotPlainError(why)  # opening a device may have effects
            file = os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb", buffering=0)
        finally:
            os.close(folder)
        found = os.fstat(file.fileno())
        why = why_not_plain(found)
        if not why and not is_same(found, expected or looked):
            why = CHANGED
        if not why and expected is None and found.st_nlink > 1:
            why = LINKED
        if why:
            file.close()
            raise NotPlainError(why)
        return file

    def _parent(self, path: bytes) -> tuple[int, bytes]:
        """The open folder that ``path`` lies in, and its name there."""
        above, _, name = path.rpartition(b"/")
        if name in (b"", b".", b"..") or b"\0" in path:
            raise NotPlainError("its name leads out of the folder")
        return self._folder(above), name

    def _folder(self, path: bytes) -> int:
        """Opened name by name."""
        folder = os.dup(self._fd)
        for name in path.split(b"/") if path else ():
            if name in (b"", b".", b"..") or b"\0" in name:
                os.close(folder)
                raise NotPlainError("its name leads out of the folder")
            try:
                inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(folder, name):
                    raise NotPlainError(_KINDS[0][1]) from None
                raise
            finally:
                os.close(folder)
            folder = inner
        return folder


def plain_file(path: Path) -> IO[bytes]:
    """A file that the operator names, by a link or not. Raises OSError, NotPlainError."""
    if why := why_not_plain(path.stat()):
        raise NotPlainError(why)
    file = os.fdopen(os.open(path, _FILE & ~os.O_NOFOLLOW), "rb")
    if why := why_not_plain(os.fstat(file.fileno())):
        file.close()
        raise NotPlainError(why)
    return file


def why_not_plain(found: os.stat_result) -> str:
    """Why an entry is not a plain file; "" if it is one."""
    if stat.S_ISREG(found.st_mode):
        return ""
    return next((why for is_kind, why in _KINDS if is_kind(found.st_mode)), "it is not a file")


def is_same(found: os.stat_result, expected: os.stat_result) -> bool:
    """Whether both are the same file, and it was not written to in between."""
    return (*_identity(found), found.st_size, found.st_mtime_ns) == (
        *_identity(expected), expected.st_size, expected.st_mtime_ns,
    )  # fmt: skip


def in_words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _found(folder: int, path: bytes, name: bytes) -> Found:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return Found(path, found)
        if why := why_not_plain(found):
            return Found(path, why=why)
        if not os.access(name, os.R_OK, dir_fd=folder, effective_ids=_EFFECTIVE):
            return Found(path, why=os.strerror(errno.EACCES))
    except OSError as error:
        return Found(path, why=in_words(error))
    return Found(path, found)


def _names(folder: int) -> list[bytes]:
    with os.scandir(folder) as entries:
        return sorted(os.fsencode(entry.name) for entry in entries)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _is_link(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
