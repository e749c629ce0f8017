"""Opens a LARM_DIR for reading: its description, logs, page files. A crawl may be writing there.

crawl = CrawlDir(Path("crawl"))
record = crawl.stored("http://wiki.example/start/")     # by canonical form
body = crawl.body(record)
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from larmspider.crawl_files import DESCRIPTION
from larmspider.description import FORMAT, RULES, RULES_DIR
from larmspider.errors import CrawlDirError
from larmspider.frontier.keys import host_of, url_key
from larmspider.frontier.leasing import ROBOTS_REASON
from larmspider.frontier.lmdb_reader import FrontierReader
from larmspider.frontier.records import UrlState, Visit
from larmspider.items import ORDINARY
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS, page_file_name
from larmspider.times import utc

SPELLINGS = 32
"""Redirects in a row after which another spelling of a page is not looked for any more."""


@dataclass(frozen=True, slots=True)
class StoredPage:
    """One line of store.log."""

    from_page: str
    url: str
    normalized: str
    link_type: int
    status: int
    mime: str
    size: int
    title: str
    page_file: int
    offset: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """What came of fetching a URL: ``result`` is an HTTP status, or the word for a failure;
    ``time`` is "" where it is not known."""

    time: str
    url: str
    normalized: str
    from_page: str
    result: str
    message: str


class CrawlDir:
    """A crawl's directory, read-only. Raises CrawlDirError where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = read_description(path)

    @property
    def seeds(self) -> list[str]:
        return [str(seed) for seed in self.description.get("seeds", ())]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decided about URLs in this crawl."""
        return dict(self.description.get("settings", {}))

    @property
    def rules(self) -> dict[str, Path]:
        """The crawl's own copies of the files of rules that it ran with, by setting."""
        copies = {name: self.path / RULES_DIR / copy for name, copy in RULES.items()}
        told = self.settings
        return {name: path for name, path in copies.items() if told.get(name) and path.exists()}

    @property
    def index_dir(self) -> Path:
        return self.path / "index"

    @contextmanager
    def frontier(self) -> Iterator[FrontierReader | None]:
        """The frontier as of its last checkpoint; None for a crawl under another scheduler."""
        path = self.path / "frontier"
        if not (path / "data.mdb").exists():
            yield None
            return
        with FrontierReader(path) as reader:
            yield reader

    def robots(self, url: str) -> bytes | None:
        """The robots.txt of this URL's server as it was read, None if it was not."""
        with self.frontier() as frontier:
            return None if frontier is None else frontier.note(f"robots {host_of(url)}")

    def stored(self, normalized: str) -> StoredPage | None:
        """The page stored last under this canonical form."""
        found = None
        for fields in self._records("store.log", normalized, 2, len(STORE_LOG_COLUMNS)):
            found = _stored_page(fields)
        return found

    def fetched(self, normalized: str) -> Fetch | None:
        """The last fetch of this canonical form, failed ones too."""
        found = None
        for fields in self._records("fetch.log", normalized, 2, len(FETCH_LOG_COLUMNS)):
            when, url, same, from_page, result, _, _, message = fields
            found = Fetch(when, url, same, from_page, result, message)
        return found

    def last_fetch(self, normalized: str) -> Fetch | None:
        """What the frontier knows of this canonical form, or the logs where it has no say. The
        message is fetch.log's."""
        logged, stored = self.fetched(normalized), self.stored(normalized)
        with self.frontier() as frontier:
            visit = None if frontier is None else _last_visit(frontier, normalized)
        if visit is None and stored is not None and logged is None:
            return Fetch("", stored.url, normalized, stored.from_page, str(stored.status), "")
        if visit is None:
            return logged
        refused_by_robots = visit.state is UrlState.REFUSED and visit.reason == ROBOTS_REASON
        result = str(visit.status or "") or ("robots" if refused_by_robots else visit.reason)
        message = "" if visit.reason in (result, f"http-{result}") else visit.reason
        if logged is not None and logged.url == visit.url:
            message = logged.message or message
            result = result if visit.status else logged.result
        origin = logged or stored
        return Fetch(
            time=utc(visit.time) if visit.time else "",
            url=visit.url,
            normalized=normalized,
            from_page=origin.from_page if origin else "",
            result=result,
            message=message,
        )

    def first_referrer(self, normalized: str) -> str | None:
        """The page on which a link to this canonical form was found first."""
        return next((from_page for from_page, _ in self.links_to(normalized)), None)

    def links_to(self, normalized: str) -> Iterator[tuple[str, int]]:
        """The links to this canonical form in the order they were found: the page, the type."""
        for fields in self._records("links.log", normalized, 2, len(LINK_LOG_COLUMNS)):
            yield fields[0], int(fields[3]) if fields[3].isdecimal() else ORDINARY

    def body(self, page: StoredPage) -> bytes:
        """The bytes of a stored page. Raises CrawlDirError if the page file lacks them."""
        path = self.path / page_file_name(page.page_file)
        try:
            with path.open("rb") as file:
                file.seek(page.offset)
                body = file.read(page.size)
                end = file.seek(0, 2)
        except OSError as error:
            raise CrawlDirError(f"{path}: {error.strerror or error}") from None
        if len(body) != page.size:
            raise CrawlDirError(
                f"{path} ends at {end}, store.log names bytes up to {page.offset + page.size}"
            )
        return body

    def pages(self) -> Iterator[StoredPage]:
        """All pages in the order they were stored."""
        for fields in self._records("store.log", None, 0, len(STORE_LOG_COLUMNS)):
            yield _stored_page(fields)

    def _records(
        self, name: str, value: str | None, field: int, columns: int
    ) -> Iterator[list[str]]:
        """Records of a log in order; with ``value`` those that hold it in ``field``.

        The log is searched as bytes, which takes about a second a gigabyte, not line by line.
        """
        try:
            with (self.path / name).open("rb") as file:
                size = file.seek(0, 2)
                if not size:
                    return
                with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
                    yield from _search(data, value, field, columns)
        except FileNotFoundError:
            return


