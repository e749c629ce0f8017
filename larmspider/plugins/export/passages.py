"""Passages of a crawl: the text of each page by section, in pieces, with its rights.

of = Passages(crawl)
for row in of.rows(page): ...    # a page of crawl.pages(); the columns are COLUMNS
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from larmspider.access.lists import SIMPLE
from larmspider.access.table import NO_SLOT, AccessTable
from larmspider.crawl.api import Crawl, CrawledPage
from larmspider.errors import CrawlDirError
from larmspider.index.access import Access
from larmspider.index.schema import FILES
from larmspider.items import Page, Section, part_url
from larmspider.reports.markdown import Part, html_parts, text_parts, window
from larmspider.reports.stored_copy import HTML_TYPES, html_blocks, stored_copy
from larmspider.search.results import IN_FRAGMENT
from larmspider.workdir.restricted import restricted_or_all

CHARS = 4_000
"""Characters of a passage; a longer section gives several."""
COLUMNS = {
    "url": str, "title": str, "heading": str, "text": str, "language": str, "date": datetime,
    "collection": str, "restricted": bool, "access": list, "lists": list,
}  # fmt: skip
Row = tuple[Any, ...]


class Passages:
    """``collection`` is the name of the crawl's directory."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._collection = crawl.directory.path.name
        found = restricted_or_all(crawl.directory.places)
        self._hosts = Access(tuple(one for one in found if one != FILES))
        self._tables = [AccessTable(part.index_dir) for part in crawl.directory.parts]
        for table in self._tables:
            table.refresh()

    def rows(self, page: CrawledPage) -> Iterator[Row]:
        """The passages of a page, and of the documents in it."""
        read, rights = page.read(), self._rights(page.url)
        date = page.fetched
        if read.modified is not None:
            date = datetime.fromtimestamp(read.modified, UTC)
        told = self._collection, not self._hosts.page(page.url), *rights
        title, language = read.title or page.title, read.language or ""
        for heading, anchor, text in _pieces(self._parts(page, read)):
            url = f"{page.url}#{quote(anchor, IN_FRAGMENT)}" if anchor else page.url
            yield url, title, heading, text, language, date, *told
        for part in read.parts:
            url, named = part_url(page.url, part.name), part.title or part.name
            own = date if part.modified is None else datetime.fromtimestamp(part.modified, UTC)
            for heading, _, text in _pieces(text_parts(part.text, [])):
                yield url, named, heading, text, part.language or "", own, *told

    def _parts(self, page: CrawledPage, read: Page) -> Sequence[Part]:
        sections: list[Section] = read.sections
        if page.mime in HTML_TYPES and page.body_file is None:
            with suppress(CrawlDirError):
                copy = stored_copy(self._crawl.directory, page.stored, text=read.text)
                if parts := html_parts(html_blocks(copy.body), sections):
                    return parts
        return text_parts(read.text, sections)

    def _rights(self, url: str) -> tuple[list[str] | None, list[Any] | None]:
        """The principals any of whom may read, None without an access list; and the lists of a
        file, its own first, then the lists of the folders to enter."""
        name = self._crawl.directory.forms(url).exact
        slots = [(table, table.slot_of(name)) for table in self._tables]
        table, slot = next((one for one in slots if one[1]), (slots[0][0], None))
        if not slot:
            return ([] if any(one == NO_SLOT for _, one in slots) else None), None
        lists = [table.list_of(slot), *table.above(slot)]
        if len(lists) == 1 and lists[0].kind == SIMPLE:
            return lists[0].principals, None
        return [], [{"kind": one.kind, "entries": one.entries} for one in lists]


def _pieces(parts: Sequence[Part]) -> Iterator[tuple[str, str, str]]:
    """Heading, anchor and text of each passage."""
    for part in parts:
        start: int | None = 0
        while start is not None:
            found = window([part], start, CHARS)
            for one in found.parts:
                if text := one.text.strip():
                    yield one.heading, one.anchor, text
            start = found.next
