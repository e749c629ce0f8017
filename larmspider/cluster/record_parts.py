"""Long values of a commit record, cut into parts that Redis takes one by one.

    split = Split.of({b"redo": log, b"visits": visits}, b"3f9a", limit=16 << 20)
    split.record                       # {b"redo": b"parts", b"visits": b"", b"parts": b"3f9a ..."}
    split.parts                        # {b"3f9a redo 0": b"...", b"3f9a redo 1": b"...", ...}
    names = part_names(record, id)     # {b"redo": [b"3f9a redo 0", ...]}

Redis refuses an argument longer than its proto-max-bulk-len. A long value therefore goes into the
hash ``log:<worker>`` before the commit record. One script still writes the record itself, so
a commit takes effect as a whole. A later commit deletes parts that belong to no record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PARTS = b"parts"
"""The field that lists the parts; also the value of ``redo`` for a log in parts."""


@dataclass(frozen=True, slots=True)
class Split:
    """``record``: fields of the commit record. ``parts``: fields of the separate hash."""

    record: dict[bytes, bytes]
    parts: dict[bytes, bytes]

    @classmethod
    def of(cls, values: Mapping[bytes, bytes], commit_id: bytes, limit: int) -> Split:
        """Cut the values that have more than ``limit`` bytes."""
        record, parts, counts = dict(values), dict[bytes, bytes](), list[bytes]()
        for name, value in values.items():
            if len(value) > limit:
                pieces = [value[at : at + limit] for at in range(0, len(value), limit)]
                parts |= dict(zip(_names(commit_id, name, len(pieces)), pieces, strict=True))
                counts.append(b"%b=%d" % (name, len(pieces)))
                record[name] = PARTS
        record[PARTS] = b" ".join((commit_id, *counts)) if counts else b""
        return cls(record, parts)


def part_names(record: Mapping[bytes, bytes]) -> dict[bytes, list[bytes]]:
    """The names of the parts of each long value."""
    commit_id, *counts = record.get(PARTS, b"").split() or [b""]
    split = [one.partition(b"=") for one in counts]
    return {name: list(_names(commit_id, name, int(count))) for name, _, count in split}


def _names(commit_id: bytes, name: bytes, count: int) -> Iterator[bytes]:
    return (b"%b %b %d" % (commit_id, name, at) for at in range(count))
