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
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy.settings import SETTINGS_PRIORITIES

from larmspider.crawl.logs import CrawlLogs, WorkersLogs
from larmspider.crawl.reader import CrawlDir, StoredPage, WorkerDirectory, last_visit, stored_page
from larmspider.errors import CrawlDirError
from larmspider.frontier.overrides import NOTE, Overrides
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import Counts, FetchRecord, QueuedUrl, UrlState, url_key
from larmspider.index.search import Searcher
from larmspider.index.shards import Deduplicator, WorkersSearcher
from larmspider.index.version import has_index
from larmspider.workdir.directory import shard_dirs
from larmspider.workdir.manifest import CUT_BACK, MANIFEST, is_shared

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.cluster.reader import RedisReader


# Which record of a page counts, where several workers have one: the newest that was committed.


@contextmanager
def judging(
    shards: Sequence[WorkerDirectory], numbered: Sequence[WorkerDirectory]
) -> Iterator[Deduplicator]:
    """A judge over ``shards``, which knows them by their place in ``numbered``."""
    with ExitStack() as stack:
        readers = [stack.enter_context(shard.frontier()) for shard in shards]
        places = [shards.index(shard) for shard in numbered]
        yield LatestWins(shards, readers, places)


class LatestWins(Deduplicator):
    """``readers`` are the frontiers of ``shards``, None where one has none; ``places``: which
    shard is meant by a number."""

    def __init__(
        self,
        shards: Sequence[WorkerDirectory],
        readers: Sequence[FrontierReader | None],
        places: Sequence[int],
    ) -> None:
        self._readers, self._places = readers, places
        self._prefixes = [shard.host_prefixes() for shard in shards]
        self._tails = [shard.tail() for shard in shards]
        self._cut_back = [bool(shard.manifest.get(CUT_BACK)) for shard in shards]

    def doubtful(self, shard: int) -> bool:
        at = self._places[shard]
        others = (found for i, found in enumerate(self._prefixes) if i != at)
        if self._tails[at] or self._cut_back[at]:
            return True
        return any(not self._prefixes[at].isdisjoint(o) for o in others)

    def counts(self, shard: int, normalized: str, fetched: float) -> bool:
        at = self._places[shard]
        if normalized in self._tails[at]:
            return False
        prefix = url_key(normalized)[:4]
        rivals = [i for i, found in enumerate(self._prefixes) if i != at and prefix in found]
        if not rivals:
            return True
        own = self._stored_at(at, normalized)
        mine = (own if own is not None else fetched, -at)
        for i in rivals:
            other = self._stored_at(i, normalized)
            if other is not None and (other, -i) > mine:
                return False
        return True

    def _stored_at(self, at: int, normalized: str) -> float | None:
        """When a shard has stored the page last; None: it has not."""
        reader = self._readers[at]
        visit = None if reader is None else last_visit(reader, normalized)
        return visit.time if visit is not None and visit.state is UrlState.STORED else None


# Frontiers of workers read as one.

# The frontiers of a crawl's workers read as one: what each knows of URLs and hosts.
#
#     with WorkersFrontierReader([FrontierReader(a), FrontierReader(b)]) as frontier:
#         frontier.visit(url_key("http://wiki/a"))       # the last one of any of them
#
# What became of a URL is known to the worker that fetched it. Blocks of hosts move between
# workers;
# what they left behind in an earlier one is older, and the newest record counts.

_WAITING = (UrlState.QUEUED, UrlState.LEASED)


