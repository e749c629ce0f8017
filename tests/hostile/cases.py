"""Hosts that never end: bodies, headers, and time."""

from __future__ import annotations

import asyncio
import base64
import gzip
import zlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, timedelta
from functools import cache

from tests.support.hostile.running import Outcome, fails, page
from tests.support.hostile.server import (
    HTML,
    MB,
    Behaviour,
    Case,
    Wire,
    after_robots,
    chunk,
    count,
    endless,
    gzip_bomb,
    gzipped,
    head,
    html,
    links_to,
    pages,
    redirects,
    reply,
    sends,
    site,
    then_hangs,
    then_resets,
)
from tests.support.servers.certificate import self_signed

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
"""Endless pages. The limits come from running.py, smaller than the defaults."""

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


# Where links and redirects lead: out of bounds, in rings, or on for ever.


NOT_ASKED = Outcome("no line in fetch.log")
LONG = "x" * 50_000


def redirect(name: str, location: str, says: str = "", *lines: str) -> Case:
    return Case(name, redirects(location, *lines), page(302, links=1, says=says), most=1)


REDIRECTS = [
    redirect("redirect-to-itself", "", "redirect loop"),
    redirect("redirect-to-a-file", "file:///etc/passwd", "LARM_FILE_ROOTS"),
    redirect("redirect-to-ftp", "ftp://127.66.0.1/pub", "scheme"),
    redirect("redirect-to-javascript", "javascript:alert(1)", "scheme"),
    redirect("redirect-to-data", "data:text/html,<a href=/on>on</a>", "scheme"),
    redirect("redirect-to-gopher", "gopher://127.66.0.1/1", "scheme"),
    redirect("redirect-out-of-scope", "http://127.99.0.1:9/", "restrict"),
    redirect("redirect-to-metadata", "http://169.254.169.254/latest/", "restrict"),
    redirect("redirect-to-no-url", "http://[", "not an absolute URL"),
    redirect("redirect-to-a-bad-port", "http://127.66.0.1:99999/", "not an absolute URL"),
    redirect("redirect-to-50000-characters", "/" + LONG, "URLLENGTH_LIMIT"),
    redirect(
        "redirect-with-a-cookie-wall",
        "/redirect-with-a-cookie-wall",
        "redirect loop",
        "Set-Cookie: seen=yes",
    ),
    Case("redirect-doubled", redirects("/on", "Location: /other"), fails("bad-response"), most=1),
    Case(
        "redirect-with-a-broken-body",
        sends(
            head(
                "Location: /redirect-with-a-broken-body",
                "Transfer-Encoding: chunked",
                status="HTTP/1.1 302 Found",
            )
            + b"no chunk"
        ),
        page(302, b"", says="redirect loop"),
        most=1,
    ),
    Case(
        "redirect-with-an-endless-body",
        endless(
            head("Location: /redirect-with-an-endless-body", status="HTTP/1.1 302 Found"),
            b"x" * 9999,
        ),
        page(302, b"", says="redirect loop"),
        most=1,
    ),
    Case("redirect-blank", redirects(""), page(302, says="redirect loop"), most=1),
    Case(
        "redirect-without-location",
        sends(html("x", status="HTTP/1.1 302 Found")),
        page(302, b"x", links=0),
    ),
    Case(
        "redirect-ring",
        site(
            lambda path: reply(
                f"Location: /ring{(int(path[5:] or 0) + 1) % 3}", status="HTTP/1.1 301 On"
            )
        ),
        page(301),
        path="/ring0",
        also={"/ring2": page(301, says="redirect loop")},
        most=3,
    ),
    Case(
        "redirect-chain",
        site(lambda path: reply(f"Location: /on{int(path[3:]) + 1}", status="HTTP/1.1 307 On")),
        page(307),
        path="/on1",
        also={"/on6": page(307, says="LARM_MAX_REDIRECTS"), "/on7": NOT_ASKED},
        most=6,
    ),
    Case(
        "redirect-for-ever-by-cookie",
        site(
            lambda path: reply(
                "Location: " + path + "x", "Set-Cookie: a=b", status="HTTP/1.1 302 On"
            )
        ),
        page(302),
        most=6,
    ),
    Case(
        "meta-refresh-to-itself",
        sends(html("<meta http-equiv=refresh content='0;url='>")),
        page(200, says=""),
        most=1,
    ),
]


def calendar(target: str) -> list[str]:
    """Every month leads to the next and to the one before."""
    year, month = (int(part) for part in target.split("/")[2].split("-"))
    months = year * 12 + month - 1
    return [f"/calendar/{m // 12}-{m % 12 + 1:02}/" for m in (months - 1, months + 1)]


