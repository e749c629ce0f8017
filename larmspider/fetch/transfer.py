"""One libcurl easy handle and the answer that it receives, used for one fetch after another.

Its callbacks run inside libcurl: what is wrong is kept in ``error`` and the transfer ended; the
handler raises it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pycurl
from scrapy import Request
from scrapy.exceptions import StopDownload

from larmspider.fetch import errors
from larmspider.fetch.decoding import Decoder, DecodingError, Overflow, encodings_of
from larmspider.fetch.deny_addresses import DenyAddresses
from larmspider.fetch.limits import Limits
from larmspider.fetch.response_head import BadHead, CutHead, ResponseHead
from larmspider.requests import CUT_BYTES

_STOP = -1
"""Returned to libcurl, which then ends the transfer with E_WRITE_ERROR."""
OnHead = Callable[[Request, ResponseHead], StopDownload | None]
OnBytes = Callable[[Request, bytes], StopDownload | None]


class Transfer:
    """``setup`` sets what is the same for all fetches; ``decode``: undo Content-Encoding."""

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
        """Options of the last fetch that the next one may find as they are."""
        self.dirty = True
        """Whether options were set that the next fetch must not find."""
        self.site: object = None
        """Whose credentials the handle has; None: nobody's."""
        self.request: Request | None = None

    def begin(
        self, request: Request, max_bytes: int, on_head: OnHead | None, on_bytes: OnBytes | None
    ) -> None:
        """Forget the last answer. ``max_bytes`` limits the body twice, as it is received and after
        decompression; 0 is no limit. The callbacks tell who listens to Scrapy's signals."""
        if self.dirty:
            self._reset()
        self.request, self.max_bytes = request, max_bytes
        self.on_head, self.on_bytes = on_head, on_bytes
        self.no_body = request.method == "HEAD"
        self.cut = request.meta.get(CUT_BYTES, 0)
        self.lines: list[bytes] = []
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
        """Let go of what it holds; an error would hold the whole fetch by its traceback."""
        self.chunks, self.lines = [], []
        self.head = self.decoder = None
        self.on_head = self.on_bytes = None
        self.request = self.error = self.stop = None

    def read_head(self) -> ResponseHead:
        """The head, once it is complete. Raises BadResponse, ConnectionLost."""
        if self.head is None:
            try:
                self.head = ResponseHead.parse(self.lines)
            except BadHead as error:
                raise errors.BadResponse(str(error)) from None
            except CutHead as error:
                raise errors.ConnectionLost(str(error)) from None
        return self.head

    def redirects(self) -> bool:
        """Whether a whole head is here that leads elsewhere: then the body does not matter."""
        if not self.lines or self.lines[-1] not in (b"\r\n", b"\n"):
            return False
        try:
            head = self.read_head()
        except errors.BadResponse:
            return False
        return 300 <= head.status < 400 and b"Location" in head.headers

    def finish_head(self) -> ResponseHead:
        """The head of an answer that is over, with or without a body. Raises as read_head()."""
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
            raise errors.TooBig(f"more than {limit} bytes (DOWNLOAD_MAXSIZE)")
        if self.on_bytes is not None and self.request is not None:
            self.stop = self.on_bytes(self.request, data)
        if self.decoder is not None:
            data = self._decode(data)
        self.chunks.append(data)
        self.size += len(data)
        if self.cut and self.size > self.cut:
            self.chunks[-1] = data[: len(data) - (self.size - self.cut)]
            self.stop = self.stop or StopDownload(fail=False)
        return None if self.stop is None else _STOP

    def _start_body(self) -> bool:
        """Before the first byte of the body, or at the end of none; False: it is not wanted."""
        head = self.read_head()
        if self.on_head is not None and self.request is not None:
            self.stop = self.on_head(self.request, head)
            self.on_head = None
            if self.stop is not None:
                return False
        encoded = dict.__contains__(head.headers, b"Content-Encoding")
        if encoded and self.decode and not self.no_body:
            self._choose_decoder(head)
        return True

    def _choose_decoder(self, head: ResponseHead) -> None:
        """The header then names what the body still is, as Scrapy's middleware leaves it."""
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
        try:
            data = self.decoder.feed(data, limit and limit - self.size + 1)
        except Overflow:
            data = b""
            self.size = limit + 1
        except DecodingError as error:
            raise errors.BadResponse(f"Content-Encoding: {error}") from None
        if limit and self.size + len(data) > limit:
            raise errors.TooBig(
                f"more than {limit} bytes after decompression of {self.received} (DOWNLOAD_MAXSIZE)"
            )
        return data

    def _open_socket(self, purpose: int, address: Any) -> Any:
        """``address``: family, type, protocol, address as in socket.connect()."""
        if address.family in (socket.AF_INET, socket.AF_INET6):
            reason = self.deny.reason(_text(address.addr[0]))
            if reason is not None:
                self.denied = reason
                return pycurl.SOCKET_BAD
        self.opened = True
        return _Socket(socket.socket(address.family, address.socktype, address.protocol))


class _Socket:
    """pycurl takes a duplicate of what fileno() says and drops this at once."""

    def __init__(self, inner: socket.socket) -> None:
        self._inner = inner

    def fileno(self) -> int:
        return self._inner.fileno()

    def __del__(self) -> None:
        self._inner.close()


def _text(value: str | bytes) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
