"""Learns which blocks of text stand on many pages of a host: navigation, notes on rights, banners.

    navigation = Navigation()
    navigation.spans([("wiki.example", text)])     # [[(0, 412), (9_120, 9_300)]]: start and end

A row is five words side by side. Only rows that begin with one of an eighth of all words are looked
at. Rows that `SHARE` of a host's pages have are counted with bounded memory: a full table forgets
its rarer half, so a row that is on many pages comes back and stays. Two of these rows without
another row between them are a block. A page that would lose half of its text keeps all of it: it is
a copy, or the host has no other text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import TypeAlias

from larmspider.extraction.texts.words import Words

SHARE = 0.15
"""Share of a host's pages from which on a row is navigation."""
LEAST_PAGES = 40
"""Pages of a host before any row is navigation."""
MANY_PAGES, ONE_OF = 1_000, 4
"""Beyond 1,000 pages of a host it learns from 1 page in 4."""
MAX_ROWS = 2_048
"""Rows that are remembered of a host: 0.2 MB."""
MAX_HOSTS = 300
"""Hosts that are remembered: the hosts of the latest pages."""
_ROW = 5
Spans: TypeAlias = list[tuple[int, int]]
_SAMPLE = 8
_RUNS = re.compile(b"\x01{2,}")


class _Host:
    def __init__(self) -> None:
        self._seen = self._pages = 0  # the second: that it learned from
        self._rows = Counter[int]()
        self._often = set[int]()

    def often(self, rows: Sequence[int]) -> set[int]:
        """The rows of a page that many pages have."""
        self._seen += 1
        if self._seen > MANY_PAGES and self._seen % ONE_OF:
            return self._often.intersection(rows)
        different = set(rows)
        self._learn(different)
        if self._pages < LEAST_PAGES:
            return set()
        counts, least = self._rows, ceil(SHARE * self._pages)
        often = {row for row in different if counts[row] >= least}
        self._often -= different
        self._often |= often
        return often

    def _learn(self, rows: Iterable[int]) -> None:
        self._pages += 1
        self._rows.update(rows)
        if len(self._rows) > MAX_ROWS:
            count = self._rows.__getitem__
            most = sorted(self._rows, key=count, reverse=True)[: MAX_ROWS // 2]
            self._rows = Counter(dict(zip(most, map(count, most), strict=True)))
            self._often &= self._rows.keys()


class Navigation:
    """The navigation of one crawl's hosts, from the pages of this process."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}

    def spans(self, texts: Sequence[tuple[str, str]], known: Words | None = None) -> list[Spans]:
        """The spans of navigation in the text of each host's page, in order; learns from the pages.
        Takes 0.1 ms for 10 KB, less if the words of all texts are ``known``."""
        known = known or Words([text for _, text in texts])
        rows = known.rows(_ROW, _SAMPLE)
        return [
            known.places(number, self._blocks(host, *rows[number], known.number(number)))
            if host
            else []
            for number, (host, _) in enumerate(texts)
        ]

    def _blocks(
        self, host: str, places: list[int], rows: list[int], words: int
    ) -> list[tuple[int, int]]:
        learned = self._hosts.pop(host, None) or _Host()
        self._hosts[host] = learned
        if len(self._hosts) > MAX_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        if not (often := learned.often(rows)):
            return []
        are_often = bytes(map(often.__contains__, rows))
        blocks = [
            (places[run.start()], places[run.end() - 1] + _ROW) for run in _RUNS.finditer(are_often)
        ]
        return [] if 2 * sum(end - start for start, end in blocks) > words else [*_apart(blocks)]


def _apart(blocks: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Blocks of words; of overlapping blocks the second begins after the first."""
    last = 0
    for start, end in blocks:
        start = max(start, last)
        if start < end:
            yield start, end
        last = max(last, end)
