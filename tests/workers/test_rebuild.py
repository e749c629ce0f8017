"""Redis is gone in mid-crawl; `scrapy workers --rebuild` fills an empty one, and the crawl ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from tests.support.crawling import scrapy
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
    ),
]
NAMES = ("w1", "w2", "w3")


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(20, pages=15, delay=0.0) as hosts,
        Crew(hosts, server, tmp_path, DOWNLOAD_DELAY="0.05") as crew,
    ):
        yield crew


def lose_redis(crew: Crew, pages: int = 120) -> None:
    """All workers are killed in mid-crawl, and Redis comes back empty."""
    crew.start(*NAMES)
    crew.until_asked(pages)
    for name in NAMES:
        crew.kill(name)
    with crew.server.client() as client:
        client.flushall()
    crew.lose_commits()
    crew.workers.clear()


def has_committed(worker: Path) -> bool:
    try:
        with FrontierReader(worker / "frontier") as reader:
            return bool(reader.shared_crawl()[0])
    except CrawlDirError:  # there is none yet
        return False


def rebuild(crew: Crew, *options: str, root: str = "crawl", status: int = 0) -> str:
    settings = ["-s", f"REDIS_URL={crew.server.url}", "-s", f"LARM_DIR={root}"]
    ran = scrapy("workers", "--rebuild", *options, *settings, cwd=crew.folder)
    assert ran.status == status, ran.err
    return ran.out if not status else ran.err


def test_the_crawl_goes_on_from_what_the_directories_have(crew: Crew) -> None:
    """w3 is on another machine. Nothing is fetched before all is in; no page is stored twice."""
    lose_redis(crew)
    crew.start("w1")
    assert crew.wait() == [1]
    assert "scrapy workers --rebuild" in crew.said("w1")
    elsewhere = crew.folder / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(crew.crawl / "crawl.json", elsewhere)
    (crew.crawl / "w3").rename(elsewhere / "w3")
    assert "w3" in rebuild(crew, root="elsewhere")
    crew.start("w1")
    assert crew.wait() == [2]
    assert "is being rebuilt" in crew.said("w1")
    done = json.loads(rebuild(crew, "--complete", "--json"))
    assert done["made"]["workers"] == list(NAMES)
    assert (done["made"]["again"], set(done["brought"])) == ({}, {"w1", "w2"})
    (elsewhere / "w3").rename(crew.crawl / "w3")
    asked = len(crew.requests())
    crew.start(*NAMES)
    crew.end()
    crew.check_stores()
    crew.check_refetched()
    assert len(crew.requests()) > asked
    assert "is not empty" in rebuild(crew, status=2)


def test_pages_of_a_lost_disk_are_fetched_again(crew: Crew) -> None:
    lose_redis(crew)
    shutil.rmtree(crew.crawl / "w2")
    made = json.loads(rebuild(crew, "--complete", "--json"))["made"]
    assert made["absent"] == ["w2"], "the other directories know the workers that they met"
    crew.start(*NAMES)
    crew.end()
    crew.check_stores()


def test_a_mistake_changes_nothing(crew: Crew) -> None:
    lose_redis(crew, 20)
    crew.start("w1", LARM_DIR="other")
    other = crew.folder / "other" / "w1"
    crew.until(lambda: has_committed(other), "a commit of the other crawl")
    running = rebuild(crew, status=2)
    assert "w1 work on a crawl" in running or "is not empty" in running  # its lease ran out
    crew.kill("w1")
    rebuild(crew, status=2)
    with crew.server.client() as client:
        client.flushall()
    shutil.copytree(other, crew.crawl / "w9")
    assert "different crawls" in rebuild(crew, status=2)
    with crew.server.client() as client:
        assert client.keys("*") == []
    for options in (["--complete"], ["--json"], ["--rebuild", "-a", "start=http://a/"]):
        assert scrapy("workers", *options, cwd=crew.folder).status == 2
    assert scrapy("workers", "--rebuild", "-sLARM_DIR=nowhere", cwd=crew.folder).status == 2
