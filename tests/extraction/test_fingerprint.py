"""Two fetches: one page, or two?"""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable

import msgspec
import pytest

from larmspider.extraction.pages.html import extract
from larmspider.extraction.texts.fingerprint import (
    MAX_NUMBERS,
    PAIRS,
    Details,
    RecentPages,
    Volatile,
    asks_password,
    fingerprint,
    link_signature,
    same_page,
    signature,
    simhash,
    was_noindex,
)
from larmspider.items import Link, Page

LONG = "Enough words that the text alone says which page it is, and no link need be asked. " * 4


def page(text: str = "", title: str = "", body: bytes = b"", links: tuple[str, ...] = ()) -> Page:
    return Page(
        "http://h/",
        text=text,
        title=title,
        body=body,
        links=[Link(url, url.partition("?sid=")[0]) for url in links],
    )


@pytest.mark.parametrize(
    "one, other, same",
    [
        (page(LONG, "t"), page(LONG, "t", b"<p nonce=1>"), True),
        (page(LONG, "t"), page(LONG, "u"), False),
        (page(LONG), page(LONG + "!"), False),
        (page(LONG, links=("http://h/a",)), page(LONG, links=("http://h/b",)), True),
        (page("menu", links=("http://h/a",)), page("menu", links=("http://h/b",)), False),
        (
            page("menu", links=("http://h/a?sid=1",)),
            page("menu", links=("http://h/a?sid=2",)),
            True,
        ),
        (page(body=b"<app src=a>"), page(body=b"<app src=b>"), False),
        (page(body=b"\x89PNG"), page(body=b"\x89PNG"), True),
        (page(LONG + "\ud800"), page(LONG + "\ud800"), True),
    ],
)
def test_text_counts_and_markup_does_not(one: Page, other: Page, same: bool) -> None:
    """In a page with little text the links count too, in a page without either the bytes."""
    assert (fingerprint(one) == fingerprint(other)) is same


@pytest.mark.parametrize(
    "one, other, differing",
    [
        ("at 12:30", "at 9:05", 2),
        ("of 2026-11-22", "of 2026-12-22", 1),
        ("id 4F1C9A77 here", "id 8c0d11 here", 1),
        ("chapter 1", "chapter 1", 0),
        ("chapter 1", "Chapter 1", None),
        ("1 of 2", "1 of", None),
    ],
)
def test_numbers_are_words_with_a_digit(one: str, other: str, differing: int | None) -> None:
    """Dates, counters and ids; None: more than these differs."""
    first, second = Details.of(page(LONG + one)), Details.of(page(LONG + other))
    assert first is not None
    assert second is not None
    found = first.differing(second)
    assert (None if found is None else len(found)) == differing


@pytest.mark.parametrize("text", ["1 " * (MAX_NUMBERS + 1), "x" * (2 << 20)])
def test_too_much_to_compare_is_not_compared(text: str) -> None:
    """A page with thousands of numbers, or of megabytes."""
    assert Details.of(page(text)) is None


def test_the_expression_for_numbers_is_linear() -> None:
    """A word of a million letters, with and without a digit at its end; else it takes hours."""
    for end in ("", "1"):
        assert Details.of(page("x" * 1_000_000 + end)) is not None


def test_numbers_that_are_known_to_change_do_not_count() -> None:
    """All others do."""
    texts = "12 items at 9:05 today", "12 items at 10:17 today", "13 items at 9:05 today"
    first, later, other = (page(LONG + text) for text in texts)
    details = [Details.of(one) for one in (first, later)]
    changing = details[0].differing(details[1])
    assert fingerprint(first, changing) == fingerprint(later, changing)
    assert fingerprint(first, changing) != fingerprint(other, changing)


