"""Rights of ``file://``: of the file, and of every folder from the file system's root down to it.

    source = FileRights(FileRoots([b"/srv/share"]))
    source.access_of(Document("file:///srv/share/hr/plan.odt"))

The documents of a folder share a slot, as long as their files have the same rights.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from larmspider.access.lists import OPERATORS_ONLY, AccessList, UnreadableError
from larmspider.access.posix import list_of
from larmspider.access.rights import Checked, Document, Rights, mark_of
from larmspider.urls.file_urls import FileRoots, is_file, path_of, url_of

MAX_DEPTH = 200
"""Folders above a file."""


class FileRights:
    """Reads rights of files. During a pass `known` remembers the lists of folders."""

    def __init__(self, roots: FileRoots) -> None:
        self._roots = roots
        self._real = {root: os.path.realpath(root) for root in roots.roots}
        self.known: dict[bytes, AccessList] | None = None
        """None: each folder is read each time."""

    def access_of(self, document: Document) -> Rights | None:
        """Raises UnreadableError for rights that cannot be read."""
        name = document.name
        if not is_file(name):
            return None
        if name.endswith("/"):
            raise UnreadableError("a folder's list is for operators")
        real = self._place(path_of(name))
        try:
            above = [(url_of(one), self._folder(one)) for one in _above(real)]
            return Rights(list_of(real), files_of(name), above)
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from None

    def files(self, folder: str, names: list[str]) -> Iterator[Checked]:
        """The files of one folder."""
        try:
            place = self._place(path_of(folder))
        except UnreadableError as error:
            yield from (Checked(name, OPERATORS_ONLY, str(error)) for name in names)
            return
        for name in names:
            real = place + b"/" + path_of(name).rpartition(b"/")[2]
            try:
                rights = list_of(real)
                found = os.lstat(real)  # after the list: another file may take the place meanwhile
                yield Checked(name, rights, "", mark_of(found.st_mtime_ns, found.st_size))
            except (OSError, UnreadableError) as error:
                why = getattr(error, "strerror", None) or str(error)
                yield Checked(name, OPERATORS_ONLY, why)

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        """The folders to enter for the files in ``folder``, it included. Raises UnreadableError."""
        real = self._place(path_of(folder))
        try:
            return [(url_of(one), self._folder(one)) for one in _above(real.rstrip(b"/") + b"/")]
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from None

    def root_of(self, name: str) -> str | None:
        """The folder of LARM_FILE_ROOTS that a document lies in."""
        root = self._roots.of(path_of(name))
        return None if root is None else os.fsdecode(root)

    def is_mounted(self, root: str) -> bool:
        """Whether a root has entries: one without is a share that is not mounted."""
        try:
            with os.scandir(root) as entries:
                return next(entries, None) is not None
        except PermissionError:
            return True
        except OSError:
            return False

    def _place(self, path: bytes) -> bytes:
        """The place of a file without symbolic links above its root."""
        root = self._roots.of(path)
        if root is None or b"\0" in path or b".." in path.split(b"/"):
            raise UnreadableError("it is not below LARM_FILE_ROOTS")
        inside = path[len(root) :].lstrip(b"/")
        return os.path.normpath(self._real[root].rstrip(b"/") + b"/" + inside)

    def _folder(self, path: bytes) -> AccessList:
        if self.known is None:
            return list_of(path)
        found = self.known.get(path)
        if found is None:
            found = self.known[path] = list_of(path)
        return found


def files_of(name: str) -> str:
    """The name of the slot that the files of a folder have, unless a file has rights of its own."""
    return name.rpartition("/")[0] + "/*"


def _above(real: bytes) -> Iterator[bytes]:
    """The folders above a path, ``/`` first, each with a slash at its end."""
    parts = real.split(b"/")[1:-1]
    if len(parts) > MAX_DEPTH:
        raise UnreadableError(f"it lies deeper than {MAX_DEPTH} folders")
    yield b"/"
    for number in range(1, len(parts) + 1):
        yield b"/" + b"/".join(parts[:number]) + b"/"
