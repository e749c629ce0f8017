"""nofollow: links that their page asks not to follow: <a rel=nofollow>, <meta name=robots>,
X-Robots-Tag.

Links that a script sends by a method other than GET are treated the same, as Rails and Turbo write
them: <a data-method=delete>. The same holds for links that ask before they act:
<a data-confirm="Sure?">, <a onclick="return confirm('Sure?')">.

    LARM_HOST_RULES={"wiki.example": {"nofollow": "ignore"}}

follows the links of that host's pages anyway. Links that act (urls/acting.py) are never
followed for it, nor are nofollow links on a page that has links of these two kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from larmspider.frontier.hosts import IGNORE
from larmspider.frontier.storage.records import host_of
from larmspider.items import Link, Page
from larmspider.learned.factory import host_rules
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.acting import acts

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


_SENDS = re.compile(rb"-method|-confirm|\bconfirm\(")
"""Occurs in the markup of pages with links by another method, or that ask for a confirmation."""


class NofollowFilter(UrlFilter):
    """Rejects a link marked nofollow, and every link of a page marked so; both are still logged.
    ``ignores`` says whether the nofollow of a host is ignored."""

    name = "nofollow"

    def __init__(self, ignores: Callable[[str], bool] | None = None) -> None:
        self._ignores = ignores or (lambda _host: False)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        rules = host_rules(settings)
        return cls(lambda host: rules.of(host).nofollow == IGNORE)

    def reject_link(self, link: Link, page: Page) -> str | None:
        if not (page.nofollow or link.nofollow):
            return None
        may_be_method = link.nofollow and (not page.body or _SENDS.search(page.body) is not None)
        if not may_be_method and self._ignores(host_of(page.url)):
            act = acts(link.normalized or link.url)
            return None if act is None else f"says nofollow, which is ignored here, but acts: {act}"
        if page.nofollow:
            return "the page says nofollow"
        return "the link says nofollow, a method (data-method), or asks for a confirmation"

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        if page.nofollow:
            return [self.reject_link(link, page) for link in links]
        return [self.reject_link(link, page) if link.nofollow else None for link in links]
