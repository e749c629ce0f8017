"""larmspider/fetch/sites/session.py: signing in, step by step, without a network."""

from __future__ import annotations

import time
from math import inf

import pytest
from scrapy.http import HtmlResponse, Response

from larmspider.fetch.sites.lookup import Sites
from larmspider.fetch.sites.model import Login, Secret, SiteOptions, SiteRule
from larmspider.fetch.sites.session import (
    AGAIN_SECS,
    MAX_FAILURES,
    MAX_IN_VAIN,
    Purpose,
    Session,
    Sessions,
    Trouble,
)
from larmspider.urls.host_pattern import HostPattern

NOW = 1_000_000.0
ORIGIN = ("http", "wiki", 80)
LOGIN = Login("/in?do=login", (("u", Secret("joe")), ("p", Secret("canary"))), "Hello joe")
FORM = (
    '<form action="/in" method="post"><input type=hidden name=token value="t1"><input name=u>'
    "<input type=password name=p><input type=checkbox name=keep checked><select name=s><option>a"
    '</select><input type=submit name=go value="Go"><input type=reset name=r></form>'
)
WELL = "<p>Hello joe</p>"


def page(url: str, body: str = "", status: int = 200, **headers: str) -> Response:
    fields = {"Content-Type": "text/html; charset=utf-8"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return HtmlResponse(f"http://wiki{url}", status=status, headers=fields, body=body.encode())


def signed_in() -> Session:
    session = Session(ORIGIN, LOGIN)
    session.answered(page("/in?do=login", FORM), NOW)
    session.answered(page("/in", status=302, Location="/home"), NOW)
    assert session.answered(page("/home", WELL), NOW) is None
    assert session.step is None
    return session


def test_the_form_is_filled_in_as_a_browser_does() -> None:
    session = Session(ORIGIN, LOGIN)
    assert session.step is not None
    assert (session.step.purpose, session.step.url) == (Purpose.FORM, "http://wiki/in?do=login")
    cookies = page("/in?do=login", FORM, Set_Cookie="id=c1; HttpOnly")
    session.take_cookies(cookies, "http://wiki/in?do=login")
    assert "Set-Cookie" not in cookies.headers
    assert session.answered(cookies, NOW) is None
    step = session.step
    assert (step.purpose, step.url, step.form_url) == (
        Purpose.SUBMIT, "http://wiki/in", "http://wiki/in?do=login")  # fmt: skip
    assert step.body == "token=t1&keep=on&s=a&go=Go&u=joe&p=canary"
    assert "canary" not in repr(step) + repr(session) + repr(LOGIN)
    assert session.cookies_for("http://wiki/in") == b"id=c1"
    assert session.answered(page("/in", status=302, Location="/home"), NOW) is None
    assert session.step.purpose is Purpose.PROOF
    assert session.answered(page("/home", WELL), NOW) is None
    assert (session.step, session.proof) == (None, 1)


@pytest.mark.parametrize(
    "answers, until, reason",
    [
        ([page("/in", "no form")], NOW + AGAIN_SECS, "login at /in: no form with the fields u, p"),
        ([page("/in", "gone", 404)], NOW + AGAIN_SECS, "login at /in: HTTP 404, no form with"),
        ([page("/in", FORM.replace("post", "get"))], NOW + AGAIN_SECS, "its form is not a POST"),
        ([page("/in", FORM.replace("/in", "//evil/"))], NOW + AGAIN_SECS, "to another origin"),
        (
            [page("/in", status=302, Location="https://sso/?ticket=canary")],
            NOW + AGAIN_SECS,
            "it redirects to another origin, https://sso:443",
        ),
        ([page("/in", status=302, Location="/in")] * 6, NOW + AGAIN_SECS, "more than 5 redirects"),
        ([page("/in", FORM + WELL)], inf, "is in the page with the form, too"),
        ([page("/in", FORM), page("/in", FORM)], inf, "login refused: the form came back"),
        (
            [page("/in", FORM), page("/in", "hm", 403)],
            inf,
            "after the form came HTTP 403, and not the text of login_check, 'Hello joe'",
        ),
        (
            [page("/in", FORM), page("/in", "", 303, Location="/"), page("/", "welcome")],
            inf,
            "login not proved: after the form came not the text",
        ),
    ],
)
def test_why_a_host_waits(answers: list[Response], until: float, reason: str) -> None:
    """Nothing was signed in; the next attempt begins with the form."""
    session = Session(ORIGIN, LOGIN)
    *before, last = answers
    assert [session.answered(answer, NOW) for answer in before] == [None] * len(before)
    trouble = session.answered(last, NOW)
    assert trouble is not None
    assert trouble.until == until
    assert reason in trouble.reason
    assert "canary" not in trouble.reason
    assert session.proof == 0
    assert session.step == (Purpose.FORM, "http://wiki/in?do=login", None, "", 0)


@pytest.mark.parametrize(
    "markup",
    [
        "<p>" + "x" * 600_000 + FORM,
        "<a>" * 20_000 + FORM,
        f'<img src="data:{"A" * 200_000}">' + FORM,
        FORM.replace("t1", "v" * 200_000),
    ],
    ids=["bytes", "tags", "picture", "value"],
)
def test_a_form_is_found_in_a_large_page(markup: str) -> None:
    session = Session(ORIGIN, LOGIN)
    assert session.answered(page("/in?do=login", markup), NOW) is None
    assert session.step is not None
    assert session.step.purpose is Purpose.SUBMIT


@pytest.mark.parametrize(
    "markup",
    [
        "<form " + " ".join(f"a{number}" for number in range(40_000)) + ">" + FORM,
        "<form>" * 200_000 + FORM,
    ],
    ids=["attributes", "forms"],
)
def test_a_page_that_takes_long_to_read_has_no_form(markup: str) -> None:
    """lxml took minutes for 40,000 attributes, on the crawl's thread."""
    session = Session(ORIGIN, LOGIN)
    began = time.process_time()
    trouble = session.answered(page("/in?do=login", markup), NOW)
    assert trouble is not None
    assert "no form with the fields u, p" in trouble.reason
    assert time.process_time() - began < 1.0


def test_a_form_that_is_never_there_is_given_up() -> None:
    session, waits = Session(ORIGIN, LOGIN), []
    for _ in range(MAX_FAILURES + 1):
        trouble = session.answered(page("/in"), NOW)
        assert trouble is not None
        waits.append(trouble.until - NOW)
    assert waits == [AGAIN_SECS, 2 * AGAIN_SECS, 4 * AGAIN_SECS, inf]


@pytest.mark.parametrize(
    "shown, away",
    [
        (page("/a", "text"), False),
        (page("/a", FORM), True),
        (page("/a", FORM + WELL), False),  # signed in, with a form to change user
        (page("/a", status=302, Location="/in?do=login&next=a"), True),
        (page("/a", status=302, Location="http://wiki/in?next=a&do=login"), True),
        (page("/a", status=302, Location="/in?do=show"), False),
        (page("/a", status=302, Location="http://other/in?do=login"), False),
        (page("/a", status=302), False),
        (page("/a", "forbidden", 403), True),
        (page("/a", "forbidden" + WELL, 403), False),
        (page("/a", "<a href='/in?do=login&amp;next=a'>Please sign in</a>"), True),
        (page("/a", FORM, Content_Type="text/plain"), False),
        (page("/a", "", 404), False),
    ],
)
def test_turned_away(shown: Response, away: bool) -> None:
    assert signed_in().is_turned_away(shown) is away


def test_an_expired_login_is_made_again_after_its_page_said_so() -> None:
    """Ten minutes after it was made, at the earliest."""
    session = signed_in()
    assert session.turned_away("http://wiki/a", 0, NOW) is True, "asked before the proof"
    assert session.step is None
    assert session.turned_away("http://wiki/a", 1, NOW) is True
    assert session.step is not None
    assert session.step.url == "http://wiki/home"
    assert session.turned_away("http://wiki/b", 1, NOW) is True, "meanwhile"
    trouble = session.answered(page("/home", FORM), NOW + 60)
    assert trouble == Trouble(NOW + AGAIN_SECS, "login expired, soon after it was made")
    assert session.cookies_for("http://wiki/") == b""
    session = signed_in()
    session.turned_away("http://wiki/a", 1, NOW)
    assert session.answered(page("/home", FORM), NOW + AGAIN_SECS) is None
    assert session.step is not None
    assert session.step.purpose is Purpose.FORM
    session.answered(page("/in", FORM), NOW + AGAIN_SECS)
    session.answered(page("/in", status=302, Location="/home"), NOW + AGAIN_SECS)
    assert session.answered(page("/home", WELL), NOW + AGAIN_SECS) is None
    assert session.turned_away("http://wiki/a", 2, NOW) is True, "it was not the page's fault"


def test_a_page_that_is_not_for_this_user_holds_nobody_up() -> None:
    session = signed_in()
    assert session.turned_away("http://wiki/a", 1, NOW) is True
    assert session.answered(page("/home", WELL), NOW) is None
    assert session.turned_away("http://wiki/a", 2, NOW) is False
    assert session.is_final(page("/a", FORM))
    assert session.is_final(page("/a", status=302, Location="/in?do=login"))
    assert not session.is_final(page("/a", "forbidden", 403))


def test_links_to_the_form_say_nothing_where_well_pages_have_them() -> None:
    session, shown = signed_in(), page("/a", '<a href="/in?do=login">')
    for number in range(MAX_IN_VAIN):
        assert session.is_turned_away(shown)
        for _ in range(2):
            session.turned_away(f"http://wiki/{number}", session.proof, NOW)
            if session.step is not None:
                session.answered(page("/home", WELL), NOW)
    assert not session.is_turned_away(shown)
    assert session.is_turned_away(page("/a", FORM))


def test_a_step_that_fails_begins_anew() -> None:
    session = Session(ORIGIN, LOGIN)
    session.answered(page("/in", FORM), NOW)
    session.failed()
    assert session.step is not None
    assert session.step.purpose is Purpose.FORM
    session = signed_in()
    session.turned_away("http://wiki/a", 1, NOW)
    session.failed()
    assert session.step is not None
    assert session.step.purpose is Purpose.PROOF, "it is still signed in, for all that is known"


def test_each_origin_has_its_own() -> None:
    """Cookies of one reach no other, not even another port."""
    pattern = HostPattern.parse("http://*.example:*")
    sites = Sites([SiteRule("t", (pattern,), frozenset(), SiteOptions(login=LOGIN))])
    sessions = Sessions(sites)
    one, other = sessions.of_url("http://a.example/x"), sessions.of_url("http://a.example:81/")
    assert one is sessions.of_url("http://a.example/y")
    assert one is not other
    assert sessions.of_url("https://a.example/") is None
    assert one is not None
    assert other is not None
    one.take_cookies(
        Response("http://a.example/", headers={"Set-Cookie": "a=b; Domain=.example"}),
        "http://a.example/",
    )
    assert other.cookies_for("http://a.example:81/") == b""
    assert Sessions(Sites()).of_url("http://a.example/") is None
