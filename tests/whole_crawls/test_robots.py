"""robots.txt in a crawl: each answer of a real server, as RFC 9309 says what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.crawling import (
    Crawled,
    Ran,
    crawl,
    crawl_of_cases,
    crawl_with,
    records,
    scrapy,
)
from tests.support.servers.certificate import Authority
from tests.support.servers.scripted import Raw, Reply, Request, Route, ScriptedServer

Start = Callable[..., ScriptedServer]
HTML = {"Content-Type": "text/html; charset=utf-8"}
TEXT = {"Content-Type": "text/plain"}
NO = b"User-agent: *\nDisallow: /no\n"
SITE: dict[str, Route] = {
    "/": b"<a href=/no>no</a> <a href=/yes>yes</a>",
    "/no": b"n",
    "/yes": b"y",
}
QUICK = {"LARM_BACKOFF_SECS": "0.1", "LARM_BACKOFF_MAX_SECS": "0.2"}


def pages(server: ScriptedServer) -> list[str]:
    """The requested paths except robots.txt, in order."""
    return [request.target for request in server.log if "robots" not in request.target]


def states(ran: Ran, *names: str) -> dict[str, int]:
    """URLs by state at the end, from the stats that Scrapy prints."""
    found = {}
    for name in names:
        _, there, rest = ran.err.rpartition(f"'larm/frontier/{name}': ")
        found[name] = int(rest.split(",")[0].split("}")[0]) if there else 0
    return found


LONG_LINES = b"# " + b"x" * 98 + b"\n"


MUCH = NO + LONG_LINES * 10_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
ANSWERS: dict[str, tuple[Route, bool]] = {
    "200": ((200, TEXT, NO), True),
    "200, called HTML": ((200, HTML, NO), True),
    "byte-order mark": ((200, TEXT, b"\xef\xbb\xbf" + NO), True),
    "not UTF-8": ((200, TEXT, b"# \xff\xfe\x80\n\xe9: \xe9\n" + NO), True),
    "1 MB, rule in front": ((200, TEXT, NO + LONG_LINES * 10_000), True),
    "1 MB, rule at its end": ((200, TEXT, LONG_LINES * 10_000 + NO), False),
    "HTML": ((200, HTML, b"<html><p>Disallow: /no\n</html>"), False),
    "204": ((204, TEXT, b""), False),
    "301 to nowhere": ((301, {"Location": ""}, NO), False),
    "301 to ftp": ((301, {"Location": "ftp://h/"}, NO), False),
    "301 to httpx": ((301, {"Location": "httpx://h/"}, NO), False),
    "301 to a file": ((301, {"Location": "file:///etc/passwd"}, NO), False),
    "301 to data": ((301, {"Location": "data:,Disallow: /no"}, NO), False),
    "301 to s3": ((301, {"Location": "s3://b/robots.txt"}, NO), False),
    "301 to a denied address": ((301, {"Location": "http://169.254.169.254/"}, NO), False),
    "304": ((304, TEXT, b""), False),
    "401": ((401, TEXT, NO), False),
    "403": ((403, TEXT, NO), False),
    "404 with a body": ((404, TEXT, NO), False),
    "410": ((410, TEXT, NO), False),
    "1 MB, rule in front, chunked": (Raw(CHUNKED % (len(MUCH), MUCH)), True),
}
"""The answer to robots.txt, and whether it refuses /no."""


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """DOWNLOAD_MAXSIZE is no reason to know no rules of what is larger."""
    cases = {name: SITE | {"/robots.txt": answer} for name, (answer, _) in ANSWERS.items()}
    folder = tmp_path_factory.mktemp("answered")
    with crawl_of_cases(cases, folder, DOWNLOAD_MAXSIZE="100000") as crawled:
        yield crawled


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_means_what_the_rfc_says(answered: Crawled, name: str) -> None:
    """2xx: its rules, of which 500 KiB count; 3xx that is not followed and 4xx: no rules.

    RFC 9309 2.3.1.1 to 2.3.1.3, 2.5.
    """
    server, (_, refused) = answered.servers[name], ANSWERS[name]
    assert answered.ran.status == 0
    assert server.log[0].target == "/robots.txt"
    assert pages(server) == (["/", "/yes"] if refused else ["/", "/no", "/yes"])
    assert len(server.requests("/robots.txt")) == 1


@pytest.mark.parametrize(("hops", "refused"), [(1, True), (5, True), (6, False)])
def test_five_redirects_are_followed_to_another_host(
    scripted_server: Start, tmp_path: Path, hops: int, refused: bool
) -> None:
    """To one that is crawled too. The rules at their end hold for the host that was asked; a sixth
    is as a 404. Each has a line in the log.

    RFC 9309 2.3.1.2.
    """
    other = scripted_server({"/robots-end.txt": (200, TEXT, NO), "/": b"x"}, host="127.0.0.2")
    server = scripted_server(SITE)
    names = ["/robots.txt", *(f"/robots{hop}.txt" for hop in range(1, hops))]
    for name, onward in pairwise([*names, other.url("/robots-end.txt")]):
        server.routes[name] = (301, {"Location": onward}, NO)
    ran = crawl(f"{other.url()} {server.url()}", tmp_path)
    assert ran.status == 0
    assert pages(server) == (["/", "/yes"] if refused else ["/", "/no", "/yes"])
    assert len(other.requests("/robots-end.txt")) == (1 if refused else 0)
    told = [line for line in ran.err.splitlines() if "redirects to" in line]
    assert len(told) == hops
    assert told[-1].endswith(
        f"robots.txt of 127.0.0.1:{server.port} redirects to {other.url('/robots-end.txt')}: "
        + ("followed" if refused else "not followed, as it is one redirect more than 5; everything"
           " is allowed")
    )  # fmt: skip


@pytest.mark.acceptance
@pytest.mark.parametrize("trusted", [True, False])
def test_a_redirect_from_http_to_https_goes_by_the_certificate(
    scripted_server: Start, tmp_path: Path, trusted: bool
) -> None:
    """One that a CA of the sites file has signed is trusted. Without trust it is a robots.txt that
    cannot be had: nothing is fetched, which the log says."""
    ours = Authority(tmp_path)
    signs = ours if trusted else Authority(tmp_path, "another authority")
    secure = scripted_server({"/robots.txt": (200, TEXT, NO)}, tls=signs.context("127.0.0.1"))
    away = (301, {"Location": secure.url("/robots.txt")}, b"")
    server = scripted_server(SITE | {"/robots.txt": away})
    settings = QUICK | {"LARM_HOST_MAX_FAILURES": "1", "LARM_HOST_PARK_SECS": "0.1"}
    settings |= {"LARM_HOST_MAX_PARKS": "1"}
    sites = f'[[site]]\nhosts = "{secure.url()[:-1]}"\nca_file = "{ours.ca}"\n'
    ran = crawl_with(sites, server.url(), tmp_path, **settings)
    assert f"redirects to {secure.url('/robots.txt')}: followed" in ran.err
    if trusted:
        assert (ran.status, pages(server)) == (0, ["/", "/yes"])
        return
    assert (ran.status, pages(server), secure.log) == (1, [], [])
    assert "given up: probe 1 failed: TLS error while asking for robots.txt" in ran.err


def test_redirects_lead_to_the_same_host_and_to_none_that_is_not_crawled(
    scripted_server: Start, tmp_path: Path
) -> None:
    """To another port of it, and to another name that the host rules say is the same. Any other
    counts as a 404: a server that is crawled makes us ask no host of its choice."""
    (tmp_path / "hosts.properties").write_text("synonym(127.0.0.2) = 127.0.0.1\n")
    onward, servers = [], []
    for host in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        onward.append(scripted_server({"/rules": (200, TEXT, NO)}, host))
        away = (302, {"Location": onward[-1].url("/rules")}, NO)
        servers.append(scripted_server(SITE | {"/robots.txt": away}))
    seeds = " ".join(server.url() for server in servers)
    ran = crawl(seeds, tmp_path, LARM_HOST_RESOLVER_FILE="hosts.properties")
    assert ran.status == 0
    assert [sorted(pages(server)) for server in servers] == [
        ["/", "/yes"], ["/", "/yes"], ["/", "/no", "/yes"],
    ]  # fmt: skip
    assert [len(other.log) for other in onward] == [1, 1, 0]
    not_followed = (
        f"{onward[2].url('/rules')}: not followed, as this crawl has no page of that host"
    )
    assert not_followed in ran.err


def test_a_redirect_of_robots_txt_takes_no_password_along(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Neither one in its Location nor cookies, nor those that the sites file has for either host;
    what it leads to is no page."""
    rules = NO + b"<a href=/secret>x</a>"
    other = scripted_server({"/rules": (200, HTML, rules), "/": b""}, "127.0.0.2")
    onward = other.url("/rules").replace("//", "//joe:secret@")
    away = (302, {"Location": onward, "Set-Cookie": "a=b; Path=/"}, b"")
    server = scripted_server(SITE | {"/robots.txt": away})
    site = '[[site]]\nhosts = "http://%s:*"\nheaders = { X-Word = "%s" }\n'
    (tmp_path / "sites.toml").write_text(site % ("127.0.0.1", "one") + site % ("127.0.0.2", "two"))
    seeds = f"{other.url()} {server.url()}"
    assert crawl(seeds, tmp_path, LARM_SITES_FILE="sites.toml").status == 0
    assert {request.headers.get("x-word") for request in server.log} == {"one"}
    (asked,) = other.requests("/rules")
    assert (asked.method, asked.target) == ("GET", "/rules")
    assert not {"authorization", "cookie", "x-word"} & set(asked.headers)
    assert {one.headers.get("x-word") for one in other.log if one is not asked} == {"two"}
    stored = {line["url"] for line in records(tmp_path / "crawl" / "store.log")}
    assert stored == {other.url(), server.url(), server.url("/yes")}


