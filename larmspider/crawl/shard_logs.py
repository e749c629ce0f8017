"""The logs of all shards of a crawl, looked up as one: by one index over all of them as far as it
goes, the rest by searching.

    logs = ShardLogs(Path("crawl"), began, {"atlas-1": ..., "atlas-2": ...}, visit_time)
    logs.last("fetch.log", "http://wiki/a")      # the latest of all workers

The index lies in LARM_DIR/logs.idx; its places say whose log is meant (log_index/places.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from larmspider.crawl.logs import NORMALIZED, TABLES, CrawlLogs
from larmspider.crawl.log_index.index import LogIndex
from larmspider.crawl.log_index.marks import mark_of, marks
from larmspider.crawl.log_index.places import kind_of, shard_and_offset, shard_of

VisitTime = Callable[[str, str], float]
"""Of a shard and a URL: when that worker was last done with it; 0.0: it was not."""


class ShardLogs(CrawlLogs):
    """``parts`` are the logs of each shard by its path from ``path``; each bounds its own
    searches."""

    def __init__(
        self, path: Path, began: str, parts: Mapping[str, CrawlLogs], visit_time: VisitTime
    ) -> None:
        self.path, self.began, self.parts = path, began, dict(parts)
        self._visit_time = visit_time

    @property
    def cut_short(self) -> bool:  # type: ignore[override]
        return any(logs.cut_short for logs in self.parts.values())

    def _is_ours(self, index: LogIndex) -> bool:
        state = index.state()
        return state.get("began") == self.began and all(
            position <= self._size_of(name) and mark_of(self.path / name, position) == mark
            for name, position, mark in marks(state)
        )

    def _size_of(self, name: str) -> int:
        part = self.parts.get(shard_of(name))
        return 0 if part is None else part.size(kind_of(name))

    def size(self, name: str) -> int:
        return sum(logs.size(name) for logs in self.parts.values())

    # one line for each worker that has one

    def last_of_each(self, name: str, normalized: str) -> list[tuple[str, list[str]]]:
        """The last record of a canonical form in each shard: its name, the fields."""
        with self.index() as index:
            known = self._known(index, TABLES[name], normalized)
            ends = self._ends(index, name)
        found = []
        for shard, logs in self.parts.items():
            place = known.get(shard)
            last = None if place is None else logs.record(name, place)
            for _, fields in logs.search(name, normalized, NORMALIZED, ends[shard]):
                last = fields
            if last is not None:
                found.append((shard, last))
        return found

    def _known(self, index: LogIndex | None, table: str, url: str) -> dict[str, int]:
        """By shard, where its last line in the index is; of fetches the latest of all alone."""
        if index is None:
            return {}
        shards = index.shards()
        if table == "fetched":
            places = [index.place(table, url)]
        else:
            places = [index.place(table, url, number) for number in range(len(shards))]
        split = (shard_and_offset(place) for place in places if place is not None)
        return {shards[number]: offset for number, offset in split}

    def _ends(self, index: LogIndex | None, name: str) -> dict[str, int]:
        """By shard, where what the index does not have begins."""
        ends = {} if index is None else index.state().get("positions", {})
        return {shard: int(ends.get(str(Path(shard, name)), 0)) for shard in self.parts}

    def last(self, name: str, normalized: str) -> list[str] | None:
        """Of all shards the latest."""
        found = self.last_of_each(name, normalized)
        if name == "fetch.log":
            return max((fields for _, fields in found), key=lambda one: one[0], default=None)
        times = [self._visit_time(shard, normalized) for shard, _ in found]
        return found[times.index(max(times))][1] if found else None

    # links

    def links_to(self, normalized: str) -> Iterator[list[str]]:
        with self.index() as index:
            target = None if index is None else index.target(normalized)
            ends = self._ends(index, "links.log")
        for fields in self.records_at("links.log", () if target is None else target.places):
            if fields:
                yield fields
        for shard, logs in self.parts.items():
            for _, found in logs.search("links.log", normalized, NORMALIZED, ends[shard]):
                yield found

    def links_from(self, page: str, limit: int) -> list[list[str]] | None:
        """Where several workers have fetched the page, by the one that did so last."""
        with self.index() as index:
            known = self._known(index, "sources", page)
            ends = self._ends(index, "links.log")
        places = []
        for shard, logs in self.parts.items():
            place = known.get(shard)
            if place is None:
                hit = next(logs.search("links.log", page, 0, ends[shard]), None)
                place = None if hit is None else hit[0]
            if place is not None:
                places.append((self._visit_time(shard, page), shard, place))
        if not places:
            return None if self.cut_short else []
        _, shard, place = max(places)
        return self.parts[shard].links_at(place, page, limit)

    # lines by their places in the index

    def records_at(self, name: str, places: Iterable[int]) -> Iterator[list[str] | None]:
        """Neighbours in one log are read with the file opened once."""
        with self.index() as index:
            shards = [] if index is None else index.shards()
        split = [shard_and_offset(place) for place in places]
        at = 0
        while at < len(split):
            number, begin = split[at][0], at
            while at < len(split) and split[at][0] == number:
                at += 1
            offsets = [offset for _, offset in split[begin:at]]
            logs = self.parts.get(shards[number]) if number < len(shards) else None
            yield from logs.records_at(name, offsets) if logs else [None] * len(offsets)

    def records(self, name: str, place: int) -> Iterator[list[str]]:
        with self.index() as index:
            shards = [] if index is None else index.shards()
        number, offset = shard_and_offset(place)
        if number < len(shards) and shards[number] in self.parts:
            yield from self.parts[shards[number]].records(name, offset)

    def search(
        self, name: str, value: str | None, field: int, start: int = 0
    ) -> Iterator[tuple[int, list[str]]]:
        """One log after the other; the numbers are places in each of them, not in the index."""
        for logs in self.parts.values():
            yield from logs.search(name, value, field, start)
