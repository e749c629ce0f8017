"""URL normalization, the first step: what has no canonical form (mailto:, http://[) stops here."""

from __future__ import annotations

from collections.abc import Sequence

from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter


class NormalizeFilter(UrlFilter):
    """Rejects what is no http or https URL.

    The canonical form itself is made for each link as it reaches its first filter, which is this
    one; it is kept in Link.normalized and in Request.meta["normalized"], for comparison only. The
    original is fetched.
    """

    name = "normalize"

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        return [None] * len(links)
