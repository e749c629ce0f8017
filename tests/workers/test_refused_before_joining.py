"""What is refused has not described the crawl, so the command is not another one when put right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crawling import FAST, Ran, scrapy
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.workers.hosts import Hosts


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


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (("-a", "restrict=("), "does not compile"),
        (("-s", "LARM_PATH_DEPTH_LIMIT=x"), "LARM_PATH_DEPTH_LIMIT=x: expected"),
        ((), "The scope is unknown"),
    ],
    ids=["restrict", "setting", "no scope"],
)
@pytest.mark.parametrize("command", [("crawl", "intranet"), ("workers", "-n", "1")], ids=str)
def test_a_mistake_leaves_nothing_that_refuses_the_command_put_right(
    server: RedisServer,
    hosts: Hosts,
    tmp_path: Path,
    command: tuple[str, ...],
    wrong: tuple[str, ...],
    why: str,
) -> None:
    server.client().flushall()
    fast = [word for name, value in FAST.items() for word in ("-s", f"{name}={value}")]
    fast += ["-s", f"REDIS_URL={server.url}"]

    def run(*arguments: str) -> Ran:
        return scrapy(*command, *fast, *arguments, cwd=tmp_path)

    start = ("-a", f"start={hosts.seed}") if wrong else ()
    refused = run(*start, *wrong)
    assert refused.status == 2
    assert why in refused.err
    assert not (tmp_path / "crawl" / "crawl.json").exists()
    ran = run("-a", f"start={hosts.seed}")
    assert ran.status == 0, ran.err
