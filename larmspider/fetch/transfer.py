"""One libcurl easy handle and the response that it receives, used for one fetch after another.

The callbacks run inside libcurl: they keep an exception in ``Transfer.error`` and end the transfer;
the handler raises it.
"""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Self

import pycurl
from scrapy import Request
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from larmspider.fetch import errors
from larmspider.fetch.blobs import Blob
from larmspider.fetch.decoding import Decoder, DecodingError, Overflow, encodings_of
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.limits import Limits
from larmspider.requests import BLOB, CUT_BYTES, TIMING, VALIDATORS
from larmspider.urls.file_names import name_in, name_of
from larmspider.urls.media_types import is_document

_STATUS = re.compile(rb"(HTTP/\d(?:\.\d)?) ([1-5]\d\d)(?!\d)")
_STATUS_CHARS = 60


class ReceivedHeaders(Headers):
    """Headers with details of their fetch. ``received``: the lines of the head as they came, the
    status line first. ``sent``: the lines of the request (curl_options.header_lines), without the
    ones from LARM_SITES_FILE. ``address``: the address that got the request. Copies have no
    details."""

    received: Sequence[bytes] = ()
    sent: Sequence[bytes] = ()
    method = "GET"
    address = ""


@dataclass(slots=True)
class ResponseHead:
    """Status line and headers of a response. The values of one name are together, as in Scrapy.

    The lines from libcurl may hold several heads (1xx, a 401 before libcurl's second attempt) and
    trailers. Only the last head counts.
    """

    status: int
    protocol: str
    headers: ReceivedHeaders

    @classmethod
    def parse(cls, lines: list[bytes]) -> Self:
        """Raises BadResponse for a missing status line, a status outside 100 to 599, or a 101 that
        was not requested. Raises ConnectionLost for a truncated head, which libcurl takes for a
        whole one."""
        start = len(lines) - 1
        while start >= 0 and not (
            lines[start].startswith(b"HTTP/") and (start == 0 or lines[start - 1] in _ENDS)
        ):
            start -= 1
        match = _STATUS.match(lines[start]) if start >= 0 else None
        if match is None:
            line = lines[max(start, 0)] if lines else b""
            raise errors.BadResponse(f"bad status line: {line[:_STATUS_CHARS].rstrip()!r}")
        status = int(match[2])
        if status == 101:
            raise errors.BadResponse("status 101 without a request to switch protocols")
        headers = ReceivedHeaders()
        headers.received = lines[start:]
        values_of: dict[bytes, list[bytes]] = {}
        for line in lines[start + 1 :]:
            name, colon, value = line.partition(b":")
            if not colon and line in _ENDS:
                break
            if line[0] in _BLANKS:
                _unfold(values_of, line)
            elif colon:
                key, value = _key(name), value.strip()
                if key in values_of:
                    values_of[key].append(value)
                else:
                    values_of[key] = [value]
        else:
            raise errors.ConnectionLost("the connection ended inside the head")
        dict.update(headers, values_of)  # names and values have their normal form
        return cls(status, match[1].decode(), headers)

    def length(self) -> int | None:
        """Content-Length."""
        texts = dict.get(self.headers, b"Content-Length")
        return int(texts[-1]) if texts and texts[-1].isdigit() else None


def _unfold(values_of: dict[bytes, list[bytes]], line: bytes) -> None:
    """Append a continuation line to the value before it (RFC 9112 5.2)."""
    if values_of:
        last = next(reversed(values_of.values()))
        last[-1] += b" " + line.strip()


@lru_cache(1024)
def _key(name: bytes) -> bytes:
    """The name as Scrapy's Headers write it."""
    return name.strip().title()


_ENDS = (b"\r\n", b"\n", b"")
_BLANKS = (32, 9)


_VALIDATORS = ((b"Etag", "If-None-Match"), (b"Last-Modified", "If-Modified-Since"))


