"""Copies: a page that another URL gave already is logged, and not stored.

    http://wiki/FAQ.html    same page as http://wiki/faq.html, by the path-case rule, on trial here

The frontier has these URLs fetched to find out whether they are one page
(learned/spellings/trials.py). A spider middleware behind FollowMiddleware: the links of a copy are
followed like any page's.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any

from larmspider.extraction.texts.fingerprint import Details, fingerprint
from larmspider.formatting import printable
from larmspider.frontier.ending import Merge
from larmspider.items import REDIRECT, Page
from larmspider.learned.spellings.trials import Arrival
from larmspider.scheduler.leases import lease_of
from larmspider.scheduler.scheduler import WithScheduler

if TYPE_CHECKING:
    from scrapy.http import Response


logger = logging.getLogger(__name__)


class CopiesMiddleware(WithScheduler):
    """Takes the fingerprint of each page, and drops copies. Shows the pages to the Parts that learn
    which URLs are traps (learned/traps/trap_watch.py) and which hosts need JavaScript
    (learned/script_watch.py)."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        if self.scheduler is None:
            async for item in result:
                yield item
            return
        frontier = self.scheduler.frontier
        merger, traps = frontier.merger, frontier.traps
        async for item in result:
            if not isinstance(item, Page):
                yield item
                continue
            lease, copy = lease_of(response), None
            entry = lease.entry if lease is not None and lease.holder is response.request else None
            if entry is not None:
                frontier.scripts.saw(entry.host, item)
                if entry.visit is None:
                    frontier.shortfall.saw(entry.host, item)
                if news := traps.saw(entry, item):
                    logger.info("Host %s: %s", entry.host, printable(news))
            if not merger.is_on:
                yield item
                continue
            if not item.fingerprint:
                item.fingerprint = fingerprint(item, merger.changing(entry.host) if entry else ())
            for link in item.links if merger.stand_ins else ():
                if link.exact in merger.stand_ins:
                    link.exact = merger.stand_ins[link.exact]
            if entry is not None:
                merger.saw(entry, item)
                merger.trials.recent.put(entry.key, item)
                if merger.trials.expects(entry.key, entry.host):
                    copy = merger.trials.arrived(entry.host, entry.key, _arrival(item))
            if copy is None or lease is None:
                yield item
            else:
                lease.ending = Merge(item, copy.message, copy.merged)


def _arrival(page: Page) -> Arrival:
    target = next((link.exact for link in page.links[:1] if link.type == REDIRECT), None)
    return Arrival(
        page.status,
        bytes.fromhex(page.digest) + page.fingerprint,
        partial(Details.of, page),
        (target or "") if page.status != 200 else "",
    )
