"""Pictures of every page of the web application, over a crawl of the demo intranet.

    $ make screenshots                      # those of the docs, in docs/screenshots
    $ python examples/screenshots.py --to pictures    # every page, both widths, light and dark
    $ python examples/screenshots.py --to pictures --only overview control

Takes Debian's chromium and chromium-driver, and selenium. Which pages: tests/support/web/
serving.py. The crawl is stopped half way by a pause, so that it has something to tell.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.intranet.serve import DemoServer
from tests.support.web.browser import Browser
from tests.support.web.crawling import Crawling
from tests.support.web.serving import LOOKS, shown

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (1280, 390)
DOCS = ROOT / "docs" / "screenshots"
IN_DOCS = ("overview", "host", "url", "links", "control")
SEARCHES = {
    "empty": ("/search", 1280, False),
    "typing": ("/search", 1280, False),
    "results": ("/search?q=siren", 1280, False),
    "nothing": ("/search?q=zyzzxt", 1280, False),
    "pdf": ("/search?q=siren&type=pdf", 1280, False),
    "phone": ("/search?q=siren&type=html", 390, False),
    "dark": ("/search?q=siren", 1280, True),
}
"""The search, for who is not signed in: by name the target, the width, and whether it is dark."""
TALLEST_SEARCH = 900
TALLEST = 1600
"""Pixels; what is lower is cut off."""
ENOUGH = 30
"""Pages that are stored before the first picture."""
LIVE_SECS = 3.0


def signed_in(browser: Browser, crawl: Crawling) -> None:
    browser.open(crawl.url + "/login")
    browser.find("input[name=token]").send_keys(crawl.token)
    browser.find("main button").click()
    browser.until(lambda: browser.text("h1") == "Control", "the control page")


def pictures(crawl: Crawling, browser: Browser, target: str) -> Iterator[tuple[str, bytes]]:
    """By width and colours."""
    for width in WIDTHS:
        for dark in (False, True):
            browser.look(width, 800, dark=dark)
            browser.open(crawl.url + shown(target, crawl.directory))
            if target == "/":
                time.sleep(LIVE_SECS)
            tall = browser.script("return document.documentElement.scrollHeight")
            browser.look(width, min(TALLEST, int(tall)), dark=dark)
            yield f"{width}-{'dark' if dark else 'light'}", browser.driver.get_screenshot_as_png()


def searches(site: str, browser: Browser) -> Iterator[tuple[str, bytes]]:
    for name, (target, width, dark) in SEARCHES.items():
        browser.look(width, TALLEST_SEARCH, dark=dark)
        browser.open(site + target)
        if name == "typing":
            browser.find("#q").send_keys("si")
            browser.until(lambda: browser.all("#suggested li"), "suggestions")
        tall = min(TALLEST_SEARCH, int(browser.script("return document.body.scrollHeight")) + 20)
        browser.look(width, max(tall, 360), dark=dark)
        yield f"search-{name}", browser.driver.get_screenshot_as_png()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=DOCS)
    parser.add_argument("--only", nargs="*", help=f"searches, {', '.join(LOOKS)}")
    options = parser.parse_args()
    docs = options.to == DOCS
    names = options.only or ["searches", *(IN_DOCS if docs else LOOKS)]
    options.to.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as folder,
        DemoServer() as server,
        Crawling(Path(folder), server.url, DOWNLOAD_DELAY="0.3") as crawl,
        Browser() as browser,
    ):
        crawl.until(lambda: crawl.gauges["urls"].get("stored", 0) > ENOUGH, "enough pages")
        found = "/search?q=siren&type=pdf&format=json"
        crawl.until(lambda: crawl.get(found).json["total"], "a PDF that is found")
        crawl.act("slow", {"factor": "20"})
        crawl.until(lambda: "being counted: " not in crawl.get("/links").text, "the logs counted")
        if "searches" in names:
            for name, picture in searches(crawl.url, browser):
                (options.to / f"{name}.png").write_bytes(picture)
                print(options.to / f"{name}.png", f"{len(picture):,} bytes")
        signed_in(browser, crawl)
        for name in (name for name in names if name != "searches"):
            for kind, picture in pictures(crawl, browser, LOOKS[name]):
                if docs and kind not in ("1280-light", "390-dark"):
                    continue
                path = options.to / f"{name}-{kind}.png"
                path.write_bytes(picture)
                print(path, f"{len(picture):,} bytes")


if __name__ == "__main__":
    main()
