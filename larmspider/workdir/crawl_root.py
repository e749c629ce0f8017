"""LARM_DIR of many workers: what their crawl is, and the directory of each in it.

    crawl/crawl.json             the seeds, scope and settings of all, marked "workers"
    crawl/atlas-1/, atlas-2/     each worker's: page files, logs, index, crawl.json (directory.py)
    crawl/logs.idx/              an index of the logs of all
    crawl/redis/                 of the private redis-server, where ``scrapy workers`` runs one

The first worker describes the crawl; one with another scope is refused before it has made anything.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larmspider import options
from larmspider.workdir import locks
from larmspider.workdir.crawl_files import DESCRIPTION, LOCK, WORKER_LOG
from larmspider.workdir.directory import CrawlDirectory
from larmspider.workdir.manifest import RULES_DIR, describe_shared

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

LOCK_SECS = 10.0
"""How long a worker waits for others that are starting as well."""
_TRY_SECS = 0.05
REDIS_DIR = "redis"
INDEX_DIR = "logs.idx"
"""Of the logs of all workers (log_index/)."""
_WEB_FILES = ("web.token*", "web.json*")
"""Of the web pages, whose token is the same for all workers (extensions/web/)."""


def shard_dirs(root: Path) -> list[Path]:
    """The workers' directories in ``root``, by name."""
    return sorted(file.parent for file in root.glob(f"*/{DESCRIPTION}"))


class CrawlRoot(CrawlDirectory):
    """Claimed for a moment, to describe the crawl or to start it over; not held as it runs."""

    @classmethod
    def _place(cls, crawler: Crawler) -> tuple[Path, dict[str, Any]]:
        return options.crawl_root(crawler.settings), describe_shared(crawler)

    def check(self) -> None:
        """The same without the lock, which another worker that is starting may have."""
        options.check_writable(self.path)
        if self.path.exists():
            self._refuse_if_taken()

    def claim(self) -> None:
        """Describe the crawl, and with ``fresh`` delete what all workers here have written.

        Raises ConfigError, CrawlDirError: another crawl lies here, or a worker that is to start
        over is running; then nothing has changed.
        """
        options.writable_dir(self.path)
        deadline = time.monotonic() + LOCK_SECS
        while not locks.reserve(self.path / LOCK):
            if time.monotonic() > deadline:
                locks.check_free(self.path / LOCK)
            time.sleep(_TRY_SECS)
        super().claim()
        self.release()

    def _may_lie_there(self, path: Path) -> bool:
        """Of workers too, and of their private redis-server."""
        if super()._may_lie_there(path) or not path.is_dir():
            return super()._may_lie_there(path)
        if path.name == REDIS_DIR:
            return (path / LOCK).exists()
        return {file.name for file in path.iterdir()} <= {LOCK, WORKER_LOG}

    def _shards(self) -> Iterator[CrawlDirectory]:
        for path in shard_dirs(self.path):
            yield CrawlDirectory(path, {}, fresh=self.fresh)

    def _held(self) -> str:
        held = ((shard.path.name, shard._held()) for shard in self._shards())
        return ", ".join(f"{what} ({name})" for name, what in held if what)

    def _add_files_of(self, earlier: dict[str, Any]) -> None:
        """None lie here but the workers' own."""

    def _refuse_to_delete(self) -> None:
        super()._refuse_to_delete()
        for shard in self._shards():
            locks.check_free(shard.path / LOCK)

    def _make_room(self) -> None:
        for shard in self._shards():
            shard.clear()
        for folder in (RULES_DIR, INDEX_DIR):
            shutil.rmtree(self.path / folder, ignore_errors=True)
        for pattern in _WEB_FILES:
            for file in self.path.glob(pattern):
                file.unlink(missing_ok=True)
        (self.path / DESCRIPTION).unlink(missing_ok=True)
