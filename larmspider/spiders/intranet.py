"""The intranet spider: arguments become seeds and settings, a response becomes a Page.

scrapy crawl intranet -a start=http://wiki.example/ -a restrict='https?://[^/]*\\.example/.*'
scrapy crawl intranet -a start=@seeds.txt -a hostresolver=hosts.properties -a threads=32
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Any, Self

from scrapy import Spider, signals

from larmspider import options, stats
from larmspider import signals as larm_signals
from larmspider.access.connected import check_connected
from larmspider.errors import ConfigError
from larmspider.extraction.formats import add_outcome, extractor_for
from larmspider.extraction.pages.page_builder import MOVED_SECS, refresh_of, robots_header
from larmspider.extraction.pages.requisites import requisites_of_page, requisites_of_style
from larmspider.extraction.processes.helper_process import ExtractionStopped
from larmspider.extraction.processes.process import ExtractionRefused, Readers
from larmspider.extraction.texts.language import Languages, languages_in
from larmspider.fetch import limits
from larmspider.fetch.blobs import Blob
from larmspider.fetch.errors import kind_of, message_of
from larmspider.fetch.response_type import body_type
from larmspider.frontier.storage.records import host_of
from larmspider.items import (
    REDIRECT,
    REQUISITE,
    FailedFetch,
    Kept,
    Link,
    Outcome,
    Page,
    Removed,
    Requisite,
)
from larmspider.middlewares.revisits import failed as failed_again
from larmspider.middlewares.revisits import unread, visit_of
from larmspider.pipelines.store import wants_requisites
from larmspider.requests import BLOB, TOO_LARGE, page_request
from larmspider.scheduler.leases import give_back, lease_of
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.urls.acting import without_tokens
from larmspider.urls.canonical import canonicalize
from larmspider.urls.file_urls import FileRoots, is_file
from larmspider.urls.media_types import announced_type, is_document
from larmspider.urls.resolve import location_of, resolve
from larmspider.urls.seeds import read_seeds
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

Item = Page | Kept | Requisite
"""The result of a response."""
ARGUMENTS = {
    "start": "LARM_START",
    "restrict": "LARM_RESTRICT",
    "exclude": "LARM_EXCLUDE",
    "hostresolver": "LARM_HOST_RESOLVER_FILE",
    "threads": "CONCURRENT_REQUESTS",
    "fresh": "LARM_FRESH",
    "resume": "LARM_RESUME",
    "refresh": "LARM_REFRESH",
}
"""Spider arguments and the settings they stand for."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_LEVELS: dict[str, int] = {Outcome.NO_TEXT: logging.INFO, Outcome.BINARY: logging.DEBUG}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class IntranetSpider(Spider):
    """Fetches the URLs that pass the filters, and makes a Page of every response."""

    name = "intranet"
    asks_sources = True
    """Sitemaps and feeds may name pages (LARM_SITEMAPS); other spiders get only their requests."""
    needs_seeds = True
    follows_links = True
    wants_requisites = False
    readers: Readers
    languages: Languages
    late_languages: Languages | None = None
    """For known pages: their language is needed only once they have changed (revisits.py). None: at
    once, as for other pages, because filters use it."""
    damages: Sequence[str] = ()
    """The damages of the archives that it reads (archived.py), a line each."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        for name, value in kwargs.items():
            if name in ARGUMENTS:
                crawler.settings.set(ARGUMENTS[name], value, priority="cmdline")
            elif not name.startswith("_"):  # scrapyd passes _job
                near = get_close_matches(name, ARGUMENTS, 1)
                meant = f"did you mean {near[0]}? " if near else ""
                raise ConfigError(
                    f"unknown argument {name}: {meant}Expected one of {', '.join(ARGUMENTS)}"
                )
        if "threads" in kwargs:
            options.as_integer("threads", kwargs["threads"], minimum=1)
        seeds = read_seeds(crawler.settings.get("LARM_START") or "")
        may_lack_seeds = options.many_workers(crawler.settings)  # they may come by Redis
        if cls.needs_seeds and not seeds and not may_lack_seeds:
            raise ConfigError(
                "No seed: give -a start=URL, several URLs in quotes, or -a start=@file"
            )
        roots = FileRoots.from_settings(crawler.settings)
        for seed in filter(is_file, seeds):
            if why := roots.why_not(canonicalize(seed)):
                raise ConfigError(f"start={seed}: {why} (docs/files.md)")
        check_connected(crawler.settings, seeds)
        own = {name: value for name, value in kwargs.items() if name.startswith("_")}
        spider = super().from_crawler(crawler, start_urls=seeds, **own)
        spider.readers = Readers.from_settings(crawler.settings)
        spider.wants_requisites = cls.asks_sources and wants_requisites(crawler.settings)
        spider.languages = Languages.from_settings(crawler.settings)
        if not languages_in(crawler.settings, "LARM_FOLLOW_LANGUAGES"):
            spider.late_languages = spider.languages
        for signal in (larm_signals.let_go, signals.engine_stopped):
            crawler.signals.connect(spider.readers.close, signal=signal)
            crawler.signals.connect(spider.languages.close, signal=signal)
        crawler.signals.connect(spider.share_readers, signal=signals.spider_opened)
        return spider

    def share_readers(self) -> None:
        """Let the frontier know whose documents wait for readers, if it is ours: else no document
        can be given back."""
        readers, scheduler = self.readers, scheduler_of(self.crawler)
        readers.sharing.count = self.crawler.stats.inc_value
        if scheduler is None:
            readers.backlog.most = inf
        else:
            readers.sharing.host_of, readers.sharing.group_of = host_of, scheduler.group_of
            readers.hold = scheduler.hold_host

    async def start(self) -> AsyncIterator[Any]:
        if not options.text(self.settings, "LARM_REFRESH"):  # else it may never be needed
            self.languages.start()
        for seed in self.start_urls:
            yield page_request(self, seed)

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Item]:
        blob: Blob | None = response.meta.get(BLOB)
        digest = _sha1(response.body) if blob is None else blob.digest
        if response.meta.get("link_type") == REQUISITE:
            yield Requisite(self._requisite(response, digest))
            return
        if TOO_LARGE not in response.flags and (kept := unread(response, digest)) is not None:
            yield kept
            return
        try:
            page = await self._extract(response)
            late = self.late_languages is not None and visit_of(response.request) is not None
            if response.status == 200 and not late:
                page.language = await self.languages.of(page)
        except ExtractionStopped:
            give_back(response)
            return
        if self.wants_requisites and response.status == 200 and page.mime in _HTML:
            page.requisites = requisites_of_page(response.body, response.url, page.charset)
        self._fill(page, response, digest)
        self._add_redirect(page, response)
        self._add_refresh(page, response)
        if response.status == 200 and not page.unread:
            add_outcome(page)
            if page.unread:
                self._count_unread(page)
        self._drop_tokens(page, response)
        for header in dict.get(response.headers, b"X-Robots-Tag", ()):
            noindex, nofollow = robots_header(header.decode("latin-1"))
            page.noindex |= noindex
            page.nofollow |= nofollow
        yield page

    async def read_stored(
        self, url: str, mime: str, body: bytes, response: Response
    ) -> Page | None:
        """Read a stored body as the ``response`` of its URL was read; None if that fails."""
        content_type, extract = _header(response, b"Content-Type"), extractor_for(mime)
        if extract is None or body_type(response.replace(body=body)) != mime:
            return None
        try:
            if self.readers.is_apart(mime, body, url):
                page = await self.readers.read(mime, body, url, content_type)
            else:
                page = extract(body, url, content_type)
        except (ExtractionRefused, ExtractionStopped):
            return None
        except Exception:
            self.logger.exception("Extraction failed on the stored copy of %s", url)
            return None
        page.url, page.body, page.mime = url, body, page.mime or mime
        self._drop_tokens(page, response)
        return page

    @staticmethod
    def _drop_tokens(page: Page, response: Response) -> None:
        """Remove session tokens from the links of a page that was fetched with a login."""
        lease = lease_of(response)
        if lease is not None and lease.proof is not None:
            for link in page.links:
                link.url = without_tokens(link.url)

    def _requisite(self, response: Response, digest: str) -> Page:
        content_type = _header(response, b"Content-Type")
        page = Page(response.url, mime=body_type(response))
        self._fill(page, response, digest)
        self._add_redirect(page, response)
        page.requisites, page.links = [link.url for link in page.links], []
        if page.mime == "text/css" and page.status == 200:
            page.requisites = requisites_of_style(page.body, page.url, content_type)
        return page

    def _fill(self, page: Page, response: Response, digest: str) -> None:
        """Set the fields that the fetch knows."""
        meta, blob = response.meta, response.meta.get(BLOB)
        page.url = response.url
        page.normalized, page.exact = meta.get("normalized"), meta.get("exact")
        page.status = response.status
        page.body = response.body
        if blob is not None:
            page.body_file, page.file_bytes = blob.path, blob.size
        page.from_page = meta.get("from_page", "")
        page.link_type = meta.get("link_type", 0)
        page.depth = meta.get("depth", 0)
        page.redirects = meta.get("redirects", 0)
        page.fetched = time.time()
        page.latency = meta.get("download_latency", 0.0)
        page.digest = digest
        if not page.size and page.unread.startswith(Outcome.TOO_LARGE):
            page.digest = _sha1(page.url.encode())
        page.etag = _header(response, b"Etag")
        page.last_modified = _header(response, b"Last-Modified")
        page.headers = response.headers

    async def _extract(self, response: Response) -> Page:
        body, content_type = response.body, _header(response, b"Content-Type")
        if TOO_LARGE in response.flags or BLOB in response.meta:
            return self._too_large(response)
        mime = body_type(response)
        extract = extractor_for(mime)
        try:
            if extract is None:
                page = Page(response.url)
            elif self.readers.is_apart(mime, body, response.url):
                with self._apart(body):
                    page = await self.readers.read(mime, body, response.url, content_type)
            elif self.readers.beside.takes(body):
                self.crawler.stats.inc_value(stats.EXTRACTION_BESIDE)
                page = await self.readers.read_beside(mime, body, response.url, content_type)
            else:
                page = extract(body, response.url, content_type)
        except ExtractionRefused as refused:
            self.crawler.stats.inc_value(stats.EXTRACTION_REFUSED)
            page = refused.kept or Page(response.url, unread=str(refused))
        except ExtractionStopped:
            raise
        except Exception as error:
            # the page is stored even so: its body, without title and links
            self.logger.exception("Extraction failed on %s", response.url)
            self.crawler.stats.inc_value(stats.EXTRACTION_ERRORS)
            page = Page(response.url, unread=f"{Outcome.READER_DIED}: raised {error!r}"[:500])
        page.mime, page.body = page.mime or mime, body
        if page.unread:
            self._count_unread(page)
        return page

    @contextmanager
    def _apart(self, body: bytes) -> Iterator[None]:
        """A body that waits for a reader does not count in SCRAPER_SLOT_MAX_ACTIVE_SIZE meanwhile,
        or it would hold up the fetches of all hosts. Readers has a separate limit."""
        slot, scheduler = self.crawler.engine.scraper.slot, scheduler_of(self.crawler)
        if slot is None or scheduler is None:
            yield
            return
        size, was_full = max(len(body), slot.MIN_RESPONSE_SIZE), slot.needs_backout()
        slot.active_size -= size
        if was_full:
            scheduler.wake()
        try:
            yield
        finally:
            slot.active_size += size

    def _too_large(self, response: Response) -> Page:
        """A document without its body: the fetch has not taken the body, or it is not in memory."""
        settings, content_type = self.crawler.settings, _header(response, b"Content-Type")
        blob: Blob | None = response.meta.get(BLOB)
        length = _header(response, b"Content-Length") if blob is None else str(blob.size)
        packed = blob is None and response.headers.get("Content-Encoding")
        is_known = length.isdecimal() and not packed
        announced = f"it has {int(length):,} bytes, " if is_known else ""
        page = Page(response.url, mime=announced_type(content_type, response.url))
        if is_document(content_type, response.url):
            limit = f"LARM_DOCUMENT_MAXSIZE_BYTES is {limits.document_bytes(settings):,}"
        else:
            limit = f"DOWNLOAD_MAXSIZE is {settings.getint('DOWNLOAD_MAXSIZE'):,}"
        page.unread = f"{Outcome.TOO_LARGE}: too large to read: {announced}{limit}"
        self._count_unread(page)
        return page

    def _count_unread(self, page: Page) -> None:
        outcome = page.unread.partition(":")[0]
        self.crawler.stats.inc_value(stats.EXTRACTION_UNREAD.format(outcome=outcome))
        level = _LEVELS.get(outcome, logging.WARNING)
        kept = "with some of its text" if page.text else "without its text"
        self.logger.log(level, "Stored %s: %s (%s)", kept, without_userinfo(page.url), page.unread)

    def _add_redirect(self, page: Page, response: Response) -> None:
        """A redirect is a link of type 2, before any that its body holds."""
        if response.status not in _REDIRECTS:
            return
        location = response.headers.get("Location")
        if location is None:
            return
        target = location_of(location)
        url = resolve(response.url, target)
        shown = url if url is not None else without_userinfo(target)
        page.links.insert(0, Link(shown, type=REDIRECT))

    def _add_refresh(self, page: Page, response: Response) -> None:
        """The header Refresh is a link as a meta refresh is (HTML 7.4.6)."""
        for header in dict.get(response.headers, b"Refresh", ()):
            if (found := refresh_of(location_of(header))) is None:
                continue
            seconds, target = found
            if url := resolve(response.url, target):
                page.links.insert(0, Link(url, type=REDIRECT))
                page.moved |= seconds <= MOVED_SECS
            return

    def fetch_failed(self, failure: Failure) -> Iterator[FailedFetch | Kept | Removed | Requisite]:
        request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        assert error is not None
        kind = kind_of(error)
        if visit_of(request) is not None:
            yield from failed_again(self.crawler, request, error)
            return
        if request.meta.get("link_type") == REQUISITE:
            self.logger.info("Requisite failed: %s (%s)", without_userinfo(request.url), kind)
            yield Requisite(Page(request.url, fetched=time.time()), kind)
            return
        if kind not in ("scope", "ignored"):  # counted where it was refused
            self.crawler.stats.inc_value(stats.FETCH_FAILED)
            self.crawler.stats.inc_value(stats.FETCH_FAILED_KIND.format(kind=kind))
            self.logger.warning("Failed: %s (%s)", without_userinfo(request.url), kind)
        yield FailedFetch(
            url=request.url,
            normalized=request.meta.get("normalized"),
            from_page=request.meta.get("from_page", ""),
            link_type=request.meta.get("link_type", 0),
            depth=request.meta.get("depth", 0),
            kind=kind,
            message=message_of(error),
            fetched=time.time(),
        )


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _header(response: Response, name: bytes) -> str:
    """``name`` in the spelling of Scrapy's Headers, such as ``Etag``. To get it from Headers takes
    ten times as long."""
    values = dict.get(response.headers, name)
    return values[-1].decode("latin-1") if values else ""
