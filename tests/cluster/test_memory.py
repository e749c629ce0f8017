"""larmspider/cluster/memory.py: how full Redis is, and that new links wait before it is full."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from larmspider.cluster import memory
from larmspider.cluster.keys import Keys
from larmspider.cluster.memory import CHANGE_BYTES, MemoryWatch
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.worker import ClusterWorker
from larmspider.frontier.storage.backend import BackendError, Fenced
from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.frontier.conformance import entry
from tests.support.frontier.redis_store import RedisStore
from tests.support.servers.redis import RedisServer

KEYS = Keys("intranet", 8)


def watch_of(client: Any, worker: str = "w1") -> MemoryWatch:
    client.hset(KEYS.crawl("workers"), worker, "1 1")
    return MemoryWatch(RedisLink(client, "here"), KEYS, worker)


@pytest.fixture
def client(redis_server: Callable[..., RedisServer]) -> Iterator[Any]:
    client = redis_server(maxmemory_policy="noeviction").client()
    yield client
    client.config_set("maxmemory", 0)


def leave(client: Any, free: float) -> None:
    """Leave ``free`` bytes below the maxmemory."""
    client.config_set("maxmemory", int(client.info("memory")["used_memory"] + free))


def test_new_links_wait_before_redis_is_full(
    redis_server: Callable[..., RedisServer], caplog: pytest.LogCaptureFixture
) -> None:
    """It is warned of once, said when they wait, and when they go on."""
    client = redis_server(maxmemory_policy="noeviction").client()
    watch = watch_of(client)
    watch.look(0, 0, 1)
    assert (watch.full, caplog.messages) == (False, [])
    for part, full, said in (
        (0.84, False, "has used 8"),
        (0.84, False, ""),
        (0.95, True, "is nearly full"),
        (0.88, True, ""),
        (0.5, False, "has room again"),
        (0.84, False, "has used 8"),
    ):
        caplog.clear()
        client.config_set("maxmemory", int(client.info("memory")["used_memory"] / part))
        watch.look(0, 0, 1)
        assert watch.full is full, part
        assert (said in caplog.text) if said else not caplog.messages


def test_keys_that_redis_evicts_while_the_crawl_runs_are_an_error(
    redis_server: Callable[..., RedisServer],
) -> None:
    """Earlier evictions do not count; nor does a restart of Redis, which counts from 0."""
    server = redis_server(maxmemory_policy="noeviction")
    client = server.client()
    evict(client)
    watch = watch_of(client)
    watch.look(0, 0, 1)
    watch.look(0, 0, 1)
    evict(client)
    with pytest.raises(BackendError, match=r"evicted [\d,]+ keys? .*noeviction.*--rebuild"):
        watch.look(0, 0, 1)
    server.stop()
    server.start()
    watch.look(0, 0, 1)


def test_a_lost_lease_is_explained_by_the_keys_that_redis_evicted(
    redis_server: Callable[..., RedisServer],
) -> None:
    server = redis_server(maxmemory_policy="noeviction")
    client = server.client()
    watch = watch_of(client)
    watch.look(0, 0, 1)
    fenced = Fenced("its lease ran out")
    assert watch.explained(fenced) is fenced
    evict(client)
    assert "its lease ran out: Redis at here has evicted" in str(watch.explained(fenced))
    server.stop()
    assert watch.explained(fenced) is fenced


def evict(client: Any) -> None:
    client.set("a", b"x" * 100_000)
    client.config_set("maxmemory-policy", "allkeys-random")
    before = client.info("stats")["evicted_keys"]
    client.config_set("maxmemory", client.info("memory")["used_memory"] - 10_000)
    while client.info("stats")["evicted_keys"] == before:
        client.echo("evict")
    client.config_set("maxmemory", 0)
    client.config_set("maxmemory-policy", "noeviction")


def test_what_is_to_be_committed_counts(redis_server: Callable[..., RedisServer]) -> None:
    """Each worker counts like this one: a batch may have 20,000 changes."""
    client = redis_server(maxmemory_policy="noeviction").client()
    watch = watch_of(client)
    client.config_set("maxmemory", 100_000_000)
    watch.look(0, 20_000 * CHANGE_BYTES, 4)
    assert not watch.full
    watch.look(0, 20_000 * CHANGE_BYTES, 8)
    assert watch.full
    client.config_set("maxmemory", 0)
    watch.look(0, 20_000 * CHANGE_BYTES, 8)
    assert not watch.full, "without maxmemory it is never full"


def test_a_burst_between_two_looks_waits_too(redis_server: Callable[..., RedisServer]) -> None:
    """Each worker has its part of what is left up to 90%, and looks when half of that is used."""
    client = redis_server(maxmemory_policy="noeviction").client()
    watch = watch_of(client)
    assert watch.has_room(10**9)
    used = client.info("memory")["used_memory"]
    client.config_set("maxmemory", int((used + 3_000_000) / 0.9))
    watch.look(1_000_000, 0, 1)
    assert watch.has_room(1_000_000 + 2_700_000)
    assert not watch.has_room(1_000_000 + 3_300_000)
    assert [watch.wants_look(1_000_000 + more) for more in (900_000, 1_800_000)] == [False, True]
    watch.look(1_000_000, 300_000, 5)
    assert watch.has_room(1_000_000 + 300_000)
    assert not watch.has_room(1_000_000 + 660_000)
    client.config_set("maxmemory", used)
    watch.look(1_000_000, 0, 1)
    assert watch.full
    assert not watch.has_room(1_000_000)
    client.config_set("maxmemory", 0)
    watch.look(1_000_000, 0, 1)
    assert watch.has_room(10**9)


def test_the_parts_of_all_workers_fit_into_what_is_left(client: Any) -> None:
    """Also where one looks again and again, and uses what it is given, while others do not."""
    one, two = watch_of(client), watch_of(client, "w2")
    limit = int((client.info("memory")["used_memory"] + 20_000_000) / memory.FULL_AT)
    client.config_set("maxmemory", limit)
    two.look(0, 0, 2)
    brought = {one: 0, two: 0}
    for watch in (one,) * 8 + (two,):
        if watch is one:
            one.look(brought[one], 0, 2)
        while watch.has_room(brought[watch] + 100_000):
            client.set(f"{id(watch)} {brought[watch]}", bytes(98_000))
            brought[watch] += 100_000
    assert brought[two] > 9_000_000, "its part is still its own"
    assert brought[one] + brought[two] <= 20_000_000
    assert brought[one] > 9_000_000


def test_commits_of_all_workers_fit_into_what_is_left(client: Any) -> None:
    """A commit without room waits, and a worker that only fetches gives up its claim beyond its own
    commit. The claim of a worker that is gone does not count once its log is applied."""
    one, two = watch_of(client), watch_of(client, "w2")
    client.hset(KEYS.crawl("dead"), "7", "w3")
    client.hset(KEYS.crawl("room"), mapping={"w3": 6_000_000, "w4": 99_000_000})
    limit = int((client.info("memory")["used_memory"] + 10_000_000) / memory.COMMIT_AT)
    client.config_set("maxmemory", limit)
    two.look(0, 0, 2)  # 2 of 4 million
    begun, may_end = threading.Event(), threading.Event()

    def commit() -> None:
        with one.claimed(3_500_000):
            begun.set()
            may_end.wait(10)

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        assert not begun.wait(0.3)
        assert not two.has_room(4_000_000)
        two.look(0, 100_000, 2)
        assert not two.has_room(100_000)
        assert begun.wait(10)
        two._link.stop.set()
        with pytest.raises(BackendError, match="no room"), two.claimed(500_000):
            pass
        client.hdel(KEYS.crawl("dead"), "7")
        with two.claimed(500_000):
            pass
    finally:
        may_end.set()
        thread.join()


class Exact(MemoryWatch):
    """Redis has ``room`` times the estimate of a commit, and the buffers of this test."""

    room = 1.0
    needs: list[int]

    def claimed(self, need: int) -> AbstractContextManager[None]:
        if need not in self.needs:
            self.needs.append(need)
            leave(self._link.client, self.room * (need + 100_000))
        return super().claimed(need)


class Impatient(RedisLink):
    """Does not wait for room."""

    def _send(self, commands: Any) -> list[Any]:
        try:
            return super()._send(commands)
        except redis.exceptions.OutOfMemoryError as error:
            raise AssertionError("Redis is full") from error


BATCHES: dict[str, tuple[list[str], int]] = {
    "long URLs": ([f"http://h{n % 9}/{n}{'y' * 1_200}" for n in range(400)], 0),
    "short URLs": ([f"http://h{n % 9}/{n}" for n in range(3_000)], 0),
    "hosts": ([f"http://h{n}/" for n in range(500)], 0),
    "few": ([f"http://h{n}/" for n in range(12)], 0),
    "robots.txt": ([f"http://h{n}/" for n in range(12)], 500_000),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_a_commit_brings_no_more_than_it_has_claimed(
    client: Any, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queued, forwarded and visited URLs, notes: Redis never refuses a command where it has just
    that room; and with less nothing is sent."""
    monkeypatch.setattr(memory, "COMMIT_AT", 1.0)
    found, note = BATCHES[kind]
    with closing(RedisStore(client, tmp_path)) as store:
        link = store.link(Impatient)
        watch = Exact(link, store.keys, "w1")
        watch.needs = []
        timer = threading.Timer(20, link.stop.set)
        timer.start()
        one = store.join("w1", range(4), link=link, memory=watch)
        entries = [entry(url) for url in found]
        own = [each for each in entries if one.owns(each.key)]
        one.add(own)
        one.forward(each for each in entries if not one.owns(each.key))
        for each in own if note else ():
            one.put_note(f"robots {each.host}", b"x" * note)
        one.checkpoint({"log": b"1"})
        for each in own[::2]:
            one.pop(each.host, 0.0, 1)
        visit = FetchRecord(UrlState.STORED, url=own[0].url, status=200, etag="e" * 100)
        one.acknowledge([(each.key, visit) for each in one.leases()])
        one.checkpoint({"log": b"2"})
        assert len(watch.needs) == 2
        timer.cancel()
        # with less
        one.add([entry(f"{each.url}more") for each in own])
        watch.room = 0.0
        link.stop.set()
        one.seal()
        with pytest.raises(BackendError, match="no room for a commit"):
            one.commit({"log": b"3"})
        assert client.hget(store.keys.commit("w1"), "serial") == b"2"
        client.config_set("maxmemory", 0)
        one.commit({"log": b"3"})
        one.discard()
        assert client.hget(store.keys.commit("w1"), "serial") == b"3"


@pytest.mark.parametrize(("valid", "full"), [(True, False), (False, False), (True, True)])
def test_a_worker_fetches_with_a_lease_and_with_room_in_redis(valid: bool, full: bool) -> None:
    worker = object.__new__(ClusterWorker)
    worker.lease = SimpleNamespace(valid=valid)  # type: ignore[assignment]
    worker._memory = SimpleNamespace(full=full, is_bounded=False)  # type: ignore[assignment]
    assert worker.may_fetch is (valid and not full)
