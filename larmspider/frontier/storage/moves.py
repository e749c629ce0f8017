"""URLs that wait and get another place in their host's queue, as more links to them are seen.

moves.count_links([key])     ->  [3]      one more link to each
moves.move([(key, 7)])       behind all of its host that have priority 7 already
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import repeat

from larmspider.frontier.storage import keys as k
from larmspider.frontier.storage import records as r
from larmspider.frontier.storage.overlay import Layers
from larmspider.frontier.storage.queues import HostQueues
from larmspider.frontier.storage.records import UrlState


class Moves:
    """``leased`` are the keys of URLs that do not wait, whatever their record says."""

    def __init__(self, layers: Layers, queues: HostQueues, leased: Container[bytes]) -> None:
        self._layers, self._queues, self._leased = layers, queues, leased

    def _waits(self, key: bytes, record: bytes | None) -> bool:
        return record is not None and record[0] == UrlState.QUEUED and key not in self._leased

    def count_links(self, keys: Sequence[bytes], more: Sequence[int] | None = None) -> list[int]:
        """As Backend.count_links()."""
        counted, urls = [], self._layers.new.urls
        steps = repeat(1, len(keys)) if more is None else more
        for key, known, step in zip(keys, self._layers.urls(keys), steps, strict=True):
            record = urls.get(key, known)  # a key may come twice
            if record is None or not self._waits(key, record):
                counted.append(0)
                continue
            state, inlinks, place = r.unpack_waiting(record)
            inlinks = min(inlinks + step, 0xFFFFFFFF)
            urls[key] = r.pack_waiting(state, inlinks, place)
            counted.append(inlinks)
        return counted

    def move(self, changes: Sequence[tuple[bytes, int]]) -> None:
        """As Backend.move(). A URL that waits for a time keeps its place, and has it for later."""
        for key, priority in changes:
            record = self._layers.url(key)
            if record is None or not self._waits(key, record):
                continue
            state, inlinks, place = r.unpack_waiting(record)
            packed = self._layers.entry(place)
            if packed is None:
                continue
            entry = r.unpack_entry(packed)
            entry.priority = min(max(priority, 0), k.MAX_PRIORITY)
            to = place
            if k.run_of(place) == k.READY:
                to = self._queues.ready_place(entry.host, entry.priority)
                self._queues.remove(entry.host, place)
            self._queues.put(entry.host, to, r.pack_entry(entry), new_place=to != place)
            self._layers.new.urls[key] = r.pack_waiting(state, inlinks, to)
