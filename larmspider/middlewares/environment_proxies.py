"""The proxies of the environment, ``http_proxy`` and ``https_proxy``, and ``no_proxy``.

    no_proxy=wiki:8080,10.0.0.0/8

Scrapy's HttpProxyMiddleware does the same, without ports and networks in ``no_proxy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware

from larmspider.fetch.no_proxy import NoProxy

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response


class EnvironmentProxiesMiddleware(HttpProxyMiddleware):
    """Leaves a Request without a proxy where ``no_proxy`` has its host. 1 us without a proxy."""

    def __init__(self, auth_encoding: str | None = "latin-1") -> None:
        super().__init__(auth_encoding)
        self._is_direct = NoProxy.from_environment()

    def process_request(
        self, request: Request, spider: Spider | None = None
    ) -> Request | Response | None:
        if self.proxies and "proxy" not in request.meta and self._is_direct(request.url):
            self._set_proxy_and_creds(request, None, None, None)
            return None
        return super().process_request(request)
