"""A page as the index keeps it, from the crawl until a search finds it::

page = indexed_page(page, digest="9f86d081")     # schema.py
packed = pages.pack(page.fields())               # packed.py
IndexedPage.of(pages.unpack(packed)) == page
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self


@dataclass(slots=True)
class IndexedPage:
    """One page, or a document in it. None in its place means: nothing is stored under this name.

    key        exact form of the URL, or the URL of a page without one
    body       the main text; ``rest`` is the text around it, ``contents`` a table of contents
    core       the main part of a page with next to no main text
    sections   place in the body, anchor and heading; ``breaks`` are the places of all headings
    modified   the document's own date, or a plausible Last-Modified
    elsewhere  1 if the page names another one as the canonical one
    own        own fields (LARM_FIELDS)
    container  the key of the document that a part lies in
    likeness   finds copies (copies.py); ``apart``: the simhash of ``outside``
    named      the text of most links to a page without a title

    Two fields are not stored: ``outside``, the text outside of links, until its simhash is known;
    and ``parts``, documents inside this one, which have separate records. None: the parts are
    unknown, and the index keeps its own.
    """

    key: str
    url: str
    host: str
    title: str
    description: str
    body: str
    mime: str
    language: str
    fetched: datetime
    digest: str = ""
    rest: str = ""
    author: str = ""
    depth: int = 0
    size: int = 0
    modified: datetime | None = None
    elsewhere: int | None = None
    own: Mapping[str, list[str]] | None = None
    sections: Sequence[tuple[int, str, str]] | None = None
    breaks: Sequence[int] | None = None
    contents: str | None = None
    core: str | None = None
    container: str | None = None
    likeness: int | None = None
    apart: int | None = None
    named: str | None = None
    outside: str | None = None
    parts: list[IndexedPage] | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """The page of its `fields`. Raises TypeError if some are missing."""
        return cls(**{name: kept[name] for name in _KEPT if name in kept})

    def fields(self) -> dict[str, Any]:
        """The record of the page, without fields that are None."""
        return {name: value for name in _KEPT if (value := getattr(self, name)) is not None}

    @property
    def documents(self) -> Iterator[IndexedPage]:
        """The page and its parts."""
        yield self
        yield from self.parts or ()

    @property
    def compared(self) -> str:
        """The text for the likeness: the main text, after it the table of contents."""
        return self.body if self.contents is None else f"{self.body} {self.contents}"

    @property
    def chars(self) -> int:
        """Characters of all texts."""
        return sum(
            len(one.body) + len(one.rest) + len(one.contents or "") for one in self.documents
        )


_KEPT = tuple(field.name for field in fields(IndexedPage) if field.name not in ("outside", "parts"))
