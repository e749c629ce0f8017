"""How often a host may be asked, and what its answers and failures change in that. Pure rules.

    politeness.gap(record)     ->  Gap(seconds=10.0, rule="robots.txt Crawl-delay")

The gap between two requests is the largest of the delay set for the host, its Crawl-delay and a
multiple of its last response time. Failures snooze it for a time that doubles; five in a row park
it, and it is probed again later. Clock and randomness come from the caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any, NamedTuple, Self

from larmspider.frontier.hosts import HostRecord, HostRules, HostState

# What the operator has ordered while the crawl ran, over what the settings say.
#
#     orders.hosts["wiki:80"] = HostOrder(paused=True, delay=10.0)
#     orders.factor = 2.0                 # all gaps twice as long
#
# Kept with the frontier, so a crawl that goes on has them still; only the pause of a whole crawl
# ends
# with its run.

NOTE = "orders"
"""The note of the backend that holds them."""


@dataclass(slots=True)
class HostOrder:
    """``paused``: it is not asked. ``delay`` in seconds in place of the settings', None: not."""

    paused: bool = False
    delay: float | None = None


@dataclass(slots=True)
class Overrides:
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
    def together(cls, found: Iterable[Overrides]) -> Overrides:
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


class Gap(NamedTuple):
    """``seconds`` between the beginnings of two requests; ``rule`` says in words what set it."""

    seconds: float
    rule: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings; all in seconds but the factor, jitter and counts.

    ``retry_after_max``: a longer Retry-After is cut to it. ``backoff`` is the first snooze, doubled
    up to ``backoff_max``, each 1 +- ``jitter`` times as long. ``quiet``: after so long without
    failure the doublings are forgotten. ``max_failures`` in a row park a host for ``park``, doubled
    each time in a row, at most ``max_parks`` times; then it is given up for this run.
    """

    crawl_delay_max: float = 60.0
    response_factor: float = 1.0
    retry_after_max: float = 3600.0
    backoff: float = 5.0
    backoff_max: float = 600.0
    jitter: float = 0.25
    quiet: float = 120.0
    max_failures: int = 5
    park: float = 600.0
    max_parks: int = 3


class Politeness:
    """``random`` gives floats in [0, 1)."""

    def __init__(self, limits: Limits, rules: HostRules, random: Callable[[], float]) -> None:
        self.limits, self.rules, self.random = limits, rules, random
        self.orders = Overrides()
        """Of the operator, over the rules."""

    def take_up(self, record: HostRecord, now: float, robots_expires: float) -> None:
        """A host of another run, or another worker: what it was asked last is not known here."""
        # a gap from now is safe, however soon this comes after the last request
        record.next_time = now + self.gap_seconds(record)
        # the clock may have been ahead, by years: no wait is longer than one that begins now
        if record.until < inf:
            record.until = min(record.until, now + self.longest_wait)
        record.last_failure = min(record.last_failure, now)
        record.robots_until = min(record.robots_until, now + robots_expires)

    def gap_seconds(self, record: HostRecord) -> float:
        """Between the beginnings of two requests to the host."""
        limits, orders = self.limits, self.orders
        gap = self.rules.of(record.host).delay or 0.0
        if orders.hosts:
            gap = orders.delay(record.host, gap)
        if record.crawl_delay is not None:
            gap = max(gap, min(record.crawl_delay, limits.crawl_delay_max))
        return max(gap, limits.response_factor * record.response) * orders.factor

    def gap(self, record: HostRecord) -> Gap:
        """The same with the rule that sets it."""
        seconds, factor = self.gap_seconds(record), self.orders.factor
        slowed = "" if factor == 1.0 else f", {factor:g} times as long by order"
        return Gap(seconds, self._what_sets(record) + slowed)

    def _what_sets(self, record: HostRecord) -> str:
        limits, asked = self.limits, record.crawl_delay
        ordered = self.orders.hosts.get(record.host)
        delay = self.orders.delay(record.host, self.rules.of(record.host).delay or 0.0)
        response = limits.response_factor * record.response
        least = 0.0 if asked is None else min(asked, limits.crawl_delay_max)
        if delay >= max(response, least):
            return "delay" if ordered is None or ordered.delay is None else "delay by order"
        if asked is None or response > least:
            return f"{limits.response_factor:g} x last response time"
        return f"robots.txt Crawl-delay{f' {asked:g} s, cut' if asked > least else ''}"

    def answered(self, record: HostRecord, now: float, seconds: float, sent: float) -> None:
        """A response of which the host is not to blame: it took ``seconds``, asked at ``sent``."""
        if record.failures or record.parks:
            record.hold = None  # what its failures took says nothing about its answers
        self._held(record, seconds)
        record.response = seconds
        record.failures = record.parks = 0
        if now - record.last_failure > self.limits.quiet:
            record.level = 0
        record.next_time = max(record.next_time, sent + self.gap_seconds(record))

    def failed(
        self,
        record: HostRecord,
        now: float,
        seconds: float,
        reason: str,
        retry_after: float | None = None,
        *,
        snooze: bool = True,
    ) -> None:
        """A failure that blames the host: snoozed, or parked if it is one too many.

        ``retry_after`` in seconds from now, None where the server names none. Without ``snooze`` it
        only counts towards parking.
        """
        limits = self.limits
        self._held(record, seconds)
        if now - record.last_failure > limits.quiet + self._last_snooze(record):
            record.level = 0
        record.failures += 1
        record.last_failure, record.last_kind = now, reason
        too_many = record.failures >= limits.max_failures or record.parks
        if not snooze and retry_after is None and not too_many:
            return
        record.level += 1
        wait = self._spread(self._last_snooze(record))
        if retry_after is not None and retry_after > 0:
            wait = min(retry_after, limits.retry_after_max)
        if record.state is HostState.PARKED:
            # one that was in flight when the host was parked: it does not count as a probe
            record.until = max(record.until, now + wait)
        elif too_many:
            self._park(record, now, wait, reason)
        else:
            # a second failure of requests in flight together never shortens a snooze
            record.change(HostState.SNOOZED, max(record.until, now + wait), reason)

    def _park(self, record: HostRecord, now: float, wait: float, reason: str) -> None:
        """After so many failures; a host that was parked is on probation, one failure is enough."""
        limits = self.limits
        why = f"{record.failures} failures in a row: {reason}"
        if record.parks:
            why = f"probe {record.parks} failed: {reason}"
        record.failures = 0
        record.parks += 1
        if record.parks > limits.max_parks:
            record.change(HostState.PARKED, inf, f"given up: {why}")
        else:
            wait = max(wait, self._spread(limits.park * 2.0 ** (record.parks - 1)))
            record.change(HostState.PARKED, now + wait, why)

    @property
    def longest_wait(self) -> float:
        """Seconds; no snooze lasts longer, nor a park that ends in this run."""
        limits = self.limits
        park = limits.park * 2.0 ** max(0, limits.max_parks - 1)
        return max(limits.retry_after_max, max(limits.backoff_max, park) * (1 + limits.jitter))

    def is_too_far(self, earliest: float, now: float) -> bool:
        """Whether nothing waits so long: a URL was given back while the clock was ahead."""
        return earliest > now + self.longest_wait

    def retry_time(self, now: float, attempts: int) -> float:
        """When a URL that failed ``attempts`` times may be tried again."""
        wait = self.limits.backoff * 2.0 ** min(attempts - 1, 20)
        return now + self._spread(min(wait, self.limits.backoff_max))

    def _last_snooze(self, record: HostRecord) -> float:
        if not record.level:
            return 0.0
        return min(self.limits.backoff * 2.0 ** min(record.level - 1, 20), self.limits.backoff_max)

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + self.limits.jitter * (2 * self.random() - 1))

    @staticmethod
    def _held(record: HostRecord, seconds: float) -> None:
        # new answers weigh one third: a host that turns slow is known after two or three
        old = record.hold
        record.hold = seconds if old is None else old + (seconds - old) / 3
