"""When a page is visited again: the expected value of a visit, and a budget of visits a day.

    a, b = learned(a, b, passed=3 * DAY, changed=True, since_change=DAY, rate=rate)
    seconds = until_worth(theta, a, b)        # 12 days: then a visit is worth theta
    budget = Budget(per_day=33); budget.fill(now); budget.spend()

Changes of a page are taken for a Poisson process whose rate is not known: a Gamma distribution with
shape ``a`` and rate ``b`` (seconds). A visit after ``t`` seconds is worth the time for which a copy
would be current by it (Azar et al., PNAS 2018: 1/l * (1 - exp(-lt) * (1 + lt)) for a rate l),
averaged over that distribution; it grows with ``t``. Pages of which little is known are worth more,
and are therefore visited without a special rule. A run visits the pages that are worth most,
within its budget. ``theta`` is the worth of the last page that was visited; it predicts the time of
a page's next visit.

Changes of documents come in bursts, and rates say little on most sites: there this is as good as
visiting one page after the other (docs/refresh.md). It pays if rates differ by orders of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, log, sqrt
from typing import Generic, TypeVar

DAY = 86_400.0
SHAPE = 0.5
"""The gamma distribution's shape for a page without visits; its mean is the rate of its host."""
FIRST_RATE = 1 / (60 * DAY)
"""Changes a second of a page on a host where nothing was visited again yet: one in 60 days."""
HALF_LIFE = 180 * DAY
"""In this time half of a page's evidence is replaced by the rate of its host."""
SOONEST, LATEST = 3_600.0, 365 * DAY
"""No visit is due earlier or later than this after the last one."""
KEPT_DAYS = 7
"""Unused visits may be made up to 7 days later."""
SAMPLED = 40
"""One visit in 40 goes to a page that is chosen at random."""
SAMPLE_DAYS = 30
"""Random visits count for 30 days."""
PACE_PAGES, PACE_MOST, PACE_VISITS = 20, 50.0, 100
"""The pace of a day is pulled towards 1 as if by 20 more pages, and counts as at most 50. It is
computed again after 100 visits or on the next day."""
PAGES_A_DAY = 1 / 30
"""The share of its pages that a crawl visits a day where LARM_REFRESH_PER_DAY is 0."""


def prior(rate: float) -> tuple[float, float]:
    """a and b of a page without any knowledge."""
    return SHAPE, SHAPE / rate


def value(t: float, a: float, b: float, weight: float = 1.0) -> float:
    """The worth of a visit ``t`` seconds after the last one, in seconds.

    >>> value(0.0, 0.5, 1e6), round(value(1e6, 0.5, 1e6))
    (0.0, 121320)
    """
    left: float = b / (b + t)
    if abs(a - 1) < 1e-6:
        gain = b * -log(left) - t * left
    else:
        gain = b / (a - 1) * (1 - left ** (a - 1)) - t * left**a
    return weight * gain


@lru_cache(maxsize=256)  # the pages of a first crawl have one answer, which takes 20 us
def until_worth(theta: float, a: float, b: float, weight: float = 1.0) -> float:
    """Seconds after a visit at which the next one is worth ``theta``: SOONEST to LATEST."""
    low, high = SOONEST, LATEST
    if value(low, a, b, weight) >= theta:
        return low
    if value(high, a, b, weight) <= theta:
        return high
    while high - low > max(60.0, low * 0.01):
        middle = (low + high) / 2
        if value(middle, a, b, weight) < theta:
            low = middle
        else:
            high = middle
    return high


def learned(
    a: float,
    b: float,
    *,
    passed: float,
    changed: bool,
    since_change: float | None = None,
    rate: float = FIRST_RATE,
) -> tuple[float, float]:
    """a and b after a visit, ``passed`` seconds after the one before; 0.0, 0.0 for nothing known.

    ``since_change``: how long ago the page last changed, according to the page; None if it does not
    say so, and then the expected time is used. ``rate``: changes a second on the host.
    """
    first_a, first_b = prior(rate)
    if not b:
        a, b = first_a, first_b
    passed = max(0.0, passed)
    keep: float = 0.5 ** (passed / HALF_LIFE)
    a, b = first_a + (a - first_a) * keep, first_b + (b - first_b) * keep
    if not changed:
        return a, b + passed
    if since_change is None:
        x = a / b * passed
        since_change = passed / 2 if x < 1e-3 else b / a - passed / (exp(min(x, 700.0)) - 1)
    return a + 1, b + min(max(since_change, 0.0), passed)


