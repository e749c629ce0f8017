"""Content-Encoding: undone as far as it is known, in whatever pieces it arrives."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
from scrapy.http import HtmlResponse, TextResponse

from larmspider.fetch.decoding import Decoder, DecodingError, Overflow, encodings_of
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import Reply, ScriptedServer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BODY = b"<p>Fixing it is easy.</p>" * 400


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


PACKED = {
    "gzip": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY),
    "deflate": zlib.compress(BODY),
    "deflate, raw": raw_deflate(BODY),
    "br": brotli.compress(BODY),
    "zstd": zstd.compress(BODY),
}


def unpack(name: str, data: bytes, piece: int, most: int = 0) -> bytes:
    decoder = Decoder([name])
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    return b"".join(decoder.feed(one, most) for one in pieces)


@pytest.mark.parametrize("piece", [1, 7, 100_000])
@pytest.mark.parametrize("name", PACKED)
def test_pieces_of_any_size_give_the_whole(name: str, piece: int) -> None:
    encoding = name.partition(",")[0]
    assert unpack(encoding, PACKED[name], piece) == BODY
    assert unpack(encoding, PACKED[name], piece, most=len(BODY)) == BODY


@pytest.mark.parametrize("name", PACKED)
def test_no_more_than_asked_for_comes_out(name: str) -> None:
    """However much is in the data."""
    assert Decoder([name.partition(",")[0]]).feed(PACKED[name], 100) == BODY[:100]


@pytest.mark.parametrize("name", ["gzip", "zstd"])
@pytest.mark.parametrize("piece", [1, 100_000])
def test_members_follow_each_other(name: str, piece: int) -> None:
    assert unpack(name, PACKED[name] * 3, piece) == BODY * 3


@pytest.mark.parametrize("tail", [b"\0" * 512, b"\0\0junk", b"junk", b"\r\n"])
@pytest.mark.parametrize("piece", [1, 100_000])
def test_what_follows_the_last_gzip_member_is_ignored(tail: bytes, piece: int) -> None:
    """Padding, or what a script printed after its page."""
    assert unpack("gzip", PACKED["gzip"] + tail, piece) == BODY


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_other_bytes_are_an_error(name: str) -> None:
    with pytest.raises(DecodingError):
        Decoder([name]).feed(b"\xff\xff<html>" * 100, 0)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_members_without_end_are_an_error(name: str, wrapped: bool) -> None:
    """Empty ones, 9 to 20 bytes each: 4 MB of them took 32 s, and a body of 40 KB that holds 16 MB
    of them, minutes in one go."""
    empty = {"gzip": gzip.compress(b""), "zstd": zstd.compress(b"")}[name]
    many, encodings = empty * 20_000, [name]
    if wrapped:
        many, encodings = gzip.compress(many), ["gzip", name]
    with pytest.raises(DecodingError, match="more than 1000"):
        Decoder(encodings).feed(many, 1 << 24)
    assert Decoder([name]).feed(empty * 1000, 1 << 24) == b""


def test_a_large_inner_layer_comes_in_pieces() -> None:
    body = bytes(range(256)) * 4000
    for inner in ("gzip", "br", "zstd", "deflate"):
        packed = {
            "gzip": gzip.compress(body, 0),
            "br": brotli.compress(body, quality=0),
            "zstd": zstd.compress(body, 1),
            "deflate": zlib.compress(body, 0),
        }[inner]
        twice = gzip.compress(packed)
        for most in (0, len(packed) + len(body), len(body) - 1):
            decoder = Decoder(["gzip", inner])
            if most and most <= len(packed):
                with pytest.raises(Overflow):
                    decoder.feed(twice, most)
            else:
                assert decoder.feed(twice, most) == (body[:most] if most else body)


def test_layers_come_off_from_the_right() -> None:
    """RFC 9110 8.4: listed in the order in which they were applied."""
    packed = brotli.compress(gzip.compress(BODY))
    undone, left = encodings_of([b"gzip", b"br"])
    assert (undone, left) == (["br", "gzip"], [])
    assert Decoder(undone).feed(packed, 0) == BODY


def test_an_inner_layer_has_the_limit_too() -> None:
    packed = gzip.compress(gzip.compress(b"x" * 50_000_000, 0))
    with pytest.raises(Overflow):
        Decoder(["gzip", "gzip"]).feed(packed, 1000)


@pytest.mark.parametrize(
    ("values", "undone", "left"),
    [
        ([b"GZip"], ["gzip"], []),
        ([b"utf-8"], [], ["utf-8"]),
        ([b"identity"], [], []),
        ([b"compress, gzip"], ["gzip"], ["compress"]),
        ([b"gzip, compress"], [], ["gzip", "compress"]),
        ([b""], [], []),
    ],
)
def test_what_is_known_is_undone_and_the_rest_is_left(
    values: list[bytes], undone: list[str], left: list[str]
) -> None:
    assert encodings_of(values) == (undone, left)


@pytest.mark.parametrize("name", PACKED)
def test_a_page_arrives_unpacked(
    scripted_server: Callable[..., ScriptedServer], fetcher: Callable[..., Fetcher], name: str
) -> None:
    """Without its Content-Encoding, as Scrapy's middleware leaves it, and as HTML."""
    headers = {"Content-Encoding": name.partition(",")[0], "Content-Type": "text/html"}
    server = scripted_server({"*": Reply(200, headers, PACKED[name])})
    response = fetcher().get(server.url())
    assert isinstance(response, HtmlResponse)
    assert (response.body, "Content-Encoding" in response.headers) == (BODY, False)
    kept = fetcher(COMPRESSION_ENABLED=False).get(server.url())
    assert (kept.body, "Content-Encoding" in kept.headers) == (PACKED[name], True)


def test_an_encoding_that_is_none_changes_nothing(
    scripted_server: Callable[..., ScriptedServer], fetcher: Callable[..., Fetcher]
) -> None:
    """Content-Encoding: utf-8 is a common mistake; libcurl by itself refuses such a page."""
    headers = {"Content-Encoding": "utf-8", "Content-Type": "text/html"}
    server = scripted_server({"*": Reply(200, headers, BODY)})
    response = fetcher().get(server.url())
    assert (response.body, response.headers["Content-Encoding"]) == (BODY, b"utf-8")
    assert type(response) is TextResponse, "by its body, as Scrapy does: its type is not trusted"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_empty_body_needs_no_unpacking(
    scripted_server: Callable[..., ScriptedServer], fetcher: Callable[..., Fetcher], method: str
) -> None:
    """A redirect may call its empty body gzip; its class follows its type."""
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/html", "Location": "/b"}
    server = scripted_server({"*": Reply(302, headers)})
    response = fetcher().get(server.url(), method=method)
    assert (response.status, response.body) == (302, b"")
    assert isinstance(response, HtmlResponse) or method == "HEAD"


def test_a_long_tail_behind_deflate_is_not_kept() -> None:
    """zlib would copy all of it again for each piece: 15 MB from 12 hosts stood still for 13 s."""
    decoder = Decoder(["deflate"])
    assert decoder.feed(zlib.compress(BODY), 0) == BODY
    tracemalloc.start()
    try:
        for _ in range(100):
            assert decoder.feed(b"x" * 100_000, 0) == b""
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
