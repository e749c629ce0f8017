"""Page, Link, Requisite, FailedFetch, Kept, Removed: the contract between extraction, filters and
stores.

extraction/ makes a Page, the spider adds the facts of the fetch, the filters mark its links, the
stores write it. Links travel inside their Page, never as one Request each: a page has about 140
links, and about one of them is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

ORDINARY = 0
"""Link type of a, area, link rel=next/prev/alternate (LARM's 0)."""
FRAME = 1
"""Link type of frame and iframe (LARM's 1)."""
REDIRECT = 2
"""Link type of a redirect: Location header or meta refresh (LARM's 2)."""

REQUISITE = 3
"""Link type of a page's requisite: an image, a style, a script (LARM_REQUISITES)."""

KNOWN = "known"
"""``Link.reason`` of a link to a known URL; such a link is not refused."""


@dataclass(slots=True)
class Link:
    """One link of a page.

    ``url`` is absolute, without fragment, as it will be fetched; if the page's href does not
    resolve, it is the href itself. ``normalized`` is the canonical form, ``exact`` the exact form,
    for comparison only; None if unknown or missing. ``anchor`` is the anchor or ALT text on one
    line. ``rejected_by`` is the name of the filter that rejected the link, or None; ``reason`` is
    that filter's reason.
    """

    url: str
    normalized: str | None = None
    type: int = ORDINARY
    anchor: str = ""
    nofollow: bool = False
    rejected_by: str | None = None
    reason: str = ""
    exact: str | None = None


def body_text(body: bytes) -> str:
    """The body in Scrapy's own exporters: decoded as UTF-8, with replacements."""
    return body.decode("utf-8", "replace")


def header_list(headers: Mapping[bytes, Sequence[bytes]]) -> list[dict[str, str]]:
    """Headers as plain data, one entry a value; bytes beyond ASCII are read as Latin-1."""
    return [
        {"name": name.decode("latin-1"), "value": value.decode("latin-1")}
        for name, values in headers.items()
        for value in values
    ]


class Outcome(StrEnum):
    """Why a document was not read, or not all of it: the first word of ``Page.unread``."""

    ENCRYPTED = "encrypted"
    """It needs a password."""
    NO_TEXT = "no-text"
    """It was read, and has no text: a scan, a form, an empty file."""
    DAMAGED = "damaged"
    """Truncated, overwritten, or not of the type that it claims."""
    TOO_LONG = "too-long"
    """It took more time than allowed, or has more text than is kept."""
    TOO_LARGE = "too-large"
    """More bytes, memory or members than allowed."""
    READER_DIED = "reader-died"
    """The process that read it ended, or the reader raised."""
    NO_READER = "no-reader"
    """A known format that nothing installed here reads."""
    BINARY = "binary"
    """A program, a font, a picture, sound or film: no document. It is counted apart."""


@dataclass(slots=True)
class Part:
    """A document inside of another one: a member of an archive, an attachment.

    ``name`` is its path in there; ``URL#!/name`` names the part (`part_url`). ``modified`` is in
    seconds since the epoch, or None. ``unread`` and ``digest`` as in Page.
    """

    name: str
    mime: str = ""
    size: int = 0
    title: str = ""
    text: str = ""
    author: str = ""
    language: str | None = None
    modified: float | None = None
    unread: str = ""
    digest: str = ""


PART_MARK = "#!/"
"""Stands between the URL of a document and the name of a part; a fragment, so it is never
fetched."""


def part_url(url: str, name: str) -> str:
    """``http://h/a.zip#!/docs/in%20it.txt``"""
    return url + PART_MARK + quote(name, safe="/!$&'()*+,;=:@~")


def split_part(url: str) -> tuple[str, str]:
    """URL of the document and name of the part; "" if ``url`` names no part."""
    document, mark, name = url.partition(PART_MARK)
    return document, unquote(name) if mark else ""


MAX_SECTIONS = 1_000
"""A page keeps its first 1,000 sections with an anchor, in document order, and headings without an
anchor as long as there are fewer than 1,000 in all."""


class Section(NamedTuple):
    """A part of a page that a link can lead to, as ``#anchor``: from ``start`` on in its text. What
    extraction finds may have "" for the anchor: a heading alone."""

    start: int
    anchor: str
    heading: str


@dataclass(slots=True, repr=False)
class Page:
    """One fetched document: the facts of the fetch, then the results of extraction.

    ``url`` is as fetched, ``normalized`` its canonical form and ``exact`` its exact form.
    ``status`` is the HTTP status, ``mime`` the media type in lower case without parameters.
    ``from_page`` is the URL of the page whose link led here ("" for a seed) and ``link_type`` that
    link's type. ``depth`` is the number of links from a seed, ``redirects`` the number of redirects
    in a row that led here. ``fetched`` is in seconds since the epoch, ``latency`` in seconds.
    ``digest`` is the body's, in hex; ``etag`` and ``last_modified`` are these headers as sent.
    ``moved``: a meta refresh redirects at once, to a link of type 2. ``author`` and ``modified``
    (seconds since the epoch, or None) come from the document, ``parts`` are the documents in it.
    ``rest`` are the spans of ``text`` outside of its main text, as (start, end) in order;
    ``contents`` are the indexes of the spans that are tables of contents. ``sections`` are in the
    order of their starts in ``text``. ``core``: the part that would be the main text if it were not
    too short, else "".
    Pages of a PDF are separated by form feeds in ``text``. ``unread``: why extraction did not read
    the document, or not all of it, an Outcome and a message (``encrypted: needs a password``), else
    "". ``fields`` are values by name, found by LARM_FIELDS. ``headers`` are the headers of the
    response, by name; no store keeps them, feeds write them. ``stored_at``: page file and offset of
    the body, once it is there. If the body is too large for memory, ``body`` is empty, and
    ``body_file`` has its ``file_bytes`` bytes (LARM_BLOB_BYTES); the file is deleted with the
    response unless a store keeps it. ``requisites`` are the URLs of images, styles and scripts that
    the page needs, if they are wanted.
    """

    url: str
    normalized: str | None = None
    status: int = 200
    mime: str = ""
    body: bytes = field(default=b"", metadata={"serializer": body_text})
    from_page: str = ""
    link_type: int = ORDINARY
    depth: int = 0
    redirects: int = 0
    fetched: float = 0.0
    latency: float = 0.0
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    headers: Mapping[bytes, Sequence[bytes]] = field(
        default_factory=dict, metadata={"serializer": header_list}
    )

    charset: str | None = None
    title: str = ""
    text: str = ""
    description: str = ""
    language: str | None = None
    canonical: str | None = None
    noindex: bool = False
    nofollow: bool = False
    moved: bool = False
    author: str = ""
    modified: float | None = None
    unread: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    rest: list[tuple[int, int]] = field(default_factory=list)
    contents: list[int] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    core: str = ""
    exact: str | None = None
    fingerprint: bytes = field(default=b"", metadata={"serializer": bytes.hex})
    signature: bytes = field(default=b"", metadata={"serializer": bytes.hex})
    link_signature: bytes = field(default=b"", metadata={"serializer": bytes.hex})
    stored_at: tuple[int, int] | None = None
    body_file: Path | None = None
    file_bytes: int = 0
    requisites: Sequence[str] = ()

    @property
    def size(self) -> int:
        """Bytes of the body, in memory or on disk."""
        return self.file_bytes or len(self.body)

    @property
    def main(self) -> str:
        """The main text: ``text`` without navigation and the like."""
        if not self.rest:
            return self.text
        starts = [0, *(end for _, end in self.rest)]
        ends = [*(start for start, _ in self.rest), len(self.text)]
        return "".join(self.text[a:b] for a, b in zip(starts, ends, strict=True)).strip()

    @property
    def name(self) -> str:
        """The URL's exact form, the key of the page in frontier and index."""
        return self.exact or self.normalized or self.url

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url} {self.size} bytes, {len(self.links)} links>"


