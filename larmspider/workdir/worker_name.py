"""The name of a worker among many, and so its directory: LARM_DIR/<name>.

    atlas-1, atlas-2      the names of workers on the machine atlas, with LARM_WORKER=""

A worker takes the directory of an earlier worker of this machine before it makes a new one, so that
a job and its resumption have the same page files and the same index.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.files import make_folder
from larmspider.workdir.directory import check_free, reserve
from larmspider.workdir.manifest import LOCK, MANIFEST
from larmspider.workdir.manifest_copy import read_or_copy

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_NAME = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,63}")
_HOST_LENGTH = 56
RESERVED = ("redis", "rules", "lock", "logs.idx", "web.token", "web.json", "web.sock", MANIFEST)
"""Other files in the LARM_DIR of many workers."""


def settle(settings: BaseSettings) -> None:
    """If many workers share the crawl, set LARM_WORKER to the name of this process: the given name,
    or the first free one. The worker's directory, if it exists, is locked from now on. Raises
    ConfigError."""
    if not options.many_workers(settings):
        return
    name, root = options.text(settings, "LARM_WORKER"), options.crawl_root(settings)
    if name:
        check_name(name)
        if (root / name).exists():
            reserve(root / name / LOCK)
        return
    options.writable_dir(root)
    for name in names(root):
        try:
            make_folder(root / name)
        except OSError as error:
            raise ConfigError(f"LARM_DIR={root} cannot be written: {error.strerror}") from None
        if reserve(root / name / LOCK):
            settings.set("LARM_WORKER", name, priority="cmdline")
            return


def check_name(name: str) -> None:
    """Raise ConfigError for an impossible name."""
    if not _NAME.fullmatch(name) or name in RESERVED:
        raise ConfigError(
            f"LARM_WORKER={name}: expected 1 to 64 of a-z, 0-9, '.', '_' and '-', not beginning"
            f" with '.', and not {', '.join(RESERVED)}"
        )


def free_names(root: Path, count: int) -> list[str]:
    """The first ``count`` names of this machine whose directories no process is writing to."""
    found: list[str] = []
    for name in names(root):
        if len(found) == count:
            break
        try:
            check_free(root / name / LOCK)
        except CrawlDirError:
            continue
        found.append(name)
    return found


def names(root: Path, host: str | None = None) -> Iterator[str]:
    """Names for workers of a machine: existing directories by number, then new names, endless."""
    host = host if host is not None else socket.gethostname()
    stem = re.sub(r"[^a-z0-9_-]+", "-", host.lower().partition(".")[0])[:_HOST_LENGTH] or "worker"
    numbered = re.compile(re.escape(stem) + r"-([1-9][0-9]{0,5})")
    present = [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []
    taken = {int(match[1]) for path in present if (match := numbered.fullmatch(path.name))}
    yield from (f"{stem}-{number}" for number in sorted(taken))
    number = 0
    while True:
        number += 1
        if number not in taken:
            yield f"{stem}-{number}"


def same_worker(directories: Iterable[Path]) -> list[tuple[Path, Path]]:
    """Directories of a worker, each with a copy of it or a link to it."""
    found: dict[tuple[str, object], list[Path]] = {}
    for path in directories:
        manifest = read_or_copy(path).manifest or {}
        name = (manifest.get("settings") or {}).get("LARM_WORKER") or path.resolve().name
        found.setdefault((name, manifest.get("began")), []).append(path)
    pairs = []
    for (name, _), paths in found.items():
        first, *copies = sorted(paths, key=lambda path: (path.name != name, path))
        pairs += [(first, copy) for copy in copies]
    return pairs
