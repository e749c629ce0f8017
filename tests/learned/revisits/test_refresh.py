"""The value of a visit: what is learned of a page's changes, and what a budget does with it."""

from __future__ import annotations

import random

import pytest

from larmspider.learned.revisits.refresh import (
    DAY,
    FIRST_RATE,
    LATEST,
    SOONEST,
    Budget,
    Pace,
    learned,
    prior,
    until_worth,
    value,
)


def test_a_visit_is_worth_more_the_longer_one_waits() -> None:
    worth = [value(days * DAY, *prior(FIRST_RATE)) for days in range(100)]
    assert worth[0] == 0.0
    assert worth == sorted(worth)


@pytest.mark.parametrize("a", [0.3, 0.999_999_9, 1.0, 1.000_000_1, 4.0])
def test_no_shape_is_a_seam(a: float) -> None:
    nearby = value(9 * DAY, a * 1.001, 30 * DAY)
    assert value(9 * DAY, a, 30 * DAY) == pytest.approx(nearby, rel=0.01)


def test_a_page_is_due_when_its_visit_is_worth_theta() -> None:
    a, b = prior(FIRST_RATE)
    seconds = until_worth(value(20 * DAY, a, b), a, b)
    assert seconds == pytest.approx(20 * DAY, rel=0.02)
    assert until_worth(0.0, a, b) == SOONEST
    assert until_worth(1e12, a, b) == LATEST


def test_rates_that_differ_by_orders_of_magnitude_are_learned() -> None:
    """A news index beside an archive that changes once in ten years; visits 42 hours apart."""
    rng = random.Random(4)
    found = {}
    for hours in (6, 240, 87_600):
        a = b = 0.0
        for _ in range(40):
            passed = rng.uniform(0.5, 3) * DAY
            changed = rng.random() < 1 - 2.718281828 ** (-passed / (hours * 3_600))
            a, b = learned(a, b, passed=passed, changed=changed)
        found[hours] = b / a / 3_600
    assert found[6] < 42
    assert 100 < found[240] < 600
    assert found[87_600] > 1_500
    theta = value(10 * DAY, *prior(FIRST_RATE))
    due = {hours: until_worth(theta, 1.0, mean * 3_600) for hours, mean in found.items()}
    assert due[240] < due[87_600]


def test_last_modified_says_more_than_that_it_changed() -> None:
    long_ago = learned(0.0, 0.0, passed=30 * DAY, changed=True, since_change=29 * DAY)
    lately = learned(0.0, 0.0, passed=30 * DAY, changed=True, since_change=0.0)
    unknown = learned(0.0, 0.0, passed=30 * DAY, changed=True)
    assert long_ago[0] == lately[0] == unknown[0]
    assert lately[1] < unknown[1] < long_ago[1]


def test_what_was_long_ago_is_forgotten() -> None:
    a, b = learned(50.0, 50 * DAY, passed=3_600 * DAY, changed=False)
    assert a == pytest.approx(0.5, abs=0.01)
    assert b > 3_600 * DAY


def test_a_day_on_which_the_whole_site_changed_is_a_long_one() -> None:
    """So pages that were not visited since come first; days on which nothing changed are short."""
    pace, today = Pace(), 1_000 * DAY
    for number in range(100):
        begin = today - (40 + number % 5) * DAY
        pace.add(begin, today, changed=number > 9, at=today - 9.5 * DAY if number > 9 else None)
    before, later = today - 20 * DAY, today - 5 * DAY
    assert pace.elapsed(before, today) > 20 * pace.elapsed(later, today) > 0
    pace = Pace.unpack(pace.pack())
    assert pace.elapsed(before, today) > 20 * pace.elapsed(later, today)
    assert pace.elapsed(today, before) == 0.0


def test_time_goes_by_as_ever_for_a_host_of_which_nothing_is_known() -> None:
    pace = Pace.unpack(Pace().pack())
    assert pace.elapsed(5 * DAY, 15 * DAY) == 10 * DAY
    pace.add(990 * DAY, 1_000 * DAY, changed=True, at=None)
    assert pace.elapsed(990 * DAY, 1_000 * DAY) == pytest.approx(10 * DAY, rel=0.4)
    assert pace.elapsed(1_000 * DAY, 1_400 * DAY) == 400 * DAY
    assert pace.elapsed(0.0, 1_400 * DAY) == 1_400 * DAY, "forgotten after a year"


def test_a_budget_is_kept_for_a_week_and_a_clock_that_is_set_back_adds_nothing() -> None:
    budget = Budget(10)
    budget.fill(1e9)
    assert [budget.spend() for _ in range(11)] == [True] * 10 + [False]
    budget.fill(1e9 + DAY / 2)
    assert budget.left == pytest.approx(5)
    budget.fill(1e9 + 99 * DAY)
    assert budget.left == 70
    budget.fill(1e9)
    budget.fill(1e9 + DAY)
    assert budget.left == 70
