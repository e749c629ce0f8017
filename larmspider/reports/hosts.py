"""The table of all hosts, and all that is known of one: robots.txt, fetches, queue, limits.

As of the last checkpoint; long lists are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from larmspider import options
from larmspider.crawl.log_index.index import Fetches
from larmspider.crawl.reader import CrawlDir, LoggedFetch, fetch_of
from larmspider.formatting import counted, duration
from larmspider.frontier.hosts import HostRecord, HostState
from larmspider.frontier.overrides import HostOverride, Overrides
from larmspider.frontier.robots import RobotsRules, lines_of
from larmspider.frontier.storage.records import QueuedUrl, host_of
from larmspider.learned.describe import (
    HOST_STATES,
    HostRow,
    failure_in_words,
    host_row,
    sorted_rows,
)
from larmspider.reports.documents import last_fetches

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.frontier.politeness import Politeness

PAGE = 100


@dataclass(frozen=True, slots=True)
class HostQuery:
    """``name``: a part of the host's name; ``state`` "" for all; ``page`` from 1, too large a one
    is the last. ``reverse`` turns the order round."""

    sort: str = "queued"
    reverse: bool = False
    name: str = ""
    state: str = ""
    page: int = 1
    size: int = PAGE


@dataclass(frozen=True, slots=True)
class HostListing:
    """``total`` rows matched; ``rows`` are page ``page`` of ``pages``; ``states`` counts all
    hosts."""

    rows: Sequence[HostRow]
    total: int
    page: int
    pages: int
    states: Mapping[str, int] = field(default_factory=dict)


def host_table(rows: Iterable[HostRow], query: HostQuery) -> HostListing:
    """A page of the table of all hosts, filtered and sorted. 10,000 rows take 20 ms."""
    rows = list(rows)
    states = dict.fromkeys(HOST_STATES, 0)
    for row in rows:
        states[row.state] = states.get(row.state, 0) + 1
    name = query.name.strip().lower()
    found = [
        row
        for row in rows
        if (not query.state or row.state == query.state) and (not name or name in row.host)
    ]
    found = sorted_rows(found, query.sort, reverse=query.reverse)
    pages = max(1, -(-len(found) // query.size))
    page = min(max(1, query.page), pages)
    return HostListing(
        found[(page - 1) * query.size : page * query.size], len(found), page, pages, states
    )


SHOWN = 400
"""Lines of a robots.txt that are shown: of a longer one our rules, and the first others."""
WIDEST = 300


@dataclass(frozen=True, slots=True)
class RobotsLine:
    """``ours``: the line names this crawler, or is a rule for it. ``decides``: the line decides
    about the requested URL."""

    number: int
    text: str
    ours: bool
    decides: bool


@dataclass(frozen=True, slots=True)
class RobotsText:
    """A robots.txt as it was read. ``left_out`` lines are not among ``lines``. ``allowed`` is None
    if no URL was given."""

    lines: Sequence[RobotsLine]
    left_out: int
    size: int
    crawl_delay: float | None
    allowed: bool | None


def robots_text(body: bytes, user_agent: str, url: str = "") -> RobotsText:
    """``user_agent`` as RobotsRules.parse has it; ``url`` "" for none."""
    rules, lines = RobotsRules.parse(body, user_agent), lines_of(body)
    if lines and not lines[-1]:
        lines.pop()
    deciding = rules.deciding_line(url) if url else None
    decides = deciding[0] if deciding else 0
    shown: list[RobotsLine] = []
    others = 0
    for number, text in enumerate(lines, 1):
        ours = number in rules.lines
        if not ours and number != decides:
            others += 1
            if others > SHOWN:
                continue
        if len(shown) < 2 * SHOWN or number == decides:
            cut = text if len(text) <= WIDEST else f"{text[:WIDEST]} …"
            shown.append(RobotsLine(number, cut, ours, number == decides))
    allowed = rules.allowed(url) if url else None
    return RobotsText(shown, len(lines) - len(shown), len(body), rules.crawl_delay, allowed)


_MARK_AND_SPACE = b"\xef\xbb\xbf \t\r\n"


def robots_outcome(record: HostRecord, body: bytes | None) -> str:
    """The result of fetching a host's robots.txt. ``body``: the rules in force, None for none.

    >>> robots_outcome(HostRecord("wiki:80", robots_answer="404"), b"")
    'None (404): everything is allowed.'
    """
    answer = record.robots_answer
    if record.state is HostState.LOADING and not answer:
        return "It is being fetched."
    if not answer:  # or a version that did not keep the answer
        return "It has not been read." if body is None else _of_body(body, "It was read")
    if answer == "address":
        return "None: the address of this host is denied, and so is each of its pages."
    status = failure_in_words(answer)
    if answer.isdigit():
        if answer.startswith("2"):
            return _of_body(body or b"", f"Answered {status}")
        why = f"a redirect that is not followed, {status}" if answer.startswith("3") else status
        return f"None ({why}): everything is allowed."
    if record.robots_until:
        return f"Not reached the last time ({status}): the earlier rules still apply."
    return f"Not reached ({status}): nothing is allowed until it is."


def _of_body(body: bytes, begin: str) -> str:
    if not body.strip(_MARK_AND_SPACE):
        return f"{begin}, empty: everything is allowed."
    if body.lstrip(_MARK_AND_SPACE).startswith(b"<"):  # no line of a robots.txt does
        return f"{begin} with an HTML page: lines that are not rules are ignored."
    return f"{begin}."


RECENT = 20
FAILURES = 30
HEAD = 20
RETRIES = 10


@dataclass(frozen=True, slots=True)
class HostPage:
    """``robots`` is None if robots.txt has not been read, or is not obeyed.

    ``recent`` are the fetches at the end of fetch.log, ``failures`` the failed ones in the index of
    the logs, both the last first. ``results`` by HTTP status or word for a failure, as of the time
    ``indexed``, 0.0 without an index. ``queue`` are the next entries, ``retries`` the first entries
    whose last attempt failed, each with the time of its next one. ``robots_said``: the result of
    fetching robots.txt. ``limits`` are the rules for this host, in words.
    """

    row: HostRow
    robots: RobotsText | None
    robots_obeyed: bool
    robots_said: str
    recent: Sequence[LoggedFetch]
    failures: Sequence[LoggedFetch]
    queue: Sequence[QueuedUrl]
    retries: Sequence[tuple[QueuedUrl, float]]
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
    """None for a host that the crawl does not know. ``url``: mark the line of robots.txt that
    decides about it."""
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
        offsets = [] if index is None else index.failures(host, FAILURES)
        results = {} if index is None else index.results(host)
        indexed = 0.0 if index is None else float(index.state()["time"])
    failures = [fields for fields in crawl.logs.records_at("fetch.log", offsets) if fields]
    failures.sort(key=lambda fields: fields[0], reverse=True)  # workers' logs come one by one
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
        limits=_limits(row, settings, politeness.overrides),
    )


def recent_fetches(crawl: CrawlDir, host: str, limit: int = RECENT) -> list[LoggedFetch]:
    """The last fetches of a host, among the last 10,000 or so fetches of the crawl."""
    needle = host.rpartition(":")[0].encode()
    found: list[LoggedFetch] = []
    for fields in last_fetches(crawl, b"//" + needle):
        if host_of(fields[1]) == host:
            found.append(fetch_of(fields))
            if len(found) >= limit:
                break
    return found


def _limits(row: HostRow, settings: BaseSettings, orders: Overrides) -> list[tuple[str, str]]:
    rule, order = row.rule, orders.hosts.get(row.host, HostOverride())
    found = [("Delay", f"{duration(row.gap.seconds)}, by {row.gap.rule}")]
    ordered = [
        "paused" if order.paused else "",
        "" if order.delay is None else f"delay {duration(order.delay)}",
        "" if order.connections is None else f"{counted(order.connections, 'request')} at once",
        "" if orders.factor == 1.0 else f"all delays {orders.factor:g} times as long",
    ]
    if any(ordered):
        found.append(("By the operator", ", ".join(filter(None, ordered))))
    if rule.connections:
        found.append(("Requests at once", str(rule.connections)))
    if rule.budget is not None:
        found.append(("Budget", f"{counted(rule.budget, 'page')}, {row.budget_left:,} left"))
    if rule.window is not None:
        found.append(("Hours", "{:g} to {:g}".format(*rule.window)))
    if row.record.crawl_delay is not None:
        found.append(("Crawl-delay of robots.txt", duration(row.record.crawl_delay)))
    if row.record.slot_secs is not None:
        found.append(("Expected answer time", duration(row.record.slot_secs)))
    most = options.integer(settings, "LARM_MAX_PAGES", minimum=0)
    if most:
        found.append(("Budget of the crawl", counted(most, "page")))
    return found