class Recovering:
    """A robots.txt that answers with ``bad`` ``times`` times, then with its rules."""

    def __init__(self, bad: Raw | Reply, times: int = 2) -> None:
        self.bad, self.times = bad, times

    def __call__(self, request: Request) -> Raw | Reply:
        self.times -= 1
        return self.bad if self.times >= 0 else Reply(200, TEXT, NO)


UNREACHABLE: dict[str, Raw | Reply] = {
    "500": Reply(500, TEXT, b"User-agent: *\nAllow: /\n"),
    "503": Reply(503, {"Retry-After": "0"}),
    "429": Reply(429, {"Retry-After": "1"}),
    "time-out": Raw(b"", hang=True),
    "closed": Raw(b""),
    "cut off": Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser"),
    "no HTTP": Raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
}


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    cases = {name: SITE | {"/robots.txt": Recovering(bad)} for name, bad in UNREACHABLE.items()}
    settings = {"DOWNLOAD_TIMEOUT": "1", **QUICK}
    with crawl_of_cases(cases, tmp_path_factory.mktemp("recovered"), **settings) as crawled:
        yield crawled


@pytest.mark.parametrize("name", UNREACHABLE)
def test_unreachable_is_disallowed_until_it_recovers(recovered: Crawled, name: str) -> None:
    """Nothing of the host is fetched before its robots.txt is there; then all that it allows.

    RFC 9309 2.3.1.4: "MUST assume complete disallow".
    """
    server = recovered.servers[name]
    assert recovered.ran.status == 0, recovered.ran.err
    asked = [request.target for request in server.log]
    assert asked == ["/robots.txt"] * 3 + ["/", "/yes"]
    if name == "429":
        times = [request.time for request in server.requests("/robots.txt")]
        assert all(later - earlier >= 0.99 for earlier, later in pairwise(times))


