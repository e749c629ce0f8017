"""The short way of new links into the frontier: as one batch, past Scrapy's engine.

On the long way each becomes a Request, passes the spider middlewares below, the engine and the
signal request_scheduled, and is made an entry of the frontier and forgotten: 0.1 ms of CPU, to no
one's use where nobody stands on that way. Where somebody does, the long way is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import signals

from larmspider.items import REDIRECT, Link, Page
from larmspider.middlewares.acknowledge import AcknowledgeMiddleware
from larmspider.middlewares.last_check import LastCheckMiddleware
from larmspider.middlewares.scope import ScopeFilter
from larmspider.requests import MAX_NUMBER
from larmspider.scheduler.scheduler import scheduler_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class ShortWay:
    """For the middleware ``follow``; looks once, at the first page."""

    def __init__(self, crawler: Crawler, follow: object) -> None:
        self.crawler, self.follow = crawler, follow
        self._open: bool | None = None

    def queue(self, links: Sequence[Link], page: Page) -> bool:
        """Queue the new links of ``page``; False where they have to take the long way."""
        if self._open is None:
            self._open = self._nobody_on_the_long_way()
        if not self._open or any(link.normalized in (None, page.normalized) for link in links):
            return False  # a redirect between two spellings of a page has a key of its own
        scheduler = scheduler_of(self.crawler)
        assert scheduler is not None
        frontier, entries = scheduler.frontier, []
        for link in links:
            redirect = link.type == REDIRECT
            assert link.normalized is not None
            entries.append(
                frontier.entry(
                    link.url,
                    link.normalized,
                    depth=min(MAX_NUMBER, page.depth if redirect else page.depth + 1),
                    link_type=link.type,
                    redirects=min(MAX_NUMBER, page.redirects + 1) if redirect else 0,
                    from_page=page.url,
                )
            )
        frontier.add(entries)
        scheduler.wake()
        return True

    def _nobody_on_the_long_way(self) -> bool:
        """Our scheduler; below us only what lets a Request pass as it is; scope judged above us,
        and no receiver of the signals but the last check, which would judge it again."""
        try:
            engine = self.crawler.engine
        except RuntimeError:
            return False  # Scrapy: it is not set yet
        if scheduler_of(self.crawler) is None:
            return False
        chain = engine.scraper.spidermw.middlewares
        if self.follow not in chain:
            return False
        at = chain.index(self.follow)
        below = [one for one in chain[:at] if hasattr(one, "process_spider_output")]
        return (
            all(isinstance(one, AcknowledgeMiddleware) for one in below)
            and any(isinstance(getattr(one, "filter", None), ScopeFilter) for one in chain[at:])
            and not self._receivers(signals.request_dropped)
            and all(
                isinstance(getattr(one, "__self__", None), LastCheckMiddleware)
                for one in self._receivers(signals.request_scheduled)
            )
        )

    def _receivers(self, signal: object) -> list[object]:
        return list(liveReceivers(getAllReceivers(self.crawler.signals.sender, signal)))
