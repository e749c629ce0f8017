"""All settings of a crawl, in the order in which a URL meets them.

The comment above a setting, or behind it, goes into docs/settings.md (``make docs``). A step
is removed, added or swapped by editing one line here, or in a settings module of your own that
begins with ``from larmspider.settings import *``.
"""

import os

from larmspider import __version__
from larmspider.urls.session_ids import DEFAULT_SESSION_IDS

BOT_NAME = "larmspider"
SPIDER_MODULES = ["larmspider.spiders"]
COMMANDS_MODULE = "larmspider.commands"

# --- What to crawl ------------------------------------------------------------------------------

# Expressions run in linear time (RE2). One that needs look-around or back-references runs in
# Python's `re`, with a warning; if it shows exponential time on a probe, it is refused.

# The seeds: URLs separated by white space, or `@file` with one URL a line and `#` comments. Spider
# argument `start`.
LARM_START = ""

# The scope: a regular expression (Perl 5 syntax) that the whole canonical URL must match, ignoring
# case. Empty: the hosts and ports of the seeds, http and https alike. Spider argument `restrict`.
LARM_RESTRICT = ""

# Exceptions from the scope: regular expressions. A URL that matches one as a whole, ignoring case,
# is not fetched. On the command line separated by white space, or JSON. Spider argument `exclude`.
LARM_EXCLUDE: list[str] = []

# A HostResolver.properties file: which host names mean the same
# (docs/formats.md#hostresolverproperties). Spider argument `hostresolver`.
LARM_HOST_RESOLVER_FILE = ""

# The directory of the crawl, created if missing. One directory holds one crawl.
LARM_DIR = "crawl"

# Store the documents that `larmspider server` was given for this directory, and fetch nothing: a
# crawl file with `kind = "push"` (docs/push.md).
LARM_PUSH = False

# The mode of `LARM_DIR`, in octal, which also limits the modes of its files: 0750 lets a group
# read, 0770 lets it also run `larmspider serve` and other commands. Empty: by the umask; 0700 if
# `LARM_SITES_FILE` holds credentials (docs/sign-in.md#who-may-see-what-was-fetched).
LARM_DIR_MODE = ""

# `yes`: start over, deleting the crawl that `LARM_DIR` holds, and with `REDIS_URL` the one in
# Redis. `force`: also if that deletes stored pages. Spider argument `fresh`.
LARM_FRESH = ""

# `anyway`: continue the crawl that `LARM_DIR` holds although its seeds, scope or filters were
# others; links that were rejected then are judged again (docs/control.md#another-scope). Spider
# argument `resume`.
LARM_RESUME = ""

# Revisit pages of an ended crawl (docs/refresh.md): `due`: the pages that are due now, then end;
# `watch`: pages as they become due, without end; `all`: every page once; a regular expression as
# for `LARM_RESTRICT`: pages whose URL matches, once; `index`: nothing is fetched, the search index
# is rebuilt from the page files (`larmspider reindex`). Spider argument `refresh`.
LARM_REFRESH = ""

# Visits a day of the whole crawl with `refresh=due` and `refresh=watch`. Unused visits are kept for
# 7 days. 0: a thirtieth of its pages.
LARM_REFRESH_PER_DAY = 0

# The order of visits: `value`: pages whose visit is worth most come first, by their known changes.
LARM_REFRESH_ORDER = "value"

# A name for this worker's run of `refresh=all`, or of a pattern. Workers with the same name are one
# run, and a worker that joins after its end starts no other run. `larmspider workers` makes up a
# name for each start; set it for workers that you start one by one.
LARM_REFRESH_RUN = ""

# --- Many workers -------------------------------------------------------------------------------

# All settings of this section except `LARM_SHARDS` need `REDIS_URL` (docs/workers.md).
# `REDIS_HOST`, `REDIS_PORT` and `REDIS_DB` may name the server in its place. `REDIS_PARAMS` has
# further arguments of the Redis client, on the command line as JSON: `{"socket_timeout": 5}` for
# how long a reply may take (30 s). These are scrapy-redis's settings; its
# `REDIS_DECODE_RESPONSES` has no effect.

# The Redis in which workers share a crawl. The URL holds a password, so set it in the environment:
# others can read command lines, scrapyd's list of jobs and its log (docs/deploy.md).
REDIS_URL = os.environ.get("REDIS_URL", "")

# The name of this worker, which writes to `LARM_DIR/<name>`: 1 to 64 of a-z, 0-9, `.`, `_`, `-`.
# Empty: the host name and the first number whose directory is free (docs/workers.md#directories).
LARM_WORKER = ""

# For the commands that read a crawl: further directories of the same crawl, such as mounted
# directories of other machines. `--shard DIR` on the command line.
LARM_SHARDS: list[str] = []

# Partitions that all hosts are divided into, 1 to 16384; each has one owner. 0: 4,096 in a new
# crawl, and in an existing crawl its own number. The number cannot change while the crawl lasts
# (docs/workers.md#partitions).
LARM_BLOCKS = 0

# The next checkpoint comes early if this number of URLs waits for other workers. A smaller number
# leaves with the next regular checkpoint.
LARM_BATCH_URLS = 1000

# Queued URLs of a partition that a worker reads from Redis at a time when it takes the partition,
# and holds in memory (65,536 in all partitions at most).
LARM_LOCAL_QUEUE = 256

