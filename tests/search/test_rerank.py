"""The first hits are looked at once more: headings, passages, length."""

from __future__ import annotations

import pytest

from larmspider.index.stems import Stems
from larmspider.items import Section
from larmspider.search.request import SearchRequest
from larmspider.search.rerank import MAX_OCCURRENCES, MAX_PLACES, Reranker
from larmspider.search.searcher import Searcher
from larmspider.search.why import REREAD

WORDS = {"reset": 4.0, "password": 3.0}
OTHER = "the canteen serves soup " * 40


def factor(words: dict[str, float] = WORDS, said_by_all: str = "", **stored: object) -> float:
    reranker = Reranker(words, Stems("english"), said_by_all.split().__contains__)
    return reranker.factor({"title": "", "body": OTHER, "sections": [], **stored})


@pytest.mark.parametrize(("better", "worse"), [
    ({"title": "Reset passwords"}, {"title": "Reset of all passwords at night"}),
    ({"title": "A reset password"}, {"title": "Passwords"}),
    ({"title": "accounts.Users.reset"}, {"title": "accounts Users reset"}),
    ({"title": "accounts::reset"}, {"title": "reset::accounts"}),
    ({"sections": [(9, "", "Users.reset")]}, {"sections": [(9, "", "Users reset")]}),
    ({"sections": [(0, "", "A"), (9, "", "Reset a PASSWORD")]}, {"sections": [(9, "", "Reset")]}),
    ({"body": f"resets the password {OTHER}"}, {"body": f"reset {OTHER} password"}),
    ({"body": OTHER + OTHER}, {}),
    ({"contents": "1. To reset it 2. A password"}, {"contents": f"1. To reset it {OTHER}"}),
    ({"title": "Reset of all", "contents": "passwords"}, {"title": "Reset of all"}),
    ({"contents": OTHER}, {}),
])  # fmt: skip
def test_a_page_that_fits_as_a_whole_counts_more(better: dict[str, object], worse) -> None:
    """By its title, a heading, a passage, its length; of a name its last part counts most."""
    assert factor(**better) > factor(**worse) >= 1


def test_the_name_of_the_site_makes_no_title_longer() -> None:
    named = {"title": "Reset passwords, Wiki of Example"}
    assert factor(said_by_all="wiki of example", **named) == factor(title="Reset passwords")
    assert factor(**named) < factor(title="Reset passwords")


@pytest.mark.parametrize("title", ["How to reset the passwords", "Use of reset passwords"])
def test_words_that_say_little_make_no_title_longer(title: str) -> None:
    assert factor(title=title) == factor(title="Reset passwords")
    assert factor(title="Reset night passwords") < factor(title="Reset passwords")


def test_a_related_word_stands_for_the_word() -> None:
    """In titles, headings and passages."""
    related = Reranker(WORDS, Stems("english"), "".__contains__, {"reset": ["restore"]})
    for where in ({"title": "Restored passwords"}, {"body": f"restore a password {OTHER}"},
                  {"sections": [(9, "", "Restore a password")]}):  # fmt: skip
        stored = {"title": "", "body": OTHER, "sections": [], **where}
        assert related.factor(dict(stored)) > factor(**where)


@pytest.mark.parametrize("anchor, name", [
    ("django.db.Users.reset", "django.db.Users.reset()"),
    ("users-reset-all", "users_reset_all"),
    ("USERS-RESET", "users-reset"),
    ("Users::reset", "Users.reset"),
])  # fmt: skip
def test_a_section_with_the_name_as_its_anchor_is_what_is_looked_for(anchor, name) -> None:
    reranker = Reranker(WORDS, Stems("english"), "".__contains__, name=name)

    def with_anchor(anchor: str) -> float:
        stored = {"title": "Users", "body": OTHER, "sections": [(0, "", ""), (9, anchor, "Here")]}
        return reranker.factor(stored)

    assert with_anchor(anchor) > with_anchor(f"{anchor}.x") == factor(title="Users")
    plain = Reranker(WORDS, Stems("english"), "".__contains__, name="reset")
    sections = {"sections": [(9, "reset", "Here")]}
    assert plain.factor({"title": "", "body": OTHER, **sections}) == factor(**sections)