def test_so_much_text_of_recent_pages_is_kept() -> None:
    """The latest, whatever the pages consist of; one that is put again counts once."""
    recent = RecentPages(100_000)
    for number in range(500):
        recent.put(b"%d" % number, page("1" * 500))
        recent.put(b"again", page("1" * 2_000))
    assert 50 < len(recent) < 100
    assert recent.details(b"499") is not None
    assert recent.details(b"1") is None
    recent.put(b"long", page("1" * 200_000))
    assert len(recent) == 0
    for number in range(500):
        recent.put(b"%d" % number, Page("http://a/", links=[Link("http://a/b")] * 10))
    assert len(recent) < 20


class Wiki:
    """Pages with a clock, a count of users, a token in text and links, and the time it took."""

    def __init__(self, pages: int) -> None:
        self.random = random.Random(1)
        self.now = 1.7e9
        self.words = {number: self._article(number) for number in range(pages)}

    def _article(self, number: int) -> list[str]:
        chance = random.Random(number)
        words = [chance.choice(LONG.split()) for _ in range(chance.randrange(3, 200))]
        return [*words, "costs", f"{chance.randrange(10, 99)}.50", "EUR,", "phone", f"+49-{number}"]

    def fetch(self, number: int) -> Page:
        self.now += 2
        some, then = self.random, time.gmtime(self.now)
        token = "".join(some.choices(string.ascii_letters + string.digits, k=22))
        body = f"""<title>Page {number}</title><p>{time.strftime("%H:%M:%S", then)}</p>
            <a href="/do?sectok={token}&page={number}">Index</a> <a href=/>Home</a>
            <main>{" ".join(self.words[number])}</main>
            <p>{time.strftime("%a, %d %b %Y %H:%M:%S GMT", then)}<p>token {token} of this form
            <footer>Users online: {some.randrange(2, 999)} ({some.randrange(99)} guests).
            Generated in {some.random():.3f} s</footer>"""
        return extract(body.encode(), f"http://wiki/{number}", None)

    def change(self, number: int) -> None:
        """One word, or one digit of a number."""
        words = self.words[number]
        at = self.random.randrange(len(words))
        turned = words[at].translate(str.maketrans(string.digits, "1234567890"))
        words[at] = turned if turned != words[at] else f"{words[at]}s"


def test_what_changes_from_fetch_to_fetch_is_learned_and_all_else_is_news() -> None:
    """Three passes, days apart, over a wiki whose pages are never the same; then one word of each
    page changes."""
    wiki, volatile, last = Wiki(100), Volatile(), {}
    recognised = asked_twice = 0
    for _ in range(3):
        recognised = 0
        for number in wiki.words:
            found = wiki.fetch(number)
            now = signature(found, volatile), link_signature(found, volatile)
            if now == last.get(number):
                recognised += 1
            elif number in last and volatile.wants_pair(found.url):
                asked_twice += 1
                volatile.learn(found, wiki.fetch(number))
                volatile = Volatile.of(volatile.kept())
            last[number] = signature(found, volatile), link_signature(found, volatile)
        wiki.now += 100_000
    assert recognised >= 99
    assert asked_twice == PAIRS
    for number in wiki.words:
        wiki.change(number)
    seen = sum(signature(wiki.fetch(one), volatile) != last[one][0] for one in wiki.words)
    assert seen == 100


@pytest.mark.parametrize("title", ["({}) {}", "{} {}", "{1} ({0})", "{1} - {0}"])
def test_a_counter_at_an_edge_of_the_title_is_learned_for_all_pages(title: str) -> None:
    """Where the words beside it are the page's own: its name, and the beginning of its text."""
    chance, volatile = random.Random(3), Volatile()

    def fetch(name: str, count: int) -> Page:
        words = " ".join(random.Random(name).choices(LONG.split(), k=80))
        markup = f"<title>{title.format(count, name)}</title><p>{name} has 17 {words}"
        return extract(markup.encode(), f"http://h/{name}", None)

    for name in ("alpha", "beta", "gamma"):
        volatile.learn(fetch(name, chance.randrange(99)), fetch(name, chance.randrange(100, 200)))
    stored, later = fetch("delta", 5), fetch("delta", 7)
    assert same_page(stored, later, volatile)
    later.text = later.text.replace("17", "18")
    assert not same_page(stored, later, volatile)


