"""The search over a crawl, by the engine that LARM_SEARCH names::

searcher_of(crawl, settings).search("vpn")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from larmspider import options, plugin

if TYPE_CHECKING:
    from larmspider.crawl.reader import CrawlDir
    from larmspider.options import Settings
    from larmspider.search.searcher import Searcher

TANTIVY, OPENSEARCH = "tantivy", "opensearch"
"""The index in the crawl's directory, and the index that OpenSearchReceiver writes."""


def engine_of(settings: Settings) -> str:
    """Raises ConfigError."""
    return options.choice(settings, "LARM_SEARCH", (TANTIVY, OPENSEARCH))


def searcher_of(crawl: CrawlDir, settings: Settings) -> Searcher:
    """Raises ConfigError; CrawlDirError if there is no index."""
    if engine_of(settings) == TANTIVY:
        return crawl.searcher()
    crawls = [part.path for part in crawl.parts]
    facets = crawl.settings.get("LARM_FACETS", ())
    found: Searcher = plugin.load("opensearch.engine").searcher_of(crawls, settings, facets)
    return found
