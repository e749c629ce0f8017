"""The operator's orders to a running crawl. They override settings.

    overrides.hosts["wiki:80"] = HostOverride(paused=True, delay=10.0)
    overrides.factor = 2.0                              # all gaps twice as long
    overrides.order("threads", 64, keep=False)          # until this run ends

The overrides are a note of the backend, so the next run of the crawl still has them. Orders for a
single run end with the run, and so does the pause of a whole crawl.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

NOTE = "orders"
"""The name of that note."""
MIN_FACTOR, MAX_FACTOR = 0.01, 1_000.0
MAX_DELAY, MAX_THREADS = 86_400.0, 10_000
"""Limits of orders: factors, seconds, fetches at a time."""


@dataclass(slots=True)
class _Orders:
    """``for_run``: fields that were ordered for this run only, with their values for the next
    run."""

    for_run: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def order(self, name: str, value: Any, *, keep: bool = True) -> None:
        """Set a field, for all further runs or, without ``keep``, until this one ends."""
        if keep:
            self.for_run.pop(name, None)
        elif self.for_run.setdefault(name, getattr(self, name)) == value:
            del self.for_run[name]
        setattr(self, name, value)

    def after_run(self) -> Self:
        """The orders for the next run."""
        return replace(self, **self.for_run, for_run={})

    def with_orders_for_run(self, other: Self) -> Self:
        """These orders, and the orders of ``other`` for this run."""
        mine = {name: getattr(self, name) for name in other.for_run}
        now = {name: getattr(other, name) for name in other.for_run}
        return replace(self, **now, for_run=mine)


@dataclass(slots=True)
class HostOverride(_Orders):
    """``paused``: the host gets no requests. ``delay`` (seconds) and ``connections`` (at a time)
    replace the settings; None: the settings apply."""

    paused: bool = False
    delay: float | None = None
    connections: int | None = None


@dataclass(slots=True)
class Overrides(_Orders):
    """``factor`` multiplies all gaps. ``restrict``: the new scope, "" if it was not changed.
    ``instead_of``: the scope of the settings at that time. ``threads``: the new number of fetches
    at a time, None if it was not changed. ``threads_instead_of``: the number at that time."""

    factor: float = 1.0
    hosts: dict[str, HostOverride] = field(default_factory=dict)
    restrict: str = ""
    instead_of: str = ""
    threads: int | None = None
    threads_instead_of: int = 0

    def of(self, host: str) -> HostOverride:
        """The override of a host; a new one if there is none."""
        return self.hosts.setdefault(host, HostOverride())

    def delay(self, host: str, otherwise: float) -> float:
        """The delay of a host in seconds; ``otherwise`` if no delay is ordered for it."""
        own = self.hosts.get(host)
        return otherwise if own is None or own.delay is None else own.delay

    def is_paused(self, host: str) -> bool:
        own = self.hosts.get(host)
        return own is not None and own.paused

    @classmethod
    def together(cls, found: Iterable[Overrides]) -> Overrides:
        """The overrides of a crawl's workers as one; each worker may have been given its own."""
        every = list(found)
        factor = next((one for one in every if one.factor != 1.0), Overrides())
        threads = next((one for one in every if one.threads is not None), Overrides())
        hosts = [pair for one in every for pair in one.hosts.items()]
        return cls(
            factor.factor,
            {name: own for name, own in hosts if own != HostOverride()},
            threads=threads.threads,
            threads_instead_of=threads.threads_instead_of,
            for_run=factor.for_run | threads.for_run,
        )

    def pack(self) -> bytes:
        """JSON; hosts without an override and fields with their usual value are left out."""
        return json.dumps(self.as_json()).encode("utf-8")

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        """The reverse of pack(). None gives empty overrides."""
        if not data:
            return cls()
        return cls.from_json(json.loads(data))

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        hosts = {name: host_as_json(own) for name, own in self.copy().hosts.items()}
        return _as_json(self, Overrides()) | {"hosts": hosts}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The reverse of as_json(). Raises TypeError or KeyError for anything else."""
        hosts = {name: HostOverride(**own) for name, own in found["hosts"].items()}
        return cls(**{**found, "hosts": hosts})

    def copy(self) -> Self:
        """Hosts without an override are left out."""
        hosts = {
            name: replace(own, for_run=dict(own.for_run))
            for name, own in self.hosts.items()
            if own != HostOverride()
        }
        return replace(self, hosts=hosts, for_run=dict(self.for_run))

    def after_run(self) -> Self:
        """The orders for the next run."""
        hosts = {name: own.after_run() for name, own in self.hosts.items()}
        return replace(self, **self.for_run, hosts=hosts, for_run={})


def host_as_json(own: HostOverride) -> dict[str, Any]:
    """Plain data: the arguments of HostOverride."""
    return _as_json(own, HostOverride())


def _as_json(some: Any, default: Any) -> dict[str, Any]:
    usual = asdict(default)
    return {name: value for name, value in asdict(some).items() if value != usual[name]}
