"""Finds the restricted hosts of a crawl, whose pages not everybody may see.

    restricted_hosts([Path("crawl")], settings)     # ("https://*.hr.example", "file://")

A host is restricted if any run of the crawl sent it credentials, cookies, headers or a client
certificate, according to crawl.json of the crawl and of each worker, or if the sites file of the
settings protects it. `FILES` stands for pages of file URLs. A host stays restricted until the crawl
is deleted: crawl.json keeps the list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy.settings import SETTINGS_PRIORITIES

from larmspider import options
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.fetch.sites.lookup import protected_in
from larmspider.index.schema import FILES
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.schemes import is_source
from larmspider.workdir.manifest import MANIFEST, NO_WORKERS, is_shared, parsed_manifest

if TYPE_CHECKING:
    from larmspider.options import Settings

logger = logging.getLogger(__name__)

EVERY_HOST = "*"
"""The pattern of all hosts, for a crawl whose restricted hosts are unknown."""
_CREDENTIALS = "credentials"
"""The key of crawl.json that has the patterns of restricted hosts."""
_PAGES = ("store.log", "store.log.zst", "index/meta.json")
"""Files that only a directory with pages has."""

_last: dict[Path, tuple[str, ...]] = {}
"""The patterns last read from each sites file: a file that is moved away opens no host."""

Place: TypeAlias = Path | Mapping[str, Any]
"""A crawl's directory, or the content of a crawl.json."""


def restricted_hosts(places: Iterable[Place], settings: Settings | None = None) -> tuple[str, ...]:
    """Patterns of the restricted hosts, sorted, and `FILES` where a crawl has file URLs as seeds.

    A directory of many workers counts with each worker's directory, and a worker's directory with
    the directories of its crawl. ``settings`` name the sites file. Raises CrawlDirError for a
    crawl.json that cannot be read or that is missing beside pages, and ConfigError for a sites file
    that cannot be read: the restricted hosts are then unknown.
    """
    found = set() if settings is None else {*_by_sites_file(settings)}
    for place in places:
        for manifest in [place] if isinstance(place, Mapping) else _manifests(place):
            found.update(_by_manifest(manifest))
    return tuple(sorted(found))


def restricted_of_run(settings: Settings) -> tuple[str, ...]:
    """`restricted_hosts` of the crawl that this process has claimed. Under a scheduler other than
    ours there is no crawl.json; then by the sites file."""
    directory = options.larm_dir(settings)
    return restricted_hosts([directory] if (directory / MANIFEST).exists() else [], settings)


def restricted_or_all(places: Iterable[Place], settings: Settings | None = None) -> tuple[str, ...]:
    """The result of `restricted_hosts`. If the hosts cannot be known, all hosts and `FILES`, and
    the log says so."""
    try:
        return restricted_hosts(places, settings)
    except (ConfigError, CrawlDirError) as error:
        _say_once(str(error))
        return (EVERY_HOST, FILES)


def holds_credentials(places: Iterable[Place], settings: Settings | None = None) -> bool:
    """Whether some run of the crawl had credentials; True if that cannot be known."""
    return any(host != FILES for host in restricted_or_all(places, settings))


def note_restricted(manifest: dict[str, Any], hosts: Iterable[str]) -> None:
    """Add these hosts to the restricted ones of a crawl.json."""
    known = {*hosts, *_by_manifest({_CREDENTIALS: manifest.get(_CREDENTIALS)})} - {FILES}
    if known:
        manifest[_CREDENTIALS] = sorted(known)


def restricted_by_moves(restricted: Iterable[str], moves: Iterable[tuple[str, str]]) -> set[str]:
    """Hosts that are not restricted yet, and to which restricted hosts have moved, over any number
    of moves. ``moves`` are pairs of host names, old and new. A new host must not be less restricted
    than the old one.

    >>> sorted(restricted_by_moves(["hr"], [("hr", "people"), ("people", "staff"), ("wiki", "x")]))
    ['people', 'staff']
    """
    patterns = [_any_scheme(HostPattern.parse(one)) for one in restricted if one != FILES]
    moves = list(moves)
    found: set[str] = set()

    def is_restricted(host: str) -> bool:
        return host in found or any(one.matches("", host, 0) for one in patterns)

    while new := {to for host, to in moves if is_restricted(host) and not is_restricted(to)}:
        found |= new
    return found


