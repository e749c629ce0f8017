"""Lines of the logs, gathered until they are worth a transaction. 1.5 us a line of links.log."""

from __future__ import annotations

from larmspider.frontier.storage.records import host_of, host_prefix, url_key
from larmspider.crawl.log_index.records import CARRIERS, Fetches
from larmspider.crawl.log_index.results import is_failure

MANY = 100_000
"""Targets, or pairs of hosts, after which a batch is full."""
MANY_LINES = 500_000
"""Lines of links.log; a batch takes some 100 MB."""


def key_of(url: bytes) -> bytes:
    """url_key() of a URL in a log."""
    return url_key(url.decode("utf-8", "replace"))


def origin_of(url: bytes) -> bytes:
    """``http://wiki`` of ``http://wiki/a``; an absolute URL."""
    slash = url.find(b"/", 8)
    return url if slash < 0 else url[:slash]


class LinkBatch:
    """Lines of links.log. A page counts once for each target, links to itself do not count.

    A page's lines follow each other in the log, but for those of pages with more than 10,000
    links: of these a target may count twice.
    """

    def __init__(self) -> None:
        self.targets: dict[bytes, list[int]] = {}
        """By canonical URL: pages, then the places of the first links."""
        self.sources: dict[bytes, int] = {}
        self.edges: dict[tuple[bytes, bytes], int] = {}
        """Links by the origins of page and target."""
        self.lines = self.pairs = 0
        self._page = b""
        self._seen: set[bytes] = set()

    @property
    def full(self) -> bool:
        return max(len(self.targets), len(self.edges)) > MANY or self.lines > MANY_LINES

    def may_end_before(self, line: bytes) -> bool:
        """A batch has all lines of a page."""
        return not line.startswith(self._page + b"\t")

    def add(self, line: bytes, place: int) -> None:
        """A line without its end, which begins at ``place``; one that is damaged is passed over."""
        fields = line.split(b"\t", 3)
        if len(fields) < 4:
            return
        page, url, target, _ = fields
        self.lines += 1
        if page != self._page:
            self.end_page()
            self._page = page
            self.sources[page] = place
        if not target or target in self._seen or url == page:
            return
        self._seen.add(target)
        found = self.targets.get(target)
        if found is None:
            self.targets[target] = [1, place]
            return
        found[0] += 1
        if len(found) <= CARRIERS:
            found.append(place)

    def end_page(self) -> None:
        """What follows is another page, or another batch."""
        origin = origin_of(self._page)
        edges = self.edges
        for target in self._seen:
            slash = target.find(b"/", 8)
            edge = origin, target if slash < 0 else target[:slash]
            edges[edge] = edges.get(edge, 0) + 1
        self.pairs += len(self._seen)
        self._page, self._seen = b"", set()


class FetchBatch:
    """Lines of fetch.log."""

    def __init__(self) -> None:
        self.fetched: dict[bytes, tuple[int, bool]] = {}
        """By key: the place of the last fetch, and whether it failed."""
        self.results: dict[bytes, Fetches] = {}
        self.failures: list[bytes] = []
        self.lines = 0

    @property
    def full(self) -> bool:
        return len(self.fetched) > MANY

    def may_end_before(self, line: bytes) -> bool:
        return True

    def add(self, line: bytes, place: int) -> None:
        """As LinkBatch.add()."""
        fields = line.split(b"\t")
        if len(fields) != 8:
            return
        _, url, normalized, _, result, size, millis, _ = fields
        self.lines += 1
        failed = is_failure(result.decode("utf-8", "replace"))
        self.fetched[key_of(normalized or url)] = place, failed
        host = host_prefix(host_of(url.decode("utf-8", "replace")))
        if failed:
            self.failures.append(host + place.to_bytes(8, "big"))
        key = host + result[:32]
        took = _number(millis)
        self.results[key] = self.results.get(key, Fetches()).plus(
            Fetches(1, _number(size), took, took)
        )


class StoreBatch:
    """Lines of store.log."""

    def __init__(self) -> None:
        self.stored: dict[bytes, int] = {}
        self.lines = 0

    @property
    def full(self) -> bool:
        return len(self.stored) > MANY

    def may_end_before(self, line: bytes) -> bool:
        return True

    def add(self, line: bytes, place: int) -> None:
        """As LinkBatch.add()."""
        fields = line.split(b"\t", 3)
        if len(fields) == 4:
            self.lines += 1
            self.stored[key_of(fields[2] or fields[1])] = place


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() else 0
