"""Pages enter the search index, each under its canonical URL, each once::

    with IndexWriter(Path("crawl/index")) as index:
        index.add(page)                                   # replaces what had the same canonical URL
        index.add_anchors([(link.normalized, link.anchor), ...])
        index.commit()                                    # now others find it

Threads. `add`, `add_anchors` and `remove` belong to one thread, and go on at full speed while
`commit` or `refresh_anchors` runs in another. Tantivy's writer refuses to be touched during its own
commit ("Already borrowed"), so pages wait in a queue and go to it under a lock, in packs.

Recovery. A commit is all or nothing, and adding is idempotent: after a crash, add again whatever
was added since the last commit that returned. Tantivy commits first and the anchor table second, so
a crash between the two can only make a page be indexed with the same anchors twice.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha1
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import tantivy

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.index.anchors import AnchorTable
from larmspider.index.schema import page_fields, to_document
from larmspider.index.version import create_index, is_panic
from larmspider.items import Page

HEAP_MIN_BYTES = 15_000_000
"""Tantivy's least memory for one thread."""

_PACK = 64  # pages that go to Tantivy together, on the calling thread when no commit is under way
_QUEUE_LIMIT = 1_000  # pages that may wait for a commit to end; then `add` waits too
_REFRESH_ROUND = 500  # pages between the commits of refresh_all_anchors()
_HURRY_SECS = 0.1  # how often a wait for merges asks whether it has to end


