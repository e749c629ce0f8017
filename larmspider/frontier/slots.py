"""Which hosts may hold a download place, so that slow and dead ones can never hold them all.

Taking turns is not enough: of 300 hosts with a gap of 2 s, 45 that answer after 10 or 30 s fill 32
places while the other 255 need 7. So a host is judged by the time it is expected to hold a place:

quick      any free place
slow       holds for ``slow_secs`` or longer: at most ``slow_share`` of the places together
failing    slow, and its last fetch failed: at most ``probe_share`` of the places together
unproven   never answered: whatever is not needed otherwise, at least ``probe_share``

and all but the quick ones together leave free what the quick ones need, by Little's law: the sum
over quick hosts of holding time / gap, and its root for chance. A fetch that has lasted
``slow_secs`` counts as slow from then on, whatever its host was. Where no quick host has work, slow
ones may have all but the probes' share.

Nobody knows of a new host that it is slow, nor of a quick one that it is no more, so many that hang
may hold all places: while others wait, some of their fetches give their places up
(scheduler_probes.py), and these hosts are slow from then on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, sqrt


class Kind(IntEnum):
    """Of a host by its expected holding time, and of a place by what holds it."""

    QUICK = 0
    SLOW = 1
    UNPROVEN = 2
    FAILING = 3


@dataclass(slots=True, eq=False)
class Holding:
    """One place that is held since a time."""

    kind: Kind
    since: float
    ended: bool = False
    turned_slow: bool = False


_UNIT = 1_000_000  # needs are summed as whole millionths: a float sum would drift


class SlotPool:
    """``total`` places; shares are fractions of it, each at least one place."""

    def __init__(
        self,
        total: int,
        slow_share: float = 0.5,
        probe_share: float = 0.125,
        slow_secs: float = 2.0,
    ) -> None:
        self.total, self.slow_secs = total, slow_secs
        self.slow_places = max(1, int(slow_share * total))
        self.probe_places = max(1, int(probe_share * total))
        self.held = [0] * len(Kind)
        self._young: deque[Holding] = deque()
        self._need = 0
        self.reserved = 0  # places kept for the quick hosts

    def __repr__(self) -> str:
        held = ", ".join(f"{self.held[kind]} {kind.name.lower()}" for kind in Kind)
        return f"<Places {held} of {self.total}, {self.reserved} reserved>"

    def kind(self, hold: float | None, failures: int = 0) -> Kind:
        """Of a host by its expected holding time (None: never answered) and failures in a row."""
        if hold is None:
            return Kind.UNPROVEN
        if hold < self.slow_secs:
            return Kind.QUICK  # connections refused at once hold no place, so they do no harm
        return Kind.FAILING if failures else Kind.SLOW

    def need(self, hold: float | None, gap: float, connections: int) -> int:
        """Places that a host with work needs on average, in millionths; 0 if it is not quick."""
        if hold is None or hold >= self.slow_secs:
            return 0
        return int(_UNIT * (min(hold / gap, connections) if gap > 0 else connections))

    def change_need(self, difference: int) -> None:
        """Add to, or take from, the sum over all quick hosts that have work."""
        self._need += difference
        need = self._need / _UNIT
        self.reserved = min(self.total, ceil(need + sqrt(need) + 1)) if self._need else 0

    def allows(self, kind: Kind) -> bool:
        """Is there a place for a host of this kind now?"""
        quick, slow, unproven, failing = self.held
        if quick + slow + unproven + failing >= self.total:
            return False
        if kind is Kind.QUICK:
            return True
        for_long = max(self.probe_places + 1, self.total - self.reserved)
        if slow + unproven + failing >= for_long:
            return False
        if kind is Kind.UNPROVEN:
            return True
        if kind is Kind.FAILING:
            return failing < self.probe_places
        if not self._need:
            return slow < max(1, self.total - self.probe_places)
        return slow < max(1, min(self.slow_places, for_long - self.probe_places))

    @property
    def too_many_slow(self) -> bool:
        """Whether fetches that have lasted hold more than the slow hosts' share."""
        return self.held[Kind.SLOW] > self.slow_places

    def take(self, kind: Kind, now: float) -> Holding:
        """Hold a place from now on."""
        holding = Holding(kind, now)
        self.held[kind] += 1
        if kind in (Kind.QUICK, Kind.UNPROVEN):
            self._young.append(holding)
        return holding

    def release(self, holding: Holding) -> None:
        """The place is free."""
        holding.ended = True
        self.held[holding.kind] -= 1

    def age(self, now: float) -> None:
        """Count fetches that have lasted ``slow_secs`` as slow. O(1) a fetch over its life."""
        young = self._young
        while young and (young[0].ended or young[0].since + self.slow_secs <= now):
            holding = young.popleft()
            if not holding.ended:
                self.held[holding.kind] -= 1
                holding.kind, holding.turned_slow = Kind.SLOW, True
                self.held[Kind.SLOW] += 1

    def next_age(self) -> float | None:
        """When a fetch that lasts may turn slow and so make room for an unproven or quick one."""
        return self._young[0].since + self.slow_secs if self._young else None
