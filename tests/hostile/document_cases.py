"""Documents that arrive in good order, and are too deep, too long, or not what they say."""

from __future__ import annotations

from functools import cache

from tests.support.hostile.behaviours import MB, html, reply, site
from tests.support.hostile.outcome import Outcome, page
from tests.support.hostile.server import Case

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
    """One tag with so many; every ``hides`` th has a value that looks like other tags."""
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
    """So many links to such paths."""
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
LONG = [
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

DOCUMENTS = [*DEEP, *LONG, *ODD]
