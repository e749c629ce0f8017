"""Links are resolved as browsers do: ``../a b`` on http://h/x/y is http://h/a%20b.

The result is the URL to fetch: absolute, without fragment, and without user name and password,
which belong in no request line and no log. Nothing else is changed, unlike in the canonical form
(canonical.py), which is for comparison only. On a page that is not UTF-8 the query is escaped in
the page's charset: ``?q=%E9`` for ``?q=é``. The base is parsed once a page, and each href once::

    resolver = LinkResolver("http://wiki.example/Main/Start", base_href=None)
    resolver.resolve_all(["../Help#top"], max_chars=1000)  # ["http://wiki.example/Help"]

can_ada does the work (WHATWG URL Standard 4.4, "basic URL parser").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import can_ada
from w3lib.html import replace_escape_chars, strip_html5_whitespace

from larmspider.errors import InvalidURL
from larmspider.urls.canonical import LONGEST_URL, disguised
from larmspider.urls.syntax import (
    C0_OR_SPACE,
    LONGEST_RAW_HOST,
    host_too_long,
    resolve_dots,
    without_userinfo,
)

_NO_BASE = "about:blank"
MAX_HREF = 8192
"""Characters kept of an href that does not resolve."""
_TOO_LONG = LONGEST_URL + 1
"""Characters kept of an href that is too long for a URL, so that it stays too long."""
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_TO_ESCAPE = re.compile(rb"[\x00-\x20\x7f-\xff\"#<>']")
"""WHATWG URL 1.3, "special-query percent-encode set"."""
_WITH_CHARSET = ("http:", "https:", "ftp:", "file:")
"""Schemes whose queries are in the page's charset; other schemes have queries in UTF-8."""


class LinkResolver:
    """Resolves the hrefs of one page; never raises. Documentation repeats two of three hrefs."""

    __slots__ = ("_base", "_encode")

    def __init__(
        self, url: str, base_href: str | None, encode: Callable[[str], bytes] | None = None
    ) -> None:
        """``url`` is the document's URL, ``base_href`` the href of its first base element, if any.
        ``encode`` gives the bytes of a query on a page that is not UTF-8 (`query_encoder`)."""
        self._encode = encode
        self._base = _base(url, base_href, encode)

    def resolve_or_none(self, href: str) -> str | None:
        """Absolute URL without fragment, None if ``href`` does not resolve or is too long."""
        if len(href) > LONGEST_URL:
            return None
        return _resolve(self._base, href.partition("#")[0], self._encode)

    def resolve_all(self, hrefs: Iterable[str], max_chars: int) -> list[str]:
        """Absolute URLs without fragments, until they have ``max_chars`` characters together.

        An href that does not resolve is trimmed and cut, without user name and password.
        """
        known: dict[str, str] = {}
        base, encode, urls, chars = self._base, self._encode, [], 0
        for whole in hrefs:
            # "#" always starts the fragment; many links differ in it alone
            href = whole.partition("#")[0]
            url = known.get(href)
            if url is None:
                if len(href) > LONGEST_URL:
                    url = without_userinfo(strip_html5_whitespace(href))[:_TOO_LONG]
                if url is None or len(url) <= LONGEST_URL:
                    url = _resolve(base, href, encode)
                if url is None:
                    url = without_userinfo(strip_html5_whitespace(href))[:MAX_HREF]
                known[href] = url
            chars += len(url)
            if chars > max_chars:
                break
            urls.append(url)
        return urls


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

    None if it does not resolve (``http://[``, port 99999) or ``base`` is not a URL; never
    raises. Schemes other than http and https resolve too (``mailto:a@b``); filters reject them.
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


def _resolve(
    base: can_ada.URL | str, href: str, encode: Callable[[str], bytes] | None
) -> str | None:
    """``resolve`` for an href without fragment of a page whose queries ``encode`` encodes."""
    url = resolve(base, href)
    if encode is None or url is None or href.isascii() or not url.startswith(_WITH_CHARSET):
        return url
    # the first "?" begins the query in every URL of these schemes
    query = replace_escape_chars(href).rstrip(C0_OR_SPACE).partition("?")[2]
    if query.isascii():
        return url
    escaped = _TO_ESCAPE.sub(lambda byte: b"%%%02X" % byte[0][0], encode(query))
    return f"{url.partition('?')[0]}?{escaped.decode('ascii')}"


def _base(
    url: str, base_href: str | None, encode: Callable[[str], bytes] | None
) -> can_ada.URL | str:
    """The base URL; if the base element's href is unusable, the document's own URL (HTML 4.2.3)."""
    document = _parsed(url)
    if base_href is None:
        return document
    absolute = _resolve(document, base_href.partition("#")[0], encode)
    if absolute is None or absolute.startswith(("data:", "javascript:")):
        return document
    return _parsed(absolute)


def _parsed(url: str) -> can_ada.URL | str:
    try:
        return parse_base(url)
    except InvalidURL:
        # absolute hrefs resolve without a base
        return url if resolve(url, "") is not None else parse_base(_NO_BASE)


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
