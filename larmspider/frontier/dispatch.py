"""Dispatch: the next time of each host, which host is next, and which URL is fetched there.

    schedule(frontier, host)          # after anything that bears on it: a link, an answer
    host = take(frontier, now)        # the host that has been due longest, if it may have a slot
    lease(frontier, host, now)        # Lease("http://wiki/robots.txt", entry=None)

A host is due at its next fetch time, which its state, gap, queue and politeness group decide. The
functions here read and change the FrontierState.
"""

from __future__ import annotations

from functools import partial
from math import inf

from larmspider.formatting import counted
from larmspider.frontier.group import Group
from larmspider.frontier.hosts import Host, HostRecord, HostState, Lease, name_of
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.slots import KINDS, Kind
from larmspider.frontier.state import FrontierState
from larmspider.frontier.storage.records import FetchRecord, MergedUrl, QueuedUrl, UrlState
from larmspider.items import REQUISITE

ROBOTS_REASON = "robots.txt"
"""Why a URL that robots.txt does not allow is refused."""
MAX_REFUSED = 16
"""URLs of a host that are refused in one turn; the rest follow in its next turn, after other hosts.
10 us each, 6 ms if robots.txt has the most wildcards (robots.MAX_WILDCARDS)."""
REVISIT_TURN = 4
"""While a host has new URLs, one request in 4 is a revisit."""


# which host, and when


def take(frontier: FrontierState, now: float) -> Host | None:
    """The host that has been due longest among the hosts that may have a slot now.

    The host has no fetch ahead until it is scheduled again.
    """
    kinds = _allowed_kinds(frontier)
    return frontier.ready.take(now, kinds) if kinds else None


def _allowed_kinds(frontier: FrontierState) -> list[Kind]:
    kinds, addresses = frontier.slots.allowed_kinds(), frontier.addresses
    if addresses.resolves and Kind.UNPROVEN in kinds and addresses.saturated():
        kinds.remove(Kind.UNPROVEN)
    return kinds


def next_ready_time(frontier: FrontierState, now: float) -> float | None:
    """When take() is worth calling next; None: only after an answer or a new link."""
    slots, ready = frontier.slots, frontier.ready
    if sum(slots.held) >= slots.total:
        return None
    due = [kind for kind in KINDS if ready.due(kind)]
    if due and not set(due).isdisjoint(_allowed_kinds(frontier)):
        return now
    times = [ready.next_time(), slots.next_age() if due else None]
    return min((time for time in times if time is not None), default=None)


def reschedule(frontier: FrontierState, name: str) -> None:
    """schedule() a host by its name, if the frontier has it."""
    if (host := frontier.hosts.get(name)) is not None:
        schedule(frontier, host)


def schedule(frontier: FrontierState, host: Host) -> None:
    """Set the time of the next request to the host. A host without work leaves the ready queue.
    O(log hosts), for a member of a group as well."""
    at, group = next_fetch_time(frontier, host), host.group
    if group is None:
        _put(frontier, host, at)
        return
    now, record = frontier.clock(), host.record
    group.next_time = max(group.next_time, record.next_time)
    if at is not None and at <= max(_shared_time(frontier, group, host), now):
        group.wait(host, frontier.kind_of(host), at)
    else:
        group.release(host)
        _put(frontier, host, at)
    settle(frontier, group)


def _shared_time(frontier: FrontierState, group: Group[Host], host: Host) -> float:
    """When the gaps of a group allow a request to this member."""
    return max(group.next_time, group.last + frontier.politeness.gap_seconds(host.record))


def settle(frontier: FrontierState, group: Group[Host]) -> None:
    """Put the waiting members whose turn comes next into the ready queue, by the order and the gaps
    that group.py describes, and take the others from it."""
    heads, limit, earliest = group.heads(), group.limit, 0.0
    for host in group.front:
        if host not in heads and group.waits(host):
            _put(frontier, host, None)
    for host in heads:
        if group.in_flight >= min(limit, host.rule.connections or 1):
            frontier.ready.drop(host)  # until a slot is released; its demand is what it was
        else:
            shared = _shared_time(frontier, group, host)
            earliest = max(earliest, group.own_time(host), shared)
            _put(frontier, host, earliest)
    group.front = heads


def _has_turn(frontier: FrontierState, group: Group[Host], host: Host, now: float) -> bool:
    """Whether a member from the ready queue may get a request. If its own time has come, but the
    group holds it up by now, it waits for its turn."""
    if group.waits(host):
        return host in group.front
    return group.in_flight < min(group.limit, host.rule.connections or 1) and not (
        group.front or _shared_time(frontier, group, host) > now
    )


def _put(frontier: FrontierState, host: Host, at: float | None) -> None:
    ready, slots, record = frontier.ready, frontier.slots, host.record
    if at is None and host.in_flight:
        ready.drop(host)
        return  # its demand is what it was
    if at is None or at == inf:
        ready.drop(host)
    else:
        ready.put(host, at)
    demand = 0
    if record.state is HostState.READY and at is not None:
        gap = frontier.politeness.gap_seconds(record)
        demand = slots.demand(record.slot_secs, gap, host.rule.connections or 1)
    if demand != host.demand:
        slots.change_demand(demand - host.demand)
        host.demand = demand


