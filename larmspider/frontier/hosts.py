"""A host's record: its state, its health and when it may be asked next.

    new -> loading robots -> ready <-> snoozed until -> parked until, with a reason

A new host is asked for its robots.txt first. A snooze is short (Retry-After, backoff), a park long
or for good. Both end where they began: at ready if the host's rules are known, else at new.

The frontier alone changes a record, through politeness.py. It survives restarts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from math import inf


class HostState(IntEnum):
    """The numbers are on disk."""

    NEW = 0
    LOADING = 1
    READY = 2
    SNOOZED = 3
    PARKED = 4


_ALLOWED = {
    HostState.NEW: {HostState.LOADING, HostState.READY, HostState.PARKED},
    HostState.LOADING: {HostState.READY, HostState.SNOOZED, HostState.PARKED, HostState.NEW},
    HostState.READY: {HostState.LOADING, HostState.SNOOZED, HostState.PARKED},
    HostState.SNOOZED: {HostState.NEW, HostState.READY, HostState.SNOOZED, HostState.PARKED},
    HostState.PARKED: {HostState.NEW, HostState.READY, HostState.PARKED},
}


@dataclass(slots=True)
class HostRecord:
    """All times in seconds since the epoch, durations in seconds.

    ``until`` ends a snooze or park, inf: not in this run. ``next_time``: no request before it, by
    the gap. ``hold``: how long a fetch is expected to hold a place, None until a first answer.
    ``response``: the last response time. ``crawl_delay``: of robots.txt, None for none.
    ``robots_until``: when robots.txt expires, 0.0 if it never was loaded. ``failures`` in a row;
    ``level``: doublings of the backoff; ``last_failure``: its time; ``parks`` in a row.

    For people alone: ``last_kind`` of failure that blames the host; ``robots_answer``: what came of
    asking for robots.txt at ``robots_time``: an HTTP status, or a kind of failure; "" for never.
    """

    host: str
    scheme: str = "http"
    state: HostState = HostState.NEW
    until: float = 0.0
    reason: str = ""
    next_time: float = 0.0
    hold: float | None = None
    response: float = 0.0
    crawl_delay: float | None = None
    robots_until: float = 0.0
    failures: int = 0
    level: int = 0
    last_failure: float = 0.0
    parks: int = 0
    last_kind: str = ""
    robots_answer: str = ""
    robots_time: float = 0.0

    def change(self, state: HostState, until: float = 0.0, reason: str = "") -> None:
        """Go to another state; ValueError for one that cannot follow."""
        if state not in _ALLOWED[self.state]:
            raise ValueError(f"{self.host}: {self.state.name} cannot become {state.name}")
        self.state, self.until, self.reason = state, until, reason

    def wake(self) -> None:
        """End of a snooze or park; nothing in other states."""
        if self.state in (HostState.SNOOZED, HostState.PARKED):
            self.change(HostState.READY if self.robots_until else HostState.NEW)

    def restart(self) -> None:
        """After a restart robots.txt in flight is asked for again, and who was given up."""
        if self.state is HostState.LOADING:
            self.change(HostState.NEW)
        elif self.until == inf:
            self.parks = self.failures = 0
            self.wake()

    def move(self) -> None:
        """To another worker: robots.txt in flight is asked for again."""
        if self.state is HostState.LOADING:
            self.change(HostState.NEW)

    @property
    def robots_url(self) -> str:
        """Where its rules are. ``http://wiki/robots.txt`` for wiki:80."""
        default = ":443" if self.scheme == "https" else ":80"
        return f"{self.scheme}://{self.host.removesuffix(default)}/robots.txt"


_RECORD = struct.Struct(">BddddddIIdI")
_NONE = -1.0


def pack_host(record: HostRecord) -> bytes:
    """67 bytes and the texts."""
    fixed = _RECORD.pack(
        record.state,
        record.until,
        record.next_time,
        _NONE if record.hold is None else record.hold,
        record.response,
        _NONE if record.crawl_delay is None else record.crawl_delay,
        record.robots_until,
        record.failures,
        record.level,
        record.last_failure,
        record.parks,
    )
    asked = f"{record.robots_time:.0f}" if record.robots_time else ""
    told = (record.last_kind, record.robots_answer, asked)
    return fixed + "\0".join((record.host, record.scheme, record.reason, *told)).encode()


def unpack_host(data: bytes) -> HostRecord:
    """The reverse of pack_host(); also of one that has no texts after the reason."""
    state, until, next_time, hold, response, crawl_delay, robots_until, *rest = _RECORD.unpack_from(
        data
    )
    failures, level, last_failure, parks = rest
    host, scheme, reason, *told = data[_RECORD.size :].decode().split("\0")
    last_kind, robots_answer, asked = told or ("", "", "")
    return HostRecord(
        host=host,
        scheme=scheme,
        state=HostState(state),
        until=until,
        reason=reason,
        next_time=next_time,
        hold=None if hold == _NONE else hold,
        response=response,
        crawl_delay=None if crawl_delay == _NONE else crawl_delay,
        robots_until=robots_until,
        failures=failures,
        level=level,
        last_failure=last_failure,
        parks=parks,
        last_kind=last_kind,
        robots_answer=robots_answer,
        robots_time=float(asked or 0),
    )
