"""Schedules as people say them, and both hours of a clock change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from larmspider.errors import ConfigError
from larmspider.server.config.schedule import EXAMPLES, Timetable, in_window

BERLIN = ZoneInfo("Europe/Berlin")


def times(text: str, begin: datetime, number: int, zone: str = "Europe/Berlin") -> list[str]:
    """The next times in local time, with the offset from UTC."""
    timetable, found = Timetable.parse(text, zone), []
    time: datetime | None = begin
    for _ in range(number):
        assert time is not None
        time = timetable.after(time)
        assert time is not None
        found.append(time.astimezone(ZoneInfo(zone)).strftime("%a %d %H:%M %z"))
    return found


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("every 15 minutes", "Wed 01 00:15", "Wed 01 00:30"),
        ("every hour", "Wed 01 01:00", "Wed 01 02:00"),
        ("every hour at :20", "Wed 01 00:20", "Wed 01 01:20"),
        ("every 6 hours", "Wed 01 06:00", "Wed 01 12:00"),
        ("Every  DAY at 2:00", "Wed 01 02:00", "Thu 02 02:00"),
        ("every weekday at 22:30", "Wed 01 22:30", "Thu 02 22:30"),
        ("every sunday at 04:00", "Sun 05 04:00", "Sun 12 04:00"),
        ("every month on day 28 at 03:00", "Tue 28 03:00", "Tue 28 03:00"),
        ("10 4 * * 1,3", "Wed 01 04:10", "Mon 06 04:10"),
    ],
)
def test_the_next_times(text: str, first: str, second: str) -> None:
    """Each sentence works in any case; so does cron."""
    begin = datetime(2026, 7, 1, tzinfo=BERLIN)
    found = [time[:12] for time in times(text, begin, 2)]
    if "month" in text:
        assert found == [first, "Fri 28 03:00"]
    else:
        assert found == [first, second]


def test_all_examples_are_sentences() -> None:
    """The docs and the form show them."""
    for text in EXAMPLES:
        assert Timetable.parse(text, "UTC").cron


def test_watch_and_by_hand_have_no_times() -> None:
    """One always runs, the other never by itself."""
    assert Timetable.parse("watch", "UTC").after(datetime.now(UTC)) is None
    assert Timetable.parse("watch", "UTC").watch
    assert not Timetable.parse("  ", "UTC").watch


@pytest.mark.parametrize(
    ("text", "zone", "told"),
    [
        ("every day at 25:00", "UTC", "is not a schedule"),
        ("every 7 minutes", "UTC", "is not a schedule"),
        ("0 0 30 2 *", "UTC", "Bad day-of-month|is never due"),
        ("* * * *", "UTC", "is not a schedule"),
        ("x" * 500, "UTC", "500 characters"),
        ("watch", "Mars/Base", "'Mars/Base': Expected a name of the IANA database"),
        ("watch", "../../etc/passwd", "IANA"),
        ("watch", "", "IANA"),
    ],
)
def test_a_schedule_that_cannot_be(text: str, zone: str, told: str) -> None:
    """The error names the accepted values."""
    with pytest.raises(ConfigError, match=told):
        Timetable.parse(text, zone)


@pytest.mark.parametrize("minute", [0, 30, 59])
@pytest.mark.parametrize("hour", [1, 2, 3])
def test_each_day_has_one_run_over_both_clock_changes(hour: int, minute: int) -> None:
    """Berlin skips 02:00 to 03:00 on 29 March 2026, and has it twice on 25 October 2026."""
    timetable = Timetable.parse(f"every day at {hour:02}:{minute:02}", "Europe/Berlin")
    for month, day in ((3, 27), (10, 23)):
        time: datetime | None = datetime(2026, month, day, tzinfo=BERLIN)
        found = []
        for _ in range(5):
            assert time is not None
            time = timetable.after(time)
            assert time is not None
            found.append(time)
        days = [time.astimezone(BERLIN).day for time in found]
        assert days == [day, day + 1, day + 2, day + 3, day + 4]
        assert all(timedelta(hours=22) <= b - a <= timedelta(hours=26) for a, b in pairwise(found))


def test_every_hour_is_every_hour_over_a_clock_change() -> None:
    """The hour that comes twice is two hours."""
    begin = datetime(2026, 10, 24, 23, 30, tzinfo=UTC)
    timetable = Timetable.parse("every hour", "Europe/Berlin")
    first = timetable.after(begin)
    assert first is not None
    second = timetable.after(first)
    assert second is not None
    assert second - first == timedelta(hours=1)


def test_windows() -> None:
    """Also over midnight; an hour belongs to the window until its end."""
    at = {hour: datetime(2026, 1, 1, hour, 59, tzinfo=UTC) for hour in (5, 6, 12, 21, 22, 23)}
    night = {hour for hour, time in at.items() if in_window((22, 6), time, ZoneInfo("UTC"))}
    day = {hour for hour, time in at.items() if in_window((6, 22), time, ZoneInfo("UTC"))}
    assert (night, day) == ({5, 22, 23}, {6, 12, 21})
    assert in_window(None, at[5], ZoneInfo("UTC"))
    assert in_window((22, 6), at[21], BERLIN)  # 22:59 there
