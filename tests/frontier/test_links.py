"""Which links lie beyond the crawl's bounds, and what is said of them."""

import pytest

from larmspider.frontier.links import MAX_HOST, CrawlLimits, RecentlySeen
from larmspider.frontier.storage.records import QueuedUrl


def entry(**fields):
    return QueuedUrl("http://a/", "http://a/", b"", fields.pop("host", "a:80"), **fields)


@pytest.mark.parametrize(
    "bounds, fields, reason",
    [
        (CrawlLimits(), {"depth": 60_000}, None),
        (CrawlLimits(depth_limit=3), {"depth": 3}, None),
        (CrawlLimits(depth_limit=3), {"depth": 4}, "depth 4 is over 3"),
        (CrawlLimits(max_redirects=2), {"redirects": 2}, None),
        (CrawlLimits(max_redirects=2), {"redirects": 3}, "3 redirects in a row, 2 are allowed"),
        (CrawlLimits(max_redirects=0), {"redirects": 1}, "1 redirects in a row, 0 are allowed"),
        (CrawlLimits(), {"host": "a" * MAX_HOST}, None),
        (CrawlLimits(), {"host": "a" * 301}, "host name of 301 characters, 300 are allowed"),
    ],
)
def test_what_lies_beyond_has_a_reason(bounds, fields, reason):
    assert bounds.reject_reason(entry(**fields)) == reason


# URLs that were seen lately are remembered for a while, and forgotten in halves.


def test_what_was_added_is_among_them():
    seen = RecentlySeen()
    seen.add("a")
    assert seen.among(["b", "a", "a"]) == [False, True, True]


def test_what_is_asked_for_stays():
    """Each full half replaces the other; what was asked for meanwhile is in the younger one."""
    seen = RecentlySeen(size=3)
    for url in "abc":
        seen.add(url)
    assert seen.among(["a", "x"]) == [True, False]
    for url in "de":
        seen.add(url)
    assert seen.among(["a", "d", "e", "b", "c"]) == [True, True, True, False, False]
