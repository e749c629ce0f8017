"""Pages that were not reached at their last visit: marked, behind others, and filtered."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.errors import QueryError
from larmspider.index.rebuild import rebuild
from larmspider.index.unreached import UNREACHED_FACTOR, UnreachedLog
from larmspider.index.writer import IndexWriter
from larmspider.items import Page, Part
from larmspider.search.query import Filters
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.results import results_json
from larmspider.search.searcher import Searcher

WIKI = "http://wiki.example/"


def page(url: str, text: str, **more: object) -> Page:
    return Page(url, url, text=text, body=text.encode(), mime="text/html", fetched=1.7e9, **more)  # type: ignore[arg-type]


def indexed(directory: Path, *pages: Page) -> Searcher:
    with IndexWriter(directory) as writer:
        for one in pages:
            writer.add(one)
    return Searcher.open(directory)


def miss(directory: Path, *keys: str, hosts: dict[str, float] | None = None) -> None:
    log = UnreachedLog(directory)
    for key in keys:
        log.missed(key, "missing", 1.8e9)
    log.set_hosts(hosts or {})
    log.write()


def names(searcher: Searcher, query: str = "vpn", **more: object) -> list[str]:
    return [
        hit.url.rpartition("/")[2] for hit in searcher.search(SearchRequest(query, **more)).hits
    ]  # type: ignore[arg-type]


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    """Three pages, the best one first; the best one and "gone" are on two hosts."""
    return indexed(
        tmp_path / "index",
        page(f"{WIKI}best", "vpn vpn vpn vpn", title="vpn"),
        page(f"{WIKI}good", "vpn vpn other words", title="vpn"),
        page("http://old.example/gone", "vpn with many more words beside it"),
    )


def test_a_page_that_was_not_reached_is_marked_and_behind(searcher: Searcher) -> None:
    before = {hit.url: hit.score for hit in searcher.search("vpn").hits}
    assert names(searcher) == ["best", "good", "gone"]
    miss(searcher.shards[0].directory, f"{WIKI}best")
    found = searcher.search("vpn").hits
    assert found[0].url == f"{WIKI}good"
    marked = {hit.url: hit.missing_since for hit in found if hit.missing_since}
    assert marked == {f"{WIKI}best": 1.8e9}
    best = next(hit for hit in found if hit.missing_since)
    assert best.score == pytest.approx(before[best.url] * UNREACHED_FACTOR)
    told = results_json(searcher.search("vpn"))["hits"]
    assert sorted(hit["missing_since"] or 0 for hit in told) == [0, 0, 1.8e9]


def test_a_page_that_answers_again_is_where_it_was(searcher: Searcher) -> None:
    miss(searcher.shards[0].directory, f"{WIKI}best")
    assert names(searcher)[0] != "best"
    log = UnreachedLog(searcher.shards[0].directory)
    log.reached(f"{WIKI}best")
    log.write()
    assert names(searcher)[0] == "best"


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize(
    ("value", "found"),
    [("yes", {"best", "good", "gone"}), ("no", {"good", "gone"}), ("only", {"best"})],
)
def test_the_filter_and_the_operator(
    searcher: Searcher, value: str, found: set[str], typed: bool
) -> None:
    """Totals and facets agree with them."""
    miss(searcher.shards[0].directory, f"{WIKI}best")
    query = f"vpn Unreachable:{value}" if typed else "vpn"
    filters = Filters() if typed else Filters.of(unreachable=value)
    results = searcher.search(SearchRequest(query, filters=filters, facets=True))
    assert {hit.url.rpartition("/")[2] for hit in results.hits} == found
    assert results.total == len(found) == searcher.totals(query, filters)[0]
    assert results.facets is not None
    assert sum(results.facets.hosts.values()) == len(found)
    if not typed:
        assert results.facets.unreachable == {"no": 2, "only": 1}


def test_the_operator_alone_and_excluded(searcher: Searcher) -> None:
    miss(searcher.shards[0].directory, f"{WIKI}best")
    assert names(searcher, "unreachable:only") == ["best"]
    assert set(names(searcher, "vpn -unreachable:only")) == {"good", "gone"}


@pytest.mark.parametrize("query", ["vpn unreachable:", "host unreachable:down", "unreachable:only"])
def test_what_is_pasted_is_no_operator_and_where_all_is_reached_nothing_is(
    searcher: Searcher, query: str
) -> None:
    assert searcher.search(SearchRequest(query, facets=True)).facets.unreachable == {}  # type: ignore[union-attr]
    assert searcher.parsed("host unreachable:down").clauses[1].field is None


def test_a_value_that_cannot_be_is_refused() -> None:
    with pytest.raises(QueryError, match="expected one of yes, no, only"):
        Filters.of(unreachable="maybe")


def test_a_silent_host_and_the_parts_of_a_page(tmp_path: Path) -> None:
    part = Part("in it.txt", "text/plain", 9, text="vpn inside", digest="1")
    searcher = indexed(
        tmp_path,
        page(f"{WIKI}a.zip", "vpn a", parts=[part]),
        page("http://wiki.example:8080/b", "vpn b"),
        page("http://wiki.example.org/c", "vpn c"),
    )
    assert len(names(searcher)) == 4
    miss(tmp_path, hosts={"http://wiki.example": 1.8e9})
    marked = {hit.url for hit in searcher.search("vpn").hits if hit.missing_since}
    assert marked == {f"{WIKI}a.zip", f"{WIKI}a.zip#!/in%20it.txt"}
    miss(tmp_path, f"{WIKI}a.zip")
    assert {hit.url for hit in searcher.search("vpn unreachable:only").hits} == marked


@pytest.mark.parametrize("copies", [True, False])
def test_a_page_is_never_before_one_with_its_text_that_was_reached(
    tmp_path: Path, copies: bool
) -> None:
    """However many links lead to it."""
    text = "vpn " + " ".join(f"word{n}" for n in range(60))
    with IndexWriter(tmp_path) as writer:
        for n in range(300):
            writer.add_anchors(f"http://d/{n}", [("http://a.example/gone", "vpn")])
        writer.commit()
        for url in ("http://a.example/gone", "http://b.example/there"):
            writer.add(page(url, text))
        for n in range(20):
            writer.add(page(f"http://c.example/{n}", f"{n} vpn " + "other words " * 40))
    searcher = Searcher.open(tmp_path)
    first = searcher.search(SearchRequest("vpn", 30, copies=copies)).hits[0]
    assert first.url == "http://a.example/gone"
    miss(tmp_path, "http://a.example/gone")
    found = names(searcher, limit=30, copies=copies)
    assert "there" in found
    assert ("gone" in found) == copies
    assert not copies or found.index("there") < found.index("gone")
    only = Filters.of(hosts=["a.example"])
    assert names(searcher, filters=only) == ["gone"], "where the filter leaves it alone"
    assert names(searcher, newest=True)[0] in ("there", "19", "0", "gone")


def test_a_worker_knows_of_a_page_that_another_one_has(tmp_path: Path) -> None:
    """Its host has moved from one to the other."""
    one = indexed(tmp_path / "1", page(f"{WIKI}a", "vpn vpn"), page(f"{WIKI}b", "vpn words"))
    two = indexed(tmp_path / "2", page("http://hr.example/c", "vpn other"))
    both = Searcher.of_workers([one, two], all_count)
    assert names(both)[0] == "a"
    miss(tmp_path / "2", f"{WIKI}a")
    results = both.search(SearchRequest("vpn", facets=True))
    assert [hit.url for hit in results.hits if hit.missing_since] == [f"{WIKI}a"]
    assert results.hits[-1].missing_since
    assert results.facets is not None
    assert results.facets.unreachable == {"no": 2, "only": 1}
    assert len(names(both, filters=Filters.of(unreachable="no"))) == 2


def test_a_mark_is_of_its_crawl_alone(tmp_path: Path) -> None:
    """Several indexes are searched as one."""
    parts = [
        (name, indexed(tmp_path / name, page(f"{WIKI}{name}", f"vpn {name}")))
        for name in ("a", "b")
    ]
    miss(tmp_path / "a", f"{WIKI}a", f"{WIKI}b")
    found = Searcher.of_collections(parts).search(SearchRequest("vpn", facets=True))
    assert [hit.url for hit in found.hits] == [f"{WIKI}b", f"{WIKI}a"]
    assert [bool(hit.missing_since) for hit in found.hits] == [False, True]
    assert found.facets is not None
    assert found.facets.unreachable == {"no": 1, "only": 1}


def test_marks_outlast_a_rebuild(tmp_path: Path) -> None:
    searcher = indexed(tmp_path / "index", page(f"{WIKI}a", "vpn"))
    miss(searcher.shards[0].directory, f"{WIKI}a", hosts={"http://x": 1.0})
    rebuild(searcher.shards[0].directory)
    assert names(Searcher.open(searcher.shards[0].directory), "unreachable:only") == ["a"]


def test_why_says_that_a_page_was_not_reached(searcher: Searcher) -> None:
    miss(searcher.shards[0].directory, f"{WIKI}best")
    examined = searcher.examined(SearchRequest("vpn"), [f"{WIKI}best"])[f"{WIKI}best"]
    assert examined.parts["not reached at its last visit"] < 0
    hit = next(hit for hit in searcher.search("vpn").hits if hit.missing_since)
    assert examined.score == pytest.approx(hit.score, rel=1e-3)


def test_all_pages_may_be_unreached(searcher: Searcher) -> None:
    miss(
        searcher.shards[0].directory, hosts={"http://wiki.example": 1.0, "http://old.example": 1.0}
    )
    assert names(searcher) == ["best", "good", "gone"]
    assert names(searcher, filters=Filters.of(unreachable="no")) == []
