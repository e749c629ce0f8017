"""Writes pages to the search index, each once under its URL in exact form::

    with IndexWriter(Path("crawl/index")) as index:
        index.add(page)                                   # replaces the page with the same URL
        index.add_anchors(page.exact, {(link.exact, link.anchor), ...})
        index.commit()                                    # now searchers find them

`add`, `add_anchors` and `remove` belong to one thread and do not wait while `commit` or
`refresh_anchors` runs in another: Tantivy's writer cannot be used during its own commit ("Already
borrowed"), so pages are queued and handed over under a lock, in packs.

A crawl calls `checkpoint`, which commits if that pays, and else writes pages to files, where they
wait for a later commit (waiting.py). A commit is all or nothing, and adding is idempotent: after a
crash, add everything since the last checkpoint again. This holds for anchors, too: a page's texts
replace its earlier ones. Tantivy commits before the anchor table, so a crash between the two can
only index a page twice with the same anchors.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import tantivy

from larmspider import options
from larmspider.access.renewal import Renewed, renew, renew_connected
from larmspider.access.sources import Sources
from larmspider.access.table import NAME as ACCESS
from larmspider.access.table import AccessWriter
from larmspider.checksums import break_seal, seal
from larmspider.errors import ConfigError, CrawlDirError, is_panic
from larmspider.files import in_words, sync_folder
from larmspider.index.anchors import NO_LINKS, AnchorTable, LinkTexts, Standing
from larmspider.index.likeness import Comparison, Simhashes
from larmspider.index.link_access import LinkAccess, covered
from larmspider.index.packed import PackedPages
from larmspider.index.page import IndexedPage
from larmspider.index.schema import (
    indexed_page,
    packed_page,
    stored_fields,
    to_document,
)
from larmspider.index.stems import Stems
from larmspider.index.unreached import NAME as UNREACHED
from larmspider.index.version import (
    META_NAME,
    create_index,
    note_restricted_of,
    restricted_of,
)
from larmspider.index.waiting import WaitingPage, WaitingPages
from larmspider.items import Page, split_part

if TYPE_CHECKING:
    from larmspider.options import Settings

HEAP_MIN_BYTES = 15_000_000
HEAP_MAX_BYTES = 4_294_967_295
"""Tantivy's least and most memory for one thread."""

REFRESH_LEAST, REFRESH_SHARE = 20, 20
"""Pages whose link texts a checkpoint updates, about 0.5 ms each: 20, or 1 in 20 pages that waited.
The others follow when nothing is left to fetch."""

_FULL = 2_000_000  # bytes left on a disk at which an error of a writer is taken for a full one
_PACK = 64  # pages handed to Tantivy together, on the calling thread
_MAX_PACKS = 64  # queued before `add` waits for a commit
_PACK_CHARS = 500_000  # characters: fewer long documents are handed over together, or queued
_ROUND = 500  # pages between two checks whether to stop
_REFRESH_COMMIT = 10_000  # most pages between two commits
_MERGED = 8  # segments of one size that Tantivy merges into one, without the replaced pages
_SMALL = 16_000  # pages; all segments below are of one size
_REPLACED = 8  # a merge pays if 1 in 8 pages was replaced
_LAST_SECS = 1.0  # for waiting pages when a crawl stops
_HURRY_SECS = 0.1  # between two calls of ``hurry``
_COMPARED = 32  # pages whose likenesses are computed together


def heap_bytes_of(settings: Settings) -> int:
    """LARM_INDEX_HEAP_BYTES. Raises ConfigError."""
    name = "LARM_INDEX_HEAP_BYTES"
    return options.integer(settings, name, minimum=HEAP_MIN_BYTES, maximum=HEAP_MAX_BYTES)


