"""Judges the links of links.log again, after seeds, scope or filters have changed.

    replay = LinkReplay(crawler)
    await replay.run()
    print(replay.found)      # Found(queued=12, reopened=3, outside=45, stored=1200)

It queues URLs that were rejected before and pass the filters now: links of stored pages, and URLs
that were refused while they waited, because they were out of the scope. nofollow is read again from
the stored page, because no log has it; the depth of a page comes from the frontier. Links that the
frontier knows are not queued. A replay may therefore be repeated, as after an interruption.

With many workers each replays the log of its own directory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from larmspider import options
from larmspider.crawl.reader import CrawlDir, StoredPage, last_visit
from larmspider.errors import CrawlDirError, InvalidURL
from larmspider.extraction.processes.process import Readers
from larmspider.formatting import counted
from larmspider.frontier.links import RecentlySeen
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import QueuedUrl, UrlState
from larmspider.items import ORDINARY, Link, Page
from larmspider.middlewares.filter_middleware import FilterMiddleware
from larmspider.middlewares.follow import FollowMiddleware
from larmspider.middlewares.visited import SeenFilter, VisitedFilter
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.urls.normalizer import forms_from_settings

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

T = TypeVar("T")

OUT_OF_SCOPE = ("out of scope", "out of the scope")
"""How the reasons begin for which URLs were refused because of the scope."""
MAX_HELD = 100_000
"""Refused URLs in memory until a link tells where they were found; others are queued without."""
MAX_PAGES_AHEAD = 10_000
"""Lines of store.log among which a page of links.log is looked for, before all are searched."""
SLICE = 500
"""Records that are judged before the crawl has a turn; some 5 ms."""


@dataclass(slots=True)
class Found:
    """``queued``: links that were rejected before. ``reopened``: URLs that were refused for scope.
    ``forwarded``: URLs whose hosts other workers have now. ``outside``: how many of the ``stored``
    pages the filters would reject now."""

    queued: int = 0
    reopened: int = 0
    forwarded: int = 0
    outside: int = 0
    stored: int = 0

    def __str__(self) -> str:
        """A sentence for the log and the control page.

        >>> str(Found(queued=1, outside=2, stored=3))
        '1 link that was rejected before is queued; 2 of 3 stored pages are outside now, ...'
        """
        links = f"{self.queued:,} link{'' if self.queued == 1 else 's'}"
        parts = [f"{links} that {'was' if self.queued == 1 else 'were'} rejected before"]
        if self.reopened:
            urls = f"{self.reopened:,} URL{'' if self.reopened == 1 else 's'}"
            parts.append(f"{urls} that {'was' if self.reopened == 1 else 'were'} refused for scope")
        one = self.queued + self.reopened == 1
        text = f"{' and '.join(parts)} {'is' if one else 'are'} queued"
        if self.forwarded:
            more = counted(self.forwarded, "URL was", "URLs were")
            text += f"; {more} refused for scope on hosts that other workers have now, who queue"
            text += " them again"
        if self.outside:
            text += (
                f"; {self.outside:,} of {self.stored:,} stored pages"
                f" {'is' if self.outside == 1 else 'are'} outside now, and stay stored and indexed"
            )
        return text


class LinkReplay:
    """Works for a crawl with an open spider and larmspider's scheduler."""

    def __init__(self, crawler: Crawler) -> None:
        scheduler = scheduler_of(crawler)
        assert scheduler is not None
        self.crawler, self.frontier = crawler, scheduler.frontier
        self.found = Found()
        chain = crawler.engine.scraper.spidermw.middlewares
        self._filters = [one for one in reversed(chain) if isinstance(one, FilterMiddleware)]
        self._by_url = [
            one for one in self._filters if not isinstance(one.filter, SeenFilter | VisitedFilter)
        ]
        self._follow = next((one for one in chain if isinstance(one, FollowMiddleware)), None)
        self._forms = forms_from_settings(crawler.settings)
        self._crawl = CrawlDir(options.larm_dir(crawler.settings))
        self._pages = _StoredPages(self._crawl)
        self._judged = RecentlySeen()
        self._refused: dict[str, QueuedUrl] = {}
        self._end = 0

    async def run(self) -> None:
        """Replay the whole log; the next call replays the lines added since."""
        if self._follow is None:
            return
        start, self._end = self._end, self._crawl.logs.size("links.log")
        readers = Readers.from_settings(self.crawler.settings)
        try:
            with self._crawl.frontier() as reader:
                assert reader is not None
                if not start:
                    await self._count_outside()
                    await self._find_refused(reader)
                groups = groupby(self._crawl.logs.links(start), key=itemgetter(0))
                pages = ((page, list(lines)) for page, lines in groups)
                while some := await asyncio.to_thread(_take, pages, SLICE // 10):
                    for page, lines in some:
                        await self._judge(page, lines, reader, readers)
                        await asyncio.sleep(0)
            self._reopen(list(self._refused.values()))
            self._refused.clear()
        finally:
            readers.close()

    async def _count_outside(self) -> None:
        pages = self._crawl.pages()
        while some := await asyncio.to_thread(_take, pages, SLICE):
            stored = [page for page in some if page.status < 400]
            self.found.stored += len(stored)
            self.found.outside += sum(not self._passes(page.url) for page in stored)

    async def _find_refused(self, reader: FrontierReader) -> None:
        """Collect the URLs that were refused for scope and pass now."""
        visits = reader.visits()
        while some := await asyncio.to_thread(_take, visits, SLICE):
            for key, visit in some:
                wanted = visit.state is UrlState.REFUSED and visit.reason.startswith(OUT_OF_SCOPE)
                if wanted and self._passes(visit.url):
                    normalized, exact = self._forms(visit.url)
                    entry = self.frontier.entry(
                        visit.url, normalized, exact=exact, depth=visit.depth
                    )
                    entry.key = key
                    self._refused[exact] = entry
            if len(self._refused) > MAX_HELD:
                self._reopen(list(self._refused.values()))
                self._refused.clear()

    def _passes(self, url: str) -> bool:
        """Whether the filters that judge by URL let it pass."""
        links = self._normalized([Link(url)])
        return bool(links and self._passing(self._by_url, links, Page("")))

    def _reopen(self, entries: Sequence[QueuedUrl]) -> None:
        for at in range(0, len(entries), SLICE):
            reopened, forwarded = self.frontier.control.reopen(entries[at : at + SLICE])
            self.found.reopened += reopened
            self.found.forwarded += forwarded

    async def _judge(
        self,
        page_url: str,
        lines: Iterable[list[str]],
        reader: FrontierReader,
        readers: Readers,
    ) -> None:
        """Queue the links of a page that pass now."""
        stored = self._pages.follow(page_url)
        links = self._normalized(Link(fields[1], None, _type(fields[3])) for fields in lines)
        links = self._new(page_url, links)
        if not links:
            return
        normalized, exact = self._forms(page_url)
        if stored is None:
            stored = self._crawl.stored(exact)
        page = await self._read_again(page_url, stored, readers)
        page.normalized, page.exact = normalized, exact
        visit = last_visit(reader, exact)
        page.depth = 0 if visit is None else visit.depth
        marked = _nofollow(self._normalized(page.links))
        for link in links:
            link.nofollow = marked.get((link.exact, link.type), False)
        passed = self._passing(self._filters, links, page)
        if passed:
            assert self._follow is not None
            self._follow.queue(passed, page)
            self.found.queued += len(passed)

    def _new(self, page_url: str, links: list[Link]) -> list[Link]:
        """The links that are unknown to the frontier and whose URLs pass, each once. Reopens links
        that were refused for scope."""
        by_url = {link.exact: link for link in reversed(links) if link.exact}
        for exact in by_url.keys() & self._refused.keys():
            entry = self._refused.pop(exact)
            entry.from_page, entry.link_type = page_url, by_url[exact].type
            self._reopen([entry])
        urls = list(by_url)
        seen = self._judged.among(urls)
        urls = [url for url, judged in zip(urls, seen, strict=True) if not judged]
        known = self.frontier.known(urls, count=False)
        left = [by_url[url] for url, met in zip(urls, known, strict=True) if not met]
        passing = self._passing(self._by_url, left, Page(""))
        again = {link.exact for link in passing}
        for url in urls:
            if url not in again:
                self._judged.add(url)
        return passing

    def _normalized(self, links: Iterable[Link]) -> list[Link]:
        """The links that have a canonical form, by the present rules."""
        found = []
        for link in links:
            try:
                link.normalized, link.exact = self._forms(link.url)
            except InvalidURL:
                continue
            found.append(link)
        return found

    @staticmethod
    def _passing(
        filters: Sequence[FilterMiddleware], links: Sequence[Link], page: Page
    ) -> list[Link]:
        left = list(links)
        for one in filters:
            if not left:
                break
            reasons = one.reasons(left, page)
            left = [link for link, reason in zip(left, reasons, strict=True) if reason is None]
        return left

    async def _read_again(self, url: str, stored: StoredPage | None, readers: Readers) -> Page:
        """The page from its page file; an empty one if the file is not here."""
        if stored is None:
            return Page(url)
        try:
            body = self._crawl.body(stored)
        except CrawlDirError:
            return Page(url)
        if readers.is_apart(stored.mime, body, url):
            return await asyncio.to_thread(readers.read_again, stored.mime, body, url)
        return readers.read_again(stored.mime, body, url)


class _StoredPages:
    """Reads store.log in step with links.log. Both have the pages in the same order."""

    def __init__(self, crawl: CrawlDir) -> None:
        self._pages = crawl.pages()
        self._met: dict[str, StoredPage] = {}

    def follow(self, url: str) -> StoredPage | None:
        """The page of this URL; None if it is not near this place of store.log."""
        met = self._met
        if url in met:
            return met[url]
        if len(met) >= MAX_PAGES_AHEAD:
            self._met = met = dict(islice(met.items(), MAX_PAGES_AHEAD // 2, None))
        for page in islice(self._pages, MAX_PAGES_AHEAD - len(met)):
            met[page.url] = page
            if page.url == url:
                return page
        return None


def _take(items: Iterator[T], number: int) -> list[T]:
    return list(islice(items, number))


def _type(field: str) -> int:
    return int(field) if field.isdecimal() else ORDINARY


def _nofollow(links: Iterable[Link]) -> dict[tuple[str | None, int], bool]:
    """Whether every link of a page to a URL says nofollow. If one of several links does not, the
    URL is followed."""
    marked: dict[tuple[str | None, int], bool] = {}
    for link in links:
        name = link.exact, link.type
        marked[name] = link.nofollow and marked.get(name, True)
    return marked
