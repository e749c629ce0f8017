"""The crawlers that benchmarks/peers.py runs: how each is started, and what it does and does not.

Each fetches one host over 16 connections (ht://Dig has one), without delay, breadth first, pages
only: no images, no style sheets, where it can be told so. ``StockSpider`` is Scrapy as it comes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

ROOT = Path(__file__).parents[1]
CONNECTIONS = 16


@dataclass(frozen=True)
class Task:
    """One run: from ``start`` on ``host`` (with port), files go to ``folder``.

    ``pages`` is where it may stop, 0: the whole site. ``crawlee``: the folder where
    ``npm install @crawlee/cheerio`` was run, None where it was not.
    """

    start: str
    host: str
    folder: Path
    pages: int
    crawlee: Path | None = None


@dataclass(frozen=True)
class Command:
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """A crawler. ``slow``: limited to fewer pages. ``statuses``: exit statuses of
    a crawl that went well. The rest are answers for people, "" for no."""

    name: str
    command: Callable[[Task], Command | None]
    slow: bool = False
    statuses: tuple[int, ...] = (0,)
    links: str = ""
    stores: str = ""
    index: str = ""
    polite: str = ""
    restart: str = ""
    remark: str = ""


def _scrapy(task: Task, module: str, *arguments: str) -> Command:
    environment = {
        "SCRAPY_SETTINGS_MODULE": module,
        "PYTHONPATH": os.pathsep.join([str(task.folder), str(ROOT)]),
    }
    settings = {
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS": CONNECTIONS,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS,
    }
    options = [f"-s{name}={value}" for name, value in settings.items()]
    return Command([sys.executable, "-m", "scrapy", *arguments, *options], environment)


def larmspider(task: Task) -> Command:
    return _scrapy(
        task,
        "larmspider.settings",
        *("crawl", "intranet", f"-astart={task.start}"),
        *("-sLARM_DELAY_RESPONSE_FACTOR=0", f"-sLARM_MAX_PAGES={task.pages}"),
    )


def _larmspider_with(task: Task, *lines: str) -> Command:
    """With a settings module that has these lines, too."""
    (task.folder / "own_settings.py").write_text(
        "\n".join(["from larmspider.settings import *", *lines, ""])
    )
    command = larmspider(task)
    command.environment["SCRAPY_SETTINGS_MODULE"] = "own_settings"
    return command


def larmspider_without_index(task: Task) -> Command:
    index = "larmspider.pipelines.search_index.SearchIndexPipeline"
    return _larmspider_with(task, f"del ITEM_PIPELINES[{index!r}]")


def larmspider_to_warc(task: Task) -> Command:
    warc = 'ITEM_PIPELINES["larmspider.plugins.warc.pipeline.WarcPipeline"] = 150'
    return _larmspider_with(task, warc, 'LARM_BODIES = "warc"')


def larmspider_to_sql(task: Task) -> Command | None:
    """Of the server only what the sender takes is measured."""
    if not os.environ.get("LARM_SQL_URL"):
        return None
    sql = 'ITEM_PIPELINES["larmspider.pipelines.outbox.sql.SqlReceiver"] = 600'
    return _larmspider_with(task, sql)


def stock_scrapy(task: Task) -> Command:
    (task.folder / "seeds").write_text(task.start)
    breadth_first = {  # docs.scrapy.org, "Does Scrapy crawl in breadth-first order?"
        "DEPTH_PRIORITY": "1",
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }
    return _scrapy(
        task,
        "scrapy.settings.default_settings",
        *("runspider", __file__),
        *("-aseeds=seeds", f"-ahost={task.host.partition(':')[0]}"),
        *(f"-s{name}={value}" for name, value in breadth_first.items()),
        f"-sCLOSESPIDER_PAGECOUNT={task.pages}",
    )


def wget2(task: Task) -> Command | None:
    """It cannot be told to stop after a number of pages."""
    program = shutil.which("wget2")
    if program is None:
        return None
    images = "img,link/href,script,object,embed,source,video,audio,input/src,body/background"
    arguments = ["-r", "-l", "inf", "-nv", "-P", "pages", f"--max-threads={CONNECTIONS}"]
    arguments += [f"--ignore-tags={images}", "--no-hsts", "--no-hpkp", "--no-ocsp", task.start]
    return Command([program, *arguments], {"HOME": str(task.folder)})


def htdig(task: Task) -> Command | None:
    program = shutil.which("htdig")
    if program is None:
        return None
    (task.folder / "htdig.conf").write_text(
        f"database_dir: {task.folder}\n"
        f"start_url: {task.start}\n"
        f"limit_urls_to: http://{task.host}/\n"
        f"max_doc_size: {16 << 20}\n"
        "max_hop_count: 999999\n"
        "server_wait_time: 0\n"
        "persistent_connections: true\n"
        + (f"server_max_docs: {task.pages}\n" if task.pages else "")
    )
    return Command([program, "-i", "-c", "htdig.conf"], {"TMPDIR": str(task.folder)})


def crawlee(task: Task) -> Command | None:
    program = shutil.which("node")
    if program is None or task.crawlee is None:
        return None
    options = {"start": task.start, "pages": task.pages, "connections": CONNECTIONS}
    return Command(
        [program, str(ROOT / "benchmarks" / "crawlee_peer.mjs"), json.dumps(options)],
        {"CRAWLEE": str(task.crawlee), "CRAWLEE_STORAGE_DIR": str(task.folder / "storage")},
    )


PEERS = (
    Peer(
        "larmspider",
        larmspider,
        links="canonical form, 8 filters",
        stores="page files, store, link and fetch log",
        index="Tantivy, with link texts",
        polite="robots.txt, host queues (delay 0 here)",
        restart="kill -9, every 5 s",
    ),
    Peer(
        "larmspider, no index",
        larmspider_without_index,
        links="canonical form, 8 filters",
        stores="page files, store, link and fetch log",
        polite="robots.txt, host queues (delay 0 here)",
        restart="kill -9, every 5 s",
    ),
    Peer(
        "larmspider, WARC in place of page files",
        larmspider_to_warc,
        links="canonical form, 8 filters",
        stores="WARC and CDXJ, store, link and fetch log",
        index="Tantivy, with link texts",
        polite="robots.txt, host queues (delay 0 here)",
        restart="kill -9, every 5 s",
    ),
    Peer(
        "larmspider, and LARM_SQL_URL",
        larmspider_to_sql,
        links="canonical form, 8 filters",
        stores="page files, store, link and fetch log, SQL",
        index="Tantivy, with link texts",
        polite="robots.txt, host queues (delay 0 here)",
        restart="kill -9, every 5 s",
    ),
    Peer(
        "Scrapy CrawlSpider",
        stock_scrapy,
        links="fingerprint, offsite",
        polite="robots.txt, slots (delay 0 here)",
        restart="with JOBDIR (off here)",
        remark="stores nothing",
    ),
    Peer(
        "wget2",
        wget2,
        statuses=(0, 8),  # 8: some link was dead
        links="host",
        stores="a file a page",
        polite="robots.txt",
        remark="always the whole site",
    ),
    Peer(
        "ht://Dig",
        htdig,
        slow=True,
        links="prefix",
        index="word database, with link texts",
        polite="robots.txt",
        remark="one connection",
    ),
    Peer(
        "crawlee",
        crawlee,
        slow=True,
        links="unique key, host",
        restart="request queue on disk",
        remark="CheerioCrawler; stores nothing",
    ),
)


class StockSpider(CrawlSpider):
    """Follows every link; stores nothing. ``seeds`` is a file with one URL a line, ``host`` the one
    that it stays on."""

    name = "stock"
    rules = (Rule(LinkExtractor(), follow=True),)
    custom_settings = {  # noqa: RUF012 - as Scrapy's own examples have it
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
        "DOWNLOADER": "scrapy.core.downloader.Downloader",
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY_JITTER": 0,  # or half of its gaps would be shorter than the delay
        "DOWNLOAD_TIMEOUT": 30,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
    }

    def __init__(self, seeds: str, host: str | None = None) -> None:
        super().__init__()
        with open(seeds) as lines:  # noqa: PTH123
            self.start_urls = lines.read().split()
        if host:
            self.allowed_domains = [host]
