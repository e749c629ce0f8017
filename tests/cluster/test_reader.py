"""larmspider/cluster/reader.py: the queues of a shared crawl, read beside its workers."""

from __future__ import annotations

from contextlib import closing

import pytest

from larmspider.cluster.reader import RedisReader
from larmspider.crawl.worker_dirs import WorkersFrontierReader
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState, url_key
from tests.support.frontier.conformance import OK, entries, entry
from tests.support.frontier.redis_store import RedisStore

U, Q, L, S, F, R, _ = UrlState


@pytest.fixture
def store(shared_redis, tmp_path):
    with closing(RedisStore(shared_redis.client(), tmp_path)) as store:
        yield store


@pytest.fixture
def crawled(store):
    """Two hosts: a has URLs in all states, some of them with a time; b only waits."""
    backend = store.join("w1", range(8))
    backend.add([entry(f"http://a/{n}", priority=9 - n) for n in range(7)])
    backend.add(entries("1", "2", host="b"))
    first, second, third = backend.pop("a:80", 0.0, 3)
    backend.acknowledge([(first.key, OK), (second.key, FetchRecord(F, time=2.0, reason="dns"))])
    backend.release([(third.key, 50.0, 2)])
    backend.refuse([(entry("http://a/no"), "robots.txt")])
    backend.put_hosts({"a:80": b"slow"})
    backend.put_note("robots a:80", b"Disallow: /no")
    backend.checkpoint({})
    yield backend
    backend.close()


def test_it_tells_what_the_owner_would(store, crawled):
    """States, entries and places, next URLs, hosts with counters, notes."""
    reader = RedisReader(store.client, store.keys)
    urls = [f"http://a/{n}" for n in range(8)] + ["http://a/no", "http://b/1", "http://none/"]
    keys = [url_key(url) for url in urls]
    assert [reader.state(key) for key in keys] == crawled.check(keys)
    assert [reader.state(key) for key in keys].count(F) == 1
    assert [reader.entry(key) for key in keys] == [crawled.entry(key) for key in keys]
    assert [e.url for e in reader.queued("a:80", 3)] == [f"http://a/{n}" for n in (3, 2, 1)]
    assert reader.place(url_key("http://a/1")) == (2, 0.0)
    assert reader.place(url_key("http://a/4")) == (0, 50.0)
    assert reader.place(url_key("http://a/6")) is None
    hosts = reader.hosts()
    assert {host: row[0] for host, row in hosts.items()} == {"a:80": b"slow", "b:80": b""}
    assert {host: row[1].queued for host, row in hosts.items()} == {"a:80": 5, "b:80": 2}
    assert (hosts["a:80"][1].stored, hosts["a:80"][1].refused) == (1, 1)
    assert reader.note("robots a:80") == b"Disallow: /no"
    assert reader.note("robots b:80") is None


def test_what_is_being_fetched_counts_as_in_flight_while_a_worker_runs(store, crawled):
    """Redis does not know which URLs an owner has handed out, only how many; once no worker runs
    they are queued again."""
    (lease,) = crawled.pop("b:80", 0.0)
    crawled.checkpoint({})
    reader = RedisReader(store.client, store.keys)
    assert (crawled.check([lease.key]), reader.state(lease.key)) == ([L], Q)
    for runs, (queued, leased) in ((True, (1, 1)), (False, (2, 0))):
        both = WorkersFrontierReader([], reader)
        both.runs = runs
        for counts in (both.hosts()["b:80"][1], both.host("b:80")[1]):
            assert (counts.queued, counts.leased, counts.balanced()) == (queued, leased, True)


def waiting_in(reader):
    found, after = set(), b""
    while after is not None:
        entries, after = reader.waiting(after)
        found |= {entry.url for entry in entries}
    return found


def test_without_redis_each_shard_tells_what_it_knew(store, crawled, tmp_path):
    """The one that had a host last has come furthest; what became of a URL is where it was
    fetched."""
    other = store.join("w2")
    crawled.give_up(range(8))
    store.assign(other, range(8))
    (taken,) = other.pop("b:80", 0.0)
    other.acknowledge([(taken.key, FetchRecord(S, time=9.0, status=200))])
    other.checkpoint({})
    for backend in (crawled, other):
        backend.close()
    shards = [FrontierReader(tmp_path / name / "frontier") for name in ("w1", "w2")]
    for merged in (
        WorkersFrontierReader(shards),
        WorkersFrontierReader(shards, RedisReader(store.client, store.keys)),
    ):
        assert merged.state(url_key("http://a/6")) is S
        assert merged.state(taken.key) is S
        assert merged.visit(taken.key).time == 9.0
        assert merged.state(url_key("http://b/2")) is Q
        assert merged.entry(url_key("http://b/2")).url == "http://b/2"
        assert merged.entry(taken.key) is None
        assert merged.place(url_key("http://b/2")) == (0, 0.0)
        assert merged.state(url_key("http://none/")) is U
        assert [e.url for e in merged.queued("b:80")] == ["http://b/2"]
        rows = {host: (row[1].stored, row[1].queued) for host, row in merged.hosts().items()}
        assert rows == {"a:80": (1, 5), "b:80": (1, 1)}
        assert merged.counts().discovered == 10
        assert merged.host("b:80")[1].stored == 1
        assert merged.host("none:80") == (b"", Counts())
        assert sorted(visit.state for _, visit in merged.visits()) == [S, S, F, R]
        assert waiting_in(merged) >= {"http://b/2", "http://a/1"}
        assert taken.url not in waiting_in(merged)
        assert merged.note("robots a:80") == b"Disallow: /no"
    for shard in shards:
        shard.close()


def test_a_redis_that_has_gone_is_said_in_one_line(store):
    """Not a traceback of its client."""
    store.client.connection_pool.connection_kwargs |= {"port": 9, "host": "127.33.0.3"}
    store.client.connection_pool.disconnect()
    with pytest.raises(CrawlDirError, match="Redis cannot be read: Error"):
        RedisReader(store.client, store.keys).hosts()
