"""The frontier of a crawl with everything that the crawl learns about hosts.

    frontier = LearningFrontier(backend, politeness, strategy, slots, options, Learning(forms))
    frontier.traps.known("wiki:80")

Frontier calls its Parts in one order and does not know them by name. Here they have names: for the
scheduler and the middlewares, which show them pages, and for reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from larmspider.dates import http_time
from larmspider.extraction.pages.sitemap import ANYWHERE
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.part import Part
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.state import USUAL, FrontierOptions
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import FetchRecord, UrlState, host_of, url_key
from larmspider.frontier.strategies import Strategy
from larmspider.learned.broken_views import ViewWatch
from larmspider.learned.deletes.delete_gate import DeleteGate
from larmspider.learned.revisits.revisiting import Revisiting, RevisitOptions
from larmspider.learned.script_watch import ScriptWatch
from larmspider.learned.shortfall import Shortfall
from larmspider.learned.sources import LEAST_PRECISION, Sources
from larmspider.learned.spellings.merging import Merger
from larmspider.learned.traps.host_traps import Budgets
from larmspider.learned.traps.trap_watch import OFF, TrapWatch
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from larmspider.urls.schemes import is_source


def _is_put_back(visit: FetchRecord, listed: float) -> bool:
    """Whether a folder lists a file with an earlier time than at its last visit, as after an old
    version was restored. Times in lists have no seconds, and ANYWHERE is added to them."""
    known = http_time(visit.last_modified) if is_source(visit.url) else None
    return known is not None and listed - ANYWHERE.total_seconds() + 60 < known


def _own_forms() -> UrlForms:
    return UrlForms(Canonicalizer(), HostResolver())


@dataclass(frozen=True, slots=True)
class Learning:
    """The choice of things to learn. The defaults leave out everything that a setting can turn off.

    ``proofs``: the number of equal pairs of URLs that prove a rule on a host; 0: no URLs are
    merged. ``revisits``: None where URLs do not even get the time of their next visit. ``traps`` is
    LARM_TRAPS, ``not_traps`` the file of classes that are not traps. ``asks_sources``: sitemaps and
    feeds are fetched. ``links_to`` and ``take_out`` as in DeleteGate. ``logins`` signs in to hosts,
    before anything else is fetched there.
    """

    forms: UrlForms = field(default_factory=_own_forms)
    proofs: int = 0
    revisits: RevisitOptions | None = None
    traps: str = OFF
    budgets: Budgets = field(default_factory=Budgets)
    not_traps: Path | None = None
    asks_sources: bool = False
    links_to: Callable[[Sequence[str]], Sequence[int]] = lambda urls: [0] * len(urls)
    take_out: Callable[[str, float], bool] = lambda _host, _since: False
    logins: Part = field(default_factory=Part)


NOTHING = Learning()


class LearningFrontier(Frontier):
    merger: Merger
    """Merges URLs that are one page."""
    traps: TrapWatch
    """Holds URLs that are traps."""
    views: ViewWatch
    """Tells broken views from hosts that are down."""
    sources: Sources
    """Sitemaps and feeds."""
    gate: DeleteGate
    """Decides on every removal of a page that is gone."""
    refresh: Revisiting
    """Decides which pages are visited again, and when."""
    scripts: ScriptWatch
    """Learns which hosts have pages that are empty without JavaScript."""
    shortfall: Shortfall
    """Learns why little of a host is stored."""

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        strategy: Strategy,
        slots: SlotPool,
        options: FrontierOptions = USUAL,
        learning: Learning = NOTHING,
    ) -> None:
        parts = partial(LearningFrontier._make, learning=learning)
        super().__init__(backend, politeness, strategy, slots, options, parts)

    def _make(self, learning: Learning) -> Sequence[Part]:
        """The Parts in the order in which they are called. A login comes before every other fetch
        of a host, a probe before a sitemap. ``gate`` hears of an ended URL before ``merger``."""
        notes = self.notes
        self.merger = Merger(self, learning.forms, learning.proofs)
        self.traps = TrapWatch(
            self, self.merger.trials, learning.budgets, learning.traps, learning.not_traps
        )
        self.views = ViewWatch(self, self.traps)
        self.sources = Sources(notes, self.clock, is_on=learning.asks_sources)
        self.gate = DeleteGate(
            notes,
            self.make_due,
            learning.links_to,
            learning.take_out,
            shared=self.partitions.shared,
        )
        self.refresh = Revisiting(
            self,
            learning.forms,
            self.gate,
            self.sources,
            learning.revisits or RevisitOptions(),
        )
        self.scripts, self.shortfall = ScriptWatch(notes), Shortfall(notes)
        optional = {
            self.merger: self.merger.is_on,
            self.sources: self.sources.is_on,
            self.refresh: learning.revisits is not None,
        }
        parts = (
            learning.logins,
            self.views,
            self.gate.error_pages,
            self.gate,
            self.sources,
            self.merger,
            self.traps,
            self.refresh,
            self.scripts,
            self.shortfall,
        )
        return [part for part in parts if optional.get(part, True)]

    # what one Part tells another

    def found_sources(self, urls: Iterable[str], how: str, by: str = "") -> None:
        """Remember sitemaps and feeds that a page, or the robots.txt of the host ``by``, names.
        Only hosts that this crawl, or this worker, has get requests."""
        for url in urls if self.sources.is_on else ():
            host = self.hosts.get(host_of(url)) if url.startswith(("http://", "https://")) else None
            if host is None:
                continue
            name = host.record.host
            found_by = f"{how} of {by}" if by and by != name else how
            if self.sources.found(name, [url], found_by):
                self.reschedule(host)

    def unlinked(self, names: Iterable[str]) -> None:
        """Make pages due to which no link leads any longer. ``names``: the exact forms of their
        URLs."""
        self.refresh.named_no_more(self._stored(map(url_key, names)))

    def sitemap_read(self, url: str, names: Iterable[str]) -> int:
        """A complete sitemap names these pages (exact forms of their URLs). Pages that it named
        some time ago, and no longer names, become due. Returns their number."""
        stored = self._stored(self.sources.named(url, map(url_key, names)))
        flapping = self.sources.dropped((key for key, _ in stored), url)
        if flapping is not None and stored:
            self.gate.flaps(flapping)
        else:
            self.refresh.named_no_more(stored)
        return len(stored)

    def signalled(self, pages: Iterable[tuple[str, float]], source: str) -> int:
        """Take the changes that a sitemap, feed or listing names: exact forms of URLs, each with
        the time of its last change. A page that was last visited before its change is due at once,
        as far as the source is trusted. Returns the number of these pages. 10 us each."""
        changes: dict[bytes, float] = {}
        for exact, changed in pages:
            key = url_key(exact)
            changes[key] = max(changed, changes.get(key, changed))
        stale = [
            (key, one)
            for key, one in self._stored(changes)
            if one.time < changes[key] or _is_put_back(one, changes[key])
        ]
        precision = self.sources.precision(source)
        if precision >= LEAST_PRECISION:
            self.refresh.signalled(stale, precision)
        self.sources.signalled((key for key, _ in stale), source)
        return len(stale)

    def _stored(self, keys: Iterable[bytes]) -> list[tuple[bytes, FetchRecord]]:
        visits = ((key, self.backend.visit(key)) for key in keys)
        return [(key, one) for key, one in visits if one and one.state is UrlState.STORED]