def _search(data: mmap.mmap, value: str | None, field: int, columns: int) -> Iterator[list[str]]:
    needle = b"\n" if value is None else f"\t{value}\t".encode()
    position = 0
    while (hit := data.find(needle, position)) >= 0:
        start = position if value is None else data.rfind(b"\n", 0, hit) + 1
        end = data.find(b"\n", hit)
        if end < 0:
            return  # a line still being written
        fields = data[start:end].decode("utf-8", "replace").split("\t")
        if len(fields) == columns and (value is None or fields[field] == value):
            yield fields
        position = end + 1


def _last_visit(frontier: FrontierReader, normalized: str) -> Visit | None:
    """The last of a URL and of what redirects from one spelling of it to another were kept as."""
    keys = [url_key(normalized), *(url_key(f"{normalized}#{n}") for n in range(1, SPELLINGS + 1))]
    visits = [visit for key in keys if (visit := frontier.visit(key)) is not None]
    return max(visits, key=lambda visit: visit.time, default=None)


def _stored_page(fields: list[str]) -> StoredPage:
    from_page, url, normalized, link_type, status, mime, size, title, page_file, offset = fields
    try:
        numbers = tuple(map(int, (link_type, status, size, page_file, offset)))
    except ValueError:
        raise CrawlDirError(f"store.log has a line that is damaged: {fields!r:.200}") from None
    return StoredPage(
        from_page, url, normalized, numbers[0], numbers[1], mime, numbers[2], title, *numbers[3:]
    )


def read_description(path: Path) -> dict[str, Any]:
    """crawl.json of the crawl in ``path``. Raises CrawlDirError if this is no crawl's directory."""
    if not path.is_dir():
        raise CrawlDirError(
            f"LARM_DIR={path} is no directory; crawl first, or name a crawl with -s LARM_DIR=DIR"
        )
    file = path / DESCRIPTION
    try:
        description = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise CrawlDirError(
            f"LARM_DIR={path} is not a crawl's directory: it has no {DESCRIPTION}"
        ) from None
    except (OSError, ValueError) as error:
        raise CrawlDirError(f"{file} cannot be read: {error}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise CrawlDirError(f"{file} is not of format {FORMAT}, the one this version reads")
    return description
