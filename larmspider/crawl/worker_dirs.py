"""Reads a crawl of many workers like a crawl of one process.

    crawl = open_crawl(Path("crawl"), elsewhere=[Path("/mnt/atlas/crawl/atlas-1")])
    crawl.stored("http://wiki.example/")        # from any worker
    crawl.searcher().search("vpn")

Its parts are the workers' directories below LARM_DIR and the ones listed besides (--shard,
LARM_SHARDS), such as another machine's. Only committed records count: pages after the last commit
of a dead worker were fetched again by another one. The latest of several records of a page counts.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from scrapy.settings import SETTINGS_PRIORITIES

from larmspider.crawl.logs import CrawlLogs, WorkersLogs
from larmspider.crawl.reader import CrawlDir, StoredPage, WorkerDirectory, has_page, last_visit
from larmspider.errors import CrawlDirError, NoCrawlError
from larmspider.frontier.overrides import NOTE, Overrides
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import (
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    url_key,
)
from larmspider.index.version import has_index
from larmspider.items import PART_MARK
from larmspider.learned.spellings.merging import UNDONE
from larmspider.search.gather import ShardError
from larmspider.search.reading import Deduplicator
from larmspider.search.searcher import Searcher
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.manifest import CUT_BACK, MANIFEST, is_shared

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.cluster.reader import RedisReader

_WAITING = (UrlState.QUEUED, UrlState.LEASED)


def open_crawl(
    path: Path, elsewhere: Sequence[Path] = (), settings: BaseSettings | None = None
) -> CrawlDir:
    """The crawl in ``path``, of one process or of many, with worker directories that lie elsewhere.

    With ``settings`` the queues of many workers are read from Redis, where it can be reached.
    If LARM_DIR is not named, and its default place holds no crawl, the first directory elsewhere
    names it. Raises CrawlDirError if there is no crawl, or no worker's directory.
    """
    if elsewhere and not (path / MANIFEST).exists() and not _is_named(settings):
        path = next(iter(_worker_dirs(elsewhere[0])), path)
    crawl = CrawlDir(path)
    if not is_shared(crawl.manifest) and not elsewhere:
        return crawl
    own = worker_dirs(path) if is_shared(crawl.manifest) else [path]
    listed = [inner for given in elsewhere for inner in _worker_dirs(given)]
    found = dict.fromkeys([*own, *listed])
    return CrawlOfWorkers(path, [WorkerDirectory(one) for one in found], settings)


def _is_named(settings: BaseSettings | None) -> bool:
    """Whether LARM_DIR is set on the command line."""
    given = None if settings is None else settings.getpriority("LARM_DIR")
    return given is not None and given >= SETTINGS_PRIORITIES["cmdline"]


def _worker_dirs(path: Path) -> list[Path]:
    """A worker's directory, or all in the LARM_DIR of another machine. Raises CrawlDirError."""
    path = path.expanduser().absolute()
    if not (path / MANIFEST).is_file():
        why = f"has no {MANIFEST}" if path.is_dir() else "is not a directory"
        raise NoCrawlError(
            f"the shard {path} (--shard, LARM_SHARDS) {why}: expected a worker's directory, or"
            " the LARM_DIR of a crawl, as of another machine"
        )
    return worker_dirs(path) if is_shared(CrawlDir(path).manifest) else [path]


