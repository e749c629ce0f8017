"""Orders in Redis: who gets a host later takes them up."""

from __future__ import annotations

import pytest

from larmspider.cluster.joining import wipe
from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.worker import SharedOverrides
from larmspider.frontier.overrides import HostOverride, Overrides

KEYS = Keys("intranet", 8)


@pytest.fixture
def server(redis_server):
    return redis_server()


def test_what_is_kept_is_newer_than_what_a_worker_has(server):
    """An order that was taken back too; of what is not kept its own holds."""
    orders = SharedOverrides(server.client(), KEYS)
    own = Overrides(
        3.0, {"a:80": HostOverride(paused=True), "b:80": HostOverride(delay=9.0)}, "x", "y"
    )
    assert orders.read(own) == own
    assert orders.keep_host("a:80", HostOverride())
    assert orders.keep_host("c:80", HostOverride(paused=True, delay=0.5))
    read = orders.read(own)
    hosts = {"b:80": HostOverride(delay=9.0), "c:80": HostOverride(paused=True, delay=0.5)}
    assert read.copy() == Overrides(3.0, hosts, "x", "y")
    assert orders.keep_factor(2.5)
    assert orders.read(own).factor == 2.5
    assert wipe(RedisLink(server.client(), "r"), KEYS) == 1
    assert orders.read(own) == own


def test_an_order_that_cannot_be_kept_is_told(server):
    """It does not end the crawl, nor wait."""
    orders = SharedOverrides(server.client(), KEYS)
    server.kill()
    assert not orders.keep_factor(2.0)
