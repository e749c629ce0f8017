"""Records of URLs in Redis: an entry while queued, one integer of a set once finished.

    pack_queued(links, place, packed)         # a value of the hash ``entries``
    member(key, UrlState.STORED)              # a member of the visited table
    pack_pages([("http://wiki/FAQ.html", 2, fingerprint)])    # an element of the list ``pages``

The visited table has the facts about a finished URL that every owner needs, in 8.5 bytes: an
integer of 64 bits, 62 of the URL key and 2 of the state. Members fill sets of 500, one after
another, which Redis keeps as plain arrays of integers (``intset``, up to 512 members by default;
500 are 4,008 bytes, and 4,096 is a size in which its allocator hands out memory). A new owner reads
the whole table of its partition, so the set of a URL never has to be found by its key. Two URLs of
a partition share their 62 bits with odds of n^2 / 2^63, 5e-5 at 20 million; then one of them is not
fetched.

A page that may stand for other spellings of its URL is also in the list ``pages``: URL, depth and
fingerprint, compressed, an element for the stored pages of a commit. A new owner makes the keys and
the table of canonical forms from it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgpack

from larmspider.frontier.storage import records
from larmspider.frontier.storage.records import FetchRecord, UrlState

BUCKET = 500
"""Members of a set of the visited table."""
SERIAL_BITS = 37
"""Bits of a score's 53, beside 16 for the priority: 137 thousand million places in a crawl."""
_STATES = (UrlState.STORED, UrlState.FAILED, UrlState.REFUSED)
_MIDDLE = 1 << 63
_QUEUED = struct.Struct(">IB")
_LENGTH = struct.Struct(">I")

StoredPage: TypeAlias = tuple[str, int, bytes]
"""URL, depth, fingerprint of 8 bytes."""


class Outdated(NamedTuple):
    """A page in the directory of a worker that no longer counts if it was stored there before
    ``time``: another worker has a newer version, or has removed the page."""

    key: bytes
    url: str
    time: float


GONE = bytes(8)
"""The fingerprint of a page that no longer stands for another page."""

STATE_ONLY = {state: records.pack_visit(FetchRecord(state), 0) for state in _STATES}
"""Records of URLs that another worker fetched: their state is all that this worker knows."""


def member(key: bytes, state: UrlState) -> int:
    """A number from -2**63 to 2**63 - 1, for a URL key and a final state."""
    return (int.from_bytes(key[4:12], "big") & ~3 | state - UrlState.STORED) - _MIDDLE


def compact(key: bytes) -> bytes:
    """The 8 bytes of a URL key that member() keeps."""
    return (int.from_bytes(key[4:12], "big") & ~3).to_bytes(8, "big")


def state_of(number: int) -> UrlState:
    """The state in a member()."""
    return _STATES[(number + _MIDDLE) & 3]


def compact_of(number: int) -> bytes:
    """The 8 bytes of the URL key in a member()."""
    return ((number + _MIDDLE) & ~3).to_bytes(8, "big")


def buckets(total: int) -> int:
    """How many sets hold ``total`` members."""
    return -(-total // BUCKET)


def spread(total: int, members: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """(bucket, members) for members that come after ``total`` others."""
    at = 0
    while at < len(members):
        room = BUCKET - (total + at) % BUCKET
        yield (total + at) // BUCKET, members[at : at + room]
        at += room


def score(place: bytes) -> int:
    """The score that orders queue places in a sorted set: by priority and age, or by time."""
    if records.run_of(place) == records.DELAYED:
        return int.from_bytes(place[9:15], "big")
    return int.from_bytes(place[9:11], "big") << SERIAL_BITS | records.serial_of(place)


def pack_queued(links: int, place: bytes, packed: bytes) -> bytes:
    """The value in ``entries``: number of links to the URL, place in the queue, packed entry."""
    return _QUEUED.pack(links, len(place)) + place + packed


def unpack_queued(data: bytes) -> tuple[bytes, int, bytes]:
    """Place, number of links, packed entry."""
    links, length = _QUEUED.unpack_from(data)
    return data[5 : 5 + length], links, data[5 + length :]


def pack_visits(visits: Iterable[tuple[bytes, bytes]]) -> bytes:
    """URL keys and records of finished URLs, for the commit record."""
    return b"".join(key + _LENGTH.pack(len(record)) + record for key, record in visits)


def unpack_visits(data: bytes) -> list[tuple[bytes, bytes]]:
    visits, at = [], 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at + 16)
        visits.append((data[at : at + 16], data[at + 20 : at + 20 + length]))
        at += 20 + length
    return visits


def pack_outdated(pages: Iterable[Outdated]) -> bytes:
    packed: bytes = msgpack.packb(list(pages))
    return packed


def unpack_outdated(data: bytes) -> list[Outdated]:
    return [Outdated(*page) for page in msgpack.unpackb(data)]


def pack_pages(pages: Iterable[StoredPage]) -> bytes:
    """Neighbours share most of their URLs: 23 bytes each in 1,000 of the JDK."""
    urls, depths, fingerprints = zip(*sorted(pages), strict=True)
    columns = [[url.encode("utf-8", "surrogatepass") for url in urls], depths]
    return zlib.compress(msgpack.packb([*columns, b"".join(fingerprints)]), 9)


def unpack_pages(data: bytes) -> Iterator[StoredPage]:
    urls, depths, fingerprints = msgpack.unpackb(zlib.decompress(data))
    for number, (url, depth) in enumerate(zip(urls, depths, strict=True)):
        at = 8 * number
        yield url.decode("utf-8", "surrogatepass"), depth, fingerprints[at : at + 8]
