"""When a missing page leaves the search: by what visits saw, how often and for how long.

    decision = decide(record, Observation.MISSING, now)     # a 404, the first one: keep it
    decision = decide(decision.record, Observation.MISSING, now + 3 * DAY)
    brake.check("wiki:80", pages=1_000, index=50_000, now=now)      # "": it may be removed

====================================  ==============  ==========  =================================
observation                           confirmations   over        then
====================================  ==============  ==========  =================================
410                                   1               -           out of the search
noindex                               1               -           not indexed any more
out of scope by a narrower restrict   1               -           when the operator approves
404, soft 404                         3               2 days      out of the search
redirect to a page that is stored     2               1 day       out of the search, past the brake
redirect of many pages to one         3               2 days      out of the search
robots.txt: a Disallow line in a 200  2               1 day       out of the search
401, 403, not for everybody before    2               7 days      out of the search
other 401, 403, login form, empty     never by                    the page stays as it was
200, 429, 5xx, no answer              themselves
====================================  ==============  ==========  =================================

The brake limits confirmed removals to max(20, 5% of a host's pages) and max(20, 2% of the index) in
7 days. The others wait for the operator. A host whose canaries fail (the start page and the pages
with the most links to them) has no deletes at all. A host that has not answered for DEAD_SECS keeps
its pages, and the operator gets a notice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from larmspider.formatting import counted
from larmspider.frontier.storage.records import FetchRecord

DAY = 86_400.0
WINDOW = 7 * DAY
"""The time over which the brake counts."""
AT_LEAST = 20
"""Pages of a host, and of the index, that may be removed in this time."""
HOST_SHARE, INDEX_SHARE = 0.05, 0.02
"""The share of pages that may be removed in this time, if that is more than AT_LEAST."""
CANARIES = 6
"""The start page, and the five that most pages link to."""
EARLY_SECS = DAY / 4
"""A visit that confirms comes a day after the last one, less this: a timer's runs differ, and so do
the hours at which they come to a page."""
SAME_TIME_SECS = 3_600.0
"""Visits within an hour count once: a page is looked at again as soon as nothing names it any more,
or as its host's canaries are well."""
OLD_SECS = 90 * DAY
"""The count restarts after a longer time without a visit, or with one observation before it: the
clock may have been wrong."""
DEAD_SECS = 90 * DAY
"""After 90 days without an answer of a host the operator decides about its pages."""


class Observation(StrEnum):
    """The result of a revisit. The words are in fetch.log and deleted.log."""

    CHANGED = "changed"
    SAME = "same"
    """A 200 with the same text."""
    NOT_MODIFIED = "not-modified"
    """A 304."""
    GONE = "gone"
    """A 410."""
    MISSING = "missing"
    """A 404."""
    SOFT_404 = "soft-404"
    """A 200 with the text of the host's error page."""
    MOVED = "moved"
    """A redirect to a page that is stored."""
    MOVED_TO_ONE = "moved-to-one"
    """A redirect of many pages to one: the root, an error page."""
    NOINDEX = "noindex"
    ROBOTS = "robots"
    """A Disallow line in a robots.txt with status 200."""
    SCOPE = "scope"
    """It is out of scope, because the scope was narrowed."""
    LOCKED = "locked"
    """401, 403, 407, 451."""
    DENIED = "denied"
    """The same on a host whose pages are not for everybody (LARM_SITES_FILE has credentials)."""
    LOGIN = "login"
    """A login form where there was none, or a redirect to it."""
    EMPTY = "empty"
    """A 200 without text where there was some, or another 2xx, whose content is not the page."""
    FAILED = "failed"
    """Any other status from 400 on, or no answer. FailedFetch.kind says which."""


class Rule(NamedTuple):
    """Observations in a row, and least seconds between the first and the last."""

    confirmations: int
    spread: float


