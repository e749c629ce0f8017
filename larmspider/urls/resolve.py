"""Links are resolved as browsers do: ``../a b`` on http://h/x/y is http://h/a%20b.

The result is what will be fetched: absolute, without fragment, and without user name and password,
which belong in no request line and no log. Unlike the canonical form (canonical.py), which is for
comparison only, nothing else is changed. The base is parsed once a page::

    base = parse_base("http://wiki.example/Main/Start")
    resolve(base, "../Help#top")  # http://wiki.example/Help

can_ada does the work (WHATWG URL Standard 4.4, "basic URL parser").
"""

from __future__ import annotations

import re

import can_ada

from larmspider.errors import InvalidURL
from larmspider.urls.canonical import disguised
from larmspider.urls.syntax import (
    LONGEST_RAW_HOST,
    host_too_long,
    resolve_dots,
    without_userinfo,
)

_NOT_ASCII = re.compile(rb"[\x80-\xff]")


def parse_base(url: str) -> can_ada.URL:
    """The base of a page's links, parsed once. Raises InvalidURL if ``url`` is not absolute."""
    if host_too_long(url):
        raise InvalidURL(f"host is too long: {without_userinfo(url)!a:.100}")
    try:
        return can_ada.parse(url)
    except (ValueError, TypeError) as error:  # TypeError: lone surrogates
        raise InvalidURL(f"not an absolute URL: {without_userinfo(url)!a:.200}") from error


def resolve(base: can_ada.URL | str, href: str) -> str | None:
    """The absolute URL, without fragment and userinfo, that ``href`` names on a page at ``base``.

    None where it does not resolve (``http://[``, port 99999) or ``base`` is not a URL; never
    raises. Other schemes than http and https resolve too (``mailto:a@b``); filters reject them.
    """
    try:
        if isinstance(base, str):
            base = parse_base(base)
        if len(href) > LONGEST_RAW_HOST and host_too_long(href):
            return None
        url = (base + href).href
    except (ValueError, TypeError):  # TypeError: lone surrogates; InvalidURL is a ValueError
        return _resolve_odd(base, href)
    # a serialized URL has no other "#"
    url = url.partition("#")[0] if "#" in url else url
    if "@" in url:
        url = without_userinfo(url)
    return _with_dots_resolved(url) if "/." in url else url


def _resolve_odd(base: can_ada.URL | str, href: str) -> str | None:
    """``resolve`` for a link or base with odd punycode, which can_ada refuses."""
    if (odd := disguised(href)) is not None:
        url = resolve(odd.url, "")
    elif isinstance(base, str) and (odd := disguised(base)) is not None:
        url = resolve(odd.url, href)
    else:
        return None
    return None if url is None else odd.restore(url)


def location_of(header: bytes) -> str:
    """A Location header as a link: its bytes beyond ASCII become escapes, UTF-8 as browsers write
    it, other bytes as they were sent (``/caf%E9``)."""
    return _NOT_ASCII.sub(lambda byte: b"%%%02X" % byte[0][0], header).decode("ascii").strip()


def _with_dots_resolved(url: str) -> str:
    """Resolve the dot segments that can_ada leaves."""
    start = url.find("/", 8)
    if start < 0 or not url.startswith(("http:", "https:")):
        return url
    path, mark, query = url[start:].partition("?")
    return url[:start] + resolve_dots(path) + mark + query
