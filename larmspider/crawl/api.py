"""A crawl for programs: its pages, their bodies and texts, and its links (docs/export.md).

    from larmspider import open_crawl

    with open_crawl("crawl") as crawl:
        for page in crawl.pages(host="wiki.example", since="2026-01-31"):
            print(page.url, page.title, len(page.body), page.text[:80])
        links = pandas.DataFrame(crawl.links())

A crawl may be writing there meanwhile: pages that it stores later may or may not be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from scrapy.settings import Settings

from larmspider.crawl.reader import CrawlDir, StoredPage, check_bodies, last_visit
from larmspider.crawl.worker_dirs import open_crawl as open_directory
from larmspider.errors import ConfigError
from larmspider.extraction.processes.process import Readers
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.items import ORDINARY, Page
from larmspider.urls.host_pattern import host_matcher


@dataclass(frozen=True, slots=True)
class CrawledPage:
    """The last stored version of a page. ``fetched`` is None, and ``depth`` 0, if the frontier does
    not know them. ``body`` and ``text`` are read on access; they raise CrawlDirError if the page
    files lack them. If a body is too large for memory, ``body`` is empty and ``body_file`` names
    its file."""

    url: str
    status: int
    mime: str
    size: int
    title: str
    fetched: datetime | None
    depth: int
    from_page: str
    _crawl: Crawl = field(repr=False, compare=False)
    _stored: StoredPage = field(repr=False, compare=False)

    @property
    def body(self) -> bytes:
        return self._crawl.directory.body(self._stored)

    @property
    def stored(self) -> StoredPage:
        """Where the body lies."""
        return self._stored

    @property
    def body_file(self) -> Path | None:
        """The file of a body of more than DOWNLOAD_MAXSIZE (LARM_BLOB_BYTES); None for other
        bodies. Raises CrawlDirError if it is gone."""
        return self._crawl.directory.body_file(self._stored)

    @property
    def text(self) -> str:
        """The text as a crawl would read it today; "" if it has none."""
        return self.read().text

    def read(self) -> Page:
        """The Page that extraction makes of the body: text, links, language and others; nothing
        of one in ``body_file``."""
        if self.body_file is not None:
            return Page(self.url, mime=self.mime)
        return self._crawl.readers.read_again(self.mime, self.body, self.url)

    def record(self) -> dict[str, object]:
        """The fields above as plain data, for a table."""
        names = ("url", "status", "mime", "size", "title", "fetched", "depth", "from_page")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class CrawledLink:
    """A line of links.log. ``type`` is 0 for an ordinary link, 1 for a frame, 2 for a redirect."""

    from_page: str
    to_page: str
    to_page_normalized: str
    type: int
    anchor: str


class Crawl:
    """A crawl's directory, of one process or of many workers. To be closed, or used in a with."""

    def __init__(self, directory: CrawlDir) -> None:
        self.directory = directory
        self._readers: Readers | None = None

    def pages(
        self, host: str = "", since: datetime | date | str | None = None
    ) -> Iterator[CrawledPage]:
        """The stored pages in the order in which they were stored, each once. ``host``: only pages
        of hosts that match this pattern, such as ``*.intra.example``. ``since``: only pages fetched
        since then, a date or time, UTC if it has no zone. Raises ConfigError, CrawlDirError."""
        check_bodies(self.directory)
        return self._pages(_matcher(host), _moment(since))

    def _pages(
        self, wanted: Callable[[str], object], moment: datetime | None
    ) -> Iterator[CrawledPage]:
        with self.directory.frontier() as frontier:
            for stored in self.directory.pages():
                if not wanted(stored.url):
                    continue
                page = self._page(stored, frontier)
                if moment is None or (page.fetched is not None and page.fetched >= moment):
                    yield page

    def page(self, url: str) -> CrawledPage | None:
        """The page of a URL, in any of its spellings; None if none is stored."""
        check_bodies(self.directory)
        stored = self.directory.stored(self.directory.forms(url).exact)
        if stored is None:
            return None
        with self.directory.frontier() as frontier:
            return self._page(stored, frontier)

    def links(self, host: str = "") -> Iterator[CrawledLink]:
        """Every link of the stored pages, in scope or not; ``host``: only links on its pages."""
        wanted = _matcher(host)
        for from_page, to_page, normalized, kind, anchor in self.directory.links():
            if wanted(from_page):
                number = int(kind) if kind.isdecimal() else ORDINARY
                yield CrawledLink(from_page, to_page, normalized, number, anchor)

    def _page(self, stored: StoredPage, frontier: FrontierReader | None) -> CrawledPage:
        visit = None if frontier is None else last_visit(frontier, stored.exact)
        at = 0.0 if visit is None else visit.stored or visit.time
        return CrawledPage(
            url=stored.url,
            status=stored.status,
            mime=stored.mime,
            size=stored.size,
            title=stored.title,
            fetched=datetime.fromtimestamp(at, UTC) if at else None,
            depth=0 if visit is None else visit.depth,
            from_page=stored.from_page,
            _crawl=self,
            _stored=stored,
        )

    @property
    def readers(self) -> Readers:
        """The readers of bodies. Documents are read in a separate process, which close() ends."""
        if self._readers is None:
            settings = Settings()
            settings.setmodule("larmspider.settings", priority="project")
            settings.update(self.directory.settings, priority="project")
            self._readers = Readers.from_settings(settings)
        return self._readers

    def close(self) -> None:
        """May be called twice."""
        if self._readers is not None:
            self._readers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_crawl(path: str | PathLike[str] = "crawl", shards: Sequence[str] = ()) -> Crawl:
    """The crawl in ``path``, its LARM_DIR; ``shards`` are directories of the same crawl elsewhere.
    Raises CrawlDirError."""
    here = Path(path).expanduser().absolute()
    return Crawl(open_directory(here, [Path(shard) for shard in shards]))


def _matcher(host: str) -> Callable[[str], object]:
    """A function that says whether the host of a URL matches, with or without its port."""
    if not host:
        return lambda _: True
    matches = host_matcher(host)

    def is_of(url: str) -> object:
        parts = urlsplit(url)
        return matches(parts.netloc) or matches(parts.hostname or "")

    return is_of


def _moment(since: datetime | date | str | None) -> datetime | None:
    """Raises ConfigError."""
    if since is None:
        return None
    try:
        if not isinstance(since, str):
            since = since.isoformat()
        found = datetime.fromisoformat(since)
    except ValueError:
        raise ConfigError(
            f"since={since}: expected a date such as 2026-01-31 or 2026-01-31T12:00"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
