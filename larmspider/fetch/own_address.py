"""Is a host asked at its own address, or does a proxy ask it, that looks up the name itself?

own_address = OwnAddress.from_settings(settings)
own_address("http://wiki/robots.txt")      # False: for LARM_SITES_FILE has a proxy for it

A proxy that a Request of a foreign spider names is not seen here: the name of its host is looked up
once for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from larmspider import options
from larmspider.fetch.endpoints import asks_itself, names_needed
from larmspider.fetch.sites.lookup import Sites

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class OwnAddress:
    """``proxies`` of the environment, by scheme, as HttpProxyMiddleware has them."""

    def __init__(self, sites: Sites, proxies: dict[str, str]) -> None:
        self._sites, self._proxies = sites, proxies

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Raises ConfigError."""
        enabled = options.as_boolean("HTTPPROXY_ENABLED", settings.get("HTTPPROXY_ENABLED", True))
        return cls(Sites.from_settings(settings), getproxies() if enabled else {})

    def __call__(self, url: str) -> bool:
        """Not for what is no name either. ``url`` without userinfo."""
        site = self._sites.for_url(url)
        proxy = None if site is None else site.options.proxy
        text = self._of_environment(url) if proxy is None else proxy.url
        return asks_itself(text) and bool(names_needed(url, None))

    def _of_environment(self, url: str) -> str | None:
        if not self._proxies:
            return None
        parts = urlsplit(url)
        proxy = self._proxies.get(parts.scheme)
        return None if proxy is None or proxy_bypass(parts.hostname or "") else proxy
