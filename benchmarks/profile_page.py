"""Where a page's CPU time goes, step by step: ``python -m benchmarks.profile_page [--pages 2000]``.

Crawls documentation sites (JDK, PostgreSQL, Python, as far as they are installed), served by nginx,
politeness off, the whole chain on but for the process beside the crawl, which would take pages that
are then not seen, with the crawler's own functions measured while they run (meter.Steps). For each
site it prints milliseconds a page and shares, how often the caches knew the answer, and for the
pages with about 140 links (120 to 160) what the chain from body to new links costs: extract,
resolve, canonicalize, filter, visited; at the end the median of these pages over all sites. The bar
for that is 1.5 ms.

Measuring costs time itself; how much is printed, and most of it is in "engine":
Scrapy's engine and scraper, asyncio and Twisted, all that no other step names.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from scrapy.crawler import CrawlerProcess
from scrapy.settings import Settings

from benchmarks.meter import Steps
from benchmarks.sites import SITES
from larmspider.extraction.pages.page_builder import PageBuilder
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.middlewares.follow import FollowMiddleware
from larmspider.pipelines.outbox.dummy import DummyReceiver
from larmspider.pipelines.outbox.receiver import Receiver
from larmspider.scheduler.leases import Leases
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.equivalence import MODES, PROVEN
from tests.support.servers.nginx import Nginx

ADDRESS = "127.21.0.2"
LINKS = range(120, 161)
BAR_MS = 1.5
_MEASURING = "(measuring)"
ENGINE = "engine"
CHAIN = (
    "extraction",
    "links: resolve",
    "links: canonicalize, normalize filter",
    "filters",
    "visited",
    "frontier: known",
)
"""What happens to a page's links until those that are new are known."""


def _filter_step(middleware: Any, *_: Any) -> str:
    name = middleware.filter.name
    return {"normalize": CHAIN[2], "visited": "visited"}.get(name, "filters")


def _store_step(store: Any, *_: Any) -> str:
    if isinstance(store, Receiver):
        return "outbox"
    return "index" if type(store).__name__ == "SearchIndexPipeline" else "stores"


_OURS = (
    ("larmspider.spiders.intranet:IntranetSpider.parse", "page: digest, fields"),
    ("larmspider.spiders.intranet:IntranetSpider._extract", "extraction"),
    ("larmspider.extraction.pages.page_builder:PageBuilder.fill", "links: resolve"),
    ("larmspider.middlewares.filter_middleware:FilterMiddleware._filter_slice", _filter_step),
    ("larmspider.middlewares.follow:FollowMiddleware._links", "follow"),
    ("larmspider.middlewares.follow:FollowMiddleware._request", "follow"),
    ("larmspider.middlewares.follow:FollowMiddleware.enqueue", "frontier: push"),
    ("larmspider.middlewares.last_check:LastCheckMiddleware.process_request", "last check"),
    (
        "larmspider.middlewares.fetch_outcome:AnswersMiddleware.process_response",
        "frontier: answered",
    ),
    ("larmspider.frontier.frontier:Frontier.known", "frontier: known"),
    ("larmspider.learned.spellings.merging:Merger.admit", "frontier: merger"),
    ("larmspider.learned.traps.trap_watch:TrapWatch.admits", "frontier: traps"),
    ("larmspider.learned.traps.trap_watch:TrapWatch.saw", "frontier: traps"),
    ("larmspider.scheduler.scheduler:FrontierScheduler.enqueue_request", "frontier: push"),
    ("larmspider.scheduler.scheduler:FrontierScheduler.next_request", "frontier: pop"),
    ("larmspider.scheduler.leases:Leases.acknowledge", "frontier: done"),
    ("larmspider.scheduler.scheduler:FrontierScheduler.seal", "frontier: checkpoint"),
    ("larmspider.frontier.frontier:Frontier.discard", "frontier: checkpoint"),
    ("larmspider.pipelines.store:Store.process_item", _store_step),
)
_SCRAPYS = (
    ("scrapy.signalmanager:SignalManager.send_catch_log", "engine: signals"),
    ("scrapy.signalmanager:SignalManager.send_catch_log_async", "engine: signals"),
    ("scrapy.logformatter:LogFormatter.crawled", "engine: log lines"),
    ("scrapy.logformatter:LogFormatter.scraped", "engine: log lines"),
    (
        "scrapy.core.downloader.middleware:DownloaderMiddlewareManager._process_request",
        "engine: downloader middlewares",
    ),
    (
        "scrapy.core.downloader.middleware:DownloaderMiddlewareManager._process_response",
        "engine: downloader middlewares",
    ),
    ("scrapy.pipelines:ItemPipelineManager.process_item_async", "engine: item pipelines"),
)
_FETCH = (
    ("larmspider.fetch.downloader:LarmDownloader._download", "engine: downloader"),
    ("scrapy.core.downloader.handlers:DownloadHandlers.download_request_async", "fetch"),
    ("twisted.internet.asyncioreactor:AsyncioSelectorReactor._readOrWrite", "fetch"),
)


def install_steps(steps: Steps) -> None:
    """Measure all steps from now on."""
    for path, step in (*_OURS, *_SCRAPYS, *_FETCH):
        module, _, names = path.partition(":")
        owner, name = names.split(".")
        steps.wrap(getattr(import_module(module), owner), name, step)


