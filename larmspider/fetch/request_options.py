"""Turns a Scrapy Request into libcurl options: method, headers, body; and nothing else is sent.

libcurl sends Host, and Content-Length with a body. Accept, User-Agent, Expect and the Content-Type
that it would add are turned off; a header whose value is None is not sent. Options that were set
for the fetch before and have the same value are not set again.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import can_ada
import pycurl

from larmspider.fetch import errors
from larmspider.fetch.decoding import ACCEPTED

if TYPE_CHECKING:
    from scrapy import Request

    from larmspider.fetch.transfer import Transfer

_ACCEPT_ENCODING = b"Accept-Encoding: " + ACCEPTED.encode()
_NOT_OURS = frozenset({b"Proxy-Authorization", b"Content-Length"})
"""Of a Request's headers: for the proxy only; libcurl's own."""

_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods that have one, were it empty."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that may be sent twice (RFC 9110 9.2.1)."""
_BREAK = re.compile(rb"[\r\n\0]")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 5.6.2."""
_PLAIN = re.compile(r"https?://[!\"$-.0-9:;<=>A-~]+(?:[/?][!\"$-~]*)?")
"""Printable ASCII, neither userinfo nor fragment."""


def set_option(transfer: Transfer, option: int, value: Any) -> None:
    """Unless it is set to that already."""
    if transfer.set.get(option) != value:
        transfer.set[option] = value
        transfer.curl.setopt(option, value)


def apply_request(transfer: Transfer, request: Request) -> None:
    """URL, method, headers and body. Raises BadUrl where one of them cannot be sent."""
    curl, method, body = transfer.curl, request.method, request.body
    curl.setopt(pycurl.URL, url_for_curl(request.url))
    if method != "GET" or body:
        _set_method(transfer, method, body)
    set_option(transfer, pycurl.HTTPHEADER, header_lines(request, decode=transfer.decode))


def _set_method(transfer: Transfer, method: str, body: bytes) -> None:
    curl = transfer.curl
    transfer.dirty = True
    if method == "HEAD":
        curl.setopt(pycurl.NOBODY, 1)
        return
    if method not in _SAFE:
        # what a kept connection does not answer, libcurl sends once more by itself
        curl.setopt(pycurl.FRESH_CONNECT, 1)
    if body or method in _WITH_BODY:
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.POSTFIELDS, body)
    if not method.isascii() or not method.isprintable() or " " in method:
        raise errors.BadUrl(f"{method[:20]!r} is no method")
    curl.setopt(pycurl.CUSTOMREQUEST, method)


def header_lines(request: Request, *, decode: bool) -> list[bytes]:
    """For HTTPHEADER. ``Name:`` alone turns off what libcurl would add, ``Name;`` is an empty
    value (CURLOPT_HTTPHEADER(3)). Raises BadUrl for a line break inside a header, and a name that
    is no token."""
    lines = []
    headers = request.headers
    for name, values in dict.items(headers):
        if not _TOKEN.fullmatch(name):
            raise errors.BadUrl("a header whose name is no token")
        if name not in _NOT_OURS:
            lines += [
                b"%b: %b" % (name, value) if value.strip() else name + b";" for value in values
            ]
    if _BREAK.search(b"\t".join(lines)):
        raise errors.BadUrl("a header with a line break or a NUL")
    values_of = partial(dict.get, headers)  # names are in their normal form
    if not values_of(b"User-Agent"):
        lines.append(b"User-Agent:")
    if not values_of(b"Accept"):
        lines.append(b"Accept:")
    if decode and values_of(b"Accept-Encoding") is None:
        lines.append(_ACCEPT_ENCODING)
    if request.body or request.method in _WITH_BODY:
        lines.append(b"Expect:")
        if not values_of(b"Content-Type"):
            lines.append(b"Content-Type:")
    return lines


def url_for_curl(url: str) -> str:
    """The URL that is asked for: its path and query as they are, its host in ASCII.

    A fragment and what stands before "@" are left out: credentials come from LARM_SITES_FILE or a
    header, where they are bound to a host. Raises BadUrl where there is no host.
    """
    if _PLAIN.fullmatch(url):
        return url
    scheme, _, rest = url.partition("://")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority, target = rest[:end], rest[end:].partition("#")[0]
    if not authority:
        raise errors.BadUrl("a URL without a host")
    if authority.isascii() and "@" not in authority and target.isascii() and " " not in target:
        return f"{scheme}://{authority}{target}" if "#" in rest else url
    try:
        parsed = can_ada.parse(url)
    except (ValueError, UnicodeError):
        raise errors.BadUrl("not a URL with a host") from None
    if not target.isascii() or " " in target:
        target = parsed.pathname + parsed.search
    return f"{scheme}://{parsed.host}{target}"
