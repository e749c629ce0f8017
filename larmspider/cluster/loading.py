"""Loads the partitions that a worker gets: first makes them its own in Redis, then copies them.

    loaded = Loading(committer, local, batch=256).load({17: 1_800_000_000_123})    # in a thread
    loaded.counts                                            # for what the frontier has in memory

    record = take_up(committer, local)              # at the start of a worker

Committed changes that the earlier owner had not applied are applied first.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from larmspider import program
from larmspider.cluster.commit import TRIES, CommitRecord, Committer
from larmspider.cluster.keys import Keys
from larmspider.cluster.local_copy import CHUNK, LocalCopy, Row
from larmspider.cluster.lost_parts import (
    OWNER_FIELDS,
    Run,
    is_commit_lost,
    lost_outdated,
    lost_parts,
)
from larmspider.cluster.membership import PARTITIONS
from larmspider.cluster.owned import Loaded
from larmspider.cluster.redis_client import (
    OWN,
    REBUILD,
    Command,
    RedisLink,
    call,
    lost,
    pairs,
    sound,
)
from larmspider.cluster.redis_records import unpack_pages, unpack_queued, unpack_visits
from larmspider.cluster.visited_table import members
from larmspider.errors import ConfigError, CrawlDirError, OtherFormatError
from larmspider.frontier.storage import records
from larmspider.frontier.storage.backend import BackendError, Fenced, FormatError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import COMPACTED, FORGOTTEN, Counts

logger = logging.getLogger(__name__)

FORMAT = "larmspider frontier in Redis 3, {blocks} blocks"
"""Raise it with every change of keys or values, except a field that is added at the end of a record
(docs/internals/formats.md)."""
REBUILDING = "larmspider rebuild 3, {blocks} blocks"
"""The format of a crawl in Redis that no worker may join: rebuild.py fills it."""
_BLOCKS = re.compile(rb"(\d+) blocks$")
_AT_ONCE = 64
"""Partitions whose hosts come in one round trip."""
_ELEMENTS_AT_ONCE = 100
"""Elements of the list of a partition's pages that are read at once."""


def partitions_of(link: RedisLink, prefix: str, wanted: int) -> int:
    """The number of partitions of a crawl: ``wanted`` (LARM_BLOCKS); if 0, the number in Redis.
    Raises ConfigError while the crawl is being rebuilt, Lost for a crawl without a format."""
    known = refuse_rebuilding(link, prefix)
    refuse_lost_format(link.run, prefix, known, link.name)
    begun = begun_with(known)
    return wanted or begun or PARTITIONS


def refuse_other_format(known: bytes | None, where: str) -> None:
    """Raise OtherFormatError for a crawl in Redis that has a format other than ours."""
    ours = (FORMAT.partition(",")[0].encode(), REBUILDING.partition(",")[0].encode())
    if known is not None and known.partition(b",")[0] not in ours:
        found = repr(known.decode("utf-8", "replace"))
        raise OtherFormatError(f"the crawl in Redis at {where}", found, repr(ours[0].decode()))


def refuse_lost_format(run: Run, prefix: str, known: bytes | None, where: str) -> None:
    """Raise Lost for a crawl in Redis whose format is gone, and with it the number of its
    partitions. ``known``: its format."""
    if known is not None:
        return
    keys = Keys(prefix, 1)
    # again, and after the id: another worker may just have begun the crawl, the format first
    if run([("EXISTS", keys.crawl("id")), ("GET", keys.crawl("format"))]) == [1, None]:
        raise lost(where, f"the key {keys.crawl('format').decode()}")


def refuse_rebuilding(link: RedisLink, prefix: str) -> bytes | None:
    """Return the format of the crawl in Redis. Raises ConfigError while the crawl is being
    rebuilt."""
    known: bytes | None
    (known,) = link.run([("GET", Keys(prefix, 1).crawl("format"))])
    if is_rebuilding(known):
        raise ConfigError(
            f"the crawl in Redis at {link.name} is being rebuilt: bring the workers' directories of"
            f" every machine with `{program.NAME} workers --rebuild`, then `{program.NAME}"
            " workers --rebuild"
            " --complete` lets workers go on"
        )
    return known


def is_rebuilding(known: bytes | None) -> bool:
    """Whether this is the format of a crawl that is being rebuilt."""
    return (known or b"").startswith(REBUILDING.partition(",")[0].encode())


def begun_with(known: bytes | None) -> int:
    """The number of partitions in the format of a crawl in Redis; 0 without a crawl."""
    begun = _BLOCKS.search(known or b"")
    return int(begun[1]) if begun else 0