# Seconds without a sign of life in Redis until other workers take over a worker's hosts
# (docs/workers.md#when-a-worker-stops-or-dies). At least 1; the same for all workers.
LARM_LEASE_SECS = 15.0

# Wait for ever at the end of the crawl, for seeds in `<spider>:start_urls`.
LARM_KEEP_ALIVE = False

# --- Who we are, and how polite -----------------------------------------------------------------

# Sent with each request. Its first token is the name that robots.txt is read for, unless
# `ROBOTSTXT_USER_AGENT` is another one. Add an address where you can be reached.
USER_AGENT = f"larmspider/{__version__} (intranet crawler; Scrapy)"

# Obey robots.txt.
ROBOTSTXT_OBEY = True

# Requests in flight in all, by each worker. Spider argument `threads`; `larmspider control threads
# N` changes it while the crawl runs, as it does connections and delays of a host.
CONCURRENT_REQUESTS = 16

# Requests in flight to one host.
CONCURRENT_REQUESTS_PER_DOMAIN = 1

# Seconds between two requests to one host. The gap is the largest of this, `Crawl-delay`, and
# `LARM_DELAY_RESPONSE_FACTOR` times the last response time.
DOWNLOAD_DELAY = 0.5
DOWNLOAD_DELAY_JITTER = 0

# The unit that has one gap and one limit of requests in flight: each `host`, or each `address`, so
# that all hosts whose names resolve to one address count as one.
LARM_GROUP_BY = "host"

# A longer `Crawl-delay` of robots.txt is cut to this.
LARM_CRAWL_DELAY_MAX_SECS = 60.0

# The gap between two requests to a host is at least its last response time times this factor.
LARM_DELAY_RESPONSE_FACTOR = 1.0

# Settings of single hosts by pattern (`host` or `host:port`, ignoring case, with `*` and `?`):
# `{"old-wiki*": {"delay": 10, "connections": 1, "budget": 500, "window": [22, 6]}}`. The delay is
# in seconds, the budget in stored pages; the window is the hours of the local day, from and to,
# which must differ. `"nofollow": "ignore"` follows links although the host's pages say nofollow
# (docs/sites.md#nofollow). The first pattern that sets a field wins. As JSON on the command line.
LARM_HOST_RULES: dict[str, dict[str, object]] = {}

# A list of hosts that other crawls of this machine fetch from, too: at each of these hosts, all
# crawls together keep one gap. A server sets it for its crawls (docs/server.md). Empty: this crawl
# alone.
LARM_SHARED_GAPS = ""

# robots.txt is fetched again after this.
LARM_ROBOTS_EXPIRES_SECS = 86_400.0

# Fetch `/sitemap.xml` of each host, and the sitemaps and feeds that robots.txt and pages name, at
# most once a day. They name pages without links to them, and pages that have changed
# (docs/refresh.md#signals).
LARM_SITEMAPS = True

# Gets one message for each event that needs an operator: the brake holds missing pages back, a
# login has expired, a host has not answered for 90 days (docs/refresh.md#deletes). A command, which
# gets the message as its input, or the URL of a webhook, to which `{"what": ..., "host": ...,
# "message": ...}` is posted.
LARM_NOTIFY = ""

# --- Failures -----------------------------------------------------------------------------------

# Further attempts after a failed fetch.
LARM_RETRY_TIMES = 2

# Seconds before a failed URL is retried, and before the next request to a host that did not answer,
# or answered 429 or 503; doubled with each further failure, 25 % more or less.
LARM_BACKOFF_SECS = 5.0

# The longest wait after failures.
LARM_BACKOFF_MAX_SECS = 600.0

# A longer `Retry-After` is cut to this.
LARM_RETRY_AFTER_MAX_SECS = 3600.0

# A crawl without a page ends with status 1 if none of its seeds could be fetched for this number of
# seconds: each remaining host has failed, or not answered. 0: it keeps trying, as any crawl does
# with hosts that fail later. The log names the seeds that cannot be fetched within 30 s, and why.
LARM_SEED_PATIENCE_SECS = 45.0

# Failures in a row after which a host is parked: it gets no requests for a while. Server errors and
# timeouts of single views park no host whose other pages work (docs/operations.md#broken-views).
LARM_HOST_MAX_FAILURES = 5

# Seconds for which a host is parked; doubled with each time in a row.
LARM_HOST_PARK_SECS = 600.0

# Times in a row that a host is parked; then the host is given up until the next run.
LARM_HOST_MAX_PARKS = 3

# --- Limits -------------------------------------------------------------------------------------

# Seconds for one fetch.
DOWNLOAD_TIMEOUT = 30

# Seconds of `DOWNLOAD_TIMEOUT` for the connection: name, TCP and TLS.
LARM_CONNECT_TIMEOUT_SECS = 10.0

# A fetch is slow while it gets fewer bytes a second. 0 turns this off.
LARM_LOW_SPEED_BYTES = 100

# A fetch that is slow for this number of seconds is given up (`slow`); the wait for the first byte
# counts.
LARM_LOW_SPEED_SECS = 20

# Bytes of one document, as received and after decompression; at most `LARM_PAGEFILE_BYTES`. The
# fetch ends at the limit. 0 is no limit.
DOWNLOAD_MAXSIZE = 16 * 1024 * 1024

