"""Pictures of every page of the web application, over a crawl of the demo intranet.

    $ make screenshots                      # every page in four sizes and two looks
    $ make screenshots ARGS="--to pictures --only overview control --language de"

Takes Debian's chromium and chromium-driver, and selenium. Which pages: tests/support/web/
serving.py. The crawl is slowed down half way, so that it has something to tell. A name ends with
the width in pixels and the look: overview-1280-light.webp.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.intranet.serve import DemoServer
from tests.support.web.browser import Browser
from tests.support.web.crawling import Crawling
from tests.support.web.serving import EVERY, shown

DOCS = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
WIDTHS = (320, 768, 1280, 2560)
TYPING = "search-typing"
"""The search with suggestions below its box."""
NAMES = (*EVERY, TYPING)
TALLEST = 1200
"""Pixels; what is lower is cut off."""
WIDEST = 1280
"""Pixels of a picture; wider ones are made smaller."""
QUALITY = 60  # WebP: 10 to 40 kB a picture, and text of 13 pixels can be read
ENOUGH = 30
"""Pages that are stored before the first picture."""
LIVE_SECS = 3.0


def signed_in(browser: Browser, crawl: Crawling) -> None:
    browser.open(crawl.url + "/login?next=/control")
    browser.find("input[name=token]").send_keys(crawl.token)
    browser.find("main button").click()
    browser.until(lambda: browser.driver.current_url.endswith("/control"), "the control page")


def pictures(crawl: Crawling, browser: Browser, name: str) -> Iterator[tuple[str, Image.Image]]:
    """A page by width and look."""
    target = EVERY.get(name, "/search")
    for width in WIDTHS:
        for dark in (False, True):
            browser.look(width, 800, dark=dark)
            browser.open(crawl.url + shown(target, crawl.directory))
            if target == "/":
                time.sleep(LIVE_SECS)
            if name == TYPING:
                browser.find("#q").send_keys("si")
                browser.until(lambda: browser.all("#suggested li"), "suggestions")
            tall = int(browser.script("return document.documentElement.scrollHeight"))
            browser.look(width, min(TALLEST, tall), dark=dark)
            image = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
            image.thumbnail((WIDEST, TALLEST))
            yield f"{width}-{'dark' if dark else 'light'}", image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=DOCS)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--language", default="en", help="en, de or fr")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as folder,
        DemoServer() as server,
        Crawling(Path(folder), server.url, DOWNLOAD_DELAY="1") as crawl,
        Browser() as browser,
    ):
        browser.speak(options.language)
        crawl.until(lambda: crawl.gauges["urls"].get("stored", 0) > ENOUGH, "enough pages")
        found = "/search?q=siren&type=pdf&format=json"
        crawl.until(lambda: crawl.get(found).json["total"], "a PDF that is found")
        crawl.act("slow", {"factor": "100"})
        crawl.until(lambda: "being counted: " not in crawl.get("/links").text, "the logs counted")
        # the search as those see it who have not signed in
        names = sorted(options.only, key=lambda name: not name.startswith(("search", "login")))
        is_in = False
        for name in names:
            if not is_in and not name.startswith(("search", "login")):
                signed_in(browser, crawl)
                is_in = True
            for kind, image in pictures(crawl, browser, name):
                path = options.to / f"{name}-{kind}.webp"
                image.save(path, quality=QUALITY, method=6)
                print(path, f"{path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