@dataclass(slots=True)
class Requisite:
    """An image, style or script of a page that was fetched; ``page`` has what its Page would have.
    ``failed``: the kind of failure, if there was no response. A requisite is not a page: few stores
    keep it, and no count of pages includes it."""

    page: Page
    failed: str = ""


@dataclass(slots=True)
class FailedFetch:
    """A URL that gave no HTTP response. ``kind`` is a short word (dns, refused, timeout, tls, ...),
    ``message`` one line for a person."""

    url: str
    normalized: str | None
    from_page: str
    link_type: int
    depth: int
    kind: str
    message: str
    fetched: float


@dataclass(slots=True)
class Kept:
    """A revisit after which the stored page stays as it is.

    ``kind`` is a word: not-modified (304), same (200, with the same text), missing, moved, locked,
    login, empty, soft-404, noindex, robots, or a failure's. ``status`` is the HTTP status, 0 where
    there was no response; ``message`` one line for a person. ``headers`` as in Page; None where
    there was no response.
    """

    url: str
    normalized: str | None
    exact: str | None
    from_page: str
    link_type: int
    depth: int
    kind: str
    message: str
    fetched: float
    status: int
    size: int = 0
    latency: float = 0.0
    headers: Mapping[bytes, Sequence[bytes]] | None = None


@dataclass(slots=True)
class Removed:
    """A stored page that no longer counts from ``time`` on, for a ``reason`` in one line. If a
    visit led to it, a `Kept` comes before it. Without a reason, another worker has its newest
    version, or has removed it. ``successor``: the exact form of the URL to which it has moved."""

    url: str
    exact: str
    reason: str
    time: float
    successor: str = ""
