"""Fetches that fail, against real servers: a kind for each, retries, hosts left alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest

from larmspider.crawl.reader import CrawlDir
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.urls.canonical import canonicalize
from tests.support.crawling import Crawled, crawl, crawl_of_cases, records
from tests.support.servers.scripted import Raw, Reply, Request, Route, ScriptedServer

Start = Callable[..., ScriptedServer]
QUICK = {
    "ROBOTSTXT_OBEY": "0",
    "LARM_BACKOFF_SECS": "0.1",
    "LARM_BACKOFF_MAX_SECS": "0.3",
    "LARM_HOST_MAX_FAILURES": "20",
}


def visit(folder: Path, url: str) -> FetchRecord | None:
    """The record in the frontier of a URL that has its final state."""
    reader = FrontierReader(folder / "crawl" / "frontier")
    try:
        return reader.visit(url_key(canonicalize(url)))
    finally:
        reader.close()


def results(folder: Path) -> dict[str, str]:
    """URL -> result, of fetch.log; a URL that stands there twice is an error."""
    lines = records(folder / "crawl" / "fetch.log")
    assert len({line["url"] for line in lines}) == len(lines)
    return {line["url"]: line["result"] for line in lines}


CUT = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n<title>half"


FAILURES: dict[str, tuple[Route, str, int]] = {
    "never answers": (Raw(b"", hang=True), "timeout", 3),
    "stops in mid-body": (Raw(CUT, hang=True), "timeout", 3),
    "closes without a word": (Raw(b""), "reset", 3),
    "closes in mid-body": (Raw(CUT), "reset", 3),
    "no HTTP": (Raw(b"\0\xff nonsense\r\n\r\n"), "bad-response", 3),
    "too big": (Reply(body=b"x" * 20_001), "too-big", 1),
    "says it is too big": (Raw(CUT.replace(b"5000", b"20001")), "too-big", 1),
}
"""A host's answer, the kind of its failure, and the number of requests."""
# a connection that was used before would be tried again by the HTTP client itself
TO_BAD = Reply(headers={"Content-Type": "text/html"}, body=b"<a href=/bad>x</a>", close=True)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    cases = {name: {"/": TO_BAD, "/bad": answer} for name, (answer, _, _) in FAILURES.items()}
    settings = {"DOWNLOAD_TIMEOUT": "1", "DOWNLOAD_MAXSIZE": "20000", **QUICK}
    with crawl_of_cases(cases, tmp_path_factory.mktemp("failed"), **settings) as crawled:
        yield crawled


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_has_its_kind_and_its_attempts(failed: Crawled, name: str) -> None:
    """In the frontier, fetch.log and the summary; LARM_RETRY_TIMES more where it helps."""
    _, kind, attempts = FAILURES[name]
    server = failed.servers[name]
    assert failed.ran.status == 0
    assert len(server.requests("/bad")) == attempts
    found = visit(failed.folder, server.url("/bad"))
    assert found is not None
    assert (found.state, found.reason) == (UrlState.FAILED, kind)
    by_url = results(failed.folder)
    assert (by_url[server.url()], by_url[server.url("/bad")]) == ("200", kind)
    [summary] = re.findall(r"^failed      7 URLs \((.*?)\)", failed.ran.out, re.MULTILINE)
    number = sum(other == kind for _, other, _ in FAILURES.values())
    assert f"{kind} {number}" in summary.split(", ")


@pytest.mark.parametrize(
    ("url", "kind"),
    [("http://nowhere.invalid/", "dns"), ("http://127.0.0.1:9/", "refused")],
)
def test_a_server_that_is_not_there(tmp_path: Path, url: str, kind: str) -> None:
    """Names without an address, ports without a server; status 1: nothing was stored."""
    ran = crawl(url, tmp_path, **QUICK)
    assert ran.status == 1
    assert results(tmp_path) == {url: kind}
    found = visit(tmp_path, url)
    assert found is not None
    assert found.reason == kind
    assert f"failed      1 URL ({kind} 1)" in ran.out


