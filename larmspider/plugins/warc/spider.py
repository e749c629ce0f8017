"""`scrapy import`, and WARC files as seeds: the pages of archives go through filters, extraction
and stores as if they were fetched now, but with the times of their captures."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from larmspider import stats
from larmspider.errors import ConfigError, LarmspiderError
from larmspider.items import Requisite
from larmspider.plugins.warc.archives import Archive
from larmspider.requests import page_request
from larmspider.spiders.intranet import IntranetSpider, Item
from larmspider.urls.canonical import canonicalize
from larmspider.urls.file_urls import FileRoots, is_archive, path_of
from larmspider.urls.seeds import read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from larmspider.options import Settings

_HANDLER = "larmspider.plugins.warc.archive_handler.ArchiveHandler"
SETTINGS: dict[str, Any] = {
    "DOWNLOAD_HANDLERS": {"http": _HANDLER, "https": _HANDLER},
    "ROBOTSTXT_OBEY": False,
    "LARM_SITEMAPS": False,
    "LARM_TRAPS": "off",
    "DOWNLOAD_DELAY": 0,
    "LARM_DELAY_RESPONSE_FACTOR": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "LARM_RETRY_TIMES": 0,
    "LARM_BACKOFF_SECS": 0.01,
    "LARM_RETRY_AFTER_MAX_SECS": 0.01,
    "LARM_HOST_MAX_FAILURES": 1_000_000_000,
}
"""No server gets a request, so none is waited for."""
FOLLOW = "larmspider.middlewares.follow.FollowMiddleware"


class ArchiveSpider(IntranetSpider):
    """The seeds are one page of each host, so that these hosts are the scope by default. No link is
    followed. The resulting crawl is a crawl of the intranet spider."""

    name = ""  # no spider of `scrapy list`
    asks_sources = False
    may_resume = False
    """Whether it may continue a crawl with other seeds."""
    archive: Archive

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(IntranetSpider.name, **kwargs)

    @classmethod
    def from_crawler(
        cls,
        crawler: Crawler,
        *args: Any,
        paths: Sequence[str] = (),
        scheme: str = "http",
        **kwargs: Any,
    ) -> Self:
        """Raises ConfigError for a path that is not an archive, and for unknown arguments."""
        if scheme not in ("http", "https"):
            raise ConfigError(f"scheme={scheme}: expected http or https")
        with _ended_by_signals():
            archive = Archive([Path(path).expanduser() for path in paths], scheme)
        for name in kwargs:
            if name not in ("restrict", "hostresolver", "fresh") and not name.startswith("_"):
                raise ConfigError(f"-a {name}: expected restrict, hostresolver, fresh or scheme")
        settings = crawler.settings
        for name, value in SETTINGS.items():
            settings.set(name, value, priority="cmdline")
        chain = settings.getdict("SPIDER_MIDDLEWARES")
        settings.set("SPIDER_MIDDLEWARES", chain | {FOLLOW: None}, priority="cmdline")
        settings.set("LARM_START", "\n".join(_seeds(archive.urls())), priority="cmdline")
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.archive = archive
        return spider

    @property
    def damages(self) -> Sequence[str]:  # type: ignore[override]
        return self.archive.damages

    @property
    def refused(self) -> Sequence[str]:
        """Entries of the archives that are not taken, a line for each reason."""
        return self.archive.refused

    async def start(self) -> AsyncIterator[Any]:
        self.languages.start()
        if self.archive.refused_entries:
            self.crawler.stats.set_value(stats.IMPORT_REFUSED, self.archive.refused_entries)
        for url in self.archive.urls():
            yield page_request(self, url)

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Item]:
        capture = self.archive.find(response.url)
        async for item in super().parse(response, **kwargs):
            if capture is not None and not isinstance(item, Requisite):
                item.fetched = capture.time
            yield item


class _Told(BaseException):
    """A signal has arrived; readers of archives do not take it for damage."""


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and the like interrupt the work in this context. The event loop, which otherwise
    stops a crawl, waits for it. Raises LarmspiderError."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise _Told(signal.Signals(number).name)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):  # nohup
                before[number] = handler
                signal.signal(number, stop)
    try:
        yield
    except _Told as told:
        raise LarmspiderError(f"ended by {told} before all archives were read") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def archives_of(start: str, settings: Settings) -> list[str]:
    """The paths of the WARC files that are the seeds, where any is one. Raises ConfigError."""
    seeds, roots, paths = read_seeds(start), FileRoots.from_settings(settings), []
    for seed in seeds if any(map(is_archive, seeds)) else ():
        if not is_archive(seed):
            raise ConfigError(f"start={seed}: expected WARC files as the only seeds")
        real = os.path.realpath(path_of(seed))
        why = roots.why_not(canonicalize(seed))
        if why or roots.place_of(real) is None:
            why = why or "it leads out of LARM_FILE_ROOTS"
            raise ConfigError(f"start={seed}: {why} (docs/files.md)")
        paths.append(os.fsdecode(real))
    return paths


def _seeds(urls: Iterable[str]) -> list[str]:
    """The first URL of each host."""
    first: dict[str, str] = {}
    for url in urls:
        first.setdefault(urlsplit(url).netloc, url)
    return list(first.values())
