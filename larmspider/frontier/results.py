"""How a fetch ends: what the answer or failure means for its URL, its host and its place.

    answers.answered(lease, seconds=0.05)                # the response is complete
    answers.done(lease, FetchRecord(UrlState.STORED, ...))     # every store has the page
    answers.failed(lease, "timeout", seconds=30.0)       # True: it will be tried again

Each lease ends once: a page's with done(), failed(), failed_for_good() or give_back(), a
robots.txt's with robots_loaded(), failed() or give_back(). answered() and freed() only free its
place before that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from larmspider.frontier.dispatch import Schedule
from larmspider.frontier.hosts import Host, HostRecord, HostState, HostTable, Lease
from larmspider.frontier.links import CrawlLimits
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.robots import RobotsCache
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import FetchRecord, UrlState

# Kinds of failed fetches: is the URL worth another try, and is the host to blame?
#
# A page that is too big says nothing about its server; five refused connections in a row do.


class FailureKind(NamedTuple):
    """``retry``: the same URL may succeed later. ``blames_host``: counts towards parking it.
    ``snoozes``: the host is left alone for a while at once, and not this URL only."""

    retry: bool
    blames_host: bool
    snoozes: bool = False


KINDS = {
    "dns": FailureKind(retry=True, blames_host=True, snoozes=True),
    "refused": FailureKind(retry=True, blames_host=True, snoozes=True),
    "timeout": FailureKind(retry=True, blames_host=True, snoozes=True),
    "slow": FailureKind(retry=True, blames_host=True, snoozes=True),
    "tls": FailureKind(retry=True, blames_host=True, snoozes=True),
    "reset": FailureKind(retry=True, blames_host=True, snoozes=True),
    "too-big": FailureKind(retry=False, blames_host=False),
    "bad-response": FailureKind(retry=True, blames_host=False),
    "address": FailureKind(retry=False, blames_host=False),
    "bad-url": FailureKind(retry=False, blames_host=False),
}
"""By the fetch layer's word for it; any other word: retried, the host not blamed."""

_SERVER_ERROR = FailureKind(retry=True, blames_host=True)
_OVERLOADED = FailureKind(retry=True, blames_host=True, snoozes=True)
_OTHER = FailureKind(retry=True, blames_host=False)


def failure_kind(kind: str) -> FailureKind:
    """5xx, 429 and 408 blame the host; other statuses are final for the URL.

    429 and 503 are about the host, other 5xx most often about one page: a wiki with a broken page
    in a hundred is not left alone for each of them.
    """
    if kind in ("http-429", "http-503"):
        return _OVERLOADED
    if kind.startswith("http-"):
        if kind[5:6] == "5" or kind == "http-408":
            return _SERVER_ERROR
        return FailureKind(retry=False, blames_host=False)
    return KINDS.get(kind, _OTHER)


LATE_SECS = 1.0
"""A request reaches its host within this time of its turn."""


