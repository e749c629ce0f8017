"""Searching an index, also while a crawl writes it in another process::

    searcher = Searcher.open(Path("crawl/index"))
    results = searcher.search('"log in" host:wiki.example')
    for hit in results.hits:
        print(hit.score, hit.url, hit.title, hit.snippet.marked("*", "*"))

query.py says what a query may be, ranking.py how results are ordered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tantivy
from tantivy import DocAddress, Query

from larmspider.errors import CrawlDirError, QueryError
from larmspider.index.query import parse_query
from larmspider.index.ranking import Ranking
from larmspider.index.snippets import Snippet, SnippetMaker, one_line
from larmspider.index.version import open_index

LIMIT_MOST = 1_000
"""Hits that one search may ask for."""
OFFSET_MOST = 10_000
"""Hits that one search may skip: a page far down costs as much as all before it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. ``url`` is as fetched, ``fetched`` in seconds since the epoch, ``size`` the
    body's bytes, ``depth`` links from a seed. ``score`` orders the hits of one search only."""

    url: str
    title: str
    score: float
    snippet: Snippet
    host: str
    mime: str
    language: str
    size: int
    fetched: float
    depth: int


@dataclass(frozen=True, slots=True)
class Results:
    """``total`` pages match, of which ``hits`` are shown; ``seconds`` is the time it took."""

    total: int
    hits: list[Hit]
    seconds: float


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


class Searcher:
    """Reads an index. Holds no lock; sees each commit from the next call on."""

    def __init__(self, index: tantivy.Index, stemmer: str, directory: Path) -> None:
        self.directory = directory
        self._index = index
        self._ranking = Ranking(index.schema, stemmer)
        self._seen: tuple[int, int] | None = None

    @classmethod
    def open(cls, directory: Path | str) -> Self:
        """Open the index in ``directory`` for reading.

        Raises CrawlDirError where there is none, or one of another schema version.
        """
        directory = Path(directory)
        return cls(*open_index(directory), directory)

    def search(self, query: str, limit: int = 10, offset: int = 0) -> Results:
        """The best ``limit`` pages (1 to 1,000) after the first ``offset`` (up to 10,000).

        Raises QueryError for a query that cannot mean anything, CrawlDirError for a broken index.
        """
        started = time.perf_counter()
        if not 1 <= limit <= LIMIT_MOST or not 0 <= offset <= OFFSET_MOST:
            raise QueryError(
                f"limit={limit}, offset={offset}: accepted are 1 to {LIMIT_MOST} "
                f"and 0 to {OFFSET_MOST}"
            )
        clauses = parse_query(query)
        ranked = self._ranking.build(clauses)
        with self._reading() as searcher:
            found = searcher.search(ranked, limit, count=True, offset=offset)
            maker = self._ranking.snippet_maker(clauses)
            hits = [_hit(_stored(searcher, address), score, maker) for score, address in found.hits]
        total = found.count  # type: ignore[attr-defined]  # its stub forgets it
        return Results(total, hits, time.perf_counter() - started)

    def get(self, normalized: str) -> Document | None:
        """The page with this canonical URL, or None."""
        query = Query.term_query(self._index.schema, "key", normalized)
        with self._reading() as searcher:
            hits = searcher.search(query, 1, count=False).hits
            if not hits:
                return None
            stored = _stored(searcher, hits[0][1])
        fetched = stored.pop("fetched").timestamp()
        return Document(
            normalized=stored.pop("key"), text=stored.pop("body"), fetched=fetched, **stored
        )

    def count(self) -> int:
        """Pages in the index."""
        with self._reading() as searcher:
            return searcher.num_docs

    @contextmanager
    def _reading(self) -> Iterator[tantivy.Searcher]:
        """The newest commit; Tantivy's errors become ours."""
        try:
            meta = (self.directory / "meta.json").stat()
            seen = (meta.st_mtime_ns, meta.st_ino)  # each commit renames a new file into place
            if seen != self._seen:
                self._index.reload()
                self._seen = seen
            yield self._index.searcher()
        except (ValueError, OSError) as error:
            raise CrawlDirError(f"{self.directory}: cannot read the index: {error}") from error


def _stored(searcher: tantivy.Searcher, address: DocAddress) -> dict[str, Any]:
    return {name: values[0] for name, values in searcher.doc(address).to_dict().items()}


def _hit(stored: dict[str, Any], score: float, maker: SnippetMaker) -> Hit:
    return Hit(
        url=stored["url"],
        title=one_line(stored["title"]),
        score=score,
        snippet=maker.snippet(stored["body"], stored["description"]),
        host=stored["host"],
        mime=stored["mime"],
        language=stored["language"],
        size=stored["size"],
        fetched=stored["fetched"].timestamp(),
        depth=stored["depth"],
    )
