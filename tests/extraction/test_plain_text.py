"""Plain text is its own text."""

from hypothesis import given
from hypothesis import strategies as st

from larmspider.extraction.formats import extract_plain_text
from larmspider.extraction.page_builder import MAX_TEXT


def test_text_without_title_or_links():
    page = extract_plain_text(
        b"Read me\n\n<a href=x>  http://h/ caf\xe9\n", "http://h/README", "text/plain"
    )
    assert (page.title, page.links) == ("", [])
    assert page.text.startswith("Read me <a href=x> http://h/ caf")


def test_charset_of_the_header_counts():
    page = extract_plain_text("Мир".encode("koi8-r"), "http://h/", "text/plain; charset=koi8-r")
    assert (page.text, page.charset) == ("Мир", "koi8-r")


def test_text_has_a_limit():
    assert len(extract_plain_text(b"x" * (MAX_TEXT + 1), "http://h/", None).text) == MAX_TEXT


@given(st.binary(max_size=200))
def test_any_bytes_are_a_page(body):
    assert len(extract_plain_text(body, "http://h/", None).text.splitlines()) <= 1
