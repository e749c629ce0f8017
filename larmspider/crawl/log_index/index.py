"""What the index answers; the logs' lines themselves are read by crawl_dir.py.

with shared.of(Path("crawl/logs.idx")) as index:
    index.place("stored", "http://wiki/a")     # 81_264: where its line in store.log begins
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack

from larmspider.frontier.storage.records import host_prefix, url_key
from larmspider.crawl.log_index.environment import IndexFiles
from larmspider.crawl.log_index.places import OWN, key_in, place_of
from larmspider.crawl.log_index.records import (
    Fetches,
    LinkedHost,
    Target,
    pages_of,
    unpack_fetches,
    unpack_host,
    unpack_place,
    unpack_target,
)


class LogIndex:
    """Read-only; may be used by several threads. Raises CrawlDirError."""

    def __init__(self, path: Path) -> None:
        self._files = IndexFiles(path)

    def state(self) -> dict[str, Any]:
        """``positions`` by log, ``pages``, ``links``, ``pairs``, ``fetches``, ``time`` as of
        which, ``seconds`` that it took; {} while it has nothing yet."""
        return self._files.state()

    def shards(self) -> list[str]:
        """Whose logs are in it, in the order of the numbers in places; of one process "."."""
        return [str(shard) for shard in self.state().get("shards", (OWN,))]

    def end(self, log: str) -> int:
        """How much of a log is in the index, in bytes; ``atlas-1/links.log`` of a shard."""
        return int(self.state().get("positions", {}).get(log, 0))

    def place(self, table: str, url: str, shard: int = 0) -> int | None:
        """Where the line of ``url`` begins: ``stored``, ``fetched`` and ``broken`` by canonical
        form, ``sources`` by the URL as fetched. ``shard``: which one's line, in ``stored`` and
        ``sources``."""
        record = self._files.get(table, key_in(shard, url_key(url)))
        return None if record is None else unpack_place(record)

    def target(self, normalized: str) -> Target | None:
        """The links to a canonical form."""
        return self.target_of(url_key(normalized))

    def target_of(self, key: bytes) -> Target | None:
        """The same by url_key."""
        record = self._files.get("targets", key)
        return None if record is None else unpack_target(record)

    def most_linked(self) -> list[tuple[int, bytes]]:
        """Pages that link to it and url_key of each of the first 1,000."""
        return self._leaders(b"pages")

    def most_linked_hosts(self) -> list[LinkedHost]:
        """The first 1,000 by links."""
        records = (self._files.get("hosts", key) for _, key in self._leaders(b"hosts"))
        return [unpack_host(record) for record in records if record]

    def _leaders(self, name: bytes) -> list[tuple[int, bytes]]:
        return [
            (count, key) for count, key in msgpack.unpackb(self._files.get("meta", name) or b"\x90")
        ]

    def broken(self) -> list[tuple[int, bytes, int]]:
        """All broken targets: pages that carry a link to it, its url_key, its line in fetch.log.
        Those that are linked most come first. 3 us each."""
        found = []
        with self._files.read() as txn:
            targets = self._files.tables["targets"]
            for key, place in txn.cursor(self._files.tables["broken"]):
                record = txn.get(key, db=targets)
                found.append((pages_of(record) if record else 0, key, unpack_place(place)))
        found.sort(key=lambda row: (-row[0], row[2]))
        return found

    def targets(self) -> Iterator[tuple[bytes, Target]]:
        """All targets by url_key, hosts together; in short reads of 1,000."""
        after = b""
        while True:
            with self._files.read() as txn:
                cursor = txn.cursor(self._files.tables["targets"])
                more = cursor.set_range(after)
                rows = [(key, unpack_target(v)) for key, v in _some(cursor, more, 1000)]
            yield from rows
            if not rows:
                return
            after = rows[-1][0] + b"\0"

    def results(self, host: str) -> dict[str, Fetches]:
        """The fetches of a host by result, the most frequent first."""
        found = [(key[8:].decode("utf-8", "replace"), unpack_fetches(value))
                 for key, value in self._of_host("results", host)]  # fmt: skip
        return dict(sorted(found, key=lambda row: -row[1].times))

    def failures(self, host: str, limit: int) -> list[int]:
        """Where the last failed fetches of a host are in fetch.log, the last first; so many of each
        shard."""
        prefix, found = host_prefix(host), []
        numbers = range(len(self.shards()))
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.tables["failures"])
            for number in numbers:
                least = prefix + place_of(number, 0).to_bytes(8, "big")
                behind = prefix + place_of(number + 1, 0).to_bytes(8, "big")
                behind = prefix + b"\xff" * 8 if number == numbers[-1] else behind
                more = cursor.prev() if cursor.set_range(behind) else cursor.last()
                left = limit
                while more and left and cursor.key() >= least:
                    found.append(unpack_place(cursor.key()[8:]))
                    more, left = cursor.prev(), left - 1
        return found

    def edges(self) -> dict[tuple[str, str], int]:
        """Links from host to host, between the 1,000 hosts that are linked most."""
        names = {host_prefix(host.name): host.name for host in self.most_linked_hosts()}
        found = {}
        with self._files.read() as txn:
            for prefix, name in names.items():
                cursor = txn.cursor(self._files.tables["edges"])
                more = cursor.set_range(prefix)
                while more and cursor.key()[:8] == prefix:
                    if to := names.get(cursor.key()[8:]):
                        found[name, to] = unpack_place(cursor.value())
                    more = cursor.next()
        return found

    def _of_host(self, table: str, host: str) -> list[tuple[bytes, bytes]]:
        prefix = host_prefix(host)
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.tables[table])
            more = cursor.set_range(prefix)
            found = []
            while more and cursor.key().startswith(prefix):
                found.append(cursor.item())
                more = cursor.next()
        return found

    def close(self) -> None:
        """May be called twice."""
        self._files.close()


def _some(cursor: Any, more: bool, limit: int) -> Iterator[tuple[bytes, bytes]]:
    while more and limit:
        yield cursor.item()
        more, limit = cursor.next(), limit - 1
