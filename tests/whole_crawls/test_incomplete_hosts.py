"""Hosts of which something cannot be had: the rest is crawled, and the crawl says what is left."""

import pytest

from larmspider.status.status import CrawlStatus
from tests.support.crawling import crawl, crawl_of_cases, scrapy
from tests.support.web.serving import Served

pytestmark = pytest.mark.acceptance


def links(*targets):
    return "".join(f"<a href='{target}'>to {target}</a> " for target in targets)


def failing(request):
    return 500, {}, b"<p>Internal error"


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
        ("nofollow", "says nofollow on all 1 pages; LARM_HOST_RULES"),
        ("header", "says nofollow on all 1 pages; LARM_HOST_RULES"),
        ("login", "asks for a login on all 2 answers"),
        ("shell", "needs JavaScript on all 1 pages"),
        ("moved", "redirects all 1 URLs to http://127.0.0.9/elsewhere, which is out of scope"),
        ("robots", "disallows 1 URL of those found"),
    ],
)
def test_the_end_and_the_report_say_why_little_of_a_host_is_stored(crawled, report, case, words):
    host = crawled.servers[case].url()[7:-1]
    (line,) = [one for one in crawled.ran.out.splitlines() if host in one and "little" in one[:9]]
    assert words in line
    (sentence,) = [one for one in report["shortfalls"] if host in one]
    assert line.split(None, 1)[1] == sentence


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
    assert len(report["shortfalls"]) == 6
