"""Reads that see what no commit has written yet: two batches of changes over the database.

overlay.new.urls[key] = record     # the batch under way
overlay.url(key)                   # from that batch, else from the sealed one, else from disk
overlay.seal()                     # the batch is sealed, a new one begins
overlay.write()                    # the sealed batch on disk, all or nothing; may run in a thread
overlay.discard()                  # the sealed batch leaves memory
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from larmspider.frontier.storage import records
from larmspider.frontier.storage.lmdb_env import LmdbFiles, WriteBatch
from larmspider.frontier.storage.records import FORGOTTEN

MAX_GUESSES = 8
"""URLs of one canonical form that are looked at."""


class WriteOverlay:
    """``new`` is the batch under way; ``sealed`` is full between seal() and discard()."""

    def __init__(self, files: LmdbFiles) -> None:
        self.files = files
        self.new = WriteBatch()
        self.sealed = WriteBatch()
        self._unwritten: set[bytes] = set()  # queue keys that only the new batch holds
        self._has_forgotten = False  # whether a batch has records.FORGOTTEN

    def __len__(self) -> int:
        """The number of changes that are not on disk."""
        return len(self.new) + len(self.sealed)

    # records of URLs

    def url(self, key: bytes) -> bytes | None:
        found = self.new.urls.get(key) or self.sealed.urls.get(key)
        if found is None:
            return self.files.get(key, self.files.urls)
        return None if found == FORGOTTEN else found

    def urls(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The records of many URLs, in their order. Sorting the keys first takes longer than it
        saves: most keys of a page are neighbours as they come, and LMDB looks for each from the
        root."""
        if not keys:
            return []
        new, sealed = self.new.urls, self.sealed.urls
        with self.files.read() as txn:
            get, db = txn.get, self.files.urls
            found = [new.get(key) or sealed.get(key) or get(key, None, db) for key in keys]
        if self._has_forgotten:
            return [None if record == FORGOTTEN else record for record in found]
        return found

    def forget_url(self, key: bytes) -> None:
        self.new.urls[key] = FORGOTTEN
        self._has_forgotten = True

    def all_urls(self) -> Iterator[tuple[bytes, bytes]]:
        """Key and record of every URL; O(URLs)."""
        over = {**self.sealed.urls, **self.new.urls}
        with self.files.read() as txn:
            for key, record in txn.cursor(self.files.urls):
                if (now := over.pop(key, record)) != FORGOTTEN:
                    yield key, now
        yield from ((key, record) for key, record in over.items() if record != FORGOTTEN)

    def stored_urls(self, after: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Key and present record of the URLs on disk, after ``after``."""
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.urls)
            rows = list(islice(cursor.iternext(), limit)) if cursor.set_range(after + b"\0") else []
        new, sealed = self.new.urls, self.sealed.urls
        return [(key, new.get(key) or sealed.get(key) or record) for key, record in rows]

    # aliases

    def guessed(self, prefixes: Sequence[bytes]) -> list[list[bytes]]:
        """For each records.guess_prefix(), the rows that begin with it."""
        guessed = []
        for prefix, found in zip(prefixes, self._rows(prefixes, MAX_GUESSES), strict=True):
            for batch in (self.sealed, self.new):
                if prefix in batch.guesses:
                    found += records.guess_rows(batch.guesses[prefix])
            guessed.append(list(dict.fromkeys(found)))
        return guessed

    def alias_rows(self, prefix: bytes, limit: int) -> list[bytes]:
        """Other rows with a prefix, at most ``limit``."""
        changes = {
            row: value
            for batch in (self.sealed, self.new)
            for row, value in batch.aliases.items()
            if row.startswith(prefix)
        }
        deleted = sum(value is None for value in changes.values())
        (stored,) = self._rows([prefix], limit + deleted)
        found = [row for row in stored if row not in changes]
        found += [row for row, value in changes.items() if value is not None]
        return found[:limit]

    def _rows(self, prefixes: Sequence[bytes], limit: int) -> list[list[bytes]]:
        """The rows on disk that begin with each prefix, at most ``limit`` for each."""
        found = []
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.aliases)
            for prefix in prefixes:
                rows: list[bytes] = []
                more = cursor.set_range(prefix)
                while more and len(rows) < limit and cursor.key().startswith(prefix):
                    rows.append(cursor.key())
                    more = cursor.next()
                found.append(rows)
        return found

    # entries of the queue

    def entry(self, place: bytes) -> bytes | None:
        """The packed entry at a place of the queue."""
        for batch in (self.new.queue, self.sealed.queue):
            if place in batch:
                return batch[place]
        return self.files.get(place, self.files.queue)

    def put_entry(self, place: bytes, packed: bytes, *, new_place: bool) -> None:
        """Put an entry at a place. ``new_place``: the place has no entry on disk."""
        if new_place and place not in self.new.queue and place not in self.sealed.queue:
            self._unwritten.add(place)
        self.new.queue[place] = packed

    def delete_entry(self, place: bytes) -> None:
        """Delete an entry; one that is in no sealed batch and not on disk leaves no trace."""
        if place in self._unwritten:
            self._unwritten.remove(place)
            del self.new.queue[place]
        else:
            self.new.queue[place] = None

    def stored_run(
        self, prefix: bytes, after: bytes
    ) -> Generator[tuple[bytes, bytes | None], None, None]:
        """The places on disk of one run of the queue, after ``after`` or from ``prefix`` on. Each
        has its present entry; None if it is deleted. A transaction is open until the generator is
        closed.
        """
        return self._stored(self.files.queue, (self.new.queue, self.sealed.queue), prefix, after)

    def stored_revisits(
        self, prefix: bytes, after: bytes
    ) -> Generator[tuple[bytes, bytes | None], None, None]:
        """Does what stored_run() does, for the places of revisits that begin with ``prefix``."""
        return self._stored(
            self.files.revisits, (self.new.revisits, self.sealed.revisits), prefix, after
        )

    def _stored(
        self,
        db: Any,
        batches: tuple[Mapping[bytes, bytes | None], Mapping[bytes, bytes | None]],
        prefix: bytes,
        after: bytes,
    ) -> Generator[tuple[bytes, bytes | None], None, None]:
        (new, sealed), width = batches, len(prefix)
        with self.files.read() as txn:
            cursor = txn.cursor(db)
            more = cursor.set_range(after + b"\0" if len(after) > width else prefix)
            while more:
                key, value = cursor.item()
                if key[:width] != prefix:
                    return
                yield key, new[key] if key in new else sealed.get(key, value)
                more = cursor.next()

    # hosts and notes

    def hosts(self) -> dict[str, bytes]:
        with self.files.read() as txn:
            found = dict(txn.cursor(self.files.hosts))
        found.update(self.sealed.hosts)
        found.update(self.new.hosts)
        return {name[1:].decode(): data for name, data in found.items() if name[:1] == b"h"}

    def host(self, name: str) -> bytes | None:
        key = b"h" + name.encode()
        found = self.new.hosts.get(key) or self.sealed.hosts.get(key)
        return self.files.get(key, self.files.hosts) if found is None else found

    def stored_counts(self) -> Iterator[tuple[str, bytes]]:
        """Packed counters by host, as of the last commit."""
        with self.files.read() as txn:
            for name, value in txn.cursor(self.files.hosts):
                if name[:1] == b"c":
                    yield name[1:].decode(), value

    def meta(self, key: bytes) -> bytes | None:
        """A value of the meta database."""
        for batch in (self.new.meta, self.sealed.meta):
            if key in batch:
                return batch[key]
        return self.files.get(key, self.files.meta)

    # durability

    def seal(self) -> None:
        """End the batch; it joins a sealed one that is not on disk yet."""
        self.sealed = self.new.over(self.sealed)
        self.new = WriteBatch()
        self._unwritten.clear()

    def write(self) -> None:
        """Commit the sealed batch. Raises BackendError; then nothing was written."""
        self.files.write(self.sealed)

    def discard(self) -> None:
        """Drop the sealed batch, which is on disk by now."""
        self.sealed = WriteBatch()
        self._has_forgotten = self._has_forgotten and FORGOTTEN in self.new.urls.values()
