"""A Request becomes a URL and header lines for libcurl."""

from __future__ import annotations

import pytest
from scrapy import Request

from larmspider.fetch.curl_options import header_lines, url_for_curl
from larmspider.fetch.errors import BadUrl
from larmspider.requests import NOTHING_SECRET


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://wiki/", "http://wiki/"),
        ("http://wiki", "http://wiki"),
        ("http://wiki?q", "http://wiki?q"),
        ("http://under_score.example:8080/a//b/../c?x=[|]", None),
        ("http://[::1]:80/%zz;a='b'", None),
        ("https://xn--bcher-kva.example/%C3%A4?q=%20", None),
        ("http://wiki/a#part", "http://wiki/a"),
        ("http://wiki#part", "http://wiki"),
        ("http://joe:secret@wiki:81/a@b", "http://wiki:81/a@b"),
        ("http://joe@wiki/", "http://wiki/"),
        ("http://wiki/a@b", "http://wiki/a@b"),
        ("http://b\u00fccher.example/\u00e4 b?\u00f6", "http://xn--bcher-kva.example/%C3%A4%20b?%C3%B6"),
        ("http://b\u00fccher.example/a/../%zz", "http://xn--bcher-kva.example/a/../%zz"),
    ],
)  # fmt: skip
def test_the_url_that_is_asked(url: str, asked: str | None) -> None:
    """Path and query as they stand where they can be; None: the same."""
    assert url_for_curl(url) == (asked or url)


@pytest.mark.parametrize("url", ["http://", "http:///a", "http://b\u00fc cher/", "http://u@/"])
def test_no_host(url: str) -> None:
    with pytest.raises(BadUrl):
        url_for_curl(url)


def test_lines_that_turn_off_what_libcurl_adds() -> None:
    """A name and a colon alone; with a body, Expect and its type too."""
    assert header_lines(Request("http://h/"), decode=False) == [b"User-Agent:", b"Accept:"]
    own = {"Accept": "a", "User-Agent": "u"}
    assert header_lines(Request("http://h/", headers=own), decode=False) == [
        b"Accept: a", b"User-Agent: u",
    ]  # fmt: skip
    lines = header_lines(Request("http://h/", headers=own, body="x"), decode=False)
    assert lines[2:] == [b"Expect:", b"Content-Type:"]


@pytest.mark.parametrize("name", ["Proxy-Authorization", "content-length"])
def test_headers_that_are_not_the_requests(name: str) -> None:
    """For the proxy alone; and the length that libcurl counts itself."""
    lines = header_lines(Request("http://h/", headers={name: "1"}), decode=False)
    assert lines == [b"User-Agent:", b"Accept:"]


@pytest.mark.parametrize("name", ["Authorization", "cookie"])
def test_what_names_us_is_left_out_of_a_request_without_secrets(name: str) -> None:
    """As Scrapy's middlewares add it: http_user of a spider, COOKIES_ENABLED."""
    asked = Request("http://h/", headers={name: "1"})
    assert f"{name.title()}: 1".encode() in header_lines(asked, decode=False)
    asked.meta.update(NOTHING_SECRET)
    assert header_lines(asked, decode=False) == [b"User-Agent:", b"Accept:"]


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b"])
def test_a_header_is_one_line(value: str) -> None:
    """Otherwise its value could be headers, or a foreign request."""
    with pytest.raises(BadUrl):
        header_lines(Request("http://h/", headers={"X": value}), decode=False)
    with pytest.raises(BadUrl):
        header_lines(Request("http://h/", headers={value: "x"}), decode=False)


@pytest.mark.parametrize("name", ["A:B", "Bad Name", "X\u00e4", "X;", "X/Y", ""])
def test_the_name_of_a_header_is_a_token(name: str) -> None:
    """RFC 9110 5.1. "A:B" would be a header A, "X;" one without a value."""
    with pytest.raises(BadUrl, match="not a token"):
        header_lines(Request("http://h/", headers={name: "x"}), decode=False)


def test_every_token_is_a_name() -> None:
    name = "!#$%&'*+-.^_`|~09AZ"
    lines = header_lines(Request("http://h/", headers={name: "x"}), decode=False)
    assert lines[0] == f"{name}: x".title().encode().replace(b": X", b": x")