class Loading:
    """``batch``: about this number of queued URLs of a partition comes in one round trip."""

    def __init__(self, committer: Committer, local: LocalCopy, batch: int) -> None:
        self._committer, self._local, self._batch = committer, local, batch
        self._link, self._keys = committer.link, committer.keys

    def load(self, partitions: Mapping[int, int]) -> Loaded:
        """Load partitions, given with their tokens. Raises Fenced where one has a later owner, and
        Lost where Redis lacks some of it; then nothing on disk has changed."""
        with sound(self._link.client, self._link.name):
            return self._load(partitions)

    def _load(self, partitions: Mapping[int, int]) -> Loaded:
        loaded = Loaded(dict(partitions))
        numbers = sorted(partitions)
        self._apply_logs_of_owners(numbers, but=self._committer.worker)
        for at in range(0, len(numbers), _AT_ONCE):
            part = numbers[at : at + _AT_ONCE]
            owners = self._own(part, loaded)
            self._refuse_lost(owners, loaded)
            self._local.purge(dict.fromkeys(part, ()))
            self._committer.table.drop(part)
            used = [partition for partition in part if partition not in loaded.untouched]
            if used:
                self._load_hosts(used, loaded)
                self._load_queues(used, loaded)
                self._load_visits(used)
            self._load_visited(part, loaded)
            self._load_merged(part)
            self._load_pages(used)
        return loaded

    def _apply_logs_of_owners(self, partitions: Sequence[int], but: str = "") -> None:
        owned: dict[str, list[int]] = {}
        for partition, worker in zip(partitions, self._owners(partitions), strict=True):
            if worker and worker != but:
                owned.setdefault(worker, []).append(partition)
        for worker, of_worker in sorted(owned.items()):
            self._committer.replay(worker, of_worker)

    def _own(self, partitions: Sequence[int], loaded: Loaded) -> dict[int, Sequence[Any]]:
        """The values of OWNER_FIELDS of each partition."""
        worker, owners = self._committer.worker, dict[int, Sequence[Any]]()
        left = list(partitions)
        for _ in range(TRIES):
            commands: list[Command] = []
            for partition, before in zip(left, self._owners(left), strict=True):
                loaded.untouched.discard(partition)  # set by an earlier try
                if not before:
                    loaded.untouched.add(partition)
                owner = self._key("owner", partition)
                records = [self._keys.commit(name) for name in (worker, before or worker)]
                token = loaded.tokens[partition]
                commands.append(call(OWN, [owner, *records], [token, worker, before, partition]))
                commands.append(("HMGET", owner, *OWNER_FIELDS))
            answers = iter(self._link.run(commands))
            again = []
            for partition, answer, fields in zip(left, answers, answers, strict=True):
                if answer == b"FENCED":
                    raise Fenced(
                        f"other workers took over from worker {worker}: partition {partition} has"
                        " had a later owner"
                    )
                if answer == b"UNAPPLIED":
                    again.append(partition)
                else:
                    self._committer.taken += 1
                    loaded.visited[partition] = int(fields[0] or 0)
                    owners[partition] = fields
            if not again:
                return owners
            left = again
            self._apply_logs_of_owners(left)
        raise BackendError(f"Redis at {self._link.name} changes the owner of partition {left[0]}")

    def _refuse_lost(self, owners: Mapping[int, Sequence[Any]], loaded: Loaded) -> None:
        """Without this, pages whose keys were evicted or deleted would be fetched, and stored, once
        more."""
        if parts := [*lost_parts(self._link.run, self._keys, owners, loaded.untouched)]:
            self._report(parts)

    def _report(self, parts: Sequence[str]) -> None:
        more = f", and {len(parts) - 1:,} more" if len(parts) > 1 else ""
        raise lost(self._link.name, f"{parts[0]}{more}")

    def _owners(self, partitions: Sequence[int]) -> list[str]:
        """The last workers of these partitions; "" for a partition without one."""
        commands: list[Command] = [("HGET", self._key("owner", at), "worker") for at in partitions]
        return [(worker or b"").decode() for worker in self._link.run(commands)]

    def _load_hosts(self, partitions: Sequence[int], loaded: Loaded) -> None:
        tables = ("hosts", "counts", "notes")
        commands: list[Command] = [
            ("HGETALL", self._key(table, at)) for at in partitions for table in tables
        ]
        answers = iter([_by_name(answer) for answer in self._link.run(commands)])
        all_hosts: dict[str, bytes] = {}
        all_counts: dict[str, bytes] = {}
        all_notes: dict[str, bytes] = {}
        for partition, hosts, counts, notes in zip(
            partitions, answers, answers, answers, strict=True
        ):
            loaded.hosts.update(dict.fromkeys([*hosts, *counts], partition))
            loaded.counts.update({host: _requeued(packed) for host, packed in counts.items()})
            all_hosts |= hosts
            all_counts |= counts
            all_notes |= notes
        self._local.keep_hosts(all_hosts, all_counts, all_notes)

    def _load_queues(self, partitions: Sequence[int], loaded: Loaded) -> None:
        cursors: dict[int, Any] = dict.fromkeys(partitions, 0)
        late: set[bytes] = set()  # a scan may give an entry twice
        while cursors:
            scans: list[Command] = [
                ("HSCAN", self._key("entries", partition), cursor, "COUNT", self._batch)
                for partition, cursor in cursors.items()
            ]
            rows = []
            for partition, (cursor, found) in zip(
                list(cursors), self._link.run(scans), strict=True
            ):
                rows += [unpack_queued(value) for value in pairs(found).values()]
                cursors[partition] = cursor
                if int(cursor) == 0:
                    del cursors[partition]
            self._local.keep_queued(rows)
            for place, _, packed in rows:
                loaded.serial = max(loaded.serial, records.serial_of(place))
                if records.run_of(place) == records.DELAYED and place not in late:
                    late.add(place)
                    counts = loaded.counts[records.unpack_entry(packed).host]
                    counts.held += records.is_held(place)
                    counts.delayed += not records.is_held(place)

    def _load_visited(self, partitions: Sequence[int], loaded: Loaded) -> None:
        rows: list[Row] = []
        for partition in partitions:
            found = members(self._link, self._keys, partition, loaded.visited[partition])
            rows += self._local.visited_rows(partition, found)
            if len(rows) > CHUNK:
                self._local.write(rows)
                rows = []
        self._local.write(rows)

    def _load_merged(self, partitions: Sequence[int]) -> None:
        for found in self._scan("merged", partitions):
            self._local.keep_merged(found)

    def _load_visits(self, partitions: Sequence[int]) -> None:
        worker, forms = self._committer.worker, self._committer.forms
        for found in self._scan("visits", partitions):
            self._local.keep_visits(found, worker, forms)

    def _scan(self, table: str, partitions: Sequence[int]) -> Iterator[dict[bytes, bytes]]:
        """Fields and values of a hash that each partition has, some at a time."""
        cursors: dict[int, Any] = dict.fromkeys(partitions, 0)
        while cursors:
            scans: list[Command] = [
                ("HSCAN", self._key(table, partition), cursor, "COUNT", self._batch)
                for partition, cursor in cursors.items()
            ]
            for partition, (cursor, found) in zip(
                list(cursors), self._link.run(scans), strict=True
            ):
                yield pairs(found)
                cursors[partition] = cursor
                if int(cursor) == 0:
                    del cursors[partition]

    def _load_pages(self, partitions: Sequence[int]) -> None:
        forms, at = self._committer.forms, 0
        while forms and partitions:
            commands: list[Command] = [
                ("LRANGE", self._key("pages", partition), at, at + _ELEMENTS_AT_ONCE - 1)
                for partition in partitions
            ]
            more = []
            for partition, found in zip(partitions, self._link.run(commands), strict=True):
                for packed in found:
                    self._local.keep_pages(partition, unpack_pages(packed), forms)
                if len(found) == _ELEMENTS_AT_ONCE:
                    more.append(partition)
            partitions, at = more, at + _ELEMENTS_AT_ONCE

    def _key(self, name: str, partition: int) -> bytes:
        return self._keys.partition(name, partition)


