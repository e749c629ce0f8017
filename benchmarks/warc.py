"""WARC files: what they cost a page, beside page files, and whether pywb replays them.

    python -m benchmarks.warc                                   # costs, warcio check, FastWARC
    python -m benchmarks.warc --pywb /srv/pywb/bin --pages 200  # and a replay by pywb

Crawls a manual that is installed (benchmarks/sites.py), served by nginx, with WarcPipeline beside
page files, until it has so many pages. Then all records are read by `warcio check` and by FastWARC,
and the pages are given to each store alone, in turns: CPU ms a page. With --pywb, the folder of
wb-manager and wayback, the WARC files go into a collection, and pages chosen at random are asked of
pywb as they were captured (id_): the bytes have to be those of the page files. pywb needs a virtual
environment of its own, as it asks for an old client of Redis: `pip install pywb`. Exit status 1:
something differs.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from scrapy import Spider
from scrapy.utils.test import get_crawler

from benchmarks.complete import SETTINGS
from benchmarks.sites import SITES
from larmspider.crawl.reader import CrawlDir
from larmspider.extraction.formats import extractor_for
from larmspider.items import Page
from larmspider.pipelines.page_files import PageFilesPipeline
from larmspider.pipelines.warc import WarcPipeline, warc_files
from larmspider.settings import ITEM_PIPELINES
from tests.support.servers.nginx import Nginx
from tests.support.warcs import check

ADDRESS = "127.21.0.3"
WARC = {"larmspider.pipelines.warc.WarcPipeline": 250}


def crawl(folder: Path, pages: int) -> CrawlDir:
    site = next(site for site in SITES.values() if site.installed)
    settings = SETTINGS | {
        "ITEM_PIPELINES": json.dumps(ITEM_PIPELINES | WARC),
        "CLOSESPIDER_PAGECOUNT": str(pages),
        "LARM_DIR": str(folder / "crawl"),
    }
    options = [f"-s{name}={value}" for name, value in settings.items()]
    with Nginx({ADDRESS: site.folder}) as server:
        command = [sys.executable, "-m", "scrapy", "crawl", "intranet", *options]
        subprocess.run([*command, "-a", f"start={server.url(ADDRESS, site.start)}"], check=True)
    return CrawlDir(folder / "crawl")


def costs(crawl: CrawlDir, folder: Path) -> None:
    pages = []
    for stored in crawl.pages():
        body, extract = crawl.body(stored), extractor_for(stored.mime)
        page = extract(body, stored.url, stored.mime) if extract else Page(stored.url)
        page.url, page.mime, page.body, page.fetched = stored.url, stored.mime, body, time.time()
        pages.append(page)
        if len(pages) == 1000:
            break
    stores = (PageFilesPipeline, WarcPipeline)
    times: dict[str, list[float]] = {store.__name__: [] for store in stores}
    for turn in range(5):
        for store in stores:
            directory = folder / f"{store.__name__}{turn}"
            settings = {"LARM_DIR": str(directory), "DOWNLOAD_MAXSIZE": 9_999_999}
            crawler = get_crawler(Spider, settings_dict=settings)
            one = store.from_crawler(crawler)
            one.open_spider()
            began = time.process_time()
            for page in pages:
                one.process_item(page)
            one.flush()
            times[store.__name__].append((time.process_time() - began) / len(pages) * 1000)
            one.close_spider()
    size = sum(len(page.body) for page in pages) / len(pages)
    links = sum(len(page.links) for page in pages) / len(pages)
    print(f"{len(pages)} pages of {size:,.0f} bytes and {links:.0f} links; CPU ms a page:")
    for name, taken in times.items():
        print(f"  {name}: {statistics.median(taken):.3f}")


def replay(crawl: CrawlDir, folder: Path, pywb: Path, wanted: int) -> int:
    """How many pages differ."""
    archive = folder / "archive"
    archive.mkdir()
    files = map(str, warc_files(crawl.path / "warc").values())
    for command in (["init", "larm"], ["add", "larm", *files]):
        subprocess.run([pywb / "wb-manager", *command], cwd=archive, check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(pywb / "wayback"), "-b", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, cwd=archive, stdout=quiet, stderr=quiet)
    pages = list(crawl.pages())
    chosen = random.sample(pages, min(wanted, len(pages)))
    different = 0
    try:
        _wait_for(port)
        for page in chosen:
            url = f"http://127.0.0.1:{port}/larm/20991231000000id_/{page.url}"
            status, body = _asked(url)
            if (status, body) != (page.status, crawl.body(page)):
                different += 1
                print(f"pywb answers {status} and {len(body)} bytes: {page}")
    finally:
        server.terminate()
        server.wait()
    print(f"pywb: {len(chosen)} pages replayed, {different} with other bytes")
    return different


def _asked(url: str) -> tuple[int, bytes]:
    opener = urllib.request.OpenerDirector()  # follows no redirect, raises for no status
    opener.add_handler(urllib.request.HTTPHandler())
    with opener.open(url) as response:
        return response.status, response.read()


def _wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("wayback does not come up")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=200, help="replayed (200)")
    parser.add_argument("--crawled", type=int, default=3500, help="pages of the crawl (3500)")
    parser.add_argument("--pywb", type=Path, help="folder of wb-manager and wayback")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = crawl(folder, arguments.crawled)
        number = sum(map(check, warc_files(found.path / "warc").values()))
        print(f"warcio check and FastWARC: {number:,} records, none refused")
        costs(found, folder)
        return bool(arguments.pywb and replay(found, folder, arguments.pywb, arguments.pages))


if __name__ == "__main__":
    sys.exit(main())
