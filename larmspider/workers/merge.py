"""Makes one directory from many workers' directories: logs, page files and search index.

    merge(crawl, Path("whole"), page_file_bytes=1 << 30, heap_bytes=1 << 28)
    # Merged(pages=2_391, fetches=2_480, ...)

Only committed pages count. If workers have copies of a page, the latest counts, as everywhere
(crawl/worker_dirs.py); fetch.log has all lines in the order of their times. The directory is for
reading, and is complete or absent: it is made beside its place and renamed. Its frontier has the
outcome of each URL and no queue, so it cannot be crawled further.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from heapq import merge as merge_sorted
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

from msgspec.structs import replace

from larmspider.access.table import AccessTable
from larmspider.crawl.reader import WorkerDirectory
from larmspider.crawl.worker_dirs import CrawlOfWorkers, latest_wins
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.fetch.blobs import FOLDER, Blob
from larmspider.files import replace_file, sync_file, sync_folder
from larmspider.frontier.hosts import HostRecord, pack_host
from larmspider.frontier.storage.lmdb_env import LmdbFiles, WriteBatch
from larmspider.frontier.storage.records import (
    merged_rows,
    pack_counts,
    pack_merged,
    pack_visit,
)
from larmspider.index.anchors import page_key
from larmspider.index.link_access import LinkAccess, covered
from larmspider.index.rebuild import stored_documents
from larmspider.index.unreached import carry_over
from larmspider.index.version import (
    check_format,
    has_index,
    note_restricted_of,
    restricted_of,
    stemmer_of,
)
from larmspider.index.writer import IndexWriter
from larmspider.items import PART_MARK, Page
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS, FetchLogPipeline
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS, LinkLogPipeline
from larmspider.pipelines.page_files import PageFilesPipeline
from larmspider.pipelines.records import RecordLog
from larmspider.pipelines.reextract import linking_pages
from larmspider.search.reading import Deduplicator
from larmspider.workdir.directory import check_free
from larmspider.workdir.frames import open_stored, present
from larmspider.workdir.manifest import (
    LOCK,
    MANIFEST,
    MERGED,
    RULES_DIR,
    SHARED,
)
from larmspider.workdir.manifest_copy import packed
from larmspider.workdir.restricted import note_restricted

Progress: TypeAlias = Callable[[int, int], object]
"""Called with bytes done and in all, about."""

_AT_ONCE = 10_000
_LOGS = ("store.log", "fetch.log", "links.log")
_DRAFT = ".merging"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Merged:
    """The contents of the new directory: numbers of pages, fetches, links and indexed pages."""

    pages: int
    fetches: int
    links: int
    indexed: int


def merge(
    crawl: CrawlOfWorkers,
    target: Path,
    *,
    page_file_bytes: int,
    heap_bytes: int,
    progress: Progress = lambda _done, _all: None,
    restricted: Collection[str] | None = None,
) -> Merged:
    """Make ``target``, which must not exist or be empty, from a crawl without running workers.
    ``restricted``: the hosts whose pages are not for everybody; by default the restricted hosts of
    all its crawl.json files.

    Raises ConfigError, CrawlDirError; ``target`` is then unchanged.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target}: expected an empty directory, or one that does not exist yet")
    for source in (crawl.path, *(worker.path for worker in crawl.workers)):
        if (source / MANIFEST).exists() and target.resolve().is_relative_to(source.resolve()):
            raise ConfigError(
                f"{target}: expected a directory outside of {source}, where it would count as"
                " another worker's"
            )
    indexed = any(has_index(worker.index_dir) for worker in crawl.workers)
    for worker in crawl.workers:
        check_free(worker.path / LOCK)
        if damage := worker.damage():
            raise CrawlDirError(f"{damage}: the merged directory would lack what is behind that")
        _check_frames(worker)
        if worker.logs.size("store.log") and not has_index(worker.index_dir) and indexed:
            raise CrawlDirError(f"{worker.index_dir} is missing or broken, other workers have one")
        if has_index(worker.index_dir):
            check_format(worker.index_dir)
    if restricted is None:
        restricted = crawl.restricted()
    draft = target.with_name(f"{target.name}{_DRAFT}")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
        with latest_wins(crawl.workers, crawl.workers) as dedup:
            merging = _Merge(crawl, draft, dedup, progress, restricted)
            found = merging.run(page_file_bytes, heap_bytes)
        if target.exists():
            target.rmdir()
        draft.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise CrawlDirError(f"{target} cannot be made: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return found


class _Merge:
    def __init__(
        self,
        crawl: CrawlOfWorkers,
        draft: Path,
        dedup: Deduplicator,
        progress: Progress,
        restricted: Collection[str],
    ) -> None:
        self._restricted = restricted
        self._crawl, self._draft, self._dedup = crawl, draft, dedup
        self._progress = progress
        self._done = 0
        self._counted: list[set[bytes]] = [set() for _ in crawl.workers]
        """The pages of each worker that count, by `page_key`."""
        self._all = sum(worker.logs.size(name) for worker in crawl.workers for name in _LOGS)

    def run(self, page_file_bytes: int, heap_bytes: int) -> Merged:
        pages = self._pages(page_file_bytes)
        fetches, links = self._fetches(), self._links()
        indexed = self._index(heap_bytes)
        self._frontier()
        self._rules()
        self._manifest()
        return Merged(pages, fetches, links, indexed)

    def _step(self, size: int) -> None:
        self._done += size
        self._progress(self._done, self._all)

    def _pages(self, page_file_bytes: int) -> int:
        store = PageFilesPipeline(self._draft, page_file_bytes, _NO_COUNTERS)
        store.open_spider()
        number = 0
        with _closing(store):
            for at, worker in enumerate(self._crawl.workers):
                for page in worker.pages():
                    self._step(200)
                    if not self._dedup.counts(at, page.exact, 0.0):
                        continue
                    self._counted[at].add(page_key(page.exact))
                    copy = Page(
                        page.url,
                        page.normalized,
                        page.status,
                        page.mime,
                        worker.body(page),
                        page.from_page,
                        page.link_type,
                        title=page.title,
                    )
                    blob = self._copied(worker.body_file(page))
                    if blob is not None:
                        copy.body_file, copy.file_bytes = blob.path, blob.size
                        copy.digest = blob.digest
                    else:
                        store.max_bytes = max(store.max_bytes, page.size)
                    store.write(copy)
                    number += 1
        return number

    def _copied(self, file: Path | None) -> Blob | None:
        if file is None:
            return None
        blob = Blob(self._draft / FOLDER)
        with file.open("rb") as body:
            while piece := body.read(_PIECE):
                blob.write(piece)
        blob.finish()
        return blob

    def _fetches(self) -> int:
        every = (_records(worker, "fetch.log") for worker in self._crawl.workers)
        return self._write(
            RecordLog(self._draft / FetchLogPipeline.file_name, FETCH_LOG_COLUMNS),
            ([fields] for fields in merge_sorted(*every, key=itemgetter(0))),
        )

    def _links(self) -> int:
        return self._write(
            RecordLog(self._draft / LinkLogPipeline.file_name, LINK_LOG_COLUMNS),
            chain.from_iterable(
                self._links_of(at, worker) for at, worker in enumerate(self._crawl.workers)
            ),
        )

    def _links_of(self, at: int, worker: WorkerDirectory) -> Iterator[list[list[str]]]:
        """The links of each page whose counting copy is this worker's."""
        for page, links in groupby(worker.logs.links(), key=itemgetter(0)):
            if self._dedup.counts(at, self._crawl.forms(page).exact, 0.0):
                yield list(links)

    def _write(self, log: RecordLog, groups: Iterator[list[list[str]]]) -> int:
        number = 0
        with closing(log):
            for records in groups:
                number += log.extend(records)
                self._step(100 * len(records))
            log.flush()
        return number

    def _index(self, heap_bytes: int) -> int:
        indexed = [
            (at, worker.index_dir)
            for at, worker in enumerate(self._crawl.workers)
            if has_index(worker.index_dir)
        ]
        if not indexed:
            return 0
        stemmer = stemmer_of(indexed[0][1]) or "english"
        with IndexWriter(self._draft / "index", heap_bytes=heap_bytes, stemmer=stemmer) as writer:
            for at, directory in indexed:
                writer.anchors.take(directory / "anchors", self._counted[at].__contains__)
            self._withdraw(writer, [directory for _, directory in indexed])
            for at, directory in indexed:
                table = AccessTable(directory)
                table.refresh()
                writer.access.adopt_rules(table)
                _, documents = stored_documents(directory)
                for number, (key, page) in enumerate(documents, 1):
                    # a killed worker may have indexed uncommitted pages
                    if page is not None and _page_of(key) in self._counted[at]:
                        writer.access.adopt(key, table)
                        writer.add_indexed(page)
                    if number % _AT_ONCE == 0:
                        writer.commit()
            writer.commit()
            number = writer.count()
            carry_over(
                [directory for _, directory in indexed],
                self._draft / "index",
                lambda _, key: any(_page_of(key) in counted for counted in self._counted),
            )
        return number

    def _withdraw(self, writer: IndexWriter, indexes: Sequence[Path]) -> None:
        """Remove link texts of restricted hosts: a worker may have indexed link texts of a host
        that another worker has found to be restricted."""
        noted = [restricted_of(directory) for directory in indexes]
        access = LinkAccess({*self._restricted, *chain.from_iterable(one or () for one in noted)})
        if all(covered(access.restricted, one) for one in noted):
            note_restricted_of(writer.directory, access.restricted)
        else:
            writer.withdraw_link_texts(
                access, lambda: linking_pages(self._draft, self._crawl.forms)
            )

    def _frontier(self) -> None:
        """Write the outcome of each URL and host, for readers; not the queues."""
        with self._crawl.frontier() as frontier:
            if frontier is None:
                return
            files = LmdbFiles(self._draft / "frontier")
            try:
                batch = WriteBatch()
                for name, (record, counts) in frontier.hosts().items():
                    batch.hosts[b"h" + name.encode()] = record or pack_host(HostRecord(name))
                    batch.hosts[b"c" + name.encode()] = pack_counts(counts)
                    for note in (
                        f"robots {name}",
                        f"aliases {name}",
                        f"traps {name}",
                        f"shortfall {name}",
                        f"views {name}",
                    ):
                        if (value := frontier.note(note)) is not None:
                            batch.meta[b"n" + note.encode()] = value
                for one in frontier.all_merged():
                    key = one.entry.key
                    batch.urls[key] = pack_merged(one, 1)
                    batch.aliases |= dict.fromkeys(merged_rows(one.entry.host, key, one.into), b"")
                for key, visit in frontier.visits():
                    batch.urls[key] = pack_visit(replace(visit, shard=""), 0)
                    if len(batch) >= _AT_ONCE:
                        files.write(batch)
                        batch = WriteBatch()
                files.write(batch)
            finally:
                files.close()

    def _rules(self) -> None:
        for source in (self._crawl.path, *(worker.path for worker in self._crawl.workers)):
            if (source / RULES_DIR).is_dir() and not (self._draft / RULES_DIR).exists():
                shutil.copytree(source / RULES_DIR, self._draft / RULES_DIR)

    def _manifest(self) -> None:
        own = self._crawl.workers[0].manifest
        manifest = {**own, **self._crawl.manifest}
        manifest.pop(SHARED, None)
        manifest["settings"] = own.get("settings", {}) | self._crawl.manifest.get("settings", {})
        manifest["end"] = own.get("end")
        note_restricted(manifest, self._restricted)
        manifest[MERGED] = [str(worker.path) for worker in self._crawl.workers]
        replace_file(self._draft / MANIFEST, packed(manifest))
        for folder, _, files in os.walk(self._draft):
            for name in files:
                sync_file(Path(folder, name))
            sync_folder(Path(folder))


def _page_of(key: str) -> bytes:
    """The `page_key` of a page, or of the document that a part is of."""
    return page_key(key.partition(PART_MARK)[0])


def _check_frames(worker: WorkerDirectory) -> None:
    """Raise CrawlDirError for a compressed log with a damaged frame, which a search would skip."""
    for name in _LOGS:
        left = worker.logs.size(name)
        if left and present(worker.path / name) != worker.path / name:
            with open_stored(worker.path / name) as log:
                while left > 0 and (data := log.read(min(left, _PIECE))):
                    left -= len(data)


def _records(worker: WorkerDirectory, name: str) -> Iterator[list[str]]:
    return (fields for _, fields in worker.logs.search(name, None, 0))


@contextmanager
def _closing(store: PageFilesPipeline) -> Iterator[None]:
    """Flush at the end, which may raise OSError; close even then."""
    with ExitStack() as stack:
        stack.callback(store.close_spider)
        yield
        store.flush()


_NO_COUNTERS: Any = SimpleNamespace(
    set_value=lambda *_arguments: None, inc_value=lambda *_arguments: None
)
