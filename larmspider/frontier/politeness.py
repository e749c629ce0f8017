"""How often a host may get a request, and how its answers and failures change this. Pure rules.

    politeness.gap(record)     ->  Gap(seconds=10.0, rule="robots.txt Crawl-delay")

The gap between two requests is the largest of the delay set for the host, its Crawl-delay and a
multiple of its last response time. Failures snooze it for a time that doubles; five in a row park
it, and it is probed again later. Five in a row of one view do not (broken_views.py). Clock and
randomness come from the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from larmspider.formatting import counted
from larmspider.frontier.hosts import HostPace, HostRecord, HostRules, HostState
from larmspider.frontier.overrides import Overrides

if TYPE_CHECKING:
    from larmspider.frontier.shared_gaps import SharedGaps


class FailureKind(NamedTuple):
    """The meaning of a failed fetch for its URL and its host. A page that is too big says nothing
    about its server; five refused connections in a row do.

    ``retry``: the same URL may succeed later. ``blames_host``: counts towards parking the host.
    ``snoozes``: the host is left alone for a while at once, and not this URL only. ``of_host``: it
    says nothing about the URL, which has all of its attempts left. ``of_share``: one share or
    folder is away, others of the host may be there: a refresh does not blame the host, nor wait.
    """

    retry: bool
    blames_host: bool
    snoozes: bool = False
    of_host: bool = False
    of_share: bool = False


KINDS = {
    "dns": FailureKind(retry=True, blames_host=True, snoozes=True),
    "refused": FailureKind(retry=True, blames_host=True, snoozes=True),
    "unmounted": FailureKind(
        retry=True, blames_host=True, snoozes=True, of_host=True, of_share=True
    ),
    "sign-in": FailureKind(retry=True, blames_host=True, snoozes=True, of_host=True),
    "locked": FailureKind(retry=True, blames_host=False),
    "unavailable": FailureKind(retry=True, blames_host=False),
    "offline": FailureKind(retry=False, blames_host=False),
    "timeout": FailureKind(retry=True, blames_host=True, snoozes=True),
    "slow": FailureKind(retry=True, blames_host=True, snoozes=True),
    "tls": FailureKind(retry=True, blames_host=True, snoozes=True),
    "reset": FailureKind(retry=True, blames_host=True, snoozes=True),
    "too-big": FailureKind(retry=False, blames_host=False),
    "bad-response": FailureKind(retry=True, blames_host=False),
    "address": FailureKind(retry=False, blames_host=False),
    "login": FailureKind(retry=False, blames_host=False),
    "render": FailureKind(retry=True, blames_host=False),
    "bad-url": FailureKind(retry=False, blames_host=False),
}
"""By the fetch layer's word; any other word: retried, the host not blamed."""

FORGIVING = 5
"""Answers after a failure that undo one doubling of the wait. A host that refuses one request in
ten therefore keeps its pace; a host that refuses every second request waits longer each time."""
_SERVER_ERROR = FailureKind(retry=True, blames_host=True)
_OVERLOADED = FailureKind(retry=True, blames_host=True, snoozes=True)
_OTHER = FailureKind(retry=True, blames_host=False)


def failure_kind(kind: str) -> FailureKind:
    """``kind`` as in KINDS, or http-STATUS: 5xx, 429 and 408 blame the host, other statuses are
    final for the URL.

    429 and 503 are about the host, other 5xx most often about one view: a wiki with a broken page
    in a hundred is not left alone for each of them. broken_views.py finds out whether
    failures in a row have one view in common.
    """
    if kind in ("http-429", "http-503"):
        return _OVERLOADED
    if kind.startswith("http-"):
        if kind[5:6] == "5" or kind == "http-408":
            return _SERVER_ERROR
        return FailureKind(retry=False, blames_host=False)
    return KINDS.get(kind, _OTHER)


