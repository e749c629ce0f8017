"""robots.txt in words: of one that is not there, is none, or could not be read."""

from __future__ import annotations

import pytest

from larmspider.frontier.hosts import HostRecord, HostState
from larmspider.reports.hosts import robots_outcome

RULES = b"User-agent: *\nDisallow: /no\n"


@pytest.mark.parametrize(
    "answer, until, body, said",
    [
        ("404", 9.0, b"", "None (404): everything is allowed."),
        ("302", 9.0, b"", "None (a redirect that leads nowhere, 302): everything is allowed."),
        ("200", 9.0, RULES, "Answered 200."),
        ("200", 9.0, b"\xef\xbb\xbf\n", "Answered 200, empty: everything is allowed."),
        ("200", 9.0, b"\n<!doctype html><p>Sign in", "Answered 200 with a page of HTML: "),
        ("address", 9.0, b"", "None: the address of this host is denied"),
        ("http-503", 0.0, None, "Not reached (503): nothing is allowed until it is."),
        ("timeout", 0.0, None, "Not reached (timeout): nothing is allowed until it is."),
        ("dns", 9.0, RULES, "Not reached the last time (dns): the rules that were read before"),
        ("", 0.0, None, "It has not been read."),
        ("", 9.0, RULES, "It was read."),
    ],
)
def test_what_came_of_it(answer: str, until: float, body: bytes | None, said: str) -> None:
    """By its status, or the kind of failure."""
    record = HostRecord("wiki:80", robots_answer=answer, robots_until=until)
    assert robots_outcome(record, body).startswith(said)


def test_while_it_is_asked_for_the_first_time() -> None:
    assert (
        robots_outcome(HostRecord("w", state=HostState.LOADING), None) == "It is being asked for."
    )