def test_a_certificate_that_nobody_signed(scripted_server: Start, tmp_path: Path) -> None:
    """tls, and nothing was asked; it is fetched where verification is turned off."""
    server = scripted_server({"/": "x"}, tls=True)
    assert crawl(server.url(), tmp_path, **QUICK).status == 1
    assert results(tmp_path) == {server.url(): "tls"}
    assert server.log == []
    trusting = QUICK | {"DOWNLOAD_VERIFY_CERTIFICATES": "0", "fresh": "yes"}
    assert crawl(server.url(), tmp_path, **trusting).status == 0
    assert results(tmp_path) == {server.url(): "200"}


def test_backoff_grows_between_attempts(scripted_server: Start, tmp_path: Path) -> None:
    """0.5 s, then 1 s, each a quarter more or less, by the server's clock; then it is stored."""
    answers = iter([Reply(500), Reply(500), Reply(body=b"at last")])
    server = scripted_server({"/": lambda _: next(answers)})
    settings = QUICK | {"LARM_BACKOFF_SECS": "0.5", "LARM_BACKOFF_MAX_SECS": "60"}
    assert crawl(server.url(), tmp_path, **settings).status == 0
    first, second = (b.time - a.time for a, b in pairwise(server.log))
    assert first >= 0.37
    assert second >= 0.74
    assert results(tmp_path) == {server.url(): "200"}


@pytest.mark.parametrize("status", [500, 503])
def test_the_last_server_error_is_a_page_that_failed(
    scripted_server: Start, tmp_path: Path, status: int
) -> None:
    """Its body may say why, so it is stored; the URL counts as failed."""
    answer = Reply(status, {"Content-Type": "text/html"}, b"<title>Down</title>")
    server = scripted_server({"/": "<a href=/bad>x</a>", "/bad": answer})
    ran = crawl(server.url(), tmp_path, **QUICK)
    assert len(server.requests("/bad")) == 3
    stored = records(tmp_path / "crawl" / "store.log")
    assert [line["http-code"] for line in stored] == ["200", str(status)]
    found = visit(tmp_path, server.url("/bad"))
    assert found is not None
    assert (found.state, found.status) == (UrlState.FAILED, status)
    assert found.reason == f"http-{status}"
    assert "'larm/frontier/failed': 1" in ran.err
    assert re.search(r"^stored      1 page, .*\(HTTP 200 1\)", ran.out, re.MULTILINE)
    assert f"failed      1 URL (http-{status} 1), each with its reason in" in ran.out
    assert results(tmp_path)[server.url("/bad")] == str(status)


ASKS: dict[str, tuple[Callable[[], str], float]] = {
    "seconds": (lambda: "2", 1.95),
    "date": (lambda: formatdate(time.time() + 3, usegmt=True), 1.95),
    "too long": (lambda: "9999", 2.45),
}


class Busy:
    """Answers with ``status`` once, then with a page."""

    def __init__(self, status: int, asks: Callable[[], str]) -> None:
        self.status, self.asks, self.busy = status, asks, True

    def __call__(self, request: Request) -> Reply:
        if self.busy:
            self.busy = False
            return Reply(self.status, {"Retry-After": self.asks()})
        return Reply(headers={"Content-Type": "text/html"}, body=b"<a href=/b>b</a>")


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    cases: dict[str, dict[str, Route]] = {
        f"{status} {name}": {"/": Busy(status, asks), "/b": "b"}
        for status in (429, 503)
        for name, (asks, _) in ASKS.items()
    }
    settings = QUICK | {"LARM_RETRY_AFTER_MAX_SECS": "2.5"}
    with crawl_of_cases(cases, tmp_path_factory.mktemp("busy"), **settings) as crawled:
        yield crawled


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("name", ASKS)
def test_retry_after_is_obeyed_up_to_a_limit(busy: Crawled, status: int, name: str) -> None:
    """No request to the host before its time, by its own clock; then its pages are fetched."""
    server = busy.servers[f"{status} {name}"]
    assert busy.ran.status == 0
    assert [request.target for request in server.log] == ["/", "/", "/b"]
    assert server.log[1].time - server.log[0].time >= ASKS[name][1]
    by_url = results(busy.folder)
    assert (by_url[server.url()], by_url[server.url("/b")]) == ("200", "200")


