"""Opens a LARM_DIR for reading: its manifest, logs, page files. A crawl may be writing there.

>>> crawl = CrawlDir(Path("crawl"))
>>> crawl.body(crawl.stored("http://wiki.example/start/"))     # by exact form
b'<!DOCTYPE html>...'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider import program
from larmspider.crawl.logs import COLUMNS, REMOVED, STATUS, CrawlLogs
from larmspider.errors import MEND, CrawlDirError, InvalidURL, NoCrawlError
from larmspider.files import is_locked
from larmspider.formatting import utc
from larmspider.frontier.dispatch import ROBOTS_REASON
from larmspider.frontier.storage.lmdb_env import BeingMade
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import FetchRecord, UrlState, host_of, url_key
from larmspider.items import ORDINARY
from larmspider.learned.describe import stand_in
from larmspider.pipelines.page_files import (
    BLOBS,
    STORE_LOG_COLUMNS,
    blob_file,
    body_file,
    page_file_name,
    read_body,
)
from larmspider.pipelines.records import read_records
from larmspider.search.searcher import Searcher
from larmspider.urls.canonical import Forms
from larmspider.urls.normalizer import forms_from_settings
from larmspider.workdir.frames import note_damage, present, stored_size
from larmspider.workdir.manifest import (
    LOCK,
    MANIFEST,
    RULES,
    RULES_DIR,
    files_in,
    stores_in,
)
from larmspider.workdir.restricted import restricted_hosts

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
from larmspider.workdir.manifest_copy import read_or_copy

_STORES = {
    "PageFilesPipeline": "store.log",
    "FetchLogPipeline": "fetch.log",
    "LinkLogPipeline": "links.log",
}
MAX_SPELLINGS = 32
"""Redirects in a row after which the crawl looks for no other spelling of a page."""


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
    exact: str = ""
    """The URL's exact form, the key of the page in frontier and index."""
    shard: str = ""
    """The directory of the worker that stored the page, in a crawl of many workers."""

    @property
    def file(self) -> str:
        """The name of the file that has the body."""
        return page_file_name(self.page_file)


@dataclass(frozen=True, slots=True)
class LoggedFetch:
    """A line of fetch.log: ``result`` is an HTTP status, or the word for a failure; ``time`` is ""
    if it is not known."""

    time: str
    url: str
    normalized: str
    from_page: str
    result: str
    message: str


