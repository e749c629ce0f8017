"""kill -9 at random moments and at named points: nothing is lost, doubled or torn.

``pytest tests/recovery/test_kill.py --kills 1000`` kills more often (``make soak KILLS=1000``).
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from larmspider.errors import CrawlDirError
from tests.support.crawling import records
from tests.support.recovery.kill_points import POINTS
from tests.support.recovery.killed_crawl import (
    MID_BODY,
    Kill,
    KilledCrawl,
    Report,
    RunningCrawl,
    Site,
    counts,
    kills,
    wait_until,
)
from tests.support.servers.generators import CONTENT, answer
from tests.support.servers.scripted import Raw, ScriptedServer

pytestmark = pytest.mark.acceptance


def crawl_until_done(site: Site, directory: Path, plan: list[Kill], **settings: str) -> Report:
    """Kill by the plan, let the run after it end by itself, check."""
    site.seen.clear()
    crawl = KilledCrawl(site, directory, **settings)
    for kill in plan:
        if crawl.run(kill):
            break
    else:
        assert crawl.run(None)
    crawl.check_end()
    return crawl.report


def test_a_crawl_that_is_killed_again_and_again_is_complete_and_exact(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every page stored once, every link logged once, no committed page fetched again; every other
    crawl is compressed."""
    wanted = request.config.getoption("--kills")
    seed = request.config.getoption("--kill-seed") or random.randrange(1 << 30)
    chance = random.Random(seed)
    plans, total, crawls = kills(chance), Report(), 0
    with Site() as site:
        while total.killed.total() < wanted:
            directory = tmp_path / str(crawls)
            directory.mkdir()
            plan = [next(plans) for _ in range(min(20, wanted - total.killed.total()))]
            print(f"--kill-seed {seed}, crawl {crawls}: {plan}")
            compression = "" if crawls % 2 else "zstd"
            report = crawl_until_done(site, directory, plan, LARM_COMPRESSION=compression)
            total.killed += report.killed
            total.refetched += report.refetched
            total.exposed += report.exposed
            crawls += 1
            shutil.rmtree(directory)
    print(
        f"{total.killed.total()} kills in {crawls} crawls: {dict(total.killed)};"
        f" refetched a kill {sum(total.refetched) / len(total.refetched):.1f},"
        f" at most {max(total.refetched)}"
    )
    if wanted >= 200:
        assert set(total.killed) >= {*POINTS, MID_BODY}, "a point was never reached"


def committed(folder: Path) -> int:
    """Pages that are stored, 0 while the crawl is only beginning."""
    try:
        return counts(folder / "crawl").stored
    except CrawlDirError:
        return 0


def test_a_crawl_that_was_killed_before_its_first_checkpoint_begins_again(tmp_path: Path) -> None:
    """It does not say that nothing is left to fetch."""
    with ScriptedServer({"/": "<p>a page</p>", "/robots.txt": Raw(b"", hang=True)}) as server:
        with RunningCrawl(server.url("/"), tmp_path, LARM_CHECKPOINT_SECS="3600") as running:
            wait_until(lambda: bool(server.log), "a request")
        server.routes["/robots.txt"] = (404, {}, b"")
        with RunningCrawl(server.url("/"), tmp_path) as running:
            assert running.end() == 0
    assert "0 URLs discovered, 0 stored, 0 refused, 0 failed, 0 to fetch" in running.err
    assert "nothing left" not in running.err
    assert counts(tmp_path / "crawl").stored == 1


def test_what_is_held_stays_held_through_kills(tmp_path: Path) -> None:
    """A site without end, with documents: each document once, and what the crawl learned is
    kept."""
    with ScriptedServer({"*": answer("calendar by timestamp")}) as server:
        for pages in (40, 100, 150):
            with RunningCrawl(
                server.url("/"), tmp_path, LARM_TRAPS="learn", LARM_CHECKPOINT_SECS="0.2"
            ) as running:
                while running.running and committed(tmp_path) < pages:
                    time.sleep(0.01)
        with RunningCrawl(
            server.url("/"), tmp_path, LARM_TRAPS="learn", LARM_CHECKPOINT_SECS="0.2"
        ) as running:
            assert running.end(120.0) == 0
        asked = len(server.log)
    found = counts(tmp_path / "crawl")
    assert found.queued == found.held > 0
    stored = [line["url"] for line in records(tmp_path / "crawl" / "store.log")]
    assert len(stored) == len(set(stored)) == found.stored
    assert {server.url(f"/doc/{n}") for n in range(CONTENT)} <= {*stored}
    assert asked < 1_000  # 200 to 330; a kill costs the fetches since the last checkpoint
