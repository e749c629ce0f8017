"""A user of Redis who may not do enough: refused at the start, waited for in mid-crawl."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

USER = "on >secret +@all"


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(2, pages=3, delay=0.0) as hosts,
        Crew(hosts, server, tmp_path, LARM_LEASE_SECS="2", LARM_CHECKPOINT_SECS="0.2") as crew,
    ):
        crew.settings["REDIS_URL"] = server.url.replace("//", "//weak:secret@")
        yield crew


def allow(crew: Crew, *keys: str) -> None:
    """From now on the user has these keys and no others."""
    rules = [*USER.split(), "resetkeys", *(f"~{key}" for key in keys)]
    crew.server.client().execute_command("ACL", "SETUSER", "weak", *rules)


def start(crew: Crew, **settings: str) -> None:
    crew.start("w1", REDIS_URL=crew.settings["REDIS_URL"], **settings)


@pytest.mark.parametrize("keys", ["other:*", "intranet:{crawl}:workers"])
def test_who_may_not_write_the_crawl_is_refused_at_the_start(crew: Crew, keys: str) -> None:
    """In one line, status 2: no worker waits for permissions that it never had."""
    allow(crew, keys)
    start(crew)
    assert crew.wait() == [2]
    [line] = [line for line in crew.said("w1").splitlines() if line.startswith("scrapy crawl:")]
    assert f"{crew.server.port}/0 refuses: " in line
    assert "ermission" in line
    assert "Traceback" not in crew.said("w1")


def test_permissions_that_are_taken_away_in_mid_crawl_are_told_of_and_waited_for(
    crew: Crew,
) -> None:
    """Those of a key that only one part reads, which no commit ever meets; then all others."""
    allow(crew, "intranet:*")
    start(crew, LARM_KEEP_ALIVE="yes")
    crew.until(lambda: len(crew.stored()) == len(crew.hosts.urls), "all pages")
    allow(crew, "intranet:*{*}*")
    crew.until(lambda: "/0 refuses: " in crew.said("w1"), "it says what it may not do")
    said = [line for line in crew.said("w1").splitlines() if "/0 refuses: " in line]
    assert len(said) == 1
    assert "WARNING" in said[0]
    allow(crew, "other:*")
    crew.until(lambda: "Redis has not renewed this worker's lease" in crew.said("w1"), "it rests")
    allow(crew, "intranet:*")
    crew.until(lambda: "is renewed: it goes on" in crew.said("w1"), "it goes on")
    crew.signal("w1", signal.SIGTERM)
    assert crew.wait() == [0]
    crew.check_stores()