def response_of(transfer: Transfer, request: Request, flags: list[str]) -> Response:
    """The Scrapy Response of a finished transfer. Raises BadResponse, ConnectionLost."""
    head = transfer.finish_head()
    body = transfer.body
    url = request.url
    if "#" in url:
        url = url.partition("#")[0]
    if transfer.blobs is not None:
        request.meta.pop(BLOB, None)
        if transfer.blob is not None:
            transfer.blob.finish()
            request.meta[BLOB] = transfer.blob
    address = transfer.curl.getinfo(pycurl.PRIMARY_IP)
    response = _class_of(head, url, body)(
        url,
        head.status,
        body=body,
        flags=flags,
        ip_address=_ip_address(address) if address else None,
        protocol=head.protocol,
    )
    headers = response.headers = head.headers
    headers.sent, headers.method, headers.address = transfer.sent, request.method, address or ""
    request.meta[VALIDATORS] = {
        name: values[-1]
        for source, name in _VALIDATORS
        if (values := dict.get(head.headers, source))
    }
    return response


def set_timing(transfer: Transfer, request: Request, waited: float = 0.0) -> None:
    """Set download_latency as Scrapy does, until the response begins, and all steps as TIMING.

    ``waited`` seconds were spent on look-ups before libcurl began.
    """

    def later(seconds: float) -> float:
        return waited + seconds if seconds else seconds  # 0.0: the step was not reached

    info = transfer.curl.getinfo
    first_byte = later(info(pycurl.STARTTRANSFER_TIME))
    meta = request.meta
    meta["download_latency"] = first_byte
    meta[TIMING] = {
        "dns": waited + info(pycurl.NAMELOOKUP_TIME),
        "connect": later(info(pycurl.CONNECT_TIME)),
        "tls": later(info(pycurl.APPCONNECT_TIME)),
        "first_byte": first_byte,
        "total": later(info(pycurl.TOTAL_TIME)),
    }


def _class_of(head: ResponseHead, url: str, body: bytes) -> type[Response]:
    """The choice by content type is remembered (6 us less a page)."""
    types = dict.get(head.headers, b"Content-Type")
    if types and not dict.__contains__(head.headers, b"Content-Encoding"):
        cls = _class_of_type(types[-1])
        if cls is not Response:
            return cls
    return responsetypes.from_args(headers=head.headers, url=url, body=body)


@lru_cache(256)
def _class_of_type(content_type: bytes) -> type[Response]:
    return responsetypes.from_content_type(content_type)


@lru_cache(4096)
def _ip_address(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text)


_PARTS = frozenset({206, 226})
"""Partial content (RFC 9110 15.3.7), and a difference to another version (RFC 3229)."""
_RANGE = re.compile(rb"bytes\s+0+-(\d{1,18})/(\d{1,18})", re.IGNORECASE)


def _is_part(content_range: bytes) -> bool:
    """Whether a Content-Range names less than the whole.

    >>> _is_part(b"bytes 0-99/100"), _is_part(b"bytes 0-49/100"), _is_part(b"bytes 5-99/100")
    (False, True, True)
    """
    match = _RANGE.fullmatch(content_range.strip())
    return match is None or int(match[1]) + 1 < int(match[2])


_SLICE = 512
"""Bytes that are decoded at once if the limit is larger than memory."""
_UNPACKED = 17 << 20
"""Bytes that these may become: the maximum of zstd; brotli could produce gigabytes."""
_STOP = -1
"""Returned to libcurl, which then ends the transfer with E_WRITE_ERROR."""
OnHead = Callable[[Request, ResponseHead], StopDownload | None]
OnBytes = Callable[[Request, bytes], StopDownload | None]


