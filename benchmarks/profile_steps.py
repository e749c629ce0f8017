"""The steps of a page's way through the crawler, for benchmarks/profile_page.py: what is measured.

engine      Scrapy's engine and scraper, asyncio and Twisted: all that no line below names
CHAIN       what happens to a page's links until those that are new are known
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.meter import Meter

ENGINE = "engine"
CHAIN = (
    "extraction",
    "links: resolve",
    "links: canonicalize, normalize filter",
    "filters",
    "visited",
    "frontier: known",
)


def _filter_step(middleware: Any, *_: Any) -> str:
    name = middleware.filter.name
    return {"normalize": CHAIN[2], "visited": "visited"}.get(name, "filters")


def _store_step(store: Any, *_: Any) -> str:
    return "index" if type(store).__name__ == "SearchIndexPipeline" else "stores"


_OURS = (
    ("larmspider.spiders.intranet:IntranetSpider.parse", "page: digest, fields"),
    ("larmspider.spiders.intranet:IntranetSpider._extract", "extraction"),
    ("larmspider.extraction.page_builder:PageBuilder.fill", "links: resolve"),
    ("larmspider.middlewares.filter_middleware:FilterMiddleware._filter_slice", _filter_step),
    ("larmspider.middlewares.follow:FollowMiddleware._requests", "follow"),
    ("larmspider.middlewares.follow:FollowMiddleware._request", "follow"),
    ("larmspider.middlewares.follow:DirectEnqueue.queue", "frontier: push"),
    ("larmspider.middlewares.last_check:LastCheckMiddleware.process_request", "last check"),
    (
        "larmspider.middlewares.fetch_outcome:AnswersMiddleware.process_response",
        "frontier: answered",
    ),
    ("larmspider.scheduler.scheduler:FrontierScheduler.known", "frontier: known"),
    ("larmspider.scheduler.scheduler:FrontierScheduler.enqueue_request", "frontier: push"),
    ("larmspider.scheduler.scheduler:FrontierScheduler.next_request", "frontier: pop"),
    ("larmspider.scheduler.leases:Leases.settle", "frontier: done"),
    ("larmspider.scheduler.scheduler:FrontierScheduler.cut", "frontier: checkpoint"),
    ("larmspider.frontier.frontier:Frontier.settle", "frontier: checkpoint"),
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


def install(meter: Meter) -> None:
    """Measure all steps from now on."""
    for path, step in (*_OURS, *_SCRAPYS, *_FETCH):
        module, _, names = path.partition(":")
        owner, name = names.split(".")
        meter.wrap(getattr(import_module(module), owner), name, step)
