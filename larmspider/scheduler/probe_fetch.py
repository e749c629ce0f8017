"""Fetches probes for the scheduler: a URL that no page has, and a page that worked.

    http://wiki/larmspider-4f2a9c    200, "Nothing was found": pages that are gone may show the same

The answer to a made-up URL is read as any page is: documents and large pages in a separate process.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING

from scrapy.signals import engine_stopped

from larmspider import signals, stats
from larmspider.extraction.formats import extractor_for
from larmspider.extraction.pages.sitemap import MAX_BYTES
from larmspider.extraction.processes.helper_process import ExtractionStopped
from larmspider.extraction.processes.process import ExtractionRefused, Readers
from larmspider.fetch.response_type import body_type
from larmspider.formatting import printable
from larmspider.items import REDIRECT, Link, Outcome, Page
from larmspider.scheduler.own_fetches import OwnFetches, cut_at
from larmspider.urls.media_types import is_closed
from larmspider.urls.resolve import location_of, resolve

if TYPE_CHECKING:
    from scrapy.http import Response

    from larmspider.frontier.hosts import Lease

logger = logging.getLogger(__name__)


class ViewProbeFetch(OwnFetches):
    """Fetches a page that worked before; the status shows whether its host works."""

    meta = cut_at(MAX_BYTES)
    accept = "gzip, deflate"
    answer_key = stats.VIEW_PROBES


class MadeUpFetch(ViewProbeFetch):
    """Fetches a URL that no page has, and reads the answer."""

    answer_key = stats.PROBES

    async def read(self, lease: Lease, response: Response) -> None:
        self.frontier.release_slot(lease)  # a document may wait for its reader
        try:
            page = await self.page_of(response)
        except ExtractionStopped:
            self.frontier.release(lease)
        else:
            self.end(lease, f"http-{response.status}", page=page)

    async def page_of(self, response: Response) -> Page | None:
        """The page that a host sends for a made-up URL; ``Page.unread`` says why it was not read.
        None if the host says that there is no page. Raises ExtractionStopped."""
        if 300 <= response.status < 400 and (location := response.headers.get("Location")):
            target = resolve(response.url, location_of(location))
            page = Page(response.url, status=response.status)
            page.links = [Link(target, type=REDIRECT)] if target else []
            return page
        if response.status != 200:
            return None
        content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
        mime, body, url = body_type(response), response.body, response.url
        extract = extractor_for(mime)
        if extract is None or is_closed(mime):
            return None
        readers = getattr(self.crawler.spider, "readers", None)
        readers = readers if isinstance(readers, Readers) else self._own_readers
        try:
            if readers.is_apart(mime, body, url):
                page = await readers.read(mime, body, url, content_type)
            else:
                page = extract(body, url, content_type)
        except ExtractionStopped:
            raise
        except ExtractionRefused as refused:
            page = Page(url, unread=str(refused))
        except Exception as error:  # an extractor's error ends no crawl
            logger.exception("Extraction failed on %s", printable(url[:300]))
            page = Page(url, unread=f"{Outcome.READER_DIED}: raised {error!r}"[:500])
        page.body = body
        if page.unread:
            shown = printable(url[:300])
            logger.warning("Made-up URL %s: its answer was not read (%s)", shown, page.unread)
        return page

    @cached_property
    def _own_readers(self) -> Readers:
        """Readers for a spider that has none."""
        readers = Readers.from_settings(self.crawler.settings)
        for signal in (signals.let_go, engine_stopped):
            self.crawler.signals.connect(readers.close, signal=signal)
        return readers
