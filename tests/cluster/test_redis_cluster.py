"""The contract holds on a Redis Cluster, where a script may only use keys of one slot.

One node has all slots; it refuses what spans two of them as any other does.
"""

from __future__ import annotations

import time
import warnings
from contextlib import closing

import pytest
import redis

from larmspider.cluster.redis_client import RedisLink
from tests.support.frontier.conformance import OK, BackendConformance, entry
from tests.support.frontier.redis_store import RedisStore
from tests.support.servers.redis import REDIS_SERVER, RedisServer


@pytest.fixture(scope="module")
def node():
    """A plain client of the node."""
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer(cluster_enabled="yes", appendfsync="no") as server:
        node = server.client()
        node.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16_383)
        end = time.monotonic() + 20
        while node.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
            assert time.monotonic() < end
            time.sleep(0.01)
        yield node


@pytest.fixture(scope="module")
def cluster(node):
    where = node.connection_pool.connection_kwargs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        client = redis.RedisCluster(host=where["host"], port=where["port"])
    yield client
    client.close()


class TestRedisCluster(BackendConformance):
    @pytest.fixture
    def store(self, cluster, tmp_path):
        with closing(RedisStore(cluster, tmp_path)) as store:
            yield store


def test_the_node_refuses_what_spans_two_slots(node):
    """Else the tests above would prove nothing."""
    with pytest.raises(redis.ResponseError, match="same slot"):
        node.eval("return 1", 2, "{1}", "{2}")


class Recording(RedisLink):
    """Keeps the keys of each script that it sends."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.calls = []

    def _send(self, commands):
        self.calls += [c[3 : 3 + c[2]] for c in commands if c[0] == "EVALSHA"]
        return super()._send(commands)


def test_each_script_changes_keys_of_one_slot(cluster, node, tmp_path):
    """By the server's own CLUSTER KEYSLOT, over all scripts and kinds of change."""
    store = RedisStore(cluster, tmp_path)
    links = [store.link(Recording), store.link(Recording)]
    one = store.join("w1", range(4), link=links[0])
    two = store.join("w2", range(4, 8), link=links[1])
    for backend, other in ((one, two), (two, one), (one, two)):
        own = [e for n in range(40) if backend.owns((e := entry(f"http://h{n}/1")).key)]
        backend.add(own)
        backend.add(backend.take_inbox())
        for e in own[:6]:
            backend.pop(e.host, 0.0)
        leases = backend.leases()
        backend.acknowledge([(e.key, OK) for e in leases[:3]])
        backend.release([(e.key, 60.0, 1) for e in leases[3:]])
        backend.put_hosts({e.host: b"h" for e in own})
        backend.put_note(f"robots {own[0].host}", b"n")
        backend.forward([e for n in range(40) if other.owns((e := entry(f"http://h{n}/2")).key)])
        backend.checkpoint({"s": b"1"})
    one.give_up(range(4))
    store.assign(two, range(4))
    two.checkpoint({})
    two.replay("w1")
    calls = [keys for link in links for keys in link.calls]
    kinds = {key.split(b":")[1] for keys in calls for key in keys}
    assert kinds == {
        b"owner", b"entries", b"requests", b"delayed", b"hosts", b"counts", b"notes", b"visits",
            b"inbox",
        b"dupefilter", b"{crawl}",
    }  # fmt: skip
    for keys in calls:
        assert len({slot(node, key) for key in keys}) == 1, keys
    for backend in (one, two):
        backend.close()


def slot(node, key):
    return node.execute_command("CLUSTER KEYSLOT", key)
