"""The stores' positions: the stores name them at a checkpoint, and go back to them at the start.

positions = store_positions(crawler)       # what the checkpoint commits with the frontier
recover_stores(crawler, positions)         # the next run: what was written after that is dropped
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from larmspider import signals
from larmspider.errors import ConfigError, CrawlDirError, InvalidURL, LarmspiderError
from larmspider.items import Removed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.cluster.redis_records import Outdated
    from larmspider.pipelines.store import Store
    from larmspider.urls.canonical import Forms


class CheckpointError(LarmspiderError):
    """A store could not write; nothing was committed."""


def store_positions(crawler: Crawler) -> dict[str, bytes]:
    """Every store's position, all of one moment. Raises CheckpointError if one cannot write."""
    positions = {}
    for receiver, result in crawler.signals.send_catch_log(signals.checkpoint):
        if not isinstance(result, tuple):
            error = getattr(result, "value", result)
            raise CheckpointError(f"{receiver_name(receiver)} cannot write: {error}")
        name, position = result
        positions[name] = position
    return positions


def recover_stores(crawler: Crawler, positions: Mapping[str, bytes]) -> None:
    """Let the stores drop data that was written after these positions. Raises a store's error as
    LarmspiderError."""
    results = crawler.signals.send_catch_log(
        signals.recovered, positions=positions, dont_log=LarmspiderError
    )
    names = [receiver_name(receiver) for receiver, _ in results]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(
            f"ITEM_PIPELINES has two stores called {twice[0]}, by which positions are kept:"
            " give one of the classes another name"
        )
    for receiver, result in results:
        if isinstance(result, Failure):
            error = result.value
            if isinstance(error, LarmspiderError):
                raise error
            raise CrawlDirError(
                f"{receiver_name(receiver)} cannot go back to its last commit: {error}"
            )


def let_go(
    pages: Iterable[Outdated],
    stores: Sequence[Store],
    forms: Callable[[str], Forms],
    now: float,
) -> None:
    """Remove pages from the stores of a worker if another worker has newer versions of them, or has
    removed them."""
    for page in pages:
        when = min(page.time, now) - 1  # before the version that counts
        with suppress(InvalidURL):
            removed = Removed(page.url, forms(page.url).exact, "", when)
            for store in stores:
                store.process_item(removed)


def receiver_name(receiver: Any) -> str:
    """The class behind a signal's receiver, for a message."""
    return type(getattr(receiver, "__self__", receiver)).__name__
