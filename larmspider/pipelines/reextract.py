"""Documents for the search index, read again from the page files by the present readers and rules.
No request is made.

    rebuild(Path("crawl/index"), reextracted(Path("crawl"), forms, readers, languages))

Page files have bodies only. fetch.log has noindex, the charset, and why a document was not read;
the frontier has depth and Last-Modified.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from larmspider.errors import MEND, ConfigError, CrawlDirError, InvalidURL
from larmspider.extraction.formats import add_outcome
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.language import Languages, in_languages
from larmspider.fetch.blobs import digest_of
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.index.link_access import LinkAccess
from larmspider.index.rebuild import Documents
from larmspider.index.schema import indexed_page
from larmspider.items import REDIRECT, Page
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS, KEPT, Remarks, remarks_in
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS
from larmspider.pipelines.page_files import BLOBS, blob_file, body_file, stored_pages
from larmspider.pipelines.records import read_records
from larmspider.urls.canonical import Forms
from larmspider.workdir.frames import present, stored_size
from larmspider.workdir.pushed import facts_of

FormsOf = Callable[[str], Forms]


class Fetched(NamedTuple):
    """The facts of fetch.log about a page: the time of its fetch, in seconds since the epoch, the
    seconds that it took, and what its body does not say."""

    time: float = 0.0
    remarks: Remarks = Remarks()
    latency: float = 0.0


def reextracted(
    directory: Path,
    forms: FormsOf,
    readers: Readers,
    languages: Languages,
    only: Collection[str] = (),
    wanted: Callable[[str], bool] = lambda _: True,
) -> tuple[int, Documents]:
    """The number of pages in store.log, and the documents of the ``wanted`` URLs. ``only``:
    languages of indexed pages, all if empty. Raises ConfigError if bodies are missing,
    CrawlDirError if store.log cannot be read."""
    total, sizes, lost = 0, dict[int, int](), dict[str, int]()
    for total, (fields, _) in enumerate(stored_pages(directory), 1):  # noqa: B007 - its last value
        url, number, offset, size = fields[1], int(fields[8]), int(fields[9]), int(fields[6])
        if number != BLOBS and number not in sizes:  # those are not read
            sizes[number] = stored_size(body_file(directory, number), missing=0)
        lost.pop(url, None)
        least = offset + (size if number >= 0 else 1)
        if fields[4] != "0" and number != BLOBS and least > sizes[number]:
            lost[url] = number
    awaited = _awaited(directory, forms, lost) if lost else frozenset()
    for url, number in lost.items():
        if url not in awaited and wanted(url):
            raise ConfigError(
                f"{body_file(directory, number)} is gone or cut short: expected all page files"
                f" that store.log names, to read pages again; {MEND}"
            )

    def readable(url: str) -> bool:
        return url not in lost and wanted(url)

    return total, _documents(directory, forms, readers, languages, only, readable)


def _awaited(directory: Path, forms: FormsOf, urls: Iterable[str]) -> frozenset[str]:
    """The pages that a repair has made due and no run has stored again."""
    found = set()
    with suppress(CrawlDirError), FrontierReader(directory / "frontier") as frontier:
        for url in urls:
            with suppress(InvalidURL):
                if frontier.is_doubtful(url_key(forms(url).exact), url):
                    found.add(url)
    return frozenset(found)


def _documents(
    directory: Path,
    forms: FormsOf,
    readers: Readers,
    languages: Languages,
    only: Collection[str],
    wanted: Callable[[str], bool],
) -> Documents:
    fetches = fetches_in(directory / "fetch.log")
    depths: dict[int, int] = {}
    last = {hash(fields[1]): number for number, (fields, _) in enumerate(stored_pages(directory))}
    with ExitStack() as stack:
        frontier, fill = None, stack.enter_context(facts_of(directory))
        with suppress(CrawlDirError):  # another scheduler's
            frontier = stack.enter_context(FrontierReader(directory / "frontier"))
        for number, (fields, body) in enumerate(stored_pages(directory)):
            from_page, url, normalized, link_type, status, mime, size, title, place, blob = fields
            if status == "0":  # it was removed
                continue
            depth = depths.get(hash(from_page), -1) + (link_type != str(REDIRECT))
            depths[hash(url)] = depth
            if last[hash(url)] != number or not wanted(url):  # there is a later version
                continue
            fetched = fetches.get(hash((url, status)), Fetched())
            page = Page(url)
            if status == "200":
                page = read_again(readers, mime, body(), url, fetched.remarks)
                add_outcome(page)
                page.language = languages.of_now(page)
                page.title = page.title or (title if page.unread else "")
                for link in page.links:
                    with suppress(InvalidURL):
                        link.normalized, link.exact = forms(link.url)
            with suppress(InvalidURL):
                page.exact = forms(url).exact
            page.normalized, page.status, page.mime = normalized, int(status), page.mime or mime
            page.depth, page.fetched = max(0, depth), fetched.time
            visit = None if frontier is None else frontier.visit(url_key(page.name))
            if visit is not None:
                page.depth, page.last_modified = visit.depth, visit.last_modified
            digest = hashlib.sha1(page.body, usedforsecurity=False).hexdigest()
            if int(place) == BLOBS:
                page.file_bytes, digest = int(size), digest_of(blob_file(directory, int(blob)))
            fill(page)
            shown = in_languages(page, only) if is_for_readers(page) else None
            yield page.name, None if shown is None else indexed_page(shown, digest)


def missed_pages(directory: Path, forms: FormsOf) -> Iterator[tuple[str, str, float, float]]:
    """Pages that the frontier knows as missing at their last visit: name, outcome, time of the last
    visit and of the first visit that missed it. 4 us for each URL of the frontier."""
    with ExitStack() as stack:
        frontier = None
        if (directory / "frontier" / "data.mdb").exists():
            with suppress(CrawlDirError):  # another scheduler's
                frontier = stack.enter_context(FrontierReader(directory / "frontier"))
        for _, visit in frontier.visits() if frontier is not None else ():
            if visit.missing_as and visit.state is UrlState.STORED:
                with suppress(InvalidURL):
                    name = forms(visit.url).exact
                    yield name, visit.missing_as, visit.time, visit.missing_since


def read_again(readers: Readers, mime: str, body: bytes, url: str, remarks: Remarks) -> Page:
    """The Page that extraction makes today of a stored body."""
    if not body and remarks.unread:  # a document whose body was not taken
        return Page(url, unread=remarks.unread)
    page = readers.read_again(mime, body, url, remarks.charset)
    page.noindex |= remarks.noindex
    return page


def fetches_in(path: Path) -> Mapping[int, Fetched]:
    """When each page that is stored was fetched last, by the hash of its URL and status."""
    found: dict[int, Fetched] = {}
    for fields in read_records(path, len(FETCH_LOG_COLUMNS)) if present(path).exists() else ():
        time, url, *_, result, _, millis, message = fields
        if result.isdecimal() and not message.startswith(KEPT):
            with suppress(ValueError):
                when = datetime.fromisoformat(time).timestamp()
                latency = int(millis or 0) / 1000
                found[hash((url, result))] = Fetched(when, remarks_in(message), latency)
    return found


def link_texts(
    directory: Path, forms: FormsOf, access: LinkAccess
) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Each page of links.log by its exact form, with the exact targets and the texts of its links,
    as far as ``access`` lets them be indexed. The last of several versions comes last."""
    for url, links in _links_by_page(directory):
        found: set[tuple[str, str]] = set()
        with suppress(InvalidURL):
            here = forms(url).exact
            secret = access.hides(url, here)
            for _, target, _, _, anchor in links:
                if not target:  # the earlier links are void
                    found.clear()
                    continue
                with suppress(InvalidURL):
                    if anchor and (exact := forms(target).exact) != here:
                        hides = access.hides(target, exact)
                        if secret and not (hides and access.keeps(here, exact)):
                            continue
                        found.add((exact, anchor))
            yield here, found


def linking_pages(directory: Path, forms: FormsOf) -> Iterator[tuple[str, str]]:
    """URL and exact form of each page with links, by links.log; of all stored pages where that has
    none. A page may come several times."""
    logged = (url for url, _ in _links_by_page(directory))
    first = next(logged, None)
    has_pages = present(directory / "store.log").exists()
    records = stored_pages(directory) if first is None and has_pages else ()
    stored = (fields[1] for fields, _ in records)
    for url in chain(() if first is None else (first,), logged, stored):
        with suppress(InvalidURL):
            yield url, forms(url).exact


def _links_by_page(directory: Path) -> Iterator[tuple[str, Iterator[list[str]]]]:
    path = directory / "links.log"
    records = read_records(path, len(LINK_LOG_COLUMNS)) if present(path).exists() else ()
    return groupby(records, key=itemgetter(0))


def is_for_readers(page: Page) -> bool:
    """Whether a page can be found, if its language is wanted."""
    return page.status == 200 and not page.noindex and not _has_moved(page)


def _has_moved(page: Page) -> bool:
    """Whether a refresh leads to another page at once (to the page itself it is a reload)."""
    return page.moved and any(
        link.type == REDIRECT and (link.exact or link.normalized) != page.name
        for link in page.links
    )
