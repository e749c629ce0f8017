"""The frontier's memory in one LMDB environment, for one process on one machine.

    backend = LmdbBackend(Path("crawl/frontier"))
    positions = backend.recover().positions

On disk is the state of the last commit; in memory are the changes since (overlay.py), the head of
each host's queue and the counters (queues.py), and the leases. Databases:

    urls    16-byte URL key     -> waiting record (state, links to it, queue key) or FetchRecord
    queue   17 or 21 byte key   -> entry; stays until its URL reaches a final state
    revisits 30 byte place      -> nothing; stays until the URL was visited again (revisits.py)
    hosts   "h" + host          -> the frontier's host record;  "c" + host -> counters
    meta    format, serial, leases, positions, "n" + name -> note
    aliases URLs by their canonical form; merged URLs by host, and by the URL that stands for them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TypeGuard

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage import records
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.lmdb_env import FIRST_MAP_BYTES, LmdbFiles, share, unshare
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.queues import HostCounters, HostQueues
from larmspider.frontier.storage.records import (
    FORGOTTEN,
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    Recovery,
    UrlState,
)
from larmspider.frontier.storage.revisits import RevisitQueues

HEAD_ENTRIES = 65_536
"""Queue entries of all hosts in memory, beside the entries not yet committed; some 25 MB."""

_STATES = tuple(UrlState)  # by number; 0.1 us less than UrlState(number)


class LmdbBackend(Backend):
    """The contract is in backend.py.

    ``map_bytes`` is the first size of the map, ``head_entries`` as HEAD_ENTRIES. ``overlay``: for
    files that are open already.
    """

    def __init__(
        self,
        path: Path,
        *,
        map_bytes: int = FIRST_MAP_BYTES,
        head_entries: int = HEAD_ENTRIES,
        overlay: WriteOverlay | None = None,
    ) -> None:
        if overlay is None:
            overlay = WriteOverlay(LmdbFiles(path, map_bytes=map_bytes))
        self._overlay = overlay
        self.files = overlay.files
        share(self.files)
        self._counters = HostCounters()
        self._queues = HostQueues(self._overlay, self._counters, head_entries)
        self._revisits = RevisitQueues(self._overlay)
        self._leases: dict[bytes, tuple[bytes, QueuedUrl]] = {}  # URL key -> queue key, entry
        self._attempts: dict[bytes, int] = {}  # failed ones, of revisits that are held
        self._positions: dict[str, bytes] = {}

    # recovery

    def recover(self) -> Recovery:
        if self._overlay.meta(b"redis") is not None:
            raise CrawlDirError(
                f"{self.files.path} is a worker's copy of a crawl in Redis: set REDIS_URL"
            )
        self._counters.load(self._overlay.stored_counts())
        serial = self._overlay.meta(b"serial")
        leases = self._overlay.meta(b"leases") or b""
        self._positions = records.unpack_positions(self._overlay.meta(b"positions") or b"")
        self._queues.serial = int.from_bytes(serial or b"", "big")
        found = [leases[at : at + 16] for at in range(0, len(leases), 16)]
        for key, record in zip(found, self._overlay.urls(found), strict=True):
            self._requeue(key, record)
        return Recovery(dict(self._positions), len(found), fresh=serial is None)

    def _requeue(self, key: bytes, record: bytes | None) -> None:
        """Undo a lease of the last run, whose entry is still at its place in the queue."""
        if record is None:
            return
        _, inlinks, place = records.unpack_waiting(record)
        packed = self._overlay.entry(place)
        assert packed is not None
        self._overlay.new.urls[key] = records.pack_waiting(UrlState.QUEUED, inlinks, place)
        host = records.unpack_entry(packed).host
        self._counters.count(host, leased=-1, queued=1, **records.waits_as(place))

    # URLs

    def check(self, keys: Sequence[bytes]) -> list[UrlState]:
        leases, states = self._leases, _STATES
        return [
            UrlState.UNKNOWN
            if record is None
            else (UrlState.LEASED if key in leases else states[record[0]])
            for key, record in zip(keys, self._overlay.urls(keys), strict=True)
        ]

    def add(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        known = self._overlay.urls([entry.key for entry in entries])
        urls, added = self._overlay.new.urls, []
        for entry, record in zip(entries, known, strict=True):
            if record is not None or urls.get(entry.key, FORGOTTEN) != FORGOTTEN:
                added.append(False)
                continue
            place = self._queues.ready_place(entry.host, entry.priority)
            self._queues.put(entry.host, place, records.pack_entry(entry))
            urls[entry.key] = records.pack_waiting(UrlState.QUEUED, 1, place)
            if entry.guess:
                self._note_guess(entry)
            self._counters.count(entry.host, discovered=1, queued=1)
            added.append(True)
        return added

    def _note_guess(self, entry: QueuedUrl) -> None:
        prefix, guesses = records.guess_prefix(entry.guess), self._overlay.new.guesses
        guesses[prefix] = guesses.get(prefix, b"") + records.guess_row(entry.guess, entry.key)

    def guessed(self, guesses: Sequence[bytes]) -> list[list[bytes]]:
        found = self._overlay.guessed([records.guess_prefix(guess) for guess in guesses])
        return [
            [guess[:4] + row[13:] for row in rows]
            for guess, rows in zip(guesses, found, strict=True)
        ]

    def merge(self, items: Sequence[MergedUrl]) -> None:
        for item in items:
            entry = item.entry
            known = self._overlay.url(entry.key)
            if entry.key in self._leases:
                place, leased = self._end_lease(entry.key)
                self._overlay.delete_entry(place)
                change = {"merged": 1} if item.rules else {"discovered": -1}
                self._counters.count(leased.host, leased=-1, **change)
            elif known is None:
                self._counters.count(entry.host, discovered=1, merged=1)
            elif known[0] == UrlState.MERGED:
                into = records.unpack_merged(known).into
                for row in records.merged_rows(entry.host, entry.key, into):
                    self._overlay.new.aliases[row] = None
            else:
                continue
            inlinks = 1 if known is None else records.inlinks_of(known)
            self._overlay.new.urls[entry.key] = records.pack_merged(item, inlinks)
            if item.rules:
                for row in records.merged_rows(entry.host, entry.key, item.into):
                    self._overlay.new.aliases[row] = b""

    def unmerge(self, keys: Sequence[bytes]) -> list[QueuedUrl]:
        queued = []
        for key in keys:
            record = self._overlay.url(key)
            if record is None or record[0] != UrlState.MERGED:
                continue
            item = records.unpack_merged(record)
            entry = item.entry
            for row in records.merged_rows(entry.host, key, item.into):
                self._overlay.new.aliases[row] = None
            place = self._queues.ready_place(entry.host, entry.priority)
            self._queues.put(entry.host, place, records.pack_entry(entry))
            inlinks = records.inlinks_of(record)
            self._overlay.new.urls[key] = records.pack_waiting(UrlState.QUEUED, inlinks, place)
            self._counters.count(entry.host, merged=-1, queued=1)
            queued.append(entry)
        return queued

    def merged(self, key: bytes) -> MergedUrl | None:
        record = self._overlay.url(key)
        is_merged = record is not None and record[0] == UrlState.MERGED
        return records.unpack_merged(record) if is_merged and record is not None else None

    def merged_of(self, host: str, limit: int) -> list[bytes]:
        prefix = records.OF_HOST + records.host_prefix(host)
        return [row[9:] for row in self._overlay.alias_rows(prefix, limit)]

    def merged_into(self, key: bytes, limit: int) -> list[bytes]:
        return [row[17:] for row in self._overlay.alias_rows(records.INTO + key, limit)]

    def pop(self, host: str, now: float, limit: int = 1) -> list[QueuedUrl]:
        entries: list[QueuedUrl] = []
        while len(entries) < limit and (place := self._queues.next_place(host, now)):
            entry = records.unpack_entry(self._queues.lease(host, place))
            self._leases[entry.key] = place, entry
            late = int(records.run_of(place) == records.DELAYED)
            self._counters.count(host, queued=-1, leased=1, delayed=-late)
            entries.append(entry)
        return entries

    def next_time(self, host: str) -> float | None:
        return self._queues.next_time(host)

    def acknowledge(self, visits: Sequence[tuple[bytes, FetchRecord]]) -> None:
        for key, visit in visits:
            if key in self._revisits.leased:
                self._replace(key, visit)
                continue
            place, entry = self._end_lease(key)
            self._overlay.delete_entry(place)
            self._finish(key, visit, entry)
            final = visit.state
            self._counters.count(
                entry.host,
                leased=-1,
                stored=int(final is UrlState.STORED),
                failed=int(final is UrlState.FAILED),
                refused=int(final is UrlState.REFUSED),
            )

    def _finish(self, key: bytes, visit: FetchRecord, entry: QueuedUrl) -> None:
        packed = records.pack_visit(visit, self._inlinks(key), entry)
        self._overlay.new.urls[key] = packed
        if visit.due:
            self._revisits.put(entry.host, visit.due, key)

    def _replace(self, key: bytes, visit: FetchRecord) -> None:
        """A revisit was made."""
        entry = self._revisits.end(key)
        assert entry.visit is not None
        before, now = entry.visit.state, visit.state
        self._finish(key, visit, entry)
        if before is not now:
            self._counters.count(entry.host, **{before.name.lower(): -1, now.name.lower(): 1})

    def _inlinks(self, key: bytes) -> int:
        record = self._overlay.url(key)
        return records.inlinks_of(record) if record else 1

    def _end_lease(self, key: bytes) -> tuple[bytes, QueuedUrl]:
        place, entry = self._leases.pop(key)
        self._queues.end_lease(place)
        return place, entry

    def release(self, items: Sequence[tuple[bytes, float, int]]) -> None:
        for key, earliest, attempts in items:
            if key in self._revisits.leased:
                if earliest:
                    self._attempts[key] = attempts
                    self._revisits.hold(key, earliest)
                else:
                    self._revisits.back(key)
                continue
            place, entry = self._end_lease(key)
            entry.attempts = attempts
            to = place
            if earliest > 0:
                to = records.delayed_key(entry.host, earliest, records.serial_of(place))
            elif records.run_of(place) == records.DELAYED:
                to = records.ready_key(entry.host, entry.priority, records.serial_of(place))
            if to != place:
                self._overlay.delete_entry(place)
            self._queues.put(entry.host, to, records.pack_entry(entry), new_place=to != place)
            self._overlay.new.urls[key] = records.pack_waiting(
                UrlState.QUEUED, self._inlinks(key), to
            )
            late = int(records.run_of(to) == records.DELAYED)
            self._counters.count(entry.host, leased=-1, queued=1, delayed=late)

    def hold(self, items: Sequence[tuple[bytes, int]]) -> None:
        for key, group in items:
            place, entry = self._end_lease(key)
            to = records.held_key(entry.host, group, records.serial_of(place))
            self._overlay.delete_entry(place)
            self._put_at(entry.host, key, to, records.pack_entry(entry))
            self._counters.count(entry.host, leased=-1, queued=1, held=1)

    def _put_at(self, host: str, key: bytes, to: bytes, packed: bytes) -> None:
        self._queues.put(host, to, packed)
        links = self._inlinks(key)
        self._overlay.new.urls[key] = records.pack_waiting(UrlState.QUEUED, links, to)

    def unhold(self, host: str, group: int | None, limit: int) -> int:
        found = self._queues.held(host, group, limit)
        for place, packed in found:
            entry = records.unpack_entry(packed)
            to = records.ready_key(host, entry.priority, records.serial_of(place))
            self._queues.remove(host, place)
            self._put_at(host, entry.key, to, packed)
            self._counters.count(host, held=-1)
        return len(found)

    def refuse(self, items: Sequence[tuple[QueuedUrl, str]]) -> None:
        for entry, reason in items:
            record = self._overlay.url(entry.key)
            visit = FetchRecord(UrlState.REFUSED, reason=reason)
            if record is None:
                self._finish(entry.key, visit, entry)
                self._counters.count(entry.host, discovered=1, refused=1)
            elif entry.key not in self._leases and record[0] == UrlState.QUEUED:
                place = records.unpack_waiting(record)[2]
                waiting = self.entry(entry.key) or entry
                self._finish(entry.key, visit, waiting)
                self._queues.remove(waiting.host, place)
                before = dict.fromkeys(records.waits_as(place), -1)
                self._counters.count(waiting.host, queued=-1, refused=1, **before)

    def reopen(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        reopened = []
        for entry in entries:
            record = self._overlay.url(entry.key)
            refused = record is not None and record[0] == UrlState.REFUSED
            refused = refused and entry.key not in self._revisits.leased
            reopened.append(refused)
            if refused:
                self.schedule([(entry.key, 0.0)])
                place = self._queues.ready_place(entry.host, entry.priority)
                self._queues.put(entry.host, place, records.pack_entry(entry))
                links = self._inlinks(entry.key)
                self._overlay.new.urls[entry.key] = records.pack_waiting(
                    UrlState.QUEUED, links, place
                )
                self._counters.count(entry.host, refused=-1, queued=1)
        return reopened

    def _is_queued(self, record: bytes | None, key: bytes) -> TypeGuard[bytes]:
        return record is not None and record[0] == UrlState.QUEUED and key not in self._leases

    def count_links(self, keys: Sequence[bytes]) -> list[int]:
        counted, urls = [], self._overlay.new.urls
        for key, known in zip(keys, self._overlay.urls(keys), strict=True):
            record = urls.get(key, known)  # a key may come twice
            if not self._is_queued(record, key):
                counted.append(0)
                continue
            state, inlinks, place = records.unpack_waiting(record)
            inlinks = min(inlinks + 1, 0xFFFFFFFF)
            urls[key] = records.pack_waiting(state, inlinks, place)
            counted.append(inlinks)
        return counted

    def reprioritize(self, changes: Sequence[tuple[bytes, int]]) -> None:
        for key, priority in changes:
            record = self._overlay.url(key)
            if not self._is_queued(record, key):
                continue
            state, inlinks, place = records.unpack_waiting(record)
            packed = self._overlay.entry(place)
            if packed is None:
                continue
            entry = records.unpack_entry(packed)
            entry.priority = min(max(priority, 0), records.MAX_PRIORITY)
            to = place  # of a delayed URL too: its priority counts once its time has come
            if records.run_of(place) == records.READY:
                to = self._queues.ready_place(entry.host, entry.priority)
                self._queues.remove(entry.host, place)
            self._queues.put(entry.host, to, records.pack_entry(entry), new_place=to != place)
            self._overlay.new.urls[key] = records.pack_waiting(state, inlinks, to)

    def entry(self, key: bytes) -> QueuedUrl | None:
        record = self._overlay.url(key)
        if record is None or not records.is_waiting(record):
            return None
        packed = self._overlay.entry(records.unpack_waiting(record)[2])
        return records.unpack_entry(packed) if packed else None

    def visit(self, key: bytes) -> FetchRecord | None:
        record = self._overlay.url(key)
        return records.unpack_visit(record) if record and records.is_final(record) else None

    def leases(self) -> list[QueuedUrl]:
        new = [copy(entry) for _, entry in self._leases.values()]
        return new + [copy(entry) for entry in self._revisits.leased.values()]

    # revisits

    def _final(self, key: bytes) -> FetchRecord | None:
        """The record of a URL, unless it is leased for another visit."""
        if key in self._revisits.leased:
            return None
        visit = self.visit(key)
        return visit if visit is not None and visit.url else None  # "": another worker has it

    def schedule(self, items: Sequence[tuple[bytes, float]]) -> None:
        for key, due in items:
            visit = self._final(key)
            if visit is None:
                continue
            host = records.host_of(visit.url)
            self._attempts.pop(key, None)
            if visit.due:
                self._revisits.remove(host, visit.due, key)
            visit.due = due
            self._overlay.new.urls[key] = records.pack_visit(visit, self._inlinks(key))
            if due:
                self._revisits.put(host, due, key)

    def due(
        self, host: str, now: float, limit: int = 1, until: float | None = None
    ) -> list[QueuedUrl]:
        entries: list[QueuedUrl] = []
        until = now if until is None else until
        while len(entries) < limit and (key := self._revisits.next(host, now, until)):
            visit = self.visit(key)
            assert visit is not None
            entry = QueuedUrl(
                url=visit.url,
                normalized=visit.url,
                key=key,
                host=host,
                depth=visit.depth,
                link_type=visit.link_type,
                from_page=visit.from_page,
                attempts=self._attempts.pop(key, 0),
                visit=visit,
            )
            self._revisits.lease(key, visit.due, entry)
            entries.append(entry)
        return entries

    def next_due(self, host: str, until: float = inf) -> float | None:
        return self._revisits.next_due(host, until)

    def visiting(self, host: str | None = None) -> int:
        return len(self._revisits.leased) if host is None else self._revisits.by_host[host]

    def forget(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            if key in self._revisits.leased:
                entry = self._revisits.end(key)
                assert entry.visit is not None
                host, visit = entry.host, entry.visit
            elif (found := self._final(key)) is not None:
                host, visit = records.host_of(found.url), found
                if visit.due:
                    self._revisits.remove(host, visit.due, key)
            else:
                continue
            self._attempts.pop(key, None)
            self._overlay.forget_url(key)
            self._counters.count(host, discovered=-1, **{visit.state.name.lower(): -1})

    def visits(self, after: bytes, limit: int) -> list[tuple[bytes, FetchRecord | None]]:
        return [
            (key, records.unpack_visit(record) if records.is_final(record) else None)
            for key, record in self._overlay.stored_urls(after, limit)
        ]

    def due_times(self) -> Iterator[float]:
        changes = {**self._overlay.sealed.revisits, **self._overlay.new.revisits}
        with closing(self._overlay.stored_revisits(b"", b"")) as places:
            for place, kept in places:
                changes.pop(place, None)
                if kept is not None:
                    yield records.due_of(place)
        for place, kept in changes.items():
            if kept is not None:
                yield records.due_of(place)

    # hosts, notes, counters

    def put_hosts(self, records: Mapping[str, bytes]) -> None:
        for host, data in records.items():
            self._overlay.new.hosts[b"h" + host.encode()] = data

    def hosts(self) -> dict[str, bytes]:
        return self._overlay.hosts()

    def put_note(self, name: str, value: bytes) -> None:
        self._overlay.new.meta[b"n" + name.encode()] = value

    def note(self, name: str) -> bytes | None:
        return self._overlay.meta(b"n" + name.encode())

    def counts(self, host: str | None = None) -> Counts:
        if host is None:
            return replace(self._counters.total)
        return replace(self._counters.by_host.get(host) or Counts())

    def host_names(self) -> list[str]:
        return list(self._counters.by_host)

    def audit(self) -> Counts:
        return self._count(self._overlay.all_urls())

    def _count(self, rows: Iterable[tuple[bytes, bytes]]) -> Counts:
        counted = Counts()
        for key, record in rows:
            state = UrlState.LEASED if key in self._leases else UrlState(record[0])
            if state is UrlState.MERGED and not records.is_counted(record):
                continue
            name = state.name.lower()
            setattr(counted, name, getattr(counted, name) + 1)
            counted.discovered += 1
            if state is UrlState.QUEUED:
                waits = records.waits_as(records.unpack_waiting(record)[2])
                counted.delayed += waits.get("delayed", 0)
                counted.held += waits.get("held", 0)
        return counted

    # durability

    @property
    def pending(self) -> int:
        return len(self._overlay)

    def seal(self) -> None:
        new, leased = self._overlay.new, list(self._leases)
        for key, record in zip(leased, self._overlay.urls(leased), strict=True):
            if record is not None and record[0] == UrlState.QUEUED:
                new.urls[key] = bytes((UrlState.LEASED,)) + record[1:]
        for host, packed in self._counters.changes():
            new.hosts[b"c" + host.encode()] = packed
        new.meta[b"leases"] = b"".join(leased)
        new.meta[b"serial"] = self._queues.serial.to_bytes(6, "big")
        self._overlay.seal()

    def commit(self, positions: Mapping[str, bytes]) -> None:
        self._positions.update(positions)
        self._overlay.sealed.meta[b"positions"] = records.pack_positions(self._positions)
        self._overlay.write()

    def discard(self) -> None:
        self._overlay.discard()
        self._queues.trim()
        self._revisits.trim()

    def close(self) -> None:
        unshare(self.files)
        self.files.close()
