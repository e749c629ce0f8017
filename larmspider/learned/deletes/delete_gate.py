"""Stands between a page that is gone by deletes.py and its removal, for all hosts of a crawl.

    gate.looks_like("wiki:80", page, before)      # SOFT_404, LOGIN, None: a page; WAIT: ask first
    gate.saw(entry.host, entry.key, seen)         # each visit again: canaries, logins in a row
    gate.why_not(entry, seen, decision.reason, now)     # "": the page may be taken out

Before a changed page is believed, once a run and host, a URL that nobody has is asked for: what a
host answers there, with 200 or with a redirect, is its error page or its login, wherever it comes
again. Before a page is taken out its host's canaries are visited, unless they were in this run: the
start page and the five that most pages link to.
What the brake holds, and what is out of scope, waits in a list for somebody to approve; an approved
page is visited once more, and leaves if it is still gone. A page whose removal was not decided for
UNDECIDED_SECS, whatever keeps it, is on the same list.
A host whose canaries redirect to stored pages of other hosts has moved (moves.py).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from hashlib import blake2b
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from larmspider import program
from larmspider.extraction.error_page import (
    LEAST_PAIRS,
    Pairs,
    likeness,
    pairs_to_keep,
    says_another_thing,
)
from larmspider.extraction.fingerprint import (
    asked_password,
    asks_password,
    error_signature,
)
from larmspider.formatting import counted
from larmspider.frontier.hosts import Host
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.part import HostNotes, Note, NotesMemory, Part
from larmspider.frontier.storage.records import (
    FetchRecord,
    QueuedUrl,
    UrlState,
    host_of,
    host_prefix,
)
from larmspider.items import Page
from larmspider.learned.clock import ClockJumps
from larmspider.learned.deletes.moves import (
    HostMove,
    Successor,
    moved_to,
)
from larmspider.learned.deletes.table import (
    CANARIES,
    DAY,
    DEAD_SECS,
    PRESENT,
    TABLE,
    Brake,
    Observation,
    is_confirmed,
)

if TYPE_CHECKING:
    from larmspider.learned.sources import Source

SCOPE = "scope"
"""The name under which pages out of scope are listed and approved; ``Notice.what`` and ``host`` of
the notice of them."""
MAX_WAITING = 10_000
"""Pages of a host in its list; those beyond are found again at their next visits."""
MAX_LOGINS = 5
"""Login forms in a row, after which a host waits for somebody."""
LOGIN_EXPIRED = "login expired"
"""Why a host is parked then."""
DELETES, LOGIN, NO_ANSWER = "deletes", "login", "dead"
"""``Notice.what``: the brake holds pages; a login has expired; a host is silent for DEAD_SECS."""
UNDECIDED, MOVED = "undecided", "moved"
"""``Notice.what``: pages of a host are undecided for UNDECIDED_SECS; the host has moved."""
CLOCK = "clock"
"""``Notice.what``: the clock was set back. ``host`` is the day then."""
SITEMAP = "sitemap"
"""``Notice.what``: a sitemap stops naming pages that are there."""
UNDECIDED_SECS = 7 * DAY
"""A page that stays is listed if visits do not find it as stored for longer."""
UNCONFIRMED_SECS = 30 * DAY
"""The same for a page that only waits for its next visits."""
_SOON = 2.0
"""Due time of the pages of a host that has moved: equal to SIGNALLED (revisiting.py)."""
MANY = 3
"""Pages of a host with texts of their own that have one text since this run: it is nobody's."""
MAX_TEXTS = 2_000
"""Changed texts of a host that a run compares, some 400 bytes each. Beyond them the
comparison restarts."""
_LEAST_ANSWERS, _MOST_ANSWERS = 2, 3
"""Made-up URLs of a host in a run. The third is for two answers that were like by chance."""
LEAST_TEXT = 20
"""Characters; less is compared with nothing."""
WHOLE_HOST = b""
"""The key of an approval that is for all pages of a host that does not answer."""
ENOUGH_BACK = 5
"""Visits in a run, after which a host that had moved may be called back."""
FIRST = 0.5
"""The time at which canaries are due: before all other pages."""
MAX_SEARCHED = 20_000
"""URLs of a host among which its canaries are looked for."""
_BRAKE = "brake"
ASKED_FIRST = "the start page and those that most pages link to are asked first"
"""Why a page waits for its host's canaries."""


