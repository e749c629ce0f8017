"""`scrapy workers -a fresh=force` with a mistake: refused before the old crawl is deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from larmspider.crawl.worker_dirs import open_crawl
from tests.support.crawling import FAST, Ran, scrapy
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import ScriptedServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

pytestmark = pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)
HOST = "127.41.4.1"
FAST_OPTIONS = [word for name, value in FAST.items() for word in ("-s", f"{name}={value}")]


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedServer]:
    html = {"Content-Type": "text/html"}
    pages = {"/": (200, html, b"<a href=/a>a</a>"), "/a": (200, html, b"a")}
    with ScriptedServer(pages, HOST) as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer("127.41.4.2") as server:
        yield server


@pytest.fixture(
    scope="module", params=["private", pytest.param("shared", marks=pytest.mark.acceptance)]
)
def run(
    request: pytest.FixtureRequest,
    site: ScriptedServer,
    redis: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Callable[..., Ran]]:
    """Where a crawl has ended, and how the command is given there again."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "rules").write_text("not a rule")
    where = ["-s", f"REDIS_URL={redis.url if request.param == 'shared' else ''}"]

    def workers(*arguments: str) -> Ran:
        seed = ("-a", f"start={site.url('/')}")
        return scrapy("workers", "-n", "1", *seed, *FAST_OPTIONS, *where, *arguments, cwd=folder)

    assert workers().status == 0
    return folder, workers


def everything(folder: Path, redis: RedisServer) -> tuple[list[str], list[tuple[str, bytes]], int]:
    """Pages, all files with what is in them but for logs of workers, and keys in Redis."""
    pages = sorted(page.url for page in open_crawl(folder / "crawl").pages())
    files = sorted(path for path in (folder / "crawl").rglob("*") if path.is_file())
    return (
        pages,
        [(str(path), path.read_bytes()) for path in files],
        int(redis.client().dbsize()),
    )


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (("-a", "restrict=("), "does not compile"),
        (("-s", "LARM_PATH_DEPTH_LIMIT=x"), "LARM_PATH_DEPTH_LIMIT=x: expected"),
        (("-a", "hostresolver=rules"), "rules:1: 'not' lacks a parenthesis"),
        (("-s", "LARM_SITES_FILE=rules"), "rules: "),
        (("-s", "LARM_MONITOR_SECS=x"), "LARM_MONITOR_SECS=x: expected"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_deletes_nothing(
    run: tuple[Path, Callable[..., Ran]],
    redis: RedisServer,
    mistake: tuple[str, ...],
    said: str,
) -> None:
    """One line, status 2, no worker started."""
    folder, workers = run
    before = everything(folder, redis)
    assert len(before[0]) == 2
    ran = workers("-a", "fresh=force", *mistake)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1), ran.err
    assert ran.err.startswith("scrapy workers: ")
    assert said in ran.err
    assert everything(folder, redis) == before


def test_without_a_mistake_it_starts_over(
    run: tuple[Path, Callable[..., Ran]], redis: RedisServer
) -> None:
    """The test above would see it if a command deleted something."""
    folder, workers = run
    before = everything(folder, redis)
    assert workers("-a", "fresh=force").status == 0
    after = everything(folder, redis)
    assert after[0] == before[0]
    assert after[1] != before[1]


# A refused command has not described the crawl, so its corrected form counts as the same command.


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer("127.41.3.1") as server:
        yield server


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(1, pages=2, delay=0.0) as hosts:
        yield hosts


@pytest.mark.parametrize("command", [("crawl", "intranet"), ("workers", "-n", "1")], ids=str)
def test_mistakes_leave_nothing_that_refuses_the_command_put_right(
    server: RedisServer, hosts: Hosts, tmp_path: Path, command: tuple[str, ...]
) -> None:
    server.client().flushall()
    fast = [word for name, value in FAST.items() for word in ("-s", f"{name}={value}")]
    fast += ["-s", f"REDIS_URL={server.url}"]
    start = ("-a", f"start={hosts.seed}")
    for wrong, why in (
        ((*start, "-a", "restrict=("), "does not compile"),
        ((*start, "-s", "LARM_PATH_DEPTH_LIMIT=x"), "LARM_PATH_DEPTH_LIMIT=x: expected"),
        ((), "The scope is unknown"),
    ):
        refused = scrapy(*command, *fast, *wrong, cwd=tmp_path)
        assert refused.status == 2
        assert why in refused.err
        assert not (tmp_path / "crawl" / "crawl.json").exists()
    ran = scrapy(*command, *fast, *start, cwd=tmp_path)
    assert ran.status == 0, ran.err


# A client that may push seeds can push anything: the log says so, and the crawl goes on to its end.


KEY = "intranet:start_urls"


class FailsAtSome:
    """A spider middleware of the user's."""

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in start:
            if request.url.endswith("/fail"):
                raise LookupError("no such thing")
            yield request


@pytest.fixture(scope="module")
def seeded_redis() -> Iterator[RedisServer]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer("127.41.2.1") as seeded_redis:
        yield seeded_redis


@pytest.fixture(scope="module")
def seeded_hosts() -> Iterator[Hosts]:
    with Hosts(2, pages=3, delay=0.0) as seeded_hosts:
        yield seeded_hosts


@pytest.fixture
def crew(seeded_redis: RedisServer, seeded_hosts: Hosts, tmp_path: Path) -> Iterator[Crew]:
    seeded_redis.client().flushall()
    with Crew(
        seeded_hosts, seeded_redis, tmp_path, LARM_LEASE_SECS="2", LARM_CHECKPOINT_SECS="0.2"
    ) as crew:
        yield crew


def test_what_is_no_seed_is_told_and_taken_out(crew: Crew) -> None:
    wrong = {
        b'{"url":' + b"[" * 200_000: "recursion",
        b"\xff\xfe": "codec can't decode",
        b'{"url": 5}': "it holds no url",
        b'{"url": "http://127.0.0.1/\\ud800"}': "surrogate",
        b"wiki": "not an absolute URL",
    }
    crew.server.client().rpush(KEY, *wrong, crew.hosts.seed)
    crew.start("w1", start=None)
    assert crew.wait() == [0]
    crew.check_stores()
    assert not crew.server.client().exists(KEY)
    assert crew.said("w1").count(f"{KEY}: a value is not a seed") == len(wrong)
    assert [why for why in wrong.values() if why not in crew.said("w1")] == []


@pytest.mark.acceptance
def test_seeds_in_a_key_of_another_type_are_told_of_and_keep_no_crawl_from_its_end(
    crew: Crew,
) -> None:
    crew.server.client().sadd(KEY, "http://127.0.0.1/")
    crew.start("w1")
    assert crew.wait() == [0]
    crew.check_stores()
    assert crew.said("w1").count(f"{KEY} holds no list") == 1
    assert crew.server.client().type(KEY) == b"set"


@pytest.mark.acceptance
def test_a_component_that_fails_at_a_pushed_seed_ends_the_worker(crew: Crew) -> None:
    """It says why; without the task that it failed in the worker would be there and do nothing."""
    crew.server.client().rpush(KEY, "http://127.0.0.1/fail")
    middleware = '{"tests.workers.test_refusals.FailsAtSome": 10}'
    crew.start("w1", start=None, SPIDER_MIDDLEWARES=middleware)
    assert crew.wait() == [1]
    assert "the crawl broke off: LookupError: no such thing" in crew.said("w1")
