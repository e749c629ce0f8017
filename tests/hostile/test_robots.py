"""robots.txt files that are none, have no end, or say what nobody can obey."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.host_cases import ROBOTS
from tests.support.hostile.healthy import HEALTHY, is_complete
from tests.support.hostile.running import MORE_MB, crawl, differences
from tests.support.hostile.server import HostileServer


def test_each_robots_txt_is_read_as_promised(tmp_path: Path, idle_mb: float) -> None:
    """RFC 9309: what cannot be read allows everything, what cannot be had allows nothing."""
    with HostileServer([HEALTHY, *ROBOTS]) as server:
        crawled = crawl(
            server.seeds(), tmp_path, ROBOTSTXT_OBEY="1", LARM_CRAWL_DELAY_MAX_SECS="0.3"
        )
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.peak_mb < idle_mb + MORE_MB
