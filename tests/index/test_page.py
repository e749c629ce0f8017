"""larmspider/index/page.py: what the index keeps of a page comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.index.packed import PackedPages
from larmspider.index.page import IndexedPage
from larmspider.index.schema import indexed_page
from larmspider.items import Page, Part


@pytest.fixture
def page() -> IndexedPage:
    part = Part("in it.txt", "text/plain", 9, text="inside", digest="1")
    return indexed_page(
        Page("http://wiki.example/a.zip", text="word", parts=[part], fields={"room": ["4"]}), "2"
    )


def test_a_page_comes_back_without_what_is_not_kept(page: IndexedPage, tmp_path: Path) -> None:
    """Parts are documents of their own; the text outside of links is not stored."""
    page.outside = "some text"
    packed = PackedPages(tmp_path)
    found = IndexedPage.of(packed.unpack(packed.pack(page.fields())))
    assert (found.parts, found.outside) == (None, None)
    page.parts = page.outside = None
    assert found == page


def test_a_part_names_its_container_and_has_no_fields_of_the_document(page: IndexedPage) -> None:
    (part,) = page.parts or ()
    assert (part.container, part.host, part.fetched) == (page.key, page.host, page.fetched)
    assert not part.fields().keys() & {"own", "elsewhere", "modified"}


def test_a_field_of_another_version_is_left_out(page: IndexedPage) -> None:
    assert IndexedPage.of(page.fields() | {"links": 3}).key == page.key


def test_a_page_without_a_field_that_all_have_is_refused(page: IndexedPage) -> None:
    fields = page.fields()
    del fields["url"]
    with pytest.raises(TypeError, match="url"):
        IndexedPage.of(fields)