def test_a_host_without_robots_txt_is_given_up_and_said_so(
    scripted_server: Start, tmp_path: Path
) -> None:
    """500 for ever: the crawl ends, names the host, still has its URLs; a later run tries again."""
    server = scripted_server(SITE | {"/robots.txt": (500, TEXT, b"")})
    settings = QUICK | {
        "LARM_HOST_MAX_FAILURES": "2",
        "LARM_HOST_PARK_SECS": "0.1",
        "LARM_HOST_MAX_PARKS": "1",
    }
    ran = crawl(server.url(), tmp_path, **settings)
    assert ran.status == 1
    assert pages(server) == []
    assert len(server.log) == 3, "two failures, then one probe"
    why = "given up: probe 1 failed: HTTP 500 while asking for robots.txt"
    assert f"Host 127.0.0.1:{server.port}: {why}" in ran.err
    assert "left        1 URL still queued" in ran.out
    assert "1 host was given up" in ran.out
    assert states(ran, "queued", "failed") == {"queued": 1, "failed": 0}
    server.routes["/robots.txt"] = (200, TEXT, NO)
    assert crawl(server.url(), tmp_path, **settings).status == 0
    assert pages(server) == ["/", "/yes"]


def test_a_robots_txt_that_hangs_holds_only_its_own_host(
    scripted_server: Start, tmp_path: Path
) -> None:
    """Two places: while one host's robots.txt hangs, its other URLs hold none and another host is
    crawled to its end."""
    numbers = range(30)
    stuck = scripted_server({"/robots.txt": Raw(b"", hang=True)}, host="127.0.0.2")
    leaves: dict[str, Route] = {f"/{n}": b"x" for n in numbers}
    links = "".join(f"<a href=/{n}>x</a>" for n in numbers)
    well = scripted_server({"/": links} | leaves)
    crawl(
        " ".join([*(stuck.url(f"/{n}") for n in numbers), well.url()]),
        tmp_path,
        threads="2",
        DOWNLOAD_TIMEOUT="8",
        LARM_PROBE_SECS="60",  # else a busy machine asks twice
        LARM_HOST_MAX_FAILURES="1",
        LARM_HOST_MAX_PARKS="0",
    )
    assert len(pages(well)) == 31
    assert well.log[-1].time - stuck.log[0].time < 8, "before the time-out"
    assert [request.target for request in stuck.log] == ["/robots.txt"]


