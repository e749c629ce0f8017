"""What is fetched next, and what becomes of it: queues, politeness, robots.txt, places, budgets.

    frontier.add([frontier.entry("http://wiki/", "http://wiki/")])
    lease = frontier.pop()                  # http://wiki/robots.txt, for wiki is a new host
    frontier.robots_loaded(lease, body, seconds=0.02)
    lease = frontier.pop()                  # None: the gap; frontier.next_ready_time() says when
    ...
    frontier.answered(lease, seconds=0.05)  # the response is complete: its place is free
    frontier.done(lease, Visit(UrlState.STORED, ...))   # every store has the page

The backend remembers, politeness.py and places.py decide; here they are joined. Not a line of it is
asynchronous or knows the network; the clock is passed in. One thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from larmspider.frontier.backend import Backend
from larmspider.frontier.failures import failure_kind
from larmspider.frontier.groups import Group, name_of
from larmspider.frontier.host import HostRecord, HostState, pack_host, unpack_host
from larmspider.frontier.keys import host_of, url_key
from larmspider.frontier.lease import Host, Lease
from larmspider.frontier.places import Kind, Places
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.records import Counts, Entry, Recovery, UrlState, Visit
from larmspider.frontier.robots_cache import RobotsCache
from larmspider.frontier.seen import RecentlySeen
from larmspider.frontier.strategies import Strategy
from larmspider.frontier.turns import Turns


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the crawl goes; 0 means no bound. ``retry_times`` are fetches beside the first.

    ``robots_expires`` in seconds (RFC 9309 2.4: 24 h); ``robots_retry``: after a failed renewal.
    """

    max_pages: int = 0
    depth_limit: int = 0
    max_redirects: int = 10
    retry_times: int = 2
    robots_expires: float = 86_400.0
    robots_retry: float = 3_600.0


@dataclass(slots=True)
class Added:
    """``new`` are queued now; ``rejected`` are not wanted, with the reason; the rest was known."""

    new: list[Entry] = field(default_factory=list)
    rejected: list[tuple[Entry, str]] = field(default_factory=list)


_KINDS = tuple(Kind)
MAX_HOST = 300
"""Characters of host:port; DNS allows 253. A longer one would not fit a key of the backend."""
LATE_SECS = 1.0
"""A request reaches its host within this time of its turn."""
CHECKPOINT_AT = 20_000
"""Pending changes at which a checkpoint is due whatever the time: some 25 MB."""