async def session_in_path(wire: Wire) -> None:
    """Each link on each page has a session id of its own."""
    number = wire.number
    pages_ = (f"/{name};jsessionid={number}{letter}" for name in ("a", "b") for letter in "xyz")
    await wire.send(links_to(pages_))


def session_in_query() -> Behaviour:
    numbers = count()
    return pages(lambda _: [f"/{name}?PHPSESSID={next(numbers)}" for name in ("a", "b")])


def numbered() -> Behaviour:
    """A new page for each request."""
    return pages(lambda target: [f"/page{int(target[5:]) + n}" for n in (1, 2)])


TRAPS = [
    Case(
        "calendar-without-end",
        pages(calendar),
        page(200, links=2),
        path=f"/calendar/{date.today():%Y-%m}/",
        most=27,
    ),
    Case("session-ids-in-paths", session_in_path, page(200, links=6), most=6),
    Case("session-ids-in-queries", session_in_query(), page(200, links=2), most=6),
    Case("path-that-grows", pages(lambda _: ["deeper/"]), page(200, links=1), path="/", most=4),
    Case(
        "path-of-numbers-that-grows",
        pages(lambda target: [f"{len(target)}/"]),
        page(200, links=1),
        path="/",
        most=22,
    ),
    Case(
        "query-that-grows",
        pages(lambda target: [f"/?back={target}{'y' * 300}"]),
        page(200, links=1),
        path="/",
        most=8,
    ),
    Case("pages-without-end", numbered(), page(200, links=2), path="/page0", most=48),
    Case(
        "urls-of-50000-characters",
        pages(lambda _: [f"/{n}{LONG}" for n in range(20)]),
        page(200, links=20),
        most=1,
    ),
    Case(
        "hosts-that-are-none",
        pages(
            lambda _: [
                "http://xn--/",
                "http://xn--zzzzz-99999/",
                "http://a b/",
                "http://-/",
                "http://.../",
                "http://%00/",
                "http://127.66.0.1:0x50/",
                f"http://{'a' * 300}.example/",
                "http://[::1",
            ]
        ),
        page(200),
        most=1,
    ),
    Case(
        "schemes-that-are-none",
        pages(
            lambda _: [
                "file:///etc/passwd",
                "ftp://127.66.0.1/",
                "gopher://127.66.0.1/",
                "ldap://127.66.0.1/",
                "http:",
                "https://",
                "//",
                "::",
                "\t",
                "javascript:void(0)",
            ]
        ),
        page(200),
        most=2,
    ),
]
"""LARM_HOST_MAX_PAGES ends what has no other end."""

LINKS = [*REDIRECTS, *TRAPS]


# Names, certificates and robots.txt files that are wrong.


TRUSTED: list[bytes] = []
"""Certificates, as PEM, that the crawl trusts; complete when the server has started."""

HOSTS = [
    Case("name-that-does-not-exist", sends(), fails("dns"), name_as="no-host.invalid"),
    Case(
        "name-with-underscore", sends(html("well")), page(200, b"well"), name_as="my_wiki.localhost"
    ),
    Case("address-of-metadata", sends(html("x")), fails("address"), name_as="169.254.169.254"),
    Case("nothing-listens", sends(), fails("refused"), listens=False),
    Case(
        "certificate-that-is-trusted",
        sends(html("well")),
        page(200, b"well"),
        tls=lambda address: self_signed(address, trusted=TRUSTED),
    ),
    Case("certificate-self-signed", sends(html("x")), fails("tls", "self-signed"), tls=self_signed),
    Case(
        "certificate-expired",
        sends(html("x")),
        fails("tls", "expired"),
        tls=lambda address: self_signed(address, timedelta(days=-1), TRUSTED),
    ),
    Case(
        "certificate-of-another",
        sends(html("x")),
        fails("tls", "match"),
        tls=lambda _: self_signed("127.66.255.255", trusted=TRUSTED),
    ),
    Case("https-at-an-http-port", sends(b""), fails("tls"), scheme="https"),
    Case(
        "http-at-an-https-port",
        sends(html("secret")),
        fails("reset"),
        tls=self_signed,
        scheme="http",
    ),
]


def robots(txt: Callable[[Wire], Awaitable[None]]) -> Behaviour:
    """``txt`` answers for robots.txt; / leads to /private and /public."""

    async def behave(wire: Wire) -> None:
        while True:
            if wire.target == "/":
                await wire.send(links_to(["/private", "/public"]))
            elif wire.target in ("/private", "/public"):
                await wire.send(html("well"))
            else:
                await txt(wire)
                return
            await wire.next_request()

    return behave


