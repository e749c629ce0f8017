"""Shared by workers that visit pages again: when the run began, and its budget.

    refresh = SharedRefresh(client, keys)
    refresh.began("all", now, "r1")        # the time at which the first of them began
    refresh.refill(now, per_day=33)        # the visits that all of them together may still make

A run begins with its first worker, and is over when the crawl has come to its end: until then
workers that join later or restart continue the run. After its end, workers with its name
(LARM_REFRESH_RUN) continue it, and find nothing left to do. Methods may be called from any thread,
and raise what UNREACHABLE lists.
"""

from __future__ import annotations

from typing import Any

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import REFILL
from larmspider.frontier.refresh import KEPT_DAYS


class SharedRefresh:
    """``client`` of Redis; other objects may use it, too."""

    def __init__(self, client: Any, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self._refill = client.register_script(REFILL.text)

    def began(self, mode: str, now: float, name: str = "") -> float:
        """When the run with this LARM_REFRESH, and this name, began, in seconds since the epoch."""
        runs, named = self._keys.crawl("refresh"), self._keys.crawl("refresh_run")
        if name:
            known = self._client.hmget(named, "name", "mode", "began")
            if known[:2] == [name.encode(), mode.encode()]:
                return float(known[2])
        self._client.hsetnx(runs, mode, repr(now))
        began = float(self._client.hget(runs, mode) or now)
        if name:
            self._client.hset(named, mapping={"name": name, "mode": mode, "began": repr(began)})
        return began

    def refill(self, now: float, per_day: float) -> float:
        """Visits that are left, of ``per_day`` for the whole crawl, as of the last commits."""
        arguments = [repr(now), repr(per_day), KEPT_DAYS]
        return float(self._refill(keys=[self._keys.crawl("totals")], args=arguments))
