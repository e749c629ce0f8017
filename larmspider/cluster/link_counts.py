"""Links to URLs of other workers that are known already: how many to each, on their way out.

    counts.add([key, key])       # two more links
    counts.cut()                 # the batch ends; then once, or again after a failure:
    counts.of_batch()            # {key: 2}, in the mail of this commit
    counts.committed()           # that is in Redis

In an inbox they are messages of many URLs each: 20 bytes a URL, however many links there are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

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
