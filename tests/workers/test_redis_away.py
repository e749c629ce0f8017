"""A worker that gets the signal to stop while Redis is away ends, at its last commit."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.crawling import begin
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import ScriptedServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

pytestmark = pytest.mark.acceptance


@pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)
def test_a_worker_told_to_stop_without_redis_ends_in_bounded_time(tmp_path: Path) -> None:
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(6, pages=60, delay=0.0) as hosts,
        Crew(hosts, server, tmp_path) as crew,
    ):
        crew.start("w1")
        crew.until_asked(30)
        server.kill()
        crew.until(lambda: "cannot be used" in crew.said("w1"), "it has noticed")
        crew.signal("w1", signal.SIGTERM)
        assert crew.wait() == [75]
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
        Crew(hosts, server, tmp_path, LARM_LEASE_SECS="15") as crew,
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


@pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)
def test_seeds_are_not_given_up_while_the_worker_may_ask_nobody(tmp_path: Path) -> None:
    """Its lease is over for longer than LARM_SEED_PATIENCE_SECS before the first answer is here."""
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(1, pages=1, delay=5.0) as hosts,
        Crew(hosts, server, tmp_path, LARM_LEASE_SECS="2") as crew,
    ):
        crew.start("w1", LARM_SEED_PATIENCE_SECS="15")
        crew.until(lambda: "Worker w1: " in crew.said("w1"), "it has joined")
        server.pause()
        crew.until(lambda: "has not renewed this worker's lease" in crew.said("w1"), "it rests")
        time.sleep(20)
        server.go_on()
        assert crew.wait() == [0], crew.said("w1")
        crew.check_stores()


@pytest.mark.parametrize("command", [("crawl", "intranet"), ("workers", "-n", "2")])
def test_without_redis_at_the_start_it_waits_and_ends_with_75(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """systemd starts it again then; 2 would leave it down for good."""
    arguments = ("-a", "start=http://127.32.1.1/", "-s", "REDIS_URL=redis://127.32.0.1:9/0")
    with (tmp_path / "out").open("wb") as out:
        waiting = begin(*command, *arguments, cwd=tmp_path, out=out)
    end = time.monotonic() + 120
    while "refused: waiting" not in (said := (tmp_path / "out").read_text()):
        assert waiting.poll() is None, said
        assert time.monotonic() < end, said
        time.sleep(0.05)
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(120) == 75
    assert "Redis at 127.32.0.1:9/0 cannot be used" in (tmp_path / "out").read_text()
    assert not (tmp_path / "crawl").exists()


@pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)
def test_links_wait_while_redis_is_nearly_full_and_the_crawl_ends_complete(tmp_path: Path) -> None:
    """Pages full of new links with long URLs, at once: pages wait, or a commit without room, and
    Redis is never full. After CONFIG SET maxmemory it goes on."""
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer("127.32.0.1", maxmemory_policy="noeviction"))
        sites = [stack.enter_context(ScriptedServer({}, f"127.32.3.{n}")) for n in (1, 2, 3)]
        pages = {site.url("/") for site in sites}
        others = "".join(f"<a href={site.url('/')}>x</a>" for site in sites)
        for at, site in enumerate(sites):
            site.routes["*"] = "<title>a leaf</title>"
            site.routes["/robots.txt"] = (404, {}, b"")
            site.routes["/"] = others + "".join(f"<a href=/{n}>x</a>" for n in range(12))
            for n in range(12):
                leaves = [sites[(at + k) % 3].url(f"/{at}/{n}/{k}{'y' * 1_200}") for k in range(36)]
                site.routes[f"/{n}"] = f"{n}" + "".join(f"<a href={leaf}>x</a>" for leaf in leaves)
                pages |= {site.url(f"/{n}"), *leaves}
        hosts: Any = SimpleNamespace(
            seed=sites[0].url("/"), restrict=r"http://127\.32\.3\..*", requests=list
        )
        slow = {"DOWNLOAD_DELAY": "0", "LARM_LEASE_SECS": "30", "LARM_CANONICAL_RULES": "never"}
        crew = stack.enter_context(Crew(hosts, server, tmp_path, **slow))
        client = server.client()
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 3_000_000)
        crew.start("w1", "w2")
        said = ("new links wait, and", "of its maxmemory for a commit")
        crew.until(lambda: any(words in crew.text() for words in said), "they wait")
        time.sleep(3)
        assert len(crew.stored()) < len(pages)
        assert client.info("errorstats").get("errorstat_OOM") is None
        client.config_set("maxmemory", 0)
        crew.until(lambda: "room again" in crew.text() or "room for the" in crew.text(), "room")
        assert crew.wait() == [0, 0]
        assert "has not renewed" not in crew.text()
        assert crew.stored() == dict.fromkeys(pages, 1)


# A user of Redis who may not do enough: refused at the start, waited for in mid-crawl.


USER = "on >secret +@all"


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with (
        RedisServer("127.32.0.1") as server,
        Hosts(2, pages=3, delay=0.0) as hosts,
        Crew(hosts, server, tmp_path, LARM_LEASE_SECS="10", LARM_CHECKPOINT_SECS="0.2") as crew,
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
    """First for a key that only one part reads and no commit needs; then for all others."""
    allow(crew, "intranet:*")
    start(crew, LARM_KEEP_ALIVE="yes")
    crew.until(lambda: crew.pages() == len(crew.hosts.urls), "all pages")
    allow(crew, "intranet:*{*}*")
    crew.until(lambda: "/0 refuses: " in crew.said("w1"), "it says what it may not do")
    said = [line for line in crew.said("w1").splitlines() if "/0 refuses: " in line]
    assert len(said) == 1
    assert "WARNING" in said[0]
    allow(crew, "other:*")
    crew.until(lambda: "Redis has not renewed this worker's lease" in crew.said("w1"), "it rests")
    allow(crew, "intranet:*")
    crew.until(lambda: "is renewed: it continues" in crew.said("w1"), "it goes on")
    crew.signal("w1", signal.SIGTERM)
    assert crew.wait() == [0]
    crew.check_stores()