PARKING = {
    "ROBOTSTXT_OBEY": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "1",
    "LARM_BACKOFF_SECS": "0.05",
    "LARM_BACKOFF_MAX_SECS": "0.05",
    "LARM_HOST_MAX_FAILURES": "3",
    "LARM_HOST_PARK_SECS": "1",
    "LARM_HOST_MAX_PARKS": "2",
}


def test_a_failing_host_is_parked_probed_and_given_up(
    scripted_server: Start, tmp_path: Path
) -> None:
    """3 failures, a probe after 1 s, another after 2 s, then no more; the other host does not wait.

    The next run tries again, and finds what is left of the host.
    """
    broken = scripted_server({"*": Raw(b"")}, host="127.0.0.2")
    leaves: dict[str, Route] = {f"/{number}": b"x" for number in range(20)}
    well = scripted_server({"/": "".join(f"<a href={path}>x</a>" for path in leaves)} | leaves)
    seeds = " ".join([*(broken.url(path) for path in list(leaves)[:6]), well.url()])
    ran = crawl(seeds, tmp_path, **PARKING)
    assert ran.status == 0
    times = [request.time for request in broken.log]
    assert len(times) == 5
    assert times[3] - times[2] >= 0.74
    assert times[4] - times[3] >= 1.49
    assert len(well.log) == 21
    assert well.log[-1].time < times[4], "the other host is done before the last probe"
    name = f"127.0.0.2:{broken.port}"
    assert f"Host {name}: left alone for" in ran.err
    assert "3 failures in a row: connection closed by the server" in ran.err
    why = "given up: probe 2 failed: connection closed by the server"
    assert f"Host {name}: {why}; until the next run" in ran.err
    assert "1 host was given up" in ran.out
    broken.routes["*"] = "well again"
    assert crawl(seeds, tmp_path, **PARKING).status == 0
    left = {request.target for request in broken.log[5:]}
    failed = {url for url, result in results(tmp_path).items() if result == "reset"}
    assert len(left) + len(failed) == 6
    assert len(left) >= 4


def test_a_host_that_recovers_while_parked_is_crawled(
    scripted_server: Start, tmp_path: Path
) -> None:
    """The probe succeeds, and what waited is fetched in the same run; the monitor says what the
    crawl waits for meanwhile."""
    answers = iter([Raw(b"")] * 3)
    server = scripted_server({"*": lambda _: next(answers, Reply(body=b"well again"))})
    seeds = " ".join(server.url(f"/{number}") for number in range(5))
    slower = {"LARM_HOST_PARK_SECS": "2.5", "LARM_MONITOR_SECS": "0.2"}
    # one URL may get all three answers that fail
    ran = crawl(seeds, tmp_path, **{**PARKING, **slower}, LARM_RETRY_TIMES="5")
    assert ran.status == 0
    host = f"127.0.0.1:{server.port}"
    assert (
        f"; waiting 2 s for {host} (parked: 3 failures in a row: connection closed by the server)"
        in ran.err
    )
    assert len(records(tmp_path / "crawl" / "store.log")) == 5
    assert "given up" not in ran.out


def test_a_finished_crawl_of_failures_stays_finished(tmp_path: Path) -> None:
    """A URL that failed for good is not tried for ever: the next run says that all is done."""
    assert crawl("http://127.0.0.1:9/", tmp_path, **QUICK).status == 1
    ran = crawl("http://127.0.0.1:9/", tmp_path, **QUICK)
    assert "nothing left to fetch; -a refresh=due revisits due pages, -a fresh=yes" in ran.err
    fetched = CrawlDir(tmp_path / "crawl").fetched("http://127.0.0.1:9/")
    assert fetched is not None
    assert fetched.result == "refused"
