"""All that the pages show: a crawl's directory, and the crawl itself where it runs here.

    source.crawl               CrawlDir; raises CrawlDirError while there is no crawl
    source.settings            those the crawl runs, or ran, with
    source.hosts()             a HostRow for each host, read at most every HOSTS_SECS
    source.keep_logs_indexed() which pages link where: as of when
    source.searcher()          the index; raises CrawlDirError where there is none
    source.controller          what the running crawl can tell and do; None where none is reachable

Methods are called in threads (work.py), several at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider.crawl.log_index.builder import IndexBuilder, IndexProgress
from larmspider.crawl.log_index.index import BrokenCache
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.state import RunState, State
from larmspider.crawl.worker_dirs import CrawlOfWorkers, open_crawl
from larmspider.errors import CrawlDirError
from larmspider.frontier.describe import HostRow, host_rows
from larmspider.frontier.factory import politeness_from
from larmspider.index.search import Searcher
from larmspider.status.crawl_workers import Workers, workers_of
from larmspider.status.refreshing import RefreshingCache
from larmspider.workdir.directory import shard_dirs
from larmspider.workdir.manifest import MANIFEST

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.frontier.politeness import Politeness
    from larmspider.status.crawl_workers import Controller

HOSTS_SECS = 5.0
"""The table of hosts is as old as that at most; a checkpoint is taken as often."""


class Source:
    """``settings_of`` gives the settings that a crawl's directory is to be read with, ``opened``
    opens it."""

    def __init__(
        self,
        path: Path,
        settings_of: Callable[[CrawlDir], BaseSettings],
        controller: Controller | None = None,
        opened: Callable[[Path], CrawlDir] = open_crawl,
    ) -> None:
        self.path, self.controller, self._open_crawl = path, controller, opened
        self._settings_of = settings_of
        self._lock = threading.Lock()
        self._opened: tuple[object, CrawlDir, BaseSettings] | None = None
        self._hosts = RefreshingCache(self._read_hosts, HOSTS_SECS)
        self._workers = RefreshingCache(lambda: (workers_of(path),), HOSTS_SECS)
        self._searcher: tuple[object, Searcher] | None = None
        self._indexing = IndexBuilder()
        self.broken = BrokenCache()

    # the crawl

    @property
    def condition(self) -> RunState:
        """What the directory holds."""
        return RunState.of(self.path)

    @property
    def crawl(self) -> CrawlDir:
        """Raises CrawlDirError while there is no crawl in the directory."""
        return self._open()[1]

    @property
    def settings(self) -> BaseSettings:
        """Those of the crawl; CrawlDirError as above."""
        return self._open()[2]

    def _open(self) -> tuple[object, CrawlDir, BaseSettings]:
        """Anew when crawl.json was replaced: another crawl may lie there now."""
        seen = _identity(self.path / MANIFEST)
        with self._lock:
            if self._opened is not None and isinstance(self._opened[1], CrawlOfWorkers):
                seen = (seen, len(shard_dirs(self.path)))
            if self._opened is None or seen is None or self._opened[0] != seen:
                self._opened = None
                crawl = self._open_crawl(self.path)
                if isinstance(crawl, CrawlOfWorkers):
                    seen = (_identity(self.path / MANIFEST), len(shard_dirs(self.path)))
                self._opened = (seen, crawl, self._settings_of(crawl))
                self._searcher = None
                self._hosts.forget()
            return self._opened

    @property
    def directories(self) -> list[Path]:
        """Where its logs lie: one, or one for each worker."""
        return [part.path for part in self.crawl.parts]

    @property
    def workers(self) -> Workers | None:
        """Those that share the crawl; None for a crawl of one process. Some seconds old."""
        return self._workers.get()[0]

    @property
    def politeness(self) -> Politeness:
        """The rules about hosts."""
        return politeness_from(self.settings)

    # what takes long to read

    def hosts(self, *, wait: bool = False) -> Mapping[str, HostRow]:
        """By name, as of the last checkpoint; empty for a crawl without a frontier of ours.
        ``wait`` as in Kept.get()."""
        self._open()
        return self._hosts.get(wait=wait)

    def forget(self) -> None:
        """Something was changed: the next hosts() is to show it."""
        self._hosts.forget()

    def _read_hosts(self) -> dict[str, HostRow]:
        with self.crawl.frontier() as frontier:
            found = () if frontier is None else host_rows(frontier, self.politeness, time.time())
            return {row.host: row for row in found}

    def keep_logs_indexed(self) -> IndexProgress:
        """How up to date the index of the logs is; where it is behind, a process sees to it."""
        return self._indexing.keep(self.crawl)

    def searcher(self) -> Searcher:
        """Raises CrawlDirError where there is no index, or one of another version."""
        crawl = self.crawl
        seen = [_identity(part.index_dir) for part in crawl.parts]
        with self._lock:
            if self._searcher is None or self._searcher[0] != seen:
                self._searcher = (seen, crawl.searcher())
            return self._searcher[1]

    def close(self) -> None:
        """End what runs beside."""
        self._indexing.stop()

    def exists(self) -> bool:
        """Whether there is a crawl in the directory, if one that cannot be opened."""
        try:
            return self.crawl is not None
        except CrawlDirError:
            return self.condition.state not in (State.NONE, State.EMPTY)


def _identity(path: Path) -> object:
    """Changes when another file, or folder, takes this one's place."""
    try:
        found = path.stat()
    except OSError:
        return None
    changed = found.st_mtime_ns if path.suffix else 0
    return found.st_dev, found.st_ino, changed
