"""Extractors are found by media type."""

import pytest

from larmspider.extraction import html
from larmspider.extraction.formats import EXTRACTORS, extract_plain_text, extractor_for


@pytest.mark.parametrize(
    ("mime", "extractor"),
    [
        ("text/html", html.extract),
        ("Text/HTML; charset=utf-8", html.extract),
        ("application/xhtml+xml", html.extract),
        ("text/plain", extract_plain_text),
        ("application/pdf", None),
        ("", None),
    ],
)
def test_extractor_of_a_media_type(mime, extractor):
    assert extractor_for(mime) is extractor


def test_every_extractor_makes_a_page_of_nothing():
    for extract in EXTRACTORS.values():
        page = extract(b"", "http://h/", None)
        assert (page.url, page.links, page.text) == ("http://h/", [], "")
