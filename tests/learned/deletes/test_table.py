"""When a page leaves the search."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.learned.deletes.table import (
    AT_LEAST,
    DAY,
    PRESENT,
    TABLE,
    Brake,
    Observation,
    decide,
    observation_of,
)

NOW = 1.8e9
STORED = FetchRecord(UrlState.STORED, time=NOW, status=200, url="http://h/a")


def seen_daily(*words: str, every: float = DAY) -> list[bool]:
    """Whether the page is taken out, after each of some visits."""
    record, now, found = STORED, NOW, []
    for word in words:
        record, delete, _ = decide(record, Observation(word), now)
        found.append(delete)
        now += every
    return found


@pytest.mark.parametrize(
    "words, every, taken_out",
    [
        (["gone"], DAY, [True]),
        (["noindex"], DAY, [True]),
        (["missing"] * 3, DAY, [False, False, True]),
        (["missing"] * 5, DAY / 4, [False] * 5),
        (["missing"] * 2, 9 * DAY, [False, False]),
        (["soft-404"] * 3, DAY, [False, False, True]),
        (["missing", "soft-404", "missing"], DAY, [False, False, True]),
        (["moved-to-one"] * 3, DAY, [False, False, True]),
        (["moved"] * 2, DAY, [False, True]),
        (["moved"] * 2, DAY / 2, [False, False]),
        (["robots"] * 2, DAY, [False, True]),
        (["missing", "missing", "same", "missing"], DAY, [False] * 4),
        (["missing", "not-modified", "missing", "missing"], DAY, [False] * 4),
        (["missing", "moved", "missing", "missing"], DAY, [False] * 4),
        (["missing", "failed", "missing", "login", "missing"], DAY, [False] * 4 + [True]),
    ],
)
def test_a_page_leaves_after_so_many_sights_over_so_long(
    words: list[str], every: float, taken_out: list[bool]
) -> None:
    assert seen_daily(*words, every=every) == taken_out


def test_visits_between_two_readings_of_robots_txt_count_once() -> None:
    record, reason = STORED, ""
    for read in (0.0, 0.0, DAY, DAY, DAY):
        record, _, reason = decide(record, Observation.ROBOTS, NOW + read)
        record = replace(record, time=max(record.time, NOW + read) + 5)
    assert reason == "disallowed 2 times over 1.0 days"


@pytest.mark.parametrize("word", sorted(set(Observation) - set(TABLE)))
def test_what_says_nothing_about_the_page_never_takes_it_out(word: str) -> None:
    """A login form, an empty answer, no answer, or the page itself, every day for a year."""
    assert not any(seen_daily(*[word] * 365))


def test_a_clock_that_was_set_back_begins_the_count_anew() -> None:
    record = decide(STORED, Observation.MISSING, NOW).record
    record, delete, _ = decide(record, Observation.MISSING, NOW - 30 * DAY)
    assert (record.confirmations, delete) == (1, False)


def test_what_was_seen_is_told_in_words() -> None:
    record = decide(STORED, Observation.MISSING, NOW).record
    assert decide(record, Observation.MISSING, NOW + DAY).reason == (
        "missing 2 times over 1.0 days; removed after 3 times over 2 days"
    )
    assert not decide(record, Observation.SAME, NOW).reason
    assert STORED.confirmations == 0


def test_every_status_means_something() -> None:
    """Of all that is not 2xx or 3xx only 404 and 410 say that a page is gone."""
    found = {status: observation_of(status) for status in range(200, 600)}
    assert {one for one, word in found.items() if word in TABLE} == {404, 410}
    assert {one for one, word in found.items() if word in PRESENT} == {304}
    assert {one for one, word in found.items() if word is None} == {*range(200, 400)} - {304}


def take_out(brake: Brake, host: str, pages: int, index: int, now: float = NOW) -> int:
    """How many pages of a host the brake lets go."""
    for number in range(index + 1):
        if brake.check(host, pages=pages, index=index, now=now):
            return number
        brake.took(host, now)
    raise AssertionError("no brake")


@pytest.mark.parametrize(
    "pages, index, most", [(100, 100, 20), (1_000, 100_000, 50), (100_000, 100_000, 2_000)]
)
def test_the_brake_holds_past_a_share_of_the_host_or_the_index(
    pages: int, index: int, most: int
) -> None:
    assert take_out(Brake(), "h:80", pages, index) == most


def test_the_brake_counts_over_all_runs_for_seven_days_and_all_hosts() -> None:
    brake = Brake()
    assert take_out(brake, "a:80", 100, 100) == AT_LEAST
    brake = Brake.unpack(brake.pack())
    assert take_out(brake, "a:80", 100, 100, NOW + 6 * DAY) == 0
    assert take_out(brake, "b:80", 100, 100, NOW + 6 * DAY) == AT_LEAST  # a host of its own
    assert take_out(brake, "c:80", 100, 100, NOW + 6 * DAY) == 0
    assert take_out(brake, "a:80", 100, 100, NOW + 7 * DAY) == AT_LEAST


def test_what_somebody_has_looked_at_does_not_count() -> None:
    brake = Brake()
    take_out(brake, "a:80", 100, 100)
    brake.approve("a:80")
    assert take_out(brake, "b:80", 100, 100) == AT_LEAST


def test_the_brake_of_one_host_never_stops_others() -> None:
    brake = Brake()
    assert take_out(brake, "a:80", 100, 1_000) == 20
    assert take_out(brake, "b:80", 100, 1_000) == 20
    assert take_out(brake, "c:80", 100, 1_000) == 0  # two hosts are much of the index


def test_visits_within_an_hour_count_once() -> None:
    record = FetchRecord(UrlState.STORED, NOW, 200)
    for day in (0.0, 0.01, 7.0, 7.01, 7.03):
        decision = decide(record, Observation.MISSING, NOW + day * DAY)
        assert not decision.delete
        record = replace(decision.record, time=NOW + day * DAY)
    assert record.confirmations == 2
    assert decide(record, Observation.MISSING, NOW + 14 * DAY).delete
