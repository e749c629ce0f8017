"""The commit of a worker's batch, in five steps, of which the first makes it durable.

    1. the worker's commit record in Redis: its serial number, the stores' positions, and the
       write-ahead log, which is all of 2 and 3
    2. URLs for other workers go into the inboxes of their partitions
    3. this worker's partitions change
    4. the batch goes to the worker's own disk
    5. the log is dropped, and the inboxes that it has filled are marked; this worker's inboxes that
    were marked since are read

Steps 1, 2, 3 and 5 take one round trip each; step 5 takes two if mail has come. A step may be done
twice: steps have numbers, and a partition keeps the last number of each worker. If a worker dies
between 1 and 5, its successor applies the log. The worker does the same if it comes back first. A
worker whose epoch has ended cannot do step 1, or step 3 in a partition that has a new owner.

Redis may come back without its last second (it was killed, or a lagging replica took over), before
any of these commands. If Redis lost the commit, a step answers FORGOTTEN, and the commit restarts
at 1, with the same serial. If Redis lost some of its steps, the log is applied again: 5 counts
them, and so does 1 of the next commit. If Redis lost anything older, an earlier commit or the
owner of a partition, step 1 fences the worker, which restarts from Redis's state.

A queued URL is in ``entries`` and in its host's queue, or in ``delayed`` if it has an earliest
time; a finished URL leaves these and joins the visited table. Redis has no leases: a leased URL
keeps its place there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import inf
from secrets import token_hex
from typing import Any

import msgpack
from msgspec.structs import replace

from larmspider.cluster.keys import Keys
from larmspider.cluster.local_copy import SharedFiles
from larmspider.cluster.lost_parts import outdated_field
from larmspider.cluster.memory import MemoryWatch, commit_bytes
from larmspider.cluster.outbox import Outbox
from larmspider.cluster.owned import Owned
from larmspider.cluster.record_parts import Split, part_names
from larmspider.cluster.redis_client import (
    CARRIED_OUT,
    COMMIT,
    TOLD,
    Command,
    RedisLink,
    call,
    lost,
    pairs,
    sound,
)
from larmspider.cluster.redis_records import (
    GONE,
    Outdated,
    StoredPage,
    member,
    pack_outdated,
    pack_pages,
    pack_queued,
    pack_visits,
    score,
    spread,
)
from larmspider.cluster.visited_table import VisitedTable
from larmspider.cluster.write_ahead_log import PartitionChanges, Step, pack_log, unpack_log
from larmspider.formatting import counted
from larmspider.frontier.storage import records
from larmspider.frontier.storage.backend import BackendError, Fenced
from larmspider.frontier.storage.lmdb_env import WriteBatch
from larmspider.frontier.storage.records import BODY_DIGEST, FetchRecord, UrlState, url_key
from larmspider.learned.revisits.plan import PLANNED, SIGNALLED
from larmspider.urls.normalizer import UrlForms

logger = logging.getLogger(__name__)

MAX_OUTDATED = 100
"""Lists of outdated pages that a commit reads."""
STEPS = 1 << 20
"""Step numbers of one commit: serial * STEPS and up."""
_PAGES = 20_000  # pages in one element of the list ``pages``: at most some 1 MB
TRIES = 100
"""How often a log is applied before it counts as impossible to apply. Each time Redis has forgotten
something."""


@dataclass(slots=True)
class CommitRecord:
    """The last commit of a worker. ``log`` is b"" once it is applied and dropped. ``visits`` are
    the finished URLs. ``outdated`` lists pages for other workers, which then no longer count.
    ``taken``: the number of times that the worker has taken a partition so far."""

    serial: int = 0
    id: bytes = b""
    taken: int = 0
    positions: dict[str, bytes] = field(default_factory=dict)
    log: bytes = b""
    visits: bytes = b""
    outdated: bytes = b""


@dataclass(slots=True)
class _Attempt:
    """A commit that is on its way: what its record says, and its log."""

    serial: int
    id: bytes
    stored: int
    visits: int
    fields: list[Any]
    parts: dict[bytes, bytes]
    log: Sequence[Step]
    outdated: bytes

    @property
    def needs(self) -> int:
        """Bytes that it takes in Redis at most."""
        size = sum(len(one) for one in self.fields if isinstance(one, bytes))
        size += sum(map(len, self.parts.values()))
        return commit_bytes(size, sum(len(words) for step in self.log for words in step.commands))


class Committer:
    """Commits for one worker, known by its name and epoch, and applies the logs of other workers.

    ``serial`` and ``positions`` belong to the last commit. ``taken`` is the number of times that
    this worker has taken a partition, as far as it knows. ``crawl_id`` names the crawl in Redis.
    ``forms`` makes the forms of a URL, if pages may stand for other spellings of their URLs. A
    commit waits until ``memory`` has room.
    """

    def __init__(
        self,
        link: RedisLink,
        keys: Keys,
        worker: str,
        files: SharedFiles,
        owned: Owned,
        outbox: Outbox,
        forms: UrlForms | None = None,
        memory: MemoryWatch | None = None,
    ) -> None:
        self.link, self.keys, self.worker, self.files = link, keys, worker, files
        self.forms, self.memory = forms, memory
        self._owned, self._outbox = owned, outbox
        self.table = VisitedTable(link, keys, files)
        self.epoch = 0
        self.serial = 0
        self.taken = 0
        self.positions: dict[str, bytes] = {}
        self.crawl_id = ""
        self.not_done: dict[bytes, UrlState] = {}
        """URLs that were reopened or forgotten, and their states: the next commit with such a URL
        removes its member from the visited table."""
        self.outdated: Sequence[bytes] = ()
        """Lists of pages in this worker's directory that no longer count, as read by the last
        commit."""
        self.outdated_done: list[bytes] = []
        """Outdated pages that the next commit removes from Redis."""
        self._unsure: _Attempt | None = None  # whether Redis has it is unknown: the answer was lost
        self._has_parts = True  # the hash of parts may have some, of an earlier run perhaps

    @property
    def known(self) -> str:
        """This worker's last commits, for the membership, in the format of
        `lua/membership.lua`."""
        return f"{self.serial} {self.taken}"

    def commit(
        self,
        batch: WriteBatch,
        unchanged: Container[bytes],
        positions: Mapping[str, bytes],
        write: Callable[[], None],
        visits: int = 0,
    ) -> None:
        """``write`` does step 4. ``unchanged`` are leased URLs whose records in ``batch`` say
        nothing new. The crawl's budget pays for ``visits`` again. Raises Fenced, BackendError."""
        already = self._resolve_last()
        changes = BatchChanges(
            self.keys, self.files, batch, unchanged, self.not_done, self.worker, self.forms
        )
        changes.gather(self._owned.partition_of)
        visited = changes.add_visited(self._owned.visited, self._buckets_of)
        log = self._log(changes)
        in_redis = bool(log) or positions != self.positions or not self.serial
        attempt = None
        if in_redis:
            attempt = self._attempt(log, positions, changes, visits)
        with self._room_for(attempt):
            if attempt is not None:
                self._unsure = attempt
                self._carry_out(attempt, already)  # 1, 2, 3
                self.serial += 1
                self._unsure = None
                self._owned.visited.update(visited)
                self.table.added(changes.added)
                for key in self.not_done.keys() & batch.urls.keys():
                    del self.not_done[key]
                self.positions = dict(positions)
                self._outbox.committed()
            batch.meta[b"redis"] = f"{self.crawl_id} {self.serial}".encode()
            write()  # 4
            self._finish(attempt, already)  # 5

    def _room_for(self, attempt: _Attempt | None) -> AbstractContextManager[None]:
        if attempt is None or self.memory is None:
            return nullcontext()
        return self.memory.claimed(attempt.needs)

    def _resolve_last(self) -> int:
        """How many pages the last commit stored, where it was broken off and yet is in Redis; then
        its log is applied."""
        attempt, self._unsure = self._unsure, None
        if attempt is None or self.read(self.worker).id != attempt.id:
            return 0
        self.replay(self.worker)
        self.serial = attempt.serial
        self.table.drop_all()  # it lacks the members of that commit
        self._outbox.committed()
        return attempt.stored

    def _buckets_of(self, partition: int, numbers: Sequence[int]) -> dict[int, list[int]]:
        """The buckets that hold these members of one of the worker's partitions."""
        if partition not in self._owned.tokens:
            return {}
        while not self.table.is_noted(partition):
            self.table.note(partition)
            record = self.keys.commit(self.worker)
            (unapplied,) = self.link.run([("HSTRLEN", record, "redo")])
            if int(unapplied):  # Redis came back without the members of the last commit
                self.table.drop([partition])
                self.replay(self.worker)
        return self.table.find(partition, numbers)

    def _log(self, changes: BatchChanges) -> list[Step]:
        for partition, parts in self._outbox.trims().items():
            inbox = self.keys.partition("inbox", partition)
            for part in parts:
                changes.of(partition).put_last("TRIM", inbox, b"%d" % part.number, part.digest)
        first = (self.serial + 1) * STEPS
        worker = self.worker.encode()
        log = self._outbox.steps(b"posted:" + worker, first)
        for partition, of_partition in changes.by_partition.items():
            if of_partition and partition in self._owned.tokens:
                token = b"%d" % self._owned.tokens[partition]
                log += of_partition.steps(partition, token, b"applied:" + worker, first)
        return log

    def _attempt(
        self,
        log: Sequence[Step],
        positions: Mapping[str, bytes],
        changes: BatchChanges,
        visits: int,
    ) -> _Attempt:
        changed = sorted({step.partition for step in log if step.token})
        number, name = self.serial + 1, token_hex(8).encode()
        long = {b"visits": pack_visits(changes.visits), b"redo": pack_log(log) if log else b""}
        fields: list[Any] = [b"positions", records.pack_positions(positions)]
        fields += [b"steps", len(log)]
        fields += [b"partitions", f" {' '.join(map(str, changed))} ".encode()]
        outdated = b""
        if changes.outdated:
            packed = {who: self._lists(pages) for who, pages in changes.outdated.items()}
            outdated = msgpack.packb(packed)
        split = Split.of(long | {b"outdated": outdated}, name, self.link.part_bytes)
        fields += [word for field in split.record.items() for word in field]
        return _Attempt(number, name, changes.stored, visits, fields, split.parts, log, outdated)

    def _lists(self, pages: Sequence[Outdated]) -> bytes | list[bytes]:
        """Outdated pages of a worker, in one list or in several that Redis takes."""
        packed = pack_outdated(pages)
        if len(packed) <= self.link.part_bytes or len(pages) < 2:
            return packed
        found: list[bytes] = []
        for half in (pages[: len(pages) // 2], pages[len(pages) // 2 :]):
            lists = self._lists(half)
            found += [lists] if isinstance(lists, bytes) else lists
        return found

    def _carry_out(self, attempt: _Attempt, already: int) -> None:
        """Run steps 1 to 3, and repeat steps that Redis has lost. ``already``: pages that Redis has
        counted."""
        while True:
            self._write_record(attempt, attempt.stored - already)
            if self._apply(attempt):
                return
            logger.warning(
                "Redis at %s lost commit %d of worker %s; retrying it",
                self.link.name,
                attempt.serial,
                self.worker,
            )

    def _write_record(self, attempt: _Attempt, stored: int) -> None:
        names = ("workers", "commits", "idle", "totals")
        keys = [self.keys.commit(self.worker), *(self.keys.crawl(name) for name in names)]
        arguments: list[Any] = [self.worker, self.epoch, attempt.serial, attempt.id, self.taken]
        arguments += [stored, int(bool(attempt.log)), attempt.visits]
        command = call(COMMIT, keys, [*arguments, *attempt.fields])
        if attempt.parts:
            self._has_parts = True
            log = self.keys.log(self.worker)
            self.link.run([("HSET", log, name, part) for name, part in attempt.parts.items()])
        (answer,) = self.link.run([command])
        while answer == b"UNAPPLIED":
            self.replay(self.worker)
            (answer,) = self.link.run([command])
        if answer == b"FENCED":
            raise Fenced(f"other workers took over from worker {self.worker}: its lease ran out")
        lost = f"Redis at {self.link.name} has lost what it had not written to disk"
        if answer.startswith(b"AT "):
            raise Fenced(
                f"{lost}: it is at commit {answer[3:].decode()} of worker {self.worker}, not at"
                f" {attempt.serial - 1}"
            )
        if answer == b"TAKEN":
            raise Fenced(f"{lost}: worker {self.worker} took partitions that it does not know of")

    def _apply(self, attempt: _Attempt) -> bool:
        """Run the steps. Returns False if Redis has lost this commit."""
        record = self.keys.commit(self.worker)
        for own in (False, True):
            steps = [step for step in attempt.log if bool(step.token) == own]
            commands = [step.command(record, attempt.serial, attempt.id) for step in steps]
            for step, answer in zip(steps, self.link.run(commands), strict=True):
                if answer == b"FORGOTTEN":
                    return False
                if answer == b"FENCED":
                    raise Fenced(
                        f"partition {step.partition} of worker {self.worker} has another owner"
                    )
                if answer == b"OTHERS":
                    self._outbox.went_back(step.partition)
        return True

    def _finish(self, attempt: _Attempt | None, already: int) -> None:
        """Step 5."""
        for _ in range(TRIES):
            drop: list[Command] = []
            if attempt is not None:
                about = attempt.serial, attempt.id, attempt.log, attempt.outdated
                drop = [self._drop_log(self.worker, *about)]
            known = self._outbox.marked(self._owned.tokens)
            reads = self._outbox.read_commands(known)
            outdated = self.keys.outdated(self.worker)
            look: Command = ("LRANGE", outdated, 0, MAX_OUTDATED - 1)
            totals = self.keys.crawl("totals")
            reads += [
                call(TOLD, [outdated, totals], [outdated_field(self.worker), packed])
                for packed in self.outdated_done
            ]
            if self._has_parts:
                reads.append(("HKEYS", self.keys.log(self.worker)))
            answers = self.link.run([*drop, self._outbox.marks_command(), look, *reads])
            if attempt is None or answers.pop(0) == b"DONE":
                break
            self._carry_out(attempt, already)  # some steps were forgotten, or all
            self._outbox.committed()
        else:
            raise self._forgetful(self.worker)
        if attempt is not None and self._has_parts:
            self._drop_parts(attempt, answers[-1])
        self.outdated = [packed for packed in answers[1] if packed not in self.outdated_done]
        self.outdated_done = []
        with sound(self.link.client, self.link.name):
            self._outbox.received(known, answers[2 : 2 + len(known)])
            self._outbox.note_marks(answers[0])
        more = [at for at in self._outbox.marked(self._owned.tokens) if at not in known]
        if more:
            self._outbox.received(more, self.link.run(self._outbox.read_commands(more)))

    def _drop_parts(self, attempt: _Attempt, names: Iterable[bytes]) -> None:
        """Delete the parts of earlier commits and of this commit's log. ``names``: all parts in
        Redis."""
        log, redo = self.keys.log(self.worker), b"%b redo " % attempt.id
        gone = [name for name in names if name not in attempt.parts or name.startswith(redo)]
        self.link.run([("HDEL", log, name) for name in gone])
        self._has_parts = bool(attempt.parts)

    def _drop_log(
        self, worker: str, serial: int, commit_id: bytes, log: Sequence[Step], outdated: bytes
    ) -> Command:
        keys = [self.keys.commit(worker), *map(self.keys.crawl, ("commits", "mail", "totals"))]
        told = [
            (who, packed)
            for who, lists in (msgpack.unpackb(outdated) if outdated else {}).items()
            for packed in (lists if isinstance(lists, list) else [lists])
        ]
        keys += [self.keys.outdated(who) for who, _ in told]
        filled = sorted({step.partition for step in log if not step.token})
        return call(
            CARRIED_OUT, keys, [b"%d" % serial, commit_id, *(packed for _, packed in told), *filled]
        )

    # commits of any worker

    def read(self, worker: str) -> CommitRecord:
        """The commit record of a worker; an empty one if there is none."""
        with sound(self.link.client, self.link.name):
            fields = self._fields(worker)
            return CommitRecord(
                int(fields.get(b"serial", b"0")),
                fields.get(b"id", b""),
                int(fields.get(b"taken", b"0")),
                records.unpack_positions(fields.get(b"positions", b"")),
                fields.get(b"redo", b""),
                fields.get(b"visits", b""),
                fields.get(b"outdated", b""),
            )

    def _fields(self, worker: str) -> dict[bytes, bytes]:
        for _ in range(TRIES):
            (answer,) = self.link.run([("HGETALL", self.keys.commit(worker))])
            fields = pairs(answer)
            names = part_names(fields)
            if not fields.get(b"redo"):
                names.pop(b"redo", None)  # it is applied and dropped
            missing = False
            for name, of_value in names.items():
                commands: list[Command] = [("HGET", self.keys.log(worker), one) for one in of_value]
                parts = self.link.run(commands)
                missing = missing or None in parts
                fields[name] = b"".join(part or b"" for part in parts)
            if not missing:
                return fields
        # else the record was dropped, or replaced, between two reads
        raise lost(self.link.name, f"parts of the last commit of worker {worker}")

    def replay(self, worker: str, partitions: Collection[int] | None = None) -> bool:
        """Apply the log of a worker's last commit, if it still exists. Returns whether it existed.
        May be called twice. With ``partitions``, a log is applied only if it changes one of them as
        its owner."""
        replayed, fenced = False, 0
        for _ in range(TRIES):
            record = self.read(worker)
            if not record.log:
                return replayed
            with sound(self.link.client, self.link.name):
                log = unpack_log(record.log)
            if partitions is not None:
                changed = {step.partition for step in log if step.token}
                if changed.isdisjoint(partitions):
                    return replayed
            # a partition that answers FENCED has an owner who came after this was applied; if Redis
            # goes back meanwhile, its state is read again
            key = self.keys.commit(worker)
            answers = self.link.run([s.command(key, record.serial, record.id) for s in log])
            about = record.serial, record.id, log, record.outdated
            (answer,) = self.link.run([self._drop_log(worker, *about)])
            replayed = True
            if answer == b"DONE":
                return True
            fenced += answer == b"UNAPPLIED" and b"FENCED" in answers
            if fenced == 3:  # it never happens, and would hold up all workers for good
                logger.error(
                    "Commit %d of worker %s cannot be applied wholly: %s of it may not be changed"
                    " any more",
                    record.serial,
                    worker,
                    counted(answers.count(b"FENCED"), "partition"),
                )
                self.link.run([("HSET", key, "steps", b"")])
        raise self._forgetful(worker)

    def _forgetful(self, worker: str) -> BackendError:
        return BackendError(
            f"Redis at {self.link.name} keeps losing the commits of worker {worker}"
        )


def _is_planned(before: FetchRecord, now: FetchRecord) -> bool:
    """Whether the change only plans a visit in this run, which the URL's next owner plans again."""
    is_planned = 0.0 < now.due <= PLANNED and now.due != SIGNALLED
    return is_planned and replace(now, due=before.due) == before


class BatchChanges:
    """The changes of a batch in Redis, by partition; and the URLs that the batch finishes."""

    def __init__(
        self,
        keys: Keys,
        files: SharedFiles,
        batch: WriteBatch,
        unchanged: Container[bytes],
        not_done: Mapping[bytes, UrlState],
        worker: str,
        forms: UrlForms | None = None,
    ) -> None:
        self._keys, self._files, self._batch, self._unchanged = keys, files, batch, unchanged
        self._not_done, self._worker, self._forms = not_done, worker, forms
        self._pages: dict[int, list[StoredPage]] = {}
        self._no_members: dict[int, list[int]] = {}
        self.by_partition: dict[int, PartitionChanges] = {}
        self.stored = 0
        self.outdated: dict[str, list[Outdated]] = {}
        """Outdated pages, by the worker that has the page."""
        self.visits: list[tuple[bytes, bytes]] = []
        """Finished URLs with their records; FORGOTTEN for URLs that are no longer known."""
        self._members: dict[int, list[int]] = {}
        self.added: dict[int, list[tuple[int, Sequence[int]]]] = {}
        """Buckets that add_visited() fills: (bucket, members), by partition."""

    def gather(self, partition_of: Callable[[str], int]) -> None:
        """Look through the batch, once. ``partition_of`` a host, as Owned.partition_of()."""
        for key, record in self._batch.urls.items():
            if self._not_done and key in self._not_done:
                self._leave_table(key, self._not_done[key])
            if record == records.FORGOTTEN:
                self._visited_again(key, FetchRecord(UrlState.UNKNOWN))
                self._no_record(key)
                self._replaced(key, inf)
                self.visits.append((key, record))
            elif records.is_final(record):
                self._done(key, record)
            elif record[0] == UrlState.MERGED:
                self._merged(key, record)
            elif key not in self._unchanged:
                self._queued(key, record)
                if key in self._not_done:
                    self._no_record(key)
        for partition, pages in self._pages.items():
            name = self._keys.partition("pages", partition)
            for at in range(0, len(pages), _PAGES):
                self.of(partition).put("RPUSH", name, pack_pages(pages[at : at + _PAGES]))
        for name, value in self._batch.hosts.items():
            partition = partition_of(name[1:].decode())
            where = "hosts" if name[:1] == b"h" else "counts"
            self.of(partition).put("HSET", self._keys.partition(where, partition), name[1:], value)
        for row, rules in self._batch.aliases.items():
            if rules is None and row.startswith(records.OF_HOST):
                self._not_merged(row[9:])
        for name, value in self._host_notes():
            partition = partition_of(name.decode().rpartition(" ")[2])
            self.of(partition).put("HSET", self._keys.partition("notes", partition), name, value)

    def _host_notes(self) -> Iterator[tuple[bytes, bytes]]:
        """A note without a host in its name (``orders``) stays with this worker."""
        for name, value in self._batch.meta.items():
            if name[:1] == b"n" and b" " in name:
                yield name[1:], value

    def of(self, partition: int) -> PartitionChanges:
        found = self.by_partition.get(partition)
        if found is None:
            found = PartitionChanges(self._keys.partition("owner", partition))
            self.by_partition[partition] = found
        return found

    def _queued(self, key: bytes, record: bytes) -> None:
        _, links, place = records.unpack_waiting(record)
        # as it was sealed: later changes do not belong to this commit
        packed = self._batch.queue.get(place) or self._files.get(place, self._files.queue)
        assert packed is not None
        partition = self._keys.partition_of_key(key)
        changes, name = self.of(partition), self._keys.partition
        queue = self._keys.requests(partition, records.unpack_entry(packed).host)
        delayed = name("delayed", partition)
        late = records.run_of(place) == records.DELAYED
        changes.put("HSET", name("entries", partition), key, pack_queued(links, place, packed))
        changes.put("ZREM", queue if late else delayed, key)
        changes.put("ZADD", delayed if late else queue, b"%d" % score(place), key)

    def _done(self, key: bytes, record: bytes) -> None:
        partition = self._keys.partition_of_key(key)
        changes, name = self.of(partition), self._keys.partition
        state, before = UrlState(record[0]), self._files.record(key, partition)
        visit = records.unpack_visit(record)
        if before is not None and records.is_final(before) and key not in self._not_done:
            if before[0] == record[0]:
                if not _is_planned(records.unpack_visit(before), visit):
                    self.visits.append((key, record))
                    self._visited_again(key, visit)
                    self._record(key, visit)
                return
            self._leave_table(key, UrlState(before[0]))
        self.visits.append((key, record))
        self._record(key, visit)
        changes.put("HDEL", name("entries", partition), key)
        changes.put("ZREM", name("delayed", partition), key)
        changes.put("ZREM", self._keys.requests(partition, records.host_of(visit.url)), key)
        self._members.setdefault(partition, []).append(member(key, state))
        self.stored += state is UrlState.STORED
        if visit.stands:
            self._page(key, visit, visit.digest[BODY_DIGEST:])

    def _visited_again(self, key: bytes, visit: FetchRecord) -> None:
        before = self._files.record(key, self._keys.partition_of_key(key))
        if before is None or not records.is_final(before):
            return
        first = records.unpack_visit(before)
        if first.stands and not visit.stands:
            self._page(key, first, GONE)
        elif visit.stands and not first.stands:
            self._page(key, visit, visit.digest[BODY_DIGEST:])

    def _record(self, key: bytes, visit: FetchRecord) -> None:
        """Keep the record that the next owner needs for visiting the URL again."""
        if visit.state is UrlState.REFUSED and not visit.due:
            self._no_record(key)
            self._replaced(key, inf)
            return
        if not visit.shard:
            self._replaced(key, visit.stored)
            visit = replace(visit, shard=self._worker)
        partition = self._keys.partition_of_key(key)
        visits = self._keys.partition("visits", partition)
        packed = records.pack_visit(visit, visit.inlinks)
        self.of(partition).put("HSET", visits, key, packed)

    def _replaced(self, key: bytes, time: float) -> None:
        """If another worker has the earlier version of this page, tell that worker."""
        before = self._files.get(key, self._files.urls)
        if before is not None and records.is_final(before):
            visit = records.unpack_visit(before)
            if visit.shard:
                self.outdated.setdefault(visit.shard, []).append(Outdated(key, visit.url, time))

    def _no_record(self, key: bytes) -> None:
        partition = self._keys.partition_of_key(key)
        self.of(partition).put("HDEL", self._keys.partition("visits", partition), key)

    def _page(self, key: bytes, visit: FetchRecord, fingerprint: bytes) -> None:
        if self._forms is None or len(fingerprint) != 8:
            return
        if url_key(self._forms(visit.url).exact) == key:  # it is not a POST
            page = visit.url, visit.depth, fingerprint
            self._pages.setdefault(self._keys.partition_of_key(key), []).append(page)

    def _leave_table(self, key: bytes, state: UrlState) -> None:
        partition = self._keys.partition_of_key(key)
        self._no_members.setdefault(partition, []).append(member(key, state))

    def _merged(self, key: bytes, record: bytes) -> None:
        partition = self._keys.partition_of_key(key)
        changes, name = self.of(partition), self._keys.partition
        entry = records.unpack_merged(record).entry
        changes.put("HDEL", name("entries", partition), key)
        changes.put("ZREM", name("delayed", partition), key)
        changes.put("ZREM", self._keys.requests(partition, entry.host), key)
        if records.is_counted(record):
            changes.put("HSET", name("merged", partition), key, record)

    def _not_merged(self, key: bytes) -> None:
        """Unless it is merged again."""
        if self._batch.urls.get(key, b"\0")[0] != UrlState.MERGED:
            partition = self._keys.partition_of_key(key)
            self.of(partition).put("HDEL", self._keys.partition("merged", partition), key)

    def add_visited(
        self,
        totals: Mapping[int, int],
        buckets_of: Callable[[int, Sequence[int]], Mapping[int, Sequence[int]]],
    ) -> dict[int, int]:
        """Add finished URLs to the visited tables, and remove forgotten URLs. ``totals``: the sizes
        of the tables. ``buckets_of`` returns the buckets that hold given members of a partition.
        Returns the new totals of the tables that grow."""
        for partition, members in self._no_members.items():
            for bucket, found in buckets_of(partition, members).items():
                words = [b"%d" % number for number in found]
                self.of(partition).put("SREM", self._keys.dupefilter(partition, bucket), *words)
        grown = {}
        for partition, members in self._members.items():
            before = totals.get(partition, 0)
            changes = self.of(partition)
            self.added[partition] = list(spread(before, members))
            for bucket, part in self.added[partition]:
                words = [b"%d" % number for number in part]
                changes.put("SADD", self._keys.dupefilter(partition, bucket), *words)
            grown[partition] = total = before + len(members)
            changes.put("HSET", self._keys.partition("owner", partition), b"visited", b"%d" % total)
        return grown
