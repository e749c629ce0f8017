"""A commit to Redis in four steps, of which the first makes it durable.

    1. the commit record of the worker: serial, positions, and the redo, which is all that follows
    2. mail for the blocks of others
    3. the changes of the own blocks
    4. the redo is dropped

Each is one round trip, and each may be done twice: steps carry numbers, and a block counts those
that it has seen of each worker. Whoever takes over from a worker that died between 1 and 4 carries
its redo out, and so does the worker itself when it comes back. A worker whose epoch has ended can
do 1 no more, and 3 not in a block that has a new owner.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

from larmspider.cluster.redis_client import (
    APPLY,
    CARRIED_OUT,
    COMMIT,
    Command,
    Keys,
    RedisLink,
    call,
)
from larmspider.frontier.storage import records
from larmspider.frontier.storage.backend import Fenced
from larmspider.frontier.storage.lmdb_env import LmdbFiles, WriteBatch
from larmspider.frontier.storage.records import FetchRecord, UrlState, pack_visit

# What a batch changes, as commands to Redis by block, in a form that anybody can carry out later.
#
#     changes = PartitionChanges(owner)
#     changes.put("HSET", key, field, value)
#     redo = WriteAheadLog([*changes.steps(17, token, b"applied:w1", first)])
#     data = redo.pack()        # in the commit record; of Redo.unpack(data) each step is a
#     # command()
#
# A step is one call of lua/apply.lua: some changes in one block, done once.

STEP_WORDS = 2_000
"""Arguments in one step, about: Redis does nothing else while it runs one, some 1 ms."""
_COMMAND_WORDS = 200  # of one command; Lua can unpack some 8,000


@dataclass(frozen=True, slots=True)
class Step:
    """``keys[0]`` is the owner record of the block; commands name the others from 2 on."""

    block: int
    token: bytes
    counter: bytes
    number: int
    keys: list[bytes]
    commands: list[list[Any]]

    def command(self) -> Command:
        """The call that carries it out, once however often it is sent."""
        packed = msgpack.packb(self.commands, use_bin_type=False)
        return call(APPLY, self.keys, [self.token, self.counter, self.number, packed])


@dataclass(slots=True)
class WriteAheadLog:
    """Of one commit: first the mail for other blocks, then the changes of the own ones."""

    steps: list[Step] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def blocks(self) -> frozenset[int]:
        """Those whose owner wrote it."""
        return frozenset(step.block for step in self.steps if step.token)

    def pack(self) -> bytes:
        """As it lies in the commit record."""
        rows = [[s.block, s.token, s.counter, s.number, s.keys, s.commands] for s in self.steps]
        packed: bytes = msgpack.packb(rows, use_bin_type=False)
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> WriteAheadLog:
        """The reverse of pack()."""
        return cls([Step(*row) for row in msgpack.unpackb(data, raw=True, use_list=True)])


@dataclass(slots=True)
class PartitionChanges:
    """Gathers the commands of one block; steps() cuts them into calls of bearable length."""

    owner: bytes
    _lists: dict[tuple[str, bytes], list[Any]] = field(default_factory=dict)
    _last: list[tuple[str, bytes, list[Any]]] = field(default_factory=list)

    def put(self, command: str, key: bytes, *words: Any) -> None:
        """``HSET key field value``, ``SADD key member``: joined with others of command and key."""
        self._lists.setdefault((command, key), []).extend(words)

    def last(self, command: str, key: bytes, *words: Any) -> None:
        """To be done after all that is put()."""
        self._last.append((command, key, list(words)))

    def __bool__(self) -> bool:
        return bool(self._lists or self._last)

    def _pieces(self) -> Iterator[tuple[str, bytes, Sequence[Any]]]:
        for (command, key), words in self._lists.items():
            for at in range(0, len(words), _COMMAND_WORDS):
                yield command, key, words[at : at + _COMMAND_WORDS]
        yield from self._last

    def steps(self, block: int, token: bytes, counter: bytes, first: int) -> Iterable[Step]:
        """Numbered from ``first`` on."""
        keys: list[bytes] = [self.owner]
        commands: list[list[Any]] = []
        words = 0
        for command, key, piece in self._pieces():
            if words and words + len(piece) > STEP_WORDS:
                yield Step(block, token, counter, first, keys, commands)
                first += 1
                keys, commands, words = [self.owner], [], 0
            if key not in keys[1:]:
                keys.append(key)
            commands.append([command, keys.index(key, 1) + 1, *piece])
            words += len(piece) + 1
        if commands:
            yield Step(block, token, counter, first, keys, commands)


# The visited table in Redis: what every worker must know of a URL that is done, in 8.5 bytes.
#
#     member(key, UrlState.STORED)      # an integer of 64 bits: 62 of the URL key, 2 of the state
#
# Members fill sets of 500, one after another, which Redis keeps as plain arrays of integers
# (``intset``, up to 512 members by default; 500 are 4,008 bytes, and 4,096 is a size in which its
# allocator hands out memory). Only the owner of a block needs the table, and it reads the whole
# when
# it takes the block, so there is no need to find a URL's set by its key.
#
# Among URLs of one block two share their 62 bits with odds of n^2 / 2^63: 5e-5 at 20 million a
# block,
# and then one of them is not fetched.

BUCKET = 500
"""Members of a set."""

_STATES = (UrlState.STORED, UrlState.FAILED, UrlState.REFUSED)
_MIDDLE = 1 << 63

UNTOLD = {state: pack_visit(FetchRecord(state), 0, "", 0) for state in _STATES}
"""Records of URLs of which this worker knows the state alone: others fetched them."""


def member(key: bytes, state: UrlState) -> int:
    """Of a URL key and a final state: -2**63 .. 2**63 - 1, as sets of integers hold."""
    return (int.from_bytes(key[4:12], "big") & ~3 | state - UrlState.STORED) - _MIDDLE


def compact(key: bytes) -> bytes:
    """8 bytes of a URL key; what member() keeps of it."""
    return (int.from_bytes(key[4:12], "big") & ~3).to_bytes(8, "big")


def state_of(number: int) -> UrlState:
    """The state in a member."""
    return _STATES[(number + _MIDDLE) & 3]


def compact_of(number: int) -> bytes:
    """The 8 bytes of the URL key in a member."""
    return ((number + _MIDDLE) & ~3).to_bytes(8, "big")


def buckets(total: int) -> int:
    """Sets that hold ``total`` members."""
    return -(-total // BUCKET)


def spread(total: int, members: Sequence[int]) -> list[tuple[int, Sequence[int]]]:
    """(bucket, members) for those that come after ``total`` others."""
    parts, at = [], 0
    while at < len(members):
        room = BUCKET - (total + at) % BUCKET
        parts.append(((total + at) // BUCKET, members[at : at + room]))
        at += room
    return parts


# From a batch of the local files to what it changes in Redis.
#
#     changes = Changes(keys, files, batch, unchanged)
#     changes.gather(block_of_host)
#     changes.by_block[17].steps(...)       # commands that change block 17 (redis_redo.py)
#
# A URL that waits is in ``entries`` and in its host's queue (or in ``delayed``, when it has an
# earliest time); one that is done leaves them and joins the visited table. A lease is no state in
# Redis: what was handed out still waits there, at its place.

SERIAL_BITS = 37
"""Of a score's 53 bits, beside 16 of the priority: 137 thousand million places in a crawl."""
_WAITING = struct.Struct(">IB")


