"""A proxy as meta["proxy"] names it.

read_proxy("socks5h://proxy")      # ProxyUrl("socks5h", "proxy", 1080, None, "")
read_proxy("proxy:3128")           # ProxyUrl("http", "proxy", 3128, None, "")
read_proxy("//proxy:3128")         # the same: what HttpProxyMiddleware makes of it
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from larmspider.fetch import errors

_PORTS = {
    "http": 80,
    "https": 443,
    "socks4": 1080,
    "socks4a": 1080,
    "socks5": 1080,
    "socks5h": 1080,
}
"""The schemes that libcurl knows, and the port of each that is asked where none is named."""


class ProxyUrl(NamedTuple):
    """``host`` without brackets; ``user`` and ``password`` unquoted; no user: None."""

    scheme: str
    host: str
    port: int
    user: str | None
    password: str


def read_proxy(text: str) -> ProxyUrl:
    """Without a scheme it is http's. Raises BadUrl where it is no proxy that we can ask."""
    refused = errors.BadUrl(f"no proxy: {', '.join(_PORTS)} with host and port are accepted")
    try:
        parts = urlsplit(text if "://" in text or text.startswith("//") else f"//{text}", "http")
        port = parts.port
    except ValueError:
        raise refused from None
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise refused
    user = None if parts.username is None else unquote(parts.username)
    return ProxyUrl(
        parts.scheme,
        parts.hostname,
        port or _PORTS[parts.scheme],
        user,
        unquote(parts.password or ""),
    )
