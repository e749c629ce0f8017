"""The manifest of a crawl, crawl.json: seeds, settings, identity, which component owns which file.

Its identity decides whether a command may continue the crawl in a directory; ``scrapy explain`` and
other commands read the crawl's settings from it. A component names the files that it owns, as names
or patterns, and ``-a fresh=yes`` deletes these files and no others:

    class TitleLog(Store):
        files = ("titles.log", "titles_*.idx")
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from larmspider import __version__, options, plugin
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


MANIFEST = "crawl.json"
"""The file that makes a directory a crawl's."""
NO_WORKERS = "lost+found"
"""A folder of root at the top of a file system, beside workers' directories."""
LOCK = "lock"
WORKER_LOG = "worker.log"
"""The output of a worker that ``scrapy workers`` has started."""
_KEPT = (MANIFEST, LOCK)
_LISTS = ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "EXTENSIONS")
FORMAT = 2
"""Format of the directory and its text files. Raise it with every change after which this
larmspider cannot continue, or read, the files of an earlier release (docs/internals/formats.md)."""
SHARED = "workers"
"""The key that a manifest has where each worker of the crawl has a directory in LARM_DIR."""

CUT_BACK = "cut_back"
"""The key that a manifest has once the stores have gone back to a checkpoint. The index did not: it
may have pages that another worker has stored since."""

CHECKSUMS = "checksums"
"""Key of crawl.json: the files with checksums that the last run has left (checksums.py)."""

REJUDGE = "rejudge"
"""The key that a manifest has while links.log holds links that other seeds, scope or filters have
judged: the links are judged again."""

MERGED = "merged"
"""The key that the manifest of a directory has which `scrapy merge` has made: of these ones."""

RULES = {
    "LARM_HOST_RESOLVER_FILE": "hosts.properties",
    "LARM_KNOWN_PATHS_FILE": "known_paths.txt",
}
"""Settings that name a file of rules, and the name of its copy in RULES_DIR."""
RULES_DIR = "rules"
EXACT_FORM = (
    "LARM_CANONICAL_RULES", "LARM_LOWERCASE_PATH", "LARM_BARE_PERCENT",
    "LARM_LOWERCASE_PATH_EXCEPTIONS", "LARM_SESSION_IDS",
)  # fmt: skip
"""Settings that make the exact form of a URL, and so its key in the frontier."""

_DECIDE_NOTHING = (
    "larmspider.middlewares.copies.CopiesMiddleware",
    "larmspider.middlewares.language.LanguageFilter",  # its setting decides
    "larmspider.middlewares.removed.RemovedFilter",  # the crawl's own file
    "larmspider.middlewares.revisits.RevisitsMiddleware",
    "larmspider.middlewares.sources.SourcesMiddleware",
)

_EXPLAINING = (
    "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN", "DOWNLOAD_DELAY", "DOWNLOAD_MAXSIZE",
    "DOWNLOAD_TIMEOUT", "DEPTH_LIMIT", "ROBOTSTXT_OBEY", "ROBOTSTXT_USER_AGENT", "URLLENGTH_LIMIT",
    "USER_AGENT",
)  # fmt: skip


_DECIDE = (
    "LARM_RESTRICT", "LARM_EXCLUDE",
    "LARM_HOST_RESOLVER_FILE", "LARM_KNOWN_PATHS_FILE", "LARM_CANONICAL_RULES",
    "LARM_LOWERCASE_PATH", "LARM_BARE_PERCENT", "LARM_LOWERCASE_PATH_EXCEPTIONS",
    "LARM_SESSION_IDS", "LARM_PATH_DEPTH_LIMIT", "LARM_PATH_REPEATS_LIMIT",
    "LARM_CALENDAR_HORIZON_MONTHS", "LARM_MAX_REDIRECTS",
    "URLLENGTH_LIMIT", "DEPTH_LIMIT", "ROBOTSTXT_OBEY", "LARM_FOLLOW_LANGUAGES",
)  # fmt: skip
"""Settings that decide which URLs a crawl takes: a part of its identity."""


def manifest_of(crawler: Crawler) -> dict[str, Any]:
    """The manifest of a crawl that begins, without its restricted hosts (restricted.py)."""
    spider = crawler.spider
    assert spider is not None
    return {
        "format": FORMAT,
        "larmspider": __version__,
        "spider": spider.name,
        "seeds": _seeds(spider),
        "identity": identity_of(crawler),
        "settings": _explaining_settings(crawler.settings),
        "stores": files_of_stores(crawler.settings),
        "files": files_of_others(crawler.settings),
        "began": now(),
    }


def shared_manifest_of(crawler: Crawler) -> dict[str, Any]:
    """The manifest for the directory in which many workers have theirs."""
    own = manifest_of(crawler)
    del own["stores"], own["files"], own["settings"]["LARM_WORKER"]
    return own | {SHARED: {"redis": _redis_of(crawler.settings)}}


def _redis_of(settings: BaseSettings) -> str:
    """The address of Redis, without user, password and options."""
    url = options.text(settings, "REDIS_URL")
    if not url:
        return f"{options.text(settings, 'REDIS_HOST')}:{settings.get('REDIS_PORT') or 6379}"
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def parsed_manifest(file: Path) -> dict[str, Any]:
    """The content of a crawl.json. Raises FileNotFoundError, CrawlDirError if it cannot be read or
    is not a manifest."""
    try:
        manifest = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise
    except RecursionError:
        raise CrawlDirError(f"{file} cannot be read: too many levels of JSON") from None
    except (OSError, ValueError) as error:
        raise CrawlDirError(f"{file} cannot be read: {error}") from None
    if not isinstance(manifest, dict):
        raise CrawlDirError(f"{file} cannot be read: expected an object of JSON")
    if not isinstance(manifest.get("settings", {}), dict):
        raise CrawlDirError(f"{file} cannot be read: settings: expected an object of JSON")
    return manifest


