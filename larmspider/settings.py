"""All settings of a crawl, top to bottom as a URL meets them. docs/settings.md explains each.

A step is removed, added or swapped by editing one line here, or in a settings.py of your own that
begins with ``from larmspider.settings import *``.
"""

import os

from larmspider import __version__
from larmspider.urls.session_ids import DEFAULT_SESSION_IDS

BOT_NAME = "larmspider"
SPIDER_MODULES = ["larmspider.spiders"]
COMMANDS_MODULE = "larmspider.commands"

# --- what to crawl; start, restrict, hostresolver, fresh and resume of the spider set these ------

LARM_START = ""  # seeds: URLs separated by white space, or @file
LARM_RESTRICT = ""  # regular expression that a whole canonical URL must match; "": the seeds' hosts
LARM_HOST_RESOLVER_FILE = ""  # HostResolver.properties: which host names mean the same
LARM_DIR = "crawl"  # everything a crawl writes; one directory, one crawl
LARM_WORKER = ""  # with REDIS_URL: LARM_DIR/<this> is where this worker writes; "": <host>-<n>
LARM_SHARDS: list[str] = []  # more of a crawl's directories, for who reads it: of other machines
LARM_BLOCKS = 256  # with REDIS_URL: parts that hosts are divided into, each with one owner
LARM_BATCH_URLS = 1000  # URLs for other workers that are a reason for a checkpoint
LARM_LOCAL_QUEUE = 256  # queued URLs of a block that come from Redis, and wait, at a time
LARM_LEASE_SECS = 15.0  # a worker that Redis has not heard of for so long is replaced
LARM_KEEP_ALIVE = False  # yes: with REDIS_URL, wait for seeds in <spider>:start_urls for ever
REDIS_URL = os.environ.get("REDIS_URL", "")  # holds a password: command lines are for all to see
LARM_FRESH = ""  # yes: start over; "yes,yes": and delete stored pages, in Redis too
LARM_RESUME = ""  # anyway: go on with LARM_DIR's crawl although this one is another

# --- who we are, and how polite -----------------------------------------------------------------

USER_AGENT = f"larmspider/{__version__} (intranet crawler; Scrapy)"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS = 16  # in all; the spider's argument threads
CONCURRENT_REQUESTS_PER_DOMAIN = 1  # one connection a host
DOWNLOAD_DELAY = 0.5  # seconds between two requests to a host, at least
LARM_GROUP_BY = "host"  # address: names of one address share their pace
LARM_CRAWL_DELAY_MAX_SECS = 60.0  # a longer Crawl-delay of robots.txt is cut to this
LARM_DELAY_RESPONSE_FACTOR = 1.0  # a host that takes 3 s to answer is left alone for 3 s at least
LARM_HOST_RULES: dict[str, dict[str, object]] = {}  # delay, connections, budget, window by pattern
LARM_ROBOTS_EXPIRES_SECS = 86_400.0  # robots.txt is read again after this
DOWNLOAD_DELAY_JITTER = 0

# --- limits: what can get infinite, will get infinite -------------------------------------------