class CrawlDir:
    """A crawl's directory, read-only. Raises CrawlDirError if there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = read_manifest(path)
        self.remark = ""
        """The unknown facts about the queues, and why; set when the frontier was read."""
        self.logs = self._logs()

    def _logs(self, seconds: float | None = None) -> CrawlLogs:
        return CrawlLogs(self.path, self.began, seconds, self._end, self.forms, self.name_of)

    def _end(self, name: str, size: int) -> int:
        """Up to which byte a log of ``size`` bytes is read."""
        return size

    def within(self, seconds: float) -> Self:
        """This crawl with a limit of ``seconds`` for all searches in the logs. If the limit was
        reached, ``logs.cut_short`` is True: there may be more."""
        bounded = copy(self)
        bounded.logs = bounded._logs(seconds)
        return bounded

    @property
    def parts(self) -> Sequence[CrawlDir]:
        """The directories that hold logs: this one, or the workers' directories."""
        return (self,)

    def restricted(self, settings: BaseSettings | None = None) -> tuple[str, ...]:
        """Patterns of hosts whose pages are not for everybody (workdir/restricted.py). Raises
        CrawlDirError and ConfigError if they cannot be known."""
        return restricted_hosts(self.places, settings)

    @property
    def places(self) -> list[Path]:
        """The directories of the crawl that have a crawl.json."""
        return list(dict.fromkeys([self.path, *(part.path for part in self.parts)]))

    @property
    def began(self) -> str:
        """When the crawl began first, which distinguishes it from earlier ones in this
        directory."""
        return str(self.manifest.get("began") or "")

    @property
    def seeds(self) -> list[str]:
        return [str(seed) for seed in self.manifest.get("seeds", ())]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decided about URLs in this crawl."""
        return dict(self.manifest.get("settings", {}))

    def forms(self, url: str) -> Forms:
        """The forms of a URL by the rules of this crawl; an invalid URL is its own form."""
        try:
            return self._forms(url)
        except InvalidURL:
            return Forms(url, url)

    @cached_property
    def _forms(self) -> Callable[[str], Forms]:
        copies = {name: str(path) for name, path in self.rules.items()}
        rules = {"LARM_HOST_RESOLVER_FILE": copies.get("LARM_HOST_RESOLVER_FILE", "")}
        return forms_from_settings(self.settings | rules)  # type: ignore[arg-type]

    @property
    def rules(self) -> dict[str, Path]:
        """The crawl's own copies of the files of rules that it ran with, by setting."""
        copies = {name: self.path / RULES_DIR / file for name, file in RULES.items()}
        used = self.settings
        return {name: path for name, path in copies.items() if used.get(name) and path.exists()}

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
        with FrontierReader(path, runs=is_locked(self.path / LOCK)) as reader:
            yield reader

    def searcher(self) -> Searcher:
        """The search index. Raises CrawlDirError without an index, or for another format."""
        return Searcher.open(self.index_dir, self.settings.get("LARM_FACETS", ()))

    def robots(self, url: str) -> bytes | None:
        """The robots.txt of this URL's host as the crawl read it; None if the crawl has not read
        it."""
        with self.frontier() as frontier:
            return None if frontier is None else frontier.note(f"robots {host_of(url)}")

    def name_of(self, exact: str) -> str:
        """The exact form of the page of a URL, by the URL's exact form. They differ if the URL is
        merged."""
        with self.frontier() as frontier:
            merged = None if frontier is None else frontier.merged(url_key(exact))
            if frontier is None or merged is None:
                return exact
            return self.forms(stand_in(frontier, merged) or exact).exact

    def page_of(self, fields: list[str]) -> StoredPage:
        """A record of store.log. Raises CrawlDirError for a damaged record."""
        page = stored_page(fields)
        return replace(page, exact=self.forms(page.url).exact)

    def stored(self, exact: str) -> StoredPage | None:
        """The last stored page with this exact form, or with the exact form of the URL that stands
        for it."""
        exact = self.name_of(exact)
        fields = self.logs.last("store.log", exact)
        return None if fields is None or fields[STATUS] == REMOVED else self.page_of(fields)

    def fetched(self, exact: str) -> LoggedFetch | None:
        """The last fetch of this exact form, whether it failed or not."""
        fields = self.logs.last("fetch.log", exact)
        return None if fields is None else fetch_of(fields)

    def last_fetch(self, exact: str) -> LoggedFetch | None:
        """The last fetch as the frontier knows it, or the logs where the frontier does not; with
        the message of fetch.log."""
        logged, stored = self.fetched(exact), self.stored(exact)
        normalized = self.forms(exact).normalized
        with self.frontier() as frontier:
            visit = None if frontier is None else last_visit(frontier, exact)
        if visit is None and stored is not None and logged is None:
            return LoggedFetch("", stored.url, normalized, stored.from_page, str(stored.status), "")
        if visit is None:
            return logged
        refused_by_robots = visit.state is UrlState.REFUSED and visit.reason == ROBOTS_REASON
        result = str(visit.status or "") or ("robots" if refused_by_robots else visit.reason)
        message = "" if visit.reason in (result, f"http-{result}") else visit.reason
        if logged is not None and logged.url == visit.url:
            message = logged.message or message
            result = result if visit.status else logged.result
        origin = logged or stored
        return LoggedFetch(
            time=utc(visit.time) if visit.time else "",
            url=visit.url,
            normalized=normalized,
            from_page=origin.from_page if origin else "",
            result=result,
            message=message,
        )

    def first_referrer(self, exact: str) -> str | None:
        """The page on which a link to this exact form was found first."""
        return next((from_page for from_page, _ in self.links_to(exact)), None)

    def links_to(self, exact: str) -> Iterator[tuple[str, int]]:
        """Page and type of the links to this exact form, in the order they were found. If there are
        many, the index of the logs has the first MAX_REFERRERS."""
        for fields in self.logs.links_to(exact):
            yield fields[0], int(fields[3]) if fields[3].isdecimal() else ORDINARY

    def committed(self) -> dict[str, int]:
        """The bytes of each log that no crash can take back; all of a log whose store has no
        position in the frontier."""
        with self.frontier() as frontier:
            positions = {} if frontier is None else frontier.positions()
        ends = {name: self.logs.size(name) for name in COLUMNS}
        for store, name in _STORES.items():
            if store in positions:  # the length of the log is the last number
                end = int((positions[store].split() or [b"0"])[-1])
                if ends[name] < end:
                    lost = f"{end:,} were committed: the data after that is lost"
                    note_damage(present(self.path / name), ends[name], f"it ends there, {lost}")
                ends[name] = min(ends[name], end)
        return ends

    def body(self, page: StoredPage) -> bytes:
        """The bytes of a stored page; b"" if `body_file` has one. Raises CrawlDirError if the
        page file lacks them."""
        body = read_body(self.path, page.page_file, page.offset, page.size)
        if len(body) != page.size and page.page_file != BLOBS:
            path = body_file(self.path, page.page_file)
            raise CrawlDirError(
                f"{path} ends at {stored_size(path)}, store.log names {page.size} bytes at"
                f" {page.offset}; {MEND}"
            )
        return body

    def body_file(self, page: StoredPage) -> Path | None:
        """The file of a body that is too large for page files (LARM_BLOB_BYTES). Raises
        CrawlDirError if it is gone or cut short."""
        if page.page_file != BLOBS:
            return None
        path = blob_file(self.path, page.offset)
        if (size := path.stat().st_size) != page.size:
            raise CrawlDirError(f"{path} ends at {size}, store.log names {page.size} bytes")
        return path

    def pages(self) -> Iterator[StoredPage]:
        """All pages in the order they were stored; of several versions the last."""
        last: dict[bytes, int] = {}
        for at, fields in self.logs.search("store.log", None, 0):
            last[url_key(self.forms(fields[_URL]).exact)] = at
        for at, fields in self.logs.search("store.log", None, 0):
            page = self.page_of(fields)
            if page.status and last.get(url_key(page.exact), at) == at:
                yield page

    def links(self) -> Iterator[list[str]]:
        """The records of links.log that count, page by page."""
        return self.logs.links()


