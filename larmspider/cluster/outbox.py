"""URLs that other workers own, on their way out, and those that others found, on their way in.

    mail.post(entries)       # leave with the next commit, in the inbox of their block
    mail.links.add(keys)     # so do counts of links to URLs that were posted before
    mail.take()              # what the last commit brought from the inboxes of own blocks
    mail.take_links()        # and the counts that came with it

An entry of an inbox is trimmed from it in the commit that it has become a part of. A link that is
on each of a site's pages is posted once in a while, not each time: the last ones are remembered.
Where the order counts links it is counted each time (link_counts.py).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from larmspider.cluster.commit import PartitionChanges, Step
from larmspider.cluster.redis_client import Command, Keys
from larmspider.frontier.storage import records
from larmspider.frontier.storage.records import QueuedUrl

# Links to URLs of other workers that are known already: how many to each, on their way out.
#
#     counts.add([key, key])       # two more links
#     counts.cut()                 # the batch ends; then once, or again after a failure:
#     counts.of_batch()            # {key: 2}, in the mail of this commit
#     counts.committed()           # that is in Redis
#
# In an inbox they are messages of many URLs each: 20 bytes a URL, however many links there are.

MOST_LINKS = 0xFFFFFFFF
"""What four bytes count to."""
_MARK = b"\xff" * 16  # where an entry has the key of its URL; odds of 2^-128 that one has this
_URLS = 500  # of one message: 10 KB
_COUNT = struct.Struct(">16sI")


class LinkCounts:
    """By URL key; for orders that count links, empty under all others."""

    def __init__(self) -> None:
        self._new: dict[bytes, int] = {}
        self._ended: dict[bytes, int] = {}  # of the batch that cut() ended
        self._tried: dict[bytes, int] = {}  # of these, what a commit tried to write

    def __len__(self) -> int:
        """URLs that wait for a commit."""
        return len(self._new) + len(self._ended)

    def add(self, keys: Iterable[bytes]) -> None:
        """One more link to each."""
        _add(self._new, ((key, 1) for key in keys))

    def cut(self) -> None:
        """The batch ends."""
        _add(self._ended, self._new.items())
        self._new = {}

    def of_batch(self) -> Mapping[bytes, int]:
        """What was counted before the cut."""
        self._tried = dict(self._ended)
        return self._tried

    def committed(self) -> None:
        """What of_batch() gave last is in Redis."""
        for key, number in self._tried.items():
            left = self._ended.pop(key) - number
            if left:
                self._ended[key] = left
        self._tried = {}


def _add(to: dict[bytes, int], more: Iterable[tuple[bytes, int]]) -> None:
    for key, number in more:
        to[key] = min(to.get(key, 0) + number, MOST_LINKS)


def pack_links(counts: Mapping[bytes, int]) -> Iterator[bytes]:
    """As messages for the inbox of a block."""
    packed = [_COUNT.pack(key, number) for key, number in counts.items()]
    for at in range(0, len(packed), _URLS):
        yield b"".join((_MARK, *packed[at : at + _URLS]))


def unpack_links(message: bytes) -> dict[bytes, int] | None:
    """The reverse of pack_links(), of one message; None where it is an entry."""
    if not message.startswith(_MARK):
        return None
    return dict(_COUNT.iter_unpack(message[len(_MARK) :]))


REMEMBERED = 65_536
"""To twice as many posted URLs, 16 bytes of key each: some 10 MB at most."""
FETCHED = 1_000
"""Messages of one inbox that a commit brings."""
Links: TypeAlias = dict[bytes, int]
"""URL key -> number of links."""


class Outbox:
    """``new`` belongs to the batch under way, ``ended`` to the one that cut() ended."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()
        self._new: list[QueuedUrl] = []
        self._ended: list[QueuedUrl] = []
        self.links = LinkCounts()
        self._brought: list[tuple[int, QueuedUrl | Links]] = []  # by a thread, until settle()
        self._arrived: list[tuple[int, QueuedUrl | Links]] = []
        self._counted: list[Links] = []
        self._fetched: dict[int, int] = {}  # messages in Redis' inboxes that were brought already
        self._trim_new: dict[int, int] = {}
        self._trim_ended: dict[int, int] = {}
        self._tried: tuple[int, dict[int, int]] = 0, {}  # of these, what a commit tried to write

    def __len__(self) -> int:
        """Entries that wait for a commit, and URLs with links that do."""
        return self.entries + len(self.links)

    @property
    def entries(self) -> int:
        """Of them, those that are whole entries."""
        return len(self._new) + len(self._ended) + sum(self._trim_new.values())

    # out

    def post(self, entries: Iterable[QueuedUrl], *, count: bool = False) -> int:
        """How many of them were not posted lately; ``count``: a link to each of the others is."""
        before = len(self._new)
        for entry in entries:
            if count and self.posted_lately(entry.key):
                self.links.add((entry.key,))
            if entry.key not in self._young:
                if entry.key not in self._old:
                    self._new.append(entry)
                self._remember(entry.key)
        return len(self._new) - before

    def post_again(self, entries: Iterable[QueuedUrl]) -> None:
        """Also those that were posted lately: they came back, and would be in no inbox any more."""
        for entry in entries:
            self._new.append(entry)
            self._remember(entry.key)

    def _remember(self, key: bytes) -> None:
        self._young.add(key)
        if len(self._young) >= REMEMBERED:
            self._old, self._young = self._young, set()

    def cut(self) -> None:
        """The batch ends."""
        self._ended += self._new
        self._new = []
        self.links.cut()
        for block, number in self._trim_new.items():
            self._trim_ended[block] = self._trim_ended.get(block, 0) + number
        self._trim_new = {}

    def steps(self, counter: bytes, first: int) -> list[Step]:
        """What was posted before the cut, in steps numbered from ``first`` on."""
        by_block: dict[int, list[bytes]] = {}
        self._tried = len(self._ended), dict(self._trim_ended)
        for entry in self._ended:
            packed = records.pack_entry(entry)
            by_block.setdefault(self._keys.block_of_key(entry.key), []).append(packed)
        links: dict[int, Links] = {}
        for key, number in self.links.of_batch().items():
            links.setdefault(self._keys.block_of_key(key), {})[key] = number
        for block, counts in links.items():  # behind the entries that they may be of
            by_block.setdefault(block, []).extend(pack_links(counts))
        steps: list[Step] = []
        for block, messages in by_block.items():
            changes = PartitionChanges(self._keys.block("owner", block))
            changes.put("RPUSH", self._keys.block("inbox", block), *messages)
            steps += changes.steps(block, b"", counter, first + len(steps))
        return steps

    def trims(self) -> dict[int, int]:
        """Of each inbox: how many of its first messages the batch that ended holds."""
        return dict(self._trim_ended)

    def committed(self) -> None:
        """What steps() and trims() gave last is in Redis."""
        posted, trims = self._tried
        del self._ended[:posted]
        self.links.committed()
        for block, number in trims.items():
            if block in self._fetched:
                self._fetched[block] -= number
            if block in self._trim_ended:
                self._trim_ended[block] -= number
        self._trim_ended = {block: number for block, number in self._trim_ended.items() if number}
        self._tried = 0, {}

    # in

    def ask(self, blocks: Sequence[int]) -> list[Command]:
        """Commands that bring what is new in the inboxes of these blocks; see bring()."""
        commands: list[Command] = []
        for block in blocks:
            start = self._fetched.get(block, 0)
            inbox = self._keys.block("inbox", block)
            commands.append(("LRANGE", inbox, start, start + FETCHED - 1))
        return commands

    def bring(self, blocks: Sequence[int], answers: Sequence[Sequence[bytes]]) -> None:
        """The answers to ask()."""
        for block, messages in zip(blocks, answers, strict=True):
            for packed in messages:
                links = unpack_links(packed)
                self._brought.append(
                    (block, records.unpack_entry(packed) if links is None else links)
                )
            if messages:
                self._fetched[block] = self._fetched.get(block, 0) + len(messages)

    def settle(self) -> None:
        """The commit has ended."""
        self._arrived += self._brought
        self._brought = []

    def take(self) -> list[QueuedUrl]:
        """What was brought; the next commit trims it from the inboxes."""
        arrived, self._arrived = self._arrived, []
        for block, _ in arrived:
            self._trim_new[block] = self._trim_new.get(block, 0) + 1
        self._counted += [found for _, found in arrived if isinstance(found, dict)]
        return [found for _, found in arrived if isinstance(found, QueuedUrl)]

    def take_links(self) -> Links:
        """How many links others have found to which URLs; to be asked after each take()."""
        total: Counter[bytes] = Counter()
        for counts in self._counted:
            total.update(counts)
        self._counted = []
        return total

    def give_up(self, blocks: frozenset[int]) -> None:
        """What came for these blocks waits in Redis for the next owner."""
        self._arrived = [(block, found) for block, found in self._arrived if block not in blocks]
        for block in blocks:
            self._fetched.pop(block, None)
            self._trim_new.pop(block, None)
            self._trim_ended.pop(block, None)

    def posted_lately(self, key: bytes) -> bool:
        """Whether its owner was told of this URL."""
        return key in self._young or key in self._old
