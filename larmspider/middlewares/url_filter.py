"""UrlFilter: the base class of all filters; a filter is one class in a file of its own.

    class DraftsFilter(UrlFilter):
        name = "drafts"

        def reject_reason(self, url: str) -> str | None:
            return "a draft" if "/drafts/" in url else None

A filter in SPIDER_MIDDLEWARES judges all links of a Page in one pass. It also judges plain Requests
and seeds, so it works with any spider. middlewares/filter_middleware.py runs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from larmspider.errors import ConfigError
from larmspider.items import Link, Page
from larmspider.middlewares.filter_middleware import FilterMiddleware, log_name
from larmspider.urls.normalizer import UrlMemo

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


_NAME = re.compile(r"[a-z0-9-]+")


class UrlFilter:
    """Answers with the reason why a URL is rejected, or with None.

    If it raises, the URL is rejected and the error counted (fail closed).
    """

    name: ClassVar[str]
    """Short and stable: stats, logs and explanations show it."""
    remembers: ClassVar[bool] = False
    """Whether ``reject_reason`` alone decides, and always gives the same verdict for a URL.
    Verdicts are then cached: 0.05 us a link instead of 1 to 2, for 97% of all links
    (navigation)."""
    files: ClassVar[tuple[str, ...]] = ()
    """Its log and other files in LARM_DIR, as in Store (pipelines/store.py)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.files = (log_name(cls), *cls.__dict__.get("files", ()))

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """The filter by the settings. Raises ConfigError on a bad value."""
        return cls()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FilterMiddleware:
        cls.check()
        return FilterMiddleware.from_filter(cls.build(crawler), crawler)

    @classmethod
    def check(cls) -> None:
        """Raise ConfigError for a filter without a name that can be part of a stats key."""
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"the filter {cls.__module__}.{cls.__qualname__} has the name {name!r}: expected a"
                " class attribute 'name' of lower-case letters, digits and '-'"
            )

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        """The filter for one crawl; overridden by filters that need the spider."""
        return cls.from_settings(crawler.settings)

    def reject_reason(self, url: str) -> str | None:
        """Why ``url``, in canonical form, is rejected; None if it is not."""
        return None

    def reject_link(self, link: Link, page: Page) -> str | None:
        """``reject_reason`` for filters that need the link or its page."""
        assert link.normalized is not None
        return self.reject_reason(link.normalized)

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        """``reject_link`` for the remaining links of ``page``, for filters that look them up
        together."""
        if not self.remembers:
            return [self.reject_link(link, page) for link in links]
        verdict = self._verdict
        return [verdict[url] for link in links if (url := link.normalized) is not None]

    @cached_property
    def _verdict(self) -> UrlMemo[str | None]:
        return UrlMemo(self.reject_reason)

    def reject_request(self, request: Request, normalized: str) -> str | None:
        """``reject_reason`` for a seed or a plain Request."""
        return self.reject_reason(normalized)