def check_bodies(crawl: CrawlDir) -> None:
    """Raise CrawlDirError for a crawl whose page files were taken out of ITEM_PIPELINES."""
    for manifest in (part.manifest for part in crawl.parts):
        if stores_in(manifest) and "store.log" not in files_in(manifest):
            raise CrawlDirError(
                f"{crawl.path} has no page files: PageFilesPipeline is not in the ITEM_PIPELINES"
                " that it ran with (docs/warc.md#without-page-files)"
            )


def last_visit(frontier: FrontierReader, exact: str) -> FetchRecord | None:
    """The latest visit to a URL, including visits recorded under spellings that redirect to it."""
    keys = [
        url_key(exact),
        *(url_key(f"{exact}#{n}") for n in range(1, MAX_SPELLINGS + 1)),
    ]
    visits = [visit for key in keys if (visit := frontier.visit(key)) is not None]
    return max(visits, key=lambda visit: visit.time, default=None)


def has_page(visit: FetchRecord) -> bool:
    """Whether the page is in store.log."""
    return visit.has_page


def fetch_of(fields: list[str]) -> LoggedFetch:
    """A record of fetch.log."""
    when, url, normalized, from_page, result, _, _, message = fields
    return LoggedFetch(when, url, normalized, from_page, result, message)


def stored_page(fields: list[str]) -> StoredPage:
    """A record of store.log. Raises CrawlDirError for a damaged record."""
    from_page, url, normalized, link_type, status, mime, size, title, page_file, offset = fields
    try:
        numbers = tuple(map(int, (link_type, status, size, page_file, offset)))
    except ValueError:
        raise CrawlDirError(
            f"store.log has a line that is damaged: {fields!r:.200}; {MEND}"
        ) from None
    return StoredPage(
        from_page,
        url,
        normalized,
        numbers[0],
        numbers[1],
        mime,
        numbers[2],
        title,
        numbers[3],
        numbers[4],
    )


def read_manifest(path: Path) -> dict[str, Any]:
    """crawl.json of the crawl in ``path``. Raises NoCrawlError if this is no crawl's directory,
    CrawlDirError if it cannot be read."""
    if not path.is_dir():
        raise NoCrawlError(
            f"LARM_DIR={path} is not a directory; crawl first, or name a crawl with -s LARM_DIR=DIR"
        )
    found = read_or_copy(path)
    if found.manifest is None:
        if found.trouble:
            raise CrawlDirError(found.trouble)
        if all(entry.name == LOCK for entry in path.iterdir()):
            raise NoCrawlError(f"LARM_DIR={path} is empty: no crawl has written here yet")
        raise NoCrawlError(f"LARM_DIR={path} is not a crawl's directory: it has no {MANIFEST}")
    if found.copied:
        what = found.trouble.removeprefix(f"{path / MANIFEST} ")
        mended = f"its copy in the frontier counts, {program.NAME} verify --repair puts it back"
        note_damage(path / MANIFEST, 0, f"it {what}; {mended}")
    return found.manifest