def rules(name: str, txt: Behaviour, *, allowed: bool, obeyed: bool = False) -> Case:
    """Whether / is fetched under this file, and whether its rule about /private counts."""
    if not allowed:
        return Case(name, robots(txt), NOT_ASKED, path="/")
    also = {"/private": fails("robots") if obeyed else page(200), "/public": page(200)}
    return Case(name, robots(txt), page(200, links=2), path="/", also=also)


def text(body: bytes, *lines: str, status: str = "HTTP/1.1 200 OK") -> Behaviour:
    return sends(
        reply("Content-Type: text/plain", "Connection: close", *lines, body=body, status=status)
    )


def moved(location: str) -> Behaviour:
    return text(b"", f"Location: {location}", status="HTTP/1.1 302 Found")


RULE = b"User-agent: *\nDisallow: /private\n"
WILDCARDS = b"".join(b"Disallow: /x*a%d*b$\n" % number for number in range(25_000))

ROBOTS = [
    rules(
        "robots-is-html",
        sends(html("<title>Not found</title>" + "<p>Disallow this</p>" * 99)),
        allowed=True,
    ),
    rules("robots-is-html-with-rules", sends(html(b"<pre>\n" + RULE)), allowed=True, obeyed=True),
    rules("robots-is-binary", text(bytes(range(256)) * 400), allowed=True),
    rules("robots-with-nul", text(RULE.replace(b"D", b"\0D")), allowed=True, obeyed=True),
    rules("robots-of-10-mb", text(RULE + b"Disallow: /x\n" * 800_000), allowed=True, obeyed=True),
    rules("robots-of-wildcards", text(RULE + WILDCARDS), allowed=True, obeyed=True),
    rules(
        "robots-without-end",
        endless(head("Content-Type: text/plain") + RULE, b"# on\n" * 99),
        allowed=True,
        obeyed=True,
    ),
    rules("robots-is-one-line", text(b"User-agent: *\nDisallow: /" + b"x" * 900_000), allowed=True),
    rules(
        "robots-is-a-gzip-bomb", text(gzip_bomb(64 * MB), "Content-Encoding: gzip"), allowed=True
    ),
    rules("robots-redirects-to-itself", moved("/robots.txt"), allowed=True),
    rules("robots-redirects-to-a-file", moved("file:///etc/passwd"), allowed=True),
    rules("robots-redirects-to-the-home-page", moved("/"), allowed=True),
    rules("robots-redirects-to-metadata", moved("http://169.254.169.254/"), allowed=True),
    rules("robots-forbidden", text(b"", status="HTTP/1.1 403 No"), allowed=True),
    rules(
        "robots-delays-for-years",
        text(RULE + b"Crawl-delay: 99999999\n"),
        allowed=True,
        obeyed=True,
    ),
    rules("robots-fails", text(b"", status="HTTP/1.1 500 No"), allowed=False),
    rules("robots-says-too-many", text(b"", status="HTTP/1.1 429 No"), allowed=False),
    rules("robots-is-silent", lambda _: asyncio.sleep(99), allowed=False),
    rules("robots-is-no-http", sends(b"User-agent: *\nDisallow: /\n"), allowed=False),
]


# Documents that arrive in good order, and are too deep, too long, or not what they say.


LINK = b"<a href=/on>on</a>"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 8
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(range(256)) * 8
WORDS = b"lorem ipsum dolor sit amet consectetur "


@cache
def nested(tag: bytes, times: int) -> bytes:
    return (b"<%b>" % tag) * times + LINK


@cache
def many_links(number: int, targets: int) -> bytes:
    return b"".join(b"<a href=/%d>%d</a>\n" % (n % targets, n) for n in range(number))


@cache
def attributes(number: int, hides: int = 0) -> bytes:
    """One tag with ``number`` attributes; every ``hides`` th has a value that looks like tags."""
    names = (b" a%d" % n + (b"='<>'" if hides and n % hides == 0 else b"") for n in range(number))
    return b"<div" + b"".join(names) + b">" + LINK


def formats(number: int, attributes: bytes = b"") -> bytes:
    """Formatting elements that each later paragraph has to open again."""
    return b"".join(b"<b id=%d %b><p>" % (n, attributes) for n in range(number)) + LINK


def closed_formats(number: int) -> bytes:
    """The same, with blocks that end around them instead."""
    opened = b"".join(b"<b id=%d>" % n for n in range(number))
    return b"<div>" * number + opened + b"</div>x" * number + b"</b>" * number + LINK


@cache
def long_links(number: int, path: str) -> bytes:
    """``number`` links to such paths."""
    return b"".join(b"<a href='/%d/%b'>x</a>" % (n, path.encode()) for n in range(number))


