"""The frontier's memory in one LMDB environment, for one process on one machine.

    backend = LmdbBackend(Path("crawl/frontier"))
    positions = backend.recover().positions

On disk is the state of the last commit, in memory the batch of changes since (pending.py), the
front of each host's queue (queue_head.py) and the leases. Reads look at the batch, then at the
batch that is being committed, then at the disk.

    urls    16-byte URL key     -> waiting record (state, links seen, queue key) or visit
    queue   17 or 21 byte key   -> entry; stays until its URL reaches a final state
    hosts   "h" + host          -> the frontier's host record;  "c" + host -> counters
    meta    format, serial, leases, positions, "n" + name -> note
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from larmspider.frontier import keys as k
from larmspider.frontier import records as r
from larmspider.frontier.backend import Backend
from larmspider.frontier.lmdb_files import FIRST_MAP_BYTES, LmdbFiles
from larmspider.frontier.pending import Pending
from larmspider.frontier.queue_head import QueueHead
from larmspider.frontier.records import Counts, Entry, Recovery, UrlState, Visit

HEAD_ENTRIES = 65_536
"""Queue entries held in memory over all hosts, beside those not yet committed; some 25 MB."""


class LmdbBackend(Backend):
    """See backend.py for the contract and the module for the layout.

    ``map_bytes`` is the first size of the map, ``head_entries`` as HEAD_ENTRIES.
    """

    def __init__(
        self,
        path: Path,
        *,
        map_bytes: int = FIRST_MAP_BYTES,
        head_entries: int = HEAD_ENTRIES,
    ) -> None:
        self.files = LmdbFiles(path, map_bytes=map_bytes)
        self._head_entries = head_entries
        self._new = Pending()
        self._cut = Pending()  # ended by cut(), until settle()
        self._heads: dict[tuple[str, int], QueueHead] = {}
        self._grown: set[tuple[str, int]] = set()  # heads that hold what is not on disk
        self._unwritten: set[bytes] = set()  # queue keys that only the new batch holds
        self._leases: dict[bytes, tuple[bytes, Entry]] = {}  # URL key -> queue key, entry
        self._leased_places: set[bytes] = set()
        self._hosts: dict[str, Counts] = {}  # all of them: some 500 bytes each
        self._changed: set[str] = set()
        self._total = Counts()
        self._serial = 0
        self._positions: dict[str, bytes] = {}

    # recovery

    def recover(self) -> Recovery:
        with self.files.read() as txn:
            for name, value in txn.cursor(self.files.hosts):
                if name[:1] == b"c":
                    self._hosts[name[1:].decode()] = r.unpack_counts(value)
            serial = txn.get(b"serial", db=self.files.meta)
            leases = txn.get(b"leases", b"", db=self.files.meta)
            positions = r.unpack_positions(txn.get(b"positions", b"", db=self.files.meta))
        self._serial = int.from_bytes(serial or b"", "big")
        self._positions = positions
        for counts in self._hosts.values():
            for name in Counts.__slots__:
                setattr(self._total, name, getattr(self._total, name) + getattr(counts, name))
        found = [leases[at : at + 16] for at in range(0, len(leases), 16)]
        for key, record in zip(found, self._records(found), strict=True):
            self._requeue(key, record)
        return Recovery(positions, len(found), fresh=serial is None)

    def _requeue(self, key: bytes, record: bytes | None) -> None:
        """A lease of the last run: the entry is still at its place in the queue."""
        if record is None:
            return
        _, inlinks, place = r.unpack_waiting(record)
        self._new.urls[key] = r.pack_waiting(UrlState.QUEUED, inlinks, place)
        with self.files.read() as txn:
            host = r.unpack_entry(txn.get(place, db=self.files.queue)).host
        self._count(host, leased=-1, queued=1, delayed=int(k.run_of(place) == k.DELAYED))

    # reading through the layers

    def _record(self, key: bytes) -> bytes | None:
        found = self._new.urls.get(key) or self._cut.urls.get(key)
        return self.files.get(key, self.files.urls) if found is None else found

    def _records(self, keys: Sequence[bytes]) -> list[bytes | None]:
        new, cut = self._new.urls, self._cut.urls
        found = [new.get(key) or cut.get(key) for key in keys]
        missing = [(key, at) for at, key in enumerate(keys) if found[at] is None]
        if missing:
            missing.sort()  # neighbours on disk one after the other
            with self.files.read() as txn:
                get, db = txn.get, self.files.urls
                for key, at in missing:
                    found[at] = get(key, None, db)
        return found

    def _stored_entry(self, place: bytes) -> bytes | None:
        for layer in (self._new.queue, self._cut.queue):
            if place in layer:
                return layer[place]
        return self.files.get(place, self.files.queue)

    def _head(self, host: str, run: int) -> QueueHead:
        head = self._heads.get((host, run))
        if head is None:
            counts = self._hosts.get(host) or Counts()
            waiting = counts.delayed if run == k.DELAYED else counts.queued - counts.delayed
            # nothing queued, nothing on disk that is not leased: no need to look
            prefix = k.host_prefix(host) + bytes((run,))
            head = self._heads[host, run] = QueueHead(prefix, complete=waiting == 0)
        return head

    def _head_size(self) -> int:
        return min(256, max(2, self._head_entries // max(1, len(self._hosts))))

    def _load(self, head: QueueHead) -> None:
        """The next chunk of a run from disk into its head, without what is leased or deleted."""
        prefix, wanted = head.loaded_to[:9], self._head_size()
        new, cut = self._new.queue, self._cut.queue
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.queue)
            more = cursor.set_range(head.loaded_to + b"\0" if len(head.loaded_to) > 9 else prefix)
            while more and wanted:
                key, value = cursor.item()
                if key[:9] != prefix:
                    break
                head.loaded_to = key
                latest = new[key] if key in new else cut.get(key, value)
                if latest is not None and key not in self._leased_places:
                    head.put(key, latest)
                    wanted -= 1
                more = cursor.next()
            else:
                if more:
                    return
        head.complete = True

    # URLs

    def check(self, keys: Sequence[bytes]) -> list[UrlState]:
        leases = self._leases
        return [
            UrlState.UNKNOWN
            if record is None
            else (UrlState.LEASED if key in leases else UrlState(record[0]))
            for key, record in zip(keys, self._records(keys), strict=True)
        ]

    def add(self, entries: Sequence[Entry]) -> list[bool]:
        known = self._records([entry.key for entry in entries])
        added = []
        for entry, record in zip(entries, known, strict=True):
            if record is not None or entry.key in self._new.urls:
                added.append(False)
                continue
            place = k.ready_key(entry.host, entry.priority, self._next_serial())
            self._put(place, entry.host, r.pack_entry(entry))
            self._new.urls[entry.key] = r.pack_waiting(UrlState.QUEUED, 1, place)
            self._count(entry.host, discovered=1, queued=1)
            added.append(True)
        return added

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _put(self, place: bytes, host: str, packed: bytes, *, new_place: bool = True) -> None:
        if new_place and place not in self._new.queue and place not in self._cut.queue:
            self._unwritten.add(place)
        self._new.queue[place] = packed
        run = host, k.run_of(place)
        self._head(*run).put(place, packed)
        self._grown.add(run)

    def _delete(self, place: bytes) -> None:
        """Take an entry from the queue for good; one that never was on disk just goes."""
        if place in self._unwritten:
            self._unwritten.remove(place)
            del self._new.queue[place]
        else:
            self._new.queue[place] = None

    def pop(self, host: str, now: float, limit: int = 1) -> list[Entry]:
        counts = self._hosts.get(host)
        entries: list[Entry] = []
        while counts and counts.queued and len(entries) < limit:
            run, place = k.DELAYED, None
            if counts.delayed:
                place = self._head(host, run).first(self._load)
            if place is None or k.earliest_of(place) > now:
                run = k.READY
                place = self._head(host, run).first(self._load)
            if place is None:
                break
            entry = r.unpack_entry(self._head(host, run).values.pop(place))
            self._leases[entry.key] = place, entry
            self._leased_places.add(place)
            self._count(host, queued=-1, leased=1, delayed=-int(run == k.DELAYED))
            entries.append(entry)
        return entries

    def next_time(self, host: str) -> float | None:
        counts = self._hosts.get(host)
        if counts is None or not counts.queued:
            return None
        if counts.queued > counts.delayed:
            return 0.0
        place = self._head(host, k.DELAYED).first(self._load)
        return None if place is None else k.earliest_of(place)

    def acknowledge(self, visits: Sequence[tuple[bytes, Visit]]) -> None:
        for key, visit in visits:
            place, entry = self._leases[key]
            self._end_lease(key, place)
            self._delete(place)
            self._finish(key, visit, entry)
            final = visit.state
            self._count(
                entry.host,
                leased=-1,
                stored=int(final is UrlState.STORED),
                failed=int(final is UrlState.FAILED),
                refused=int(final is UrlState.REFUSED),
            )

    def _finish(self, key: bytes, visit: Visit, entry: Entry) -> None:
        record = self._record(key)
        inlinks = r.inlinks_of(record) if record else 1
        self._new.urls[key] = r.pack_visit(visit, inlinks, entry.url, entry.depth)

    def _end_lease(self, key: bytes, place: bytes) -> None:
        del self._leases[key]
        self._leased_places.discard(place)

    def give_back(self, items: Sequence[tuple[bytes, float, int]]) -> None:
        for key, earliest, attempts in items:
            place, entry = self._leases[key]
            entry.attempts = attempts
            self._end_lease(key, place)
            new_place = place
            if earliest > 0:
                new_place = k.delayed_key(entry.host, earliest, k.serial_of(place))
            elif k.run_of(place) == k.DELAYED:
                new_place = k.ready_key(entry.host, entry.priority, k.serial_of(place))
            record = self._record(key)
            inlinks = r.inlinks_of(record) if record else 1
            if new_place != place:
                self._delete(place)
            self._put(new_place, entry.host, r.pack_entry(entry), new_place=new_place != place)
            self._new.urls[key] = r.pack_waiting(UrlState.QUEUED, inlinks, new_place)
            late = int(k.run_of(new_place) == k.DELAYED)
            self._count(entry.host, leased=-1, queued=1, delayed=late)

    def refuse(self, items: Sequence[tuple[Entry, str]]) -> None:
        for entry, reason in items:
            record = self._record(entry.key)
            visit = Visit(UrlState.REFUSED, reason=reason)
            if record is None:
                self._finish(entry.key, visit, entry)
                self._count(entry.host, discovered=1, refused=1)
            elif entry.key not in self._leases and record[0] == UrlState.QUEUED:
                _, _, place = r.unpack_waiting(record)
                waiting = self.entry(entry.key) or entry
                self._finish(entry.key, visit, waiting)
                run = k.run_of(place)
                self._head(waiting.host, run).remove(place)
                self._delete(place)
                late = int(run == k.DELAYED)
                self._count(waiting.host, queued=-1, delayed=-late, refused=1)

    def count_links(self, keys: Sequence[bytes]) -> list[int]:
        counted = []
        self_urls = self._new.urls
        for key, known in zip(keys, self._records(keys), strict=True):
            record = self_urls.get(key, known)
            if record is None or record[0] != UrlState.QUEUED or key in self._leases:
                counted.append(0)
                continue
            state, inlinks, place = r.unpack_waiting(record)
            inlinks = min(inlinks + 1, 0xFFFFFFFF)
            self_urls[key] = r.pack_waiting(state, inlinks, place)
            counted.append(inlinks)
        return counted

    def move(self, changes: Sequence[tuple[bytes, int]]) -> None:
        for key, priority in changes:
            record = self._record(key)
            if record is None or record[0] != UrlState.QUEUED or key in self._leases:
                continue
            state, inlinks, place = r.unpack_waiting(record)
            packed = self._stored_entry(place)
            if packed is None:
                continue
            entry = r.unpack_entry(packed)
            entry.priority = min(max(priority, 0), k.MAX_PRIORITY)
            run, new_place = k.run_of(place), place
            if run == k.READY:
                new_place = k.ready_key(entry.host, entry.priority, self._next_serial())
                self._head(entry.host, run).remove(place)
                self._delete(place)
            self._put(new_place, entry.host, r.pack_entry(entry), new_place=new_place != place)
            self._new.urls[key] = r.pack_waiting(state, inlinks, new_place)

    def entry(self, key: bytes) -> Entry | None:
        record = self._record(key)
        if record is None or record[0] > UrlState.LEASED:
            return None
        packed = self._stored_entry(r.unpack_waiting(record)[2])
        return r.unpack_entry(packed) if packed else None

    def visit(self, key: bytes) -> Visit | None:
        record = self._record(key)
        return r.unpack_visit(record) if record and record[0] > UrlState.LEASED else None

    def leases(self) -> list[Entry]:
        return [replace(entry) for _, entry in self._leases.values()]

    # hosts, notes, counters

    def put_hosts(self, records: Mapping[str, bytes]) -> None:
        self._new.hosts.update((b"h" + host.encode(), data) for host, data in records.items())

    def hosts(self) -> dict[str, bytes]:
        with self.files.read() as txn:
            found = dict(txn.cursor(self.files.hosts))
        found.update(self._cut.hosts)
        found.update(self._new.hosts)
        return {name[1:].decode(): data for name, data in found.items() if name[:1] == b"h"}

    def put_note(self, name: str, value: bytes) -> None:
        self._new.meta[b"n" + name.encode()] = value

    def note(self, name: str) -> bytes | None:
        key = b"n" + name.encode()
        for layer in (self._new.meta, self._cut.meta):
            if key in layer:
                return layer[key]
        return self.files.get(key, self.files.meta)

    def counts(self, host: str | None = None) -> Counts:
        if host is None:
            return replace(self._total)
        return replace(self._hosts.get(host) or Counts())

    def _count(
        self,
        host: str,
        *,
        discovered: int = 0,
        queued: int = 0,
        leased: int = 0,
        stored: int = 0,
        failed: int = 0,
        refused: int = 0,
        delayed: int = 0,
    ) -> None:
        own = self._hosts.get(host)
        if own is None:
            own = self._hosts[host] = Counts()
        for counts in (own, self._total):
            counts.discovered += discovered
            counts.queued += queued
            counts.leased += leased
            counts.stored += stored
            counts.failed += failed
            counts.refused += refused
            counts.delayed += delayed
        self._changed.add(host)

    def host_names(self) -> list[str]:
        return list(self._hosts)

    def audit(self) -> Counts:
        counted = Counts()
        for key, record in self._all_urls():
            state = UrlState.LEASED if key in self._leases else UrlState(record[0])
            name = state.name.lower()
            setattr(counted, name, getattr(counted, name) + 1)
            counted.discovered += 1
            if state is UrlState.QUEUED:
                counted.delayed += k.run_of(r.unpack_waiting(record)[2]) == k.DELAYED
        return counted

    def _all_urls(self) -> Iterator[tuple[bytes, bytes]]:
        over = {**self._cut.urls, **self._new.urls}
        with self.files.read() as txn:
            for key, record in txn.cursor(self.files.urls):
                yield key, over.pop(key, record)
        yield from over.items()

    # durability

    @property
    def pending(self) -> int:
        return len(self._new) + len(self._cut)

    def cut(self) -> None:
        leased = list(self._leases)
        for key, record in zip(leased, self._records(leased), strict=True):
            if record is not None and record[0] == UrlState.QUEUED:
                self._new.urls[key] = bytes((UrlState.LEASED,)) + record[1:]
        new = self._new
        for host in self._changed:
            new.hosts[b"c" + host.encode()] = r.pack_counts(self._hosts[host])
        self._changed.clear()
        new.meta[b"leases"] = b"".join(leased)
        new.meta[b"serial"] = self._serial.to_bytes(6, "big")
        self._cut = new.over(self._cut)
        self._new = Pending()
        self._unwritten.clear()

    def commit(self, positions: Mapping[str, bytes]) -> None:
        self._positions.update(positions)
        self._cut.meta[b"positions"] = r.pack_positions(self._positions)
        self.files.write(self._cut)

    def settle(self) -> None:
        self._cut = Pending()
        size, pending = self._head_size(), self._new.queue
        grown, self._grown = self._grown, set()
        for run in grown:
            head = self._heads[run]
            head.trim(size, pending)
            if any(key in pending for key in head.values):
                self._grown.add(run)
            if not head.values and head.complete:
                del self._heads[run]

    def close(self) -> None:
        self.files.close()
