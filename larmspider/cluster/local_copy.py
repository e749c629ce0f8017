"""A worker's copy, on its own disk, of the partitions that it owns.

    local = LocalCopy(SharedFiles(Path("crawl/w1/frontier")), keys)
    local.wipe()                               # at the start: Redis has newer data
    local.keep_queued([(place, links, packed)])
    local.purge({17: hosts})                   # the partition has another owner

The records of URLs that this worker fetched stay even if their partition moves: their pages are
here. URLs that other workers fetched are in the database ``others``. The key is the number of the
partition (2 bytes) and 8 bytes of the URL key. The value is the state (redis_records.py), or a
FetchRecord (URL, depth and fingerprint) if the page may stand for other spellings. URLs to be
visited again are in ``urls``, and their records name the worker that has their pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_records import (
    GONE,
    STATE_ONLY,
    StoredPage,
    compact,
    compact_of,
    state_of,
)
from larmspider.errors import InvalidURL
from larmspider.frontier.storage import records
from larmspider.frontier.storage.lmdb_env import FIRST_MAP_BYTES, LmdbFiles
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.urls.normalizer import UrlForms

Row: TypeAlias = tuple[Any, bytes, bytes | None]
"""(database, key, value); None deletes."""

CHUNK = 100_000
"""Records in one transaction outside of commits."""
_ELSEWHERE = "found by another worker"
"""``missing_as`` of a page of this worker that another worker no longer found."""


class SharedFiles(LmdbFiles):
    """The frontier's files, with two more databases. ``buckets`` is VisitedTable's."""

    def __init__(self, path: Path, *, map_bytes: int = FIRST_MAP_BYTES) -> None:
        super().__init__(path, map_bytes=map_bytes)
        self.others = self.env.open_db(b"others")
        self.buckets = self.env.open_db(b"buckets")

    def record(self, key: bytes, partition: int) -> bytes | None:
        """The record of a URL as of the last commit, even if another worker fetched the URL."""
        found = self.get(key, self.urls)
        return _fetched(self.get(name_of(key, partition), self.others)) if found is None else found


class SharedWriteOverlay(WriteOverlay):
    """Knows the URLs that others fetched, too."""

    files: SharedFiles

    def __init__(self, files: SharedFiles, keys: Keys) -> None:
        super().__init__(files)
        self._keys = keys

    def _name(self, key: bytes) -> bytes:
        return name_of(key, self._keys.partition_of_key(key))

    def url(self, key: bytes) -> bytes | None:
        record = super().url(key)
        if record is None:
            record = _fetched(self.files.get(self._name(key), self.files.others))
        return record

    def urls(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = super().urls(keys)
        if None in found:
            with self.files.read() as txn:
                for at, record in enumerate(found):
                    if record is None:
                        found[at] = _fetched(txn.get(self._name(keys[at]), None, self.files.others))
        return found


def _fetched(value: bytes | None) -> bytes | None:
    """The FetchRecord of a URL in ``others``."""
    return STATE_ONLY[UrlState(value[0])] if value and len(value) == 1 else value


def _is_foreign(record: bytes) -> bool:
    """Whether the record is for a page in another worker's directory."""
    return records.is_final(record) and records.is_elsewhere(record)


def _rows_of(key: bytes, record: bytes) -> tuple[bytes, bytes]:
    merged = records.unpack_merged(record)
    return records.merged_rows(merged.entry.host, key, merged.into)


def tag_of(partition: int) -> bytes:
    """The first bytes of a partition's rows."""
    return partition.to_bytes(2, "big")


def name_of(key: bytes, partition: int) -> bytes:
    """The name of a URL in ``others``."""
    return tag_of(partition) + compact(key)


