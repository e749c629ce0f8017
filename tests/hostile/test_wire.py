"""Broken HTTP and endless replies, one host each, in one crawl."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.limit_cases import LIMITS
from tests.hostile.wire_cases import WIRE
from tests.support.hostile.healthy import HEALTHY, is_complete
from tests.support.hostile.running import MORE_MB, crawl, differences
from tests.support.hostile.server import HostileServer


def test_each_case_ends_as_promised(tmp_path: Path, idle_mb: float) -> None:
    """By fetch.log, store.log and links.log."""
    with HostileServer([HEALTHY, *LIMITS, *WIRE]) as server:
        crawled = crawl(server.seeds(), tmp_path)
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.peak_mb < idle_mb + MORE_MB
