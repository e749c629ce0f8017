"""larmspider/requests.py: what of Request.meta is ours, and whose."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider

from larmspider.requests import (
    is_page_request,
    normalized_of,
    page_request,
    url_without_userinfo,
    without_userinfo,
)
from larmspider.urls.canonical import canonicalize

SPIDER = Spider("test")


def test_the_canonical_form_of_another_url_is_not_trusted() -> None:
    """meta=response.meta hands on the parent's, which is known: the child would not be fetched."""
    parent = page_request(SPIDER, "http://h/A", normalized="http://h/a")
    child = Request("http://h/B", meta=parent.meta)
    assert normalized_of(child, canonicalize) == "http://h/b"
    assert child.meta["normalized"] == "http://h/b"
    assert normalized_of(parent, canonicalize) == "http://h/a"


def test_the_canonical_form_is_made_once() -> None:
    """The same URL has the same form; the second filter in the chain need not ask."""
    request = Request("http://h/A")
    normalized_of(request, canonicalize)
    assert normalized_of(request, lambda url: "not asked") == "http://h/a"


def test_a_page_request_is_one_whatever_spelling_scrapy_gives_its_url() -> None:
    """Request escapes what stands bare in a URL."""
    assert is_page_request(page_request(SPIDER, "http://h/ü |x"), SPIDER)


def test_a_page_request_for_another_url_is_none() -> None:
    """replace(url=...) keeps the meta, which is then about the first URL."""
    assert not is_page_request(page_request(SPIDER, "http://h/").replace(url="http://h/b"), SPIDER)


@pytest.mark.parametrize(
    "url, expected",
    [
        ("http://joe:word@h/a", "http://h/a"),
        ("HTTPS://joe@h:81?q=a@b", "HTTPS://h:81?q=a@b"),
        ("http://a@b:c@h/", "http://h/"),
        ("http://h/a@b", "http://h/a@b"),
        ("http://h?q=a@b", "http://h?q=a@b"),
        ("http://h#a@b", "http://h#a@b"),
        ("http://h\\@b/", "http://h\\@b/"),
        ("mailto:joe@h", "mailto:joe@h"),
        ("http://h/", "http://h/"),
    ],
)
def test_user_and_password_in_a_url_are_dropped(url: str, expected: str) -> None:
    """And nothing else that has an @."""
    assert url_without_userinfo(url) == expected
    request = Request("http://h/?a@b", meta={"a": 1})
    assert without_userinfo(request) is request
    kept = without_userinfo(request.replace(url="http://joe:word@h/?a@b"))
    assert (kept.url, kept.meta) == (request.url, request.meta)
