"""A worker that is told to stop while Redis is away ends, and goes on from its last commit."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts


@pytest.mark.long
@pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)
def test_a_worker_told_to_stop_without_redis_ends_in_bounded_time(tmp_path: Path) -> None:
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(6, pages=20, delay=0.0) as hosts,
        Crew(hosts, server, tmp_path) as crew,
    ):
        crew.start("w1")
        crew.until_asked(30)
        server.kill()
        crew.until(lambda: "cannot be used" in crew.said("w1"), "it has noticed")
        told = crew.signal("w1", signal.SIGTERM)
        assert crew.wait() == [1]
        assert time.monotonic() - told < 60
        assert "the crawl broke off: Redis at 127.32.0.1" in crew.said("w1")
        server.start()
        crew.start("w1")
        assert crew.wait() == [0]
        crew.check_stores()
        crew.check_politeness()


@pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)
def test_a_worker_waits_for_its_own_lease_and_for_redis_when_it_joins(tmp_path: Path) -> None:
    """Killed and started again at once; meanwhile Redis goes away for a moment."""
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(6, pages=20, delay=0.0) as hosts,
        Crew(hosts, server, tmp_path, LARM_LEASE_SECS="6") as crew,
    ):
        crew.start("w1")
        crew.until_asked(30)
        crew.kill("w1")
        crew.start("w1")
        crew.until(lambda: "Waiting up to" in crew.said("w1"), "it waits")
        server.kill()
        time.sleep(8)
        server.start()
        crew.end()
        crew.check_stores()
        crew.check_politeness()
        crew.check_refetched()
        assert "Traceback" not in crew.said("w1")
