"""Pages behind a proxy that serves them below a path: /suche/hosts is /hosts here.

The proxy takes the path away, and names it in ``X-Forwarded-Prefix``. All links, forms and
redirects then lead below it. The header changes only the answer to the request that has it.
"""

from __future__ import annotations

import re

from aiohttp import web

from larmspider.web.request import HTML

MAX_PREFIX = 200
"""Characters."""
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_LINK = re.compile(rb'((?:href|action|src)=")/(?!/)(static/|-/)?')
"""Attributes of our templates. Text of pages cannot look so: its quotes are escaped."""
_BODY = re.compile(rb'<body(?: data-base="([^"]*)")?')

INNER = web.RequestKey("inner", bool)
"""Set on a request that another application of this process has passed on: that one answers."""


def prefix_of(request: web.Request) -> str:
    """The proxy's path without a slash at its end; "" without a proxy's path, or if the header is
    not a path of plain segments."""
    found = request.headers.get("X-Forwarded-Prefix", "").rstrip("/")
    plain = len(found) <= MAX_PREFIX and _PREFIX.fullmatch(found)
    return found if plain and not {".", ".."} & set(found.split("/")) else ""


def lead_below(response: web.StreamResponse, prefix: str, *, mounted: bool = False) -> None:
    """Prefix the links of an answer, and its redirect, with ``prefix``. ``mounted``: as in
    `prefixed`."""
    location = response.headers.get("Location", "")
    if location.startswith("/") and not location.startswith("//"):
        response.headers["Location"] = prefix + location
    is_page = response.headers.get("Content-Type") == HTML
    if is_page and isinstance(response, web.Response) and isinstance(response.body, bytes):
        response.body = prefixed(response.body, prefix, mounted=mounted)


def prefixed(page: bytes, prefix: str, *, mounted: bool = False) -> bytes:
    """A page whose links lead below ``prefix``; scripts read it, too. ``mounted``: an application
    of a server has this prefix, so that /static/ stays, and /-/ is the server's own root.

    >>> prefixed(b'<body><a href="/hosts"><img src="/static/icon.svg">', "/suche")
    b'<body data-base="/suche"><a href="/suche/hosts"><img src="/suche/static/icon.svg">'
    >>> prefixed(b'<a href="/hosts"> <a href="/-/"> <img src="/static/a">', "/c/w", mounted=True)
    b'<a href="/c/w/hosts"> <a href="/"> <img src="/static/a">'
    """
    front = prefix.encode("ascii")
    page = _BODY.sub(
        lambda body: b'<body data-base="' + front + (body[1] or b"") + b'"', page, count=1
    )

    def placed(link: re.Match[bytes]) -> bytes:
        if mounted and link[2]:
            return link[1] + (b"/" if link[2] == b"-/" else b"/static/")
        return link[1] + front + b"/" + (link[2] or b"")

    return _LINK.sub(placed, page)
