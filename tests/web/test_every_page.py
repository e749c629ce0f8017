"""Every page of a crawl in Chromium, as an operator sees it: without a finding of axe-core, from a
phone to a wall, with large fonts, by keyboard alone, in German, whose words are the longest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.support.web.axe import findings
from tests.support.web.browser import Browser
from tests.support.web.serving import EVERY, TOKEN, Served, shown

pytestmark = pytest.mark.acceptance
MOST_TABS = 60
"""Tabs of one page; long tables repeat what their first rows show."""
ACTIVE = """
const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
return [e === document.body, [...document.querySelectorAll('*')].indexOf(e),
  style.outlineStyle !== 'none' || e.matches('.skip, iframe'), e.outerHTML.slice(0, 120),
  box.left < innerWidth && box.right > 0];
"""


@pytest.fixture(scope="module")
def site(demo_crawl: Path) -> Iterator[Served]:
    with Served(demo_crawl) as running:
        yield running


@pytest.fixture(scope="module")
def targets(site: Served, demo_crawl: Path) -> dict[str, str]:
    return {name: site.url + shown(target, demo_crawl) for name, target in EVERY.items()}


@pytest.fixture
def operator(site: Served, browser: Browser) -> Iterator[Browser]:
    """The browser, signed in."""
    browser.look()
    browser.open(f"{site.url}/login?next=/control")
    browser.find("input[name=token]").send_keys(TOKEN, Keys.ENTER)
    browser.until(lambda: browser.driver.current_url == f"{site.url}/control", "signed in")
    yield browser
    browser.scripts(on=True)
    browser.driver.delete_all_cookies()
    browser.speak("en")


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(
    operator: Browser, targets: dict[str, str], width: int, dark: bool
) -> None:
    """With all rules, including good practice."""
    operator.look(width, dark=dark)
    found = {}
    for name, target in targets.items():
        operator.open(target)
        if one := findings(operator):
            found[name] = one
    assert found == {}


def overflows(browser: Browser, targets: dict[str, str], change: Callable[[], Any]) -> Any:
    wide = {}
    for name, target in targets.items():
        browser.open(target)
        change()
        if (pixels := browser.overflow()) > 0:
            wide[name] = pixels
    return wide


@pytest.mark.parametrize("width", [320, 768, 1280, 2560])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_nothing_is_wider_than_the_window(
    operator: Browser, targets: dict[str, str], width: int, scripts: bool
) -> None:
    operator.speak("de")
    operator.scripts(on=scripts)
    operator.look(width)
    assert overflows(operator, targets, lambda: None) == {}


@pytest.mark.parametrize("width", [320, 1280])
def test_fonts_of_twice_the_size_fit(
    operator: Browser, targets: dict[str, str], width: int
) -> None:
    operator.speak("de")
    operator.look(width)

    def enlarge() -> None:
        operator.script("document.documentElement.style.fontSize = '200%'")

    assert overflows(operator, targets, enlarge) == {}


def test_each_page_is_walked_by_the_tab_key(operator: Browser, targets: dict[str, str]) -> None:
    """The focus can be seen, goes on, and leaves the page again; the first stop skips to the
    content."""
    operator.look(1280)
    bad = {}
    for name, target in targets.items():
        operator.open(target)
        operator.script("document.activeElement.blur(); window.focus()")
        seen: list[int] = []
        for number in range(MOST_TABS):
            ActionChains(operator.driver).send_keys(Keys.TAB).perform()
            is_body, at, is_seen, markup, is_in = operator.script(ACTIVE)
            if is_body or at in seen:
                break
            if not number and "autofocus" not in operator.driver.page_source:
                assert "skip" in markup, (name, markup)
            seen.append(at)
            if not (is_seen and is_in):
                bad.setdefault(name, []).append(markup)
        assert len(seen) > 1, name
        assert "<iframe" in operator.driver.page_source or seen == sorted(seen), name
    assert bad == {}


def test_the_first_hit_begins_in_the_upper_third_of_a_phone(site: Served, browser: Browser) -> None:
    browser.look(390, 844)
    browser.open(f"{site.url}/search?q=siren")
    assert browser.find("ol.hits > li").rect["y"] < 300