DOWNLOAD_TIMEOUT = 30  # seconds
LARM_CONNECT_TIMEOUT_SECS = 10.0  # of these, for name, connection and TLS
LARM_LOW_SPEED_BYTES = 100  # a fetch that gets fewer bytes a second than this ...
LARM_LOW_SPEED_SECS = 20  # ... for so long is given up; 0 bytes: none is
DOWNLOAD_MAXSIZE = 16 * 1024 * 1024  # bytes a document, as received and after decompression
DOWNLOAD_WARNSIZE = 0
LARM_HEADER_BYTES = 65_536  # of the head of an answer, and all that comes before it
LARM_HEADER_LINES = 500
DOWNLOAD_VERIFY_CERTIFICATES = True
LARM_DENY_ADDRESSES = [  # never asked, whatever name leads there
    "0.0.0.0/8",  # this host
    "::/128",
    "169.254.0.0/16",  # link-local: metadata of clouds
    "fe80::/10",
    "fd00:ec2::254/128",  # metadata of EC2
    "100.100.100.200/32",  # and of Alibaba Cloud
]
LARM_ALLOW_ADDRESSES: list[str] = []  # but these are
LARM_SITES_FILE = ""  # TOML: passwords, certificates, proxies and more by host (docs/sites.md)
LARM_EXTRACTION_SECS = 10.0  # for a document that is read in the second process, as large ones are
LARM_EXTRACTION_BYTES = 1 << 30  # memory of that process
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 16 * 1024 * 1024  # bytes of bodies fetched but not stored
LARM_RETRY_TIMES = 2  # further attempts after a fetch that failed
LARM_BACKOFF_SECS = 5.0  # before the first of them; doubled each time
LARM_BACKOFF_MAX_SECS = 600.0
LARM_RETRY_AFTER_MAX_SECS = 3600.0  # a longer Retry-After is cut to this
LARM_HOST_MAX_FAILURES = 5  # in a row: then the host is left alone
LARM_HOST_PARK_SECS = 600.0  # for so long; doubled each time it happens in a row
LARM_HOST_MAX_PARKS = 3  # so often; then it is given up until the next run
LARM_HOST_MAX_PAGES = 0  # stored pages of one host; 0: no limit
LARM_MAX_PAGES = 0  # stored pages in all; 0: no limit
DEPTH_LIMIT = 0  # links from a seed; 0: no limit
URLLENGTH_LIMIT = 2083  # characters
LARM_MAX_REDIRECTS = 10  # redirects in a row
LARM_PATH_DEPTH_LIMIT = 20  # segments of a path; 0: no limit
LARM_PATH_REPEATS_LIMIT = 3  # times that one segment may not stand in a path; 0: no limit
LARM_CALENDAR_HORIZON_MONTHS = 12  # how far from today a calendar is followed; 0: without end

# --- the canonical form, for comparison only ----------------------------------------------------

LARM_LOWERCASE_PATH = True
LARM_LOWERCASE_PATH_EXCEPTIONS: list[str] = []  # host patterns whose paths keep their case
LARM_SESSION_IDS = list(DEFAULT_SESSION_IDS)  # parameters that name a session, not a page

# --- filters, in running order: the spider's output passes the highest number first -------------

LARM_KNOWN_PATHS_FILE = ""  # "": the packaged middlewares/known_paths.txt
LARM_FILTER_LOGS = False  # yes: <Name>Filter.log with each URL, verdict and reason

SPIDER_MIDDLEWARES = {
    "larmspider.middlewares.normalize.NormalizeFilter": 690,
    "larmspider.middlewares.visited.SeenFilter": 685,  # known links need not be judged again
    "larmspider.middlewares.length.LengthFilter": 680,
    "larmspider.middlewares.known_paths.KnownPathsFilter": 670,
    "larmspider.middlewares.scope.ScopeFilter": 660,
    "larmspider.middlewares.traps.TrapsFilter": 650,
    "larmspider.middlewares.nofollow.NofollowFilter": 640,
    "larmspider.middlewares.depth.DepthFilter": 630,
    "larmspider.middlewares.visited.VisitedFilter": 620,
    "larmspider.middlewares.follow.FollowMiddleware": 610,  # what passed is queued
    "larmspider.middlewares.acknowledge.AcknowledgeMiddleware": 10,  # what all stores have is done
    # our own filters do what these did
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
    "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,  # nobody asks is_start_request
}

# --- the frontier: a queue a host, hosts in turn ------------------------------------------------

SCHEDULER = "larmspider.scheduler.FrontierScheduler"
DOWNLOADER = "larmspider.fetch.downloader.LarmDownloader"  # the frontier says when, not its slots
LARM_STRATEGY = "breadth-first"  # order within a host: path-words, backlinks, pagerank
LARM_PAGERANK_SECS = 60.0  # between two computations of the ranks, where that is the order
LARM_SLOW_SHARE = 0.5  # of all places, for hosts that hold one for LARM_SLOW_SECS or longer
LARM_PROBE_SHARE = 0.125  # of all places, kept for hosts that have not answered yet
LARM_SLOW_SECS = 2.0
LARM_PROBE_SECS = 1.0  # then the first fetch from a new host gives its place up, if others wait

# --- the fetch: libcurl -------------------------------------------------------------------------

