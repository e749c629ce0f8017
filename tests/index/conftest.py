"""Pages to index, without the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.searcher import Searcher

MakePage = Callable[..., Page]


@pytest.fixture
def make_page() -> MakePage:
    def make(name: str, text: str = "", **fields: object) -> Page:
        url = name if "://" in name else f"http://wiki.example/{name}"
        values: dict[str, object] = {
            "url": url,
            "normalized": url,
            "text": text,
            "body": f"{text}<!-- {url} -->".encode("utf-8", "replace"),
            "mime": "text/html",
            "fetched": 1_700_000_000.5,
        }
        return Page(**(values | fields))  # type: ignore[arg-type]

    return make


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[IndexWriter]:
    with IndexWriter(tmp_path / "index") as index:
        yield index


Find = Callable[[str], list[str]]


@pytest.fixture
def find(writer: IndexWriter) -> Find:
    """Commit, search, and give the last path segment of each hit, best first."""

    def search(query: str) -> list[str]:
        writer.commit()
        hits = Searcher.open(writer.directory).search(query).hits
        return [hit.url.rpartition("/")[2] for hit in hits]

    return search
