"""/hosts and a host's page: what an operator asks first, with and without scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from larmspider.crawl.reader import CrawlDir
from larmspider.frontier.hosts import HostPace, HostRecord, HostState
from larmspider.frontier.politeness import Gap
from larmspider.frontier.storage.records import Counts
from larmspider.learned.describe import HostRow
from larmspider.web.views import hosts
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.browser import Browser
from tests.support.web.crawling import Crawling
from tests.support.web.serving import Served

STATES = ["ready", "parked", "snoozed", "new"]


def row(number: int) -> HostRow:
    state = STATES[number % 4]
    return HostRow(
        host=f"h{number}:80",
        state=state,
        counts=Counts(discovered=number, queued=number % 13, stored=number),
        gap=Gap(float(number % 7), "delay"),
        next_time=0.0,
        reason="5 failures in a row: <b>dns</b>" if state == "parked" else "",
        record=HostRecord(f"h{number}:80", state=HostState.READY),
        rule=HostPace(),
    )


@pytest.fixture
def many(
    served: Callable[..., Served], demo_crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> Served:
    """A crawl of 1,234 hosts, as far as the table goes."""
    site = served(demo_crawl)
    rows = {found.host: found for found in map(row, range(1234))}
    monkeypatch.setattr(site.source, "hosts", lambda: rows)
    return site


def names(text: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a>', text)


def seed(crawl: Path) -> str:
    return CrawlDir(crawl).seeds[0]


@pytest.mark.parametrize(
    "query, first, order",
    [
        ("", "h1000:80", "descending"),
        ("?sort=stored", "h1233:80", "descending"),
        ("?sort=stored&dir=back", "h0:80", "ascending"),
        ("?sort=host", "h0:80", "ascending"),
        ("?sort=host&dir=back", "h9:80", "descending"),
        ("?sort=stored&page=2", "h1133:80", "descending"),
        ("?sort=stored&page=99", "h33:80", "descending"),
        ("?sort=stored&state=parked", "h1233:80", "descending"),
        ("?sort=stored&q=H77", "h779:80", "descending"),
        ("?sort=<script>&page=x&state=none", "h1000:80", "descending"),
    ],
)
def test_hosts_are_sorted_filtered_and_paged(
    many: Served, query: str, first: str, order: str
) -> None:
    """By links and a form; what makes no sense is the default."""
    text = many.get(f"/hosts{query}").text
    found = names(text)
    assert found[0] == first
    assert len(found) <= 100
    assert re.findall('aria-sort="([a-z]+)"', text) == [order]


def test_a_filter_shows_matching_hosts_only(many: Served) -> None:
    """The rows match both filters, and their number is shown."""
    text = many.get("/hosts?q=h12&state=parked&sort=host").text
    expected = sorted(
        found.host
        for found in map(row, range(1234))
        if "h12" in found.host and found.state == "parked"
    )
    assert names(text) == expected
    assert f"{len(expected)} hosts" in text
    assert "No host matches" in many.get("/hosts?q=nothing").text


def test_reasons_from_the_web_are_text(many: Served) -> None:
    """As all strings are."""
    text = many.get("/hosts?state=parked").text
    assert "&lt;b&gt;dns&lt;/b&gt;" in text
    assert "<b>" not in text


def test_the_reason_and_the_wait_are_two_sentences(
    served: Callable[..., Served], demo_crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a space between them."""
    made = hosts.host_page
    monkeypatch.setattr(hosts, "host_page", lambda *given: replace(made(*given), row=row(1)))
    text = served(demo_crawl).get(f"/hosts/{seed(demo_crawl).split('/')[2]}").text
    assert re.search(r"&lt;/b&gt;\.\s+The crawl does not run\.", text)


