"""Nothing that the web, or a user, writes runs in a page or breaks it, as Chromium says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from larmspider.crawl.reader import CrawlDir
from larmspider.web.views import PAGES
from tests.support.crawling import crawl
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.browser import Browser
from tests.support.web.crawling import LONG, PAYLOADS, hostile_routes
from tests.support.web.serving import LOOKS, QUERIES, TOKEN, Served, asked, request, shown

pytestmark = pytest.mark.acceptance

POLICY = "default-src 'none'"


@pytest.fixture(scope="module")
def naughty(suites: Path) -> list[str]:
    """The 515 strings of the list of naughty strings."""
    strings = json.loads((suites / "naughty-strings" / "blns.json").read_text("utf-8"))
    assert len(strings) == 515
    return strings


@pytest.fixture(scope="module")
def hostile_crawl(tmp_path_factory: pytest.TempPathFactory, naughty: list[str]) -> Path:
    """A crawl of a site that is made of them and of PAYLOADS."""
    folder = tmp_path_factory.mktemp("hostile")
    with ScriptedServer(hostile_routes([*PAYLOADS, *naughty])) as server:
        ran = crawl(server.url("/"), folder, LARM_FILTER_LOGS="no", LARM_RETRY_TIMES="0")
    assert ran.status == 0, ran.err
    assert sum(1 for _ in CrawlDir(folder / "crawl").pages()) > 400
    return folder / "crawl"


@pytest.fixture
def site(hostile_crawl: Path) -> Iterator[Served]:
    with Served(hostile_crawl) as running:
        yield running


def sign_in(browser: Browser, site: Served) -> None:
    browser.driver.delete_all_cookies()
    browser.open(site.url + "/login")
    browser.find("input[name=token]").send_keys(TOKEN)
    browser.find("main button").click()
    browser.until(lambda: browser.text("h1") == "Control", "the control page")


FOUND = """
const found = (window, document) => [
  window.ran, document.title, document.querySelectorAll("[data-ran]").length,
  document.querySelectorAll('script:not([src^="/static/"]), iframe[srcdoc], base,'
    + ' meta[http-equiv], a[href^="javascript:" i], a[href^="data:" i], style, object,'
    + ' embed').length,
  [...document.querySelectorAll("main *, header *")].filter(
    e => e.getAttributeNames().some(n => n.startsWith("on"))).length];
