"""Takes pages out of a crawl for good, because an operator wants it, whether it runs or not.

    found = find(crawl, Rule.of("http://wiki/hr/.*", crawl.forms))
    take_out(found, stores, backend)             # beside a crawl: `scrapy remove` asks it to
    take_out_now(crawl, found, settings)         # no crawl runs

Each page is taken out of the search and of the counts, and its URL is refused from then on. What
the logs and page files have of it goes with the next `scrapy compact`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from scrapy.settings import BaseSettings
from scrapy.signalmanager import SignalManager
from scrapy.utils.misc import load_object

from larmspider.crawl.reader import CrawlDir, has_page
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import QueuedUrl, host_of
from larmspider.items import Removed
from larmspider.pipelines.store import Store
from larmspider.urls.canonical import Forms
from larmspider.workdir.directory import locked
from larmspider.workdir.manifest import LOCK, is_shared, stores_in
from larmspider.workdir.removals import FILE, Removals, Rule

if TYPE_CHECKING:
    from larmspider.frontier.storage.backend import Backend

REASON = f"taken out by the operator ({FILE})"
_DELETED_LOG = "larmspider.pipelines.deleted_log.DeletedLogPipeline"
AT_ONCE = 200
"""Pages that are taken out before the crawl has a turn; some 20 ms."""


@dataclass(slots=True)
class Found:
    """What a rule fits: ``pages`` that are stored, ``others`` that wait or failed; of ``of`` stored
    pages in all."""

    pages: list[tuple[QueuedUrl, str]] = field(default_factory=list)
    others: list[tuple[QueuedUrl, str]] = field(default_factory=list)
    of: int = 0

    @property
    def is_everything(self) -> bool:
        return 1 < self.of == len(self.pages)


def find(crawl: CrawlDir, rule: Rule) -> Found:
    """What the frontier knows that the rule fits, each with its exact form; 10 us a URL. Raises
    CrawlDirError."""
    removals, found = Removals(FILE, [rule]), Found()
    with crawl.frontier() as frontier:
        if frontier is None:
            raise CrawlDirError(f"{crawl.path}: there is no frontier of larmspider here")
        for key, visit in frontier.visits():
            forms = crawl.forms(visit.url)
            stored = has_page(visit)
            found.of += stored
            if removals.has(forms):
                entry = _entry(visit.url, forms, key, visit.depth)
                (found.pages if stored else found.others).append((entry, forms.exact))
        after: bytes | None = b""
        while after is not None:
            entries, after = frontier.waiting(after)
            for entry in entries:
                forms = crawl.forms(entry.url)
                if removals.has(forms):
                    found.others.append((entry, forms.exact))
    return found


def _entry(url: str, forms: Forms, key: bytes, depth: int) -> QueuedUrl:
    return QueuedUrl(url=url, normalized=forms.normalized, key=key, host=host_of(url), depth=depth)


def take_out(
    found: Found, stores: Sequence[Store], backend: Backend, reason: str = REASON
) -> Iterator[int]:
    """Take pages out of the stores and refuse all URLs, AT_ONCE at a time; yields how many pages
    were. Stores and frontier agree whenever it has yielded."""
    for entries, stored in ((found.pages, True), (found.others, False)):
        left = iter(entries)
        while some := list(islice(left, AT_ONCE)):
            now = time.time()
            for entry, exact in some if stored else ():
                for store in stores:
                    store.process_item(Removed(entry.url, exact, reason, now))
            backend.forget([entry.key for entry, _ in some])
            backend.refuse([(entry, reason) for entry, _ in some])
            yield len(some) if stored else 0


def take_out_now(crawl: CrawlDir, found: Found, settings: BaseSettings) -> int:
    """The same for a crawl that does not run; how many pages were stored. Raises CrawlDirError."""
    return _offline(crawl, settings, partial(_all_out, found))


def refuse_shared(crawl: CrawlDir) -> None:
    """Raise CrawlDirError for a crawl whose queues and records are in Redis."""
    if is_shared(crawl.manifest):
        raise CrawlDirError(
            f"{crawl.path}: workers share this crawl, and none runs: start them first, with"
            " -a refresh=watch where it has ended"
        )


def put_back_now(crawl: CrawlDir, rule: Rule, settings: BaseSettings) -> int:
    """Queue again what was taken out by a rule, in a crawl that does not run; how many URLs."""
    refused = find_refused(crawl, rule)
    return _offline(crawl, settings, lambda _, backend: sum(backend.reopen(refused)))


def find_refused(crawl: CrawlDir, rule: Rule) -> list[QueuedUrl]:
    """The URLs that were taken out and that the rule fits."""
    with crawl.frontier() as frontier:
        return [
            _entry(visit.url, forms, key, visit.depth)
            for key, visit in (() if frontier is None else frontier.visits())
            if visit.reason == REASON
            and Removals(FILE, [rule]).has(forms := crawl.forms(visit.url))
        ]


def _all_out(found: Found, stores: Sequence[Store], backend: Backend) -> int:
    return sum(take_out(found, stores, backend))


def _offline(
    crawl: CrawlDir, settings: BaseSettings, act: Callable[[Sequence[Store], Backend], int]
) -> int:
    refuse_shared(crawl)
    with locked(crawl.path / LOCK):
        backend = LmdbBackend(crawl.path / "frontier")
        try:
            return asyncio.run(_with_stores(list(_stores(crawl, settings)), backend, act))
        finally:
            backend.close()


async def _with_stores(
    stores: Sequence[Store], backend: Backend, act: Callable[[Sequence[Store], Backend], int]
) -> int:
    """Between two checkpoints, as in a crawl."""
    positions = backend.recover().positions
    for store in stores:
        store.recovered(positions)
    try:
        for store in stores:
            if (opening := store.open_spider()) is not None:
                await opening
        done = act(stores, backend)
        positions = dict(store.checkpoint() for store in stores)
        backend.seal()
        for store in stores:
            if (committing := store.commit()) is not None:
                await committing
        backend.commit(positions)
        backend.discard()
    finally:
        for store in stores:
            if (closing := store.close_spider()) is not None:
                await closing
    return done


def _stores(crawl: CrawlDir, settings: BaseSettings) -> Iterator[Store]:
    """The crawl's stores, without the crawl."""
    stats: Any = SimpleNamespace(set_value=lambda *_: None, inc_value=lambda *_: None)
    crawler: Any = SimpleNamespace(
        settings=settings, stats=stats, signals=SignalManager(), spider=None, crawling=True
    )
    crawler.engine = SimpleNamespace(running=True)
    for path in dict.fromkeys((_DELETED_LOG, *stores_in(crawl.manifest))):  # earlier crawls lack it
        store = load_object(path)
        if isinstance(store, type) and issubclass(store, Store):
            yield store.from_crawler(crawler)