class IndexWriter:
    """The one writer of an index; others may search it meanwhile."""

    def __init__(
        self,
        directory: Path,
        *,
        heap_bytes: int = 64_000_000,
        threads: int = 1,
        stemmer: str = "english",
    ) -> None:
        """Open the index in ``directory``, or create it.

        ``heap_bytes`` is shared by Tantivy's ``threads``; when it is full they write a segment.
        ``stemmer`` (schema.STEMMERS) is the language that words are stemmed for.

        Raises ConfigError for a value that cannot be, CrawlDirError for an index of another schema
        or stemmer, or one that another writer has open.
        """
        if threads < 1 or heap_bytes < threads * HEAP_MIN_BYTES:
            raise ConfigError(
                f"heap_bytes={heap_bytes}, threads={threads}: the index needs at least one thread "
                f"and {HEAP_MIN_BYTES} bytes for each"
            )
        self.directory = Path(directory)
        self._index = create_index(self.directory, stemmer)
        try:
            self._writer = self._index.writer(heap_bytes, threads)
        except ValueError as error:
            if "LockBusy" in str(error):
                raise CrawlDirError(
                    f"{self.directory}: another writer has the search index open; "
                    "one crawl at a time writes to a directory"
                ) from error
            raise CrawlDirError(f"{self.directory}: cannot write the index: {error}") from error
        self.anchors = AnchorTable(self.directory / "anchors")
        self._queue: deque[tuple[str, dict[str, Any] | None]] = deque()
        self._lock = threading.Lock()  # guards all below, and Tantivy's writer
        self._indexed: dict[str, int | None] = {}  # since the last commit: copies, or None: removed
        self._closed = False

    def __repr__(self) -> str:
        return f"<IndexWriter {self.directory}, {len(self._queue)} pages queued>"

    def add(self, page: Page, digest: str | None = None) -> None:
        """Index the page in place of what had its canonical URL; found after the next `commit`.

        Whether to index it at all (noindex, status) is the caller's decision. ``digest`` is the
        body's, where the caller has one already; else it is its SHA-1 in hex.
        """
        digest = digest or sha1(page.body, usedforsecurity=False).hexdigest()
        # its fields and not the page: a body of 16 MB must not wait for a commit
        self._enqueue(page.normalized or page.url, page_fields(page, digest))

    def remove(self, normalized: str) -> None:
        """Forget the page with this canonical URL, if there is one, at the next `commit`."""
        self._enqueue(normalized, None)

    def add_anchors(self, links: Iterable[tuple[str, str]]) -> None:
        """Take in (canonical target, anchor text) of all links of one page to other pages.

        The targets need not be indexed, now or ever. Kept at the next `commit`.
        """
        self.anchors.add(links)

    def commit(self) -> None:
        """Make everything added so far durable and visible; blocks for about 0.1 to 1 s.

        May run in another thread than `add`. Raises CrawlDirError if it cannot be written; what was
        added since the last commit then has to be added again. Nothing after `close`.
        """
        with self._lock:
            if not self._closed:  # close() has committed
                self._commit()

    def refresh_anchors(self, limit: int) -> int:
        """Index at most ``limit`` pages again whose anchor texts doubled since; how many it were.

        They are visible after the next `commit`.
        """
        with self._lock:
            return 0 if self._closed else self._refresh(limit, due_only=True)

    def refresh_all_anchors(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Index all pages again whose anchor texts changed since, and commit; how many it were.

        About 1 ms a page. Asks ``stop`` between rounds of 500; what is left, a later call does.
        """
        total = 0
        while not stop():
            with self._lock:
                if self._closed:
                    break
                self._commit()
                refreshed = self._refresh(_REFRESH_ROUND, due_only=False)
                self._commit()
            total += refreshed
            if refreshed < _REFRESH_ROUND:
                break
        return total

    def close(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Commit, wait for merges, give the index free. A second call does nothing.

        Once ``hurry`` says so merges are not waited for, or left undone; a later writer does them.
        """
        if self._closed:
            return
        with self._lock:
            self._closed = True
            try:
                self._commit()
                if not hurry():
                    self._wait_for_merges(hurry)
            finally:
                del self._writer  # Tantivy's lock goes with it
                self.anchors.close()

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

    def _enqueue(self, normalized: str, stored: dict[str, Any] | None) -> None:
        self._queue.append((normalized, stored))
        waiting = len(self._queue)
        if waiting >= _PACK and self._lock.acquire(blocking=waiting >= _QUEUE_LIMIT):
            try:
                with self._errors_named():
                    self._drain()
            finally:
                self._lock.release()

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            # whatever it is: pages have left the queue and may not be in the index, so they must
            # not count as indexed
            self._indexed = {}
            if not isinstance(error, Exception) and not is_panic(error):
                raise
            said = str(error) or repr(error)
            raise CrawlDirError(f"{self.directory}: cannot write the index: {said}") from error

    def _drain(self) -> None:
        """Hand the queue to Tantivy's threads, with the anchor texts known at the last commit."""
        pack = [self._queue.popleft() for _ in range(len(self._queue))]
        for (normalized, stored), texts in zip(
            pack, self.anchors.texts_of(normalized for normalized, _ in pack), strict=True
        ):
            if stored is None:
                self._writer.delete_documents_by_term("key", normalized)
                self._indexed[normalized] = None
            else:
                self._upsert(stored, texts)

    def _upsert(self, stored: dict[str, Any], texts: list[str]) -> None:
        document = to_document(stored, texts)
        self._writer.delete_documents_by_term("key", stored["key"])
        self._writer.add_document(document)
        self._indexed[stored["key"]] = len(texts)

    def _commit(self) -> None:
        with self._errors_named():
            self._drain()
            self._writer.commit()
        self.anchors.flush(self._indexed)
        self._indexed = {}

    def _refresh(self, limit: int, *, due_only: bool) -> int:
        with self._errors_named():
            return self._refresh_some(limit, due_only=due_only)

    def _refresh_some(self, limit: int, *, due_only: bool) -> int:
        # What Tantivy has but has not committed is newer than what could be read back, so it stays
        # for later; ask for that much more, to find ``limit`` pages all the same. What still waits
        # in the queue gets there later than this, and replaces it.
        changed = self.anchors.changed(limit + len(self._indexed), due_only)
        if not changed:
            return 0
        self._index.reload()
        searcher = self._index.searcher()
        schema = self._index.schema
        refreshed = 0
        for normalized, texts in changed:
            if refreshed == limit:
                break
            if normalized in self._indexed:
                continue
            query = tantivy.Query.term_query(schema, "key", normalized)
            hits = searcher.search(query, 1, count=False).hits
            if hits:
                stored = {name: v[0] for name, v in searcher.doc(hits[0][1]).to_dict().items()}
                self._upsert(stored, texts)
            else:
                self._indexed[normalized] = None
            refreshed += 1
        return refreshed
