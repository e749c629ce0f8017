"""Files shared by processes: locks, and replacement in one step; syncing against power loss; the
limit of open files; the names of a full disk.

with lock(Path("crawl/lock")):      # BlockingIOError while another process holds the lock
    replace_file(Path("crawl/crawl.json"), b"{}")
"""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import resource
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

_SOCKET_NAME = 100
"""Bytes; sockaddr_un of Linux has 108, of others 104."""
_LOOK_SECS = (0.005, 0.02, 0.05)
"""Pauses before a lock is tried again. is_locked() has it for less, but on a busy machine."""
_MOST_FILES = 1 << 20
"""More than any crawl needs; some systems refuse more, or mean no limit at all by it."""

_FULL_BYTES = 1 << 20
"""Free bytes below which a file system counts as full: one write does not fit."""


def lock(path: Path) -> IO[str]:
    """The lock file, made if missing, and locked until it is closed; a killed process frees it.

    Raises BlockingIOError if another process holds the lock, OSError if there can be none.
    """
    file = path.open("a")
    try:
        for pause in _LOOK_SECS:
            with suppress(BlockingIOError):  # perhaps by is_locked() of another process
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            time.sleep(pause)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock. The lock is taken for a moment to find out. A missing file
    is free."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # no waiting for the writer of a pipe
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
    synced: bool = True,
) -> None:
    """Give a file new content in one step: readers, a crash and a power loss find the old or the
    new.

    ``draft`` is written first, by default ``path`` with ".new" appended. ``private``: only its
    owner may read the file. ``synced``: content and name are on the disk when this returns; False
    is for files whose loss changes nothing that is stored. Raises OSError, and then leaves no
    draft.
    """
    draft = draft or path.with_name(path.name + ".new")
    try:
        draft.unlink(missing_ok=True)  # of a killed process, perhaps with another mode
        mode = 0o600 if private else 0o666
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(file, "wb") as out:
            out.write(content)
            if synced:
                out.flush()
                os.fsync(out.fileno())
        draft.replace(path)
        if synced:
            sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if error.errno is not None and error.filename is None:  # a write does not say to which file
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise


@contextmanager
def socket_path(path: Path) -> Iterator[str]:
    """A name for a Unix socket that the system takes, however long ``path`` is. Raises OSError."""
    if len(os.fsencode(path)) <= _SOCKET_NAME:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk: a file that is new there, or was renamed,
    is gone after a power loss without this. Raises OSError."""
    sync_file(path)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, durably; nothing if it exists. Raises OSError."""
    missing = []
    for folder in (path, *path.parents):
        if folder.is_dir():
            break
        missing.append(folder)
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        with suppress(PermissionError):  # a parent that this user may enter, and not read
            sync_folder(folder.parent)


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


def why_no_lock(folder: Path) -> str | None:
    """Why no lock file can be made in a folder, in words; None if it can. LMDB and Tantivy need
    one to read."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    try:
        readonly = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError as error:
        return os.strerror(error.errno or errno.EACCES)
    return os.strerror(errno.EROFS if readonly else errno.EACCES)


def in_words(error: Exception, path: Path) -> str:
    """An error of LMDB, SQLite or Tantivy in words; the library has written to ``path`` or below
    it. These libraries report a short write as an input/output error. Here the cause is named: a
    full disk, a quota, a limit of file sizes."""
    text = str(error) or repr(error)
    if not any(hidden in text for hidden in _HIDDEN):
        return text
    with suppress(OSError):
        free = shutil.disk_usage(path).free
        if free < _FULL_BYTES:
            return f"{os.strerror(errno.ENOSPC)} ({free:,} bytes are free)"
    cause = why_unwritable(path)
    return text if cause is None else f"{cause} ({text})"


_HIDDEN = (
    os.strerror(errno.EIO),  # LMDB, of a write that was cut short (mdb.c)
    "disk I/O error",  # SQLite, of all except ENOSPC
    "database or disk is full",
    "An index writer was killed",  # by Tantivy, whose thread has ended
    "Failed to open file for write",
)


def why_unwritable(place: Path) -> str | None:
    """Why the large files of a folder cannot grow now, in words; None if they can. The test uses a
    file of its own, as long as the folder's largest file. ``place`` may be a file: then only this
    file and files whose names begin with its name count."""
    folder, files = place, place.rglob("*")
    if not place.is_dir():
        folder, files = place.parent, place.parent.glob(f"{glob.escape(place.name)}*")
    try:
        sizes = (path.stat().st_size for path in files if path.is_file())
        start = max(sizes, default=0)
        with TemporaryFile(dir=folder, buffering=0) as probe:  # unnamed: others list the folder
            for offset in (start, 0):
                _write_at(probe.fileno(), offset)
            os.fsync(probe.fileno())
    except OSError as error:
        if error.errno not in _CAUSES:
            return None
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        said = os.strerror(error.errno)
        return f"{said}: RLIMIT_FSIZE is {limit:,}" if error.errno == errno.EFBIG else said
    return None


def how_to_make_room(text: str) -> str:
    """The advice for a refused write, by the text of its error; "" for other errors."""
    if os.strerror(errno.ENOSPC) in text or os.strerror(errno.EDQUOT) in text:
        return "make room"
    return "raise the limit (ulimit -f)" if os.strerror(errno.EFBIG) in text else ""


def again_with_room(text: str) -> str:
    """The advice for a command that a refused write ended before it began; "" for other errors."""
    room = how_to_make_room(text)
    return f"{room}, and run the same command again" if room else ""


_CAUSES = frozenset({errno.EFBIG, errno.EDQUOT, errno.ENOSPC, errno.EROFS})


def _write_at(file: int, offset: int) -> None:
    left = memoryview(bytes(_FULL_BYTES))
    while left:
        done = os.pwrite(file, left, offset)
        left, offset = left[done:], offset + done


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