class Profile:
    """One crawl, measured. ``chain`` are (links, nanoseconds) of each page."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.chain: list[tuple[int, int]] = []
        self.asked = self.on_disk = self.hrefs = self.distinct = self.formed = 0
        self.begin = self.end = 0
        self._before = 0

    def install(self) -> None:
        """Measure from now on."""
        install_steps(self.steps)
        self._count_caches()
        self._after(FollowMiddleware, "_links", self._filtered)
        self._after(Leases, "acknowledge", self._settled)

    def _after(self, owner: type, name: str, then: Any) -> None:
        """Call ``then`` with the arguments after each call; its time is nobody's."""
        method, steps = getattr(owner, name), self.steps

        def called(*arguments: Any) -> Any:
            result = method(*arguments)
            steps.run(_MEASURING, then, *arguments)
            return result

        setattr(owner, name, called)

    def _filtered(self, _: Any, page: Any) -> None:
        now = sum(self.steps.total[step] for step in CHAIN)
        self.chain.append((len(page.links), now - self._before))
        self._before = now

    def _settled(self, *_: Any) -> None:
        self.end = time.thread_time_ns()
        if not self.begin:  # the first page is through: from here on it is steady
            self.begin, self._before = self.end, 0
            self.chain.clear()
            self.steps.total.clear()
            self.steps.calls.clear()

    def _count_caches(self) -> None:
        def asked(_: Any, keys: Any) -> None:
            self.asked += len(keys)

        def on_disk(_: Any, keys: Any) -> None:
            self.on_disk += len(keys)

        def filled(findings: Any, _: Any) -> None:
            self.hrefs += len(findings.links)
            self.distinct += len({link[0] for link in findings.links})

        def found(*_: Any) -> None:
            self.formed += 1

        self._after(Canonicalizer, "forms", found)
        self._after(Frontier, "seen_lately", asked)
        self._after(LmdbBackend, "check", on_disk)
        self._after(PageBuilder, "fill", filled)

    def like_the_median(self) -> list[float]:
        """Milliseconds of the chain, of each page with about 140 links."""
        return [used / 1e6 for count, used in self.chain if count in LINKS]

    def report(self) -> list[str]:
        """The tables."""
        pages, total = len(self.chain), dict(self.steps.total)
        whole = self.end - self.begin - total.pop(_MEASURING, 0)
        total[ENGINE] = whole - sum(total.values())
        lines = [f"{'step':42}{'ms a page':>10}{'share':>8}{'calls a page':>14}"]
        for step, used in sorted(total.items(), key=lambda item: -item[1]):
            calls = self.steps.calls[step] / pages
            lines.append(f"{step:42}{used / pages / 1e6:10.3f}{used / whole:8.1%}{calls:14.2f}")
        lines.append(f"{'in all':42}{whole / pages / 1e6:10.3f}")
        calls = sum(self.steps.calls.values()) / pages
        cost = self.steps.overhead() * calls / 1e6
        lines.append(f"{'of that for measuring, about':42}{cost:10.3f}{'':8}{calls:14.2f}")
        links = sorted(count for count, _ in self.chain)
        lines.append(
            f"{pages:,} pages, {statistics.median(links):.0f} links in the median,"
            f" {statistics.mean(links):.0f} in the mean"
        )
        lines += chain_line(self.like_the_median())
        for name, hits, of in (
            ("href of a page met before on it", self.hrefs - self.distinct, self.hrefs),
            ("canonical form remembered", self.hrefs - self.formed, self.hrefs),
            ("known without a look into the database", self.asked - self.on_disk, self.asked),
        ):
            lines.append(f"cache: {name}: {hits / max(1, of):.1%} of {of:,}")
        return lines


def chain_line(costs: list[float]) -> list[str]:
    """What the chain costs these pages; nothing where there are none."""
    if not costs:
        return []
    return [
        f"extract + resolve + canonicalize + filter + visited, {len(costs)} pages of"
        f" {LINKS[0]} to {LINKS[-1]} links: {statistics.median(costs):.2f} ms in the"
        f" median, {statistics.mean(costs):.2f} in the mean (bar {BAR_MS})"
    ]


def crawl(name: str, pages: int, rules: str, *, outbox: bool) -> tuple[list[str], list[float]]:
    """Crawl ``pages`` pages of a site in this process, which can do so once; the report and
    Profile.like_the_median."""
    site = SITES[name]
    profile = Profile()
    profile.install()
    with (
        tempfile.TemporaryDirectory(prefix="profile-") as folder,
        Nginx({ADDRESS: site.folder}) as server,
    ):
        settings = Settings()
        settings.setmodule("larmspider.settings", priority="project")
        settings.setdict(
            {
                "LARM_DIR": str(Path(folder, "crawl")),
                "LARM_MAX_PAGES": pages,
                "LARM_CANONICAL_RULES": rules,
                "LARM_DELAY_RESPONSE_FACTOR": 0,
                "LARM_EXTRACTION_BESIDE": "off",
                "DOWNLOAD_DELAY": 0,
                "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
                "LOG_LEVEL": "WARNING",
            },
            priority="cmdline",
        )
        if outbox:
            settings.get("ITEM_PIPELINES")[DummyReceiver] = 600
        process = CrawlerProcess(settings)
        process.crawl("intranet", start=server.url(ADDRESS, site.start))
        process.start()
    return profile.report(), profile.like_the_median()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", nargs="+", choices=SITES, default=list(SITES))
    parser.add_argument("--pages", type=int, default=2000, help="of each site; 0: all")
    parser.add_argument("--rules", choices=MODES, default=PROVEN, help="LARM_CANONICAL_RULES")
    parser.add_argument("--outbox", action="store_true", help="with a receiver that only counts")
    options = parser.parse_args()
    costs: list[float] = []
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        for name in options.site:
            if not SITES[name].installed:
                print(f"{name}: not installed, left out")
                continue
            asked = name, options.pages, options.rules
            lines, like = processes.submit(crawl, *asked, outbox=options.outbox).result()
            print("\n".join([f"\n{name}", *lines]), flush=True)
            costs += like
    print("\n".join(["\nall sites", *chain_line(costs)]))


if __name__ == "__main__":
    main()