def score(place: bytes) -> int:
    """Of a queue place: a sorted set gives the places in their order. Priority first, or time."""
    if records.run_of(place) == records.DELAYED:
        return int.from_bytes(place[9:15], "big")
    return int.from_bytes(place[9:11], "big") << SERIAL_BITS | records.serial_of(place)


def pack_queued(links: int, place: bytes, packed: bytes) -> bytes:
    """The value in ``entries``: links seen, place in the queue, packed entry."""
    return _WAITING.pack(links, len(place)) + place + packed


def unpack_queued(data: bytes) -> tuple[bytes, int, bytes]:
    """Place, links seen, packed entry."""
    links, length = _WAITING.unpack_from(data)
    return data[5 : 5 + length], links, data[5 + length :]


class Changes:
    """Of ``batch``, by block. ``unchanged`` are leased URLs whose record says nothing new.

    ``block_of_host`` as RedisBackend.block_of().
    """

    def __init__(
        self, keys: Keys, files: LmdbFiles, batch: WriteBatch, unchanged: Container[bytes]
    ) -> None:
        self._keys, self._files, self._batch, self._unchanged = keys, files, batch, unchanged
        self.by_block: dict[int, PartitionChanges] = {}
        self.members: dict[int, list[int]] = {}
        self.stored = 0
        self.visits: list[tuple[bytes, bytes]] = []

    def gather(self, block_of_host: Callable[[str], int]) -> None:
        """Look through the batch, once."""
        for key, record in self._batch.urls.items():
            if record[0] > UrlState.LEASED:
                self._done(key, record)
            elif key not in self._unchanged:
                self._waits(key, record)
        for name, value in self._batch.hosts.items():
            host = name[1:].decode()
            block = block_of_host(host)
            where = "hosts" if name[:1] == b"h" else "counts"
            self.of(block).put("HSET", self._keys.block(where, block), name[1:], value)
        for name, value in self._notes():
            block = block_of_host(name.decode().rpartition(" ")[2])
            self.of(block).put("HSET", self._keys.block("notes", block), name, value)

    def _notes(self) -> Iterator[tuple[bytes, bytes]]:
        """Those of hosts; any other is this worker's own (``orders``), and no block's."""
        for name, value in self._batch.meta.items():
            if name[:1] == b"n" and b" " in name:
                yield name[1:], value

    def of(self, block: int) -> PartitionChanges:
        """The changes of a block."""
        found = self.by_block.get(block)
        if found is None:
            found = self.by_block[block] = PartitionChanges(self._keys.block("owner", block))
        return found

    def _waits(self, key: bytes, record: bytes) -> None:
        _, links, place = records.unpack_waiting(record)
        # as of the cut: what came after it is no part of this commit
        packed = self._batch.queue.get(place) or self._files.get(place, self._files.queue)
        assert packed is not None
        block = self._keys.block_of_key(key)
        changes, name = self.of(block), self._keys.block
        queue = self._keys.requests(block, records.unpack_entry(packed).host)
        delayed = name("delayed", block)
        late = records.run_of(place) == records.DELAYED
        changes.put("HSET", name("entries", block), key, pack_queued(links, place, packed))
        changes.put("ZREM", queue if late else delayed, key)
        changes.put("ZADD", delayed if late else queue, b"%d" % score(place), key)

    def _done(self, key: bytes, record: bytes) -> None:
        block = self._keys.block_of_key(key)
        changes, name = self.of(block), self._keys.block
        visit = records.unpack_visit(record)
        changes.put("HDEL", name("entries", block), key)
        changes.put("ZREM", name("delayed", block), key)
        changes.put("ZREM", self._keys.requests(block, records.host_of(visit.url)), key)
        self.members.setdefault(block, []).append(member(key, visit.state))
        self.stored += visit.state is UrlState.STORED
        self.visits.append((key, record))

    def add_visited(self, totals: Mapping[int, int]) -> dict[int, int]:
        """Those that are done join the visited table: new totals of the blocks that had any."""
        found = {}
        for block, members in self.members.items():
            before = totals.get(block, 0)
            changes = self.of(block)
            for bucket, part in spread(before, members):
                words = [b"%d" % number for number in part]
                changes.put("SADD", self._keys.dupefilter(block, bucket), *words)
            found[block] = before + len(members)
            changes.put("HSET", self._keys.block("owner", block), b"visited", b"%d" % found[block])
        return found