@dataclass(slots=True, eq=False)
class _Queued:
    """A page in the queue, or the removal of a page. ``comparison``: of this page and of the pages
    that were sent off with it for their likeness."""

    key: str
    page: IndexedPage | None
    comparison: Comparison | None = None
    chars: int = 0

    def __post_init__(self) -> None:
        if self.page is not None:
            self.chars = sum([len(one.compared) for one in self.page.documents])

    @property
    def ready(self) -> bool:
        return self.page is None or (self.comparison is not None and self.comparison.done)

    def settle(self) -> None:
        """Wait for the likeness of each text."""
        if self.comparison is not None:
            self.comparison.settle()


class IndexWriter:
    """The one writer of an index; others may search it meanwhile."""

    def __init__(
        self,
        directory: Path,
        *,
        heap_bytes: int = 64_000_000,
        threads: int = 1,
        stemmer: str = "english",
        simhashes: Simhashes | None = None,
        collects: bool = False,
    ) -> None:
        """Open the index in ``directory``, or create it.

        Tantivy's ``threads`` share ``heap_bytes`` and write a segment when they are full.
        ``stemmer`` is one of schema.STEMMERS. Without ``simhashes`` copies are pages with the same
        bytes. It ``collects`` pages until a commit, for `checkpoint`; else it hands them to
        Tantivy as they come.

        Raises ConfigError for an impossible value, CrawlDirError for an index of another schema
        or stemmer, or an index that another writer has open.
        """
        least, most = threads * HEAP_MIN_BYTES, threads * HEAP_MAX_BYTES
        if threads < 1 or not least <= heap_bytes <= most:
            raise ConfigError(
                f"heap_bytes={heap_bytes}, threads={threads}: the index needs at least one thread "
                f"and {HEAP_MIN_BYTES} to {HEAP_MAX_BYTES} bytes for each"
            )
        self.directory = Path(directory)
        self._index = create_index(self.directory, stemmer)
        break_seal(self.directory)
        self._stems, self._packed = Stems(stemmer), PackedPages(self.directory)
        try:
            self._writer = self._index.writer(heap_bytes, threads)
            # a kill in mid-commit leaves files whose names the same commit takes again
            self._writer.garbage_collect_files()
        except ValueError as error:
            if "LockBusy" in str(error):
                raise CrawlDirError(
                    f"{self.directory}: another writer has the search index open; "
                    "one crawl at a time writes to a directory"
                ) from error
            raise CrawlDirError(f"{self.directory}: cannot write the index: {error}") from error
        self.anchors = AnchorTable(self.directory / "anchors")
        self.access = AccessWriter(self.directory)
        self._collects, self._waiting = collects, WaitingPages(self.directory, self._packed)
        self._simhashes = simhashes
        self._queue: deque[_Queued] = deque()
        self._uncompared: list[_Queued] = []
        self._queued_chars = 0
        self._lock = threading.Lock()  # guards all below, and Tantivy's writer
        self._indexed: dict[str, int | None] = {}  # since the last commit: copies, or None: removed
        self._slots: dict[str, int | None] = {}  # of the pages in it
        self._closed = False
        self._refused: CrawlDirError | None = None
        self.before_commit: Callable[[], object] = lambda: None
        """Called when a commit has the pages that it is about to make durable."""

    def __repr__(self) -> str:
        return f"<IndexWriter {self.directory}, {len(self._queue)} pages queued>"

    def add(self, page: Page, digest: str | None = None) -> None:
        """Replace the page with this URL, from the next `commit` on.

        The caller decides whether to index it (noindex, status). ``digest`` of the body is SHA-1 in
        hex by default.
        """
        digest = digest or sha1(page.body, usedforsecurity=False).hexdigest()
        # not the page itself, whose body of 16 MB must not be kept until a commit
        self.add_indexed(indexed_page(page, digest))

    def add_indexed(self, page: IndexedPage) -> None:
        """`add` for a page of another index."""
        self._enqueue(page.key, page)

    def remove(self, normalized: str) -> None:
        """Remove the page with this URL, in exact form, and its parts, at the next `commit`."""
        self._enqueue(normalized, None)

    def add_anchors(self, page: str, links: Collection[tuple[str, str]]) -> None:
        """Take in (exact target, anchor text) of a page's links to other pages, indexed or not.
        They replace its earlier links; written at the next `commit`."""
        self.anchors.add(page, links)

    def move_link_texts(self, old: str, new: str) -> None:
        """Links to a URL that has moved count for its new one from now on."""
        self.anchors.move(old, new)

    def checkpoint(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Make everything added so far durable; and visible, with some pages whose link texts have
        doubled, if it is time for that (`WaitingPages.due`). Otherwise as `commit`."""
        with self._lock:
            if self._closed:
                return
            with self._errors_named():
                self._drain()
                due = self._waiting.due(self.count())
                moved = self._moved()
            if not (due or self._indexed or moved):
                self._keep()
                return
        if not stop():
            self.refresh_anchors(max(REFRESH_LEAST, due // REFRESH_SHARE))
        self._commit_unless_closed(due, stop)

    def commit(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Make everything added so far durable and visible. Blocks for about 0.1 to 1 s, and 0.5 ms
        for each page that waits. Calls ``stop`` every 500 pages; the pages left then wait on.

        May run in another thread, beside `add`; does nothing after `close`. Raises
        CrawlDirError if the disk refuses; the pages since the last commit then have to be added
        again.
        """
        self._commit_unless_closed(None, stop)

    def _commit_unless_closed(self, due: int | None, stop: Callable[[], bool]) -> None:
        with self._lock:
            if not self._closed:  # close() has committed
                self._commit(due, stop)
                self._share()

    def withdraw_link_texts(
        self,
        access: LinkAccess,
        pages: Callable[[], Iterable[tuple[str, str]]],
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """If hosts have become restricted, remove the texts of links on their pages from pages of
        other hosts (`AnchorTable.withdraw`), index these again, and note that it is done. Ends once
        ``stop``, called often, returns True; a later call then begins again."""
        if covered(access.restricted, noted := restricted_of(self.directory)):
            if noted is None:
                note_restricted_of(self.directory, access.restricted)
            return
        if self.anchors.sizes()["pairs"]:
            self.anchors.withdraw(access, pages(), self._keys, stop)
            if self.count() or len(self._waiting):
                self.refresh_all_anchors(stop)
            if stop():
                return
        note_restricted_of(self.directory, access.restricted)

    def renew_access(self, sources: Sources, stop: Callable[[], bool] = lambda: False) -> Renewed:
        """Bring the access lists up to date, without reading a document. A right that was taken
        away is gone from the search when this returns. Documents of connectors are left to
        `renew_connected`. Raises CrawlDirError."""
        self.commit(stop)  # for pages that wait, too
        found = renew(self.access, sources, self._documents, stop)
        self.access.flush()
        for name in found.silent:
            self.anchors.add(name, ())
        if found.silent:
            self.refresh_all_anchors(stop)
        elif self.access.moved:
            self.commit(stop)
        return found

    def renew_connected(
        self, sources: Sources, stop: Callable[[], bool] = lambda: False
    ) -> Renewed:
        """As `renew_access`, for documents of connectors. The next commit writes the changes, so
        that this may run beside the crawl."""
        return renew_connected(self.access, sources, self._documents, stop)

    def _documents(self, begin: str) -> list[str]:
        """The keys of documents that begin like this, without their parts."""
        return [key for key in self._keys(begin) if not split_part(key)[1]]

    def _keys(self, begin: str = "") -> Iterator[str]:
        """The keys of all pages in the index that begin like this."""
        self._index.reload()
        yield from (key for key, _ in self._index.searcher().terms_with_prefix("key", begin))

    def refresh_anchors(self, limit: int) -> int:
        """Index again at most ``limit`` pages whose anchor texts have doubled; return their number.

        Visible after the next `commit`.
        """
        with self._lock:
            return 0 if self._closed else self._refresh(limit, due_only=True)

    def refresh_all_anchors(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Index again all pages whose anchor texts have changed, and commit; return their number.

        About 0.5 ms a page. Ends early if ``stop``, called every 500 pages, returns True. Where
        many pages of small segments were replaced, the last commit makes Tantivy merge these.
        """
        self.commit(stop)
        total = 0
        while not stop() and (done := self._refresh_and_commit(stop)):
            total += done
        return total

    def _refresh_and_commit(self, stop: Callable[[], bool]) -> int:
        size, done, refreshed = self._next_commit(), 0, 1
        while done < size and refreshed and not stop():
            with self._lock:
                limit = 0 if self._closed else min(_ROUND, size - done)
                refreshed = self._refresh(limit, due_only=False)
            done += refreshed
        if done:
            self.commit()
        return done

    def _next_commit(self) -> int:
        """How many of the pages with changed anchor texts to commit together."""
        with self._lock, self._errors_named():
            changed = 0 if self._closed else self.anchors.count_changed()
            meta = json.loads((self.directory / "meta.json").read_bytes())
        small = [one for one in meta["segments"] if one["max_doc"] < _SMALL]
        replaced = changed + sum((one["deletes"] or {}).get("num_deleted_docs", 0) for one in small)
        commits = 1
        if replaced * _REPLACED >= sum(one["max_doc"] for one in small):
            # eight or more are being merged already
            commits = _MERGED - (len(small) if len(small) < _MERGED else 1)
        return min(-(-changed // commits), _REFRESH_COMMIT)

    @property
    def waiting(self) -> int:
        """Pages that wait for a commit, also after `close`."""
        return len(self._waiting)

    def count(self) -> int:
        """Pages in the index, as of the last `commit`."""
        self._index.reload()
        return self._index.searcher().num_docs

    def close(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Commit, wait for merges and release the index. May be called twice.

        Once ``hurry`` returns True, merges end, or are not waited for, and after a second waiting
        pages are left to a later writer. If the index cannot be written nothing is committed, and
        the pages wait for the next writer.
        """
        if self._closed:
            return
        with self._lock:
            self._closed = True
            try:
                if self._refused is None:
                    end = time.monotonic() + _LAST_SECS
                    self._commit(enough=lambda: hurry() and time.monotonic() > end)
                    if not hurry():
                        self._wait_for_merges(hurry)
            finally:
                del self._writer  # Tantivy's lock goes with it
                self.anchors.close(tidy=not hurry())
                self._share()
            if not hurry():
                self._seal()

    def _seal(self) -> None:
        with suppress(OSError):  # of a full disk: then the files have no seal
            seal_index(self.directory)

    def _share(self) -> None:
        """Give Tantivy's metadata, which it makes for its user alone, the mode of other files."""
        with suppress(OSError):  # it is just being replaced
            mode = (self.directory / META_NAME).stat().st_mode & 0o777
            for name in ("meta.json", ".managed.json"):
                (self.directory / name).chmod(mode)

    def _wait_for_merges(self, hurry: Callable[[], bool]) -> None:
        def wait() -> None:
            with suppress(ValueError, OSError, RuntimeError):  # the segments stay as they are
                writer.wait_merging_threads()

        writer = self._writer
        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        while waiting.is_alive() and not hurry():
            waiting.join(_HURRY_SECS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _enqueue(self, key: str, indexed: IndexedPage | None) -> None:
        page = _Queued(key, indexed)
        self._queue.append(page)
        if indexed is not None:
            self._uncompared.append(page)
            if len(self._uncompared) == _COMPARED:
                asked, self._uncompared = self._uncompared, []
                self._compare(asked)
            self._queued_chars += page.chars
        waiting = len(self._queue)
        packs = max(waiting / _PACK, self._queued_chars / _PACK_CHARS)
        full = packs >= _MAX_PACKS
        # collected pages are taken at the checkpoint, in its thread
        is_due = full or (packs >= 1 and not self._collects)
        if is_due and self._lock.acquire(blocking=full):
            try:
                with self._errors_named():
                    self._drain(wait=full)
                    self._index_pages(self._waiting.take(self._waiting.too_many()))
            finally:
                self._lock.release()

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Turn errors of Tantivy into CrawlDirError. After an error all further writes fail:
        Tantivy would commit the rest, such as deletions without the pages that replace them."""
        if self._refused is not None:
            raise CrawlDirError(str(self._refused))
        try:
            yield
        except BaseException as error:
            # pages that left the queue may not be in the index, so they must not count as indexed
            self._indexed = {}
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            said = str(error) or repr(error)
            if isinstance(error, Exception):
                said = in_words(error, self.directory)
            full = "No space left on device"
            if full not in said and self._disk_is_full():
                said = f"{full}: {said}"  # Tantivy's threads leave it out
            self._refused = CrawlDirError(f"{self.directory}: cannot write the index: {said}")
            raise self._refused from error

    def _disk_is_full(self) -> bool:
        try:
            return shutil.disk_usage(self.directory).free < _FULL
        except OSError:  # the directory is gone, or cannot be read
            return False

    def _compare(self, pages: Sequence[_Queued]) -> None:
        """Have the likeness of pages computed."""
        if self._simhashes is not None:
            comparison = Comparison((page.page for page in pages if page.page), self._simhashes)
            for page in pages:
                page.comparison = comparison

    def _drain(self, *, wait: bool = True) -> None:
        """Hand the queue to Tantivy, with the anchor texts of the last commit. Without ``wait``
        only pages whose likeness is known."""
        pack: list[_Queued] = []
        for _ in range(len(self._queue)):
            if not (wait or self._simhashes is None or self._queue[0].ready):
                break
            pack.append(self._queue.popleft())
            self._queued_chars -= pack[-1].chars
        self._compare([page for page in pack if page.comparison is None])
        for page in pack:
            page.settle()
        if not self._collects:
            self._index_pages([WaitingPage(page.key, page.page, []) for page in pack])
            return
        self._index.reload()
        indexed = self._index.searcher()
        for page in pack:
            leaves = page.page is None and indexed.doc_freq("key", page.key) > 0
            self._waiting.put(page.key, page.page, urgent=leaves)

    def _index_pages(self, pages: Collection[WaitingPage]) -> None:
        """Hand pages and removals to Tantivy, with the link texts of the last flush."""
        links_to = self.anchors.links_to(page.key for page in pages)
        for waiting, links in zip(pages, links_to, strict=True):
            if waiting.page is None:
                self._writer.delete_documents_by_term("key", waiting.key)
                self._writer.delete_documents_by_term("container", waiting.key)
                self._indexed[waiting.key] = None
            else:
                self._upsert(waiting.page, links, waiting.packed)

    def _upsert(self, page: IndexedPage, links: LinkTexts, packed: Sequence[bytes | None]) -> None:
        """``packed``: the page and its parts; None for parts that are not packed yet."""
        as_packed, slot = iter(packed), self.access.slot_of(page.key)
        document = to_document(page, links, self._stems, self._packed, next(as_packed, None), slot)
        self._writer.delete_documents_by_term("key", page.key)
        if page.parts is not None:
            self._writer.delete_documents_by_term("container", page.key)
        self._writer.add_document(document)
        for part in page.parts or ():
            self._writer.add_document(
                to_document(part, NO_LINKS, self._stems, self._packed, next(as_packed, None), slot)
            )
        self._indexed[page.key], self._slots[page.key] = len(links.texts), slot

    def _keep(self) -> None:
        with self._errors_named():
            self.before_commit()
            self._waiting.write()
            self.access.flush()
        self.anchors.flush()

    def _commit(self, due: int | None = None, enough: Callable[[], bool] = lambda: False) -> None:
        """``due``: of the pages that wait only the first ones; or until ``enough``."""
        with self._errors_named():
            self._drain()
            self.before_commit()
            self._waiting.write()
            stood = self._index_waiting(len(self._waiting) if due is None else due, enough)
            written = self._write_moved()
            self.access.flush()
            self._writer.commit()
            sync_folder(self.directory)  # Tantivy does so before it names the commit, and not after
        self.anchors.flush(self._indexed, stood)
        self._indexed, self._slots = {}, {}
        with self._errors_named():
            self._waiting.committed()
            self.access.written(written)
            self.access.flush()

    def _moved(self) -> list[str]:
        """The documents in the index whose slot of the access lists has changed."""
        self._index.reload()
        indexed = self._index.searcher()
        new = [name for name in self.access.moved if not indexed.doc_freq("key", name)]
        self.access.written([name for name in new if name not in self._indexed])
        return [*self.access.moved]

    def _write_moved(self) -> list[str]:
        """Write these documents, and the documents in them, with their new slots; their names."""
        done = list[str]()
        moved = self._moved() if self.access.moved else ()
        searcher, schema = self._index.searcher(), self._index.schema
        for name, links in zip(moved, self.anchors.links_to(moved), strict=True):
            slot = self.access.slot_of(name)
            if name in self._indexed:
                if self._slots.get(name, slot) == slot:
                    done.append(name)
                continue
            either = tantivy.Query.boolean_query(
                [
                    (tantivy.Occur.Should, tantivy.Query.term_query(schema, field, name))
                    for field in ("key", "container")
                ]
            )
            number = int(searcher.search(either, 1).count)  # type: ignore[attr-defined]
            found = searcher.search(either, max(1, number), count=False).hits
            documents = [searcher.doc(address) for _, address in found]
            for field in ("key", "container"):
                self._writer.delete_documents_by_term(field, name)
            for document in documents:
                page = IndexedPage.of(stored_fields(document, self._packed))
                texts = links if page.key == name else NO_LINKS
                packed = packed_page(document)
                self._writer.add_document(
                    to_document(page, texts, self._stems, self._packed, packed, slot)
                )
            done.append(name)
        return done

    def _index_waiting(self, due: int, enough: Callable[[], bool]) -> Mapping[str, Standing]:
        """Index pages that wait, with all link texts that came by now, and return how the links
        stood to pages that were indexed before."""
        if not due:
            return {}
        stood = self.anchors.standing(self._indexed)
        self.anchors.flush()
        for start in range(0, due, _ROUND):
            if enough():
                break
            self._index_pages(self._waiting.take(min(_ROUND, due - start)))
        return stood

    def _refresh(self, limit: int, *, due_only: bool) -> int:
        with self._errors_named():
            return self._refresh_some(limit, due_only=due_only)

    def _refresh_some(self, limit: int, *, due_only: bool) -> int:
        # Pages that Tantivy has not committed, or that wait, are newer than the readable ones, so
        # they are left for later. Pages in the queue replace these later.
        newer = self._indexed.keys() | self._waiting.keys
        changed = self.anchors.changed(limit, due_only, newer)
        if not changed:
            return 0
        self._index.reload()
        searcher = self._index.searcher()
        schema = self._index.schema
        refreshed = 0
        for normalized, links in changed:
            query = tantivy.Query.term_query(schema, "key", normalized)
            hits = searcher.search(query, 1, count=False).hits
            if hits:
                document = searcher.doc(hits[0][1])
                page = IndexedPage.of(stored_fields(document, self._packed))
                self._upsert(page, links, [packed_page(document)])
            else:
                self._indexed[normalized] = None
            refreshed += 1
        return refreshed


def seal_index(directory: Path) -> None:
    """Seal the files while no merge is under way. Raises OSError."""
    names = [META_NAME, "meta.json", ".managed.json", "ahead", UNREACHED, ACCESS]
    names.append("anchors/data.mdb")
    for pattern in ("pages-*.zdict", "waiting-*"):
        names += (path.name for path in directory.glob(pattern))
    seal(directory, names)
