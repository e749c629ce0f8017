"""A server that is ill for a day takes nothing out of the search, and writes nothing over."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.crawl.reader import CrawlDir
from larmspider.learned.deletes.delete_gate import MAX_LOGINS
from tests.support.crawling import records, scrapy
from tests.support.recovery.killed_crawl import counts
from tests.support.servers.scripted import Reply, Request, Resolution, ScriptedServer
from tests.whole_crawls.test_refresh import Crawl, Site

pytestmark = pytest.mark.acceptance

PAGES = 8
HTML = {"Content-Type": "text/html"}
FORM = "<h1>Please log in</h1><form>Your name <input name=u> <input type=password name=p></form>"
SORRY = "<title>Intranet</title><h1>Sorry</h1><p>There is no page {}. Ask the help desk, case {}."
BUTTON = "<title>Portal</title><p>Sign on at the portal of the company to read this page."

HELP = "<a href='/help?about={}'>help</a> <a href='/status/{}'>is it ill?</a>"
"""Links on each page during an ill day."""

Answer = Callable[[Request], Resolution]


def redirected(request: Request) -> Resolution:
    if request.path == "/login":
        return Reply(200, HTML, FORM.encode())
    return Reply(302, {"Location": f"/login?next={request.path}"})


def redirected_where_there_is_a_page(request: Request) -> Resolution:
    return redirected(request) if len(request.path) < 9 else Reply(404, HTML, b"nothing here")


def not_found_with_200(request: Request) -> Resolution:
    number = len(request.path) * 7919 % 1000
    return Reply(200, HTML, SORRY.format(request.path, number).encode())


ILL: dict[str, Answer] = {
    "500": lambda _: Reply(500, HTML, b"<h1>Internal error</h1>"),
    "503": lambda _: Reply(503, {"Retry-After": "1"}, b"later"),
    "404": lambda _: Reply(404, HTML, b"<h1>Not found</h1>"),
    "410": lambda _: Reply(410, HTML, b"<h1>Gone</h1>"),
    "redirect to a login": redirected,
    "redirect of pages alone to a login": redirected_where_there_is_a_page,
    "a login form": lambda _: Reply(200, HTML, FORM.encode()),
    "a portal without a password field": lambda _: Reply(200, HTML, BUTTON.encode()),
    "empty": lambda _: Reply(200, HTML, b""),
    "not found, with 200": not_found_with_200,
}


def texts(crawl: Crawl) -> dict[str, bytes]:
    """The stored body of each page, by its path."""
    stored, found = CrawlDir(crawl.folder / "crawl"), {}
    for path in [f"/p{number}" for number in range(PAGES)]:
        page = stored.stored(crawl.server.url(path))
        assert page is not None, path
        found[path] = stored.body(page)
    return found


@pytest.mark.parametrize("illness", ILL)
def test_an_ill_day_takes_nothing_out_and_writes_nothing_over(illness: str, tmp_path: Path) -> None:
    """Two passes in that day; afterwards one pass makes everything current."""
    site = Site(**{f"p{number}": f"What page {number} has to say." for number in range(PAGES)})
    site.conditional = False
    with ScriptedServer({"*": site.answer}) as server:
        crawl = Crawl(site, server, tmp_path)
        patient = {"LARM_RETRY_TIMES": "0", "LARM_HOST_MAX_FAILURES": "99"}
        assert crawl.run(**patient).status == 0
        before = texts(crawl)
        known = counts(tmp_path / "crawl").discovered
        answer = site.answer

        def ill(request: Request) -> Resolution:
            if request.path == "/robots.txt":
                return answer(request)
            found = ILL[illness](request)
            assert isinstance(found, Reply)
            found.body += HELP.format(request.path, request.path).encode() if found.body else b""
            return found

        server.routes["*"] = ill
        for quarter in range(2):
            crawl.days = 3 + quarter / 2
            assert crawl.run("all", **patient).status == 0
        assert counts(tmp_path / "crawl").discovered == known
        assert not (tmp_path / "crawl/deleted.log").read_bytes()
        assert texts(crawl) == before
        server.routes["*"] = answer
        for number in range(3):
            site.pages[f"/p{number}"] = f"Page {number} says something new."
        crawl.days = 4
        done = crawl.run("all", **patient)
        assert "3 changed" in done.out, done.out
        now = texts(crawl)
        assert all(b"something new" in now[f"/p{number}"] for number in range(3))
        changed = {"/p0", "/p1", "/p2"}
        assert {path for path in now if now[path] != before[path]} == changed


def test_a_host_waits_when_its_login_has_expired(tmp_path: Path) -> None:
    """It is said once."""
    site = Site(**{f"p{number}": f"What page {number} has to say." for number in range(PAGES)})
    with ScriptedServer({"*": site.answer}) as server:
        crawl = Crawl(site, server, tmp_path)
        crawl.run()
        server.routes["*"] = lambda _: Reply(200, HTML, FORM.encode())
        told = tmp_path / "told"
        script = tmp_path / "tell.sh"
        script.write_text(f"cat >> {told}\n")
        for crawl.days in (1, 1.5):
            done = crawl.run("all", LARM_NOTIFY=f"sh {script}", CONCURRENT_REQUESTS_PER_DOMAIN="1")
            assert "login expired" in done.err
            assert len(crawl.asked()) <= MAX_LOGINS + 1
        assert told.read_text().count("login expired") == 1


def test_what_the_brake_holds_leaves_when_it_is_approved(tmp_path: Path) -> None:
    """Forty of sixty pages are gone: twenty leave, the others wait for the operator."""
    site = Site(**{f"p{number}": f"What page {number} has to say." for number in range(60)})
    with ScriptedServer({"*": site.answer}) as server:
        crawl = Crawl(site, server, tmp_path)
        crawl.run()
        for number in range(20, 60):
            site.pages[f"/p{number}"] = ""
        for crawl.days in (1, 2, 4):
            crawl.run("all")
        deleted = tmp_path / "crawl/deleted.log"
        assert len(records(deleted)) == 20
        host = server.url("")[7:].strip("/")
        refused = scrapy("deletes", "--dir", "crawl", "--approve", host, cwd=tmp_path)
        assert refused.status == 2
        assert "was not shown yet" in refused.err
        shown = scrapy("deletes", "--dir", "crawl", cwd=tmp_path)
        assert f"{host}: 20 pages wait" in shown.out
        assert re.search(r"missing [34] times over", shown.out)
        done = scrapy("deletes", "--dir", "crawl", "--approve", host, cwd=tmp_path)
        assert done.out.startswith("20 pages")
        back = next(url for url in shown.out.split() if "/p" in url).rpartition("/")[2]
        site.pages[f"/{back}"] = "It is back."
        crawl.days = 5
        crawl.run("due")
        assert len(records(deleted)) == 39
        assert (
            "It is back"
            in scrapy("page", "--dir", "crawl", server.url(f"/{back}"), cwd=tmp_path).out
        )
        assert scrapy("deletes", "--dir", "crawl", cwd=tmp_path).out == ("Nothing pending.\n")
