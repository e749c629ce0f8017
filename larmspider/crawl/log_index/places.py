"""Where a line lies in the logs of many workers, as one number: whose log, and how far in it.

>>> place_of(2, 81_264) == 2 * 2**38 + 81_264, shard_and_offset(place_of(2, 81_264))
(True, (2, 81264))

The first worker's places are those of a crawl of one process. Six bytes hold 1,024 workers with
logs of 256 GB each.
"""

from __future__ import annotations

from pathlib import PurePath

OFFSET_BITS = 38
LOG_BYTES_MOST = 1 << OFFSET_BITS
SHARDS_MOST = 1 << 10
OWN = "."
"""The shard of a crawl of one process: the directory itself."""


def place_of(shard: int, offset: int) -> int:
    """``shard`` is a number in the index's state."""
    return shard << OFFSET_BITS | offset


def shard_and_offset(place: int) -> tuple[int, int]:
    """The reverse."""
    return place >> OFFSET_BITS, place & (LOG_BYTES_MOST - 1)


def shard_of(name: str) -> str:
    """``atlas-1`` of the log ``atlas-1/links.log``."""
    return str(PurePath(name).parent)


def kind_of(name: str) -> str:
    """``links.log`` of the log ``atlas-1/links.log``."""
    return PurePath(name).name


def key_in(shard: int, key: bytes) -> bytes:
    """The key of what each worker may have of a URL."""
    return key + shard.to_bytes(2, "big") if shard else key
