"""nofollow: links that their page asks not to follow (<a rel=nofollow>, <meta name=robots>)."""

from __future__ import annotations

from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter


class NofollowFilter(UrlFilter):
    """Rejects a link marked nofollow, and every link of a page marked so; both are still logged."""

    name = "nofollow"

    def reject_link(self, link: Link, page: Page) -> str | None:
        if page.nofollow:
            return "the page says nofollow"
        return "the link says nofollow" if link.nofollow else None
