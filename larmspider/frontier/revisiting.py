"""Which pages a run visits again, and what each visit means for the next one.

    frontier.refresh = Revisiting(frontier, forms, mode="due", per_day=0)
    entry = refresh.take("wiki:80", now)            # a QueuedUrl with its record in ``visit``
    decision = refresh.judge(entry, record, Observation.SAME, now)
    frontier.acknowledge(lease, decision.record)    # it names the time of the next visit

Without a mode, as in a first crawl, pages only get the time of their next visit. With ``due`` and
``watch`` those are visited whose visit is worth most now, as many as the budget allows, one in 40
of them chosen at random, which shows how many pages are as stored: all records are gone through
for that, 8 us each, for an order by stored times is none once theta has moved
(benchmarks/refresh.py). Pages that were missing at their last visit come first, beside the budget
(deletes.py). Half of the visits go to the pages whose last visit is longest ago.

With ``all`` or a pattern each page that matches is visited once, whatever the budget. A run that
was broken off is gone on with by the same mode: what it has visited is not visited again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from heapq import heapify, heappop, heappush, heappushpop
from math import inf
from typing import TYPE_CHECKING, Any

import msgpack
import msgspec
from msgspec.structs import replace

from larmspider.extraction.fingerprint import Volatile
from larmspider.formatting import counted, utc
from larmspider.frontier import dispatch
from larmspider.frontier.delete_gate import CLOCK, FIRST, LOGIN_EXPIRED, Notice
from larmspider.frontier.deletes import (
    PRESENT,
    TABLE,
    Decision,
    Observation,
    approved,
    confirmed_from,
    decide,
)
from larmspider.frontier.hosts import HostState, Lease
from larmspider.frontier.moves import Successor, is_seen_since, stands_for
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.refresh import (
    DAY,
    PAGES_A_DAY,
    SAMPLED,
    SOONEST,
    Budget,
    Checks,
    Pace,
    Reservoir,
    learned,
    prior,
    until_worth,
    value,
)
from larmspider.frontier.storage.records import (
    BODY_DIGEST,
    NO_DIGEST,
    FetchRecord,
    QueuedUrl,
    UrlState,
    host_of,
    packed,
    url_key,
)
from larmspider.frontier.validators import Validators
from larmspider.items import Removed
from larmspider.urls.file_urls import is_folder

if TYPE_CHECKING:
    from larmspider.frontier.delete_gate import DeleteGate
    from larmspider.frontier.frontier import Frontier
    from larmspider.urls.canonical import Forms
    from larmspider.urls.normalizer import UrlForms

DUE, ALL, WATCH = "due", "all", "watch"


class Purpose(StrEnum):
    """The purpose of a request of a refresh. The words are parts of stats keys."""

    VISIT = "visits"
    SECOND_LOOK = "second_looks"
    """A page once more at once, or whether a page is gone."""
    PROOF = "proofs"
    """A canary, or a made-up URL: what the answers of a host mean."""
    OTHER = "other"
    """New pages, robots.txt, sitemaps, feeds, logins, retries."""


ASKED, SIGNALLED = 1.0, 2.0
"""Times, before all others, of pages that somebody asked for, and that a site says have changed."""
CONFIRM = 1.5
"""The time of pages that were missing at their last visit, where another one may confirm it."""
PLANNED = 3.0
"""The time of pages that are worth a visit now."""
NOTE = "refresh"
NOTE_ENDED = "ended"
"""The crawl came to its end once."""
SLICE = 500
"""URLs that are looked at in one turn when a run begins; 10 ms."""
TICK_SECS = 60.0
"""Between two plans of a run that watches, at least."""
CONFIRMATIONS, LEAST_CONFIRMATIONS = 2, 20
"""The budget of confirmations: CONFIRMATIONS for each visit of the budget, and at least
LEAST_CONFIRMATIONS a day. A page that is missing takes two more visits."""
OLDEST_SHARE = 0.5
"""The share of the visits that go to the pages whose last visit is longest ago: a run visits each
page within twice the time that one page after the other takes."""
OVERDUE = 1.5
"""After 1.5 rounds without a visit a page comes before all that are worth more."""
PLAN_SHARE = 0.01
"""Of the time, for planning."""
FAILED_WEIGHT = 0.1
"""Of a URL that had no page at its last visit."""
AGAIN_SECS = DAY
"""After a visit that did not show the page."""
ROBOTS_AGAIN_SECS = 30 * DAY
"""Until a URL that robots.txt does not allow is looked at again, which costs no request."""
GONE_AGAIN_SECS = 30 * DAY
"""Until a URL whose page has left is queued once more, as if a page had named it."""
MAX_GONE = 10_000
"""Such URLs of a host that are remembered, the last ones."""
_MAY_BE_BACK = frozenset(
    {Observation.MISSING, Observation.GONE, Observation.ROBOTS, Observation.DENIED}
)
"""What shows again, of a new URL, that there is no page; an error page with 200 would be one."""
_VARIANTS = 10


class _Learned(msgspec.Struct, array_like=True):
    """The note ``refresh`` of a host. New fields go to the end, with a default."""

    changes: float = 0.0
    exposure: float = 0.0
    checks: dict[int, list[int]] = {}
    gone: list[tuple[float, str, int]] = []
    pace: list[Any] = []


@dataclass(slots=True)
class HostKnowledge:
    """What visits again have taught about a host. ``changes`` of its pages, seen in ``exposure``
    seconds of all pages together. ``doubtful``: pages of which a store may have another version
    than their records, since a crash. ``checks`` of its pages that were chosen at random. ``gone``:
    time, URL and depth of pages that have left. ``pace``: on which days many of them changed."""

    volatile: Volatile = field(default_factory=Volatile)
    validators: Validators = field(default_factory=Validators)
    changes: float = 0.0
    exposure: float = 0.0
    doubtful: set[bytes] = field(default_factory=set)
    checks: Checks = field(default_factory=Checks)
    gone: list[tuple[float, str, int]] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)

    def pack(self) -> bytes:
        """What the note ``refresh`` of the host has."""
        gone, pace = self.gone[-MAX_GONE:], self.pace.pack()
        return packed(_Learned(self.changes, self.exposure, self.checks.days, gone, pace))

    def unpack(self, note: bytes | None) -> None:
        """None: nothing is known."""
        if note:
            known = msgspec.msgpack.decode(note, type=_Learned)
            self.changes, self.exposure, self.gone = known.changes, known.exposure, known.gone
            self.checks = Checks(known.checks)
            self.pace = Pace.unpack(known.pace) if known.pace else Pace()

    @property
    def rate(self) -> float:
        """Changes a second of a page."""
        return (self.changes + 1) / (self.exposure + 60 * DAY)


_RATE_OF_ANY = HostKnowledge().rate


class Revisiting:
    """``per_day``: visits a day, 0: a thirtieth of the pages. ``matches`` decides in a run by
    pattern, ``is_removed`` which URLs the operator has taken out."""

    def __init__(
        self,
        frontier: Frontier,
        forms: UrlForms,
        *,
        mode: str = "",
        per_day: float = 0.0,
        matches: Callable[[str], bool] | None = None,
        random: Callable[[], float] = random.random,
        is_removed: Callable[[Forms], bool] = lambda _: False,
    ) -> None:
        self._frontier, self._forms = frontier, forms
        self.mode, self.matches = mode, matches
        self._per_day = per_day
        self.visited = 0
        """Pages that this run has visited again, or found for the first time."""
        self.until = 0.0
        """Pages that are due by then are visited."""
        self.looks: dict[bytes, object] = {}
        """URLs that are fetched once more at once, without validators: what the first look was."""
        self.targets: dict[tuple[str, str], set[bytes]] = {}
        """The stored pages of a host that redirect to a URL, in this run."""
        self._hosts: dict[str, HostKnowledge] = {}
        self._changed: set[str] = set()
        self._budget = Budget(per_day)
        self._confirming = Budget(0.0)  # visits that confirm, beside the budget
        self._paid: set[bytes] = set()  # planned visits that are charged, and not judged yet
        self._requested: set[bytes] = set()  # pages whose visit has begun, and is not judged yet
        self._missing: list[tuple[float, bytes, FetchRecord]] = []  # a heap: -since, key
        self._oldest: list[tuple[float, bytes, FetchRecord]] = []  # a heap: age, key
        self._to_confirm: dict[bytes, float] = {}  # from when on visits may confirm missing pages
        self._theta = 0.0
        self._since = 0.0  # when the run that visits all began
        self._ended = False  # whether NOTE_ENDED is there
        self._cursor: bytes | None = None  # of the sweep; None: none is under way
        self._best: list[tuple[float, bytes, FetchRecord]] = []  # a heap: worth, key
        self._room = 0  # of it
        self._random, self.is_removed = random, is_removed
        self._sample = Reservoir[tuple[bytes, FetchRecord]](0, random)
        self._checked: set[bytes] = set()  # pages chosen at random, which are to be visited
        self._first_visit = inf  # time of the oldest last visit
        self._took = 0.0  # seconds, for this plan
        self._next_plan = 0.0
        self._share = 1.0  # this worker's of all pages
        self._granted: float | None = None  # visits that it may plan; None: to be asked for

    def __repr__(self) -> str:
        return f"<Revisiting {self.mode or 'nothing'} until {self.until:.0f}, {self._budget}>"

    # life

    def recover(self) -> None:
        """After the backend's."""
        backend, now = self._frontier.backend, self._frontier.clock()
        found = backend.note(NOTE)
        kept = msgpack.unpackb(found) if found else {}
        self._budget.left, self._budget.at = kept.get("left", 0.0), kept.get("at", 0.0)
        self._theta = kept.get("theta", 0.0)
        self._confirming.left, self._confirming.at = kept.get("confirming", (0.0, 0.0))
        if self.mode and kept.get("clock", 0.0) - now > DAY:
            self._clock_was_set_back(kept["clock"], now)
        goes_on = self.mode and kept.get("mode") == self.mode
        self._since = min(kept.get("since", now), now) if goes_on else now
        self._ended = backend.note(NOTE_ENDED) is not None
        if self._visits_all:
            self._cursor, self.until = b"", ASKED

    def _clock_was_set_back(self, last: float, now: float) -> None:
        """Tell the operator; the next run compares with the clock of this one."""
        days = counted(round((last - now) / DAY), "day")
        text = (
            f"The clock was set back: the last run began or ended {days} later, on"
            f" {utc(last)[:10]}. Its visits count as one round old, and missing pages restart."
        )
        self.gate.notices.append(Notice(CLOCK, utc(now)[:10], text))

    def begin(self, since: float) -> None:
        """Workers that visit all began then."""
        self._since = since

    def entered(self) -> None:
        """Pages came from another worker: they are looked through, too."""
        if self._visits_all:
            self._cursor = b""
        elif self.mode:
            self._cursor, self._next_plan, self._granted = None, 0.0, None

    @property
    def _visits_all(self) -> bool:
        return bool(self.mode) and self.mode not in (DUE, WATCH)

    def save(self) -> None:
        """Into notes of the backend, before a batch is sealed."""
        put = self._frontier.backend.put_note
        for host in self._changed:
            known = self._hosts[host]
            put(f"volatile {host}", known.volatile.pack())
            put(f"validators {host}", known.validators.pack())
            put(f"refresh {host}", known.pack())
            if known.doubtful or self._frontier.backend.note(f"doubtful {host}"):
                put(f"doubtful {host}", b"".join(known.doubtful))
        self._changed.clear()
        put(NOTE, msgpack.packb(self._kept()))
        if not self._ended and self._frontier.finished and self._frontier.backend.counts().stored:
            put(NOTE_ENDED, b"1")
            self._ended = True

    def _kept(self) -> dict[str, object]:
        kept: dict[str, object] = {
            "left": self._budget.left,
            "at": self._budget.at,
            "theta": self._theta,
            "clock": self.clock(),
            "confirming": (self._confirming.left, self._confirming.at),
        }
        if self._visits_all and not self._frontier.finished:
            kept |= {"mode": self.mode, "since": self._since}
        return kept

    # the run

    @property
    def has_work(self) -> bool:
        """Whether the run is not through with what it looks for, or goes on for ever."""
        return self.mode == WATCH or self._cursor is not None or self._wants_plan

    @property
    def _wants_plan(self) -> bool:
        return self.mode == DUE and not self._next_plan

    @property
    def next_time(self) -> float | None:
        """When work() has something to do; None: never."""
        if self.wants_budget:
            return None
        if self._cursor is not None or self._wants_plan:
            return 0.0
        return self._next_plan if self.mode == WATCH else None

    @property
    def wants_budget(self) -> bool:
        """Whether grant() has to be called before the next plan, of a worker among many."""
        shared = self._frontier.partitions is not None and self._granted is None
        due = self._wants_plan or (self.mode == WATCH and self.clock() >= self._next_plan)
        return shared and self._cursor is None and due

    def grant(self, left: float, pages: int) -> None:
        """The budget of the crawl, which has so many ``pages``, has ``left`` so many visits. This
        worker makes its share of them, by the pages that it has."""
        assert self._frontier.partitions is not None
        own = self._frontier.backend.counts().stored
        self._share = own / max(own, pages, 1)
        self._granted = max(0.0, left * self._share - self._frontier.partitions.uncounted_visits)

    def per_day_of(self, pages: int) -> float:
        """Visits a day of a crawl that has so many pages."""
        return self._per_day or max(1.0, pages * PAGES_A_DAY)

    def work(self, now: float) -> bool:
        """Look for pages to visit, in a slice. False: there is nothing to look for now."""
        if self._cursor is None:
            if not (self._wants_plan or (self.mode == WATCH and now >= self._next_plan)):
                return False
            if self.wants_budget:
                return False
            self._budget.per_day = self.per_day
            if self._granted is None:
                self._budget.fill(now)
            else:
                self._budget.left, self._granted = self._granted, None
            self._best, self._room, self._took = [], int(self._budget.left), 0.0
            self._confirming.per_day = self._confirmations_a_day
            self._to_confirm.clear()
            self._confirming.fill(now)
            self._missing, self._oldest = [], []
            number = min(self._room, int(self._budget.left / SAMPLED + self._random()))
            self._sample = Reservoir(number, self._random)
            self._cursor = b""
        if not self._cursor:
            self._queue_gone(now)
            if not self._visits_all:
                self._look_at_undecided(now)
        began = time.perf_counter()
        found = self._frontier.backend.visits(self._cursor, SLICE)
        self._cursor = found[-1][0] if found else None
        records = [(key, visit) for key, visit in found if visit is not None and visit.url]
        if self._visits_all:
            wanted = [(key, visit) for key, visit in records if self._is_wanted(key, visit)]
            self._make_due([(key, asked_at(visit), visit) for key, visit in wanted])
        else:
            self._rank(records, now)
            self._took += time.perf_counter() - began
            if self._cursor is None:
                self._end_plan(now)
        return True

    def _queue_gone(self, now: float) -> None:
        """URLs whose pages have left long ago are new ones again: nobody may link to a page that
        is back."""
        entries = []
        for host in list(self._frontier.hosts):
            known = self.known(host)
            left = []
            for at, url, depth in known.gone:
                normalized, exact = forms = self._forms(url)
                is_wanted = self.matches is None or self.matches(normalized)
                if abs(now - at) < GONE_AGAIN_SECS or not is_wanted:
                    left.append((at, url, depth))
                elif not self.is_removed(forms):
                    entries.append(self._frontier.entry(url, normalized, exact=exact, depth=depth))
            if len(left) < len(known.gone):
                known.gone = left
                self.touch(host)
        self._frontier.add(entries)

    def _look_at_undecided(self, now: float) -> None:
        """The pages that are undecided for longest are visited once a week, so that the operator
        hears of them in time."""
        for name, host in self._frontier.hosts.items():
            pages = self.gate.to_look_at(name, now)
            if pages and not host.paused and not host.record.is_silent:
                self._make_due([(key, CONFIRM, visit) for key, visit in pages])

    def _make_due(self, pages: Sequence[tuple[bytes, float, FetchRecord]]) -> None:
        self._frontier.backend.schedule([(key, at) for key, at, _ in pages])
        self._schedule({host_of(visit.url) for _, _, visit in pages})

    def _is_wanted(self, key: bytes, visit: FetchRecord) -> bool:
        """In a run that visits all that match."""
        if _is_refused(visit) or visit.due == ASKED:
            return False
        is_done = self._since <= visit.time <= self.clock()  # later: by a clock that was set back
        if is_done and not self.gate.has_lost(host_of(visit.url), key, visit):
            return False
        if self.matches is not None and not self.matches(self._forms(visit.url).normalized):
            return False
        return bool(visit.due) or self._is_page(key, visit.url)

    def _rank(self, records: Iterable[tuple[bytes, FetchRecord]], now: float) -> None:
        """Keep as many pages as the budget has: those whose visit is worth most."""
        back, folders = [], []
        for key, visit in records:
            if visit.due and visit.time <= now:
                self._first_visit = min(self._first_visit, visit.time)
            if not 0.0 < visit.due <= SIGNALLED and self._is_to_list(visit, now):
                folders.append((key, ASKED, visit))
                continue
            if visit.due and visit.state is UrlState.STORED:
                self._sample.offer((key, visit))
            if _is_refused(visit) or 0.0 < visit.due <= SIGNALLED:
                continue
            if not visit.due and not self._is_page(key, visit.url):
                continue
            age = self._age(visit, now)
            if visit.state is UrlState.STORED and (at := confirmed_from(visit)):
                self._to_confirm[key] = at if visit.time <= now else now
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
                back.append((item[1], item[2].time + self._interval(item[2])))
        self._frontier.backend.schedule(back)
        self._make_due(folders)

    def _is_to_list(self, visit: FetchRecord, now: float) -> bool:
        """Whether the page is a folder of files: each run lists it, beside the budget, for the
        list says when each file was changed; a run that watches once a day."""
        if not is_folder(visit.url) or visit.state is not UrlState.STORED:
            return False
        return self._age(visit, now) >= (SOONEST if self.mode == DUE else DAY)

    def next_visit(self, now: float) -> float:
        """When a run with ``due`` has something to visit next: its budget has a visit then, and an
        hour has passed since the last visit of the page that was visited first; or a visit may
        confirm that a page is missing, for which there is another budget."""
        first = self._first_visit if self._first_visit < inf else 0.0
        found = max(now + _wait(self._budget, self.per_day), first + SOONEST)
        if self._to_confirm:
            wait = _wait(self._confirming, self._confirmations_a_day)
            found = min(found, max(now + wait, min(self._to_confirm.values())))
        return found

    def _is_to_confirm(self, key: bytes, visit: FetchRecord) -> bool:
        """Whether the budget of confirmations may have a page that is missing: those that are so
        for longest come first."""
        room = int(self._confirming.left)
        item = -visit.missing_since, key, visit
        if len(self._missing) < room:
            heappush(self._missing, item)
            return True
        return bool(room) and heappushpop(self._missing, item) is not item

    def _is_reached(self, visit: FetchRecord) -> bool:
        """Whether the host of a page may be asked: pages of others would wait in the place of
        those that can be visited."""
        host = self._frontier.hosts.get(host_of(visit.url))
        if host is None or host.paused:
            return False
        return host.record.state is not HostState.PARKED and not host.record.silent_since

    def _add_oldest(self) -> None:
        """Visit the pages whose last visit is longest ago in place of those that are worth
        least: half of them, and all that are overdue."""
        self._oldest.sort(key=lambda item: -item[0])
        least, most = int(self._room * OLDEST_SHARE + self._random()), OVERDUE * self._round
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
        now = self.clock()
        self._best = [
            *others[number:],
            *left,
            *((self._worth(visit, now), key, visit) for key, visit in missing),
        ]
        heapify(self._best)

    def _put_back(self, items: Iterable[tuple[float, bytes, FetchRecord]]) -> None:
        """Pages that an earlier plan had, and this one has not."""
        back = [
            (key, visit.time + self._interval(visit))
            for _, key, visit in items
            if visit.due == PLANNED
        ]
        self._frontier.backend.schedule(back)

    def _age(self, visit: FetchRecord, now: float) -> float:
        """Seconds since the last visit; as if it was a round ago where it is ahead of the clock,
        which was set back."""
        age = now - visit.time
        return age if age >= 0 else self._round

    def _worth(self, visit: FetchRecord, now: float) -> float:
        passed = self._age(visit, now)
        known = self.known(host_of(visit.url))
        a, b = (visit.a, visit.b) if visit.b else prior(known.rate)
        return value(known.pace.elapsed(now - passed, now), a, b, _weight(visit))

    def _end_plan(self, now: float) -> None:
        if self._best and len(self._best) == self._room:
            self._theta = self._best[0][0]
        self._add_oldest()
        self._add_sample(now)
        best, self._best = self._best, []
        missing, self._missing = self._missing, []
        self.until = PLANNED
        self._make_due([(key, CONFIRM, visit) for _, key, visit in missing])
        self._make_due([(key, PLANNED, visit) for _, key, visit in best])
        self._next_plan = now + max(TICK_SECS, self._took / PLAN_SHARE)
        self._schedule(self._frontier.hosts)

    def _add_sample(self, now: float) -> None:
        """Visit the pages chosen at random in place of those that are worth least."""
        planned = {key for _, key, _ in self._best}
        for key, visit in self._sample.chosen:
            if self._age(visit, now) < SOONEST:
                self._check(host_of(visit.url), current=True)
                continue
            self._checked.add(key)
            if key in planned or visit.due <= SIGNALLED:
                continue
            item = self._worth(visit, now), key, visit
            while len(self._best) >= self._room:
                _, least, left = heappop(self._best)
                if left.due == PLANNED:
                    self._frontier.backend.schedule([(least, left.time + self._interval(left))])
            heappush(self._best, item)

    def _check(self, host: str, *, current: bool) -> None:
        self.known(host).checks.add(self.clock(), current=current)
        self.touch(host)

    def _is_page(self, key: bytes, url: str) -> bool:
        """Whether a URL is all that its Request was: no POST, for example."""
        exact = self._forms(url).exact
        spellings = (f"{exact}#{number}" for number in range(1, _VARIANTS))
        return url_key(exact) == key or key in map(url_key, spellings)

    def _schedule(self, hosts: Iterable[str]) -> None:
        for name in list(hosts):
            if (host := self._frontier.hosts.get(name)) is not None:
                dispatch.schedule(self._frontier, host)

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
        """What a visit has to be worth: at first so much that every page is visited in a round."""
        return self._theta or value(self._round, *prior(_RATE_OF_ANY))

    @property
    def _round(self) -> float:
        """Seconds in which the budget visits every page once."""
        if not self._per_day:
            return DAY / PAGES_A_DAY
        return max(DAY, self._frontier.backend.counts().stored / max(self.per_day, 1e-9) * DAY)

    # one page

    def next_time_of(self, host: str) -> float | None:
        """When take() has a page of a host, 0.0 for now; None: it has none."""
        return self._frontier.backend.next_due(host, self.until) if self.mode else None

    def take(self, host: str, now: float) -> QueuedUrl | None:
        """Lease the next page of a host that is to be visited."""
        backend = self._frontier.backend
        while found := backend.due(host, now, 1, self.until):
            entry = found[0]
            assert entry.visit is not None
            if entry.key in self.known(host).doubtful:
                entry.visit = _doubted(entry.visit)
            due, first = entry.visit.due, not entry.attempts and entry.key not in self.looks
            if due <= ASKED or not first or entry.key in self._paid:
                return entry
            if due == CONFIRM:
                if self._confirming.spend():
                    self._paid.add(entry.key)
                    return entry
                later = max(confirmed_from(entry.visit), now + SOONEST)  # not in this run
                backend.acknowledge([(entry.key, replace(entry.visit, due=later))])
                continue
            if due > SIGNALLED and self._age(entry.visit, now) < SOONEST:
                later = max(entry.visit.time + SOONEST, self.until + 1)  # not in this plan
                backend.acknowledge([(entry.key, replace(entry.visit, due=later))])
            elif self._budget.spend():
                self._paid.add(entry.key)
                if self._frontier.partitions is not None:
                    self._frontier.partitions.count_visit()
                return entry
            else:
                backend.release([(entry.key, 0.0, 0)])
                self.until = CONFIRM
        return None

    def purpose_of(self, lease: Lease) -> Purpose:
        """The purpose of a request that has just been made."""
        entry = lease.entry
        if entry is None:
            return Purpose.PROOF if lease.kind is FetchKind.MADE_UP else Purpose.OTHER
        if entry.visit is None or entry.attempts:
            return Purpose.OTHER
        if entry.key in self.looks or entry.key in self._requested:
            return Purpose.SECOND_LOOK
        self._requested.add(entry.key)
        due = entry.visit.due
        if due == FIRST and self.mode != ALL:
            return Purpose.PROOF
        is_asked = entry.visit.depth >= 400 if self._visits_all else is_folder(entry.url)
        return Purpose.SECOND_LOOK if due in (ASKED, CONFIRM) and not is_asked else Purpose.VISIT

    def doubt(self, names: Iterable[str]) -> list[str]:
        """See signals.in_doubt. Who has the host now, of many workers, hears of those that this one
        has stored."""
        unknown, entries, partitions = [], [], self._frontier.partitions
        for name in names:
            visit = self._frontier.backend.visit(key := url_key(name))
            if visit is None or visit.state is not UrlState.STORED or visit.shard:
                unknown.append(name)
            else:
                entries.append(QueuedUrl(visit.url, visit.url, key, host_of(visit.url)))
        if partitions is not None:
            entries = partitions.split_again(entries, doubted=True)
        self.doubted(entries)
        return unknown

    def doubted(self, entries: Iterable[QueuedUrl]) -> None:
        """Those of them that are stored equal no page until they were visited."""
        for entry in entries:
            visit = self._frontier.backend.visit(entry.key)
            if visit is not None and visit.state is UrlState.STORED:
                self._doubt(host_of(visit.url), entry.key)

    def _doubt(self, host: str, key: bytes) -> None:
        self.known(host).doubtful.add(key)
        self.touch(host)

    def lost_body_of(self, entry: QueuedUrl) -> bytes:
        """The digest of the body that a doubtful page had; b"" for other pages."""
        if entry.key not in self.known(entry.host).doubtful:
            return b""
        before = self._frontier.backend.visit(entry.key)
        digest = b"" if before is None else before.digest[:BODY_DIGEST]
        return digest if len(digest) == BODY_DIGEST and digest != NO_DIGEST else b""

    def _undoubted(self, key: bytes, visit: FetchRecord) -> FetchRecord:
        """The record of a doubtful page that was visited and not stored again, with the signatures
        that the next visit compares."""
        before = self._frontier.backend.visit(key)
        if before is None:
            return visit
        return replace(
            visit,
            digest=before.digest,
            signature=before.signature,
            link_signature=before.link_signature,
        )

    def ended(self, entry: QueuedUrl, visit: FetchRecord) -> FetchRecord:
        """The record of a URL that has its final state, with the time of its next visit."""
        if entry.key in (doubtful := self.known(entry.host).doubtful):
            if is_lost(visit):  # not stored again
                visit = self._undoubted(entry.key, visit)
            else:
                doubtful.remove(entry.key)
                self.touch(entry.host)
        self._paid.discard(entry.key)
        self._requested.discard(entry.key)
        if entry.visit is not None:
            return visit if visit.due else self.kept(entry.visit)  # nobody has judged it
        self.visited += 1
        now = self.clock()
        if visit.time and abs(visit.time - now) > DAY:  # a test has a clock of its own
            visit.time = now
        if visit.state is UrlState.REFUSED:
            by_robots = visit.reason == dispatch.ROBOTS_REASON
            visit.due = now + ROBOTS_AGAIN_SECS if by_robots and not entry.payload else 0.0
        elif not entry.payload:
            visit.due = visit.time + self._interval(visit)
        return visit

    def _interval(self, visit: FetchRecord) -> float:
        """Seconds between the last visit of a page and its next one."""
        a, b = (visit.a, visit.b) if visit.b else prior(self.known(host_of(visit.url)).rate)
        return until_worth(self.theta, a, b, _weight(visit))

    def judge(
        self,
        entry: QueuedUrl,
        record: FetchRecord,
        seen: Observation,
        now: float,
        changed_at: float | None = None,
        *,
        restless: bool = False,
        target: str = "",
    ) -> Decision:
        """What a visit means. ``record`` is that of the new version, or the old one where the page
        stays as it is; ``changed_at``: when it changed, where it says so; ``restless``: it changes
        at each visit without a new word, which says nothing of when it should be visited;
        ``target``: the exact form of the URL that it redirects to."""
        before = entry.visit
        assert before is not None
        self.visited += 1
        at = self._robots_read(entry.host, record, now) if seen is Observation.ROBOTS else now
        decision = decide(record, seen, at)
        after = replace(decision.record, time=now, url=entry.url)
        if entry.key in self._checked or (self.mode == ALL and self._random() * SAMPLED < 1):
            self._checked.discard(entry.key)
            if before.state is UrlState.STORED and (seen in PRESENT or seen in TABLE):
                current = seen in (Observation.SAME, Observation.NOT_MODIFIED) or restless
                self._check(entry.host, current=current)
        if seen in PRESENT:
            changed = seen is Observation.CHANGED and not restless
            self._learn(entry, before, after, changed, now, changed_at)
            if restless:
                after.a = after.b = 0.0
            after.due = now + self._interval(after)
        else:
            is_missing = before.state is UrlState.STORED and confirmed_from(after)
            after.due = is_missing or now + AGAIN_SECS
        self._to_confirm.pop(entry.key, None)
        if before.state is UrlState.STORED and seen not in PRESENT and after.missing_as:
            self._to_confirm[entry.key] = after.due
        is_moved = seen is Observation.MOVED
        successor = self._successor(entry, target, after.missing_since) if is_moved else None
        is_page = after.status == 200
        expired = self.gate.saw(entry.host, entry.key, seen, successor, is_page=is_page)
        if before.state is UrlState.STORED and seen not in PRESENT:
            self.gate.keeps(entry, seen, decision.reason, after.missing_since, now)
            if self.gate.is_approved(entry.host, entry.key, seen):
                decision = decision._replace(delete=True)
        if expired and (host := self._frontier.hosts.get(entry.host)) is not None:
            self._frontier.park(host, inf, LOGIN_EXPIRED)
        if self._frontier.sources is not None:
            self._frontier.sources.judged(entry.key, changed=seen is Observation.CHANGED)
        return decision._replace(record=after)

    def _robots_read(self, host: str, record: FetchRecord, now: float) -> float:
        """When robots.txt was read that does not allow a page: one that could not be had since
        confirms nothing."""
        found = self._frontier.hosts.get(host)
        if found is None or not found.record.robots_time:
            return now
        answer, at = found.record.robots_answer, found.record.robots_time
        return at if answer == "200" else record.missing_since or at

    def _learn(
        self,
        entry: QueuedUrl,
        before: FetchRecord,
        after: FetchRecord,
        changed: bool,
        now: float,
        changed_at: float | None,
    ) -> None:
        known = self.known(entry.host)
        begin, pace = min(before.time, now), known.pace
        since = None if changed_at is None else pace.elapsed(changed_at, now)
        after.a, after.b = learned(
            before.a,
            before.b,
            passed=pace.elapsed(begin, now),
            changed=changed,
            since_change=since,
            rate=known.rate,
        )
        pace.add(begin, now, changed=changed, at=changed_at)
        known.changes += changed
        known.exposure += now - begin
        self.touch(entry.host)

    def delete(
        self, entry: QueuedUrl, seen: Observation, reason: str, now: float, *, target: str = ""
    ) -> Removed | str:
        """A page is gone: what the stores are to be told; why it stays, where it may not go.
        ``target``: the exact form of the URL that it has moved to."""
        is_approved = self.gate.is_approved(entry.host, entry.key, seen)
        if target and not is_approved and not self._has(target):
            why = f"{target} is not stored"
            if not self._frontier.is_own(url_key(target)):
                why = f"{target} belongs to another worker, which alone knows whether it is stored"
            elif (there := self.record_of(target)) is not None and there.missing_as:
                why = f"{target} is {there.missing_as} itself"
            self.gate.waits_for(entry, why)
            return why
        if target and not is_approved and not self._was_seen_since(entry, target):
            self.look_at(target)
            why = f"{target} is visited first"
            self.gate.waits_for(entry, why)
            return why
        has_successor = bool(target) and self._has(target)
        why = self.gate.why_not(entry, seen, reason, now, has_successor=has_successor)
        if why:
            return why
        if seen in _MAY_BE_BACK:
            self.known(entry.host).gone.append((now, entry.url, entry.depth))
            self.touch(entry.host)
        self._requested.discard(entry.key)
        self._to_confirm.pop(entry.key, None)
        self.known(entry.host).doubtful.discard(entry.key)
        reason = approved(reason) if is_approved else reason
        reason = f"{reason}, to {target}" if has_successor else reason
        successor = target if has_successor else ""
        return Removed(entry.url, self._forms(entry.url).exact, reason, now, successor)

    def _has(self, exact: str) -> bool:
        """Whether a page is known to be stored, and was there at its last visit. Another worker's
        pages are not known: their records are in its memory, and Redis has no text of them."""
        key = url_key(exact)
        if not self._frontier.is_own(key):
            return False
        state = self._frontier.backend.check([key])[0]
        return state is UrlState.MERGED or (
            state is UrlState.STORED and stands_for(self.record_of(exact))
        )

    def _was_seen_since(self, entry: QueuedUrl, target: str) -> bool:
        """Whether a visit has found the target since the page redirects there: it may redirect
        back by now. True for a target without a record, which was merged."""
        there, page = self.record_of(target), entry.visit
        if there is None or page is None:
            return True
        is_found = not self.gate.is_undecided(host_of(target), url_key(target))
        return is_found and is_seen_since(there, page.missing_since)

    def _successor(self, entry: QueuedUrl, target: str, since: float) -> Successor | None:
        """The page of another host, if a page redirects there, and it is stored and was visited
        ``since`` the page does."""
        if not target or host_of(target) == entry.host or not self._has(target):
            return None
        there = self.record_of(target)
        if there is not None and not is_seen_since(there, since):
            return None
        text = b"" if there is None else there.signature or there.digest
        return Successor(host_of(target), text or target.encode())

    def record_of(self, exact: str) -> FetchRecord | None:
        """What became of a URL, where it is known."""
        return self._frontier.backend.visit(url_key(exact))

    def exact_of(self, entry: QueuedUrl) -> str:
        """The exact form of a URL that is visited again."""
        return self._forms(entry.url).exact

    def look_at(self, exact: str) -> None:
        """Visit a URL that redirects lead to next, and beside the budget, where this worker has
        it: what it answers confirms whether the pages that redirect to it have gone."""
        key = url_key(exact)
        visit = self.record_of(exact)
        if visit is None or not self._frontier.is_own(key) or 0.0 < visit.due <= SIGNALLED:
            return
        if visit.state is UrlState.REFUSED:  # by the operator, for one
            return
        self._frontier.backend.schedule([(key, ASKED if self._visits_all else CONFIRM)])
        if self.mode in (DUE, WATCH):
            self.until = max(self.until, CONFIRM)
        self._schedule([host_of(visit.url)])

    @property
    def gate(self) -> DeleteGate:
        return self._frontier.gate

    def clock(self) -> float:
        return self._frontier.clock()

    def kept(self, visit: FetchRecord) -> FetchRecord:
        """The record of a page whose visit came to nothing, through no fault of the page."""
        return replace(visit, due=self._frontier.clock() + AGAIN_SECS)

    def known(self, host: str) -> HostKnowledge:
        """What is known of a host; call touch() after a change."""
        found = self._hosts.get(host)
        if found is None:
            note = self._frontier.backend.note
            found = HostKnowledge(
                Volatile.unpack(note(f"volatile {host}")),
                Validators.unpack(note(f"validators {host}")),
            )
            keys = note(f"doubtful {host}") or b""
            found.doubtful = {keys[at : at + 16] for at in range(0, len(keys), 16)}
            found.unpack(note(f"refresh {host}"))
            self._hosts[host] = found
        return found

    def touch(self, host: str) -> None:
        self._changed.add(host)

    def forget_host(self, host: str) -> None:
        """Another worker owns it now."""
        self._hosts.pop(host, None)
        self._changed.discard(host)

    def validators_for(self, entry: QueuedUrl) -> dict[str, str]:
        """The headers that make the visit a conditional one; none for a second look."""
        if entry.visit is None or entry.key in self.looks:
            return {}
        return self.known(entry.host).validators.ask(entry.visit)

    # signals

    def signalled(self, pages: Sequence[tuple[bytes, FetchRecord]], precision: float) -> None:
        """A site says that these pages have changed since they were visited, and is right so often:
        they are due at once, before all others, where that is worth a visit."""
        items, hosts = [], set()
        for key, visit in pages:
            host = host_of(visit.url)
            a, b = (visit.a, visit.b) if visit.b else prior(self.known(host).rate)
            if precision * b / a > self.theta and not 0.0 < visit.due <= SIGNALLED:
                items.append((key, SIGNALLED))
                hosts.add(host)
        self._frontier.backend.schedule(items)
        if items and self.mode in (DUE, WATCH):
            self.until = max(self.until, SIGNALLED)
        self._schedule(hosts)

    def named_no_more(self, pages: Sequence[tuple[bytes, FetchRecord]]) -> None:
        """Nothing that named these pages names them any more, so they may be gone. They are looked
        at as pages are that were missing: next, and beside the budget."""
        if self.mode not in (DUE, WATCH):
            return
        items = [(key, CONFIRM) for key, visit in pages if not 0.0 < visit.due <= SIGNALLED]
        self._frontier.backend.schedule(items)
        if items:
            self.until = max(self.until, CONFIRM)
        self._schedule({host_of(visit.url) for _, visit in pages})


