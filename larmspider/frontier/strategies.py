"""In which order the URLs of one host are fetched; hosts take turns whatever the order.

    PathWords().priority("http://wiki/a/b", depth=4, inlinks=1)   ->  FIRST + 3

A lower number goes first, 0..65535; URLs of one number go in the order in which they were found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from urllib.parse import urlsplit

from larmspider.frontier.storage.keys import MAX_PRIORITY

FIRST = 0x4000
"""Where the orders by small numbers begin: before it there is room for Request.priority."""


class Strategy(ABC):
    """``counts_links``: priority() wants to be asked again when another link to a URL is seen."""

    counts_links = False

    @abstractmethod
    def priority(self, url: str, depth: int, inlinks: int) -> int:
        """0..65535, lower first. ``depth``: links from a seed; ``inlinks``: seen so far."""


class BreadthFirst(Strategy):
    """By number of links from a seed; of one depth, first found, first fetched. The default."""

    def priority(self, url: str, depth: int, inlinks: int) -> int:
        return min(FIRST + depth, MAX_PRIORITY)


class PathWords(Strategy):
    """Fewer path segments first, ten levels: http://h/ is the first, http://h/a the second, ten or
    more the tenth."""

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
        """1..16 for as many links, 24 for 32, 32 for 64, ..."""
        if inlinks <= 16:
            return inlinks
        doublings = inlinks.bit_length() - 5
        return 16 + 8 * doublings + ((inlinks >> (doublings + 1)) & 7)
