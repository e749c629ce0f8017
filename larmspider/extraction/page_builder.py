"""What a parser met, in document order, until the page is read and it becomes a Page.

``<a href=x>`` cannot be resolved when it is met: ``<base href=/docs/>`` may follow. So both parsers
(html.py, deep_html.py) hand each element's attributes to a Findings and call ``fill`` at the end::

    findings = Findings()
    findings.frame({"src": "menu.html", "name": "menu"})
    page = Page("http://wiki.example/")
    findings.fill(page)
    page.links  # [Link(url="http://wiki.example/menu.html", type=1, anchor="menu")]

Attributes are a mapping from lower-case name to value, None or "" for an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping

from larmspider.extraction.links import LinkResolver, is_link
from larmspider.extraction.metadata import (
    language_tag,
    refresh_of,
    robots_directives,
)
from larmspider.extraction.text import MAX_ANCHOR, MAX_DESCRIPTION, MAX_TITLE, one_line, page_text
from larmspider.items import FRAME, ORDINARY, REDIRECT, Link, Page

MAX_LINKS = 100_000
"""Links kept of one page, in document order; those that follow are dropped without a trace."""

MAX_LINK_CHARS = 10_000_000
"""The same by the length of their URLs together: 100,000 of 100 characters. A page of 512 KB may
name 600 MB of them, if its base element has a long path."""

MOVED_SECS = 1
"""Of a meta refresh: nobody reads a page in that time. A later one lets its readers read."""

_LINK_RELS = frozenset(("next", "prev", "alternate"))

Attributes = Mapping[str, str | None]


class Findings:
    """Links, metadata and text of one page while it is read."""

    __slots__ = ("_refreshed", "base", "canonical", "description", "language", "links", "moved",
                 "nofollow", "noindex", "pieces", "title")  # fmt: skip

    def __init__(self) -> None:
        self.pieces: list[str] = []
        """Text in document order, with a space where a block begins or ends."""
        self.title: str | None = None
        self.base: str | None = None
        self.canonical: str | None = None
        self.description = ""
        self.language: str | None = None
        self.noindex = self.nofollow = self.moved = False
        self._refreshed: set[bool] = set()
        self.links: list[tuple[str, int, str, bool]] = []
        """href, type, anchor before it is put on one line, nofollow."""

    def anchor(self, attributes: Attributes, text: str) -> None:
        """An ``a`` with ``href``; ``text`` is its text, else the ALT text of images inside it."""
        href = attributes["href"] if "href" in attributes else attributes["xlink:href"]
        if not text or text.isspace():
            text = attributes.get("title") or ""
        rel = attributes.get("rel")
        nofollow = rel is not None and "nofollow" in rel.lower().split()
        self.links.append((href or "", ORDINARY, text, nofollow))

    def area(self, attributes: Attributes) -> None:
        if "href" in attributes:
            self.anchor(attributes, attributes.get("alt") or "")

    def frame(self, attributes: Attributes) -> None:
        """A frame or iframe. One with an empty src shows about:blank, not this page again."""
        if src := (attributes.get("src") or "").strip():
            name = attributes.get("title") or attributes.get("name") or ""
            self.links.append((src, FRAME, name, False))

    def link(self, attributes: Attributes) -> None:
        href = attributes.get("href")
        if not href:
            return
        rels = (attributes.get("rel") or "").lower().split()
        if self.canonical is None and "canonical" in rels:
            self.canonical = href
        if not _LINK_RELS.isdisjoint(rels) and "stylesheet" not in rels:
            self.anchor(attributes, "")

    def meta(self, attributes: Attributes, noscript: bool = False) -> None:
        """A meta element; ``noscript``: it counts only for readers without scripts."""
        content = attributes.get("content")
        if not content:
            return
        name = (attributes.get("name") or "").strip().lower()
        if name == "description":
            self.description = self.description or one_line(content, MAX_DESCRIPTION)
        elif name:
            noindex, nofollow = robots_directives(name, content)
            self.noindex |= noindex
            self.nofollow |= nofollow
        pragma = (attributes.get("http-equiv") or "").strip().lower()
        if pragma == "refresh":
            self._refresh(content, noscript)
        elif pragma == "content-language" and self.language is None:
            self.language = language_tag(content)

    def _refresh(self, content: str, noscript: bool) -> None:
        """The first that leads anywhere counts (HTML 4.2.5.3), of each kind of reader."""
        if noscript in self._refreshed or (found := refresh_of(content)) is None:
            return
        self._refreshed.add(noscript)
        seconds, target = found
        self.links.append((target, REDIRECT, "", False))
        self.moved |= not noscript and seconds <= MOVED_SECS

    def html(self, attributes: Attributes) -> None:
        """The html element; its language outranks that of a meta."""
        lang = attributes.get("lang") or attributes.get("xml:lang")
        self.language = language_tag(lang or "") or self.language

    def fill(self, page: Page) -> None:
        """Complete ``page``, which has a url; its other fields stay as they are."""
        resolver = LinkResolver(page.url, self.base)
        resolve = resolver.resolve
        add, chars = page.links.append, 0
        for href, kind, anchor, nofollow in self.links[:MAX_LINKS]:
            url = resolve(href)
            chars += len(url)
            if chars > MAX_LINK_CHARS:
                break
            if url.startswith("http") or is_link(url):
                add(Link(url, None, kind, one_line(anchor, MAX_ANCHOR), nofollow))
        page.title = one_line(self.title or "", MAX_TITLE)
        page.text = page_text(self.pieces)
        page.description = self.description
        page.language = self.language
        page.canonical = self.canonical and resolver.resolve_or_none(self.canonical)
        page.noindex = self.noindex
        page.nofollow = self.nofollow
        page.moved = self.moved
