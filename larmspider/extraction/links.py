"""What a page's hrefs stand for: ``../b#top`` under ``<base href=/docs/x/>`` is /docs/b.

Thin over larmspider.urls.resolve: it adds the base element, a memory of hrefs that a page repeats
(documentation repeats two of three), and what becomes of an href that does not resolve.
"""

from __future__ import annotations

import can_ada

from larmspider.errors import InvalidURL
from larmspider.urls.canonical import LONGEST_URL
from larmspider.urls.resolve import parse_base, resolve
from larmspider.urls.syntax import without_userinfo

MAX_HREF = 8192
"""Characters kept of an href that does not resolve."""
_TOO_LONG = LONGEST_URL + 1
"""Characters kept of one that is too long for any URL: so that it stays too long."""

_SPACE = "\t\n\f\r "
_NOT_LINKS = ("javascript:", "data:", "about:", "vbscript:")
_NO_BASE = "about:blank"


def is_link(url: str) -> bool:
    """Whether ``url``, resolved or not, names a document: not ``javascript:`` and such."""
    return not url.startswith(_NOT_LINKS)  # can_ada has put the scheme in lower case


class LinkResolver:
    """Resolves the hrefs of one page; never raises."""

    __slots__ = ("_base", "_known")

    def __init__(self, url: str, base_href: str | None) -> None:
        """``url`` is the document's, ``base_href`` that of its first base element, if any."""
        self._base = _base(url, base_href)
        self._known: dict[str, str] = {}

    def resolve_or_none(self, href: str) -> str | None:
        """Absolute URL without fragment, None where ``href`` does not resolve or is too long."""
        if len(href) > LONGEST_URL:
            return None
        return resolve(self._base, href.partition("#")[0])

    def resolve(self, href: str) -> str:
        """Like ``resolve_or_none``, but the trimmed and cut href where it does not resolve, without
        user name and password."""
        # A "#" starts the fragment wherever it stands; links that differ in it alone are many.
        href = href.partition("#")[0]
        known = self._known.get(href)
        if known is None:
            if len(href) > LONGEST_URL:
                long = without_userinfo(href.strip(_SPACE))
                if len(long) > LONGEST_URL:
                    return long[:_TOO_LONG]
            url = resolve(self._base, href)
            known = without_userinfo(href.strip(_SPACE))[:MAX_HREF] if url is None else url
            self._known[href] = known
        return known


def _base(url: str, base_href: str | None) -> can_ada.URL | str:
    """HTML 4.2.3: the document's own URL where the base element's href is no use."""
    document = _parsed(url)
    if base_href is None:
        return document
    absolute = resolve(document, base_href)
    if absolute is None or absolute.startswith(("data:", "javascript:")):
        return document
    return _parsed(absolute)


def _parsed(url: str) -> can_ada.URL | str:
    try:
        return parse_base(url)
    except InvalidURL:
        # absolute hrefs resolve in any case
        return url if resolve(url, "") is not None else parse_base(_NO_BASE)
