"""The settings of a crawl that many workers share. Every crawl has them checked, so this module
imports no Redis client."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from larmspider import options

if TYPE_CHECKING:
    from larmspider.options import Settings

MAX_PARTITIONS = 16_384
"""The largest LARM_BLOCKS."""


class ClusterSettings(NamedTuple):
    """LARM_LEASE_SECS, LARM_KEEP_ALIVE, LARM_BLOCKS, LARM_BATCH_URLS, LARM_LOCAL_QUEUE.

    ``partitions`` is 0 if the crawl in Redis sets the number: partitions_of().
    """

    lease_secs: float
    keep_alive: bool
    partitions: int
    batch_urls: int
    local_queue: int


def cluster_settings(settings: Settings) -> ClusterSettings:
    return ClusterSettings(
        lease_secs=options.seconds(settings, "LARM_LEASE_SECS", minimum=1),
        keep_alive=options.boolean(settings, "LARM_KEEP_ALIVE"),
        partitions=options.integer(settings, "LARM_BLOCKS", minimum=0, maximum=MAX_PARTITIONS),
        batch_urls=options.integer(settings, "LARM_BATCH_URLS", minimum=1),
        local_queue=options.integer(settings, "LARM_LOCAL_QUEUE", minimum=1),
    )
