"""Files that several processes meet at: locks, and files that are replaced in one step; how many
files a process may have open, and what a full disk is called.

with lock(Path("crawl/lock")):      # BlockingIOError while another process holds the lock
    replace_file(Path("crawl/crawl.json"), b"{}")
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

_LOOK_SECS = 0.005
"""Far longer than is_locked() has a lock."""
_MOST_FILES = 1 << 20
"""More than any crawl needs; some systems refuse more, or mean no limit at all by it."""

_FULL_BYTES = 1 << 20
"""A file system with less is full: what is written in one go does not fit."""


def lock(path: Path) -> IO[str]:
    """The lock file, made if need be, and locked until it is closed; a killed process frees it.

    Raises BlockingIOError where another process holds the lock, OSError where there can be none.
    """
    file = path.open("a")
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # perhaps by is_locked() of another process
            time.sleep(_LOOK_SECS)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock; tried for a moment. A file that is not there is free."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def replace_file(
    path: Path,
    content: bytes,
    *,
    draft: Path | None = None,
    private: bool = False,
    synced: bool = False,
) -> None:
    """Give a file new content in one step: whoever reads it, and a crash, finds the old or the new.

    ``draft`` is written first, by default ``path`` with ".new" appended. ``private``: only its
    owner may read the file. ``synced``: it is on the disk before its name is, for a machine may
    lose its power. Raises OSError, and then leaves no draft.
    """
    draft = draft or path.with_name(path.name + ".new")
    try:
        draft.unlink(missing_ok=True)  # of a process that was killed, perhaps with another mode
        mode = 0o600 if private else 0o666
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(file, "wb") as out:
            out.write(content)
            if synced:
                out.flush()
                os.fsync(out.fileno())
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def read_plain(path: Path) -> bytes:
    """The content of a file. Raises OSError, at once for a pipe or device: a pipe has its content
    once and may never have any; /dev/null counts as an empty file."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode) or found.st_rdev == Path(os.devnull).stat().st_rdev:
            return opened.read()
    kind = "a pipe" if stat.S_ISFIFO(found.st_mode) else "no regular file"
    raise OSError(errno.EINVAL, f"it is {kind}")


def in_words(error: Exception, path: Path) -> str:
    """An error of LMDB that has written below ``path``; a write that a full disk cut short is EIO
    there (mdb.c)."""
    if str(error).endswith(os.strerror(errno.EIO)):
        with suppress(OSError):
            free = shutil.disk_usage(path).free
            if free < _FULL_BYTES:
                return f"{os.strerror(errno.ENOSPC)} ({free:,} bytes are free)"
    return str(error)


def raise_open_files() -> int:
    """Raise the soft limit of open files, connections among them, to the hard one; returns the
    limit that holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):
        return soft
    return most