class Wait(Enum):
    """``WAIT``: what a page is cannot be said before the made-up URL is answered. ``ONCE_MORE``:
    nor before the page itself is fetched once more."""

    WAIT = "wait"
    ONCE_MORE = "once more"


WAIT, ONCE_MORE = Wait.WAIT, Wait.ONCE_MORE


class Waiting(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. A page that is gone and was not taken out, and
    ``why``: the brake's words, or the scope."""

    url: str
    seen: str
    reason: str
    since: float
    why: str

    def is_listed(self, now: float) -> bool:
        """Whether the operator should see this undecided page."""
        passed = now - self.since
        if not self.why and self.seen in TABLE:
            return passed > UNCONFIRMED_SECS
        return passed > UNDECIDED_SECS


class Notice(NamedTuple):
    """A condition that the operator should know: ``what`` in a word, about which host. ``seen`` is
    the observation of pages that stay; each observation is a condition of its own."""

    what: str
    host: str
    message: str
    seen: str = ""

    @property
    def name(self) -> str:
        """The name of the condition, under which the operator hears of it once."""
        return " ".join(filter(None, (self.what, self.host, self.seen)))


class Probe(msgspec.Struct, array_like=True):
    """The answer for a made-up URL. ``wanted``: the URL is to be fetched. ``unread``: the answer
    was a 200 that no reader could read."""

    url: str
    wanted: bool = True
    out: bool = False
    error: bytes = b""
    password: bool = False
    target: str = ""
    unread: bool = False
    pairs: Pairs | None = None
    """The pairs of words of all answers that were pages; None: no answer was one."""
    answers: int = 0

    def ask_again(self) -> None:
        """Which words does the error page have each time?"""
        self.url, self.wanted = made_up_url(self.url), True

    def answered(self, page: Page | None) -> None:
        """``page`` as read from a 200 or a redirect; None for any other answer, which says that the
        host tells errors as such. If ``page`` is unread, no other unread page of this host is
        believed."""
        self.wanted = self.out = False
        self.answers += 1
        if self.answers > 1:
            if page is not None and page.status == 200 and self.pairs is not None:
                self.pairs &= pairs_to_keep(page)
            return
        if page is None:
            return
        self.target = redirect_target(page)
        if page.status == 200 and len(page.text) >= LEAST_TEXT:
            self.error, self.password = error_signature(page), asks_password(page)
            self.pairs = pairs_to_keep(page)
        elif page.status == 200:
            self.unread = bool(page.unread)

    def released(self) -> None:
        """The request was not made."""
        self.out = False


class HostDeletes(Note):
    """The pages of a host that are gone and stay: ``waiting`` for the operator, or ``undecided``,
    by the keys of their URLs. ``move``: the host has moved as a whole."""

    waiting: dict[bytes, Waiting] = {}
    undecided: dict[bytes, Waiting] = {}
    move: HostMove | None = None


class HostVisits(Note):
    """The results of this run's visits to a host. Keys are keys of URLs.

    ``approved``: pages that the operator lets go. ``visited``: whether each page was there.
    ``canaries``: the same of the canaries, None before their visit. ``held``: pages that wait for
    the canaries, ``again``: those that are visited once more after them. ``logins`` in a row;
    ``expired``: there was one; ``well``: pages that were there. ``texts``: stored texts that became
    one text, by that text. ``successors``: pages of other hosts to which pages redirect.
    ``abandoned``: no page of a host that is silent since then shall stay."""

    least_bytes = 1_200
    approved: set[bytes] = set()
    probe: Probe | None = None
    canaries: dict[bytes, bool | None] | None = None
    visited: dict[bytes, bool] = {}
    held: set[bytes] = set()
    again: set[bytes] = set()
    logins: int = 0
    expired: bool = False
    well: int = 0
    texts: dict[bytes, set[bytes]] = {}
    successors: dict[bytes, Successor] = {}
    abandoned: float = 0.0

    def memory(self, packed_bytes: int) -> int:
        keys = len(self.visited) + len(self.held) + len(self.again) + len(self.approved)
        return self.least_bytes + 150 * keys + 400 * (len(self.texts) + len(self.successors))


class DeleteGate(Part):
    """``schedule`` makes pages of a host due: (host, keys, time). ``links_to`` gives the number of
    pages that link to each of some URLs, as far as it is known. ``take_out`` is called for a host
    that does not answer, and since when, if its removal is approved: True if its pages are being
    taken out from now on. ``shared`` with other workers: the brake counts the hosts of this one,
    which bring and take their numbers with them."""

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
        self._links_to, self._take_out = links_to, take_out
        self._kept = HostNotes(notes, "deletes", HostDeletes, prepare=self._prepare)
        self._visits = HostNotes(notes, "visits", HostVisits, of_run=True)
        self._probing: set[str] = set()
        """Hosts whose made-up URL is to be fetched, or is being fetched."""
        self._moved: set[str] = set()
        """Hosts that have moved, as far as they were looked at."""
        self._void: Counter[tuple[str, str]] = Counter()
        """Approvals that have ended, by host and reason."""
        self._silent: set[str] = set()  # hosts that somebody is told of
        self.brake, self.jumps = Brake(), ClockJumps()
        self.notices: list[Notice] = []
        """What somebody should be told; whoever does empties the list."""
        self.leaving: set[str] = set()
        """Hosts all of whose pages are being taken out."""

    def __repr__(self) -> str:
        return f"<DeleteGate {self.brake!r}>"

    def recover(self, hosts: Sequence[str]) -> None:
        if not self._shared:
            self.brake = Brake.unpack(self._backend.note(_BRAKE))

    def save(self) -> None:
        for host in list(self._moved):
            kept, visits = self._kept.of(host), self._visits.get(host)
            if visits is not None and kept.move and _is_back(kept.move, visits.visited):
                kept.move = None
                self._kept.touch(host)
        for host in self._kept.changed if self._shared else ():
            self._backend.put_note(f"{_BRAKE} {host}", self.brake.pack(host))
        if self._kept.changed and not self._shared:
            self._backend.put_note(_BRAKE, self.brake.pack())
        self._kept.save()
        self._visits.save()

    def enter(self, host: str) -> None:
        self.brake.enter(self._backend.note(f"{_BRAKE} {host}"))

    def forget(self, host: str) -> None:
        self.brake.leave(host)
        self._kept.forget(host)
        self._visits.forget(host)
        self._probing.discard(host)
        self._moved.discard(host)

    def _prepare(self, host: str, kept: HostDeletes) -> None:
        if kept.move is not None:
            self._moved.add(host)

    def has_work(self, *, spent: bool) -> bool:
        return bool(self.leaving)

    # what a page is

    def looks_like(
        self,
        host: str,
        page: Page,
        before: FetchRecord,
        *,
        stored: Page | None = None,
        first: Page | None = None,
    ) -> Observation | Wait | None:
        """What the answer to a visit again is if it is no page of its own: a 200 with another text
        than ``before``, or a redirect. None: it is the page, changed or moved. ``stored``: the page
        as it was, if that is known; ``first``: the answer to a visit 2 s before."""
        mine = self._visits.of(host)
        target = redirect_target(page)
        if not target and asks_password(page) and not asked_password(before.link_signature):
            return Observation.LOGIN
        if mine.probe is None:
            mine.probe = Probe(made_up_url(page.url))
            self._probing.add(host)
        if mine.probe.wanted:
            return WAIT
        if target:
            same = target == mine.probe.target
            return Observation.MOVED_TO_ONE if same else None
        if len(page.text) < LEAST_TEXT:
            # two unread answers cannot be compared: the page stays as it was
            return Observation.EMPTY if page.unread and mine.probe.unread else None
        error = error_signature(page)
        if error == mine.probe.error:
            return Observation.LOGIN if mine.probe.password else Observation.SOFT_404
        if stored is not None and (found := _like_error(mine.probe, page, stored, first)):
            if mine.probe.wanted:
                self._probing.add(host)
            return found
        # pages may differ by numbers alone: of these each has a text of its own
        if len(mine.texts) >= MAX_TEXTS:
            mine.texts.clear()
        earlier = mine.texts.setdefault(error_signature(page, numbers=True), set())
        if len(earlier) <= MANY:
            earlier.add(before.signature or before.digest)
        self._visits.touch(host)
        return Observation.LOGIN if len(earlier) > MANY else None

    def own_fetch(self, host: Host, now: float, allowed: Callable[[str], bool]) -> OwnFetch | None:
        """The made-up URL, if it is to be fetched now."""
        name = host.record.host
        probe = self._probe_of(name)
        if probe is None or not probe.wanted or probe.out:
            return None
        if not allowed(probe.url):
            probe.wanted = False
            self._probing.discard(name)
            return None
        probe.out = True
        return OwnFetch(
            FetchKind.MADE_UP,
            probe.url,
            lambda: self._probe_released(name),
            lambda _answer, _entries, page: self._probe_answered(name, page),
        )

    def _probe_of(self, host: str) -> Probe | None:
        if host not in self._probing:
            return None
        return self._visits.of(host).probe

    def _probe_released(self, host: str) -> None:
        if (probe := self._probe_of(host)) is not None:
            probe.released()

    def _probe_answered(self, host: str, page: Page | None) -> None:
        if (probe := self._probe_of(host)) is not None:
            probe.answered(page)
        self._probing.discard(host)

    def next_time(self, host: str) -> float | None:
        """0.0 where the made-up URL of a host is to be fetched."""
        if host not in self._probing:
            return None
        probe = self._probe_of(host)
        return 0.0 if probe is not None and probe.wanted and not probe.out else None

    def blocks(self, host: Host) -> bool:
        """Whether the made-up URL is being asked for: the host's pages wait for the answer."""
        name = host.record.host
        return name in self._probing and (probe := self._probe_of(name)) is not None and probe.out

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
        """A visit again is over; ``successor``: the page on another host that the page redirects
        to. ``is_page``: the URL has a page, or had one; of others, as a redirect that leads where
        it did, nothing follows for their host. True: it is one login form too many, and the host is
        to wait."""
        mine, kept = self._visits.of(host), self._kept.of(host)
        self._visits.touch(host)
        if seen in PRESENT:
            waited = kept.waiting.pop(key, None), kept.undecided.pop(key, None)
            if waited != (None, None):
                self._kept.touch(host)
            if key in mine.approved:
                mine.approved.discard(key)
                self._void[host, "a visit found the page"] += 1
        mine.successors.pop(key, None)
        if successor is not None and len(mine.successors) < MAX_SEARCHED:
            mine.successors[key] = successor
        mine.again.discard(key)
        is_well = seen in PRESENT or seen is Observation.NOINDEX
        if is_page and (key in mine.visited or len(mine.visited) < MAX_SEARCHED):
            mine.visited[key] = is_well
        if mine.canaries is not None and key in mine.canaries:
            was_open = mine.canaries[key] is None
            mine.canaries[key] = is_well
            if was_open and None not in mine.canaries.values():
                self._schedule(host, mine.held, 1.0)
                mine.again |= mine.held
                mine.held.clear()
        if seen is Observation.LOGIN:
            mine.logins += 1
            mine.expired = True
            if is_page and mine.canaries is None and self._is_new_login(kept, key):
                self._begin_canaries(host, mine.visited)
        elif is_page and seen in (Observation.CHANGED, Observation.SAME):
            mine.logins = 0
            mine.well += 1
        if mine.logins != MAX_LOGINS:
            return False
        mine.logins = 0
        text = f"Host {host} waits: {LOGIN_EXPIRED}. {MAX_LOGINS} pages in a row are a login form."
        self.notices.append(Notice(LOGIN, host, text))
        return True

    @staticmethod
    def _is_new_login(kept: HostDeletes, key: bytes) -> bool:
        """Whether a page has become a login form, and few others are: the canaries show whether the
        whole host has."""
        known = [one for one in kept.undecided.values() if one.seen == Observation.LOGIN]
        return key not in kept.undecided and len(known) < MAX_LOGINS

    def final(self, host: str, key: bytes, visit: FetchRecord) -> None:
        """A page that was judged before its host's canaries were is visited again; it had not ended
        its visit yet when they were."""
        mine = self._visits.get(host)
        if mine is not None and key in mine.again:
            mine.again.discard(key)
            self._schedule(host, [key], 1.0)

    def is_held(self, host: str, key: bytes) -> bool:
        """Whether a page that was judged is visited again in this run, after its host's
        canaries."""
        mine = self._visits.get(host)
        return mine is not None and (key in mine.held or key in mine.again)

    def has_lost(self, host: str, key: bytes, visit: FetchRecord) -> bool:
        """Whether a page is to leave, and waited for the canaries when this host's worker was
        killed, or another one had the host: nothing but its record knows of it any more."""
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
        """Why a page that is gone may not be taken out now; "" if it may, and then it is. The brake
        does not count a page that ``has_successor``: its target is stored."""
        why = self._why_not(entry, seen, reason, now, has_successor=has_successor)
        if why and why != ASKED_FIRST:  # that is over within this run
            self.waits_for(entry, why)
        successor = self._visits.of(entry.host).successors.get(entry.key)
        move = self._kept.of(entry.host).move
        if not why and move is not None and successor is not None:
            move.left += successor.host in move.hosts
        return why

    def _why_not(
        self, entry: QueuedUrl, seen: Observation, reason: str, now: float, *, has_successor: bool
    ) -> str:
        host, key = entry.host, entry.key
        mine, kept = self._visits.of(host), self._kept.of(host)
        if key not in mine.approved:
            if seen is Observation.SCOPE:
                why = f"out of scope: {program.NAME} deletes --approve {SCOPE}"
                self._wait(host, entry, seen, reason, why, now)
                return why
            is_well = seen is Observation.NOINDEX
            if why := self._ask_canaries(host, key, now, is_well=is_well):
                return why
            counts = self._backend.counts
            lately = self.brake.lately
            if not has_successor:
                why = self.brake.check(
                    host,
                    pages=counts(host).stored + lately(now, host),
                    index=counts().stored + lately(now),
                    now=now,
                )
                if why:
                    self._wait(host, entry, seen, reason, why, now)
                    return why
                self.brake.took(host, now)
        mine.approved.discard(key)
        kept.waiting.pop(key, None)
        kept.undecided.pop(key, None)
        self._kept.touch(host)
        return ""

    def _wait(
        self, host: str, entry: QueuedUrl, seen: Observation, reason: str, why: str, now: float
    ) -> None:
        kept = self._kept.of(host)
        before = kept.waiting.get(entry.key)
        if before is None and len(kept.waiting) >= MAX_WAITING:
            return
        if before is None and seen is Observation.SCOPE:
            text = f"Pages are out of scope, as {entry.url}, and wait. See {program.NAME} deletes."
            self.notices.append(Notice(SCOPE, SCOPE, text))
        elif before is None:
            text = f"Pages of {host} wait to be taken out: {why}. See {program.NAME} deletes."
            self.notices.append(Notice(DELETES, host, text))
        since = before.since if before is not None else now
        kept.waiting[entry.key] = Waiting(entry.url, str(seen), reason, since, why)
        self._kept.touch(host)

    def keeps(
        self, entry: QueuedUrl, seen: Observation, reason: str, since: float, now: float
    ) -> None:
        """A visit has not shown a stored page, which stays for now, since a time (0.0: now)."""
        mine, kept = self._visits.of(entry.host), self._kept.of(entry.host)
        before = kept.undecided.get(entry.key)
        if before is None and len(kept.undecided) >= MAX_WAITING:
            return
        is_other = before is not None and before.seen != seen and seen not in TABLE
        if is_other and entry.key in mine.approved:  # what was approved is not what is seen now
            mine.approved.discard(entry.key)
            why = f"a visit saw something else than was listed ({seen})"
            self._void[entry.host, why] += 1
            before, since = None, now
        if before is None or before.since > now:  # a clock that was set back restarts the count
            since = min(since or now, now)
            one = kept.undecided[entry.key] = Waiting(entry.url, str(seen), reason, since, "")
        else:
            one = before
            if seen is not Observation.FAILED or one.seen in TABLE:  # a failure says nothing new
                one.why = one.why if one.seen == seen else ""
                one.seen, one.reason = str(seen), reason
        self._kept.touch(entry.host)
        if one.is_listed(self.jumps.now_for(one.since, now)) and entry.key not in kept.waiting:
            text = (
                f"Pages of {entry.host} are not as they were for more than"
                f" {UNDECIDED_SECS / DAY:.0f} days, and stay: {one.why or reason}."
                f" See {program.NAME} deletes."
            )
            self.notices.append(Notice(UNDECIDED, entry.host, text, str(seen)))

    def flaps(self, source: Source) -> None:
        """A sitemap has stopped naming pages, as it often did for pages that are there."""
        text = (
            f"{source.url} stops naming pages that are there: {source.there:.0f} of"
            f" {source.there + source.missing:.0f} visits found them. The pages are not visited"
            " sooner any more; repair the sitemap."
        )
        self.notices.append(Notice(SITEMAP, host_of(source.url), text))

    def to_look_at(self, host: str, now: float) -> list[tuple[bytes, FetchRecord]]:
        """Undecided pages of a host whose last visit is older than UNDECIDED_SECS and which are not
        due: of the CANARIES pages that are undecided for longest."""
        kept = self._kept.get(host)
        undecided = {} if kept is None else kept.undecided
        oldest = nsmallest(CANARIES, undecided.items(), key=lambda item: item[1].since)
        visits = [(key, self._backend.visit(key), one.since) for key, one in oldest]
        return [
            (key, visit)
            for key, visit, since in visits
            if visit is not None
            and min(now - since, now - visit.time) > UNDECIDED_SECS
            and not 0.0 < visit.due <= _SOON
        ]

    def is_undecided(self, host: str, key: bytes) -> bool:
        """Whether the last visit of a stored page did not find it."""
        kept = self._kept.get(host)
        return kept is not None and key in kept.undecided

    def waits_for(self, entry: QueuedUrl, why: str) -> None:
        """A page that may leave is kept, and ``why``."""
        one = self._kept.of(entry.host).undecided.get(entry.key)
        if one is not None and one.why != why:
            one.why = why
            self._kept.touch(entry.host)

    def is_approved(self, host: str, key: bytes, seen: Observation) -> bool:
        """Whether the operator has approved the removal, and a visit has ``seen`` what was listed,
        or what takes pages out by itself."""
        mine, kept = self._visits.get(host), self._kept.of(host)
        if mine is None or key not in mine.approved or seen in PRESENT:
            return False
        one = kept.undecided.get(key) or kept.waiting.get(key)
        return one is not None and (one.seen == seen or seen in TABLE)

    def moved_to(self, host: str) -> tuple[str, ...]:
        """The hosts to which a host has moved."""
        kept = self._kept.get(host)
        return () if kept is None or kept.move is None else kept.move.hosts

    def _find_move(self, host: str, canaries: Sequence[bytes], now: float) -> bool:
        """Whether the host has moved as a whole, by its canaries in this run, and its pages may
        leave."""
        mine, kept = self._visits.of(host), self._kept.of(host)
        hosts = moved_to([mine.successors.get(key) for key in canaries])
        if not hosts:
            return False
        move = kept.move
        if move is None or move.to != hosts[0] or not {*hosts} <= {*move.hosts}:
            pages = self._backend.counts(host).stored
            kept.move = HostMove(host, hosts[0], now, pages, others=[*hosts[1:]])
            if move is not None and move.to == hosts[0]:
                kept.move.since, kept.move.pages, kept.move.left = move.since, move.pages, move.left
            self._kept.touch(host)
            self._moved.add(host)
            self.notices.append(Notice(MOVED, host, f"{kept.move.in_words()}."))
            self._schedule(host, self._all_of(host, mine), _SOON)
        return True

    def _all_of(self, host: str, mine: HostVisits) -> list[bytes]:
        """The pages of a host that were not visited in this run, and are not due before others."""
        found, prefix = list[bytes](), host_prefix(host)[:4]
        after = prefix
        while len(found) < MAX_SEARCHED and (rows := self._backend.visits(after, 500)):
            after = rows[-1][0]
            found += [
                key
                for key, visit in rows
                if visit is not None
                and key.startswith(prefix)
                and visit.status == 200
                and visit.due > _SOON
                and key not in mine.visited
            ]
            if not after.startswith(prefix):
                break
        return found

    def _ask_canaries(self, host: str, key: bytes, now: float, *, is_well: bool) -> str:
        """ "" if the host is well, as far as it was asked in this run; ``key`` is."""
        mine, kept = self._visits.of(host), self._kept.of(host)
        if mine.canaries is None:
            self._begin_canaries(host, mine.visited | {key: is_well})
        assert mine.canaries is not None
        answers = list(mine.canaries.values())
        if None in answers:
            mine.held.add(key)
            return ASKED_FIRST
        well = sum(map(bool, answers))
        if self._find_move(host, list(mine.canaries), now):
            return ""
        if kept.move is not None and answers and answers[0]:
            kept.move = None  # the host is back
            self._kept.touch(host)
        if answers and (not answers[0] or well * 2 <= len(answers)):
            what = "the start page and those that most pages link to"
            return f"only {well} of {counted(len(answers), 'page')} are there: {what}"
        return ""

    def _begin_canaries(self, host: str, visited: Mapping[bytes, bool]) -> None:
        """Those that this run has not ``visited`` are due."""
        mine = self._visits.of(host)
        mine.canaries = {one: visited.get(one) for one in self._find_canaries(host)}
        asked = [one for one, answer in mine.canaries.items() if answer is None]
        self._schedule(host, asked, FIRST)

    def _find_canaries(self, host: str) -> list[bytes]:
        """The keys of the start page, which has the smallest depth, and of those that most pages
        link to; of equal ones those near the start page. 20 us a page."""
        first: list[tuple[int, int, str, bytes]] = []
        linked: list[tuple[int, int, str, bytes]] = []
        prefix = host_prefix(host)[:4]
        after, left = prefix, MAX_SEARCHED
        while left > 0 and (rows := self._backend.visits(after, min(left, 500))):
            left -= len(rows)
            after = rows[-1][0]
            pages = [
                (key, visit)
                for key, visit in rows
                if visit is not None and visit.status == 200 and key.startswith(prefix)
            ]
            links = self._links_to([visit.url for _, visit in pages])
            found = [
                (number, -visit.depth, visit.url, key)
                for number, (key, visit) in zip(links, pages, strict=True)
            ]
            first = sorted([*first, *found], key=lambda one: (-one[1], one[2]))[:1]
            linked = sorted([*linked, *found], key=lambda one: (-one[0], -one[1], one[2]))
            del linked[CANARIES:]
            if not after.startswith(prefix):
                break
        return list(dict.fromkeys(one[3] for one in [*first, *linked]))[:CANARIES]

    def silent(self, host: str, since: float, now: float) -> None:
        """The host has failed once more, and did not answer since a time."""
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
        now = self.jumps.now_for(since, now)
        if now - since < DEAD_SECS or host in self._silent or not pages:
            return
        self._silent.add(host)
        text = (
            f"Host {host} has not answered for {counted(int((now - since) // DAY), 'day')}."
            f" Its {counted(pages, 'page')} stay in the search. See {program.NAME} deletes."
        )
        self.notices.append(Notice(NO_ANSWER, host, text))

    def is_over(self, what: str, host: str, seen: str = "") -> bool:
        """Whether what somebody was told of is no more, as far as this run has seen; to be asked at
        its end. The arguments are those of the notice."""
        if what == SCOPE:  # of many workers none knows it of all hosts
            hosts = self._backend.hosts()
            return not self._shared and not any(map(self._has_out_of_scope, hosts))
        if what == DELETES:
            return not self._kept.of(host).waiting
        mine = self._visits.get(host)
        if what == UNDECIDED:
            undecided = self._kept.of(host).undecided.values()
            return not any(one.seen == seen or not seen for one in undecided)
        if what == MOVED:
            return self._kept.of(host).move is None
        if what == SITEMAP:
            return False  # one notice is enough
        is_well = mine is not None and any(mine.visited.values())
        if what == LOGIN:
            return mine is not None and not mine.expired and mine.well >= MAX_LOGINS
        return is_well and host not in self._silent

    def _has_out_of_scope(self, host: str) -> bool:
        return any(one.seen == Observation.SCOPE for one in self._kept.of(host).waiting.values())

    # the operator

    def waiting(self, host: str, now: float) -> int:
        """Number of pages of a host that wait for the operator, as ``scrapy deletes`` lists them:
        those that are not decided for long, too."""
        kept = self._kept.get(host) or HostDeletes()
        undecided = (
            key
            for key, one in kept.undecided.items()
            if one.is_listed(self.jumps.now_for(one.since, now))
        )
        return len(kept.waiting.keys() | {*undecided})

    def approve(self, host: str, keys: Mapping[bytes, float]) -> None:
        """Somebody has looked at pages that wait since these times: each is visited once more, and
        leaves if it is still gone."""
        if known := self.still_waiting(host, keys):
            self._visits.of(host).approved.update(known)
            self.brake.approve(host)
            self._kept.touch(host)
            self._schedule(host, known, 1.0)

    def abandon(self, host: str, since: float) -> None:
        """The operator has approved that all pages of a host leave, which does not answer since a
        time. A request is made first: one page is due."""
        self._visits.of(host).abandoned = since
        prefix = host_prefix(host)[:4]
        for key, visit in self._backend.visits(prefix, 500):
            if key.startswith(prefix) and visit is not None and visit.state is UrlState.STORED:
                self._schedule(host, [key], 1.0)
                break

    def has_left(self, host: str) -> None:
        """All pages of the host were taken out."""
        mine, kept = self._visits.of(host), self._kept.of(host)
        kept.waiting.clear()
        kept.undecided.clear()
        mine.approved.clear()
        mine.abandoned = 0.0
        self.leaving.discard(host)
        self._kept.touch(host)

    def void_approvals(self) -> Iterator[str]:
        """A sentence for each host and reason of approvals that have ended in this run; each
        once."""
        for (host, why), number in self._void.items():
            yield f"The approval of {counted(number, 'page')} of {host} is void: {why}."
        self._void.clear()

    def still_waiting(self, host: str, keys: Mapping[bytes, float]) -> dict[bytes, float]:
        """The pages among ``keys`` that wait since these times; since any for 0.0."""
        kept = self._kept.of(host)
        lists = kept.waiting, kept.undecided
        return {
            key: since
            for key, since in keys.items()
            if any(key in pages and since in (0.0, pages[key].since) for pages in lists)
        }


def _is_back(move: HostMove, visited: Mapping[bytes, bool]) -> bool:
    """Whether most pages of a host that had moved were there in this run. A few may have stayed."""
    number = len(visited)
    return number >= min(ENOUGH_BACK, max(1, move.pages)) and 2 * sum(visited.values()) > number


def is_same_silence(one: float, other: float) -> bool:
    """Whether a host has not answered between two times since which it does not answer. They are
    kept in seconds."""
    return abs(one - other) <= 1


def redirect_target(page: Page) -> str:
    """Where the page redirects, without the query; "" for a page that does not."""
    if not 300 <= page.status < 400:
        return ""
    for link in page.links:
        if link.type == 2:
            return link.url.partition("?")[0]
    return ""


def _like_error(
    probe: Probe, page: Page, stored: Page, first: Page | None
) -> Observation | Wait | None:
    """Whether a page has become an error page some words of which are others at each answer."""
    if probe.pairs is None:
        return None
    found = likeness(probe.pairs, page, stored)
    if not found.is_lost:
        return None
    if probe.answers < _LEAST_ANSWERS:
        probe.ask_again()
        return WAIT
    if found.is_error:
        return Observation.LOGIN if probe.password else Observation.SOFT_404
    if found.shared is not None:
        if found.shared and probe.answers < _MOST_ANSWERS:
            probe.ask_again()
            return WAIT
        return None
    if len(probe.pairs) >= LEAST_PAIRS:
        return None  # the page had all of them before
    if first is None:
        return ONCE_MORE
    return Observation.EMPTY if says_another_thing(first, page) else None


def made_up_url(url: str) -> str:
    """A URL in the same folder that nobody has."""
    folder = url.partition("?")[0].rpartition("/")[0]
    return f"{folder}/larmspider-{uuid.uuid4().hex[:12]}"


def note_of(host: str) -> str:
    """The name of the note that has the HostDeletes of a host."""
    return f"deletes {host}"


def listed_as(name: str, host: str, waiting: dict[bytes, Waiting]) -> Iterator[bytes]:
    """The keys of a host's waiting pages that are in the list of a name: the host's own, or that of
    pages out of scope."""
    for key, one in waiting.items():
        if (one.seen == Observation.SCOPE) == (name == SCOPE) and name in (SCOPE, host):
            yield key


def digest_of(keys: Iterable[bytes]) -> str:
    """What a list is known by, between its being shown and its approval."""
    return blake2b(b"".join(sorted(keys)), digest_size=6).hexdigest()
