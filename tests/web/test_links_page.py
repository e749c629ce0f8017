"""/links: broken links and the pages that have them, most linked pages; as HTML, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.crawl.log_index.builder import IndexBuilder
from larmspider.crawl.log_index.update import Update
from larmspider.crawl.reader import CrawlDir
from tests.support.web.browser import Browser
from tests.support.web.serving import Got, Served

ANCHORS = {"http://h/p0": '=HYPERLINK("http://evil/")', "http://h/p1": "<b>bold</b>"}


def fetch_line(url: str, result: str, message: str = "") -> str:
    return f"2026-01-31T12:00:00.000Z\t{url}\t{url}\t\t{result}\t0\t5\t{message}\n"


def link_line(page: str, target: str) -> str:
    return f"{page}\t{target}\t{target}\t0\t{ANCHORS.get(page, 'text')}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crawl's directory made by hand: 120 broken targets, of which two are on many pages."""
    crawl = tmp_path / "crawl"
    crawl.mkdir()
    (crawl / "crawl.json").write_text(json.dumps({"format": 2, "began": "2026-01-31T12:00:00Z"}))
    links = [link_line(f"http://h/p{n}", "http://h/gone") for n in range(80)]
    links += [link_line(f"http://h/p{n}", "http://other/dead") for n in range(30)]
    links += [link_line(f"http://h/p{n}", "http://h/menu") for n in range(100)]
    links += [link_line("http://h/p0", f"http://h/x{n}") for n in range(118)]
    (crawl / "links.log").write_text("".join(links))
    fetches = [fetch_line(f"http://h/x{n}", "404") for n in range(118)]
    fetches += [fetch_line("http://h/gone", "410"), fetch_line("http://h/menu", "200")]
    fetches += [fetch_line("http://other/dead", "dns", "<i>no such name</i>")]
    (crawl / "fetch.log").write_text("".join(fetches))
    return crawl


def counted(site: Served, query: str = "") -> Got:
    """The page once the links are counted."""
    end = time.monotonic() + 60
    while "being counted" in (got := site.get(f"/links{query}")).text or "the rest" in got.text:
        assert time.monotonic() < end
        time.sleep(0.1)
    return got


def test_broken_links_are_listed_with_who_carries_them(
    served: Callable[..., Served], folder: Path
) -> None:
    """Those on most pages first; pages that are too many to show are counted."""
    site = served(folder)
    text = counted(site).text
    assert "120 broken targets" in text
    rows = text.split("<tbody>")[1].split("<tr>")[1:]
    assert len(rows) == 50
    assert ">410</span>" in rows[0]
    assert "the first 50 of 80<" in rows[0]
    assert "all 30<" in rows[1]
    assert "http://h/p4<" in rows[0]
    assert ">dns</span>" in rows[1]
    assert "&lt;i&gt;no such name&lt;/i&gt;" in rows[1]
    assert "&lt;b&gt;bold&lt;/b&gt;" in rows[0]
    assert "http://h/x117" in site.get("/links?page=3").text


def test_most_linked_pages_and_hosts(served: Callable[..., Served], folder: Path) -> None:
    """A page counts once for each target."""
    site = served(folder)
    counted(site)
    pages = site.get("/links?show=pages&format=json").json["links"]
    assert [(row["url"], row["pages"]) for row in pages[:3]] == [
        ("http://h/menu", 100), ("http://h/gone", 80), ("http://other/dead", 30)
    ]  # fmt: skip
    hosts = site.get("/links?show=hosts&format=json").json["links"]
    assert hosts == [
        {"host": "h:80", "links": 298, "from-other-hosts": 0},
        {"host": "other:80", "links": 30, "from-other-hosts": 30},
    ]
    assert "http://h/menu" in site.get("/links?show=pages").text


def test_csv_has_a_row_for_each_page_and_no_formula(
    served: Callable[..., Served], folder: Path
) -> None:
    """Up to 50 pages for each target; spreadsheets know it as UTF-8."""
    site = served(folder)
    counted(site)
    got = site.get("/links?format=csv")
    assert got.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert got.headers["Content-Disposition"].startswith("attachment")
    rows = list(csv.DictReader(io.StringIO(got.text.removeprefix("\ufeff"))))
    assert len(rows) == 50 + 30 + 118
    assert (rows[0]["url"], rows[0]["pages"], rows[0]["page"]) == (
        "http://h/gone", "80", "http://h/p0"
    )  # fmt: skip
    assert rows[0]["anchor"] == "'" + ANCHORS["http://h/p0"]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())


