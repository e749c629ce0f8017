"""larmspider/fetch/sites/cookies.py: which cookies of an origin go back to it."""

from __future__ import annotations

import pytest

from larmspider.fetch.sites.cookies import OriginCookies

LOGIN, PAGE = "http://x/login", "http://x/intern/start"


def sent(*lines: bytes, host: str = "wiki", scheme: str = "http") -> bytes:
    cookies = OriginCookies(scheme, host)
    cookies.take(lines, LOGIN)
    return cookies.header(PAGE)


@pytest.mark.parametrize(
    "host, domain",
    [
        ("wiki", b"Domain=wiki"),
        ("wiki", b"Domain=.wiki"),
        ("wiki", b"DOMAIN = WIKI "),
        ("wiki", b"Domain="),
        ("wiki", b"Domain"),
        ("wiki", b"Domain=."),
        ("wiki", b"Domain=other.example; Domain=wiki"),
        ("wiki.example", b"Domain=wiki.example"),
        ("wiki.example", b"Domain="),
        ("a.wiki.example", b"Domain=wiki.example"),
        ("a.b.wiki.example", b"Domain=.wiki.example"),
        ("127.0.0.1", b"Domain=127.0.0.1"),
        ("::1", b"Path=/"),
        ("[::1]", b"Domain=[::1]"),
    ],
)
def test_a_cookie_of_the_host_goes_back_to_it(host: str, domain: bytes) -> None:
    """RFC 6265 5.2.3 and 5.3: a Domain may equal the host, also without a dot, or be empty."""
    assert sent(b"sid=1; Path=/; " + domain, host=host) == b"sid=1"


@pytest.mark.parametrize(
    "host, domain",
    [
        ("wiki", b"other"),
        ("wiki", b"iki"),
        ("wiki", b"wiki.example"),
        ("wiki.example", b"example"),
        ("wiki.example", b"ki.example"),
        ("wiki.example", b"other.example"),
        ("10.0.0.1", b"0.0.1"),
        ("wiki", b"wiki:8080"),
    ],
)
def test_a_cookie_of_another_host_is_refused(host: str, domain: bytes) -> None:
    assert sent(b"sid=1; Path=/; Domain=" + domain, b"a=b; Path=/", host=host) == b"a=b"


@pytest.mark.parametrize(
    "line, header",
    [
        (b"sid=1; Path=intern", b"sid=1"),
        (b"sid=1; Path=", b"sid=1"),
        (b"sid=1; Path=/intern", b"sid=1"),
        (b"sid=1; Path=/int", b""),
        (b"sid=1; Path=/; Max-Age=soon", b"sid=1"),
        (b"sid=1; Path=/; Max-Age=", b"sid=1"),
        (b"sid=1; Path=/; Max-Age=0", b""),
        (b"sid=1; Path=/; Max-Age=-1", b""),
        (b"sid=1; Path=/; Version=x; Port=", b"sid=1"),
        (b'sid="a b"; Version=1; Path="/"', b'sid="a b"'),
        (b"sid=gr\xfcn; Path=/", b"sid=gr\xfcn"),
        ("sid=gr\u00fcn\u20ac; Path=/".encode(), "sid=gr\u00fcn\u20ac".encode()),
        (b"sid=1; Path=/; Secure", b""),
        (b"sid=1; Path=/; Secure=no", b""),
    ],
)
def test_attributes_count_as_in_a_browser(line: bytes, header: bytes) -> None:
    """A value goes back byte for byte; an attribute that makes no sense is ignored."""
    assert sent(line) == header


def test_a_secure_cookie_goes_back_by_https() -> None:
    assert sent(b"sid=1; Path=/; Secure", scheme="https") == b"sid=1"


def test_a_cookie_that_expires_is_forgotten() -> None:
    cookies = OriginCookies("http", "wiki")
    cookies.take([b"sid=1; Domain=wiki; Path=/"], LOGIN)
    cookies.take([b"sid=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], LOGIN)
    assert cookies.header(PAGE) == b""
