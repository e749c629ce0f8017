"""Side bars in plain elements are navigation."""

from __future__ import annotations

import pytest

from larmspider.extraction.pages.html import extract

TEXT = "A connection pool is a standard technique. " * 6
LINKS = "".join(f'<li><a href="{n}.html">Menu entry {n}</a></li>' for n in range(9))
PLACES = "".join(f'<li><a href="#p{n}">Section {n}</a></li>' for n in range(4))


def main_text(bar: str) -> str:
    markup = f"<title>Pools</title><body>{bar}<div id=content><h1>Pools</h1>{TEXT}</div>"
    return extract(markup.encode(), "http://a.example/", "text/html").main


@pytest.mark.parametrize(
    "names",
    [
        'id="docs-sidebar"',
        'class="left sidebar"',
        'class="sphinxsidebar"',
        'class="side-nav"',
        'class="main-menu"',
        'id="nav"',
        'class="navbar-left"',
    ],
)
def test_a_list_of_links_with_such_a_name_is_navigation(names: str) -> None:
    """By class or id."""
    assert main_text(f"<div {names}><h3>Menu</h3><ul>{LINKS}</ul></div>") == f"Pools {TEXT}".strip()


@pytest.mark.parametrize(
    "bar",
    [
        f'<div id="navigator"><ul>{LINKS}</ul></div>',
        f'<div class="unavailable"><ul>{LINKS}</ul></div>',
        '<div class="menu">Menu entry 1: soup, and Menu entry 2: <a href=2>fish</a></div>',
        f'<div class="sidebar"><h1>All</h1><ul>{LINKS}</ul></div>',
    ],
)
def test_other_elements_are_not(bar: str) -> None:
    """Other words, few links, or the heading of the page in it."""
    assert "Menu entry 1" in main_text(bar)


def test_its_list_of_places_is_a_table_of_contents() -> None:
    """It says what the page is about."""
    markup = (
        f'<title>Pools</title><body><div class="sidebar"><ul>{LINKS}</ul><ul>{PLACES}</ul></div>'
        f"<div>{TEXT}</div>"
    )
    page = extract(markup.encode(), "http://a.example/", "text/html")
    contents = [page.text[slice(*page.rest[at])].strip() for at in page.contents]
    assert contents == ["Section 0 Section 1 Section 2 Section 3"]
    assert page.main == TEXT.strip()


def test_labels_of_buttons_are_no_text() -> None:
    """Whatever element is a button."""
    markup = f'<title>a</title><p>{TEXT}<span role="button">Copy this</span><button>Run</button>'
    assert extract(markup.encode(), "http://a.example/", "text/html").text == TEXT.strip()
