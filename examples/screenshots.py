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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.intranet.serve import DemoServer
from tests.support.web.browser import Browser
from tests.support.web.console import Running, serving, until
from tests.support.web.crawling import Crawling
from tests.support.web.serving import EVERY, shown

DOCS = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
WIDTHS = (320, 768, 1280, 2560)
TYPING = "search-typing"
"""The search with suggestions below its box."""
SERVER = {
    "server": "/",
    "server-new": "/new",
    "server-crawl": "/manage/wiki",
    "server-users": "/users",
    "server-see-as": "/see",
    "server-acts": "/acts",
    "server-failed": "/failed",
    "server-account": "/account",
}
"""Pages of larmspider server, by the name of the screenshot."""
NAMES = (*EVERY, TYPING, *SERVER)
TALLEST = 1200
"""Pixels; what is lower is cut off."""
WIDEST = 1280
"""Pixels of a picture; wider ones are made smaller."""
QUALITY = 60  # WebP: 10 to 40 kB a picture, and text of 13 pixels can be read
ENOUGH = 30
"""Pages that are stored before the first picture."""
LIVE_SECS = 3.0
DRAWN = "return [...document.images].every(image => image.complete)"
"""Previews are made when a browser asks for them."""


def signed_in(browser: Browser, crawl: Crawling) -> None:
    browser.open(crawl.url + "/login?next=/control")
    browser.find("input[name=token]").send_keys(crawl.token)
    browser.find("main button").click()
    browser.until(lambda: browser.driver.current_url.endswith("/control"), "the control page")


def first_operator(browser: Browser, server: Running) -> str:
    """Sign in as the first operator of a server. Returns the operator's token."""
    browser.open(f"{server.url}/first?key={server.key}")
    browser.find("[name=password]").send_keys("correct horse battery")
    browser.find("main form button").click()
    browser.until(lambda: browser.text("#token"), "the token")
    return browser.text("#token")


def of_server(browser: Browser, names: Sequence[str], start: str, to: Path) -> None:
    """Pictures of a server's pages, with one crawl that has ended and one that waits for its time.

    ``start`` is the seed of both."""
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as folder,
        serving(Path(folder)) as server,
    ):
        server.token = first_operator(browser, server)
        nightly = {"run": "every day at 02:00", "time_zone": "Europe/Berlin"}
        for name, schedule in (("wiki", {}), ("handbook", nightly)):
            crawl = {"seeds": [start], "schedule": schedule, "limits": {"delay": 0.0}}
            server.api("/crawls", "POST", {"name": name, "crawl": crawl})
        server.api("/crawls/wiki/start", "POST")
        until(lambda: server.api("/crawls/wiki")["summary"]["state"] == "ended", "the crawl", 300)
        for name in names:
            kept(pictures(browser, server.url + SERVER[name], name), name, to)


def pictures(browser: Browser, url: str, name: str) -> Iterator[tuple[str, Image.Image]]:
    """A page by width and look."""
    for width in WIDTHS:
        for dark in (False, True):
            browser.look(width, 800, dark=dark)
            browser.open(url)
            if name == "overview":
                time.sleep(LIVE_SECS)
            if name == TYPING:
                browser.find("#q").send_keys("si")
                browser.until(lambda: browser.all("#suggested li"), "suggestions")
            tall = int(browser.script("return document.documentElement.scrollHeight"))
            browser.look(width, min(TALLEST, tall), dark=dark)
            browser.until(lambda: browser.script(DRAWN), "pictures")
            image = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
            image.thumbnail((WIDEST, TALLEST))
            yield f"{width}-{'dark' if dark else 'light'}", image


def kept(found: Iterable[tuple[str, Image.Image]], name: str, to: Path) -> None:
    for kind, image in found:
        path = to / f"{name}-{kind}.webp"
        image.save(path, quality=QUALITY, method=6)
        print(path, f"{path.stat().st_size:,} bytes", flush=True)


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
        for name in (one for one in names if one not in SERVER):
            if not is_in and not name.startswith(("search", "login")):
                signed_in(browser, crawl)
                is_in = True
            url = crawl.url + shown(EVERY.get(name, "/search"), crawl.directory)
            kept(pictures(browser, url, name), name, options.to)
        if names := [name for name in names if name in SERVER]:
            of_server(browser, names, server.url, options.to)


if __name__ == "__main__":
    main()
