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
from dataclasses import astuple, dataclass, field
from enum import Enum
from hashlib import blake2b
from heapq import nsmallest
from typing import NamedTuple

import msgpack

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
from larmspider.frontier.deletes import (
    CANARIES,
    DAY,
    DEAD_SECS,
    PRESENT,
    TABLE,
    Brake,
    Observation,
    is_confirmed,
)
from larmspider.frontier.moves import (
    HostMove,
    Successor,
    move_of,
    moved_to,
    note_of_move,
    pack_move,
)
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import (
    FetchRecord,
    QueuedUrl,
    UrlState,
    host_prefix,
)
from larmspider.items import Page

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
UNDECIDED_SECS = 7 * DAY
"""A page that stays is listed if visits do not find it as stored for longer."""
UNCONFIRMED_SECS = 30 * DAY
"""The same for a page that only waits for its next visits."""
_SOON = 2.0
"""Due time of the pages of a host that has moved: equal to SIGNALLED (revisiting.py)."""
MANY = 3
"""Pages of a host with texts of their own that have one text since this run: it is nobody's."""
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


@dataclass(slots=True)
class Waiting:
    """A page that is gone and was not taken out, and ``why``: the brake's words, or the scope."""

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


@dataclass(slots=True)
class _Probe:
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


@dataclass(slots=True)
class _Host:
    waiting: dict[bytes, Waiting] = field(default_factory=dict)
    approved: set[bytes] = field(default_factory=set)
    probe: _Probe | None = None
    canaries: dict[bytes, bool | None] | None = None
    visited: dict[bytes, bool] = field(default_factory=dict)
    held: set[bytes] = field(default_factory=set)
    again: set[bytes] = field(default_factory=set)
    logins: int = 0  # in a row
    expired: bool = False
    well: int = 0
    texts: dict[bytes, set[bytes]] = field(default_factory=dict)
    undecided: dict[bytes, Waiting] = field(default_factory=dict)
    successors: dict[bytes, Successor] = field(default_factory=dict)  # of canaries, in this run
    move: HostMove | None = None
    abandoned: float = 0.0  # approved: no page of a host that is silent since then shall stay
    void: Counter[str] = field(default_factory=Counter)  # approvals that have ended, by reason


