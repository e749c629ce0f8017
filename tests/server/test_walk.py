"""The server in Chromium: from the first start to the first hit, without a finding of axe-core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.servers.scripted import ScriptedServer
from tests.support.web.axe import findings
from tests.support.web.browser import Browser
from tests.support.web.console import serving
from tests.support.web.languages import untranslated

pytestmark = pytest.mark.acceptance
MOST_SECS = 180.0


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser() as running:
        yield running


def type_in(browser: Browser, name: str, text: str) -> None:
    field = browser.find(f'[name="{name}"]')
    field.clear()
    field.send_keys(text)


def test_from_the_first_start_to_the_first_hit(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path, browser: Browser
) -> None:
    """One-time key, token, preview, a mistake beside its field, crawl, search: under 3 minutes."""
    site = scripted_server(
        {"/": "<title>Start</title><p>penguins live here <a href=/b>b</a>", "/b": "<p>b"}
    )
    begun = time.monotonic()
    with serving(tmp_path) as server:
        browser.open(f"{server.url}/first?key={server.key}")
        assert findings(browser) == []
        type_in(browser, "password", "correct horse")
        browser.find("main form button").click()
        browser.until(lambda: browser.text("#token"), "the token")
        assert findings(browser) == []
        browser.find('main a[href="/new"]').click()
        browser.until(lambda: browser.find("[name=seeds]"), "the form")
        type_in(browser, "name", "wiki")
        type_in(browser, "seeds", site.url("/"))
        type_in(browser, "schedule.run", "evry day")
        browser.find("button[formaction]").click()
        wrong = browser.until(lambda: browser.find('[aria-invalid="true"]'), "the mistake")
        assert wrong.get_attribute("name") == "schedule.run"
        said = browser.find(f'[id="{wrong.get_attribute("aria-describedby")}"]').text
        assert "is not a schedule" in said
        assert findings(browser) == []
        type_in(browser, "schedule.run", "every day at 02:00")
        browser.find("button[formaction]").click()
        browser.until(lambda: browser.find("#preview"), "the preview")
        assert "2 pages fetched" in browser.text("main")
        assert findings(browser) == []
        browser.find("main form button:not([formaction])").click()
        browser.until(lambda: browser.find("#state"), "the crawl's page")
        assert findings(browser) == []
        browser.until(
            lambda: browser.driver.refresh() or browser.text("#state") == "ended", "its end"
        )
        browser.find('main a[href$="/search"]').click()
        browser.until(lambda: browser.find("[name=q]"), "the search").send_keys("penguins\n")
        browser.until(
            lambda: "penguins" in browser.text("main") and browser.all("main h2, main h3"), "hit"
        )
        assert time.monotonic() - begun < MOST_SECS
        pages(browser, server.url)


PATHS = (
    *("/", "/new", "/acts", "/users", "/see", "/account", "/failed", "/nowhere"),
    *("/control/search", "/control/queries", "/manage/wiki", "/manage/wiki/log/1", "/search"),
    *("/crawls/wiki/", "/crawls/wiki/hosts", "/crawls/wiki/links", "/crawls/wiki/control"),
)


def pages(browser: Browser, url: str) -> None:
    """The pages of the server and of a crawl: no finding, none too wide, all translated."""
    found = dict[tuple[str, str], object]()
    for path in PATHS:
        said = {}
        for language in ("en", "de", "fr"):
            browser.speak(language)
            browser.look(320 if language == "fr" else 1280, dark=language == "de")
            browser.open(url + path)
            if (wrong := findings(browser)) or browser.overflow() > 0:
                found[path, language] = wrong or browser.overflow()
            said[language] = browser.driver.page_source
        for language in ("de", "fr"):
            if left := untranslated(said["en"], said[language]):
                found[path, language] = left
    assert found == {}
