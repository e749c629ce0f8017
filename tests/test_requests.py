"""larmspider/requests.py: what of Request.meta is ours, and whose."""

from __future__ import annotations

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


def test_a_page_request_for_another_url_is_none() -> None:
    """replace(url=...) keeps the meta, which is then about the first URL."""
    assert not is_page_request(page_request(SPIDER, "http://h/").replace(url="http://h/b"), SPIDER)
