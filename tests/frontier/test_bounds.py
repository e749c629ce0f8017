"""Which links lie beyond the crawl's bounds, and what is said of them."""

import pytest

from larmspider.frontier.links import MAX_HOST, Bounds
from larmspider.frontier.storage.records import Entry


def entry(**fields):
    return Entry("http://a/", "http://a/", b"", fields.pop("host", "a:80"), **fields)


@pytest.mark.parametrize(
    "bounds, fields, reason",
    [
        (Bounds(), {"depth": 60_000}, None),
        (Bounds(depth_limit=3), {"depth": 3}, None),
        (Bounds(depth_limit=3), {"depth": 4}, "depth 4 is over 3"),
        (Bounds(max_redirects=2), {"redirects": 2}, None),
        (Bounds(max_redirects=2), {"redirects": 3}, "3 redirects in a row, 2 are allowed"),
        (Bounds(max_redirects=0), {"redirects": 1}, "1 redirects in a row, 0 are allowed"),
        (Bounds(), {"host": "a" * MAX_HOST}, None),
        (Bounds(), {"host": "a" * 301}, "host name of 301 characters, 300 are allowed"),
    ],
)
def test_what_lies_beyond_has_a_reason(bounds, fields, reason):
    assert bounds.reject_reason(entry(**fields)) == reason
