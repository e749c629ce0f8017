"""Whoever may push seeds can push anything: it is told of, and the crawl goes on to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

KEY = "intranet:start_urls"


class FailsAtSome:
    """A spider middleware of the user's."""

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in start:
            if request.url.endswith("/fail"):
                raise LookupError("no such thing")
            yield request


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer("127.41.2.1") as server:
        yield server


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(2, pages=3, delay=0.0) as hosts:
        yield hosts


@pytest.fixture
def crew(server: RedisServer, hosts: Hosts, tmp_path: Path) -> Iterator[Crew]:
    server.client().flushall()
    with Crew(hosts, server, tmp_path, LARM_LEASE_SECS="2", LARM_CHECKPOINT_SECS="0.2") as crew:
        yield crew


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b'{"url":' + b"[" * 200_000, "recursion"),
        (b"\xff\xfe", "codec can't decode"),
        (b'{"url": 5}', "it holds no url"),
        (b'{"url": "http://127.0.0.1/\\ud800"}', "surrogate"),
        (b"wiki", "not an absolute URL"),
    ],
    ids=["deep", "binary", "number", "surrogate", "word"],
)
def test_what_is_no_seed_is_told_and_taken_out(crew: Crew, value: bytes, why: str) -> None:
    crew.server.client().rpush(KEY, value, crew.hosts.seed)
    crew.start("w1", start=None)
    assert crew.wait() == [0]
    crew.check_stores()
    assert not crew.server.client().exists(KEY)
    assert f"{KEY}: one is no seed" in crew.said("w1")
    assert why in crew.said("w1")


def test_seeds_in_a_key_of_another_type_are_told_of_and_keep_no_crawl_from_its_end(
    crew: Crew,
) -> None:
    crew.server.client().sadd(KEY, "http://127.0.0.1/")
    crew.start("w1")
    assert crew.wait() == [0]
    crew.check_stores()
    assert crew.said("w1").count(f"{KEY} holds no list") == 1
    assert crew.server.client().type(KEY) == b"set"


def test_a_component_that_fails_at_a_pushed_seed_ends_the_worker(crew: Crew) -> None:
    """It says why; without the task that it failed in the worker would be there and do nothing."""
    crew.server.client().rpush(KEY, "http://127.0.0.1/fail")
    middleware = '{"tests.workers.test_bad_seeds.FailsAtSome": 10}'
    crew.start("w1", start=None, SPIDER_MIDDLEWARES=middleware)
    assert crew.wait() == [1]
    assert "the crawl broke off: LookupError: no such thing" in crew.said("w1")