"""
IN_FRAMES = f"""{FOUND}
const [targets, done] = arguments, results = [];
const show = async number => {{
  const answer = await fetch(targets[number]);
  const frame = document.createElement("iframe");
  frame.srcdoc = await answer.text();
  await new Promise(loaded => {{ frame.onload = loaded; document.body.append(frame); }});
  const shown = frame.contentDocument;
  results[number] = [
    answer.status, shown.querySelectorAll("h1").length, found(frame.contentWindow, shown)];
  frame.remove();
}};
let next = 0;
const worker = async () => {{ while (next < targets.length) await show(next++); }};
Promise.all([1, 2, 3, 4].map(worker)).then(() => done(results), error => done(String(error)));
"""


def assert_found_nothing(found: list[Any], target: str) -> None:
    """No script of another, no element of another."""
    ran, title, marked, foreign, handlers = found
    assert (ran, marked, foreign, handlers) == (None, 0, 0, 0), target
    assert title.endswith("larmspider"), target


def assert_nothing_ran(browser: Browser, target: str) -> None:
    """Nor had the policy anything to forbid."""
    told = [line for line in browser.errors() if "status of 4" not in line]
    assert told == [], target
    assert_found_nothing(browser.script(f"{FOUND} return found(window, document)"), target)


@pytest.mark.parametrize("target", LOOKS.values(), ids=LOOKS)
def test_pages_over_a_hostile_crawl(
    hostile_crawl: Path, site: Served, browser: Browser, target: str
) -> None:
    """Every page, signed in, wide and narrow: nothing runs, and it still fits."""
    sign_in(browser, site)
    for width in (1280, 390):
        browser.look(width)
        browser.open(site.url + shown(target, hostile_crawl))
        assert_nothing_ran(browser, target)
        assert browser.overflow() <= 0


def test_a_long_text_of_a_link_breaks(hostile_crawl: Path, site: Served, browser: Browser) -> None:
    """On the page about its source and on the page about its target; the address beside it keeps
    room."""
    start = CrawlDir(hostile_crawl).seeds[0]
    for url in (start, f"{start}p/0"):
        for width in (1280, 390):
            browser.look(width)
            browser.open(f"{site.url}/url?u={quote(url, safe='')}")
            assert LONG in browser.text("main")
            assert browser.overflow() <= 0, (url, width)
            narrowest = min(cell.size["width"] for cell in browser.all("table.links td"))
            assert narrowest > 100, (url, width)


def test_hostile_hits_are_text(site: Served, browser: Browser) -> None:
    """A search for the word that all of its pages have: titles, addresses and pieces of them."""
    browser.look()
    titles, addresses = "", list[str]()
    for page in range(1, 11):
        target = f"/search?q=common&page={page}"
        browser.open(site.url + target)
        assert_nothing_ran(browser, target)
        assert len(browser.all(".hits li")) == 10
        assert browser.overflow() <= 0
        titles += browser.text(".hits")
        addresses += [each.get_attribute("title") for each in browser.all(".hits .url")]
    assert titles.count("<script>") > 5
    assert sum("/p/" in address for address in addresses) >= 50


def test_hostile_urls_and_their_copies(hostile_crawl: Path, site: Served, browser: Browser) -> None:
    """Pages with a harmful address, and pages with harmful content: each is explained, and shown in
    its frame."""
    urls = [page.url for page in CrawlDir(hostile_crawl).pages()]
    means_harm = [url for url in urls if "%3C" in url.upper()]
    contents = [url for url in urls if re.search(r"/p/\d+$", url)]
    assert min(len(means_harm), len(contents)) > 20
    browser.look()
    for url in (*means_harm[::5][:20], *contents[:20]):
        target = f"/url?u={quote(url, safe='')}"
        browser.open(site.url + target)
        assert_nothing_ran(browser, target)
        assert browser.text("#verdict")
        assert browser.overflow() <= 0
        target = f"/view?u={quote(url, safe='')}"
        browser.driver.get(site.url + target)
        told = browser.errors()
        assert_nothing_ran(browser, target)
        assert browser.overflow() <= 0
        assert [line for line in told if "sandboxed" not in line] == [], target


@pytest.mark.parametrize("target", QUERIES)
def test_queries_with_payloads(site: Served, browser: Browser, target: str) -> None:
    """Whatever a user is made to ask for: some as pages, the others in frames."""
    sign_in(browser, site)
    for text in PAYLOADS[:3]:
        where = asked(target, text)
        browser.open(site.url + where)
        assert_nothing_ran(browser, where)
    show_in_frames(site, browser, [asked(target, text) for text in PAYLOADS[3:]])


def test_searches_for_naughty_strings(site: Served, browser: Browser, naughty: list[str]) -> None:
    """A third of them in the browser, the rest in test_queries_with_naughty_strings()."""
    targets = [asked("/search?q={text}", text) for text in naughty[::3]]
    for status, heads in show_in_frames(site, browser, targets):
        assert (status in (200, 400), heads) == (True, 1)


def show_in_frames(site: Served, browser: Browser, targets: list[str]) -> list[tuple[int, int]]:
    """Each answer is a document in a frame, under the policy of the page around it, which is the
    same; nothing runs there, and the console says nothing. Status and number of h1 of each."""
    browser.look()
    browser.open(f"{site.url}/search")
    browser.driver.set_script_timeout(180)
    results = browser.driver.execute_async_script(IN_FRAMES, targets)
    assert len(results) == len(targets)
    for target, (_, _, found) in zip(targets, results, strict=True):
        assert_found_nothing(found, target)
    assert_nothing_ran(browser, "the page around the frames")
    return [(status, heads) for status, heads, _ in results]


@pytest.mark.parametrize("target", QUERIES)
def test_queries_with_naughty_strings(site: Served, naughty: list[str], target: str) -> None:
    """An answer each time, never a 500; what is HTML has the policy and ends as it should. Every
    string goes to some four of the targets."""
    for text in [*naughty[QUERIES.index(target) % 4 :: 4], *PAYLOADS]:
        got = site.get(asked(target, text))
        assert got.status in (200, 303, 400, 404), (text, got.status)
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        if got.headers.get("Content-Type", "").startswith("text/html"):
            assert got.headers["Content-Security-Policy"].startswith(
                ("default-src 'none'", "sandbox")
            )
            if got.headers["Content-Security-Policy"].startswith(POLICY):
                assert got.text.rstrip().endswith("</html>"), text
                assert "<script>" not in got.text, text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:6080", "127.0.0.1.nip.io", "", "[", "a@b"]
)
def test_another_host_is_refused(site: Served, page: object, host: str) -> None:
    """DNS rebinding: a page elsewhere whose name points here reads nothing."""
    path = page.path.replace("{", "").replace("}", "")  # type: ignore[attr-defined]
    got = request(site.url + path, headers={"Host": host})
    assert got.status in (400, 421), got.text
    if got.status == 421:
        assert "LARM_WEB_HOSTS" in got.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_are_refused(site: Served, method: str) -> None:
    """GET and HEAD read, POST is control's."""
    for path in ("/", "/control", "/control/pause", "/static/larm.css", "/nothing"):
        assert request(site.url + path, method).status in (404, 405), path
    assert request(site.url + "/", "POST", form={}).status == 405
    assert request(site.url + "/", "HEAD").body == b""
    assert request(site.url + "/events", "HEAD").status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py", "/static/%2e%2e%2fguard.py", "/static/..%5cguard.py",
        "/static//etc/passwd", "/static/larm.css%00.html", "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/static/.hidden", "/web.token",
        "/crawl.json", "/static/templates/base.html", "/static/base.html", "/.git/config",
    ],
)  # fmt: skip
def test_no_path_leads_to_files(site: Served, path: str) -> None:
    """Only the packaged contents of static/ are files here."""
    got = request(site.url + path)
    assert got.status in (400, 404)
    assert b"root:" not in got.body
    assert b"import" not in got.body


