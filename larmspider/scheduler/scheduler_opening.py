"""How a frontier is opened, alone or as one of many workers, and what is told at its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider import options, stats
from larmspider.errors import CommittedGoneError, CrawlDirError
from larmspider.fetch.dns import OwnAddress
from larmspider.frontier.factory import build_frontier
from larmspider.scheduler.counters import final_counts
from larmspider.scheduler.scheduler_stores import recover_stores

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.cluster.scheduler_parts import Owner
    from larmspider.cluster.worker import Sharing
    from larmspider.fetch.dns import Addresses
    from larmspider.frontier.frontier import Frontier


def open_frontier(
    scheduler: Owner, path: Path, addresses: Addresses
) -> tuple[Frontier, Sharing | None]:
    """Taken up from its last commit, to which the stores have gone back.

    Raises ConfigError, LarmspiderError; then nothing is open, and no worker has joined.
    """
    settings = scheduler.crawler.settings
    sharing = frontier = None
    if options.many_workers(settings):
        from larmspider.cluster.worker import Sharing  # only who shares needs Redis

        sharing = Sharing(scheduler, path)
    try:
        shared = None if sharing is None else sharing.backend
        book = addresses.book(OwnAddress.from_settings(settings))
        frontier = build_frontier(settings, path, book, shared)
        _recover_stores(scheduler.crawler, frontier.recover().positions, sharing)
        if sharing is not None:
            sharing.begin(frontier)
    except BaseException:
        if sharing is not None:
            sharing.abandon()
            sharing.backend.close()
        if frontier is not None:
            frontier.backend.close()
        raise
    return frontier, sharing


def _recover_stores(
    crawler: Crawler, positions: Mapping[str, bytes], sharing: Sharing | None
) -> None:
    """To start over, as one crawl alone may, would delete what all other workers have in Redis."""
    try:
        recover_stores(crawler, positions)
    except CommittedGoneError as gone:
        if sharing is None:
            raise
        raise CrawlDirError(
            f"worker {sharing.name} of the crawl in Redis has its pages in another directory, or"
            f" they are gone ({gone.what}): take another LARM_WORKER, or its LARM_DIR"
        ) from None


def count_end(crawler: Crawler, frontier: Frontier, broken: str, sharing: Sharing | None) -> None:
    """What the summary tells."""
    assert crawler.stats is not None
    if broken:
        crawler.stats.set_value(stats.BROKEN, broken)
    if sharing is not None:
        crawler.stats.set_value(stats.REDIS_ROUND_TRIPS, sharing.link.round_trips)
        crawler.stats.set_value(stats.REDIS_WAITED, round(sharing.link.waited, 3))
        if sharing.fenced:
            crawler.stats.set_value(stats.FENCED, 1)
    for key, number in final_counts(frontier).items():
        crawler.stats.set_value(key, number)