STEPS = 1 << 20
"""Step numbers of one commit: serial * STEPS and up."""


@dataclass(slots=True)
class CommitRecord:
    """What a worker has committed last. ``visits`` are the URLs that it brought to their end."""

    serial: int = 0
    positions: dict[str, bytes] = field(default_factory=dict)
    redo: bytes = b""
    visits: bytes = b""


class Committer:
    """Of one worker, known by its name and epoch."""

    def __init__(self, link: RedisLink, keys: Keys, worker: str) -> None:
        self.link, self.keys, self.worker = link, keys, worker
        self.epoch = 0
        self.serial = 0
        """Of the last commit."""
        self._unsure = False  # whether Redis has the next one

    @property
    def applied(self) -> bytes:
        """The field in which a block counts this worker's steps as its owner."""
        return b"applied:" + self.worker.encode()

    @property
    def posted(self) -> bytes:
        """The field in which a block counts this worker's mail."""
        return b"posted:" + self.worker.encode()

    def first_step(self) -> int:
        """The first step number of the next commit."""
        return (self.serial + 1) * STEPS

    def read(self, worker: str) -> CommitRecord:
        """The commit record of a worker; an empty one where there is none."""
        (found,) = self.link.run([("HGETALL", self.keys.commit(worker))])
        fields = pairs(found)
        return CommitRecord(
            int(fields.get(b"serial", b"0")),
            records.unpack_positions(fields.get(b"positions", b"")),
            fields.get(b"redo", b""),
            fields.get(b"visits", b""),
        )

    def replay(self, worker: str, blocks: Collection[int] | None = None) -> bool:
        """Carry out what a worker had committed and not yet done; idempotent. Whether there was
        anything. ``blocks``: only if one of these is among what it had to change."""
        record = self.read(worker)
        if not record.redo:
            return False
        redo = WriteAheadLog.unpack(record.redo)
        if blocks is not None and redo.blocks().isdisjoint(blocks):
            return False
        # a block that answers FENCED has an owner who came after this was carried out
        self.link.run([step.command() for step in redo])
        self.link.run([self._carried_out(worker, record.serial)])
        return True

    def _carried_out(self, worker: str, serial: int) -> Command:
        keys = [self.keys.commit(worker), self.keys.crawl("commits")]
        return call(CARRIED_OUT, keys, [b"%d" % serial])

    def commit(
        self, redo: WriteAheadLog, positions: Mapping[str, bytes], visits: bytes, stored: int
    ) -> None:
        """Steps 1 to 3. Raises Fenced, BackendError."""
        self._unsure = True
        packed = redo.pack() if redo else b""
        arguments: list[Any] = [self.worker, self.epoch, self.serial + 1, stored, int(bool(redo))]
        arguments += [b"positions", records.pack_positions(positions), b"visits", visits]
        arguments += [b"redo", packed]
        names = ("workers", "commits", "idle", "totals")
        keys = [self.keys.commit(self.worker), *(self.keys.crawl(name) for name in names)]
        (said,) = self.link.run([call(COMMIT, keys, arguments)])
        self._check(said)
        self._carry_out(redo)
        self.serial += 1
        self._unsure = False

    def find_out(self) -> bool:
        """Before a commit is put together: whether the one before, which was broken off, is in
        Redis, and so a fact. Then it is carried out."""
        if not self._unsure:
            return False
        record = self.read(self.worker)
        there = record.serial == self.serial + 1
        if there:
            self.replay(self.worker)
            self.serial = record.serial
        self._unsure = False
        return there

    def _check(self, said: bytes) -> None:
        if said == b"FENCED":
            raise Fenced(f"others have taken over from worker {self.worker}: its lease ran out")
        if said.startswith(b"AT "):
            raise Fenced(
                f"Redis at {self.link.name} is at commit {said[3:].decode()} of worker"
                f" {self.worker}, not at {self.serial}: it has lost what it had not written to disk"
            )

    def _carry_out(self, redo: WriteAheadLog) -> None:
        mail = [step.command() for step in redo if not step.token]
        own = [step for step in redo if step.token]
        self.link.run(mail)
        answers = self.link.run([step.command() for step in own])
        for step, said in zip(own, answers, strict=True):
            if said == b"FENCED":
                raise Fenced(f"block {step.block} of worker {self.worker} has another owner")

    def drop(self, more: Sequence[Command] = ()) -> list[Any]:
        """Step 4, and the answers to more commands in the same round trip."""
        return self.link.run([self._carried_out(self.worker, self.serial), *more])[1:]


def pairs(found: Any) -> dict[bytes, bytes]:
    """The answer to HGETALL, whichever protocol it came by."""
    if isinstance(found, Mapping):
        return dict(found)
    return dict(zip(found[::2], found[1::2], strict=True))