# The same limit for a document whose response header says that it is not a page
# (docs/documents.md); at least `DOWNLOAD_MAXSIZE`, at most `LARM_PAGEFILE_BYTES`. A larger document
# is stored without its body, and found by title and link texts and as "too large to read".
LARM_DOCUMENT_MAXSIZE_BYTES = 48_000_000

# Larger bodies of pages and documents, up to this number of bytes, go to files in `LARM_DIR/blobs`
# (docs/documents.md#larger-than-memory). They are not read, and are found by title and link texts
# and as "too large to read". Must exceed both limits above; 0 turns this off. `DOWNLOAD_TIMEOUT`
# has to be long enough for them.
LARM_BLOB_BYTES = 0
DOWNLOAD_WARNSIZE = 0

# Bytes of a response's head, with 1xx responses and trailers; at most 307200.
LARM_HEADER_BYTES = 65_536

# Lines of that head; at most 5000.
LARM_HEADER_LINES = 500

# Refuse a server whose certificate does not verify.
DOWNLOAD_VERIFY_CERTIFICATES = True

# Networks that never get a request, whatever name, address or redirect leads there; checked after
# resolution, before the connection. An IPv6 address that stands for an IPv4 address (mapped,
# compatible, 6to4, NAT64) counts as the IPv4 address. With a proxy, only addresses in a URL can be
# checked. A network with a port, such as `127.0.0.0/8:6379` or `[::1]:6379`, is denied at this
# port.
LARM_DENY_ADDRESSES = [
    "0.0.0.0/8",  # this host
    "::/128",
    "169.254.0.0/16",  # link-local: metadata of clouds
    "fe80::/10",
    "fd00:ec2::254/128",  # metadata of EC2
    "100.100.100.200/32",  # of Alibaba Cloud
    "168.63.129.16/32",  # of Azure
    "192.0.0.192/32",  # of Oracle Cloud
    "fd20:ce::254/128",  # of Google Cloud
]

# Networks among these that may get requests.
LARM_ALLOW_ADDRESSES: list[str] = []

# A TOML file with settings of single hosts, by pattern: passwords, Kerberos, tokens, cookies,
# headers, certificates, proxies (docs/sites.md).
LARM_SITES_FILE = ""

# Requests that a page may send while Chromium renders it (`render` in the sites file,
# docs/sites.md). At this limit, and at the next two, the page is stored in its present state.
LARM_RENDER_REQUESTS = 50

# Seconds for rendering a page, including the waits for its host's delay.
LARM_RENDER_SECS = 20.0

# Bytes of all responses to the requests of a rendered page.
LARM_RENDER_BYTES = 20_000_000

# CPU seconds for extracting one document of more than 512 KB or 10,000 tags, which happens in a
# separate process so that the crawl continues. A document that takes longer is stored without text
# and links, with a note in `fetch.log`.
LARM_EXTRACTION_SECS = 10.0

# Memory of that process, with the same consequence. Not on Windows.
LARM_EXTRACTION_BYTES = 1 << 30

# Whether other pages of 2,000 bytes and more are extracted in one more process beside the crawl's
# own thread. The process takes some 40 MB and has at most 32 pages; the crawl itself extracts
# further ones. `auto`: on machines with two cores or more, once the crawl's thread has been busy
# for half of the time over 200 pages; a polite crawl of few hosts never is. `on`: from the first
# page; `off`: never. `larmspider workers` with more than one worker for two cores turns `auto` to
# `off`.
LARM_EXTRACTION_BESIDE = "auto"

# CPU seconds for reading one document that is not a page: PDF, Office, mail, archives
# (docs/documents.md). They are read in further separate processes. A document that takes longer
# is stored without text and links, with a note in `fetch.log`. A host with several slow documents
# in a row gets fewer seconds.
LARM_DOCUMENT_SECS = 30.0

# Memory of each of these processes, with the same consequence. Not on Windows.
LARM_DOCUMENT_BYTES = 1 << 30

# Documents that are read at a time, each in a process that is started when it is needed. 0: two
# where the machine has two cores, else one. With two or more, one host never holds all of them.
LARM_DOCUMENT_READERS = 0

# Languages (ISO 639) among which the language of a page is guessed if it has no `lang`, or its host
# sends a wrong one (docs/search.md#languages). Fewer languages make better guesses. A separate
# process of 130 MB guesses. Empty: languages are not guessed.
LARM_LANGUAGES = "ar,da,de,el,en,es,fi,fr,hu,it,ko,nl,no,pt,ro,ru,sv,ta,tr"

# Own fields: values that a CSS selector or an XPath finds on the pages of some hosts, by pattern as
# in `LARM_HOST_RULES` and name: `{"shop*.example": {"price": ".price", "room":
# "//td[@id='room']"}}`. They go into feeds and the search index (docs/search.md#own-fields). The
# first pattern that sets a name wins. As JSON on the command line.
LARM_FIELDS: dict[str, dict[str, str]] = {}

# Apache Tika reads doc, ppt, OneNote and other formats without another reader, and adds to the
# text of xls (docs/documents.md#second-reader). `auto`: if it is installed, as on Linux by default;
# `tika`: it must be installed (`pip install 'larmspider[tika]'`). Empty: it is not used.
LARM_SECOND_READER = "auto"

