"""Links that come in: which are known, which are new and within bounds, which have moved up.

links.known(["http://wiki/", "http://wiki/new"])   ->  [True, False]
links.add([links.entry("http://wiki/new", "http://wiki/new")]).new   ->  [QueuedUrl(...)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

from larmspider.frontier.partition import Partitions
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import QueuedUrl, UrlState, host_of, url_key
from larmspider.frontier.strategies import Strategy

# How far the crawl goes, and why a link lies beyond that.
#
# CrawlLimits(depth_limit=3).reject_reason(entry)   ->  "depth 4 is over 3"

MAX_HOST = 300
"""Characters of host:port; DNS allows 253. A longer one would not fit a key of the backend."""


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """How far the crawl goes; 0 means no bound. ``retry_times`` are fetches beside the first.

    ``robots_expires`` in seconds (RFC 9309 2.4: 24 h); ``robots_retry``: after a failed renewal.
    """

    max_pages: int = 0
    depth_limit: int = 0
    max_redirects: int = 10
    retry_times: int = 2
    robots_expires: float = 86_400.0
    robots_retry: float = 3_600.0

    def reject_reason(self, entry: QueuedUrl) -> str | None:
        """Why it will not be queued; None where it may be."""
        if self.depth_limit and entry.depth > self.depth_limit:
            return f"depth {entry.depth} is over {self.depth_limit}"
        if entry.redirects > self.max_redirects:
            return f"{entry.redirects} redirects in a row, {self.max_redirects} are allowed"
        if len(entry.host) > MAX_HOST:
            return f"host name of {len(entry.host)} characters, {MAX_HOST} are allowed"
        return None


# URLs that were seen lately: the menu that is on each of a wiki's pages is asked for once.
#
# Nothing that is known ever becomes unknown, so an answer from here cannot be stale. It saves the
# hash and the look into the database: 0.1 us instead of 3 (docs/performance.md has the rates on
# real sites).


class RecentlySeen:
    """Holds ``size`` to twice as many URLs: two generations, the older is dropped whole."""

    def __init__(self, size: int = 32_768) -> None:
        self._size = size
        self._young: set[str] = set()
        self._old: set[str] = set()

    def among(self, urls: Sequence[str]) -> list[bool]:
        """Of each URL: is it remembered?"""
        young, old = self._young, self._old
        seen = [url in young for url in urls]
        if old and False in seen:
            for at, url in enumerate(urls):
                if not seen[at] and url in old:
                    seen[at] = True
                    self.add(url)
        return seen

    def add(self, url: str) -> None:
        """Remember a URL that is known to the frontier."""
        self._young.add(url)
        if len(self._young) >= self._size:
            self._old, self._young = self._young, set()


@dataclass(slots=True)
class Added:
    """``new`` are queued now; ``rejected`` are not wanted, with the reason; the rest was known, or
    ``posted``: so many are other workers'."""

    new: list[QueuedUrl] = field(default_factory=list)
    rejected: list[tuple[QueuedUrl, str]] = field(default_factory=list)
    posted: int = 0


class Links:
    """The way into the backend. Hosts and their turns are the caller's. ``blocks``: whose hosts
    they are, where the crawl is shared."""

    def __init__(
        self,
        backend: Backend,
        strategy: Strategy,
        bounds: CrawlLimits,
        blocks: Partitions | None = None,
    ) -> None:
        self._backend, self._strategy, self._bounds = backend, strategy, bounds
        self._blocks = blocks
        self._seen = RecentlySeen()

    def entry(
        self,
        url: str,
        normalized: str,
        *,
        depth: int = 0,
        link_type: int = 0,
        redirects: int = 0,
        from_page: str = "",
        payload: bytes = b"",
    ) -> QueuedUrl:
        """An entry for add(): fields as in records.Entry, key, host and priority set."""
        return QueuedUrl(
            url=url,
            normalized=normalized,
            key=url_key(normalized),
            host=host_of(url),
            depth=depth,
            link_type=link_type,
            redirects=redirects,
            priority=self._strategy.priority(normalized, depth, 1),
            from_page=from_page,
            payload=payload,
        )

    def add(self, entries: Sequence[QueuedUrl]) -> Added:
        """Queue the new ones within depth and redirect bounds."""
        result, wanted = Added(), []
        for entry in entries:
            reason = self._bounds.reject_reason(entry)
            if reason:
                result.rejected.append((entry, reason))
            else:
                wanted.append(entry)
        for entry, new in zip(wanted, self._backend.add(wanted), strict=True):
            self._seen.add(entry.normalized)
            if new:
                result.new.append(entry)
        return result

    def seen(self, normalized: Iterable[str]) -> None:
        """These are known from now on, wherever they are."""
        for url in normalized:
            self._seen.add(url)

    def seen_lately(self, normalized: Sequence[str]) -> list[bool]:
        """known() as far as memory tells, so False proves nothing. Counts nothing, and tells
        nothing where the order counts links."""
        if self._strategy.counts_links:
            return [False] * len(normalized)
        return self._seen.among(normalized)

    def known(self, normalized: Sequence[str]) -> list[bool]:
        """Was each canonical URL added before? Counts as a link to it where the order asks."""
        seen = self._seen
        known = seen.among(normalized)
        unsure = [(at, url_key(url)) for at, url in enumerate(normalized) if not known[at]]
        states = self._backend.check([key for _, key in unsure])
        for (at, _), state in zip(unsure, states, strict=True):
            if state is not UrlState.UNKNOWN:
                known[at] = True
                seen.add(normalized[at])
        if self._strategy.counts_links:
            self._count([url for at, url in enumerate(normalized) if known[at]])
        return known

    def _count(self, normalized: Sequence[str]) -> None:
        priority = self._strategy.priority
        by_key = [(url, url_key(url)) for url in normalized]
        if self._blocks is not None:
            own = self._blocks.post_links([key for _, key in by_key])
            by_key = list(compress(by_key, own))
        changes = []
        counted = self._backend.count_links([key for _, key in by_key])
        for (url, key), links in zip(by_key, counted, strict=True):
            # depth is not at hand here; an order that counts links does not go by it
            if links and (rank := priority(url, 0, links)) != priority(url, 0, links - 1):
                changes.append((key, rank))
        if changes:
            self._backend.move(changes)

    def count_mail(
        self, entries: Sequence[QueuedUrl], new: Iterable[QueuedUrl], links: Mapping[bytes, int]
    ) -> None:
        """The links that other workers found: one by each entry but the ``new`` ones, whose first
        it was, and ``links`` by URL key."""
        if not self._strategy.counts_links:
            return
        more = Counter(links)
        more.update(entry.key for entry in entries)
        more.subtract(entry.key for entry in new)
        more = +more
        counted = self._backend.count_links(list(more), list(more.values()))
        changes = []
        for key, total in zip(more, counted, strict=True):
            if total and (entry := self._backend.entry(key)):
                changes.append((key, self._strategy.priority(entry.normalized, 0, total)))
        self.reprioritize(changes)

    def reprioritize(self, changes: Iterable[tuple[bytes, int]]) -> None:
        """New priorities for the queued ones of these URL keys; 10-20 us each.

        Those that have theirs already stay where they are.
        """
        moved = []
        for key, priority in changes:
            entry = self._backend.entry(key)
            if entry is not None and entry.priority != priority:
                moved.append((key, priority))
        self._backend.move(moved)