TABLE: Mapping[Observation, Rule] = {
    Observation.GONE: Rule(1, 0.0),
    Observation.NOINDEX: Rule(1, 0.0),
    Observation.SCOPE: Rule(1, 0.0),
    Observation.MISSING: Rule(3, 2 * DAY),
    Observation.SOFT_404: Rule(3, 2 * DAY),
    Observation.MOVED_TO_ONE: Rule(3, 2 * DAY),
    Observation.MOVED: Rule(2, DAY),
    Observation.ROBOTS: Rule(2, DAY - 60),  # robots.txt was read twice; its time is in seconds
    Observation.DENIED: Rule(2, 7 * DAY),
}
"""All other observations keep the page."""
PRESENT = frozenset({Observation.CHANGED, Observation.SAME, Observation.NOT_MODIFIED})
"""Observations of a page that is there. Earlier missing visits are then forgotten."""
_AS_ONE = frozenset({Observation.MISSING, Observation.SOFT_404, Observation.GONE})
"""Observations that count together: a server may say the same in several ways."""

_IN_WORDS = {
    Observation.ROBOTS: "disallowed",
    Observation.SOFT_404: "an error page",
    Observation.MOVED_TO_ONE: "moved to the page of many",
}
_KEPT = re.compile("[;:] (?:kept|removed after)")
_STATUS = {404: Observation.MISSING, 410: Observation.GONE} | dict.fromkeys(
    (401, 403, 407, 451), Observation.LOCKED
)


def observation_of(status: int) -> Observation | None:
    """The meaning of an HTTP status; None for 2xx and 3xx, because the page decides there."""
    if status == 304:
        return Observation.NOT_MODIFIED
    return _STATUS.get(status, Observation.FAILED) if status >= 400 else None


class Decision(NamedTuple):
    """``record``: the new record. ``delete``: whether the page is to be removed, if the brake
    allows it. ``reason``: the reason for people, "" if the page is there."""

    record: FetchRecord
    delete: bool
    reason: str


def decide(record: FetchRecord, seen: Observation, now: float) -> Decision:
    """Decide about a stored page after a revisit. ``record`` is not changed.

    An answer that shows neither the page nor its absence (a login form, a 503) leaves the count
    unchanged: it confirms nothing, and a page that comes back after it does not count as new."""
    if seen in PRESENT:
        return Decision(
            replace(record, missing_since=0.0, confirmations=0, missing_as=""), False, ""
        )
    rule = TABLE.get(seen)
    if rule is None:
        return Decision(record, False, f"{seen}: kept, however often")
    goes_on = record.missing_as == seen or {record.missing_as, seen} <= _AS_ONE
    last = record.missing_since if record.confirmations == 1 else record.time
    is_old = last > 0 and now - last > OLD_SECS
    if (
        not goes_on or is_old or record.missing_since > now
    ):  # a clock that was set back restarts the count
        since, times = now, 1
    else:
        if seen is Observation.ROBOTS:  # visits between two readings of robots.txt count once
            is_another = now > record.time
        else:
            is_another = not 0 <= now - record.time < SAME_TIME_SECS
        since, times = record.missing_since, record.confirmations + is_another
    record = replace(record, missing_since=since, confirmations=times, missing_as=str(seen))
    delete = times >= rule.confirmations and now - since >= rule.spread
    return Decision(record, delete, _sentence(seen, times, now - since, rule, delete=delete))


def confirmed_from(record: FetchRecord) -> float:
    """The time from which a visit may confirm that a page, which its last visit missed, is gone;
    0.0 if nothing is to be confirmed. The last visit that a rule needs is made after the rule's
    time. A page that is missing by its rule, but is kept by the canaries or the brake, is visited
    less and less often, at least once a week."""
    rule = TABLE.get(Observation(record.missing_as)) if record.missing_as else None
    if rule is None or record.missing_as == Observation.SCOPE:
        return 0.0
    beyond = max(0, record.confirmations - rule.confirmations)
    at = record.time + min(WINDOW, DAY * (1 + beyond)) - EARLY_SECS
    if record.confirmations + 1 >= rule.confirmations:
        at = max(at, record.missing_since + rule.spread)
    return at


def is_confirmed(record: FetchRecord) -> bool:
    """Whether the page was to be removed after the last visit."""
    if not record.missing_as:
        return False
    rule = TABLE[Observation(record.missing_as)]
    over = record.time - record.missing_since
    return record.confirmations >= rule.confirmations and over >= rule.spread


