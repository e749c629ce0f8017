"""A finished crawl in one report: totals, curves, hosts, refusals, failures, duplicates, links.

>>> crawl_report(crawl, settings, politeness).documents.count
255
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING

from larmspider import options, stats
from larmspider.crawl.log_index.index import Fetches, LinkedHost
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.state import RunState
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.records import Counts
from larmspider.index.access import place_of
from larmspider.index.schema import FILES
from larmspider.learned.describe import HostRow, host_rows
from larmspider.learned.script_watch import NOTE, in_words, noted
from larmspider.learned.shortfall import shortfalls_in
from larmspider.reports.documents import (
    Documents,
    Duplicates,
    Refusals,
    documents,
    duplicates,
    refusals,
)
from larmspider.reports.links import (
    BrokenLink,
    HostGraph,
    LinkedPage,
    broken_links,
    host_graph,
    most_linked,
)
from larmspider.status.freshness import (
    Freshness,
    freshness,
    requests_by_purpose,
    requests_in_words,
    visits_again,
)
from larmspider.status.history import History, history, together
from larmspider.status.totals import Totals

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.crawl.log_index.index import LogIndex
    from larmspider.frontier.politeness import Politeness
    from larmspider.frontier.storage.lmdb_reader import FrontierReader

HOSTS = 50
SLOWEST = 20
BROKEN = 100
REFERRERS = 3
LINKED = 20


@dataclass(frozen=True, slots=True)
class SlowHost:
    """``mean`` and ``longest`` answer in seconds."""

    host: str
    fetches: int
    mean: float
    longest: float


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """The fields have the names in ``scrapy report --json``.

    ``results`` by HTTP status or word, the most frequent first. ``hosts``: the hosts with most
    stored pages of ``hosts_in_all``; ``languages``: their pages by language, as far as it is known.
    ``unread``: documents that were read in part or not at all, by items.Outcome; each visit counts.
    ``refused_whole``: whether all refused links were checked. ``visits``: revisits by observation.
    They took ``requests``, and ``saved`` is the number of requests that were not needed.
    ``requests_by_purpose``: all requests of refreshes.
    """

    condition: RunState
    seeds: Sequence[str]
    counts: Counts
    runs: History
    documents: Documents
    results: Sequence[tuple[str, Fetches]]
    hosts: Sequence[HostRow]
    hosts_in_all: int
    languages: Mapping[str, Mapping[str, int]]
    unread: Mapping[str, int]
    scripts: Sequence[str]
    """Hosts whose pages are empty without JavaScript."""
    shortfalls: Sequence[str]
    """Why little of seeds' hosts is stored, a sentence a host."""
    slowest: Sequence[SlowHost]
    refusals: Sequence[Refusals]
    refused_whole: bool
    broken: Sequence[BrokenLink]
    broken_in_all: int
    linked: Sequence[LinkedPage]
    linked_hosts: Sequence[LinkedHost]
    duplicates: Duplicates
    graph: HostGraph
    freshness: Freshness
    visits: Mapping[str, int]
    requests: int
    saved: int
    requests_by_purpose: dict[str, int]

    @property
    def spent(self) -> str:
        """``requests_by_purpose`` in words."""
        return requests_in_words(self.requests_by_purpose)

    def languages_of(self, host: str) -> Mapping[str, int]:
        """The pages of a host by language; ``host`` as in the frontier: the index knows hosts
        without ports."""
        return self.languages.get(place_of(host if host == FILES else f"http://{host}/"), {})


def crawl_report(crawl: CrawlDir, settings: BaseSettings, politeness: Politeness) -> CrawlReport:
    """The report of a crawl whose logs are indexed (log_index.builder.bring_up_to_date()). Raises
    CrawlDirError for a crawl without a frontier or an index of the logs."""
    with crawl.frontier() as frontier, crawl.logs.index() as index:
        if frontier is None or index is None:
            what = "frontier of ours" if frontier is None else "index of its logs"
            raise CrawlDirError(f"the crawl in {crawl.path} has no {what}: there is no report")
        return _report(crawl, settings, politeness, frontier, index)


def _report(
    crawl: CrawlDir,
    settings: BaseSettings,
    politeness: Politeness,
    frontier: FrontierReader,
    index: LogIndex,
) -> CrawlReport:
    now = options.clock(settings)()
    rows = list(host_rows(frontier, politeness, now))
    fetches = {row.host: index.results(row.host) for row in rows}
    results: dict[str, Fetches] = {}
    for by_result in fetches.values():
        for word, sums in by_result.items():
            results[word] = results.get(word, Fetches()).plus(sums)
    refused, whole = refusals(crawl, settings, index, frontier)
    broken = index.broken()
    linked_hosts = index.most_linked_hosts()
    names = [row.host for row in rows]
    crawled = set(names)
    seen = (noted(name, frontier.note(NOTE.format(host=name))) for name in names)
    totals = Totals.together(Totals.read(part.path) for part in crawl.parts)
    inward = {host.name: host.links for host in linked_hosts if host.name in crawled}
    return CrawlReport(
        condition=RunState.of(crawl.path),
        seeds=crawl.seeds,
        counts=frontier.counts(),
        runs=together([history([part.path / "Monitor.log"]) for part in crawl.parts]),
        documents=documents(crawl, frontier),
        results=sorted(results.items(), key=lambda item: -item[1].times),
        hosts=nlargest(HOSTS, rows, key=lambda row: (row.counts.stored, row.host)),
        hosts_in_all=len(rows),
        languages=_languages(crawl),
        unread=totals.matching(stats.EXTRACTION_UNREAD),
        scripts=list(in_words(seen)),
        shortfalls=shortfalls_in(
            frontier, crawl.seeds, restrict=bool(options.text(settings, "LARM_RESTRICT"))
        ),
        slowest=_slowest(fetches),
        refusals=refused,
        refused_whole=whole,
        broken=broken_links(crawl.logs, index, broken[:BROKEN], REFERRERS),
        broken_in_all=len(broken),
        linked=most_linked(crawl.logs, index, 0, LINKED),
        linked_hosts=linked_hosts[:LINKED],
        duplicates=duplicates(frontier),
        graph=host_graph(inward, index.host_links()),
        freshness=freshness(frontier, now),
        visits=visits_again(totals),
        requests=totals.counters.get(stats.REFRESH_REQUESTS, 0),
        requests_by_purpose=requests_by_purpose(totals.counters),
        saved=totals.counters.get(stats.REFRESH_NOT_ASKED, 0),
    )


def _languages(crawl: CrawlDir) -> dict[str, dict[str, int]]:
    try:
        return crawl.searcher().languages(2 * HOSTS)
    except CrawlDirError:  # a crawl without an index
        return {}


def _slowest(fetches: dict[str, dict[str, Fetches]]) -> list[SlowHost]:
    """The slowest hosts, by the mean of all fetches with an HTTP status."""
    found = []
    for host, results in fetches.items():
        answers = [sums for word, sums in results.items() if word.isdecimal()]
        number = sum(sums.times for sums in answers)
        if number:
            mean = sum(sums.millis for sums in answers) / number / 1000
            longest = max(sums.longest for sums in answers) / 1000
            found.append(SlowHost(host, number, mean, longest))
    return nlargest(SLOWEST, found, key=lambda slow: slow.mean)
