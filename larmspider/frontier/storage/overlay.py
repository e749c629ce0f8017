"""What the database says with the batches over it: reads see what no commit has written yet.

layers.new.urls[key] = record     # the batch under way (pending.py)
layers.url(key)                   # from it, else from the batch that ended, else from disk
layers.cut()                      # the batch ends, a new one begins
layers.write()                    # on disk, all or nothing; may run in a thread
layers.settle()                   # the batch that ended is let go
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from larmspider.frontier.storage.lmdb_env import LmdbFiles, WriteBatch


class WriteOverlay:
    """``new`` is the batch under way, ``ended`` the one that cut() ended, until settle()."""

    def __init__(self, files: LmdbFiles) -> None:
        self.files = files
        self.new = WriteBatch()
        self.ended = WriteBatch()
        self._unwritten: set[bytes] = set()  # queue keys that only the new batch holds

    def __len__(self) -> int:
        """Changes that are not on disk."""
        return len(self.new) + len(self.ended)

    # records of URLs

    def url(self, key: bytes) -> bytes | None:
        """The record of a URL."""
        found = self.new.urls.get(key) or self.ended.urls.get(key)
        return self.files.get(key, self.files.urls) if found is None else found

    def urls(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The records of many, in their order. To sort the keys first takes longer than it saves:
        a page's keys lie together as it is, and LMDB looks for each from the root."""
        if not keys:
            return []
        new, ended = self.new.urls, self.ended.urls
        with self.files.read() as txn:
            get, db = txn.get, self.files.urls
            return [new.get(key) or ended.get(key) or get(key, None, db) for key in keys]

    def all_urls(self) -> Iterator[tuple[bytes, bytes]]:
        """Every record; O(URLs)."""
        over = {**self.ended.urls, **self.new.urls}
        with self.files.read() as txn:
            for key, record in txn.cursor(self.files.urls):
                yield key, over.pop(key, record)
        yield from over.items()

    # entries of the queue

    def entry(self, place: bytes) -> bytes | None:
        """The packed entry at a place of the queue."""
        for batch in (self.new.queue, self.ended.queue):
            if place in batch:
                return batch[place]
        return self.files.get(place, self.files.queue)

    def put_entry(self, place: bytes, packed: bytes, *, new_place: bool) -> None:
        """``new_place``: there was no entry at this place, unless in a batch."""
        if new_place and place not in self.new.queue and place not in self.ended.queue:
            self._unwritten.add(place)
        self.new.queue[place] = packed

    def delete_entry(self, place: bytes) -> None:
        """Take an entry out for good; one that never was on disk just goes."""
        if place in self._unwritten:
            self._unwritten.remove(place)
            del self.new.queue[place]
        else:
            self.new.queue[place] = None

    def stored_run(
        self, prefix: bytes, after: bytes
    ) -> Generator[tuple[bytes, bytes | None], None, None]:
        """What is on disk of a run of the queue, behind a key of it or from its prefix on.

        With each place its entry as it is now, None where it is deleted. A transaction is open
        until it is closed.
        """
        new, ended, width = self.new.queue, self.ended.queue, len(prefix)
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.queue)
            more = cursor.set_range(after + b"\0" if len(after) > width else prefix)
            while more:
                key, value = cursor.item()
                if key[:width] != prefix:
                    return
                yield key, new[key] if key in new else ended.get(key, value)
                more = cursor.next()

    # hosts and notes

    def hosts(self) -> dict[str, bytes]:
        """All host records by name."""
        with self.files.read() as txn:
            found = dict(txn.cursor(self.files.hosts))
        found.update(self.ended.hosts)
        found.update(self.new.hosts)
        return {name[1:].decode(): data for name, data in found.items() if name[:1] == b"h"}

    def host(self, name: str) -> bytes | None:
        """The record of one host."""
        key = b"h" + name.encode()
        found = self.new.hosts.get(key) or self.ended.hosts.get(key)
        return self.files.get(key, self.files.hosts) if found is None else found

    def stored_counts(self) -> Iterator[tuple[str, bytes]]:
        """Packed counters by host, of the last commit."""
        with self.files.read() as txn:
            for name, value in txn.cursor(self.files.hosts):
                if name[:1] == b"c":
                    yield name[1:].decode(), value

    def meta(self, key: bytes) -> bytes | None:
        """A value of the meta database."""
        for batch in (self.new.meta, self.ended.meta):
            if key in batch:
                return batch[key]
        return self.files.get(key, self.files.meta)

    # durability

    def cut(self) -> None:
        """End the batch; joined with one that ended before and is not on disk yet."""
        self.ended = self.new.over(self.ended)
        self.new = WriteBatch()
        self._unwritten.clear()

    def write(self) -> None:
        """Commit what cut() ended; BackendError: nothing of it was written."""
        self.files.write(self.ended)

    def settle(self) -> None:
        """It is on disk: let go of it."""
        self.ended = WriteBatch()
