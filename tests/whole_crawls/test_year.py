"""Weeks alone: the beginning of the simulated year of benchmarks/year.py, and its bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.meter import ROOT
from benchmarks.year import EVENTS, RARE_EVENTS, live, summary
from benchmarks.year_world import World, read_events
from tests.support.recovery.synced_only import compiler

DAYS, EVERY = 40, 2
"""A refresh every second night, which takes half as long as one each night."""

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.long,
    pytest.mark.skipif(
        compiler() is None, reason="there is no C compiler (Debian packages gcc, libc6-dev)"
    ),
]


def test_nobody_looks_for_forty_days_and_the_search_stays_true(tmp_path: Path) -> None:
    with World(1, read_events(EVENTS)) as world:
        year = live(world, ROOT, tmp_path, days=DAYS, every=EVERY)
        found = summary(year, DAYS)
    assert found["removals of pages that were there"] == 0, found["wrong"]
    assert found["missing at the end"] == 0
    assert found["removals"] > 20
    assert found["days to a removal, median"] < 2 * EVERY + 2
    assert found["dead as if there"] <= 0.04
    assert found["dead as if there, and named no more"] <= 0.02
    assert found["doubled"] <= 0.02
    for one in year.conditions:
        assert len(one.notices) <= 1, one


def test_rare_events_take_nothing_out_that_is_there_and_leave_nothing_dead(tmp_path: Path) -> None:
    """Hosts that are renamed twice, move back, split or redirect in a ring; faults, walls and
    clocks. 90 visits a night, so that all of it is seen within some days."""
    with World(1, read_events(RARE_EVENTS)) as world:
        year = live(world, ROOT, tmp_path, days=56, every=EVERY, per_day=90)
        found = summary(year, 56)
    assert found["removals of pages that were there"] == 0, found["wrong"]
    assert found["missing at the end"] == 0
    assert found["removals"] > 150
    assert found["days to a removal, median"] < 2 * EVERY + 2
    assert found["the same of pages that were never listed"][0] < 10 + EVERY
    assert found["dead as if there"] <= 0.04
    assert found["doubled"] == 0
    for one in year.conditions:
        assert one.what == "crawl-clock" or len(one.notices) <= 2, one