class Answers:
    """Tells the backend about the URL, politeness about the host, and sets the host's next turn."""

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        places: SlotPool,
        hosts: HostTable,
        schedule: Schedule,
        clock: Callable[[], float],
        robots: RobotsCache | None,
        bounds: CrawlLimits,
    ) -> None:
        self._backend, self._politeness, self._places = backend, politeness, places
        self._hosts, self._schedule, self._clock = hosts, schedule, clock
        self._robots, self._bounds = robots, bounds

    # the place

    def answered(self, lease: Lease, seconds: float) -> None:
        """The response is complete: its place is free, the URL stays leased until done().

        ``seconds`` the fetch took.
        """
        if lease.holding is None:
            return
        lease.judged = True
        self._release(lease)
        self._politeness.answered(lease.host.record, self._clock(), seconds, lease.reached)
        self._schedule.set(lease.host)

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
        self._schedule.set(lease.host)

    def _release(self, lease: Lease) -> None:
        """Free the place; the gap to the next request counts from when this one came there.

        A busy crawler, a slow connect or a busy server may hold it up, so that is known only from
        the answer: it had come by then. Hosts that answer within 0.1 s lose 5% of a gap of 2 s.
        """
        if lease.holding is None:
            return
        host = lease.host
        self._places.release(lease.holding)
        lease.holding = None
        host.in_flight -= 1
        lease.reached = min(self._clock(), lease.since + LATE_SECS)
        gap = self._politeness.gap_seconds(host.record)
        host.record.next_time = max(host.record.next_time, lease.reached + gap)
        if host.group is not None:
            host.group.last = max(host.group.last, lease.reached)
        self._hosts.touch(host)

    def _judge(self, lease: Lease, kind: str, seconds: float, retry_after: float | None) -> None:
        """What a failure says about the host counts once a fetch."""
        if not lease.judged:
            lease.judged = True
            self._blame(lease, kind, seconds, retry_after)

    def _blame(self, lease: Lease, kind: str, seconds: float, retry_after: float | None) -> None:
        now, record, what = self._clock(), lease.host.record, failure_kind(kind)
        if what.blames_host:
            self._politeness.failed(record, now, seconds, kind, retry_after, snooze=what.snoozes)
        else:
            self._politeness.answered(record, now, seconds, lease.reached)
        self._hosts.touch(lease.host)

    # the URL

    def done(self, lease: Lease, visit: FetchRecord) -> None:
        """The URL is STORED, FAILED or REFUSED for good. answered() comes first."""
        if lease.entry is None:
            raise ValueError("robots.txt ends with robots_loaded() or failed()")
        if lease.holding is not None:
            self.answered(lease, max(0.0, self._clock() - lease.since))
        self._backend.acknowledge([(lease.entry.key, visit)])
        if visit.state is not UrlState.STORED:
            self._room_again(lease.host)

    def give_back(self, lease: Lease) -> None:
        """The fetch was not made or not stored, through no fault of its host: to its old place. If
        it was overdue, its host is slow until it proves otherwise."""
        self._release(lease)
        if lease.overdue:
            lease.host.record.hold = max(self._clock() - lease.since, self._places.slow_secs)
        if lease.entry is None:
            lease.host.record.change(HostState.NEW)
        else:
            self._backend.give_back([(lease.entry.key, 0.0, lease.entry.attempts)])
        self._room_again(lease.host)
        self._schedule.set(lease.host)

    def retries(self, lease: Lease, kind: str) -> bool:
        """Would failed() give the URL another try?"""
        entry = lease.entry
        return (
            entry is not None
            and failure_kind(kind).retry
            and entry.attempts < self._bounds.retry_times
        )

    def failed(
        self,
        lease: Lease,
        kind: str,
        seconds: float,
        *,
        retry_after: float | None = None,
        visit: FetchRecord | None = None,
    ) -> bool:
        """A fetch that failed: True if it will be tried again, False if the URL is FAILED now.

        ``kind`` as in failures.py; ``retry_after`` in seconds. ``visit`` holds what is known of a
        response, its state and reason are set here.
        """
        now = self._clock()
        self._release(lease)
        if lease.entry is None:
            self._robots_failed(lease.host.record, now, seconds, kind, retry_after)
            self._schedule.set(lease.host)
            return True
        self._room_again(lease.host)
        self._blame(lease, kind, seconds, retry_after)
        again = self.retries(lease, kind)
        if again:
            attempts = lease.entry.attempts + 1
            earliest = self._politeness.retry_time(now, attempts)
            self._backend.give_back([(lease.entry.key, earliest, attempts)])
        else:
            visit = visit or FetchRecord(UrlState.FAILED, time=now)
            visit.state, visit.reason = UrlState.FAILED, visit.reason or kind
            self._backend.acknowledge([(lease.entry.key, visit)])
        self._schedule.set(lease.host)
        return again

    def failed_for_good(
        self, lease: Lease, visit: FetchRecord, seconds: float, *, retry_after: float | None = None
    ) -> None:
        """The URL is FAILED, with ``visit.reason``; its host is blamed as failed() would."""
        if lease.entry is None:
            raise ValueError("robots.txt ends with robots_loaded() or failed()")
        self._release(lease)
        self._room_again(lease.host)
        self._judge(lease, visit.reason, seconds, retry_after)
        self._backend.acknowledge([(lease.entry.key, visit)])
        self._schedule.set(lease.host)

    def _room_again(self, host: Host) -> None:
        """A URL that was leased was not stored: a budget that looked spent may not be."""
        if host.record.state is HostState.PARKED and host.record.reason.startswith("budget"):
            host.record.change(HostState.READY)  # with or without a robots.txt: it gave out URLs
            self._hosts.touch(host)
            self._schedule.set(host)

    # robots.txt

    def robots_loaded(
        self, lease: Lease, body: bytes, seconds: float, answer: str = "200"
    ) -> Sequence[str]:
        """The host's rules; b"" where everything is allowed (4xx). Returns its Sitemap lines.

        ``answer`` is the HTTP status, or why it was not asked for.
        """
        if self._robots is None or lease.entry is not None:
            raise ValueError("not a robots.txt lease")
        self._release(lease)
        record, now = lease.host.record, self._clock()
        rules = self._robots.put(record.host, body)
        record.crawl_delay = rules.crawl_delay
        record.robots_until = now + self._bounds.robots_expires
        record.robots_answer, record.robots_time = answer, now
        record.change(HostState.READY)
        self._politeness.answered(record, now, seconds, lease.reached)
        self._schedule.set(lease.host)
        return rules.sitemaps

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
            record.robots_until = now + self._bounds.robots_retry
        record.robots_answer, record.robots_time = kind, now
        self._politeness.failed(record, now, seconds, f"robots.txt: {kind}", retry_after)
