from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.errors import QueryError
from larmspider.search import shard as of_indexes
from larmspider.search.query import Filters
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.search.spelling import Suggestion, distance, edits, one_error, two_errors
from larmspider.search.synonyms import parse_synonyms


@pytest.fixture
def searcher(writer, make_page) -> Searcher:
    """150 pages of a licence server, and a few others."""
    for n in range(150):
        writer.add(make_page(f"{n}", "the license server has to receive a certificate"))
    for n in range(2):
        writer.add(make_page(f"relief{n}", "we relieve you"))
    for n in range(5):
        writer.add(make_page(f"hall{n}", "the hall"))
        writer.add(make_page(f"hail{n}", "hail and hal"))
    writer.add(make_page("typo", "we recieve mail"))
    writer.add(make_page("lies", "license plates"))
    writer.add(make_page("ru", "пожарная сирена", language="ru"))
    writer.add(make_page("fr", "Éclairage de sécurité"))
    writer.add(make_page("listen", "listening to libraries"))
    writer.add(make_page("c", "a = os.path.join(b)"))
    writer.commit()
    return Searcher.open(writer.directory)


@pytest.mark.parametrize(
    "query, meant",
    [
        ("lisence", "license"),
        ("Licens server", "License server"),
        ("ILCENSE Lciense Icense liCEsne", "LICENSE License License liCEnse"),
        ("licennse servre", "license server"),
        ("icense", "license"),
        ("lciense plates", "license plates"),
        ('"lisence server"', '"license server"'),
        ("lisence -plates host:wiki.example", "license -plates host:wiki.example"),
        ("cretificat", "certificate"),
        ("ceritficaet", "certificate"),
        ("пажарная", "пожарная"),
        ("eclairaje", "eclairage"),
        ("os.paht.join()", "os.path.join()"),
        ("recieve", "receive"),
        ("_lisence_", "_license_"),
        ("mall", "mail"),
        ("lisence, lisence?", "license, license?"),
        ("Licenseserver", "License server"),
        ("hlal", "hall"),  # as hail, on as many pages
        ("listeningto", "listening to"),
    ],
)
def test_what_was_meant(searcher, query: str, meant: str) -> None:
    """One mistake, two in long words, words that hardly any page has; the rest stays as typed, and
    of two words the one that begins alike is meant."""
    found = searcher.suggestion(query)
    assert found is not None
    results = searcher.search(meant)
    assert found == Suggestion(meant, results.total, results.total_all)
    assert found.total > 0


@pytest.mark.parametrize(
    "query",
    [
        "license server",
        "listener library",
        "relieve",
        "xyzzyqwv",
        "srv",
        "20l6",
        "漢漢漢漢",
        "-lisence server",
        "title:lisence server",
        "lisence~",
        "lise" * 10,
        "haus",  # all pages of a list have "has", which says nothing
        "haus license",
        "shall",  # says little, though "hall" is a word of the index
    ],
)
def test_nothing_is_suggested(searcher, query: str) -> None:
    """For what is found, for other forms of what is found, and for what is like nothing."""
    assert searcher.suggestion(query) is None


def test_a_mistake_in_a_phrase_is_corrected_before_its_quotes_are_taken_off(searcher) -> None:
    """The phrase that was meant is more than its words; where no page has that either, its words
    are corrected."""
    assert searcher.search('"lisence server"').instead == '"license server"'
    assert searcher.search('"server license"').instead == "server license"
    assert searcher.search('"server lisence"').instead == "server license"
    assert searcher.search('"server xyzzyqwv"').instead == "server xyzzyqwv"


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("url_fro", "url_for"),
        ("ulr_for", "url_for"),
        ("flask.URL_FRO()", "flask.URL_FOR()"),
        ("the_urk_for", "the_url_for"),
        ("read_cvs", "read_csv"),  # though most pages have "cves"
        ("url_for", None),
        ("dry_fro", None),  # no page has it so
        ("fro", None),
        ("read_csv", None),
    ],
)
def test_short_words_of_a_name_are_corrected(
    writer, make_page, query: str, meant: str | None
) -> None:
    """To a name that pages have, also by a word that says little elsewhere."""
    for n in range(5):
        writer.add(make_page(f"{n}", "The cves of dry wood for which one tries to read"))
    writer.add(make_page("name", "The url_for of it"))
    writer.add(make_page("csv", "Here read_csv reads"))
    writer.commit()
    found = Searcher.open(writer.directory).suggestion(query)
    assert (found and found.query) == meant


@pytest.fixture
def flags(writer, make_page) -> Searcher:
    """Two pages of a flag whose word is nearly the word of 250 others."""
    for n in range(250):
        writer.add(make_page(f"{n}", "an error of the compiler"))
    for n in range(2):
        writer.add(make_page(f"flag{n}", "gcc -Werror --enable-shared turns __init__ into faults"))
    writer.add(make_page("typo", "how it was shraed"))
    writer.commit()
    return Searcher.open(writer.directory)


