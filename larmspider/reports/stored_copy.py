"""A stored page as a browser may have it: its bytes, never its scripts.

The policy takes away scripts, frames, forms and all that would be loaded from elsewhere, and
``sandbox`` makes the document an origin of its own, so that it reads nothing of ours. What is not
HTML is plain text or a download: no type of the web's is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.extraction.charset import decode
from larmspider.reports.charset_as_read import charset_as_read

SHOWN_BYTES = 2_000_000
"""Of a document that is shown; a download has all."""
POLICY = (
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "X-DNS-Prefetch-Control": "off",
    "Referrer-Policy": "no-referrer",
}
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset({"application/json", "application/xml", "application/javascript"})


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """An answer. ``cut``: more is stored than is shown."""

    body: bytes
    content_type: str
    headers: Mapping[str, str]
    cut: bool


def is_shown(mime: str) -> bool:
    """Whether a copy is shown, or else offered as a download."""
    return mime in _HTML or mime in _TEXT or mime.startswith("text/") or mime.endswith("+xml")


def stored_copy(
    crawl: CrawlDir, page: StoredPage, *, text: str = "", download: bool = False
) -> StoredCopy:
    """``text``: what the crawl read in it, by which the charset is known that its header named.

    Raises CrawlDirError if the page file lacks it. HTML as HTML, texts and XML as plain text, in
    UTF-8; all else, and everything with ``download``, as a file of no type."""
    body = crawl.body(page)
    if download or not is_shown(page.mime):
        named = {"Content-Disposition": 'attachment; filename="stored-copy.bin"'}
        return StoredCopy(body, "application/octet-stream", {**HEADERS, **named}, cut=False)
    shown = body[:SHOWN_BYTES]
    charset = charset_as_read(shown, page.mime, f"{page.title} {text}")
    decoded, _ = decode(shown, f"{page.mime}; charset={charset}")
    kind = "text/html" if page.mime in _HTML else "text/plain"
    return StoredCopy(
        decoded.encode("utf-8", "replace"),
        f"{kind}; charset=utf-8",
        HEADERS,
        len(body) > SHOWN_BYTES,
    )
