"""Outgoing URLs, which other workers own, and incoming URLs, which other workers found.

    outbox.forward(entries)     # with the next commit into the inboxes of their partitions
    outbox.take()               # the entries that the last commit read from own inboxes

A message is trimmed from its inbox by the commit that makes it durable elsewhere. The trim names
the read messages, so that an inbox that has gone back keeps its newer messages, and is read again.
A link on each page of a site is forwarded only once in a while: the last URLs are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha1
from typing import Any, NamedTuple, TypeAlias

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import Command
from larmspider.cluster.write_ahead_log import PartitionChanges, Step
from larmspider.frontier.storage import records
from larmspider.frontier.storage.records import QueuedUrl

REMEMBERED = 65_536
"""Forwarded URLs that are remembered: at least this, at most twice this, 16 bytes of key each.
Takes about 10 MB."""
FETCHED = 1_000
"""Messages that a commit reads of one inbox."""
# an entry with one of these in place of its URL's key; a key equals it with odds of 2^-128
_AGAIN = b"\xff" * 15 + b"\xfe"  # the entry is queued again where it was refused
_DOUBTED = b"\xff" * 15 + b"\xfd"  # the page is stored again at its next visit


class Part(NamedTuple):
    """Messages that were read together from the front of an inbox: how many, and the SHA-1 of all
    in hex."""

    number: int
    digest: bytes


_Read: TypeAlias = tuple[int, Part, list[QueuedUrl]]


def _pack(entry: QueuedUrl) -> bytes:
    packed = records.pack_entry(entry)
    return (_AGAIN if entry.again else _DOUBTED if entry.doubted else b"") + packed


def _unpack(message: bytes) -> QueuedUrl:
    again, doubted = message.startswith(_AGAIN), message.startswith(_DOUBTED)
    entry = records.unpack_entry(message[16 if again or doubted else 0 :])
    entry.again, entry.doubted = again, doubted
    return entry


def _digest(messages: Sequence[bytes]) -> bytes:
    return sha1(b"".join(messages), usedforsecurity=False).hexdigest().encode()


def _number(parts: Mapping[int, Sequence[Part]]) -> int:
    return sum(part.number for of_inbox in parts.values() for part in of_inbox)


class Outbox:
    """``_new`` belongs to the batch under way, ``_sealed`` to the batch that seal() ended."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._young: set[bytes] = set()  # keys of URLs forwarded lately
        self._old: set[bytes] = set()
        self._new: list[QueuedUrl] = []
        self._sealed: list[QueuedUrl] = []
        self._received: list[_Read] = []  # filled by a thread, until deliver()
        self._delivered: list[_Read] = []
        self._fetched: dict[int, int] = {}  # messages in the inboxes in Redis that were read
        self._trim_new: dict[int, list[Part]] = {}
        self._trim_sealed: dict[int, list[Part]] = {}
        self._tried: tuple[int, dict[int, list[Part]]] = 0, {}  # the last attempt of a commit
        self._gone_back: set[int] = set()  # inboxes in Redis that are not as they were read
        self._marked: set[int] = set()  # inboxes in which there may be more
        self._last_mark = 0
        self._all_marked = False

    def __len__(self) -> int:
        """Entries that wait for a commit."""
        return len(self._new) + len(self._sealed) + _number(self._trim_new)

    @property
    def sealed(self) -> int:
        """Waiting entries that are in the batch that seal() ended."""
        return len(self._sealed)

    # out

    def forward(self, entries: Iterable[QueuedUrl]) -> int:
        """Forward the entries that were not forwarded lately. Returns their number."""
        before = len(self._new)
        for entry in entries:
            if entry.key not in self._young:
                if entry.key not in self._old:
                    self._new.append(entry)
                self._remember(entry.key)
        return len(self._new) - before

    def forward_again(self, entries: Iterable[QueuedUrl]) -> None:
        """Forward these even if they were forwarded lately: they came back and are no longer in an
        inbox, or have to be queued again if they were refused."""
        for entry in entries:
            self._new.append(entry)
            self._remember(entry.key)

    def forwarded_lately(self, key: bytes) -> bool:
        return key in self._young or key in self._old

    def _remember(self, key: bytes) -> None:
        self._young.add(key)
        if len(self._young) >= REMEMBERED:
            self._old, self._young = self._young, set()

    def seal(self) -> None:
        """End the batch."""
        self._sealed += self._new
        self._new = []
        for partition, parts in self._trim_new.items():
            self._trim_sealed.setdefault(partition, []).extend(parts)
        self._trim_new = {}

    def steps(self, counter: bytes, first: int) -> list[Step]:
        """The forwarded URLs of the sealed batch, in steps numbered from ``first`` on."""
        messages: dict[int, list[bytes]] = {}
        self._tried = len(self._sealed), self.trims()
        for entry in self._sealed:
            partition = self._keys.partition_of_key(entry.key)
            messages.setdefault(partition, []).append(_pack(entry))
        steps: list[Step] = []
        for partition, packed_messages in messages.items():
            changes = PartitionChanges(self._keys.partition("owner", partition))
            changes.put("RPUSH", self._keys.partition("inbox", partition), *packed_messages)
            steps += changes.steps(partition, b"", counter, first + len(steps))
        return steps

    def trims(self) -> dict[int, list[Part]]:
        """The first messages of each inbox, which the sealed batch holds."""
        return {partition: list(parts) for partition, parts in self._trim_sealed.items()}

    def went_back(self, partition: int) -> None:
        """Redis came back with an older inbox: the inbox did not begin with the last messages of
        steps() and trims(). It is read again."""
        self._gone_back.add(partition)

    def committed(self) -> None:
        """Redis has the last steps() and trims()."""
        forwarded, trims = self._tried
        del self._sealed[:forwarded]
        for partition, parts in trims.items():
            if partition in self._fetched:
                self._fetched[partition] -= sum(part.number for part in parts)
            if partition in self._trim_sealed:
                del self._trim_sealed[partition][: len(parts)]
        for partition in self._gone_back:
            for table in (self._fetched, self._trim_new, self._trim_sealed):
                table.pop(partition, None)
        self._marked |= self._gone_back
        self._trim_sealed = {at: parts for at, parts in self._trim_sealed.items() if parts}
        self._tried, self._gone_back = (0, {}), set()

    # in

    def marks_command(self) -> Command:
        """The command that asks which inboxes were filled since the last time; its answer is for
        note_marks()."""
        mail = self._keys.crawl("mail")
        return ("ZRANGEBYSCORE", mail, b"(%d" % self._last_mark, b"+inf", b"WITHSCORES")

    def note_marks(self, answer: Sequence[Any]) -> None:
        flat = [word for row in answer for word in (row if isinstance(row, list) else [row])]
        for partition, number in zip(flat[::2], flat[1::2], strict=True):  # in both protocols
            self._marked.add(int(partition))
            self._last_mark = max(self._last_mark, int(float(number)))

    def mark(self, partitions: Iterable[int]) -> None:
        """These inboxes may have messages: they came to this worker, or were looked at."""
        self._marked.update(partitions)

    def mark_all(self) -> None:
        """Redis was started again, and may have forgotten marks. From any thread."""
        self._all_marked = True

    def marked(self, owned: Iterable[int]) -> list[int]:
        """The own inboxes to read."""
        if self._all_marked:
            self._all_marked = False
            self._marked.update(owned)
        self._marked.intersection_update(owned)
        return sorted(self._marked)

    def read_commands(self, partitions: Sequence[int]) -> list[Command]:
        """Commands that read new messages in these inboxes; their answers are for received()."""
        commands: list[Command] = []
        for partition in partitions:
            start = self._fetched.get(partition, 0)
            inbox = self._keys.partition("inbox", partition)
            commands.append(("LRANGE", inbox, start, start + FETCHED - 1))
        return commands

    def received(self, partitions: Sequence[int], answers: Sequence[Sequence[bytes]]) -> None:
        """May run in a thread; deliver() follows on the event loop."""
        for partition, messages in zip(partitions, answers, strict=True):
            if len(messages) < FETCHED:
                self._marked.discard(partition)
            if not messages:
                continue
            part = Part(len(messages), _digest(messages))
            unpacked = [_unpack(message) for message in messages]
            self._received.append((partition, part, unpacked))
            self._fetched[partition] = self._fetched.get(partition, 0) + part.number

    def deliver(self) -> None:
        """Received messages may be taken."""
        self._delivered += self._received
        self._received = []

    def take(self) -> list[QueuedUrl]:
        """The entries that were delivered. The next commit trims them from the inboxes."""
        delivered, self._delivered = self._delivered, []
        entries: list[QueuedUrl] = []
        for partition, part, messages in delivered:
            self._trim_new.setdefault(partition, []).append(part)
            entries += messages
        return entries

    def give_up(self, partitions: frozenset[int]) -> None:
        """Messages for these partitions stay in Redis for the next owner."""
        self._delivered = [read for read in self._delivered if read[0] not in partitions]
        for partition in partitions:
            self._fetched.pop(partition, None)
            self._trim_new.pop(partition, None)
            self._trim_sealed.pop(partition, None)
