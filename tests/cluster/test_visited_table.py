"""A forgotten URL leaves the one bucket of the visited table that holds its member."""

from __future__ import annotations

from contextlib import closing

import pytest

from larmspider.cluster import redis_records
from larmspider.cluster.visited_table import members
from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.frontier.conformance import OK, entry
from tests.support.frontier.redis_store import RedisStore

BUCKET = 50


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch):
    monkeypatch.setattr(redis_records, "BUCKET", BUCKET)


@pytest.fixture
def store(shared_redis, tmp_path):
    with closing(RedisStore(shared_redis.client(), tmp_path, blocks=1)) as store:
        yield store


def visit(backend, *names):
    """Store pages of a host, with one commit: their keys."""
    pages = [entry(f"http://a/{name}") for name in names]
    backend.add(pages)
    got = backend.pop("a:80", 0.0, len(pages))
    backend.acknowledge([(one.key, OK) for one in got])
    backend.checkpoint({})
    return [page.key for page in pages]


def in_table(backend):
    return set(members(backend.link, backend.keys, 0))


def sent(store):
    return store.client.info("stats")["total_net_input_bytes"]


def test_forgetting_sends_as_many_bytes_a_url_however_many(shared_redis, tmp_path):
    """In one commit, from a table of this size."""
    cost = {}
    for number in (BUCKET, 10 * BUCKET):
        with closing(RedisStore(shared_redis.client(), tmp_path / str(number), blocks=1)) as store:
            backend = store.open()
            backend.recover()
            keys = visit(backend, *range(number))
            before = sent(store)
            backend.forget(keys)
            backend.checkpoint({})
            cost[number] = sent(store) - before
            assert not in_table(backend)
            assert backend.counts() == backend.audit()
    assert cost[10 * BUCKET] < 11 * cost[BUCKET]


def test_a_member_leaves_whichever_bucket_has_it(store):
    """That was read, that a commit has added since, that came again, with another state."""
    backend = store.open()
    backend.recover()
    first = visit(backend, *range(BUCKET + 10))
    backend.forget(first[:5])
    backend.checkpoint({})
    second = visit(backend, *range(5), "x", "y")  # five of them again
    backend.add([failed := entry("http://a/z")])
    backend.pop("a:80", 0.0)
    backend.acknowledge([(failed.key, FetchRecord(UrlState.FAILED, reason="dns"))])
    backend.checkpoint({})
    assert len(in_table(backend)) == BUCKET + 13
    backend.forget([*second[:4], second[5], failed.key, first[-1]])
    backend.checkpoint({})
    assert len(in_table(backend)) == BUCKET + 6
    backend.forget([key for key in (*first, *second) if backend.visit(key) is not None])
    backend.checkpoint({})
    assert not in_table(backend)


def test_a_table_is_read_anew_by_its_next_owner(store):
    """And by one that has it again: others may have changed it."""
    one, two = store.join("w1", [0]), store.join("w2")
    keys = visit(one, "1", "2", "3", "4")
    one.forget(keys[:1])
    one.checkpoint({})
    one.give_up([0])
    store.assign(two, [0])
    two.forget(keys[1:2])
    two.checkpoint({})
    keys += visit(two, "5")
    two.give_up([0])
    store.assign(one, [0])
    one.forget(keys[2:])
    one.checkpoint({})
    assert not in_table(one)
    assert one.counts() == one.audit()


def test_a_commit_whose_answer_was_lost_is_in_the_table_that_is_read(store):
    """Its members are forgotten like all others."""
    backend = store.open()
    backend.recover()
    keys = visit(backend, "1", "2")
    backend.forget(keys[:1])
    backend.checkpoint({})
    send, link = backend.link._send, backend.link

    def lost(commands):
        send(commands)
        link.stop.set()
        raise ConnectionResetError("lost")

    link._send = lost
    with pytest.raises(Exception, match="lost"):
        visit(backend, "3")
    link._send = send
    link.stop.clear()
    backend.forget([entry("http://a/3").key])
    backend.checkpoint({})
    assert len(in_table(backend)) == 1
    backend.forget(keys[1:])
    backend.checkpoint({})
    assert not in_table(backend)
