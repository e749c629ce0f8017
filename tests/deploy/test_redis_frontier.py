"""The frontier in Redis as the user larm of deploy/users.acl, by TLS: its rights are enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.shared_backend import RedisBackend
from tests.support.deploy.secured_redis import Connect
from tests.support.frontier.conformance import BackendConformance


class Store:
    """Under the names that the spider gives its keys, the only ones that larm may touch."""

    def __init__(self, client, path: Path) -> None:
        self.client, self.path = client, path
        self.keys = Keys("intranet", 8)

    def link(self) -> RedisLink:
        link = RedisLink(self.client, "redis of deploy/")
        link.check()
        return link

    def open(self) -> RedisBackend:
        return RedisBackend(self.path / "frontier", self.link(), self.keys, worker="w1")

    def crash(self, backend: RedisBackend) -> None:
        backend.close()


class TestAsTheUserLarm(BackendConformance):
    @pytest.fixture
    def store(self, secured_redis: Connect, tmp_path: Path):
        store = Store(secured_redis("larm"), tmp_path)
        yield store
        if keys := list(store.client.scan_iter(match="intranet:*{*}*")):
            store.client.unlink(*keys)
