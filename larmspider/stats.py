"""The keys of larmspider's counts, in Scrapy's stats collector beside Scrapy's own.

They are printed when a crawl ends. No key holds a host or a URL.

The summary at the end of a crawl counts URLs as the frontier does, each once:

- **stored**: every store has its page.
- **failed**: given up, after its retries if these may help. A page that ends in a server error
  (5xx, 429, 408) has failed. Its last response is in the page files anyway, so
  `larm/page_files/pages`, `larm/follow/pages` and the bytes of the summary count it.
- **refused**: robots.txt does not allow it, a store refused it, or the operator removed it.
- **merged**: another URL gives the same page, as its host has proved.
- **left**: still queued. The same command continues with them. If a budget ended the crawl
  (`LARM_MAX_PAGES`, `LARM_HOST_MAX_PAGES`, `LARM_HOST_RULES`), a larger budget is needed.

Monitor, progress, last lines of workers, web pages and `/metrics` show the same numbers. Filters
*reject* links; a rejected link becomes no URL. Under a scheduler other than ours the figures come
from the page files, or without page files from the spider's items.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

# "who sets it: what it counts"; docs/stats.md is made of this file (make docs)

FILTER_REJECTED = "larm/{filter}/rejected"
"""each filter, by its name: links, requests and seeds it rejected"""
FILTER_ERRORS = "larm/{filter}/errors"
"""each filter: links, requests and seeds that were rejected because the filter raised"""

FOLLOW_PAGES = "larm/follow/pages"
"""FollowMiddleware: pages seen, including pages that ended in a server error"""
FOLLOW_LINKS = "larm/follow/links"
"""FollowMiddleware: links found on them"""
FOLLOW_NEW_URLS = "larm/follow/new_urls"
"""FollowMiddleware: seeds and links that were sent to the queue"""
FOLLOW_HOSTS = "larm/follow/hosts"
"""FollowMiddleware: hosts of these seeds and links"""

REQUISITES = "larm/requisites/{state}"
"""FollowMiddleware: images, styles and scripts that were queued; FrontierScheduler: images, styles
and scripts that are stored, failed or refused"""

FETCH_BYTES = "larm/fetch/bytes"
"""LarmDownloader: bytes of bodies, after decompression, robots.txt too"""
SOURCE_LEFT_OUT = "larm/left_out/{why}"
"""SourceHandler: entries of folders on servers that are left out: hidden, offline, link, ring,
too-deep, too-many, same-name, unfit-name, deleted (docs/files.md)"""
FETCH_FAILED = "larm/fetch/failed"
"""IntranetSpider: fetches without a response, after all retries"""
FETCH_FAILED_KIND = "larm/fetch/failed/{kind}"
"""IntranetSpider: the same by kind, in the words of `fetch.log` (docs/formats.md#fetchlog)"""
RETRIES = "larm/fetch/retries"
"""AnswersMiddleware: fetches that failed and went back to their queue"""
RETRIES_KIND = "larm/fetch/retries/{kind}"
"""AnswersMiddleware: the same by kind, as in `larm/run/failed/{kind}`"""
ROBOTS_STATUS = "larm/robots/status/{status}"
"""RobotsFetch: responses for robots.txt, by HTTP status"""
ROBOTS_FAILED = "larm/robots/failed"
"""RobotsFetch: fetches of robots.txt without a response"""
ROBOTS_REJECTED = "larm/robots/rejected"
"""FrontierScheduler: URLs that robots.txt does not allow"""
SOURCES_ASKED = "larm/sources/asked/{answer}"
"""SourceFetch: requests for sitemaps and feeds, by result: 200, http-404, a kind of failure, or
the fault of the document (broken, entities, too-big, too-many, no-sitemap)"""
LOGIN = "larm/login/{event}"
"""LoginFetch: hosts with a login: made, refused (for this run), failed (retried), and pages that
were turned_away (fetched again)"""
REFRESH_NEXT = "larm/next_refresh/due"
"""FrontierScheduler: when `refresh=due` has something to visit next, as `29 Dec 02:22`"""
REFRESH_WAITS = "larm/next_refresh/waits"
"""FrontierScheduler: the pages that wait for the operator or for a silent host, as one text"""
REFRESH_LEFT = "larm/next_refresh/left"
"""RevisitsMiddleware: the first pages that left the search in this run, as one text"""
REFRESH_DEAD = "larm/next_refresh/dead"
"""NotifyExtension: hosts without an answer whose pages left, as approved, as one text"""
REFRESH_CAME = "larm/next_refresh/came"
"""RevisitsMiddleware: the first pages that this run found, as one text"""
LOGIN_WAITS = "larm/login/waits"
"""LoginFetch: hosts that wait for their login, each with the reason, as one text"""
RENDER = "larm/render/{event}"
"""RenderMiddleware: pages that went through Chromium, their requests, and refused requests; pages
that a limit cut, and failed pages (retried)"""
SHORTFALLS = "larm/shortfalls"
"""FrontierScheduler, at the end: why little of seeds' hosts is stored, a line a host"""
ALIKE = "larm/alike"
"""FrontierScheduler, at the end: hosts that answered 200 with one text to many URLs, a line a
host"""
SCRIPT_HOSTS = "larm/scripts/hosts"
"""FrontierScheduler, at the end: hosts whose pages are empty without JavaScript, as one text"""
PROBES = "larm/refresh/made_up"
"""MadeUpFetch: requests for a made-up URL, which show a host's answer to URLs without a page"""
VIEW_PROBES = "larm/frontier/view_probes"
"""ViewProbeFetch: fetches of a page that worked: they show whether a host fails, or a view of it"""
SOURCES_NEW = "larm/sources/new"
"""SourceFetch: URLs that sitemaps, feeds and listings named and the frontier did not know, before
any filter has seen them"""
SOURCES_SIGNALLED = "larm/sources/signalled"
"""SourceFetch: stored pages that sitemaps, feeds and listings named as changed since their visit"""
SOURCES_NAMED_NO_MORE = "larm/sources/named_no_more"
"""SourceFetch: stored pages that have left a sitemap since it was last read"""
HOSTS_GIVEN_UP = "larm/frontier/hosts_given_up"
"""FrontierScheduler: times that a host was given up until the next run"""
FRONTIER = "larm/frontier/{state}"
"""FrontierScheduler, at the end: URLs of the whole crawl, earlier runs too, by state: discovered,
queued, stored, failed, refused, merged"""
ALIASES = "larm/aliases/{rule}/{state}"
"""FrontierScheduler, at the end: hosts where a rule of `LARM_CANONICAL_RULES` is on trial, proven
or off, among the hosts that got requests in this run or have merged URLs"""
RUN = "larm/run/{state}"
"""FrontierScheduler: URLs that were finished in this run: stored, failed, refused; each once;
merged: fetched, and found to be copies of pages that have another URL"""
RUN_STATUS = "larm/run/status/{status}"
"""FrontierScheduler: stored URLs, by HTTP status; `replaced` where a middleware continued with
another Request"""
RUN_FAILED = "larm/run/failed/{kind}"
"""FrontierScheduler: failed URLs, by kind: the kinds of `larm/fetch/failed/{kind}`, `http-503` and
the like, `store` or `spider` (it raised), `lost`"""
REFRESH = "larm/refresh/{seen}"
"""RevisitsMiddleware: revisits, by observation: changed, same, not-modified, missing, ...
(docs/refresh.md); removed: pages that left the search"""
REFRESH_REQUESTS = "larm/refresh/requests"
"""AnswersMiddleware: requests for pages that were stored before, second looks too"""
REFRESH_SPENT = "larm/refresh/requests/{purpose}"
"""AnswersMiddleware: all requests of a refresh by their purpose: visits, second_looks (a second
fetch at once, or a check whether a missing page has gone), proofs (canaries, made-up URLs), and
other (new pages, robots.txt, sitemaps, feeds, logins, retries)"""
REFRESH_NOT_ASKED = "larm/refresh/not_asked"
"""FrontierScheduler, at the end of a refresh: known pages that were not requested"""
LEFT = "larm/left/{why}"
"""FrontierScheduler, at the end: queued URLs that are held back: `max_pages`, `host_budget` by a
budget, `traps` by `LARM_TRAPS`"""
HOSTS_SPENT = "larm/left/hosts"
"""FrontierScheduler, at the end: hosts whose budget holds URLs back"""
SCHEDULER_UNSERIALIZABLE = "larm/scheduler/unserializable"
"""FrontierScheduler: Requests refused because they cannot be kept on disk"""
SCHEDULER_PROBES_CUT = "larm/scheduler/probes_cut"
"""Probes: fetches that were cancelled while quick or new hosts waited: first fetches of new hosts,
after `LARM_PROBE_SECS`, and fetches beyond `LARM_SLOW_SHARE` of the slots, after `LARM_SLOW_SECS`;
they are retried"""
LAST_CHECK_REJECTED = "larm/last_check/rejected"
"""LastCheckMiddleware: requests that were about to leave the scope"""

EXTRACTION_BESIDE = "larm/extraction/beside"
"""IntranetSpider: pages that were handed to the process beside the crawl
(`LARM_EXTRACTION_BESIDE`)"""
EXTRACTION_ERRORS = "larm/extraction/errors"
"""IntranetSpider: pages stored without title and links because extraction raised"""
EXTRACTION_REFUSED = "larm/extraction/refused"
"""IntranetSpider: pages whose extraction took too long or too much memory, or ended its process;
they are stored with the text read until then"""
EXTRACTION_SHORTENED = "larm/extraction/shortened"
"""ReaderPool: documents and large pages that had a shorter limit, as several in a row of their host
took too long or too much memory (docs/documents.md#how-hosts-share-the-readers)"""
EXTRACTION_POSTPONED = "larm/extraction/postponed"
"""ReaderPool: documents and large pages that were given back to be fetched again later, as too many
bytes waited for readers"""
EXTRACTION_UNREAD = "larm/extraction/unread/{outcome}"
"""IntranetSpider: documents that were not read, or not all of them, by outcome
(docs/documents.md#outcomes)"""
IMPORT_REFUSED = "larm/import/refused"
"""ArchiveSpider: records and files of an archive that were not taken, with reasons in the log"""
PAGE_FILES_PAGES = "larm/page_files/pages"
"""PageFilesPipeline: pages stored"""
PAGE_FILES_BYTES = "larm/page_files/bytes"
"""PageFilesPipeline: bytes of their bodies"""
PAGE_FILES_FILES = "larm/page_files/files"
"""PageFilesPipeline: existing page files, also from earlier runs"""
PAGE_FILES_BLOBS = "larm/page_files/blobs"
"""PageFilesPipeline: files written into `blobs`, for bodies that are too large for page files"""
PAGE_FILES_STATUS = "larm/page_files/status/{status}"
"""PageFilesPipeline: pages stored, by HTTP status"""
WARC_PAGES = "larm/warc/pages"
"""WarcPipeline: pages written"""
WARC_REQUISITES = "larm/warc/requisites"
"""WarcPipeline: images, styles and scripts written"""
WARC_REVISITS = "larm/warc/revisits"
"""WarcPipeline: pages with the same body as an earlier page, which the record names instead"""
WARC_BYTES = "larm/warc/bytes"
"""WarcPipeline: bytes of the records, compressed"""
WARC_FILES = "larm/warc/files"
"""WarcPipeline: existing WARC files, also from earlier runs"""
STORES_REFUSED = "larm/stores/refused/{store}"
"""each store, by its class: pages and items it refused, such as too large ones; they are dropped,
and each has a line in the log"""
STORES_PASSED = "larm/stores/passed/{store}"
"""each store, by its class: items that it passed to the next store, because a field that it needs
is missing or has another type; the first item of each type has a line in the log"""
LINK_LOG_LINKS = "larm/link_log/links"
"""LinkLogPipeline: lines of links.log"""
SEARCH_INDEX_PAGES = "larm/search_index/pages"
"""SearchIndexPipeline: pages put into the index"""
SEARCH_INDEX_NOINDEX = "larm/search_index/noindex"
"""SearchIndexPipeline: pages left out because they say noindex"""
SEARCH_INDEX_LANGUAGE = "larm/search_index/language"
"""SearchIndexPipeline: pages left out because of their language (LARM_INDEX_LANGUAGES)"""
ACCESS_FILES = "larm/access/files"
"""SearchIndexPipeline: files whose rights were checked without reading them (docs/rights.md)"""
ACCESS_ROWS = "larm/access/rows"
"""SearchIndexPipeline: access lists that a check of the rights has replaced"""
ACCESS_MOVED = "larm/access/moved"
"""SearchIndexPipeline: documents that got another access list by a check of the rights"""
ACCESS_UNREADABLE = "larm/access/unreadable"
"""SearchIndexPipeline: how often rights could not be read; only operators find these documents"""
OUTBOX_SENT = "larm/outbox/sent/{receiver}"
"""Outbox: pages and deletes that each receiver, by its class, has taken (docs/stores.md)"""
OUTBOX_DEAD = "larm/outbox/dead/{receiver}"
"""Outbox: dead letters: entries that the receiver refused, each with a line in its log"""
OUTBOX_WAITING = "larm/outbox/waiting/{receiver}"
"""Outbox: not a count: pages and deletes that the receiver has not taken yet"""
PAGERANK_COMPUTED = "larm/pagerank/computed"
"""PageRankExtension: times that ranks were computed and URLs reordered"""
CHECKPOINTS = "larm/checkpoint/count"
"""CheckpointExtension: checkpoints taken"""
BROKEN = "larm/checkpoint/broken"
"""FrontierScheduler, at the end: not a count: why the crawl broke off and nothing more was
committed, as text; not set otherwise"""
SEED_PROBLEM = "larm/seeds/problem"
"""SeedWatchExtension: not a count: seeds that could not be fetched, and why, as text; the first
five of the run"""
REDIS_ROUND_TRIPS = "larm/redis/round_trips"
"""FrontierScheduler, at the end, with `REDIS_URL`: times that the frontier sent commands to Redis
and waited for the replies: three or four a checkpoint, whatever the number of pages, and a
heartbeat every third of `LARM_LEASE_SECS`"""
REDIS_WAITED = "larm/redis/waited_secs"
"""FrontierScheduler, at the end, with `REDIS_URL`: not a count: seconds that Redis could not be
used, in all"""
REDIS_GAVE_UP = "larm/redis/gave_up"
"""FrontierScheduler, at the end, with `REDIS_URL`: 1 if the worker had to stop before Redis took
its last commit: the same command continues the crawl"""
FENCED = "larm/worker/fenced"
"""FrontierScheduler, at the end: 1 if other workers have taken over this worker's partitions: run
the same command again"""


@cache
def filter_rejected(name: str) -> str:
    """The key that counts the links and URLs that the filter called ``name`` rejected."""
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
