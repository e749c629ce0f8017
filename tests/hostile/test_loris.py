"""A hundred hosts that answer a byte at a time, and before or behind them one that is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.cases import LATE_LORIS, LORIS
from tests.support.hostile.healthy import HEALTHY, PAGES, is_complete
from tests.support.hostile.running import MORE_MB, Found, crawl, differences
from tests.support.hostile.server import HostileServer

pytestmark = pytest.mark.acceptance

OURS = {"LARM_PROBE_SHARE": "0.125", "LARM_SLOW_SHARE": "0.5"}
"""As in settings.py."""
HICCUP = len(LORIS) // 20
"""Slow hosts that may end early because the machine stood still for a moment: without the share
of probes all of them would."""
ONE_FAILURE = {"LARM_HOST_MAX_FAILURES": "1", "LARM_HOST_MAX_PARKS": "0"}


def of_healthy(server: HostileServer, found: Found) -> list[bool]:
    """For each URL in the order of fetch.log: is it the healthy host's?"""
    healthy = server.url("healthy").rpartition("/")[0]
    return [url.startswith(healthy) for url in found.results]


def all_ours_come_early(server: HostileServer, found: Found) -> bool:
    """Whether the pages of the healthy host come before the slow hosts have had their time."""
    return sum(of_healthy(server, found)[: PAGES + HICCUP]) == PAGES


def test_slow_hosts_do_not_hold_up_one_that_has_answered(tmp_path: Path, idle_mb: float) -> None:
    """Its pages are all there before half of the others have timed out, without more memory."""
    with HostileServer([HEALTHY, *LORIS]) as server:
        crawled = crawl(
            server.seeds(), tmp_path, CONCURRENT_REQUESTS="32", DOWNLOAD_TIMEOUT="1.5", **OURS
        )
    found = crawled.found
    assert not (wrong := differences(server, found)), wrong
    assert is_complete(server, found)
    ours = of_healthy(server, found)
    last = len(ours) - 1 - ours[::-1].index(True)
    assert ours[:last].count(False) < len(LORIS) / 2
    assert crawled.peak_mb < idle_mb + MORE_MB / 4


@pytest.mark.parametrize("obey", ["0", "1"])
def test_a_new_host_behind_them_waits_for_a_short_time_each(
    tmp_path: Path, idle_mb: float, obey: str
) -> None:
    """Each of the others gives its place up once, so that all its pages come before any of them
    has had its time (but for HICCUP of them)."""
    slow = LORIS[:50]
    with HostileServer([*slow, HEALTHY]) as server:
        crawled = crawl(
            server.seeds(),
            tmp_path,
            **OURS,
            CONCURRENT_REQUESTS="32",
            DOWNLOAD_TIMEOUT="8",  # long beside their probes
            LARM_PROBE_SECS="0.3",
            **ONE_FAILURE,
            ROBOTSTXT_OBEY=obey,
        )
    found = crawled.found
    assert is_complete(server, found)
    assert len(found.results) == len(slow) + PAGES or obey == "1"
    assert all_ours_come_early(server, found)
    assert crawled.peak_mb < idle_mb + MORE_MB / 4


def test_quick_hosts_that_begin_to_hang_give_up_places(tmp_path: Path) -> None:
    """Beyond the slow hosts' share, after LARM_SLOW_SECS: one that is well behind them does not
    wait for the end of their fetches."""
    with HostileServer([*LATE_LORIS, HEALTHY]) as server:
        crawled = crawl(
            server.seeds(),
            tmp_path,
            **OURS,
            CONCURRENT_REQUESTS="16",
            DOWNLOAD_TIMEOUT="6",
            LARM_SLOW_SECS="0.5",
            **ONE_FAILURE,
            ROBOTSTXT_OBEY="1",
        )
    found = crawled.found
    assert is_complete(server, found)
    assert all_ours_come_early(server, found)
