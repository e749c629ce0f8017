"""Which URLs are views of the page that names them."""

import pytest

from larmspider.urls.url_class import UrlClasses
from larmspider.urls.view_of import view_of, words_path

H = "http://h"


@pytest.mark.parametrize(
    ("url", "found_on", "of"),
    [
        ("/rows/17.json", "/rows/17", "/rows/17"),
        ("/page.md", "/page.html", "/page.html"),
        ("/rows.json?sort=a", "/rows?sort=a", "/rows?sort=a"),
        ("/blame/src/a.c", "/tree/src/a.c", "/tree/src/a.c"),
        ("/blame/src/a.c", "/tree/src", "/tree/src/a.c"),
        ("/history?page=Start", "/Start", "/Start"),
        ("/wiki/special:links/start", "/wiki/start", "/wiki/start"),
        ("/5.2/os.html", "/5.1/os.html", ""),
        ("/rows/17.html", "/rows/17", ""),
        ("/rows.json?sort=b", "/rows?sort=a", ""),
        ("/find?page=7", "/7", ""),
        ("/blame", "/tree", ""),
        ("/rows/18.json", "/rows/17", ""),
    ],
)
def test_views_share_all_but_a_suffix_or_a_word_with_their_page(
    url: str, found_on: str, of: str
) -> None:
    assert view_of(H + url, H + found_on) == (H + of if of else "")


def test_a_page_of_another_host_has_no_view_here() -> None:
    assert view_of("http://one/17.json", "http://other/17") == ""


def test_a_format_is_a_class_of_its_own_and_a_version_is_none() -> None:
    classes = UrlClasses()
    paths = ("/rows/17", "/rows/17.json", "/rows/a.html", "/rows/v1.2", "/rows/.git")
    found = [str(classes.of(H + path)) for path in paths]
    assert found == ["/rows/*", "/rows/*.json", "/rows/*", "/rows/*", "/rows/*"]


def test_a_file_behind_a_word_of_views_is_a_name_though_a_query_follows() -> None:
    assert str(UrlClasses().of(f"{H}/works/diff/src/a.txt?id=1")) == "/works/diff/src/*.txt?id=*"


def test_all_views_of_a_word_have_one_path() -> None:
    assert words_path("/works/blame/src/*.c") == "/works/blame/**"
    assert words_path("/works/tree/*") == ""
