"""Claims LARM_DIR for one crawl: makes it, locks it, and writes crawl.json, which says what it is.

crawl/crawl.json     seeds, scope and settings; when it began and how it ended
crawl/lock           held while a crawl runs, so that no second one writes into its files
"""

from __future__ import annotations

import fcntl
import json
import logging
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from scrapy import signals

from larmspider import __version__, options
from larmspider.errors import ConfigError, CrawlDirError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

DESCRIPTION = "crawl.json"
"""The file that makes a directory a crawl's: who crawled what, with which settings."""
FORMAT = 1

_FILES = (
    DESCRIPTION, "store.log", "links.log", "fetch.log", "Monitor.log", "*Filter.log",
    "pagefile_*.pfl",
)  # fmt: skip
_DIRECTORIES = ("index", "robots")
_LOCK = "lock"
_TOLD = (
    "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN", "DOWNLOAD_DELAY", "DOWNLOAD_MAXSIZE",
    "DOWNLOAD_TIMEOUT", "DEPTH_LIMIT", "ROBOTSTXT_OBEY", "URLLENGTH_LIMIT", "USER_AGENT",
)  # fmt: skip


class DirectoryPipeline:
    """Stands first in the storage chain: opened before the stores and closed after them."""

    def __init__(self, directory: Path, description: dict[str, Any], *, fresh: bool) -> None:
        self.directory = directory
        self.description = description
        self.fresh = fresh
        self._lock: IO[str] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        options.check_names(settings)
        fresh = options.boolean(settings, "LARM_FRESH")
        pipeline = cls(options.larm_dir(settings), _describe(crawler), fresh=fresh)
        pipeline.check()
        crawler.signals.connect(pipeline.spider_closed, signal=signals.spider_closed)
        return pipeline

    def check(self) -> None:
        """Raise ConfigError or CrawlDirError now if the directory cannot be claimed later."""
        options.check_writable(self.directory)
        if self.directory.exists():
            self._refuse_if_taken()
        if (self.directory / _LOCK).exists():
            _locked(self.directory / _LOCK).close()

    def open_spider(self) -> None:
        """Claim the directory. Raises as ``check`` does, and then has changed nothing."""
        options.writable_dir(self.directory)
        self._lock = _locked(self.directory / _LOCK)
        try:
            self._refuse_if_taken()
            self._make_room()
            self._write()
        except BaseException:
            self._unlock()
            raise

    def process_item(self, item: Any) -> Any:
        return item

    def _refuse_if_taken(self) -> None:
        present = [path for path in self.directory.iterdir() if path.name != _LOCK]
        ours = set(_ours(self.directory))
        foreign = [path.name for path in present if path not in ours]
        if foreign and not (self.directory / DESCRIPTION).exists():
            raise CrawlDirError(
                f"LARM_DIR={self.directory} holds other files ({foreign[0]}): name an empty"
                " directory, or one that does not exist yet, with -s LARM_DIR=DIR"
            )
        if ours and not self.fresh:
            raise CrawlDirError(
                f"LARM_DIR={self.directory} already holds a crawl: -a fresh=yes deletes it and"
                " starts over, -s LARM_DIR=DIR names another directory"
            )

    def _make_room(self) -> None:
        for path in list(_ours(self.directory)):
            logger.info("Starting over: deleting %s", path)
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def spider_closed(self, reason: str) -> None:
        if self._lock is not None:
            self.description |= {"ended": _now(), "end": reason}
            self._write()
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _write(self) -> None:
        target = self.directory / DESCRIPTION
        draft = target.with_suffix(".tmp")
        draft.write_text(
            json.dumps(self.description, indent=1, ensure_ascii=False, default=str), "utf-8"
        )
        draft.replace(target)


def _ours(directory: Path) -> Iterator[Path]:
    for pattern in _FILES:
        yield from directory.glob(pattern)
    for name in _DIRECTORIES:
        yield from directory.glob(name)


def _describe(crawler: Crawler) -> dict[str, Any]:
    spider = crawler.spider
    assert spider is not None
    return {
        "format": FORMAT,
        "larmspider": __version__,
        "spider": spider.name,
        "seeds": list(getattr(spider, "start_urls", ())),
        "settings": _told(crawler.settings),
        "began": _now(),
    }


def _told(settings: BaseSettings) -> dict[str, Any]:
    """What decides about URLs and pace: enough to explain the crawl's verdicts later."""
    names = [name for name in settings if name.startswith("LARM_")]
    told = {name: settings.get(name) for name in (*sorted(names), *_TOLD) if name != "LARM_START"}
    for name, value in told.items():
        if name.endswith("_FILE") and value:
            told[name] = str(Path(value).expanduser().absolute())
    return told


def _locked(path: Path) -> IO[str]:
    try:
        file = path.open("a")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise CrawlDirError(
            f"LARM_DIR={path.parent} is in use: another crawl writes there"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be locked: {error.strerror or error}") from None
    return file


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