def _by_name(answer: Any) -> dict[str, bytes]:
    return {name.decode(): value for name, value in pairs(answer).items()}


def _requeued(packed: bytes) -> Counts:
    """The counters with leased URLs counted as queued. Delayed URLs are counted later."""
    counts = records.unpack_counts(packed)
    counts.queued += counts.leased
    counts.leased = counts.delayed = counts.held = 0
    return counts


def take_up(committer: Committer, local: LocalCopy) -> CommitRecord:
    """Bring a worker's disk to the state of its last commit in Redis. Applies that commit and
    returns it.

    Redis is right. If Redis came back without its last second, the disk forgets that second, too.
    Changes that the disk lacks, because the worker was killed in between, come from the commit
    record. Raises FormatError; CrawlDirError if Redis holds a crawl other than that in the files,
    or none.
    """
    crawl, _, serial = (local.files.get(b"redis", local.files.meta) or b"").decode().partition(" ")
    link, committer.crawl_id = committer.link, _crawl_id(committer, local, crawl)
    on_disk = int(serial or 0)
    if on_disk:
        _refuse_lost_parts(committer)
    committer.replay(committer.worker)
    record = committer.read(committer.worker)
    local.wipe()
    committer.table.drop_all()
    if on_disk < record.serial:
        visits = unpack_visits(record.visits)
        urls = local.files.urls
        local.write([(urls, key, None if v == FORGOTTEN else v) for key, v in visits])
    elif on_disk > record.serial:
        logger.warning(
            "Redis at %s has commit %d of worker %s, its directory has commit %d: the directory"
            " goes back to what Redis has, and later pages are fetched again",
            link.name, record.serial, committer.worker, on_disk,
        )  # fmt: skip
        for partition in range(committer.keys.partitions):
            if next(local.own_visits(partition), None) is not None:
                local.write(local.visited_rows(partition, members(link, committer.keys, partition)))
                local.purge({partition: ()})
    if on_disk != record.serial:
        known = f"{committer.crawl_id} {record.serial}".encode()
        local.write([(local.files.meta, b"redis", known)])
    committer.serial, committer.positions = record.serial, dict(record.positions)
    committer.taken = record.taken
    record.positions |= _compacted(local, f"{committer.crawl_id} {record.serial}")
    return record