def is_shared(manifest: dict[str, Any]) -> bool:
    """Whether a manifest is for a directory in which many workers have theirs."""
    return SHARED in manifest


def stores_in(manifest: dict[str, Any]) -> dict[str, list[str]]:
    """The files that each store owns, by its import path."""
    stores = manifest.get("stores")
    return stores if isinstance(stores, dict) else {}


def files_in(manifest: dict[str, Any]) -> list[str]:
    """The files that any component owns."""
    of_stores = [name for names in stores_in(manifest).values() for name in names]
    return [str(name) for name in (*of_stores, *(manifest.get("files") or ()))]


def identity_of(crawler: Crawler) -> dict[str, Any]:
    """The settings that identify this crawl, in the order in which differences are reported."""
    settings = crawler.settings
    identity: dict[str, Any] = {
        "seeds": sorted(_seeds(crawler.spider)),
        "filters": filters_of(settings),
    }
    for name in _DECIDE:
        value = options.typed(settings, name)
        if name.endswith("_FILE") and value:
            value = _digest(Path(value).expanduser())
        identity[name] = value
    return identity


def filters_of(settings: BaseSettings) -> list[str]:
    """The import paths of the active spider middlewares, without middlewares that decide
    nothing."""
    listed = settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES")
    paths = [_path_of(component) for component, order in listed.items() if order is not None]
    return sorted(path for path in paths if path not in _DECIDE_NOTHING)


def class_name(path: str) -> str:
    """The last part of an import path: a later version may move a class, but keeps its name.

    >>> class_name("larmspider.middlewares.visited.SeenFilter")
    'SeenFilter'
    """
    return path.rpartition(".")[2]


def differing(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first part in which two identities differ, filters by class name; "": one crawl."""
    return next(
        (part for part in (*now, *was) if _comparable(was, part) != _comparable(now, part)), ""
    )


def _comparable(identity: Mapping[str, Any], part: str) -> Any:
    value = identity.get(part)
    if part == "filters" and isinstance(value, list):
        return sorted(map(class_name, value))
    return None if value == [] else value  # a setting that came later


def shortened(value: Any) -> str:
    """A value of an identity as JSON of at most 80 characters, for a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _seeds(spider: Spider | None) -> list[str]:
    """The start URLs, without passwords. Spiders of users also count."""
    return [without_userinfo(url) for url in getattr(spider, "start_urls", ())]


def _digest(path: Path) -> str:
    """A hash of a file's content: rules that were edited are other rules."""
    try:
        return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError:
        return "unreadable"


def _explaining_settings(settings: BaseSettings) -> dict[str, Any]:
    """The settings that decide about URLs and pace, kept to explain the crawl's verdicts later.
    Settings that may hold a password are left out."""
    names = [
        name
        for name in settings
        if name.startswith("LARM_") and not (name.startswith("LARM_WEB") or name.endswith("_URL"))
    ]
    names = [*sorted(names), *_EXPLAINING]
    kept = {name: options.typed(settings, name) for name in names if name != "LARM_START"}
    for name, value in kept.items():
        if name.endswith("_FILE") and value:
            kept[name] = str(Path(value).expanduser().absolute())
    return kept


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def components(settings: BaseSettings, name: str) -> dict[Any, Any]:
    """Path and class of the components in a list. Raises ConfigError for a missing one."""
    plugin.check(settings.getdict(name))
    try:
        listed = settings.get_component_priority_dict_with_base(name)
        return {one: load_object(one) for one, order in listed.items() if order is not None}
    except (ImportError, NameError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from error


def files_of_stores(settings: BaseSettings) -> dict[str, list[str]]:
    """The files that each store of ITEM_PIPELINES owns, by its import path."""
    return dict(_of_list(settings, "ITEM_PIPELINES"))


def files_of_others(settings: BaseSettings) -> list[str]:
    """The files that scheduler, middlewares and extensions own."""
    names = set(_named(settings["SCHEDULER"]))
    for components in _LISTS:
        for _, files in _of_list(settings, components):
            names.update(files)
    return sorted(names)


def matching(directory: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The files and folders of ``directory`` that match one of the patterns."""
    wanted = [pattern for pattern in patterns if _is_plain(pattern)]
    for path in sorted(directory.iterdir()):
        if any(fnmatchcase(path.name, pattern) for pattern in wanted):
            yield path


def _of_list(settings: BaseSettings, name: str) -> Iterator[tuple[str, list[str]]]:
    for component in components(settings, name):
        if files := _named(component):
            yield _path_of(component), files


def _named(component: Any) -> list[str]:
    if isinstance(component, str) and component.startswith("scrapy."):
        return []
    files = getattr(load_object(component), "files", ())
    if not isinstance(files, tuple) or not all(isinstance(name, str) for name in files):
        return []  # a foreign component with an attribute of that name
    for name in files:
        if not _is_plain(name):
            raise ConfigError(
                f"{_path_of(component)}.files: {name!r}: expected names, or patterns with * and"
                f" ?, of files in LARM_DIR other than {' and '.join(_KEPT)}"
            )
    return list(files)


def _path_of(component: Any) -> str:
    if isinstance(component, str):
        return component
    return f"{component.__module__}.{component.__qualname__}"


def _is_plain(pattern: str) -> bool:
    """Whether a pattern stays inside the directory and spares what every crawl has there."""
    if "/" in pattern or pattern in ("", ".", ".."):
        return False
    return not any(fnmatchcase(name, pattern) for name in _KEPT)
