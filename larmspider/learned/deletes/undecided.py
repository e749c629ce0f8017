"""The pages that are gone and stay stored, and the operator's approvals of their removal.

A page ``waits`` if only the operator can decide: the brake holds it, or it is out of scope. All
other pages that their last visit did not find are ``undecided``. A page whose removal is undecided
for UNDECIDED_SECS is on the operator's list, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from heapq import nsmallest

from larmspider import program
from larmspider.formatting import counted
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl
from larmspider.learned.deletes.canaries import SOON
from larmspider.learned.deletes.notes import (
    DELETES,
    SCOPE,
    UNDECIDED,
    UNDECIDED_SECS,
    DeleteNotes,
    HostDeletes,
    Waiting,
)
from larmspider.learned.deletes.table import CANARIES, DAY, PRESENT, TABLE, Observation

MAX_WAITING = 10_000
"""Pages of a host in its list; further pages are found again at their next visits."""

_GONE = frozenset({*TABLE, Observation.FAILED})
"""Observations between which a page that is gone may alternate: one condition for the operator."""


class UndecidedPages:
    def __init__(self, notes: DeleteNotes) -> None:
        self._notes = notes
        self._void: Counter[tuple[str, str]] = Counter()
        """Approvals that have ended, by host and reason."""

    def __repr__(self) -> str:
        return f"<UndecidedPages of {self._notes.kept!r}>"

    def found(self, host: str, key: bytes) -> None:
        """A visit has found the page."""
        if self._pop(host, key):
            self._void[host, "a visit found the page"] += 1

    def taken_out(self, host: str, key: bytes) -> None:
        """The page leaves the stores."""
        self._pop(host, key)
        self._notes.kept.touch(host)

    def _pop(self, host: str, key: bytes) -> bool:
        """Take a page from both lists. Returns whether its removal was approved."""
        approved, kept = self._notes.visits.of(host).approved, self._notes.kept.of(host)
        waited = kept.waiting.pop(key, None), kept.undecided.pop(key, None)
        if waited != (None, None):
            self._notes.kept.touch(host)
        was_approved = key in approved
        approved.discard(key)
        return was_approved

    def add(
        self, host: str, entry: QueuedUrl, seen: Observation, reason: str, why: str, now: float
    ) -> None:
        kept = self._notes.kept.of(host)
        before = kept.waiting.get(entry.key)
        if before is None and len(kept.waiting) >= MAX_WAITING:
            return
        if before is None and seen is Observation.SCOPE:
            text = (
                f"Pages such as {entry.url} are out of scope, and wait. See {program.NAME} deletes."
            )
            self._notes.tell(SCOPE, SCOPE, text)
        elif before is None:
            text = f"Pages of {host} wait for your approval: {why}. See {program.NAME} deletes."
            self._notes.tell(DELETES, host, text)
        since = before.since if before is not None else now
        kept.waiting[entry.key] = Waiting(entry.url, str(seen), reason, since, why)
        self._notes.kept.touch(host)

    def keeps(
        self, entry: QueuedUrl, seen: Observation, reason: str, since: float, now: float
    ) -> None:
        """Note that a page stays for now, although it was not found since a time (0.0: now)."""
        mine, kept = self._notes.visits.of(entry.host), self._notes.kept.of(entry.host)
        before = kept.undecided.get(entry.key)
        if before is None and len(kept.undecided) >= MAX_WAITING:
            return
        listed = kept.waiting.get(entry.key) or before
        is_other = listed is not None and listed.seen != seen and seen not in TABLE
        if is_other and entry.key in mine.approved:  # the approval was for another fault
            mine.approved.discard(entry.key)
            kept.waiting.pop(entry.key, None)  # else the next run finds it approved
            why = f"a visit saw something else than was listed ({seen})"
            self._void[entry.host, why] += 1
            before, since = None, now
        if before is None or before.since > now:  # a clock that was set back restarts the count
            since = min(since or now, now)
            one = kept.undecided[entry.key] = Waiting(entry.url, str(seen), reason, since, "")
        else:
            one = before
            if not {one.seen, seen} <= _GONE and one.seen != seen:
                one.told = ""  # another condition
            if seen is not Observation.FAILED or one.seen in TABLE:  # a failure says nothing new
                one.why = one.why if one.seen == seen else ""
                one.seen, one.reason = str(seen), reason
        self._notes.kept.touch(entry.host)
        if (
            one.is_listed(self._notes.jumps.now_for(one.since, now))
            and entry.key not in kept.waiting
        ):
            why = "; ".join(filter(None, (one.reason, one.why)))
            text = (
                f"Pages of {entry.host} have been different for more than"
                f" {UNDECIDED_SECS / DAY:.0f} days, and stay: {why}."
                f" See {program.NAME} deletes."
            )
            one.told = one.condition
            self._notes.tell(UNDECIDED, entry.host, text, one.told)

    def to_look_at(self, host: str, now: float) -> list[tuple[bytes, FetchRecord]]:
        """Undecided pages of a host whose last visit is older than UNDECIDED_SECS and which are not
        due: of the CANARIES pages that are undecided for longest."""
        kept = self._notes.kept.get(host)
        undecided = {} if kept is None else kept.undecided
        oldest = nsmallest(CANARIES, undecided.items(), key=lambda item: item[1].since)
        visits = [(key, self._notes.backend.visit(key), one.since) for key, one in oldest]
        return [
            (key, visit)
            for key, visit, since in visits
            if visit is not None
            and min(now - since, now - visit.time) > UNDECIDED_SECS
            and not 0.0 < visit.due <= SOON
        ]

    def is_undecided(self, host: str, key: bytes) -> bool:
        """Whether the last visit of a stored page did not find it."""
        kept = self._notes.kept.get(host)
        return kept is not None and key in kept.undecided

    def waits_for(self, entry: QueuedUrl, why: str) -> None:
        """A page that may leave is kept, and ``why``."""
        one = self._notes.kept.of(entry.host).undecided.get(entry.key)
        if one is not None and one.why != why:
            one.why = why
            self._notes.kept.touch(entry.host)

    def is_approved(self, host: str, key: bytes, seen: Observation) -> bool:
        """Whether the operator has approved the removal, and a visit has ``seen`` the listed fault,
        or a fault that removes pages by itself."""
        mine, kept = self._notes.visits.get(host), self._notes.kept.of(host)
        if mine is None or key not in mine.approved or seen in PRESENT:
            return False
        one = kept.undecided.get(key) or kept.waiting.get(key)
        return one is not None and (one.seen == seen or seen in TABLE)

    def waiting(self, host: str, now: float) -> int:
        """Number of pages of a host that wait for the operator, as in ``scrapy deletes``. It
        includes pages that have been undecided for long."""
        kept = self._notes.kept.get(host) or HostDeletes()
        undecided = (
            key
            for key, one in kept.undecided.items()
            if one.is_listed(self._notes.jumps.now_for(one.since, now))
        )
        return len(kept.waiting.keys() | {*undecided})

    def void_approvals(self) -> Iterator[str]:
        """A sentence for each host and reason of approvals that have ended in this run; each
        once."""
        for (host, why), number in self._void.items():
            yield f"The approval of {counted(number, 'page')} of {host} is void: {why}."
        self._void.clear()

    def still_waiting(self, host: str, keys: Mapping[bytes, float]) -> dict[bytes, float]:
        """The pages among ``keys`` that wait since these times; since any for 0.0."""
        kept = self._notes.kept.of(host)
        lists = kept.waiting, kept.undecided
        return {
            key: since
            for key, since in keys.items()
            if any(key in pages and since in (0.0, pages[key].since) for pages in lists)
        }
