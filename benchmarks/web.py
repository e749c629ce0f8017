"""The web pages: how long the server takes for each, and whether looking slows the crawl.

    python -m benchmarks.web pages                 # 100,000 pages on 10,000 hosts, made up
    python -m benchmarks.web pages --dir DIR       # the same again, or another crawl
    python -m benchmarks.web paint --dir DIR       # the search of a crawl, in Chromium
    python -m benchmarks.web crawl --rounds 3      # a crawl alone, and with ten windows open

``pages``: each page of tests/support/web/serving.py is asked for ROUNDS times over one
connection, and /stats.json and /metrics, once the index of the logs is made; printed are the first
time (what is kept is read then) and the median and worst of the others, in ms.

``paint``: until Chromium has painted the first text of a page (first-contentful-paint), from the
click on: least, median and worst of PAINTS, and the bytes that it has loaded, without previews.

``crawl``: runs in turns, of a generated web (generated_web.py). Ten windows mean a process that has
ten streams of /events open and loads the overview, /stats.json and each page of every_page.py all
the time, one every second for each window. Printed are pages a second, CPU a page of the crawler's
process, and of its main thread. On a shared machine the CPU says more than the clock.
"""

from __future__ import annotations

import argparse
import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.generated_web import address, serving
from benchmarks.growth import progress
from benchmarks.large_crawl import LargeCrawl
from benchmarks.meter import crawl_command, crawl_environment, measure
from larmspider.crawl.log_index.builder import bring_up_to_date
from larmspider.crawl.reader import CrawlDir
from larmspider.formatting import utc
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.status.monitor import MONITOR_COLUMNS
from tests.support.web.browser import Browser
from tests.support.web.serving import LOOKS, Served

ROOT = Path(__file__).parents[1]
ROUNDS = 10
PAINTS = 20
PAINTED_PAGES = ("/", "/hosts", "/links", "/url", "/search")
WINDOWS = 10
MORE = ("/stats.json", "/metrics")
WORDS = ("siren", "wiki", "holiday", "budget", "server", "coffee", "travel", "network", "rotor")


def make(directory: Path, pages: int, hosts: int) -> None:
    """A large crawl, with an index and the monitor's lines of a month."""
    LargeCrawl(directory, pages, hosts, links=40).write()
    with (directory / "Monitor.log").open("w") as log:
        log.write("\t".join(MONITOR_COLUMNS) + "\n")
        for n in range(500_000):
            log.write(
                f"{utc(1.77e9 + 5 * n)}\t{n}\t0.2\t{n * 9000}\t{n * 40}\t{n}\t9\t4\t9\t1\t9\n"
            )
    with IndexWriter(directory / "index") as index:
        for number, page in enumerate(CrawlDir(directory).pages()):
            text = " ".join(WORDS[(number >> bit) % len(WORDS)] for bit in range(12))
            index.add(
                Page(page.url, normalized=page.normalized, title=f"{WORDS[number % 9]} {number}",
                     text=f"{text} {number}. {text}", language=("en", "de")[number % 2],
                     mime="text/html", fetched=1.77e9 + number)
            )  # fmt: skip
        index.commit()


def times(site: str, directory: Path) -> Iterator[tuple[str, int, list[float]]]:
    """Target, status and seconds of each request."""
    some = next(CrawlDir(directory).pages()).url
    targets = [target.replace("{site}", quote(some, safe="")) for target in LOOKS.values()]
    connection = http.client.HTTPConnection(urlsplit(site).netloc, timeout=60)
    for target in (*targets, *MORE):
        taken = []
        for _ in range(ROUNDS + 1):
            began = time.perf_counter()
            connection.request("GET", target)
            answer = connection.getresponse()
            answer.read()
            taken.append(time.perf_counter() - began)
        yield target, answer.status, taken


def print_pages(directory: Path) -> None:
    bring_up_to_date(CrawlDir(directory))
    print(f"{'page':<44} {'status':>6} {'first':>8} {'median':>8} {'worst':>8}  ms")
    with Served(directory) as site:
        for target, status, taken in times(site.url, directory):
            later = [one * 1000 for one in taken[1:]]
            print(
                f"{target[:44]:<44} {status:>6} {taken[0] * 1000:>8.1f}"
                f" {statistics.median(later):>8.1f} {max(later):>8.1f}"
            )