@pytest.mark.parametrize(
    ("asked", "gap"), [(b"0.7", 0.7), pytest.param(b"3600", 1.2, marks=pytest.mark.acceptance)]
)
def test_crawl_delay_is_obeyed_up_to_a_limit(
    scripted_server: Start, tmp_path: Path, asked: bytes, gap: float
) -> None:
    """By the server's clock, with eight connections allowed and no delay of our own."""
    rules = b"User-agent: *\nDisallow: /no\nCrawl-delay: " + asked
    server = scripted_server(SITE | {"/robots.txt": (200, TEXT, rules)})
    ran = crawl(server.url(), tmp_path, LARM_CRAWL_DELAY_MAX_SECS="1.2")
    assert ran.status == 0
    first, last = (request.time for request in server.log[1:])
    assert gap - 0.05 <= last - first
    assert first - server.log[0].time >= gap - 0.05, "robots.txt is a request like any other"


LISTENER = """
from larmspider.signals import sitemaps_found


class Listener:
    @classmethod
    def from_crawler(cls, crawler):
        listener = cls()
        crawler.signals.connect(listener.found, signal=sitemaps_found)
        crawler.listener = listener
        return listener

    def found(self, host, urls):
        print("SITEMAPS", host, *urls)
"""
WITH_LISTENER = """
from larmspider.settings import *

EXTENSIONS = EXTENSIONS | {"listener.Listener": 500}
DOWNLOAD_DELAY = 0
LARM_SITEMAPS = False
"""


