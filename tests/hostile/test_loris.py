"""A hundred hosts that answer a byte at a time, and before them one that is well.

One that stands behind them, and is new, waits: tests/frontier/test_shares.py.
"""

from __future__ import annotations

from pathlib import Path

from tests.hostile.healthy import HEALTHY, is_complete
from tests.hostile.limit_cases import LORIS
from tests.hostile.running import MORE_MB, crawl, differences
from tests.hostile.server import HostileServer

OURS = {"LARM_PROBE_SHARE": "0.125", "LARM_SLOW_SHARE": "0.5"}
"""As in settings.py."""


def test_slow_hosts_do_not_hold_up_one_that_has_answered(tmp_path: Path, idle_mb: float) -> None:
    """Its pages are all there before half of the others have timed out, without more memory."""
    with HostileServer([HEALTHY, *LORIS]) as server:
        crawled = crawl(
            server.seeds(), tmp_path, CONCURRENT_REQUESTS="32", DOWNLOAD_TIMEOUT="1.5", **OURS
        )
        healthy = server.url("healthy").rpartition("/")[0]
    found = crawled.found
    assert not (wrong := differences(server, found)), wrong
    assert is_complete(server, found)
    of_healthy = [url.startswith(healthy) for url in found.results]  # in the order of fetch.log
    last = len(of_healthy) - 1 - of_healthy[::-1].index(True)
    assert of_healthy[:last].count(False) < len(LORIS) / 2
    assert crawled.peak_mb < idle_mb + MORE_MB / 4