def test_a_hosts_page_says_what_its_pace_is_and_why(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """State, delay and rule, robots.txt with our lines, recent fetches, failures."""
    site, start = served(demo_crawl), seed(demo_crawl)
    host = start.split("/")[2]
    page = site.get(f"/hosts/{host}?u={start}private/plan.html").text
    assert "by delay" in page
    assert re.search(r"Refused:\s+line \d+ decides, <code>Disallow: /private/</code>", page)
    assert "<mark>Disallow: /private/</mark>" in page
    assert f"u={start.replace('/', '%2F').replace(':', '%3A')}" in page
    assert "Recent fetches" in page
    assert site.get(f"/host?u={start}").status == 200
    unknown = site.get("/hosts/unknown:80")
    assert unknown.status == 404
    assert '<a href="/hosts">All hosts</a>' in unknown.text


def test_results_and_failures_come_with_the_index_of_the_logs(
    served: Callable[..., Served], demo_crawl: Path
) -> None:
    """The first request makes the index."""
    site = served(demo_crawl)
    target = f"/host?u={seed(demo_crawl)}"
    end = time.monotonic() + 60
    while "All fetches as of" not in (page := site.get(target).text):
        assert time.monotonic() < end
        time.sleep(0.1)
    failures = page[page.index("<h2>Failures") :]
    assert "/reports/yearly" in failures
    assert ">500</span>" in failures


@pytest.mark.parametrize("scripts", [True, False])
def test_the_table_sorts_and_filters_in_a_browser(
    many: Served, browser: Browser, scripts: bool
) -> None:
    """Also where scripts may not run, and from the keyboard."""
    browser.look(1280)
    browser.scripts(on=scripts)
    try:
        browser.open(many.url + "/hosts")
        browser.find("thead a[href*='sort=stored']").click()
        browser.until(lambda: browser.text("tbody th") == "h1233:80", "sorted by stored")
        browser.find("thead a[href*='sort=stored']").click()
        browser.until(lambda: browser.text("tbody th") == "h0:80", "turned round")
        assert browser.find("th[aria-sort]").get_attribute("aria-sort") == "ascending"
        field = browser.find("input[name=q]")
        field.send_keys("h77", Keys.ENTER)
        browser.until(lambda: browser.text("tbody th") == "h77:80", "filtered")
        assert len(browser.all("tbody tr")) == 11
        assert browser.errors() == []
    finally:
        browser.scripts(on=True)


# A host whose fetches fail and are tried again: its page and the overview say so meanwhile.


TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
HTML = {"Content-Type": "text/html"}


def test_failed_attempts_are_shown_before_a_url_is_given_up(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """How many, of which kind, when they are tried again; and that there is no robots.txt."""
    links = b"<a href=/bad>x</a>"
    routes = {"/": (200, HTML, links), "/bad": (503, {}, b""), "/robots.txt": (404, {}, b"")}
    server = scripted_server(routes)
    with Crawling(tmp_path, server.url("/"), LARM_BACKOFF_SECS="300") as crawl:
        target = f"/hosts/127.0.0.1:{server.port}"
        crawl.until(lambda: crawl.gauges["urls"]["delayed"] == 1, "a failure")
        crawl.until(lambda: 'id="trouble"' in crawl.get(target).text, "it at a checkpoint")
        page = " ".join(crawl.get(target).text.split())
        assert "1 URL whose last attempt failed is retried." in page
        assert re.search(f"1 failure in a row, the last one HTTP 503 at {TIME}", page)
        again = page[page.index("Waiting for a retry") : page.index("Queue head")]
        assert re.search(rf"<td[^>]*>{TIME}</td><td><a [^>]*>{server.url('/bad')}</a>", again)
        robots = page[page.index('id="robots-outcome"') :]
        assert "None (404): everything is allowed." in robots
        assert re.search(f"Requested at {TIME}, holds until {TIME}\\.", robots)
        overview = crawl.get("/").text
        assert 'data-text="retry">1<' in overview
        tried = overview[overview.index("Retries by kind") :]
        assert re.search(r'<th scope="row">HTTP 503</th><td class="num">1</td>', tried)
        one = re.compile(r'</span></td>\s*<td class="num">1</td>\s*<td class="num">1</td>')
        crawl.until(lambda: one.search(crawl.get("/hosts?sort=retry").text), "the table anew")


def test_a_robots_txt_that_fails_is_shown_as_that(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Not as one that was not asked for."""
    server = scripted_server({"/robots.txt": (500, {}, b""), "/": "x"})
    with Crawling(tmp_path, server.url("/"), LARM_BACKOFF_SECS="300") as crawl:
        target = f"/hosts/127.0.0.1:{server.port}"
        crawl.until(lambda: "Not reached (HTTP 500)" in crawl.get(target).text, "the failure")
        page = " ".join(crawl.get(target).text.split())
        assert re.search(f"until it is\\. Requested at {TIME}, not again before {TIME}\\.", page)
        assert "the last one HTTP 500 while asking for robots.txt at" in page
