"""larmspider/urls/syntax.py: no password is shown, whether the URL parses or not."""

from __future__ import annotations

import time

import pytest

from larmspider.errors import InvalidURL
from larmspider.urls.canonical import canonicalize
from larmspider.urls.resolve import parse_base
from larmspider.urls.syntax import without_userinfo


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@h/a@b", "http://h/a@b"),
        ("http://user:secret@[bad", "http://[bad"),
        ("HTTPS://u:secret@h:99999/", "HTTPS://h:99999/"),
        ("http://u:p@secret@[", "http://["),
        (r"http:\\u:secret@[bad\x", r"http:\\[bad\x"),
        ("http:u:secret@[", "http:["),
        ("  ht\ttp://u:sec\nret@[", "  http://["),
        ("//u:secret@[bad/x", "//[bad/x"),
        ("ftp://u:secret@h/f", "ftp://h/f"),
        ("ssh://git:secret@h/f", "ssh://h/f"),
        ("http://h/?mail=a@b", "http://h/?mail=a@b"),
        ("http://h#a@b", "http://h#a@b"),
        ("mailto:a@b", "mailto:a@b"),
        ("news@example", "news@example"),
        ("http://a@b:c@h/", "http://h/"),
        ("HTTPS://joe@h:81?q=a@b", "HTTPS://h:81?q=a@b"),
        ("http://h\\@b/", "http://h\\@b/"),
        ("http://h/", "http://h/"),
        ("", ""),
    ],
)
def test_user_and_password_go(url: str, shown: str) -> None:
    """From every URL that has a host; an @ elsewhere stays."""
    assert without_userinfo(url) == shown
    assert without_userinfo(shown) == shown


@pytest.mark.parametrize("ask", [canonicalize, parse_base])
@pytest.mark.parametrize(
    "url", ["http://u:secret@[bad", "http://u:secret@h\ud800/", "http://u:secret@" + "a" * 3000]
)
def test_an_error_shows_no_password(ask: object, url: str) -> None:
    """Its message names the URL, and goes into logs."""
    assert callable(ask)
    with pytest.raises(InvalidURL) as raised:
        ask(url)
    assert "secret" not in str(raised.value)


def test_long_strings_take_linear_time() -> None:
    """A megabyte of slashes, of @ or of a user name is over at once."""
    before = time.process_time()
    for url in ("/" * 10**6 + "@", "http://" + "@" * 10**6, "http://" + "a" * 10**6, "a" * 10**6):
        without_userinfo(url)
        without_userinfo(url + "/@")
    assert time.process_time() - before < 1.0
