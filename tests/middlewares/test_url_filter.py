"""larmspider/middlewares/url_filter.py: what a filter must have."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from scrapy.crawler import Crawler

from larmspider.errors import ConfigError
from larmspider.middlewares.url_filter import UrlFilter


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