def _refuse_lost_parts(committer: Committer) -> None:
    """Raise Lost if partitions have steps of this worker's commits, but Redis has no commit of this
    worker. The stores would otherwise be cut back to nothing. Also if lists of outdated pages are
    gone. A Redis that lost only its last second has lost both."""
    link, keys, worker = committer.link, committer.keys, committer.worker
    if is_commit_lost(link.run, keys, worker):
        raise lost(link.name, f"the last commit of worker {worker}")
    if what := lost_outdated(link.run, keys, worker):
        raise lost(link.name, what)


def _compacted(local: LocalCopy, commit: str) -> dict[str, bytes]:
    """The positions of the stores after a compaction that came after this commit."""
    packed = local.files.get(COMPACTED, local.files.meta) or b""
    known, _, positions = packed.partition(b"\n")
    return records.unpack_positions(positions) if known == commit.encode() else {}


def _holder_beside(own: Path) -> Path | None:
    """The frontier of another worker of this LARM_DIR that has committed something."""
    for path in sorted(own.parent.parent.iterdir()) if own.name == "frontier" else ():
        frontier = path / own.name
        if frontier != own and (frontier / "data.mdb").exists():
            with suppress(CrawlDirError), FrontierReader(frontier) as reader:
                crawl_id, serial = reader.shared_crawl()
                if crawl_id and serial:
                    return frontier
    return None


def _crawl_id(committer: Committer, local: LocalCopy, known: str) -> str:
    """The id of the crawl in Redis, created if missing; ``known`` is the id in the files."""
    keys, name, path = committer.keys, committer.link.name, local.files.path
    wanted = FORMAT.format(blocks=keys.partitions)
    has_crawl = known and local.files.get(b"serial", local.files.meta) is not None
    is_begun: Command = ("EXISTS", keys.crawl("id"))
    if (
        committer.link.run([is_begun]) == [0]
        and (holder := path if has_crawl else _holder_beside(path))
        and committer.link.run([is_begun]) == [0]  # else another worker has just begun the crawl
    ):
        raise CrawlDirError(
            f"Redis at {name} has no crawl, {holder} holds one: {REBUILD}; or name another LARM_DIR"
            " or Redis, or start over with -a fresh=force"
        )
    _, _, found, crawl = committer.link.run(
        [
            ("SET", keys.crawl("format"), wanted, "NX"),
            ("SET", keys.crawl("id"), token_hex(8), "NX"),
            ("GET", keys.crawl("format")),
            ("GET", keys.crawl("id")),
        ]
    )
    refuse_other_format(found, name)
    if found.decode("utf-8", "replace") != wanted:
        raise FormatError(
            f"Redis at {name} holds a crawl of format {found!r} under {keys.prefix!r},"
            f" this is {wanted!r}"
        )
    crawl_id: str = crawl.decode()
    if has_crawl and known != crawl_id:
        what = "a different crawl from" if known else "a crawl without Redis, not"
        lost = f", or, if this Redis has lost the crawl, {REBUILD}" if known else ""
        raise CrawlDirError(
            f"{path} holds {what} that in Redis at {name}: name another LARM_DIR{lost}, or start"
            " over with -a fresh=force"
        )
    return crawl_id
