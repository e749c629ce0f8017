"""A host's record: its state, its health and the time of its next request.

    new -> loading robots -> ready <-> snoozed until -> parked until, with a reason

The first fetch of a new host is its robots.txt. A snooze is short (Retry-After, backoff), a park
long or for good. Both end where they began: at ready if the host's rules are known, else at new.

The frontier alone changes a record, through politeness.py. It survives restarts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from math import inf
from operator import attrgetter

import msgspec

from larmspider.errors import ConfigError
from larmspider.frontier.ending import Ending, Output
from larmspider.frontier.group import Group
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.slots import Slot
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import QueuedUrl, packed, unpacked
from larmspider.urls.file_urls import FILES
from larmspider.urls.host_pattern import host_matcher
from larmspider.urls.schemes import CONNECTED, PORTS


class HostState(IntEnum):
    """The numbers are stored on disk."""

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


class _KeptHost(msgspec.Struct, array_like=True):
    """The stored fields of a HostRecord. New fields go to the end, with a default."""

    host: str
    scheme: str = "http"
    state: HostState = HostState.NEW
    until: float = 0.0
    reason: str = ""
    next_time: float = 0.0
    slot_secs: float | None = None
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
    silent_since: float = 0.0


class HostRecord(_KeptHost):
    """All times in seconds since the epoch, durations in seconds.

    ``until`` ends a snooze or park, inf: not in this run. ``next_time``: no request before it, by
    the gap. ``slot_secs``: how long a fetch is expected to hold a download slot, None until a first
    answer. ``response``: the last response time. ``crawl_delay``: of robots.txt, None for none.
    ``robots_until``: when robots.txt expires, 0.0 if it never was loaded. ``failures`` in a row;
    ``level``: doublings of the backoff; ``last_failure``: its time; ``parks`` in a row.
    ``silent_since``: the first failure that no answer came after, 0.0 for none.

    Shown to people, never decided by: ``last_kind`` of failure that blamed the host;
    ``robots_answer``: the HTTP status or kind of failure when robots.txt was last requested, at
    ``robots_time``; "" for never.
    """

    on_probation: bool = False
    """The host was parked when the run before ended: the first request shows whether it answers,
    and nothing else is fetched meanwhile. Not kept."""
    lacks_share: bool = False
    """This refresh has found that a share or folder of it is away. Not kept."""

    def change(self, state: HostState, until: float = 0.0, reason: str = "") -> None:
        """Raises ValueError for a state that cannot follow this one."""
        if state not in _ALLOWED[self.state]:
            raise ValueError(f"{self.host}: {self.state.name} cannot become {state.name}")
        self.state, self.until, self.reason = state, until, reason

    def wake(self) -> None:
        """End a snooze or park; nothing happens in other states."""
        if self.state in (HostState.SNOOZED, HostState.PARKED):
            self.change(HostState.READY if self.robots_until else HostState.NEW)

    def restart(self) -> None:
        """Begin a new run. A robots.txt that was in flight is requested again. A host that was
        given up, or that waits for its login, is retried: the password may have changed."""
        self.on_probation = self.is_silent
        if self.state is HostState.LOADING:
            self.change(HostState.NEW)
        elif self.until == inf or self.waits_for_login:
            self.parks = self.failures = self.level = 0
            self.wake()

    @property
    def is_silent(self) -> bool:
        """Whether the host is parked because it does not answer. Never true of files: one folder
        may be on a file server that is down, and others not."""
        return self.is_away and self.host != FILES

    @property
    def is_away(self) -> bool:
        """As `is_silent`, of files too."""
        return self.state is HostState.PARKED and self.parks > 0 and self.silent_since > 0

    @property
    def is_source(self) -> bool:
        """Whether the host is files or the server of a connector, not a web site."""
        return self.host == FILES or self.scheme in CONNECTED

    @property
    def waits_for_login(self) -> bool:
        """Whether the host waits because the crawl is not signed in there."""
        return self.state is HostState.PARKED and self.reason.startswith("login")

    def move(self) -> None:
        """Another worker takes over the host: robots.txt in flight is requested again."""
        if self.state is HostState.LOADING:
            self.change(HostState.NEW)

    @property
    def robots_url(self) -> str:
        """``http://wiki/robots.txt`` for wiki:80."""
        return origin_of(self.scheme, self.host) + "/robots.txt"


_kept_of = attrgetter(*_KeptHost.__struct_fields__)
_decode = msgspec.msgpack.Decoder(HostRecord).decode


def pack_host(record: HostRecord) -> bytes:
    """A record as msgpack, some 90 bytes."""
    return packed(_KeptHost(*_kept_of(record)))


def unpack_host(data: bytes) -> HostRecord:
    return unpacked(HostRecord, _decode, data)