def next_fetch_time(frontier: FrontierState, host: Host) -> float | None:
    """When the host may get a request, without regard to its group; None: not before an event."""
    record, connections = host.record, host.rule.connections or 1
    if record.state is HostState.LOADING or host.in_flight >= connections:
        return None
    if host.resolving or host.leaving or host.paused or host.held:
        return None
    if record.on_probation and host.in_flight:
        return None
    for blocks in frontier.parts.blocks:
        if blocks(host):
            return None
    if frontier.robots.obeyed and host.in_flight and record.robots_until <= frontier.clock():
        return None  # the rules are renewed when nothing of the host is in flight
    waiting = _waiting(frontier, record.host)
    if waiting is None:
        return None
    if waiting and frontier.politeness.is_too_far(waiting, frontier.clock()):
        waiting = 0.0
    at = max(record.next_time, waiting)
    if record.state in (HostState.SNOOZED, HostState.PARKED):
        at = max(at, record.until)
    if host.rule.window is None or at == inf:
        return at
    return host.rule.opens(max(at, frontier.clock()), frontier.hour_of)


def _waiting(frontier: FrontierState, host: str) -> float | None:
    """When the host has a URL to fetch or to revisit, or a Part has a fetch (OwnFetch): 0.0 for
    now, None for never."""
    waiting, visitor = frontier.backend.next_time(host), frontier.parts.visitor
    for next_time in frontier.parts.next_time:
        due = next_time(host)
        if due is not None and due <= frontier.clock():
            return 0.0
    if not visitor.visits_again:
        return waiting
    times = [visitor.revisit_time(host)]
    if not _new_are_spent(frontier, host):
        times.append(waiting)
    return min((time for time in times if time is not None), default=None)


def _new_are_spent(frontier: FrontierState, name: str) -> bool:
    """Whether a budget of pages is used up: then only stored pages are visited."""
    budget = frontier.politeness.pace_of(name).budget
    if frontier.pages_spent():
        return True
    counts = frontier.backend.counts(name)
    return budget is not None and counts.stored + counts.leased >= budget


def forget(frontier: FrontierState, host: Host) -> None:
    """Drop a host that another worker has now."""
    frontier.ready.drop(host)
    if host.demand:
        frontier.slots.change_demand(-host.demand)
        host.demand = 0
    for hosts in frontier.resolving.values():
        if host in hosts:
            hosts.remove(host)
    if (group := host.group) is not None:
        group.remove(host)
        settle(frontier, group)


# which URL of the host is fetched


def lease(frontier: FrontierState, host: Host, now: float) -> Lease | None:
    """The next fetch from a host that is due: its robots.txt, or the next URL that it allows.

    None if nothing can be fetched now: its address is not known, its window closed, its budget is
    spent, robots.txt allows nothing, another crawl has just sent it a request, ...
    """
    gaps = frontier.politeness.shared_gaps
    if gaps is None:
        return _lease(frontier, host, now)
    gap = frontier.politeness.gap_seconds(host.record)
    if at := gaps.take(host.record.host, now, gap):
        host.record.next_time = max(host.record.next_time, at)
        return None
    if (found := _lease(frontier, host, now)) is None:
        gaps.give_back()
    return found


def _lease(frontier: FrontierState, host: Host, now: float) -> Lease | None:
    record, rule = host.record, host.rule
    frontier.hosts.touch(host)
    if host.paused or host.held or any(blocks(host) for blocks in frontier.parts.blocks):
        return None
    if not _is_resolved(frontier, host):
        return None
    if host.group is not None and not _has_turn(frontier, host.group, host, now):
        return None
    if rule.window is not None and rule.opens(now, frontier.hour_of) > now:
        return None
    record.wake()
    if rule.budget is not None:
        counts = frontier.backend.counts(record.host)
        again = frontier.parts.visitor.revisit_time(record.host) == 0.0
        if counts.stored + counts.leased >= rule.budget and not again:
            record.change(HostState.PARKED, inf, f"budget of {counted(rule.budget, 'page')}")
            return None
    if not frontier.robots.obeyed:
        if record.state is HostState.NEW:
            record.change(HostState.READY)
    elif record.robots_until <= now:
        if host.in_flight:
            return None
        return _begin(frontier, host, now, own=_robots_fetch(host.record))
    if own := _own_fetch(frontier, host, now):
        return _begin(frontier, host, now, own=own)
    entry = _next_allowed(frontier, host, now)
    return _begin(frontier, host, now, entry) if entry else None


def _robots_fetch(record: HostRecord) -> OwnFetch:
    """The host is LOADING from now on."""
    record.change(HostState.LOADING)
    released = partial(record.change, HostState.NEW)
    return OwnFetch(FetchKind.ROBOTS, record.robots_url, released)


