"""Extractors are found by media type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.extraction import plain_text
from larmspider.extraction.body_type import END_BYTES, MAX_NAMES, media_type
from larmspider.extraction.documents import parts, tags
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.pdfs import pdf
from larmspider.extraction.formats import add_outcome, extractor_for
from larmspider.extraction.pages import html, xhtml
from larmspider.extraction.pages.page_builder import MAX_TEXT
from tests.support.documents.corpus import zipped
from tests.support.documents.hostile import ole_of_many_entries


@pytest.mark.parametrize(
    ("mime", "extractor"),
    [
        ("text/html", html.extract),
        ("Text/HTML; charset=utf-8", html.extract),
        ("application/xhtml+xml", xhtml.extract),
        ("text/plain", plain_text.extract),
        ("application/pdf", pdf.extract),
        ("text/x-python", plain_text.extract),
        ("text/troff", plain_text.extract),
        ("application/x-sh", plain_text.extract),
        ("text/css", None),
        ("text/javascript", None),
        ("text/sgml", None),
        ("image/png", tags.extract),
        ("image/x-icon", None),
        ("", None),
    ],
)
def test_extractor_of_a_media_type(mime, extractor):
    assert extractor_for(mime) is extractor


def test_every_extractor_of_the_crawl_makes_a_page_of_nothing():
    for extract in (html.extract, plain_text.extract):
        page = extract(b"", "http://h/", None)
        assert (page.url, page.links, page.text) == ("http://h/", [], "")


# The type of a body, if Content-Type is missing or impossible.


HTML = b"<!DOCTYPE html><title>x</title>"
PDF = b"%PDF-1.7\n"


@pytest.mark.parametrize(
    ("content_type", "body", "mime"),
    [
        ("text/html", HTML, "text/html"),
        ("Text/HTML; charset=utf-8", HTML, "text/html"),
        ("text/html, text/plain", HTML, "text/html"),
        ("text/html", b"", "text/html"),
        ("text/html", PDF, "application/pdf"),
        ("text/html", b"\x89PNG\r\n\x1a\n...", "image/png"),
        ("text/html", b"PK\x03\x04...", "application/zip"),
        ("text/plain", b"GIF89a...", "image/gif"),
        ("text/plain", HTML, "text/plain"),
        ("text/plain", b"a\0b", "text/plain"),
        ("application/pdf", HTML, "text/html"),
        ("application/octet-stream", PDF, "application/pdf"),
        ("text/x-python", b"import os", "text/x-python"),
        ("text/x-python", PDF, "application/pdf"),
        ("application/vnd.ms-excel", b"name;room\nx;4.12\n", "text/csv"),
        ("application/vnd.ms-excel", b"name\troom\nx\t4.12\n", "text/tab-separated-values"),
        ("application/vnd.ms-excel", "name\troom\n".encode("utf-16"), "text/tab-separated-values"),
        ("application/vnd.ms-excel", b"\xef\xbb\xbf<?xml version='1.0'?>", "application/xml"),
        ("application/vnd.ms-excel", b"\x09\x08\x10\0", "application/vnd.ms-excel"),
        ("application/vnd.ms-excel", b"", "application/vnd.ms-excel"),
        ("application/msword", b"words", "text/plain"),
        ("application/java-archive", b"PK\x03\x04...", "application/java-archive"),
        ("", b"This is a.info\n\n\x1f\nFile: a, Node: Top", "text/plain"),
        ("", b"From: a@h\nSubject: b\n\nc", "message/rfc822"),
        ("application/octet-stream", HTML, "application/octet-stream"),
        ("", HTML, "text/html"),
        ("", b"\xef\xbb\xbf\r\n <HTML >", "text/html"),
        ("", b"<!-- hello -->", "text/html"),
        ("", b"<abbreviation>", "text/plain"),
        ("", b"words", "text/plain"),
        ("", b"", "text/plain"),
        ("", b"\xff\xfew\0o\0", "text/plain"),
        ("", b"a\0b", "application/octet-stream"),
        ("", PDF, "application/pdf"),
        ("html", HTML, "text/html"),
        ("*/*", HTML, "text/html"),
        ("unknown/unknown", b"words", "text/plain"),
        ("text/html/x", HTML, "text/html"),
        ("\xff\x00", HTML, "text/html"),
    ],
)
def test_media_type(content_type, body, mime):
    assert media_type(content_type, body) == mime


@pytest.mark.parametrize(
    ("content_type", "name", "mime"),
    [
        ("text/plain", "http://h/a.MD?x=y.csv", "text/markdown"),
        ("text/plain", "http://h/a.html", "text/plain"),
        ("text/html", "http://h/a.csv", "text/html"),
        ("application/octet-stream", "http://h/a.csv", "text/csv"),
        ("application/octet-stream", "http://h/a", "text/plain"),
        ("application/octet-stream", "http://h/a.docx", "text/plain"),
        ("", "a/b.json", "application/json"),
        ("image/png", "http://h/a.csv", "image/png"),
    ],
)
def test_the_name_counts_where_the_server_says_nothing(content_type, name, mime):
    assert media_type(content_type, b"words, more of them", name) == mime


def test_a_container_is_not_opened():
    """Names far from both ends count only in documents/containers.py."""
    body = ole_of_many_entries(2_000)
    assert media_type("", body) == "application/x-ole-storage"
    assert media_type("application/vnd.visio", body) == "application/vnd.visio"
    assert document_type(body, "", "application/vnd.visio") == "application/msword"


def test_names_of_a_zip_file_have_a_limit():
    names = {"[Content_Types].xml": "", **{f"a/{number}": "" for number in range(MAX_NAMES)}}
    assert media_type("", zipped({**names, "word/a.xml": ""})).endswith("wordprocessingml.document")
    far = {f"folder/{number:06}": "" for number in range(2_000)}
    body = zipped({**far, "[Content_Types].xml": "", **dict.fromkeys(map(str, range(2_000)), "")})
    assert media_type("", body) == "application/zip"
    assert body.find(b"[Content_Types].xml") > END_BYTES


def test_no_more_than_both_ends_is_looked_at():
    class Watched(bytes):
        def __contains__(self, _):
            raise AssertionError("all of it")

        def find(self, *place):
            looked.append(place[1:])
            return super().find(*place)

    looked: list[tuple[int, ...]] = []
    media_type("", Watched(ole_of_many_entries(2_000)))
    size = len(ole_of_many_entries(2_000))
    assert set(looked) == {(0, END_BYTES), (size - END_BYTES,)}


# Plain text is its own text.


def test_text_has_its_first_line_as_title_and_no_links():
    page = plain_text.extract(
        b"Read me\n\n<a href=x>  http://h/ caf\xe9\n", "http://h/README", "text/plain"
    )
    assert (page.title, page.links) == ("Read me", [])
    assert page.text.startswith("Read me <a href=x> http://h/ caf")


def test_charset_of_the_header_counts():
    page = plain_text.extract("Мир".encode("koi8-r"), "http://h/", "text/plain; charset=koi8-r")
    assert (page.text, page.charset) == ("Мир", "koi8-r")


def test_text_has_a_limit():
    assert len(plain_text.extract(b"x" * (MAX_TEXT + 1), "http://h/", None).text) == MAX_TEXT


@given(st.binary(max_size=200))
def test_any_bytes_are_a_page(body):
    assert len(plain_text.extract(body, "http://h/", None).text.splitlines()) <= 1


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"N\bNA\bAM\bME\bE\n  _\bf_\bi", "NAME fi"),
        (b"\x1b[1;31merror\x1b[0m at\x1b[K 3", "error at 3"),
        (b"\x1b]0;title\x07word \x1b(B\x1b[?25lend", "word end"),
    ],
)
def test_codes_of_printers_and_terminals_are_no_text(body, text):
    assert plain_text.extract(body, "http://h/a", None).text == text


def test_a_text_that_is_longer_than_what_is_searched_says_so():
    body = b"word " * (MAX_TEXT // 5 + 1)
    page = plain_text.extract(body, "http://h/a.log", None)
    packed = zipped({"a.log": body}, stored=("a.log",))
    (part,) = parts.read("application/zip", packed, "http://h/a.zip", None).parts
    add_outcome(page)
    assert page.unread == part.unread == "too-long: text of the first 4,194,304 characters"
    short = plain_text.extract(b"word", "http://h/a.log", None)
    add_outcome(short)
    assert short.unread == ""