def look(url: str) -> None:
    """Ten windows, until the server is gone: in a process of their own."""

    def listen() -> None:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            connection.request("GET", "/events")
            answer = connection.getresponse()
            while answer.read1(65_536):
                pass

    def load(first: int) -> None:
        targets = [target for target in LOOKS.values() if "{" not in target] + ["/stats.json"]
        number = first
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
            while True:
                connection.request("GET", targets[number % len(targets)])
                connection.getresponse().read()
                number += 1
                time.sleep(1.0)

    threads = [threading.Thread(target=listen) for _ in range(WINDOWS)]
    threads += [threading.Thread(target=load, args=(n,)) for n in range(WINDOWS)]
    for thread in threads:
        thread.start()


class Windows:
    """Opens them as soon as the crawl says where; for ``watch`` of measure()."""

    def __init__(self, output: Path) -> None:
        self._output, self._process = output, None

    def __call__(self, pid: int) -> None:
        if self._process is None and self._output.exists():
            told = re.search(r"at (http://\S+)", self._output.read_text("utf-8", "replace"))
            if told:
                command = [sys.executable, "-m", "benchmarks.web", "look", told[1]]
                self._process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


def crawl(port: int, hosts: int, pages: int, *, looked_at: bool) -> tuple[float, float, float]:
    """Pages a second, and CPU a page in ms: of the process, of its main thread."""
    with tempfile.TemporaryDirectory(prefix="web-") as name:
        folder = Path(name)
        seeds = [f"http://{address(host)}:{port}/" for host in range(hosts)]
        (folder / "seeds").write_text("\n".join(seeds))
        settings = {"LARM_MONITOR_SECS": 1, "LARM_MAX_PAGES": pages, "LARM_WEB_PORT": 0}
        windows = Windows(folder / "output")
        run = measure(
            crawl_command(settings), folder, seconds=3600, environment=crawl_environment(),
            watch=windows if looked_at else lambda _: None,
        )  # fmt: skip
        windows.close()
        grown = progress(folder / "crawl", run.began)
        grown = [point for point in grown if 0.15 * pages < point[1] <= pages]
        (begin, first), (end, last) = grown[0], grown[-1]
        fetched = last - first
        return (
            fetched / (end - begin),
            run.cpu_between(begin, end) * 1000 / fetched,
            run.main_between(begin, end) * 1000 / fetched,
        )


def print_crawls(rounds: int, pages: int, hosts: int) -> None:
    found: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    print(f"{'crawl':<16} {'pages/s':>8} {'CPU ms/page':>12} {'main thread':>12}")
    with serving(pages * 10, hosts) as port:
        for number in range(2 * rounds):
            looked_at = number % 4 in (1, 2)  # alone, looked at, looked at, alone, ...
            figures = crawl(port, hosts, pages, looked_at=looked_at)
            found[looked_at].append(figures)
            name = "ten windows" if looked_at else "alone"
            print(
                f"{name:<16} {figures[0]:>8.1f} {figures[1]:>12.2f} {figures[2]:>12.2f}", flush=True
            )
    alone, looked = (
        [statistics.median(column) for column in zip(*found[key], strict=True)]
        for key in (False, True)
    )
    print(
        f"looked at / alone, medians: rate {looked[0] / alone[0]:.3f},"
        f" CPU a page {looked[1] / alone[1]:.3f}, of the main thread {looked[2] / alone[2]:.3f}"
    )


PAINTED = """
const bytes = ["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind))
  .filter(one => !one.name.includes("/search/preview"))
  .reduce((sum, one) => sum + one.encodedBodySize, 0);
return [performance.getEntriesByName("first-contentful-paint")[0]?.startTime, bytes];
"""


def print_paint(directory: Path) -> None:
    with Served(directory) as site, Browser() as browser:
        for target in (*PAINTED_PAGES, *(f"/search?q={word}" for word in WORDS[:3])):
            painted, loaded = [], 0
            for _ in range(PAINTS):
                browser.open(site.url + target)
                ms, loaded = browser.until(
                    lambda: (found := browser.script(PAINTED))[0] and found, "something painted"
                )
                painted.append(ms)
            least, median, worst = min(painted), statistics.median(painted), max(painted)
            print(f"{target:<24} {least:6.0f} {median:6.0f} {worst:6.0f} ms  {loaded:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("pages", "paint", "crawl", "look"))
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--pages", type=int)
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.what == "look":
        look(options.url)
    elif options.what == "crawl":
        print_crawls(options.rounds, options.pages or 6_000, options.hosts or 200)
    else:
        with tempfile.TemporaryDirectory(prefix="web-") as name:
            directory = options.dir or Path(name) / "crawl"
            if not directory.exists():
                make(directory, options.pages or 100_000, options.hosts or 10_000)
            print_paint(directory) if options.what == "paint" else print_pages(directory)


if __name__ == "__main__":
    main()
