"""Seeds added to a crawl that runs, through the same filters as those it began with.

await add_seeds(crawler, "http://wiki/new http://other/")   ->  "1 seed added; refused: http://..."
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from scrapy import Request

from larmspider.errors import ConfigError, InvalidURL
from larmspider.formatting import counted
from larmspider.middlewares.filter_middleware import FilterMiddleware
from larmspider.requests import normalized_of, page_request
from larmspider.urls.seeds import read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

SEEDS_MOST = 1_000
TOLD_MOST = 5
"""Refusals that the answer names."""


async def add_seeds(crawler: Crawler, text: str) -> str:
    """White space separates URLs. Raises ConfigError where one is none, and adds nothing then."""
    if "@" in text.split("/", 1)[0]:
        raise ConfigError("seeds are URLs here; a file cannot be named")
    seeds = read_seeds(text)
    if not seeds or len(seeds) > SEEDS_MOST:
        raise ConfigError(f"{len(seeds)} seeds are not accepted: 1 to {SEEDS_MOST:,} are")
    spider = crawler.spider
    assert spider is not None
    requests = [page_request(spider, seed) for seed in seeds]
    chain = crawler.engine.scraper.spidermw.middlewares
    refused = [
        f"{request.url} ({reason})"
        for request in requests
        if (reason := _refusal(request, chain)) is not None
    ]
    passed = [request async for request in _through(chain, requests)]
    for request in passed:
        crawler.engine.crawl(request)
    told = "; ".join(refused[:TOLD_MOST])
    more = f"; {len(refused) - TOLD_MOST:,} more" if len(refused) > TOLD_MOST else ""
    return f"{len(passed):,} of {counted(len(seeds), 'seed')} added" + (
        f"; refused: {told}{more}" if told else ""
    )


def _refusal(request: Request, chain: Sequence[Any]) -> str | None:
    """What the first filter that rejects it says."""
    for one in reversed(chain):
        if isinstance(one, FilterMiddleware):
            probe = request.copy()
            try:
                reason = one.filter.reject_request(probe, normalized_of(probe, one.normalize))
            except InvalidURL as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001 - as in the chain: whatever it raises rejects
                reason = f"the filter raised {error!r}"
            if reason is not None:
                return f"{one.filter.name}: {reason}"
    return None


async def _through(chain: Sequence[Any], requests: list[Request]) -> AsyncIterator[Request]:
    """As Scrapy sends what start() yields."""

    async def begin() -> AsyncIterator[Any]:
        for request in requests:
            yield request

    stream: AsyncIterator[Any] = begin()
    for one in reversed(chain):
        if hasattr(one, "process_start"):
            stream = one.process_start(stream)
    async for item in stream:
        if isinstance(item, Request):
            yield item
