"""What people type, as other search engines have taught them, gives what they expect."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.results import Results, found_line, results_json
from larmspider.search.searcher import Searcher

YEAR = 365 * 86_400
T2022 = datetime(2022, 6, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def search(writer: IndexWriter, make_page: Callable[..., Page]) -> Callable[[str], Results]:
    """A small manual on two hosts."""
    pages = (
        make_page("http://a.example/session", "The form of a session", title="Session"),
        make_page("http://a.example/orm/tls", "TLS needs a certificate and a form", title="TLS"),
        make_page("http://a.example/cert", "A certificate has an owner", title="Certificate"),
        make_page("http://b.example/tls", "TLS without any ceremony of form", title="Channel"),
        make_page("http://b.example/exim.pdf", "Exim supervisor", mime="application/pdf"),
        make_page("http://b.example/exim", "Exim in a nutshell, de", language="de-AT"),
        make_page("http://b.example/keys", "Press Ctrl+B to make the text bold", title="Editing"),
        make_page("http://b.example/b", "Column B, the b of Ctrl keys, ctrl or b", title="Columns"),
        make_page("http://b.example/c", "The module c of ISO C is c", title="c"),
        make_page("http://b.example/net", "Nets of all kinds, a net", title="Net"),
        make_page("http://b.example/part", "Part AB-12 has 3 nuts, 10.4 of 2, 1", title="Parts"),
    )
    for number, page in enumerate(pages):
        page.fetched = T2022 + (number - 2) * YEAR
        writer.add(page)
    writer.commit()
    searcher = Searcher.open(writer.directory)
    return searcher.search


def names(found: Results) -> list[str]:
    return [hit.url.partition("//")[2] for hit in found.hits]


@pytest.mark.parametrize(
    "query, expected",
    [
        ("site:a.example form", {"a.example/session", "a.example/orm/tls"}),
        ("form -site:a.example", {"b.example/tls"}),
        ("filetype:pdf exim", {"b.example/exim.pdf"}),
        ("type:pdf exim", {"b.example/exim.pdf"}),
        ("ext:pdf", {"b.example/exim.pdf"}),
        ("exim -type:pdf", {"b.example/exim"}),
        ("intitle:session", {"a.example/session"}),
        ("inurl:orm", {"a.example/orm/tls"}),
        ("language:german", {"b.example/exim"}),
        ("before:2021-06-01 form", {"a.example/session"}),
        ("after:2022 form", {"b.example/tls"}),
        ("after:2021-01-01 before:2022 certificate", {"a.example/orm/tls"}),
        ("tls NOT certificate", {"b.example/tls"}),
        ("tls OR owner", {"a.example/orm/tls", "a.example/cert", "b.example/tls"}),
        ('"any ceremony" OR owner', {"b.example/tls", "a.example/cert"}),
        ("intitle:tls OR inurl:cert", {"a.example/orm/tls", "a.example/cert"}),
    ],
)
def test_filters_and_operators(search: Callable[[str], Results], query: str, expected) -> None:
    """The words of other search engines filter, and are not looked for."""
    found = search(query)
    assert set(names(found)) == expected
    assert (found.instead, found.no_filters, found.suggestion) == (None, (), None)


def test_or_counts_pages_with_either(search: Callable[[str], Results]) -> None:
    """A page with one of two alternatives has all that matters; one with both comes first."""
    assert search("tls certificate").total_all == 1
    found = search("tls OR certificate")
    assert found.total_all == 3
    assert names(found)[0] == "a.example/orm/tls"
    assert search("form tls OR certificate").total_all == 2


def test_a_word_with_a_colon_that_is_no_filter_is_said(search: Callable[[str], Results]) -> None:
    """It is searched as a word."""
    found = search("colour:red form")
    assert found.no_filters == ("colour:red",)
    assert results_json(found)["no_filters"] == ["colour:red"]
    assert len(found.hits) == 3
    for pasted in ("std::vector", "http://a.example/", "10:30 form", "error: form", "C:/a form"):
        assert search(pasted).no_filters == ()


def test_shortcuts_are_words(search: Callable[[str], Results]) -> None:
    """Ctrl+B finds lists of shortcuts before pages with these letters."""
    assert names(search("Ctrl+B"))[0] == "b.example/keys"
    assert names(search("ctrl+b"))[0] == "b.example/keys"


@pytest.mark.parametrize("query", ["C#", ".NET", "AB-12/3", "10.2.1"])
def test_what_no_page_has_as_typed_is_said(search: Callable[[str], Results], query: str) -> None:
    """Pages with parts of it are no pages that were found."""
    found = search(query)
    assert found.not_typed == (query,)
    assert found_line(found, "1 ms").startswith(f"No page has {query} as typed; ")
    assert results_json(found)["not_typed"] == [query]
    for known in ("ISO C", "AB-12", "10.4", "a.example/orm", "--form", "certificates"):
        assert search(known).not_typed == (("--form",) if known == "--form" else ())


@pytest.mark.parametrize(
    "query", ["=>", ":=", "<<>>", "\N{PARTY POPPER}", ":)", "~ ~~", "\ud800", '"']
)
def test_signs_alone_find_nothing(search: Callable[[str], Results], query: str) -> None:
    """That is a search without hits, and no error."""
    found = search(query)
    assert (found.total, found.hits, found.suggestion) == (0, [], None)
