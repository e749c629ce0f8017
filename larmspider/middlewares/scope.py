"""Scope: the part of the web that is crawled, LARM's -restrict.

-a restrict='https?://[^/]*\\.example/.*'      every host below .example
(nothing)                                     the hosts of the seeds, http and https alike
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.normalizer import normalizer_from_settings
from larmspider.urls.patterns import Pattern, compile_pattern
from larmspider.urls.seeds import read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


class ScopeFilter(UrlFilter):
    """Rejects a URL that does not match ``restrict`` as a whole or, without one, whose host and
    port are none of ``hosts``."""

    name = "scope"
    remembers = True

    def __init__(self, restrict: Pattern | None, hosts: Iterable[str] = ()) -> None:
        self.restrict = restrict
        self.hosts = frozenset(hosts)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls.for_seeds(settings, read_seeds(options.text(settings, "LARM_START")))

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        return cls.for_seeds(crawler.settings, getattr(crawler.spider, "start_urls", ()))

    @classmethod
    def for_seeds(cls, settings: BaseSettings, seeds: Iterable[str]) -> Self:
        """The filter for a crawl from ``seeds``, whose hosts are the scope without
        LARM_RESTRICT."""
        restrict = options.text(settings, "LARM_RESTRICT")
        if restrict:
            return cls(compile_pattern(restrict, name="restrict"))
        normalize = normalizer_from_settings(settings)
        hosts = {_host(normalize(seed)) for seed in seeds}
        if not hosts:
            raise ConfigError(
                "The scope is unknown: give -a restrict=REGEX (setting LARM_RESTRICT),"
                " or seeds (-a start=URL, or start_urls in a spider) whose hosts are the scope"
            )
        return cls(None, hosts)

    def restrict_to(self, pattern: Pattern) -> None:
        """Change the scope."""
        self.restrict = pattern
        self._verdict.clear()

    def reject_reason(self, url: str) -> str | None:
        if self.restrict is not None:
            if self.restrict.fullmatch(url):
                return None
            return f"does not match restrict {self.restrict.text}"
        if _host(url) in self.hosts:
            return None
        return f"host {_host(url)} is not a seed's host"


def _host(normalized: str) -> str:
    """Host and port of a canonical URL, where default ports are absent: http and https alike."""
    start = normalized.index("//") + 2
    end = normalized.find("/", start)
    return normalized[start:] if end < 0 else normalized[start:end]
