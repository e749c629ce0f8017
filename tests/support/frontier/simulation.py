"""A crawl without network or waiting: a latency a server, a clock that jumps ahead."""

from __future__ import annotations

import random
from collections import defaultdict
from heapq import heappop, heappush
from itertools import pairwise

from larmspider.frontier.frontier import CrawlLimits
from larmspider.frontier.hosts import HostPace, HostRules
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.robots import NotAsked, RobotsCache
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.state import NO_ADDRESSES, AddressBook, FrontierOptions
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.frontier.strategies import BreadthFirst
from larmspider.learned.learning import NOTHING, LearningFrontier

TIMEOUT = 30.0


class AllowAll:
    crawl_delay = None
    sitemaps = ()

    def allowed(self, url):
        return True


def build(
    backend,
    clock,
    *,
    delay=2.0,
    slots=32,
    connections=1,
    rules=(),
    limits=None,
    crawl_limits=None,
    parse=lambda body: AllowAll(),
    robots=True,
    address_of=None,
    addresses=None,
    strategy=None,
    learning=NOTHING,
    seed=7,
):
    """A frontier with the settings that a test does not care about filled in."""
    default = HostPace(delay=delay, connections=connections)
    politeness = Politeness(
        limits or Limits(), HostRules(rules, default), random.Random(seed).random
    )
    options = FrontierOptions(
        robots=RobotsCache(backend, parse) if robots else NotAsked(),
        limits=crawl_limits or CrawlLimits(),
        addresses=addresses or (AddressBook(address_of) if address_of else NO_ADDRESSES),
        clock=clock,
        hour_of=lambda now: now / 3600 % 24,
    )
    slots = SlotPool(slots) if isinstance(slots, int) else slots
    frontier = LearningFrontier(
        backend, politeness, strategy or BreadthFirst(), slots, options, learning
    )
    frontier.recover()
    return frontier


class Clock:
    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


class Simulation:
    """``latency(host, random)`` gives seconds until the answer, None for never. A host's first
    fetch is given up after ``probe_secs`` if others wait."""

    def __init__(self, frontier, clock, latency, *, seed=1, probe_secs=1.0):
        self.probe_secs = probe_secs
        self.frontier, self.clock, self.latency = frontier, clock, latency
        self.random = random.Random(seed)
        self.events = []
        self.begun = clock.now
        self.asked = defaultdict(list)  # host -> times, robots.txt too
        self.open = defaultdict(int)
        self.most_open = defaultdict(int)
        self.pops = 0
        self.number = 0

    def run(self, seconds):
        end = self.begun + seconds
        while self.clock.now < end:
            while lease := self.frontier.pop():
                self.begin(lease)
            times = [self.frontier.next_ready_time(), self.events[0][0] if self.events else None]
            due = [time for time in times if time is not None]
            if not due:
                return
            self.clock.now = max(self.clock.now, min(due))
            given_up = False
            while self.events and self.events[0][0] <= self.clock.now and not given_up:
                given_up = self.end(*heappop(self.events)[2:])

    def begin(self, lease):
        name = lease.host.record.host
        self.asked[name].append(self.clock.now)
        self.open[name] += 1
        self.most_open[name] = max(self.most_open[name], self.open[name])
        seconds = self.latency(name, self.random)
        failed = seconds is None or seconds > TIMEOUT
        took = TIMEOUT if failed else seconds
        if lease.host.record.slot_secs is None and took > self.probe_secs:
            self.later(self.probe_secs, lease, took, failed)
        else:
            self.later(took, lease, took, failed)

    def later(self, seconds, lease, took, failed):
        self.number += 1
        heappush(self.events, (self.clock.now + seconds, self.number, lease, took, failed))

    def end(self, lease, seconds, failed):
        """True if it was given up, and who waits for its place is asked first."""
        if (so_far := self.clock.now - lease.since) < seconds - 0.001:  # a probe
            if not self.frontier.needs_slots():
                self.later(min(0.25, seconds - so_far), lease, seconds, failed)
                return False
            self.open[lease.host.record.host] -= 1
            lease.overdue = True
            self.frontier.release(lease)
            return True
        self.open[lease.host.record.host] -= 1
        if failed:
            self.frontier.failed(lease, "timeout", seconds)
        elif lease.kind is FetchKind.ROBOTS:
            self.frontier.robots_loaded(lease, b"", seconds)
        else:
            self.frontier.answered(lease, seconds)
            self.frontier.acknowledge(lease, FetchRecord(UrlState.STORED, self.clock.now, 200))
        return False

    def requests(self, host, start, end):
        times = (time - self.begun for time in self.asked[host])
        return sum(start <= time < end for time in times)

    def shortest_gap(self, host):
        times = self.asked[host]
        return min((b - a for a, b in pairwise(times)), default=float("inf"))
