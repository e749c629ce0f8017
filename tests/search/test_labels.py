"""Labels of pages by URL: facets and filters, counted right, without a new index."""

from __future__ import annotations

import pytest

from larmspider.index.schema import MAX_FOLDERS
from larmspider.search.labels import MAX_LABELS, LabelSet, parse_labels
from larmspider.search.query import Filters
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher

PAGES = (
    "http://wiki.example/",
    "http://wiki.example/hr/",
    "http://wiki.example/hr/forms/leave?back=/it/",
    "http://wiki.example/HR/other",
    "http://wiki.example/it/forms/vpn",
    "http://wiki.example/hrx",
    "http://wiki.example/i.php?title=Staff:Ann",
    "http://wiki.example/i.php?title=Staffing",
    "http://docs.example:8080/%C3%BCber/a",
    "http://old.docs.example/forms/x",
)


def labels(text: str) -> LabelSet:
    found, problems = parse_labels(text.splitlines())
    assert not problems
    return found


@pytest.fixture
def searcher(writer, make_page) -> Searcher:
    for url in PAGES:
        writer.add(make_page(url, f"word {url}"))
    writer.commit()
    return Searcher.open(writer.directory)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("http://wiki.example/hr/", {1, 2}),
        ("HTTP://Wiki.Example/hr/*", {1, 2}),
        ("http://wiki.example", {0, 1, 2, 3, 4, 5, 6, 7}),
        ("http://wiki.example/hr*", {1, 2, 5}),
        ("*://*.example/*/forms/", {2, 4}),
        ("*://*docs.example*/", {8, 9}),
        ("http://wiki.example/i.php?title=Staff:*", {6}),
        ("http://wiki.example/hrx", {5}),
        ("http://docs.example:8080/über/", {8}),
        ("http://docs.example:8080/ü*/", {8}),
        ("http://wiki.example/it/", {4}),
        ("https://wiki.example/", set()),
    ],
)
def test_a_label_has_the_pages_of_its_urls(
    searcher: Searcher, pattern: str, expected: set[int]
) -> None:
    known = labels(f"One => {pattern}")
    request = SearchRequest("word", 50, facets=True, labels=known.all)
    assert searcher.search(request).facets.labels == ({"One": len(expected)} if expected else {})  # type: ignore[union-attr]
    found = searcher.search(SearchRequest("word", 50, filters=Filters.of(labels=known.all)))
    assert {PAGES.index(hit.url) for hit in found.hits} == expected
    assert found.total == len(expected)


def test_counts_are_of_all_matches_and_without_the_own_filter(searcher: Searcher) -> None:
    """A page counts once for each of its labels, though two lines of one label have it."""
    known = labels(
        "HR => http://wiki.example/hr/\nhr => http://wiki.example/hr/forms/\n"
        "Forms => http://*/forms/\nForms => *://*.example/*/forms/"
    )
    request = SearchRequest("word", 1, facets=True, labels=known.all)
    assert searcher.search(request).facets.labels == {"Forms": 3, "HR": 2}  # type: ignore[union-attr]
    narrow = Filters.of(labels=[known.of("FORMS")], hosts=["wiki.example"])  # type: ignore[list-item]
    found = searcher.search(SearchRequest("word", 1, filters=narrow, facets=True, labels=known.all))
    assert found.total == 2
    assert found.facets.labels == {"Forms": 2, "HR": 2}  # type: ignore[union-attr]
    assert found.facets.hosts == {"wiki.example": 2, "old.docs.example": 1}  # type: ignore[union-attr]


def test_several_indexes_add_up(tmp_path, searcher: Searcher) -> None:
    both = Searcher.of_collections([("a", searcher), ("b", searcher)])
    known = labels("HR => http://wiki.example/hr/")
    found = both.search(SearchRequest("word", facets=True, labels=known.all))
    assert found.facets.labels == {"HR": 4}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("HR http://wiki.example/", "expected label => URL"),
        ("=> http://wiki.example/", "expected label => URL"),
        ("HR =>", "expected label => URL"),
        (f"{'x' * 61} => http://w/", "expected a label of 1 to 60 characters"),
        ("HR => wiki.example", "expected a URL that begins with http://"),
        ("HR => http://a b/", "expected a URL that begins with http://"),
        ("HR => http://*.example/*.pdf", "expected a slash at the end"),
        ("HR => http://[::1/", "HR"),
        ("HR => http://w/" + "a/" * MAX_FOLDERS, f"expected at most {MAX_FOLDERS} folders"),
    ],
)
def test_a_bad_line_is_named(line: str, expected: str) -> None:
    found, problems = parse_labels(["# comment", "", line, "Good => http://w/"])
    assert [number for number, _ in problems] == [3]
    assert expected in problems[0][1] or expected == "HR"
    assert [label.name for label in found.all] == ["Good"]


def test_there_are_limits() -> None:
    found, problems = parse_labels(f"L{n} => http://w/{n}/" for n in range(MAX_LABELS + 1))
    assert (len(found.all), len(problems)) == (MAX_LABELS, 1)
    found, problems = parse_labels(f"L => http://w/{n}/" for n in range(501))
    assert (len(found.all[0].folders), len(problems)) == (500, 1)
