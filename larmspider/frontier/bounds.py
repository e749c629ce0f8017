"""How far the crawl goes, and why a link lies beyond that.

Bounds(depth_limit=3).reject_reason(entry)   ->  "depth 4 is over 3"
"""

from __future__ import annotations

from dataclasses import dataclass

from larmspider.frontier.storage.records import Entry

MAX_HOST = 300
"""Characters of host:port; DNS allows 253. A longer one would not fit a key of the backend."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the crawl goes; 0 means no bound. ``retry_times`` are fetches beside the first.

    ``robots_expires`` in seconds (RFC 9309 2.4: 24 h); ``robots_retry``: after a failed renewal.
    """

    max_pages: int = 0
    depth_limit: int = 0
    max_redirects: int = 10
    retry_times: int = 2
    robots_expires: float = 86_400.0
    robots_retry: float = 3_600.0

    def reject_reason(self, entry: Entry) -> str | None:
        """Why it will not be queued; None where it may be."""
        if self.depth_limit and entry.depth > self.depth_limit:
            return f"depth {entry.depth} is over {self.depth_limit}"
        if entry.redirects > self.max_redirects:
            return f"{entry.redirects} redirects in a row, {self.max_redirects} are allowed"
        if len(entry.host) > MAX_HOST:
            return f"host name of {len(entry.host)} characters, {MAX_HOST} are allowed"
        return None
