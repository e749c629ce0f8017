"""Commits continue with the replica that sentinels make the master."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from scrapy.settings import Settings

from larmspider.cluster.redis_client import link_to
from tests.support.frontier.conformance import OK, entry
from tests.support.frontier.redis_store import RedisStore
from tests.support.servers.redis import sentinel

pytestmark = pytest.mark.acceptance


def test_a_commit_outlasts_a_failover(redis_server, tmp_path):
    """The master is killed between two commits; nothing that the replica had is lost."""
    master = redis_server(repl_diskless_sync_delay=0)
    replicaof = f"{master.host} {master.port}"
    replica = redis_server(replicaof=replicaof, replica_announce_ip=master.host)
    end = time.monotonic() + 60
    while replica.client().info()["master_link_status"] != "up":
        assert time.monotonic() < end
        time.sleep(0.05)
    with sentinel(master) as place:
        link = link_to(Settings({"REDIS_URL": f"redis+sentinel://{place}/mymaster/0"}))
        link.starting = False
        with closing(RedisStore(link.client, tmp_path)) as store:
            backend = store.open(link=link)
            backend.recover()
            backend.add([entry(f"http://a/{n}") for n in range(10)])
            backend.checkpoint({"s": b"1"})
            while not replica.client().exists(store.keys.commit("w1")):
                assert time.monotonic() < end
                time.sleep(0.05)
            master.kill()
            backend.acknowledge([(got.key, OK) for got in backend.pop("a:80", 0.0, 4)])
            backend.checkpoint({"s": b"2"})
            assert replica.client().info()["role"] == "master"
            assert backend.counts() == backend.audit()
            assert replica.client().hget(store.keys.crawl("totals"), "stored") == b"4"
            backend.close()
        link.client.close()
