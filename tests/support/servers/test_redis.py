"""The redis-server of the tests keeps what it acknowledged over a kill, and leaves nothing."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import redis

from tests.support.servers.redis import REDIS_SERVER, RedisServer

needs_redis = pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)


def test_answers_by_port_and_by_socket(redis_server: Callable[..., RedisServer]) -> None:
    """One server, two ways to it."""
    server = redis_server()
    server.client().set("a", 1)
    with redis.Redis.from_url(server.unix_url) as client:
        assert client.get("a") == b"1"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_comes_back_with_what_it_had(redis_server: Callable[..., RedisServer], end: str) -> None:
    """Same port, same data, another process."""
    server = redis_server()
    url, pid = server.url, server.pid
    server.client().set("a", 1)
    getattr(server, end)()
    assert server.pid == 0
    with pytest.raises(redis.ConnectionError):
        server.client().ping()
    server.start()
    assert server.url == url
    assert server.pid != pid
    assert server.client().get("a") == b"1"


def test_a_paused_server_does_not_answer(redis_server: Callable[..., RedisServer]) -> None:
    """Until it goes on."""
    server = redis_server()
    client = server.client(socket_timeout=0.1)
    client.ping()
    server.pause()
    with pytest.raises(redis.TimeoutError):
        client.ping()
    server.go_on()
    assert server.client().ping()


def test_asks_for_its_password(redis_server: Callable[..., RedisServer]) -> None:
    """The URL carries it."""
    server = redis_server(password="s3cret")
    assert server.client().ping()
    with (
        redis.Redis(host=server.host, port=server.port) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


@needs_redis
@pytest.mark.parametrize("paused", [False, True])
def test_ends_with_its_context(paused: bool) -> None:
    """Process and folder are gone."""
    with RedisServer() as server:
        pid, folder = server.pid, server.folder
        if paused:
            server.pause()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not folder.exists()
    assert server.pid == 0


@needs_redis
def test_says_why_it_did_not_start() -> None:
    """The server's own words."""
    with pytest.raises(RuntimeError, match="no_such_value"), RedisServer(maxmemory="no_such_value"):
        pass
