"""larmspider/learned/spellings/sessions.py: which parameters are session ids, by what pages
show."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from larmspider.extraction.texts.fingerprint import RecentPages
from larmspider.items import Link, Page
from larmspider.learned.spellings.sessions import SessionNames
from larmspider.urls.session_ids import IN_PATH, tokens_of, without
from tests.support.frontier.site import Answer, Site


def token(number: int) -> str:
    return f"{number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF:016x}"


def shown(pages: Iterator[tuple[str, list[str]]]) -> list[str]:
    names = SessionNames()
    return [name for url, links in pages for name in names.saw(url, links)]


def page(n: int, own: str, its: Callable[[int], str]) -> tuple[str, list[str]]:
    return f"http://h/s?n={n}&t={own}", [f"http://h/s?n={m}&t={its(m)}" for m in range(5)]


def test_a_value_that_all_links_of_a_page_have_and_it_has_not_is_a_session() -> None:
    pages = (page(n, token(n), lambda _, n=n: token(100 + n)) for n in range(1, 5))  # type: ignore[misc]
    assert shown(pages) == ["t"]


@pytest.mark.parametrize(
    "its",
    [
        lambda n, _: token(n),  # a commit, the same in all links
        lambda _, m: token(500 + m),  # the id of each target
        lambda _, m: token(900),  # one value for all pages
        lambda n, _: f"2026-0{n}",  # no value drawn at random
    ],
)
def test_other_parameters_are_none(its: Callable[[int, int], str]) -> None:
    pages = (page(n, token(n), lambda m, n=n: its(n, m)) for n in range(1, 9))  # type: ignore[misc]
    assert shown(pages) == []


def test_tokens_and_what_is_left() -> None:
    found = tokens_of("http://h/a?n=1&t=9f86d081884c7d65&day=2026-01-31")
    assert found == {"t": "9f86d081884c7d65"}
    assert tokens_of("http://h/a?q=international") == {}
    assert without("http://h/a?n=1&t=9&b", ("t",)) == "http://h/a?n=1&b"
    assert without("http://h/a?t=9", ("t",)) == "http://h/a"
    assert tokens_of("http://h/(S(lit3py55t21z5v55vlm25s55))/a?n=1") == {
        IN_PATH: "lit3py55t21z5v55vlm25s55"
    }
    assert without("http://h/(S(lit3py55t21z5v55vlm25s55))/a?n=1", (IN_PATH,)) == "http://h/a?n=1"
    assert tokens_of("http://h/a;t=9f86d081884c7d65/b;n=1") == {";t": "9f86d081884c7d65"}
    assert without("http://h/a;t=9f86d081884c7d65/b;n=1?t=1", (";t",)) == "http://h/a/b;n=1?t=1"


@pytest.mark.parametrize(
    ("url", "names", "bare"),
    [
        ("http://h/9f86d081884c7d65/b", ["/*16"], "http://h/b"),
        ("http://h/9f86d081884c7d65", ["*16"], "http://h/"),
        ("http://h/s/9f86d081/b/c", ["/s/*8"], "http://h/s/b/c"),
        ("http://h/p7/9f86d081?n=1", ["/*/*8", "*8"], "http://h/p7?n=1"),
        ("http://h/s/0b1f9d3e-77aa-4b52-9c11-53f08e2c7a10/b", ["/s/*36"], "http://h/s/b"),
        ("http://h/s/-gAgvf0-qAchitsa5Bey_u/b", ["/s/*22"], "http://h/s/b"),
        ("http://h/s/aBcDefGhij/b", ["/s/*10"], "http://h/s/b"),
        ("http://h/s/1764501234/b", ["/s/*10"], "http://h/s/b"),
        ("http://h/s/9f86d081;n=1/b", ["/s/*8"], "http://h/s;n=1/b"),
        ("http://h/my-forum-9f86d081-x/b", ["forum-*8"], "http://h/my-forum--x/b"),
        ("http://h/t5-9f86d081.html", ["*-*8"], "http://h/t5-.html"),
        ("http://h/~9f86d081/b", ["~*8"], "http://h/~/b"),
        ("http://h/9f86d081,t5", ["^*8"], "http://h/,t5"),
    ],
)
def test_a_segment_that_is_a_token_is_named_by_its_place(
    url: str, names: list[str], bare: str
) -> None:
    assert list(tokens_of(url)) == names
    assert [without(url, [name]) for name in names] == [bare] * len(names)


@pytest.mark.parametrize(
    "path",
    [
        "2026-01-31-how-to-install/b",
        "chapter-12/b",
        "20260131/b",
        "2026-01-31/b",
        "international/b",
    ],
)
def test_slugs_and_dates_are_no_tokens(path: str) -> None:
    assert tokens_of(f"http://h/{path}") == {}


class SessionSite(Site):
    """Shows each page to the merger, as the middleware does."""

    def step(self) -> bool:
        before, lease = len(self.fetched), self.frontier.pop
        leases = []
        self.frontier.pop = lambda: leases.append(lease()) or leases[-1]  # type: ignore[method-assign]
        handler, self.answers = self.handler, list[Answer]()
        self.handler = lambda target: self.answers.append(handler(target)) or self.answers[-1]  # type: ignore[func-returns-value]
        try:
            went_on = super().step()
        finally:
            self.frontier.pop, self.handler = lease, handler  # type: ignore[method-assign]
        if len(self.fetched) > before:
            urls = [f"http://h{target}" for target in self.answers[0].links]
            links = [Link(url, *self.forms(url)[:1], exact=self.forms(url).exact) for url in urls]
            self.merger.saw(leases[0].entry, Page(leases[0].url, links=links))
        return went_on


def run(text: Callable[[str], str], link: str, items: int = 8) -> SessionSite:
    numbers = count(1)

    def answer(target: str) -> Answer:
        new = token(next(numbers))
        some = items if len(here.fetched) < 40 else 0  # else it has no end
        links = tuple(link.format(n=n, t=new, u=new[::-1]) for n in range(some))
        name = re.split("[&;.-]", target.partition("n=")[2])[0]
        return Answer(f"{text(target)} item {name} visitor {next(numbers)}", links=links)

    here = SessionSite(answer)
    here.add("/")
    here.run()
    return here


@pytest.mark.parametrize(
    "link",
    [
        "/s?n={n}&trk={t}",
        "/s?n={n}&trk={t}&ref={u}",
        "/(S({t}))/n={n}",
        "/s/n={n};trk={t}",
        "/{t}/n={n}",
        "/s/{t}/{n}",
        "/{n}x/{t}",
        "/forum-{t}-x/n={n}",
        "/forum_sid={t}_n={n}",
        "/n={n}-{t}.html",
        "/~{t}/n={n}",
        "/show,{t},n={n}.htm",
    ],
)
def test_session_ids_of_any_name_do_not_make_a_site_infinite(link: str) -> None:
    """Beside a counter on each page, and in two parameters at once."""
    here = run(lambda _: "text", link)
    assert here.rules[0].startswith("session-id proven")
    assert len(here.stored) == 1 + 8, here.stored
    assert len(here.fetched) < 60


def test_pages_that_differ_by_such_a_parameter_are_all_stored() -> None:
    """The text depends on the parameter, so the rule goes off."""
    here = run(lambda target: f"secret {target.partition('trk=')[2]}", "/s?n={n}&trk={t}")
    assert here.rules[0].startswith("session-id off")
    assert here.counts.merged == 0


def test_what_was_learned_outlasts_a_restart() -> None:
    here = run(lambda _: "text", "/s?n={n}&trk={t}")
    here.frontier.checkpoint({})
    here.start()
    here.merger.trials.recent = RecentPages()
    before = len(here.fetched)
    here.add(*(f"/s?n={n}&trk={token(7_000 + n)}" for n in range(8)))
    here.run()
    assert len(here.fetched) - before <= 1, "one in a hundred is looked at"
    assert here.merger.of("h:80").sessions == ["trk"]


@pytest.mark.parametrize("piece", ["a1a1a1a1-", "a1a1a1a1/", "a1a1a1a1~", f"{'a1' * 30}-"])
@pytest.mark.parametrize("length", [2_000, 60_000])
def test_long_urls_take_no_long_time(piece: str, length: int) -> None:
    """A page may have thousands of such links."""
    urls = [f"http://h/{piece * (length // len(piece))}{n}" for n in range(20)]
    began = time.thread_time()
    names = [tokens_of(url) for url in urls]
    assert all(without(url, found) for url, found in zip(urls, names, strict=True))
    assert time.thread_time() - began < 0.5
