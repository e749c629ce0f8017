"""What sitemaps, feeds and directory listings say, and what they may not do."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest

from larmspider.extraction import sitemap
from larmspider.extraction.html import extract
from larmspider.extraction.sitemap import LARGE_BYTES, MAX_ROWS, Entry, listed, read, time_of
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
    """What stood before the place counts, but for documents with entities of their own."""
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


# What a server makes large holds up no other thread.


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
