"""fetch.log: time and result of each fetch, of failures and refusals by robots.txt too.

A visit after which the stored page stayed as it is has a line like any other, whose message begins
with ``kept``. The message of a stored page begins with ``noindex`` if the page asks for that, and
with ``charset=NAME`` if a header names one. A later reader of the body needs these, because the
headers are not stored.

store.log has LARM's columns, and so neither times nor failures.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Self

from larmspider import signals
from larmspider.formatting import utc
from larmspider.items import KNOWN, REDIRECT, FailedFetch, Kept, Outcome, Page
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
"""Kinds that the status does not show, if it is below 400."""
_BROKEN = 400


_REMARKS = re.compile(
    r"(?P<noindex>noindex(?:; |\Z))?(?:charset=(?P<charset>[\w:.-]+)(?:; |\Z))?(?P<rest>.*)",
    re.DOTALL,
)
_OUTCOMES = frozenset(map(str, Outcome))


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
        said = page.unread or _dead_end(page)
        self._append(page, "; ".join([*_remarks(page), said] if said else _remarks(page)))

    def _append(self, page: Page, message: str) -> None:
        self.log.append(
            utc(page.fetched),
            without_userinfo(page.url),
            page.normalized or "",
            without_userinfo(page.from_page),
            str(page.status),
            str(page.size),
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
        # a URL that was broken and answers as before is still broken
        by_status = kept.status and (
            kept.kind not in BY_KIND or (kept.kind == "same" and kept.status >= _BROKEN)
        )
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


class Remarks(NamedTuple):
    """Facts about a stored page that its line has and its body does not."""

    noindex: bool = False
    charset: str = ""
    """The charset of the Content-Type header."""
    unread: str = ""
    """Page.unread."""


def _remarks(page: Page) -> list[str]:
    found = ["noindex"] if page.noindex else []
    if page.charset not in (None, "utf-8"):  # which needs no header to be seen
        types = (values for name, values in page.headers.items() if name == b"Content-Type")
        if any(b"charset" in value.lower() for values in types for value in values):
            found.append(f"charset={page.charset}")
    return found


def remarks_in(message: str) -> Remarks:
    """
    >>> remarks_in("noindex; charset=windows-1252")
    Remarks(noindex=True, charset='windows-1252', unread='')
    """
    found = _REMARKS.match(message)
    assert found is not None  # each group may be empty
    unread = found["rest"] if found["rest"].partition(":")[0] in _OUTCOMES else ""
    return Remarks(bool(found["noindex"]), found["charset"] or "", unread)


def _dead_end(page: Page) -> str:
    """Why a page's redirect was not followed; "" if it was, or the target was known."""
    for link in page.links[:1]:
        if link.type == REDIRECT and link.reason != KNOWN:
            return link.reason
    return ""
