"""larmspider/middlewares/url_filter.py: what a filter must have."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.items import ORDINARY, REDIRECT, Link, Page
from larmspider.middlewares.depth import DepthFilter
from larmspider.middlewares.known_paths import KnownPathsFilter
from larmspider.middlewares.length import LengthFilter
from larmspider.middlewares.nofollow import NofollowFilter
from larmspider.middlewares.normalize import NormalizeFilter
from larmspider.middlewares.scope import ScopeFilter
from larmspider.middlewares.traps import TrapsFilter
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.normalizer import LONGEST_CACHED


class Nameless(UrlFilter):
    """One that was written in a hurry."""


class Spaced(UrlFilter):
    name: ClassVar[str] = "my filter"


@pytest.mark.parametrize("cls", [Nameless, Spaced])
def test_a_filter_without_a_name_is_an_error_at_the_start(
    crawler_for: Callable[..., Crawler], cls: type[UrlFilter]
) -> None:
    """It names the class, and not at the first link: stats, logs and explanations need the name."""
    with pytest.raises(ConfigError, match=rf"the filter \S*{cls.__name__} has the name .*'name'"):
        cls.from_crawler(crawler_for())


class Odd(UrlFilter):
    """Rejects every other URL that it is asked about; remembers what it said."""

    name = "odd"
    remembers = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def reject_reason(self, url: str) -> str | None:
        self.asked.append(url)
        return "odd" if len(self.asked) % 2 else None


def test_a_filter_that_remembers_is_asked_once_for_a_url() -> None:
    """Navigation stands on each page of a site. Long URLs are not kept: memory stays bounded."""
    odd, page = Odd(), Page("http://h/")
    long = "http://h/" + "x" * LONGEST_CACHED
    links = [Link(url, url) for url in ("http://h/a", "http://h/b", "http://h/a", long)]
    assert odd.reject_links(links, page) == ["odd", None, "odd", "odd"]
    assert odd.reject_links(links, page) == ["odd", None, "odd", None]
    assert odd.asked == ["http://h/a", "http://h/b", long, long]


@pytest.mark.parametrize("page", [Page("http://h/", nofollow=nofollow, depth=depth, redirects=1)
                                  for nofollow in (False, True) for depth in (1, 2)])  # fmt: skip
def test_filters_say_of_a_batch_what_they_say_of_each_link(page: Page) -> None:
    """What they do faster for a whole page must not be another rule."""
    settings = Settings(
        {
            "LARM_START": "http://h/",
            "URLLENGTH_LIMIT": 30,
            "DEPTH_LIMIT": 2,
            "LARM_MAX_REDIRECTS": 1,
        }
    )
    settings.setmodule("larmspider.settings", priority="default")
    filters = [
        cls.from_settings(settings)
        for cls in (NormalizeFilter, LengthFilter, KnownPathsFilter, ScopeFilter, TrapsFilter,
                    NofollowFilter, DepthFilter)
    ]  # fmt: skip
    urls = ("http://h/a", "http://h/" + 30 * "b", "http://h/?C=N;O=D", "http://other/",
            "http://h/x/x/x/x/", "http://h/cal/2093-04/")  # fmt: skip
    links = [
        Link(url, url, kind, nofollow=nofollow)
        for url in urls
        for kind in (ORDINARY, REDIRECT)
        for nofollow in (False, True)
    ]
    rejected = set()
    for one in filters:
        reasons = one.reject_links(links, page)
        assert reasons == [one.reject_link(link, page) for link in links]
        rejected |= {one.name} if any(reasons) else set()
    assert {"length", "known-paths", "scope", "traps", "nofollow", "depth"} <= rejected