@pytest.mark.parametrize("query", ["-Werror", "Werror", "-Werror -foo", "gcc -Werror"])
def test_a_word_that_pages_have_as_a_flag_is_right(flags, query: str) -> None:
    """However many pages have another word that is nearly the same."""
    assert flags.suggestion(query) is None
    found = flags.search(query)
    assert found.instead is None
    assert {hit.url[-5:-1] for hit in found.hits[:2]} == {"flag"}


@pytest.mark.parametrize(
    "query, meant",
    [
        ("-Wrror", "-Werror"),
        ("-WERRRO", "-WERROR"),
        ("--enable-Shraed", "--enable-Shared"),  # though a page has the word
        ("--enabel-shared eror", "--enable-shared error"),
        ("-Werror errro", "-Werror error"),
        ("__inti__", "__init__"),
    ],
)
def test_a_flag_is_corrected_to_a_flag(flags, query: str, meant: str) -> None:
    """With its dash and its capital letters."""
    found = flags.suggestion(query)
    assert found is not None
    assert found.query == meant


@pytest.mark.parametrize("query", ["--compilr", "-Dcompilr.level=1", "--list-errror", "-Compiler"])
def test_a_flag_is_corrected_to_nothing_else(flags, query: str) -> None:
    """It is not a misspelt word, and no word is like it."""
    assert flags.suggestion(query) is None


def test_only_the_word_that_is_wrong_is_replaced(searcher) -> None:
    """Not the same letters where they are excluded, or in a field."""
    found = searcher.suggestion("lisence -lisence")
    assert found is not None
    assert found.query == "license -lisence"
    found = searcher.suggestion("lisence url:1 -url:lisence")
    assert found is not None
    assert found.query == "license url:1 -url:lisence"


def test_words_that_none_can_beat_are_not_looked_up(searcher, monkeypatch) -> None:
    """A word on more than a hundredth of all pages is no mistake: no other is a hundred times as
    frequent."""
    looked_up = set[str]()
    frequencies = Searcher.frequencies

    def counted(self: Searcher, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        looked_up.update(words := list(words))
        return frequencies(self, words, field)

    monkeypatch.setattr(Searcher, "frequencies", counted)
    for one in (searcher, Searcher.of_workers([searcher], all_count)):
        assert one.suggestion("license relieve certificate") is None  # of 162: on 151, 2, 150
        assert looked_up == {"licenserelieve", "relievecertificate"}  # as one word
        looked_up.clear()
    assert searcher.suggestion("recieve") is not None  # on one
    assert looked_up


def test_among_many_pages_a_word_on_a_thousandth_of_them_is_right(searcher, monkeypatch) -> None:
    """A word a hundred times as frequent says little."""
    assert searcher.suggestion("recieve") is not None
    monkeypatch.setattr("larmspider.search.spelling.MANY_PAGES", 150)
    assert searcher.suggestion("recieve") is None
    assert searcher.suggestion("lisence") is not None


def test_a_suggestion_finds_something_with_the_filters(searcher) -> None:
    """A word of another language's pages is no help among the Russian ones."""
    assert searcher.suggestion("lisence", Filters.of(languages=["ru"])) is None
    assert searcher.suggestion("пажарная", Filters.of(languages=["ru"])) is not None
    assert searcher.suggestion("пожарная lisence", Filters.of(languages=["ru"])) is None
    assert searcher.suggestion("пожарная lisence").query == "пожарная license"


@pytest.mark.parametrize(
    "query",
    ["license", "license plates", '"license server"', "the license plates -mail", "nothing"],
)
@pytest.mark.parametrize("kinds", [[], ["html"], ["pdf"]])
def test_totals_are_those_of_a_search(searcher, query: str, kinds: list[str]) -> None:
    """In one index, and in several; with synonyms."""
    filters, (synonyms, _) = Filters.of(kinds=kinds), parse_synonyms(["plates, certificate"])
    for one in (searcher, Searcher.of_workers([searcher], all_count)):
        one = one.widened_by(synonyms)
        found = one.search(SearchRequest(query, filters=filters))
        assert one.totals(query, filters) == (found.total, found.total_all)


def test_a_query_error_is_one_here_too(searcher) -> None:
    """A query that cannot be searched cannot be improved."""
    with pytest.raises(QueryError):
        searcher.suggestion("title:")


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ("license", "license", 0),
        ("lisence", "license", 2),
        ("recieve", "receive", 1),
        ("ab", "ba", 1),
        ("abc", "ca", 3),
        ("", "ab", 2),
        ("kitten", "sitting", 3),
        ("aaaa", "bbbbbbbb", 3),
    ],
)
def test_distance(one: str, other: str, expected: int) -> None:
    """Changed, left out, put in, swapped; more than two count as three."""
    assert distance(one, other, 2) == min(expected, 3)
    assert distance(other, one, 2) == min(expected, 3)


