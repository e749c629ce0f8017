"""Removes pages from a crawl for good, on an operator's order, whether it runs or not.

    found = find(crawl, Rule.of("http://wiki/hr/.*", crawl.forms))
    take_out(found, stores, backend)             # in a running crawl, for `scrapy remove`
    take_out_now(crawl, rule, settings)          # no crawl runs
    queue_now(crawl, find_gone(crawl, rule), settings)    # pages that the crawl removed

Each page leaves the search and the counts, and its URL is refused from then on. The next `scrapy
compact` removes its data from the logs and page files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from larmspider.crawl.reader import CrawlDir, has_page
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.records import QueuedUrl, UrlState, host_of, host_prefix, url_key
from larmspider.items import Removed
from larmspider.pipelines.deleted_log import DELETED_LOG_COLUMNS, DeletedLogPipeline
from larmspider.pipelines.records import read_records
from larmspider.pipelines.store import Store
from larmspider.urls.canonical import Forms
from larmspider.workdir.removals import FILE, REASON, Removals, Rule

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.frontier.storage.backend import Backend
    from larmspider.learned.learning import LearningFrontier

AT_ONCE = 200
"""Pages that are removed before the crawl has a turn; takes some 20 ms."""


@dataclass(slots=True)
class Found:
    """The matches of a rule: stored ``pages``, and ``others`` that wait or failed. ``of``: the
    total number of stored pages."""

    pages: list[tuple[QueuedUrl, str]] = field(default_factory=list)
    others: list[tuple[QueuedUrl, str]] = field(default_factory=list)
    of: int = 0

    @property
    def is_everything(self) -> bool:
        return 1 < self.of == len(self.pages)


def find(crawl: CrawlDir, rule: Rule) -> Found:
    """The URLs of the frontier that the rule fits, each with its exact form. Takes 10 us a URL.
    Raises CrawlDirError."""
    removals, found = Removals(FILE, [rule]), Found()
    with crawl.frontier() as frontier:
        if frontier is None:
            raise CrawlDirError(f"{crawl.path}: there is no larmspider frontier here")
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


def take_out_host(
    frontier: LearningFrontier,
    host: str,
    stores: Sequence[Store],
    forms: Callable[[str], Forms],
    reason: str,
) -> Iterator[int]:
    """Remove the stored pages of a host beside a crawl, AT_ONCE at a time; yields the numbers.
    Their URLs become unknown: a link queues them again."""
    backend, prefix = frontier.backend, host_prefix(host)[:4]
    leased = {entry.key for entry in backend.leases()}
    after = prefix
    while rows := backend.visits(after, AT_ONCE):
        after = rows[-1][0]
        pages = [
            (key, visit)
            for key, visit in rows
            if visit is not None and has_page(visit) and key not in leased
            and key.startswith(prefix) and host_of(visit.url) == host
        ]  # fmt: skip
        now = frontier.clock()
        for _, visit in pages:
            removed = Removed(visit.url, forms(visit.url).exact, reason, now)
            for store in stores:
                store.process_item(removed)
        frontier.forget_pages(host, [key for key, _ in pages])
        yield len(pages)
        if not after.startswith(prefix):
            break
    frontier.gate.has_left(host)


def take_out_now(crawl: CrawlDir, rule: Rule, settings: BaseSettings) -> int:
    """Write the rule down, and remove the pages that it fits, in a crawl that does not run. Returns
    the number of stored pages. Raises CrawlDirError, ConfigError; then nothing has changed."""
    # here, 0.2 s: Scrapy imports the modules of all commands for each command
    from larmspider.control.offline import change

    def act(part: CrawlDir, stores: Sequence[Store], backend: Backend) -> int:
        removals = Removals.read(crawl.path)
        Removals(removals.path, [*removals.rules, rule]).write()
        return sum(take_out(find(part, rule), stores, backend))

    return change(crawl, settings, act)


def put_back_now(crawl: CrawlDir, rule: Rule, settings: BaseSettings) -> int:
    """The reverse: queue the URLs that the rule removed. Returns the number of URLs."""
    from larmspider.control.offline import change

    refused = find_refused(crawl, rule)

    def act(_part: CrawlDir, _stores: Sequence[Store], backend: Backend) -> int:
        removals = Removals.read(crawl.path)
        Removals(removals.path, [one for one in removals.rules if one != rule]).write()
        return sum(backend.reopen(refused))

    return change(crawl, settings, act)


def find_refused(crawl: CrawlDir, rule: Rule) -> list[QueuedUrl]:
    """The URLs that were removed and that the rule fits."""
    with crawl.frontier() as frontier:
        return [
            _entry(visit.url, forms, key, visit.depth)
            for key, visit in (() if frontier is None else frontier.visits())
            if visit.reason == REASON
            and Removals(FILE, [rule]).has(forms := crawl.forms(visit.url))
        ]


def find_gone(crawl: CrawlDir, rule: Rule) -> list[QueuedUrl]:
    """The URLs that the rule fits, whose pages have left by themselves according to deleted.log,
    and that were not queued since. Raises CrawlDirError."""
    fitting, found = Removals(FILE, [rule]), dict[bytes, QueuedUrl]()
    for path in (part.path / DeletedLogPipeline.file_name for part in crawl.parts):
        rows = read_records(path, len(DELETED_LOG_COLUMNS)) if path.exists() else ()
        for _, url, exact, reason in rows:
            if reason != REASON and fitting.has(forms := crawl.forms(url)):
                key = url_key(exact)
                found[key] = _entry(url, forms, key, depth=1)
    with crawl.frontier() as frontier:
        if frontier is None:
            raise CrawlDirError(f"{crawl.path}: there is no larmspider frontier here")
        return [one for key, one in found.items() if frontier.state(key) is UrlState.UNKNOWN]


def queue_now(crawl: CrawlDir, entries: Sequence[QueuedUrl], settings: BaseSettings) -> int:
    """Queue URLs in a crawl that does not run. Returns the number of new ones. Raises
    CrawlDirError, ConfigError; then nothing has changed."""
    from larmspider.control.offline import change

    return change(crawl, settings, lambda _part, _stores, backend: sum(backend.add(entries)))
