"""Fills an empty Redis from the directories of the workers, after Redis has lost the crawl.

    rebuild = Rebuild(link, keys)
    rebuild.begin(crawl_id)                             # refuses a Redis that has a crawl
    for number in rebuild.bring("w1", reader): ...      # each directory, in any order
    report = rebuild.complete(forms)                    # once, when all directories are in

Until complete() has ended, ``{crawl}:format`` says that the crawl is being rebuilt, and each worker
is refused. bring() and complete() may be killed at any time, and called again.

bring() copies records. The newer of two records of a URL stays, and the worker with the other page
learns that it no longer counts. complete() makes partitions from the records: queues,
visited tables, counters, lists of spellings (docs/internals/workers.md). If the worker that has a
page has not brought its directory, the URL of the page is queued again. Workers find everything
else again: each judges the links of its pages at its next start, and queues the unknown ones.

Records lie in separate keys until then, one for each partition: ``rebuild_visits``,
``rebuild_entries``, ``rebuild_merged``, ``rebuild_hosts``, ``rebuild_stale`` and
``rebuild_known``. complete() only reads these, so it can begin again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Any, TypeVar

import msgpack
from msgspec.structs import replace

from larmspider import program
from larmspider.cluster.joining import wipe
from larmspider.cluster.keys import Keys
from larmspider.cluster.loading import FORMAT, REBUILDING, is_rebuilding
from larmspider.cluster.lost_parts import COUNTED, outdated_field, size_field
from larmspider.cluster.membership import WORKERS_NOTE, Membership
from larmspider.cluster.redis_client import Command, RedisLink, pairs
from larmspider.cluster.redis_records import (
    Outdated,
    StoredPage,
    buckets,
    compact,
    member,
    pack_outdated,
    pack_pages,
    pack_queued,
    score,
    spread,
    unpack_outdated,
    unpack_queued,
)
from larmspider.errors import ConfigError, InvalidURL, TemporaryError
from larmspider.frontier.storage import records
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import (
    BODY_DIGEST,
    Counts,
    FetchRecord,
    QueuedUrl,
    UrlState,
    url_key,
)
from larmspider.urls.normalizer import UrlForms

_AT_ONCE = 1_000  # records in one round trip
_STAGED = ("visits", "entries", "merged", "hosts", "stale", "known")
_SERIAL_BYTES = 6  # at the end of a place in the queue
_PAGES = 20_000  # in one element of the list ``pages``
_LOCK_SECS = 120  # after this time another `--rebuild` may continue a killed one

T = TypeVar("T")


@dataclass(slots=True)
class Report:
    """Numbers of complete(). ``again``: pages by the worker whose directory was not brought; their
    URLs are queued again. ``lost``: partition -> URLs that the directories only know as fetched by
    another worker. ``absent``: workers that some directory knows, and whose own directories were
    not brought."""

    workers: list[str] = field(default_factory=list)
    visited: int = 0
    queued: int = 0
    merged: int = 0
    outdated: int = 0
    again: dict[str, int] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)


class Rebuild:
    """Raises ConfigError if this Redis cannot take the crawl; then nothing has changed."""

    def __init__(self, link: RedisLink, keys: Keys) -> None:
        self._link, self._keys = link, keys
        self._format, self._brought = keys.crawl("format"), keys.crawl("rebuild")
        self._lock, self._met = keys.crawl("rebuilding"), keys.crawl("rebuild_workers")
        self._others: list[Command] = []

    def _staged(self, name: str, partition: int) -> bytes:
        return self._keys.partition(f"rebuild_{name}", partition)

    def brought(self) -> list[str]:
        """The workers whose directories are in."""
        (names,) = self._link.run([("HKEYS", self._brought)])
        return sorted(name.decode() for name in names)

    def begin(self, crawl_id: str) -> None:
        """Bring directories of this crawl from now on."""
        where = self._link.name
        known, found_id = self._link.run([("GET", self._format), ("GET", self._keys.crawl("id"))])
        wanted = REBUILDING.format(blocks=self._keys.partitions).encode()
        if is_rebuilding(known):
            if found_id != crawl_id.encode():
                raise ConfigError(
                    f"another crawl is being rebuilt in Redis at {where}: expected the directories"
                    " of one crawl"
                )
            if known != wanted:
                raise ConfigError(
                    f"LARM_BLOCKS={self._keys.partitions}: the rebuild in Redis at {where} was"
                    f" begun with another number ({known.decode()})"
                )
        else:
            self._refuse_full()
            wipe(self._link, self._keys)  # what workers have left that found Redis empty
            commands: list[Command] = [("SET", self._keys.crawl("id"), crawl_id)]
            self._link.run([*commands, ("SET", self._format, wanted)])
        self._renew()

    def _renew(self) -> None:
        self._link.run([("SET", self._lock, 1, "EX", _LOCK_SECS)])

    def refuse_beside_another(self) -> None:
        """Raise TemporaryError while another `--rebuild` writes."""
        if self._link.run([("EXISTS", self._lock)]) != [0]:
            raise TemporaryError(
                f"another `{program.NAME} workers --rebuild` writes to Redis at"
                f" {self._link.name}, or was"
                f" killed less than {_LOCK_SECS} s ago: try again later"
            )

    def end(self) -> None:
        """Let another `--rebuild` write."""
        self._link.run([("DEL", self._lock)])

    def _refuse_full(self) -> None:
        """Workers that join an empty Redis, and are refused then, leave only the membership."""
        where, prefix = self._link.name, self._keys.prefix
        membership = Membership(
            self._link.client, prefix, "", lease_secs=1, partitions=self._keys.partitions
        )
        if living := membership.living():
            raise ConfigError(
                f"{', '.join(living)} work on a crawl in Redis at {where}: stop them first"
            )
        escaped = re.sub(r"([*?\[\]\\^-])", r"\\\1", prefix)
        for pattern in (f"{escaped}:*{{[0-9]*}}*", f"{escaped}:{{crawl}}:commit:*"):
            for key in self._link.client.scan_iter(match=pattern, count=_AT_ONCE):
                raise ConfigError(
                    f"Redis at {where} is not empty, it has {key.decode('utf-8', 'replace')} of a"
                    f" crawl {prefix!r}: --rebuild fills an empty one (docs/redis.md says how to"
                    " delete what is left)"
                )

    # directories

    def bring(
        self,
        worker: str,
        reader: FrontierReader,
        is_removed: Callable[[FetchRecord], bool] = lambda _visit: False,
    ) -> Iterator[int]:
        """Copy the records in the directory of a worker; yields the number of records so far.
        ``is_removed``: the operator has removed this page for good."""
        elsewhere: dict[str, int] = {}  # hosts whose name would give another partition
        done = 0
        for some in _batches(reader.final_records()):
            self._bring_visits(worker, some, is_removed, elsewhere)
            yield (done := done + len(some))
        for rows in _batches(reader.queue_rows()):
            self._bring_queued(rows, elsewhere)
            yield (done := done + len(rows))
        for merged in _batches(reader.merged_records()):
            self._bring_rows("merged", merged)
            yield (done := done + len(merged))
        for name in reader.others():
            self._known(name)
        self._flush_known()
        self._bring_hosts(reader, elsewhere)
        _, serial = reader.shared_crawl()
        if names := (reader.note(WORKERS_NOTE) or b"").split():
            self._link.run([("SADD", self._met, *names)])
        packed = msgpack.packb([serial, records.pack_positions(reader.positions())])
        self._link.run([("HSET", self._brought, worker, packed)])
        yield done

    def _bring_visits(
        self,
        worker: str,
        some: Sequence[tuple[bytes, bytes]],
        is_removed: Callable[[FetchRecord], bool],
        elsewhere: dict[str, int],
    ) -> None:
        self._renew()
        by_partition: dict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
        for key, packed in some:
            by_partition[self._keys.partition_of_key(key)].append((key, packed))
        asked: list[Command] = [
            ("HMGET", self._staged("visits", at), *(key for key, _ in rows))
            for at, rows in by_partition.items()
        ]
        commands: list[Command] = []
        for (at, rows), known in zip(by_partition.items(), self._link.run(asked), strict=True):
            for (key, packed), before in zip(rows, known, strict=True):
                visit = records.unpack_visit(packed)
                if not visit.url:
                    continue  # the state of a URL that another worker fetched
                self._learn(elsewhere, records.host_of(visit.url), at)
                visit = replace(visit, shard=visit.shard or worker, stored=_stored(visit))
                inlinks = visit.inlinks
                if before is not None:
                    other = records.unpack_visit(before)
                    newer = _rank(visit, is_removed) >= _rank(other, is_removed)
                    winner, loser = (visit, other) if newer else (other, visit)
                    inlinks = max(inlinks, other.inlinks)
                    if loser.has_page and loser.shard != winner.shard:
                        outdated = Outdated(key, loser.url, _stored(winner) or inf)
                        name = loser.shard.encode() + b" " + key
                        stale = self._staged("stale", at)
                        commands.append(("HSET", stale, name, pack_outdated([outdated])))
                    visit = winner
                commands.append(
                    ("HSET", self._staged("visits", at), key, records.pack_visit(visit, inlinks))
                )
        self._link.run(commands)

    def _learn(self, elsewhere: dict[str, int], host: str, partition: int) -> None:
        if host not in elsewhere and partition != self._keys.partition_of(host):
            elsewhere[host] = partition

    def _bring_queued(
        self, rows: Sequence[tuple[bytes, int, bytes]], elsewhere: dict[str, int]
    ) -> None:
        self._renew()
        commands: list[Command] = []
        for place, links, packed in rows:
            at = self._keys.partition_of_key(packed[:16])
            self._learn(elsewhere, records.unpack_entry(packed).host, at)
            value = pack_queued(links, place, packed)
            commands.append(("HSETNX", self._staged("entries", at), packed[:16], value))
        self._link.run(commands)

    def _bring_rows(self, name: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self._renew()
        where = self._keys.partition_of_key
        commands: list[Command] = [
            ("HSETNX", self._staged(name, where(key)), key, value)
            for key, value in rows
            if records.is_counted(value)
        ]
        self._link.run(commands)

    def _known(self, name: bytes) -> None:
        partition, key = int.from_bytes(name[:2], "big"), name[2:]
        if partition >= self._keys.partitions:
            raise ConfigError(
                f"LARM_BLOCKS={self._keys.partitions}: the directory is of a crawl with more"
                f" partitions ({partition + 1} at least): name the number it was begun with"
            )
        self._others.append(("SADD", self._staged("known", partition), key))
        if len(self._others) >= _AT_ONCE:
            self._flush_known()

    def _flush_known(self) -> None:
        self._renew()
        self._link.run(self._others)
        self._others = []

    def _bring_hosts(self, reader: FrontierReader, elsewhere: dict[str, int]) -> None:
        """The directory with the furthest count of a host has its newest record and notes."""
        notes: dict[str, dict[bytes, bytes]] = defaultdict(dict)
        for name, value in reader.host_notes():
            notes[name.decode().rpartition(" ")[2]][name] = value
        for some in _batches(reader.hosts().items()):
            self._renew()
            at = [elsewhere.get(host, self._keys.partition_of(host)) for host, _ in some]
            known = self._link.run(
                [("HGET", self._staged("hosts", p), h) for p, (h, _) in zip(at, some, strict=True)]
            )
            commands: list[Command] = []
            for partition, (host, (record, counts)), before in zip(at, some, known, strict=True):
                done = counts.stored + counts.failed + counts.refused + counts.merged
                progress = [counts.discovered, done]
                if before is None or msgpack.unpackb(before)[0] <= progress:
                    value = msgpack.packb([progress, record, notes[host]])
                    commands.append(("HSET", self._staged("hosts", partition), host, value))
            self._link.run(commands)

    # the whole

    def complete(
        self, forms: UrlForms | None, progress: Callable[[int, int], object] = lambda _d, _a: None
    ) -> Report:
        """Make the crawl from the brought records, and let workers join it."""
        report = Report(workers=self.brought())
        (met,) = self._link.run([("SMEMBERS", self._met)])
        report.absent = sorted({name.decode() for name in met} - {*report.workers})
        stored, stale = 0, defaultdict[str, list[Outdated]](list)
        partitions = range(self._keys.partitions)
        asked: list[Command] = [
            ("EXISTS", *(self._staged(name, at) for name in _STAGED)) for at in partitions
        ]
        used = [at for at, found in zip(partitions, self._link.run(asked), strict=True) if found]
        for number, partition in enumerate(used):
            self._renew()
            stored += self._make(partition, forms, report, stale)
            progress(number + 1, len(used))
        self._make_commits(report, stale)
        totals = self._keys.crawl("totals")
        self._link.run(
            [
                ("HSET", totals, "stored", stored),
                ("SET", self._format, FORMAT.format(blocks=self._keys.partitions)),
            ]
        )
        gone = [self._staged(name, at) for at in used for name in _STAGED]
        self._link.run([("UNLINK", key) for key in (*gone, self._brought, self._met, self._lock)])
        return report

    def _make(
        self,
        partition: int,
        forms: UrlForms | None,
        report: Report,
        stale: dict[str, list[Outdated]],
    ) -> int:
        """Make a partition from its brought records. Returns the number of stored pages."""
        made = _Partition(self._keys, partition, forms, report)
        made.merged = dict(self._rows("merged", partition))
        for key, value in self._rows("entries", partition):
            made.entries[key] = unpack_queued(value)
        for key, value in self._rows("visits", partition):
            made.visit(key, records.unpack_visit(value))
        for name, value in self._rows("hosts", partition):
            _, record, notes = msgpack.unpackb(value)
            made.hosts[name.decode()] = record, notes
        for name, value in self._rows("stale", partition):
            stale[name[:-17].decode()] += unpack_outdated(value)
        (known,) = self._link.run([("SMEMBERS", self._staged("known", partition))])
        self._link.run(made.commands(known))
        return made.stored

    def _rows(self, name: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        cursor: Any = 0
        while True:
            scan: Command = ("HSCAN", self._staged(name, partition), cursor, "COUNT", _AT_ONCE)
            ((cursor, found),) = self._link.run([scan])
            yield from pairs(found).items()
            if int(cursor) == 0:
                return

    def _make_commits(self, report: Report, stale: dict[str, list[Outdated]]) -> None:
        """Each worker continues from the last commit on its disk."""
        (answer,) = self._link.run([("HGETALL", self._brought)])
        totals = self._keys.crawl("totals")
        commands: list[Command] = []
        for name, packed in pairs(answer).items():
            worker = name.decode()
            serial, positions = msgpack.unpackb(packed)
            record, outdated = self._keys.commit(worker), self._keys.outdated(worker)
            commands += [
                ("DEL", record, outdated, self._keys.log(worker)),
                ("HSET", record, "serial", serial, "id", f"rebuild{serial}"),
                ("HSET", record, "positions", positions, "partitions", "  ", "steps", "0"),
            ]
            lists = [*_batches(stale.get(worker, ()))]
            for some in lists:
                commands.append(("RPUSH", outdated, pack_outdated(some)))
                report.outdated += len(some)
            commands.append(("HSET", totals, outdated_field(worker), len(lists)))
        self._link.run(commands)


class _Partition:
    """A partition as complete() makes it of the records."""

    def __init__(self, keys: Keys, number: int, forms: UrlForms | None, report: Report) -> None:
        self._keys, self._number, self._forms, self._report = keys, number, forms, report
        self.entries: dict[bytes, tuple[bytes, int, bytes]] = {}
        self.merged: dict[bytes, bytes] = {}
        self.hosts: dict[str, tuple[bytes, dict[bytes, bytes]]] = {}
        self.stored = 0
        self._visits: dict[bytes, bytes] = {}
        self._members: list[int] = []
        self._counts: dict[str, Counts] = defaultdict(Counts)
        self._pages: dict[str, list[StoredPage]] = defaultdict(list)
        self._known: set[bytes] = set()
        self._again: list[tuple[bytes, int, bytes]] = []

    def visit(self, key: bytes, visit: FetchRecord) -> None:
        """Record a finished URL, unless the directory of the worker that has its page was not
        brought. A finished URL stays finished, even if another directory has an old place of it in
        a queue."""
        self.entries.pop(key, None)
        self.merged.pop(key, None)
        if visit.has_page and visit.shard not in self._report.workers:
            again = self._report.again
            again[visit.shard] = again.get(visit.shard, 0) + 1
            self._again.append((key, visit.inlinks, self._entry(key, visit)))
            return
        host = self._counts[records.host_of(visit.url)]
        name = visit.state.name.lower()
        setattr(host, name, getattr(host, name) + 1)
        self.stored += visit.state is UrlState.STORED
        self._members.append(member(key, visit.state))
        self._known.add(compact(key))
        if visit.state is not UrlState.REFUSED or visit.due:
            self._visits[key] = records.pack_visit(visit, visit.inlinks)
        fingerprint = visit.digest[BODY_DIGEST:]
        if self._forms is not None and visit.stands and len(fingerprint) == 8:
            try:
                is_url = url_key(self._forms(visit.url).exact) == key
            except InvalidURL:  # the settings are others now
                return
            if is_url:
                self._pages[visit.shard].append((visit.url, visit.depth, fingerprint))

    def _entry(self, key: bytes, visit: FetchRecord) -> bytes:
        normalized = visit.url
        if self._forms is not None:
            try:
                normalized = self._forms(visit.url).normalized
            except InvalidURL:
                pass
        entry = QueuedUrl(
            visit.url, normalized, key, records.host_of(visit.url), visit.depth, visit.link_type,
            from_page=visit.from_page,
        )  # fmt: skip
        return records.pack_entry(entry)

    def commands(self, known: Iterable[bytes]) -> list[Command]:
        """Everything in Redis about the partition; replaces its present content."""
        for key in self.entries.keys() & self.merged.keys():
            del self.merged[key]
        found = [*self._queue_commands(), *self._table_commands()]
        for key, record in self.merged.items():
            host = records.unpack_merged(record).entry.host
            self._counts[host].merged += 1
            found.append(("HSET", self._name("merged"), key, record))
            self._known.add(compact(key))
        for host, (record, notes) in self.hosts.items():
            if record:
                found.append(("HSET", self._name("hosts"), host, record))
            found += [("HSET", self._name("notes"), name, note) for name, note in notes.items()]
        for host, counts in self._counts.items():
            done = counts.stored + counts.failed + counts.refused
            counts.discovered = counts.queued + done + counts.merged
            found.append(("HSET", self._name("counts"), host, records.pack_counts(counts)))
        if lost := len(set(known) - self._known):
            self._report.lost[self._number] = lost
        self._report.merged += len(self.merged)
        tables = ("entries", "delayed", "hosts", "counts", "notes", "merged", "pages", "visits")
        before: Command = ("DEL", *map(self._name, (*tables, "owner", "inbox")))
        owner: Command = (
            "HSET", self._name("owner"), "token", "1", "worker", self._report.workers[0],
            "visited", len(self._members), *self._sizes(found),
        )  # fmt: skip
        return [before, *found, owner]

    def _sizes(self, found: Iterable[Command]) -> Iterator[str | int]:
        """Fields and values of the owner record: the numbers of records that ``found`` makes."""
        made = Counter(command[1] for command in found)
        for table in COUNTED:
            yield from (size_field(table), made[self._name(table)])

    def _name(self, table: str) -> bytes:
        return self._keys.partition(table, self._number)

    def _queue_commands(self) -> Iterator[Command]:
        """Places stay the same, in the same order. Two workers may have given one place."""
        taken: set[bytes] = set()
        rows = sorted(self.entries.values())
        serial = max((records.serial_of(place) for place, _, _ in rows), default=0)
        for _, links, packed in self._again:
            rows.append((records.ready_key(records.unpack_entry(packed).host, 0, 0), links, packed))
        emptied: set[bytes] = set()
        for place, links, packed in rows:
            if place in taken or not records.serial_of(place):
                serial += 1
                place = place[:-_SERIAL_BYTES] + serial.to_bytes(_SERIAL_BYTES, "big")
            taken.add(place)
            key, host = packed[:16], records.unpack_entry(packed).host
            queue = self._keys.requests(self._number, host)
            if queue not in emptied:
                emptied.add(queue)
                yield "DEL", queue
            late = records.run_of(place) == records.DELAYED
            yield "HSET", self._name("entries"), key, pack_queued(links, place, packed)
            yield "ZADD", self._name("delayed") if late else queue, b"%d" % score(place), key
            self._counts[host].queued += 1
            self._known.add(compact(key))
        self._report.queued += len(rows)

    def _table_commands(self) -> Iterator[Command]:
        for bucket in range(buckets(len(self._members)) + 1):
            yield "DEL", self._keys.dupefilter(self._number, bucket)
        for bucket, part in spread(0, self._members):
            words = [b"%d" % number for number in part]
            yield "SADD", self._keys.dupefilter(self._number, bucket), *words
        for key, packed in self._visits.items():
            yield "HSET", self._name("visits"), key, packed
        for pages in self._pages.values():  # an element has pages of one worker
            for at in range(0, len(pages), _PAGES):
                yield "RPUSH", self._name("pages"), pack_pages(pages[at : at + _PAGES])
        self._report.visited += len(self._members)


def _stored(visit: FetchRecord) -> float:
    """When the counting version of the page was stored; 0.0 without a page."""
    return visit.stored or (visit.time if visit.has_page else 0.0)


def _rank(visit: FetchRecord, is_removed: Callable[[FetchRecord], bool]) -> tuple[bool, float]:
    """The rank of a record: the newer record has the larger rank. A page that the operator removed
    stays removed."""
    return is_removed(visit), visit.time


def _batches(rows: Iterable[T]) -> Iterator[list[T]]:
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        yield some
