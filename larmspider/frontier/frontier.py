"""The frontier: which URL is fetched next, by queues, politeness, robots.txt, slots and budgets.

    frontier.add([frontier.entry("http://wiki/", "http://wiki/")])
    lease = frontier.pop()                  # http://wiki/robots.txt, for wiki is a new host
    frontier.robots_loaded(lease, body, seconds=0.02)
    lease = frontier.pop()                  # None: the gap; frontier.next_ready_time() says when
    ...
    frontier.answered(lease, seconds=0.05)  # the response is complete: its slot is free
    frontier.acknowledge(lease, FetchRecord(UrlState.STORED, ...))   # every store has the page

The backend remembers; the frontier decides. The steps of a URL:

    add()             known, within the limits (links.py)? then into its host's queue
    pop()             which host gets a request, for which URL (dispatch.py)
    answered() ...    what the answer means for URL, host (politeness.py) and slot (slots.py)

Each lease ends once: a page's with acknowledge(), failed(), failed_for_good() or release(), one of
the frontier's own (own_fetch.py) with own_ended(), robots_loaded() or release(). answered() and
release_slot() only free its slot before that.

Nothing here is asynchronous or knows the network; the clock is passed in. One thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Self

from larmspider.frontier import dispatch
from larmspider.frontier.control import Control
from larmspider.frontier.dispatch import schedule
from larmspider.frontier.hosts import Host, HostRecord, HostState, Lease
from larmspider.frontier.links import MAX_HOST, Added, CrawlLimits, count_links
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.part import Blame, Part, Parts
from larmspider.frontier.partition import AllPartitions, Partitions, SharedBackend
from larmspider.frontier.politeness import Politeness, failure_kind
from larmspider.frontier.slots import Kind, SlotPool
from larmspider.frontier.state import USUAL, AddressBook, FrontierOptions, FrontierState
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
from larmspider.items import REQUISITE, Page

__all__ = ["CHECKPOINT_AT", "MAX_HOST", "Added", "AddressBook", "CrawlLimits", "Frontier"]

MAX_IN_VAIN = 64
"""Turns of one pop() that find nothing to fetch, because the address has to be looked up first,
plus URLs that robots.txt does not allow; then it lets others have the CPU."""
SLICES = 4
"""Slices of a refresh's search for due pages, in one pop()."""
SET_BACK_SECS = 1.0
"""A clock that goes back by more than this was set back, and all waits start over."""
CHECKPOINT_AT = 20_000
"""Pending changes at which a checkpoint is due at once: some 25 MB."""
LOOK_AGAIN_SECS = 2.0
"""Seconds until a page is fetched once more, to see which words change by themselves: a clock on it
has moved by then."""
LATE_SECS = 1.0
"""A request reaches its host within this time of its turn."""
SOURCE_PARK_SECS = 60.0
"""The longest park of files, or of a share's server, in a refresh that ends: 3 minutes in all."""


