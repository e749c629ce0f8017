"""A stored page for a browser: its bytes, never its scripts.

The policy removes scripts, frames, forms and everything that would be loaded from elsewhere.
``sandbox`` makes the document an origin of its own, so that it reads nothing of ours. Types other
than HTML become plain text or a download: no declared type is passed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from lxml import etree

from larmspider import program
from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.errors import CrawlDirError
from larmspider.extraction.pages.markup_guard import is_costly
from larmspider.extraction.pages.page_builder import (
    BLOCKS,
    BREAKS,
    HIDDEN,
    NAVIGATION,
    REGIONS,
    Attributes,
    is_permalink,
)
from larmspider.extraction.texts.charset import codec_of, decode
from larmspider.formatting import size

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
"""Charsets of the Encoding Standard; the first is taken of two that encode the words alike."""


def charset_as_read(body: bytes, mime: str, text: str) -> str:
    """The charset in which the crawl read a page where only the header named it.

    No log keeps the header, but title and text of the page are known. The result is the charset in
    which ``body`` has most of the non-ASCII words of ``text``. The charset that the body itself
    names wins ties.

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
    encode = codec_of(charset).encode
    found = 0
    for word in words:
        try:
            found += encode(word)[0] in body
        except UnicodeError:
            continue
    return found


SHOWN_BYTES = 2_000_000
"""Bytes of a document that are shown; a download has all."""
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
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset({"application/json", "application/xml", "application/javascript"})

SHOWN_CHARS = 500_000
"""Characters of a text that are shown."""
MAX_ANCHOR = 200
"""Characters of an anchor."""
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
_LISTS = frozenset(("ul", "ol", "menu"))
_PARTED = BLOCKS | BREAKS | REGIONS.keys()
_SKIPPED = HIDDEN | {
    "head", "noscript", "object", "svg", "nav", "button", "select", "datalist", "textarea",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a text: a heading, a paragraph, or preformatted text (``pre``). ``page``: the
    number of the document's page that begins here, 0 for none. ``level``: 1 to 6 for a heading;
    else the number of lists around the piece. ``mark``: the mark of a list item (``-``, ``3.``).
    ``anchor``: the anchor of a heading, "" for none."""

    kind: str
    text: str
    page: int = 0
    level: int = 0
    mark: str = ""
    anchor: str = ""


def shown_blocks(blocks: Iterable[Block]) -> tuple[list[Block], bool]:
    """The first blocks, up to `SHOWN_CHARS` characters, and whether these are all blocks."""
    shown, left = list[Block](), SHOWN_CHARS
    for block in blocks:
        if left <= 0:
            return shown, False
        shown.append(replace(block, text=block.text[:left]))
        left -= len(block.text)
    return shown, left >= 0


def html_blocks(markup: bytes) -> list[Block]:
    """The text of a page in UTF-8, without what surrounds it; nothing of its markup. Empty where
    markup is so bad that it takes long to read."""
    if is_costly(markup):
        return []
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(markup, parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):  # nothing in it
        return []
    return [] if root is None else list(_blocks(root))


def _blocks(root: etree._Element) -> Iterator[Block]:
    kinds, pieces, lists, level = ["p"], list[str](), list[int](), 0
    mark = anchor = ""

    def ended() -> Iterator[Block]:
        nonlocal mark, anchor
        kind, text = kinds[-1], "".join(pieces)
        pieces.clear()
        text = text.strip("\n") if kind == "pre" else " ".join(text.split())
        if text:
            is_heading = kind == "h"
            own = level if is_heading else len(lists)
            yield Block(kind, text, 0, own, mark, anchor if is_heading else "")
            mark = anchor = ""

    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        tag = str(element.tag)
        if event == "end":
            if tag in _PARTED:
                yield from ended()
                kinds.pop()
            if tag in _LISTS:
                lists.pop()
                mark = ""
            pieces.append(element.tail or "")
            continue
        if tag in _PARTED:
            yield from ended()
            kind = "h" if tag in _HEADINGS else "pre" if tag == "pre" else kinds[-1]
            kinds.append(kind)
            name = element.get("id") or ""
            anchor = name if 0 < len(name) <= MAX_ANCHOR else anchor
        if tag in _LISTS:
            lists.append(0)
        elif tag in _HEADINGS:
            level = int(tag[1])
        elif tag == "li" and lists:
            lists[-1] += 1
            parent = element.getparent()
            is_numbered = parent is not None and parent.tag == "ol"
            mark = f"{lists[-1]}." if is_numbered else "-"
        if tag in _SKIPPED or _is_navigation(element.attrib):
            walk.skip_subtree()
        elif tag != "a" or not is_permalink(element.attrib, element.text or ""):
            pieces.append(element.text or "")


def _is_navigation(attributes: Attributes) -> bool:
    classes = (attributes.get("class") or "").split()
    return attributes.get("role") == "navigation" or not NAVIGATION.isdisjoint(classes)


def text_blocks(text: str) -> Iterator[Block]:
    """A text that has no markup; each of its pages, where it has them."""
    pages = text.split("\f")
    for number, page in enumerate(pages, 1):
        if page.strip():
            yield Block("pre", page.strip("\n"), number if len(pages) > 1 else 0)


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """An answer. ``cut``: whether more is stored than is shown."""

    body: bytes
    content_type: str
    headers: Mapping[str, str]
    cut: bool


def is_shown(mime: str) -> bool:
    """Whether a copy is shown, or else offered as a download."""
    return mime in HTML_TYPES or mime in _TEXT or mime.startswith("text/") or mime.endswith("+xml")


def stored_copy(
    crawl: CrawlDir, page: StoredPage, *, text: str = "", download: bool = False
) -> StoredCopy:
    """``text``: the page's extracted text; it tells the charset if only the header named it.

    Raises CrawlDirError if the page file lacks the body, or it is too large for a page file. HTML
    stays HTML; texts and XML become plain text, in UTF-8. Everything else, and everything with
    ``download``, is a file of no type."""
    if crawl.body_file(page) is not None:
        raise CrawlDirError(
            f"{page.url} has {size(page.size)}, too many to be shown here; '{program.NAME} page"
            " URL' prints"
            " them"
        )
    body = crawl.body(page)
    if download or not is_shown(page.mime):
        named = {"Content-Disposition": 'attachment; filename="stored-copy.bin"'}
        return StoredCopy(body, "application/octet-stream", {**HEADERS, **named}, cut=False)
    shown = body[:SHOWN_BYTES]
    charset = charset_as_read(shown, page.mime, f"{page.title} {text}")
    decoded, _ = decode(shown, f"{page.mime}; charset={charset}")
    kind = "text/html" if page.mime in HTML_TYPES else "text/plain"
    return StoredCopy(
        decoded.encode("utf-8", "replace"),
        f"{kind}; charset=utf-8",
        HEADERS,
        len(body) > SHOWN_BYTES,
    )
