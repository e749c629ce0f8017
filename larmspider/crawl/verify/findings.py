"""The damage that a check of a crawl's directory has found, and its remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Say: TypeAlias = Callable[[str, int, int], object]
"""Called with the name of the check, the done part and the whole."""

MOST_NAMED = 1_000
"""Damages of one file that are listed; further ones are counted."""


class Damage(NamedTuple):
    """``at``: the offset of the damage in the file, None for the whole file. ``mend``: the command
    that mends the damage if --repair does not."""

    file: Path
    what: str
    at: int | None = None
    url: str = ""
    mend: str = ""

    def __str__(self) -> str:
        at = "" if self.at is None else f", byte {self.at:,}"
        url = f" ({self.url})" if self.url else ""
        mend = f"; {self.mend}" if self.mend else ""
        return f"{self.file}{at}: {self.what}{url}{mend}"

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"file": str(self.file)}


@dataclass
class Findings:
    """The findings of one directory.

    due         URLs of pages to be fetched again, by key
    holes       where lines of a log are damaged
    short       files that lack committed bytes, and their lengths
    warc_short  WARC files that lack their end: the end of their last whole record, and their length
    warc_lost   the beginnings of unreadable records and their sizes, by WARC file; size 0: gone
    gone        files to remove
    tails       logs that are longer than the last run left them, and their lengths then
    unsummed    files whose checksums no longer fit
    manifest    crawl.json as it should be
    restored    files of rules, and where to find them
    rewritten   small files, and what the last run left in them
    foreign     files with checksums of their own that are whole, and not as the last run left them
    strange     WARC indexes that are not as the last run left them
    cdxj        WARC files whose indexes are written again
    """

    path: Path
    damages: list[Damage] = field(default_factory=list)
    due: dict[bytes, str] = field(default_factory=dict)
    awaited: dict[bytes, str] = field(default_factory=dict)
    """Damaged pages that an earlier repair has made due."""
    holes: dict[Path, list[tuple[int, int]]] = field(default_factory=dict)
    short: dict[Path, int] = field(default_factory=dict)
    warc_short: dict[Path, tuple[int, int]] = field(default_factory=dict)
    warc_lost: dict[Path, dict[int, int]] = field(default_factory=dict)
    gone: list[Path] = field(default_factory=list)
    tails: dict[Path, int] = field(default_factory=dict)
    unsummed: list[Path] = field(default_factory=list)
    manifest: dict[str, Any] | None = None
    restored: dict[Path, Path] = field(default_factory=dict)
    rewritten: dict[Path, bytes] = field(default_factory=dict)
    foreign: set[Path] = field(default_factory=set)
    strange: set[Path] = field(default_factory=set)
    cdxj: set[Path] = field(default_factory=set)
    left_unsealed: bool = False
    frontier_lost: bool = False
    frontier_unsealed: bool = False
    index_lost: bool = False
    index_unsealed: bool = False
    anchors_lost: bool = False
    log_index_lost: bool = False
    outbox_lost: bool = False
    outbox_since: float = 0.0
    """When the last entry of the outbox was made that is whole."""
    notes: list[str] = field(default_factory=list)
    """Parts that were not checked, with the reason."""
    pages: int = 0
    """Bodies that were held against their digests."""
    _named: dict[Path, int] = field(default_factory=dict)

    def add(
        self, file: Path, what: str, at: int | None = None, url: str = "", mend: str = ""
    ) -> None:
        number = self._named[file] = self._named.get(file, 0) + 1
        if number <= MOST_NAMED:
            self.damages.append(Damage(file, what, at, url, mend))

    @property
    def more(self) -> int:
        """Damages that are not named."""
        return sum(max(0, number - MOST_NAMED) for number in self._named.values())

    def make_due(self, pages: Iterable[tuple[bytes, str]]) -> None:
        self.due.update(pages)

    def is_due(self, key: bytes) -> bool:
        """Whether a page will be fetched again anyway."""
        return key in self.due or key in self.awaited

    def add_holes(self, file: Path, holes: Iterable[tuple[int, int]]) -> None:
        self.holes[file] = joined([*self.holes.get(file, ()), *holes])


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order; touching spans are joined.

    >>> joined([(5, 9), (0, 3), (3, 4)])
    [(0, 4), (5, 9)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
