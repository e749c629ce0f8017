"""A running crawl in numbers at one moment, for the overview, /stats.json and /metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from larmspider.frontier.politeness import Orders


@dataclass(frozen=True, slots=True)
class Numbers:
    """``time`` and ``began`` (of this run) in seconds since the epoch; ``pages``, ``bytes``,
    ``links``, ``failures`` and ``counters`` (Scrapy's stats that are ours) since this run began;
    ``urls`` of the whole crawl by state. ``memory`` in bytes. ``waiting``: what a crawl that is
    idle waits for. ``broken``: why nothing more is committed. ``scope`` as LARM_RESTRICT, the one
    in force; ``orders`` of the operator."""

    time: float
    began: float
    pages: int
    bytes: int
    links: int
    in_flight: int
    failures: int
    memory: int
    paused: bool
    waiting: str
    broken: str
    urls: Mapping[str, int] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    scope: str = ""
    orders: Orders = field(default_factory=Orders)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def together(cls, found: Sequence[Self]) -> Self:
        """Of workers that run side by side. ``urls`` is none: hosts pass between them, so only the
        table of hosts has each URL once."""
        first = found[0]
        if len(found) == 1:
            return first
        sums = {name: sum(getattr(one, name) for one in found) for name in _SUMS}
        return replace(
            first,
            **sums,
            time=max(one.time for one in found),
            began=min(one.began for one in found),
            paused=all(one.paused for one in found),
            waiting=next((one.waiting for one in found if one.waiting), ""),
            broken=next((one.broken for one in found if one.broken), ""),
            urls={},
            counters=_summed([one.counters for one in found]),
            orders=Orders.together(one.orders for one in found),
        )

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The reverse. Raises TypeError or KeyError for what is none."""
        named = {one.name: found[one.name] for one in fields(cls)}
        return cls(**{**named, "orders": Orders.from_json(found["orders"])})


_SUMS = ("pages", "bytes", "links", "in_flight", "failures", "memory")


def _summed(found: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for one in found for name in one)
    return {name: sum(one.get(name, 0) for one in found) for name in names}
