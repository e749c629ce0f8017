"""A Redis that cannot be used is refused at the start, in one line without its password."""

from __future__ import annotations

import socket
import threading
import time

import pytest
import redis
from scrapy.settings import Settings

from larmspider.cluster import redis_client as scheduler_redis
from larmspider.cluster.redis_client import RedisLink, connect, link_to
from larmspider.errors import ConfigError

SECRET = "s3cr%40t"


def refusal(**settings):
    """What connecting with these settings and checking is refused with."""

    def use():
        client, name = connect(Settings(settings))
        try:
            RedisLink(client, name).check()
        finally:
            client.close()

    with pytest.raises(ConfigError) as caught:
        use()
    text = str(caught.value)
    assert "\n" not in text
    for secret in (SECRET, "s3cr", "s3cr@t"):
        assert secret not in text
        assert secret not in repr(caught.value.__cause__ or "")
    return text


def test_connects_as_scrapy_redis_does(redis_server):
    """By URL, by unix socket, or by host, port and database."""
    server = redis_server()
    host = {"REDIS_HOST": server.host, "REDIS_PORT": server.port, "REDIS_DB": 3}
    for settings, name in (
        ({"REDIS_URL": server.url}, f"{server.host}:{server.port}/0"),
        ({"REDIS_URL": server.unix_url}, f"{server.socket}/0"),
        (host, f"{server.host}:{server.port}/3"),
        (host | {"REDIS_PARAMS": '{"client_name": "x"}'}, f"{server.host}:{server.port}/3"),
    ):
        client, shown = connect(Settings(settings), socket_timeout=7.0)
        assert shown == name
        RedisLink(client, shown).check()
        client.set("k", b"\xff")
        assert client.get("k") == b"\xff"
        assert client.connection_pool.connection_kwargs["socket_timeout"] == 7.0
        client.close()


def test_answers_stay_bytes_whatever_is_set(redis_server):
    """REDIS_DECODE_RESPONSES is for text, which our keys and values are not."""
    server = redis_server()
    settings = Settings(
        {
            "REDIS_URL": server.url,
            "REDIS_DECODE_RESPONSES": True,
            "REDIS_PARAMS": {"decode_responses": True},
            "REDIS_ENCODING": "latin-1",
        }
    )
    settings.freeze()
    client, _ = connect(settings)
    client.set("k", b"\xff")
    assert client.get("k") == b"\xff"
    client.close()


def test_a_wrong_password_is_not_shown(redis_server):
    """Nor the right one, nor the user."""
    server = redis_server(password="right")
    where = f"{server.host}:{server.port}/0"
    for user in ("", "somebody"):
        text = refusal(REDIS_URL=f"redis://{user}:{SECRET}@{where}")
        assert text.startswith(f"Redis at {where} cannot be used: ")
        assert "password" in text
        assert "right" not in text
        assert "somebody" not in text
    assert "it asks for a password" in refusal(REDIS_URL=f"redis://{where}")


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}@127.31.0.1:port/0",
        f"http://:{SECRET}@127.31.0.1/0",
        f"redis://:{SECRET}@[127.31.0.1/0",
        f":{SECRET}@127.31.0.1",
    ],
)
def test_a_url_that_is_none_is_not_repeated(url):
    """A part of it may be the password."""
    assert refusal(REDIS_URL=url).startswith("REDIS_URL and REDIS_PARAMS cannot be used (")


@pytest.mark.parametrize("params", ["{", "[1]", '{"no_such": 1}'])
def test_parameters_that_are_none(params):
    """Not JSON, no mapping, or none of the client's."""
    assert "REDIS_PARAMS" in refusal(REDIS_URL="redis://127.31.0.1", REDIS_PARAMS=params)


def test_nobody_there():
    """A port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.31.0.1", 0))
        port = free.getsockname()[1]
    text = refusal(REDIS_URL=f"redis://:{SECRET}@127.31.0.1:{port}/0")
    assert text.startswith(f"Redis at 127.31.0.1:{port}/0 cannot be used: ")
    assert "refused" in text


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_who_never_answers_is_refused_soon(monkeypatch, scheme):
    """Another server's port, or one that waits for the rest of what TLS begins with; in mid-crawl
    it would be waited for."""
    monkeypatch.setattr(scheduler_redis, "ANSWER_SECS", 0.2)
    with socket.create_server(("127.31.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        begun = time.monotonic()
        settings = Settings({"REDIS_URL": f"{scheme}://:{SECRET}@127.31.0.1:{port}/0"})
        with pytest.raises(ConfigError, match="cannot be used: Timeout") as caught:
            link_to(settings)
        assert time.monotonic() < begun + 10
    assert ("speaks TLS" in str(caught.value)) == (scheme == "rediss")


def test_how_long_answers_are_waited_for_later_is_the_users_choice(redis_server):
    """What is asked before the crawl begins may be shorter, not longer."""
    url = redis_server().url
    link = link_to(Settings({"REDIS_URL": url, "REDIS_PARAMS": {"socket_timeout": 77.0}}))
    assert link.client.connection_pool.connection_kwargs["socket_timeout"] == 77.0
    link.client.close()
    for chosen, waits in ((77.0, 5.0), (0.5, 0.5), (None, 5.0)):
        settings = Settings({"REDIS_URL": url, "REDIS_PARAMS": {"socket_timeout": chosen}})
        client, _ = connect(settings, answer_secs=5.0)
        assert client.connection_pool.connection_kwargs["socket_timeout"] == waits
        client.close()


def test_a_replica_is_refused(redis_server):
    """It would refuse the first commit."""
    server = redis_server()
    replica = redis_server(replicaof=f"{server.host} {server.port}")
    assert "is a replica: name its master" in refusal(REDIS_URL=replica.url)


def test_a_user_who_may_not_do_enough_is_refused(redis_server):
    """By the server's own words, which name the command."""
    server = redis_server(user=f"weak on >{SECRET} ~* +info")
    where = f"{server.host}:{server.port}"
    text = refusal(REDIS_URL=f"redis://weak:{SECRET.replace('%', '%25')}@{where}/0")
    assert "script|load" in text


def test_a_server_that_is_too_old_is_refused(monkeypatch, redis_server):
    """By the version that it gives."""
    client, name = connect(Settings({"REDIS_URL": redis_server().url}))
    monkeypatch.setattr(client, "info", lambda: {"redis_version": "6.2.14", "role": "master"})
    with pytest.raises(ConfigError, match=r"is 6\.2\.14: 7\.0 or newer is needed"):
        RedisLink(client, name).check()
    client.close()


def test_what_is_no_redis_is_refused():
    """A web server, say."""
    with socket.create_server(("127.31.0.1", 0)) as listening:

        def answer():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        port = listening.getsockname()[1]
        text = refusal(REDIS_URL=f"redis://:{SECRET}@127.31.0.1:{port}/0")
        assert f"Redis at 127.31.0.1:{port}/0 cannot be used" in text
        listening.shutdown(socket.SHUT_RDWR)


def test_waits_for_a_redis_that_reads_its_file(monkeypatch, redis_server):
    """Both were started just now."""
    client, name = connect(Settings({"REDIS_URL": redis_server().url}))
    info, answers = client.info, [redis.BusyLoadingError("LOADING"), None]

    def loading():
        if error := answers.pop(0):
            raise error
        return info()

    monkeypatch.setattr(client, "info", loading)
    RedisLink(client, name).check()
    assert not answers
    client.close()