def _own_fetch(frontier: FrontierState, host: Host, now: float) -> OwnFetch | None:
    """The fetch to be made before pages, in the order of the Parts. One at a time, so that an index
    is read before what it names."""
    if not frontier.parts.own_fetch:
        return None
    allowed = frontier.robots.of(host.record.host).allowed
    for own_fetch in frontier.parts.own_fetch:
        if (found := own_fetch(host, now, allowed)) is not None:
            own: OwnFetch = found
            return own
    return None


def _next_allowed(frontier: FrontierState, host: Host, now: float) -> QueuedUrl | None:
    """The next URL that robots.txt allows and that every Part admits. URLs before it are refused or
    held."""
    rules, admits = frontier.robots.of(host.record.host), frontier.parts.admits
    for _ in range(MAX_REFUSED):
        entry = _next_entry(frontier, host, now)
        if entry is None:
            return None
        if rules.allowed(entry.url) or _is_stored(entry):
            for admit in admits:
                if not admit(entry):
                    frontier.passed += 1
                    break
            else:
                return entry
            continue
        visit = FetchRecord(UrlState.REFUSED, time=now, reason=ROBOTS_REASON)
        finish(frontier, entry, visit)
        if entry.visit is not None:
            continue  # as before
        frontier.refused.append(entry)
    host.record.next_time = max(host.record.next_time, now)  # else it is the first to go again
    return None


def finish(frontier: FrontierState, entry: QueuedUrl, visit: FetchRecord) -> None:
    """A leased URL has its final state."""
    parts, backend = frontier.parts, frontier.backend
    if entry.link_type == REQUISITE:  # known from now on, and in no sum
        backend.merge([MergedUrl(entry, 0, entry.key)])
        return
    if parts.is_question and any(asks(entry.key, entry.host) for asks in parts.is_question):
        backend.merge([MergedUrl(entry, 0, entry.key)])
    else:
        for ended in parts.ended:
            visit = ended(entry, visit)
        backend.acknowledge([(entry.key, visit)])
    for final in parts.final:
        final(entry.host, entry.key, visit)


def _is_stored(entry: QueuedUrl) -> bool:
    """Whether the URL has a stored page. It is handed out even if robots.txt forbids it now: the
    request is refused before it is sent, and the refusal is judged like any other answer."""
    return entry.visit is not None and entry.visit.state is UrlState.STORED


def _next_entry(frontier: FrontierState, host: Host, now: float) -> QueuedUrl | None:
    """The next entry of a host. New URLs come first; while there are new URLs, one turn in
    REVISIT_TURN is a revisit."""
    name, visitor = host.record.host, frontier.parts.visitor
    if not visitor.visits_again:
        return _next_new(frontier, name, now)
    host.turn = (host.turn + 1) % REVISIT_TURN
    if not host.turn and (entry := visitor.revisit(name, now)) is not None:
        return entry
    new = None if _new_are_spent(frontier, name) else _next_new(frontier, name, now)
    return new or visitor.revisit(name, now)


def _next_new(frontier: FrontierState, name: str, now: float) -> QueuedUrl | None:
    backend = frontier.backend
    entries = backend.pop(name, now)
    if not entries:
        waiting = backend.next_time(name)
        if waiting and frontier.politeness.is_too_far(waiting, now):
            entries = backend.pop(name, inf)
    return entries[0] if entries else None


def _begin(
    frontier: FrontierState,
    host: Host,
    now: float,
    entry: QueuedUrl | None = None,
    own: OwnFetch | None = None,
) -> Lease:
    record, found = host.record, own or entry
    assert found is not None
    host.in_flight += 1
    record.next_time = now + frontier.politeness.gap_seconds(record)
    if host.group is not None:
        host.group.asked(host, now)
        host.group.began(host)
    slot = frontier.slots.acquire(frontier.kind_of(host), now)
    disallowed = (
        entry is not None
        and entry.visit is not None
        and not frontier.robots.of(record.host).allowed(entry.url)
    )
    return Lease(found.url, host, entry, now, slot, own, disallowed)


# hosts wait for their addresses, and the hosts of an address may share their pace


def _is_resolved(frontier: FrontierState, host: Host) -> bool:
    """Whether the host may get a request. If not, it waits for Frontier.on_resolved(), without a
    slot: otherwise a silent DNS server would fill all slots. Or the host has just joined the group
    of its address, where another member may be next.
    """
    book = frontier.addresses
    if not book.resolves or host.record.is_source:
        return True
    if not (book.grouped or book.own_address(host.record.robots_url)):
        return True
    name = name_of(host.record.host)
    address = book.address_of(name)
    if address is None:
        host.resolving = True
        frontier.resolving.setdefault(name, []).append(host)
        return False
    if not book.grouped or (host.group is not None and host.group.address == address):
        return True
    join_group(frontier, host, address)
    return False


def join_group(frontier: FrontierState, host: Host, address: str) -> None:
    """Move the host into the group of its address."""
    before = host.group
    if before is not None and before.address == address:
        return
    frontier.groups.setdefault(address, Group(address)).join(host)
    if before is not None:
        settle(frontier, before)
