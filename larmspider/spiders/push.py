"""The crawl of a push collection: it fetches nothing, and stores what the server was given.

    larmspider crawl intranet --file home/crawls/hr.toml          # kind = "push"

Each document in push.sqlite (workdir/pushed.py) becomes a Request, which PushedHandler answers:
frontier, extraction and stores treat it as a page that a server has sent. No link is followed. The
crawl ends REMAIN_SECS after the last document; the server starts it again for the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

from larmspider import options
from larmspider.access.pushed import HEADER, header_value
from larmspider.errors import LarmspiderError
from larmspider.fetch import errors
from larmspider.frontier.storage.records import UrlState, host_of, url_key
from larmspider.items import Page, Removed
from larmspider.pipelines.pushed import PushedPipeline
from larmspider.pipelines.store import Store
from larmspider.requests import TIMING, VALIDATORS, page_request
from larmspider.scheduler.scheduler import FrontierScheduler, scheduler_of
from larmspider.spiders.intranet import IntranetSpider, Item
from larmspider.urls.normalizer import forms_from_settings
from larmspider.workdir.pushed import FAILED, Done, Facts, Order, Pushed

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

REMAIN_SECS = 60.0
"""Seconds that an idle crawl waits for more documents, as a start takes 2 s."""
LOOK_SECS = 0.2
REASON = "removed by its sender"
_FACTS = "larm_pushed_facts"  # Request.meta
_FINAL = frozenset({UrlState.STORED, UrlState.FAILED, UrlState.REFUSED, UrlState.MERGED})
_HANDLER = "larmspider.spiders.push.PushedHandler"
_FILTERS = (
    "sources.SourcesMiddleware", "visited.SeenFilter", "length.LengthFilter",
    "known_paths.KnownPathsFilter", "scope.ScopeFilter", "traps.TrapsFilter",
    "language.LanguageFilter", "nofollow.NofollowFilter", "depth.DepthFilter",
    "visited.VisitedFilter", "revisits.RevisitsMiddleware", "follow.FollowMiddleware",
    "copies.CopiesMiddleware",
)  # fmt: skip
"""Filters that judge URLs which a crawl finds by itself."""
SETTINGS: dict[str, Any] = {
    "LARM_PUSH": True,
    "LARM_START": "",
    "LARM_RESTRICT": "https?://.*",
    "LARM_EXCLUDE": [],
    "LARM_CANONICAL_RULES": "never",
    "LARM_HOST_RESOLVER_FILE": "",
    "LARM_LOWERCASE_PATH": None,
    "LARM_BARE_PERCENT": None,
    "DOWNLOAD_HANDLERS": {
        "http": _HANDLER,
        "https": _HANDLER,
        "file": None,
        "smb": None,
        "imaps": None,
    },
    "ROBOTSTXT_OBEY": False,
    "LARM_SITEMAPS": False,
    "LARM_TRAPS": "off",
    "LARM_REFRESH": "",
    "LARM_REQUISITES": False,
    "LARM_HOST_RULES": {},
    "LARM_HOST_MAX_PAGES": 0,
    "LARM_MAX_PAGES": 0,
    "DOWNLOAD_DELAY": 0,
    "LARM_DELAY_RESPONSE_FACTOR": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "LARM_RETRY_TIMES": 0,
    "LARM_BACKOFF_SECS": 0.01,
    "LARM_RETRY_AFTER_MAX_SECS": 0.01,
    "LARM_HOST_MAX_FAILURES": 1_000_000_000,
}
"""Each document is stored as it was pushed, under its own URL, and no server gets a request."""


class PushSpider(IntranetSpider):
    """``numbers``: the orders under way, by exact form. ``facts`` are set on pages as they are
    read."""

    name = ""  # no spider of `scrapy list`
    asks_sources = False
    needs_seeds = False
    follows_links = False
    pushed: Pushed

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(IntranetSpider.name, **kwargs)
        self.numbers: dict[str, int] = {}
        self._read: set[int] = set()
        """Orders whose document was read, until their end is committed."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        settings = crawler.settings
        for name, value in SETTINGS.items():
            settings.set(name, value, priority="cmdline")
        filters = {f"larmspider.middlewares.{name}": None for name in _FILTERS}
        store = {f"{PushedPipeline.__module__}.{PushedPipeline.__name__}": 900}
        for name, added in (("SPIDER_MIDDLEWARES", filters), ("ITEM_PIPELINES", store)):
            settings.set(name, settings.getdict(name) | added, priority="cmdline")
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.pushed = Pushed.open(options.larm_dir(settings))
        crawler.signals.connect(spider.pushed.close, signal=signals.engine_stopped)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        self.languages.start()
        scheduler = scheduler_of(self.crawler)
        assert scheduler is not None
        try:
            async for request in self._requests(scheduler):
                yield request
        except LarmspiderError as error:
            scheduler.break_off(str(error))

    async def _requests(self, scheduler: FrontierScheduler) -> AsyncIterator[Request]:
        after, later, last = 0, list[Order](), time.monotonic()
        while time.monotonic() < last + REMAIN_SECS:
            orders = self.pushed.orders(after)
            waited, later = [one for one in later if self.pushed.is_open(one.number)], []
            self._end_failed(scheduler)
            for order in (*waited, *orders):
                last = time.monotonic()
                state = scheduler.frontier.backend.check([url_key(order.exact)])[0]
                if order.number in self._read:
                    continue
                if state in (UrlState.QUEUED, UrlState.LEASED):  # an earlier version is under way
                    later.append(order)
                elif order.takes_out:
                    self._take_out(scheduler, order, state)
                else:
                    if state in _FINAL:
                        self._forget(scheduler, order)
                    yield page_request(self, order.url)
            after = max([after, *(one.number for one in orders)])
            if not orders:
                self._read = {number for number in self._read if self.pushed.is_open(number)}
                await asyncio.sleep(LOOK_SECS)

    def _stores(self) -> list[Store]:
        chain = self.crawler.engine.scraper.itemproc.middlewares
        return [one for one in chain if isinstance(one, Store)]

    def _take_out(self, scheduler: FrontierScheduler, order: Order, state: UrlState) -> None:
        if state is UrlState.STORED:
            self.numbers[order.exact] = order.number
            removed = Removed(order.url, order.exact, REASON, scheduler.frontier.clock())
            for store in self._stores():
                store.process_item(removed)
        else:
            self._end(Done(order.number))
        if state in _FINAL:
            self._forget(scheduler, order)

    @staticmethod
    def _forget(scheduler: FrontierScheduler, order: Order) -> None:
        scheduler.frontier.forget_pages(host_of(order.url), [url_key(order.exact)])

    def _end_failed(self, scheduler: FrontierScheduler) -> None:
        """End the orders whose document a store has refused."""
        backend = scheduler.frontier.backend
        for exact, number in list(self.numbers.items()):
            visit = backend.visit(url_key(exact))
            if visit is not None and visit.state in (UrlState.FAILED, UrlState.REFUSED):
                del self.numbers[exact]
                self._end(Done(number, f"{FAILED}{visit.reason}", stored=False))

    def _end(self, done: Done) -> None:
        for store in self._stores():
            if isinstance(store, PushedPipeline):
                store.ended(done)

    def read(self, request: Request, exact: str) -> Response:
        """The response with the document of a URL. Raises BadResponse."""
        found = self.pushed.document(exact)
        if found is None:
            raise errors.BadResponse("no document with this URL is waiting")
        self.numbers[exact] = found.number
        self._read.add(found.number)
        headers = Headers({"Content-Type": found.content_type})
        if found.facts.modified is not None:
            headers["Last-Modified"] = formatdate(found.facts.modified, usegmt=True)
        if found.facts.access:
            headers[HEADER] = header_value(found.facts.access)
        request.meta[_FACTS] = found.facts
        request.meta["download_latency"] = 0.0
        request.meta[TIMING] = dict.fromkeys(("dns", "connect", "tls", "first_byte", "total"), 0.0)
        request.meta[VALIDATORS] = {}
        cls = responsetypes.from_args(headers=headers, url=request.url, body=found.body)
        return cls(request.url, 200, headers=headers, body=found.body)

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Item]:
        facts: Facts | None = response.meta.get(_FACTS)
        async for item in super().parse(response, **kwargs):
            if facts is not None and isinstance(item, Page):
                facts.fill(item)
            yield item


class PushedHandler:
    """DOWNLOAD_HANDLERS of a push collection: the documents that its spider has."""

    lazy = True
    asks_servers = False
    """No name is looked up for it (fetch/dns.py)."""

    def __init__(self, spider: PushSpider) -> None:
        self._spider, self._forms = spider, forms_from_settings(spider.crawler.settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        assert isinstance(crawler.spider, PushSpider)
        return cls(crawler.spider)

    async def download_request(self, request: Request) -> Response:
        """Raises BadResponse, CrawlDirError."""
        return self._spider.read(request, self._forms(request.url).exact)

    async def close(self) -> None:
        """The spider closes its file."""
