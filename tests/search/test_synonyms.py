"""Synonyms widen a query, both ways, and a bad line of their file is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files

import pytest

from larmspider.index.access import Access
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.query import parse_query
from larmspider.search.reading import all_count
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.search.synonyms import MAX_ALSO, parse_synonyms, respelled, with_related
from larmspider.search.why import ALL_WORDS, OR_RELATED

LINES = """\
# names of ours
vpn, remote access, Heimarbeit
C++, cpp
payslip, café
"""


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    texts = {
        "vpn": "the vpn of the house",
        "remote": "how to get remote access",
        "apart": "access to the remote site",
        "both": "remote access is by vpn",
        "home": "Heimarbeit",
        "cafe": "the Café",
        "c": "c is a letter",
        "cpp": "we write cpp here",
        "login": "vpn login",
    }
    directory = tmp_path_factory.mktemp("synonyms") / "index"
    with IndexWriter(directory) as writer:
        for name, text in texts.items():
            writer.add(Page(f"http://wiki.example/{name}", text=text, body=text.encode()))
    return Searcher.open(directory).widened_by(parse_synonyms(LINES.splitlines())[0])


def names(searcher: Searcher, query: str, **more: bool) -> set[str]:
    return {
        hit.url.rpartition("/")[2] for hit in searcher.search(SearchRequest(query, **more)).hits
    }


def test_a_query_finds_pages_with_the_other_words_of_its_line(searcher: Searcher) -> None:
    """Both directions; a phrase is found side by side; capitals and accents do not count."""
    assert names(searcher, "VPN") == {"vpn", "remote", "both", "home", "login"}
    assert names(searcher, "heimarbeit") == names(searcher, "VPN")
    assert names(searcher, "remote access") == names(searcher, "VPN") | {"apart"}
    assert names(searcher, "cafe") == {"cafe"}
    assert names(searcher, "payslip") == {"cafe"}
    assert names(searcher, "C++") == {"cpp", "c"}
    assert names(searcher, "c") == {"c"}  # is not C++


def test_a_synonym_stands_for_the_word_where_all_words_are_asked_for(searcher: Searcher) -> None:
    """The count of pages with all words; the word itself counts more than its synonym."""
    assert searcher.search("Heimarbeit login").total_all == 1
    assert searcher.search("remote access login").hits[0].url.endswith("/login")
    assert searcher.search("remote access").total_all == 6
    assert searcher.search("heimarbeit").hits[0].url.endswith("/home")
    assert searcher.search("heimarbeit").also == ("vpn", "remote access")


@pytest.mark.parametrize("query", ['"vpn"', "title:vpn", "vpn~1 -remote"])
def test_what_is_taken_exactly_is_not_widened(searcher: Searcher, query: str) -> None:
    assert "home" not in names(searcher, query)


def test_what_is_typed_is_searched_alone_on_request(searcher: Searcher) -> None:
    assert names(searcher, "heimarbeit", verbatim=True) == {"home"}


def test_a_word_with_synonyms_is_no_mistake(searcher: Searcher) -> None:
    """Though no page has it."""
    assert searcher.suggestion("payslip") is None
    assert searcher.search("payslip").instead is None


def test_snippets_mark_the_synonym(searcher: Searcher) -> None:
    (hit,) = searcher.search("payslip").hits
    assert hit.snippet.marked("*", "*") == "the *Café*"
    mark = searcher.marker("heimarbeit").marked
    assert mark("access by remote").highlights == ()
    assert mark("by remote access").marked("*", "*") == "by *remote* *access*"


def test_a_synonym_opens_nothing_that_a_reader_may_not_see(searcher: Searcher) -> None:
    assert searcher.seen_by(Access(("wiki.example",))).search("payslip").total == 0


def test_bad_lines_are_named_and_the_rest_counts() -> None:
    """By their number, with the expected form."""
    lines = ["vpn", "a, , b", "a => b", "one two three four five six seven, x", "a, A", "x, y"]
    synonyms, problems = parse_synonyms([*lines, ", ".join(f"w{n}" for n in range(17))])
    assert [number for number, _ in problems] == [1, 2, 3, 4, 5, 7]
    for (_, problem), words in zip(
        problems, ["expected 2 to 16", "is missing", "without =>", "at most 6 words"], strict=False
    ):
        assert words in problem
    assert set(synonyms.others) == {("x",), ("y",)}


def test_many_synonyms_are_no_reason_to_refuse_a_query() -> None:
    """Only a limited number of words is added to a query."""
    lines = [f"w{n}, " + ", ".join(f"a b c{n} {m}" for m in range(15)) for n in range(20)]
    synonyms, problems = parse_synonyms(lines)
    assert not problems
    clauses = synonyms.widened(parse_query(" ".join(f"w{n}" for n in range(20))))
    assert sum(len(text.split()) for clause in clauses for text in clause.also) <= MAX_ALSO


@pytest.fixture
def spelled(writer: IndexWriter, make_page: Callable[..., Page]) -> Searcher:
    for name, text in {
        "email": "An email.",
        "e-mail": "An e-mail, with RFC 1034 in it.",
        "rfc": "The file rfc1034 of him, with in and of.",
        "number": "RFC numbers: 1034",
        "within": "It stands within the letter.",
        "long": "A long event of a vent and e. Along it.",
        "threads": "It is multithreaded",
        "bedroom": "A bedroom with a lamp, inbed, lampin and into.",
    }.items():
        writer.add(make_page(name, text))
    writer.commit()
    return Searcher.open(writer.directory)


@pytest.mark.parametrize(
    ("query", "also", "found"),
    [
        ("e-mail", ("email",), {"email", "e-mail"}),
        ("an E-Mail?", ("EMail",), {"email", "e-mail"}),
        ("email", ("e-mail",), {"email", "e-mail"}),
        ("RFC 1034", ("RFC1034",), {"e-mail", "number", "rfc"}),
        ("rfc-1034", ("rfc1034",), {"e-mail", "number", "rfc"}),
        ("rfc1034", ("rfc 1034",), {"e-mail", "rfc"}),
        ("multi-threaded", ("multithreaded",), {"threads"}),
        ("bed room", ("bedroom",), {"bedroom"}),
        ("the lamp bed room", ("bedroom",), {"bedroom"}),
        ("in bed", (), set()),
        ("lamp in", ("lampin",), {"bedroom"}),
        ("within", (), {"within"}),
        ("event", (), {"long"}),
        ("along", (), {"long"}),
        ('"e-mail"', (), {"e-mail"}),
        ("email -file", ("e-mail",), {"email", "e-mail"}),
    ],
)
def test_a_word_is_found_in_its_other_spelling(
    spelled: Searcher, query: str, also: tuple[str, ...], found: set[str]
) -> None:
    """Where pages have that, together or side by side; it counts as the word."""
    results = spelled.search(query)
    assert results.also == also
    every = {hit.normalized.rsplit("/", 1)[1] for hit in results.hits[: results.total_all]}
    assert every == found
    assert spelled.search(SearchRequest(query, verbatim=True)).also == ()


def test_of_a_word_in_another_spelling_no_other_is_suggested(
    writer: IndexWriter, make_page: Callable[..., Page]
) -> None:
    writer.add(make_page("a", "An e-mail and a mail."))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    assert searcher.suggestion("email") is None
    assert Searcher.of_workers([searcher], all_count).suggestion("email") is None


def test_words_that_people_use_for_one_another_order_what_is_found(
    writer: IndexWriter, make_page: Callable[..., Page]
) -> None:
    """They find and count nothing more; titles have them too; exact words are not widened."""
    writer.add(make_page("paint", "one paints the password of a user", title="Paint a user"))
    writer.add(make_page("alter", "one alters the password of a user", title="Alter a user"))
    writer.add(make_page("other", "one alters it", title="Alter"))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    results = searcher.search("change the password of a user")
    assert [hit.title for hit in results.hits[:2]] == ["Alter a user", "Paint a user"]
    assert "Alter" not in [hit.title for hit in results.hits]
    assert (results.also, results.total_all) == ((), 0)
    assert results.hits[0].score > 1.2 * results.hits[1].score
    (why,) = searcher.examined(
        SearchRequest("change the password"), [results.hits[0].normalized]
    ).values()
    assert why.missing == ["change"]
    assert OR_RELATED in why.parts
    first, second, *_ = searcher.search(
        SearchRequest("change the password of a user", verbatim=True)
    ).hits
    assert first.score == pytest.approx(second.score, rel=0.05)


@pytest.mark.parametrize("query", ["change", "change it", "to change", 'change "the password"'])
def test_names_and_phrases_have_no_related_words(query: str) -> None:
    """Two words that matter make a question."""
    assert not any(clause.related for clause in with_related(parse_query(query)))


def test_related_words_are_those_of_words_that_matter() -> None:
    log, _, vpn = with_related(parse_query("log in vpn"))
    assert "sign in" in log.related
    assert not vpn.related
    show, *_ = with_related(parse_query("how to show the calendar view"))
    assert not show.related


@pytest.mark.parametrize(
    ("query", "related"),
    [
        ("deleted user", "remove"),
        ("deleting users", "account"),
        ("e-mails to send", "mail"),
        ("wie ändere ich ein Passwort", "kennwort"),
        ("wie andere ich ein Passwort", "bearbeiten"),
    ],
)
def test_any_form_of_a_word_has_its_related_words(query: str, related: str) -> None:
    """As people ask with it, with accents or without."""
    found = {one for clause in with_related(parse_query(query)) for one in clause.related}
    assert related in found


def test_a_query_has_no_more_related_words_than_synonyms() -> None:
    """Nor such as are typed."""
    words = [
        "change",
        "alter",
        "remove",
        "show",
        "fetch",
        "find",
        "run",
        "stop",
        "error",
        "fix",
        "copy",
        "replace",
        "allow",
    ]
    related = [
        one for clause in with_related(parse_query(" ".join(words))) for one in clause.related
    ]
    assert len(related) == MAX_ALSO
    assert not set(related) & set(words)


def test_an_operators_synonyms_take_the_place_of_related_words() -> None:
    synonyms, _ = parse_synonyms(["change, swap"])
    change, *_ = with_related(synonyms.widened(parse_query("change password")))
    assert (change.also, change.related) == (("swap",), ())
    synonyms, _ = parse_synonyms(["home login, portal"])
    home, login, page = with_related(synonyms.widened(parse_query("home login password")))
    assert (home.covers, login.related) == (2, ())
    assert page.related


def test_each_line_of_related_words_is_good() -> None:
    text = (files("larmspider.search") / "related.txt").read_text(encoding="utf-8")
    synonyms, problems = parse_synonyms(text.splitlines())
    assert problems == []
    assert synonyms.others["change",] == ("alter", "modify", "edit", "adjust")


def test_a_page_with_both_words_has_all_though_they_are_one_elsewhere(writer, make_page) -> None:
    """Or with the one: else a page that says one of them often comes first."""
    for n in range(20):
        writer.add(make_page(f"other{n}", f"Something else {n}."))
    writer.add(make_page("stamps", "Stamp, stamp and stamp again."))
    writer.add(make_page("both", "The time, and then of the stamp. " + "So. " * 9))
    writer.add(make_page("joined", "A timestamp. " + "So. " * 9))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    names = ("both", "joined", "stamps")
    found = searcher.examined(
        SearchRequest("time stamp"), [f"http://wiki.example/{name}" for name in names]
    )
    assert [ALL_WORDS in one.parts for one in found.values()] == [True, True, False]


class Pages(dict[str, int]):
    """How many have each word."""

    def frequencies(self, words: Iterable[str]) -> dict[str, int]:
        return {word: self[word] for word in words if word in self}

    def words(self, text: str) -> list[str]:
        return text.lower().split()

    def has_side_by_side(self, words: Sequence[str]) -> bool:
        raise AssertionError(words)


@pytest.mark.parametrize(
    "having, also",
    [
        ({"time": 5_000, "stamp": 1_000, "timestamp": 1}, ("timestamp",)),
        ({"time": 5_000, "stamp": 2_000, "timestamp": 20}, ("timestamp",)),
        ({"time": 5_000, "stamp": 2_000, "timestamp": 19}, ()),
        ({"time": 5_000, "timestamp": 19}, ("timestamp",)),
    ],
)
def test_two_frequent_words_are_one_by_chance(
    having: dict[str, int], also: tuple[str, ...]
) -> None:
    """Where hardly a page of those that have them has it."""
    time, _ = respelled(parse_query("time stamp"), Pages(having))
    assert time.also == also
