"""Two fetches: one page, or two?"""

from __future__ import annotations

import pytest

from larmspider.extraction.fingerprint import MAX_NUMBERS, Details, fingerprint
from larmspider.items import Link, Page

LONG = "Enough words that the text alone says which page it is, and no link need be asked. " * 4


def page(text: str = "", title: str = "", body: bytes = b"", links: tuple[str, ...] = ()) -> Page:
    return Page(
        "http://h/",
        text=text,
        title=title,
        body=body,
        links=[Link(url, url.partition("?sid=")[0]) for url in links],
    )


@pytest.mark.parametrize(
    "one, other, same",
    [
        (page(LONG, "t"), page(LONG, "t", b"<p nonce=1>"), True),
        (page(LONG, "t"), page(LONG, "u"), False),
        (page(LONG), page(LONG + "!"), False),
        (page(LONG, links=("http://h/a",)), page(LONG, links=("http://h/b",)), True),
        (page("menu", links=("http://h/a",)), page("menu", links=("http://h/b",)), False),
        (
            page("menu", links=("http://h/a?sid=1",)),
            page("menu", links=("http://h/a?sid=2",)),
            True,
        ),
        (page(body=b"<app src=a>"), page(body=b"<app src=b>"), False),
        (page(body=b"\x89PNG"), page(body=b"\x89PNG"), True),
        (page(LONG + "\ud800"), page(LONG + "\ud800"), True),
    ],
)
def test_text_counts_and_markup_does_not(one: Page, other: Page, same: bool) -> None:
    """Of a page with little text the links count too, of one without either the bytes."""
    assert (fingerprint(one) == fingerprint(other)) is same


@pytest.mark.parametrize(
    "one, other, differing",
    [
        ("at 12:30", "at 9:05", 2),
        ("of 2026-11-22", "of 2026-12-22", 1),
        ("id 4F1C9A77 here", "id 8c0d11 here", 1),
        ("chapter 1", "chapter 1", 0),
        ("chapter 1", "Chapter 1", None),
        ("1 of 2", "1 of", None),
    ],
)
def test_numbers_are_words_with_a_digit(one: str, other: str, differing: int | None) -> None:
    """Dates, counters and ids; None: more than these differs."""
    first, second = Details.of(page(LONG + one)), Details.of(page(LONG + other))
    assert first is not None
    assert second is not None
    found = first.differing(second)
    assert (None if found is None else len(found)) == differing


@pytest.mark.parametrize("text", ["1 " * (MAX_NUMBERS + 1), "x" * (2 << 20)])
def test_too_much_to_compare_is_not_compared(text: str) -> None:
    """A page with thousands of numbers, or of megabytes."""
    assert Details.of(page(text)) is None


def test_the_expression_for_numbers_is_linear() -> None:
    """A word of a million letters, with and without a digit at its end; else it takes hours."""
    for end in ("", "1"):
        assert Details.of(page("x" * 1_000_000 + end)) is not None