# The languages of scanned pages, as tesseract names them: `deu+eng`. Pages of a PDF without text
# are then read by it (Debian: `tesseract-ocr`, `tesseract-ocr-deu`), at the lowest priority, in a
# separate queue. Empty: scanned pages are not read.
LARM_OCR = ""

# Seconds for the scanned pages of one PDF; pages that were read until then are kept.
LARM_OCR_SECS = 120.0

# Bytes of pages that are fetched and not yet stored; while there are more, nothing new is fetched.
# Documents that wait for a reader have half of this room in addition (docs/documents.md).
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 64 * 1024 * 1024

# Stored pages of one host; 0 is no limit.
LARM_HOST_MAX_PAGES = 0

# Stored pages in all; 0 is no limit.
LARM_MAX_PAGES = 0

# Links away from a seed; 0 is no limit.
DEPTH_LIMIT = 0

# Characters of a URL as it would be fetched; 0 is no limit.
URLLENGTH_LIMIT = 2083

# Redirects in a row; 0 follows none.
LARM_MAX_REDIRECTS = 10

# Segments of a path; 0 is no limit.
LARM_PATH_DEPTH_LIMIT = 20

# A path that has the same segment this number of times is a trap; 0 turns this off. Numbers of one
# or two digits do not count.
LARM_PATH_REPEATS_LIMIT = 3

# A URL that looks like a calendar (`/cal/`, `?month=`, `/events/`, ...) and names a month further
# away is a trap; a month further ahead that is spelled `2093-04` is a trap in any URL. 0 turns this
# off.
LARM_CALENDAR_HORIZON_MONTHS = 12

# --- Traps: learned from their pages (docs/traps.md) --------------------------------------------

# `learn`: URLs of a class (path shape and parameters) whose pages repeat their host's texts are
# held: they stay queued, 1 in 20 is fetched anyway, and all of them if that one is new. `report`:
# URLs that would be held are logged, and fetched. `off`: nothing is
# learned or held, and no budget below counts.
LARM_TRAPS = "learn"

# Pages of one class in a row that have nothing new; then its further URLs are held. 0 is no limit.
LARM_CLASS_PAGES = 150

# The same for all pages of a host that are more than 30 links from a seed.
LARM_CLASS_DEEP_PAGES = 50

# The same for all pages of a host.
LARM_CLASS_HOST_PAGES = 250

# Pages of one class in a row that each lead to several new URLs of the class, while no other page
# links to these (texts at random); then its further URLs are held. 0 is no limit.
LARM_CLASS_ENDLESS_PAGES = 1_000

# --- Which URLs are one page --------------------------------------------------------------------

# The crawler fetches a URL as it was found; the forms are for comparison only. URLs that the
# standards call equal are always one URL (`larmspider/urls/canonical.py`). Five rules are guesses:
# `path-case` (paths that differ in case are one page), `folder-file` (`a/index.html` and
# `a/default.asp` are `a/`), `double-slash` (`a//b` is `a/b`), `session-id` (`LARM_SESSION_IDS`) and
# `bare-percent` (`100%` is `100%25`; some servers refuse the first).

# `proven`: two spellings are one page if the host has proved it: the first pairs are fetched and
# compared by their text, and if they are equal, further ones are merged unfetched
# (ARCHITECTURE.md#which-urls-are-one-page). `always`: they are one URL, as in LARM, and only the
# first is fetched. `never`: two URLs. By host pattern and rule, as JSON on the command line:
# `{"old-iis*": "always", "*": {"session-id": "always", "path-case": "never"}}`; the first pattern
# that sets a rule wins, and a rule without a pattern is `proven`. A crawl keeps its first value.
LARM_CANONICAL_RULES: object = "proven"

# Equal pairs that prove a rule on a host.
LARM_CANONICAL_PROOFS = 3

# An older way to set `path-case` for all hosts, which overrules the setting above: `True` is
# `always`, `False` is `never`.
LARM_LOWERCASE_PATH: bool | None = None

# The mode of `bare-percent` for all hosts, which overrules `LARM_CANONICAL_RULES`. A crawl that was
# begun before this rule existed continues with `always`.
LARM_BARE_PERCENT: str | None = None

# Hosts for which `path-case` is `never`, whatever else is set: names with `*` and `?`.
LARM_LOWERCASE_PATH_EXCEPTIONS: list[str] = []

# Parameters that name a session and not a page, in the query or after `;` in the path, ignoring
# case: what `session-id` is about. Others are learned from the links of a host's pages
# ([how](traps.md#session-ids)). An empty list turns the rule off. The default is in
# `larmspider/urls/session_ids.py`.
LARM_SESSION_IDS = list(DEFAULT_SESSION_IDS)

# --- Filters ------------------------------------------------------------------------------------

# The filters are entries of `SPIDER_MIDDLEWARES`; the highest number runs first. Remove one with
# `None` in place of its number. Filters below `SeenFilter` (685) see only links that the frontier
# does not remember: known links have passed them. If you remove `VisitedFilter`, remove
# `SeenFilter`, too.

# Your list of known paths and hosts in place of the packaged
# `larmspider/middlewares/known_paths.txt` (docs/formats.md#known-paths).
LARM_KNOWN_PATHS_FILE = ""

# Follow only links of pages in these languages, as "de,en"; links of pages in an unknown language
# are followed. Empty: all.
LARM_FOLLOW_LANGUAGES: list[str] = []

