"""The pages with what is as large, as long or as strange as it gets, and with nothing at all: no
page is wider than its window, and each state has words.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.frontier.hosts import HostPace, HostRecord, HostState
from larmspider.frontier.politeness import Gap
from larmspider.frontier.storage.records import Counts
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.learned.describe import HostRow
from tests.support.web.browser import Browser
from tests.support.web.serving import Served

pytestmark = pytest.mark.acceptance
HOST = ".".join(["a" * 60, "b" * 60, "c" * 60, "d" * 60, "exam"])
"""The name has 248 characters; DNS allows 253."""
TITLES = {
    f"http://{HOST}/long": "Supercalifragilistic" * 100,
    "http://h/rtl": "שלום עולם extremes in ירושלים ١٢٣ and 日本語のとても長い題名 مرحبا",
    "http://h/marks": "\u202eevil\u202c \u2067turned round",
    "http://h/none": "",
    "http://h/unseen": "\u200b\u2060\ufeff",
    "http://h/family": "\U0001f469\u200d\U0001f467" * 300,
    "http://h/marked": "Z" + "\u0301\u0315\u0489" * 300,
    "http://h/" + "path/" * 400: "a long URL",
}
FACETS = 10_000
BODY_SIZE = "return parseFloat(getComputedStyle(document.body).fontSize)"
SIZES = {"phone": 320, "desk": 1280, "wall": 2560}


@pytest.fixture(scope="module")
def site(demo_crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An index of such pages, and a table of such hosts."""
    folder = tmp_path_factory.mktemp("extremes")
    shutil.copy(demo_crawl / "crawl.json", folder)
    with IndexWriter(folder / "index") as index:
        for url, title in TITLES.items():
            index.add(
                Page(url, title=title, text=f"extremes {'w' * 2000} {title}", body=url.encode())
            )
        for n in range(FACETS):
            index.add(Page(f"http://h{n}.example/", text="many", body=b"%d" % n))
    with Served(folder) as running:
        rows = {name: row_of(name) for name in (f"{HOST}:80", "h:80")}
        running.source.hosts = lambda *, wait=False: rows  # type: ignore[method-assign]
        yield running


def row_of(name: str) -> HostRow:
    counts = Counts(discovered=10**7, stored=10**7)
    record = HostRecord(name, state=HostState.PARKED, until=1.0, reason="x" * 300)
    return HostRow(name, "parked", counts, Gap(0.5, "delay"), 1.0, "x" * 300, record, HostPace())


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A crawl that has not stored a page."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "crawl.json").write_text(json.dumps({"format": 2, "began": "2026-01-31T12:00:00Z"}))
    with Served(folder) as running:
        yield running


TARGETS = (
    "/search?q=extremes",
    "/search?q=many",
    f"/search?q=host:{HOST}",
    "/search?q=" + "x" * 250,
    "/hosts",
    "/",
    "/links",
    f"/url?u=http://{HOST}/long",
)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_nothing_is_wider_than_the_window(site: Served, browser: Browser, size: int) -> None:
    """Long titles, URLs, hosts and reasons break or are cut."""
    browser.look(size)
    wide = {}
    for target in TARGETS:
        browser.open(site.url + target)
        if (pixels := browser.overflow()) > 0:
            wide[target[:40]] = pixels
    assert wide == {}


@pytest.mark.parametrize("size", [320, 1280])
def test_fonts_of_twice_the_size_fit(site: Served, browser: Browser, size: int) -> None:
    """As a browser's setting for large text gives them."""
    browser.look(size)
    wide = {}
    for target in TARGETS:
        browser.open(site.url + target)
        before = browser.script(BODY_SIZE)
        browser.script("document.documentElement.style.fontSize = '200%'")
        assert browser.script(BODY_SIZE) == 2 * before
        if (pixels := browser.overflow()) > 0:
            wide[target[:40]] = pixels
    assert wide == {}


def test_strange_titles_are_whole_and_do_not_turn_others(site: Served, browser: Browser) -> None:
    """A page without a title has a name; a right-to-left title ends with itself."""
    browser.look()
    browser.open(f"{site.url}/search?q=extremes")
    titles = [element.text for element in browser.all("h2.hit a")]
    assert len(titles) == len(TITLES)
    assert all(titles), titles
    assert not any("\ufffd" in title for title in titles if "turned round" not in title)
    heights = browser.script(
        "return [...document.querySelectorAll('h2.hit')].map(e => e.offsetHeight)"
    )
    assert max(heights) < 100, "three lines at most"
    assert any("日本語" in title and "שלום" in title for title in titles)
    directions = browser.script(
        "return [...document.querySelectorAll('h2.hit a')].map(e => e.closest('[dir]')?.dir || '')"
    )
    assert set(directions) == {"auto"}, directions


def test_many_facet_values_are_cut_and_counted(site: Served) -> None:
    """A page with 10,000 hosts shows a few, and says how many there are besides."""
    page = site.get("/search?q=many").text
    assert f"{FACETS:,} pages found" in page
    assert len(page.encode()) < 60_000


@pytest.mark.parametrize("scripts", [True, False])
def test_each_empty_state_has_words(empty: Served, browser: Browser, scripts: bool) -> None:
    """Without a page, a host, a link; without JavaScript too."""
    browser.look(320)
    browser.scripts(on=scripts)
    try:
        for target, words in {
            "/": "0 of 0 known URLs done: 0 stored",
            "/hosts": "No host matches",
            "/links": "No link is known yet",
            "/search?q=x": "there is no search index",
        }.items():
            browser.open(empty.url + target)
            text = browser.text("main")
            assert words in text, (target, text[:500])
            assert len(text) > 20
            assert browser.overflow() <= 0, target
    finally:
        browser.scripts(on=True)