def test_what_is_too_large_is_refused(site: Served) -> None:
    """A target, headers, a body; the server goes on."""
    assert request(site.url + "/?q=" + "x" * 540_000).status == 400
    assert request(site.url + "/", headers={"X-Long": "x" * 20_000}).status == 400
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert request(site.url + "/login", "POST", form, b"x" * 100_000).status == 413
    assert site.get("/").status == 200


def test_where_others_can_connect_everything_asks_for_the_token(
    hostile_crawl: Path, served: Callable[..., Served]
) -> None:
    """Except the health check, the sign-in page, and the paths that settings open."""
    from larmspider.web.auth import Guard

    guard = Guard(TOKEN, ["wiki.example"], closed=True, open_paths=["/metrics"])
    site = served(hostile_crawl, guard=guard)
    for page in PAGES:
        if "{" in page.path or page.path in ("/healthz", "/login", "/metrics"):
            continue
        assert site.get(page.path).status == 401, page.path
        seen = site.get(page.path, Accept="text/html")
        assert (seen.status, seen.headers["Location"].partition("?")[0]) == (303, "/login")
        let_in = site.get(page.path, Authorization=f"Bearer {TOKEN}").status
        assert let_in in (200, 400, 404), page.path  # copies are of a URL
    assert site.get("/events").status == 401
    for path in ("/healthz", "/login", "/metrics", "/static/larm.css"):
        assert site.get(path).status == 200, path
    assert site.get("/login", Host="wiki.example").status == 200