def document(name: str, body: bytes, outcome: Outcome, content_type: str = "text/html") -> Case:
    whole = reply(f"Content-Type: {content_type}" if content_type else "X-No: type", body=body)
    return Case(name, site(lambda path: whole if path == f"/{name}" else html("end")), outcome)


ONE = page(200, links=1)
NONE = page(200, links=0)

DEEP = [
    document("20000-nested-blocks", nested(b"div", 20_000), ONE),
    document("20000-nested-lists", nested(b"ul><li", 20_000), ONE),
    document("500000-nested-blocks", nested(b"div", 500_000), ONE),
    document("200000-nested-inlines", nested(b"span", 200_000), ONE),
    document("20000-nested-tables", nested(b"table><tr><td", 20_000), ONE),
    document("10000-open-formats", formats(10_000), ONE),
    document("1400-open-formats", formats(740), ONE),
    document("540-open-formats-in-blocks", closed_formats(540), ONE),
    document(
        "740-formats-of-50-attributes", formats(740, b" ".join(b"a%d" % n for n in range(50))), ONE
    ),
    document("50000-attributes", attributes(50_000), ONE),
    document("9000-attributes", attributes(9_000), ONE),
    document("attributes-that-hide-tags", attributes(36_000, hides=500), ONE),
    document("3300-open-links", nested(b"table><td><a href=/end", 3_300), page(200, links=3_301)),
    document("50000-end-tags", nested(b"i", 20_000) + b"</u>" * 50_000, ONE),
]
DOCUMENT_CASES_LONG = [
    document("100000-links", many_links(100_000, 2_000), page(200, links=100_000)),
    document("8000-links-of-900-umlauts", long_links(8_000, "ü" * 900), page(200)),
    document("10-mb-text-node", LINK + WORDS * (10 * MB // len(WORDS)), ONE),
    document("10-mb-of-less-than-signs", LINK + b"<" * (10 * MB), ONE),
    document("10-mb-comment", LINK + b"<!--" + b"-" * (10 * MB), ONE),
    document("10-mb-script", LINK + b"<script>" + WORDS * (10 * MB // len(WORDS)), ONE),
    document("10-mb-href", LINK + b"<a href='" + b"x" * (10 * MB) + b"'>x</a>", page(200, links=2)),
    document("10-mb-plain-text", WORDS * (10 * MB // len(WORDS)), NONE, "text/plain"),
    document("10-mb-of-nul", LINK + bytes(10 * MB), ONE),
]
ODD = [
    document("nul-bytes", b"\0<p>a\0b</p>\0" + LINK.replace(b"o", b"o\0"), ONE),
    document("charset-unknown", LINK, ONE, "text/html; charset=x-klingon"),
    document(
        "charset-and-mark-disagree",
        "\ufeff".encode("utf-16le") + LINK.decode().encode("utf-16le"),
        ONE,
        "text/html; charset=utf-8",
    ),
    document("charset-is-wrong", b"\xfd\xfc\xfb" * 99 + LINK, ONE, "text/html; charset=utf-8"),
    document("charset-endless", LINK, ONE, "text/html; charset=" + "x" * 9000),
    document("charset-utf-7", b"+ADw-script+AD4-" + LINK, ONE, "text/html; charset=utf-7"),
    document("html-without-a-type", b"<!doctype html>" + LINK, ONE, ""),
    document("html-as-octet-stream", b"<html>" + LINK, NONE, "application/octet-stream"),
    document("html-as-plain-text", b"<!doctype html><html>" + LINK, NONE, "text/plain"),
    document("png-as-html", PNG, NONE),
    document("pdf-as-html", PDF + LINK, NONE),
    document("text-without-a-type", WORDS, NONE, ""),
    document("type-is-no-type", LINK, ONE, "html"),
    document("type-doubled", LINK, ONE, "text/html, text/html"),
    document("empty", b"", NONE),
]

DOCUMENTS = [*DEEP, *DOCUMENT_CASES_LONG, *ODD]


# Replies that break HTTP, or use its rarest parts: one connection, one reply.


WELL = page(200, TEXT, links=1)


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


# All cases by hand, by the crawl that meets them. docs/internals/hostile-web.md has their outcomes.


GROUPS: dict[str, Sequence[Case]] = {
    "Hosts without an end": [*LIMITS, LORIS[0]],
    "Broken HTTP": WIRE,
    "Links and redirects": LINKS,
    "Names and certificates": HOSTS,
    "robots.txt": ROBOTS,
    "Documents": DOCUMENTS,
}
"""Cases by heading of the docs. One slow-loris host stands for all."""
