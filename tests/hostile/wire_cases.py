"""Replies that break HTTP, or use what nobody uses: one connection, one reply."""

from __future__ import annotations

import zlib

from tests.hostile.limit_cases import CHUNKED, TEXT
from tests.support.hostile.behaviours import (
    HTML,
    chunk,
    gzipped,
    head,
    html,
    reply,
    sends,
    site,
    then_hangs,
    then_resets,
)
from tests.support.hostile.outcome import fails, page
from tests.support.hostile.server import Behaviour, Case, Wire

WELL = page(200, TEXT, links=1)
BAD = fails("bad-response")


def chunked(raw: bytes) -> Behaviour:
    return sends(head(HTML, CHUNKED) + raw)


def status(line: str) -> Behaviour:
    return sends(html(TEXT, "Connection: close", status=line))


def header(*lines: str) -> Behaviour:
    return sends(html(TEXT, "Connection: close", *lines))


def deflated(raw: bool) -> bytes:
    packer = zlib.compressobj(wbits=-15 if raw else 15)
    return packer.compress(TEXT) + packer.flush()


def coded(coding: str, body: bytes) -> Behaviour:
    return sends(reply(HTML, f"Content-Encoding: {coding}", body=body))


LENGTHS = [
    Case("length-too-large", sends(head(HTML, "Content-Length: 5000") + TEXT), fails("reset")),
    Case("length-too-small", sends(head(HTML, "Content-Length: 4") + TEXT), page(200, TEXT[:4])),
    Case("length-negative", sends(head(HTML, "Content-Length: -6") + TEXT), BAD),
    Case("length-textual", sends(head(HTML, "Content-Length: thousand") + TEXT), BAD),
    Case("length-and-letters", sends(head(HTML, "Content-Length: 52kB") + TEXT), BAD),
    Case("length-empty", sends(head(HTML, "Content-Length:") + TEXT), BAD),
    Case("length-doubled", sends(head(HTML, *[f"Content-Length: {len(TEXT)}"] * 2) + TEXT), WELL),
    Case(
        "length-doubled-differing",
        sends(head(HTML, "Content-Length: 4", "Content-Length: 9") + TEXT),
        BAD,
    ),
    Case(
        "length-and-chunked",
        sends(head(HTML, "Content-Length: 4", CHUNKED) + chunk(TEXT) + chunk(b"")),
        WELL,
    ),
    Case("length-absent", sends(head(HTML) + TEXT), WELL),
    Case("no-body-but-length", sends(head(HTML, "Content-Length: 52")), fails("reset")),
]
CHUNKS = [
    Case("chunk-extension", chunked(b"%x;name=value\r\n%b\r\n0\r\n\r\n" % (len(TEXT), TEXT)), WELL),
    Case("chunk-size-textual", chunked(b"zz\r\n" + TEXT), BAD),
    Case("chunk-size-negative", chunked(b"-5\r\n" + TEXT), BAD),
    Case("chunk-size-overflow", chunked(b"fffffffffffffffff\r\n" + TEXT), BAD),
    Case("chunk-size-huge", chunked(b"7fffffffffffffff\r\n" + TEXT), fails("reset")),
    Case("chunk-without-end", chunked(b"5\r\nhelloworld\r\n0\r\n\r\n"), BAD),
    Case("chunks-without-last", chunked(chunk(TEXT)), fails("reset")),
    Case("chunk-cut", chunked(b"fff\r\n" + TEXT), fails("reset")),
    Case(
        "chunked-twice",
        sends(head(HTML, "Transfer-Encoding: chunked, chunked") + chunk(TEXT) + chunk(b"")),
        WELL,
    ),
    Case("transfer-encoding-unknown", sends(head(HTML, "Transfer-Encoding: rot13") + TEXT), BAD),
    Case("not-chunked-at-all", chunked(TEXT), BAD),
]
CODINGS = [
    Case("gzip", coded("gzip", gzipped(TEXT)), WELL),
    Case("gzip-upper-case", coded("GZIP", gzipped(TEXT)), WELL),
    Case("deflate-with-zlib-header", coded("deflate", deflated(raw=False)), WELL),
    Case("deflate-without-header", coded("deflate", deflated(raw=True)), WELL),
    Case("gzip-twice", coded("gzip, gzip", gzipped(TEXT, 2)), WELL),
    Case("gzip-20-times", coded(", ".join(["gzip"] * 20), gzipped(TEXT, 20)), BAD),
    Case("gzip-of-nothing-40000-times", coded("gzip, gzip", gzipped(gzipped(b"") * 40_000)), BAD),
    Case("gzip-in-name-only", coded("gzip", TEXT), BAD),
    Case("gzip-cut", coded("gzip", gzipped(TEXT)[:-12]), page(200)),
    Case("gzip-with-a-tail", coded("gzip", gzipped(TEXT) + b"tail"), WELL),
    Case("brotli-in-name-only", coded("br", TEXT), BAD),
    Case("coding-unknown", coded("x-rot13", TEXT), WELL),
    Case("coding-is-a-charset", coded("utf-8", TEXT), WELL),
    Case("coding-empty", coded("", TEXT), WELL),
]
STATUS_LINES = [
    Case("http-0.9", sends(TEXT), BAD),
    Case("binary-garbage", sends(bytes(range(256)) * 8), BAD),
    Case("closes-without-a-word", sends(), fails("reset")),
    Case("half-a-status-line", sends(b"HTTP/1.1 2"), fails("reset")),
    Case("status-2", status("HTTP/1.1 2 OK"), BAD),
    Case("status-99999", status("HTTP/1.1 99999 OK"), BAD),
    Case("status-negative", status("HTTP/1.1 -12 OK"), BAD),
    Case("status-textual", status("HTTP/1.1 OK OK"), BAD),
    Case("status-000", status("HTTP/1.1 000 OK"), BAD),
    Case("status-999", status("HTTP/1.1 999 Go away"), BAD),
    Case("status-without-reason", status("HTTP/1.1 200"), WELL),
    Case("status-with-colon", status("HTTP/1.1 200: OK"), WELL),
    Case("version-1.0", status("HTTP/1.0 200 OK"), WELL),
    Case("version-3.7", status("HTTP/3.7 200 OK"), WELL),
    Case("version-2-in-clear", status("HTTP/2 200 OK"), BAD),
    Case("icy", status("ICY 200 OK"), BAD),
    Case("lines-end-in-lf", sends(html(TEXT).replace(b"\r\n", b"\n")), WELL),
    Case("blank-line-first", sends(b"\r\n" + html(TEXT)), BAD),
    Case("100-then-200", sends(head(status="HTTP/1.1 100 Continue"), html(TEXT)), WELL),
    Case(
        "103-then-200",
        sends(head("Link: </x>", status="HTTP/1.1 103 Early Hints"), html(TEXT)),
        WELL,
    ),
    Case(
        "101-unasked", sends(head("Upgrade: h2c", status="HTTP/1.1 101 Switching"), html(TEXT)), BAD
    ),
    Case("204-with-a-body", sends(html(TEXT, status="HTTP/1.1 204 No")), page(204, b"")),
    Case("304-unasked", sends(html(TEXT, status="HTTP/1.1 304 Not")), page(304, b"")),
]
HEADERS = [
    Case("header-with-nul", header("X-Y: a\0b"), BAD),
    Case("header-without-colon", header("no colon here"), BAD),
    Case("header-space-before-colon", header("X-Y : z"), WELL),
    Case("header-folded", header("X-Y: z", "  and on"), WELL),
    Case("header-folded-first", sends(html(TEXT).replace(b"\r\n", b"\r\n  folded\r\n", 1)), BAD),
    Case("header-latin-1", header("X-Y: caf\xe9"), WELL),
    Case("header-name-empty", header(": z"), WELL),
    Case(
        "headers-80-long-names",
        header(*[f"{'X' * 10_000}{n}: z" for n in range(80)]),
        fails("too-big"),
    ),
    Case(
        "content-type-binary",
        sends(reply("Content-Type: \x01\x02\xff", body=TEXT)),
        page(200, TEXT),
    ),
    Case("no-headers-at-all", sends(b"HTTP/1.1 200 OK\r\n\r\n" + TEXT), page(200, TEXT)),
]


async def two_replies(wire: Wire) -> None:
    """A second, forged reply follows the first, and would answer the next request."""
    first = html("<a href=/second>on</a>") if wire.target != "/second" else html("true")
    await wire.send(first + html("forged") if wire.target != "/second" else first)
    await wire.next_request()
    await wire.send(html("true"))


CONNECTIONS = [
    Case("resets-at-once", then_resets(), fails("reset")),
    Case("resets-in-mid-headers", then_resets(b"HTTP/1.1 200 OK\r\nContent-"), fails("reset")),
    Case(
        "resets-in-mid-body", then_resets(head(HTML, "Content-Length: 999") + TEXT), fails("reset")
    ),
    Case("second-reply", two_replies, page(200), also={"/second": page(200, b"true")}),
    Case("says-close-and-stays", then_hangs(html(TEXT, "Connection: close")), WELL),
    Case("keep-alive", site(lambda _: html(TEXT)), WELL),
]

WIRE = [*LENGTHS, *CHUNKS, *CODINGS, *STATUS_LINES, *HEADERS, *CONNECTIONS]