class CrawlOfWorkers(CrawlDir):
    """All workers' directories; with ``settings`` their queues are read from Redis."""

    def __init__(
        self, path: Path, workers: Sequence[WorkerDirectory], settings: BaseSettings | None = None
    ) -> None:
        self.workers = list(workers)
        super().__init__(path)
        self._redis_settings = settings if is_shared(self.manifest) else None
        self._waiting = threading.local()

    def _logs(self, seconds: float | None = None) -> CrawlLogs:
        named = {self._name_of(worker): worker for worker in self.workers}
        return WorkersLogs(
            self.path,
            self.began,
            {name: worker.logs for name, worker in named.items()},
            lambda name, exact: named[name].visit_time(exact),
            self.forms,
            self.name_of,
        )

    def _name_of(self, worker: WorkerDirectory) -> str:
        """The path from LARM_DIR of a directory that lies there, else the whole path."""
        inside = worker.path.is_relative_to(self.path)
        return str(worker.path.relative_to(self.path) if inside else worker.path)

    def within(self, seconds: float) -> Self:
        bounded = copy(self)
        each = seconds / max(1, len(self.workers))
        bounded.workers = [worker.within(each) for worker in self.workers]
        bounded.logs = bounded._logs()
        return bounded

    @property
    def parts(self) -> Sequence[CrawlDir]:
        return self.workers

    def committed(self) -> dict[str, int]:
        """The committed bytes by the path of each log from LARM_DIR."""
        return {
            str(Path(self._name_of(worker), name)): end
            for worker in self.workers
            for name, end in worker.committed().items()
        }

    @contextmanager
    def frontier(self) -> Iterator[FrontierReader | None]:
        with ExitStack() as stack:
            opened = [stack.enter_context(worker.frontier()) for worker in self.workers]
            readers = [reader for reader in opened if reader is not None]
            waiting = stack.enter_context(self._ask())
            yield WorkersFrontierReader(readers, waiting) if readers or waiting else None

    @contextmanager
    def _ask(self) -> Iterator[RedisReader | None]:
        """A connection to Redis, shared by nested calls."""
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
        """All indexes as one; workers without an index are left out, and so are indexes that
        cannot be opened (`Searcher.unopened`). Raises CrawlDirError if none can."""
        indexed, searchers = list[WorkerDirectory](), list[Searcher]()
        counting, unopened = list(self.workers), list[CrawlDirError]()
        for worker in self.workers:
            if not worker.path.is_dir():
                unopened.append(CrawlDirError(f"{worker.path}: the directory is gone"))
            elif has_index(worker.index_dir):
                try:
                    searchers.append(worker.searcher())
                    indexed.append(worker)
                except CrawlDirError as error:
                    unopened.append(error.with_traceback(None))
                    counting.remove(worker)  # another worker's copy of a page is found
        if not indexed:
            nothing = f"{self.path}: there is no search index of larmspider here"
            raise unopened[0] if unopened else CrawlDirError(nothing)
        deduplicating = partial(latest_wins, counting, indexed)
        return Searcher.of_workers(searchers, deduplicating, unopened)

    def stored(self, exact: str) -> StoredPage | None:
        assert isinstance(self.logs, WorkersLogs)
        named = {self._name_of(worker): worker for worker in self.workers}
        exact = self.name_of(exact)
        found = self.logs.last_of_each("store.log", exact)
        pages = [(named[name], self.page_of(fields)) for name, fields in found]
        latest = max(pages, key=lambda one: one[0].visit_time(exact), default=None)
        if latest is None or not latest[1].status:
            return None
        return replace(latest[1], shard=str(latest[0].path))

    def body(self, page: StoredPage) -> bytes:
        return self._worker_of(page).body(page)

    def body_file(self, page: StoredPage) -> Path | None:
        return self._worker_of(page).body_file(page)

    def _worker_of(self, page: StoredPage) -> WorkerDirectory:
        return next(one for one in self.workers if str(one.path) == page.shard)

    def pages(self) -> Iterator[StoredPage]:
        with latest_wins(self.workers, self.workers) as dedup:
            for number, worker in enumerate(self.workers):
                for page in worker.pages():
                    if dedup.counts(number, page.exact, 0.0):
                        yield replace(page, shard=str(worker.path))

    def links(self) -> Iterator[list[str]]:
        with latest_wins(self.workers, self.workers) as dedup:
            for number, worker in enumerate(self.workers):
                for page, links in groupby(worker.links(), key=itemgetter(0)):
                    if dedup.counts(number, self.forms(page).exact, 0.0):
                        yield from links


