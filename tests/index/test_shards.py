"""larmspider/index/shards.py: several indexes rank as one would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from larmspider.errors import QueryError
from larmspider.index.ranking import idf
from larmspider.index.search import Searcher
from larmspider.index.shards import Deduplicator, WorkersSearcher
from larmspider.index.writer import IndexWriter
from larmspider.items import Page

WORDS = ["siren", "klaxon", "horn", "bell", "gong", "drum", "whistle"]


def page(host: str, number: int) -> Page:
    """Nine words each, so that lengths make no difference; siren is on every page of wiki."""
    some = [WORDS[number * step % 7] for step in (1, 2, 3)]
    text = " ".join([host, host, *some, *WORDS[: 3 - len(some)], "and", "so", "on", "forth"])
    url = f"http://{host}/{number}"
    return Page(url, normalized=url, title="", text=text, fetched=1.0 + number)


def index(directory: Path, pages: list[Page]) -> Searcher:
    writer = IndexWriter(directory, heap_bytes=15_000_000, stemmer="english")
    for each in pages:
        writer.add(each)
    writer.commit()
    writer.close()
    return Searcher.open(directory)


@contextmanager
def all_count() -> Iterator[Deduplicator]:
    yield Deduplicator()


def shards_of(tmp_path: Path, parts: list[list[Page]]) -> WorkersSearcher:
    opened = [index(tmp_path / str(number), part) for number, part in enumerate(parts)]
    return WorkersSearcher(opened, all_count)


@pytest.mark.parametrize("query", ["wiki siren", '"wiki siren"', "docs", "bell gong", "drum~ wiki"])
def test_scores_are_those_of_one_index(tmp_path: Path, query: str) -> None:
    """A word that all pages of one have is as rare as it is over all, in phrases too; with the
    idf of its own alone each index gave such a word next to nothing."""
    wiki = [page("wiki", number) for number in range(30)]
    docs = [page("docs", number) for number in range(10)]
    one = index(tmp_path / "one", [*wiki, *docs]).search(query, 100)
    many = shards_of(tmp_path, [wiki, docs]).search(query, 100)
    assert many.total == one.total
    assert [hit.score for hit in many.hits] == pytest.approx([h.score for h in one.hits], rel=1e-3)


def test_pages_that_were_replaced_count_as_in_one_index(tmp_path: Path) -> None:
    """BM25 counts what was deleted and still lies there, in either."""
    wiki = [page("wiki", number) for number in range(12)]
    docs = [page("docs", number) for number in range(12)]
    index(tmp_path / "one", [*wiki, *docs])
    shards_of(tmp_path, [wiki, docs])
    one = index(tmp_path / "one", wiki[:6])
    many = WorkersSearcher(
        [index(tmp_path / "0", wiki[:6]), Searcher.open(tmp_path / "1")], all_count
    )
    expected, found = one.search("wiki bell", 100), many.search("wiki bell", 100)
    assert found.total == expected.total
    scores = {hit.url: hit.score for hit in expected.hits}
    assert {hit.url: hit.score for hit in found.hits} == pytest.approx(scores, rel=1e-3)


def test_windows_and_totals(tmp_path: Path) -> None:
    """Any window is that part of the whole list, also where it is larger than what is asked at
    once."""
    parts = [[page(f"h{part}", number) for number in range(120)] for part in range(3)]
    searcher = shards_of(tmp_path, parts)
    every = searcher.search("bell", 1000)
    assert every.total == len(every.hits) == len({hit.url for hit in every.hits})
    for offset, limit in ((0, 5), (3, 100), (50, 7), (every.total - 3, 10)):
        window = searcher.search("bell", limit, offset)
        assert window.total == every.total
        assert [h.url for h in window.hits] == [
            hit.url for hit in every.hits[offset : offset + limit]
        ]


def test_bad_questions_are_refused(tmp_path: Path) -> None:
    """As by one index."""
    searcher = shards_of(tmp_path, [[page("h", 1)]])
    with pytest.raises(QueryError, match="limit=0"):
        searcher.search("x", 0)
    with pytest.raises(QueryError, match="empty"):
        searcher.search(" ")
    assert searcher.search("nowhere").hits == []


def test_idf_is_tantivys(tmp_path: Path) -> None:
    """A word on every page earns next to nothing, but never less."""
    assert idf(100, 3) == pytest.approx(3.3624, abs=1e-4)
    assert 0 < idf(10, 10) < idf(10, 9) < idf(10, 1)
    assert idf(5, 10) > 0, "deleted pages may have it too"
