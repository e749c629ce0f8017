"""What several indexes count, suggest and find similar is what one of all pages would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from larmspider.index.query import Filters
from larmspider.index.search import Searcher
from larmspider.index.shards import Deduplicator, WorkersSearcher
from larmspider.index.writer import IndexWriter
from larmspider.items import Page


@contextmanager
def all_count() -> Iterator[Deduplicator]:
    yield Deduplicator()


def index(directory: Path, pages: list[Page]) -> Searcher:
    with IndexWriter(directory) as writer:
        for page in pages:
            writer.add(page)
    return Searcher.open(directory)


def pages(host: str, texts: list[str]) -> list[Page]:
    return [
        Page(
            f"http://{host}/{n}",
            normalized=f"http://{host}/{n}",
            text=text,
            body=f"{n} {host}".encode(),
            mime="application/pdf" if n % 3 else "text/html",
            language="de" if n % 2 else "en",
            fetched=1_700_000_000.0 + n,
        )
        for n, text in enumerate(texts)
    ]


@pytest.fixture
def both(tmp_path: Path) -> tuple[Searcher, WorkersSearcher]:
    """The same pages in one index and in two."""
    wiki = pages("wiki", ["the license server", "a siren on the roof", "license renewal"] * 4)
    docs = pages("docs", ["server manual", "the siren and its rotor", "certificate"] * 3)
    one = index(tmp_path / "one", [*wiki, *docs])
    return one, WorkersSearcher(
        [index(tmp_path / "a", wiki), index(tmp_path / "b", docs)], all_count
    )


@pytest.mark.parametrize("filters", [{}, {"hosts": ["docs"]}, {"kinds": ["pdf"], "since": 1.7e9}])
def test_facets_add_up(both, filters: dict[str, object]) -> None:
    """With the same filters."""
    narrow = Filters.of(**filters)  # type: ignore[arg-type]
    one, many = (
        searcher.search("the server siren", filters=narrow, facets=True) for searcher in both
    )
    assert many.total == one.total > 0
    assert many.facets == one.facets


@pytest.mark.parametrize("query", ["lisence", "certifcate", "serevr mannual", "siren"])
def test_suggestions_are_those_of_one_index(both, query: str) -> None:
    """Of words that any of them has."""
    one, many = both
    assert many.suggestion(query) == one.suggestion(query)


def test_similar_pages_are_found_in_all_indexes(both) -> None:
    """Each once."""
    one, many = both
    document = one.get("http://wiki/1")
    found = [hit.url for hit in many.similar(document).hits]
    assert {"http://docs/1", "http://wiki/4"} <= set(found)
    assert len(found) == len(set(found))