@given(st.text("abc", min_size=1, max_size=6))
def test_edits_are_all_words_one_mistake_away(word: str) -> None:
    """And nothing else."""
    found = edits(word)
    assert word not in found
    assert all(distance(word, other, 1) == 1 for other in found)
    assert {word[1:], word + "z", "q" + word} <= found | {word}


class _Words(dict[str, int]):
    """A dictionary in memory."""

    sees_all = True
    one_commit = staticmethod(nullcontext)

    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        found = [word for word in self if word.startswith(head)]
        return found if len(found) <= most else None

    def frequencies(self, words: Iterable[str]) -> dict[str, int]:
        return {word: self[word] for word in words if word in self}


@given(st.text("abcd", min_size=4, max_size=7))
def test_words_one_mistake_away_are_found_wherever_the_mistake_is(word: str) -> None:
    """In the first letters, between them and the others, and behind them; made of letters."""
    one_away = edits(word)
    others = {f"{word}1", f"{word}xy", word[:5] + "ü" + word[5:], word, *edits(f"{word}d")}
    words = _Words(dict.fromkeys(one_away | others, 1))
    assert one_error(words, word).keys() == one_away


def test_where_very_many_words_begin_alike_they_are_not_looked_through() -> None:
    """Each possible word is looked up, and found."""

    class Crowded(_Words):
        def few_beginning_with(self, head: str, most: int, *, exactly: bool = False) -> None:
            assert most <= 10_000

    words = {f"user{n:06}": 1 for n in range(100)} | {"users": 1, "user": 2, "suer": 3, "uses": 4}
    for dictionary in (_Words(words), Crowded(words)):
        assert one_error(dictionary, "user") == {"users": 1, "suer": 3, "uses": 4}
        assert one_error(dictionary, "userd") == {"users": 1, "user": 2}


def test_words_two_mistakes_away_are_not_looked_for_among_very_many() -> None:
    """Of 20,000 that begin alike none is looked at; others are."""
    words = _Words({f"user{n:06}": 1 for n in range(20_000)} | {"usefulness": 3, "user000001x": 9})
    assert two_errors(words, "usefullnes") == {"usefulness": 3}
    assert two_errors(words, "user00001z") == {}
    few = _Words({"user000001x": 9})
    assert two_errors(few, "user00001z") == few


def test_words_two_mistakes_away_are_looked_for_where_few_begin_alike_or_not_at_all() -> None:
    """Each crowded head costs something the first time, too."""
    heads = list[str]()

    class Crowded(_Words):
        def few_beginning_with(self, head: str, most: int, *, exactly: bool = False) -> None:
            heads.append(head)

    assert two_errors(Crowded(), "usefullnes") == {}
    assert len(heads) == 5
    assert heads[0] == "usef"


def test_an_index_says_where_few_words_begin_alike(
    searcher, writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And looks through many words once, until there are fewer pages."""
    workers = Searcher.of_workers([searcher, searcher], all_count)
    words = ["license", "listening", "libraries"]
    for some in (searcher, workers):
        assert sorted(some.few_beginning_with("li", 9) or ()) == sorted(words)
        assert some.few_beginning_with("li", 3) is not None
        assert some.few_beginning_with("li", 2) is None
        assert some.few_beginning_with("zz", 2) == []
    looked_through = list[str]()
    whole = of_indexes.statistics
    monkeypatch.setattr(
        of_indexes, "statistics", lambda one: looked_through.append("") or whole(one)
    )
    assert searcher.few_beginning_with("li", 2) is None
    assert looked_through == []
    writer.add(make_page("new", "a new page"))
    writer.commit()
    assert searcher.few_beginning_with("li", 2) is None
    assert looked_through == []
    monkeypatch.setattr(of_indexes.Shard, "documents", lambda _: 1)
    assert searcher.few_beginning_with("li", 2) is None
    assert looked_through == [""]


def test_a_form_of_what_a_page_has_is_no_mistake(searcher) -> None:
    """The page that has another form of the word is found by it, and is not offered once more."""
    assert searcher.search(SearchRequest("certificates", verbatim=True)).total == 150
    assert searcher.occurrences("certificates") == 150
    assert searcher.suggestion("certificates") is None


def test_a_word_with_related_words_is_no_mistake(searcher, writer, make_page) -> None:
    """Only as it is spelt in the list of related words; a flag may be a mistake in any case."""
    writer.add(make_page("de", "wir losen, mit --short"))
    writer.commit()
    assert searcher.suggestion("löschen") is None
    assert searcher.search("Seite löschen").instead is None
    assert searcher.suggestion("loschen").query == "losen"
    assert searcher.suggestion("--sort").query == "--short"
