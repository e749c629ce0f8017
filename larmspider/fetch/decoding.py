"""Content-Encoding undone while the body arrives, up to a limit of bytes.

    decoder = Decoder(["gzip"])
    decoder.feed(data, most=1000)     # at most 1000 bytes, however many are in data

libcurl does not decode bodies here, for three reasons. Its wheel knows no zstd. It does not say
how many bytes came in. It fails on an unknown encoding, though browsers and Scrapy read a body with
``Content-Encoding: utf-8`` unchanged. A server applies encodings from left to right (RFC 9110 8.4),
so they are decoded from the right.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from typing import Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

ACCEPTED = "gzip, deflate, br, zstd"
MAX_ENCODINGS = 5
"""libcurl has the same limit."""
MAX_MEMBERS = 1000
"""gzip members (20 bytes) or zstd frames (9) in a body: each costs a new decompressor, 0.2 ms."""
_PIECE_BYTES = 65_536
"""Bytes that a layer gets at once: the bytes after each member are copied."""


class DecodingError(Exception):
    """The bytes do not have the declared Content-Encoding, or the chain of encodings is too
    long."""


class Overflow(DecodingError):  # noqa: N818 - it becomes an error with a kind
    """An inner layer alone is larger than the limit."""


class _Layer(Protocol):
    def feed(self, data: bytes, most: int) -> bytes: ...


def encodings_of(values: Sequence[bytes]) -> tuple[list[str], list[str]]:
    """The encodings that can be undone, outermost first, and the encodings left in the header."""
    left = [part.strip().lower() for value in values for part in value.decode("latin-1").split(",")]
    undone = []
    while left and (left[-1] in _LAYERS or left[-1] in ("identity", "")):
        name = left.pop()
        if name in _LAYERS:
            undone.append(name)
    return undone, left


class Decoder:
    """Undoes ``encodings``, outermost first."""

    def __init__(self, encodings: Sequence[str]) -> None:
        if len(encodings) > MAX_ENCODINGS:
            raise DecodingError(f"{len(encodings)} nested encodings")
        self._layers: list[_Layer] = [_LAYERS[name]() for name in encodings]

    def feed(self, data: bytes, most: int) -> bytes:
        """``data`` decoded, at most ``most`` bytes (0: all). Raises DecodingError, Overflow."""
        inner = len(self._layers) - 1
        for number, layer in enumerate(self._layers):
            data = _feed(layer, data, most)
            if number < inner and most and len(data) >= most:
                raise Overflow("an inner encoding is too large")
        return data


def _feed(layer: _Layer, data: bytes, most: int) -> bytes:
    if len(data) <= _PIECE_BYTES:
        return layer.feed(data, most)
    parts: list[bytes] = []
    size = 0
    for start in range(0, len(data), _PIECE_BYTES):
        parts.append(layer.feed(data[start : start + _PIECE_BYTES], most and most - size))
        size += len(parts[-1])
        if most and size >= most:
            break
    return b"".join(parts)


class _Gzip:
    """gzip with any number of members (RFC 1952 2.2); bytes after the last are ignored."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._members = 0

    def feed(self, data: bytes, most: int) -> bytes:
        out = b""
        while data:
            try:
                out += self._stream.decompress(data, most and most - len(out))
            except zlib.error as error:
                if self._members:
                    return out  # padding after the last member
                raise DecodingError(f"not gzip: {error}") from None
            data = self._stream.unused_data
            if not self._stream.eof or (most and len(out) >= most):
                return out
            self._stream = zlib.decompressobj(wbits=31)
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise DecodingError(f"more than {MAX_MEMBERS} members of gzip")
            data = data.lstrip(b"\0")
        return out


class _Deflate:
    """zlib (RFC 9110 8.4.1.2), or the raw deflate that some servers send in its place."""

    def __init__(self) -> None:
        self._head = b""
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes, most: int) -> bytes:
        if self._stream is None:
            self._head += data
            if len(self._head) < 2:
                return b""
            data = self._head
            wrapped = data[0] & 15 == 8 and (data[0] << 8 | data[1]) % 31 == 0  # RFC 1950 2.2
            self._stream = zlib.decompressobj(wbits=15 if wrapped else -15)
        if self._stream.eof:
            return b""  # a tail; zlib would copy all of it again for each piece
        try:
            return self._stream.decompress(data, most)
        except zlib.error as error:
            raise DecodingError(f"not deflate: {error}") from None


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes, most: int) -> bytes:
        try:
            if not most:
                return bytes(self._stream.process(data))
            out = bytes(self._stream.process(data, output_buffer_limit=most))
            while len(out) < most and not self._stream.can_accept_more_data():
                out += self._stream.process(b"", output_buffer_limit=most - len(out))
        except brotli.error as error:
            raise DecodingError(f"not brotli: {error}") from None
        return out[:most]  # brotli's limit is a block of 32 KB or so


class _Zstd:
    """zstd with any number of frames (RFC 8878 3.1)."""

    def __init__(self) -> None:
        self._stream = ZstdDecompressor()
        self._frames = 0

    def feed(self, data: bytes, most: int) -> bytes:
        out = b""
        while data:
            try:
                out += self._stream.decompress(data, most - len(out) if most else -1)
            except ZstdError as error:
                raise DecodingError(f"not zstd: {error}") from None
            if not self._stream.eof or (most and len(out) >= most):
                return out
            data = self._stream.unused_data
            self._stream = ZstdDecompressor()
            self._frames += 1
            if self._frames > MAX_MEMBERS:
                raise DecodingError(f"more than {MAX_MEMBERS} frames of zstd")
        return out


_LAYERS: dict[str, type[_Gzip] | type[_Deflate] | type[_Brotli] | type[_Zstd]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
