"""XHTML is read as the XML that it is."""

import pytest

from larmspider.extraction.pages.xhtml import as_html, extract, extract_columns


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (b"<html><title/>See</html>", "See"),
        (b"<html><script src='x'/>See<style/> it</html>", "See it"),
        (b"<html><noscript/><textarea/><iframe src='x'/>See</html>", "See"),
        (b"<p>a<br/>b<hr/>c</p>", "a b c"),
        (b"<p><![CDATA[1 < 2 & <b>]]></p>", "1 < 2 & <b>"),
        (b"<script>//<![CDATA[\nif (a < b) w('<script src=\"x\"/>')\n//]]></script>See", "See"),
        (b"<!DOCTYPE html [<!ENTITY a '<b>'>]><html>See</html>", "See"),
        (b"<?xml version='1.0'?><?x a > b?><html>See</html>", "See"),
        (b'<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:p>See</h:p></h:html>', "See"),
        (b"<!-- <title/> <![CDATA[ -->See", "See"),
        (b"<p>a <b>no XML", "a no XML"),
        (b"<![CDATA[no end", ""),
    ],
)
def test_an_empty_element_ends_where_it_begins(markup: bytes, text: str) -> None:
    assert extract(markup, "http://h/", None).text == text


def test_an_attribute_without_quotes_is_html() -> None:
    page = extract(b"<a href=/one/>one</a> <a href='/two'/>two", "http://h/", None)
    assert [(link.url, link.anchor) for link in page.links] == [
        ("http://h/one/", "one"),
        ("http://h/two", ""),
    ]


def test_links_as_columns_are_the_same() -> None:
    page, columns = extract_columns(b"<title/><a href='/a'>b</a>", "http://h/", None)
    assert (page.text, list(columns[0])) == ("b", ["http://h/a"])


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "piece", [b"<script>", b"<!--", b"<![CDATA[", b"<a b='", b'<a b="c" ', b"<!DOCTYPE [", b"<?"]
)
def test_what_has_no_end_takes_no_longer_than_its_length(piece: bytes) -> None:
    """A search for the end of each of 50,000 beginnings would take minutes."""
    assert as_html(piece * 50_000) == piece * 50_000
