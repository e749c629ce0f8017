"""Where links and redirects lead: out of bounds, in rings, or on for ever."""

from __future__ import annotations

from datetime import date

from tests.support.hostile.behaviours import (
    count,
    endless,
    head,
    html,
    links_to,
    pages,
    redirects,
    reply,
    sends,
    site,
)
from tests.support.hostile.outcome import Outcome, fails, page
from tests.support.hostile.server import Behaviour, Case, Wire

NOT_ASKED = Outcome("no line in fetch.log")
LONG = "x" * 50_000


def redirect(name: str, location: str, says: str = "", *lines: str) -> Case:
    return Case(name, redirects(location, *lines), page(302, links=1, says=says), most=1)


REDIRECTS = [
    redirect("redirect-to-itself", "", "redirect loop"),
    redirect("redirect-to-a-file", "file:///etc/passwd", "scheme"),
    redirect("redirect-to-ftp", "ftp://127.66.0.1/pub", "scheme"),
    redirect("redirect-to-javascript", "javascript:alert(1)", "scheme"),
    redirect("redirect-to-data", "data:text/html,<a href=/on>on</a>", "scheme"),
    redirect("redirect-to-gopher", "gopher://127.66.0.1/1", "scheme"),
    redirect("redirect-out-of-scope", "http://127.99.0.1:9/", "restrict"),
    redirect("redirect-to-metadata", "http://169.254.169.254/latest/", "restrict"),
    redirect("redirect-to-no-url", "http://[", "not an absolute URL"),
    redirect("redirect-to-a-bad-port", "http://127.66.0.1:99999/", "not an absolute URL"),
    redirect("redirect-to-50000-characters", "/" + LONG, "URLLENGTH_LIMIT"),
    redirect(
        "redirect-with-a-cookie-wall",
        "/redirect-with-a-cookie-wall",
        "redirect loop",
        "Set-Cookie: seen=yes",
    ),
    Case("redirect-doubled", redirects("/on", "Location: /other"), fails("bad-response"), most=1),
    Case(
        "redirect-with-a-broken-body",
        sends(
            head(
                "Location: /redirect-with-a-broken-body",
                "Transfer-Encoding: chunked",
                status="HTTP/1.1 302 Found",
            )
            + b"no chunk"
        ),
        page(302, b"", says="redirect loop"),
        most=1,
    ),
    Case(
        "redirect-with-an-endless-body",
        endless(
            head("Location: /redirect-with-an-endless-body", status="HTTP/1.1 302 Found"),
            b"x" * 9999,
        ),
        page(302, b"", says="redirect loop"),
        most=1,
    ),
    Case("redirect-blank", redirects(""), page(302, says="redirect loop"), most=1),
    Case(
        "redirect-without-location",
        sends(html("x", status="HTTP/1.1 302 Found")),
        page(302, b"x", links=0),
    ),
    Case(
        "redirect-ring",
        site(
            lambda path: reply(
                f"Location: /ring{(int(path[5:] or 0) + 1) % 3}", status="HTTP/1.1 301 On"
            )
        ),
        page(301),
        path="/ring0",
        also={"/ring2": page(301, says="redirect loop")},
        most=3,
    ),
    Case(
        "redirect-chain",
        site(lambda path: reply(f"Location: /on{int(path[3:]) + 1}", status="HTTP/1.1 307 On")),
        page(307),
        path="/on1",
        also={"/on6": page(307, says="LARM_MAX_REDIRECTS"), "/on7": NOT_ASKED},
        most=6,
    ),
    Case(
        "redirect-for-ever-by-cookie",
        site(
            lambda path: reply(
                "Location: " + path + "x", "Set-Cookie: a=b", status="HTTP/1.1 302 On"
            )
        ),
        page(302),
        most=6,
    ),
    Case(
        "meta-refresh-to-itself",
        sends(html("<meta http-equiv=refresh content='0;url='>")),
        page(200, says=""),
        most=1,
    ),
]


def calendar(target: str) -> list[str]:
    """Every month leads to the next and to the one before."""
    year, month = (int(part) for part in target.split("/")[2].split("-"))
    months = year * 12 + month - 1
    return [f"/calendar/{m // 12}-{m % 12 + 1:02}/" for m in (months - 1, months + 1)]


async def session_in_path(wire: Wire) -> None:
    """Each link on each page has a session id of its own."""
    number = wire.number
    pages_ = (f"/{name};jsessionid={number}{letter}" for name in ("a", "b") for letter in "xyz")
    await wire.send(links_to(pages_))


def session_in_query() -> Behaviour:
    numbers = count()
    return pages(lambda _: [f"/{name}?PHPSESSID={next(numbers)}" for name in ("a", "b")])


def numbered() -> Behaviour:
    """A new page for each that is asked for."""
    return pages(lambda target: [f"/page{int(target[5:]) + n}" for n in (1, 2)])


TRAPS = [
    Case(
        "calendar-without-end",
        pages(calendar),
        page(200, links=2),
        path=f"/calendar/{date.today():%Y-%m}/",
        most=27,
    ),
    Case("session-ids-in-paths", session_in_path, page(200, links=6), most=3),
    Case("session-ids-in-queries", session_in_query(), page(200, links=2), most=3),
    Case("path-that-grows", pages(lambda _: ["deeper/"]), page(200, links=1), path="/", most=4),
    Case(
        "path-of-numbers-that-grows",
        pages(lambda target: [f"{len(target)}/"]),
        page(200, links=1),
        path="/",
        most=22,
    ),
    Case(
        "query-that-grows",
        pages(lambda target: [f"/?back={target}{'y' * 300}"]),
        page(200, links=1),
        path="/",
        most=8,
    ),
    Case("pages-without-end", numbered(), page(200, links=2), path="/page0", most=48),
    Case(
        "urls-of-50000-characters",
        pages(lambda _: [f"/{n}{LONG}" for n in range(20)]),
        page(200, links=20),
        most=1,
    ),
    Case(
        "hosts-that-are-none",
        pages(
            lambda _: [
                "http://xn--/",
                "http://xn--zzzzz-99999/",
                "http://a b/",
                "http://-/",
                "http://.../",
                "http://%00/",
                "http://127.66.0.1:0x50/",
                f"http://{'a' * 300}.example/",
                "http://[::1",
            ]
        ),
        page(200),
        most=1,
    ),
    Case(
        "schemes-that-are-none",
        pages(
            lambda _: [
                "file:///etc/passwd",
                "ftp://127.66.0.1/",
                "gopher://127.66.0.1/",
                "ldap://127.66.0.1/",
                "http:",
                "https://",
                "//",
                "::",
                "\t",
                "javascript:void(0)",
            ]
        ),
        page(200),
        most=2,
    ),
]
"""LARM_HOST_MAX_PAGES ends what has no other end."""

LINKS = [*REDIRECTS, *TRAPS]
