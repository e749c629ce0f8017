"""The lessons of revisits about a host: the note ``refresh wiki:80``.

known = HostKnowledge.unpack(note)
known.validators.ask(record)       # headers that make a visit conditional
known.rate                         # changes a second of a page
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from larmspider.extraction.texts.fingerprint import Volatile, VolatileNote
from larmspider.frontier.part import TIMES_PACKED
from larmspider.frontier.storage.records import packed
from larmspider.learned.revisits.refresh import DAY, Checks, Pace
from larmspider.learned.revisits.validators import Validators

NOTE = "refresh {host}"
MAX_GONE = 10_000
"""URLs of a host whose pages have left that are remembered, the last ones."""
MAX_REDIRECTS = 2_000
"""URLs of a host that redirect and are remembered with their targets, the last ones."""
_LEAST_BYTES = 2_000


class KnowledgeNote(msgspec.Struct, array_like=True):
    """The fields of HostKnowledge as they are kept. New fields go to the end, with a default."""

    run: bytes = b""
    changes: float = 0.0
    exposure: float = 0.0
    checks: dict[int, list[int]] = {}
    gone: list[tuple[float, str, int]] = []
    pace: list[Any] = []
    volatile: VolatileNote = msgspec.field(default_factory=VolatileNote)
    validators: Validators = msgspec.field(default_factory=Validators)
    doubtful: list[bytes] = []
    redirects: dict[bytes, str] = {}


@dataclass(slots=True, weakref_slot=True)
class HostKnowledge:
    """``changes``: the changes of the host's pages that visits saw in ``exposure`` seconds, summed
    over all pages. ``checks``: visits to pages that were chosen at random. ``gone``: time, URL and
    depth of removed pages. ``pace``: on which days many of its pages changed. ``doubtful``: pages
    whose version in a store may differ from their records since a crash. ``redirects``: exact forms
    of the targets, by the keys of URLs that have no page and redirect."""

    changes: float = 0.0
    exposure: float = 0.0
    checks: Checks = field(default_factory=Checks)
    gone: list[tuple[float, str, int]] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)
    volatile: Volatile = field(default_factory=Volatile)
    validators: Validators = field(default_factory=Validators)
    doubtful: set[bytes] = field(default_factory=set)
    run: bytes = b""
    redirects: dict[bytes, str] = field(default_factory=dict)

    def redirects_to(self, key: bytes, target: str) -> bool:
        """Note a redirect. Returns False if it was known."""
        if self.redirects.get(key) == target:
            return False
        self.redirects[key] = target
        while len(self.redirects) > MAX_REDIRECTS:
            del self.redirects[next(iter(self.redirects))]
        return True

    def pack(self) -> bytes:
        gone, pace, doubtful = self.gone[-MAX_GONE:], self.pace.pack(), sorted(self.doubtful)
        found = self.changes, self.exposure, self.checks.days, gone, pace
        learned = self.volatile.kept(), self.validators, doubtful, self.redirects
        return packed(KnowledgeNote(self.run, *found, *learned))

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        """None: nothing is known."""
        if not data:
            return cls()
        kept = msgspec.msgpack.decode(data, type=KnowledgeNote)
        pace = Pace.unpack(kept.pace) if kept.pace else Pace()
        return cls(
            kept.changes,
            kept.exposure,
            Checks(kept.checks),
            kept.gone,
            pace,
            Volatile.of(kept.volatile),
            kept.validators,
            {*kept.doubtful},
            kept.run,
            kept.redirects,
        )

    def begin_run(self) -> None:
        """Nothing counts in one run only."""

    def memory(self, packed_bytes: int) -> int:
        return _LEAST_BYTES + TIMES_PACKED * packed_bytes

    @property
    def rate(self) -> float:
        """Changes a second of a page."""
        return (self.changes + 1) / (self.exposure + 60 * DAY)


RATE_OF_ANY = HostKnowledge().rate
