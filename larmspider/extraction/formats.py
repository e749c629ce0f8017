"""Which reader reads which media type (body_type.py says which type a body has).

    extractor_for("text/html")        # html.extract
    without_text("image/png")         # "binary: image/png is not a document"

A new format is one module with an ``extract`` function and one line in urls/media_types.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from larmspider.extraction.body_type import media_type
from larmspider.extraction.pages.page_builder import CUT, is_cut
from larmspider.items import Outcome, Page
from larmspider.urls.media_types import TAGGED, TAGS, reader_of

__all__ = [
    "add_outcome",
    "column_extractor_for",
    "extractor_for",
    "media_type",
    "members_of",
    "without_text",
]

NO_TEXT = f"{Outcome.NO_TEXT}: no text found"

Extractor = Callable[[bytes, str, str | None], Page]
"""Makes a Page of a body, its URL and the whole Content-Type, None without one. Pure. Extractors in
documents/ may raise Unread, others raise nothing."""
ColumnExtractor = Callable[[bytes, str, str | None], tuple[Page, Any]]
"""The same, with the links as columns (page_builder.py), for another process."""
Members = Callable[[bytes, str, Any], Iterator[Any]]
"""The documents inside of a body (documents/parts.py)."""


def extractor_for(mime: str) -> Extractor | None:
    """The extractor of ``mime``, ignoring case, with or without parameters; None without one."""
    extract: Extractor | None = _function(mime.partition(";")[0].strip().lower(), "extract")
    return extract


def column_extractor_for(mime: str) -> ColumnExtractor | None:
    """The extractor of ``mime`` that leaves links as columns; None without one."""
    extract: ColumnExtractor | None = _function(mime, "extract_columns")
    return extract


def members_of(mime: str) -> Members | None:
    """The function that finds the documents inside of a document of type ``mime``, or None."""
    members: Members | None = _function(mime, "members")
    return members


@cache
def _function(mime: str, name: str) -> Any:
    module = TAGS if mime in TAGGED else reader_of(mime)
    return getattr(import_module(module), name, None) if module else None


def add_outcome(page: Page) -> None:
    """Set the reason why a page has no text, or not all of it, unless it is set. A page that
    redirects at once needs no reason."""
    if page.unread:
        return
    if is_cut(page.text):
        page.unread = CUT
    elif not page.text and not page.moved:
        page.unread = without_text(page.mime, is_empty=not page.size)


def without_text(mime: str, *, is_empty: bool = False) -> str:
    """``Page.unread`` of a body of type ``mime`` that has given no text."""
    if mime in TAGGED or extractor_for(mime) is None:
        return f"{Outcome.BINARY}: {mime or 'its type'} is not a document"
    return f"{Outcome.NO_TEXT}: it is empty" if is_empty else NO_TEXT
