"""Four workers crawl 40 hosts with 2,000 pages, whatever happens to them and to Redis meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

pytestmark = pytest.mark.acceptance
LEASE_SECS = 6.0
SETTINGS = {"LARM_LEASE_SECS": str(LEASE_SECS), "DOWNLOAD_DELAY": "0.4"}


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(40, pages=50, delay=0.03) as hosts,
        Crew(hosts, server, tmp_path, **SETTINGS) as crew,
    ):
        yield crew


def test_one_joins_one_is_killed_and_one_is_stopped_in_one_run(crew: Crew) -> None:
    """One is killed and one is stopped for longer than its lease; both come back."""
    crew.start("w1", "w2", "w3")
    crew.until_asked(200)
    crew.start("w4")
    crew.until_asked(20, "w4")

    def taken_over(name: str) -> int:
        said = crew.said("w1") + crew.said("w4")
        return said.count(f"Worker {name} has not renewed its lease")

    before = {name: taken_over(name) for name in ("w2", "w3")}
    crew.kill("w2")
    crew.signal("w3", signal.SIGSTOP)
    stopped = time.monotonic()
    for name, times in before.items():
        crew.until(lambda n=name, t=times: taken_over(n) > t, f"take-over of {name}")  # type: ignore[misc]
    time.sleep(max(0.0, stopped + LEASE_SECS * 1.7 - time.monotonic()))
    continued = crew.signal("w3", signal.SIGCONT)
    assert crew.wait("w3") == [75]
    assert "other workers took over from worker w3" in crew.said("w3")
    assert not [a for a in crew.requests() if a.who == "w3" and a.turn > continued]
    assert len(crew.requests()) < 2000, "it is in mid-run"
    crew.start("w2", "w3")
    crew.end()
    crew.check_stores()
    crew.check_politeness()
    crew.check_refetched()
    assert crew.refetched(), "fetches since a checkpoint were lost"


@pytest.mark.parametrize("away_secs", [0.0, LEASE_SECS * 2], ids=["at once", "after two leases"])
def test_redis_is_killed_and_started_again(crew: Crew, away_secs: float) -> None:
    crew.start("w1", "w2", "w3", "w4")
    for name in ("w1", "w2", "w3", "w4"):
        crew.until_asked(20, name)
    crew.server.kill()
    killed = time.monotonic()
    time.sleep(away_secs)
    resting = time.monotonic()
    crew.server.start()
    crew.end()
    crew.check_stores()
    crew.check_politeness()
    assert {asked.who for asked in crew.requests()} == {"w1", "w2", "w3", "w4"}
    if away_secs:
        asked = [a for a in crew.requests() if killed + LEASE_SECS < a.turn < resting]
        assert not asked, "a worker whose lease is over sends no request"


def test_hosts_move_to_workers_that_have_none(tmp_path: Path) -> None:
    """The first worker has all three hosts; each of the two that join later gets one of them."""
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(3, pages=600, delay=0.03) as hosts,
        Crew(hosts, server, tmp_path) as crew,
    ):
        crew.start("w1")
        crew.until_asked(60)
        crew.start("w2", "w3")
        crew.until_asked(5, "w2")
        crew.until_asked(5, "w3")
        for name in ("w1", "w2", "w3"):
            crew.signal(name, signal.SIGTERM)
        crew.end()
        assert "Took over 1 host from a busier worker: 127.32.1." in crew.text()
        crew.check_politeness()