class WorkersFrontierReader(FrontierReader):
    """The frontiers of a crawl's workers as one: each worker's records of URLs and hosts.

    The worker that fetched a URL knows the outcome. Partitions of hosts move between workers; the
    records in an earlier worker's directory are older, and the latest record counts. ``waiting``
    has the queues, if Redis can be reached; otherwise a host's queue comes from the last worker
    that had the host. The caller closes the readers.
    """

    def __init__(
        self, workers: Sequence[FrontierReader], waiting: RedisReader | None = None
    ) -> None:
        self._workers, self._waiting = list(workers), waiting
        self.runs = any(worker.runs for worker in workers)

    def visit(self, key: bytes) -> FetchRecord | None:
        visits = [visit for worker in self._workers if (visit := worker.visit(key)) is not None]
        return max(visits, key=lambda visit: visit.time, default=None)

    def state(self, key: bytes) -> UrlState:
        visit = self.visit(key)
        if visit is not None:
            return visit.state
        if self._waiting is not None:
            return self._waiting.state(key)
        if self.merged(key) is not None:
            return UrlState.MERGED
        return UrlState.UNKNOWN if (at := self._waits_at(key)) is None else at.state(key)

    def _waits_at(self, key: bytes) -> FrontierReader | None:
        """The worker that has a URL in its queue; if several have, the last owner of its host."""
        if self.visit(key) is not None:
            return None
        waits = [worker for worker in self._workers if worker.state(key) in _WAITING]
        if len(waits) < 2:
            return waits[0] if waits else None
        entry = waits[0].entry(key)
        return waits[0] if entry is None else self._home_of(entry.host)

    def _home_of(self, host: str) -> FrontierReader:
        return max(self._workers, key=lambda worker: _progress(worker.host(host)[1]))

    def entry(self, key: bytes) -> QueuedUrl | None:
        where = self._waiting or self._waits_at(key)
        return None if where is None or self.visit(key) is not None else where.entry(key)

    def merged(self, key: bytes) -> MergedUrl | None:
        if self._waiting is not None:
            return self._waiting.merged(key)
        found = (worker.merged(key) for worker in self._workers)
        return next((merged for merged in found if merged is not None), None)

    def all_merged(self) -> Iterator[MergedUrl]:
        if self._waiting is not None:
            yield from self._waiting.all_merged()
            return
        seen: set[bytes] = set()
        for worker in self._workers:
            for merged in worker.all_merged():
                if merged.entry.key not in seen and self.visit(merged.entry.key) is None:
                    seen.add(merged.entry.key)
                    yield merged

    def place(self, key: bytes, limit: int = 10_000) -> tuple[int, float] | None:
        where = self._waiting or self._waits_at(key)
        return None if where is None or self.visit(key) is not None else where.place(key, limit)

    def queued(self, host: str, limit: int = 10) -> list[QueuedUrl]:
        if self._waiting is not None:
            return self._waiting.queued(host, limit)
        return self._home_of(host).queued(host, limit) if self._workers else []

    def delayed(self, host: str, limit: int = 10) -> list[tuple[QueuedUrl, float]]:
        return self._home_of(host).delayed(host, limit) if self._workers else []

    def hosts(self) -> dict[str, tuple[bytes, Counts]]:
        """A host's record and counters move with it from worker to worker: the furthest count."""
        if self._waiting is not None:
            rows = self._waiting.hosts()
            return {host: (record, self._now(counts)) for host, (record, counts) in rows.items()}
        rows = {}
        for worker in self._workers:
            for host, row in worker.hosts().items():
                if host not in rows or _progress(row[1]) > _progress(rows[host][1]):
                    rows[host] = row
        return rows

    def host(self, name: str) -> tuple[bytes, Counts]:
        if self._waiting is not None:
            record, counts = self._waiting.host(name)
            return record, self._now(counts)
        return self._home_of(name).host(name) if self._workers else (b"", Counts())

    def _now(self, counts: Counts) -> Counts:
        return counts if self.runs else counts.after_run()

    @property
    def commits(self) -> int:
        return sum(worker.commits for worker in self._workers)

    def visits(self) -> Iterator[tuple[bytes, FetchRecord]]:
        every = merge(*(worker.visits() for worker in self._workers), key=itemgetter(0))
        for key, visits in groupby(every, key=itemgetter(0)):
            yield key, max((visit for _, visit in visits), key=lambda visit: visit.time)

    def waiting(self, after: bytes = b"") -> tuple[list[QueuedUrl], bytes | None]:
        """The waiting URLs, worker by worker, without URLs that another worker has fetched.
        ``after`` begins with the number of the worker."""
        number = after[0] if after else 0
        if number >= len(self._workers):
            return [], None
        found, more = self._workers[number].waiting(after[1:])
        entries = [entry for entry in found if self.visit(entry.key) is None]
        return entries, bytes([number]) + more if more is not None else bytes([number + 1])

    def host_prefixes(self) -> set[bytes]:
        return set().union(*(worker.host_prefixes() for worker in self._workers))

    def note(self, name: str) -> bytes | None:
        """A note. The note of overrides combines the overrides of all workers."""
        if name == NOTE:
            return Overrides.together(
                Overrides.unpack(worker.note(name)) for worker in self._workers
            ).pack()
        if name == UNDONE:
            return b"%d" % sum(int(worker.note(name) or b"0") for worker in self._workers)
        if self._waiting is not None:
            return self._waiting.note(name)
        host = name.partition(" ")[2]
        if host and self._workers and (note := self._home_of(host).note(name)) is not None:
            return note
        return next(
            (note for worker in self._workers if (note := worker.note(name)) is not None), None
        )

    def positions(self) -> dict[str, bytes]:
        """None: stores have positions with each worker."""
        return {}

    def close(self) -> None:
        """Leaves the workers' readers open."""


