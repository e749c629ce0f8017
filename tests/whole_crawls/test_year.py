"""Weeks alone: the beginning of the simulated year of benchmarks/year.py, and its bars."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.meter import ROOT
from benchmarks.year import EVENTS, live, summary
from benchmarks.year_world import World, read_events
from tests.support.recovery.synced_only import compiler

DAYS, EVERY = 40, 2
"""A refresh every second night, which takes half as long as one each night."""

pytestmark = [
    pytest.mark.acceptance,
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
