"""fetch.log: when each URL was fetched and with what result, failures and refusals by robots too.

store.log has LARM's columns and so no time; this is the log that answers "when" and "why not".
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from larmspider import options, signals
from larmspider.items import KNOWN, REDIRECT, FailedFetch, Page
from larmspider.pipelines.records import RecordLog, truncate_file
from larmspider.pipelines.store import Store

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


class FetchLogPipeline(Store):
    """Writes fetch.log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._log: RecordLog | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        store = super().from_crawler(crawler)
        crawler.signals.connect(store.url_refused, signal=signals.url_refused)
        return store

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        return cls(options.larm_dir(crawler.settings))

    def url_refused(self, failed: FailedFetch) -> None:
        self.write_failure(failed)

    def open_spider(self) -> None:
        options.writable_dir(self.directory)
        self._log = RecordLog(self.directory / "fetch.log", FETCH_LOG_COLUMNS)

    def write(self, page: Page) -> None:
        assert self._log is not None
        self._log.append(
            utc(page.fetched),
            page.url,
            page.normalized or "",
            page.from_page,
            str(page.status),
            str(len(page.body)),
            str(round(page.latency * 1000)),
            _dead_end(page),
        )

    def write_failure(self, failed: FailedFetch) -> None:
        assert self._log is not None
        self._log.append(
            utc(failed.fetched),
            failed.url,
            failed.normalized or "",
            failed.from_page,
            failed.kind,
            "0",
            "",
            failed.message,
        )

    def recover(self, position: bytes) -> None:
        truncate_file(self.directory / "fetch.log", position)

    def flush(self) -> bytes:
        return b"" if self._log is None else self._log.flush()

    async def commit(self) -> None:
        if self._log is not None:
            await asyncio.to_thread(self._log.sync)

    def close_spider(self) -> None:
        if self._log is not None:
            self._log.close()


def _dead_end(page: Page) -> str:
    """Why a page's redirect was not followed, "" where it was or its target was known."""
    for link in page.links[:1]:
        if link.type == REDIRECT and link.reason != KNOWN:
            return link.reason
    return ""


def utc(epoch: float) -> str:
    """Seconds since the epoch as ``2026-01-31T12:00:00.000Z``."""
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")[:23] + "Z"
