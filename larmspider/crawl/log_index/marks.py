"""Is this log still the one that was read up to a position? The bytes before it are compared."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

_BYTES = 256


def mark_of(log: Path, position: int) -> str:
    """Of the bytes before ``position``; "" where there is no such log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, position - _BYTES))
            before = file.read(position - file.tell())
    except FileNotFoundError:
        return ""
    return blake2b(before, digest_size=16).hexdigest()


def marks(state: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Each log of an index's state: name, position, mark."""
    for name, position in state["positions"].items():
        yield name, position, state["marks"][name]
