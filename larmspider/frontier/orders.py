"""What the operator has ordered while the crawl ran, over what the settings say.

    orders.hosts["wiki:80"] = HostOrder(paused=True, delay=10.0)
    orders.factor = 2.0                 # all gaps twice as long

Kept with the frontier, so a crawl that goes on has them still; only the pause of a whole crawl ends
with its run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

NOTE = "orders"
"""The note of the backend that holds them."""


@dataclass(slots=True)
class HostOrder:
    """``paused``: it is not asked. ``delay`` in seconds in place of the settings', None: not."""

    paused: bool = False
    delay: float | None = None


@dataclass(slots=True)
class Orders:
    """``factor``: all gaps are so many times as long. ``restrict``: the scope, in place of
    ``instead_of``, what the settings said then; "" for none ordered."""

    factor: float = 1.0
    hosts: dict[str, HostOrder] = field(default_factory=dict)
    restrict: str = ""
    instead_of: str = ""

    def of(self, host: str) -> HostOrder:
        """That of a host, made if there is none."""
        return self.hosts.setdefault(host, HostOrder())

    def delay(self, host: str, otherwise: float) -> float:
        """In seconds."""
        order = self.hosts.get(host)
        return otherwise if order is None or order.delay is None else order.delay

    def is_paused(self, host: str) -> bool:
        order = self.hosts.get(host)
        return order is not None and order.paused

    @classmethod
    def together(cls, found: Iterable[Orders]) -> Orders:
        """Of workers that share a crawl, each of which may have been given its own."""
        every = list(found)
        factor = next((orders.factor for orders in every if orders.factor != 1.0), 1.0)
        hosts = [pair for orders in every for pair in orders.hosts.items()]
        return cls(factor, {name: order for name, order in hosts if order != HostOrder()})

    def pack(self) -> bytes:
        """JSON; hosts without an order are left out."""
        return json.dumps(asdict(self.copy())).encode("utf-8")

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        """The reverse; none for None."""
        if not data:
            return cls()
        return cls.from_json(json.loads(data))

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Of what dataclasses.asdict() makes. Raises TypeError or KeyError for what is none."""
        hosts = {name: HostOrder(**order) for name, order in found["hosts"].items()}
        return cls(**{**found, "hosts": hosts})

    def copy(self) -> Self:
        """As they are now; without hosts of which nothing is ordered."""
        hosts = {name: replace(one) for name, one in self.hosts.items() if one != HostOrder()}
        return replace(self, hosts=hosts)
