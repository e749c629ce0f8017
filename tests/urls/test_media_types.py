"""Which Content-Types and URLs announce a document."""

import pytest

from larmspider.urls.media_types import is_document


@pytest.mark.parametrize(
    ("content_type", "url", "expected"),
    [
        ("application/pdf", "http://h/a", True),
        ("Application/PDF; x=y", "http://h/a", True),
        ("application/octet-stream", "http://h/a.pdf", True),
        ("", "http://h/a.docx", True),
        ("", "http://h/a", False),
        ("text/html", "http://h/a.pdf", False),
        ("image/png", "http://h/a.pdf", False),
    ],
)
def test_what_the_head_announces_as_a_document(content_type, url, expected):
    assert is_document(content_type, url) is expected
