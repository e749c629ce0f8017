"""larmspider's signals, in addition to Scrapy's."""

recovered = object()
"""``positions``: mapping from store to its committed position (bytes). Sent by the scheduler before
the stores open. A store goes back to its position, or to nothing if it has none."""

checkpoint = object()
"""No arguments. Each store hands its buffers to the operating system and returns (its name, its
position); not a coroutine, so that all positions are of one moment."""

commit = object()
"""No arguments; sent after ``checkpoint``. Each store makes its data up to its position durable: it
syncs files, commits an index. May be a coroutine; pages may be written meanwhile."""

committed = object()
"""``positions``, as for ``recovered``: the data that the last checkpoint has made durable. Also
sent after the very last one, when the stores are closed."""

ended = object()
"""No arguments. Sent after the very last checkpoint, before the directory is sealed and unlocked:
logs that belong to no store are closed."""

hold = object()
"""``why``: fetching stops for this reason, one line; "": fetching continues."""

in_doubt = object()
"""``names``: pages, by the exact form of their URLs. After a crash, a store that cannot go back may
have other versions of them than the last checkpoint. The scheduler returns a list of the pages that
are not stored at all; the others are written again at their next visit, with any result."""

links_to = object()
"""``names``: pages, by the exact form of their URLs. The search index returns how many pages have a
link with a text to each, as of its last commit."""

unlinked = object()
"""``names``: indexed pages to which no link with a text leads any more."""

host_abandoned = object()
"""``host`` and ``since``: a host that has not answered since that time. The operator has approved
the removal of its pages. The component that removes them returns True."""

unreached = object()
"""``names``: pages that were not reached at their last visit, by the exact form of their URLs. The
scheduler returns a dict with the origins (``http://wiki.example``) of the hosts that have not
answered for a day, and since when; and those pages that another worker has now."""

url_refused = object()
"""``failed``: a FailedFetch for a URL that robots.txt does not allow; it was not fetched."""

sitemaps_found = object()
"""``host`` (host:port) and ``urls``: the Sitemap lines of its robots.txt."""

let_go = object()
"""No arguments. The crawl has been stopping for a while: long work is dropped, and its URLs are
fetched again when the crawl is continued."""

wake = object()
"""No arguments. The work that the crawl waited for is done: it may continue, or end, at once."""
page_copied = object()
"""A fetched page is not stored, because another URL gave the same: ``page``, ``message``."""
