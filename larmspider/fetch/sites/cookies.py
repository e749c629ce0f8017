"""The cookies of one origin, by the rules of RFC 6265.

    cookies = OriginCookies("http", "wiki")
    cookies.take([b"sid=1; Domain=wiki; Path=/"], "http://wiki/login")
    cookies.header("http://wiki/page")        # b"sid=1"

http.cookiejar judges paths and expiry. It refuses a Domain without a dot, and an empty one, which
hosts of intranets send (RFC 6265 5.2.3, 5.3). So Domain is judged here, and the jar sees one host.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Response
from scrapy.http.cookies import CookieJar

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOST = "origin.invalid"
"""The host of every URL that the jar sees: a dotted name, because the jar loses cookies of
``[::1]``."""
_KEPT = (b"path", b"expires", b"max-age")


class OriginCookies:
    """Cookies in memory alone. ``host`` is a name or an address; IPv6 addresses may have
    brackets."""

    def __init__(self, scheme: str, host: str) -> None:
        self._base, self._host = f"{scheme}://{_HOST}", _plain(host)
        self._jar = CookieJar()

    def take(self, lines: Iterable[bytes], url: str) -> None:
        """Keep the cookies of these values of Set-Cookie, sent in the answer to ``url``."""
        kept = [line for line in map(self._as_netscape, lines) if line is not None]
        if kept:
            response = Response(self._base, headers={"Set-Cookie": kept})
            self._jar.extract_cookies(response, self._request(url))

    def header(self, url: str) -> bytes:
        """The value of a Cookie header for ``url``; b"" for none."""
        request = self._request(url)
        self._jar.add_cookie_header(request)
        sent = request.headers.get("Cookie") or b""
        return sent.decode().encode("latin-1", "replace")

    def _request(self, url: str) -> Request:
        parts = urlsplit(url)
        return Request(f"{self._base}{parts.path or '/'}{'?' if parts.query else ''}{parts.query}")

    def _as_netscape(self, line: bytes) -> bytes | None:
        """A value of Set-Cookie with the attributes that count, each once; None for a cookie of
        another host. A value goes back byte for byte, so it is in Latin-1 within the jar."""
        pair, *attributes = line.split(b";")
        found: dict[bytes, bytes] = {}
        for attribute in attributes:
            name, _, value = attribute.partition(b"=")
            found[name.strip().lower()] = value.strip()  # the last of several counts
        if not self._is_ours(_plain(found.get(b"domain", b"").decode("utf-8", "replace"))):
            return None
        if not found.get(b"path", b"").startswith(b"/"):
            found.pop(b"path", None)  # RFC 6265 5.2.4: the default path
        if not found.get(b"max-age", b"").removeprefix(b"-").isdigit():
            found.pop(b"max-age", None)  # 5.2.2: ignored
        kept = [name + b"=" + found[name] for name in _KEPT if found.get(name)]
        if b"secure" in found:
            kept.append(b"secure")
        return b"; ".join([pair.decode("latin-1").encode(), *kept])

    def _is_ours(self, domain: str) -> bool:
        """Whether a cookie with this Domain, "" for none, is for the host."""
        if domain in ("", self._host):
            return True
        return "." in domain and self._host.endswith(f".{domain}") and not _is_address(self._host)


def _plain(host: str) -> str:
    return host.strip("[]").removeprefix(".").lower()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
