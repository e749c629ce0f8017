"""Checks of the fields of an archive's records, which its author may have made up.

check_time(4e9)                       # RefusedError: its date, 2096-10-02, lies in the future
status, headers = parse_head(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\n")
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import IO
from urllib.parse import urlsplit

from larmspider.errors import InvalidURL
from larmspider.fetch import errors
from larmspider.fetch.decoding import Decoder, DecodingError, encodings_of
from larmspider.fetch.transfer import ResponseHead
from larmspider.urls.canonical import canonicalize
from larmspider.urls.resolve import resolve

MAX_HEAD = 300 * 1024
"""Bytes of a head; LARM_HEADER_BYTES may be no larger."""
MAX_LINES = 5_000
FIRST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
"""The first page of the web dates from December 1990."""
AHEAD_SECS = 86_400.0
"""A clock may be that far ahead, or in another time zone."""
CODING = ("content-encoding", "transfer-encoding", "content-length")
_STATUS = re.compile(r"[2-5][0-9][0-9]")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_NO_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_DIGEST = re.compile(r"[A-Za-z0-9-]{1,20}:[A-Za-z0-9+/=_-]{1,179}")
_LENGTH = re.compile(
    rb"^content-length:[ \t]*([0-9]{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_PIECE, _CODED_PIECE = 1 << 16, 1 << 12
BOMB = 16 << 20
"""Bytes that 4 KB of a coded body may become."""


class RefusedError(Exception):
    """A record that is not taken; why, in words that name no record."""


def check_url(url: str) -> str:
    """``url`` as a crawl keeps it, without user name and fragment. Raises RefusedError."""
    if _NO_VALUE.search(url) or any("\ud800" <= letter <= "\udfff" for letter in url):
        raise RefusedError("its URL holds a control character")
    try:
        canonicalize(url)
        found = resolve(url, "")
        if found is None or not urlsplit(found).hostname:
            raise RefusedError("its URL cannot be fetched")
    except (InvalidURL, ValueError):
        raise RefusedError("its URL cannot be fetched") from None
    return found


def check_time(when: float, now: float | None = None) -> float:
    """Raises RefusedError for a time that no capture can have."""
    now = time.time() if now is None else now
    if not when >= FIRST:  # nor nan
        raise RefusedError("its date lies before 1990")
    if when > now + AHEAD_SECS:
        raise RefusedError("its date lies in the future")
    return when


def date_of(text: str) -> float:
    """Seconds since the epoch of a WARC-Date. Raises RefusedError."""
    try:
        date = datetime.fromisoformat(text)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        when = date.timestamp()
    except (ValueError, OverflowError):
        raise RefusedError("it has no date") from None
    return check_time(when)


def digest_of(text: str | None) -> str | None:
    """The digest; None for other texts."""
    return text if text and _DIGEST.fullmatch(text) else None


def status_of(text: str) -> int:
    """Raises BadResponse."""
    if not _STATUS.fullmatch(text):
        raise errors.BadResponse(f"status {text[:20]!a}: expected 200 to 599")
    return int(text)


def record_fault(begin: bytes) -> str:
    """A clause about the fault of a WARC record that begins with these MAX_HEAD bytes; "" for a
    good head, and for bytes that are no record."""
    if not begin.startswith(b"WARC/"):
        return ""
    head, end, _ = begin.replace(b"\r\n", b"\n").partition(b"\n\n")
    if not end:
        return f"has a head of more than {MAX_HEAD:,} bytes" if len(begin) >= MAX_HEAD else ""
    if len(_LENGTH.findall(head)) != 1:
        return "has no Content-Length that is one number"
    return ""


def parse_head(stream: IO[bytes]) -> tuple[int, list[tuple[str, str]]]:
    """Status and headers of an answer; ``stream`` is at its body then. Raises BadResponse."""
    lines: list[bytes] = []
    size = 0
    while (line := stream.readline(MAX_HEAD)) not in (b"\r\n", b"\n"):
        size += len(line)
        if not line.endswith(b"\n"):
            raise errors.BadResponse("its head of HTTP has no end")
        if size > MAX_HEAD or len(lines) > MAX_LINES:
            raise errors.BadResponse(f"its head of HTTP has more than {MAX_HEAD:,} bytes")
        lines.append(line)
    head = ResponseHead.parse([*lines, b"\r\n"])
    pairs = (line.partition(b":") for line in lines[1:] if line[:1] not in b" \t")
    return status_of(str(head.status)), plain_headers(
        (_text(name), _text(value)) for name, colon, value in pairs if colon
    )


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def plain_headers(
    pairs: Iterator[tuple[str, str]] | Sequence[tuple[str, str]],
) -> list[tuple[str, str]]:
    """The headers whose names and values may be sent."""
    found = ((name.strip(), value.strip()) for name, value in pairs)
    return [
        (name, value)
        for name, value in found
        if _NAME.fullmatch(name) and not _NO_VALUE.search(value)
    ]


def decoded(stream: IO[bytes], headers: Sequence[tuple[str, str]], most: int) -> Iterator[bytes]:
    """The body in pieces, without chunks and codings. It stays unchanged if it has none of the
    codings that the head names, as in archives of some programs. ``most``: wanted bytes, 0 for
    all. Raises TooBig for a bomb."""
    said = {
        name: [value.encode() for key, value in headers if key.lower() == name] for name in CODING
    }
    chunked = any(value.lower().endswith(b"chunked") for value in said["transfer-encoding"])
    pieces = _dechunked(stream) if chunked else iter(lambda: stream.read(_PIECE), b"")
    undone, _ = encodings_of(said["content-encoding"])
    return _decoded(pieces, undone, most) if undone else pieces


def _decoded(pieces: Iterator[bytes], encodings: Sequence[str], most: int) -> Iterator[bytes]:
    decoder: Decoder | None = None
    size, first = 0, True
    for piece in pieces:
        for at in range(0, len(piece), _CODED_PIECE):
            part = piece[at : at + _CODED_PIECE]
            try:
                if first:
                    decoder = Decoder(encodings)
                found = decoder.feed(part, BOMB + 1) if decoder else part
            except DecodingError:
                if not first:
                    return  # it is cut short, or damaged
                decoder, found = None, part
            first = False
            if len(found) > BOMB:
                raise errors.TooBig(f"{len(part)} bytes of its body unpack to more than {BOMB:,}")
            size += len(found)
            if found:
                yield found
            if most and size > most:
                return


def _dechunked(stream: IO[bytes]) -> Iterator[bytes]:
    """The chunks of RFC 9112 7.1, up to the first invalid one."""
    line = stream.readline(_PIECE)
    if not _SIZE.fullmatch(line):
        yield line
        yield from iter(lambda: stream.read(_PIECE), b"")
        return
    while (size := _SIZE.fullmatch(line)) and (left := int(size[1], 16)):
        while left and (piece := stream.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece
        if left:
            return
        stream.readline(2)
        line = stream.readline(_PIECE)