class Transfer:
    """``setup`` sets the common options of all fetches; ``decode``: undo Content-Encoding."""

    def __init__(
        self,
        limits: Limits,
        deny: DenyAddresses,
        setup: Callable[[pycurl.Curl], None],
        *,
        decode: bool,
    ) -> None:
        self.curl = pycurl.Curl()
        self.limits, self.deny, self.decode = limits, deny, decode
        self._setup = setup
        self.set: dict[int, Any] = {}
        """Options of the last fetch that the next one may keep."""
        self.dirty = True
        """Whether the next fetch needs a reset handle."""
        self.site: object = None
        """The Site whose credentials the handle has."""
        self.request: Request | None = None

    def begin(
        self,
        request: Request,
        max_bytes: int,
        document_bytes: int,
        on_head: OnHead | None,
        on_bytes: OnBytes | None,
        blobs: Path | None = None,
    ) -> None:
        """Prepare for a request. ``max_bytes`` limits the body as received and as decompressed,
        ``document_bytes`` limits a document; 0 is no limit. ``on_head`` and ``on_bytes`` send
        Scrapy's signals. ``blobs``: the folder for a body that is larger than a document may be."""
        if self.dirty:
            self._reset()
        self.request, self.max_bytes, self.document_bytes = request, max_bytes, document_bytes
        self.limit_name = "DOWNLOAD_MAXSIZE"
        self.blobs = blobs
        self.blob: Blob | None = None
        self.memory_bytes = math.inf
        """Most bytes of a body in memory. A larger body goes to a file."""
        self.on_head, self.on_bytes = on_head, on_bytes
        self.no_body = request.method == "HEAD"
        self.cut = request.meta.get(CUT_BYTES, 0)
        self.lines: list[bytes] = []
        self.sent: list[bytes] = []
        self.header_bytes = 0
        self.head: ResponseHead | None = None
        self.chunks: list[bytes] = []
        self.size = self.received = 0
        self.decoder: Decoder | None = None
        self.error: Exception | None = None
        self.stop: StopDownload | None = None
        self.denied = ""
        self.opened = False

    def end(self) -> None:
        """Drop references; an error would keep the whole fetch alive by its traceback."""
        self.chunks, self.lines = [], []
        self.head = self.decoder = self.blob = None
        self.on_head = self.on_bytes = None
        self.request = self.error = self.stop = None

    def read_head(self) -> ResponseHead:
        """The complete head. Raises BadResponse, ConnectionLost."""
        if self.head is None:
            self.head = ResponseHead.parse(self.lines)
        return self.head

    def is_document(self) -> bool:
        """Whether the head is complete and announces a document, no page."""
        return self._head_is_complete() and self._announces_document(self.read_head())

    def _announces_document(self, head: ResponseHead) -> bool:
        assert self.request is not None
        types = dict.get(head.headers, b"Content-Type")
        disposition = dict.get(head.headers, b"Content-Disposition")
        named = name_in(disposition[-1].decode("latin-1")) if disposition else ""
        name = name_of(named, self.request.url)
        return is_document(types[-1].decode("latin-1") if types else "", name)

    def _head_is_complete(self) -> bool:
        return bool(self.lines) and self.lines[-1] in (b"\r\n", b"\n")

    def redirects(self) -> bool:
        """Whether the head is complete and redirects, so that the body does not matter."""
        if not self._head_is_complete():
            return False
        try:
            head = self.read_head()
        except errors.BadResponse:
            return False
        return 300 <= head.status < 400 and b"Location" in head.headers

    def finish_head(self) -> ResponseHead:
        """The head of a response that has ended. Raises as read_head()."""
        if self.head is None:
            self._start_body()
        assert self.head is not None
        return self.head

    @property
    def body(self) -> bytes:
        chunks = self.chunks
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _reset(self) -> None:
        curl = self.curl
        curl.reset()
        self._setup(curl)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_line)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_data)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.set = {}
        self.dirty = False

    # called by libcurl

    def _on_line(self, line: bytes) -> int | None:
        self.lines.append(line)
        self.header_bytes += len(line)
        limits = self.limits
        if self.header_bytes > limits.header_bytes:
            what = f"more than {limits.header_bytes} bytes of headers (LARM_HEADER_BYTES)"
        elif len(self.lines) > limits.header_lines:
            what = f"more than {limits.header_lines} header lines (LARM_HEADER_LINES)"
        else:
            return None
        self.error = errors.TooBig(what)
        return _STOP

    def _on_data(self, data: bytes) -> int | None:
        try:
            return self._take(data)
        except Exception as error:  # noqa: BLE001 - libcurl would print it and go on
            self.error = error
            return _STOP

    def _take(self, data: bytes) -> int | None:
        if self.head is None and not self._start_body():
            return _STOP
        self.received += len(data)
        limit = self.max_bytes
        if limit and self.received > limit:
            raise errors.TooBig(f"more than {limit} bytes ({self.limit_name})")
        if self.on_bytes is not None and self.request is not None:
            self.stop = self.on_bytes(self.request, data)
        if self.decoder is None:
            self._keep(data)
        elif self.blobs is None:
            self._keep(self._decode(data))
        else:
            for start in range(0, len(data), _SLICE):
                self._keep(self._decode(data[start : start + _SLICE]))
        if self.cut and self.size > self.cut:
            self.chunks[-1] = data[: len(data) - (self.size - self.cut)]
            self.stop = self.stop or StopDownload(fail=False)
        return None if self.stop is None else _STOP

    def _keep(self, data: bytes) -> None:
        self.chunks.append(data)
        self.size += len(data)
        if self.size > self.memory_bytes:
            self._to_blob()

    def drop_body(self) -> None:
        self.chunks.clear()
        self.blob = None

    def _to_blob(self) -> None:
        """Raises CrawlDirError."""
        if self.blob is None:
            assert self.blobs is not None
            self.blob = Blob(self.blobs)
        for chunk in self.chunks:
            self.blob.write(chunk)
        self.chunks.clear()

    def _start_body(self) -> bool:
        """Called before the first byte of the body, or at its end. False: the body is unwanted."""
        head = self.read_head()
        self._refuse_part(head)
        if self.on_head is not None and self.request is not None:
            self.stop = self.on_head(self.request, head)
            self.on_head = None
            if self.stop is not None:
                return False
        may_be_blob = self.blobs is not None and head.status == 200
        if self.document_bytes > self.max_bytes:
            if self._announces_document(head):
                self.max_bytes, self.limit_name = self.document_bytes, "LARM_DOCUMENT_MAXSIZE_BYTES"
            elif may_be_blob or self.no_body:
                pass
            elif (head.length() or 0) > self.max_bytes:
                raise errors.TooBig("larger than the limit (DOWNLOAD_MAXSIZE)")
        encoded = dict.__contains__(head.headers, b"Content-Encoding")
        if may_be_blob:
            announced = 0 if encoded else head.length() or 0
            self.memory_bytes = 0 if announced > self.max_bytes else self.max_bytes
            self.max_bytes, self.limit_name = self.limits.blob_bytes, "LARM_BLOB_BYTES"
        if encoded and self.decode and not self.no_body:
            self._choose_decoder(head)
        return True

    def _refuse_part(self, head: ResponseHead) -> None:
        """Raise BadResponse for a part of a page, unless the request names a range."""
        ranges = dict.get(head.headers, b"Content-Range")
        if head.status not in _PARTS and not (ranges and head.status == 200):
            return
        if self.request is not None and b"Range" in self.request.headers:
            return
        named = ranges[-1] if ranges else b""
        if head.status == 200 and not _is_part(named):
            return
        where = f" ({named[:_STATUS_CHARS].decode('latin-1')})" if named else ""
        raise errors.BadResponse(f"status {head.status} with a part of the page{where}, unasked")

    def _choose_decoder(self, head: ResponseHead) -> None:
        """Set the decoder, and leave the other encodings in the header, like Scrapy's
        middleware."""
        undone, left = encodings_of(head.headers.getlist(b"Content-Encoding"))
        if undone:
            try:
                self.decoder = Decoder(undone)
            except DecodingError as error:
                raise errors.BadResponse(f"Content-Encoding: {error}") from None
        if left:
            head.headers[b"Content-Encoding"] = left
        else:
            del head.headers[b"Content-Encoding"]

    def _decode(self, data: bytes) -> bytes:
        assert self.decoder is not None
        limit = self.max_bytes
        room = limit and limit - self.size + 1
        if self.blobs is not None:
            room = min(room, _UNPACKED)
        try:
            data = self.decoder.feed(data, room)
        except Overflow:
            data = b""
            self.size = limit + 1
        except DecodingError as error:
            raise errors.BadResponse(f"Content-Encoding: {error}") from None
        if 0 < len(data) == room == _UNPACKED:
            raise errors.TooBig(f"{_SLICE} bytes unpack to {room} and more (LARM_BLOB_BYTES)")
        if limit and self.size + len(data) > limit:
            raise errors.TooBig(
                f"more than {limit} bytes after decompression of {self.received}"
                f" ({self.limit_name})"
            )
        return data

    def _open_socket(self, purpose: int, address: Any) -> Any:
        """``address`` has family, type, protocol, and the address as for socket.connect()."""
        if address.family in (socket.AF_INET, socket.AF_INET6):
            reason = self.deny.reason(_text(address.addr[0]), address.addr[1])
            if reason is not None:
                self.denied = reason
                return pycurl.SOCKET_BAD
        self.opened = True
        return _Socket(socket.socket(address.family, address.socktype, address.protocol))


class _Socket:
    """pycurl duplicates fileno() and drops the object at once."""

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner

    def fileno(self) -> int:
        return self._inner.fileno()

    def __del__(self) -> None:
        self._inner.close()


def _text(value: str | bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
