"""Hosts that never end: bodies, headers, and time."""

from __future__ import annotations

import base64
import gzip
import zlib

from tests.support.hostile.behaviours import (
    HTML,
    MB,
    after_robots,
    chunk,
    endless,
    gzip_bomb,
    gzipped,
    head,
    html,
    reply,
    sends,
    then_hangs,
)
from tests.support.hostile.outcome import fails, page
from tests.support.hostile.server import Case

TEXT = b"<title>Well</title><a href=/on>on</a> and some words"
# 64 MiB of zeros
BROTLI_BOMB = base64.b64decode(
    "y///PwAkAOKxQHLv//j//weABEAcFoDu/R////8AkACIwwLQvf/j//8fABIAcVgAuvd//P//A0ACIA4LQPf+j///fwBIAMRhAeje//H//w8ACYA4LADd+z/+//8BIAEQhwWge/83"
)
CHUNKED = "Transfer-Encoding: chunked"
BAD = fails("bad-response")
KB = b"<p>words and more words</p>\n" * 37

_packer = zlib.compressobj(wbits=31)
GZIP_START = _packer.compress(bytes(99_000)) + _packer.flush(zlib.Z_FULL_FLUSH)
GZIP_ON = _packer.compress(bytes(99_000)) + _packer.flush(zlib.Z_FULL_FLUSH)
"""Can follow itself for ever."""

LIMITS = [
    Case("silent", then_hangs(), fails("timeout")),
    Case("silent-after-headers", then_hangs(head(HTML, "Content-Length: 9")), fails("timeout")),
    Case(
        "silent-in-mid-body",
        then_hangs(head(HTML, "Content-Length: 99") + b"half"),
        fails("timeout"),
    ),
    Case("trickled-status-line", endless(b"HTTP/1.1 2", b"0", 0.2), fails("timeout")),
    Case("trickled-headers", endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.2), fails("timeout")),
    Case("trickled-body", endless(head(HTML, "Content-Length: 5000"), b".", 0.2), fails("timeout")),
    Case("trickled-chunks", endless(head(HTML, CHUNKED), chunk(b"."), 0.2), fails("timeout")),
    Case("endless-body", endless(head(HTML), KB), fails("too-big")),
    Case("endless-chunks", endless(head(HTML, CHUNKED), chunk(KB)), fails("too-big")),
    Case(
        "endless-gzip",
        endless(head(HTML, "Content-Encoding: gzip") + GZIP_START, GZIP_ON),
        fails("too-big"),
    ),
    Case(
        "endless-gzip-members",
        endless(head(HTML, "Content-Encoding: gzip"), gzip.compress(bytes(99_000))),
        fails("too-big"),
    ),
    Case("endless-chunk-size", endless(head(HTML, CHUNKED), b"0" * 1000), BAD),
    Case(
        "endless-chunk-extension",
        endless(head(HTML, CHUNKED) + b"5;", b"x=y;" * 250, 0.01),
        fails("timeout"),
    ),
    Case(
        "endless-trailers",
        endless(head(HTML, CHUNKED) + b"5\r\nhello\r\n0\r\n", b"X: y\r\n" * 99),
        fails("too-big"),
    ),
    Case(
        "endless-header-lines",
        endless(b"HTTP/1.1 200 OK\r\n", b"X-Y: z\r\n" * 99),
        fails("too-big"),
    ),
    Case("endless-header-line", endless(b"HTTP/1.1 200 OK\r\nX-Y: ", b"z" * 999), fails("too-big")),
    Case("endless-status-line", endless(b"HTTP/1.1 200 ", b"O" * 999), fails("too-big")),
    Case("endless-1xx", endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40), fails("too-big")),
    Case("endless-blank-lines", endless(b"", b"\r\n" * 400), BAD),
    Case("promised-5-gb", endless(head(HTML, "Content-Length: 5000000000"), KB), fails("too-big")),
    Case(
        "promised-2-to-the-64",
        endless(head(HTML, "Content-Length: 18446744073709551616"), KB),
        fails("too-big"),
    ),
    Case(
        "gzip-bomb",
        sends(reply(HTML, "Content-Encoding: gzip", body=gzip_bomb(64 * MB))),
        fails("too-big"),
    ),
    Case(
        "gzip-bomb-in-gzip",
        sends(reply(HTML, "Content-Encoding: gzip, gzip", body=gzipped(gzip_bomb(64 * MB)))),
        fails("too-big"),
    ),
    Case(
        "brotli-bomb",
        sends(reply(HTML, "Content-Encoding: br", body=BROTLI_BOMB)),
        fails("too-big"),
    ),
    Case(
        "cookie-flood",
        sends(html(TEXT, *[f"Set-Cookie: c{n}={'x' * 4000}" for n in range(200)])),
        fails("too-big"),
    ),
    Case(
        "cookies-many",
        sends(html(TEXT, *[f"Set-Cookie: c{n}={'x' * 400}" for n in range(100)])),
        page(200, TEXT, links=1),
    ),
]
"""What has no end. The limits are those of running.py, smaller than the defaults."""

LORIS = [
    Case(f"slow-loris-{number}", endless(b"HTTP/1.1 200 OK\r\nX-Y: ", b"z", 0.5), fails("timeout"))
    for number in range(1, 101)
]
"""A hundred hosts that send a byte now and then, so that each holds a place to the last."""

LATE_LORIS = [
    Case(
        f"late-loris-{number}",
        after_robots(endless(b"HTTP/1.1 200 OK\r\nX-Y: ", b"z", 0.5)),
        fails("timeout"),
    )
    for number in range(1, 41)
]
"""The same, but for a robots.txt that they answer at once."""