def _progress(counts: Counts) -> tuple[int, int]:
    """Neither number of a host ever gets smaller."""
    return counts.discovered, counts.stored + counts.failed + counts.refused + counts.merged


@contextmanager
def latest_wins(
    workers: Sequence[WorkerDirectory],
    numbered: Sequence[WorkerDirectory],
    left_out: Collection[Path] = (),
) -> Iterator[Deduplicator]:
    """LatestWins over all ``workers``, for the workers ``numbered`` by their searchers.
    ``left_out`` are the directories of indexes that are not searched: records of their workers do
    not count. Raises ShardError for a worker that cannot be read."""
    with ExitStack() as stack:
        known = list[_Known | None]()
        for worker in workers:
            if worker.index_dir in left_out or not worker.path.is_dir():
                known.append(None)
                continue
            try:
                known.append(_Known.of(worker, stack.enter_context(worker.frontier())))
            except CrawlDirError as error:
                raise ShardError(worker.index_dir, str(error)) from error
        yield LatestWins(known, [workers.index(worker) for worker in numbered])


class _Known(NamedTuple):
    """A worker's records: its frontier, None for a worker without; the first bytes of the keys of
    its URLs; exact forms of pages after its last checkpoint; and whether records were cut."""

    reader: FrontierReader | None
    prefixes: set[bytes]
    tail: set[str]
    is_cut_back: bool

    @classmethod
    def of(cls, worker: WorkerDirectory, reader: FrontierReader | None) -> Self:
        cut = bool(worker.manifest.get(CUT_BACK))
        return cls(reader, worker.host_prefixes(), worker.tail(), cut)


class LatestWins(Deduplicator):
    """If several workers have records of a page, the latest committed one counts. ``known`` are
    the workers' records, None for a worker that is left out; ``positions`` are the places of the
    numbered workers among all."""

    def __init__(self, known: Sequence[_Known | None], positions: Sequence[int]) -> None:
        self._known = [_NOTHING if one is None else one for one in known]
        self._positions = positions

    def doubtful(self, shard: int) -> bool:
        at = self._positions[shard]
        own = self._known[at]
        others = (found.prefixes for i, found in enumerate(self._known) if i != at)
        if own.tail or own.is_cut_back:
            return True
        return any(not own.prefixes.isdisjoint(prefixes) for prefixes in others)

    def counts(self, shard: int, exact: str, fetched: float) -> bool:
        at = self._positions[shard]
        exact = exact.partition(PART_MARK)[0]  # a part counts where its document does
        if exact in self._known[at].tail:
            return False
        prefix = url_key(exact)[:4]
        rivals = [i for i, one in enumerate(self._known) if i != at and prefix in one.prefixes]
        if not rivals:
            return True
        own = self._stored_at(at, exact)
        mine = (own if own is not None else fetched, -at)
        for i in rivals:
            other = self._stored_at(i, exact)
            if other is not None and (other, -i) > mine:
                return False
        return True

    def _stored_at(self, at: int, exact: str) -> float | None:
        """When a worker last stored the page; None if it never did."""
        reader = self._known[at].reader
        visit = None if reader is None else last_visit(reader, exact)
        if visit is None or visit.shard or not has_page(visit):
            return None
        return visit.stored or visit.time


_NOTHING = _Known(None, set(), set(), is_cut_back=False)
