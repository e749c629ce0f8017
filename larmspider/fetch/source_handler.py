"""Scrapy's download handler for sources that are no web sites, and what their answers share.

    DOWNLOAD_HANDLERS = {"smb": "larmspider.fetch.source_handler.SourceHandler"}

A connector (LARM_CONNECTORS) reads in a thread: a server that hangs delays neither the crawl nor
its stop. It answers as a web server would:

    200   a document, with Last-Modified and ETag; a folder, as a page that lists it, in parts
    301   to a folder's URL with its slash
    304   an unchanged document (If-None-Match, If-Modified-Since)
    403   a document that the crawl's account may not read
    404   no such document

Its answers have the rights of each document (access/connected.py).
"""

from __future__ import annotations

import asyncio
import html
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

from larmspider.access.connected import RIGHTS_HEADER, RightsReader, connector_of, packed
from larmspider.access.rights import Rights, mark_of
from larmspider.dates import http_time
from larmspider.fetch import errors
from larmspider.fetch.blobs import Blob, Room, folder_of
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.in_thread import in_thread
from larmspider.fetch.limits import Limits
from larmspider.requests import BLOB, TIMING, TOO_LARGE, VALIDATORS, is_of_page
from larmspider.urls.file_urls import FROM
from larmspider.urls.media_types import PAGE_TYPES, is_document, type_by_name

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

_CONDITIONS = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}
_EPOCH_FORM = "%Y-%m-%d %H:%M"
_FIRST_TIME, _LAST_TIME = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, in seconds since the epoch: broken clocks and damaged entries go beyond."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    flags: list[str] = field(default_factory=list)
    blob: Blob | None = None
    rights: Rights | str | None = None
    """The rights of a document, or why they cannot be read."""
    counts: dict[str, int] = field(default_factory=dict)
    """Added to the crawl's stats."""


class Reader(Protocol):
    def read(self, url: str, asked: dict[str, str], blobs: Path | None = None) -> Answer:
        """Answer a request, in any thread. ``asked``: If-None-Match and If-Modified-Since, "" for
        none. ``blobs``: the folder for a body that is too large for memory. Raises the errors of
        fetch/errors.py."""


class Connector(Reader, RightsReader, Protocol):
    """A class of LARM_CONNECTORS: it reads documents, and the rights of documents."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> Self:
        """Raises ConfigError. One process may make several."""

    def why_not(self, seed: str) -> str:
        """Why a seed cannot be crawled, "" if it can."""


class SourceHandler:
    """DOWNLOAD_HANDLERS of the schemes in LARM_CONNECTORS."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.limits = Limits.from_settings(crawler.settings)
        self._blobs = folder_of(crawler.settings, self.limits)
        self._readers: dict[str, Reader] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def reader_of(self, url: str) -> Reader:
        """Raises BadUrl, ConfigError."""
        scheme = url.partition(":")[0]
        if scheme not in self._readers:
            found = connector_of(self._crawler.settings, scheme)
            if found is None:
                raise errors.BadUrl(f"LARM_CONNECTORS has no connector for {scheme}")
            self._readers[scheme] = found
        return self._readers[scheme]

    async def download_request(self, request: Request) -> Response:
        """Raises Unmounted, TimedOut, ConnectionLost, TooBig and other errors of the reader."""
        began, secs = time.monotonic(), self.limits.total_of(request)
        url = request.url.partition("#")[0]
        if not (path := url.partition("?")[0]).endswith("/"):
            url = path  # the query of a link to a file means nothing
        asked = {name: (request.headers.get(name) or b"").decode("latin-1") for name in _CONDITIONS}
        blobs = self._blobs if is_of_page(request) else None
        reader = self.reader_of(url)
        try:
            answer = await asyncio.wait_for(in_thread(lambda: reader.read(url, asked, blobs)), secs)
        except TimeoutError:
            raise errors.TimedOut(f"took longer than {secs:g} s (DOWNLOAD_TIMEOUT)") from None
        took = time.monotonic() - began
        if answer.rights is not None:
            answer.headers[RIGHTS_HEADER] = packed(answer.rights)
        assert self._crawler.stats is not None
        for key, number in answer.counts.items():
            self._crawler.stats.inc_value(key, number)
        meta, headers = request.meta, Headers(answer.headers)
        meta["download_latency"] = took
        meta[TIMING] = {"dns": 0.0, "connect": 0.0, "tls": 0.0, "first_byte": took, "total": took}
        meta[VALIDATORS] = {
            condition: answer.headers[name]
            for condition, name in _CONDITIONS.items()
            if name in answer.headers
        }
        meta.pop(BLOB, None)
        if answer.blob is not None:
            meta[BLOB] = answer.blob
        cls = responsetypes.from_args(headers=headers, url=url, body=answer.body)
        return cls(url, answer.status, headers=headers, body=answer.body, flags=answer.flags)

    async def close(self) -> None:
        """Threads that still read end with the process."""


