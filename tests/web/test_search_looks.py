"""The search as people use it, in Chromium: without a finding of axe-core, by keyboard alone, from
a phone to a wall of 2,560 pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from tests.support.web.axe import findings
from tests.support.web.browser import Browser
from tests.support.web.serving import TOKEN, Served, shown

pytestmark = pytest.mark.acceptance

LOOKS = {
    "empty": "/search",
    "results": "/search?q=siren",
    "filtered": "/search?q=siren&type=pdf&since=2001-01-01&sort=date",
    "no hit": "/search?q=zzyzzx&type=pdf",
    "corrected": "/search?q=expences",
    "error": "/search?q=title:",
    "not there": "/search/nowhere",
    "sign in": "/login",
    "similar": "/search?similar={site}wiki/Rotor.html",
    "cached copy": "/search/copy?q=siren&u={site}wiki/Rotor.html",
}
MOST_TABS = 200


@pytest.fixture(scope="module")
def site(demo_crawl: Path) -> Iterator[Served]:
    with Served(demo_crawl) as running:
        yield running


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
@pytest.mark.parametrize("target", LOOKS.values(), ids=LOOKS)
def test_axe_finds_nothing(
    site: Served, demo_crawl: Path, browser: Browser, target: str, look: str
) -> None:
    """With all rules, including good practice."""
    browser.look(390 if look == "phone" else 1280, dark=look == "dark")
    browser.open(site.url + shown(target, demo_crawl))
    assert findings(browser) == []


def test_axe_finds_nothing_on_why_a_page_is_where_it_is(site: Served, browser: Browser) -> None:
    """With three scores, to be told apart by their names."""
    hit = site.get("/search?q=siren&format=json").json["hits"][3]
    target = f"/control/why?q=siren&sort=date&u={quote(hit['url'], safe='')}"
    browser.look(1280)
    browser.open(f"{site.url}/login?next={quote(target, safe='')}")
    browser.find("input[name=token]").send_keys(TOKEN, Keys.ENTER)
    browser.until(lambda: "/control/why" in browser.driver.current_url, "signed in")
    browser.until(lambda: len(browser.all("[role=region]")) == 3, "three scores")
    try:
        assert findings(browser) == []
    finally:
        browser.driver.delete_all_cookies()


@pytest.mark.parametrize("width", [320, 768, 1280, 2560])
def test_it_fits_all_widths(site: Served, demo_crawl: Path, browser: Browser, width: int) -> None:
    """No page scrolls sideways or says anything to the console; facets are left of the hits where
    there is room, behind one line above them where there is not."""
    for target in LOOKS.values():
        browser.look(width, dark=width == 768)
        browser.open(site.url + shown(target, demo_crawl))
        assert browser.overflow() <= 0, target
        assert [line for line in browser.errors() if "status of 4" not in line] == [], target
    browser.open(f"{site.url}/search?q=siren")
    facets, hits = (browser.find(css).rect for css in ("#narrow", "ol.hits"))
    if width > 760:
        assert facets["x"] + facets["width"] <= hits["x"]
    else:
        assert not browser.find("#narrow").is_displayed()
        assert hits["y"] < 300
        browser.find("label[for=filters]").click()
        facets, hits = (browser.find(css).rect for css in ("#narrow", "ol.hits"))
        assert 0 < facets["height"] <= hits["y"] - facets["y"]


class Keyboard:
    """A user without a mouse."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def press(self, *keys: str) -> None:
        for key in keys:
            self.browser.driver.switch_to.active_element.send_keys(key)

    def tab_to(self, css: str) -> None:
        """Press Tab until the focus is on the element, which then shows it."""
        matches = (
            f"const e = document.activeElement; return e.matches({css!r}) && "
            "getComputedStyle(e).outlineStyle !== 'none' && e.getClientRects().length > 0"
        )
        for _ in range(MOST_TABS):
            if self.browser.script(matches):
                return
            self.press(Keys.TAB)
        raise AssertionError(f"no Tab leads to {css}")

    def follow(self, css: str, arrived: Callable[[], bool], what: str) -> None:
        self.tab_to(css)
        self.press(Keys.ENTER)
        self.browser.until(arrived, what)


