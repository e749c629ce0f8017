from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.errors import QueryError
from larmspider.search.operators import OPERATORS
from larmspider.search.query import (
    ALIASES,
    FIELDS,
    MAX_FUZZY_WORDS,
    MAX_QUERY_CHARS,
    MAX_WORDS,
    UNREACHABLE,
    Clause,
    each_once,
    parse_query,
    since_time,
    until_time,
)


@pytest.mark.parametrize(
    "query, clauses",
    [
        ("log in", [Clause("log"), Clause("in")]),
        ('"log in" vpn', [Clause("log in", phrase=True), Clause("vpn")]),
        ("vpn -draft", [Clause("vpn"), Clause("draft", excluded=True)]),
        ('vpn -"old page"', [Clause("vpn"), Clause("old page", phrase=True, excluded=True)]),
        ("title:vpn", [Clause("vpn", "title")]),
        ('Title:"log in"', [Clause("log in", "title", phrase=True)]),
        ("vpn -host:a.example", [Clause("vpn"), Clause("a.example", "host", excluded=True)]),
        ("url:http://h/a:b", [Clause("http://h/a:b", "url")]),
        ('title:"the quick', [Clause("the", "title"), Clause("quick")]),
        ('vpn -"draft', [Clause("vpn"), Clause("draft", excluded=True)]),
        ("wrod~", [Clause("wrod", fuzzy=1)]),
        ("lisence~", [Clause("lisence", fuzzy=2)]),
        ("lisence~1", [Clause("lisence", fuzzy=1)]),
        ("vpn AND NOT foo", [Clause("vpn"), Clause("foo", phrase=True, excluded=True)]),
        ('vpn NOT "a b"', [Clause("vpn"), Clause("a b", phrase=True, excluded=True)]),
        ("tls OR ssl", [Clause("tls"), Clause("ssl", either=True)]),
        ('"a b" OR c', [Clause("a b", phrase=True), Clause("c", phrase=True, either=True)]),
        ("site:wiki.example", [Clause("wiki.example", "host")]),
        ("site:http://wiki.example/it", [Clause("wiki.example/it", "url")]),
        ("vpn -site:a.example", [Clause("vpn"), Clause("a.example", "host", excluded=True)]),
        ("intitle:vpn inurl:it", [Clause("vpn", "title"), Clause("it", "url")]),
        ('intitle:"log in"', [Clause("log in", "title", phrase=True)]),
        ("filetype:docx ext:.pdf", [Clause("docx", "type"), Clause(".pdf", "type")]),
        ("before:2023 after:2021-02", [Clause("2023", "before"), Clause("2021-02", "after")]),
        ("language:German", [Clause("de", "lang")]),
        ('"type:pdf"', [Clause("type:pdf", phrase=True)]),
    ],
)
def test_syntax(query: str, clauses: list[Clause]) -> None:
    """Phrases, exclusion, fields and fuzzy words are what docs/queries.md says."""
    assert parse_query(query) == clauses


@pytest.mark.parametrize(
    "query, plain",
    [
        ("\u201clog in\u201d vpn", '"log in" vpn'),
        ("\u201elog in\u201c vpn", '"log in" vpn'),
        ('\u201elog in" vpn', '"log in" vpn'),
        ('"log in\u201d vpn', '"log in" vpn'),
        ("\xab\xa0log in\xa0\xbb vpn", '" log in " vpn'),
        ("\xbblog in\xab vpn", '"log in" vpn'),
        ("\uff02log in\uff02 vpn", '"log in" vpn'),
        ("vpn -\u201cold page\u201d", 'vpn -"old page"'),
        ("title:\u201clog in\u201d \u201ea b\u201c", 'title:"log in" "a b"'),
        ('"say \u201cyes\u201d"', '"say \u201cyes\u201d"'),
        ("Home \xbb Docs \xbb Install", "Home \xbb Docs \xbb Install"),
        ("5\u201d screen", "5\u201d screen"),
    ],
)
def test_quotes_of_any_form_make_a_phrase(query: str, plain: str) -> None:
    """Those that are no pair are none, and part nothing."""
    assert parse_query(query) == parse_query(plain)
    places = [clause.at for clause in parse_query(query)]
    assert places == [clause.at for clause in parse_query(plain)]


