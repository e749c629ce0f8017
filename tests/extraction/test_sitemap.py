"""The entries of sitemaps, feeds and directory listings, and their limits."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest

from larmspider.extraction.pages import sitemap
from larmspider.extraction.pages.html import extract
from larmspider.extraction.pages.sitemap import LARGE_BYTES, MAX_ROWS, Entry, listed, read, time_of
from larmspider.items import Link, Page

NOW = datetime(2026, 11, 22, tzinfo=UTC).timestamp()
URL = "http://wiki/maps/sitemap.xml"


def at(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc]


def urlset(*urls: str, last: str = "2026-11-01T10:00:00Z") -> bytes:
    rows = "".join(f"<url><loc>{url}</loc><lastmod>{last}</lastmod></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="http://s">{rows}</urlset>'.encode()


@pytest.mark.parametrize(
    "body, kind, entries",
    [
        (
            urlset("http://wiki/a", "http://wiki/b?x=1&amp;y=2"),
            "sitemap",
            [
                Entry("http://wiki/a", at(2026, 11, 1, 10)),
                Entry("http://wiki/b?x=1&y=2", at(2026, 11, 1, 10)),
            ],
        ),
        (gzip.compress(urlset("a")), "sitemap", [Entry("http://wiki/maps/a", at(2026, 11, 1, 10))]),
        (
            b"<sitemapindex><sitemap><loc> /1.xml </loc></sitemap></sitemapindex>",
            "index",
            [Entry("http://wiki/1.xml")],
        ),
        (
            b"http://wiki/a\r\nhttp://wiki/b\n",
            "sitemap",
            [Entry("http://wiki/a"), Entry("http://wiki/b")],
        ),
        (
            b"<rss><channel><title>t</title><link>/</link><item><title>n</title><link>/n</link>"
            b"<pubDate>Sun, 01 Nov 2026 10:00:00 +0100</pubDate></item></channel></rss>",
            "feed",
            [Entry("http://wiki/n", at(2026, 11, 1, 9))],
        ),
        (
            b"<rss><channel><item><guid>http://wiki/g</guid></item>"
            b'<item><guid isPermaLink="false">7</guid></item></channel></rss>',
            "feed",
            [Entry("http://wiki/g")],
        ),
        (
            b'<rdf:RDF xmlns:rdf="r" xmlns:dc="d"><channel><link>/</link></channel>'
            b"<item><link>/n</link><dc:date>2026-11-01T10:00Z</dc:date></item></rdf:RDF>",
            "feed",
            [Entry("http://wiki/n", at(2026, 11, 1, 10))],
        ),
        (
            b'<feed xmlns="http://www.w3.org/2005/Atom"><link href="/"/><entry>'
            b'<link rel="edit" href="/edit"/><link href="/n"/><published>2026-10-01T10:00:00Z'
            b"</published><updated>2026-11-01T10:00:00Z</updated></entry></feed>",
            "feed",
            [Entry("http://wiki/n", at(2026, 11, 1, 10))],
        ),
        (b"<!DOCTYPE html><html><a href=x>", "", []),
        (b"\x89PNG", "", []),
        (b"", "", []),
    ],
)
def test_what_a_document_names(body: bytes, kind: str, entries: list[Entry]) -> None:
    found = read(body, URL, now=NOW)
    assert (found.kind, found.entries, found.trouble) == (kind, entries, "")


WARNING = b"<br />\n<b>Warning</b>:  x() in <b>/a.php</b> on line <b>3</b><br />\n"


@pytest.mark.parametrize(
    "body, names",
    [
        (b" \r\n" + urlset("/a"), ["a"]),
        (b"\xef\xbb\xbf\n" + urlset("/a"), ["a"]),
        (WARNING + urlset("/a"), ["a"]),
        (b"Warning: x in y.php on line 3\n" + urlset("/a"), ["a"]),
        (b"<!-- 0.2 s -->\n" + urlset("/a"), ["a"]),
        (urlset("/a").replace(b"<url>", b"<br>" + WARNING + b"<url>"), ["a"]),
        (urlset("/a?x=1&y=2", "/b&copy=3", "/c"), ["a?x=1&y=2", "b&copy=3", "c"]),
        (urlset("/a&nbsp;b", "/gr&uuml;n", "/c&amp;d"), ["a%C2%A0b", "gr%C3%BCn", "c&d"]),
        (urlset("/a&#0;", "/b")[:], ["a%EF%BF%BD", "b"]),
        (urlset("/a", "/b\x0c", "/c"), ["a", "b", "c"]),
        (urlset("/a\0", "/c"), ["a", "c"]),
        (urlset("/a", "/b").replace(b"/a", b"/gr\xfcn"), ["gr%FCn", "b"]),
        (urlset("/gr\u00fcn", "/b", "/c").replace(b"/b", b"/\xfc"), ["gr%C3%BCn", "%FC", "c"]),
        (urlset("/gr\u00fcn&x").decode().encode("utf-16"), ["gr%C3%BCn&x"]),
        (b"<?xml version='1.0' encoding='utf-16'?>" + urlset("/gr\u00fcn"), ["gr%C3%BCn"]),
        (
            urlset("/gr\u00fcn&x")
            .replace(b"?>", b" encoding='latin1'?>")
            .decode()
            .encode("latin-1"),
            ["gr%C3%BCn&x"],
        ),
        (urlset("/a", "/b").replace(b"</loc>", b"", 1), ["a", "b"]),
        (urlset("/a", "/b").replace(b"</url>", b"", 1), ["a", "b"]),
        (urlset("/a", "/b").replace(b"<url>", b"</b><url>"), ["a", "b"]),
        (urlset("/a", "/b")[:-60], ["a"]),
        (urlset("/a") + urlset("/b"), ["a", "b"]),
        (urlset("<![CDATA[/a?x=1&y=2]]>", "/b&c"), ["a?x=1&y=2", "b&c"]),
        (urlset("/a").replace(b"<url>", b"<!-- <url><loc>/no</loc></url> & -- --><url>"), ["a"]),
        (
            urlset("/a&b").replace(
                b"<loc>", b"<image:image><image:loc>/no.jpg</image:loc></image:image><loc>"
            ),
            ["a&b"],
        ),
        (b'\n<s:urlset xmlns:s="s"><s:url><s:loc>/a&b</s:loc></s:url></s:urlset>', ["a&b"]),
        (b"http://wiki/a\nWarning: x\n\nhttp://wiki/b\n", ["a", "b"]),
        (gzip.compress(urlset("/a") * 2), ["a", "a"]),
    ],
)
def test_a_broken_sitemap_is_read_before_and_behind_the_place(
    body: bytes, names: list[str]
) -> None:
    found = read(body, URL, now=NOW)
    assert [entry.url.removeprefix("http://wiki/") for entry in found.entries] == names
    assert (found.kind, found.trouble) == ("sitemap", "broken")
    times = {entry.changed for entry in found.entries}
    assert times <= {None, at(2026, 11, 1, 10)}


@pytest.mark.parametrize(
    "body, kind, names",
    [
        (
            b"\n<?xml version='1.0'?><sitemapindex><sitemap><loc>/1.xml?a&b</loc></sitemap>"
            b"</sitemapindex>",
            "index",
            ["1.xml?a&b"],
        ),
        (
            b"\n<?xml version='1.0'?><rss><channel><link>/</link><item><title>A & B</title>"
            b"<link>/n</link><pubDate>Sun, 01 Nov 2026 10:00:00 GMT</pubDate></item><item>"
            b"<guid>http://wiki/g</guid></item><item><guid isPermaLink='false'>7</guid></item>"
            b"</channel></rss>",
            "feed",
            ["n", "g"],
        ),
        (
            b"\n<?xml version='1.0'?><feed><link href='/'/><entry><title>A & B</title>"
            b"<link rel=edit href='/edit'/><link href='/n?a&amp;b'/><updated>2026-11-01T10:00:00Z"
            b"</updated></entry></feed>",
            "feed",
            ["n?a&b"],
        ),
    ],
)
def test_broken_indexes_and_feeds_are_read(body: bytes, kind: str, names: list[str]) -> None:
    found = read(body, URL, now=NOW)
    assert [entry.url.removeprefix("http://wiki/") for entry in found.entries] == names
    assert (found.kind, found.trouble) == (kind, "broken")


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><pre><urlset><url><loc>/a</loc></url></urlset></pre></html>",
        b"<html><body><p>The page & more: <rss><item><link>/a</link></item></rss>",
        b"<h1>Not found & gone</h1>",
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 300,
    ],
)
def test_a_page_is_no_sitemap(body: bytes) -> None:
    found = read(body, URL, now=NOW)
    assert (found.kind, found.entries, found.trouble) == ("", [], "")


def test_gzip_files_behind_each_other_are_one() -> None:
    whole = urlset("/a", "/b")
    body = gzip.compress(whole[:90]) + gzip.compress(whole[90:])
    assert [entry.url for entry in read(body, URL, now=NOW).entries] == [
        "http://wiki/a", "http://wiki/b",
    ]  # fmt: skip


def test_a_damaged_gzip_file_is_read_up_to_the_place() -> None:
    body = gzip.compress(urlset(*map(str, range(3_000))), 1)
    damaged = body[: len(body) // 2] + b"\xff" * 40 + body[len(body) // 2 + 40 :]
    found = read(damaged, URL, now=NOW)
    assert found.trouble == "broken"
    assert 100 < len(found.entries) < 3_000


@pytest.mark.parametrize(
    "body",
    [
        b"\n<?xml version='1.0'?><urlset>" + b"<url" * 300_000,
        b"\n<?xml version='1.0'?><urlset>" + b"<url>" * 200_000,
        b"\n<?xml version='1.0'?><urlset>" + b"<!--" * 300_000,
        b"\n<?xml version='1.0'?><urlset>" + b"<![CDATA[" * 100_000,
        b"\n<?xml version='1.0'?><urlset><url>" + b"<loc>" * 100_000,
        b"\n<?xml version='1.0'?><urlset><url><link " + b"a=" * 500_000 + b">",
        b"\n<?xml version='1.0'?><urlset><url><loc>" + b"&a" * 500_000,
        gzip.compress(b"") * 40_000,
    ],
    ids=range(8),
)
def test_a_broken_document_is_gone_through_once(body: bytes) -> None:
    """A megabyte takes 0.4 s at most, whatever is in it."""
    before = time.process_time()
    assert read(body, URL, now=NOW).entries == []
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2026-11-01T10:00:00Z", at(2026, 11, 1, 10)),
        ("2026-11-01T10:00:00.123+02:00", at(2026, 11, 1, 8)),
        ("2026-11-01T10:00", at(2026, 11, 2, 0)),
        ("2026-11-01", at(2026, 11, 2, 14)),
        ("Sun, 01 Nov 2026 10:00:00 GMT", at(2026, 11, 1, 10)),
        ("2026-13-01", None),
        ("9999-12-31", None),
        ("2026-11-01T10:00:00+99:99", None),
        ("2026", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_is_the_last_moment_that_it_may_mean(text: str, expected: float | None) -> None:
    """A day as far as its end, wherever the server is."""
    assert time_of(text) == expected


def test_times_to_come_are_ignored() -> None:
    found = read(urlset("/a", last="2027-01-01T00:00:00Z"), URL, now=NOW)
    assert (found.entries, found.future) == ([Entry("http://wiki/a")], 1)


BOMB = (
    b'<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    b"<urlset><url><loc>/&b;</loc></url></urlset>"
)
FILE = (
    b'<!DOCTYPE u [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    b"<urlset><url><loc>/&a;</loc></url></urlset>"
)


@pytest.mark.parametrize(
    "body, trouble, entries",
    [
        (BOMB, "entities", 0),
        (FILE, "entities", 0),
        (urlset("/a", "/b")[:-60], "broken", 1),
        (urlset("/a") + b"<more/>", "broken", 1),
        (gzip.compress(urlset("/a"))[:20] + b"\0" * 40, "broken", 0),
        (b"<urlset>" + b"<a>" * 100_000, "broken", 0),
        (b"<urlset><url><loc>/" + b"x" * 3_000_000 + b"</loc></url></urlset>", "", 0),
        (b"<urlset><url><loc>javascript:alert(1)</loc></url></urlset>", "", 0),
        (b"http://wiki/a\nand more words\n", "broken", 1),
        (urlset(*map(str, range(12))), "too-many", 10),
    ],
    ids=range(10),
)
def test_documents_that_harm_end_in_a_word(
    body: bytes, trouble: str, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries before the place count, except in documents with entities of their own."""
    monkeypatch.setattr(sitemap, "MAX_URLS", 10)
    found = read(body, URL, now=NOW)
    assert (found.trouble, len(found.entries)) == (trouble, entries)


