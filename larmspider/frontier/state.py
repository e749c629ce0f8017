"""The state of a frontier, which its parts of the work share: dispatch.py, control.py,
partition.py.

    state = FrontierState(backend, politeness, strategy, slots, FrontierOptions(clock=clock))

Frontier (frontier.py) is this state with all that may be done to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from larmspider.frontier.hosts import Host, HostTable, local_hour
from larmspider.frontier.links import CrawlLimits, RecentlySeen
from larmspider.frontier.part import NotesMemory, Parts
from larmspider.frontier.ready_queue import ReadyQueue
from larmspider.frontier.robots import NotAsked, RobotsCache

if TYPE_CHECKING:
    from larmspider.frontier.group import Group
    from larmspider.frontier.politeness import Politeness
    from larmspider.frontier.slots import Kind, SlotPool
    from larmspider.frontier.storage.backend import Backend
    from larmspider.frontier.storage.records import QueuedUrl
    from larmspider.frontier.strategies import Strategy


@dataclass(frozen=True, slots=True)
class AddressBook:
    """Where the frontier finds the addresses of hosts.

    ``address_of`` returns the address of a host's name. If it is not known yet, it returns None and
    begins a look-up that ends with Frontier.on_resolved(). ``grouped`` (LARM_GROUP_BY): hosts of
    one address share their pace. Otherwise a host waits for its address only if ``own_address``
    says so for the URL of its robots.txt. ``saturated`` returns True while every resolver thread is
    busy; hosts that have never answered then wait. Without ``resolves`` no host waits for its
    address.
    """

    address_of: Callable[[str], str | None]
    grouped: bool = True
    own_address: Callable[[str], bool] = bool
    saturated: Callable[[], bool] = lambda: False
    resolves: bool = True


NO_ADDRESSES = AddressBook(lambda _: None, grouped=False, resolves=False)


@dataclass(frozen=True, slots=True)
class FrontierOptions:
    """``robots``: the cache of rules, or NotAsked where robots.txt is not obeyed. ``clock`` gives
    seconds since the epoch, ``hour_of`` the hour of the local day at such a time."""

    robots: RobotsCache | NotAsked = field(default_factory=NotAsked)
    limits: CrawlLimits = field(default_factory=CrawlLimits)
    addresses: AddressBook = NO_ADDRESSES
    clock: Callable[[], float] = time.time
    hour_of: Callable[[float], float] = local_hour


USUAL = FrontierOptions()
"""No robots.txt, no limits, the machine's clock."""


class FrontierState:
    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        strategy: Strategy,
        slots: SlotPool,
        options: FrontierOptions,
    ) -> None:
        self.backend, self.politeness, self.strategy = backend, politeness, strategy
        self.slots, self.robots, self.limits = slots, options.robots, options.limits
        self.addresses, self.clock, self.hour_of = options.addresses, options.clock, options.hour_of
        self.hosts = HostTable(backend, politeness.pace_of)
        self.ready = ReadyQueue(self.kind_of)
        self.groups: dict[str, Group[Host]] = {}
        """Groups of hosts, by their address."""
        self.resolving: dict[str, list[Host]] = {}
        """Hosts that wait for the address of their name, by name."""
        self.seen = RecentlySeen()
        self.refused: list[QueuedUrl] = []
        """URLs that robots.txt refused in pop(). The caller that reports them empties the list."""
        self.passed = 0
        """URLs that a Part did not admit when their turn came."""
        self.stored_elsewhere = 0
        """Pages that other workers have stored."""
        self.notes = NotesMemory(backend)
        self.parts = Parts()

    def kind_of(self, host: Host) -> Kind:
        """The kind of slot that a fetch from the host would hold."""
        record = host.record
        return self.slots.kind(record.slot_secs, record.failures + record.parks)

    def pages_spent(self) -> bool:
        """Whether LARM_MAX_PAGES is reached."""
        if not self.limits.max_pages:
            return False
        counts = self.backend.counts()
        return counts.stored + counts.leased + self.stored_elsewhere >= self.limits.max_pages

    @property
    def gives_up_at_once(self) -> bool:
        """Whether a host gets a single attempt in this run, because it was silent when the last run
        ended. Its pages are known, and the next run visits them."""
        return self.parts.visitor.asks_silent_once
