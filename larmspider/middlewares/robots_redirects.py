"""Redirects of robots.txt, which Scrapy follows by itself; pages' redirects are links of type 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.redirect import RedirectMiddleware

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class RobotsRedirectMiddleware(RedirectMiddleware):
    """Scrapy's middleware without a Referer. Page requests carry dont_redirect and pass it by."""

    def handle_referer(self, request: Request, response: Response) -> None:
        request.headers.pop("Referer", None)
