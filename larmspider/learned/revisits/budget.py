"""How many visits a run may make: the budget of the crawl, kept over all runs.

budget.fill(now)              # what has come since the last plan
budget.visits.spend()         # a planned visit is made now
budget.theta                  # what a visit has to be worth
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from larmspider.learned.clock import ClockJumps
from larmspider.learned.revisits.host import RATE_OF_ANY
from larmspider.learned.revisits.refresh import DAY, PAGES_A_DAY, Budget, prior, value

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier

CONFIRMATIONS, LEAST_CONFIRMATIONS = 2, 20
"""The budget of confirmations: CONFIRMATIONS for each visit of the budget, and at least
LEAST_CONFIRMATIONS a day. A page that is missing takes two more visits."""


class RunNote(msgspec.Struct, array_like=True):
    """The note ``refresh`` of a crawl. New fields go to the end, with a default. ``left``: the
    visits that were left at the time ``at``. ``confirming``: the same for visits that confirm that
    a page is missing. ``clock``: the time when the note was written. ``mode`` and ``since``: of an
    interrupted run that visits all pages. ``jumps``: the jumps of the clock."""

    left: float = 0.0
    at: float = 0.0
    theta: float = 0.0
    clock: float = 0.0
    confirming: tuple[float, float] = (0.0, 0.0)
    mode: str = ""
    since: float = 0.0
    jumps: ClockJumps = msgspec.field(default_factory=ClockJumps)


def jumps_in(note: bytes | None) -> ClockJumps:
    """The jumps in the note ``refresh`` of a crawl."""
    return msgspec.msgpack.decode(note, type=RunNote).jumps if note else ClockJumps()


class VisitBudget:
    """``per_day``: visits a day, 0: a thirtieth of the pages."""

    def __init__(self, frontier: Frontier, per_day: float) -> None:
        self._frontier, self._per_day = frontier, per_day
        self.visits = Budget(per_day)
        self.confirming = Budget(0.0)
        """Visits that confirm that a page is missing, beside the budget."""
        self.lowest = 0.0
        """The worth of the last page of the last plan; 0.0: no plan was full yet."""
        self._share = 1.0  # this worker's of all pages
        self._granted: float | None = None  # visits that it may plan; None: to be asked for

    def __repr__(self) -> str:
        return f"<VisitBudget {self.visits}>"

    def recover(self, kept: RunNote) -> None:
        self.visits.left, self.visits.at, self.lowest = kept.left, kept.at, kept.theta
        self.confirming.left, self.confirming.at = kept.confirming

    def kept(self) -> RunNote:
        confirming = self.confirming.left, self.confirming.at
        now = self._frontier.clock()
        return RunNote(self.visits.left, self.visits.at, self.lowest, now, confirming)

    @property
    def wants_grant(self) -> bool:
        """Whether grant() has to be called before the next plan, of a worker among many."""
        return self._frontier.partitions.shared and self._granted is None

    def withdraw(self) -> None:
        """Pages came from another worker: the next plan needs a new grant."""
        self._granted = None

    def fill(self, now: float) -> None:
        """Add the visits of the time since the last plan."""
        self.visits.per_day = self.per_day
        if self._granted is None:
            self.visits.fill(now)
        else:
            self.visits.left, self._granted = self._granted, None
        self.confirming.per_day = self._confirmations_a_day
        self.confirming.fill(now)

    def next_visit(self, now: float) -> float:
        """When the budget has a visit."""
        return now + _wait(self.visits, self.per_day)

    def next_confirmation(self, now: float) -> float:
        """The time from which the budget has a visit to confirm that a page is missing."""
        return now + _wait(self.confirming, self._confirmations_a_day)

    def grant(self, left: float, pages: int) -> None:
        """The crawl has ``pages`` stored pages, and ``left`` visits in its budget. This worker gets
        its share of them, by its number of pages."""
        own = self._frontier.backend.counts().stored
        self._share = own / max(own, pages, 1)
        self._granted = max(0.0, left * self._share - self._frontier.partitions.uncounted_visits)

    def per_day_of(self, pages: int) -> float:
        """Visits a day of a crawl with this number of pages."""
        return self._per_day or max(1.0, pages * PAGES_A_DAY)

    @property
    def per_day(self) -> float:
        """Visits a day."""
        own = self.per_day_of(self._frontier.backend.counts().stored)
        return own * self._share if self._per_day else own

    @property
    def _confirmations_a_day(self) -> float:
        return max(LEAST_CONFIRMATIONS, CONFIRMATIONS * self.per_day)

    @property
    def theta(self) -> float:
        """The least worth of a visit. At first every page is visited in a round."""
        return self.lowest or value(self.round, *prior(RATE_OF_ANY))

    @property
    def round(self) -> float:
        """Seconds in which the budget visits every page once."""
        if not self._per_day:
            return DAY / PAGES_A_DAY
        return max(DAY, self._frontier.backend.counts().stored / max(self.per_day, 1e-9) * DAY)


def _wait(budget: Budget, per_day: float) -> float:
    """Seconds until a budget has a visit."""
    return 0.0 if budget.left >= 1 else (1 - budget.left) / max(per_day, 1e-9) * DAY
