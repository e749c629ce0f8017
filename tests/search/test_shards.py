"""larmspider/search/searcher.py: several indexes rank as one would."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.errors import QueryError
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.query import Filters
from larmspider.search.ranking import idf
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.search.shard import Shard

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


def shards_of(tmp_path: Path, parts: list[list[Page]]) -> Searcher:
    opened = [index(tmp_path / str(number), part) for number, part in enumerate(parts)]
    return Searcher.of_workers(opened, all_count)


@pytest.mark.parametrize("query", ["wiki siren", '"wiki siren"', "docs", "bell gong", "drum~ wiki"])
def test_scores_are_those_of_one_index(tmp_path: Path, query: str) -> None:
    """A word that all pages of one have is as rare as it is over all, in phrases too; with the
    idf of its own alone each index gave such a word next to nothing."""
    wiki = [page("wiki", number) for number in range(30)]
    docs = [page("docs", number) for number in range(10)]
    one = index(tmp_path / "one", [*wiki, *docs]).search(SearchRequest(query, 100))
    many = shards_of(tmp_path, [wiki, docs]).search(SearchRequest(query, 100))
    assert many.total == one.total
    assert [hit.score for hit in many.hits] == pytest.approx([h.score for h in one.hits], rel=1e-3)


def test_pages_that_were_replaced_count_as_in_one_index(tmp_path: Path) -> None:
    """BM25 counts deleted pages that still lie there, in either."""
    wiki = [page("wiki", number) for number in range(12)]
    docs = [page("docs", number) for number in range(12)]
    index(tmp_path / "one", [*wiki, *docs])
    shards_of(tmp_path, [wiki, docs])
    one = index(tmp_path / "one", wiki[:6])
    many = Searcher.of_workers(
        [index(tmp_path / "0", wiki[:6]), Searcher.open(tmp_path / "1")], all_count
    )
    expected, found = (
        one.search(SearchRequest("wiki bell", 100)),
        many.search(SearchRequest("wiki bell", 100)),
    )
    assert found.total == expected.total
    scores = {hit.url: hit.score for hit in expected.hits}
    assert {hit.url: hit.score for hit in found.hits} == pytest.approx(scores, rel=1e-3)


def test_windows_and_totals(tmp_path: Path) -> None:
    """Any window is that part of the whole list, also one larger than a single request to the
    shards."""
    parts = [[page(f"h{part}", number) for number in range(120)] for part in range(3)]
    searcher = shards_of(tmp_path, parts)
    every = searcher.search(SearchRequest("bell", 1000))
    assert every.total == len(every.hits) == len({hit.url for hit in every.hits})
    for offset, limit in ((0, 5), (3, 100), (50, 7), (every.total - 3, 10)):
        window = searcher.search(SearchRequest("bell", limit, offset))
        assert window.total == every.total
        assert [h.url for h in window.hits] == [
            hit.url for hit in every.hits[offset : offset + limit]
        ]


def test_totals_look_at_no_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = shards_of(tmp_path, [[page(f"h{part}", 1), page(f"h{part}", 2)] for part in (0, 1)])
    expected = searcher.search("klaxon bell")
    monkeypatch.setattr(Shard, "stored_of", lambda *_: pytest.fail("a text was read"))
    assert searcher.totals("klaxon bell") == (expected.total, expected.total_all) != (0, 0)


def test_bad_questions_are_refused(tmp_path: Path) -> None:
    """As by one index."""
    searcher = shards_of(tmp_path, [[page("h", 1)]])
    with pytest.raises(QueryError, match="limit=0"):
        searcher.search(SearchRequest("x", 0))
    with pytest.raises(QueryError, match="empty"):
        searcher.search(" ")
    assert searcher.search("nowhere").hits == []


def test_idf_is_tantivys(tmp_path: Path) -> None:
    """A word on every page earns next to nothing, but never less."""
    assert idf(100, 3) == pytest.approx(3.3624, abs=1e-4)
    assert 0 < idf(10, 10) < idf(10, 9) < idf(10, 1)
    assert idf(5, 10) > 0, "deleted pages may have it too"


# Several indexes count, suggest and find similar pages as one index of all pages would.


def index_pages(directory: Path, pages: list[Page]) -> Searcher:
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
def both(tmp_path: Path) -> tuple[Searcher, Searcher]:
    """The same pages in one index and in two."""
    wiki = pages("wiki", ["the license server", "a siren on the roof", "license renewal"] * 4)
    docs = pages("docs", ["server manual", "the siren and its rotor", "certificate"] * 3)
    one = index_pages(tmp_path / "one", [*wiki, *docs])
    return one, Searcher.of_workers(
        [index_pages(tmp_path / "a", wiki), index_pages(tmp_path / "b", docs)], all_count
    )


@pytest.mark.parametrize("filters", [{}, {"hosts": ["docs"]}, {"kinds": ["pdf"], "since": 1.7e9}])
def test_facets_add_up(both, filters: dict[str, object]) -> None:
    """With the same filters."""
    narrow = Filters.of(**filters)  # type: ignore[arg-type]
    one, many = (
        searcher.search(SearchRequest("the server siren", filters=narrow, facets=True))
        for searcher in both
    )
    assert many.total == one.total > 0
    assert many.facets == one.facets


@pytest.mark.parametrize("query", ["lisence", "certifcate", "serevr mannual", "siren"])
def test_suggestions_are_those_of_one_index(both, query: str) -> None:
    """For words that any of the indexes has."""
    one, many = both
    assert many.suggestion(query) == one.suggestion(query)


def test_similar_pages_are_found_in_all_indexes(both) -> None:
    """Each once."""
    one, many = both
    document = one.get("http://wiki/1")
    found = [hit.url for hit in many.similar(document).hits]
    assert {"http://docs/1", "http://wiki/4"} <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("query", ["siren", "server license", "license rotor"])
def test_the_newest_of_all_indexes_come_first(both, query: str) -> None:
    one, many = (searcher.search(SearchRequest(query, 4, 1, newest=True)) for searcher in both)
    assert [hit.score for hit in many.hits] == [hit.score for hit in one.hits]
    assert len(one.hits) >= 2