@dataclass(slots=True)
class Pace:
    """How fast time passes for the pages of a host. A day on which many of its pages changed counts
    as several days. A page that was not visited since a change of the whole site therefore comes
    before a page that was, and such a change hardly affects the rates of single pages. ``days``: by
    day since the epoch, the changes that visits found, and the number of pages that they cover."""

    days: dict[int, list[float]] = field(default_factory=dict)
    _first: int = 0
    _passed: list[float] = field(default_factory=list)  # seconds until each day from the first on
    _added: int = 0
    _settled: int = -1

    def add(self, since: float, now: float, *, changed: bool, at: float | None) -> None:
        """Count a visit; the visit before was at ``since``. ``at``: the time of the change
        according to the page; None if each day between the visits is equally likely."""
        today = int(now // DAY)
        first = int(since // DAY)
        if changed and at is not None:
            first = max(first, int(at // DAY))
        first = max(first, today - int(LATEST // DAY))
        known = range(min(first, today), max(today, first + 1))
        share = 0.0 if not changed else 1.0 if at is not None else 1 / len(known)
        for day in known:
            found = self.days.setdefault(day, [0.0, 0.0])
            found[1] += 1
            if at is None or day == first:
                found[0] += share
        self._added += 1

    def elapsed(self, begin: float, end: float) -> float:
        """Seconds, as the pages of the host have felt them; ``end`` is now."""
        if self._added >= PACE_VISITS or end // DAY != self._settled:
            self._settle(int(end // DAY))
        return max(0.0, self._at(end) - self._at(begin))

    def pack(self) -> list[int]:
        """The first day, and two numbers of each from then on."""
        first = min(self.days, default=0)
        found = [self.days.get(day, (0, 0)) for day in range(first, max(self.days, default=-1) + 1)]
        return [first, *(int(x) for here, of in found for x in (100 * here + 0.5, of))]

    @classmethod
    def unpack(cls, packed: Sequence[int]) -> Pace:
        first, *found = packed
        days = enumerate(zip(found[::2], found[1::2], strict=True), first)
        return cls({day: [here / 100, of] for day, (here, of) in days if of})

    def _settle(self, today: int) -> None:
        self._added, self._passed, self._settled = 0, [], today
        if not self.days:
            return
        for day in [one for one in self.days if not 0 <= today - one <= LATEST / DAY]:
            del self.days[day]
        if not self.days:
            return
        changes, pages = (sum(both) for both in zip(*self.days.values(), strict=True))
        rate = (changes + 1) / (pages + 60)
        self._first = min(self.days)
        passed = self._first * DAY
        for day in range(self._first, max(self.days) + 2):
            self._passed.append(passed)
            here, of = self.days.get(day, (0.0, 0.0))
            pace = (here / rate + PACE_PAGES) / (of + PACE_PAGES)
            passed += min(pace, PACE_MOST) * DAY

    def _at(self, time: float) -> float:
        at = time / DAY - self._first
        if not self._passed or at < 0:
            return time
        day = int(at)
        if day + 1 >= len(self._passed):
            return self._passed[-1] + (at + 1 - len(self._passed)) * DAY
        begin = self._passed[day]
        return begin + (at - day) * (self._passed[day + 1] - begin)


@dataclass(slots=True)
class Budget:
    """The visits that may be made now, kept over all runs. ``at``: the time up to which they are
    counted."""

    per_day: float
    left: float = 0.0
    at: float = 0.0

    def fill(self, now: float) -> None:
        """Add the visits of the time since the last call; a day's visits at the first call. A clock
        that was set back adds nothing."""
        if not self.at:
            self.left = self.per_day
        elif now > self.at:
            self.left += (now - self.at) / DAY * self.per_day
        self.left = min(self.left, KEPT_DAYS * self.per_day)
        self.at = now

    def spend(self) -> bool:
        """Whether there is a visit left; it is made now."""
        if self.left < 1:
            return False
        self.left -= 1
        return True


_Thing = TypeVar("_Thing")


@dataclass(slots=True)
class Reservoir(Generic[_Thing]):
    """Keeps at most ``room`` of the offered things, each with the same chance."""

    room: int
    random: Callable[[], float]
    chosen: list[_Thing] = field(default_factory=list)
    offered: int = 0

    def offer(self, thing: _Thing) -> None:
        self.offered += 1
        if len(self.chosen) < self.room:
            self.chosen.append(thing)
        elif (at := int(self.random() * self.offered)) < self.room:
            self.chosen[at] = thing


@dataclass(slots=True)
class Checks:
    """Results of random visits by day since the epoch: the number of visits, and of unchanged
    pages."""

    days: dict[int, list[int]] = field(default_factory=dict)

    def add(self, now: float, *, current: bool) -> None:
        today = int(now // DAY)
        found = self.days.setdefault(today, [0, 0])
        found[0] += 1
        found[1] += current
        for day in [one for one in self.days if not 0 <= today - one < SAMPLE_DAYS]:
            del self.days[day]

    def lately(self, now: float) -> tuple[int, int]:
        """Both, of SAMPLE_DAYS."""
        today = int(now // DAY)
        found = [two for day, two in self.days.items() if today - day < SAMPLE_DAYS]
        return sum(number for number, _ in found), sum(current for _, current in found)


def likely(current: int, number: int) -> tuple[float, float]:
    """The 95% confidence interval of the share of current pages, given that ``current`` of
    ``number`` random pages were current (Wilson 1927).

    >>> [round(share, 3) for share in likely(95, 100)]
    [0.888, 0.978]
    """
    if not number:
        return 0.0, 1.0
    z, share = 1.96, current / number
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    spread = z * sqrt(share * (1 - share) / number + (z / number / 2) ** 2) / (1 + z * z / number)
    return max(0.0, middle - spread), min(1.0, middle + spread)
