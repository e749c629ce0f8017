"""A crawl of many workers read as one: each worker's directory is a shard of it.

    crawl = open_crawl(Path("crawl"), shards=[Path("/mnt/atlas/crawl/atlas-1")])
    crawl.stored("http://wiki.example/")        # by whichever worker stored it
    crawl.searcher().search("vpn")

Shards are the directories below LARM_DIR and those that are listed besides, as other machines'
mounted ones. Of each what was committed counts: behind that lies, of a worker that died, what
another one has fetched again. Of two records of a page the newest counts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy.settings import SETTINGS_PRIORITIES

from larmspider.crawl.reader import CrawlDir, StoredPage, stored_page
from larmspider.workdir.manifest import DESCRIPTION
from larmspider.crawl.logs import CrawlLogs
from larmspider.workdir.directory import shard_dirs
from larmspider.workdir.manifest import is_shared
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.crawl.shards_reader import ShardsReader
from larmspider.index.search import Searcher
from larmspider.index.shards import ShardSearcher
from larmspider.index.version import has_index
from larmspider.crawl.newest import judging
from larmspider.crawl.shard import Shard
from larmspider.crawl.shard_logs import ShardLogs

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.cluster.reader import RedisReader


def open_crawl(
    path: Path, shards: Sequence[Path] = (), settings: BaseSettings | None = None
) -> CrawlDir:
    """The crawl in ``path``, of one process or of many, with ``shards`` that lie elsewhere.

    With ``settings`` the queues of many workers are read from Redis, where it can be reached.
    Where LARM_DIR is not named, and the place that it has by default holds no crawl, it is that of
    the first shard. Raises CrawlDirError where there is none, or a shard is none.
    """
    if shards and not (path / DESCRIPTION).exists() and not _is_named(settings):
        path = next(iter(_shards_in(shards[0])), path)
    crawl = CrawlDir(path)
    if not is_shared(crawl.description) and not shards:
        return crawl
    own = shard_dirs(path) if is_shared(crawl.description) else [path]
    listed = [inner for shard in shards for inner in _shards_in(shard)]
    return CrawlShards(path, [Shard(shard) for shard in dict.fromkeys([*own, *listed])], settings)


def _is_named(settings: BaseSettings | None) -> bool:
    """Whether LARM_DIR stands on the command line."""
    given = None if settings is None else settings.getpriority("LARM_DIR")
    return given is not None and given >= SETTINGS_PRIORITIES["cmdline"]


def _shards_in(path: Path) -> list[Path]:
    """A shard that is named, or all in the LARM_DIR of another machine. Raises CrawlDirError."""
    path = path.expanduser().absolute()
    if not (path / DESCRIPTION).is_file():
        why = f"has no {DESCRIPTION}" if path.is_dir() else "is no directory"
        raise CrawlDirError(
            f"the shard {path} (--shard, LARM_SHARDS) {why}: a worker's directory is accepted, or"
            " the LARM_DIR of a crawl, as of another machine"
        )
    return shard_dirs(path) if is_shared(CrawlDir(path).description) else [path]


class CrawlShards(CrawlDir):
    """What CrawlDir is for one directory."""

    def __init__(
        self, path: Path, shards: Sequence[Shard], settings: BaseSettings | None = None
    ) -> None:
        self.shards = list(shards)
        super().__init__(path)
        self._redis_settings = settings if is_shared(self.description) else None
        self._waiting = threading.local()

    def _logs(self, seconds: float | None = None) -> CrawlLogs:
        named = {self._name_of(shard): shard for shard in self.shards}
        return ShardLogs(
            self.path,
            self.began,
            {name: shard.logs for name, shard in named.items()},
            lambda name, normalized: named[name].visit_time(normalized),
        )

    def _name_of(self, shard: Shard) -> str:
        """Its path from here, where it lies here."""
        inside = shard.path.is_relative_to(self.path)
        return str(shard.path.relative_to(self.path) if inside else shard.path)

    def within(self, seconds: float) -> Self:
        bounded = copy(self)
        each = seconds / max(1, len(self.shards))
        bounded.shards = [shard.within(each) for shard in self.shards]
        bounded.logs = bounded._logs()
        return bounded

    @property
    def parts(self) -> Sequence[CrawlDir]:
        return self.shards

    def committed(self) -> dict[str, int]:
        """By the path of each log from here."""
        return {
            str(Path(self._name_of(shard), name)): end
            for shard in self.shards
            for name, end in shard.committed().items()
        }

    @contextmanager
    def frontier(self) -> Iterator[FrontierReader | None]:
        with ExitStack() as stack:
            opened = [stack.enter_context(shard.frontier()) for shard in self.shards]
            readers = [reader for reader in opened if reader is not None]
            waiting = stack.enter_context(self._ask())
            yield ShardsReader(readers, waiting) if readers or waiting else None

    @contextmanager
    def _ask(self) -> Iterator[RedisReader | None]:
        """One connection for those who ask inside of each other."""
        if self._redis_settings is None:
            yield None
        elif hasattr(self._waiting, "reader"):
            yield self._waiting.reader
        else:
            # here, as most crawls have no Redis: its client takes 0.1 s to import
            from larmspider.cluster.reader import waiting_of

            with waiting_of(self.path, self.description, self._redis_settings) as (reader, why):
                self._waiting.reader, self.remark = reader, why
                try:
                    yield reader
                finally:
                    del self._waiting.reader

    def searcher(self) -> Searcher:
        """All indexes as one; shards that have none yet are left out."""
        indexed = [shard for shard in self.shards if has_index(shard.index_dir)]
        if not indexed:
            raise CrawlDirError(f"{self.path}: there is no search index of larmspider here")
        return ShardSearcher(
            [shard.searcher() for shard in indexed], lambda: judging(self.shards, indexed)
        )

    def stored(self, normalized: str) -> StoredPage | None:
        assert isinstance(self.logs, ShardLogs)
        shards = {self._name_of(shard): shard for shard in self.shards}
        found = self.logs.last_of_each("store.log", normalized)
        pages = [(shards[name], stored_page(fields)) for name, fields in found]
        newest = max(pages, key=lambda one: one[0].visit_time(normalized), default=None)
        return None if newest is None else replace(newest[1], shard=str(newest[0].path))

    def body(self, page: StoredPage) -> bytes:
        return next(shard for shard in self.shards if str(shard.path) == page.shard).body(page)

    def pages(self) -> Iterator[StoredPage]:
        with judging(self.shards, self.shards) as judge:
            for number, shard in enumerate(self.shards):
                for page in shard.pages():
                    if judge.counts(number, page.normalized, 0.0):
                        yield page
