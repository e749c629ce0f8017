"""When a crawl is due: a sentence, a cron expression or `watch` -> the next time.

    due = Timetable.parse("every day at 02:00", "Europe/Berlin")
    due.after(datetime.now(UTC))

CronSim finds the times. It treats a clock change as Debian's cron does: a time of day that is
skipped is due right after the change, and a time of day that comes twice is due once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Self
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from larmspider.errors import ConfigError

WATCH = "watch"
BY_HAND = ""
MAX_LENGTH = 100
"""Characters of a schedule; the longest sentence has 35."""
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_AT = r"at ([01]?\d|2[0-3]):([0-5]\d)"
_SENTENCES: Mapping[str, Callable[[re.Match[str]], str]] = {
    r"every (5|10|15|20|30) minutes": lambda m: f"*/{m[1]} * * * *",
    r"every hour": lambda _: "0 * * * *",
    r"every hour at :([0-5]\d)": lambda m: f"{int(m[1])} * * * *",
    r"every (2|3|4|6|8|12) hours": lambda m: f"0 */{m[1]} * * *",
    rf"every day {_AT}": lambda m: f"{int(m[2])} {int(m[1])} * * *",
    rf"every weekday {_AT}": lambda m: f"{int(m[2])} {int(m[1])} * * 1-5",
    rf"every ({'|'.join(_DAYS)}) {_AT}": lambda m: (
        f"{int(m[3])} {int(m[2])} * * {_DAYS.index(m[1])}"
    ),
    rf"every month on day ([1-9]|1\d|2[0-8]) {_AT}": lambda m: (
        f"{int(m[3])} {int(m[2])} {m[1]} * *"
    ),
}
EXAMPLES = (
    "every 15 minutes", "every hour", "every hour at :20", "every 6 hours", "every day at 02:00",
    "every weekday at 22:30", "every sunday at 04:00", "every month on day 1 at 03:00",
)  # fmt: skip
"""One example a sentence."""
EXPECTED = (
    "expected a sentence such as 'every day at 02:00', 'every 6 hours', 'every sunday at 04:00',"
    " 'every month on day 1 at 03:00', five fields of cron, 'watch', or nothing for a crawl that"
    " is started by hand"
)


@dataclass(frozen=True, slots=True)
class Timetable:
    """``cron`` is "" for a crawl that has no times: by hand, or `watch`."""

    cron: str
    zone: ZoneInfo
    watch: bool = False

    @classmethod
    def parse(cls, text: str, time_zone: str) -> Self:
        """Raises ConfigError for a schedule, or a time zone, that cannot be."""
        zone = zone_of(time_zone)
        words = " ".join(text.lower().split())
        if len(text) > MAX_LENGTH:
            raise ConfigError(f"{text[:30]!r}... has {len(text):,} characters: {EXPECTED}")
        if words in (WATCH, BY_HAND):
            return cls("", zone, words == WATCH)
        for sentence, cron_of in _SENTENCES.items():
            if found := re.fullmatch(sentence, words):
                return cls(cron_of(found), zone)
        if len(words.split()) != 5:
            raise ConfigError(f"{text!r} is not a schedule: {EXPECTED}")
        try:
            next(CronSim(words, datetime(2000, 1, 1, tzinfo=UTC)))
        except CronSimError as error:
            raise ConfigError(f"{text!r}: {error}: {EXPECTED}") from None
        except StopIteration:
            raise ConfigError(f"{text!r} is never due: {EXPECTED}") from None
        return cls(words, zone)

    def after(self, time: datetime) -> datetime | None:
        """The first time after ``time``, in UTC; None for a crawl without times."""
        if not self.cron:
            return None
        found = next(CronSim(self.cron, time.astimezone(self.zone)), None)
        return None if found is None else found.astimezone(UTC)


def opening(window: Sequence[int] | None, time: datetime, zone: ZoneInfo) -> datetime:
    """The first time from ``time`` on that lies in the window."""
    if window is None or in_window((window[0], window[1]), time, zone):
        return time
    local = time.astimezone(zone)
    opens = local.replace(hour=window[0], minute=0, second=0, microsecond=0)
    return (opens if opens > local else opens + timedelta(days=1)).astimezone(UTC)


def zone_of(name: str) -> ZoneInfo:
    """Raises ConfigError for a name that is not a time zone."""
    if name not in _zones():
        lower = {zone.lower(): zone for zone in _zones()}
        found = get_close_matches(name.lower()[:60], lower, 1, 0.8)
        near = lower[found[0]] if found else ""
        meant = f"did you mean {near}? " if near else ""
        raise ConfigError(
            f"time zone {name[:60]!r}: {meant}Expected a name of the IANA database, such as"
            " Europe/Berlin or UTC"
        )
    return ZoneInfo(name)


def _zones() -> set[str]:
    if not _ZONES:
        _ZONES.update(available_timezones(), ("UTC",))
    return _ZONES


_ZONES: set[str] = set()


def in_window(window: tuple[int, int] | None, time: datetime, zone: ZoneInfo) -> bool:
    """Whether a time lies in the hours from the first to the second of ``window``, which may span
    midnight; no window is the whole day.

    >>> in_window((22, 6), datetime(2026, 1, 1, 23, tzinfo=UTC), ZoneInfo("UTC"))
    True
    """
    if window is None:
        return True
    begins, ends = window
    hour = time.astimezone(zone).hour
    return begins <= hour < ends if begins < ends else hour >= begins or hour < ends
