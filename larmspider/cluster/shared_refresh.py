"""What workers that visit pages again have in common: when the run began, and its budget.

    refresh = SharedRefresh(client, keys)
    refresh.began("all", now)              # the time at which the first of them began
    refresh.refill(now, per_day=33)        # the visits that all of them together may still make

A run begins when its first worker asks, and is over when the crawl has come to its end: until then
workers that join later, and those that are started again, go on with it. Methods may be called from
any thread, and raise what UNREACHABLE lists.
"""

from __future__ import annotations

from typing import Any

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import REFILL
from larmspider.frontier.refresh import KEPT_DAYS


class SharedRefresh:
    """``client`` of Redis, which this object may use beside others."""

    def __init__(self, client: Any, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self._refill = client.register_script(REFILL.text)

    def began(self, mode: str, now: float) -> float:
        """When the run with this LARM_REFRESH began, in seconds since the epoch."""
        runs = self._keys.crawl("refresh")
        self._client.hsetnx(runs, mode, repr(now))
        return float(self._client.hget(runs, mode) or now)

    def refill(self, now: float, per_day: float) -> float:
        """Visits that are left, of ``per_day`` for the whole crawl, as of the last commits."""
        arguments = [repr(now), repr(per_day), KEPT_DAYS]
        return float(self._refill(keys=[self._keys.crawl("totals")], args=arguments))
