"""What is fetched next, and what becomes of it: queues, politeness, robots.txt, places, budgets.

    frontier.add([frontier.entry("http://wiki/", "http://wiki/")])
    lease = frontier.pop()                  # http://wiki/robots.txt, for wiki is a new host
    frontier.robots_loaded(lease, body, seconds=0.02)
    lease = frontier.pop()                  # None: the gap; frontier.next_ready_time() says when
    ...
    frontier.answered(lease, seconds=0.05)  # the response is complete: its place is free
    frontier.done(lease, FetchRecord(UrlState.STORED, ...))   # every store has the page

The backend remembers; here the parts that decide are joined, and a URL goes through them so:

    add()      links.py       known, within bounds (bounds.py)?  then into its host's queue
    pop()      schedule.py    which host's turn is it?  (turns.py, places.py, grouping.py)
               leasing.py     what is asked: its robots.txt, or the next URL allowed
    done() ... answers.py     what the answer means for URL, host (politeness.py) and place

Not a line of it is asynchronous or knows the network; the clock is passed in. One thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from larmspider.frontier.control import Control
from larmspider.frontier.dispatch import AddressBook, PolitenessGroups, Schedule
from larmspider.frontier.hosts import Group, Host, HostTable, Lease
from larmspider.frontier.leasing import Leasing
from larmspider.frontier.links import MAX_HOST, Added, CrawlLimits, Links
from larmspider.frontier.partition import Partitions, SharedBackend
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.results import Answers
from larmspider.frontier.robots import RobotsCache
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import Counts, QueuedUrl, Recovery
from larmspider.frontier.strategies import Strategy

__all__ = ["CHECKPOINT_AT", "MAX_HOST", "Added", "AddressBook", "CrawlLimits", "Frontier"]

MOST_IN_VAIN = 64
"""Turns that one pop() finds nothing to fetch in, as the address is to be looked up, and URLs that
robots.txt does not allow, before it lets others have the CPU."""
SET_BACK_SECS = 1.0
"""A clock that goes back further was set, and what was to come by it is as much further away."""
CHECKPOINT_AT = 20_000
"""Pending changes at which a checkpoint is due whatever the time: some 25 MB."""


class Frontier:
    """``robots`` is None where robots.txt is not obeyed. Call recover() first.

    ``clock`` gives seconds since the epoch. ``book``: where the addresses of names are known
    (grouping.py), by which hosts may share their pace; None: nobody asks.
    ``block_of_key`` gives the block of a URL key, where the backend is shared with other workers.
    """

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        strategy: Strategy,
        places: SlotPool,
        clock: Callable[[], float],
        hour_of: Callable[[float], float],
        robots: RobotsCache | None = None,
        bounds: CrawlLimits | None = None,
        book: AddressBook | None = None,
        block_of_key: Callable[[bytes], int] | None = None,
    ) -> None:
        self.backend, self.politeness, self.strategy = backend, politeness, strategy
        self.places, self.clock, self.bounds = places, clock, bounds or CrawlLimits()
        self._latest = float("-inf")  # what the clock said last
        self._hosts = HostTable(backend, politeness.rules)
        self._schedule = Schedule(
            backend,
            politeness,
            places,
            clock,
            hour_of,
            robots=robots is not None,
            crowded=book.crowded if book else lambda: False,
        )
        self._grouping = PolitenessGroups(book, self._schedule)
        self._leasing = Leasing(
            backend,
            politeness,
            places,
            self._hosts,
            self._schedule,
            self._grouping,
            hour_of,
            robots,
        )
        self.address_known = self._grouping.address_known
        answers = Answers(
            backend,
            politeness,
            places,
            self._hosts,
            self._schedule,
            clock,
            robots,
            self.bounds,
        )
        self.answered, self.freed, self.done = answers.answered, answers.freed, answers.done
        self.failed, self.failed_for_good = answers.failed, answers.failed_for_good
        self.retries, self.give_back = answers.retries, answers.give_back
        self.robots_loaded = answers.robots_loaded
        self.control = Control(backend, politeness, self._hosts, self._schedule, clock)

        self.blocks: Partitions | None = None
        """Which are this worker's; None where all are."""
        if block_of_key is not None:
            shared: SharedBackend = backend  # type: ignore[assignment]
            self.blocks = Partitions(
                shared,
                block_of_key,
                self._hosts,
                self._schedule,
                self._grouping,
                politeness,
                clock,
                robots,
                self.bounds.robots_expires,
            )
        links = Links(backend, strategy, self.bounds, self.blocks)
        self._add_links, self._seen, self._count_mail = links.add, links.seen, links.count_mail
        self.entry, self.reprioritize = links.entry, links.reprioritize
        self.known, self.seen_lately = links.known, links.seen_lately

    def __repr__(self) -> str:
        return f"<Frontier {self.backend.counts()}, {len(self._schedule)} turns, {self.places!r}>"

    @property
    def hosts(self) -> Mapping[str, Host]:
        """All hosts by name."""
        return self._hosts.by_name

    # links

    def add(self, entries: Sequence[QueuedUrl]) -> Added:
        """Queue the new ones within depth and redirect bounds. A batch: a page's links.
        Those of other workers' hosts are posted, and are none of the new ones.
        """
        if self.blocks is None:
            return self._add(entries)
        own, foreign = self.blocks.split(entries, count=self.strategy.counts_links)
        added = self._add(own)
        added.posted = len(foreign)
        self._seen(entry.normalized for entry in foreign)
        return added

    def add_mail(self, entries: Sequence[QueuedUrl], links: Mapping[bytes, int]) -> None:
        """What other workers posted, and how many links they found to what was posted before."""
        assert self.blocks is not None
        new = self._add(entries).new
        self.blocks.brought(new)
        self._count_mail(entries, new, links)

    def _add(self, entries: Sequence[QueuedUrl]) -> Added:
        added = self._add_links(entries)
        touched: dict[Host | Group[Host], Host] = {}
        for entry in added.new:
            host = self._hosts.by_name.get(entry.host)
            if host is None:
                host = self._hosts.of(entry.host, scheme=entry.url.partition(":")[0].lower())
            touched[host.group or host] = host
        for host in touched.values():
            self._schedule.set(host)
        return added

    # fetching

    def needs_places(self) -> bool:
        """Whether hosts that are due find no place: quick ones, or some that never answered."""
        return not self.control.paused and self._schedule.needs_places(self._now())

    def pop(self) -> Lease | None:
        """The next fetch, or None when none may begin now. O(log hosts)."""
        now = self._now()
        self.places.age(now)
        if self.control.paused or self._pages_spent():
            return None
        joined: dict[Group[Host], None] = {}  # their turns are set once, not for each new member
        left = MOST_IN_VAIN
        while left > 0:
            host = self._schedule.take(now)
            if joined and (host is None or host.group in joined):
                self._set_groups(joined)
                continue
            if host is None:
                return None
            before, refused = host.group, len(self.refused)
            lease = self._leasing.lease(host, now)
            if host.group is not before and host.group is not None:
                joined[host.group] = None
                continue
            self._schedule.set(host)
            if lease is not None:
                break
            left -= 1 + len(self.refused) - refused
        else:
            lease = None  # it is worth asking again at once
        self._set_groups(joined)
        return lease

    def _now(self) -> float:
        now, latest = self.clock(), self._latest
        self._latest = now
        if now < latest - SET_BACK_SECS:
            self._take_up(self._hosts.by_name.values())
        return now

    def _set_groups(self, groups: dict[Group[Host], None]) -> None:
        for group in groups:
            self._schedule.set_group(group)
        groups.clear()

    @property
    def refused(self) -> list[QueuedUrl]:
        """What robots.txt refused in pop(); whoever tells of it empties this."""
        return self._leasing.refused

    def next_ready_time(self) -> float | None:
        """When pop() is worth asking next; None: only after an answer or a new link."""
        now = self._now()
        self.places.age(now)
        if self.control.paused or self._pages_spent():
            return None
        return self._schedule.next_ready_time(now)

    def waits_for(self) -> Host | None:
        """The host whose turn comes next, while nothing is in flight or due; ``turn_time`` is when.
        None while there is something to do at once."""
        ready = self.next_ready_time()
        idle = not self.in_flight and ready is not None and ready > self.clock()
        return self._schedule.next_host() if idle else None

    def _pages_spent(self) -> bool:
        if not self.bounds.max_pages:
            return False
        counts = self.backend.counts()
        elsewhere = self.blocks.stored_by_others if self.blocks is not None else 0
        return counts.stored + counts.leased + elsewhere >= self.bounds.max_pages

    @property
    def in_flight(self) -> int:
        """Fetches that hold a place."""
        return sum(self.places.held)

    @property
    def finished(self) -> bool:
        """Nothing is being fetched or stored, and nothing will be in this run.
        URLs may be left: of hosts that were given up, or beyond a budget. Those of hosts that the
        operator has paused are waited for.
        """
        if self.in_flight or self.backend.counts().leased:
            return False
        if self._pages_spent():
            return True
        return not (self._schedule or self._grouping or self.control.waiting_hosts)

    # durability

    def recover(self) -> Recovery:
        """Take up the last commit; see Backend.recover()."""
        recovery = self.backend.recover()
        self._take_up(self._hosts.load())
        self.control.recover()
        return recovery

    def _take_up(self, hosts: Iterable[Host]) -> None:
        """By a clock that was another when these had their times."""
        now = self.clock()
        turns: dict[Host | Group[Host], Host] = {}
        for host in hosts:
            self.politeness.take_up(host.record, now, self.bounds.robots_expires)
            if host.group is not None:
                host.group.set_back(now)
            turns[host.group or host] = host
        for host in turns.values():
            self._schedule.set(host)

    def cut(self) -> None:
        """End the batch that the next commit writes; see backend.py."""
        if self.blocks is not None:
            self.blocks.close()
        self._hosts.cut()
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
            raise AssertionError(f"URLs do not add up: {counts!r}")
        if deep and (counted := self.backend.audit()) != counts:
            raise AssertionError(f"counters {counts!r}, records {counted!r}")
        return counts