def _any_scheme(pattern: HostPattern) -> HostPattern:
    return replace(pattern, scheme=None, port=0)


def _by_manifest(manifest: Mapping[str, Any]) -> Iterator[str]:
    kept = manifest.get(_CREDENTIALS)
    if isinstance(kept, list):
        try:
            yield from (host if host == FILES else str(HostPattern.parse(host)) for host in kept)
        except (ConfigError, TypeError) as error:
            raise CrawlDirError(f"{MANIFEST}: {_CREDENTIALS}: {error}") from None
    elif kept is not None:
        raise CrawlDirError(f"{MANIFEST}: {_CREDENTIALS}: expected a list of hosts")
    seeds = manifest.get("seeds")
    if any(is_source(str(seed)) for seed in (seeds if isinstance(seeds, list) else ())):
        yield FILES


def _manifests(directory: Path) -> Iterator[Mapping[str, Any]]:
    """crawl.json of a directory, and of all others that belong to the same crawl."""
    own = _read_beside_pages(directory)
    yield own
    root = directory
    if not is_shared(own) and is_shared(of_all := _read(directory.parent) or {}):
        root = directory.parent
        yield of_all
    if root != directory or is_shared(own):
        others = (folder for folder in _folders(root) if folder != directory)
        yield from map(_read_beside_pages, others)


def _folders(root: Path) -> list[Path]:
    """All possible workers' folders. Raises CrawlDirError if they cannot be listed: glob() would
    leave out unreadable ones."""
    try:
        return [path for path in root.iterdir() if path.name != NO_WORKERS]
    except OSError as error:
        raise CrawlDirError(f"{root} cannot be listed: {error}") from None


def _read_beside_pages(directory: Path) -> dict[str, Any]:
    """{} for a folder without crawl.json. Raises CrawlDirError if the folder holds pages: then it
    has lost its crawl.json."""
    found = _read(directory)
    if found is None and any((directory / name).exists() for name in _PAGES):
        raise CrawlDirError(f"{directory} holds pages and has no {MANIFEST}")
    return found or {}


def _read(directory: Path) -> dict[str, Any] | None:
    """The content of crawl.json; None if it is missing."""
    file = directory / MANIFEST
    try:
        seen = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CrawlDirError(f"{file} cannot be read: {error}") from None
    return _parsed(file, (seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size))


@lru_cache(64)
def _parsed(file: Path, _identity: object) -> dict[str, Any]:
    try:
        return parsed_manifest(file)
    except FileNotFoundError as error:  # it has gone since
        raise CrawlDirError(f"{file} cannot be read: {error}") from None


def _by_sites_file(settings: Settings) -> tuple[str, ...]:
    name = options.text(settings, "LARM_SITES_FILE")
    if not name:
        return ()
    path = Path(name).expanduser()
    try:
        seen = path.stat()
    except FileNotFoundError:
        if not _is_given(settings):  # crawl.json may name a file of another machine
            return _last.get(path.absolute(), ())
        raise ConfigError(f"{path}: No such file; expected a readable TOML file") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}; expected a readable TOML file") from None
    found = _protected(path, (seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size))
    _last[path.absolute()] = found
    return found


def _is_given(settings: Settings) -> bool:
    """Whether the command line names the sites file."""
    given = settings.getpriority("LARM_SITES_FILE")
    return given is not None and given >= SETTINGS_PRIORITIES["cmdline"]


@lru_cache(16)
def _protected(path: Path, _identity: object) -> tuple[str, ...]:
    return tuple(protected_in(path))


@lru_cache(64)
def _say_once(error: str) -> None:
    logger.warning(
        "%s. Until that is repaired, all hosts count as restricted: only users who may see all"
        " pages find them",
        error,
    )
