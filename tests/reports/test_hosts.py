"""robots.txt in words: of one that is not there, is none, or could not be read."""

from __future__ import annotations

import pytest

from larmspider.frontier.hosts import HostRecord, HostState
from larmspider.reports.hosts import SHOWN, robots_outcome, robots_text

RULES = b"User-agent: *\nDisallow: /no\n"


@pytest.mark.parametrize(
    "answer, until, body, said",
    [
        ("404", 9.0, b"", "None (404): everything is allowed."),
        ("302", 9.0, b"", "None (a redirect that is not followed, 302): everything is allowed."),
        ("200", 9.0, RULES, "Answered 200."),
        ("200", 9.0, b"\xef\xbb\xbf\n", "Answered 200, empty: everything is allowed."),
        ("200", 9.0, b"\n<!doctype html><p>Sign in", "Answered 200 with an HTML page: "),
        ("address", 9.0, b"", "None: the address of this host is denied"),
        ("http-503", 0.0, None, "Not reached (HTTP 503): nothing is allowed until it is."),
        ("timeout", 0.0, None, "Not reached (no reply in time): nothing is allowed until it is."),
        ("dns", 9.0, RULES, "Not reached the last time (no address found): the earlier rules"),
        ("", 0.0, None, "It has not been read."),
        ("", 9.0, RULES, "It was read."),
    ],
)
def test_what_came_of_it(answer: str, until: float, body: bytes | None, said: str) -> None:
    """By its status, or the kind of failure."""
    record = HostRecord("wiki:80", robots_answer=answer, robots_until=until)
    assert robots_outcome(record, body).startswith(said)


def test_while_it_is_asked_for_the_first_time() -> None:
    assert robots_outcome(HostRecord("w", state=HostState.LOADING), None) == "It is being fetched."


# A robots.txt as stored, with the lines for this crawler and the one that decides.


BODY = b"""User-agent: other
Disallow: /

User-agent: larmspider
User-agent: third
Crawl-delay: 2
Disallow: /private/
Allow: /private/rota.html
Sitemap: http://h/map.xml
User-agent: *
Disallow: /everyone
"""


def test_the_lines_for_us_are_marked() -> None:
    """Our group's, and of the others none."""
    text = robots_text(BODY, "larmspider/0.1")
    assert [line.number for line in text.lines if line.ours] == [4, 6, 7, 8]
    assert text.crawl_delay == 2.0
    assert (text.allowed, text.left_out, len(text.lines)) == (None, 0, 11)
    others = robots_text(BODY, "unnamed/1")
    assert [line.number for line in others.lines if line.ours] == [10, 11]


def test_the_deciding_line_is_named() -> None:
    """The longest rule wins; where none matches, all is allowed."""
    for url, allowed, number in (
        ("http://h/private/plan.html", False, 7),
        ("http://h/private/rota.html", True, 8),
        ("http://h/open", True, None),
    ):
        text = robots_text(BODY, "larmspider/0.1", url)
        decides = [line.number for line in text.lines if line.decides]
        assert (text.allowed, decides) == (allowed, [number] if number else [])


def test_of_a_long_file_our_lines_are_shown() -> None:
    """And the first others, each cut where it is too wide."""
    others = b"".join(b"Disallow: /%d\n" % n for n in range(3000))
    body = b"User-agent: other\n" + others + b"User-agent: *\nDisallow: /" + b"x" * 5000 + b"\n"
    text = robots_text(body, "larmspider", "http://h/" + "x" * 6000)
    assert len(text.lines) == SHOWN + 2
    assert text.left_out == 3003 - SHOWN - 2
    assert text.lines[-1].decides
    assert len(text.lines[-1].text) < 400


def test_the_deciding_line_is_shown_however_many_are_ours() -> None:
    """Of 3,000 rules the last."""
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % n for n in range(3000))
    text = robots_text(body, "larmspider", "http://h/2999/x")
    assert text.lines[-1].text == "Disallow: /2999/"
    assert text.lines[-1].decides
    assert len(text.lines) == 2 * SHOWN + 1
