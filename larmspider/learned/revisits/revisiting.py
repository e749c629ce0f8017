"""Which pages a run revisits, and what each visit means for the next one.

    refresh = Revisiting(frontier, forms, gate, sources, RevisitOptions("due"))
    entry = refresh.revisit("wiki:80", now)            # a QueuedUrl with its record in ``visit``
    decision = refresh.judge(entry, record, Observation.SAME, now)
    frontier.acknowledge(lease, decision.record)    # it names the time of the next visit

Without a mode, as in a first crawl, pages only get the time of their next visit. With ``due`` and
``watch`` a run visits the pages whose visit is worth most now, within its budget. One visit in 40
goes to a page chosen at random, to show how many pages are as stored. The plan goes through all
records (plan.py), 8 us each, because an order by stored times is wrong once theta has moved
(benchmarks/refresh.py). Pages that were missing at their last visit come first, outside of the
budget (deletes/table.py). Half of the visits go to the pages whose last visit is longest ago.

With ``all`` or a pattern each page that matches is visited once, whatever the budget. A run
that was broken off continues with the same mode, and visits no page twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from math import inf
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from larmspider.formatting import counted, utc
from larmspider.frontier import dispatch
from larmspider.frontier.hosts import Lease
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.part import HostNotes, Part
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
from larmspider.items import Removed
from larmspider.learned.clock import LEAST_JUMP_SECS, ClockJumps
from larmspider.learned.deletes.canaries import FIRST
from larmspider.learned.deletes.moves import Successor, is_gone, is_seen_since, stands_for
from larmspider.learned.deletes.notes import CLOCK, LOGIN_EXPIRED, Notice
from larmspider.learned.deletes.table import (
    PRESENT,
    TABLE,
    Decision,
    Observation,
    approved,
    confirmed_from,
    decide,
)
from larmspider.learned.revisits.budget import LEAST_CONFIRMATIONS, RunNote, VisitBudget
from larmspider.learned.revisits.host import HostKnowledge
from larmspider.learned.revisits.plan import (
    ALL,
    ASKED,
    CONFIRM,
    DUE,
    PLANNED,
    ROBOTS_AGAIN_SECS,
    SIGNALLED,
    WATCH,
    VisitPlan,
    is_refused,
)
from larmspider.learned.revisits.refresh import DAY, SAMPLED, SOONEST, learned, prior
from larmspider.urls.schemes import is_source_folder

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier
    from larmspider.learned.deletes.delete_gate import DeleteGate
    from larmspider.learned.sources import Sources
    from larmspider.urls.canonical import Forms
    from larmspider.urls.normalizer import UrlForms


class Purpose(StrEnum):
    """The purpose of a request of a refresh. The words are parts of stats keys."""

    VISIT = "visits"
    SECOND_LOOK = "second_looks"
    """A second fetch of a page at once, or a check whether a page is gone."""
    PROOF = "proofs"
    """A canary, or a made-up URL: they show what the answers of a host mean."""
    OTHER = "other"
    """New pages, robots.txt, sitemaps, feeds, logins, retries."""


NOTE = "refresh"
NOTE_ENDED = "ended"
"""A note: the crawl has ended once."""
SLICE = 500
"""URLs that are looked at in one turn when a run begins; 10 ms."""
AGAIN_SECS = DAY
"""Seconds until the next visit, after a visit that did not show the page."""
GONE_AGAIN_SECS = 30 * DAY
"""Seconds until the URL of a removed page is queued again, as if a page had named it."""
MAX_TARGETS = 20_000
"""Targets of redirects that a run remembers, 500 bytes each: a host that has moved has as many as
pages."""
MAX_HOPS = 5
"""Redirects in a row that are followed from a page to the page that has taken its place."""
_MAY_BE_BACK = frozenset(
    {Observation.MISSING, Observation.GONE, Observation.ROBOTS, Observation.DENIED}
)
"""Observations that show at a new fetch, too, that there is no page. An error page with 200 would
be stored as one."""


@dataclass(frozen=True, slots=True)
class RevisitOptions:
    """``mode`` is LARM_REFRESH, "" for a crawl that visits no page again. ``per_day``: visits a
    day, 0: a thirtieth of the pages. ``matches`` decides in a run by pattern, ``is_removed`` which
    URLs the operator has removed."""

    mode: str = ""
    per_day: float = 0.0
    matches: Callable[[str], bool] | None = None
    random: Callable[[], float] = random.random
    is_removed: Callable[[Forms], bool] = lambda _: False


class Revisiting(Part):
    """``gate`` decides on each removal; ``sources`` learn whether they were right."""

    def __init__(
        self,
        frontier: Frontier,
        forms: UrlForms,
        gate: DeleteGate,
        sources: Sources,
        options: RevisitOptions,
    ) -> None:
        self._frontier, self._forms, self.gate, self._sources = frontier, forms, gate, sources
        self.mode, self.matches = options.mode, options.matches
        self._random, self.is_removed = options.random, options.is_removed
        self.visits_again = bool(self.mode)
        self.waits_for_silent = self.mode in ("", WATCH)
        self.asks_silent_once = self.mode not in ("", WATCH)
        self.visited = 0
        """Pages that this run has visited again, or found for the first time."""
        self.until = 0.0
        """The time up to which due pages are visited."""
        self.looks: dict[bytes, object] = {}
        """URLs that are fetched a second time at once, without validators: the first result."""
        self._targets: dict[tuple[str, str], set[bytes]] = {}
        """The stored pages of a host that redirect to a URL, in this run; the last URLs."""
        self._hosts = HostNotes(frontier.notes, "refresh", HostKnowledge)
        self.budget = VisitBudget(frontier, options.per_day)
        self._plan = VisitPlan(frontier, forms, self.budget, self._hosts, self.mode, options.random)
        self._jumps, self._clock_was = ClockJumps(), frontier.clock()
        self._dropped = 0  # visits for pages that nothing names any more, in this plan
        self._paid: set[bytes] = set()  # planned visits that are charged, and not judged yet
        self._requested: set[bytes] = set()  # pages whose visit has begun, and is not judged yet
        self._since = 0.0  # when the run that visits all began
        self._ended = False  # whether NOTE_ENDED is there
        self._cursor: bytes | None = None  # of the sweep; None: none is under way

    def __repr__(self) -> str:
        return f"<Revisiting {self.mode or 'nothing'} until {self.until:.0f}, {self.budget}>"

    # life

    def recover(self, hosts: Sequence[str]) -> None:
        backend, now = self._frontier.backend, self._frontier.clock()
        found = backend.note(NOTE)
        kept = msgspec.msgpack.decode(found, type=RunNote) if found else RunNote()
        self.budget.recover(kept)
        self.gate.notes.jumps = self._jumps = kept.jumps
        self._clock_was = now
        self._jumps.saw(kept.clock, now)
        if self.mode and kept.clock - now > DAY:
            self._clock_was_set_back(kept.clock, now)
        goes_on = self.mode and kept.mode == self.mode
        self._since = min(kept.since, now) if goes_on else now
        self._ended = backend.note(NOTE_ENDED) is not None
        if self._visits_all:
            self._cursor, self.until = b"", ASKED

    def enter(self, host: str) -> None:
        """Nothing is known before a page of the host is visited."""

    def _clock_was_set_back(self, last: float, now: float) -> None:
        """Tell the operator that the clock was set back. The next run compares its clock with this
        run's clock."""
        days = counted(round((last - now) / DAY), "day")
        text = (
            f"The clock was set back: the last run began or ended {days} later, on"
            f" {utc(last)[:10]}. Its visits count as one round old, and missing pages restart."
        )
        self.gate.notes.notices.append(Notice(CLOCK, utc(now)[:10], text))

    def begin(self, since: float) -> None:
        """Workers that visit all began then."""
        self._since = since

    def entered(self) -> None:
        """Pages came from another worker: they are looked through, too."""
        if self._visits_all:
            self._cursor = b""
        elif self.mode:
            self._cursor, self._plan.next_time = None, 0.0
            self.budget.withdraw()

    @property
    def _visits_all(self) -> bool:
        return bool(self.mode) and self.mode not in (DUE, WATCH)

    def save(self) -> None:
        self._hosts.save()
        put, now = self._frontier.backend.put_note, self.clock()
        if now - self._clock_was > LEAST_JUMP_SECS:  # checkpoints are seconds apart
            self._jumps.saw(self._clock_was, now)
        self._clock_was = now
        kept = self.budget.kept()
        kept.jumps = self._jumps
        if self._visits_all and not self._frontier.finished:
            kept.mode, kept.since = self.mode, self._since
        put(NOTE, packed(kept))
        if not self._ended and self._frontier.finished and self._frontier.backend.counts().stored:
            put(NOTE_ENDED, b"1")
            self._ended = True

    # the run

    def has_work(self, *, spent: bool) -> bool:
        """Whether the run is not finished, or never ends."""
        return self.mode == WATCH or self._cursor is not None or self._wants_plan

    @property
    def _wants_plan(self) -> bool:
        return self.mode == DUE and not self._plan.next_time

    @property
    def next_plan(self) -> float | None:
        if self.wants_budget:
            return None
        if self._cursor is not None or self._wants_plan:
            return 0.0
        return self._plan.next_time if self.mode == WATCH else None

    @property
    def wants_budget(self) -> bool:
        """Whether VisitBudget.grant() has to be called before the next plan, of a worker among
        many."""
        return self.budget.wants_grant and self._cursor is None and self._is_due(self.clock())

    def _is_due(self, now: float) -> bool:
        """Whether a plan has to be made."""
        return self._wants_plan or (self.mode == WATCH and now >= self._plan.next_time)

    def look_ahead(self, now: float) -> bool:
        """Look for pages to visit, in a slice. False: there is nothing to look for now."""
        if self._cursor is None:
            if not self._is_due(now) or self.wants_budget:
                return False
            self._plan.begin(now)
            self._dropped = 0
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
            self._plan.make_due([(key, asked_at(visit), visit) for key, visit in wanted])
        else:
            self._plan.rank(records, now)
            self._plan.spent(time.perf_counter() - began)
            if self._cursor is None:
                self.until = PLANNED
                self._plan.end(now)
        return True

    def _queue_gone(self, now: float) -> None:
        """Queue URLs whose pages left long ago as new ones: a page that is back may have no
        link."""
        entries = []
        for host, known in self._hosts.noted(list(self._frontier.hosts)):
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
        """The pages that have been undecided for longest are visited once a week, so that the
        operator learns of them in time."""
        for name, host in self._frontier.hosts.items():
            pages = self.gate.undecided.to_look_at(name, now)
            self._frontier.notes.trim()
            if pages and not host.paused and not host.record.is_silent:
                self._plan.make_due([(key, CONFIRM, visit) for key, visit in pages])

    def _is_wanted(self, key: bytes, visit: FetchRecord) -> bool:
        """Whether a run that visits all matching pages visits this one."""
        if is_refused(visit) or visit.due == ASKED:
            return False
        is_done = self._since <= visit.time <= self.clock()  # later: by a clock that was set back
        if is_done and not self.gate.has_lost(host_of(visit.url), key, visit):
            return False
        if self.matches is not None and not self.matches(self._forms(visit.url).normalized):
            return False
        return bool(visit.due) or self._plan.is_page(key, visit.url)

    # one page

    def revisit_time(self, host: str) -> float | None:
        return self._frontier.backend.next_due(host, self.until) if self.mode else None

    def next_visit(self, now: float) -> float:
        """When a run with ``due`` has something to visit next."""
        return self._plan.next_visit(now)

    def revisit(self, host: str, now: float) -> QueuedUrl | None:
        """Lease the next page of a host that has to be visited."""
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
                if self.budget.confirming.spend():
                    self._paid.add(entry.key)
                    return entry
                later = max(confirmed_from(entry.visit), now + SOONEST)  # not in this run
                backend.acknowledge([(entry.key, replace(entry.visit, due=later))])
                continue
            if due > SIGNALLED and self._plan.age(entry.visit, now) < SOONEST:
                later = max(entry.visit.time + SOONEST, self.until + 1)  # not in this plan
                backend.acknowledge([(entry.key, replace(entry.visit, due=later))])
            elif self.budget.visits.spend():
                self._paid.add(entry.key)
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
        if entry.visit is None or entry.attempts or entry.visit.state is UrlState.REFUSED:
            return Purpose.OTHER
        if entry.key in self.looks or entry.key in self._requested:
            return Purpose.SECOND_LOOK
        self._requested.add(entry.key)
        due = entry.visit.due
        if due == FIRST and self.mode != ALL:
            return Purpose.PROOF
        is_asked = entry.visit.depth >= 400 if self._visits_all else is_source_folder(entry.url)
        return Purpose.SECOND_LOOK if due in (ASKED, CONFIRM) and not is_asked else Purpose.VISIT

    def doubt(self, names: Iterable[str]) -> list[str]:
        """See signals.in_doubt. If another worker owns a host now, that worker learns which of
        these pages this worker has stored."""
        unknown, entries = [], list[QueuedUrl]()
        for name in names:
            visit = self._frontier.backend.visit(key := url_key(name))
            if visit is None or visit.state is not UrlState.STORED or visit.shard:
                unknown.append(name)
            else:
                version = repr(visit.stored or visit.time).encode()
                host = host_of(visit.url)
                entries.append(QueuedUrl(visit.url, visit.url, key, host, payload=version))
        self.doubted(self._frontier.partitions.split_again(entries, doubted=True))
        return unknown

    def doubted(self, entries: Sequence[QueuedUrl]) -> None:
        """Stored pages among them equal no page until they were visited. The payload of an entry is
        the time of its doubtful version: a version that was stored since is right."""
        for entry in entries:
            visit = self._frontier.backend.visit(entry.key)
            if visit is None or visit.state is not UrlState.STORED:
                continue
            if not entry.payload or (visit.stored or visit.time) <= float(entry.payload):
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
            elif _was_stored_again(entry.visit, visit):
                doubtful.remove(entry.key)
                self.touch(entry.host)
        self._paid.discard(entry.key)
        self._requested.discard(entry.key)
        if entry.visit is not None:
            return visit if visit.due else self.kept(entry.visit)  # it was not judged
        self.visited += 1
        now = self.clock()
        if visit.time and abs(visit.time - now) > DAY:  # a test has a clock of its own
            visit.time = now
        if visit.state is UrlState.REFUSED:
            by_robots = visit.reason == dispatch.ROBOTS_REASON
            visit.due = now + ROBOTS_AGAIN_SECS if by_robots and not entry.payload else 0.0
        elif not entry.payload:
            visit.due = visit.time + self._plan.interval(visit)
        return visit

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
        """Judge a visit. ``record``: the record of the new version, or the old record if the page
        is unchanged. ``changed_at``: the time of the change according to the page. ``restless``:
        the page changes at each visit without a new word, so the change does not affect the time of
        the next visit. ``target``: the exact form of the URL that it redirects to."""
        before = entry.visit
        assert before is not None
        self.visited += 1
        at = self._robots_read(entry.host, record, now) if seen is Observation.ROBOTS else now
        decision = decide(record, seen, at)
        after = replace(decision.record, time=now, url=entry.url)
        if entry.key in self._plan.checked or (self.mode == ALL and self._random() * SAMPLED < 1):
            self._plan.checked.discard(entry.key)
            if before.state is UrlState.STORED and (seen in PRESENT or seen in TABLE):
                current = seen in (Observation.SAME, Observation.NOT_MODIFIED) or restless
                self._plan.check(entry.host, current=current)
        if seen in PRESENT:
            changed = seen is Observation.CHANGED and not restless
            self._learn(entry, before, after, changed, now, changed_at)
            if restless:
                after.a = after.b = 0.0
            after.due = now + self._plan.interval(after)
        else:
            is_missing = before.state is UrlState.STORED and confirmed_from(after)
            is_refused = before.state is UrlState.REFUSED
            after.due = is_missing or now + (ROBOTS_AGAIN_SECS if is_refused else AGAIN_SECS)
        self._plan.to_confirm.pop(entry.key, None)
        if before.state is UrlState.STORED and seen not in PRESENT and after.missing_as:
            self._plan.to_confirm[entry.key] = after.due
        successor = None
        if seen in (Observation.MOVED, Observation.MOVED_TO_ONE):
            successor = self._successor(entry, target, after.missing_since)
        elif seen is Observation.MISSING and target:
            successor = Successor(host_of(target), b"")
        is_page = after.status == 200
        expired = self.gate.saw(entry.host, entry.key, seen, successor, is_page=is_page)
        if before.state is UrlState.STORED and seen not in PRESENT:
            self.gate.undecided.keeps(entry, seen, decision.reason, after.missing_since, now)
            if self.gate.undecided.is_approved(entry.host, entry.key, seen):
                decision = decision._replace(delete=True)
        if expired and (host := self._frontier.hosts.get(entry.host)) is not None:
            self._frontier.park(host, inf, LOGIN_EXPIRED)
        self._sources.judged(entry.key, changed=seen is Observation.CHANGED)
        if seen in PRESENT or after.missing_as:
            self._sources.visited(entry.key, missing=seen not in PRESENT)
        return decision._replace(record=after)

    def _robots_read(self, host: str, record: FetchRecord, now: float) -> float:
        """When a robots.txt was read that does not allow a page. If a robots.txt could not be
        fetched since, it confirms nothing."""
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
        self,
        entry: QueuedUrl,
        seen: Observation,
        reason: str,
        now: float,
        *,
        target: str = "",
        outside: bool = False,
    ) -> Removed | str:
        """Decide about a page that is gone. Returns the item for the stores, or why the page stays.
        ``target``: the exact form of the URL that it has moved to, which is out of scope if
        ``outside``."""
        is_approved = self.gate.undecided.is_approved(entry.host, entry.key, seen)
        if target and not is_approved and not self._has(target):
            self._look_for_end(target)
            why = f"{target} {self._why_not_stored(target, outside=outside)}"
            self.gate.undecided.waits_for(entry, why)
            return why
        if target and not is_approved and not self._was_seen_since(entry, target):
            self.look_at(target)
            why = f"{target} is visited first"
            self.gate.undecided.waits_for(entry, why)
            return why
        has_successor = bool(target) and self._has(target)
        if has_successor:
            self.redirects_to(entry.host, entry.key, target)
        why = self.gate.why_not(entry, seen, reason, now, has_successor=has_successor)
        if why:
            return why
        if seen in _MAY_BE_BACK:
            self.known(entry.host).gone.append((now, entry.url, entry.depth))
            self.touch(entry.host)
        self._requested.discard(entry.key)
        self._plan.to_confirm.pop(entry.key, None)
        self.known(entry.host).doubtful.discard(entry.key)
        reason = approved(reason) if is_approved else reason
        reason = f"{reason}, to {target}" if has_successor else reason
        successor = target if has_successor else ""
        return Removed(entry.url, self._forms(entry.url).exact, reason, now, successor)

    def _has(self, exact: str) -> bool:
        """Whether a page is stored and was there at its last visit, as far as this worker knows. It
        does not know the pages of other workers: their records are in the other workers' memory,
        and Redis does not hold their text."""
        key = url_key(exact)
        if not self._frontier.is_own(key):
            return False
        state = self._frontier.backend.check([key])[0]
        return state is UrlState.MERGED or (
            state is UrlState.STORED and stands_for(self.record_of(exact))
        )

    def _why_not_stored(self, target: str, *, outside: bool) -> str:
        """Why the target of a redirect does not take the place of the page."""
        if not self._frontier.is_own(url_key(target)):
            return "belongs to another worker, which alone knows whether it is stored"
        there = self.record_of(target)
        if there is not None and there.missing_as:
            return f"is {there.missing_as} itself"
        if there is not None and there.status >= 400:
            return f"is not stored: it answers {there.status}"
        return f"is not stored{': it is out of scope' if outside else ''}"

    def redirects_to(self, host: str, key: bytes, target: str) -> None:
        """A URL without a page of its own redirects to this target."""
        if self.known(host).redirects_to(key, target):
            self.touch(host)

    def pages_at(self, entry: QueuedUrl, target: str, most: int) -> int:
        """The number of stored pages of a host that redirect to a URL in this run, this one among
        them, counted up to ``most``."""
        pages = self._targets.pop((entry.host, target), set())
        if len(pages) < most:
            pages.add(entry.key)
        self._targets[entry.host, target] = pages  # it becomes the newest
        if len(self._targets) > MAX_TARGETS:
            del self._targets[next(iter(self._targets))]
        return len(pages)

    def end_of(self, entry: QueuedUrl, target: str) -> str:
        """Where the redirect of a page ends: at the target, or at the page to which that redirects,
        as after a second move, if it is stored or missing. The target, if the end is not known."""
        end = target
        for _ in range(MAX_HOPS):
            key = url_key(end)
            if not end or key == entry.key or not self._frontier.is_own(key):
                break
            if self._has(end):
                return end
            there = self.record_of(end)
            if there is not None and not _is_redirect(there):
                return end if is_gone(there) else target
            end = self.known(host_of(end)).redirects.get(key, "")
        return target

    def _look_for_end(self, target: str) -> None:
        """Visit a target that redirects, if it is not known where to."""
        there = self.record_of(target)
        if there is not None and _is_redirect(there):
            self.look_at(target)

    def _was_seen_since(self, entry: QueuedUrl, target: str) -> bool:
        """Whether a visit has found the target after the page began to redirect there. Without such
        a visit the target may redirect back by now. True for a target without a record, because it
        was merged."""
        there, page = self.record_of(target), entry.visit
        if there is None or page is None:
            return True
        is_found = not self.gate.undecided.is_undecided(host_of(target), url_key(target))
        return is_found and is_seen_since(there, page.missing_since)

    def _successor(self, entry: QueuedUrl, target: str, since: float) -> Successor | None:
        """The page to which a page redirects, if it is stored and was visited ``since`` the page
        does."""
        if not target or not self._has(target):
            return None
        there = self.record_of(target)
        if there is not None and not is_seen_since(there, since):
            return None
        text = b"" if there is None else there.signature or there.digest
        return Successor(host_of(target), text or target.encode())

    def record_of(self, exact: str) -> FetchRecord | None:
        """The record of a URL, if it has one."""
        return self._frontier.backend.visit(url_key(exact))

    def exact_of(self, entry: QueuedUrl) -> str:
        """The exact form of a URL that is visited again."""
        return self._forms(entry.url).exact

    def look_at(self, exact: str) -> None:
        """Visit the target of redirects next, outside of all budgets, if this worker has it: its
        answer confirms whether the redirecting pages have gone, and each of these is charged."""
        key = url_key(exact)
        visit = self.record_of(exact)
        if visit is None or not self._frontier.is_own(key) or 0.0 < visit.due <= SIGNALLED:
            return
        if visit.state is UrlState.REFUSED:  # by the operator, for one
            return
        self._frontier.backend.schedule([(key, ASKED)])
        if self.mode in (DUE, WATCH):
            self.until = max(self.until, ASKED)
        self._plan.schedule([host_of(visit.url)])

    def clock(self) -> float:
        return self._frontier.clock()

    def kept(self, visit: FetchRecord) -> FetchRecord:
        """The record of a page whose visit came to nothing, through no fault of the page."""
        return replace(visit, due=self._frontier.clock() + AGAIN_SECS)

    def known(self, host: str) -> HostKnowledge:
        """The knowledge about a host; call touch() after a change."""
        return self._hosts.of(host)

    def touch(self, host: str) -> None:
        self._hosts.touch(host)

    def forget(self, host: str) -> None:
        self._hosts.forget(host)

    def validators_for(self, entry: QueuedUrl) -> dict[str, str]:
        """The headers that make the visit conditional; empty for a second fetch of a page."""
        if entry.visit is None or entry.key in self.looks:
            return {}
        return self.known(entry.host).validators.ask(entry.visit)

    # signals

    def signalled(self, pages: Sequence[tuple[bytes, FetchRecord]], precision: float) -> None:
        """A site says that these pages have changed since their last visit. If that is worth a
        visit, given the share of its statements that were right, the pages are due at once, before
        all others."""
        items, hosts = [], set()
        for key, visit in pages:
            host = host_of(visit.url)
            a, b = (visit.a, visit.b) if visit.b else prior(self.known(host).rate)
            if precision * b / a > self.budget.theta and not 0.0 < visit.due <= SIGNALLED:
                items.append((key, SIGNALLED))
                hosts.add(host)
        self._frontier.backend.schedule(items)
        if items and self.mode in (DUE, WATCH):
            self.until = max(self.until, SIGNALLED)
        self._plan.schedule(hosts)

    def named_no_more(self, pages: Sequence[tuple[bytes, FetchRecord]]) -> None:
        """Everything that named these pages has stopped naming them, so they may be gone. They are
        visited next, like pages that were missing, and get half of the budget of confirmations."""
        if self.mode not in (DUE, WATCH):
            return
        room = max(LEAST_CONFIRMATIONS, int(self.budget.confirming.left)) // 2 - self._dropped
        items = [(key, CONFIRM) for key, visit in pages if not 0.0 < visit.due <= SIGNALLED]
        items = items[: max(0, room)]
        self._dropped += len(items)
        self._frontier.backend.schedule(items)
        if items:
            self.until = max(self.until, CONFIRM)
        self._plan.schedule({host_of(visit.url) for _, visit in pages})


def _doubted(visit: FetchRecord) -> FetchRecord:
    """The record of a page that equals no page, except for whether it asks for a password."""
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


def _was_stored_again(before: FetchRecord | None, after: FetchRecord) -> bool:
    """Whether the visit of a doubtful page stored it. A visit that began before the doubt compared
    the answer with the stored page, and may have stored nothing."""
    if before is None or len(before.digest) < BODY_DIGEST:
        return True
    return is_lost(before) or after.digest != before.digest


def _is_redirect(visit: FetchRecord) -> bool:
    return visit.state is UrlState.STORED and 300 <= visit.status < 400


def is_lost(visit: FetchRecord) -> bool:
    """Whether this is the record of a doubtful page that was not stored again."""
    return visit.state is UrlState.STORED and visit.digest[:BODY_DIGEST] == NO_DIGEST


def asked_at(visit: FetchRecord) -> float:
    """When a page is due in a run that visits all pages. Pages near the seeds come first, as in a
    first crawl, so that a new page is found by the shortest way."""
    return ASKED - max(0, 400 - visit.depth) / 1000
