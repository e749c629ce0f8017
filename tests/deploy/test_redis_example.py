"""A real redis-server with deploy/redis.conf and deploy/users.acl: TLS alone, and few rights."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from redis.exceptions import AuthenticationError, NoPermissionError

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.shared_backend import RedisBackend
from tests.support.frontier.conformance import BackendConformance
from tests.support.servers.redis import Connect


def test_a_worker_does_what_a_frontier_needs(secured_redis):
    """Queues, sets, hashes, transactions and scripts, below intranet: alone."""
    client = secured_redis("larm")
    with client.pipeline(transaction=True) as pipe:
        pipe.zadd("intranet:requests:{1}:wiki", {"a": 1})
        pipe.sadd("intranet:dupefilter:{1}:0", 1)
        pipe.hset("intranet:hosts:{1}", "wiki", "x")
        pipe.rpush("intranet:inbox:{1}", "x")
        pipe.set("intranet:{crawl}:description", "x", nx=True)
        assert all(pipe.execute())
    script = client.register_script(
        "redis.call('ZINCRBY', KEYS[1], 2, 'a'); redis.call('TIME');"
        " return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')"
    )
    assert script(["intranet:requests:{1}:wiki"]) == [b"a", b"3"]
    assert client.info("server")["redis_version"]
    assert client.delete("intranet:requests:{1}:wiki") == 1


@pytest.mark.parametrize(
    "command",
    [
        ("GET", "another:key"),
        ("SET", "another:key", "x"),
        ("EVAL", "return redis.call('GET', 'another:key')", "0"),
        ("EVAL", "return redis.call('KEYS', '*')", "0"),
        ("KEYS", "*"),
        ("FLUSHALL",),
        ("CONFIG", "GET", "*"),
        ("CONFIG", "SET", "dir", "/tmp"),
        ("SHUTDOWN", "NOSAVE"),
        ("ACL", "LIST"),
        ("REPLICAOF", "127.34.0.9", "6379"),
        ("SCRIPT", "FLUSH"),
        ("FUNCTION", "LIST"),
        ("DEBUG", "SLEEP", "0"),
        ("MONITOR",),
        ("CLIENT", "LIST"),
        ("PUBLISH", "intranet:x", "x"),
    ],
    ids=" ".join,
)
def test_a_worker_may_do_nothing_else(secured_redis, command):
    with pytest.raises(redis.ResponseError, match=r"permission|can't (run|access)|not allowed"):
        secured_redis("larm").execute_command(*command)


def test_who_gives_seeds_gives_seeds(secured_redis):
    """The user ``seeds`` reads nothing, not even what it wrote."""
    client = secured_redis("seeds")
    assert client.lpush("intranet:start_urls", "http://wiki.example/") == 1
    for command in (("LRANGE", "intranet:start_urls", "0", "-1"), ("DEL", "intranet:start_urls")):
        with pytest.raises(NoPermissionError):
            client.execute_command(*command)
    with pytest.raises(NoPermissionError):
        client.lpush("intranet:inbox:{1}", "x")


@pytest.mark.parametrize(("user", "password"), [("larm", "guess"), ("default", "x"), ("root", "")])
def test_nobody_gets_in_with_another_password(secured_redis, user, password):
    with pytest.raises(AuthenticationError):
        secured_redis(user, password or "x").ping()


def test_without_a_user_nothing_is_answered(secured_redis):
    with pytest.raises((AuthenticationError, redis.ResponseError)):
        secured_redis().ping()


def test_without_tls_nothing_is_answered(secured_redis):
    """Port 6379 without TLS is closed; on the other, plain text ends the connection."""
    with pytest.raises(redis.ConnectionError):
        secured_redis("larm", scheme="redis").ping()


def test_a_full_redis_refuses_and_evicts_nothing(secured_redis):
    """Workers wait then; a queue that loses its end is not noticed by anybody."""
    operator, worker = secured_redis("operator"), secured_redis("larm")
    worker.set("intranet:kept", "x")
    assert operator.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    operator.config_set("maxmemory", "1mb")
    try:
        with pytest.raises(redis.OutOfMemoryError):
            worker.set("intranet:more", "x" * 100_000)
    finally:
        operator.config_set("maxmemory", "64mb")
    assert worker.get("intranet:kept") == b"x"


def test_what_is_written_is_on_disk_within_a_second(secured_redis):
    """The append-only file, and no snapshots besides."""
    found = secured_redis("operator").config_get("appendonly", "appendfsync", "save")
    assert found == {"appendonly": "yes", "appendfsync": "everysec", "save": ""}


# The frontier in Redis as the user larm of deploy/users.acl, by TLS: its rights are enough.


class Store:
    """Under the names that the spider gives its keys, the only ones that larm may touch."""

    def __init__(self, client, path: Path) -> None:
        self.client, self.path = client, path
        self.keys = Keys("intranet", 8)

    def link(self) -> RedisLink:
        link = RedisLink(self.client, "redis of deploy/")
        link.check()
        return link

    def open(self) -> RedisBackend:
        return RedisBackend(self.path / "frontier", self.link(), self.keys, worker="w1")

    def crash(self, backend: RedisBackend) -> None:
        backend.close()


class TestAsTheUserLarm(BackendConformance):
    @pytest.fixture
    def store(self, secured_redis: Connect, tmp_path: Path):
        store = Store(secured_redis("larm"), tmp_path / "crawl" / "w1")
        yield store
        if keys := list(store.client.scan_iter(match="intranet:*{*}*")):
            store.client.unlink(*keys)
