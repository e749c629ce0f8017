"""Signals of ours, beside Scrapy's."""

recovered = object()
"""``positions``: mapping from store to its committed position (bytes). Sent by the scheduler before
the stores open. A store goes back to its position, or to nothing where it has none."""

checkpoint = object()
"""No arguments. Each store hands what it holds to the operating system at once and returns (its
name, its position); it must not be a coroutine, so that all positions are of one moment."""

commit = object()
"""No arguments; sent after ``checkpoint``. A store makes that durable which it named: it syncs
files, commits an index. May be a coroutine, and pages may be written meanwhile."""

url_refused = object()
"""``failed``: a FailedFetch for a URL that robots.txt does not allow; it was not fetched."""

sitemaps_found = object()
"""``host`` (host:port) and ``urls``: the Sitemap lines of its robots.txt."""

let_go = object()
"""No arguments. The crawl was told to stop some time ago: who still does long work drops it, and
what it was done for is fetched again by the crawl that goes on."""

wake = object()
"""No arguments. What the crawl waited for is done: it may go on, or end, at once."""
