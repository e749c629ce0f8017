"""meta["proxy"] as libcurl options: http, https and SOCKS, credentials apart from the URL.

    request.meta["proxy"] = "socks5h://proxy.example:1080"

HttpProxyMiddleware moves credentials from the URL into Proxy-Authorization; here Basic ones become
libcurl's user and password, so that they go to the proxy only, through a tunnel too.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import can_ada
import pycurl

from larmspider.fetch import errors
from larmspider.fetch.deny_addresses import DenyAddresses, plain_address

if TYPE_CHECKING:
    from scrapy import Request


_PORTS = {
    "http": 80,
    "https": 443,
    "socks4": 1080,
    "socks4a": 1080,
    "socks5": 1080,
    "socks5h": 1080,
}
"""The schemes that libcurl knows, and their default ports."""


class ProxyUrl(NamedTuple):
    """``host`` without brackets; ``user`` and ``password`` unquoted, None without a user."""

    scheme: str
    host: str
    port: int
    user: str | None
    password: str


def read_proxy(text: str) -> ProxyUrl:
    """The parts of ``socks5h://proxy``, ``proxy:3128`` (http) or ``//proxy:3128``, which
    HttpProxyMiddleware makes of it. Raises BadUrl for another text."""
    refused = errors.BadUrl(f"no proxy: expected {', '.join(_PORTS)} with host and port")
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


def check_target(deny: DenyAddresses, url: str) -> None:
    """Raise DeniedAddress for a URL whose host is a denied address: with a proxy, no socket of ours
    connects to it. The proxy resolves names, by rules of its own."""
    try:
        host = can_ada.parse(url).hostname.strip("[]")
    except (ValueError, UnicodeError, TypeError):
        host = _in_brackets(url)  # libcurl takes a zone, fe80::1%25eth0
    try:
        plain_address(host)
    except ValueError:
        return
    reason = deny.reason(host)
    if reason is not None:
        raise errors.DeniedAddress(f"{reason} (LARM_DENY_ADDRESSES)")


def _in_brackets(url: str) -> str:
    authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    return authority.rpartition("@")[2].partition("]")[0].removeprefix("[")


def apply_proxy(curl: pycurl.Curl, request: Request) -> None:
    """Set the proxy of a Request with meta["proxy"]. Raises BadUrl."""
    proxy = read_proxy(str(request.meta["proxy"]))
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    curl.setopt(pycurl.PROXY, f"{proxy.scheme}://{host}:{proxy.port}")
    if proxy.user is not None:
        curl.setopt(pycurl.PROXYUSERNAME, proxy.user)
        curl.setopt(pycurl.PROXYPASSWORD, proxy.password)
    authorization = request.headers.get(b"Proxy-Authorization")
    if authorization:
        _authorize(curl, authorization)


def _authorize(curl: pycurl.Curl, value: bytes) -> None:
    scheme, _, token = value.partition(b" ")
    if scheme.lower() == b"basic":
        try:
            user, _, password = base64.b64decode(token, validate=True).partition(b":")
        except binascii.Error:
            raise errors.BadUrl("Proxy-Authorization: not Base64") from None
        curl.setopt(pycurl.PROXYUSERNAME, user)
        curl.setopt(pycurl.PROXYPASSWORD, password)
        return
    if b"\n" in value or b"\r" in value:
        raise errors.BadUrl("line break in Proxy-Authorization")
    curl.setopt(pycurl.HEADEROPT, pycurl.HEADER_SEPARATE)
    curl.setopt(pycurl.PROXYHEADER, [b"Proxy-Authorization: " + value])