def refuse_denied(deny: DenyAddresses, server: str, port: int) -> None:
    """Raise DeniedAddress if a server has a denied address, Unresolved if it has none. Connectors
    call this before each connection, in a thread."""
    try:
        found = socket.getaddrinfo(server, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        raise errors.Unresolved(f"{server} has no address") from None
    for *_, address in found:
        if reason := deny.reason(str(address[0]), port):
            raise errors.DeniedAddress(f"{reason} (LARM_DENY_ADDRESSES)")


def refuse_denied_peer(deny: DenyAddresses, connected: socket.socket) -> None:
    """Raise DeniedAddress if a connection has reached a denied address: libraries look the name up
    again, and a hostile name server then gives another address. Connectors call this before they
    sign in."""
    address, port = connected.getpeername()[:2]
    if reason := deny.reason(str(address), port):
        raise errors.DeniedAddress(f"{reason} (LARM_DENY_ADDRESSES)")


class Found(NamedTuple):
    """A document before it is read. ``pieces(most)`` gives its bytes, at most ``most + 1``."""

    size: int
    mtime_ns: int
    pieces: Callable[[int], Iterable[bytes]]


def answer_of(
    found: Found, url: str, asked: dict[str, str], limits: Limits, blobs: Path | None
) -> Answer:
    """The answer for a document, within the limits of sizes. Raises TooBig, OSError."""
    headers = headers_of(found, url)
    if is_as_it_was(headers, asked):
        return Answer(304, headers)
    may_be_document = is_document("", url)
    most = limits.document_bytes if may_be_document else limits.max_bytes
    if blobs is not None and most < found.size <= limits.blob_bytes:
        body, blob = Room(most, limits.blob_bytes, blobs).take(found.pieces(found.size))
        return Answer(200, headers, body, blob=blob)
    body = b"" if found.size > most > 0 else b"".join(found.pieces(most))
    if most and (found.size > most or len(body) > most):
        if may_be_document:
            return Answer(200, headers, flags=[TOO_LARGE])
        raise errors.TooBig(f"more than {most} bytes (DOWNLOAD_MAXSIZE)")
    return Answer(200, headers, body)


def headers_of(found: Found, url: str) -> dict[str, str]:
    mime = type_by_name(url)
    return {
        "Last-Modified": formatdate(_within(found.mtime_ns // 1_000_000_000), usegmt=True),
        "ETag": mark_of(found.mtime_ns, found.size),
        "Content-Length": str(found.size),
        **({"Content-Type": mime} if mime in PAGE_TYPES else {}),
    }


def is_as_it_was(headers: dict[str, str], asked: dict[str, str]) -> bool:
    """RFC 9110 13.2.2: If-Modified-Since counts without If-None-Match only."""
    if asked["If-None-Match"]:
        return headers["ETag"] in asked["If-None-Match"]
    since, modified = http_time(asked["If-Modified-Since"]), http_time(headers["Last-Modified"])
    return since is not None and modified is not None and modified <= since


def _within(seconds: float) -> float:
    """The nearest time that has a date."""
    return min(max(seconds, _FIRST_TIME), _LAST_TIME)


class Row(NamedTuple):
    """An entry of a folder: ``when`` in seconds since the epoch. A folder's URL ends in a slash."""

    url: str
    name: str
    when: float
    size: int


def folder_page(title: str, rows: Iterable[Row], next_part: str = "") -> Answer:
    """The page that lists a folder. ``next_part``: where the next part begins, as an escaped
    name."""
    shown = html.escape(f"Index of {title}")
    lines = [f"<!doctype html><meta charset=utf-8><title>{shown}</title><h1>{shown}</h1><pre>"]
    for row in rows:
        time_ = time.strftime(_EPOCH_FORM, time.gmtime(_within(row.when)))
        slash = "/" if row.url.endswith("/") else ""
        name = html.escape(row.name)
        lines.append(f'<a href="{html.escape(row.url)}">{name}{slash}</a>  {time_}  {row.size}')
    if next_part:
        lines.append(f'<a rel="next" href="?{FROM}{html.escape(next_part)}">more</a>')
    headers = {"Content-Type": "text/html; charset=utf-8", "X-Robots-Tag": "noindex"}
    return Answer(200, headers, "\n".join(lines).encode())