class Frontier(FrontierState):
    """Call recover() first.

    A ``backend`` that is a SharedBackend is shared with other workers. ``parts`` makes the Parts
    (part.py) of this frontier, in the order in which they are called.
    """

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        strategy: Strategy,
        slots: SlotPool,
        options: FrontierOptions = USUAL,
        parts: Callable[[Self], Sequence[Part]] | None = None,
    ) -> None:
        super().__init__(backend, politeness, strategy, slots, options)
        self.partitions = AllPartitions()
        """The partitions of this worker."""
        if isinstance(backend, SharedBackend):
            self.partitions = Partitions(self, backend)
        self.control = Control(self, self.partitions)
        self._latest = float("-inf")  # the clock at its last reading
        self.parts = Parts(parts(self) if parts is not None else ())

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
        """A QueuedUrl for add(), with key, host and priority set. ``exact``
        None: as ``normalized``."""
        exact = normalized if exact is None else exact
        return QueuedUrl(
            url=url,
            normalized=normalized,
            key=url_key(exact),
            host=host_of(url),
            depth=int(depth),  # it may be True in Requests of other components
            link_type=int(link_type),
            redirects=redirects,
            priority=self.strategy.priority(normalized, depth, 1),
            from_page=from_page,
            payload=payload,
            exact=exact,
        )

    def add(self, entries: Sequence[QueuedUrl]) -> Added:
        """Queue the URLs of a batch (a page's links) that are new and within the limits. URLs of
        other workers' hosts are forwarded, and do not count as new.
        """
        own, foreign = self.partitions.split(entries)
        added = self._add_own(own)
        added.forwarded = len(foreign)
        for entry in foreign:
            self.seen.add(entry.exact)
        return added

    def add_forwarded(self, entries: Sequence[QueuedUrl]) -> None:
        """Queue the URLs that other workers forwarded."""
        if again := [entry for entry in entries if entry.again]:
            self.control.reopen(again)
            entries = [entry for entry in entries if not entry.again]
        if doubted := [entry for entry in entries if entry.doubted]:
            for note in self.parts.doubted:
                note(doubted)
            entries = [entry for entry in entries if not entry.doubted]
        self.partitions.arrived(self._add_own(entries).new)

    def _add_own(self, entries: Sequence[QueuedUrl]) -> Added:
        added, allowed = Added(), list[QueuedUrl]()
        for entry in entries:
            reason = self.limits.reject_reason(entry)
            if reason:
                added.rejected.append((entry, reason))
            else:
                allowed.append(entry)
        wanted: Sequence[QueuedUrl] = allowed
        for admit in self.parts.admit if allowed else ():
            wanted = admit(wanted)
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
        """Whether no other worker has the host of a URL."""
        return self.partitions.owns(key)

    def known(self, exact: Sequence[str], *, count: bool = True) -> list[bool]:
        """Whether each URL, by its exact form, was added before. With ``count``, each call counts
        as a link to the URL if the strategy counts links."""
        seen = self.seen
        known = seen.among(exact)
        unsure = [(at, url_key(url)) for at, url in enumerate(exact) if not known[at]]
        states = self.backend.check([key for _, key in unsure])
        for (at, _), state in zip(unsure, states, strict=True):
            if state is not UrlState.UNKNOWN:
                known[at] = True
                seen.add(exact[at])
                for linked in self.parts.linked if state is UrlState.MERGED else ():
                    linked(exact[at], url_key(exact[at]))
        if count and self.strategy.counts_links:
            urls = [url for at, url in enumerate(exact) if known[at]]
            count_links(self.backend, self.strategy.priority, urls)
        return known

    def seen_lately(self, exact: Sequence[str]) -> list[bool]:
        """known() from memory alone: False proves nothing. No link is counted; all are False if the
        strategy counts links."""
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
        self.notes.trim()
        if self.control.paused or self._is_spent:
            return None
        for _ in range(SLICES if self.parts.look_ahead else 0):
            if not any(look(now) for look in self.parts.look_ahead) or self.ready:
                break
        left = MAX_IN_VAIN
        while left > 0:
            host = dispatch.take(self, now)
            if host is None:
                if not any(work(now) for work in self.parts.work):
                    return None
                left -= 1
                continue
            before, tried = host.group, len(self.refused) + self.passed
            lease = dispatch.lease(self, host, now)
            schedule(self, host)
            if host.group is not before:
                left -= 1
                continue
            if lease is not None:
                return lease
            left -= 1 + len(self.refused) + self.passed - tried
        return None  # it is worth calling pop() again at once

    def _now(self) -> float:
        now, latest = self.clock(), self._latest
        self._latest = now
        if now < latest - SET_BACK_SECS:
            self._resume(self.hosts.values())
        return now

    @property
    def _is_spent(self) -> bool:
        """Whether LARM_MAX_PAGES ends the run: nothing is visited again."""
        return not self.parts.visitor.visits_again and self.pages_spent()

    def next_ready_time(self) -> float | None:
        """When pop() is worth calling next; None: only after an answer or a new link."""
        now = self._now()
        self.slots.age(now)
        if self.control.paused or self._is_spent:
            return None
        at, again = dispatch.next_ready_time(self, now), self.parts.visitor.next_plan
        return min((time for time in (at, again) if time is not None), default=None)

    def waits_for(self) -> Host | None:
        """The host that gets the next request, while nothing is in flight or due; None if there is
        work at once."""
        at = self.next_ready_time()
        idle = not self.in_flight and at is not None and at > self.clock()
        return self.ready.next_host() if idle else None

    def needs_slots(self) -> bool:
        """Whether hosts that are due find no slot: quick hosts, or hosts that never answered."""
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
        """AddressBook has looked a name up: hosts with this name may be fetched from again."""
        for host in self.resolving.pop(name, ()):
            host.resolving = False
            if host.group is not None:
                dispatch.join_group(self, host, address)
            schedule(self, host)  # a host without a group joins one when it is next

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
        spent = self._is_spent
        if any(has_work(spent=spent) for has_work in self.parts.has_work):
            return False
        return spent or not (self._has_hosts_ahead or self.resolving or self.control.waiting_hosts)

    @property
    def _has_hosts_ahead(self) -> bool:
        """Whether hosts remain that get requests in this run. A refresh that ends does not wait
        for hosts without an answer; the next run tries them."""
        if self.parts.visitor.waits_for_silent:
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
        for answered in self.parts.answered:
            answered(lease)
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
        dispatch.finish(self, entry, visit)
        if visit.state is not UrlState.STORED:
            self._reopen_budget(lease.host)
        elif visit.status == 200 and entry.link_type != REQUISITE and not entry.payload:
            lease.host.worked = entry.url

    def forget(self, lease: Lease) -> None:
        """A revisit has shown that the page is gone: the URL becomes unknown. answered() comes
        first."""
        assert lease.entry is not None
        if lease.slot is not None:
            self.answered(lease, max(0.0, self.clock() - lease.since))
        entry = lease.entry
        self._forget(entry.host, [entry.key], was_known=entry.visit is not None)

    def forget_pages(self, host: str, keys: Sequence[bytes]) -> None:
        """The stores remove all pages of a host; their URLs become unknown."""
        self._forget(host, keys)

    def _forget(self, host: str, keys: Sequence[bytes], *, was_known: bool = True) -> None:
        self.backend.forget(keys)
        self.seen.clear()
        gone = FetchRecord(UrlState.FAILED)  # others may not be merged into it any more
        for final in self.parts.final if was_known else ():
            for key in keys:
                final(host, key, gone)

    def look_again(self, lease: Lease, seconds: float = LOOK_AGAIN_SECS) -> None:
        """Visit the page once more, ``seconds`` later."""
        assert lease.entry is not None
        self._free_slot(lease)
        again = self.clock() + seconds
        self.backend.release([(lease.entry.key, again, lease.entry.attempts)])
        schedule(self, lease.host)

    def merge(self, lease: Lease, merged: MergedUrl) -> None:
        """The page belongs to another URL, and is not stored. answered() comes first."""
        if lease.entry is None:
            raise ValueError("a fetch of no page ends with own_ended()")
        if lease.slot is not None:
            self.answered(lease, max(0.0, self.clock() - lease.since))
        self.backend.merge([merged])
        for note in self.parts.merged:
            note(merged)
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
        """A ``held`` host gets no requests, because its documents wait for readers. Fetches in
        flight continue."""
        host = self.hosts.get(name)
        if host is not None and host.held is not held:
            host.held = held
            schedule(self, host)

    def may_retry(self, lease: Lease, kind: str) -> bool:
        """Whether failed() would retry the URL."""
        entry, found = lease.entry, failure_kind(kind)
        if entry is None or not found.retry or self._lacks_share(kind):
            return False
        if any(gives_up(entry) for gives_up in self.parts.gives_up):
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
        """A fetch failed. True: it will be retried. False: the URL is FAILED now, or the fetch was
        one of the frontier's own.

        ``kind`` as in politeness.KINDS; ``retry_after`` in seconds. ``visit`` holds the facts of a
        response, if there was one; its state and reason are set here.
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
            for retried in self.parts.retried:
                retried(lease.entry)
            attempts = lease.entry.attempts + (not failure_kind(kind).of_host)
            earliest = self.politeness.retry_time(now, attempts)
            if failure_kind(kind).of_share:
                earliest = max(earliest, _after_others(host.record, now))
            self.backend.release([(lease.entry.key, earliest, attempts)])
        else:
            visit = visit or FetchRecord(UrlState.FAILED, time=now)
            visit.state, visit.reason = UrlState.FAILED, visit.reason or kind
            self._give_up(lease.entry, kind, visit)
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
        self._give_up(lease.entry, visit.reason, visit)
        schedule(self, lease.host)

    def _give_up(self, entry: QueuedUrl, kind: str, visit: FetchRecord) -> None:
        for gave_up in self.parts.gave_up:
            gave_up(entry.host, kind)
        dispatch.finish(self, entry, visit)

    def robots_loaded(
        self, lease: Lease, body: bytes, seconds: float, answer: str = "200"
    ) -> Sequence[str]:
        """The host's rules; b"" if everything is allowed (4xx). Returns its Sitemap lines.

        ``answer`` is the HTTP status, or why robots.txt was not requested.
        """
        if lease.kind is not FetchKind.ROBOTS:
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
        """End a fetch of the frontier's own. For robots.txt this means that it failed. The
        arguments are the arguments of OwnFetch.ended. A kind of failure blames the host."""
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
        """robots.txt could not be fetched: nothing is allowed for now, unless older rules are known
        (RFC 9309 2.3.1.4, 2.4)."""
        now = self.clock()
        if record.robots_until:
            record.robots_until = now + self.limits.robots_retry
        record.robots_answer, record.robots_time = kind, now
        self.politeness.failed(record, now, own.seconds, f"robots.txt: {kind}", own.retry_after)
        self._stays_silent(record, now)
        for robots_failed in self.parts.robots_failed:
            robots_failed(record.host, kind)

    def _stays_silent(self, record: HostRecord, now: float) -> None:
        for silent in self.parts.silent:
            silent(record.host, record.silent_since, now)

    def park(self, host: Host, until: float, reason: str) -> None:
        """Leave the host alone; ``until`` is inf for the rest of this run."""
        host.record.change(HostState.PARKED, until, reason)
        self.hosts.touch(host)
        schedule(self, host)

    def make_due(self, host: str, keys: Iterable[bytes], at: float) -> None:
        """Make pages due at the time ``at``."""
        self.backend.schedule([(key, at) for key in keys])
        dispatch.reschedule(self, host)

    def reschedule(self, host: Host) -> None:
        """Something that bears on a host's next fetch has changed."""
        schedule(self, host)

    def _free_slot(self, lease: Lease) -> None:
        """Free the slot of a lease. The gap to the host's next request counts from the time at
        which this request reached the host. A busy crawler, a slow connect or a busy server may
        delay a request, so only the answer shows that it has arrived. Hosts that answer within 0.1
        s lose 5% of a gap of 2 s.
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
        """A failure counts against the host once a fetch."""
        if not lease.judged:
            lease.judged = True
            self._blame(lease, kind, seconds, retry_after)

    def _blame(self, lease: Lease, kind: str, seconds: float, retry_after: float | None) -> None:
        now, record, what = self.clock(), lease.host.record, failure_kind(kind)
        record.lacks_share |= (lacks_share := self._lacks_share(kind))
        blames_host = what.blames_host and not lacks_share
        meaning = Blame.HOST
        for blame in self.parts.blame if blames_host else ():
            meaning = max(meaning, blame(lease, kind, retry_after))
        if not blames_host:
            self.politeness.answered(record, now, seconds, lease.reached)
        elif meaning is Blame.VIEW:
            self.politeness.view_failed(record, seconds, lease.reached)
        else:
            in_doubt, snooze = meaning is Blame.DOUBT, what.snoozes
            self.politeness.failed(
                record, now, seconds, kind, retry_after, snooze=snooze, in_doubt=in_doubt
            )
            self._stays_silent(record, now)
            if record.is_source and not self.parts.visitor.waits_for_silent:
                self._park_briefly(record, now)
        self.hosts.touch(lease.host)

    def _lacks_share(self, kind: str) -> bool:
        """Whether a share is away in a run that visits pages again: other shares of the host are
        visited, and the URL is visited again by a later run."""
        return failure_kind(kind).of_share and self.parts.visitor.visits_again

    @staticmethod
    def _park_briefly(record: HostRecord, now: float) -> None:
        """A refresh that ends does not wait an hour for a share that is away. It tries the host of
        the share again, because another share of it may be there."""
        if record.state is HostState.PARKED and record.until < inf:
            record.until = min(record.until, now + SOURCE_PARK_SECS)

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
        names = [host.record.host for host in hosts]
        for recover in self.parts.recover:
            recover(names)
            self.notes.trim()
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
        self.partitions.seal()
        self.hosts.save()
        for save in self.parts.save:
            save()
        self.notes.trim()
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
        """Whether the pending batch takes too much memory: a checkpoint is due."""
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


def _after_others(record: HostRecord, now: float) -> float:
    """When a URL of a share that is away is tried again: URLs of other shares of the host have as
    long a turn before it as the host is left alone, a minute at most. 0.0 for no wait."""
    wait = record.until - now
    return record.until + min(wait, SOURCE_PARK_SECS) if 0 < wait < inf else 0.0
