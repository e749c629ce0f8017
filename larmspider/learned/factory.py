"""The frontier as the settings describe it: every value read and checked in one place.

frontier = build_frontier(settings, Path("crawl/frontier"))
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.frontier.frontier import CrawlLimits
from larmspider.frontier.hosts import HostPace, HostRules
from larmspider.frontier.part import Part
from larmspider.frontier.partition import SharedBackend
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.robots import NotAsked, RobotsCache, RobotsRules
from larmspider.frontier.shared_gaps import SharedGaps
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.state import NO_ADDRESSES, AddressBook, FrontierOptions
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.strategies import Backlinks, BreadthFirst, PageRank, PathWords, Strategy
from larmspider.learned.learning import Learning, LearningFrontier
from larmspider.learned.revisits.plan import ALL, DUE, WATCH
from larmspider.learned.revisits.revisiting import RevisitOptions
from larmspider.learned.traps.host_traps import Budgets
from larmspider.learned.traps.trap_watch import MODES, NOT_TRAPS
from larmspider.urls.file_urls import FILES
from larmspider.urls.normalizer import UrlForms
from larmspider.urls.patterns import Pattern, compile_pattern

if TYPE_CHECKING:
    from larmspider.options import Settings
    from larmspider.urls.canonical import Forms

STRATEGIES: dict[str, type[Strategy]] = {
    "breadth-first": BreadthFirst,
    "path-words": PathWords,
    "backlinks": Backlinks,
    "pagerank": PageRank,
}
"""LARM_STRATEGY by name."""

REFRESH_WORDS = (DUE, WATCH, ALL)
"""LARM_REFRESH, except for patterns."""
INDEX = "index"
"""The word that rebuilds the index without a crawl (commands/reindex.py)."""
REFRESH_ORDERS = ("value",)
"""LARM_REFRESH_ORDER."""

GROUP_BY = ("host", "address")
"""LARM_GROUP_BY: what hosts share their pace."""
FILES_PACE = HostPace(FILES, delay=0.0, connections=4)
"""The pace of files without LARM_HOST_RULES: a disk needs no rest."""

_RULE_FIELDS = ("delay", "connections", "budget", "window", "nofollow")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a frontier, beside the settings.

    LARM_GROUP_BY decides ``addresses.grouped``. ``shared``: the open backend of a worker among
    many, in place of a new one. ``logins``, ``links_to`` and ``take_out`` as in Learning,
    ``is_removed`` as in RevisitOptions. Without ``asks_sources`` no sitemap is fetched, whatever
    LARM_SITEMAPS says.
    """

    addresses: AddressBook = NO_ADDRESSES
    shared: SharedBackend | None = None
    logins: Part = field(default_factory=Part)
    links_to: Callable[[Sequence[str]], Sequence[int]] = lambda urls: [0] * len(urls)
    take_out: Callable[[str, float], bool] = lambda _host, _since: False
    is_removed: Callable[[Forms], bool] = lambda _: False
    asks_sources: bool = True


ALONE = Surroundings()


def build_frontier(
    settings: Settings, path: Path, around: Surroundings = ALONE
) -> LearningFrontier:
    """Open or make the files in ``path``; recover() comes next. Raises ConfigError,
    CrawlDirError."""
    grouped = options.choice(settings, "LARM_GROUP_BY", GROUP_BY) == "address"
    addresses = around.addresses
    if addresses is not NO_ADDRESSES:
        addresses = replace(addresses, grouped=grouped)
    agent = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"]
    backend = around.shared or LmdbBackend(path)
    robots: RobotsCache | NotAsked = NotAsked()
    if options.scrapys_boolean(settings, "ROBOTSTXT_OBEY"):
        robots = RobotsCache(backend, lambda body: RobotsRules.parse(body, agent))
    return LearningFrontier(
        backend,
        politeness_from(settings),
        STRATEGIES[strategy_name(settings)](),
        slots(settings),
        FrontierOptions(
            robots,
            crawl_limits(settings),
            addresses,
            options.clock(settings),
        ),
        learning(settings, around),
    )


