"""What is fetched next, and what becomes of it: queues, politeness, robots.txt, slots, budgets.

    frontier.add([frontier.entry("http://wiki/", "http://wiki/")])
    lease = frontier.pop()                  # http://wiki/robots.txt, for wiki is a new host
    frontier.robots_loaded(lease, body, seconds=0.02)
    lease = frontier.pop()                  # None: the gap; frontier.next_ready_time() says when
    ...
    frontier.answered(lease, seconds=0.05)  # the response is complete: its slot is free
    frontier.acknowledge(lease, FetchRecord(UrlState.STORED, ...))   # every store has the page

The backend remembers; the frontier decides. A URL goes through it so:

    add()             known, within the limits (links.py)? then into its host's queue
    pop()             which host may be asked, and for what (dispatch.py)
    answered() ...    what the answer means for URL, host (politeness.py) and slot (slots.py)

Each lease ends once: a page's with acknowledge(), failed(), failed_for_good() or release(), one of
the frontier's own (own_fetch.py) with own_ended(), robots_loaded() or release(). answered() and
release_slot() only free its slot before that.

Nothing here is asynchronous or knows the network; the clock is passed in. One thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from larmspider.frontier import dispatch
from larmspider.frontier.broken_views import Blame, ViewWatch
from larmspider.frontier.control import Control
from larmspider.frontier.delete_gate import DeleteGate
from larmspider.frontier.dispatch import AddressBook, ReadyQueue, schedule
from larmspider.frontier.group import Group
from larmspider.frontier.hosts import (
    Host,
    HostRecord,
    HostState,
    HostTable,
    Lease,
    local_hour,
)
from larmspider.frontier.links import (
    MAX_HOST,
    Added,
    CrawlLimits,
    RecentlySeen,
    count_links,
)
from larmspider.frontier.merging import Merger
from larmspider.frontier.own_fetch import FetchKind, Logins, OwnFetch
from larmspider.frontier.partition import Partitions, SharedBackend
from larmspider.frontier.politeness import Politeness, failure_kind
from larmspider.frontier.revisiting import DUE, WATCH, Revisiting
from larmspider.frontier.robots import RobotsCache
from larmspider.frontier.script_watch import ScriptWatch
from larmspider.frontier.shortfall import Shortfall
from larmspider.frontier.slots import Kind, SlotPool
from larmspider.frontier.sources import LEAST_PRECISION, Sources
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import (
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    Recovery,
    UrlState,
    host_of,
    url_key,
)
from larmspider.frontier.strategies import Strategy
from larmspider.frontier.trap_watch import TrapWatch
from larmspider.items import REQUISITE, Page

__all__ = ["CHECKPOINT_AT", "MAX_HOST", "Added", "AddressBook", "CrawlLimits", "Frontier"]

MAX_IN_VAIN = 64
"""Turns in which one pop() finds nothing to fetch, as the address is to be looked up, and URLs that
robots.txt does not allow, before it lets others have the CPU."""
SLICES = 4
"""Of what is looked for at the begin of a refresh, in one pop()."""
SET_BACK_SECS = 1.0
"""A clock that goes back further was set, and each wait begins again."""
CHECKPOINT_AT = 20_000
"""Pending changes at which a checkpoint is due whatever the time: some 25 MB."""
LOOK_AGAIN_SECS = 2.0
"""Until a page is fetched once more, to see what changes by itself: a clock on it has moved."""
LATE_SECS = 1.0
"""A request reaches its host within this time of its turn."""


class Frontier:
    """Call recover() first.

    ``robots`` is None where robots.txt is not obeyed; ``addresses`` is None where no host waits for
    its address. ``shared`` is the backend again, where other workers share it. ``logins`` signs in
    to hosts. ``links_to`` gives the number of pages that link to each of some URLs. ``clock`` gives
    seconds since the epoch, ``hour_of`` the hour of the local day at such a time.
    """

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        strategy: Strategy,
        slots: SlotPool,
        *,
        robots: RobotsCache | None = None,
        limits: CrawlLimits | None = None,
        addresses: AddressBook | None = None,
        shared: SharedBackend | None = None,
        logins: Logins | None = None,
        links_to: Callable[[Sequence[str]], Sequence[int]] | None = None,
        clock: Callable[[], float] = time.time,
        hour_of: Callable[[float], float] = local_hour,
    ) -> None:
        self.backend, self.politeness, self.strategy = backend, politeness, strategy
        self.slots, self.robots, self.limits = slots, robots, limits or CrawlLimits()
        self.addresses, self.clock, self.hour_of = addresses, clock, hour_of
        self.hosts = HostTable(backend, politeness.pace_of)
        self.ready = ReadyQueue(partial(dispatch.kind_of, slots))
        self.groups: dict[str, Group] = {}
        """By address."""
        self.resolving: dict[str, list[Host]] = {}
        """Hosts that wait for the address of their name, by name."""
        self.seen = RecentlySeen()
        self.refused: list[QueuedUrl] = []
        """What robots.txt refused in pop(); whoever reports these empties the list."""
        self.control = Control(self)
        self.partitions = None if shared is None else Partitions(self, shared)
        """Which hosts are this worker's; None where all are."""
        self.merger: Merger | None = None
        """Merges URLs that are one page; None where no host has anything to prove."""
        self.sources: Sources | None = None
        """Sitemaps and feeds; None where none is asked."""
        self.logins = logins
        self.gate = DeleteGate(backend, self._make_due, links_to, shared=shared is not None)
        """Stands before every removal of a page that is gone."""
        self.scripts = ScriptWatch(backend)
        """Learns which hosts have pages that are empty without JavaScript."""
        self.shortfall = Shortfall(backend)
        """Learns why little of a host is stored."""
        self.views = ViewWatch(self)
        """Tells broken views from hosts that are down."""
        self.refresh: Revisiting | None = None
        """Which pages are visited again, and when; None: no page ever is."""
        self.traps: TrapWatch | None = None
        """Holds URLs that are traps; None: no URL is held."""
        self._latest = float("-inf")  # the clock at its last reading

    def __repr__(self) -> str:
        return f"<Frontier {self.backend.counts()}, {len(self.ready)} hosts ahead, {self.slots!r}>"

    # links

    def entry(
        self,
        url: str,
        normalized: str,
        *,
        exact: str | None = None,
        depth: int = 0,
        link_type: int = 0,
        redirects: int = 0,
        from_page: str = "",
        payload: bytes = b"",
    ) -> QueuedUrl:
        """What add() takes: the fields of a QueuedUrl, with key, host and priority set. ``exact``
        None: as ``normalized``."""
        exact = normalized if exact is None else exact
        return QueuedUrl(
            url=url,
            normalized=normalized,
            key=url_key(exact),
            host=host_of(url),
            depth=int(depth),  # of Requests of others it may be True
            link_type=int(link_type),
            redirects=redirects,
            priority=self.strategy.priority(normalized, depth, 1),
            from_page=from_page,
            payload=payload,
            exact=exact,
        )

    def add(self, entries: Sequence[QueuedUrl]) -> Added:
        """Queue those of a batch, a page's links, that are new and within the limits. URLs of other
        workers' hosts are forwarded, and are not among the new ones.
        """
        if self.partitions is None:
            return self._add_own(entries)
        own, foreign = self.partitions.split(entries)
        added = self._add_own(own)
        added.forwarded = len(foreign)
        for entry in foreign:
            self.seen.add(entry.exact)
        return added

    def add_forwarded(self, entries: Sequence[QueuedUrl]) -> None:
        """Queue the URLs that other workers forwarded."""
        assert self.partitions is not None
        if again := [entry for entry in entries if entry.again]:
            self.control.reopen(again)
            entries = [entry for entry in entries if not entry.again]
        if doubted := [entry for entry in entries if entry.doubted]:
            if self.refresh is not None:
                self.refresh.doubted(doubted)
            entries = [entry for entry in entries if not entry.doubted]
        self.partitions.arrived(self._add_own(entries).new)

    def _add_own(self, entries: Sequence[QueuedUrl]) -> Added:
        added, wanted = Added(), []
        for entry in entries:
            reason = self.limits.reject_reason(entry)
            if reason:
                added.rejected.append((entry, reason))
            else:
                wanted.append(entry)
        if self.merger is not None and wanted:
            wanted = self.merger.admit(wanted)
        touched: dict[Host, None] = {}
        for entry, new in zip(wanted, self.backend.add(wanted), strict=True):
            self.seen.add(entry.exact)
            if new:
                added.new.append(entry)
                host = self.hosts.get(entry.host)
                if host is None:
                    host = self.hosts.of(entry.host, entry.url.partition(":")[0].lower())
                touched[host] = None
        for host in touched:
            schedule(self, host)
        return added

    def is_own(self, key: bytes) -> bool:
        """Whether a URL is of a host that no other worker has."""
        return self.partitions is None or self.partitions.owns(key)

    def known(self, exact: Sequence[str], *, count: bool = True) -> list[bool]:
        """Was each URL, by its exact form, added before? With ``count`` it counts as a link to it
        where the strategy asks."""
        seen = self.seen
        known = seen.among(exact)
        unsure = [(at, url_key(url)) for at, url in enumerate(exact) if not known[at]]
        states = self.backend.check([key for _, key in unsure])
        for (at, _), state in zip(unsure, states, strict=True):
            if state is not UrlState.UNKNOWN:
                known[at] = True
                seen.add(exact[at])
                if state is UrlState.MERGED and self.merger is not None:
                    self.merger.met(exact[at], url_key(exact[at]))
        if count and self.strategy.counts_links:
            count_links(self, [url for at, url in enumerate(exact) if known[at]])
        return known

    def seen_lately(self, exact: Sequence[str]) -> list[bool]:
        """known() as far as memory has it: False proves nothing. No link is counted; all are False
        where the strategy counts links."""
        if self.strategy.counts_links:
            return [False] * len(exact)
        return self.seen.among(exact)

    def reprioritize(self, changes: Iterable[tuple[bytes, int]]) -> None:
        """New priorities for the queued URLs of these keys; 10-20 us each. A URL that has its
        priority already keeps its place."""
        moved = []
        for key, priority in changes:
            entry = self.backend.entry(key)
            if entry is not None and entry.priority != priority:
                moved.append((key, priority))
        self.backend.reprioritize(moved)

    # fetching

    def pop(self) -> Lease | None:
        """The next fetch, or None when none may begin now. O(log hosts)."""
        now = self._now()
        self.slots.age(now)
        if self.control.paused or (self.pages_spent() and not self._revisits):
            return None
        if self.refresh is not None:
            for _ in range(SLICES):
                if not self.refresh.work(now) or self.ready:
                    break
        left = MAX_IN_VAIN
        while left > 0:
            host = dispatch.take(self, now)
            if host is None and self.merger is not None and self.merger.work():
                continue
            if host is None and self.traps is not None and self.traps.work():
                left -= 1
                continue
            if host is None:
                return None
            before, refused = host.group, len(self.refused) + self._passed
            lease = dispatch.lease(self, host, now)
            schedule(self, host)
            if host.group is not before:
                continue
            if lease is not None:
                break
            left -= 1 + len(self.refused) + self._passed - refused
        else:
            lease = None  # it is worth calling pop() again at once
        return lease

    def _now(self) -> float:
        now, latest = self.clock(), self._latest
        self._latest = now
        if now < latest - SET_BACK_SECS:
            self._resume(self.hosts.values())
        return now

    @property
    def _passed(self) -> int:
        return self.views.passed + (0 if self.traps is None else self.traps.passed)

    def pages_spent(self) -> bool:
        """Whether LARM_MAX_PAGES is reached."""
        if not self.limits.max_pages:
            return False
        counts = self.backend.counts()
        elsewhere = self.partitions.stored_by_others if self.partitions is not None else 0
        return counts.stored + counts.leased + elsewhere >= self.limits.max_pages

    @property
    def _revisits(self) -> bool:
        return self.refresh is not None and bool(self.refresh.mode)

    def next_ready_time(self) -> float | None:
        """When pop() is worth calling next; None: only after an answer or a new link."""
        now = self._now()
        self.slots.age(now)
        if self.control.paused or (self.pages_spent() and not self._revisits):
            return None
        at = dispatch.next_ready_time(self, now)
        again = self.refresh.next_time if self._revisits and self.refresh else None
        return min((time for time in (at, again) if time is not None), default=None)

    def waits_for(self) -> Host | None:
        """The host that is asked next, while nothing is in flight or due; None while there is
        something to do at once."""
        at = self.next_ready_time()
        idle = not self.in_flight and at is not None and at > self.clock()
        return self.ready.next_host() if idle else None

    def needs_slots(self) -> bool:
        """Whether hosts that are due find no slot: quick ones, or some that never answered."""
        if self.control.paused:
            return False
        now = self._now()
        self.slots.age(now)
        self.ready.advance(now)
        return any(
            self.ready.due(kind) and not self.slots.allows(kind)
            for kind in (Kind.QUICK, Kind.UNPROVEN)
        )

    def on_resolved(self, name: str, address: str) -> None:
        """The look-up that AddressBook.address_of() began is over: hosts of that name go on."""
        for host in self.resolving.pop(name, ()):
            host.resolving = False
            if host.group is not None:
                dispatch.join_group(self, host, address)
            schedule(self, host)  # one without a group joins when it is asked, with others

    @property
    def in_flight(self) -> int:
        """Fetches that hold a slot."""
        return sum(self.slots.held)

    @property
    def finished(self) -> bool:
        """Nothing is being fetched or stored, and nothing will be in this run.

        URLs may be left: held ones, of hosts that were given up, or beyond a budget. Hosts that
        the operator has paused are waited for.
        """
        if self.in_flight or self.backend.counts().leased or self.backend.visiting():
            return False
        if self.refresh is not None and self.refresh.has_work:
            return False
        if self.gate.leaving:
            return False
        if self.pages_spent() and not self._revisits:
            return True
        if self.merger is not None and self.merger.has_work:
            return False
        if self.traps is not None and self.traps.has_work:
            return False
        return not (self._has_hosts_ahead or self.resolving or self.control.waiting_hosts)

    @property
    def gives_up_at_once(self) -> bool:
        """Whether a host that was silent when the last run ended is asked once in this one: its
        pages are known, and visited by the next run."""
        return self.refresh is not None and self.refresh.mode not in ("", WATCH)

    @property
    def _has_hosts_ahead(self) -> bool:
        """Whether some hosts are to be asked in this run. One that visits what is due does not wait
        for hosts that do not answer: the next one does."""
        if self.refresh is None or self.refresh.mode != DUE:
            return bool(self.ready)
        return not all(host.record.is_silent for host in self.ready)

    # answers

    def answered(self, lease: Lease, seconds: float) -> None:
        """The response is complete: its slot is free, the URL stays leased until acknowledge().

        ``seconds``: how long the fetch took.
        """
        if lease.slot is None:
            return
        lease.judged = True
        self._free_slot(lease)
        self.politeness.answered(lease.host.record, self.clock(), seconds, lease.reached)
        if lease.host.views is not None and lease.entry is not None:
            self.views.answered(lease.host, lease.entry)
        if self.sources is not None:
            self.sources.host_answered(lease.host.record.host, lease.host.record.scheme)
        schedule(self, lease.host)

    def release_slot(
        self,
        lease: Lease,
        kind: str = "",
        seconds: float = 0.0,
        *,
        retry_after: float | None = None,
    ) -> None:
        """The fetch is over for good, its slot free; the URL stays leased until its end.

        ``kind`` blames the host, or clears it, as failed() would; "" says nothing about the host.
        """
        self._free_slot(lease)
        if kind:
            self._judge(lease, kind, seconds, retry_after)
        schedule(self, lease.host)

    def acknowledge(self, lease: Lease, visit: FetchRecord) -> None:
        """The URL is STORED, FAILED or REFUSED for good. answered() comes first."""
        if lease.entry is None:
            raise ValueError("a fetch of no page ends with own_ended()")
        if lease.slot is not None:
            self.answered(lease, max(0.0, self.clock() - lease.since))
        entry = lease.entry
        self.finish(entry, visit)
        if visit.state is not UrlState.STORED:
            self._reopen_budget(lease.host)
        elif visit.status == 200 and entry.link_type != REQUISITE and not entry.payload:
            lease.host.worked = entry.url

    def finish(self, entry: QueuedUrl, visit: FetchRecord) -> None:
        """A leased URL has its final state."""
        if entry.link_type == REQUISITE:  # known from now on, and in no sum
            self.backend.merge([MergedUrl(entry, 0, entry.key)])
            return
        if self.merger is not None and self.merger.trials.is_question(entry.key):
            self.backend.merge([MergedUrl(entry, 0, entry.key)])
        else:
            if self.refresh is not None:
                visit = self.refresh.ended(entry, visit)
            self.backend.acknowledge([(entry.key, visit)])
            if self.gate.wants_again(entry.host, entry.key):
                self._make_due(entry.host, [entry.key], 1.0)
        if self.merger is not None:
            self.merger.ended(entry.host, entry.key, visit)

    def forget(self, lease: Lease) -> None:
        """A visit again has shown that the page is gone: the URL becomes unknown. answered() comes
        first."""
        assert lease.entry is not None
        if lease.slot is not None:
            self.answered(lease, max(0.0, self.clock() - lease.since))
        self.backend.forget([lease.entry.key])
        self.seen.clear()
        if self.merger is not None and lease.entry.visit is not None:
            gone = FetchRecord(UrlState.FAILED)  # others may not be merged into it any more
            self.merger.ended(lease.entry.host, lease.entry.key, gone)

    def forget_pages(self, host: str, keys: Sequence[bytes]) -> None:
        """The stores have been told to take out pages of a host; their URLs become unknown."""
        self.backend.forget(keys)
        self.seen.clear()
        if self.merger is not None:
            for key in keys:
                self.merger.ended(host, key, FetchRecord(UrlState.FAILED))

    def look_again(self, lease: Lease, seconds: float = LOOK_AGAIN_SECS) -> None:
        """Visit the page once more, ``seconds`` later."""
        assert lease.entry is not None
        self._free_slot(lease)
        again = self.clock() + seconds
        self.backend.release([(lease.entry.key, again, lease.entry.attempts)])
        schedule(self, lease.host)

    def merge(self, lease: Lease, merged: MergedUrl) -> None:
        """The page is that of another URL, and is not stored. answered() comes first."""
        if lease.entry is None:
            raise ValueError("a fetch of no page ends with own_ended()")
        if lease.slot is not None:
            self.answered(lease, max(0.0, self.clock() - lease.since))
        self.backend.merge([merged])
        if self.merger is not None:
            self.merger.settled(merged)
        self._reopen_budget(lease.host)

    def release(self, lease: Lease) -> None:
        """The fetch was not made or not stored, through no fault of its host: the URL returns to
        its place in the queue. If the fetch was overdue, the host is slow until it proves
        otherwise."""
        host = lease.host
        self._free_slot(lease)
        if lease.overdue:
            host.record.slot_secs = max(self.clock() - lease.since, self.slots.slow_secs)
        if lease.own is not None:
            lease.own.released()
        elif lease.entry is not None:
            self.backend.release([(lease.entry.key, 0.0, lease.entry.attempts)])
        self._reopen_budget(host)
        schedule(self, host)

    def hold_host(self, name: str, held: bool) -> None:
        """While it is ``held`` the host is not asked: its documents wait for readers. Fetches in
        flight go on."""
        host = self.hosts.get(name)
        if host is not None and host.held is not held:
            host.held = held
            schedule(self, host)

    def may_retry(self, lease: Lease, kind: str) -> bool:
        """Would failed() give the URL another try?"""
        entry, found = lease.entry, failure_kind(kind)
        if entry is None or not found.retry or self.views.gives_up(lease.host, entry):
            return False
        return entry.attempts < self.limits.retry_times or (found.of_host and entry.visit is None)

    def failed(
        self,
        lease: Lease,
        kind: str,
        seconds: float,
        *,
        retry_after: float | None = None,
        visit: FetchRecord | None = None,
    ) -> bool:
        """A fetch that failed: True if it will be tried again, False if the URL is FAILED now, or
        if it was one of the frontier's own.

        ``kind`` as in politeness.KINDS; ``retry_after`` in seconds. ``visit`` holds what is known
        of a response; its state and reason are set here.
        """
        if lease.own is not None:
            lease.own.seconds, lease.own.retry_after = seconds, retry_after
            self.own_ended(lease, kind)
            return lease.kind is FetchKind.ROBOTS
        assert lease.entry is not None
        now, host = self.clock(), lease.host
        self._free_slot(lease)
        self._reopen_budget(host)
        again = self.may_retry(lease, kind)
        self._blame(lease, kind, seconds, retry_after)
        if again:
            self.views.retried(host, lease.entry)
            attempts = lease.entry.attempts + (not failure_kind(kind).of_host)
            earliest = self.politeness.retry_time(now, attempts)
            self.backend.release([(lease.entry.key, earliest, attempts)])
        else:
            visit = visit or FetchRecord(UrlState.FAILED, time=now)
            visit.state, visit.reason = UrlState.FAILED, visit.reason or kind
            self.shortfall.failed(lease.entry.host, kind)
            self.finish(lease.entry, visit)
        schedule(self, host)
        return again

    def failed_for_good(
        self, lease: Lease, visit: FetchRecord, seconds: float, *, retry_after: float | None = None
    ) -> None:
        """The URL is FAILED, with ``visit.reason``; its host is blamed as failed() would."""
        if lease.entry is None:
            raise ValueError("a fetch of no page ends with own_ended()")
        self._free_slot(lease)
        self._reopen_budget(lease.host)
        self._judge(lease, visit.reason, seconds, retry_after)
        self.shortfall.failed(lease.entry.host, visit.reason)
        self.finish(lease.entry, visit)
        schedule(self, lease.host)

    def robots_loaded(
        self, lease: Lease, body: bytes, seconds: float, answer: str = "200"
    ) -> Sequence[str]:
        """The host's rules; b"" where everything is allowed (4xx). Returns its Sitemap lines.

        ``answer`` is the HTTP status, or why robots.txt was not requested.
        """
        if self.robots is None or lease.kind is not FetchKind.ROBOTS:
            raise ValueError("not a robots.txt lease")
        self._free_slot(lease)
        record, now = lease.host.record, self.clock()
        rules = self.robots.put(record.host, body)
        record.crawl_delay = rules.crawl_delay
        record.robots_until = now + self.limits.robots_expires
        record.robots_answer, record.robots_time = answer, now
        record.change(HostState.READY)
        self.politeness.answered(record, now, seconds, lease.reached)
        schedule(self, lease.host)
        return rules.sitemaps

    def own_ended(
        self, lease: Lease, answer: str, *, entries: int = 0, page: Page | None = None
    ) -> None:
        """A fetch of the frontier's own is over; of robots.txt, it has failed. The arguments are
        those of OwnFetch.ended; a kind of failure blames the host."""
        if lease.own is None:
            raise ValueError("not a fetch of the frontier's own")
        self._free_slot(lease)
        if lease.kind is FetchKind.ROBOTS:
            self._robots_failed(lease.host.record, answer, lease.own)
        else:
            self._judge(lease, answer, lease.own.seconds, lease.own.retry_after)
        lease.own.ended(answer, entries, page)
        schedule(self, lease.host)

    def _robots_failed(self, record: HostRecord, kind: str, own: OwnFetch) -> None:
        """Nothing is allowed for now; old rules still count (RFC 9309 2.3.1.4, 2.4)."""
        now = self.clock()
        if record.robots_until:
            record.robots_until = now + self.limits.robots_retry
        record.robots_answer, record.robots_time = kind, now
        self.politeness.failed(record, now, own.seconds, f"robots.txt: {kind}", own.retry_after)
        self.gate.silent(record.host, record.silent_since, now)
        self.shortfall.robots_failed(record.host, kind)

    def park(self, host: Host, until: float, reason: str) -> None:
        """Leave the host alone; ``until`` is inf for the rest of this run."""
        host.record.change(HostState.PARKED, until, reason)
        self.hosts.touch(host)
        schedule(self, host)

    def _make_due(self, host: str, keys: Iterable[bytes], at: float) -> None:
        """Pages are to be visited again, before those that are due later than ``at``."""
        self.backend.schedule([(key, at) for key in keys])
        if (found := self.hosts.get(host)) is not None:
            schedule(self, found)

    def found_sources(self, urls: Iterable[str], how: str, by: str = "") -> None:
        """Remember sitemaps and feeds that a page, or the robots.txt of the host ``by``, names.
        Only hosts that this crawl, or this worker, has are asked."""
        if self.sources is None:
            return
        for url in urls:
            host = self.hosts.get(host_of(url)) if url.startswith(("http://", "https://")) else None
            if host is None:
                continue
            name = host.record.host
            found_by = f"{how} of {by}" if by and by != name else how
            if self.sources.found(name, [url], found_by):
                schedule(self, host)

    def unlinked(self, names: Iterable[str]) -> None:
        """No link leads to these pages any more, by the exact form of their URLs: they are due."""
        visits = [(key, self.backend.visit(key)) for key in map(url_key, names)]
        stored = [(key, one) for key, one in visits if one and one.state is UrlState.STORED]
        if self.refresh is not None:
            self.refresh.named_no_more(stored)

    def sitemap_read(self, url: str, names: Iterable[str]) -> int:
        """A whole sitemap names these pages, by the exact form of their URLs. Those that it named
        a time ago, and does not name any more, are due. Returns their number."""
        assert self.sources is not None
        gone = self.sources.named(url, map(url_key, names))
        visits = [(key, self.backend.visit(key)) for key in gone]
        stored = [(key, one) for key, one in visits if one and one.state is UrlState.STORED]
        flapping = self.sources.dropped((key for key, _ in stored), url)
        if flapping is not None and stored:
            self.gate.flaps(flapping)
        elif self.refresh is not None:
            self.refresh.named_no_more(stored)
        return len(stored)

    def reschedule(self, host: Host) -> None:
        """Something that bears on a host's next fetch has changed."""
        schedule(self, host)

    def signalled(self, pages: Iterable[tuple[str, float]], source: str) -> int:
        """Pages that a sitemap, feed or listing names, by the exact form of their URLs, with the
        time of their last change: those that have been visited before it are due at once, as far
        as the source is trusted. Returns their number. 10 us each."""
        assert self.sources is not None
        stale = []
        for exact, changed in pages:
            key = url_key(exact)
            visit = self.backend.visit(key)
            if visit is not None and visit.state is UrlState.STORED and visit.time < changed:
                stale.append((key, visit))
        precision = self.sources.precision(source)
        if self.refresh is not None and precision >= LEAST_PRECISION:
            self.refresh.signalled(stale, precision)
        self.sources.signalled((key for key, _ in stale), source)
        return len(stale)

    def _free_slot(self, lease: Lease) -> None:
        """The gap to the host's next request counts from when this one came there.

        A busy crawler, a slow connect or a busy server may hold it up, so that is known only from
        the answer: it had come by then. Hosts that answer within 0.1 s lose 5% of a gap of 2 s.
        """
        if lease.slot is None:
            return
        host = lease.host
        self.slots.release(lease.slot)
        lease.slot = None
        host.in_flight -= 1
        if host.group is not None:
            host.group.ended(host)
        lease.reached = min(self.clock(), lease.since + LATE_SECS)
        gap = self.politeness.gap_seconds(host.record)
        host.record.next_time = max(host.record.next_time, lease.reached + gap)
        if host.group is not None:
            host.group.last = max(host.group.last, lease.reached)
        self.hosts.touch(host)

    def _judge(self, lease: Lease, kind: str, seconds: float, retry_after: float | None) -> None:
        """What a failure says about the host counts once a fetch."""
        if not lease.judged:
            lease.judged = True
            self._blame(lease, kind, seconds, retry_after)

    def _blame(self, lease: Lease, kind: str, seconds: float, retry_after: float | None) -> None:
        now, record, what = self.clock(), lease.host.record, failure_kind(kind)
        blame = self.views.failed(lease, kind, retry_after) if what.blames_host else None
        if blame is None:
            self.politeness.answered(record, now, seconds, lease.reached)
        elif blame is Blame.VIEW:
            self.politeness.view_failed(record, seconds, lease.reached)
        else:
            doubt = blame is Blame.DOUBT
            self.politeness.failed(
                record, now, seconds, kind, retry_after, snooze=what.snoozes, in_doubt=doubt
            )
            self.gate.silent(record.host, record.silent_since, now)
        self.hosts.touch(lease.host)

    def _reopen_budget(self, host: Host) -> None:
        """A URL that was leased was not stored: a budget that looked spent may not be."""
        if host.record.state is HostState.PARKED and host.record.reason.startswith("budget"):
            host.record.change(HostState.READY)  # with or without a robots.txt: it gave out URLs
            self.hosts.touch(host)
            schedule(self, host)

    # durability

    def recover(self) -> Recovery:
        """Go back to the last commit; see Backend.recover()."""
        recovery = self.backend.recover()
        hosts = self.hosts.load()
        self.gate.recover()
        if self.merger is not None:
            self.merger.recover(host.record.host for host in hosts)
        if self.traps is not None:
            self.traps.recover(host.record.host for host in hosts)
        self.views.recover(hosts)
        if self.refresh is not None:
            self.refresh.recover()
        for host in hosts:
            host.record.on_probation &= self.gives_up_at_once
        self._resume(hosts)
        self.control.recover()
        return recovery

    def _resume(self, hosts: Iterable[Host]) -> None:
        """Take hosts up whose times are by another clock: of an earlier run, or since set back."""
        now = self.clock()
        taken_up = list(hosts)
        for host in taken_up:
            self.politeness.take_up(host.record, now, self.limits.robots_expires)
            if host.group is not None:
                host.group.set_back(now)
        for host in taken_up:
            schedule(self, host)

    def seal(self) -> None:
        """End the batch that the next commit writes; see Backend.seal()."""
        if self.partitions is not None:
            self.partitions.seal()
        self.hosts.save()
        if self.merger is not None:
            self.merger.save()
        if self.traps is not None:
            self.traps.save()
        if self.sources is not None:
            self.sources.save()
        self.gate.save()
        self.scripts.save()
        self.shortfall.save()
        self.views.save()
        if self.refresh is not None:
            self.refresh.save()
        self.backend.seal()

    def commit(self, positions: Mapping[str, bytes]) -> None:
        """Make the batch durable, with the stores' positions. May run in a thread."""
        self.backend.commit(positions)

    def discard(self) -> None:
        """Forget the batch that was committed."""
        self.backend.discard()

    def checkpoint(self, positions: Mapping[str, bytes]) -> None:
        """seal(), commit() and discard() in one go."""
        self.seal()
        self.commit(positions)
        self.discard()

    @property
    def wants_checkpoint(self) -> bool:
        """So much is pending that memory asks for a checkpoint now."""
        return self.backend.pending >= CHECKPOINT_AT

    def audit(self, *, deep: bool = False) -> Counts:
        """The counters, checked: discovered = queued + leased + stored + failed + refused.

        ``deep`` counts every record afresh. Raises AssertionError if they do not agree.
        """
        counts = self.backend.counts()
        if not counts.balanced():
            raise AssertionError(f"URLs do not add up: {counts!r}")
        if deep and (counted := self.backend.audit()) != counts:
            raise AssertionError(f"counters {counts!r}, records {counted!r}")
        return counts
