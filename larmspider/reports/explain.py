"""Explains one URL: each stage's verdict, in running order, and its outcome.

>>> explanation = explain("http://WWW.wiki/Start", settings, CrawlDir(Path("crawl")))
>>> explanation.canonical, explanation.verdicts[2]
('http://wiki/start', Verdict('scope', 'reject', 'does not match restrict ...'))
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import BaseSettings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from larmspider import options
from larmspider.crawl.reader import CrawlDir, LoggedFetch, StoredPage
from larmspider.errors import ConfigError, CrawlDirError, InvalidURL
from larmspider.extraction.processes.process import Readers
from larmspider.fetch.sites.lookup import Sites
from larmspider.frontier.robots import RobotsRules
from larmspider.frontier.storage.records import url_key
from larmspider.items import ORDINARY, Link, Page
from larmspider.learned.describe import Learning, merged_in_words, url_report
from larmspider.learned.factory import STRATEGIES, budgets, politeness_from
from larmspider.learned.traps.trap_watch import MODES
from larmspider.middlewares.known_paths import KnownPathsFilter
from larmspider.middlewares.scope import ScopeFilter
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.middlewares.visited import SeenFilter, VisitedFilter
from larmspider.reports.page_history import history_in_words
from larmspider.urls.normalizer import (
    canonicalizer_from_settings,
    forms_from_settings,
    host_resolver_from_settings,
)
from larmspider.workdir.manifest import class_name, filters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from larmspider.frontier.storage.lmdb_reader import FrontierReader
    from larmspider.search.searcher import Searcher

_FINAL = ("stored", "failed", "refused", "merged")


LEFT = (
    "the crawl found this link and did not queue it, though no filter rejects it now: the page may"
    " have said nofollow in its head (X-Robots-Tag), which is not stored, or a setting has changed"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one stage: pass, reject or unknown, and why."""

    stage: str
    verdict: str
    reason: str = ""


@dataclass(slots=True)
class Explanation:
    """All that is known about one URL. ``canonical`` and ``exact`` are None for a URL without
    forms."""

    url: str
    canonical: str | None = None
    exact: str | None = None
    host_rules: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    """The tables of LARM_SITES_FILE that apply, with their settings; no secrets."""
    verdicts: list[Verdict] = field(default_factory=list)
    fetched: LoggedFetch | None = None
    stored: StoredPage | None = None
    first_referrer: str | None = None
    state: str = "unknown"
    """The state in the frontier, in the words of ARCHITECTURE.md."""
    merged: str = ""
    """The URL that stands for a merged one, and why."""
    frontier: list[str] = field(default_factory=list)
    """The frontier's facts: state, place in the queue, when it will be fetched, why not yet."""
    history: list[str] = field(default_factory=list)
    """When and why it left the search, its old URLs, the move of its host, why it stays."""
    copies: int = 0
    """Pages of the search index with the same text, or nearly."""
    copied_at: list[str] = field(default_factory=list)
    """URLs of the first copies."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    """Its own fields (LARM_FIELDS) in the search index."""
    notes: list[str] = field(default_factory=list)
    """Files of rules and filters that have changed since the crawl; unknown facts, and why."""

    @property
    def rejected_by(self) -> str | None:
        """The first stage that rejects the URL."""
        return next((v.stage for v in self.verdicts if v.verdict == "reject"), None)

    @property
    def visited(self) -> bool:
        """Whether the URL was queued or fetched; the filter ``visited`` judges by this."""
        return bool(self.fetched or self.stored or self.state != "unknown")

    @property
    def known(self) -> bool:
        """Whether the crawl has seen this URL, even if only as a link that a filter rejected."""
        return self.visited or self.first_referrer is not None


def explain(
    url: str,
    settings: BaseSettings,
    crawl: CrawlDir,
    index: Callable[[], Searcher] | None = None,
) -> Explanation:
    """Run ``url`` through the stages that ``settings`` list, and look it up in ``crawl``; its
    copies and own fields in ``index``, by default the crawl's, of all pages."""
    notes = [*_changed_rules(settings, crawl), *changed_filters(settings, crawl)]
    explanation = Explanation(url, notes=notes)
    resolver = host_resolver_from_settings(settings)
    try:
        canonical, exact = canonicalizer_from_settings(settings).forms(url)
    except InvalidURL as error:
        explanation.verdicts.append(Verdict("normalize", "reject", str(error)))
        return explanation
    host = canonical.split("/", 3)[2]
    if (colon := host.rfind(":")) > host.rfind("]"):  # [::1]:81 has a port, [::1] has none
        host = host[:colon]
    explanation.host_rules = resolver.explain(host)
    explanation.canonical = resolver.apply(canonical)
    explanation.exact = exact = resolver.apply(exact)
    forms = forms_from_settings(settings)
    seeds = {forms(seed).exact for seed in crawl.seeds}
    explanation.stored = crawl.stored(exact)
    explanation.fetched = crawl.last_fetch(exact)
    politeness = politeness_from(settings)
    with crawl.frontier() as frontier:
        if frontier is not None:
            key = url_key(exact)
            explanation.state = frontier.state(key).name.lower()
            learning = _learning(settings)
            explanation.frontier = url_report(
                frontier, politeness, key, options.clock(settings)(), learning=learning
            )
            if (merged := frontier.merged(key)) is not None:
                explanation.merged = merged_in_words(frontier, merged)
        explanation.history = list(history_in_words(crawl, frontier, exact))
        explanation.first_referrer = (
            "" if exact in seeds else _first_referrer(explanation, crawl, frontier)
        )
    if crawl.remark and explanation.state not in _FINAL:
        explanation.notes.append(crawl.remark)
    link, page = _as_found(url, explanation, settings, crawl)
    readable, unread = _with_sites_that_can_be_read(settings)
    for url_filter in filters(readable, crawl.seeds):
        verdict = _verdict(url_filter, link, page, explanation)
        if unread and isinstance(url_filter, KnownPathsFilter) and verdict.verdict == "pass":
            verdict = Verdict(verdict.stage, "unknown", f"which hosts have a login: {unread}")
        explanation.verdicts.append(verdict)
    was_left = explanation.first_referrer and not explanation.visited and not explanation.merged
    if was_left and explanation.rejected_by is None:
        explanation.notes.append(LEFT)
    fetched = explanation.fetched.url if explanation.fetched else link.url
    explanation.verdicts.append(_robots_verdict(fetched, settings, crawl))
    explanation.sites = _sites_that_apply(fetched, settings)
    with suppress(CrawlDirError):  # no index
        searcher = (index or crawl.searcher)()
        stored = explanation.stored
        document = searcher.get(stored.exact) if stored else None
        if document is not None:
            explanation.copies, hits = searcher.copies(document)
            explanation.copied_at = [hit.url for hit in hits]
            explanation.fields = dict(document.fields)
    return explanation


