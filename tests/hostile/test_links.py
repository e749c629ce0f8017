"""Links and redirects that lead astray, and hosts with wrong names or certificates."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.healthy import HEALTHY, is_complete
from tests.hostile.host_cases import HOSTS
from tests.hostile.link_cases import LINKS
from tests.hostile.running import MORE_MB, crawl, differences
from tests.hostile.server import HostileServer


def test_each_case_ends_as_promised(tmp_path: Path, idle_mb: float) -> None:
    """The same table of outcomes, and hosts out of scope are not asked."""
    with HostileServer([HEALTHY, *LINKS, *HOSTS]) as server:
        crawled = crawl(server.seeds(), tmp_path)
    assert not (wrong := differences(server, crawled.found)), wrong
    assert is_complete(server, crawled.found)
    assert crawled.peak_mb < idle_mb + MORE_MB