class LocalCopy:
    """Changes to the files outside of commits; in one thread at a time, and during no commit."""

    def __init__(self, files: SharedFiles, keys: Keys) -> None:
        self.files, self.keys = files, keys

    def wipe(self) -> None:
        """Forget everything except records of URLs that this worker fetched. O(URLs), 1 us each."""
        files = self.files
        self.write(self._without_merged(self._all_merged()))
        while queued := self._some_queued():
            self.write([(files.urls, key, None) for _, key in queued])
            self.write([(files.queue, place, None) for place, _ in queued])
        after = b""
        while rows := self._some_rows(after, b"\xff" * 17):
            self.write([(files.urls, key, None) for key, record in rows if _is_foreign(record)])
            after = rows[-1][0] + b"\0"
        files.insist(self._drop)

    def _some_queued(self) -> list[tuple[bytes, bytes]]:
        with self.files.read() as txn:
            rows = txn.cursor(self.files.queue)
            return [(place, packed[:16]) for place, packed in islice(rows, CHUNK)]

    def _drop(self) -> None:
        with self.files.env.begin(write=True) as txn:
            txn.drop(self.files.hosts, delete=False)
            txn.drop(self.files.others, delete=False)
            txn.drop(self.files.revisits, delete=False)
            cursor = txn.cursor(self.files.meta)
            more = cursor.set_range(b"n")
            while more and cursor.key()[:1] == b"n":  # notes of hosts have a space in their names
                more = cursor.delete() if b" " in cursor.key() else cursor.next()

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows in transactions of CHUNK rows."""
        for at in range(0, len(rows), CHUNK):
            part = rows[at : at + CHUNK]
            self.files.insist(lambda part=part: self._write(part))  # type: ignore[misc]

    def _write(self, rows: Sequence[Row]) -> None:
        puts: dict[Any, list[tuple[bytes, bytes]]] = {}
        with self.files.env.begin(write=True) as txn:
            for db, key, value in sorted(rows, key=itemgetter(1)):  # neighbours share pages
                if value is None:
                    txn.delete(key, db=db)
                else:
                    puts.setdefault(db, []).append((key, value))
            for db, pairs in puts.items():
                txn.cursor(db).putmulti(pairs)

    def keep_queued(self, rows: Iterable[tuple[bytes, int, bytes]]) -> None:
        """Queued URLs: place in the queue, number of links, packed entry."""
        files = self.files
        changes: list[Row] = []
        for place, links, packed in rows:
            key = packed[:16]
            record = records.pack_waiting(UrlState.QUEUED, links, place)
            changes += [(files.urls, key, record), (files.queue, place, packed)]
            guess = records.url_key(records.unpack_entry(packed).normalized)
            if guess != key:
                changes.append((files.aliases, records.guess_row(guess, key), b""))
        self.write(changes)

    def keep_merged(self, found: Mapping[bytes, bytes]) -> None:
        """Records of merged URLs, by key."""
        changes: list[Row] = []
        for key, record in found.items():
            changes.append((self.files.urls, key, record))
            changes += [(self.files.aliases, row, b"") for row in _rows_of(key, record)]
        self.write(changes)

    def keep_visits(
        self, found: Mapping[bytes, bytes], worker: str, forms: UrlForms | None
    ) -> None:
        """Keep records of URLs that are visited again, by key. They replace this worker's records
        of its own visits; its name is ``worker``."""
        files = self.files
        changes: list[Row] = []
        for key, packed in found.items():
            visit, kept = records.unpack_visit(packed), packed
            if visit.shard == worker:
                visit.shard = ""
                kept = records.pack_visit(visit, visit.inlinks)
            changes.append((files.urls, key, kept))
            if visit.due:
                place = records.revisit_key(records.host_of(visit.url), visit.due, key)
                changes.append((files.revisits, place, b""))
            if forms is not None and visit.stands:
                with suppress(InvalidURL):  # the settings are others now
                    guess = records.url_key(forms(visit.url).normalized)
                    if guess != key:
                        changes.append((files.aliases, records.guess_row(guess, key), b""))
        self.write(changes)

    def keep_pages(self, partition: int, pages: Iterable[StoredPage], forms: UrlForms) -> None:
        """Keep the pages of one commit. Pages that this worker fetched itself are known, unless
        another worker has visited them since: then their records say so."""
        files, tag = self.files, tag_of(partition)
        changes: list[Row] = []
        with files.read() as txn:
            for url, depth, fingerprint in pages:
                try:
                    normalized, exact = forms(url)
                except InvalidURL:  # the settings are others now
                    continue
                key = records.url_key(exact)
                name = tag + compact(key)
                state = txn.get(name, None, files.others)
                own = None if state else txn.get(key, None, files.urls)
                if own is not None and records.is_final(own):
                    visit = records.unpack_visit(own)
                    is_own = not visit.shard
                    if is_own and visit.stands and not changes and visit.digest[-8:] == fingerprint:
                        return  # a commit of this worker
                    gone = fingerprint == GONE
                    if visit.stands if gone else visit.missing_as == _ELSEWHERE:
                        visit.missing_as = _ELSEWHERE if gone else ""
                        packed = records.pack_visit(visit, visit.inlinks)
                        changes.append((files.urls, key, packed))
                if not state or state[0] != UrlState.STORED:
                    continue
                if fingerprint == GONE:
                    changes.append((files.others, name, bytes((UrlState.STORED,))))
                    continue
                digest = bytes(records.BODY_DIGEST) + fingerprint
                visit = FetchRecord(
                    UrlState.STORED, status=200, digest=digest, url=url, depth=depth
                )
                changes.append((files.others, name, records.pack_visit(visit, 0)))
                if normalized != exact:
                    row = records.guess_row(records.url_key(normalized), key)
                    changes.append((files.aliases, row, b""))
        self.write(changes)

    def keep_hosts(
        self, hosts: Mapping[str, bytes], counts: Mapping[str, bytes], notes: Mapping[str, bytes]
    ) -> None:
        """Host records, counters and notes, by name."""
        files = self.files
        rows = [(files.hosts, b"h" + host.encode(), packed) for host, packed in hosts.items()]
        rows += [(files.hosts, b"c" + host.encode(), packed) for host, packed in counts.items()]
        rows += [(files.meta, b"n" + name.encode(), note) for name, note in notes.items()]
        self.write(rows)

    def visited_rows(self, partition: int, members: Iterable[int]) -> list[Row]:
        """The rows that the visited table of a partition changes. URLs that others fetched are
        added. Two kinds of URLs that this worker fetched are deleted: URLs that Redis lost with its
        last second, and URLs that were refused here, queued again, and fetched by other workers
        since."""
        own = dict(self.own_visits(partition))
        known: set[bytes] = set()
        rows: list[Row] = []
        tag = tag_of(partition)
        for number in members:
            name = compact_of(number)
            if name in own and own[name][1] == state_of(number):
                known.add(name)
            else:
                rows.append((self.files.others, tag + name, bytes((state_of(number),))))
        gone = (key for name, (key, _) in own.items() if name not in known)
        return [*rows, *((self.files.urls, key, None) for key in gone)]

    def own_visits(self, partition: int) -> Iterator[tuple[bytes, tuple[bytes, int]]]:
        """The partition's URLs that this worker fetched: by compact(), keys and states."""
        for key, record in self._url_rows(partition):
            if records.is_final(record):
                yield compact(key), (key, record[0])

    def _all_merged(self) -> list[tuple[bytes, bytes]]:
        """Keys and records of merged URLs."""
        files, found = self.files, []
        with files.read() as txn:
            cursor = txn.cursor(files.aliases)
            more = cursor.set_range(records.OF_HOST)
            while more and cursor.key().startswith(records.OF_HOST):
                key = cursor.key()[9:]
                if (record := txn.get(key, None, files.urls)) is not None:
                    found.append((key, record))
                more = cursor.next()
        return found

    def _without_merged(self, known: Iterable[tuple[bytes, bytes]]) -> list[Row]:
        """The rows that delete the merged URLs among ``known``."""
        rows: list[Row] = []
        for key, record in known:
            if record[0] == UrlState.MERGED:
                rows.append((self.files.urls, key, None))
                rows += [(self.files.aliases, row, None) for row in _rows_of(key, record)]
        return rows

    def _url_rows(self, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """The records of a partition's URLs, as of the last commit."""
        after, end = self.keys.first_key(partition), self.keys.first_key(partition + 1)
        while rows := self._some_rows(after, end):
            yield from rows
            after = rows[-1][0] + b"\0"

    def _some_rows(self, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        rows: list[tuple[bytes, bytes]] = []
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.urls)
            more = cursor.set_range(start)
            while more and len(rows) < CHUNK and cursor.key() < end:
                rows.append(cursor.item())
                more = cursor.next()
        return rows

    def _other_rows(self, partition: int) -> list[tuple[bytes, bytes]]:
        tag, rows = tag_of(partition), []
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.others)
            more = cursor.set_range(tag)
            while more and cursor.key()[:2] == tag:
                rows.append(cursor.item())
                more = cursor.next()
        return rows

    def others(self, partition: int) -> dict[bytes, UrlState]:
        """States of the partition's URLs that others fetched, by compact()."""
        return {key[2:]: UrlState(state[0]) for key, state in self._other_rows(partition)}

    def purge(self, partitions: Mapping[int, Iterable[str]]) -> None:
        """Forget partitions, given with their hosts, except the URLs that this worker fetched."""
        files = self.files
        for partition, hosts in partitions.items():
            rows: list[Row] = []
            for key, record in self._url_rows(partition):
                rows += self._without_merged([(key, record)])
                if records.is_final(record):
                    visit = records.unpack_visit(record)
                    if visit.due:
                        host = records.host_of(visit.url)
                        place = records.revisit_key(host, visit.due, key)
                        rows.append((files.revisits, place, None))
                    if visit.shard:
                        rows.append((files.urls, key, None))
                if records.is_waiting(record):
                    place = records.unpack_waiting(record)[2]
                    rows += [(files.urls, key, None), (files.queue, place, None)]
            rows += [(files.others, key, None) for key, _ in self._other_rows(partition)]
            self.write(rows)
            rows = []
            for name in (host.encode() for host in hosts):
                rows += [(files.hosts, b"h" + name, None), (files.hosts, b"c" + name, None)]
                rows += [(files.meta, note + name, None) for note in records.HOST_NOTES]
            self.write(rows)