OBEY, IGNORE = NOFOLLOW = ("obey", "ignore")
"""HostPace.nofollow."""
_PATTERN = re.compile(r"[^\x00-\x20\x7f-\U0010ffff/\\@#%]+")


@dataclass(frozen=True, slots=True)
class HostPace:
    """Settings for the hosts that match ``pattern``; None: not set here.

        HostPace("wiki*", delay=10.0, window=(22, 6))      # one request in ten seconds, at night

    ``pattern`` is compared with ``host:port`` and with the host alone, ignoring case: ``*`` stands
    for any characters, ``?`` for one. ``delay`` in seconds, ``connections`` at a time, ``budget``
    in stored pages, ``window`` from and to in hours of the local day (0..24; (22, 6) passes
    midnight). ``nofollow`` is ``obey`` or ``ignore``: whether nofollow of the host's pages counts.
    Raises ConfigError.
    """

    pattern: str = "*"
    delay: float | None = None
    connections: int | None = None
    budget: int | None = None
    window: tuple[float, float] | None = None
    nofollow: str | None = None

    def __post_init__(self) -> None:
        bad = None
        if self.pattern != FILES and not _PATTERN.fullmatch(self.pattern):
            bad = (
                "it matches no host: expected host or host:port, with * and ?"
                f" (punycode for other letters), or {FILES}"
            )
        elif self.delay is not None and not _is_number(self.delay, 0):
            bad = f"delay {self.delay!r}: expected seconds >= 0"
        elif self.connections is not None and not _is_whole(self.connections, 1):
            bad = f"connections {self.connections!r}: expected an integer >= 1"
        elif self.budget is not None and not _is_whole(self.budget, 0):
            bad = f"budget {self.budget!r}: expected pages >= 0"
        elif self.window is not None and not _is_window(self.window):
            bad = f"window {self.window!r}: expected two different hours from 0 to 24"
        elif self.nofollow is not None and self.nofollow not in NOFOLLOW:
            bad = f"nofollow {self.nofollow!r}: expected one of {', '.join(NOFOLLOW)}"
        if bad:
            raise ConfigError(f"rule for host {self.pattern!r}: {bad}")

    def matches(self, host: str) -> bool:
        """``wiki`` and ``wiki:80`` both match wiki:80."""
        matches = host_matcher(self.pattern)
        return bool(matches(host) or matches(host.rpartition(":")[0]))

    def opens(self, now: float, hour_of: Callable[[float], float]) -> float:
        """``now`` inside the window, else the time when the window opens next."""
        if self.window is None:
            return now
        start, end = self.window
        hour = hour_of(now)
        inside = start <= hour < end if start <= end else hour >= start or hour < end
        return now if inside else now + (start - hour) % 24 * 3600

    def why_closed(self, at: float, hour_of: Callable[[float], float]) -> str:
        """``outside its hours, 22 to 6``; "" if the window is open at that time."""
        if self.window is None or self.opens(at, hour_of) <= at:
            return ""
        return "outside its hours, {:g} to {:g}".format(*self.window)


def _is_number(value: object, least: float, most: float = 1e9) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value <= most


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_window(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(_is_number(hour, 0, 24) for hour in value)
        and (value[0] % 24 != value[1] % 24 or (value[0], value[1]) == (0, 24))
    )


def local_hour(now: float) -> float:
    """The hour of the local day with its fraction: 14.5 for half past two."""
    local = time.localtime(now)
    return local.tm_hour + local.tm_min / 60 + (local.tm_sec + now % 1) / 3600


class HostRules:
    """LARM_HOST_RULES: for each field the first matching rule that sets it counts, then
    ``default``."""

    def __init__(self, rules: Sequence[HostPace], default: HostPace) -> None:
        self._rules = (*rules, default)
        self.of = lru_cache(maxsize=16_384)(self._of)

    def _of(self, host: str) -> HostPace:
        found = HostPace()
        for rule in self._rules:
            if rule is self._rules[-1] or rule.matches(host):
                found = replace(
                    found,
                    delay=rule.delay if found.delay is None else found.delay,
                    connections=found.connections or rule.connections,
                    budget=rule.budget if found.budget is None else found.budget,
                    window=found.window or rule.window,
                    nofollow=found.nofollow or rule.nofollow,
                )
        return found


@dataclass(slots=True, eq=False)
class Host:
    """A host at run time.

    ``next_fetch_time`` and ``ticket`` belong to ReadyQueue (``ticket`` is 0 while the host is not
    in it), ``demand`` to SlotPool, ``turn`` to dispatch.py. ``group`` is None if hosts are not
    grouped, and until the host's address is known. A host has no fetch ahead while it is
    ``resolving`` (waits for its address), ``leaving`` (for another worker), ``paused`` (by the
    operator) or ``held`` (too many bytes of its documents wait for readers). ``worked`` is the URL
    of the page that was stored last in this run.
    """

    record: HostRecord
    rule: HostPace
    ticket: int = 0
    next_fetch_time: float = 0.0
    demand: int = 0
    in_flight: int = 0
    group: Group[Host] | None = field(default=None, repr=False)
    resolving: bool = False
    leaving: bool = False
    paused: bool = False
    held: bool = False
    turn: int = 0
    worked: str = field(default="", repr=False)


