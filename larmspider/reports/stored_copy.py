"""A stored page as a browser may have it: its bytes, never its scripts.

The policy takes away scripts, frames, forms and all that would be loaded from elsewhere, and
``sandbox`` makes the document an origin of its own, so that it reads nothing of ours. What is not
HTML is plain text or a download: no type of the web's is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import webencodings

from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.extraction.charset import decode

MAX_WORDS = 20
LOOKED_AT = 200_000
"""Bytes of the body, as much as 50 ms of searching in the worst case."""
_CHARSETS = (
    "utf-8", "windows-1252", "iso-8859-15", "iso-8859-2", "windows-1250", "windows-1251", "koi8-r",
    "koi8-u", "iso-8859-5", "ibm866", "x-mac-cyrillic", "iso-8859-7", "windows-1253",
    "windows-1254", "windows-1255", "windows-1256", "windows-1257", "windows-1258", "windows-874",
    "iso-8859-3", "iso-8859-4", "iso-8859-6", "iso-8859-8", "iso-8859-10", "iso-8859-13",
    "iso-8859-14", "iso-8859-16", "macintosh", "shift_jis", "euc-jp", "gb18030", "big5", "euc-kr",
    "utf-16le", "utf-16be",
)  # fmt: skip
"""Of the Encoding Standard; of two that write the words alike the first is taken."""


def charset_as_read(body: bytes, mime: str, text: str) -> str:
    """The charset in which the crawl read a page where only the header named it.

    No log keeps the header, but title and text of the page are known: of all charsets the one in
    which most words of ``text`` that are not ASCII stand in ``body``. The charset that the body
    itself names is kept unless another has more of them.

    >>> charset_as_read(b"\\xf0\\xd2\\xc9\\xd7\\xc5\\xd4", "text/plain", "Привет")
    'koi8-r'
    """
    head = body[:LOOKED_AT]
    named = decode(head, mime)[1]
    words = dict.fromkeys(
        word for word in text.split() if not word.isascii() and "\ufffd" not in word
    )
    some = list(islice(words, MAX_WORDS))
    if not some or _found(head, some, named) == len(some):
        return named
    return max((named, *_CHARSETS), key=lambda charset: _found(head, some, charset))


def _found(body: bytes, words: list[str], charset: str) -> int:
    encode = webencodings.lookup(charset).codec_info.encode
    found = 0
    for word in words:
        try:
            found += encode(word)[0] in body
        except UnicodeError:
            continue
    return found


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
