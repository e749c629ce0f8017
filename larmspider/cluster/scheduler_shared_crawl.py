"""The crawl in Redis as a whole, for who looks at it before any worker joins.

crawl = SharedCrawl(settings, "intranet")       # ConfigError: why this Redis cannot be used
crawl.refuse_to_wipe("yes")                     # ... or that workers are at it, or pages stored
crawl.wipe()
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.cluster.joining import description, insist, refuse_other, refuse_to_wipe
from larmspider.cluster.membership import Membership
from larmspider.cluster.redis_admin import wipe
from larmspider.cluster.redis_keys import Keys
from larmspider.cluster.scheduler_redis import link_to
from larmspider.errors import ConfigError, LarmspiderError
from larmspider.frontier.factory import sharing
from larmspider.workdir import directory as locks
from larmspider.workdir.manifest import LOCK

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


class SharedCrawl:
    """Of the spider with this name. Raises ConfigError."""

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """The one that ``crawler`` would join."""
        assert crawler.spider is not None
        return cls(crawler.settings, crawler.spider.name)

    def __init__(self, settings: BaseSettings, spider: str) -> None:
        self._link = link_to(settings)
        shared = sharing(settings)
        self._keys = Keys(spider, shared.blocks)
        self._membership = Membership(
            self._link.client, spider, "", lease_secs=shared.lease_secs, blocks=shared.blocks
        )

    def refuse_other(self, crawler: Crawler) -> None:
        """Raise ConfigError where it is not the crawl of ``crawler``, as joining it would."""
        self.refuse_other_blocks()
        (known,) = self._link.run([("GET", self._keys.crawl("description"))])
        if known is not None:
            living = len(insist(self._membership.living, self._link.name))
            anyway = options.choice(crawler.settings, "LARM_RESUME", ("", "anyway")) == "anyway"
            ours = description(crawler)
            refuse_other(json.loads(known), ours, self._link.name, living, anyway=anyway)

    def refuse_other_blocks(self) -> None:
        """Raise ConfigError where its hosts fall into another number of blocks."""
        (known,) = self._link.run([("GET", self._keys.crawl("format"))])
        blocks = re.search(rb"(\d+) blocks$", known or b"")
        if blocks is not None and int(blocks[1]) != self._keys.blocks:
            raise ConfigError(
                f"LARM_BLOCKS={self._keys.blocks} is not accepted: the crawl in Redis at"
                f" {self._link.name} was begun with {int(blocks[1])}, which stays, unless"
                " -a fresh=yes starts over"
            )

    def refuse_to_wipe(self, fresh: str) -> None:
        """Raise ConfigError where workers live by it, or ``fresh`` is not enough for its pages."""
        where = self._link.name
        insist(lambda: refuse_to_wipe(self._membership, where, fresh), where)

    def expire_ended(self, root: Path) -> None:
        """Nobody waits for leases of workers whose directories in ``root`` no process holds: they
        were killed. For a Redis that workers of this machine alone can reach."""
        names = insist(self._membership.names, self._link.name)
        ended = [name for name in names if _has_ended(root / name / LOCK)]
        insist(lambda: self._membership.expire(ended), self._link.name)

    def wipe(self) -> None:
        """Delete it; nobody may be at work on it."""
        wipe(self._link, self._keys)


def _has_ended(lock: Path) -> bool:
    """Whether no process holds it; one that is not there says nothing."""
    try:
        locks.check_free(lock)
    except LarmspiderError:
        return False
    return lock.exists()