_URL = STORE_LOG_COLUMNS.index("url")


_ENDLESS = 1 << 62


class WorkerDirectory(CrawlDir):
    """One worker's part of a crawl, up to its last checkpoint.

    Lines after the committed positions do not count: the worker that wrote them may have died, and
    another one has fetched these pages again. They are deleted when the worker comes back.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._prefixes: tuple[int, set[bytes]] = -1, set()
        self._tail: tuple[tuple[int, int], set[str]] = (-1, -1), set()

    @contextmanager
    def frontier(self) -> Iterator[FrontierReader | None]:
        """The frontier of this worker. It is None while the worker is starting, so that the other
        workers need not wait for it."""
        with ExitStack() as stack:
            reader = None
            with suppress(BeingMade):
                reader = stack.enter_context(super().frontier())
            yield reader

    def positions(self) -> Mapping[str, bytes] | None:
        """The stores' positions; None under another scheduler, which does not record them."""
        with self.frontier() as frontier:
            if frontier is not None:
                return frontier.positions()
        return {} if "frontier" in files_in(self.manifest) else None

    def damage(self) -> str:
        """The committed data that is missing, in words; "" if nothing is missing."""
        positions = self.positions()
        written = {
            name: stored_size(self.path / name, missing=0)
            for name in ("store.log", "fetch.log", "links.log")
        }
        if positions == {} and written["store.log"] and not (self.path / "frontier").exists():
            return f"{self.path / 'frontier'} is missing: the committed length of logs is unknown"
        for name, size in written.items():
            end = self._end(name, _ENDLESS)
            if positions and size < end < _ENDLESS:
                return f"{self.path / name} can be read up to byte {size:,} of {end:,}"
        return ""

    def _end(self, name: str, size: int) -> int:
        positions = self.positions()
        if positions is None:
            return size
        if not positions:
            return 0
        for store, files in stores_in(self.manifest).items():
            position = positions.get(store.rpartition(".")[2])
            if name in files and position is not None:
                # position of page files: number of the file, its length, length of store.log
                length = position.split()[-1] if position.split() else b"0"
                return min(size, int(length)) if length.isdigit() else size
        return size

    def stored(self, exact: str) -> StoredPage | None:
        page = super().stored(exact)
        return None if page is None else replace(page, shard=str(self.path))

    def pages(self) -> Iterator[StoredPage]:
        for page in super().pages():
            yield replace(page, shard=str(self.path))

    def visit_time(self, exact: str) -> float:
        """When this worker stored its version of a URL, or finished a URL without a page; 0.0: it
        does not know the URL."""
        with self.frontier() as frontier:
            visit = None if frontier is None else last_visit(frontier, exact)
        return 0.0 if visit is None or visit.shard else visit.stored or visit.time

    def host_prefixes(self) -> set[bytes]:
        """The first bytes of the keys of all URLs here, one value a host; read once a commit."""
        with self.frontier() as frontier:
            if frontier is None:
                return set()
            commits = frontier.commits
            if self._prefixes[0] != commits:
                self._prefixes = commits, frontier.host_prefixes()
            return self._prefixes[1]

    def tail(self) -> set[str]:
        """Exact forms of pages after the last checkpoint; the search index may have them."""
        log = self.path / "store.log"
        size = stored_size(log, missing=0)
        end = self._end("store.log", size)
        if end == size:
            return set()
        if self._tail[0] != (end, size):
            behind = {
                self.forms(fields[_URL]).exact
                for fields in read_records(log, len(STORE_LOG_COLUMNS), end)
            }
            self._tail = (end, size), {url for url in behind if not self._has(url)}
        return self._tail[1]

    def _has(self, exact: str) -> bool:
        with self.frontier() as frontier:
            visit = None if frontier is None else frontier.visit(url_key(exact))
        return visit is not None and has_page(visit)
