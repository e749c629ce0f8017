"""Links that come in: which are known, which are new and within bounds, which have moved up.

links.known(["http://wiki/", "http://wiki/new"])   ->  [True, False]
links.add([links.entry("http://wiki/new", "http://wiki/new")]).new   ->  [Entry(...)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

from larmspider.frontier.bounds import Bounds
from larmspider.frontier.partition import Blocks
from larmspider.frontier.seen import RecentlySeen
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.keys import host_of, url_key
from larmspider.frontier.storage.records import Entry, UrlState
from larmspider.frontier.strategies import Strategy


@dataclass(slots=True)
class Added:
    """``new`` are queued now; ``rejected`` are not wanted, with the reason; the rest was known, or
    ``posted``: so many are other workers'."""

    new: list[Entry] = field(default_factory=list)
    rejected: list[tuple[Entry, str]] = field(default_factory=list)
    posted: int = 0


class Links:
    """The way into the backend. Hosts and their turns are the caller's. ``blocks``: whose hosts
    they are, where the crawl is shared."""

    def __init__(
        self, backend: Backend, strategy: Strategy, bounds: Bounds, blocks: Blocks | None = None
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
    ) -> Entry:
        """An entry for add(): fields as in records.Entry, key, host and priority set."""
        return Entry(
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

    def add(self, entries: Sequence[Entry]) -> Added:
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
        self, entries: Sequence[Entry], new: Iterable[Entry], links: Mapping[bytes, int]
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