class DeleteGate:
    """``schedule`` makes pages of a host due: (host, keys, time). ``links_to`` gives the number of
    pages that link to each of some URLs, as far as it is known. ``shared`` with other workers: the
    brake counts the hosts of this one, which bring and take their numbers with them."""

    def __init__(
        self,
        backend: Backend,
        schedule: Callable[[str, Iterable[bytes], float], None],
        links_to: Callable[[Sequence[str]], Sequence[int]] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self._backend, self._schedule, self._shared = backend, schedule, shared
        self.links_to = links_to or (lambda urls: [0] * len(urls))
        self._hosts: dict[str, _Host] = {}
        self._changed: set[str] = set()
        self._silent: set[str] = set()  # hosts that somebody is told of
        self.brake = Brake()
        self.notices: list[Notice] = []
        """What somebody should be told; whoever does empties the list."""
        self.take_out: Callable[[str, float], None] | None = None
        """Called for a host that does not answer, and since when, if its removal is approved."""
        self.leaving: set[str] = set()
        """Hosts all of whose pages are being taken out."""

    def __repr__(self) -> str:
        return f"<DeleteGate {self.brake!r}>"

    def recover(self) -> None:
        """After the backend's."""
        if not self._shared:
            self.brake = Brake.unpack(self._backend.note(_BRAKE))

    def save(self) -> None:
        """Into notes of the backend, before a batch is sealed."""
        for host, mine in self._hosts.items():
            if mine.move is not None and _is_back(mine.move, mine.visited):
                mine.move = None
                self._changed.add(host)
        for host in self._changed:
            mine, put, has = self._hosts[host], self._backend.put_note, self._backend.note
            put(note_of(host), pack_waiting(mine.waiting))
            if mine.undecided or has(undecided_note_of(host)):
                put(undecided_note_of(host), pack_waiting(mine.undecided))
            if mine.move is not None or has(note_of_move(host)):
                put(note_of_move(host), pack_move(mine.move))
            if self._shared:
                self._backend.put_note(f"{_BRAKE} {host}", self.brake.pack(host))
            else:
                self._backend.put_note(_BRAKE, self.brake.pack())
        self._changed.clear()

    def enter(self, host: str) -> None:
        """The host came from another worker."""
        self.brake.enter(self._backend.note(f"{_BRAKE} {host}"))

    def forget(self, host: str) -> None:
        """Another worker owns the host now."""
        self.brake.leave(host)
        self._hosts.pop(host, None)
        self._changed.discard(host)

    def _of(self, host: str) -> _Host:
        found = self._hosts.get(host)
        if found is None:
            note = self._backend.note
            found = self._hosts[host] = _Host(waiting_of(note(note_of(host))))
            found.undecided = waiting_of(note(undecided_note_of(host)))
            found.move = move_of(note(note_of_move(host)))
        return found

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
        mine = self._of(host)
        target = redirect_target(page)
        if not target and asks_password(page) and not asked_password(before.link_signature):
            return Observation.LOGIN
        if mine.probe is None:
            mine.probe = _Probe(made_up_url(page.url))
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
            return found
        # pages may differ by numbers alone: of these each has a text of its own
        earlier = mine.texts.setdefault(error_signature(page, numbers=True), set())
        if len(earlier) <= MANY:
            earlier.add(before.signature or before.digest)
        return Observation.LOGIN if len(earlier) > MANY else None

    def own_fetch(self, host: str, allowed: Callable[[str], bool]) -> OwnFetch | None:
        """The made-up URL, if it is to be fetched now."""
        if not self.wants_probe(host):
            return None
        probe = self._of(host).probe
        assert probe is not None
        if not allowed(probe.url):
            probe.wanted = False
            return None
        probe.out = True
        return OwnFetch(
            FetchKind.MADE_UP,
            probe.url,
            probe.released,
            lambda _answer, _entries, page: probe.answered(page),
        )

    def wants_probe(self, host: str) -> bool:
        """Whether the made-up URL of a host is to be fetched."""
        mine = self._hosts.get(host)
        probe = None if mine is None else mine.probe
        return probe is not None and probe.wanted and not probe.out

    def is_probing(self, host: str) -> bool:
        """Whether the made-up URL is being asked for: the host's pages wait for the answer."""
        mine = self._hosts.get(host)
        return mine is not None and mine.probe is not None and mine.probe.out

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
        mine = self._of(host)
        if seen in PRESENT:
            waited = mine.waiting.pop(key, None), mine.undecided.pop(key, None)
            if waited != (None, None):
                self._changed.add(host)
            if key in mine.approved:
                mine.approved.discard(key)
                mine.void["a visit found the page"] += 1
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
            if is_page and mine.canaries is None and self._is_new_login(mine, key):
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
    def _is_new_login(mine: _Host, key: bytes) -> bool:
        """Whether a page has become a login form, and few others are: the canaries show whether the
        whole host has."""
        known = [one for one in mine.undecided.values() if one.seen == Observation.LOGIN]
        return key not in mine.undecided and len(known) < MAX_LOGINS

    def wants_again(self, host: str, key: bytes) -> bool:
        """Whether a page that was judged before its host's canaries were is to be visited again; it
        had not ended its visit yet when they were."""
        mine = self._hosts.get(host)
        if mine is None or key not in mine.again:
            return False
        mine.again.discard(key)
        return True

    def is_held(self, host: str, key: bytes) -> bool:
        """Whether a page that was judged is visited again in this run, after its host's
        canaries."""
        mine = self._hosts.get(host)
        return mine is not None and (key in mine.held or key in mine.again)

    def has_lost(self, host: str, key: bytes, visit: FetchRecord) -> bool:
        """Whether a page is to leave, and waited for the canaries when this host's worker was
        killed, or another one had the host: nothing but its record knows of it any more."""
        if not is_confirmed(visit) or visit.missing_as == Observation.SCOPE:
            return False
        mine = self._of(host)
        return mine.canaries is None and key not in mine.waiting

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
        mine = self._of(entry.host)
        if why and why != ASKED_FIRST:  # that is over within this run
            self.waits_for(entry, why)
        successor = mine.successors.get(entry.key)
        if not why and mine.move is not None and successor is not None:
            mine.move.left += successor.host in mine.move.hosts
        return why

    def _why_not(
        self, entry: QueuedUrl, seen: Observation, reason: str, now: float, *, has_successor: bool
    ) -> str:
        host, key = entry.host, entry.key
        mine = self._of(host)
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
        mine.waiting.pop(key, None)
        mine.undecided.pop(key, None)
        self._changed.add(host)
        return ""

    def _wait(
        self, host: str, entry: QueuedUrl, seen: Observation, reason: str, why: str, now: float
    ) -> None:
        mine = self._of(host)
        before = mine.waiting.get(entry.key)
        if before is None and len(mine.waiting) >= MAX_WAITING:
            return
        if before is None and seen is Observation.SCOPE:
            text = f"Pages are out of scope, as {entry.url}, and wait. See {program.NAME} deletes."
            self.notices.append(Notice(SCOPE, SCOPE, text))
        elif before is None:
            text = f"Pages of {host} wait to be taken out: {why}. See {program.NAME} deletes."
            self.notices.append(Notice(DELETES, host, text))
        since = before.since if before is not None else now
        mine.waiting[entry.key] = Waiting(entry.url, str(seen), reason, since, why)
        self._changed.add(host)

    def keeps(
        self, entry: QueuedUrl, seen: Observation, reason: str, since: float, now: float
    ) -> None:
        """A visit has not shown a stored page, which stays for now, since a time (0.0: now)."""
        mine = self._of(entry.host)
        before = mine.undecided.get(entry.key)
        if before is None and len(mine.undecided) >= MAX_WAITING:
            return
        is_other = before is not None and before.seen != seen and seen not in TABLE
        if is_other and entry.key in mine.approved:  # what was approved is not what is seen now
            mine.approved.discard(entry.key)
            mine.void[f"a visit saw something else than was listed ({seen})"] += 1
            before, since = None, now
        if before is None or before.since > now:  # a clock that was set back restarts the count
            since = min(since or now, now)
            one = mine.undecided[entry.key] = Waiting(entry.url, str(seen), reason, since, "")
        else:
            one = before
            if seen is not Observation.FAILED or one.seen in TABLE:  # a failure says nothing new
                one.why = one.why if one.seen == seen else ""
                one.seen, one.reason = str(seen), reason
        self._changed.add(entry.host)
        if one.is_listed(now) and entry.key not in mine.waiting:
            text = (
                f"Pages of {entry.host} are not as they were for more than"
                f" {UNDECIDED_SECS / DAY:.0f} days, and stay: {one.why or reason}."
                f" See {program.NAME} deletes."
            )
            self.notices.append(Notice(UNDECIDED, entry.host, text, str(seen)))

    def to_look_at(self, host: str, now: float) -> list[tuple[bytes, FetchRecord]]:
        """Undecided pages of a host whose last visit is older than UNDECIDED_SECS and which are not
        due: of the CANARIES pages that are undecided for longest."""
        mine = self._hosts.get(host)
        note = None if mine is not None else self._backend.note(undecided_note_of(host))
        undecided = mine.undecided if mine is not None else waiting_of(note)
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
        return key in self._of(host).undecided

    def waits_for(self, entry: QueuedUrl, why: str) -> None:
        """A page that may leave is kept, and ``why``."""
        one = self._of(entry.host).undecided.get(entry.key)
        if one is not None and one.why != why:
            one.why = why
            self._changed.add(entry.host)

    def is_approved(self, host: str, key: bytes, seen: Observation) -> bool:
        """Whether the operator has approved the removal, and a visit has ``seen`` what was listed,
        or what takes pages out by itself."""
        mine = self._hosts.get(host)
        if mine is None or key not in mine.approved or seen in PRESENT:
            return False
        one = mine.undecided.get(key) or mine.waiting.get(key)
        return one is not None and (one.seen == seen or seen in TABLE)

    def moved_to(self, host: str) -> tuple[str, ...]:
        """The hosts to which a host has moved."""
        mine = self._hosts.get(host)
        move = move_of(self._backend.note(note_of_move(host))) if mine is None else mine.move
        return () if move is None else move.hosts

    def _find_move(self, host: str, canaries: Sequence[bytes], now: float) -> bool:
        """Whether the host has moved as a whole, by its canaries in this run, and its pages may
        leave."""
        mine = self._of(host)
        hosts = moved_to([mine.successors.get(key) for key in canaries])
        if not hosts:
            return False
        move = mine.move
        if move is None or move.to != hosts[0] or not {*hosts} <= {*move.hosts}:
            pages = self._backend.counts(host).stored
            mine.move = HostMove(host, hosts[0], now, pages, others=[*hosts[1:]])
            if move is not None and move.to == hosts[0]:
                mine.move.since, mine.move.pages, mine.move.left = move.since, move.pages, move.left
            self._changed.add(host)
            self.notices.append(Notice(MOVED, host, f"{mine.move.in_words()}."))
            self._schedule(host, self._all_of(host, mine), _SOON)
        return True

    def _all_of(self, host: str, mine: _Host) -> list[bytes]:
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
        mine = self._of(host)
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
        if mine.move is not None and answers and answers[0]:
            mine.move = None  # the host is back
            self._changed.add(host)
        if answers and (not answers[0] or well * 2 <= len(answers)):
            what = "the start page and those that most pages link to"
            return f"only {well} of {counted(len(answers), 'page')} are there: {what}"
        return ""

    def _begin_canaries(self, host: str, visited: Mapping[bytes, bool]) -> None:
        """Those that this run has not ``visited`` are due."""
        mine = self._of(host)
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
            links = self.links_to([visit.url for _, visit in pages])
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
        mine = self._hosts.get(host)
        abandoned = 0.0 if mine is None else mine.abandoned
        if abandoned and pages and self.take_out is not None and is_same_silence(abandoned, since):
            if host not in self.leaving:
                self.leaving.add(host)
                self.take_out(host, since)
            return
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
            return not self._of(host).waiting
        mine = self._hosts.get(host)
        if what == UNDECIDED:
            undecided = self._of(host).undecided.values()
            return not any(one.seen == seen or not seen for one in undecided)
        if what == MOVED:
            return self._of(host).move is None
        is_well = mine is not None and any(mine.visited.values())
        if what == LOGIN:
            return mine is not None and not mine.expired and mine.well >= MAX_LOGINS
        return is_well and host not in self._silent

    def _has_out_of_scope(self, host: str) -> bool:
        return any(one.seen == Observation.SCOPE for one in self._of(host).waiting.values())

    # the operator

    def waiting(self, host: str, now: float) -> int:
        """Number of pages of a host that wait for the operator, as ``scrapy deletes`` lists them:
        those that are not decided for long, too."""
        mine = self._of(host)
        undecided = (key for key, one in mine.undecided.items() if one.is_listed(now))
        return len(mine.waiting.keys() | {*undecided})

    def approve(self, host: str, keys: Mapping[bytes, float]) -> None:
        """Somebody has looked at pages that wait since these times: each is visited once more, and
        leaves if it is still gone."""
        mine, known = self._of(host), self.still_waiting(host, keys)
        if known:
            mine.approved.update(known)
            self.brake.approve(host)
            self._changed.add(host)
            self._schedule(host, known, 1.0)

    def abandon(self, host: str, since: float) -> None:
        """The operator has approved that all pages of a host leave, which does not answer since a
        time. A request is made first: one page is due."""
        mine = self._of(host)
        mine.abandoned = since
        prefix = host_prefix(host)[:4]
        for key, visit in self._backend.visits(prefix, 500):
            if key.startswith(prefix) and visit is not None and visit.state is UrlState.STORED:
                self._schedule(host, [key], 1.0)
                break

    def has_left(self, host: str) -> None:
        """All pages of the host were taken out."""
        mine = self._of(host)
        mine.waiting.clear()
        mine.undecided.clear()
        mine.approved.clear()
        mine.abandoned = 0.0
        self.leaving.discard(host)
        self._changed.add(host)

    def void_approvals(self) -> Iterator[str]:
        """A sentence for each host and reason of approvals that have ended in this run; each
        once."""
        for host, mine in self._hosts.items():
            for why, number in mine.void.items():
                yield f"The approval of {counted(number, 'page')} of {host} is void: {why}."
            mine.void.clear()

    def still_waiting(self, host: str, keys: Mapping[bytes, float]) -> dict[bytes, float]:
        """Those of some pages that wait since these times; since any for 0.0."""
        mine = self._of(host)
        lists = mine.waiting, mine.undecided
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
    probe: _Probe, page: Page, stored: Page, first: Page | None
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
    """The name of the host's note."""
    return f"deletes {host}"


def undecided_note_of(host: str) -> str:
    """The name of the note that has the pages of a host whose removal is not decided."""
    return f"undecided {host}"


def pack_waiting(waiting: dict[bytes, Waiting]) -> bytes:
    packed: bytes = msgpack.packb([[key, *astuple(one)] for key, one in waiting.items()])
    return packed


def waiting_of(note: bytes | None) -> dict[bytes, Waiting]:
    """What the note of a host says; nothing for None."""
    return {key: Waiting(*fields) for key, *fields in msgpack.unpackb(note)} if note else {}


def listed_as(name: str, host: str, waiting: dict[bytes, Waiting]) -> Iterator[bytes]:
    """The keys of a host's waiting pages that are in the list of a name: the host's own, or that of
    pages out of scope."""
    for key, one in waiting.items():
        if (one.seen == Observation.SCOPE) == (name == SCOPE) and name in (SCOPE, host):
            yield key


def digest_of(keys: Iterable[bytes]) -> str:
    """What a list is known by, between its being shown and its approval."""
    return blake2b(b"".join(sorted(keys)), digest_size=6).hexdigest()
