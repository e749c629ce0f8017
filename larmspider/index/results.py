"""What a search gives back: hits, their page of the index, and counts of all that was found."""

from __future__ import annotations

from dataclasses import dataclass

from larmspider.index.facets import Facets
from larmspider.index.snippets import Snippet


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. ``url`` is as fetched, ``normalized`` its canonical form, by which
    `Searcher.get` and `similar` know it. ``fetched`` and ``modified`` are in seconds since the
    epoch, ``modified`` None where the server did not say; ``size`` the body's bytes, ``depth``
    links from a seed. ``score`` orders the hits of one search only."""

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
    """``total`` pages match, of which ``hits`` are shown; ``seconds`` is the time it took.
    ``facets`` is None where they were not asked for."""

    total: int
    hits: list[Hit]
    seconds: float
    facets: Facets | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A page as the index has it; ``digest`` is the body's, in hex. Units as in `Hit`."""

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
