"""The operator's orders in a crawl of many workers: in Redis, for who gets a host later.

    <spider>:{crawl}:orders      "factor" -> 2.0, "wiki:80" -> {"paused": true, "delay": null}

Each worker has the orders that it was given in its own frontier. What is kept here is newer: a
worker reads it whenever blocks of hosts come to it, and so does one that joins.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from larmspider.cluster.heartbeat import UNREACHABLE
from larmspider.cluster.redis_keys import Keys
from larmspider.frontier.politeness import HostOrder, Orders

FACTOR = "factor"
"""No host: those have a port."""


class SharedOrders:
    """Methods may be called from any thread."""

    def __init__(self, client: Any, keys: Keys) -> None:
        self._client, self._key = client, keys.crawl("orders")

    def keep_host(self, name: str, order: HostOrder) -> bool:
        """Also that nothing is ordered of it any more. Whether Redis has it."""
        return self._keep(name, json.dumps(asdict(order)))

    def keep_factor(self, factor: float) -> bool:
        """What all workers were told."""
        return self._keep(FACTOR, str(factor))

    def _keep(self, name: str, value: str) -> bool:
        try:
            self._client.hset(self._key, name, value)
        except UNREACHABLE:
            return False
        return True

    def read(self, own: Orders) -> Orders:
        """``own`` with all that is kept here in its place. Raises what UNREACHABLE lists."""
        found = {name.decode(): value for name, value in self._client.hgetall(self._key).items()}
        factor = float(found.pop(FACTOR, own.factor))
        kept = {name: HostOrder(**json.loads(order)) for name, order in found.items()}
        return Orders(factor, own.hosts | kept, own.restrict, own.instead_of)