def test_a_signature_is_the_fingerprint_while_nothing_is_volatile() -> None:
    """The first visits can then be compared."""
    assert signature(page(LONG)) == fingerprint(page(LONG)) == signature(page(LONG), Volatile())


def test_what_is_remembered_of_a_host_is_bounded() -> None:
    """Pages of which every number changes, at thousands of URLs."""
    volatile = Volatile()
    for turn in range(20):
        text = " ".join(f"word{turn} and {{}} of" for _ in range(50))
        first, second = (page(text.replace("{}", end)) for end in ("1", "2"))
        first.url = f"http://h/folder{turn}/page"
        volatile.learn(first, second)
    assert len(msgspec.msgpack.encode(volatile.kept())) < 8_000


def test_links_have_a_signature_of_their_own() -> None:
    """Where they lead, in their order."""
    one, other = page(LONG, links=("http://h/a",)), page(LONG, links=("http://h/b",))
    assert signature(one) == signature(other)
    assert link_signature(one) != link_signature(other)
    assert link_signature(one) == link_signature(page("", links=("http://h/a",)))


@pytest.mark.parametrize(
    "change",
    [
        lambda page: page.links[0].__setattr__("anchor", "the old"),
        lambda page: page.__setattr__("description", "another"),
        lambda page: page.__setattr__("author", "another"),
        lambda page: page.__setattr__("noindex", True),
        lambda page: page.__setattr__("moved", True),
        lambda page: page.__setattr__("rest", [(0, 6)]),
    ],
)
def test_what_else_is_found_in_the_search_has_its_share(change: Callable[[Page], None]) -> None:
    """Words of the text may belong to a link, or to the navigation, and did not before."""
    one, other = page(LONG, links=("http://h/a",)), page(LONG, links=("http://h/a",))
    change(other)
    assert signature(one) == signature(other)
    assert link_signature(one) != link_signature(other)
    assert was_noindex(link_signature(other)) is other.noindex


def test_links_that_say_a_time_are_the_same_where_times_are_volatile() -> None:
    one, other = page(LONG, links=("http://h/a",)), page(LONG, links=("http://h/a",))
    one.links[0].anchor, other.links[0].anchor = "4 comments", "5 comments"
    assert link_signature(one) != link_signature(other)
    volatile = Volatile([b"some"])
    assert link_signature(one, volatile) == link_signature(other, volatile)


def test_links_are_what_the_page_says_of_them() -> None:
    """Not the URL that stands for one by now; and another session is no other link."""
    one, other = page(LONG, links=("http://h/A",)), page(LONG, links=("http://h/A",))
    other.links[0].exact = "http://h/a"
    assert link_signature(one) == link_signature(other)
    mine, its, longer = (
        Page("http://h/", links=[Link(f"http://h/p;id={session}?q={q}", f"http://h/p?q={q}")])
        for session, q in ((1, 2), (3, 2), (1, 4))
    )
    assert link_signature(mine) == link_signature(its) != link_signature(longer)


@pytest.mark.parametrize(
    "form", ["/(S({}))/p{}", "/{}/p{}", "/p{1};trk={0}", "/p{1};trk={0}?a=1", "/p{1}?trk={0}"]
)
def test_another_session_in_each_link_is_no_change(form: str) -> None:
    stored, first, second, later, news = (
        page(LONG, links=[f"http://h{form.format(session, number)}" for number in numbers])
        for session, numbers in (
            ("9f86d081884c7d65", "123"),
            ("2c26b46b68ffc68f", "123"),
            ("fcde2b2edba56bf4", "123"),
            ("18ac3e7343f01689", "123"),
            ("4b227777d4dd1fc6", "124"),
        )
    )
    volatile = Volatile()
    assert not same_page(stored, first, volatile)
    assert volatile.learn(first, second, stored)
    assert same_page(stored, later, volatile)
    assert not same_page(stored, news, volatile), "a link has come"