def _wait(budget: Budget, per_day: float) -> float:
    """Seconds until a budget has a visit."""
    return 0.0 if budget.left >= 1 else (1 - budget.left) / max(per_day, 1e-9) * DAY


def _doubted(visit: FetchRecord) -> FetchRecord:
    """The record of a page that equals no page, but for whether it asks for a password."""
    digest, signature, links = (
        blake2b(part, digest_size=len(part) or 1).digest()[: len(part)]
        for part in (visit.digest, visit.signature, visit.link_signature[:-1])
    )
    if len(digest) >= BODY_DIGEST:  # `scrapy verify` knows by it that nothing is known of the body
        digest = NO_DIGEST + digest[BODY_DIGEST:]
    return replace(
        visit,
        digest=digest,
        signature=signature,
        link_signature=links + visit.link_signature[-1:],
        etag="",
        last_modified="",
    )


def is_lost(visit: FetchRecord) -> bool:
    """Whether this is the record of a doubtful page that was not stored again."""
    return visit.state is UrlState.STORED and visit.digest[:BODY_DIGEST] == NO_DIGEST


def asked_at(visit: FetchRecord) -> float:
    """When a page is due in a run that visits all: those near the seeds first, as in a first crawl,
    so that a new page is found by the shortest way."""
    return ASKED - max(0, 400 - visit.depth) / 1000


def _is_refused(visit: FetchRecord) -> bool:
    """By a store, the operator or the scope: never visited again."""
    return visit.state is UrlState.REFUSED and visit.reason != dispatch.ROBOTS_REASON


def _weight(visit: FetchRecord) -> float:
    return 1.0 if visit.state is UrlState.STORED else FAILED_WEIGHT
