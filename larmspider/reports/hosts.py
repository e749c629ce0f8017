"""All that is known of one host, as of the last checkpoint; what is long is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.crawl.log_index.records import Fetches
from larmspider.crawl.reader import CrawlDir, Fetch, fetch_of
from larmspider.formatting import counted, duration
from larmspider.frontier.describe import HostRow, host_row
from larmspider.frontier.politeness import HostOrder, Orders
from larmspider.frontier.storage.records import Entry, host_of
from larmspider.reports.log_tail import last_fetches
from larmspider.reports.robots_outcome import robots_outcome
from larmspider.reports.robots_text import RobotsText, robots_text

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.frontier.politeness import Politeness

RECENT = 20
FAILURES = 30
HEAD = 20
RETRIES = 10


@dataclass(frozen=True, slots=True)
class HostPage:
    """``robots`` is None where robots.txt has not been read, or is not obeyed.

    ``recent`` are the fetches found at the end of fetch.log, ``failures`` those of the whole log as
    far as its index goes, both the last first. ``results`` by HTTP status or word for a failure,
    ``indexed`` the time as of which, 0.0 where there is no index yet. ``queue`` are the next
    entries, ``retries`` the first of those whose last attempt failed, with the time from which on
    each is tried again. ``robots_said``: what came of asking for it. ``limits`` are the rules that
    hold for this host, in words.
    """

    row: HostRow
    robots: RobotsText | None
    robots_obeyed: bool
    robots_said: str
    recent: Sequence[Fetch]
    failures: Sequence[Fetch]
    queue: Sequence[Entry]
    retries: Sequence[tuple[Entry, float]]
    results: Mapping[str, Fetches]
    indexed: float
    limits: Sequence[tuple[str, str]]


def host_page(
    crawl: CrawlDir,
    settings: BaseSettings,
    politeness: Politeness,
    host: str,
    now: float,
    url: str = "",
) -> HostPage | None:
    """None for a host that the crawl has not met. ``url``: which line of robots.txt decides it."""
    with crawl.frontier() as frontier:
        row = None if frontier is None else host_row(frontier, politeness, host, now)
        if frontier is None or row is None:
            return None
        queue = frontier.queued(host, HEAD)
        retries = frontier.delayed(host, RETRIES) if row.counts.delayed else []
        body = frontier.note(f"robots {host}")
    obeyed = options.scrapys_boolean(settings, "ROBOTSTXT_OBEY")
    agent = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"]
    with crawl.logs.index() as index:
        places = [] if index is None else index.failures(host, FAILURES)
        results = {} if index is None else index.results(host)
        indexed = 0.0 if index is None else float(index.state()["time"])
    failures = [fields for fields in crawl.logs.records_at("fetch.log", places) if fields]
    failures.sort(key=lambda fields: fields[0], reverse=True)  # of many workers: one after another
    return HostPage(
        row=row,
        robots=None if body is None or not obeyed else robots_text(body, agent, url),
        robots_obeyed=obeyed,
        robots_said=robots_outcome(row.record, body),
        recent=recent_fetches(crawl, host),
        failures=[fetch_of(fields) for fields in failures[:FAILURES]],
        queue=queue,
        retries=retries,
        results=results,
        indexed=indexed,
        limits=_limits(row, settings, politeness.orders),
    )


def recent_fetches(crawl: CrawlDir, host: str, limit: int = RECENT) -> list[Fetch]:
    """The last fetches of a host, if they are among the last 10,000 or so of all."""
    needle = host.rpartition(":")[0].encode()
    found: list[Fetch] = []
    for fields in last_fetches(crawl, b"//" + needle):
        if host_of(fields[1]) == host:
            found.append(fetch_of(fields))
            if len(found) >= limit:
                break
    return found


def _limits(row: HostRow, settings: BaseSettings, orders: Orders) -> list[tuple[str, str]]:
    rule, counts, order = row.rule, row.counts, orders.hosts.get(row.host, HostOrder())
    found = [("Delay", f"{duration(row.gap.seconds)}, by {row.gap.rule}")]
    ordered = [
        "paused" if order.paused else "",
        "" if order.delay is None else f"delay {duration(order.delay)}",
        "" if orders.factor == 1.0 else f"all gaps {orders.factor:g} times as long",
    ]
    if any(ordered):
        found.append(("By the operator", ", ".join(filter(None, ordered))))
    if rule.connections:
        found.append(("Requests at once", str(rule.connections)))
    if rule.budget is not None:
        left = max(0, rule.budget - counts.stored)
        found.append(("Budget", f"{counted(rule.budget, 'page')}, {left:,} of them left"))
    if rule.window is not None:
        found.append(("Hours", "{:g} to {:g}".format(*rule.window)))
    if row.record.crawl_delay is not None:
        found.append(("Crawl-delay of robots.txt", duration(row.record.crawl_delay)))
    if row.record.hold is not None:
        found.append(("Expected answer time", duration(row.record.hold)))
    most = options.integer(settings, "LARM_MAX_PAGES", minimum=0)
    if most:
        found.append(("Budget of the crawl", counted(most, "page")))
    return found
