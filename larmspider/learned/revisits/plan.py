"""Plans the visits of a run with ``due`` or ``watch``. The plan ranks all records, a slice at a
time, and keeps the most valuable visits that the budget allows.

    plan.begin(now)
    plan.rank(records, now)       # for each slice
    plan.end(now)                 # the pages of the plan are due at PLANNED
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush, heappushpop
from math import inf
from typing import TYPE_CHECKING

from larmspider.frontier import dispatch
from larmspider.frontier.hosts import HostState
from larmspider.frontier.storage.records import FetchRecord, UrlState, host_of, url_key
from larmspider.learned.deletes.table import confirmed_from
from larmspider.learned.revisits.refresh import (
    DAY,
    SAMPLED,
    SOONEST,
    Reservoir,
    prior,
    until_worth,
    value,
)
from larmspider.urls.schemes import is_source_folder

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier
    from larmspider.frontier.part import HostNotes
    from larmspider.learned.revisits.budget import VisitBudget
    from larmspider.learned.revisits.host import HostKnowledge
    from larmspider.urls.normalizer import UrlForms

DUE, ALL, WATCH = "due", "all", "watch"
"""LARM_REFRESH, except for patterns."""
ASKED, SIGNALLED = 1.0, 2.0
"""Values of ``due`` that come before all others: pages that an operator asked for, then pages that
a site calls changed."""
CONFIRM = 1.5
"""``due`` of pages that were missing at their last visit, if a further visit may confirm it."""
PLANNED = 3.0
"""``due`` of pages that are worth a visit now."""
TICK_SECS = 60.0
"""Between two plans of a run that watches, at least."""
OLDEST_SHARE = 0.5
"""The share of visits for the pages visited longest ago. Every page is thus visited within two
rounds."""
OVERDUE = 1.5
"""After 1.5 rounds (VisitBudget.round) without a visit a page goes first, whatever its worth."""
PLAN_SHARE = 0.01
"""The share of the time that planning takes."""
FAILED_WEIGHT = 0.1
"""The weight of a URL that had no page at its last visit."""
ROBOTS_AGAIN_SECS = 30 * DAY
"""Until a URL that robots.txt does not allow is checked again, which costs no request."""
MAX_RECHECKED = 1_000
"""URLs that robots.txt did not allow and that one plan checks, 1 ms each."""
_VARIANTS = 10


class VisitPlan:
    """``hosts``: what is known about each host."""

    def __init__(
        self,
        frontier: Frontier,
        forms: UrlForms,
        budget: VisitBudget,
        hosts: HostNotes[HostKnowledge],
        mode: str,
        random: Callable[[], float],
    ) -> None:
        self._frontier, self._forms, self._budget, self._hosts = frontier, forms, budget, hosts
        self._mode, self._random = mode, random
        self.to_confirm: dict[bytes, float] = {}
        """From when on visits may confirm missing pages."""
        self.checked: set[bytes] = set()
        """Pages chosen at random, which are to be visited."""
        self.next_time = 0.0
        """When the next plan is due; 0.0: no plan was made yet."""
        self._missing: list[tuple[float, bytes, FetchRecord]] = []  # a heap: -since, key
        self._oldest: list[tuple[float, bytes, FetchRecord]] = []  # a heap: age, key
        self._best: list[tuple[float, bytes, FetchRecord]] = []  # a heap: worth, key
        self._room = 0  # the most visits in _best
        self._sample = Reservoir[tuple[bytes, FetchRecord]](0, random)
        self._first_visit = inf  # time of the oldest last visit
        self._took = 0.0  # seconds, for this plan
        self._rechecked = 0  # URLs that robots.txt did not allow, in this plan

    def begin(self, now: float) -> None:
        """Fill the budget."""
        self._budget.fill(now)
        self._best, self._room, self._took = [], int(self._budget.visits.left), 0.0
        self.to_confirm.clear()
        self._rechecked = 0
        self._missing, self._oldest = [], []
        number = min(self._room, int(self._budget.visits.left / SAMPLED + self._random()))
        self._sample = Reservoir(number, self._random)

    def spent(self, seconds: float) -> None:
        """Add ``seconds`` to the time that this plan took."""
        self._took += seconds

    def rank(self, records: Iterable[tuple[bytes, FetchRecord]], now: float) -> None:
        """Keep the pages whose visit is worth most, one for each visit of the budget."""
        back, beside = [], []
        for key, visit in records:
            if visit.due and visit.time <= now:
                self._first_visit = min(self._first_visit, visit.time)
            if not 0.0 < visit.due <= SIGNALLED and self._is_to_list(visit, now):
                beside.append((key, ASKED, visit))
                continue
            if visit.state is UrlState.REFUSED:
                if self._is_to_recheck(visit, now):
                    beside.append((key, ASKED, visit))
                continue
            if visit.due and visit.state is UrlState.STORED:
                self._sample.offer((key, visit))
            if 0.0 < visit.due <= SIGNALLED:
                continue
            if not visit.due and not self.is_page(key, visit.url):
                continue
            age = self.age(visit, now)
            if visit.state is UrlState.STORED and (at := confirmed_from(visit)):
                self.to_confirm[key] = at if visit.time <= now else now
                is_early = visit.time <= now < at  # else the clock was set back
                if is_early or self._is_to_confirm(key, visit):
                    continue
            if visit.state is UrlState.STORED and self._is_reached(visit):
                oldest = age, key, visit
                if len(self._oldest) < self._room:
                    heappush(self._oldest, oldest)
                elif self._room:
                    heappushpop(self._oldest, oldest)
            item = self._worth(visit, now), key, visit
            is_old = age >= SOONEST
            if is_old and len(self._best) < self._room:
                heappush(self._best, item)
                continue
            if is_old and self._room:
                item = heappushpop(self._best, item)
            if item[2].due == PLANNED:  # by an earlier plan that was not carried out
                back.append((item[1], item[2].time + self.interval(item[2])))
        self._frontier.backend.schedule(back)
        self.make_due(beside)

    def _is_to_list(self, visit: FetchRecord, now: float) -> bool:
        """Whether the page is a folder of files. Each run visits it, outside of the budget, because
        its list has the time of each file. A run with ``watch`` visits it once a day."""
        if not is_source_folder(visit.url) or visit.state is not UrlState.STORED:
            return False
        return self.age(visit, now) >= (SOONEST if self._mode == DUE else DAY)

    def _is_to_recheck(self, visit: FetchRecord, now: float) -> bool:
        """Whether a URL that robots.txt did not allow is checked, which costs no request."""
        is_late = not 0 <= now - visit.time < ROBOTS_AGAIN_SECS  # or the clock was set back
        if is_refused(visit) or not is_late or self._rechecked >= MAX_RECHECKED:
            return False
        self._rechecked += 1
        return True

    def next_visit(self, now: float) -> float:
        """When a run with ``due`` visits next: the budget allows a visit and the oldest visit is an
        hour ago, or a confirmation is due, which has its own budget."""
        first = self._first_visit if self._first_visit < inf else 0.0
        found = max(self._budget.next_visit(now), first + SOONEST)
        if self.to_confirm:
            earliest = min(self.to_confirm.values())
            found = min(found, max(self._budget.next_confirmation(now), earliest))
        return found

    def _is_to_confirm(self, key: bytes, visit: FetchRecord) -> bool:
        """Whether the budget of confirmations has a visit for a missing page. Pages that are
        missing for longest come first."""
        room = int(self._budget.confirming.left)
        item = -visit.missing_since, key, visit
        if len(self._missing) < room:
            heappush(self._missing, item)
            return True
        return bool(room) and heappushpop(self._missing, item) is not item

    def _is_reached(self, visit: FetchRecord) -> bool:
        """Whether the host of a page may get requests: pages of other hosts would take the places
        of pages that can be visited."""
        host = self._frontier.hosts.get(host_of(visit.url))
        if host is None or host.paused:
            return False
        return host.record.state is not HostState.PARKED and not host.record.silent_since

    def _add_oldest(self) -> None:
        """Visit the pages whose last visit is longest ago in place of the pages with the lowest
        worth: half of the plan, and all overdue pages."""
        self._oldest.sort(key=lambda item: -item[0])
        least, most = int(self._room * OLDEST_SHARE + self._random()), OVERDUE * self._budget.round
        forced = [
            item
            for at, item in enumerate(self._oldest)
            if (at < least or item[0] > most) and item[0] >= SOONEST
        ]
        self._oldest = []
        planned = {key for _, key, _ in self._best}
        keep = {key for _, key, _ in forced}
        missing = [(key, visit) for _, key, visit in forced if key not in planned]
        if not missing:
            return
        others = sorted(item for item in self._best if item[1] not in keep)
        number = max(0, len(self._best) + len(missing) - self._room)
        self._put_back(others[:number])
        left = [item for item in self._best if item[1] in keep]
        now = self._frontier.clock()
        self._best = [
            *others[number:],
            *left,
            *((self._worth(visit, now), key, visit) for key, visit in missing),
        ]
        heapify(self._best)

    def _put_back(self, items: Iterable[tuple[float, bytes, FetchRecord]]) -> None:
        """Take pages that an earlier plan had and this plan lacks out of the plan: they are due at
        their own time again."""
        back = [
            (key, visit.time + self.interval(visit))
            for _, key, visit in items
            if visit.due == PLANNED
        ]
        self._frontier.backend.schedule(back)

    def age(self, visit: FetchRecord, now: float) -> float:
        """Seconds since the last visit. If that time lies in the future, because the clock was set
        back, the visit counts as one round old."""
        age = now - visit.time
        return age if age >= 0 else self._budget.round

    def _worth(self, visit: FetchRecord, now: float) -> float:
        passed = self.age(visit, now)
        known = self._hosts.of(host_of(visit.url))
        a, b = (visit.a, visit.b) if visit.b else prior(known.rate)
        return value(known.pace.elapsed(now - passed, now), a, b, _weight(visit))

    def end(self, now: float) -> None:
        if self._best and len(self._best) == self._room:
            self._budget.lowest = self._best[0][0]
        self._add_oldest()
        self._add_sample(now)
        best, self._best = self._best, []
        missing, self._missing = self._missing, []
        self.make_due([(key, CONFIRM, visit) for _, key, visit in missing])
        self.make_due([(key, PLANNED, visit) for _, key, visit in best])
        self.next_time = now + max(TICK_SECS, self._took / PLAN_SHARE)
        self.schedule(self._frontier.hosts)

    def _add_sample(self, now: float) -> None:
        """Visit the pages chosen at random in place of the pages with the lowest worth."""
        planned = {key for _, key, _ in self._best}
        for key, visit in self._sample.chosen:
            if self.age(visit, now) < SOONEST:
                self.check(host_of(visit.url), current=True)
                continue
            self.checked.add(key)
            if key in planned or visit.due <= SIGNALLED:
                continue
            item = self._worth(visit, now), key, visit
            while len(self._best) >= self._room:
                _, least, left = heappop(self._best)
                if left.due == PLANNED:
                    self._frontier.backend.schedule([(least, left.time + self.interval(left))])
            heappush(self._best, item)

    def check(self, host: str, *, current: bool) -> None:
        self._hosts.of(host).checks.add(self._frontier.clock(), current=current)
        self._hosts.touch(host)

    def interval(self, visit: FetchRecord) -> float:
        """Seconds between the last visit of a page and its next one."""
        a, b = (visit.a, visit.b) if visit.b else prior(self._hosts.of(host_of(visit.url)).rate)
        return until_worth(self._budget.theta, a, b, _weight(visit))

    def is_page(self, key: bytes, url: str) -> bool:
        """Whether a URL is all that its Request was: no POST, for example."""
        exact = self._forms(url).exact
        spellings = (f"{exact}#{number}" for number in range(1, _VARIANTS))
        return url_key(exact) == key or key in map(url_key, spellings)

    # what follows for the frontier

    def make_due(self, pages: Sequence[tuple[bytes, float, FetchRecord]]) -> None:
        self._frontier.backend.schedule([(key, at) for key, at, _ in pages])
        self.schedule({host_of(visit.url) for _, _, visit in pages})

    def schedule(self, hosts: Iterable[str]) -> None:
        for name in list(hosts):
            dispatch.reschedule(self._frontier, name)


def is_refused(visit: FetchRecord) -> bool:
    """Whether a store, the operator or the scope refused the URL, so that it is never revisited."""
    return visit.state is UrlState.REFUSED and visit.reason != dispatch.ROBOTS_REASON


def _weight(visit: FetchRecord) -> float:
    return 1.0 if visit.state is UrlState.STORED else FAILED_WEIGHT
