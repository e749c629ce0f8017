"""Hosts of which something cannot be had: the rest is crawled, and the crawl says what is left."""

from itertools import count

import pytest

from larmspider.learned.shortfall import SHOWN
from larmspider.status.status import CrawlStatus
from tests.support.crawling import crawl, crawl_of_cases, records, scrapy
from tests.support.servers.generators import document, page
from tests.support.web.serving import Served

pytestmark = pytest.mark.acceptance


def links(*targets):
    return "".join(f"<a href='{target}'>to {target}</a> " for target in targets)


def failing(request):
    return 500, {}, b"<p>Internal error"


DOCUMENTS = 20
HTML = {"Content-Type": "text/html"}


def application(views, answer):
    """Pages of content, each with ``views`` of it, and their ``answer``."""
    asked = count(1)

    def site(request):
        path, _, query = request.target.partition("?")
        if path == "/robots.txt":
            return 404, {}, b""
        if query:
            return answer(request.target, next(asked))
        number = int(path.removeprefix("/doc/") or 0) if path != "/" else DOCUMENTS
        around = [f"/doc/{n}" for n in range(DOCUMENTS)] if path == "/" else []
        each = [f"{path}?do={view}" for view in views]
        text = f"<title>{path}</title><p>{document(number)}</p>{links(*around, *each)}"
        return 200, HTML, text.encode()

    return {"*": site}


def half_of_the_views_fail(target, _number):
    if target.endswith(("=edit", "=log")):
        return 500, {}, b"<p>Internal error"
    return 200, HTML, b"<p>A view for the printer of nothing"


def an_error_text(_target, number):
    ticket = f"<p>An error has occurred. Name ticket {10**9 + number} to the help desk."
    return 200, HTML, ticket.encode()


def every_tenth_is_too_many(_target, number):
    if number % 10 == 0:
        return 429, {"Retry-After": "1"}, b"slowly"
    return 200, HTML, b"<p>A view of it"


def another_at_each_visit(_target, number):
    """Other words, and other links."""
    more = (f"/doc/1?visit={number}", f"/doc/1?visit={number + 100_000}")
    return page("News", f"{document(number % 7)} Visit {number}.", *more)


