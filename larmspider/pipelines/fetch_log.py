"""fetch.log: time and result of each fetch, of failures and refusals by robots.txt too.

A visit after which the stored page stayed as it is has a line like any other, whose message begins
with ``kept``.

store.log has LARM's columns, and so neither times nor failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from larmspider import signals
from larmspider.formatting import utc
from larmspider.items import KNOWN, REDIRECT, FailedFetch, Kept, Page
from larmspider.pipelines.records import LogStore
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

FETCH_LOG_COLUMNS = (
    "time",
    "url",
    "url-normalized",
    "from-page",
    "result",
    "size",
    "milliseconds",
    "message",
)


KEPT = "kept: "
"""The message of a line begins so where the page that is stored stayed as it was."""
BY_KIND = frozenset({"same", "login", "empty", "soft-404", "noindex"})
"""Of these the status says nothing."""


class FetchLogPipeline(LogStore):
    """Writes fetch.log."""

    file_name = "fetch.log"
    files = (file_name,)
    columns = FETCH_LOG_COLUMNS

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        store = super().from_crawler(crawler)
        crawler.signals.connect(store.url_refused, signal=signals.url_refused)
        crawler.signals.connect(store.page_copied, signal=signals.page_copied)
        return store

    def url_refused(self, failed: FailedFetch) -> None:
        self.write_failure(failed)

    def page_copied(self, page: Page, message: str) -> None:
        self._append(page, message)

    def write(self, page: Page) -> None:
        self._append(page, page.unread or _dead_end(page))

    def _append(self, page: Page, message: str) -> None:
        self.log.append(
            utc(page.fetched),
            without_userinfo(page.url),
            page.normalized or "",
            without_userinfo(page.from_page),
            str(page.status),
            str(len(page.body)),
            str(round(page.latency * 1000)),
            message,
        )

    def write_failure(self, failed: FailedFetch) -> None:
        self.log.append(
            utc(failed.fetched),
            without_userinfo(failed.url),
            failed.normalized or "",
            without_userinfo(failed.from_page),
            failed.kind,
            "0",
            "",
            failed.message,
        )

    def kept(self, kept: Kept) -> None:
        by_status = kept.status and kept.kind not in BY_KIND
        self.log.append(
            utc(kept.fetched),
            without_userinfo(kept.url),
            kept.normalized or "",
            without_userinfo(kept.from_page),
            str(kept.status) if by_status else kept.kind,
            str(kept.size),
            str(round(kept.latency * 1000)) if kept.latency else "",
            KEPT + (f"{kept.kind}: {kept.message}" if kept.message else kept.kind),
        )


def _dead_end(page: Page) -> str:
    """Why a page's redirect was not followed; "" if it was, or the target was known."""
    for link in page.links[:1]:
        if link.type == REDIRECT and link.reason != KNOWN:
            return link.reason
    return ""
