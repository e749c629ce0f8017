"""Headless Chromium (Debian's chromium and chromium-driver) with a profile of its own.

browser.open(site.url + "/")
browser.text("h1"), browser.errors(), browser.overflow()
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1",
    "--lang=en-US", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.*, EXCLUDE localhost",
)  # fmt: skip
WAIT_SECS = 120.0


class Browser:
    """Its requests to other servers than the one under test go nowhere."""

    def __enter__(self) -> Self:
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if chromium is None or driver is None:
            pytest.skip("not installed: Debian's chromium and chromium-driver")
        self._profile = tempfile.TemporaryDirectory(prefix="larm-chromium-")
        options = ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={self._profile.name}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = Chrome(options=options, service=Service(driver))
        self.driver.set_page_load_timeout(WAIT_SECS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.driver.quit()
        self._profile.cleanup()

    def open(self, url: str) -> None:
        """Go there, forgetting what the console said before."""
        self.errors()
        self.driver.get(url)

    def look(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """The window's width in CSS pixels, and what prefers-color-scheme says."""
        command: Callable[..., Any] = self.driver.execute_cdp_cmd
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        command("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        command("Emulation.setEmulatedMedia", {"features": [scheme]})

    def speak(self, language: str) -> None:
        """The language that pages are asked for from now on."""
        command: Callable[..., Any] = self.driver.execute_cdp_cmd
        command("Network.enable", {})
        command("Network.setExtraHTTPHeaders", {"headers": {"Accept-Language": language}})

    def scripts(self, *, on: bool) -> None:
        """Whether pages opened from now on may run scripts."""
        command: Callable[..., Any] = self.driver.execute_cdp_cmd
        command("Emulation.setScriptExecutionDisabled", {"value": not on})

    def find(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def text(self, css: str) -> str:
        """The visible text of the first element."""
        return self.find(css).text

    def script(self, code: str) -> Any:
        return self.driver.execute_script(code)  # type: ignore[no-untyped-call]

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(
            self.script(
                "const e = document.documentElement;"
                "return Math.max(e.scrollWidth, document.body.scrollWidth) - e.clientWidth"
            )
        )

    def errors(self) -> list[str]:
        """New messages of the console, among them forbidden scripts. Requests of an earlier page to
        its server, which has ended, do not count."""
        origin = "/".join(self.driver.current_url.split("/", 3)[:3])
        said = [str(entry["message"]) for entry in self.driver.get_log("browser")]
        return [
            line for line in said if "ERR_CONNECTION_REFUSED" not in line or line.startswith(origin)
        ]

    def until(self, true: Callable[[], Any], what: str, seconds: float = WAIT_SECS) -> Any:
        """The first true value; AssertionError naming ``what`` if none comes. A page that is just
        being left has none."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(WebDriverException):
                if value := true():
                    return value
            time.sleep(0.05)
        raise AssertionError(f"not in {seconds:g} s: {what}; {self.driver.page_source[:2000]}")
