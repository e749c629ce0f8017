"""WARC files, page files, outbox: what a page costs there, and whether pywb replays it.

    python -m benchmarks.warc                                   # costs, warcio check, FastWARC
    python -m benchmarks.warc --pywb /srv/pywb/bin --pages 200  # and a replay by pywb
    python -m benchmarks.warc --bodies warc --pywb ...          # of a crawl without page files

Crawls a manual that is installed (benchmarks/sites.py), served by nginx, with WarcPipeline beside
page files, until it has so many pages. Then all records are read by `warcio check` and by FastWARC,
and each page is given to one store after the other: CPU ms a page. With --pywb, the folder of
wb-manager and wayback, the WARC files go into a collection, and pages chosen at random are asked of
pywb as they were captured (id_): the bytes have to be those of the manual. pywb needs a virtual
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
from urllib.parse import unquote, urlsplit

from scrapy import Spider
from scrapy.utils.test import get_crawler

from benchmarks.complete import SETTINGS
from benchmarks.sites import SITES, DocsSite
from larmspider.crawl.reader import CrawlDir
from larmspider.extraction.formats import extractor_for
from larmspider.items import Page
from larmspider.pipelines.outbox.receiver import OutboxStore
from larmspider.pipelines.page_files import PageFilesPipeline
from larmspider.plugins.warc.pipeline import WarcPipeline, warc_files
from larmspider.settings import ITEM_PIPELINES
from tests.support.servers.nginx import Nginx
from tests.support.warcs import check

ADDRESS = "127.21.0.3"
WARC = {"larmspider.plugins.warc.pipeline.WarcPipeline": 150}


def crawl(site: DocsSite, folder: Path, pages: int, bodies: str) -> CrawlDir:
    settings = SETTINGS | {
        "ITEM_PIPELINES": json.dumps(ITEM_PIPELINES | WARC),
        "LARM_BODIES": bodies,
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
    stores = (PageFilesPipeline, WarcPipeline, OutboxStore)
    times: dict[str, list[float]] = {store.__name__: [] for store in stores}
    for turn in range(5):
        directory = folder / f"turn{turn}"
        settings = {"LARM_DIR": str(directory), "DOWNLOAD_MAXSIZE": 9_999_999}
        crawler = get_crawler(Spider, settings_dict=settings)
        opened = [store.from_crawler(crawler) for store in stores]
        used = dict.fromkeys(times, 0)
        for one in opened:
            one.open_spider()
        for page in pages:
            for one in opened:
                began = time.process_time_ns()
                one.process_item(page)
                used[type(one).__name__] += time.process_time_ns() - began
        for one in opened:
            began = time.process_time_ns()
            one.checkpoint()
            used[type(one).__name__] += time.process_time_ns() - began
            one.close_spider()
            times[type(one).__name__].append(used[type(one).__name__] / len(pages) / 1e6)
    size = sum(len(page.body) for page in pages) / len(pages)
    links = sum(len(page.links) for page in pages) / len(pages)
    print(f"{len(pages)} pages of {size:,.0f} bytes and {links:.0f} links; CPU ms a page:")
    for name, taken in times.items():
        print(f"  {name}: {statistics.median(taken):.3f}")


def replay(site: DocsSite, crawl: CrawlDir, folder: Path, pywb: Path, wanted: int) -> int:
    """How many pages differ from what the manual has."""
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
    pages = [page for page in crawl.pages() if page.status == 200]
    chosen = random.sample(pages, min(wanted, len(pages)))
    different = 0
    try:
        _wait_for(port)
        for page in chosen:
            url = f"http://127.0.0.1:{port}/larm/20991231000000id_/{page.url}"
            status, body = _asked(url)
            served = (site.folder / unquote(urlsplit(page.url).path).lstrip("/")).read_bytes()
            if (status, body) != (200, served) or crawl.body(page) != served:
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
    parser.add_argument("--bodies", choices=("page-files", "warc"), default="page-files")
    parser.add_argument("--pywb", type=Path, help="folder of wb-manager and wayback")
    arguments = parser.parse_args()
    site = next(site for site in SITES.values() if site.installed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = crawl(site, folder, arguments.crawled, arguments.bodies)
        number = sum(map(check, warc_files(found.path / "warc").values()))
        print(f"warcio check and FastWARC: {number:,} records, none refused")
        costs(found, folder)
        if arguments.pywb is None:
            return 0
        return bool(replay(site, found, folder, arguments.pywb, arguments.pages))


if __name__ == "__main__":
    sys.exit(main())
