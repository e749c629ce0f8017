"""Several crawls searched as one: what each has is found, counted and seen as its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.index.access import Access
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.query import Filters
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.search.synonyms import parse_synonyms

WIKI = {"a": "vpn login here", "b": "the vpn tunnel", "c": "canteen menu"}
HANDBOOK = {"a": "vpn rules", "d": "rules of the house"}
SECRET = {"pay": "canary salaries vpn"}


def index(directory: Path, host: str, texts: dict[str, str]) -> Searcher:
    with IndexWriter(directory) as writer:
        for name, text in texts.items():
            url = f"http://{host}/{name}"
            page = Page(url, text=text, body=text.encode(), mime="text/html", fetched=1.7e9)
            writer.add(page)
        writer.add(Page(f"http://{host}/same", text="same", body=b"same", fetched=1.7e9))
    return Searcher.open(directory)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Searcher]]:
    """Three crawls, one of them of two workers."""
    tmp_path = tmp_path_factory.mktemp("collections")
    books = [index(tmp_path / "1", "book", HANDBOOK), index(tmp_path / "2", "book2", {})]
    return [
        ("wiki", index(tmp_path / "0", "wiki", WIKI)),
        ("handbook", Searcher.of_workers(books, all_count)),
        ("hr", index(tmp_path / "3", "pay.hr.example", SECRET)),
    ]


@pytest.fixture
def searcher(parts: list[tuple[str, Searcher]]) -> Searcher:
    return Searcher.of_collections(parts)


def urls(searcher: Searcher, query: str, *collections: str) -> list[str]:
    found = searcher.search(SearchRequest(query, filters=Filters.of(collections=collections)))
    return sorted(hit.url for hit in found.hits)


def test_hits_name_their_collection_and_the_facet_counts_it(searcher: Searcher) -> None:
    """Counted whichever is chosen; other facets and totals are of those that are chosen."""
    found = searcher.search(SearchRequest("vpn", facets=True))
    assert {hit.collection for hit in found.hits} == {"wiki", "handbook", "hr"}
    assert found.facets is not None
    assert found.facets.collections == {"wiki": 2, "handbook": 1, "hr": 1}
    one = searcher.search(
        SearchRequest("vpn", filters=Filters.of(collections=["wiki"]), facets=True)
    )
    assert one.facets is not None
    assert (one.total, set(one.facets.hosts)) == (2, {"wiki"})
    assert one.facets.collections == {"wiki": 2, "handbook": 1, "hr": 1}
    assert (
        searcher.search(
            SearchRequest("vpn", filters=Filters.of(collections=["none"]), facets=True)
        ).total
        == 0
    )
    narrow = Filters.of(hosts=["book"])
    counted = searcher.search(SearchRequest("vpn", filters=narrow, facets=True)).facets
    assert counted is not None
    assert counted.collections == {"handbook": 1}


def test_it_ranks_as_one_index_would(searcher: Searcher, tmp_path: Path) -> None:
    """A word is as rare as it is over all pages."""
    with IndexWriter(tmp_path / "all") as writer:
        for host, texts in (("wiki", WIKI), ("book", HANDBOOK), ("pay.hr.example", SECRET)):
            for name, text in texts.items():
                page = Page(f"http://{host}/{name}", text=text, body=text.encode())
                writer.add(page)
        for host in ("wiki", "book", "book2", "pay.hr.example"):
            writer.add(Page(f"http://{host}/same", text="same", body=b"same"))
    one = Searcher.open(tmp_path / "all")
    for query in ("vpn rules", "login vpn tunnel"):
        expected = [hit.url for hit in one.search(query).hits]
        assert [hit.url for hit in searcher.search(query).hits] == expected


def test_pages_of_results_follow_each_other(searcher: Searcher) -> None:
    every = [hit.url for hit in searcher.search(SearchRequest("vpn rules same", 50)).hits]
    assert [
        hit.url
        for at in range(len(every))
        for hit in searcher.search(SearchRequest("vpn rules same", 1, at)).hits
    ] == every


def test_a_page_that_is_the_same_in_two_crawls_is_one_hit(searcher: Searcher) -> None:
    (hit,) = searcher.search(SearchRequest("same", verbatim=True)).hits
    assert hit.copies == 3
    assert len(searcher.search(SearchRequest("same", copies=True)).hits) == 4


def test_suggestions_come_from_all(searcher: Searcher) -> None:
    suggestion = searcher.suggestion("salarjes canteem")
    assert suggestion is not None
    assert suggestion.query == "salaries canteen"
    assert {hit.host for hit in searcher.similar(searcher.get("http://wiki/b")).hits} >= {"wiki"}  # type: ignore[arg-type]
    widened = searcher.widened_by(parse_synonyms(["vpn, canteen"])[0])
    assert "http://wiki/b" in urls(widened, "canteen", "wiki")


@pytest.mark.parametrize("limited", ["each", "all"])
def test_what_a_reader_may_not_see_of_one_crawl_is_in_no_answer(
    parts: list[tuple[str, Searcher]], limited: str
) -> None:
    """Each crawl has rules of its own, and one filter is no way around them."""
    access = Access(("*.hr.example",))
    if limited == "each":
        searcher = Searcher.of_collections([*parts[:2], ("hr", parts[2][1].seen_by(access))])
    else:
        searcher = Searcher.of_collections(parts).seen_by(access)
    assert searcher.search(SearchRequest("canary", verbatim=True)).total == 0
    assert urls(searcher, "vpn", "hr") == []
    found = searcher.search(SearchRequest("vpn", facets=True))
    assert found.facets is not None
    assert found.facets.collections == {"wiki": 2, "handbook": 1}
    assert searcher.get("http://pay.hr.example/pay") is None
    assert searcher.suggestion("canery") is None
    assert searcher.completions("can") == []
    assert searcher.search(SearchRequest("same", verbatim=True)).hits[0].copies == 2
    assert searcher.examined(SearchRequest("canary"), ["http://pay.hr.example/pay"]) == {}
    filters = Filters.of(collections=["hr"])
    assert (
        searcher.examined(SearchRequest("canary", filters=filters), ["http://pay.hr.example/pay"])
        == {}
    )


def test_the_host_of_one_crawl_may_be_open_in_another(tmp_path: Path) -> None:
    """Search that needs no password there is open to everybody."""
    one, other = (index(tmp_path / name, "pay.hr.example", SECRET) for name in "ab")
    searcher = Searcher.of_collections([("in", one.seen_by(Access(("*",)))), ("out", other)])
    (hit,) = searcher.search("canary").hits
    assert (hit.collection, hit.copies) == ("out", 0)
