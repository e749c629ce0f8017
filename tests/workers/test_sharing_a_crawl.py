"""Workers join and leave, push seeds and count budgets together; one who crawls something else is
refused."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.crawl.worker_dirs import open_crawl
from tests.support.crawling import Ran, scrapy
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import ScriptedServer
from tests.support.workers.crew import SETTINGS, Crew
from tests.support.workers.hosts import Hosts

pytestmark = pytest.mark.acceptance
PAGES = 10
TOTALS = "intranet:{crawl}:totals"
ID = b"intranet:{crawl}:id"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer("127.32.0.1") as server:
        yield server


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(6, pages=PAGES, delay=0.0) as hosts:
        yield hosts


@pytest.fixture
def crew(server: RedisServer, hosts: Hosts, tmp_path: Path) -> Iterator[Crew]:
    server.client().flushall()
    with Crew(hosts, server, tmp_path, LARM_LEASE_SECS="15", LARM_CHECKPOINT_SECS="0.2") as crew:
        yield crew


def working(crew: Crew, *names: str) -> None:
    """Wait until these have joined."""
    for name in names:
        crew.until(lambda name=name: f"Worker {name}: " in crew.said(name), f"{name} works")


def test_a_worker_with_another_crawl_is_refused(crew: Crew, tmp_path: Path) -> None:
    """In a LARM_DIR of its own, as on another machine; nor may one start over."""
    crew.start("w1", LARM_KEEP_ALIVE="yes")
    working(crew, "w1")
    no_traps = '{"larmspider.middlewares.traps.TrapsFilter": null}'
    for settings, why in (
        ({"restrict": "http://127\\..*"}, "has other LARM_RESTRICT: "),
        ({"LARM_MAX_PAGES": "7"}, "has other LARM_MAX_PAGES: "),
        ({"DOWNLOAD_DELAY": "0.01"}, "has other DOWNLOAD_DELAY: "),
        ({"SPIDER_MIDDLEWARES": no_traps}, "has other filters: "),
        ({"LARM_FRESH": "yes"}, "and w1 work on it: stop them first"),
    ):
        crew.start("w2", LARM_DIR=str(tmp_path / "elsewhere"), **settings)
        assert crew.wait("w2") == [2]
        lines = [line for line in crew.said("w2").splitlines() if line.startswith("scrapy crawl:")]
        assert why in lines[-1]
        assert crew.workers["w1"].poll() is None


def test_a_name_that_is_in_use_is_refused(crew: Crew, tmp_path: Path) -> None:
    crew.start("w1", LARM_KEEP_ALIVE="yes")
    working(crew, "w1")
    first = crew.workers["w1"]
    crew.start("w1", LARM_KEEP_ALIVE="yes", LARM_DIR=str(tmp_path / "elsewhere"))
    assert crew.wait("w1") == [2]
    assert "LARM_WORKER=w1: a worker of this name is running" in crew.said("w1")
    assert "Traceback" not in crew.said("w1")
    first.send_signal(signal.SIGTERM)
    assert first.wait(120) == 0


def test_a_name_whose_pages_lie_elsewhere_is_refused(crew: Crew, tmp_path: Path) -> None:
    """To start over would delete the crawl of all workers; each time it says what helps."""
    crew.start("w1", LARM_KEEP_ALIVE="yes")
    crew.until(lambda: crew.server.client().hexists(TOTALS, "stored"), "a page is committed")
    crew.signal("w1", signal.SIGTERM)
    assert crew.wait("w1") == [0]
    for _ in range(2):
        crew.start("w1", LARM_DIR=str(tmp_path / "elsewhere"))
        assert crew.wait("w1") == [1]
        refusal = crew.said("w1").splitlines()[-1]
        assert "worker w1 of the crawl in Redis has its pages in another directory" in refusal
        assert "fresh" not in refusal
    crew.start("w1")
    assert crew.wait("w1") == [0]
    crew.check_stores()


@pytest.mark.parametrize("command", ["crawl", "workers"])
def test_pages_that_others_have_stored_are_given_up_when_asked_twice(
    crew: Crew, tmp_path: Path, command: str
) -> None:
    """No worker has the crawl, and the LARM_DIR is a new one: one yes deletes nothing."""
    crew.start("w1", LARM_KEEP_ALIVE="yes")
    crew.until(lambda: crew.server.client().hexists(TOTALS, "stored"), "a page is committed")
    crew.signal("w1", signal.SIGTERM)
    assert crew.wait("w1") == [0]

    def start_over(fresh: str) -> Ran:
        spider = ["intranet", *(["-n", "1"] if command == "workers" else [])]
        given = {"REDIS_URL": crew.server.url, "LARM_DIR": "new", "LARM_MAX_PAGES": "1"}
        words = [f"-s{name}={value}" for name, value in (SETTINGS | given).items()]
        seed = ["-a", f"start={crew.hosts.seed}", "-a", f"fresh={fresh}"]
        return scrapy(command, *spider, *seed, *words, cwd=tmp_path)

    before = everything(crew.server)
    refused = start_over("yes")
    [line] = [line for line in refused.err.splitlines() if line.startswith("scrapy ")]
    assert (refused.status, everything(crew.server)) == (2, before)
    assert "-a fresh=force deletes them" in line
    assert not (tmp_path / "new").exists()
    again = start_over("yes,yes")
    assert again.status == 0, again.err
    assert everything(crew.server)[ID] != before[ID], "another crawl"


def everything(server: RedisServer) -> dict[bytes, bytes]:
    """All keys and values of Redis, without its own state."""
    redis = server.client()
    return {key: redis.dump(key) for key in redis.scan_iter()}


def test_who_is_told_to_stop_gives_back_what_it_has(crew: Crew) -> None:
    """Nothing is fetched twice, and the others need not wait for a lease to run out."""
    crew.start("w1", "w2", DOWNLOAD_DELAY="1.2")  # neither is done before the other has begun
    crew.until_asked(5, "w1")
    crew.until_asked(5, "w2")
    crew.signal("w1", signal.SIGTERM)
    assert crew.wait() == [0, 0]
    crew.check_stores()
    crew.check_politeness()
    assert not crew.refetched()
    assert "has not renewed its lease" not in crew.said("w2")


def test_a_crawl_that_has_ended_is_gone_on_with_and_ends(crew: Crew) -> None:
    crew.start("w1")
    crew.wait()
    asked = len(crew.requests())
    crew.start("w1", "w2")
    assert crew.wait() == [0, 0]
    assert len(crew.requests()) == asked
    crew.check_stores()


def test_a_worker_whose_hosts_cannot_be_had_goes_on_where_another_has_pages(crew: Crew) -> None:
    """None of its own hosts answers for longer than LARM_SEED_PATIENCE_SECS."""
    dead = "".join(f"<a href=http://127.32.9.9:{port}/>x</a>" for port in range(1, 21))
    with ScriptedServer({"/": dead}, "127.32.9.1") as site:
        crawled = {"start": site.url(), "restrict": r"http://127\.32\.9\..*"}
        crew.start("w1", "w2", LARM_SEED_PATIENCE_SECS="2", LARM_MONITOR_SECS="1", **crawled)
        crew.until(lambda: crew.server.client().hexists(TOTALS, "stored"), "a page is committed")
        for name in ("w1", "w2"):
            looks = crew.said(name).count("[larmspider.status.monitor]") + 8
            crew.until(
                lambda name=name, looks=looks: (
                    crew.said(name).count("[larmspider.status.monitor]") > looks
                ),
                f"{name} has looked for 8 s",
            )
            assert crew.workers[name].poll() is None, crew.said(name)
        for name in ("w1", "w2"):
            crew.signal(name, signal.SIGTERM)
        assert crew.wait() == [0, 0]


@pytest.mark.parametrize("kind", ["list", "set", "zset"])
def test_seeds_are_taken_from_redis_at_any_time(crew: Crew, kind: str) -> None:
    """By workers that were given none, and wait for them; out of scope they are refused."""
    client = crew.server.client()
    settings = {"REDIS_START_URLS_AS_SET": "1"} if kind == "set" else {}
    settings |= {"REDIS_START_URLS_AS_ZSET": "1"} if kind == "zset" else {}
    crew.start("w1", "w2", start=None, LARM_KEEP_ALIVE="yes", **settings)
    working(crew, "w1", "w2")
    key = "intranet:start_urls"

    def push(value: str) -> None:
        if kind == "list":
            client.lpush(key, value)
        elif kind == "set":
            client.sadd(key, value)
        else:
            client.zadd(key, {value: 1})

    push("http://127.99.0.1/not-in-scope")
    push("@/etc/passwd")
    push(json.dumps({"url": crew.hosts.seed}))
    crew.until(lambda: crew.pages() == len(crew.hosts.urls), "all pages")
    crew.until(lambda: not client.exists(key), "seeds are taken out when they are committed")
    for name in ("w1", "w2"):
        assert crew.workers[name].poll() is None, "it waits for more"
        crew.signal(name, signal.SIGTERM)
    assert crew.wait() == [0, 0]
    crew.check_stores()
    said = crew.said("w1") + crew.said("w2")
    assert "Seed refused: http://127.99.0.1/not-in-scope (scope" in said
    assert "a pushed seed cannot name a file" in said


def test_the_budget_counts_the_pages_of_all(crew: Crew) -> None:
    """Pages that are fetched between two checkpoints may exceed it."""
    crew.start("w1", "w2", LARM_MAX_PAGES="20")
    assert crew.wait() == [0, 0]
    stored = len(crew.stored())
    assert 20 <= stored < 40  # which each of them alone would have
    assert stored < len(crew.hosts.urls)
    crew.start("w1", "w2")
    assert crew.wait() == [0, 0]
    crew.check_stores()


def test_crawls_of_two_spiders_share_a_redis(crew: Crew, tmp_path: Path) -> None:
    """Their keys lie apart, and starting one over leaves the other as it is."""
    (tmp_path / "spiders.py").write_text(
        "from larmspider.spiders.intranet import IntranetSpider\n"
        "class Other(IntranetSpider):\n    name = 'other'\n"
    )
    crew.start("w1", "w2")
    options = [f"-s{name}={value}" for name, value in crew.settings.items()]
    options += ["-s", f"REDIS_URL={crew.server.url}", "-s", "LARM_DIR=other"]
    options += ["-s", "SPIDER_MODULES=spiders"]
    seed = f"start={crew.hosts.seed}"
    command = ["workers", "-n", "2", "other", *options, "-a", seed, "-a"]

    def other(*more: str) -> None:
        restrict = f"restrict={crew.hosts.restrict}"
        ran = scrapy(*command, restrict, *more, cwd=tmp_path)
        assert ran.status == 0, ran.err
        pages = [page.url for page in open_crawl(tmp_path / "other").pages()]
        assert sorted(pages) == sorted(crew.hosts.urls)

    def keys(spider: str) -> dict[bytes, bytes]:
        client = crew.server.client()
        return {key: client.dump(key) for key in client.scan_iter(f"{spider}:*")}

    other()
    assert crew.wait() == [0, 0]
    crew.check_stores()
    before = keys("intranet")
    assert len(before) + len(keys("other")) == crew.server.client().dbsize()
    other("-a", "fresh=force")
    assert keys("intranet") == before
    crew.check_stores()
