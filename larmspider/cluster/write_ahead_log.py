"""The changes of a commit in Redis, as commands that any worker can apply later.

    changes = PartitionChanges(owner)
    changes.put("HSET", key, field, value)
    log = [*changes.steps(17, token, b"applied:w1", first)]
    data = pack_log(log)                              # in the commit record
    [step.command(record, serial, commit_id) for step in unpack_log(data)]

A step is one call of lua/apply.lua: changes in one partition, made once even if sent several times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

from larmspider.cluster.redis_client import APPLY, Command, call

STEP_WORDS = 2_000
"""Arguments in one step, about: Redis does nothing else while it runs the step, some 1 ms."""
STEP_BYTES = 256 << 10
"""Bytes of the arguments in one step, about. The smallest proto-max-bulk-len that Redis takes is
1 MB, and the commands of a step are one argument; one word alone may be longer."""
_COMMAND_WORDS = 200  # words in one command; Lua can unpack some 8,000
_PAIRED = ("HSET", "ZADD")  # commands whose words come in twos


@dataclass(frozen=True, slots=True)
class Step:
    """``keys[0]`` is the owner record of the partition; commands name the others from 2 on.

    ``token`` is the owner's fencing token, b"" for URLs forwarded to another owner; ``counter``
    is the field in which the partition keeps the last ``number`` that it applied.
    """

    partition: int
    token: bytes
    counter: bytes
    number: int
    keys: list[bytes]
    commands: list[list[Any]]

    def command(self, record: bytes, serial: int, commit_id: bytes) -> Command:
        """``record`` is the key of the commit record, ``serial`` and ``commit_id`` identify the
        commit. If Redis has lost this commit, the step answers FORGOTTEN. Without an id only the
        counter is compared."""
        packed = msgpack.packb(self.commands, use_bin_type=False)
        keys = [*self.keys, record] if commit_id else self.keys
        arguments = [self.token, self.counter, self.number, packed, serial, commit_id]
        return call(APPLY, keys, arguments)


def pack_log(steps: Iterable[Step]) -> bytes:
    rows = [[s.partition, s.token, s.counter, s.number, s.keys, s.commands] for s in steps]
    packed: bytes = msgpack.packb(rows, use_bin_type=False)
    return packed


def unpack_log(data: bytes) -> list[Step]:
    return [Step(*row) for row in msgpack.unpackb(data, raw=True, use_list=True)]


@dataclass(slots=True)
class PartitionChanges:
    """The commands of one partition; steps() makes calls of bearable length of them."""

    owner: bytes
    _lists: dict[tuple[str, bytes], list[Any]] = field(default_factory=dict)
    _last: list[tuple[str, bytes, list[Any]]] = field(default_factory=list)

    def put(self, command: str, key: bytes, *words: Any) -> None:
        """Add ``HSET key field value`` or ``SADD key member``. Commands with the same name and key
        are joined."""
        self._lists.setdefault((command, key), []).extend(words)

    def put_last(self, command: str, key: bytes, *words: Any) -> None:
        """A command that has to follow all that is put()."""
        self._last.append((command, key, list(words)))

    def __bool__(self) -> bool:
        return bool(self._lists or self._last)

    def _pieces(self) -> Iterator[tuple[str, bytes, Sequence[Any], int]]:
        """Command, key, words, and the bytes of the words."""
        for (command, key), words in self._lists.items():
            for at in range(0, len(words), _COMMAND_WORDS):
                piece = words[at : at + _COMMAND_WORDS]
                size = sum(map(len, piece))
                if size <= STEP_BYTES:
                    yield command, key, piece, size
                    continue
                unit = 1 + (command in _PAIRED)
                for first in range(0, len(piece), unit):
                    few = piece[first : first + unit]
                    yield command, key, few, sum(map(len, few))
        for command, key, words in self._last:
            yield command, key, words, sum(map(len, words))

    def steps(self, partition: int, token: bytes, counter: bytes, first: int) -> Iterator[Step]:
        """Numbered from ``first`` on."""
        keys: dict[bytes, int] = {}  # key -> its number, in Lua
        commands: list[list[Any]] = []
        words = size = 0
        for command, key, piece, more in self._pieces():
            if words and (words + len(piece) > STEP_WORDS or size + more > STEP_BYTES):
                yield Step(partition, token, counter, first, [self.owner, *keys], commands)
                first += 1
                keys, commands, words, size = {}, [], 0, 0
            commands.append([command, keys.setdefault(key, len(keys) + 2), *piece])
            words += len(piece) + 1
            size += more
        if commands:
            yield Step(partition, token, counter, first, [self.owner, *keys], commands)