def _sentence(seen: Observation, times: int, over: float, rule: Rule, *, delete: bool) -> str:
    """``missing 2 times over 1.0 days; removed after 3 times over 2 days``."""
    said = in_words(seen)
    so_far = f"{said} {counted(times, 'time')} over {over / DAY:.1f} days"
    if delete or rule.confirmations == 1:
        return so_far if rule.confirmations > 1 else str(seen)
    least = f"{counted(rule.confirmations, 'time')} over {counted(round(rule.spread / DAY), 'day')}"
    return f"{so_far}; removed after {least}"


def approved(reason: str) -> str:
    """The reason for a removal that an operator approved before its time.

    >>> approved("missing 1 time over 0.0 days; removed after 3 times over 2 days")
    'missing 1 time over 0.0 days; approved by the operator'
    >>> approved("locked: kept, however often")
    'locked; approved by the operator'
    """
    return f"{_KEPT.split(reason, maxsplit=1)[0]}; approved by the operator"


def in_words(seen: Observation) -> str:
    """An observation in words: ``missing``, ``disallowed``."""
    return _IN_WORDS.get(seen, str(seen))


@dataclass(slots=True)
class _Taken:
    """Pages of a host that were removed, by day since the epoch."""

    days: dict[int, int]

    def within(self, now: float) -> int:
        today, length = int(now // DAY), int(WINDOW // DAY)
        self.set_back(today)
        return sum(number for day, number in self.days.items() if today - day < length)

    def set_back(self, today: int) -> None:
        """Days to come, by a clock that was set back, count as today: else for years."""
        if ahead := [day for day in self.days if day > today]:
            self.days[today] = self.days.get(today, 0) + sum(map(self.days.pop, ahead))


class Brake:
    """How many pages were removed lately, over all runs.

    Approved removals do not count (see ``approve``).
    """

    def __init__(self, taken: Mapping[str, Mapping[int, int]] | None = None) -> None:
        self._taken = {host: _Taken(dict(days)) for host, days in (taken or {}).items()}

    def __repr__(self) -> str:
        return f"<Brake {sum(sum(one.days.values()) for one in self._taken.values())} taken out>"

    def lately(self, now: float, host: str = "") -> int:
        """How many pages were removed within 7 days, of a host or of all."""
        some = [one for name, one in self._taken.items() if host in ("", name)]
        return sum(one.within(now) for one in some)

    def check(self, host: str, *, pages: int, index: int, now: float) -> str:
        """Why a page of a host may not be removed now, "" if it may. ``pages`` of the host and
        ``index`` of all hosts include the pages that were removed lately. The other host with the
        most removals does not count, so that one host alone never stops the others."""
        others = (one.within(now) for name, one in self._taken.items() if name != host)
        most = max(others, default=0)
        for number, whole, share, what in (
            (self.lately(now, host), pages, HOST_SHARE, "this host"),
            (self.lately(now) - most, index, INDEX_SHARE, "the index"),
        ):
            limit = max(AT_LEAST, int(share * whole))
            if number >= limit:
                return f"{counted(number, 'page')} of {what} left within 7 days, limit {limit}"
        return ""

    def took(self, host: str, now: float) -> None:
        """Count a removal without approval."""
        taken, today = self._taken.setdefault(host, _Taken({})), int(now // DAY)
        taken.days[today] = taken.days.get(today, 0) + 1
        for day in [one for one in taken.days if today - one >= WINDOW // DAY]:
            del taken.days[day]

    def approve(self, host: str) -> None:
        """The operator has looked at this host: its count restarts."""
        self._taken.pop(host, None)

    def pack(self, host: str = "") -> bytes:
        """The counts of one host, or of all hosts."""
        taken = self._taken.items()
        days = {of: one.days for of, one in taken if host in ("", of)}
        return msgspec.msgpack.encode(BrakeNote(days))

    def enter(self, data: bytes | None) -> None:
        """Hosts come from another worker, with what it has packed."""
        if data:
            self._taken |= Brake.unpack(data)._taken

    def leave(self, host: str) -> None:
        """Another worker has the host now."""
        self._taken.pop(host, None)

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        """Restore the brake from its note; None if nothing was removed."""
        return cls(msgspec.msgpack.decode(data, type=BrakeNote).taken if data else None)


class BrakeNote(msgspec.Struct, array_like=True):
    """The note ``brake``: by host and day the pages that were removed. New fields go to the end,
    with a default."""

    taken: dict[str, dict[int, int]] = {}