DOWNLOAD_HANDLERS = {
    "http": "larmspider.fetch.curl_handler.CurlHandler",
    "https": "larmspider.fetch.curl_handler.CurlHandler",
}
LARM_KEPT_CONNECTIONS = 128  # idle ones that stay open; the longest unused makes room
LARM_DNS_CACHE_SECS = 300  # an address is looked up again after this
LARM_HTTP2 = False  # over TLS, where the server can

# --- before and after the fetch -----------------------------------------------------------------

DOWNLOADER_MIDDLEWARES = {
    "larmspider.middlewares.last_check.LastCheckMiddleware": 90,  # is it really in scope?
    "larmspider.middlewares.default_headers.DefaultHeadersMiddleware": 400,
    "larmspider.middlewares.fetch_outcome.AnswersMiddleware": 550,  # tells the frontier how it went
    # the frontier does what these did
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
    "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    "scrapy.downloadermiddlewares.stats.DownloaderStats": None,  # our own stats say it
    # the fetch undoes Content-Encoding
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
}
COOKIES_ENABLED = False
REFERER_ENABLED = False
METAREFRESH_ENABLED = False  # extraction finds it: a link of type 2

# --- the storage chain, in running order --------------------------------------------------------

CONCURRENT_ITEMS = 1
LARM_PAGEFILE_BYTES = 50_000_000  # bytes a page file
LARM_INDEX_HEAP_BYTES = 64_000_000  # bytes the index writer may fill before it writes a segment
REDIS_ITEMS_SERIALIZER = "larmspider.pipelines.redis_items.serialize"  # of scrapy-redis's pipeline
LARM_INDEX_STEMMER = "english"  # language whose word endings the index folds (docs/search.md)

ITEM_PROCESSOR = "larmspider.pipelines.store.StorageChain"
ITEM_PIPELINES = {
    "larmspider.pipelines.page_files.PageFilesPipeline": 200,
    "larmspider.pipelines.link_log.LinkLogPipeline": 300,
    "larmspider.pipelines.fetch_log.FetchLogPipeline": 400,
    "larmspider.pipelines.search_index.SearchIndexPipeline": 500,
}

# --- what runs beside the crawl -----------------------------------------------------------------

LARM_CHECKPOINT_SECS = 5.0  # seconds between two flushes of everything to disk
LARM_MONITOR_SECS = 5.0  # seconds between two lines of Monitor.log
LARM_PROGRESS = True  # on a terminal, a picture of the crawl below its log

LARM_WEB = True  # web pages of the crawl: overview, hosts, search, control (docs/dashboard.md)
LARM_WEB_ADDRESS = "127.0.0.1"  # another than loopback needs LARM_WEB_TOKEN
LARM_WEB_PORT = 6080  # the next free one if it is taken; 0: any free one
LARM_WEB_TOKEN = ""  # what control asks for; "": one is made and kept in LARM_DIR/web.token
LARM_WEB_HOSTS: list[str] = []  # names in Host headers beside addresses and localhost
LARM_WEB_OPEN: list[str] = []  # paths that need no token where other machines are let in

EXTENSIONS = {
    "larmspider.extensions.preflight.PreflightExtension": 100,
    "larmspider.extensions.checkpoint.CheckpointExtension": 500,
    "larmspider.extensions.stop.StopExtension": 500,  # SIGTERM and Ctrl-C
    "larmspider.status.monitor.MonitorExtension": 500,
    "larmspider.extensions.progress.ProgressExtension": 500,
    "larmspider.extensions.tuning.AllocatorExtension": 100,  # memory of large bodies goes back
    "larmspider.extensions.tuning.GarbageExtension": 900,  # when all the others are there
    "larmspider.extensions.pagerank.PageRankExtension": 500,  # where LARM_STRATEGY is pagerank
    "larmspider.status.totals_extension.TotalsExtension": 500,  # counts of all runs
    "larmspider.control.operator.OperatorExtension": 500,  # control, orders of earlier runs
    "larmspider.web.WebExtension": 600,  # when the frontier is open
    "scrapy.extensions.telnet.TelnetConsole": None,
    "scrapy.extensions.logstats.LogStats": None,  # the monitor says it
    "scrapy.extensions.remote_control.RemoteControl": None,
}
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

LOG_LEVEL = "INFO"
LOG_FORMATTER = "larmspider.extensions.tuning.LarmLogFormatter"  # DEBUG: a line for each page
STATS_CLASS = "larmspider.extensions.tuning.LarmStats"