# Write `<Name>Filter.log` with each URL, verdict and reason. Large: about one line for each link
# and filter.
LARM_FILTER_LOGS = False

SPIDER_MIDDLEWARES = {
    "larmspider.middlewares.sources.SourcesMiddleware": 695,  # feeds and listings name pages
    "larmspider.middlewares.normalize.NormalizeFilter": 690,
    "larmspider.middlewares.visited.SeenFilter": 685,  # known links need not be judged again
    "larmspider.middlewares.length.LengthFilter": 680,
    "larmspider.middlewares.removed.RemovedFilter": 675,
    "larmspider.middlewares.known_paths.KnownPathsFilter": 670,
    "larmspider.middlewares.scope.ScopeFilter": 660,
    "larmspider.middlewares.traps.TrapsFilter": 650,
    "larmspider.middlewares.language.LanguageFilter": 645,  # LARM_FOLLOW_LANGUAGES
    "larmspider.middlewares.nofollow.NofollowFilter": 640,
    "larmspider.middlewares.depth.DepthFilter": 630,
    "larmspider.middlewares.visited.VisitedFilter": 620,
    "larmspider.middlewares.revisits.RevisitsMiddleware": 615,  # what changed, of pages known
    "larmspider.middlewares.follow.FollowMiddleware": 610,  # what passed is queued
    "larmspider.middlewares.copies.CopiesMiddleware": 600,  # what another URL gave is not stored
    "larmspider.middlewares.acknowledge.AcknowledgeMiddleware": 10,  # what all stores have is done
    # our own filters do what these did
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
    "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,  # no code reads is_start_request
}

# --- The frontier -------------------------------------------------------------------------------

# `FrontierScheduler` and `LarmDownloader` are used together or not at all: the frontier decides
# when a host may get a request, so the downloader uses no slots. Other schedulers need them, but
# with the frontier they would delay requests twice. One without the other is an error at the start.
# How slots are shared: ARCHITECTURE.md#whose-turn-it-is.

# One queue for each host; hosts take turns.
SCHEDULER = "larmspider.scheduler.FrontierScheduler"

# Sends the requests of the frontier at once.
DOWNLOADER = "larmspider.fetch.downloader.LarmDownloader"

# The order of a host's URLs: `breadth-first`, `path-words` (fewer path segments first), `backlinks`
# (more links seen first; not with `REDIS_URL`), `pagerank`. Hosts take turns whatever the order
# (docs/internals/performance.md#orders).
LARM_STRATEGY = "breadth-first"

# Seconds between two computations of the ranks, for `pagerank`. The ranks are of the pages stored
# since the crawl was started or resumed.
LARM_PAGERANK_SECS = 60.0

# The share of all slots for hosts that hold one for `LARM_SLOW_SECS` or longer.
LARM_SLOW_SHARE = 0.5

# The share of all slots kept for hosts that have not answered yet.
LARM_PROBE_SHARE = 0.125

# A fetch counts as slow after this number of seconds.
LARM_SLOW_SECS = 2.0

# Seconds for the first fetch from a host that has never answered (its robots.txt), while quick
# hosts or other new hosts wait for slots. A longer fetch is cancelled. This is not a failure: the
# fetch is retried with all of `DOWNLOAD_TIMEOUT`, and the host shares `LARM_SLOW_SHARE` with other
# slow hosts until it proves quick.
LARM_PROBE_SECS = 1.0

# --- The fetch ----------------------------------------------------------------------------------

# The handler obeys Scrapy's `DOWNLOAD_BIND_ADDRESS`, `DOWNLOAD_WARNSIZE`,
# `DOWNLOAD_FAIL_ON_DATALOSS`, `DOWNLOAD_TLS_MIN_VERSION`, `DOWNLOAD_TLS_MAX_VERSION`,
# `DOWNLOADER_CLIENT_TLS_CIPHERS` and `COMPRESSION_ENABLED` (it undoes gzip, deflate, br and zstd
# itself, so `HttpCompressionMiddleware` is off; with it on, nothing is undone twice). In a Request
# it obeys method, body, headers, and in `meta` `proxy` (http, https, socks4, socks4a, socks5,
# socks5h; without a scheme http), `bindaddress`, `download_timeout`, `download_maxsize`,
# `download_warnsize`, `download_fail_on_dataloss`. The signals `headers_received` and
# `bytes_received` may stop a download. User and password in a URL are not sent.
# `Response.certificate` is None.

# `response.meta["larm_timing"]` has, in seconds from the start of the fetch, when `dns`,
# `connect`, `tls`, `first_byte` and `total` were done; 0 if there was none, as on a kept
# connection. `response.meta["larm_validators"]` has the headers (`If-None-Match`,
# `If-Modified-Since`) for the next request for the same URL, which gets a 304 if nothing has
# changed.

# For http and https: libcurl. Scrapy's own handlers work too, without these limits.
DOWNLOAD_HANDLERS = {
    "http": "larmspider.fetch.curl_handler.CurlHandler",
    "https": "larmspider.fetch.curl_handler.CurlHandler",
    "file": "larmspider.fetch.file_handler.FileHandler",
    "smb": "larmspider.fetch.source_handler.SourceHandler",
    "imaps": "larmspider.fetch.source_handler.SourceHandler",
}