class Gap(NamedTuple):
    """``seconds`` between the beginnings of two requests; ``rule`` says in words what set it."""

    seconds: float
    rule: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings; all in seconds except the factor, jitter and counts.

    ``retry_after_max``: a longer Retry-After is cut to it. ``backoff`` is the first snooze, doubled
    up to ``backoff_max``, each 1 +- ``jitter`` times as long. ``quiet``: after this time without
    failure the doublings are forgotten. ``max_failures`` in a row park a host for ``park``, doubled
    each time in a row, at most ``max_parks`` times; then it is given up for this run.
    """

    crawl_delay_max: float = 60.0
    response_factor: float = 1.0
    retry_after_max: float = 3600.0
    backoff: float = 5.0
    backoff_max: float = 600.0
    jitter: float = 0.25
    quiet: float = 120.0
    max_failures: int = 5
    park: float = 600.0
    max_parks: int = 3


class Politeness:
    """``random`` gives floats in [0, 1). ``shared_gaps``: gaps that other crawls keep, too."""

    def __init__(
        self,
        limits: Limits,
        rules: HostRules,
        random: Callable[[], float],
        shared_gaps: SharedGaps | None = None,
    ) -> None:
        self.limits, self.rules, self.random = limits, rules, random
        self.shared_gaps = shared_gaps
        self.overrides = Overrides()
        self._answers: dict[str, int] = {}
        """Answers of a host that failed lately, since its last failure or forgiven doubling."""

    def pace_of(self, host: str) -> HostPace:
        """The rule of a host, with the connections that were ordered."""
        rule, own = self.rules.of(host), self.overrides.hosts.get(host)
        if own is None or own.connections is None:
            return rule
        return replace(rule, connections=own.connections)

    def take_up(self, record: HostRecord, now: float, robots_expires: float) -> None:
        """Take over a host of an earlier run or of another worker. The time of its last request is
        not known here."""
        # a gap from now is safe, however soon this comes after the last request
        record.next_time = now + self.gap_seconds(record)
        # the clock may have been ahead, by years: no wait is longer than one that begins now
        if record.until < inf:
            record.until = min(record.until, now + self.longest_wait)
        record.last_failure = min(record.last_failure, now)
        record.silent_since = min(record.silent_since, now)
        record.robots_until = min(record.robots_until, now + robots_expires)

    def gap_seconds(self, record: HostRecord) -> float:
        """Seconds between the beginnings of two requests to the host."""
        limits, overrides = self.limits, self.overrides
        gap = self.rules.of(record.host).delay or 0.0
        if overrides.hosts:
            gap = overrides.delay(record.host, gap)
        if record.crawl_delay is not None:
            gap = max(gap, min(record.crawl_delay, limits.crawl_delay_max))
        return max(gap, limits.response_factor * record.response) * overrides.factor

    def gap(self, record: HostRecord) -> Gap:
        """gap_seconds() with the rule that sets it."""
        seconds, factor = self.gap_seconds(record), self.overrides.factor
        slowed = "" if factor == 1.0 else f", {factor:g} times as long, set by the operator"
        return Gap(seconds, self._what_sets(record) + slowed)

    def _what_sets(self, record: HostRecord) -> str:
        limits, asked = self.limits, record.crawl_delay
        override = self.overrides.hosts.get(record.host)
        delay = self.overrides.delay(record.host, self.rules.of(record.host).delay or 0.0)
        response = limits.response_factor * record.response
        least = 0.0 if asked is None else min(asked, limits.crawl_delay_max)
        if delay >= max(response, least):
            by_rule = override is None or override.delay is None
            return "delay" if by_rule else "delay set by the operator"
        if asked is None or response > least:
            return f"{limits.response_factor:g} x last response time"
        return f"robots.txt Crawl-delay{f' {asked:g} s, cut' if asked > least else ''}"

    def answered(self, record: HostRecord, now: float, seconds: float, sent: float) -> None:
        """A response that does not blame the host: it took ``seconds``, and was sent at
        ``sent``."""
        if record.failures or record.parks:
            record.slot_secs = None  # what its failures took says nothing about its answers
        self._note_duration(record, seconds)
        record.response = seconds
        record.failures = record.parks = 0
        record.silent_since = 0.0
        record.on_probation = False
        if now - record.last_failure > self.limits.quiet:
            record.level = 0
        elif record.level and sent > record.last_failure:
            self._forgive(record)
        record.next_time = max(record.next_time, sent + self.gap_seconds(record))

    def _forgive(self, record: HostRecord) -> None:
        """Undo a doubling after FORGIVING answers."""
        answers = self._answers.pop(record.host, 0) + 1
        if answers >= FORGIVING:
            record.level -= 1
        else:
            self._answers[record.host] = answers

    def failed(
        self,
        record: HostRecord,
        now: float,
        seconds: float,
        reason: str,
        retry_after: float | None = None,
        *,
        snooze: bool = True,
        in_doubt: bool = False,
    ) -> None:
        """A failure that blames the host: the host is snoozed, or parked after ``max_failures`` in
        a row.

        ``retry_after`` in seconds from now, None if the server names none. Without ``snooze`` it
        only counts towards parking. ``in_doubt``: the failures may come from single views of
        the host, which is not parked before it is probed (broken_views.py). A host on probation is
        given up until the next run.
        """
        limits = self.limits
        self._answers.pop(record.host, None)
        self._note_duration(record, seconds)
        if now - record.last_failure > limits.quiet + self._last_snooze(record):
            record.level = 0
        record.failures += 1
        record.last_failure, record.last_kind = now, reason
        record.silent_since = record.silent_since or now
        too_many = record.failures >= limits.max_failures or record.parks
        too_many = too_many and not in_doubt
        if not snooze and retry_after is None and not too_many:
            return
        record.level += 1
        wait = self._spread(self._last_snooze(record))
        if retry_after is not None and retry_after > 0:
            wait = min(retry_after, limits.retry_after_max)
        if record.state is HostState.PARKED:
            # a request that was in flight when the host was parked does not count as a probe
            record.until = max(record.until, now + wait)
        elif too_many or record.on_probation:
            self._park(record, now, wait, reason)
        else:
            # a second failure of requests in flight together never shortens a snooze
            record.change(HostState.SNOOZED, max(record.until, now + wait), reason)

    def view_failed(self, record: HostRecord, seconds: float, sent: float) -> None:
        """A failure of a view that is known to be broken: it says nothing about the host. It took
        ``seconds``, and was sent at ``sent``."""
        self._note_duration(record, seconds)
        record.response = seconds
        record.next_time = max(record.next_time, sent + self.gap_seconds(record))

    def _park(self, record: HostRecord, now: float, wait: float, reason: str) -> None:
        """A host that was parked before is on probation: one failure parks it again."""
        limits = self.limits
        why = f"{counted(record.failures, 'failure')} in a row: {reason}"
        if record.parks:
            why = f"probe {record.parks} failed: {reason}"
        record.failures = 0
        record.parks += 1
        if record.on_probation:
            record.change(HostState.PARKED, inf, f"given up: it did not answer again: {reason}")
        elif record.parks > limits.max_parks:
            record.change(HostState.PARKED, inf, f"given up: {why}")
        else:
            wait = max(wait, self._spread(limits.park * 2.0 ** (record.parks - 1)))
            record.change(HostState.PARKED, now + wait, why)

    @property
    def longest_wait(self) -> float:
        """The longest snooze, or park that ends in this run, in seconds."""
        limits = self.limits
        park = limits.park * 2.0 ** max(0, limits.max_parks - 1)
        return max(limits.retry_after_max, max(limits.backoff_max, park) * (1 + limits.jitter))

    def is_too_far(self, earliest: float, now: float) -> bool:
        """Whether a wait is longer than any real one: the URL was released while the clock was
        ahead."""
        return earliest > now + self.longest_wait

    def retry_time(self, now: float, attempts: int) -> float:
        """When a URL that failed ``attempts`` times may be retried."""
        wait = self.limits.backoff * 2.0 ** min(attempts - 1, 20)
        return now + self._spread(min(wait, self.limits.backoff_max))

    def _last_snooze(self, record: HostRecord) -> float:
        if not record.level:
            return 0.0
        return min(self.limits.backoff * 2.0 ** min(record.level - 1, 20), self.limits.backoff_max)

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + self.limits.jitter * (2 * self.random() - 1))

    @staticmethod
    def _note_duration(record: HostRecord, seconds: float) -> None:
        # new answers weigh one third: a host that turns slow is known after two or three
        old = record.slot_secs
        record.slot_secs = seconds if old is None else old + (seconds - old) / 3
