"""The cost of a crawl that meets only the healthy host."""

from __future__ import annotations

import pytest

from tests.support.hostile.healthy import HEALTHY
from tests.support.hostile.running import crawl
from tests.support.hostile.server import HostileServer


@pytest.fixture(scope="session")
def idle_mb(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The most memory that it ever held, in MB."""
    with HostileServer([HEALTHY]) as server:
        return crawl(server.seeds(), tmp_path_factory.mktemp("idle")).peak_mb