def test_sitemap_lines_are_handed_on(scripted_server: Start, tmp_path: Path) -> None:
    """signals.sitemaps_found names the host and its Sitemap lines, wherever they stand; a relative
    line is resolved."""
    (tmp_path / "listener.py").write_text(LISTENER)
    (tmp_path / "listening.py").write_text(WITH_LISTENER)
    server = scripted_server(SITE)
    one, two = server.url("/one.xml"), server.url("/two.xml")
    rules = f"Sitemap: {one}\nUser-agent: *\nDisallow: /no\nsitemap: /two.xml\n".encode()
    server.routes["/robots.txt"] = (200, TEXT, rules)
    options = ["-a", f"start={server.url()}"]
    ran = scrapy("crawl", "intranet", *options, cwd=tmp_path, settings_module="listening")
    assert f"SITEMAPS 127.0.0.1:{server.port} {one} {two}\n" in ran.out


def test_robots_txt_is_read_once_and_not_again_after_a_restart(
    scripted_server: Start, tmp_path: Path
) -> None:
    """The rules are part of the state: a second run obeys them without asking."""
    server = scripted_server(SITE | {"/robots.txt": (200, TEXT, NO)})
    assert crawl(server.url(), tmp_path, LARM_MAX_PAGES="1").status == 0
    assert pages(server) == ["/"]
    server.routes["/robots.txt"] = (200, TEXT, b"")
    assert crawl(server.url(), tmp_path).status == 0
    assert pages(server) == ["/", "/yes"]
    assert len(server.requests("/robots.txt")) == 1


def test_robots_txt_expires(scripted_server: Start, tmp_path: Path) -> None:
    """After LARM_ROBOTS_EXPIRES_SECS it is read again and what it says then holds."""
    answers = iter([NO, b"User-agent: *\nDisallow: /\n"])
    server = scripted_server(SITE | {"/robots.txt": lambda _: Reply(200, TEXT, next(answers))})
    ran = crawl(server.url(), tmp_path, DOWNLOAD_DELAY="1.2", LARM_ROBOTS_EXPIRES_SECS="2")
    assert [request.target for request in server.log] == ["/robots.txt", "/", "/robots.txt"]
    assert states(ran, "refused", "queued") == {"refused": 2, "queued": 0}


def test_rules_are_those_of_scheme_and_port(scripted_server: Start, tmp_path: Path) -> None:
    """http and https, and two ports of one address, have each a robots.txt of its own."""
    no_entry = (200, TEXT, b"User-agent: *\nDisallow: /\n")
    http, other = scripted_server(SITE), scripted_server(SITE | {"/robots.txt": no_entry})
    https = scripted_server(SITE | {"/robots.txt": (200, TEXT, NO)}, tls=True)
    seeds = f"{http.url()} {other.url()} {https.url()}"
    ran = crawl(seeds, tmp_path, DOWNLOAD_VERIFY_CERTIFICATES="0")
    assert ran.status == 0
    assert pages(http) == ["/", "/no", "/yes"]
    assert pages(other) == []
    assert pages(https) == ["/", "/yes"]


def test_a_refusal_by_robots_txt_has_its_reason(scripted_server: Start, tmp_path: Path) -> None:
    """fetch.log has a line for what robots.txt refuses, and the summary counts it."""
    server = scripted_server(SITE | {"/robots.txt": (200, TEXT, NO)})
    ran = crawl(server.url(), tmp_path)
    lines = records(tmp_path / "crawl" / "fetch.log")
    assert {line["url"]: line["result"] for line in lines}[server.url("/no")] == "robots"
    assert ", 1 refused (robots.txt, a store or the operator)" in ran.out