def test_of_a_title_without_a_word_of_the_query_no_word_is_looked_up() -> None:
    """It is worth nothing, whatever all titles say."""
    looked_up = list[str]()
    reranker = Reranker(WORDS, Stems("english"), lambda word: bool(looked_up.append(word)))
    reranker.factor({"title": "The canteen", "body": OTHER})
    assert looked_up == []
    reranker.factor({"title": "Reset it", "body": OTHER})
    assert looked_up == ["it"]


def test_of_one_word_passages_say_nothing() -> None:
    word = {"password": 3.0}
    assert factor(word, body="password " * 90) == factor(word, body="something" * 90)


def test_a_text_of_nothing_but_the_words_is_read() -> None:
    """However many of them are in a passage, in whatever form."""
    assert factor({"a": 1.0, "as": 1.0, "ab": 1.0}, body="a as ab " * MAX_OCCURRENCES * 9) > 1


def test_letters_inside_other_words_are_looked_at_so_many_times() -> None:
    words = {"set": 4.0, "password": 3.0}
    near, far = (
        factor(words, body="reset " * number + "other " * (MAX_PLACES - number) + "set password")
        for number in (MAX_PLACES - 1, MAX_PLACES)
    )
    assert near > far


def test_words_that_begin_alike_are_told_apart() -> None:
    words = {"über": 4.0, "übersicht": 3.0}
    near, far = (
        factor(words, body=f"Übersicht {between}über {behind}")
        for between, behind in (("", OTHER), (OTHER, ""))
    )
    assert near > far


@pytest.mark.parametrize("query", ["host:wiki.example", "title:reset", "reset~"])
def test_without_a_plain_word_scores_stay(writer, make_page, query: str) -> None:
    writer.add(make_page("a", "to reset", title="Reset"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    (found,) = searcher.examined(SearchRequest(query), ["http://wiki.example/a"]).values()
    assert REREAD not in found.parts


def test_the_page_with_the_section_is_first_and_why_says_so(writer, make_page) -> None:
    """All pages have the same words; on each page of results the order is the same."""
    sections = [Section(300, "reset", "Reset a password")]
    text = f"{OTHER * 2} reset a password"
    writer.add(make_page("b", text + " one"))
    writer.add(make_page("d", text + " two", sections=sections))
    for name in ("a", "c", "e"):
        writer.add(make_page(name, f"{text} {name}"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    hits = searcher.search(SearchRequest("reset password", copies=True)).hits
    assert hits[0].url == "http://wiki.example/d"
    why = searcher.examined(SearchRequest("reset password"), [hits[0].normalized])[
        hits[0].normalized
    ]
    assert why.score == pytest.approx(hits[0].score, rel=1e-3)
    assert why.parts[REREAD] > 0
    each = [
        searcher.search(SearchRequest("reset password", 1, n, copies=True)).hits[0]
        for n in range(5)
    ]
    assert [hit.url for hit in each] == [hit.url for hit in hits]


def test_a_word_typed_twice_counts_once(writer, make_page) -> None:
    """ "line by line" is about lines no more than "line" is."""
    writer.add(make_page("a", "file file line text"))
    writer.add(make_page("b", "file line line text"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    once, twice = (searcher.examined(SearchRequest(query), ['http://wiki.example/b'])["http://wiki.example/b"]
                   for query in ("file line", "file line line"))  # fmt: skip
    assert once.parts['"line" in the text'] == pytest.approx(twice.parts['"line" in the text'])


def test_a_language_is_not_another_one_whose_name_its_own_begins_with(writer, make_page) -> None:
    """C++ is no C: the letter alone counts less, in titles too."""
    about = "The {} standard whose features are asked for to build this target."
    writer.add(make_page("c", about.format("C"), title="C standard"))
    writer.add(make_page("cxx", about.format("C++"), title="CXX standard"))
    for n in range(20):
        writer.add(make_page(f"other{n}", f"Rules of the house, part {n}", title=f"House {n}"))
    writer.commit()
    found = Searcher.open(writer.directory).search("c++ standard")
    assert [hit.url.rpartition("/")[2] for hit in found.hits] == ["cxx", "c"]