# Classes that read sources which are no web sites, by the scheme of their URLs. Each is a plugin
# with an extra (docs/files.md); CONTRIBUTING.md has an example of one of your own.
LARM_CONNECTORS = {
    "smb": "larmspider.plugins.smb.connector.SmbConnector",
    "imaps": "larmspider.plugins.imap.connector.ImapConnector",
}

# Folders that may be crawled as file:///srv/share/, with all that they hold; nothing else on this
# machine is read, whatever a page names (docs/files.md).
LARM_FILE_ROOTS: list[str] = []

# Persons who may use a share, where its server does not tell the crawl's account (docs/files.md),
# as `{"smb://nas/share/": ["authenticated"]}`, with principals as in LARM_ACCESS_RULES.
LARM_SMB_SHARE_ACCESS: dict[str, list[str]] = {}

# Where readers of the search find these files, by the beginning of their URLs:
# `{"file:///srv/share/": "smb://nas/share/"}`. It also takes URLs of
# connectors. Files that are mapped to nothing are no links.
LARM_FILE_URLS: dict[str, str] = {}

# Idle connections that stay open; the least recently used one is closed first.
LARM_KEPT_CONNECTIONS = 128

# A name's address is looked up again after this, by the system's resolver. 0 or
# `DNSCACHE_ENABLED=False`: after 1 s. While no DNS server answers, an old address is used for up to
# a day. A name without an address is looked up again after 3 s.
LARM_DNS_CACHE_SECS = 300

# Speak HTTP/2 where a server offers it over TLS.
LARM_HTTP2 = False

# --- Before and after the fetch -----------------------------------------------------------------

