"""What the index keeps, packed: counters and positions as big-endian numbers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

CARRIERS = 50
"""Pages whose place is kept for each target; of a menu's links the first 50 of 10,000 pages."""

_COUNT = struct.Struct(">I")
_PLACE = 6
"""Bytes of a position in a log: up to 256 TB."""
_HOST = struct.Struct(">QQ")
_RESULT = struct.Struct(">QQQI")


class Target(NamedTuple):
    """``pages`` that carry a link to it, ``places`` of the first `CARRIERS` links in links.log."""

    pages: int
    places: tuple[int, ...]


def pack_target(pages: int, places: Sequence[int], earlier: bytes | None = None) -> bytes:
    """``places`` come behind those of an ``earlier`` record, as far as there is room."""
    known = earlier[_COUNT.size :] if earlier else b""
    room = CARRIERS - len(known) // _PLACE
    more = [place.to_bytes(_PLACE, "big") for place in places[:room]]
    return b"".join((_COUNT.pack(min(pages, 0xFFFFFFFF)), known, *more))


def unpack_target(data: bytes) -> Target:
    places = (
        int.from_bytes(data[at : at + _PLACE], "big") for at in range(_COUNT.size, len(data), 6)
    )
    return Target(_COUNT.unpack_from(data)[0], tuple(places))


def pages_of(data: bytes) -> int:
    """The first half of unpack_target()."""
    pages: int = _COUNT.unpack_from(data)[0]
    return pages


def pack_place(place: int) -> bytes:
    return place.to_bytes(8, "big")


def unpack_place(data: bytes) -> int:
    return int.from_bytes(data, "big")


class LinkedHost(NamedTuple):
    """``links`` counts pairs of a page and a target once; ``from_others``: on other hosts."""

    links: int
    from_others: int
    name: str


def pack_host(host: LinkedHost) -> bytes:
    return _HOST.pack(host.links, host.from_others) + host.name.encode("utf-8", "replace")


def unpack_host(data: bytes) -> LinkedHost:
    links, from_others = _HOST.unpack_from(data)
    return LinkedHost(links, from_others, data[_HOST.size :].decode())


class Fetches(NamedTuple):
    """Of one host with one result: how often, their bytes, their milliseconds, the longest."""

    times: int = 0
    bytes: int = 0
    millis: int = 0
    longest: int = 0

    def plus(self, other: Fetches) -> Fetches:
        return Fetches(
            self.times + other.times,
            self.bytes + other.bytes,
            self.millis + other.millis,
            max(self.longest, other.longest),
        )


def pack_fetches(fetches: Fetches) -> bytes:
    return _RESULT.pack(*fetches[:3], min(fetches.longest, 0xFFFFFFFF))


def unpack_fetches(data: bytes) -> Fetches:
    return Fetches(*_RESULT.unpack(data))
