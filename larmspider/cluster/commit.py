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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.redis_keys import Keys
from larmspider.cluster.redis_redo import Redo
from larmspider.cluster.redis_scripts import CARRIED_OUT, COMMIT, Command, call
from larmspider.frontier.storage import records as r
from larmspider.frontier.storage.backend import Fenced

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
            r.unpack_positions(fields.get(b"positions", b"")),
            fields.get(b"redo", b""),
            fields.get(b"visits", b""),
        )

    def replay(self, worker: str, blocks: Collection[int] | None = None) -> bool:
        """Carry out what a worker had committed and not yet done; idempotent. Whether there was
        anything. ``blocks``: only if one of these is among what it had to change."""
        record = self.read(worker)
        if not record.redo:
            return False
        redo = Redo.unpack(record.redo)
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
        self, redo: Redo, positions: Mapping[str, bytes], visits: bytes, stored: int
    ) -> None:
        """Steps 1 to 3. Raises Fenced, BackendError."""
        self._unsure = True
        packed = redo.pack() if redo else b""
        arguments: list[Any] = [self.worker, self.epoch, self.serial + 1, stored, int(bool(redo))]
        arguments += [b"positions", r.pack_positions(positions), b"visits", visits]
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

    def _carry_out(self, redo: Redo) -> None:
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