def shared_gaps(settings: Settings) -> SharedGaps | None:
    """LARM_SHARED_GAPS."""
    path = options.text(settings, "LARM_SHARED_GAPS")
    return SharedGaps(Path(path).absolute()) if path else None


def learning(settings: Settings, around: Surroundings) -> Learning:
    """The Learning that the settings ask for. Raises ConfigError."""
    forms = UrlForms.from_settings(settings)
    return Learning(
        forms=forms,
        proofs=proofs(settings) if forms.has_guesses else 0,
        revisits=revisits(settings, around.is_removed),
        traps=options.choice(settings, "LARM_TRAPS", MODES),
        budgets=budgets(settings),
        not_traps=options.crawl_root(settings) / NOT_TRAPS,
        asks_sources=options.boolean(settings, "LARM_SITEMAPS") and around.asks_sources,
        links_to=around.links_to,
        take_out=around.take_out,
        logins=around.logins,
    )


def visits_a_day(settings: Settings) -> float:
    """LARM_REFRESH_PER_DAY. Raises ConfigError."""
    return options.seconds(settings, "LARM_REFRESH_PER_DAY", minimum=0, of="visits")


def budgets(settings: Settings) -> Budgets:
    """Pages in a row that are not new."""
    return Budgets(
        of_class=options.integer(settings, "LARM_CLASS_PAGES", minimum=0),
        deep=options.integer(settings, "LARM_CLASS_DEEP_PAGES", minimum=0),
        of_host=options.integer(settings, "LARM_CLASS_HOST_PAGES", minimum=0),
        endless=options.integer(settings, "LARM_CLASS_ENDLESS_PAGES", minimum=0),
    )


def revisits(settings: Settings, is_removed: Callable[[Forms], bool]) -> RevisitOptions:
    """The options of a run with this LARM_REFRESH."""
    mode = options.text(settings, "LARM_REFRESH").strip()
    matches = None
    if mode and mode not in REFRESH_WORDS:
        matches = refresh_pattern(mode).fullmatch
    return RevisitOptions(mode, visits_a_day(settings), matches, is_removed=is_removed)


def strategy_name(settings: Settings) -> str:
    """The value of LARM_STRATEGY. Raises ConfigError for an unknown strategy, and for one that
    cannot work when workers share the crawl, because a worker does not see the links that other
    workers find."""
    shared = options.many_workers(settings)
    accepted = [name for name, kind in STRATEGIES.items() if not (shared and kind.counts_links)]
    name = options.choice(settings, "LARM_STRATEGY", STRATEGIES)
    if name not in accepted:
        raise ConfigError(
            f"LARM_STRATEGY={name}: expected one of {', '.join(sorted(accepted))} where workers"
            " share the crawl (REDIS_URL)"
        )
    return name


def refresh_pattern(text: str) -> Pattern:
    """The pattern of URLs in LARM_REFRESH. Raises ConfigError for a value that is not a pattern."""
    if re.fullmatch(r"[\w-]*", text):
        raise ConfigError(
            f"refresh={text}: expected {', '.join(REFRESH_WORDS)}, {INDEX}, or a regular expression"
            " that whole URLs match, such as http://wiki/news/.*"
        )
    return compile_pattern(text, name="refresh")


def proofs(settings: Settings) -> int:
    """Equal pairs of URLs that prove a rule on a host."""
    return options.integer(settings, "LARM_CANONICAL_PROOFS", minimum=1)


def politeness_from(settings: Settings) -> Politeness:
    """The rules about hosts, which a reader of a crawl needs to explain a delay."""
    return Politeness(limits(settings), host_rules(settings), random.random, shared_gaps(settings))


