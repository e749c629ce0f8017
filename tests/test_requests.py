"""larmspider/requests.py: what of Request.meta is ours, and whose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider

from larmspider.requests import (
    is_page_request,
    normalized_of,
    page_request,
)
from larmspider.urls.canonical import Canonicalizer

SPIDER = Spider("test")


def test_the_canonical_form_of_another_url_is_not_trusted() -> None:
    """meta=response.meta hands on the parent's, which is known: the child would not be fetched."""
    parent = page_request(SPIDER, "http://h/A", normalized="http://h/a")
    child = Request("http://h/B", meta=parent.meta)
    assert normalized_of(child, Canonicalizer().forms) == "http://h/b"
    assert child.meta["normalized"] == "http://h/b"
    assert normalized_of(parent, Canonicalizer().forms) == "http://h/a"


def test_the_canonical_form_is_made_once() -> None:
    """The same URL has the same form; the second filter in the chain need not ask."""
    request = Request("http://h/A")
    normalized_of(request, Canonicalizer().forms)
    assert normalized_of(request, lambda url: ("not", "asked")) == "http://h/a"


def test_a_page_request_is_one_whatever_spelling_scrapy_gives_its_url() -> None:
    """Request escapes what stands bare in a URL."""
    assert is_page_request(page_request(SPIDER, "http://h/ü |x"), SPIDER)


@pytest.mark.parametrize(
    "url",
    [
        "http://h/A.b~/%41%zz;c=d?e=(f)&g=$h",
        "http://10.0.0.7:45678/?a?b",
        "https://wiki.example:443/",
        "http://h/?a'b",
        "http://h/a?",
        "http://h:080/",
        "http://h:65535/",
        "http://H/ü|",
        "http://me:secret@h/ a",
        "http://h",
    ],
)
def test_a_page_request_has_the_url_that_scrapy_makes_of_it(url: str) -> None:
    """On the fast way and on Scrapy's own; a URL that replaces it is escaped."""
    request = page_request(SPIDER, url)
    assert request.url == Request(url).url
    assert request.replace(url="http://h/ü").url == "http://h/%C3%BC"


@given(st.text("aA0/._~!$&'()*+,;=:@?-%", max_size=20), st.sampled_from(["", ":80", ":59999"]))
def test_what_is_taken_for_escaped_is(path: str, port: str) -> None:
    url = f"http://h-1.example{port}/{path}"
    assert page_request(SPIDER, url).url == Request(url).url


def test_a_page_request_for_another_url_is_none() -> None:
    """replace(url=...) keeps the meta, which is then about the first URL."""
    assert not is_page_request(page_request(SPIDER, "http://h/").replace(url="http://h/b"), SPIDER)
