"""What the parts of a shared scheduler may ask of each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.cluster.membership import Membership
    from larmspider.cluster.redis_client import RedisLink
    from larmspider.cluster.redis_keys import Keys
    from larmspider.cluster.shared_backend import RedisBackend
    from larmspider.cluster.worker_lease import WorkerLease
    from larmspider.frontier.frontier import Frontier
    from larmspider.frontier.partition import Blocks


class Owner(Protocol):
    """The scheduler."""

    crawler: Crawler
    broken: str
    closed: bool
    opened: bool
    checkpointing: asyncio.Lock

    @property
    def busy(self) -> bool: ...

    def wake(self) -> None: ...


class Worker(Protocol):
    """scheduler_sharing.py."""

    scheduler: Owner
    membership: Membership
    backend: RedisBackend
    link: RedisLink
    keys: Keys
    lease: WorkerLease

    @property
    def frontier(self) -> Frontier: ...

    @property
    def blocks(self) -> Blocks: ...

    @property
    def moving(self) -> bool: ...