def test_every_route_by_keyboard_alone(site: Served, browser: Browser) -> None:
    """From an empty box over suggestions to hits, facets, pages, copies, and back."""
    keys = Keyboard(browser)
    browser.look(1280)

    def at(part: str) -> Callable[[], bool]:
        return lambda: (
            part in browser.driver.current_url
            and browser.script("return document.readyState") == "complete"
        )

    browser.open(f"{site.url}/search")
    browser.until(lambda: browser.script("return document.activeElement.id") == "q", "the box")
    keys.press("ro")
    browser.until(lambda: browser.all("#suggested li"), "suggestions")
    keys.press(Keys.DOWN, Keys.DOWN, Keys.UP)
    chosen = browser.text("#suggested [aria-selected=true]")
    named = browser.find("#q").get_attribute("aria-activedescendant")
    assert browser.find(f"#{named}").text == chosen
    keys.press(Keys.ENTER)
    browser.until(at("q="), "results")
    assert browser.find("#q").get_attribute("value") == chosen
    browser.open(f"{site.url}/search?q=siren")
    browser.find("body").send_keys("/")
    assert browser.script("return document.activeElement.id") == "q"
    keys.press(Keys.ESCAPE)
    browser.find("body").send_keys("/")
    keys.press(Keys.DOWN, Keys.DOWN)
    focused = "return [...document.querySelectorAll('.hit a')].indexOf(document.activeElement)"
    assert browser.script(focused) == 1
    keys.press(Keys.UP, Keys.UP)
    assert browser.script("return document.activeElement.id") == "q"
    keys.follow('.facet a[href*="type=pdf"]', at("type=pdf"), "a facet")
    keys.follow("a.chip", lambda: "type=pdf" not in browser.driver.current_url, "the chip")
    keys.follow("a[href*='sort=date']", at("sort=date"), "the newest first")
    keys.follow("a[rel=next]", at("page=2"), "the next page")
    keys.follow("a[href^='/search?similar=']", at("similar="), "similar pages")
    keys.follow("a[href^='/search/copy?']", at("/search/copy?"), "a cached copy")
    browser.open(f"{site.url}/search?q=siren&type=archive")
    keys.follow("section li a", lambda: "type=" not in browser.driver.current_url, "without filter")
    keys.follow(".brand", lambda: browser.driver.current_url.endswith("/search"), "the start")
    keys.follow("#recent li a", at("q="), "a recent search")
    keys.follow(".brand", lambda: browser.driver.current_url.endswith("/search"), "the start")
    keys.tab_to("#recent button")
    keys.press(Keys.ENTER)
    assert browser.all("#recent") == []
    assert browser.script("return localStorage.length") == 0
    keys.follow("a[href^='/login']", at("/login"), "signing in")
    assert browser.errors() == []


def test_who_is_signed_in_signs_out_by_keyboard(site: Served, browser: Browser) -> None:
    """From the results, on a phone too, where axe-core finds nothing and all fits."""
    keys = Keyboard(browser)
    browser.look(1280)
    browser.open(f"{site.url}/login?next=/search%3Fq%3Dsiren")
    browser.find("input[name=token]").send_keys(TOKEN, Keys.ENTER)
    browser.until(lambda: browser.all('form[action="/logout"]'), "signed in")
    for width in (320, 390, 1280):
        browser.look(width)
        assert browser.overflow() <= 0, width
        assert findings(browser) == [], width
    out = 'form[action="/logout"] button'
    keys.follow(out, lambda: browser.all("a[href^='/login']") != [], "signed out")
    assert browser.driver.current_url == f"{site.url}/search"
    assert browser.errors() == []


def test_recent_searches_are_offered_and_stay_here(site: Served, browser: Browser) -> None:
    """Those that found something, the last one first; an empty box shows them too."""
    browser.open(f"{site.url}/search")
    browser.script("localStorage.clear()")
    for query in ("siren", "rotor", "zzyzzx", "siren"):
        browser.open(f"{site.url}/search?q={query}")
    browser.open(f"{site.url}/search")
    assert [link.text for link in browser.all("#recent li a")] == ["siren", "rotor"]
    browser.find("#q").send_keys(Keys.DOWN)
    assert [option.text for option in browser.all("#suggested li")] == ["siren", "rotor"]
    browser.script("localStorage.setItem('larmspider-recent', '{\"not\": [\"a list\"]}')")
    browser.open(f"{site.url}/search")
    assert browser.all("#recent") == []
    assert browser.errors() == []