def test_logs_that_cannot_be_counted_are_said_to_be_so(
    served: Callable[..., Served], folder: Path
) -> None:
    """And not to be on their way."""
    (folder / "logs.idx").write_text("in its place")
    site = served(folder)
    site.get("/links")
    child = site.source._indexing._child
    assert child is not None
    child.wait()
    page = site.get("/links").text
    assert "The logs cannot be counted: its process ended with status 1." in page
    assert "being counted" not in page
    got = site.get("/links?format=json")
    assert (got.status, got.json["complete"]) == (503, False)
    assert got.json["error"].startswith("The logs cannot be counted")


@pytest.mark.parametrize("form", ["csv", "json"])
def test_no_list_is_given_before_it_is_whole(
    served: Callable[..., Served], folder: Path, form: str
) -> None:
    """A script gets "come again later", whether there is no index yet or a part of one; the page
    has no link there. A crawl without links has an empty list."""

    def waiting(crawl: CrawlDir) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "60"])  # it is ended with the server

    def refused() -> None:
        got = site.get(f"/links?format={form}")
        assert (got.status, got.headers["Retry-After"]) == (503, "2")
        assert "The links of this crawl are being counted: " in got.text
        assert "Content-Disposition" not in got.headers
        page = site.get("/links")
        assert "are being counted: " in page.text
        assert page.headers["Refresh"] == "2"
        assert "format=" not in page.text

    site = served(folder)
    site.source._indexing = IndexBuilder(waiting)
    refused()
    crawl = site.source.crawl
    ends = crawl.committed()
    Update(folder, {"fetch.log": ends["fetch.log"]}, crawl.began, clock=lambda: 0.0).run()
    refused()
    Update(folder, ends, crawl.began).run()
    assert site.get(f"/links?format={form}").status == 200

    site.source._indexing.stop()
    site.source._indexing = IndexBuilder(waiting)
    for log in ("links.log", "fetch.log"):
        (folder / log).write_text("")
    assert site.get(f"/links?format={form}").status == 200


def test_the_page_goes_on_where_the_logs_grow(served: Callable[..., Served], folder: Path) -> None:
    """By another process, once it has rested."""
    site = served(folder)
    counted(site)
    site.source._indexing._due = 0.0
    with (folder / "fetch.log").open("a") as log:
        log.write(fetch_line("http://h/gone", "200"))
    end = time.monotonic() + 60
    while "119 broken targets" not in site.get("/links").text:
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.acceptance
def test_a_crawl_that_starts_over_is_counted_anew(
    served: Callable[..., Served], folder: Path
) -> None:
    """The rows of the earlier crawl are not shown meanwhile."""
    site = served(folder)
    counted(site)
    site.source._indexing._due = 0.0
    (folder / "links.log").write_text(link_line("http://n/", "http://n/gone"))
    (folder / "fetch.log").write_text(fetch_line("http://n/gone", "404"))
    draft = folder / "draft"
    draft.write_text(json.dumps({"format": 2, "began": "2026-02-01T12:00:00Z"}))
    draft.replace(folder / "crawl.json")
    assert "http://h/gone" not in site.get("/links").text
    text = counted(site).text
    assert "1 broken target:" in text
    assert "http://n/gone" in text


def test_it_is_the_page_of_the_demo_too(
    served: Callable[..., Served], demo_crawl: Path, browser: Browser
) -> None:
    """In a browser: the page that carries the broken link leads to its own explanation."""
    site = served(demo_crawl)
    counted(site)
    browser.look(390)
    browser.open(site.url + "/links")
    row = next(row for row in browser.all("tbody tr") if "Parking.html" in row.text)
    carrier = f"{CrawlDir(demo_crawl).seeds[0]}wiki/"
    assert carrier in row.text.split()
    next(link for link in browser.all("tbody a") if link.text == carrier).click()
    browser.until(lambda: "Stored" in browser.text("#verdict"), "the carrier's page")
    assert browser.overflow() <= 0
    assert browser.errors() == []


def test_the_table_of_hosts_fits_a_phone(
    served: Callable[..., Served], demo_crawl: Path, browser: Browser
) -> None:
    """Headings break, so that no number is cut off."""
    site = served(demo_crawl)
    browser.until(lambda: "<tbody>" in site.get("/links?show=hosts").text, "the links counted")
    browser.look(320)
    browser.open(f"{site.url}/links?show=hosts")
    over = "const e = document.querySelector('.scroll'); return e.scrollWidth - e.clientWidth"
    assert browser.script(over) == 0
