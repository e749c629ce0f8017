"""URL normalization, the first step: what has no canonical form (mailto:, http://[) stops here."""

from __future__ import annotations

from collections.abc import Sequence

from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter


class NormalizeFilter(UrlFilter):
    """Rejects a link that is not an http or https URL.

    FilterMiddleware makes the canonical form of each link for its first filter, which is this one,
    and keeps it in Link.normalized and Request.meta["normalized"]. The original URL is fetched.
    """

    name = "normalize"

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        return [None] * len(links)
