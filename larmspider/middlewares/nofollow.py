"""nofollow: links that their page asks not to follow: <a rel=nofollow>, <meta name=robots>.

So are those that a script sends by another method than GET, as Rails and Turbo write them: <a
data-method=delete>.
"""

from __future__ import annotations

from collections.abc import Sequence

from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter


class NofollowFilter(UrlFilter):
    """Rejects a link marked nofollow, and every link of a page marked so; both are still logged."""

    name = "nofollow"

    def reject_link(self, link: Link, page: Page) -> str | None:
        if page.nofollow:
            return "the page says nofollow"
        return "the link says nofollow, or a method (data-method)" if link.nofollow else None

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        if page.nofollow:
            return [self.reject_link(link, page) for link in links]
        return [self.reject_link(link, page) if link.nofollow else None for link in links]
