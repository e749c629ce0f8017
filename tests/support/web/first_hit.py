"""A new user with a stopwatch: from the address that the server prints to the first hit."""

from __future__ import annotations

import time

from tests.support.web.browser import Browser


class Stopwatch:
    """Seconds of each step, since the step before."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self._last = time.monotonic()

    def __call__(self, step: str) -> None:
        now = time.monotonic()
        self.steps[step], self._last = round(now - self._last, 1), now

    @property
    def after_install(self) -> float:
        """Seconds without the installation, which waits for the package index and for other tests'
        processors."""
        return sum(self.steps.values()) - self.steps.get("install", 0.0)

    def __str__(self) -> str:
        total = sum(self.steps.values())
        return f"{', '.join(f'{k} {v} s' for k, v in self.steps.items())}: {total:.0f} s"


def first_hit(browser: Browser, address: str, seed: str, word: str, watch: Stopwatch) -> None:
    """One-time key, New crawl, start, search for ``word``; the defaults of the form, by mouse and
    keyboard."""
    browser.open(address)
    browser.find('[name="password"]').send_keys("correct horse")
    browser.find("main form button").click()
    browser.until(lambda: browser.text("#token"), "the token")
    browser.find('main a[href="/new"]').click()
    browser.until(lambda: browser.find("[name=seeds]"), "the form")
    watch("signed in")
    browser.find('[name="name"]').send_keys("wiki")
    browser.find('[name="seeds"]').send_keys(seed)
    browser.find("main button[formaction]").click()
    browser.until(lambda: browser.find("#preview"), "the preview")
    watch("preview")
    browser.find("main form button:not([formaction])").click()
    browser.until(lambda: browser.find("#state"), "the crawl's page")
    browser.until(lambda: browser.driver.refresh() or browser.text("#state") == "ended", "its end")
    watch("crawl")
    browser.find('main a[href$="/search"]').click()
    browser.until(lambda: browser.find("[name=q]"), "the search").send_keys(f"{word}\n")
    browser.until(lambda: word in browser.text("main") and browser.all("main h2, main h3"), "hit")
    watch("hit")
