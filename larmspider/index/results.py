"""The results of a search: hits, stored documents, and counts of all matches."""

from __future__ import annotations

from dataclasses import dataclass

from larmspider.index.facets import Facets
from larmspider.index.snippets import Snippet


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. ``url`` is as fetched, ``normalized`` its canonical form, the key of
    `Searcher.get`. ``fetched`` and ``modified`` are in seconds since the epoch, ``modified`` None
    if the server sent none; ``size`` in bytes, ``depth`` in links from a seed. ``score`` orders the
    hits of one search only."""

    url: str
    normalized: str
    title: str
    score: float
    snippet: Snippet
    host: str
    mime: str
    kind: str
    language: str
    size: int
    fetched: float
    modified: float | None
    depth: int


@dataclass(frozen=True, slots=True)
class Results:
    """``total`` pages match, ``hits`` are some of them; ``seconds`` is the time of the search.
    ``facets`` is None unless asked for."""

    total: int
    hits: list[Hit]
    seconds: float
    facets: Facets | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A stored page; ``digest`` is that of the body, in hex. Units as in `Hit`."""

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
