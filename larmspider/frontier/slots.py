"""Which hosts may hold a download slot, so that slow and dead ones can never hold them all.

Taking turns is not enough: of 300 hosts with a gap of 2 s, 45 that answer after 10 or 30 s fill 32
slots while the other 255 need 7. Therefore a host is judged by the time it is expected to hold a
slot:

quick      any free slot
slow       holds for ``slow_secs`` or longer: at most ``slow_share`` of the slots together
failing    slow, and its last fetch failed: at most ``probe_share`` of the slots together
unproven   never answered: whatever is not needed otherwise, at least ``probe_share``

and all hosts except the quick ones together leave free what the quick ones need, by Little's law:
the sum over quick hosts of holding time / gap, and its root for chance. A fetch that has lasted
``slow_secs`` counts as slow from then on, whatever its host was. Where no quick host has work, slow
hosts may have all slots except the probes' share.

A new host that hangs, or a quick host that begins to hang, is not known to be slow. Several of them
may hold all slots: while others wait, some of their fetches are cancelled (scheduler/probes.py),
and these hosts are slow from then on.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, sqrt


class Kind(IntEnum):
    """A host's by its expected holding time, and a slot's by the host that holds it."""

    QUICK = 0
    SLOW = 1
    UNPROVEN = 2
    FAILING = 3


KINDS = tuple(Kind)  # iterating over the class takes five times as long


@dataclass(slots=True, eq=False)
class Slot:
    """One slot, held since a time."""

    kind: Kind
    since: float
    released: bool = False
    turned_slow: bool = False


_UNIT = 1_000_000  # demands are summed as whole millionths: a float sum would drift


class SlotPool:
    """``total`` slots; shares are fractions of them, each at least one slot."""

    def __init__(
        self,
        total: int,
        slow_share: float = 0.5,
        probe_share: float = 0.125,
        slow_secs: float = 2.0,
    ) -> None:
        self.slow_secs, self._slow_share, self._probe_share = slow_secs, slow_share, probe_share
        self.held = [0] * len(Kind)
        self._young: deque[Slot] = deque()
        self._demand = 0
        self.reserved = 0  # slots kept for the quick hosts
        self.resize(total)

    def resize(self, total: int) -> None:
        """Change the number of slots. Held slots beyond it stay until their fetches end."""
        self.total = total
        self.slow_slots = max(1, int(self._slow_share * total))
        self.probe_slots = max(1, int(self._probe_share * total))
        self.change_demand(0)

    def __repr__(self) -> str:
        held = ", ".join(f"{self.held[kind]} {kind.name.lower()}" for kind in Kind)
        return f"<SlotPool {held} of {self.total}, {self.reserved} reserved>"

    def kind(self, slot_secs: float | None, failures: int = 0) -> Kind:
        """The kind of a host, by its expected holding time (None if it never answered) and its
        failures in a row."""
        if slot_secs is None:
            return Kind.UNPROVEN
        if slot_secs < self.slow_secs:
            return Kind.QUICK  # connections refused at once hold no slot, so they do no harm
        return Kind.FAILING if failures else Kind.SLOW

    def demand(self, slot_secs: float | None, gap: float, connections: int) -> int:
        """Slots that a host with work needs on average, in millionths; 0 if it is not quick."""
        if slot_secs is None or slot_secs >= self.slow_secs:
            return 0
        return int(_UNIT * (min(slot_secs / gap, connections) if gap > 0 else connections))

    def change_demand(self, difference: int) -> None:
        """Add to the sum over all quick hosts that have work; a negative number takes from it."""
        self._demand += difference
        demand = self._demand / _UNIT
        self.reserved = min(self.total, ceil(demand + sqrt(demand) + 1)) if self._demand else 0

    def allowed_kinds(self) -> list[Kind]:
        """The kinds of hosts for which there is a slot now."""
        quick, slow, unproven, failing = self.held
        for_long = slow + unproven + failing
        if quick + for_long >= self.total:
            return []
        max_for_long = max(self.probe_slots + 1, self.total - self.reserved)
        if for_long >= max_for_long:
            return [Kind.QUICK]
        if self._demand:
            max_slow = min(self.slow_slots, max_for_long - self.probe_slots)
        else:
            max_slow = self.total - self.probe_slots
        kinds = [Kind.QUICK]
        if slow < max(1, max_slow):
            kinds.append(Kind.SLOW)
        kinds.append(Kind.UNPROVEN)
        if failing < self.probe_slots:
            kinds.append(Kind.FAILING)
        return kinds

    def allows(self, kind: Kind) -> bool:
        """Is there a slot for a host of this kind now?"""
        return kind in self.allowed_kinds()

    @property
    def too_many_slow(self) -> bool:
        """Whether fetches that have lasted hold more than the slow hosts' share."""
        return self.held[Kind.SLOW] > self.slow_slots

    def acquire(self, kind: Kind, now: float) -> Slot:
        slot = Slot(kind, now)
        self.held[kind] += 1
        if kind in (Kind.QUICK, Kind.UNPROVEN):
            self._young.append(slot)
        return slot

    def release(self, slot: Slot) -> None:
        slot.released = True
        self.held[slot.kind] -= 1

    def age(self, now: float) -> None:
        """Count fetches that have lasted ``slow_secs`` as slow. O(1) a fetch over its life."""
        young = self._young
        while young and (young[0].released or young[0].since + self.slow_secs <= now):
            slot = young.popleft()
            if not slot.released:
                self.held[slot.kind] -= 1
                slot.kind, slot.turned_slow = Kind.SLOW, True
                self.held[Kind.SLOW] += 1

    def next_age(self) -> float | None:
        """When the next running fetch may turn slow; this makes room for an unproven or quick
        host."""
        return self._young[0].since + self.slow_secs if self._young else None
