"""larmspider/cluster/memory.py: how full Redis is, and that new links wait before it is full."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from larmspider.cluster.memory import CHANGE_BYTES, MemoryWatch
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.worker import ClusterWorker
from tests.support.servers.redis import RedisServer


def test_new_links_wait_before_redis_is_full(
    redis_server: Callable[..., RedisServer], caplog: pytest.LogCaptureFixture
) -> None:
    """It is warned of once, said when they wait, and when they go on."""
    client = redis_server(maxmemory_policy="noeviction").client()
    watch = MemoryWatch(RedisLink(client, "here"))
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


def test_what_is_to_be_committed_counts(redis_server: Callable[..., RedisServer]) -> None:
    """Of each worker as much as of this one: a batch may have 20,000 changes."""
    client = redis_server(maxmemory_policy="noeviction").client()
    watch = MemoryWatch(RedisLink(client, "here"))
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
    watch = MemoryWatch(RedisLink(client, "here"))
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


@pytest.mark.parametrize(("valid", "full"), [(True, False), (False, False), (True, True)])
def test_a_worker_fetches_with_a_lease_and_with_room_in_redis(valid: bool, full: bool) -> None:
    worker = object.__new__(ClusterWorker)
    worker.lease = SimpleNamespace(valid=valid)  # type: ignore[assignment]
    worker._memory = SimpleNamespace(full=full, is_bounded=False)  # type: ignore[assignment]
    assert worker.may_fetch is (valid and not full)