DOWNLOADER_MIDDLEWARES = {
    "larmspider.middlewares.last_check.LastCheckMiddleware": 90,  # is it really in scope?
    "larmspider.middlewares.default_headers.DefaultHeadersMiddleware": 400,
    "larmspider.middlewares.fetch_outcome.AnswersMiddleware": 550,  # tells the frontier how it went
    "larmspider.middlewares.rendering.RenderMiddleware": 560,  # pages of sites with render = true
    # Scrapy's, with ports and networks in no_proxy
    "larmspider.middlewares.environment_proxies.EnvironmentProxiesMiddleware": 750,
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
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

# --- The storage chain --------------------------------------------------------------------------

# The stores are the entries of `ITEM_PIPELINES`; the lowest number runs first.

# Lines of `links.log`: `distinct`: a link that the page repeats, with the same target and text, is
# one line; `all`: a line each.
LARM_LINK_LOG = "distinct"

# The size of a page file, at most.
LARM_PAGEFILE_BYTES = 50_000_000

# How many old versions of a page `larmspider compact` keeps.
LARM_VERSIONS = 0

# `zstd`: new page files, `store.log` and `links.log` are compressed, as `links.log.zst`
# (docs/formats.md#compression). Empty: they are not.
LARM_COMPRESSION = ""

# Where the bodies of pages are stored: `page-files`, or `warc`, in the files that `WarcPipeline`
# writes anyway (docs/warc.md#without-page-files).
LARM_BODIES = "page-files"

# The size of a WARC file, at most; a larger page gets a separate file. For
# `larmspider.plugins.warc.pipeline.WarcPipeline`, if it is in `ITEM_PIPELINES` (docs/warc.md).
LARM_WARC_BYTES = 1_000_000_000

# Fetch what pages need to be shown as well: their images, styles and scripts, for WARC files
# (docs/warc.md#requisites).
LARM_REQUISITES = False

# Memory that the index writer may fill before it writes a segment; 15000000 to 4294967295.
LARM_INDEX_HEAP_BYTES = 64_000_000

# A page is stemmed in its own language; this is for pages whose language is unknown or has no
# stemmer (docs/search.md#languages).
LARM_INDEX_STEMMER = "english"

# Which index is searched: `tantivy`, in the crawl's directory, or `opensearch`, which
# `OpenSearchReceiver` writes (docs/opensearch.md).
LARM_SEARCH = "tantivy"

# Only pages in these languages, as "de,en", and in unknown ones can be found. Empty: all.
LARM_INDEX_LANGUAGES: list[str] = []

# Who finds which pages, by URL: `{"/hr/*": ["group:hr"], "*": ["everyone"]}`. The first rule that
# fits decides (docs/rights.md).
LARM_ACCESS_RULES: dict[str, list[str]] = {}

# Hosts that say who may read a page, in a header or a meta element:
# `{"cms.example": "X-Read-Access", "wiki.example": "meta:readers"}` (docs/rights.md).
LARM_ACCESS_SENT: dict[str, str] = {}

# Seconds between two checks of the rights of all files during a run. Each run begins with a check.
LARM_ACCESS_SECS = 3600.0

# Fields of `LARM_FIELDS` that searches count and offer as filters, as "room,status".
LARM_FACETS: list[str] = []

# For `scrapy_redis.pipelines.RedisPipeline`, if you add it to `ITEM_PIPELINES`: JSON with
# bodies in base64, into the list `<spider>:items`.
REDIS_ITEMS_SERIALIZER = "larmspider.pipelines.redis_items.serialize"

# Bytes that may wait in `LARM_DIR/outbox` for receivers (docs/stores.md). While more bytes wait,
# nothing is fetched, and the log names the receivers.
LARM_OUTBOX_BYTES = 10_000_000_000

# A crawl that ends waits for receivers as long as they take pages, and this number of seconds for a
# receiver that takes none. The next run sends the rest, or `larmspider outbox --send`.
LARM_OUTBOX_END_SECS = 30.0

# The database of `SqlReceiver`: `postgresql://user:password@host/name` or `sqlite:pages.db`. It may
# hold a password, so give it by the environment.
LARM_SQL_URL = os.environ.get("LARM_SQL_URL", "")

# `SqlReceiver` writes the bodies of pages, too.
LARM_SQL_BODIES = True

# The index of `OpenSearchReceiver`: `https://user:password@host:9200/index`. As above, by the
# environment.
LARM_OPENSEARCH_URL = os.environ.get("LARM_OPENSEARCH_URL", "")

# A file with `user:password` for `LARM_OPENSEARCH_URL`, in place of both in the URL.
LARM_OPENSEARCH_LOGIN = ""

# A file with the certificates (PEM) that OpenSearch's certificate is checked by. Empty: the
# system's.
LARM_OPENSEARCH_CA = ""

# Where `ObjectsReceiver` writes: `s3://bucket/folder`, `gs://`, `az://` or `file:///folder`.
# Credentials come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, ...).
LARM_OBJECTS_URL = os.environ.get("LARM_OBJECTS_URL", "")

# The table of `DynamoDbReceiver`, created if missing. Endpoint, region and credentials come from
# the environment (`AWS_ENDPOINT_URL`, `AWS_DEFAULT_REGION`, `AWS_ACCESS_KEY_ID`, ...).
LARM_DYNAMODB_TABLE = os.environ.get("LARM_DYNAMODB_TABLE", "")

# The server of `StreamReceiver`: `redis://:password@host:6379/0`, `nats://user:password@host:4222`
# or `kafka://user:password@host:9092`, by the environment.
LARM_STREAM_URL = os.environ.get("LARM_STREAM_URL", "")

# The key of the Redis stream; stream and subject of NATS; the topic of Kafka.
LARM_STREAM_NAME = "larm-pages"

CONCURRENT_ITEMS = 1
ITEM_PROCESSOR = "larmspider.pipelines.store.StorageChain"
ITEM_PIPELINES = {
    "larmspider.pipelines.deleted_log.DeletedLogPipeline": 100,
    "larmspider.pipelines.page_files.PageFilesPipeline": 200,
    "larmspider.pipelines.link_log.LinkLogPipeline": 300,
    "larmspider.pipelines.fetch_log.FetchLogPipeline": 400,
    "larmspider.pipelines.search_index.SearchIndexPipeline": 500,
}

# The writers of feeds such as `-O pages.jsonl` (docs/export.md#feeds).
FEED_EXPORTERS = {
    "json": "larmspider.pipelines.feeds.JsonFeed",
    "jsonlines": "larmspider.pipelines.feeds.JsonLinesFeed",
    "jsonl": "larmspider.pipelines.feeds.JsonLinesFeed",
    "jl": "larmspider.pipelines.feeds.JsonLinesFeed",
    "csv": "larmspider.pipelines.feeds.CsvFeed",
    "xml": "larmspider.pipelines.feeds.XmlFeed",
}

# Feeds have the bodies of pages too, in base64 as `body_base64`.
LARM_FEED_BODIES = False

# --- Beside the crawl ---------------------------------------------------------------------------

# Seconds between two flushes of everything to disk; the search index may commit less often.
LARM_CHECKPOINT_SECS = 5.0

# Seconds between two lines of `Monitor.log` and of the log.
LARM_MONITOR_SECS = 5.0

# If the log goes to a terminal, show rates, totals, slowest and parked hosts and the forecast below
# it, in place of the monitor's lines. `NO_COLOR` is obeyed; a narrow window gets one line; with
# `TERM=dumb`, on a pipe or in a file the log is all there is. `line`: one line, as `larmspider
# crawl` has it, whose log goes to `crawl.log` in LARM_DIR unless `-v` or LOG_LEVEL is given.
LARM_PROGRESS = True

# Serve the crawl's web pages while it runs (docs/operations.md#the-web-pages).
LARM_WEB = True

# The IP address to listen at. An address that other machines can reach needs `LARM_WEB_TOKEN`, and
# then every page asks for the token, as it does if `LARM_SITES_FILE` holds credentials.
LARM_WEB_ADDRESS = "127.0.0.1"

# Serve at a Unix socket, `web.sock` in `LARM_DIR`, and open no port: for a crawl that
# `larmspider server` starts (docs/server.md). `LARM_WEB_ADDRESS` and `LARM_WEB_PORT` are ignored.
LARM_WEB_SOCKET = False

# The port. If it is taken, the next free port, which the log names. 0: any free port.
LARM_WEB_PORT = 6080

# The token for control: at least 16 characters. Empty: a token is made and kept in
# `LARM_DIR/web.token`, readable for its owner alone.
LARM_WEB_TOKEN = ""

# Wrong tokens that one address may send in a minute, in any way. Further tokens are refused with
# status 429, without a check.
LARM_WEB_WRONG_TOKENS = 20

# The same for all addresses together; then each address has one try until the minute is over.
LARM_WEB_WRONG_TOKENS_IN_ALL = 200

# Names by which browsers reach the server, apart from IP addresses and `localhost`. A request with
# another `Host` is refused.
LARM_WEB_HOSTS: list[str] = []

# If every page asks for the token: beginnings of paths that do not, such as `/search` or
# `/metrics`.
LARM_WEB_OPEN: list[str] = []

# Who finds files, and pages of hosts that are fetched with credentials, without the token: groups
# and their hosts, such as {"staff": ["*.hr.example", "file://"]}
# (docs/rights.md). A host is opened whole, at all its ports: "wiki" and "wiki:*"
# are the same, and a pattern with a scheme or one port is refused. Needs LARM_SEARCH_GROUPS_HEADER.
LARM_SEARCH_GROUPS: dict[str, list[str]] = {}

# The header in which a reverse proxy names the reader's groups, separated by commas. A request
# that has it may search without the token. Needs LARM_TRUSTED_PROXIES.
LARM_SEARCH_GROUPS_HEADER = ""

# The header in which a reverse proxy names the reader. The search then finds this reader's
# documents. A request with the header may search without the token. Needs LARM_TRUSTED_PROXIES.
LARM_SEARCH_USER_HEADER = ""

# Addresses and networks of reverse proxies. Headers from other addresses are ignored.
LARM_TRUSTED_PROXIES: list[str] = []

# The name of the search, on its pages and among the search engines of a browser that adds it.
LARM_SEARCH_NAME = "larmspider"

# A picture beside that name: the path of an SVG, PNG, JPEG, WebP or GIF file of at most 32 kB.
LARM_SEARCH_LOGO = ""

# The colour of its buttons and of the line on top, such as "#7a1f3d"; text on it is black or white,
# whichever is easier to read.
LARM_SEARCH_COLOUR = ""

# The language of its pages: en, de or fr. Empty: the language that the browser prefers, else
# English.
LARM_SEARCH_LANGUAGE = ""

# The names of crawls that `larmspider serve DIR DIR` searches together, by directory, as
# {"/srv/crawl-hr": "Staff"} (docs/rights.md#several-crawls-in-one-search). Other crawls have
# the names of their directories.
LARM_COLLECTIONS: dict[str, str] = {}

# Words and phrases that mean the same, a group a line (docs/search.md#synonyms-and-best-bets).
# Empty: `synonyms.txt` in `LARM_DIR`, if it exists.
LARM_SYNONYMS_FILE = ""

# Links above the hits of certain queries, one a line. Empty: `best_bets.txt` in `LARM_DIR`, if it
# exists.
LARM_BEST_BETS_FILE = ""

# Names for parts of the sites, one URL a line. A search can be narrowed to them (docs/labels.md).
# Empty: `labels.txt` in `LARM_DIR`, if it exists.
LARM_LABELS_FILE = ""

# Log the queries of the search page, and their numbers of hits; not the users
# (docs/search.md#the-log-of-queries). Frequent queries are then suggested to other readers.
LARM_QUERY_LOG = False

# Days that a query is kept.
LARM_QUERY_LOG_DAYS = 90

EXTENSIONS = {
    "larmspider.extensions.preflight.PreflightExtension": -100,  # before any other makes a file
    "larmspider.extensions.checkpoint.CheckpointExtension": 500,
    "larmspider.extensions.seed_watch.SeedWatchExtension": 500,  # seeds that cannot be fetched
    "larmspider.extensions.stop.StopExtension": 500,  # SIGTERM and Ctrl-C
    "larmspider.extensions.notify.NotifyExtension": 500,  # events for an operator; approvals
    "larmspider.status.monitor.MonitorExtension": 500,
    "larmspider.extensions.progress.ProgressExtension": 500,
    "larmspider.extensions.tuning.AllocatorExtension": 100,  # memory of large bodies goes back
    "larmspider.extensions.tuning.TasksExtension": 100,  # fewer tasks of asyncio
    "larmspider.extensions.tuning.GarbageExtension": 900,  # after all others
    "larmspider.extensions.pagerank.PageRankExtension": 500,  # where LARM_STRATEGY is pagerank
    "larmspider.status.totals.TotalsExtension": 500,  # counts of all runs
    "larmspider.control.operator.OperatorExtension": 500,  # control, orders of earlier runs
    "larmspider.web.WebExtension": 600,  # when the frontier is open
    "scrapy.extensions.telnet.TelnetConsole": None,
    "scrapy.extensions.logstats.LogStats": None,  # the monitor says it
    "scrapy.extensions.remote_control.RemoteControl": None,
}
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

LOG_LEVEL = "INFO"

# Lines such as `Crawled (200)` are made at `LOG_LEVEL=DEBUG` only.
LOG_FORMATTER = "larmspider.extensions.tuning.LarmLogFormatter"
STATS_CLASS = "larmspider.extensions.tuning.LarmStats"

# --- Scrapy's components that are off -----------------------------------------------------------

# Components with `None` above, downloader slots, cookies, telnet and remote control: larmspider's
# own components replace them, or they are not needed. 10 us for each page are 1% of a crawl's
# speed; set `scrapy.downloadermiddlewares.stats.DownloaderStats` to 850 in `DOWNLOADER_MIDDLEWARES`
# to have its counts. A spider of your own is kept in scope by `LARM_RESTRICT`, or by the hosts of
# its `start_urls`.