@dataclass(slots=True, eq=False)
class Lease:
    """One fetch that the frontier handed out: of a page (``entry``), or of its own (``own``).

    ``since``: when it was handed out. ``slot`` is held until the response is complete, then None;
    ``reached`` is a time by which the request had come to its host. ``disallowed``: robots.txt does
    not allow the page any more. ``judged``: the answer has counted for or against the host.
    ``holder`` is the Request that carries the lease: others may have a copy of its meta, but only
    this one may end the lease. ``requeued``: the lease was released, so that Scrapy need not
    schedule its Request again. ``overdue``: the fetch was cancelled, to free its slot. ``proof``:
    the number of proofs of a valid sign-in when the request was sent; None for a host without a
    login. ``unrendered``: the error for which Chromium could not say what
    the page is. ``output`` and ``ending``: see ending.py.
    """

    url: str
    host: Host = field(repr=False)
    entry: QueuedUrl | None
    since: float
    slot: Slot | None = field(repr=False)
    own: OwnFetch | None = field(default=None, repr=False)
    disallowed: bool = field(default=False, repr=False)
    judged: bool = field(default=False, repr=False)
    reached: float = field(default=0.0, repr=False)
    holder: object | None = field(default=None, repr=False)
    requeued: bool = field(default=False, repr=False)
    overdue: bool = field(default=False, repr=False)
    proof: int | None = field(default=None, repr=False)
    unrendered: Exception | None = field(default=None, repr=False)
    output: Output | None = field(default=None, repr=False)
    ending: Ending | None = field(default=None, repr=False)

    @property
    def kind(self) -> FetchKind:
        return FetchKind.PAGE if self.own is None else self.own.kind


def name_of(host: str) -> str:
    """The name that is looked up: ``wiki`` for wiki:80, ``[::1]`` for [::1]:80."""
    return host if host == FILES else host.rpartition(":")[0] or host


def origin_of(scheme: str, host: str) -> str:
    """``http://wiki`` for wiki:80; of files it is their host."""
    default = PORTS.get(f"{scheme}:", ":80")
    return host if host == FILES else f"{scheme}://{host.removesuffix(default)}"


class HostTable(dict[str, Host]):
    """All hosts of the crawl by name, in memory (some 1 KB each), and which records have changed.

    host = table.of("wiki:80")    # made as a new one if there is none yet
    host.record.next_time = ...
    table.touch(host)             # save() hands its record to the backend
    """

    def __init__(self, backend: Backend, pace_of: Callable[[str], HostPace]) -> None:
        self._backend, self._pace_of = backend, pace_of
        self._changed: set[str] = set()

    def of(self, name: str, scheme: str = "http") -> Host:
        """The host of that name; a new one's robots.txt is fetched by ``scheme``."""
        host = self.get(name)
        return self._put(HostRecord(name, scheme)) if host is None else host

    def _put(self, record: HostRecord) -> Host:
        host = self[record.host] = Host(record, self._pace_of(record.host))
        self._changed.add(record.host)
        return host

    def touch(self, host: Host) -> None:
        """The host's record has changed."""
        self._changed.add(host.record.host)

    def load(self) -> list[Host]:
        """Load the records of the last commit, once after a restart: of each host that has or had
        URLs."""
        for data in self._backend.hosts().values():
            record = unpack_host(data)
            record.restart()
            self._put(record)
        return [self.of(name) for name in self._backend.host_names()]

    def enter(self, name: str, data: bytes | None, *, new_run: bool) -> Host:
        """Add a host that another worker had, with its record; None if it has no record yet.

        ``new_run``: hosts that were given up are retried.
        """
        record = HostRecord(name) if data is None else unpack_host(data)
        record.restart() if new_run else record.move()
        host = self[name] = Host(record, self._pace_of(name))
        return host

    def leave(self, name: str) -> None:
        """Another worker has the host; its record was committed."""
        del self[name]
        self._changed.discard(name)

    def silent(self, until: float) -> dict[str, float]:
        """Origins of the hosts that have not answered since ``until`` or before, and since when."""
        return {
            origin_of(host.record.scheme, name): host.record.silent_since
            for name, host in self.items()
            if 0.0 < host.record.silent_since <= until and not host.record.is_source
        }

    def save(self) -> None:
        """Give the records that changed since the last call to the backend."""
        changed, self._changed = self._changed, set()
        self._backend.put_hosts({name: pack_host(self[name].record) for name in changed})