class Frontier:
    """``robots`` is None where robots.txt is not obeyed. Call recover() first.

    ``clock`` gives seconds since the epoch. ``address_of`` a host's name, where hosts share their
    pace by address (groups.py): None means not known yet, and address_known() is called later.
    """

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        strategy: Strategy,
        places: Places,
        clock: Callable[[], float],
        hour_of: Callable[[float], float],
        robots: RobotsCache | None = None,
        bounds: Bounds | None = None,
        address_of: Callable[[str], str | None] | None = None,
    ) -> None:
        self.backend, self.politeness, self.strategy = backend, politeness, strategy
        self.places, self.clock, self.hour_of, self.robots = places, clock, hour_of, robots
        self.bounds = bounds or Bounds()
        self.hosts: dict[str, Host] = {}
        self.refused: list[Entry] = []
        """What robots.txt refused in pop(); whoever tells of it empties this."""
        self._turns: Turns[Host] = Turns()
        self._address_of = address_of
        self._groups: dict[str, Group[Host]] = {}
        self._waiting: dict[str, list[Host]] = {}  # for the address of their name
        self._changed: set[str] = set()
        self._seen = RecentlySeen()

    def __repr__(self) -> str:
        return f"<Frontier {self.backend.counts()}, {len(self._turns)} turns, {self.places!r}>"

    # durability

    def recover(self) -> Recovery:
        """Take up the last commit; see Backend.recover()."""
        recovery = self.backend.recover()
        for name, data in self.backend.hosts().items():
            record = unpack_host(data)
            record.restart()
            self._host(name, record)
        now = self.clock()
        for name in self.backend.host_names():
            host = self._host(name)
            # what was asked between the last commit and a crash is not known: a gap from now
            # is safe, however soon the restart comes
            gap = self.politeness.gap_seconds(host.record)
            host.record.next_time = max(host.record.next_time, now + gap)
            self._set_turn(host)
        return recovery

    def cut(self) -> None:
        """End the batch that the next commit writes; see backend.py."""
        changed, self._changed = self._changed, set()
        self.backend.put_hosts({name: pack_host(self.hosts[name].record) for name in changed})
        self.backend.cut()

    def commit(self, positions: Mapping[str, bytes]) -> None:
        """As Backend.commit(); may run in a thread."""
        self.backend.commit(positions)

    def settle(self) -> None:
        """As Backend.settle()."""
        self.backend.settle()

    def checkpoint(self, positions: Mapping[str, bytes]) -> None:
        """cut, commit and settle at one go."""
        self.cut()
        self.commit(positions)
        self.settle()

    @property
    def wants_checkpoint(self) -> bool:
        """So much is pending that memory asks for a checkpoint now."""
        return self.backend.pending >= CHECKPOINT_AT

    def audit(self, *, deep: bool = False) -> Counts:
        """The counters, checked: discovered = queued + leased + stored + failed + refused.

        ``deep`` counts every record afresh. AssertionError if they do not agree.
        """
        counts = self.backend.counts()
        if not counts.balanced():
            raise AssertionError(f"URLs do not add up: {counts}")
        if deep and (counted := self.backend.audit()) != counts:
            raise AssertionError(f"counters {counts}, records {counted}")
        return counts

    # links

    def entry(
        self,
        url: str,
        normalized: str,
        *,
        depth: int = 0,
        link_type: int = 0,
        redirects: int = 0,
        from_page: str = "",
        payload: bytes = b"",
    ) -> Entry:
        """An entry for add(): fields as in records.Entry, key, host and priority set."""
        return Entry(
            url=url,
            normalized=normalized,
            key=url_key(normalized),
            host=host_of(url),
            depth=depth,
            link_type=link_type,
            redirects=redirects,
            priority=self.strategy.priority(normalized, depth, 1),
            from_page=from_page,
            payload=payload,
        )

    def known(self, normalized: Sequence[str]) -> list[bool]:
        """Was each canonical URL added before? Counts as a link to it where the order asks."""
        seen = self._seen
        known = [url in seen for url in normalized]
        unsure = [(at, url_key(url)) for at, url in enumerate(normalized) if not known[at]]
        states = self.backend.check([key for _, key in unsure])
        for (at, _), state in zip(unsure, states, strict=True):
            if state is not UrlState.UNKNOWN:
                known[at] = True
                seen.add(normalized[at])
        if self.strategy.counts_links:
            self._count_links([url for at, url in enumerate(normalized) if known[at]])
        return known

    def _count_links(self, normalized: Sequence[str]) -> None:
        keys = [url_key(url) for url in normalized]
        changes = []
        for url, key, links in zip(normalized, keys, self.backend.count_links(keys), strict=True):
            if links:
                # depth is not at hand here; an order that counts links does not go by it
                priority = self.strategy.priority(url, 0, links)
                if priority != self.strategy.priority(url, 0, links - 1):
                    changes.append((key, priority))
        if changes:
            self.backend.move(changes)

    def reprioritize(self, changes: Iterable[tuple[bytes, int]]) -> None:
        """New priorities for the queued ones of these URL keys; 10-20 us each.

        Those that have theirs already stay where they are. A long list may come in parts, with
        checkpoints between them (wants_checkpoint).
        """
        moved = []
        for key, priority in changes:
            entry = self.backend.entry(key)
            if entry is not None and entry.priority != priority:
                moved.append((key, priority))
        self.backend.move(moved)

    def add(self, entries: Sequence[Entry]) -> Added:
        """Queue the new ones within depth and redirect bounds. A batch: a page's links."""
        result, wanted = Added(), []
        touched: dict[str, Host] = {}
        for entry in entries:
            reason = self._reject_reason(entry)
            if reason:
                result.rejected.append((entry, reason))
            else:
                wanted.append(entry)
        for entry, new in zip(wanted, self.backend.add(wanted), strict=True):
            self._seen.add(entry.normalized)
            if new:
                result.new.append(entry)
                host = self.hosts.get(entry.host)
                if host is None:
                    scheme = entry.url.partition(":")[0].lower()
                    host = self._host(entry.host, HostRecord(entry.host, scheme))
                touched[entry.host] = host
        for host in {host.group or host: host for host in touched.values()}.values():
            self._set_turn(host)
        return result

    def _reject_reason(self, entry: Entry) -> str | None:
        bounds = self.bounds
        if bounds.depth_limit and entry.depth > bounds.depth_limit:
            return f"depth {entry.depth} is over {bounds.depth_limit}"
        if entry.redirects > bounds.max_redirects:
            return f"{entry.redirects} redirects in a row, {bounds.max_redirects} are allowed"
        if len(entry.host) > MAX_HOST:
            return f"host name of {len(entry.host)} characters, {MAX_HOST} are allowed"
        return None

    # hosts

    def _host(self, name: str, record: HostRecord | None = None) -> Host:
        host = self.hosts.get(name)
        if host is None:
            host = Host(record or HostRecord(name), self.politeness.rules.of(name))
            self.hosts[name] = host
            self._changed.add(name)
        return host

    def _touch(self, host: Host) -> None:
        self._changed.add(host.record.host)

    def _set_turn(self, host: Host) -> None:
        """Its next turn as its state, gap and queue allow; none while there is nothing to do.

        Of a member of a group: the turns of all of them.
        """
        if host.group is None:
            self._put_turn(host, self._turn_time(host))
        else:
            self._set_turns(host.group)

    def _set_turns(self, group: Group[Host]) -> None:
        """Of all members, by the order and the gaps of groups.py. O(members).

        The limit of requests at once is the smallest of the members that are asked or could be.
        """
        now = self.clock()
        group.next_time = max([group.next_time, *(host.record.next_time for host in group)])
        own = {host: self._turn_time(host) for host in group}
        times: dict[Host, float] = {}  # of those whom only the group holds up
        for host, at in own.items():
            gap = self.politeness.gap_seconds(host.record)
            shared = max(group.next_time, group.last + gap)
            if at is not None and at <= max(shared, now):
                times[host] = max(at, shared)
        limits = [host.rule.connections or 1 for host in own if host in times or host.in_flight]
        in_flight, limit = group.in_flight, min(limits, default=1)
        earliest = 0.0
        for host, at in own.items():
            if at is not None and in_flight >= min(limit, host.rule.connections or 1):
                self._turns.drop(host)  # until one of them is released; its need is what it was
            elif host in times:
                earliest = max(earliest, times[host])
                self._put_turn(host, earliest, len(times))
            else:
                self._put_turn(host, at)

    def _put_turn(self, host: Host, at: float | None, share: int = 1) -> None:
        """``share``: so many have the places together that one of them would need."""
        record = host.record
        need = 0
        if at is None and host.in_flight:
            self._turns.drop(host)
            return  # its need is what it was
        if at is None or at == inf:
            self._turns.drop(host)
        else:
            self._turns.put(host, at)
        if record.state is HostState.READY and at is not None:
            gap = self.politeness.gap_seconds(record)
            need = self.places.need(record.hold, gap, host.rule.connections or 1) // share
        if need != host.need:
            self.places.change_need(need - host.need)
            host.need = need

    def _turn_time(self, host: Host) -> float | None:
        record = host.record
        if record.state is HostState.LOADING or host.in_flight >= (host.rule.connections or 1):
            return None
        if host.waits:
            return None  # for address_known()
        if self.robots is not None and host.in_flight and record.robots_until <= self.clock():
            return None  # the rules are renewed when the host is at rest
        waiting = self.backend.next_time(record.host)
        if waiting is None:
            return None
        at = max(record.next_time, waiting)
        if record.state in (HostState.SNOOZED, HostState.PARKED):
            at = max(at, record.until)
        if host.rule.window is None or at == inf:
            return at
        return host.rule.opens(max(at, self.clock()), self.hour_of)

    def _kind(self, host: Host) -> Kind:
        return self.places.kind(host.record.hold, host.record.failures + host.record.parks)

    def _at_address(self, host: Host) -> bool:
        """Is it in the group of its address? If not it is now, or waits for address_known()."""
        if self._address_of is None:
            return True
        name = name_of(host.record.host)
        address = self._address_of(name)
        if address is None:
            host.waits = True
            self._waiting.setdefault(name, []).append(host)
            return False
        if host.group is not None and host.group.address == address:
            return True
        self._join(host, address)
        return False

    def _join(self, host: Host, address: str) -> None:
        before = host.group
        if before is not None and before.address == address:
            return
        self._groups.setdefault(address, Group(address)).join(host)
        if before is not None:
            self._set_turns(before)

    def address_known(self, name: str, address: str) -> None:
        """The look-up that ``address_of`` began is over."""
        for host in self._waiting.pop(name, ()):
            host.waits = False
            self._join(host, address)
            self._set_turn(host)

    # fetching

    def pop(self) -> Lease | None:
        """The next fetch, or None when none may begin now. O(log hosts)."""
        now, places = self.clock(), self.places
        places.age(now)
        if self._pages_spent():
            return None
        kinds = [kind for kind in _KINDS if places.allows(kind)]
        while kinds:
            host = self._turns.take(now, self._kind, kinds)
            if host is None:
                return None
            lease = self._lease(host, now)
            self._set_turn(host)
            if lease is not None:
                return lease
        return None

    def _lease(self, host: Host, now: float) -> Lease | None:
        """The host is due; None when it turns out that it has nothing to ask for now."""
        record = host.record
        self._touch(host)
        if not self._at_address(host):
            return None
        if host.rule.opens(now, self.hour_of) > now:
            return None  # its window closed while it was due
        record.wake()
        if host.rule.budget is not None and self._budget_spent(host):
            record.change(HostState.PARKED, inf, f"budget of {host.rule.budget} pages")
            return None
        if self.robots is None:
            if record.state is HostState.NEW:
                record.change(HostState.READY)
        elif record.robots_until <= now:
            if host.in_flight:
                return None
            record.change(HostState.LOADING)
            return self._begin(host, None, record.robots_url, now)
        entry = self._next_allowed(host, now)
        return self._begin(host, entry, entry.url, now) if entry else None

    def _next_allowed(self, host: Host, now: float) -> Entry | None:
        """The next URL that robots.txt allows; those that it does not are refused on the way."""
        rules = None if self.robots is None else self.robots.of(host.record.host)
        while entries := self.backend.pop(host.record.host, now):
            if rules is None or rules.allowed(entries[0].url):
                return entries[0]
            visit = Visit(UrlState.REFUSED, time=now, reason="robots.txt")
            self.backend.acknowledge([(entries[0].key, visit)])
            self.refused.append(entries[0])
        return None

    def _begin(self, host: Host, entry: Entry | None, url: str, now: float) -> Lease:
        host.in_flight += 1
        host.record.next_time = now + self.politeness.gap_seconds(host.record)
        if host.group is not None:
            host.group.asked(host, now)
        return Lease(url, host, entry, now, self.places.take(self._kind(host), now))

    def _budget_spent(self, host: Host) -> bool:
        counts = self.backend.counts(host.record.host)
        return counts.stored + counts.leased >= (host.rule.budget or 0)

    def _pages_spent(self) -> bool:
        if not self.bounds.max_pages:
            return False
        counts = self.backend.counts()
        return counts.stored + counts.leased >= self.bounds.max_pages

    def next_ready_time(self) -> float | None:
        """When pop() is worth asking next; None: only after an answer or a new link."""
        now, places = self.clock(), self.places
        places.age(now)
        if self._pages_spent() or sum(places.held) >= places.total:
            return None
        due = [kind for kind in _KINDS if self._turns.due(kind)]
        if any(places.allows(kind) for kind in due):
            return now
        times = [self._turns.next_time(), places.next_age() if due else None]
        return min((time for time in times if time is not None), default=None)

    @property
    def in_flight(self) -> int:
        """Fetches that hold a place."""
        return sum(self.places.held)

    @property
    def finished(self) -> bool:
        """Nothing is being fetched or stored, and nothing will be in this run.

        URLs may be left: of hosts that were given up, or beyond a budget.
        """
        if self.in_flight or self.backend.counts().leased:
            return False
        return self._pages_spent() or not (self._turns or self._waiting)

    # answers

    def _release(self, lease: Lease) -> None:
        """Free the place; the gap to the next request counts from when this one came there.

        A busy crawler, a slow connect or a busy server may hold it up, so that is known only from
        the answer: it had come by then. Hosts that answer within 0.1 s lose 5% of a gap of 2 s.
        """
        if lease.holding is None:
            return
        host = lease.host
        self.places.release(lease.holding)
        lease.holding = None
        host.in_flight -= 1
        lease.reached = min(self.clock(), lease.since + LATE_SECS)
        gap = self.politeness.gap_seconds(host.record)
        host.record.next_time = max(host.record.next_time, lease.reached + gap)
        if host.group is not None:
            host.group.last = max(host.group.last, lease.reached)
        self._touch(host)

    def answered(self, lease: Lease, seconds: float) -> None:
        """The response is complete: its place is free, the URL stays leased until done().

        ``seconds`` the fetch took.
        """
        if lease.holding is None:
            return
        lease.judged = True
        self._release(lease)
        self.politeness.answered(lease.host.record, self.clock(), seconds, lease.reached)
        self._set_turn(lease.host)

    def freed(
        self,
        lease: Lease,
        kind: str = "",
        seconds: float = 0.0,
        *,
        retry_after: float | None = None,
    ) -> None:
        """The fetch is over for good, its place free; the URL stays leased until its end.

        ``kind`` blames the host, or clears it, as failed() would; "" says nothing about it.
        """
        self._release(lease)
        if kind:
            self._judge(lease, kind, seconds, retry_after)
        self._set_turn(lease.host)

    def _judge(self, lease: Lease, kind: str, seconds: float, retry_after: float | None) -> None:
        """What a failure says about the host counts once a fetch."""
        if lease.judged:
            return
        lease.judged = True
        now, record = self.clock(), lease.host.record
        if failure_kind(kind).blames_host:
            snooze = failure_kind(kind).snoozes
            self.politeness.failed(record, now, seconds, kind, retry_after, snooze=snooze)
        else:
            self.politeness.answered(record, now, seconds, lease.reached)
        self._touch(lease.host)

    def retries(self, lease: Lease, kind: str) -> bool:
        """Would failed() give the URL another try?"""
        entry = lease.entry
        return (
            entry is not None
            and failure_kind(kind).retry
            and entry.attempts < self.bounds.retry_times
        )

    def failed_for_good(
        self, lease: Lease, visit: Visit, seconds: float, *, retry_after: float | None = None
    ) -> None:
        """The URL is FAILED, with ``visit.reason``; its host is blamed as failed() would."""
        if lease.entry is None:
            raise ValueError("robots.txt ends with robots_loaded() or failed()")
        self._release(lease)
        self._room_again(lease.host)
        self._judge(lease, visit.reason, seconds, retry_after)
        self.backend.acknowledge([(lease.entry.key, visit)])
        self._touch(lease.host)
        self._set_turn(lease.host)

    def done(self, lease: Lease, visit: Visit) -> None:
        """The URL is STORED, FAILED or REFUSED for good. answered() comes first."""
        if lease.entry is None:
            raise ValueError("robots.txt ends with robots_loaded() or failed()")
        if lease.holding is not None:
            self.answered(lease, self.clock() - lease.since)
        self.backend.acknowledge([(lease.entry.key, visit)])
        if visit.state is not UrlState.STORED:
            self._room_again(lease.host)

    def give_back(self, lease: Lease) -> None:
        """The fetch was not made or not stored, through no fault of its host: to its old place."""
        self._release(lease)
        if lease.entry is None:
            lease.host.record.change(HostState.NEW)
        else:
            self.backend.give_back([(lease.entry.key, 0.0, lease.entry.attempts)])
        self._room_again(lease.host)
        self._set_turn(lease.host)

    def failed(
        self,
        lease: Lease,
        kind: str,
        seconds: float,
        *,
        retry_after: float | None = None,
        visit: Visit | None = None,
    ) -> bool:
        """A fetch that failed: True if it will be tried again, False if the URL is FAILED now.

        ``kind`` as in failures.py; ``retry_after`` in seconds. ``visit`` holds what is known of a
        response, its state and reason are set here.
        """
        now, record = self.clock(), lease.host.record
        what = failure_kind(kind)
        self._release(lease)
        if lease.entry is None:
            self._robots_failed(record, now, seconds, kind, retry_after)
            self._set_turn(lease.host)
            return True
        self._room_again(lease.host)
        if what.blames_host:
            snooze = failure_kind(kind).snoozes
            self.politeness.failed(record, now, seconds, kind, retry_after, snooze=snooze)
        else:
            self.politeness.answered(record, now, seconds, lease.reached)
        attempts = lease.entry.attempts + 1
        again = what.retry and attempts <= self.bounds.retry_times
        if again:
            earliest = self.politeness.retry_time(now, attempts)
            self.backend.give_back([(lease.entry.key, earliest, attempts)])
        else:
            visit = visit or Visit(UrlState.FAILED, time=now)
            visit.state, visit.reason = UrlState.FAILED, visit.reason or kind
            self.backend.acknowledge([(lease.entry.key, visit)])
        self._set_turn(lease.host)
        return again

    def _robots_failed(
        self,
        record: HostRecord,
        now: float,
        seconds: float,
        kind: str,
        retry_after: float | None,
    ) -> None:
        """Unreachable: nothing is allowed for now; old rules go on (RFC 9309 2.3.1.4, 2.4)."""
        if record.robots_until:
            record.robots_until = now + self.bounds.robots_retry
        self.politeness.failed(record, now, seconds, f"robots.txt: {kind}", retry_after)

    def robots_loaded(self, lease: Lease, body: bytes, seconds: float) -> Sequence[str]:
        """The host's rules; b"" where everything is allowed (4xx). Returns its Sitemap lines."""
        if self.robots is None or lease.entry is not None:
            raise ValueError("not a robots.txt lease")
        self._release(lease)
        record, now = lease.host.record, self.clock()
        rules = self.robots.put(record.host, body)
        record.crawl_delay = rules.crawl_delay
        record.robots_until = now + self.bounds.robots_expires
        record.change(HostState.READY)
        self.politeness.answered(record, now, seconds, lease.reached)
        self._set_turn(lease.host)
        return rules.sitemaps

    def _room_again(self, host: Host) -> None:
        """A URL that was leased was not stored: a budget that looked spent may not be."""
        if host.record.state is HostState.PARKED and host.record.reason.startswith("budget"):
            host.record.wake()
            self._touch(host)
            self._set_turn(host)
