"""Locks on directories: one process at a time writes there, and a killed one frees it.

    with_lock = locked(Path("crawl/lock"))      # CrawlDirError while another process has it
    reserve(Path("crawl/atlas-1/lock"))         # taken now, handed over by the next locked()

A worker that looks for a free directory has to keep it from then on, and claims it later.
"""

from __future__ import annotations

import fcntl
import time
from pathlib import Path
from typing import IO

from larmspider.errors import ConfigError, CrawlDirError

_LOOK_SECS = 0.005
"""Far more than a look at the lock takes."""

_reserved: dict[Path, IO[str]] = {}


def locked(path: Path) -> IO[str]:
    """The lock file, locked until it is closed. Raises CrawlDirError where another process has
    the lock, ConfigError where there can be none."""
    if (held := _reserved.pop(path, None)) is not None:
        return held
    try:
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # it may be one who only looks (condition.is_held)
            time.sleep(_LOOK_SECS)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise CrawlDirError(
            f"LARM_DIR={path.parent} is in use: another crawl writes there"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be locked: {error.strerror or error}") from None
    return file


def reserve(path: Path) -> bool:
    """Lock now for the next locked() of this process; False where another process has it."""
    if path not in _reserved:
        try:
            _reserved[path] = locked(path)
        except CrawlDirError:
            return False
    return True


def check_free(path: Path) -> None:
    """Raise as locked() would; a lock that does not exist yet is free."""
    if path not in _reserved and path.exists():
        locked(path).close()
