"""The keys under which larmspider counts, in Scrapy's stats; docs/stats.md says who sets each."""

from collections.abc import Mapping
from typing import Any

FILTER_REJECTED = "larm/{filter}/rejected"
"""Links, requests and seeds that a filter rejected; ``filter`` is its name, such as scope."""
FILTER_ERRORS = "larm/{filter}/errors"
"""Of those, the ones rejected because the filter itself raised."""

FOLLOW_PAGES = "larm/follow/pages"
FOLLOW_LINKS = "larm/follow/links"
FOLLOW_NEW_URLS = "larm/follow/new_urls"
FOLLOW_HOSTS = "larm/follow/hosts"

FETCH_BYTES = "larm/fetch/bytes"
"""Of bodies, after decompression."""
FETCH_FAILED = "larm/fetch/failed"
FETCH_FAILED_KIND = "larm/fetch/failed/{kind}"
ROBOTS_STATUS = "larm/robots/status/{status}"
ROBOTS_FAILED = "larm/robots/failed"
ROBOTS_REJECTED = "larm/robots/rejected"
"""URLs that robots.txt does not allow."""
HOSTS_GIVEN_UP = "larm/frontier/hosts_given_up"
"""Times that a host was given up until the next run."""
FRONTIER = "larm/frontier/{state}"
"""URLs by state when the crawl ended: discovered, queued, stored, failed, refused."""
RUN = "larm/run/{state}"
"""URLs that came to their end in this run, by state: stored, failed, refused. Each counts once."""
RUN_STATUS = "larm/run/status/{status}"
"""Of those stored, by HTTP status; ``replaced`` where a middleware went on with another Request."""
RUN_FAILED = "larm/run/failed/{kind}"
"""Of those failed, by kind."""
LEFT = "larm/left/{why}"
"""Queued URLs that the same command would not fetch: max_pages, host_budget."""
HOSTS_SPENT = "larm/left/hosts"
"""Hosts behind the latter."""
SCHEDULER_UNSERIALIZABLE = "larm/scheduler/unserializable"
SCHEDULER_PROBES_CUT = "larm/scheduler/probes_cut"
RETRIES = "larm/fetch/retries"
RETRIES_KIND = "larm/fetch/retries/{kind}"
"""The same by kind of failure."""
LAST_CHECK_REJECTED = "larm/last_check/rejected"

PAGE_FILES_PAGES = "larm/page_files/pages"
PAGE_FILES_BYTES = "larm/page_files/bytes"
PAGE_FILES_FILES = "larm/page_files/files"
"""That there are, those of earlier runs too."""
PAGE_FILES_STATUS = "larm/page_files/status/{status}"
STORES_REFUSED = "larm/stores/refused/{store}"
"""Items that a store would not take, by its class."""
LINK_LOG_LINKS = "larm/link_log/links"
SEARCH_INDEX_PAGES = "larm/search_index/pages"
SEARCH_INDEX_NOINDEX = "larm/search_index/noindex"
CHECKPOINTS = "larm/checkpoint/count"
"""Checkpoints taken."""
BROKEN = "larm/checkpoint/broken"
"""Why the crawl broke off and nothing more was committed; not set otherwise."""
FENCED = "larm/worker/fenced"
"""1 where other workers have taken over what this one owned."""
REDIS_ROUND_TRIPS = "larm/redis/round_trips"
"""Times that the frontier sent commands to Redis and waited for the answers."""
REDIS_WAITED = "larm/redis/waited_secs"
"""Not a count: how long Redis could not be used, in all."""
PAGERANK_COMPUTED = "larm/pagerank/computed"
EXTRACTION_ERRORS = "larm/extraction/errors"
EXTRACTION_REFUSED = "larm/extraction/refused"


def filter_rejected(name: str) -> str:
    """The key that counts what the filter called ``name`` rejected."""
    return FILTER_REJECTED.format(filter=name)


def filter_errors(name: str) -> str:
    """The key that counts the times the filter called ``name`` raised."""
    return FILTER_ERRORS.format(filter=name)


def pages_and_failures(counters: Mapping[str, Any]) -> tuple[int, int]:
    """URLs that were stored and that have failed, each once, as the summary counts them. Under a
    scheduler that is not ours: pages that the spider made, and fetches without a response."""
    stored, failed, refused = (
        counters.get(RUN.format(state=state)) for state in ("stored", "failed", "refused")
    )
    if stored is failed is refused is None:
        return counters.get(FOLLOW_PAGES, 0), counters.get(FETCH_FAILED, 0)
    return stored or 0, failed or 0


def is_ours(key: str) -> bool:
    """Whether a stats key is one of these, and not Scrapy's."""
    return key.startswith("larm/")