BROKEN = [f"/broken/{number}" for number in range(12)]
GOOD = [f"/page/{number}" for number in range(8)]
CASES = {
    "nofollow": {
        "/": "<meta name=robots content=nofollow>" + links("/a", "/b"),
        "/a": "<p>left out",
    },
    "header": {
        "/": (
            200,
            {"Content-Type": "text/html", "X-Robots-Tag": "none"},
            links("/a", "/page/delete?id=1").encode(),
        ),
    },
    "login": {
        "/": (302, {"Location": "/login?next=/"}, b""),
        "/login": "<form><input type=password name=p></form> Please sign in",
    },
    "shell": {"/": "<div id=app>Loading</div><script src=/app.js></script>"},
    "moved": {"/": (301, {"Location": "http://127.0.0.9/elsewhere"}, b"")},
    "robots": {"/robots.txt": b"User-agent: *\nDisallow: /", "/": "<p>left out"},
    "adfs": {"/": (302, {"Location": "http://127.0.0.9/adfs/ls/?wa=wsignin1.0"}, b"")},
    "refresh": {
        "/": "<meta http-equiv=refresh content='0;url=/signin'>One moment",
        "/signin": "<form><input type=password name=p></form>",
    },
    "consent": {
        "/": (302, {"Location": "/consent?return=/"}, b""),
        "/consent": "<p>We set cookies.<form method=post action=/yes><button>Yes</button></form>",
    },
    "frames": {"/": "<title>A</title><frameset><frame src='http://127.0.0.9/menu'></frameset>"},
    "empty": {"/": (200, {"Content-Type": "text/html"}, b"")},
    "routes": {"/": "<p>Many words of a portal" + links("#/page/1", "#/page/2", "#/page/3")},
    "no-answer": {"/": (200, {"Content-Encoding": "gzip"}, b"this is no gzip")},
    "forms": {
        "/": links(*[f"/page/{n}" for n in range(8)], "/login?next=/"),
        **{
            f"/page/{n}": f"<p>This is page {n}" + links(f"/login?next=/page/{n}") for n in range(8)
        },
        "/login": "<form><input type=password name=p></form>",
    },
    "broken-view": {
        "/": links(*BROKEN, *GOOD),
        **dict.fromkeys(BROKEN, failing),
        **{path: f"<title>{path}</title><p>This is {path}" for path in GOOD},
    },
    "half": application(("edit", "log", "print", "text"), half_of_the_views_fail),
    "error-text": application(("edit", "log", "print", "text"), an_error_text),
    "too-many": application(("print",), every_tenth_is_too_many),
    "another": application(("more",), another_at_each_visit),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("incomplete")
    with crawl_of_cases(CASES, folder, LARM_TRAPS="learn") as done:
        yield done


def test_a_host_with_a_broken_view_is_crawled_whole(crawled):
    server = crawled.servers["broken-view"]
    assert crawled.ran.status == 0, crawled.ran.err
    assert {request.path for request in server.log} >= {*BROKEN, *GOOD}
    assert "left alone" not in crawled.ran.err


@pytest.mark.parametrize("case", ["half", "error-text", "too-many", "another"])
def test_the_pages_of_a_faulty_application_are_stored_and_the_crawl_ends(crawled, case):
    server = crawled.servers[case]
    log = records(crawled.folder / "crawl" / "store.log")
    stored = {line["url"] for line in log if line["http-code"] == "200"}
    assert stored >= {server.url(f"/doc/{number}") for number in range(DOCUMENTS)}
    assert len(server.log) < 1_000
    assert f"{server.host} is left alone" not in crawled.ran.err


def test_the_end_names_a_text_that_many_urls_answer(crawled):
    said = [line for line in crawled.ran.out.splitlines() if line.startswith("alike ")]
    (line,) = [one for one in said if crawled.servers["error-text"].host in one]
    assert " answers 200 with one text to " in line
    assert "An error has occurred. Name ticket" in line
    shown = scrapy("traps", "-s", f"LARM_DIR={crawled.folder / 'crawl'}", cwd=crawled.folder)
    assert '  says "An error has occurred. Name ticket' in shown.out, shown


def test_hosts_and_explain_name_a_broken_view(crawled):
    server = crawled.servers["broken-view"]
    crawl = ("-s", f"LARM_DIR={crawled.folder / 'crawl'}")
    hosts = scrapy("hosts", *crawl, cwd=crawled.folder)
    words = "failed with 500; the rest of the host works"
    assert "view /broken/*: " in hosts.out, hosts
    assert words in hosts.out, hosts
    explained = scrapy("explain", *crawl, server.url("/broken/7"), cwd=crawled.folder)
    assert words in explained.out, explained


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("nofollow", "says nofollow on its only page; LARM_HOST_RULES"),
        ("header", "says nofollow on its only page; LARM_HOST_RULES"),
        ("login", "asks for a login on all 2 answers"),
        ("shell", "needs JavaScript on its only page"),
        ("moved", "redirects its only URL to http://127.0.0.9/elsewhere, which is out of scope"),
        ("robots", "disallows 1 found URL"),
        ("adfs", "asks for a login on its only answer"),
        ("refresh", "asks for a login on all 2 answers"),
        ("consent", "has a form and no links on its only page"),
        ("frames", "has no link to itself, and 1 link out of scope, such as http://127.0.0.9/menu"),
        ("empty", "answers its only page without a word"),
        ("routes", "has no links but by JavaScript on its only page"),
        ("no-answer", "gave no answer: no valid answer"),
    ],
)
def test_the_end_and_the_report_say_why_little_of_a_host_is_stored(crawled, report, case, words):
    host = crawled.servers[case].url()[7:-1]
    (sentence,) = [one for one in report["shortfalls"] if host in one]
    assert words in sentence
    said = [one for one in crawled.ran.out.splitlines() if host in one and "little" in one[:9]]
    shown = report["shortfalls"].index(sentence) < SHOWN
    assert [one.split(None, 1)[1] for one in said] == [sentence] * shown


@pytest.fixture(scope="module")
def report(crawled):
    crawl = ("-s", f"LARM_DIR={crawled.folder / 'crawl'}")
    return scrapy("report", "--json", *crawl, cwd=crawled.folder).json


def test_hosts_that_are_stored_whole_are_not_named(crawled, report):
    whole = [crawled.servers[case].url()[7:-1] for case in ("broken-view", "forms")]
    assert not [one for one in report["shortfalls"] if any(host in one for host in whole)]


def test_a_login_that_each_page_links_to_is_asked_once(crawled):
    server = crawled.servers["forms"]
    assert len(server.requests("/login")) == 1
    assert len([one for one in server.log if one.path.startswith("/page/")]) == 8


def test_nofollow_is_ignored_where_the_host_rules_say_so(crawled, tmp_path):
    rules = '{"127.0.1.*": {"nofollow": "ignore"}}'
    cases = {"header": {**CASES["header"], "/a": "<p>Found"}, "nofollow": CASES["nofollow"]}
    with crawl_of_cases(cases, tmp_path, LARM_HOST_RULES=rules) as done:
        paths = {name: {one.path for one in done.servers[name].log} for name in cases}
    assert paths["header"] == {"/robots.txt", "/", "/a"}
    assert paths["nofollow"] == {"/robots.txt", "/", "/a", "/b"}


def test_a_wrong_rule_about_nofollow_is_one_line(tmp_path):
    ran = crawl("http://127.0.0.1:1/", tmp_path, LARM_HOST_RULES='{"wiki": {"nofollow": "no"}}')
    assert ran.status == 2
    assert ran.err.splitlines()[-1] == (
        "scrapy crawl: LARM_HOST_RULES: rule for host 'wiki': nofollow 'no':"
        " expected one of obey, ignore"
    )
    assert not (tmp_path / "crawl").exists()


def test_the_overview_has_the_same_sentences(crawled, report):
    status = CrawlStatus(Served(crawled.folder / "crawl").source).status(None, wait=True)
    assert list(status.shortfalls) == report["shortfalls"]
    assert len(report["shortfalls"]) == 13
