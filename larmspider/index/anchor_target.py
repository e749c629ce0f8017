"""What is known of the links to one page: their texts, and what of it the index has.

How a text weighs. A navigation bar says "Home" on ten thousand pages, one colleague says "remote
access" once. So a text is repeated 1 + log2(links) times, at most `COPIES_LIMIT`: the bar speaks
4 times as loud as the colleague, not 10,000 times. And a text that many different targets share
("next", "index") needs no rule: BM25 weighs each word by its rarity among the documents' anchors.

When a page is due. A record remembers how many copies its page was indexed with. It is *dirty* when
that has changed and *due* when it has doubled; 256 copies are the most there can be, so being due
costs a page at most 9 more rounds, however many links point to it::

    target = AnchorTarget("http://wiki.example/vpn", indexed=1)
    target.merge({"remote access": 2})
    target.texts(), target.due_state()     # ["remote access", "remote access"], DUE
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

TEXTS_LIMIT = 64
"""Distinct texts kept for a target; later ones are dropped."""
TEXTS_LIMIT_BYTES = 2_048
"""UTF-8 bytes of all texts of a target."""
TEXT_LIMIT = 128
"""A longer text is a paragraph that someone made a link of; it is dropped. In characters."""
COPIES_LIMIT = 4
"""Copies of one text in the index, reached at `_COUNT_LIMIT` links; beyond it nobody counts."""
_COUNT_LIMIT = 1 << (COPIES_LIMIT - 1)

CLEAN, DIRTY, DUE = 0, 1, 2

_HEADER = struct.Struct("<BH")  # state, copies indexed
NOT_INDEXED = 0xFFFF


@dataclass(slots=True)
class AnchorTarget:
    """A record: header, then UTF-8 lines: the canonical URL, then text and count in turn."""

    normalized: str
    state: int = CLEAN
    indexed: int = NOT_INDEXED
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def decode(cls, record: bytes) -> AnchorTarget:
        state, indexed = _HEADER.unpack_from(record)
        lines = record[_HEADER.size :].decode().split("\n")
        return cls(
            lines[0], state, indexed, dict(zip(lines[1::2], map(int, lines[2::2]), strict=True))
        )

    def encode(self) -> bytes:
        lines = [self.normalized]
        for text, count in self.counts.items():
            lines += (text, str(count))
        return _HEADER.pack(self.state, self.indexed) + "\n".join(lines).encode()

    def merge(self, texts: Mapping[str, int]) -> bool:
        """Take in new texts; True if anything changed."""
        changed = False
        room = TEXTS_LIMIT_BYTES - sum(len(text.encode()) for text in self.counts)
        for text, count in texts.items():
            known = self.counts.get(text)
            if known is None:
                room_left = room - len(text.encode())
                if len(self.counts) >= TEXTS_LIMIT or room_left < 0:
                    continue
                room, known = room_left, 0
            if known < _COUNT_LIMIT:
                self.counts[text] = min(_COUNT_LIMIT, known + count)
                changed = True
        return changed

    def copies(self) -> int:
        # n.bit_length() is 1 + floor(log2(n))
        return sum(count.bit_length() for count in self.counts.values())

    def texts(self) -> list[str]:
        return [text for text, count in self.counts.items() for _ in range(count.bit_length())]

    def due_state(self) -> int:
        if self.indexed == NOT_INDEXED:
            return CLEAN
        copies = self.copies()
        if copies == self.indexed:
            return CLEAN
        return DUE if copies >= max(1, 2 * self.indexed) else DIRTY
