"""Stands between a page that is gone by table.py and its removal, for all hosts of a crawl.

    gate.saw(entry.host, entry.key, seen)         # each revisit: canaries, logins in a row
    gate.why_not(entry, seen, decision.reason, now)     # "": the page may be removed

Before a page is removed its host's canaries are visited (canaries.py). Pages that the brake
holds, and pages out of scope, wait for the operator's approval (undecided.py). An approved page is
visited once more, and leaves if it is still gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from larmspider import program
from larmspider.formatting import counted
from larmspider.frontier.part import NotesMemory, Part
from larmspider.frontier.storage.records import (
    FetchRecord,
    QueuedUrl,
    UrlState,
    host_of,
    host_prefix,
)
from larmspider.learned.deletes.canaries import ASKED_FIRST, Canaries
from larmspider.learned.deletes.error_pages import ErrorPages
from larmspider.learned.deletes.moves import Successor
from larmspider.learned.deletes.notes import (
    DELETES,
    LOGIN,
    LOGIN_EXPIRED,
    MOVED,
    NO_ANSWER,
    SCOPE,
    SITEMAP,
    UNDECIDED,
    DeleteNotes,
    HostDeletes,
)
from larmspider.learned.deletes.table import (
    DAY,
    DEAD_SECS,
    PRESENT,
    Brake,
    Observation,
    is_confirmed,
)
from larmspider.learned.deletes.undecided import UndecidedPages

if TYPE_CHECKING:
    from larmspider.learned.sources import Source

MAX_LOGINS = 5
"""Login forms in a row, after which a host waits for the operator."""
_BRAKE = "brake"


class DeleteGate(Part):
    """``schedule`` makes pages of a host due: (host, keys, time). ``links_to`` returns the number
    of pages that link to each URL, as far as it is known. If the removal of all pages of a silent
    host is approved, ``take_out`` gets the host and the time of its last answer; it returns True if
    it has begun. ``shared`` with other workers: the brake counts the hosts of this worker, and a
    host takes its numbers along to another worker."""

    def __init__(
        self,
        notes: NotesMemory,
        schedule: Callable[[str, Iterable[bytes], float], None],
        links_to: Callable[[Sequence[str]], Sequence[int]] = lambda urls: [0] * len(urls),
        take_out: Callable[[str, float], bool] = lambda _host, _since: False,
        *,
        shared: bool = False,
    ) -> None:
        self._backend, self._schedule, self._shared = notes.backend, schedule, shared
        self._take_out = take_out
        self.notes, self.brake = DeleteNotes(notes), Brake()
        self._kept, self._visits = self.notes.kept, self.notes.visits
        self.canaries = Canaries(self.notes, schedule, links_to)
        self.undecided = UndecidedPages(self.notes)
        self.error_pages = ErrorPages(notes)
        """A separate Part."""
        self._silent: set[str] = set()
        """Hosts whose silence has a notice."""
        self.leaving: set[str] = set()
        """Hosts all of whose pages are being removed."""

    def __repr__(self) -> str:
        return f"<DeleteGate {self.brake!r}>"

    def recover(self, hosts: Sequence[str]) -> None:
        if not self._shared:
            self.brake = Brake.unpack(self._backend.note(_BRAKE))

    def save(self) -> None:
        self.canaries.save()
        for host in self._kept.changed if self._shared else ():
            self._backend.put_note(f"{_BRAKE} {host}", self.brake.pack(host))
        if self._kept.changed and not self._shared:
            self._backend.put_note(_BRAKE, self.brake.pack())
        self.notes.save()

    def enter(self, host: str) -> None:
        self.brake.enter(self._backend.note(f"{_BRAKE} {host}"))

    def forget(self, host: str) -> None:
        self.brake.leave(host)
        self.notes.forget(host)

    def has_work(self, *, spent: bool) -> bool:
        return bool(self.leaving)

    # visits

    def saw(
        self,
        host: str,
        key: bytes,
        seen: Observation,
        successor: Successor | None = None,
        *,
        is_page: bool = True,
    ) -> bool:
        """Note the result of a revisit. ``successor``: the page on another host to which the page
        redirects. ``is_page``: the URL has a page, or had one. Other URLs, such as a redirect that
        leads where it did, say nothing about their host. Returns whether the host has to wait,
        after one login form too many."""
        mine = self._visits.of(host)
        self._visits.touch(host)
        if seen in PRESENT:
            self.undecided.found(host, key)
        is_well = seen in PRESENT or seen is Observation.NOINDEX
        self.canaries.visited(host, key, successor, is_page=is_page, is_well=is_well)
        if seen is Observation.LOGIN:
            mine.logins += 1
            mine.expired = True
            if is_page and mine.canaries is None and self._is_new_login(host, key):
                self.canaries.begin(host, mine.visited)
        elif is_page and seen in (Observation.CHANGED, Observation.SAME):
            mine.logins = 0
            mine.well += 1
        if mine.logins != MAX_LOGINS:
            return False
        mine.logins = 0
        text = f"Host {host} waits: {LOGIN_EXPIRED}. {MAX_LOGINS} pages in a row are a login form."
        self.notes.tell(LOGIN, host, text)
        return True

    def _is_new_login(self, host: str, key: bytes) -> bool:
        """Whether a page has become a login form while few others are: the canaries show whether
        the whole host did."""
        undecided = self._kept.of(host).undecided
        known = [one for one in undecided.values() if one.seen == Observation.LOGIN]
        return key not in undecided and len(known) < MAX_LOGINS

    def final(self, host: str, key: bytes, visit: FetchRecord) -> None:
        self.canaries.final(host, key)

    def is_held(self, host: str, key: bytes) -> bool:
        """Whether a judged page is visited again in this run, after its host's canaries."""
        return self.canaries.is_held(host, key)

    def has_lost(self, host: str, key: bytes, visit: FetchRecord) -> bool:
        """Whether a page that has to leave was waiting for the canaries when the host's worker was
        killed or lost the host. Only the page's record shows that."""
        if not is_confirmed(visit) or visit.missing_as == Observation.SCOPE:
            return False
        return self._visits.of(host).canaries is None and key not in self._kept.of(host).waiting

    def why_not(
        self,
        entry: QueuedUrl,
        seen: Observation,
        reason: str,
        now: float,
        *,
        has_successor: bool = False,
    ) -> str:
        """Why a page that is gone may not be removed now; "" if it may, and then the caller removes
        it. The brake does not count a page that ``has_successor``, because its target is stored."""
        why = self._why_not(entry, seen, reason, now, has_successor=has_successor)
        if not why:
            self.canaries.left(entry.host, entry.key)
        elif why != ASKED_FIRST:  # the canaries answer within this run
            self.undecided.waits_for(entry, why)
        return why

    def _why_not(
        self, entry: QueuedUrl, seen: Observation, reason: str, now: float, *, has_successor: bool
    ) -> str:
        host, key = entry.host, entry.key
        if key not in self._visits.of(host).approved:
            if seen is Observation.SCOPE:
                why = f"out of scope: {program.NAME} deletes --approve {SCOPE}"
                self.undecided.add(host, entry, seen, reason, why, now)
                return why
            is_well = seen is Observation.NOINDEX
            if why := self.canaries.ask(host, key, now, is_well=is_well):
                return why
            if not has_successor and (why := self._braked(host, now)):
                self.undecided.add(host, entry, seen, reason, why, now)
                return why
        self.undecided.taken_out(host, key)
        return ""

    def _braked(self, host: str, now: float) -> str:
        """Why the brake holds one more page of a host; "" if the page may be removed. The brake
        then counts the page."""
        counts, lately = self._backend.counts, self.brake.lately
        why = self.brake.check(
            host,
            pages=counts(host).stored + lately(now, host),
            index=counts().stored + lately(now),
            now=now,
        )
        if not why:
            self.brake.took(host, now)
        return why

    def flaps(self, source: Source) -> None:
        """A sitemap has stopped naming pages, as it often did for pages that still exist."""
        text = (
            f"{source.url} stops naming pages that are there: {source.there:.0f} of"
            f" {source.there + source.missing:.0f} visits found them. The pages are not visited"
            " sooner any more; repair the sitemap."
        )
        self.notes.tell(SITEMAP, host_of(source.url), text)

    def moved_to(self, host: str) -> tuple[str, ...]:
        """The hosts to which a host has moved."""
        kept = self._kept.get(host)
        return () if kept is None or kept.move is None else kept.move.hosts

    def silent(self, host: str, since: float, now: float) -> None:
        """The host has failed once more, and has not answered since the given time."""
        pages = self._backend.counts(host).stored
        mine = self._visits.get(host)
        abandoned = 0.0 if mine is None else mine.abandoned
        if abandoned and pages and is_same_silence(abandoned, since):
            if host in self.leaving:
                return
            self.leaving.add(host)
            if self._take_out(host, since):
                return
            self.leaving.discard(host)
        now = self.notes.jumps.now_for(since, now)
        if now - since < DEAD_SECS or host in self._silent or not pages:
            return
        self._silent.add(host)
        text = (
            f"Host {host} has not answered for {counted(int((now - since) // DAY), 'day')}."
            f" Its {counted(pages, 'page')} stay in the search. See {program.NAME} deletes."
        )
        self.notes.tell(NO_ANSWER, host, text)

    def is_over(self, what: str, host: str, seen: str = "") -> bool:
        """Whether the condition of a notice has ended, by the visits of this run. Call it at the
        end of the run, with the notice's fields."""
        if what == SCOPE:  # a worker among many does not know the other workers' hosts
            hosts = self._backend.hosts()
            return not self._shared and not any(map(self._has_out_of_scope, hosts))
        kept, mine = self._kept.of(host), self._visits.get(host)
        if what == DELETES:
            return not kept.waiting
        if what == UNDECIDED:
            return not any(not seen or one.condition == seen for one in kept.undecided.values())
        if what == MOVED:
            return kept.move is None
        if what == SITEMAP:
            return False  # one notice is enough
        if what == LOGIN:
            return mine is not None and not mine.expired and mine.well >= MAX_LOGINS
        is_well = mine is not None and any(mine.visited.values())
        return is_well and host not in self._silent

    def _has_out_of_scope(self, host: str) -> bool:
        kept = self._kept.get(host) or HostDeletes()
        return any(one.seen == Observation.SCOPE for one in kept.waiting.values())

    # the operator

    def approve(self, host: str, keys: Mapping[bytes, float]) -> None:
        """The operator has approved the removal of pages that wait since these times. Each page is
        visited once more, and is removed if it is still gone."""
        if known := self.undecided.still_waiting(host, keys):
            self._visits.of(host).approved.update(known)
            self.brake.approve(host)
            self._kept.touch(host)
            self._schedule(host, known, 1.0)

    def abandon(self, host: str, since: float) -> None:
        """The operator has approved the removal of all pages of a host that has not answered since
        a time. One page becomes due, so that a request is made first."""
        self._visits.of(host).abandoned = since
        prefix = host_prefix(host)[:4]
        for key, visit in self._backend.visits(prefix, 500):
            if key.startswith(prefix) and visit is not None and visit.state is UrlState.STORED:
                self._schedule(host, [key], 1.0)
                break

    def has_left(self, host: str) -> None:
        """All pages of the host were removed."""
        mine, kept = self._visits.of(host), self._kept.of(host)
        kept.waiting.clear()
        kept.undecided.clear()
        mine.approved.clear()
        mine.abandoned = 0.0
        self.leaving.discard(host)
        self._kept.touch(host)


def is_same_silence(one: float, other: float) -> bool:
    """Whether two times of a host's last answer are equal. Records keep them in whole seconds."""
    return abs(one - other) <= 1
