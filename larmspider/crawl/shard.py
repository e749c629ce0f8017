"""One worker's part of a crawl, as of its last checkpoint.

What lies behind the committed positions is no part of it: the worker that wrote it may have died,
and another one has fetched these pages again. It goes when the worker comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from larmspider.crawl.reader import CrawlDir, StoredPage, last_visit
from larmspider.workdir.manifest import files_in, stores_in
from larmspider.frontier.storage.records import url_key
from larmspider.frontier.storage.lmdb_env import BeingMade
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import UrlState
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS
from larmspider.pipelines.records import read_records

_NORMALIZED = STORE_LOG_COLUMNS.index("url-normalized")


class Shard(CrawlDir):
    """CrawlDir up to the last checkpoint."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._prefixes: tuple[int, set[bytes]] = -1, set()
        self._tail: tuple[tuple[int, int], set[str]] = (-1, -1), set()

    @contextmanager
    def frontier(self) -> Iterator[FrontierReader | None]:
        """None also for a worker that is just beginning, which the others need not wait for."""
        with ExitStack() as stack:
            reader = None
            with suppress(BeingMade):
                reader = stack.enter_context(super().frontier())
            yield reader

    def positions(self) -> Mapping[str, bytes] | None:
        """The stores' positions; None where they are not known: under another scheduler."""
        with self.frontier() as frontier:
            if frontier is not None:
                return frontier.positions()
        return {} if "frontier" in files_in(self.description) else None

    def _end(self, name: str, size: int) -> int:
        positions = self.positions()
        if positions is None:
            return size
        if not positions:
            return 0
        for store, files in stores_in(self.description).items():
            position = positions.get(store.rpartition(".")[2])
            if name in files and position is not None:
                # of page files: number of the file, its length, length of store.log
                length = position.split()[-1] if position.split() else b"0"
                return min(size, int(length)) if length.isdigit() else size
        return size

    def stored(self, normalized: str) -> StoredPage | None:
        page = super().stored(normalized)
        return None if page is None else replace(page, shard=str(self.path))

    def pages(self) -> Iterator[StoredPage]:
        for page in super().pages():
            yield replace(page, shard=str(self.path))

    def visit_time(self, normalized: str) -> float:
        """When this worker was last done with a URL; 0.0: it does not know it."""
        with self.frontier() as frontier:
            visit = None if frontier is None else last_visit(frontier, normalized)
        return 0.0 if visit is None else visit.time

    def host_prefixes(self) -> set[bytes]:
        """Of the hosts of all URLs here, as FrontierReader has them; kept until the next commit."""
        with self.frontier() as frontier:
            if frontier is None:
                return set()
            commits = frontier.commits
            if self._prefixes[0] != commits:
                self._prefixes = commits, frontier.host_prefixes()
            return self._prefixes[1]

    def tail(self) -> set[str]:
        """Canonical URLs of pages behind the last checkpoint, which the index may have already."""
        log = self.path / "store.log"
        size = log.stat().st_size if log.exists() else 0
        end = self._end("store.log", size)
        if end == size:
            return set()
        if self._tail[0] != (end, size):
            behind = {
                fields[_NORMALIZED] for fields in read_records(log, len(STORE_LOG_COLUMNS), end)
            }
            self._tail = (end, size), {url for url in behind if not self._has(url)}
        return self._tail[1]

    def _has(self, normalized: str) -> bool:
        with self.frontier() as frontier:
            return frontier is not None and frontier.state(url_key(normalized)) is UrlState.STORED
