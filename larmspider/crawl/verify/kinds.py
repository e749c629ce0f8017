"""Entries of a crawl's directory that are not files, and should be: directories, pipes, dead links.

    for path, what in odd_entries(Path("crawl")): ...    # "is a directory, expected a file"

They are searched first, and never opened: a pipe would keep the command waiting.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from larmspider.errors import CrawlDirError
from larmspider.files import sync_folder

_SUFFIXES = frozenset(
    {".log", ".json", ".txt", ".pfl", ".zst", ".mdb", ".sqlite", ".cdxj", ".gz", ".spool", ".lock"}
)
_NAMES = frozenset({"lock", "ahead", "unreached"})
_OF_FILES = frozenset({"frontier", "sums"})
"""Folders that hold nothing but files."""
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_MOST = 1_000_000  # entries that are looked at; a blob has a file of its own
_AWAY = ".damaged"


def odd_entries(path: Path, *, deep: bool = True) -> Iterator[tuple[Path, str]]:
    """Yield each entry and its kind. A link to a file counts as a file. Without ``deep``, only the
    directory itself, its frontier and its index are searched."""
    folders, looked_at = [path], 0
    while folders:
        folder = folders.pop()
        for entry in sorted(folder.iterdir()):
            if _AWAY in entry.name:
                continue
            looked_at += 1
            if looked_at > _MOST:
                raise CrawlDirError(f"{path} has more than {_MOST:,} entries")
            if what := _odd(entry):
                yield entry, what
            elif entry.is_dir() and (deep or entry.name in ("frontier", "index")):
                folders.append(entry)


def _odd(path: Path) -> str:
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError as error:
        # a file that is gone since it was listed is no link
        is_link = path.is_symlink() and _is_ours(path)
        return f"is a link that leads nowhere ({error.strerror})" if is_link else ""
    if kind == stat.S_IFREG or not _is_ours(path):
        return ""
    return f"is {_KINDS.get(kind, 'something else')}, expected a file"


def _is_ours(path: Path) -> bool:
    folders = {one.name for one in path.parents}
    named = path.suffix in _SUFFIXES or path.name in _NAMES
    in_index = path.parent.name == "index" and path.name != "anchors"
    return named or in_index or path.parent.name in _OF_FILES or "blobs" in folders


def move_away(path: Path) -> Path:
    """Give an odd entry another name, so that a repair can make the file again."""
    number, to = 1, path.with_name(path.name + _AWAY)
    while os.path.lexists(to):
        number += 1
        to = path.with_name(f"{path.name}{_AWAY}{number}")
    path.rename(to)
    sync_folder(path.parent)
    return to