def check_settings(settings: Settings) -> None:
    """Raise ConfigError for a value that build_frontier() would refuse; opens nothing."""
    limits(settings)
    host_rules(settings)
    slots(settings)
    crawl_limits(settings)
    probe_secs(settings)
    proofs(settings)
    options.boolean(settings, "LARM_SITEMAPS")
    visits_a_day(settings)
    options.choice(settings, "LARM_REFRESH_ORDER", REFRESH_ORDERS)
    strategy_name(settings)
    options.choice(settings, "LARM_GROUP_BY", GROUP_BY)
    options.choice(settings, "LARM_TRAPS", MODES)
    budgets(settings)


def probe_secs(settings: Settings) -> float:
    """The seconds for which the first fetch from a new host may delay other hosts."""
    return options.seconds(settings, "LARM_PROBE_SECS", minimum=0.01)


def limits(settings: Settings) -> Limits:
    """Delays, backoff and parking."""
    seconds = options.seconds
    return Limits(
        crawl_delay_max=seconds(settings, "LARM_CRAWL_DELAY_MAX_SECS", minimum=0),
        response_factor=seconds(settings, "LARM_DELAY_RESPONSE_FACTOR", minimum=0),
        retry_after_max=seconds(settings, "LARM_RETRY_AFTER_MAX_SECS", minimum=0),
        backoff=seconds(settings, "LARM_BACKOFF_SECS", minimum=0.01),
        backoff_max=seconds(settings, "LARM_BACKOFF_MAX_SECS", minimum=0.01),
        max_failures=options.integer(settings, "LARM_HOST_MAX_FAILURES", minimum=1),
        park=seconds(settings, "LARM_HOST_PARK_SECS", minimum=0.01),
        max_parks=options.integer(settings, "LARM_HOST_MAX_PARKS", minimum=0),
    )


def host_rules(settings: Settings) -> HostRules:
    """The general rule from Scrapy's settings, and LARM_HOST_RULES by pattern."""
    budget = options.integer(settings, "LARM_HOST_MAX_PAGES", minimum=0)
    general = HostPace(
        delay=options.seconds(settings, "DOWNLOAD_DELAY", minimum=0),
        connections=options.integer(settings, "CONCURRENT_REQUESTS_PER_DOMAIN", minimum=1),
        budget=budget or None,
    )
    rules = options.mapping(settings, "LARM_HOST_RULES")
    try:
        paces = [_rule(pattern, rule) for pattern, rule in rules.items()]
        return HostRules([*paces, FILES_PACE], general)
    except ConfigError as error:
        raise ConfigError(f"LARM_HOST_RULES: {error}") from None


def _rule(pattern: str, rule: Any) -> HostPace:
    if not isinstance(rule, Mapping) or not set(rule) <= set(_RULE_FIELDS):
        raise ConfigError(
            f"rule for host {pattern!r}: {rule!r}: expected a mapping with some of"
            f" {', '.join(_RULE_FIELDS)}"
        )
    fields = dict(rule)
    if isinstance(fields.get("window"), list):
        fields["window"] = tuple(fields["window"])
    return HostPace(str(pattern), **fields)


def slots(settings: Settings) -> SlotPool:
    """CONCURRENT_REQUESTS slots and how they are shared."""
    return SlotPool(
        options.integer(settings, "CONCURRENT_REQUESTS", minimum=1),
        slow_share=options.share(settings, "LARM_SLOW_SHARE"),
        probe_share=options.share(settings, "LARM_PROBE_SHARE"),
        slow_secs=options.seconds(settings, "LARM_SLOW_SECS", minimum=0.01),
    )


def crawl_limits(settings: Settings) -> CrawlLimits:
    return CrawlLimits(
        max_pages=options.integer(settings, "LARM_MAX_PAGES", minimum=0),
        depth_limit=options.integer(settings, "DEPTH_LIMIT", minimum=0),
        max_redirects=options.integer(settings, "LARM_MAX_REDIRECTS", minimum=0),
        retry_times=options.integer(settings, "LARM_RETRY_TIMES", minimum=0),
        robots_expires=options.seconds(settings, "LARM_ROBOTS_EXPIRES_SECS", minimum=1),
    )
