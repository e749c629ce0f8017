"""Shared by the readers of documents: the error for a refusal, XML, dates, links in text.

raise Unread(Outcome.ENCRYPTED, "needs a password")
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from html import unescape
from html.entities import html5
from typing import Any

from lxml import etree

from larmspider.dates import http_time
from larmspider.errors import LarmspiderError
from larmspider.extraction.pages.page_builder import MAX_ANCHOR, MAX_TEXT, PageBuilder
from larmspider.extraction.processes import progress
from larmspider.extraction.texts import charset
from larmspider.items import ORDINARY, Outcome, Page

_NO_UTF_16 = re.compile(
    rb"(?:\xef\xbb\xbf)?\s{0,99}<\?xml[^>]{0,99}encoding=[\"'](?:utf-?16|ucs-?2|unicode|iso-10646)",
    re.IGNORECASE,
)
"""Declared in single bytes: .NET writes it into a string, which is saved as UTF-8."""
_TOO_LARGE = re.compile("Excessive depth|Text node too long")
"""libxml2 reads 256 nested elements, or 2,048 with huge_tree, which also lifts the limit of
10,000,000 characters an element."""
_MAX_DEPTH = 200
_MARKUP = re.compile(
    rb"""<(?:!--|!\[CDATA\[|\?|(/?)([^\s<>/!?"']++)"""
    rb"""(?:[^<>"'/]|/(?!>)|"[^"]*+"|'[^']*+')*+(/?)>)"""
)
_CDATA = b"<![CDATA["
_ENDS = {b"<!--": b"-->", _CDATA: b"]]>", b"<?": b"?>"}
_ENCODING = re.compile(rb"<\?xml[^>]{0,99}?encoding\s{0,9}=\s{0,9}[\"']([\w.:-]{1,40})")
_DECLARATION = re.compile(rb"^(?:\xef\xbb\xbf)?\s{0,99}<\?xml[^>]{0,200}\?>")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ENTITIES = b"<!ENTITY"
_DOCTYPE_WITHIN = 1 << 16
_DOCTYPE_LINE = re.compile(rb"<!DOCTYPE[^<>\[]{0,1000}+(?:\[[^\]]{0,65536}+\])?[^<>]{0,100}>")
_ENTITY = re.compile(
    rb"""<!ENTITY\s{1,99}([\w.-]{1,99})\s{1,99}(?:"([^"&%<]{0,999})"|'([^'&%<]{0,999})')\s{0,99}>"""
)
_REFERENCE = re.compile(rb"&([A-Za-z_][\w.-]{0,98});")
_SURROGATE = re.compile(rb"&#(?:[xX]0{0,9}[dD][89a-fA-F][0-9a-fA-F]{2}|0{0,9}5[5-7]\d{3});")
"""A reference to half a character, or to one near it: lxml raises at the text that has one."""
_FATAL = etree.ErrorLevels.FATAL
_NO_ENCODING = "Invalid bytes in character encoding"
_OF_XML = frozenset((b"amp", b"lt", b"gt", b"quot", b"apos"))
_PDF_DATE = re.compile(
    r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([Z+-])(\d\d)?'?(\d\d)?)?'?"
)
_URL = re.compile(r"\b(?:https?|ftp)://[^\s<>\"'`{}|\\^\[\]]+")
_URL_END = (
    ".,;:!?*_\u2019\u201c\u201d\u00bb\u203a\u2026\u3001\u3002\uff0c\uff1b\uff1a\uff01\uff1f\uff09"
)
_ONLY_URL = re.compile(r"(?:https?|ftp)://\S+")


CUT_OFF = "it is cut off"
"""The end of the outcome's text if a document is cut off."""


class Unread(LarmspiderError):  # noqa: N818 - a decision, not a fault
    """A document that is not read. ``page`` has the useful content found until then, ``data`` the
    first bytes of an incomplete member."""

    data: bytes = b""

    def __init__(self, outcome: Outcome, message: str, page: Page | None = None) -> None:
        super().__init__(message)
        self.outcome, self.page = outcome, page

    @property
    def unread(self) -> str:
        """The text for ``Page.unread``."""
        return f"{self.outcome}: {self}"


class DocumentBuilder(PageBuilder):
    """A PageBuilder for documents: text up to a limit, links with their text, author and date.
    Notes its content (progress.py) as it grows."""

    __slots__ = ("_about", "_noted", "author", "modified", "size")

    def __init__(self) -> None:
        super().__init__()
        self.author = ""
        self.modified: float | None = None
        self.size = 0
        self._noted = (0, 0, 0)  # pieces, links, size
        self._about: tuple[Any, ...] = ()

    def add(self, text: str) -> None:
        """A block of text. Raises Unread with more than MAX_TEXT characters in all."""
        self.size += len(text)
        self.pieces += text, "\n"
        if self.size > MAX_TEXT:
            raise Unread(Outcome.TOO_LONG, f"has more than {MAX_TEXT:,} characters of text")
        if self.size - self._noted[2] > progress.STEP:
            self.note()

    def note(self) -> None:
        """Keep the content added since the last note, in case this process is killed."""
        pieces, links, _ = self._noted
        self._noted = len(self.pieces), len(self.links), self.size
        if not progress.is_kept():
            return
        known = self.title or "", self.author or "", self.modified, self.language
        if known != self._about:
            self._about = known
            progress.about(*known)
        progress.text("".join(self.pieces[pieces:]))
        progress.links(self.links[links : links + progress.MAX_LINKS])

    def add_link(self, target: str, text: str = "") -> None:
        if target := target.strip():
            self.links.append((target, ORDINARY, text[: 2 * MAX_ANCHOR], False))

    def page(self, url: str, *, absolute: bool = False) -> Page:
        """``absolute``: keep only links with a scheme, because the document has no neighbours that
        relative links could name."""
        if absolute:
            self.links = [link for link in self.links if _URL.match(link[0])]
        page = Page(url)
        self.fill(page)
        page.author, page.modified = " ".join(self.author.split())[:255], self.modified
        return page


@contextmanager
def keeping(builder: DocumentBuilder, url: str, *, absolute: bool = False) -> Iterator[None]:
    """If a reader ends with any error, its Unread holds the content that ``builder`` has so far."""
    unread = None
    try:
        yield
    except Unread as refused:
        unread = refused
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - libraries raise what their input makes them raise
        unread = Unread(Outcome.READER_DIED, f"raised {error!r}"[:500])
    if unread is not None:
        if unread.page is None and (builder.size or builder.title):
            unread.page = builder.page(url, absolute=absolute)
        raise unread


def parse_xml(data: bytes) -> Any:
    """The root element. Fetches nothing, and resolves only entities that stand for characters or
    short texts. Raises Unread."""
    return parse_any_xml(data)[0]


def parse_any_xml(data: bytes) -> tuple[Any, bool]:
    """The result of parse_xml(), and whether libxml2 may have skipped text because the XML is
    broken."""
    if b"&#" in data:
        data = _SURROGATE.sub(b" ", data)
    root, faults = _root(data)
    if any(_NO_ENCODING in fault for fault in faults):
        text, _ = charset.decode(data, None)
        data = _DECLARATION.sub(b"", text.encode("utf-8", "replace"))
        root, faults = _root(data)
    if next(root.iter(etree.Entity), None) is not None:
        root, faults = _root(_without_entities(data))
    return root, bool(faults) and _ENTITIES not in data


def _root(data: bytes) -> tuple[Any, list[str]]:
    """The root element, and the fatal faults of the XML. Elements that lie deeper than libxml2
    reads are left out, their text is not."""
    root, faults = _parsed(data)
    if _is_too_large(faults) and _ENTITIES not in data:  # which would grow without a limit
        root, faults = _parsed(data, huge_tree=True)
    if _is_too_large(faults):
        root, faults = _parsed(_less_deep(data))
    if root is None:
        raise Unread(Outcome.DAMAGED, "its XML has no element")
    return root, faults


def _is_too_large(faults: list[str]) -> bool:
    return any(map(_TOO_LARGE.search, faults))


def _less_deep(data: bytes) -> bytes:
    """``data`` in UTF-8 with spaces in place of the tags of deep elements."""
    declared = _ENCODING.search(data, 0, _DOCTYPE_WITHIN)
    if declared or data.startswith(_WIDE_MARKS):
        try:
            data = data.decode(declared[1].decode("ascii") if declared else "utf-16").encode()
        except (LookupError, UnicodeError):
            return data
        data = _DECLARATION.sub(b"", data)
    pieces: list[bytes] = []
    at = done = depth = 0
    while found := _MARKUP.search(data, at):
        at = found.end()
        if end := _ENDS.get(found[0]):
            at = data.find(end, at)
            if at < 0:
                break
            continue
        depth -= bool(found[1])
        if depth >= _MAX_DEPTH:
            pieces += data[done : found.start()], b" "
            done = at
        depth += not found[1] and not found[3]
    return b"".join((*pieces, data[done:]))


def _parsed(data: bytes, *, huge_tree: bool = False) -> tuple[Any, list[str]]:
    """The root element, and the parser's fatal messages. Without comments, which would part the
    text around them."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        recover=True,
        huge_tree=huge_tree,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8" if _NO_UTF_16.match(data) else None,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unread(Outcome.DAMAGED, f"its XML cannot be read: {error}") from None
    return root, [one.message for one in parser.error_log if one.level == _FATAL]


def text_of_broken_xml(data: bytes) -> str:
    """The text between the tags of XML that libxml2 cannot read to its end."""
    text, _ = charset.decode(data, None)
    data = _DOCTYPE_LINE.sub(b"", text.encode("utf-8", "replace"), count=1)
    pieces: list[bytes] = []
    at = done = 0
    while found := _MARKUP.search(data, at):
        pieces.append(_outside(data[done : found.start()]))
        done = at = found.end()
        if end := _ENDS.get(found[0]):
            at = data.find(end, at)
            at = len(data) if at < 0 else at
            if found[0] == _CDATA:
                pieces.append(data[done:at])
            done = at = at + len(end)
    pieces.append(_outside(data[done:]))
    return b" ".join(pieces).decode("utf-8", "replace")


def _outside(data: bytes) -> bytes:
    return unescape(data.decode("utf-8", "replace")).encode("utf-8", "replace")


def _without_entities(data: bytes) -> bytes:
    """``data`` with its entities replaced: libxml2 puts entities into the tree as elements.
    Entities of HTML become characters. Entities of the document become their text without
    elements. Others become spaces."""
    declared = {name: double or single for name, double, single in _ENTITY.findall(data)}
    left = len(data)

    def text(found: re.Match[bytes]) -> bytes:
        nonlocal left
        name = found[1]
        if name in _OF_XML:
            return found[0]
        said = declared.get(name)
        if said is None:
            chars = html5.get(name.decode("latin-1") + ";", " ")
            return b"".join(b"&#%d;" % ord(char) for char in chars)
        left -= len(said)
        return said if left > 0 else b" "

    return _REFERENCE.sub(text, data)


def local_name(element: Any) -> str:
    """The name of an element without its namespace; "" for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def dublin_core(root: Any, builder: DocumentBuilder) -> None:
    """Title, author, language and date, each from the first element with that name."""
    found: dict[str, str] = {}
    for element in root.iter("{*}*"):
        if element.text and (text := element.text.strip()):
            found.setdefault(local_name(element), text)
    builder.title = found.get("title") or builder.title
    builder.author = found.get("creator") or found.get("initial-creator") or builder.author
    builder.language = found.get("language") or builder.language
    for name in ("modified", "date", "created", "creation-date"):
        if (time := date_of(found.get(name, ""))) is not None:
            builder.modified = time
            break


def date_of(text: str) -> float | None:
    """Seconds since the epoch of a date as documents write it: ISO 8601, ``D:2024...`` (PDF 7.9.4),
    or a mail's date; None for any other text."""
    text = text.strip()
    try:
        return _utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        pass
    if found := _PDF_DATE.fullmatch(text):
        *parts, sign, hours, minutes = found.groups()
        year, month, day, hour, minute, second = (
            int(part or least) for part, least in zip(parts, (1, 1, 1, 0, 0, 0), strict=True)
        )
        offset = (int(hours or 0) * 60 + int(minutes or 0)) * (-1 if sign == "-" else 1)
        try:
            date = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            return date.timestamp() - offset * 60
        except (ValueError, OverflowError):
            return None
    return http_time(text)


def _utc(date: datetime) -> float:
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def urls_in(text: str) -> Iterable[str]:
    """URLs in plain text, each once, without the punctuation behind them."""
    return dict.fromkeys(map(_without_end, _URL.findall(text)))


def urls_in_value(text: str) -> Iterable[str]:
    """URLs in a field or string of a format that says where it ends: a value that is a URL as it
    stands, else as in plain text."""
    value = text.strip()
    return (value,) if _ONLY_URL.fullmatch(value) else urls_in(value)


def _without_end(url: str) -> str:
    """``url`` without punctuation of the sentence; a bracket stays that was opened in the URL."""
    end, unopened = len(url), url.count(")") - url.count("(")
    while end and (url[end - 1] in _URL_END or (url[end - 1] == ")" and unopened > 0)):
        end -= 1
        unopened -= url[end] == ")"
    return url[:end]
