"""Whose files a LARM_DIR holds: each component of a crawl names its own, as names or patterns.

    class TitleLog(Store):
        files = ("titles.log", "titles_*.idx")

``-a fresh=yes`` deletes what the components of the crawl that lies there, and of the one that
begins, have named; crawl.json remembers the former.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from larmspider.errors import ConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

DESCRIPTION = "crawl.json"
"""The file that makes a directory a crawl's: who crawled what, with which settings."""
LOCK = "lock"
WORKER_LOG = "worker.log"
"""What a worker says, where ``scrapy workers`` has started it."""
_KEPT = (DESCRIPTION, LOCK)
_LISTS = ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "EXTENSIONS")


def files_of_stores(settings: BaseSettings) -> dict[str, list[str]]:
    """What each store of ITEM_PIPELINES names, by its import path."""
    return dict(_of_list(settings, "ITEM_PIPELINES"))


def files_of_others(settings: BaseSettings) -> list[str]:
    """What scheduler, middlewares and extensions name."""
    names = set(_named(settings["SCHEDULER"]))
    for components in _LISTS:
        for _, files in _of_list(settings, components):
            names.update(files)
    return sorted(names)


def matching(directory: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """The files and folders of ``directory`` that have these names; each once."""
    wanted = [pattern for pattern in patterns if _is_plain(pattern)]
    for path in sorted(directory.iterdir()):
        if any(fnmatchcase(path.name, pattern) for pattern in wanted):
            yield path


def _of_list(settings: BaseSettings, name: str) -> Iterator[tuple[str, list[str]]]:
    listed = settings.get_component_priority_dict_with_base(name)
    for component, order in listed.items():
        if order is not None and (files := _named(component)):
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
                f"{_path_of(component)}.files: {name!r} is not accepted: the names, or patterns"
                f" with * and ?, of files in LARM_DIR are, but for {' and '.join(_KEPT)}"
            )
    return list(files)


def _path_of(component: Any) -> str:
    if isinstance(component, str):
        return component
    return f"{component.__module__}.{component.__qualname__}"


def _is_plain(pattern: str) -> bool:
    """Whether it stays inside the directory and spares what every crawl has there."""
    if "/" in pattern or pattern in ("", ".", ".."):
        return False
    return not any(fnmatchcase(name, pattern) for name in _KEPT)