class WorkersFrontierReader(FrontierReader):
    """Read-only view; the readers are their owner's to close. ``waiting``: what is queued, where
    Redis can be asked; else it is as each worker knew it when it had it last."""

    def __init__(
        self, shards: Sequence[FrontierReader], waiting: RedisReader | None = None
    ) -> None:
        self._shards, self._waiting = list(shards), waiting

    def visit(self, key: bytes) -> FetchRecord | None:
        """The last one."""
        visits = [visit for shard in self._shards if (visit := shard.visit(key)) is not None]
        return max(visits, key=lambda visit: visit.time, default=None)

    def state(self, key: bytes) -> UrlState:
        """Final where any worker has brought it to its end."""
        visit = self.visit(key)
        if visit is not None:
            return visit.state
        if self._waiting is not None:
            return self._waiting.state(key)
        return UrlState.UNKNOWN if (shard := self._shard_of(key)) is None else shard.state(key)

    def _shard_of(self, key: bytes) -> FrontierReader | None:
        """The one in which a URL waits: of several the one that had its host last."""
        if self.visit(key) is not None:
            return None
        waits = [shard for shard in self._shards if shard.state(key) in _WAITING]
        if len(waits) < 2:
            return waits[0] if waits else None
        entry = waits[0].entry(key)
        return waits[0] if entry is None else self._home_of(entry.host)

    def _home_of(self, host: str) -> FrontierReader:
        def progress(shard: FrontierReader) -> tuple[int, int]:
            return _progress(shard.host(host)[1])

        return max(self._shards, key=progress)

    def entry(self, key: bytes) -> QueuedUrl | None:
        where = self._waiting or self._shard_of(key)
        return None if where is None or self.visit(key) is not None else where.entry(key)

    def place(self, key: bytes, limit: int = 10_000) -> tuple[int, float] | None:
        where = self._waiting or self._shard_of(key)
        return None if where is None or self.visit(key) is not None else where.place(key, limit)

    def queued(self, host: str, limit: int = 10) -> list[QueuedUrl]:
        if self._waiting is not None:
            return self._waiting.queued(host, limit)
        return self._home_of(host).queued(host, limit) if self._shards else []

    def delayed(self, host: str, limit: int = 10) -> list[tuple[QueuedUrl, float]]:
        """As the worker knew it that had the host last."""
        return self._home_of(host).delayed(host, limit) if self._shards else []

    def hosts(self) -> dict[str, tuple[bytes, Counts]]:
        """A host's record and counters go with it from owner to owner: the furthest are its own."""
        if self._waiting is not None:
            return self._waiting.hosts()
        rows: dict[str, tuple[bytes, Counts]] = {}
        for shard in self._shards:
            for host, row in shard.hosts().items():
                if host not in rows or _progress(row[1]) > _progress(rows[host][1]):
                    rows[host] = row
        return rows

    def host(self, name: str) -> tuple[bytes, Counts]:
        if self._waiting is not None:
            return self._waiting.host(name)
        return self._home_of(name).host(name) if self._shards else (b"", Counts())

    @property
    def commits(self) -> int:
        """Grows with each commit of any worker."""
        return sum(shard.commits for shard in self._shards)

    def visits(self) -> Iterator[tuple[bytes, FetchRecord]]:
        """Of each URL the last one."""
        every = merge(*(shard.visits() for shard in self._shards), key=itemgetter(0))
        for key, visits in groupby(every, key=itemgetter(0)):
            yield key, max((visit for _, visit in visits), key=lambda visit: visit.time)

    def waiting(self, after: bytes = b"") -> tuple[list[QueuedUrl], bytes | None]:
        """As each shard has it: of one after the other, what has come to its end elsewhere left
        out. ``after`` begins with the number of the shard."""
        number = after[0] if after else 0
        if number >= len(self._shards):
            return [], None
        found, more = self._shards[number].waiting(after[1:])
        entries = [entry for entry in found if self.visit(entry.key) is None]
        return entries, bytes([number]) + more if more is not None else bytes([number + 1])

    def host_prefixes(self) -> set[bytes]:
        return set().union(*(shard.host_prefixes() for shard in self._shards))

    def note(self, name: str) -> bytes | None:
        """Of a host; what operators have ordered is added up."""
        if name == NOTE:
            return Overrides.together(
                Overrides.unpack(shard.note(name)) for shard in self._shards
            ).pack()
        if self._waiting is not None:
            return self._waiting.note(name)
        return next(
            (note for shard in self._shards if (note := shard.note(name)) is not None), None
        )

    def positions(self) -> dict[str, bytes]:
        """Stores have positions in a shard, not here."""
        return {}

    def close(self) -> None:
        """Leaves the shards open."""


def _progress(counts: Counts) -> tuple[int, int]:
    """Neither number of a host ever gets smaller."""
    return counts.discovered, counts.stored + counts.failed + counts.refused


def open_crawl(
    path: Path, shards: Sequence[Path] = (), settings: BaseSettings | None = None
) -> CrawlDir:
    """The crawl in ``path``, of one process or of many, with ``shards`` that lie elsewhere.

    With ``settings`` the queues of many workers are read from Redis, where it can be reached.
    Where LARM_DIR is not named, and the place that it has by default holds no crawl, it is that of
    the first shard. Raises CrawlDirError where there is none, or a shard is none.
    """
    if shards and not (path / MANIFEST).exists() and not _is_named(settings):
        path = next(iter(_shards_in(shards[0])), path)
    crawl = CrawlDir(path)
    if not is_shared(crawl.manifest) and not shards:
        return crawl
    own = shard_dirs(path) if is_shared(crawl.manifest) else [path]
    listed = [inner for shard in shards for inner in _shards_in(shard)]
    return CrawlOfWorkers(
        path, [WorkerDirectory(shard) for shard in dict.fromkeys([*own, *listed])], settings
    )


def _is_named(settings: BaseSettings | None) -> bool:
    """Whether LARM_DIR stands on the command line."""
    given = None if settings is None else settings.getpriority("LARM_DIR")
    return given is not None and given >= SETTINGS_PRIORITIES["cmdline"]


def _shards_in(path: Path) -> list[Path]:
    """A shard that is named, or all in the LARM_DIR of another machine. Raises CrawlDirError."""
    path = path.expanduser().absolute()
    if not (path / MANIFEST).is_file():
        why = f"has no {MANIFEST}" if path.is_dir() else "is no directory"
        raise CrawlDirError(
            f"the shard {path} (--shard, LARM_SHARDS) {why}: expected a worker's directory, or"
            " the LARM_DIR of a crawl, as of another machine"
        )
    return shard_dirs(path) if is_shared(CrawlDir(path).manifest) else [path]


class CrawlOfWorkers(CrawlDir):
    """What CrawlDir is for one directory."""

    def __init__(
        self, path: Path, shards: Sequence[WorkerDirectory], settings: BaseSettings | None = None
    ) -> None:
        self.shards = list(shards)
        super().__init__(path)
        self._redis_settings = settings if is_shared(self.manifest) else None
        self._waiting = threading.local()

    def _logs(self, seconds: float | None = None) -> CrawlLogs:
        named = {self._name_of(shard): shard for shard in self.shards}
        return WorkersLogs(
            self.path,
            self.began,
            {name: shard.logs for name, shard in named.items()},
            lambda name, normalized: named[name].visit_time(normalized),
        )

    def _name_of(self, shard: WorkerDirectory) -> str:
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
            yield WorkersFrontierReader(readers, waiting) if readers or waiting else None

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

            with waiting_of(self.path, self.manifest, self._redis_settings) as (reader, why):
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
        return WorkersSearcher(
            [shard.searcher() for shard in indexed], lambda: judging(self.shards, indexed)
        )

    def stored(self, normalized: str) -> StoredPage | None:
        assert isinstance(self.logs, WorkersLogs)
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