def test_a_document_is_read_as_far_as_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked: 50 MB may be 50 kB on the wire."""
    monkeypatch.setattr(sitemap, "MAX_BYTES", 1_000)
    body = urlset(*map(str, range(1_000)))
    for packed in (body, gzip.compress(body)):
        found = read(packed, URL, now=NOW)
        assert found.trouble == "too-big"
        assert 0 < len(found.entries) < 20


APACHE = """<title>Index of /docs</title><h1>Index of /docs</h1><pre>
<a href="?C=N;O=D">Name</a> <a href="?C=M;O=A">Last modified</a> <hr>
<a href="/">Parent Directory</a>                -
<a href="a.html">a.html</a>      2026-11-01 10:00  1.2K
<a href="sub/">sub/</a>          01-Nov-2026 10:00   -
</pre>"""
LIGHTTPD = """<title>Index of /docs/</title><table>
<tr><td><a href="../">..</a>/</td><td>&nbsp;</td></tr>
<tr><td><a href="a.html">a.html</a></td><td>2026-Nov-01 10:00:00</td><td>1.2K</td></tr></table>"""


@pytest.mark.parametrize(
    "markup, names",
    [(APACHE, ["a.html", "sub/"]), (LIGHTTPD, ["a.html"]), (APACHE.replace("Index of", "In"), [])],
)
def test_the_rows_of_a_listing_have_times(markup: str, names: list[str]) -> None:
    page = extract(markup.encode(), "http://wiki/docs/", None)
    expected = [Entry(f"http://wiki/docs/{name}", at(2026, 11, 2)) for name in names]
    assert listed(page, NOW) == expected


# Documents that a server makes large delay no other thread.


def test_a_list_of_empty_lines_is_read_line_by_line() -> None:
    tracemalloc.start()
    found = read(b"http://h/a\r\n" + b"xx\n" * 3_000_000, "http://h/sitemap.txt", now=NOW)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found.entries, found.trouble) == ([Entry("http://h/a")], "broken")
    assert most < 40_000_000


@pytest.mark.parametrize("start", ["<a b='", "<!--", "<a " + "b='1' " * 20])
def test_a_tag_without_an_end_is_not_gone_through_again_and_again(start: str) -> None:
    body = b"<urlset><url><loc>http://h/a</loc></url>" + start.encode() + b"x" * 20_000_000
    began = time.process_time()
    found = read(body, "http://h/sitemap.xml", now=NOW)
    assert (found.entries, found.trouble) == ([Entry("http://h/a")], "broken")
    assert time.process_time() - began < 0.5


def test_a_large_sitemap_is_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    real = sitemap.read

    def noted(*arguments: Any, **named: Any) -> sitemap.Signals:
        threads.append(threading.current_thread().name)
        return real(*arguments, **named)

    monkeypatch.setattr(sitemap, "read", noted)
    body = b"<urlset><url><loc>http://h/a</loc></url>%s</urlset>"
    for one in (body % b"", body % (b" " * LARGE_BYTES), gzip.compress(body % b"")):
        found = asyncio.run(sitemap.read_aside(one, "http://h/sitemap.xml", now=NOW))
        assert found.entries == [Entry("http://h/a")]
    main = threading.current_thread().name
    assert [name == main for name in threads] == [True, False, False]


def test_a_listing_whose_names_its_text_has_not_is_not_searched_for_each() -> None:
    page = Page("http://h/a/", title="Index of /a", text="x " * 1_000_000)
    page.links = [Link(f"http://h/a/{n}", anchor=f"name-{n}") for n in range(MAX_ROWS)]
    began = time.process_time()
    assert listed(page, NOW) == []
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("encoding", ["gbk", "shift_jis", "foo", "x-user-defined", "idna"])
def test_an_encoding_that_the_parser_does_not_know_raises_nothing(encoding: str) -> None:
    items = "<channel><item><link>http://h/x</link></item></channel>"
    body = f"<?xml version='1.0' encoding='{encoding}'?><rss>{items}</rss>".encode()
    assert [one.url for one in sitemap.read(body, "http://h/feed", now=1e9).entries] == [
        "http://h/x"
    ]
