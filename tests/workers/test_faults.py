"""Three workers, and chance: they are killed, stopped and cut off, and Redis dies, comes back
without its last second, is full or slow. No page is lost, and none is stored twice.

``pytest tests/workers/test_faults.py --faults 40 --rollbacks 20`` (``make soak``) does it more
often; ``--kill-seed`` repeats a run.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.servers.redis import REDIS_SERVER
from tests.support.workers.faults import FAULTS, FaultyCrawl

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
    ),
]


def seed_of(request: pytest.FixtureRequest) -> int:
    return request.config.getoption("--kill-seed") or random.randrange(1 << 30)


def test_whatever_happens_to_workers_and_redis(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """One to three faults a crawl, with a short lease; each kind comes first in its turn."""
    seed, runs = seed_of(request), request.config.getoption("--faults")
    done, ended = Counter[str](), Counter[str]()
    for run in range(runs):
        chance = random.Random(f"{seed} {run}")
        faults = [FAULTS[(seed + run) % len(FAULTS)]]
        faults += chance.choices(FAULTS, k=chance.randrange(3))
        folder = tmp_path / str(run)
        folder.mkdir()
        began = time.monotonic()
        with FaultyCrawl(folder, chance) as crawl:
            try:
                crawl.run(faults)
                crawl.check_stores()
                crawl.crew.check_politeness()
            finally:
                secs = time.monotonic() - began
                print(f"--kill-seed {seed}, run {run}: {', '.join(crawl.said)}; {secs:.0f} s")
        done.update(faults)
        ended += crawl.ended
        shutil.rmtree(folder)
    print(f"{runs} crawls, 0 pages lost, 0 stored twice; {dict(done)}; restarts {dict(ended)}")


def test_redis_loses_its_last_second_under_load(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Power is lost at random moments, or a replica takes over: what Redis wrote in the last 0.1 to
    1.5 s is gone. Redis is far away, so that a commit is often under way."""
    seed, rollbacks = seed_of(request), request.config.getoption("--rollbacks")
    left, number = rollbacks, 0
    while left:
        chance = random.Random(f"{seed} {number}")
        times = min(left, 3)
        folder = tmp_path / str(number)
        folder.mkdir()
        settings = {"DOWNLOAD_DELAY": "0.05", "LARM_LEASE_SECS": "6", "LARM_CHECKPOINT_SECS": "0.2"}
        with FaultyCrawl(folder, chance, pages=1500, hosts=50, latency=0.02, **settings) as crawl:
            try:
                crawl.run(["rolled back", "rolled back", "failed over"][:times])
                crawl.check_stores()
                crawl.crew.check_politeness()
            finally:
                again = crawl.crew.text().count("; retrying it")
                print(f"--kill-seed {seed}, crawl {number}: {', '.join(crawl.said)}")
                print(f"    commits that began again: {again}; restarts {dict(crawl.ended)}")
        shutil.rmtree(folder)
        left, number = left - times, number + 1
    print(f"{rollbacks} times without its last second: 0 pages lost, 0 stored twice")
