"""Sitemaps, feeds and directory listings: the URLs that a site names, and their times of change.

    found = read(body, "http://wiki/sitemap.xml", now=time.time())
    found.kind                 # "sitemap", "index", "feed"; "" for anything else
    found.entries              # [Entry("http://wiki/a", changed=1.79e9), ...]
    found.trouble              # "", or why some of it was not read
    listed(page, now)          # the rows of Apache's, nginx's and lighttpd's "Index of /docs"

It reads sitemaps.org's format (urlset, sitemapindex, text), RSS 0.9 to 2.0 and Atom, also in gzip,
by expat, which resolves no entity: a document that declares one is refused. A document that is no
XML is searched for its URLs (broken_sitemap.py). Everything that a server can make large is
bounded, and the entries before a limit count.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from xml.parsers import expat

from larmspider.dates import http_time
from larmspider.extraction.pages.broken_sitemap import HEAD_BYTES, TIMES, items, root_of, text_of
from larmspider.items import Page
from larmspider.urls.resolve import LinkResolver

MAX_BYTES = 50 * 1024 * 1024
"""Bytes of a sitemap, unpacked (sitemaps.org)."""
MAX_URLS = 50_000
MAX_URL = 2_048
"""Characters of a URL."""
MAX_DEPTH = 64
"""Nested elements."""
MAX_TAG_BYTES = 1 << 18
"""The largest tag or comment: expat reads its beginning again with each piece."""
_PIECE_BYTES = 1 << 16
_PACKED_BYTES = 1 << 12
"""Bytes unpacked at a time. After a damaged byte the rest of the piece is lost."""
_MAX_MEMBERS = 10_000
"""Most gzip members of a file. Each costs a piece."""
_MAX_ODD_LINES = 1_000
"""Lines without a URL, such as warnings, after which the rest of a text is skipped."""
MAX_ROWS = 20_000
"""Rows of a directory listing."""
MAX_SEARCHED = 20_000_000
"""Characters of a listing's text that are searched for names, 10 ms in all: each name that is not
there costs the whole text."""
LARGE_BYTES = 64 * 1024
"""A longer document is read in a thread."""
AHEAD_SECS = 3 * 86_400.0
"""Seconds. A time further in the future does not count: a server's clock may be a day ahead, and
time_of() another day and 14 hours."""
ANYWHERE = timedelta(hours=14)
"""A time without a zone may be up to 14 hours later than UTC."""
_DAY = timedelta(days=1)
_URLS_OF = {"urlset": "url", "sitemapindex": "sitemap", "rss": "item", "RDF": "item",
            "feed": "entry"}  # fmt: skip
_KIND_OF = {"urlset": "sitemap", "sitemapindex": "index"}
_W3C = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?"
)
_GZIP = b"\x1f\x8b"
_LINE = re.compile(rb"[^\r\n]+")
_FIRST = re.compile(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|RDF|feed)[\s>]")
_FIRST_BYTES = 16 * 1024
"""Bytes in which a page's root element must begin. A script's warnings may come first."""
_TITLE = re.compile(r"Index of |Directory (?:listing|Listing)")
_ROW = re.compile(
    r"\s*(\d{4}-[A-Za-z]{3}-\d\d|\d{4}-\d\d-\d\d|\d\d-[A-Za-z]{3}-\d{4})\s+(\d\d:\d\d)(?::\d\d)?"
)
_ROW_DATES = ("%Y-%m-%d %H:%M", "%d-%b-%Y %H:%M", "%Y-%b-%d %H:%M")


class Entry(NamedTuple):
    """``changed``: the latest possible time of the page's last change, in seconds since the epoch;
    None without a usable time. A day counts to its end, a time without a zone as the latest zone on
    Earth."""

    url: str
    changed: float | None = None


@dataclass(slots=True)
class Signals:
    """The content of a sitemap or feed. ``kind`` is "" for other documents; the entries of an index
    are sitemaps. ``future``: the number of times that were ignored because they are still to
    come."""

    kind: str = ""
    entries: list[Entry] = field(default_factory=list)
    trouble: str = ""
    future: int = 0


class _StopReading(Exception):  # noqa: N818 - ends a parse
    """Ends the reading; the message says why."""


class _NotXml(Exception):  # noqa: N818 - ends a parse
    """The document is too odd for expat, or begins with something else than a root element."""


def read(body: bytes, url: str, *, now: float) -> Signals:
    """Never raises. A broken document gives its entries before and after the broken place."""
    found = Signals()
    body, found.trouble = _unpacked(body)
    if len(body) > MAX_BYTES:
        body, found.trouble = body[:MAX_BYTES], "too-big"
    start = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"http://", b"https://")):
        return _read_text(body, found)
    reader = _Reader(found, url, now)
    try:
        try:
            reader.parse(body)
        except (_NotXml, expat.ExpatError, LookupError, ValueError):  # or an odd encoding
            reader.recover(body)
    except _StopReading as stop:
        found.trouble = found.trouble or str(stop)
    if found.trouble == "entities":
        found.entries.clear()
    return found


async def read_aside(body: bytes, url: str, *, now: float) -> Signals:
    """`read` for an event loop: a large document in a thread."""
    if len(body) <= LARGE_BYTES and not body.startswith(_GZIP):
        return read(body, url, now=now)
    return await asyncio.to_thread(read, body, url, now=now)


def _unpacked(body: bytes) -> tuple[bytes, str]:
    """The unpacked part of the document, and "broken" if it is incomplete."""
    if not body.startswith(_GZIP):
        return body, ""
    pieces: list[bytes] = []
    at, room = 0, MAX_BYTES + 1
    for _ in range(_MAX_MEMBERS):  # gzip files may follow one another
        unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
        while at < len(body) and room > 0 and not unzip.eof:
            piece = body[at : at + _PACKED_BYTES]
            try:
                pieces.append(unzip.decompress(piece, room))
            except zlib.error:
                return b"".join(pieces), "broken"
            room -= len(pieces[-1])
            at += len(piece) - len(unzip.unused_data)
        if not body.startswith(_GZIP, at) or room <= 0:
            break
    return b"".join(pieces), ""


def _read_text(body: bytes, found: Signals) -> Signals:
    """A URL a line, in UTF-8."""
    odd = 0
    for raw in _LINE.finditer(
        body.removeprefix(b"\xef\xbb\xbf")
    ):  # a list of 50 million may be GBs
        line = raw[0].strip()
        if not line:
            continue
        if not line.startswith((b"http://", b"https://")) or b" " in line:
            found.trouble = found.trouble or "broken"
            odd += 1
            if odd > _MAX_ODD_LINES:
                break
            continue
        if len(found.entries) == MAX_URLS:
            found.trouble = "too-many"
            break
        found.kind = "sitemap"
        if len(line) <= MAX_URL:
            found.entries.append(Entry(line.decode("utf-8", "replace")))
    return found


class _Reader:
    """Collects the URLs of one XML document."""

    def __init__(self, found: Signals, url: str, now: float) -> None:
        self.found, self.now = found, now
        self._resolver = LinkResolver(url, None, None)
        self._path: list[str] = []
        self._item = ""
        self._url = self._guid = ""
        self._time: float | None = None
        self._text: list[str] | None = None
        self._room = 0

    def parse(self, body: bytes) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._entity
        for at in range(0, len(body), _PIECE_BYTES):  # one call keeps all other threads waiting
            piece = body[at : at + _PIECE_BYTES]
            parser.Parse(piece, False)
            if at + len(piece) - parser.CurrentByteIndex > MAX_TAG_BYTES:
                raise _NotXml
        parser.Parse(b"", True)

    def recover(self, body: bytes) -> None:
        """Read a document that parse() did not read to its end, from the start."""
        root = root_of(text_of(body[:HEAD_BYTES]))
        if not root:
            return
        text = text_of(body)
        if "<!ENTITY" in text:
            raise _StopReading("entities")
        self.found.kind = _KIND_OF.get(root, "feed")
        self.found.trouble = self.found.trouble or "broken"
        self.found.entries.clear()
        self.found.future = 0
        for item in items(text, _URLS_OF[root]):
            self._url, self._guid, self._time = item.url, item.guid, None
            for time in item.times:
                self._add_time(time)
            self._add_entry()

    def _entity(self, *_declared: object) -> None:
        raise _StopReading("entities")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._path.append(name)
        depth = len(self._path)
        if depth > MAX_DEPTH:
            raise _NotXml
        if depth == 1:
            if name.lower() == "html":
                raise _StopReading("")
            if name not in _URLS_OF:
                raise _NotXml
            self._item = _URLS_OF[name]
            self.found.kind = _KIND_OF.get(name, "feed")
        elif name == self._item and depth <= 3:
            self._url, self._guid, self._time = "", "", None
        elif self._path[-2] == self._item:
            if name == "link" and (href := attributes.get("href")):
                if attributes.get("rel", "alternate") == "alternate":
                    self._url = self._url or href
            elif name in ("loc", "link", "guid") or name in TIMES:
                if name == "guid" and attributes.get("isPermaLink", "true") != "true":
                    return
                self._text, self._room = [], MAX_URL + 1

    def _characters(self, text: str) -> None:
        if self._text is not None and self._room > 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def _end(self, _name: str) -> None:
        name = self._path.pop()
        if self._text is not None:
            text, self._text = "".join(self._text).strip(), None
            if name in TIMES:
                self._add_time(text)
            elif name == "guid":
                self._guid = text
            else:
                self._url = self._url or text
        elif name == self._item and len(self._path) <= 2:
            self._add_entry()

    def _add_time(self, text: str) -> None:
        """The latest of several counts: an Atom entry has the time of its birth, too."""
        time = time_of(text)
        if time is None:
            return
        if time > self.now + AHEAD_SECS:
            self.found.future += 1
        else:
            self._time = max(time, self._time or 0.0)

    def _add_entry(self) -> None:
        url = self._url or (self._guid if self._guid.startswith("http") else "")
        if not url or len(url) > MAX_URL:
            return
        if len(self.found.entries) == MAX_URLS:
            raise _StopReading("too-many")
        resolved = self._resolver.resolve_or_none(url)
        if resolved is not None and resolved.startswith(("http://", "https://")):
            self.found.entries.append(Entry(resolved, self._time))


def time_of(text: str) -> float | None:
    """The last moment that a W3C date (2026-11-22, with or without a time) or an RFC 822 one can
    mean; None for anything else."""
    if found := _W3C.fullmatch(text):
        *parts, zone = found.groups(default="")
        try:
            year, month, day, hour, minute, second = (int(part or 0) for part in parts)
            begin = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            if zone:
                return datetime.fromisoformat(f"{begin:%Y-%m-%dT%H:%M:%S}{zone}").timestamp()
            return (begin + (ANYWHERE if parts[3] else _DAY + ANYWHERE)).timestamp()
        except (ValueError, OverflowError):
            return None
    return http_time(text)


def listed(page: Page, now: float) -> list[Entry]:
    """The rows of a directory listing with their times; [] for other pages.

    The page's links and text are compared: each name is in the text before its time.
    """
    if not _TITLE.match(page.title):
        return []
    found, at, left = [], 0, MAX_SEARCHED
    for link in page.links[:MAX_ROWS]:
        if left <= 0:
            break
        if not link.anchor or not link.url.startswith(page.url.partition("?")[0]):
            continue
        place = page.text.find(link.anchor, at)
        left -= (len(page.text) if place < 0 else place) - at
        if place < 0:
            continue
        at = place + len(link.anchor)
        if row := _ROW.match(page.text, at):
            at = row.end()
            time = _row_time(f"{row[1]} {row[2]}")
            if time is not None and time <= now + AHEAD_SECS:
                found.append(Entry(link.url, time))
    return found


def _row_time(text: str) -> float | None:
    for form in _ROW_DATES:
        try:
            return (datetime.strptime(text, form).replace(tzinfo=UTC) + ANYWHERE).timestamp()
        except ValueError:
            continue
    return None


def is_likely(mime: str, start: bytes) -> bool:
    """Whether a document should be given to read(): by its media type or its first element."""
    if mime in ("application/rss+xml", "application/atom+xml", "application/rdf+xml"):
        return True
    return "xml" in mime and _FIRST.search(start, 0, _FIRST_BYTES) is not None
