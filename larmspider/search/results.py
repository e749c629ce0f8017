"""The results of a search: hits, stored documents, and counts of all matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from larmspider.items import Section
from larmspider.search.facets import Facets
from larmspider.search.snippets import Snippet

IN_FRAGMENT = "!$&'()*+,;=:@/?-._~"
"""Characters of an anchor that a URL has as they are (RFC 3986, 3.5)."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. ``url`` is as fetched, ``normalized`` its canonical form, the key of
    `Searcher.get`. ``fetched`` and ``modified`` are in seconds since the epoch, ``modified`` None
    if neither document nor server says; ``size`` in bytes, ``depth`` in links from a seed.
    ``score`` orders the hits of one search only. For a reader who does not see all pages it is
    None, for Tantivy counts them all, and so is ``depth``: hidden pages lie on the way.
    ``page`` is the page of the document that the snippet is from, 0 for none, ``section`` the
    part of a long page that it is about, None for the page. A part of a document (items.py) has
    its ``container``'s URL. ``copies`` are other pages of the index with the same text, or
    nearly (copies.py), ``collection`` the name of its crawl where several are searched.
    ``fields`` are those of LARM_FIELDS. ``missing_since``: the first of the visits that did not
    reach the page, up to the last one; None: that did."""

    url: str
    normalized: str
    title: str
    score: float | None
    snippet: Snippet
    host: str
    mime: str
    kind: str
    language: str
    size: int
    fetched: float
    modified: float | None
    depth: int | None
    author: str = ""
    container: str = ""
    copies: int = 0
    collection: str = ""
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    section: Section | None = None
    missing_since: float | None = None

    @property
    def page(self) -> int:
        return self.snippet.page

    @property
    def target(self) -> str:
        """Where a click leads: into a PDF, to the page of the snippet; to the section."""
        if self.section is not None and "#" not in self.url:
            return f"{self.url}#{quote(self.section.anchor, IN_FRAGMENT)}"
        return self.target_at(self.page)

    @property
    def other_pages(self) -> dict[int, str]:
        """Further pages with as many of the words, and where they are."""
        return {page: self.target_at(page) for page in self.snippet.others}

    def target_at(self, page: int) -> str:
        pdf = self.kind == "pdf" and page and "#" not in self.url
        return f"{self.url}#page={page}" if pdf else self.url


@dataclass(frozen=True, slots=True)
class Results:
    """``total`` pages match, ``total_all`` of them with all words that matter; ``hits`` are some of
    them; ``seconds`` is the time of the search. ``facets`` is None unless asked for. ``instead`` is
    the query that was searched in place of one that finds next to nothing. Of pages that are
    copies the totals and facets count each, and ``hits`` has the best one. ``more``: there are
    further hits behind these. ``also``: synonyms that were searched too."""

    total: int
    hits: list[Hit]
    seconds: float
    facets: Facets | None = None
    total_all: int = 0
    instead: str | None = None
    more: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A stored page; ``text`` is its main text, ``rest`` what stands around it, ``digest`` that of
    the body, in hex. ``likeness`` as in copies.py; ``elsewhere`` is 1 if the page names another one
    as its canonical one. ``fields`` and units as in `Hit`."""

    url: str
    normalized: str
    host: str
    title: str
    text: str
    description: str
    mime: str
    language: str
    depth: int
    size: int
    digest: str
    fetched: float
    modified: float | None = None
    author: str = ""
    container: str = ""
    rest: str = ""
    likeness: int | None = None
    elsewhere: int = 0
    sections: list[Section] = field(default_factory=list)
    fields: Mapping[str, list[str]] = field(default_factory=dict)
