"""What the operator has ordered while the crawl ran, over what the settings say.

    overrides.hosts["wiki:80"] = HostOverride(paused=True, delay=10.0)
    overrides.factor = 2.0                 # all gaps twice as long

The overrides are a note of the backend, so the next run of the crawl has them still; only the pause
of a whole crawl ends with its run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

NOTE = "orders"
"""The name of that note."""


@dataclass(slots=True)
class HostOverride:
    """``paused``: the host is not asked. ``delay`` in seconds replaces the settings', None: not."""

    paused: bool = False
    delay: float | None = None


@dataclass(slots=True)
class Overrides:
    """``factor``: all gaps are so many times as long. ``restrict``: the scope, in place of
    ``instead_of``, which the settings said then; "" where the scope was not changed."""

    factor: float = 1.0
    hosts: dict[str, HostOverride] = field(default_factory=dict)
    restrict: str = ""
    instead_of: str = ""

    def of(self, host: str) -> HostOverride:
        """A host's own, made if there is none."""
        return self.hosts.setdefault(host, HostOverride())

    def delay(self, host: str, otherwise: float) -> float:
        """In seconds; ``otherwise`` where none is ordered for the host."""
        own = self.hosts.get(host)
        return otherwise if own is None or own.delay is None else own.delay

    def is_paused(self, host: str) -> bool:
        own = self.hosts.get(host)
        return own is not None and own.paused

    @classmethod
    def together(cls, found: Iterable[Overrides]) -> Overrides:
        """The overrides of a crawl's workers as one; each worker may have been given its own."""
        every = list(found)
        factor = next((one.factor for one in every if one.factor != 1.0), 1.0)
        hosts = [pair for one in every for pair in one.hosts.items()]
        return cls(factor, {name: own for name, own in hosts if own != HostOverride()})

    def pack(self) -> bytes:
        """JSON; hosts without an override are left out."""
        return json.dumps(asdict(self.copy())).encode("utf-8")

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        """The reverse of pack(); no overrides for None."""
        if not data:
            return cls()
        return cls.from_json(json.loads(data))

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """From what dataclasses.asdict() makes. Raises TypeError or KeyError for anything else."""
        hosts = {name: HostOverride(**own) for name, own in found["hosts"].items()}
        return cls(**{**found, "hosts": hosts})

    def copy(self) -> Self:
        """Hosts without an override are left out."""
        hosts = {name: replace(own) for name, own in self.hosts.items() if own != HostOverride()}
        return replace(self, hosts=hosts)
