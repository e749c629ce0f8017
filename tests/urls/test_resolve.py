"""Links resolve as in browsers, and no string makes resolution raise."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.errors import InvalidURL
from larmspider.urls.resolve import LinkResolver, location_of, parse_base, resolve
from larmspider.urls.seeds import read_seeds

SUITE = Path(__file__).parents[2] / ".." / "shared" / "suites" / "whatwg-url" / "http_subset.json"


def suite(part: str) -> list[dict[str, Any]]:
    if not SUITE.exists():
        pytest.skip(f"peer test data absent: {SUITE}")
    cases: list[dict[str, Any]] = json.loads(SUITE.read_text())[part]
    return cases


def resolved(case: dict[str, Any]) -> str | None:
    # A case without a base is absolute or wrong; nothing is relative to about:blank.
    return resolve(case["base"] or "about:blank", case["input"])


@pytest.mark.parametrize(
    "href, expected",
    [
        ("../Help#top", "http://wiki.example/Help"),
        ("", "http://wiki.example/Main/Start?x=1"),
        ("#top", "http://wiki.example/Main/Start?x=1"),
        ("?y", "http://wiki.example/Main/Start?y"),
        ("  a b\n.html ", "http://wiki.example/Main/a%20b.html"),
        ("//other.example:80/A", "http://other.example/A"),
        (r"\\other.example\A", "http://other.example/A"),
        ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
        ("https://user:word@h/", "https://h/"),
        ("http://a@b:c@h:81?x=@/@", "http://h:81/?x=@/@"),
        ("http:\\\\@h/a@b", "http://h/a@b"),
        ("ftp://user:word@h/", "ftp://h/"),
        ("mailto:a@b#c", "mailto:a@b"),
        ("http://u:word@XN--Pokxncvks:80/A b#c", "http://xn--pokxncvks/A%20b"),
        ("index.html;jsessionid=1", "http://wiki.example/Main/index.html;jsessionid=1"),
        ("/a/.b/../c?x=/.a/../", "http://wiki.example/a/c?x=/.a/../"),
        ("/a/.b/%2E./%2e/c//../d", "http://wiki.example/a/c/d"),
        ("mailto:a@b/.c/../d", "mailto:a@b/.c/../d"),
        ("http://[", None),
        ("http://h:99999/", None),
        ("http://a b/", None),
        ("\ud800", None),
    ],
)
def test_resolves_as_it_will_be_fetched(href: str, expected: str | None) -> None:
    """The result is absolute and without fragment; nothing of it is canonicalized away."""
    page = "http://wiki.example/Main/Start?x=1#here"
    assert resolve(parse_base(page), href) == expected
    assert resolve(page, href) == expected


@pytest.mark.parametrize("url", ["", "/relative", "http://[", "\ud800", "http://" + "é" * 5000])
def test_what_is_no_base_is_said_by_parse_base_and_resolves_nothing(url: str) -> None:
    """parse_base raises InvalidURL, resolve with such a base gives None."""
    with pytest.raises(InvalidURL):
        parse_base(url)
    assert resolve(url, "/a") is None


@given(st.text() | st.text(alphabet=st.characters(codec=None)))
def test_never_raises(href: str) -> None:
    """Any string, lone surrogates included, gives an absolute URL without fragment or None."""
    url = resolve("http://wiki.example/Main/", href)
    assert url is None or ("#" not in url and ":" in url and url.isascii())


@pytest.mark.parametrize(
    "href",
    [
        "//a" + "\u0301\u0316" * 50_000 + "/",
        "http://" + "".join(chr(0x4E00 + i % 20_000) for i in range(50_000)) + "/",
        "ht\ntp:" + "\t/" * 3000 + "é" * 100_000,
        "//" + "%CC%81" * 50_000,
        "//u:p@a@" + "é" * 100_000,
    ],
)
def test_a_host_of_endless_length_costs_no_time(href: str) -> None:
    """IDNA takes seconds for these; a host longer than any name does not get that far."""
    before = time.process_time()
    assert resolve("http://wiki.example/", href) is None
    assert time.process_time() - before < 0.25


@pytest.mark.parametrize("length", [3000, 300_000])
def test_long_paths_and_opaque_urls_resolve(length: int) -> None:
    """Only the host is limited."""
    long = "a" * length
    assert resolve("http://h/", long) == "http://h/" + long
    assert resolve("http://h/", f"http://u{long}@other/{long}") == f"http://other/{long}"
    assert resolve("http://h/", f"javascript:{long}") == f"javascript:{long}"


def test_whatwg_suite_resolves() -> None:
    """All 247 http cases of the standard's tests, without fragment and userinfo."""
    cases = suite("resolve_ok")
    assert len(cases) == 247
    for case in cases:
        expected = case["href"].partition("#")[0]
        authority = urlsplit(expected).netloc
        expected = expected.replace(authority, authority.rpartition("@")[2], 1)
        assert resolved(case) == expected, case


def test_whatwg_suite_rejects() -> None:
    """All 199 cases that must fail give None."""
    cases = suite("must_fail")
    assert len(cases) == 199
    assert [case for case in cases if resolved(case) is not None] == []


@pytest.mark.parametrize(
    "header, url",
    [
        (b"/caf\xe9.html", "http://h/caf%E9.html"),
        ("/café.html?ü".encode(), "http://h/caf%C3%A9.html?%C3%BC"),
        ("http://bücher.example/".encode(), "http://xn--bcher-kva.example/"),
        (b" //b\xfccher.example/ ", None),
    ],
)
def test_a_location_is_taken_as_its_bytes(header: bytes, url: str | None) -> None:
    """UTF-8 or not, the crawl requests the path that the server named; a host must be UTF-8."""
    assert resolve("http://h/x", location_of(header)) == url


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("b?c#d", "http://a.xn--pokxncvks:81/x/b?c"),
        ("/", "http://a.xn--pokxncvks:81/"),
        ("//h/", "http://h/"),
        ("https://xn--/z", "https://xn--/z"),
        ("mailto:a@b", "mailto:a@b"),
        ("http://[", None),
    ],
)
def test_links_of_a_host_whose_punycode_decodes_to_nothing(href: str, expected: str | None) -> None:
    """The parser refuses it; the DNS may know it."""
    base = "http://A.xn--pokxncvks:81/x/y"
    assert resolve(base, href) == expected
    assert LinkResolver(base, None).resolve_or_none(href) == expected
    assert LinkResolver("http://h/", base).resolve_or_none(href) == expected
    assert read_seeds(base) == [base.lower()]
