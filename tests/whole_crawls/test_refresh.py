"""A crawl that has ended is kept current: what changed, what is new, what is gone."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from larmspider.crawl.reader import CrawlDir
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.index.anchors import AnchorTable
from larmspider.search.searcher import Searcher
from larmspider.status.freshness import requests_by_purpose, requests_in_words
from larmspider.status.totals import Totals
from tests.support.crawling import FAST, Ran, records, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.web.crawling import Crawling

pytestmark = pytest.mark.acceptance
DAY = 86_400.0


class Site:
    """Pages by path; those without a text are missing. The start page names the first ones. With
    ``conditional`` it has ETags."""

    def __init__(self, **pages: str) -> None:
        self.pages = {f"/{name}": text for name, text in pages.items()}
        self.first = list(self.pages)
        self.conditional = True
        self.robots = ""

    def answer(self, request: Request) -> Reply:
        path = request.path
        if path == "/robots.txt":
            return Reply(200 if self.robots else 404, {}, self.robots.encode())
        if path == "/":
            links = "".join(f"<a href={name}>{name}</a> " for name in self.first)
            return Reply(200, {"Content-Type": "text/html"}, links.encode())
        text = self.pages.get(path, "")
        if not text:
            return Reply(404, {}, b"nothing here")
        tag = f'"{len(text)}-{text[:3]}-gr\xfcn"'  # goes back byte for byte
        if self.conditional and request.headers.get("if-none-match") == tag:
            return Reply(304, {"ETag": tag})
        body = f"<title>{path}</title><p>{text}</p>"
        headers = {"Content-Type": "text/html", **({"ETag": tag} if self.conditional else {})}
        return Reply(200, headers, body.encode())


class Crawl:
    """``days``: how far the crawl's clock is ahead; ``begins``: lines of its settings module;
    ``more``: arguments of the command."""

    def __init__(self, site: Site, server: ScriptedServer, folder: Path) -> None:
        self.site, self.server, self.folder = site, server, folder
        self.days, self.begins, self.more = 0.0, "", list[str]()
        self._runs, self.module = 0, ""

    def run(self, refresh: str = "", **settings: str) -> Ran:
        self._runs += 1
        # a name of its own: Python takes a file of the same second and size for the one before
        module = f"ahead{self._runs}"
        self.module = module
        (self.folder / f"{module}.py").write_text(
            "import time\nfrom larmspider.settings import *\n"
            f"def FRONTIER_CLOCK(): return time.time() + {self.days * DAY}\n" + self.begins
        )
        words = [f"-s{name}={value}" for name, value in {**FAST, **settings}.items()]
        words += self.more
        if refresh:
            words += ["-a", f"refresh={refresh}"]
        start = f"start={self.server.url('/')}"
        self.server.log.clear()
        return scrapy(
            "crawl", "intranet", "-a", start, *words, cwd=self.folder, settings_module=module
        )

    def asked(self) -> list[str]:
        return sorted(one.path for one in self.server.log if one.path != "/robots.txt")

    def state(self, path: str) -> UrlState:
        with FrontierReader(self.folder / "crawl/frontier") as frontier:
            return frontier.state(url_key(self.server.url(path)))

    def log(self) -> list[tuple[str, str, str]]:
        lines = records(self.folder / "crawl/fetch.log")
        begin = len(self.server.url("/")) - 1
        return [(line["url"][begin:], line["result"], line["message"]) for line in lines]


@pytest.fixture
def crawl(tmp_path: Path):
    site = Site(a="first text", b="second text", c="third text")
    with ScriptedServer({"*": site.answer}) as server:
        yield Crawl(site, server, tmp_path)


def test_changed_new_and_missing_pages(crawl: Crawl) -> None:
    assert crawl.run().status == 0
    crawl.site.pages |= {"/a": "another text <a href=/new>new</a>", "/b": "", "/new": "new"}
    crawl.days = 1
    done = crawl.run("all")
    assert done.status == 0, done.err
    assert "1 changed, 1 new, 1 missing (removed after 3 such visits over 2 days)" in done.out, (
        done.out
    )


def test_a_page_leaves_when_it_was_missing_often_enough(crawl: Crawl) -> None:
    crawl.run()
    crawl.site.pages["/b"] = ""
    for crawl.days in (1, 2):
        assert "1 missing (removed after" in crawl.run("all").out
        assert crawl.state("/b") is UrlState.STORED
    crawl.days = 4
    done = crawl.run("all")
    assert "1 removed" in done.out, done.out
    assert crawl.state("/b") is UrlState.UNKNOWN
    (line,) = records(crawl.folder / "crawl/deleted.log")
    assert line["url-exact"] == crawl.server.url("/b")
    crawl.site.pages["/b"] = "here again"
    undo = ("deletes", "--dir", "crawl", "--undo", crawl.server.url("/b"))
    assert "1 URL queued again" in scrapy(*undo, cwd=crawl.folder).out
    crawl.days = 5
    assert "1 new" in crawl.run("due").out
    assert crawl.state("/b") is UrlState.STORED
    assert scrapy(*undo, cwd=crawl.folder).status == 2


def _unreached(crawl: Crawl) -> set[str]:
    """Paths that the search shows as not reached."""
    found = scrapy(
        "search", "unreachable:only", "--dir", "crawl", "--json", "-n", "50", cwd=crawl.folder
    )
    begin = len(crawl.server.url("/")) - 1
    hits = json.loads(found.out)["hits"]
    assert all(hit["missing_since"] > 1e9 for hit in hits)
    return {hit["url"][begin:] for hit in hits}


def test_pages_that_a_changed_page_names_no_more_are_visited_by_the_same_run(crawl: Crawl) -> None:
    """Beside the budget, and although the run takes less time than a checkpoint."""
    items = [f"item{number}" for number in range(20)]
    crawl.site.pages |= {f"/{item}": f"about {item}" for item in items}

    def name(some: list[str]) -> None:
        crawl.site.pages["/a"] = " ".join(f"<a href=/{item}>{item}</a>" for item in some)

    name(items)
    crawl.run()
    name(items[:17])
    for item in items[17:]:
        del crawl.site.pages[f"/{item}"]
    crawl.days = 1
    done = crawl.run("due", LARM_REFRESH_PER_DAY="3")
    assert "/a" in crawl.asked()
    assert "3 missing (removed after" in done.out, done.out
    assert {"/item17", "/item18", "/item19"} <= set(crawl.asked())


def test_the_search_says_which_pages_were_not_reached(crawl: Crawl) -> None:
    """From the first visit that misses one until it answers again, or leaves; a host that fails
    for two days says so of all its pages."""
    crawl.run()
    assert _unreached(crawl) == set()
    crawl.site.pages |= {"/a": "", "/b": ""}
    crawl.days = 1
    crawl.run("all")
    assert _unreached(crawl) == {"/a", "/b"}
    said = scrapy("search", "second text", "--dir", "crawl", cwd=crawl.folder).out
    assert "(not reached since 20" in said
    (crawl.folder / "crawl/index/unreached").unlink()  # lost
    assert "verify --repair repairs it" in crawl.run("all").err
    scrapy("verify", "--repair", "--dir", "crawl", cwd=crawl.folder)
    crawl.days, crawl.site.pages["/a"] = 2, "first text"
    crawl.run("all")
    assert _unreached(crawl) == {"/b"}
    crawl.days = 4
    assert "1 removed" in crawl.run("all").out
    assert _unreached(crawl) == set()
    answer = crawl.server.routes["*"]
    crawl.server.routes["*"] = lambda _: Reply(503, {}, b"maintenance")
    for crawl.days in (5, 6):
        crawl.run("all", LARM_HOST_MAX_FAILURES="2", LARM_HOST_PARK_SECS="1")
    assert _unreached(crawl) == {"/", "/a", "/c"}
    crawl.server.routes["*"] = answer
    crawl.days = 7
    crawl.run("all")
    assert _unreached(crawl) == set()


@pytest.mark.parametrize(
    "link",
    [
        "/item?n={n}&sid={sid}",
        "/item/{n};jsessionid={sid}",
        "/item?n={n}&visit={sid}00000000&from={sid}11111111",
    ],
)
def test_session_ids_on_pages_that_vary_show_each_item_once(crawl: Crawl, link: str) -> None:
    """Each answer has new session ids, a counter and a teaser; the start page varies, too."""
    numbers, draw = iter(range(100_000, 999_999)), Random(1)
    teasers = ("Try the new canteen", "Welcome back dear friend", "Sign up and save some money")

    def answer(request: Request) -> Reply:
        if request.path == "/robots.txt":
            return Reply(404, {}, b"")
        found = re.search(r"n=(\d+)|item/(\d+)", request.target)
        name = f"item {'abcdefghijkl'[int(found[1] or found[2])]}x" if found else "start"
        sid = f"{next(numbers):x}"
        links = " ".join(
            f"<a href='{link.format(n=n, sid=sid)}'>the item {n}</a>"
            for n in range(12)
            if n % 2 or found  # others are found on items
        )
        text = f"<p>This is {name} of the shop, {'with words that it has by itself ' * 6}"
        vary = f"<p>You are visitor {next(numbers)} today. <p>{draw.choice(teasers)}."
        body = f"<title>{name}</title><nav>{links}</nav><main>{text}</main>{vary}"
        return Reply(200, {"Content-Type": "text/html"}, body.encode())

    crawl.server.routes["*"] = answer
    for crawl.days in range(3):
        done = crawl.run("all" if crawl.days else "", CLOSESPIDER_PAGECOUNT="200")
        assert done.status == 0, done.err
        urls = [page.url for page in CrawlDir(crawl.folder / "crawl").pages()]
        assert len(urls) == 13, urls
        searcher = Searcher.open(crawl.folder / "crawl/index")
        assert searcher.count() == 13
        assert crawl.days != 2 or len(crawl.asked()) < 60


def test_what_has_not_changed_costs_a_line_in_fetch_log(crawl: Crawl) -> None:
    crawl.run()
    files = [crawl.folder / "crawl" / name for name in ("store.log", "links.log", "pagefile_0.pfl")]
    before = [path.read_bytes() for path in files]
    for crawl.days in (1, 2, 3):
        assert "0 changed, 0 new, 4 as before" in crawl.run("all").out
    assert [path.read_bytes() for path in files] == before
    assert any(one.headers.get("if-none-match") for one in crawl.server.log)
    assert ("304", "kept: not-modified") in [line[1:] for line in crawl.log()]


def test_a_clock_is_learned_however_fast_the_site_answers(crawl: Crawl) -> None:
    """In two passes; a change of one word still counts."""
    answer, crawl.site.conditional = crawl.site.answer, False
    crawl.server.routes["*"] = lambda request: replace(
        found := answer(request), body=found.body + time.strftime("<p>It is %H:%M:%S").encode()
    )
    assert crawl.run().status == 0
    for crawl.days in (1, 2):
        assert crawl.run("all").status == 0
    crawl.days = 3
    assert "0 changed, 0 new, 4 as before" in crawl.run("all").out
    crawl.site.pages["/a"] = "first word"
    crawl.days = 4
    assert "1 changed, 0 new, 3 as before" in crawl.run("all").out


def test_pages_with_a_counter_are_as_before_at_the_first_refresh(crawl: Crawl) -> None:
    """Each page counts its visitors; a word beside the counter is news."""
    site, fetches = crawl.site, iter(range(99_999))
    site.conditional = False
    site.pages |= {f"/p{number}": f"text of page {number}" for number in range(20)}
    site.first = list(site.pages)
    answer = site.answer
    crawl.server.routes["*"] = lambda request: replace(
        found := answer(request), body=found.body + b"<p>You are visitor %d." % next(fetches)
    )
    crawl.run()
    size = (crawl.folder / "crawl/store.log").stat().st_size
    crawl.days = 1
    done = crawl.run("all")
    assert "0 changed, 0 new, 24 as before" in done.out, done.out
    assert (crawl.folder / "crawl/store.log").stat().st_size == size
    site.pages["/p7"] = "text of another page 7"
    crawl.days = 2
    done = crawl.run("all")
    assert "1 changed, 0 new, 23 as before" in done.out, done.out


def test_languages_are_guessed_of_pages_that_have_changed(crawl: Crawl) -> None:
    """And no process that guesses them is started for others, whatever their bytes."""
    german = "Die Reisekostenabrechnung ist bis zum Monatsende bei der Abteilung abzugeben. "
    crawl.site.pages["/a"] = german
    crawl.site.conditional = False
    guessed = crawl.folder / "guessed"
    mark = f"open({str(guessed)!r}, 'w'); "
    crawl.begins = (
        "from larmspider.extraction.texts import language\n"
        f"language._PROGRAM = {mark!r} + language._PROGRAM\n"
    )
    assert crawl.run(LARM_LANGUAGES="de,en").status == 0
    assert guessed.exists()
    guessed.unlink()
    answer = crawl.site.answer
    crawl.server.routes["*"] = lambda request: replace(
        found := answer(request), body=found.body + b" <!-- %f -->" % time.monotonic()
    )
    crawl.days = 1
    assert "0 changed, 0 new, 4 as before" in crawl.run("all", LARM_LANGUAGES="de,en").out
    assert not guessed.exists()
    crawl.site.pages["/a"] = german + "Das gilt seit gestern."
    crawl.days = 2
    assert "1 changed" in crawl.run("all", LARM_LANGUAGES="de,en").out
    assert guessed.exists()
    found = scrapy("search", "--dir", "crawl", "lang:de gestern", cwd=crawl.folder)
    assert "/a" in found.out, found.out


def test_a_link_that_another_url_stands_for_by_now_is_no_other_link(crawl: Crawl) -> None:
    """The rule is proven after the first pages are stored, so their links stand for others now."""
    site = crawl.site
    names = [f"Page{number}" for number in range(9)]
    links = " ".join(f"<a href={name}>a</a> <a href={name.lower()}>b</a>" for name in names)
    site.pages |= {f"/{name.lower()}": f"text of {name} {links}" for name in names}
    site.first += names
    site.conditional = False
    crawl.server.routes["*"] = lambda request: site.answer(
        replace(request, target=request.target.lower())
    )
    crawl.run()
    crawl.days = 1
    done = crawl.run("all")
    assert "0 changed, 0 new, 13 as before" in done.out, done.out


@pytest.mark.parametrize("status", [500, 401, 404])
def test_a_bad_day_of_the_server_takes_nothing_out(crawl: Crawl, status: int) -> None:
    crawl.run()
    answer = crawl.site.answer
    bad = Reply(status, {}, b"out of order")
    crawl.server.routes["*"] = lambda request: (
        answer(request) if request.path == "/robots.txt" else bad
    )
    crawl.days = 1
    crawl.run("all", LARM_RETRY_TIMES="0", LARM_HOST_MAX_FAILURES="99")
    assert crawl.state("/a") is UrlState.STORED
    crawl.server.routes["*"] = answer
    crawl.days = 2
    assert "0 changed, 0 new, 4 as before" in crawl.run("all").out
    assert not (crawl.folder / "crawl/deleted.log").read_bytes()


def test_what_changes_beside_the_text_is_a_new_version(crawl: Crawl) -> None:
    """Another link with the same words, and a page that is not to be indexed any more."""
    crawl.site.pages["/a"] = "read <a href=b>this</a> page and all of its pages"
    crawl.run()
    crawl.site.pages["/a"] = "read <a href=b>this page</a> and all of its pages"
    crawl.site.pages["/c"] += "<meta name=robots content=noindex>"
    crawl.days = 1
    # /c is looked at twice, for its host's canaries come later, and counts once
    assert "2 changed, 0 new, 1 removed, 2 as before" in crawl.run("all").out
    found = scrapy("search", "--dir", "crawl", "--json", "third", cwd=crawl.folder).json
    assert found["total"] == 0
    anchors = AnchorTable(crawl.folder / "crawl/index/anchors")
    assert anchors.texts(crawl.server.url("/b")) == ["/b", "this page"]
    anchors.close()


def test_a_header_that_forbids_to_index_the_same_bytes_counts(crawl: Crawl) -> None:
    crawl.run()
    answer = crawl.site.answer

    def forbid(request: Request) -> Reply:
        found = answer(request)
        return replace(found, headers={**found.headers, "X-Robots-Tag": "noindex"})

    for crawl.days, crawl.server.routes["*"] in enumerate((forbid, answer, answer, forbid), 1):
        done = crawl.run("all")
        same = crawl.days == 3
        assert ("0 changed, 0 new, 4 as before" if same else "4 changed") in done.out, done.out


def test_what_is_due_is_visited_as_far_as_the_budget_goes(crawl: Crawl) -> None:
    crawl.run()
    crawl.days = 40
    crawl.run("due", LARM_REFRESH_PER_DAY="3")
    assert len(set(crawl.asked())) == 3  # a 304 may be looked at twice
    crawl.run("due", LARM_REFRESH_PER_DAY="3")
    assert len(crawl.asked()) == 0
    crawl.days = 41
    crawl.run("due", LARM_REFRESH_PER_DAY="3")
    assert len(set(crawl.asked())) == 3  # a 304 may be looked at twice


def test_a_pattern_names_what_is_visited(crawl: Crawl) -> None:
    crawl.run()
    crawl.days = 1
    crawl.run("http://[^/]*/[ab]")
    assert crawl.asked() == ["/a", "/b"]


def test_a_refresh_that_cannot_be_is_one_line(crawl: Crawl) -> None:
    done = crawl.run("due")
    assert done.status == 2
    assert done.err.strip().splitlines()[-1].endswith("there is none")
    assert not (crawl.folder / "crawl").exists()
    crawl.run(CLOSESPIDER_PAGECOUNT="1", CONCURRENT_REQUESTS="1")
    done = crawl.run("all")
    assert done.status == 2
    assert "has not ended yet; run the same command without refresh to continue it" in done.err
    assert crawl.asked() == []
    crawl.run()
    for asked, said in {
        "dux": "expected due, watch, all",
        "http://elsewhere/.*": "no page of the crawl in",
        "http://(": "refresh",
    }.items():
        done = crawl.run(asked)
        assert done.status == 2, done.err
        assert said in done.err.strip().splitlines()[-1]
    assert crawl.asked() == []
    done = crawl.run("due", LARM_REFRESH_PER_DAY="many")
    assert done.status == 2
    assert "LARM_REFRESH_PER_DAY=many: expected a number of visits >= 0" in done.err
    (crawl.folder / "crawl/pagefile_0.pfl").unlink()
    done = crawl.run("all")
    assert done.status == 2
    assert "pagefile_0.pfl is gone: expected the files of the crawl" in done.err
    assert crawl.asked() == []


def test_a_clock_that_was_set_back_keeps_no_page_from_its_visit(crawl: Crawl) -> None:
    crawl.days = 400
    crawl.run()
    crawl.days = 0
    crawl.site.pages["/a"] = "another text of this page"
    assert "1 changed, 0 new, 3 as before" in crawl.run("due", LARM_REFRESH_PER_DAY="100").out
    assert "0 changed, 0 new, 4 as before" in crawl.run("all").out


def test_robots_txt_takes_a_page_out_when_it_says_so_twice(crawl: Crawl) -> None:
    crawl.run()
    crawl.site.robots = "User-agent: *\nDisallow: /b"
    crawl.days = 2
    said = crawl.run("all").out
    assert "1 robots (removed after 2 such visits over 1 day)" in said, said
    assert "3 requests for known pages" in said, said
    assert crawl.asked() == ["/", "/a", "/c"]
    assert crawl.state("/b") is UrlState.STORED
    assert any(line[0] == "/b" and "kept: robots" in line[2] for line in crawl.log())
    crawl.days = 4
    crawl.run("all")
    assert crawl.state("/b") is UrlState.UNKNOWN


def test_a_finished_crawl_says_how_it_is_kept_current(crawl: Crawl) -> None:
    crawl.run()
    assert "-a refresh=due" in crawl.run().err
    assert crawl.asked() == []


def test_a_watch_sees_what_happens_and_goes_on_after_a_stop(crawl: Crawl) -> None:
    """Stopped by SIGTERM, and from the control page."""
    crawl.run()
    day = crawl.folder / "day"
    (crawl.folder / "watched.py").write_text(
        "import time\nfrom pathlib import Path\nfrom larmspider.settings import *\n"
        f"def FRONTIER_CLOCK(): return time.time() + {DAY} * float(Path('{day}').read_text())\n"
    )
    wanted = FAST | {"LARM_REFRESH_PER_DAY": "1000", "LARM_WEB": "yes", "LARM_WEB_PORT": "0"}
    watching = Crawling(
        crawl.folder, crawl.server.url("/"), settings_module="watched", LARM_REFRESH="watch",
        **wanted,
    )  # fmt: skip

    def stored(path: str) -> int:
        begin = crawl.server.url(path)
        return sum(line["url"] == begin for line in records(crawl.folder / "crawl/store.log"))

    def day_is(number: str) -> None:  # never seen empty
        (crawl.folder / "tomorrow").write_text(number)
        (crawl.folder / "tomorrow").replace(day)

    def missed() -> int:
        """Visits that the crawl has judged: a clock that moves before that moves their time."""
        return sum(path == "/b" and result == "404" for path, result, _ in crawl.log())

    day_is("1")
    crawl.site.pages |= {"/a": "another text <a href=/new>new</a>", "/b": "", "/new": "new"}
    with watching:
        watching.until(lambda: stored("/a") == 2 and stored("/new"), "a page that changed")
        for visits, later in enumerate(("3", "5"), 1):
            watching.until(lambda visits=visits: missed() == visits, "a page that is missing")
            day_is(later)
        watching.until(lambda: crawl.state("/b") is UrlState.UNKNOWN, "a page that is gone")
        crawl.site.pages["/b"] = "here again"
        undo = ("deletes", "--dir", "crawl", "--undo", "http://[^/]*/b")
        assert scrapy(*undo, cwd=crawl.folder).out == "1 of 1 page queued again\n"
        watching.until(lambda: crawl.state("/b") is UrlState.STORED, "a page that is back")
        watching.process.send_signal(signal.SIGTERM)
        assert watching.process.wait(60) == 0
    crawl.site.pages["/c"] = "the third text is new"
    day_is("7")
    with watching:
        watching.until(lambda: stored("/c") == 2, "what changed meanwhile")
        assert watching.act("stop").status == 200
        assert watching.process.wait(60) == 0


def test_all_requests_of_a_refresh_are_counted_by_purpose(crawl: Crawl) -> None:
    """As the server has them; summary, totals and report agree."""
    crawl.run()
    total = 0
    crawl.site.pages |= {"/a": "another text <a href=/new>new</a>", "/b": "", "/new": "new"}
    for crawl.days in (1, 2, 3, 4):
        done = crawl.run("due", LARM_REFRESH_PER_DAY="100")
        said = re.search(
            r"(\d+) requests? in all: (\d+) visits, (\d+) second looks, (\d+) proofs, (\d+) other",
            done.out,
        )
        assert said, done.out
        requests, *parts = map(int, said.groups())
        assert requests == sum(parts) == len(crawl.server.log), [done.out, crawl.server.log]
        total += requests
    by_purpose = requests_by_purpose(Totals.read(crawl.folder / "crawl").counters)
    assert sum(by_purpose.values()) == total
    report = scrapy("report", "--dir", "crawl", cwd=crawl.folder)
    assert requests_in_words(by_purpose) in report.out


def test_pages_of_a_host_that_does_not_answer_leave_when_that_is_approved(crawl: Crawl) -> None:
    """Though it does not answer; if it has answered since, the approval is void, which is said."""
    other = Site(x="the other text", y="one more", z="and the last")
    crawl.more = ["-a", r"restrict=http://127\.0\.0\.[12]:\d+/.*"]
    with ScriptedServer({"*": other.answer}, "127.0.0.2") as second:
        name, port = second.url("").removeprefix("http://").rstrip("/"), second.port
        crawl.site.pages["/a"] += f" <a href={second.url('/')}>there</a>"
        crawl.run()
        state = _states(crawl, second)
        assert state() == {UrlState.STORED}
    fast = {"LARM_RETRY_TIMES": "0", "LARM_HOST_MAX_FAILURES": "1", "LARM_REFRESH_PER_DAY": "99"}

    def deletes(*words: str) -> Ran:
        return scrapy(
            "deletes", "--dir", "crawl", *words, cwd=crawl.folder, settings_module=crawl.module
        )

    for crawl.days in (1, 5):
        crawl.run("due", **fast)
    assert "Nothing pending" in deletes().out
    crawl.days = 9
    crawl.run("due", **fast)
    said = deletes().out
    assert f"{name}: no answer since" in said, said
    assert second.url("/x") in said
    assert deletes("--approve", name).out.startswith("4 pages of")
    with ScriptedServer({"*": other.answer}, "127.0.0.2", port=port):
        crawl.days = 10
        done = crawl.run("due", **fast)
        assert f"approval for {name} is void" in done.err, done.err
        assert state() == {UrlState.STORED}
    for crawl.days in (11, 15, 20):
        crawl.run("due", **fast)
        assert state() == {UrlState.STORED}, "an approval of another silence"
    deletes()
    deletes("--approve", name)
    crawl.days = 21
    done = crawl.run("due", **fast)
    assert state() == {UrlState.UNKNOWN}, done.err
    assert f"dead        4 pages of {name} (no answer of the host since" in done.out, done.out
    assert "4 removed" in done.out
    assert "Nothing pending" in deletes().out
    assert {line["url"] for line in records(crawl.folder / "crawl/deleted.log")} == {
        second.url(path) for path in ("/", "/x", "/y", "/z")
    }
    found = scrapy("search", "--dir", "crawl", "--json", "last", cwd=crawl.folder).json
    assert found["total"] == 0
    explained = scrapy("explain", "--dir", "crawl", second.url("/x"), cwd=crawl.folder).out
    assert "no answer of the host since" in explained


def _states(crawl: Crawl, server: ScriptedServer) -> Callable[[], set[UrlState]]:
    def states() -> set[UrlState]:
        with FrontierReader(crawl.folder / "crawl/frontier") as frontier:
            return {frontier.state(url_key(server.url(path))) for path in ("/", "/x", "/y", "/z")}

    return states


def test_explain_tells_a_page_s_history_in_plain_words(crawl: Crawl) -> None:
    site, answer = crawl.site, crawl.site.answer
    site.pages |= {f"/p{n}": f"text of page {n}" for n in range(6)} | {"/no": "x"}
    site.first = list(site.pages)
    site.robots = "User-agent: *\nDisallow: /no"
    crawl.server.routes["*"] = lambda request: (
        Reply(410) if request.path == "/c" and crawl.days else answer(request)
    )
    crawl.run()

    def explained(path: str) -> str:
        url = crawl.server.url(path)
        found = scrapy(
            "explain", "--dir", "crawl", url, cwd=crawl.folder, settings_module=crawl.module
        )
        assert found.status == 0, found.err
        return found.out

    site.pages["/b"] = ""
    crawl.days = 1
    crawl.run("all")
    assert "missing 1 time since" in explained("/b")
    assert "the page leaves after 3 times over 2 days" in explained("/b")
    gone = explained("/c")
    assert re.search(r"left the search \S+: gone \(HTTP 410\)", gone), gone
    assert "requested once more by the first refresh after" in gone
    assert "robots.txt is checked again about" in explained("/no")
    for crawl.days in (2, 3.1):
        crawl.run("all")
        if crawl.days == 2:
            assert "missing 2 times since" in explained("/b")
    assert re.search(r"left the search \S+: missing [34] times over", explained("/b"))
    assert "is back" not in explained("/b")
    site.pages["/b"], crawl.days = "here again", 4
    scrapy("deletes", "--dir", "crawl", "--undo", crawl.server.url("/b"), cwd=crawl.folder)
    crawl.run("due")
    assert "is back: it was stored again since" in explained("/b")