def filters(settings: BaseSettings, seeds: list[str]) -> Iterator[UrlFilter]:
    """The filters of SPIDER_MIDDLEWARES, in running order. Raises ConfigError on a bad setting."""
    listed = settings.get_component_priority_dict_with_base("SPIDER_MIDDLEWARES")
    for path in reversed(build_component_list(listed)):
        cls = load_object(path)
        if isinstance(cls, type) and issubclass(cls, SeenFilter):
            continue  # answers for the filter "visited", out of a crawl's memory
        if isinstance(cls, type) and issubclass(cls, UrlFilter):
            cls.check()
        if isinstance(cls, type) and issubclass(cls, ScopeFilter):
            yield cls.for_seeds(settings, seeds)
        elif isinstance(cls, type) and issubclass(cls, UrlFilter):
            yield cls.from_settings(settings)


def _changed_rules(settings: BaseSettings, crawl: CrawlDir) -> Iterator[str]:
    for name, copy in crawl.rules.items():
        if settings.get(name) != str(copy):
            continue  # these settings name another file
        source = crawl.settings[name]
        try:
            if Path(source).read_bytes() == copy.read_bytes():
                continue
            what = "has been changed"
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
        yield f"{source} {what} since the crawl; this goes by the crawl's copy, {copy}"


def changed_filters(settings: BaseSettings, crawl: CrawlDir) -> Iterator[str]:
    """A line if the crawl ran with other filters than ``settings``, which decide here."""
    now = filters_of(settings)
    then = crawl.manifest.get("identity", {}).get("filters", now)
    only = {"then": _not_among(now, then), "now": _not_among(then, now)}
    changes = [f"{when} also {', '.join(sorted(names))}" for when, names in only.items() if names]
    if changes:
        yield (
            "the crawl ran with other filters; this explanation uses the present settings: "
            + "; ".join(changes)
        )


def _not_among(known: Iterable[str], paths: Iterable[str]) -> list[str]:
    names = {class_name(path) for path in known}
    return [path for path in paths if class_name(path) not in names]


def _learning(settings: BaseSettings) -> Learning:
    order = STRATEGIES[options.choice(settings, "LARM_STRATEGY", STRATEGIES)]
    return Learning(options.choice(settings, "LARM_TRAPS", MODES), order, budgets(settings))