def test_a_commit_in_each_path_is_no_session_where_pages_show_the_same() -> None:
    one, other = (page(LONG, links=[f"http://h/{name}/p"]) for name in (40 * "a1", 40 * "b2"))
    volatile = Volatile()
    volatile.learn(one, one, one)
    assert not same_page(one, other, volatile)


def test_the_expressions_for_volatile_words_are_linear() -> None:
    """Megabytes without white space, or of dates."""
    volatile = Volatile()
    volatile.learn(page(LONG + "it is 12:01 now, sir"), page(LONG + "it is 12:02 now, sir"))
    for text in ("x" * 1_000_000, "Mon " * 250_000 + "12:03 now, sir", "a1 " * 300_000):
        assert len(signature(page(text), volatile)) == 8


def bits_between(one: str, other: str) -> int:
    return ((simhash(one) ^ simhash(other)) & (1 << 64) - 1).bit_count()


def test_texts_that_are_nearly_equal_have_simhashes_that_are() -> None:
    words = [f"word{n}" for n in range(500)]
    changed = [*words[:250], "another", *words[251:]]
    assert bits_between(" ".join(words), " ".join(changed)) <= 6
    assert bits_between(" ".join(words), "  ".join(words).upper()) == 0
    assert bits_between(" ".join(words), " ".join(reversed(words))) > 15
    one = "".join(chr(0x4E00 + 7 * n) for n in range(300))  # no spaces between words
    assert bits_between(one, one[:150] + "\u3042" + one[151:]) <= 6
    assert bits_between(one, one[::-1]) > 15
    assert {-(2**63) <= simhash(text) < 2**63 for text in ("", "a", "a b", "\ud800")} == {True}


def test_a_row_of_words_says_as_much_once_as_often() -> None:
    """A table of nothing but such a row beside other words is none of another one."""
    row = "offset of dates "
    words = " ".join(f"word{n}" for n in range(40))
    others = " ".join(f"other{n}" for n in range(40))
    assert bits_between(f"{words} {row * 40}", f"{words} {row * 400}") == 0
    assert bits_between(f"{words} {row * 400}", f"{others} {row * 400}") > 15


def test_long_names_are_words_told_apart_by_their_middle() -> None:
    """Letter by letter all names of a manual would be like each other."""

    def names(first: str, *, step: int = 1) -> str:
        return " ".join(f"example.manual.{first}{n}.attributes" for n in range(0, 100 * step, step))

    assert bits_between(names("Page"), names("Part")) > 15
    assert bits_between(names("Page"), names("Page", step=11)) > 15
    assert bits_between(names("Page"), f"{names('Page')} example.manual.Page") <= 6


@pytest.mark.parametrize(
    ("markup", "asks"),
    [
        (b"<input type=password>", True),
        (b"<INPUT name=x TYPE = 'Password'>", True),
        (b"<input\nid=a class='b'\ntype=\"password\" name=p>", True),
        (b"<input " + b"x" * 990 + b" type=password>", True),
        (b"<input " + b"x" * 1_010 + b" type=password>", False),
        (b"<input value='>' type=password>", False),
        (b"<input type=password1>", False),
        (b"<input mytype=password>", False),
        (b"<inputs type=password>", False),
        (b"<p>type=password <input type=text> password", False),
        (b"<input name=password> <b type=x> <input type=password>", True),
        (b"<input " * 1_000_000 + b"password", False),
        (b"type=password " * 500_000, False),
    ],
)
def test_a_field_for_a_password(markup: bytes, asks: bool) -> None:
    """The last two took seconds and minutes, on the crawl's thread."""
    began = time.process_time()
    assert asks_password(Page("http://h/", body=markup)) is asks
    assert time.process_time() - began < 0.5
