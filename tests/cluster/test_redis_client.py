"""A Redis that cannot be used is refused at the start, in one line without its password."""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
import redis
from scrapy.settings import Settings

from larmspider.cluster import redis_client as scheduler_redis
from larmspider.cluster.joining import wipe
from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import RedisLink, connect, link_to
from larmspider.errors import ConfigError, TemporaryError
from larmspider.frontier.storage.records import Counts, host_of, url_key
from tests.support.frontier.conformance import OK, entries, entry
from tests.support.frontier.redis_store import RedisStore
from tests.support.servers.certificate import Authority

SECRET = "s3cr%40t"


def refusal(kind=ConfigError, **settings):
    """The refusal of a connection with these settings and checks."""

    def use():
        client, name = connect(Settings(settings))
        try:
            RedisLink(client, name).check()
        finally:
            client.close()

    with pytest.raises(kind) as caught:
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
    """A port on which nothing listens: waiting may help."""
    with socket.socket() as free:
        free.bind(("127.31.0.1", 0))
        port = free.getsockname()[1]
    text = refusal(TemporaryError, REDIS_URL=f"redis://:{SECRET}@127.31.0.1:{port}/0")
    assert text.startswith(f"Redis at 127.31.0.1:{port}/0 cannot be used: ")
    assert "refused" in text
    assert "nosuch.invalid" in refusal(TemporaryError, REDIS_URL="redis://nosuch.invalid:6379/0")


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_who_never_answers_is_waited_for_and_then_told_of(monkeypatch, scheme):
    """Another server's port, or one that waits for the rest of what TLS begins with."""
    monkeypatch.setattr(scheduler_redis, "ANSWER_SECS", 0.2)
    monkeypatch.setattr(scheduler_redis, "START_SECS", 0.1)
    with socket.create_server(("127.31.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings = Settings({"REDIS_URL": f"{scheme}://:{SECRET}@127.31.0.1:{port}/0"})
        with pytest.raises(TemporaryError, match="cannot be used: Timeout") as caught:
            link_to(settings)
    assert ("speaks TLS" in str(caught.value)) == (scheme == "rediss")


def test_how_long_answers_are_waited_for_later_is_the_users_choice(redis_server):
    """Waits before the crawl begins may be shorter, not longer."""
    url = redis_server().url
    link = link_to(Settings({"REDIS_URL": url, "REDIS_PARAMS": {"socket_timeout": 77.0}}))
    assert link.client.connection_pool.connection_kwargs["socket_timeout"] == 77.0
    link.client.close()
    for chosen, waits in ((77.0, 5.0), (0.5, 0.5), (None, 5.0)):
        settings = Settings({"REDIS_URL": url, "REDIS_PARAMS": {"socket_timeout": chosen}})
        client, _ = connect(settings, answer_secs=5.0)
        assert client.connection_pool.connection_kwargs["socket_timeout"] == waits
        client.close()


def test_a_replica_is_waited_for(redis_server):
    """It would refuse the first commit, and becomes a master in a failover."""
    server = redis_server()
    replica = redis_server(replicaof=f"{server.host} {server.port}")
    assert "is a replica: name its master" in refusal(TemporaryError, REDIS_URL=replica.url)
    promotion = threading.Timer(0.2, replica.client().replicaof, ("NO", "ONE"))
    promotion.start()
    link = link_to(Settings({"REDIS_URL": replica.url}))
    assert link.client.info()["role"] == "master"
    link.client.close()
    promotion.join()


def test_a_certificate_that_does_not_verify_is_refused(tmp_path):
    """Waiting does not change it."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.31.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.31.0.1", 0)) as listening:

        def shake_hands():
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, suppress(ssl.SSLError):
                        context.wrap_socket(connection, server_side=True).close()

        server = threading.Thread(target=shake_hands, daemon=True)
        server.start()
        port = listening.getsockname()[1]
        assert "CERTIFICATE_VERIFY_FAILED" in refusal(REDIS_URL=f"rediss://127.31.0.1:{port}/0")
        listening.shutdown(socket.SHUT_RDWR)
        server.join()


def test_a_redis_that_is_away_at_the_start_is_waited_for(redis_server, caplog):
    """With one warning."""
    server = redis_server()
    server.kill()
    start = threading.Timer(0.3, server.start)
    start.start()
    with caplog.at_level(logging.WARNING):
        link = link_to(Settings({"REDIS_URL": server.url}))
    start.join()
    assert link.client.ping()
    link.client.close()
    assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["waiting"]


def test_a_signal_ends_the_waiting():
    """And reaches its own handler."""
    got = []
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        with pytest.raises(TemporaryError, match="refused"):
            link_to(Settings({"REDIS_URL": "redis://127.31.0.1:9/0"}))
    finally:
        timer.join()
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]


def test_a_signal_ends_the_waiting_of_a_worker_that_joins(redis_server):
    """Its event loop is blocked then, and no other code would hear the signal."""
    server = redis_server()
    link = link_to(Settings({"REDIS_URL": server.url}))
    server.kill()
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    timers = (
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)),
        threading.Timer(10.0, link.stop.set),
    )
    for timer in timers:
        timer.start()
    try:
        with pytest.raises(TemporaryError, match="refused"):
            link.run([("GET", "a")])
    finally:
        for timer in timers:
            timer.cancel()
            timer.join()
        signal.signal(signal.SIGTERM, before)
        link.client.close()


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


def test_a_redis_cluster_is_refused(redis_server):
    """By the client's setting, before anything is sent, and by a node's answer."""
    params = {"redis_cls": "redis.cluster.RedisCluster"}
    said = refusal(REDIS_URL="redis://127.0.0.1:9/0", REDIS_PARAMS=params)
    assert said.startswith("REDIS_PARAMS: redis_cls=redis.cluster.RedisCluster is for a Redis Clus")
    node = redis_server(cluster_enabled="yes", appendfsync="no")
    said = refusal(REDIS_URL=node.url)
    assert "is a node of a Redis Cluster, which holds no crawl: expected one Redis server" in said


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


@pytest.mark.parametrize("joining", [False, True])
@pytest.mark.parametrize("state", ["loading", "busy", "read-only"])
def test_a_redis_that_cannot_be_used_for_now_is_waited_for(redis_server, caplog, state, joining):
    """It reads its file, runs a script that takes long, or is a replica: before the link stands, or
    once it does, while the worker joins."""
    server = redis_server(appendonly="no", busy_reply_threshold="1")
    admin, settings = server.client(), Settings({"REDIS_URL": server.url})
    link = link_to(settings) if joining else None
    begin, end = STATES[state](server, admin)
    begin()
    with caplog.at_level(logging.WARNING):
        ending = threading.Thread(target=lambda: (until(lambda: "waiting" in caplog.text), end()))
        ending.start()
        link = link or link_to(settings)
        assert link.run([("SET", "x", 1)])
    ending.join()
    link.client.close()
    assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["waiting"]


def loads(server, admin):
    starts = threading.Thread(target=server.start)  # which waits until all is loaded

    def begin():
        admin.mset({f"k{n}": os.urandom(2000) for n in range(4000)})
        admin.save()
        server.kill()
        server.options["key-load-delay"] = "25000"  # microseconds a key
        server.options["loading-process-events-interval-bytes"] = "1024"
        starts.start()
        until(lambda: isinstance(error_of(admin.ping), redis.BusyLoadingError))

    def end():
        admin.config_set("key-load-delay", 0)
        starts.join()

    return begin, end


def is_busy(server, admin):
    runs = threading.Thread(target=error_of, args=(server.client().eval, "while true do end", 0))

    def begin():
        runs.start()
        until(lambda: str(error_of(admin.ping)).startswith("BUSY"))

    def end():
        admin.script_kill()
        runs.join()

    return begin, end


def is_a_replica(server, admin):
    return partial(admin.replicaof, server.host, 9), partial(admin.replicaof, "NO", "ONE")


STATES = {"loading": loads, "busy": is_busy, "read-only": is_a_replica}


def error_of(function, *arguments):
    """The error that it raises, or None."""
    try:
        function(*arguments)
    except redis.RedisError as error:
        return error
    return None


def until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


# Blocks are even parts of all hosts.


@pytest.mark.parametrize("blocks", [1, 3, 256, 16_384])
def test_the_urls_of_a_block_are_a_range_of_keys(blocks):
    """A block can then be read, and dropped, without looking through the others."""
    keys = Keys("intranet", blocks)
    for n in range(300):
        url = f"http://h{n}/p"
        block, key = keys.partition_of(host_of(url)), url_key(url)
        assert keys.partition_of_key(key) == block
        assert keys.first_key(block) <= key < keys.first_key(block + 1)
        assert 0 <= block < blocks
    for block in {0, blocks // 2, blocks - 1}:
        first = keys.first_key(block) + b"\0" * 12
        assert keys.partition_of_key(first) == block
        if block:
            before = int.from_bytes(first[:4], "big") - 1
            assert keys.partition_of_key(before.to_bytes(4, "big")) == block - 1


def test_blocks_are_even():
    """Of 64,000 hosts each of 64 blocks has about 1,000."""
    keys = Keys("intranet", 64)
    sizes = Counter(keys.partition_of(f"host-{n}.example:80") for n in range(64_000))
    assert min(sizes.values()) > 850
    assert max(sizes.values()) < 1150


@pytest.mark.parametrize("prefix", ["", "a{b", "a}b"])
def test_a_name_that_would_move_the_hash_tag_is_refused(prefix):
    """Keys of a block would not lie together."""
    with pytest.raises(ConfigError, match="cannot begin"):
        Keys(prefix, 8)


@pytest.mark.parametrize("full", [0, "20mb"], ids=["no maxmemory", "maxmemory"])
@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_redis_that_deletes_keys_when_it_is_full_is_refused(redis_server, policy, full):
    """In one line with the two ways to mend that; also for a user who may not ask CONFIG."""
    server = redis_server(maxmemory_policy=policy, maxmemory=full)
    server.client().execute_command("ACL", "SETUSER", "weak", "on", ">w", "~*", "+@all", "-config")
    for user in ("", "weak:w@"):
        text = refusal(REDIS_URL=server.url.replace("//", f"//{user}"))
        assert f"maxmemory-policy {policy}, which deletes" in text
        assert "CONFIG SET maxmemory-policy noeviction" in text
        assert "redis.conf" in text


def test_wipe_deletes_one_crawl_and_leaves_seeds(shared_redis, tmp_path):
    """Whatever its number of blocks; others of a similar name stay."""
    client = shared_redis.client()
    store = RedisStore(client, tmp_path)
    prefix = store.keys.prefix
    kept = {
        f"{prefix}:start_urls": "list",
        f"{prefix}2:requests:{{1}}:h": "another crawl",
        f"{prefix}:x:{{crawl}}:workers": "another crawl, of a spider with a colon in its name",
        f"{prefix}:x:owner:{{1}}": "the same",
        f"other{prefix}:requests:{{1}}:h": "another",
    }
    for key, value in kept.items():
        client.set(key, value)
    backend = store.open()
    backend.recover()
    backend.add([entry(f"http://h{n}/") for n in range(50)])
    backend.checkpoint({})
    assert wipe(backend.link, Keys(prefix, 3)) > 50
    assert {key.decode() for key in client.keys(f"*{prefix}*")} >= set(kept)
    assert set(client.keys(f"{prefix}:*{{*")) == set(client.keys(f"{prefix}:x:*"))
    backend.close()


# deploy/users.acl allows what the backend does, and not much more.


ACL = Path(__file__).parents[2] / "deploy" / "users.acl"


def test_a_worker_gets_by_with_the_commands_and_keys_of_its_user(redis_server, tmp_path):
    """A whole life: recover, commit, mail, take, give up, replay, delete; and no other keys."""
    (line,) = [line for line in ACL.read_text().splitlines() if line.startswith("user larm ")]
    hashed = sha256(b"secret").hexdigest()
    server = redis_server(user=line.removeprefix("user ").replace("0" * 64, hashed))
    client = server.client(username="larm", password="secret")
    store = RedisStore(client, tmp_path)
    store.keys = Keys("intranet", 8)
    one, two = store.join("w1", range(4)), store.join("w2", range(4, 8))
    owner, other = (one, two) if one.owns(entries("1")[0].key) else (two, one)
    owner.add(entries(*"1234"))
    done, late = owner.pop("a:80", 0.0, 2)
    owner.acknowledge([(done.key, OK)])
    owner.release([(late.key, 50.0, 1)])
    owner.put_hosts({"a:80": b"h"})
    owner.put_note("robots a:80", b"n")
    other.forward(entries("mail"))
    other.checkpoint({"s": b"1"})
    owner.checkpoint({"s": b"1"})
    owner.add(owner.take_inbox())
    owner.checkpoint({"s": b"2"})
    assert not other.replay(owner.worker)
    owner.give_up(owner.owned)
    store.assign(other, range(8))
    assert other.counts() == Counts(discovered=5, queued=4, stored=1, delayed=1)
    for backend in (one, two):
        backend.close()
    assert wipe(store.link(), store.keys) > 5
    for key in ("other:requests", "intranetX"):
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.set(key, 1)