def _first_referrer(
    explanation: Explanation, crawl: CrawlDir, frontier: FrontierReader | None
) -> str | None:
    """The first page with a link, from links.log or, without that log, from the page's records."""
    assert explanation.exact is not None
    key = url_key(explanation.exact)
    if frontier is not None and (merged := frontier.merged(key)) is not None:
        return merged.entry.from_page
    found = crawl.first_referrer(explanation.exact)
    if found is not None:
        return found
    entry = None if frontier is None else frontier.entry(key)
    records = (explanation.fetched, explanation.stored, entry)
    return next((record.from_page for record in records if record and record.from_page), None)


def _as_found(
    url: str, explanation: Explanation, settings: BaseSettings, crawl: CrawlDir
) -> tuple[Link, Page]:
    """The link by which the URL was found, and its page, because some filters look at more than the
    URL. Both are read from the page file. For a seed or an unknown URL it is a bare link."""
    bare = Link(url, normalized=explanation.canonical, exact=explanation.exact)
    if not explanation.first_referrer:
        return bare, Page("")
    forms = forms_from_settings(settings)
    found_on, bare.type = _origin(explanation, crawl)
    stored = crawl.stored(forms(found_on).exact)
    if stored is None:
        return bare, Page(found_on)
    page = read_again(crawl.body(stored), stored, settings)
    with crawl.frontier() as frontier:
        visit = None if frontier is None else frontier.visit(url_key(stored.exact))
        page.depth = visit.depth if visit is not None else 0
    found = []
    for link in page.links:
        try:
            link.normalized, link.exact = forms(link.url)
        except InvalidURL:
            continue
        if link.exact == explanation.exact and link.type == bare.type:
            found.append(link)
    # the followed one of several links
    return min(found, key=lambda link: link.nofollow, default=bare), page


def read_again(body: bytes, stored: StoredPage, settings: BaseSettings) -> Page:
    """Extract a stored page again; a large page, and a document, in another process, because this
    process may be the crawl's."""
    with Readers.from_settings(settings) as readers:
        page = readers.read_again(stored.mime, body, stored.url)
        page.body = page.body or body
        return page


def _origin(explanation: Explanation, crawl: CrawlDir) -> tuple[str, int]:
    """Page and type of the link by which this URL was found; if it is not recorded, of the first
    link to it."""
    assert explanation.exact is not None
    stored, fetched, first = explanation.stored, explanation.fetched, explanation.first_referrer
    if stored is not None and stored.from_page:
        return stored.from_page, stored.link_type
    with crawl.frontier() as frontier:
        entry = None if frontier is None else frontier.entry(url_key(explanation.exact))
    if entry is not None and entry.from_page:
        return entry.from_page, entry.link_type
    led_from = (fetched.from_page if fetched else "") or first or ""
    links = (kind for page, kind in crawl.links_to(explanation.exact) if page == led_from)
    return led_from, next(links, ORDINARY)


def _verdict(url_filter: UrlFilter, link: Link, page: Page, explanation: Explanation) -> Verdict:
    if isinstance(url_filter, VisitedFilter):
        met = "known already"
        return Verdict(url_filter.name, "pass", met if explanation.visited else "not known yet")
    try:
        reason = url_filter.reject_link(link, page)
    except Exception as error:  # noqa: BLE001 - as in a crawl: whatever a filter raises rejects
        reason = f"the filter raised {error!r}"
    return Verdict(url_filter.name, "pass" if reason is None else "reject", reason or "")


def _with_sites_that_can_be_read(settings: BaseSettings) -> tuple[BaseSettings, str]:
    """Settings for the filters, and the fault of the file of sites."""
    try:
        Sites.from_settings(settings)
    except ConfigError as error:
        settings = BaseSettings(settings)
        settings.set("LARM_SITES_FILE", "", priority="cmdline")
        return settings, str(error)
    return settings, ""


def _sites_that_apply(url: str, settings: BaseSettings) -> list[str]:
    """The error as a line for a file that cannot be read; for secrets that are not there, too."""
    try:
        sites = Sites.from_settings(settings)
    except ConfigError as error:
        return [str(error)]
    site = sites.for_url(url)
    missing = (f"not fetched without this: {problem}" for problem in sites.problems_of(url))
    return [] if site is None else [*site.rules, str(site.options), *missing]


def _robots_verdict(url: str, settings: BaseSettings, crawl: CrawlDir) -> Verdict:
    if not options.scrapys_boolean(settings, "ROBOTSTXT_OBEY"):
        return Verdict("robots", "pass", "not obeyed (ROBOTSTXT_OBEY)")
    body = crawl.robots(url)
    if body is None:
        return Verdict("robots", "unknown", "this server's robots.txt has not been read")
    rules = RobotsRules.parse(body, settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"])
    line = rules.deciding_line(url)
    reason = "no line of robots.txt applies" if line is None else f"line {line[0]}: {line[1]}"
    return Verdict("robots", "pass" if rules.allowed(url) else "reject", reason)