@pytest.mark.parametrize(
    "query, words",
    [
        ("C++", ["C++"]),
        ("os.path.join()", ["os.path.join()"]),
        ("foo(bar)", ["foo(bar)"]),
        ("std::vector", ["std::vector"]),
        ("http://wiki.example/", ["http://wiki.example/"]),
        ('say "hello', ["say", "hello"]),
        ("--enable-shared", ["--enable-shared"]),
        ("python -m pdb", ["python", "-m", "pdb"]),
        ("-Werror", ["-Werror"]),
        ("-Werror -foo", ["-Werror", "-foo"]),
        ("col IS NOT NULL", ["col", "IS", "NOT", "NULL"]),
        ("NOT NULL", ["NOT", "NULL"]),
        ("vpn or not foo", ["vpn", "or", "not", "foo"]),
        ("vpn OR", ["vpn", "OR"]),
        ("OR", ["OR"]),
        ("type:error", ["type:error"]),
        ("language:c89 before:lunch", ["language:c89", "before:lunch"]),
        ("a~b ~", ["a~b", "~"]),
        (":)", [":)"]),
        ("json ->> -", ["json", "->>", "-"]),
        ("->>", ["->>"]),
    ],
)
def test_what_people_paste_is_words(query: str, words: list[str]) -> None:
    """Punctuation of code, options and smileys is no syntax, and no error."""
    assert parse_query(query) == [Clause(word) for word in words]


@pytest.mark.parametrize(
    "query, message",
    [
        ("", "the query is empty"),
        (" \t\n", "the query is empty"),
        ("\0", "the query is empty"),
        ('"', "no word to look for"),
        ('"' * 1_000, "no word to look for"),
        ("* " * 500, "no word to look for"),
        ("-> " * 65, "65 words, at most 64 are allowed"),
        ("title: vpn", "title: needs a value"),
        ("x" * (MAX_QUERY_CHARS + 1), "too long: at most 1000 characters are allowed"),
        ("x " * (MAX_WORDS + 1), "65 words, at most 64 are allowed"),
        ("abc~ " * (MAX_FUZZY_WORDS + 1), "more than 4 fuzzy words"),
    ],
)
def test_what_cannot_mean_anything_is_a_query_error(query: str, message: str) -> None:
    """The message is one line that says what is wrong."""
    with pytest.raises(QueryError, match=message) as caught:
        parse_query(query)
    assert "\n" not in str(caught.value)


def test_nul_is_a_space() -> None:
    assert parse_query("a\0b") == parse_query("a b")


@given(
    st.text(alphabet=st.one_of(st.sampled_from('-"~: *()\\title:'), st.characters()), max_size=60)
)
def test_any_string_is_clauses_or_a_query_error(query: str) -> None:
    """No string raises anything else, lone surrogates included."""
    try:
        assert parse_query(query)
    except QueryError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


def test_what_is_typed_twice_is_taken_once() -> None:
    """But for words, whose order says something, and what differs in more than capital letters."""
    typed = '"log in" "Log In" -old title:vpn -old title:vpn -"log in" line by line wrod~ wrod~'
    left = ["log in", "old", "vpn", "log in", "line", "by", "line", "wrod"]
    assert [clause.text for clause in each_once(parse_query(typed))] == left


def test_a_period_ends_with_its_last_day() -> None:
    assert until_time("2026-01-31") == since_time("2026-02-01", 0.0)
    with pytest.raises(QueryError, match="date 'week' is unknown; expected a day as in 2026-01-31"):
        until_time("week")


def test_each_name_of_an_operator_has_a_function() -> None:
    """The ranking can search each operator that the parser knows."""
    assert {*FIELDS, *ALIASES.values(), UNREACHABLE} == {*OPERATORS}
