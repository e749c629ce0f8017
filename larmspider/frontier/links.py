"""Links on their way into the frontier: how far the crawl goes, which URLs were seen lately, and
how many links lead to each, for the strategies that count them.

    CrawlLimits(depth_limit=3).reject_reason(entry)      ->  "depth 4 is over 3"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import QueuedUrl, url_key

MAX_HOST = 300
"""Characters of host:port; DNS allows 253. A longer host would not fit a key of the backend."""


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """How far the crawl goes; 0 means no limit. ``retry_times`` are fetches beside the first.

    ``robots_expires`` in seconds (RFC 9309 2.4: 24 h); ``robots_retry``: after a failed renewal.
    """

    max_pages: int = 0
    depth_limit: int = 0
    max_redirects: int = 10
    retry_times: int = 2
    robots_expires: float = 86_400.0
    robots_retry: float = 3_600.0

    def reject_reason(self, entry: QueuedUrl) -> str | None:
        """Why a URL will not be queued; None if it may be."""
        if self.depth_limit and entry.depth > self.depth_limit:
            return f"depth {entry.depth} is over {self.depth_limit}"
        if entry.redirects > self.max_redirects:
            return f"{entry.redirects} redirects in a row, {self.max_redirects} are allowed"
        if len(entry.host) > MAX_HOST:
            return f"host name of {len(entry.host)} characters, {MAX_HOST} are allowed"
        return None


@dataclass(slots=True)
class Added:
    """The result of Frontier.add(): ``new`` are queued now; ``rejected`` are beyond a limit, with
    the reason; ``forwarded`` is the number of URLs of other workers. The rest was known."""

    new: list[QueuedUrl] = field(default_factory=list)
    rejected: list[tuple[QueuedUrl, str]] = field(default_factory=list)
    forwarded: int = 0


class RecentlySeen:
    """URLs that the frontier knows: a menu on each page of a wiki is looked up once.

    A known URL stays known, so an answer from here is never stale. It saves the hash and the
    database lookup: 0.1 us instead of 3 (docs/internals/performance.md has hit rates). Holds
    ``size`` to 2 * ``size`` URLs in two generations; the older one is dropped as a whole.
    """

    def __init__(self, size: int = 32_768) -> None:
        self._size = size
        self._young: set[str] = set()
        self._old: set[str] = set()

    def clear(self) -> None:
        self._young, self._old = set(), set()

    def among(self, urls: Sequence[str]) -> list[bool]:
        """Whether each URL is remembered."""
        young, old = self._young, self._old
        seen = [url in young for url in urls]
        if old and False in seen:
            for at, url in enumerate(urls):
                if not seen[at] and url in old:
                    seen[at] = True
                    self.add(url)
        return seen

    def add(self, url: str) -> None:
        """Remember a URL that is known to the frontier; "" is ignored."""
        self._young.add(url)
        if len(self._young) >= self._size:
            self._old, self._young = self._young, set()


def count_links(
    backend: Backend, priority: Callable[[str, int, int], int], exact: Sequence[str]
) -> None:
    """Count one more link to each of these known URLs; their priority may change
    (Strategy.priority)."""
    by_key = [(url, url_key(url)) for url in exact]
    changes = []
    counted = backend.count_links([key for _, key in by_key])
    for (url, key), links in zip(by_key, counted, strict=True):
        # depth is not at hand here; a strategy that counts links does not go by it
        if links and (rank := priority(url, 0, links)) != priority(url, 0, links - 1):
            changes.append((key, rank))
    if changes:
        backend.reprioritize(changes)
