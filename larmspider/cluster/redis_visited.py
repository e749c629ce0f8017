"""The visited table in Redis: what every worker must know of a URL that is done, in 8.5 bytes.

    member(key, UrlState.STORED)      # an integer of 64 bits: 62 of the URL key, 2 of the state

Members fill sets of 500, one after another, which Redis keeps as plain arrays of integers
(``intset``, up to 512 members by default; 500 are 4,008 bytes, and 4,096 is a size in which its
allocator hands out memory). Only the owner of a block needs the table, and it reads the whole when
it takes the block, so there is no need to find a URL's set by its key.

Among URLs of one block two share their 62 bits with odds of n^2 / 2^63: 5e-5 at 20 million a block,
and then one of them is not fetched.
"""

from __future__ import annotations

from collections.abc import Sequence

from larmspider.frontier.storage.records import UrlState, Visit, pack_visit

BUCKET = 500
"""Members of a set."""

_STATES = (UrlState.STORED, UrlState.FAILED, UrlState.REFUSED)
_MIDDLE = 1 << 63

UNTOLD = {state: pack_visit(Visit(state), 0, "", 0) for state in _STATES}
"""Records of URLs of which this worker knows the state alone: others fetched them."""


def member(key: bytes, state: UrlState) -> int:
    """Of a URL key and a final state: -2**63 .. 2**63 - 1, as sets of integers hold."""
    return (int.from_bytes(key[4:12], "big") & ~3 | state - UrlState.STORED) - _MIDDLE


def compact(key: bytes) -> bytes:
    """8 bytes of a URL key; what member() keeps of it."""
    return (int.from_bytes(key[4:12], "big") & ~3).to_bytes(8, "big")


def state_of(number: int) -> UrlState:
    """The state in a member."""
    return _STATES[(number + _MIDDLE) & 3]


def compact_of(number: int) -> bytes:
    """The 8 bytes of the URL key in a member."""
    return ((number + _MIDDLE) & ~3).to_bytes(8, "big")


def buckets(total: int) -> int:
    """Sets that hold ``total`` members."""
    return -(-total // BUCKET)


def spread(total: int, members: Sequence[int]) -> list[tuple[int, Sequence[int]]]:
    """(bucket, members) for those that come after ``total`` others."""
    parts, at = [], 0
    while at < len(members):
        room = BUCKET - (total + at) % BUCKET
        parts.append(((total + at) // BUCKET, members[at : at + room]))
        at += room
    return parts
