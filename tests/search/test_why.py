"""Why a page is a hit: the parts of its score add up, and missing words are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.index.access import Access
from larmspider.index.schema import MACHINE_MADE_FACTOR
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.query import Filters
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.search.synonyms import parse_synonyms
from larmspider.search.why import ALL_WORDS, FUZZY, OR_RELATED, SIDE_BY_SIDE, WHOLE

SYNONYMS = ["tunnel, access", "zebra, horse", "big house, villa"]
A, B = "http://wiki.example/a", "http://wiki.example/b"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two indexes."""
    folder = tmp_path_factory.mktemp("why")
    with IndexWriter(folder / "one") as index:
        index.add_anchors(B, {(A, "VPN login")})
        index.commit()
        text = "the vpn tunnel, remote access --prefix logins"
        index.add(Page(A, text=text, title="VPN login", mime="application/pdf", body=b"a"))
        index.add(Page(B, text="nothing to see, vpn", body=b"b"))
    with IndexWriter(folder / "other") as index:
        index.add(Page("http://wiki.example/c", text="another vpn of another worker"))
    return folder


@pytest.fixture(params=["one", "several"])
def searcher(request: pytest.FixtureRequest, directory: Path) -> Searcher:
    found = Searcher.open(directory / "one")
    if request.param == "several":
        both = [found, Searcher.open(directory / "other")]
        found = Searcher.of_workers(both, all_count)
    return found.widened_by(parse_synonyms(SYNONYMS)[0])


@pytest.mark.parametrize(("query", "parts"), [
    ("vpn login", {OR_RELATED, SIDE_BY_SIDE, WHOLE, '"vpn" in texts of links to it'}),
    ("tunnel host:wiki.example", {'"tunnel" in the text'}),
    ('--prefix logon~ "remote access"', {WHOLE, FUZZY, SIDE_BY_SIDE, '"prefix" in the text'}),
])  # fmt: skip
def test_the_parts_of_a_score_add_up(searcher: Searcher, query: str, parts: set[str]) -> None:
    """To the score of the hit, whatever the query consists of."""
    hit = next(
        hit for hit in searcher.search(SearchRequest(query, verbatim=False)).hits if hit.url == A
    )
    found = searcher.examined(SearchRequest(query), [A])[A]
    assert found.score == pytest.approx(hit.score, rel=1e-3)
    assert sum(found.parts.values()) * found.prior == pytest.approx(hit.score, rel=1e-3)
    assert parts <= set(found.parts)
    assert all(found.parts.values())  # none that only finds the page
    assert found.prior > 1  # there is a link to it
    assert found.because == "for links to it"


def test_of_a_word_and_its_synonym_the_better_one_is_named(searcher: Searcher) -> None:
    assert '"access" in the text' not in searcher.examined(SearchRequest("tunnel"), [A])[A].parts


def test_what_a_page_lacks_is_named(searcher: Searcher) -> None:
    found = searcher.examined(
        SearchRequest('vpn horse -tunnel host:x.example "no such" title:login big house'), [A]
    )[A]
    assert found.missing == ["horse", "big house"]
    assert found.lacks == [
        "it has tunnel, which is excluded", "it has no host:x.example", 'it has no "no such"',
    ]  # fmt: skip
    assert (found.score, found.parts) == (0.0, {})
    narrow = Filters.of(kinds=["html"], hosts=["wiki.example"], languages=["de"])
    assert searcher.examined(SearchRequest("vpn", filters=narrow), [A])[A].filters == [
        "type",
        "language",
    ]


def test_an_operator_beside_words_is_not_missing(searcher: Searcher) -> None:
    """It has no meaning there; alone it has."""
    assert searcher.examined(SearchRequest("vpn ->> login"), [A])[A].missing == []
    assert searcher.examined(SearchRequest("->>"), [A])[A].missing == ["->>"]


def test_all_words_earn_the_same_under_one_name(searcher: Searcher) -> None:
    """Whichever page has them, or related ones: the pages are compared by name."""
    found = searcher.examined(SearchRequest("authenticate vpn"), [A])[A]
    assert OR_RELATED in found.parts
    assert found.missing == ["authenticate"]
    assert OR_RELATED in searcher.examined(SearchRequest("vpn login"), [A])[A].parts
    assert ALL_WORDS in searcher.examined(SearchRequest("vpn prefix"), [A])[A].parts


def test_nothing_is_said_of_a_page_that_is_not_there_or_not_seen(searcher: Searcher) -> None:
    assert searcher.examined(SearchRequest("vpn"), ["http://wiki.example/none"]) == {}
    assert searcher.seen_by(Access(("wiki.example",))).examined(SearchRequest("vpn"), [A]) == {}


def test_an_index_made_of_other_pages_comes_behind_them(writer, make_page, monkeypatch) -> None:
    """Though it has the word twice: its score is multiplied by less than 1."""
    writer.add(make_page("genindex.html", "a queue, of a queue", title="Chapter 1"))
    writer.add(make_page("queues.html", "what a queue is", title="Chapter 2"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    for module in ("reading", "searcher"):
        monkeypatch.setattr(f"larmspider.search.{module}.RERANKED", 0)
    hits = searcher.search("queue").hits
    assert [hit.url.rpartition("/")[2] for hit in hits] == ["queues.html", "genindex.html"]
    for hit in hits:
        found = searcher.examined(SearchRequest("queue"), [hit.normalized])[hit.normalized]
        assert found.score == pytest.approx(hit.score, rel=1e-3)
        assert found.prior == pytest.approx(1.0 if hit is hits[0] else MACHINE_MADE_FACTOR)
    assert found.because == "for an index or source code made of others"
