"""In which order the URLs of one host are fetched; hosts take turns whatever the order.

    PathWords().priority("http://wiki/a/b", depth=4, inlinks=1)   ->  FIRST + 3

A lower number goes first, 0..65535; URLs of one number go in the order in which they were found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from itertools import compress
from math import log2
from urllib.parse import urlsplit

from larmspider.frontier.storage.records import MAX_PRIORITY

FIRST = 0x4000
"""Where the orders by small numbers begin: before it there is room for Request.priority."""
LATER = 0x400
"""Added to the priority of a URL for each level (TrapWatch), so that it waits behind others."""


def level_of(priority: int) -> int:
    """How many levels a URL was put behind others, where the order has them."""
    return max(0, priority - FIRST) // LATER


class Strategy(ABC):
    """``counts_links``: priority() is called again when another link to a URL is seen.
    ``has_levels``: URLs may be put behind others, by LATER for each level."""

    counts_links = False
    has_levels = False

    @abstractmethod
    def priority(self, url: str, depth: int, inlinks: int) -> int:
        """The priority of a URL, 0 to 65535; a lower one goes first. ``depth``: the number of links
        from a seed. ``inlinks``: the links to the URL that were seen so far."""


class BreadthFirst(Strategy):
    """Orders URLs by the number of links from a seed. Within one depth the URL that was found first
    is fetched first. The default."""

    has_levels = True

    def priority(self, url: str, depth: int, inlinks: int) -> int:
        return FIRST + min(depth, LATER - 1)


class PathWords(Strategy):
    """Fewer path segments first, ten levels: http://h/ is the first, http://h/a the second, ten or
    more the tenth."""

    has_levels = True

    def priority(self, url: str, depth: int, inlinks: int) -> int:
        return FIRST + min(10, 1 + sum(1 for word in urlsplit(url).path.split("/") if word))


class Backlinks(Strategy):
    """More links seen, earlier (Cho, Garcia-Molina, Page 1998: the backlink order).

    Exact up to 16 links, then eight levels to each doubling: a URL that a thousand pages link to
    changes its place 64 times, not a thousand.
    """

    counts_links = True

    def priority(self, url: str, depth: int, inlinks: int) -> int:
        return MAX_PRIORITY - self.level(inlinks)

    @staticmethod
    def level(inlinks: int) -> int:
        """The number of links up to 16; 24 for 32 links, 32 for 64, ..."""
        if inlinks <= 16:
            return inlinks
        doublings = inlinks.bit_length() - 5
        return 16 + 8 * doublings + ((inlinks >> (doublings + 1)) & 7)


DAMPING, ROUNDS = 0.85, 30
_STEPS = 1000
"""Priority steps to a halving of the rank."""


class LinkTable:
    """PageRank: URLs that many well-linked pages link to go first (Brin, Page 1998).

        links = LinkTable()
        links.add(url_key("http://wiki/"), [url_key("http://wiki/a"), url_key("http://wiki/b")])
        ranks = links.ranks()           # in a worker thread: 0.3 s for a million links with numpy
        frontier.reprioritize(links.priorities(ranks))

    Links between URL keys are gathered in memory while the crawl runs, 8 bytes a link and some 150
    bytes a URL, and the ranks computed from time to time; until then a new URL counts as average.

    Beyond ``max_urls`` URLs new ones are left out: they keep the order of their depth.
    """

    def __init__(self, max_urls: int = 1_000_000) -> None:
        self._max_urls = max_urls
        self._numbers: dict[bytes, int] = {}
        self._from, self._to = array("I"), array("I")
        self._since: dict[int, int] = {}
        """By number of a page, how many of all links are older than the links that it has now."""

    def __len__(self) -> int:
        return len(self._from)

    def _number(self, key: bytes) -> int | None:
        number = self._numbers.get(key)
        if number is None and len(self._numbers) < self._max_urls:
            number = self._numbers[key] = len(self._numbers)
        return number

    def add(self, page: bytes, targets: Sequence[bytes]) -> None:
        """The links of a page, once a page."""
        source = self._number(page)
        if source is None:
            return
        for target in dict.fromkeys(targets):
            number = self._number(target)
            if number is not None:
                self._from.append(source)
                self._to.append(number)

    def remove(self, page: bytes) -> None:
        """Forget the links that a page had: it is stored again."""
        if (source := self._numbers.get(page)) is not None:
            self._since[source] = len(self._from)

    def ranks(self) -> Sequence[float]:
        """The rank of each URL by its number, 1.0 on average, as of the call."""
        # in this order: a page that is being added meanwhile is in _to last
        count = len(self._to)
        size = len(self._numbers)
        sources, targets = self._from[:count], self._to[:count]
        if since := dict(self._since):
            left = [at >= since.get(source, 0) for at, source in enumerate(sources)]
            sources = array("I", compress(sources, left))
            targets = array("I", compress(targets, left))
        return page_ranks(bytes(sources), bytes(targets), size)

    def priorities(self, ranks: Sequence[float]) -> Iterator[tuple[bytes, int]]:
        """(URL key, priority) of each URL that has a rank."""
        for key, number in list(self._numbers.items()):
            if number < len(ranks):
                yield key, rank_priority(ranks[number])


def rank_priority(rank: float) -> int:
    """0..65535 for a rank, 1.0 on average: logarithmic, 32,768 for the average."""
    return min(MAX_PRIORITY, max(0, int(MAX_PRIORITY // 2 + 1 - _STEPS * log2(max(rank, 1e-12)))))


def page_ranks(sources: bytes, targets: bytes, size: int) -> Sequence[float]:
    """Power iteration over links, two columns of 32-bit numbers. The rank of pages without links is
    spread over all."""
    import numpy  # 0.1 s and 20 MB that no other crawl and no command pays

    source = numpy.frombuffer(sources, dtype=numpy.uint32)
    target = numpy.frombuffer(targets, dtype=numpy.uint32)
    out = numpy.bincount(source, minlength=size).astype(float)
    share = 1.0 / numpy.maximum(out, 1.0)
    ranks = numpy.ones(size)
    for _ in range(ROUNDS):
        gains = numpy.bincount(target, weights=(ranks * share)[source], minlength=size)
        base = 1 - DAMPING + DAMPING * ranks[out == 0].sum() / max(1, size)
        ranks = base + DAMPING * gains
    result: Sequence[float] = ranks.tolist()
    return result


class PageRank(Strategy):
    """A new URL has the average rank, less for its depth, until ranks are computed."""

    def priority(self, url: str, depth: int, inlinks: int) -> int:
        return min(MAX_PRIORITY, rank_priority(1.0) + depth)
