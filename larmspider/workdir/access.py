"""File modes of a crawl's directory, and whether its pages need the token.

A crawl whose sites file holds credentials stores pages that not everybody may see. Its LARM_DIR is
therefore 0700, all files in it 0600, and its pages need the token; LARM_DIR_MODE sets another mode.

    keep_private(settings)         # before anything is made: the umask of this process
    follow_mode(manifest, path)    # in a command that writes an index or a report of the crawl
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.workdir.directory import asked_fresh
from larmspider.workdir.restricted import Place, holds_credentials

if TYPE_CHECKING:
    from larmspider.options import Settings

logger = logging.getLogger(__name__)

PRIVATE = 0o700
_MAX_NAMED = 5
_MAX_LOOKED_AT = 10_000
"""Files of a directory whose modes are looked at."""
_SHARES = (0o0, 0o5, 0o7)
"""Rights of the group, or of everybody: none, read, or also write."""


def mode_of(settings: Settings) -> int | None:
    """LARM_DIR_MODE as a number; None if it is empty. Raises ConfigError."""
    value = settings.get("LARM_DIR_MODE")
    if value is None or value == "":
        return None
    try:
        mode = value if isinstance(value, int) else int(str(value), 8)
    except ValueError:
        mode = -1
    known = 0 <= mode <= 0o777 and mode >> 6 == 0o7
    if not known or {mode >> 3 & 7, mode & 7} - set(_SHARES):
        shown = f"{value:#o}" if isinstance(value, int) else value
        raise ConfigError(
            f"LARM_DIR_MODE={shown}: expected an octal mode of 7, 5 and 0 such as 0700 (its user"
            " alone), 0750 (a group may read), 0770 or 0755"
        )
    return mode


def keep_private(settings: Settings) -> None:
    """Set the umask of this process by LARM_DIR_MODE. Without it, a crawl with credentials is for
    its user alone. Logs a warning with the names of existing files with a wider mode. Raises
    ConfigError."""
    mode = mode_of(settings)
    root = options.crawl_root(settings)
    private = holds_credentials([] if asked_fresh(settings) else [root], settings)
    if mode is None and not private:
        return
    mode = PRIVATE if mode is None else mode
    os.umask(0o777 & ~mode)
    _warn_of_wider([*_in(root), *_feeds(settings)], root, mode)


def follow_mode(manifest: Mapping[str, Any], *places: Place) -> None:
    """Set the umask of this process to the umask of the crawl that wrote ``manifest``, or of any
    part of the crawl in further ``places``."""
    value = (manifest.get("settings") or {}).get("LARM_DIR_MODE")
    if value:
        os.umask(0o777 & ~(value if isinstance(value, int) else int(value, 8)))
    elif holds_credentials([manifest, *places]):
        os.umask(0o777 & ~PRIVATE)


def _in(root: Path) -> Iterator[Path]:
    """The directory and its content."""
    try:
        if not root.is_dir():
            return
    except OSError:  # such as a name that is too long: the process that writes there reports it
        return
    yield root
    looked_at = 0
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            yield Path(folder, name)
        looked_at += len(folders) + len(files)
        if looked_at > _MAX_LOOKED_AT:
            return


def _feeds(settings: Settings) -> Iterator[Path]:
    """The files of FEEDS whose names are known already."""
    feeds = settings.get("FEEDS")
    for uri in feeds if isinstance(feeds, Mapping) else ():
        parts = urlsplit(str(uri))
        if parts.scheme in ("", "file") and "%(" not in str(uri):
            yield Path(unquote(parts.path) if parts.scheme else str(uri))


def _warn_of_wider(paths: list[Path], root: Path, mode: int) -> None:
    wider = [f"{path} ({found:04o})" for path in paths if (found := _wider(path, mode)) is not None]
    if wider:
        more = f" and {len(wider) - _MAX_NAMED:,} more" if len(wider) > _MAX_NAMED else ""
        logger.warning(
            "The modes of %s%s let in more than %04o does, by LARM_DIR_MODE or as the sites file"
            " holds credentials: chmod -R %s %s, or set LARM_DIR_MODE if that is meant",
            ", ".join(wider[:_MAX_NAMED]),
            more,
            mode,
            _chmod(mode),
            root,
        )


def _chmod(mode: int) -> str:
    """The argument of chmod that removes the rights that ``mode`` does not allow."""
    words = {0: "", 2: "w", 7: "rwx"}
    group, others = (words[7 & ~(mode >> shift)] for shift in (3, 0))
    if group == others:
        return f"go-{group}"
    return ",".join(f"{who}-{word}" for who, word in (("g", group), ("o", others)) if word)


def _wider(path: Path, mode: int) -> int | None:
    """The mode of a file or directory if it allows other users more than ``mode`` does."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return None
    found = stat.S_IMODE(status.st_mode) & 0o777
    return found if found & 0o077 & ~mode else None
