"""What a batch changes, as commands to Redis by block, in a form that anybody can carry out later.

    changes = BlockChanges(owner)
    changes.put("HSET", key, field, value)
    redo = Redo([*changes.steps(17, token, b"applied:w1", first)])
    data = redo.pack()        # in the commit record; of Redo.unpack(data) each step is a command()

A step is one call of lua/apply.lua: some changes in one block, done once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

from larmspider.cluster.redis_scripts import APPLY, Command, call

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
class Redo:
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
    def unpack(cls, data: bytes) -> Redo:
        """The reverse of pack()."""
        return cls([Step(*row) for row in msgpack.unpackb(data, raw=True, use_list=True)])


@dataclass(slots=True)
class BlockChanges:
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
