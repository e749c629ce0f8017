"""What a page says that its host has not said before."""

from __future__ import annotations

import random

from larmspider.extraction.novelty import Rows, Sketch, rows_of
from larmspider.items import Page

_DRAW = random.Random(18)
WORDS = ["".join(_DRAW.choices("abcdefghijklmnop", k=6)) for _ in range(6_000)]


def rows(words: list[str]) -> Rows:
    return rows_of(Page("http://wiki/page", text=" ".join(words)))


def test_a_view_is_known_whichever_sample_was_taken_of_its_page() -> None:
    """Of a page of 110 words one row in four was remembered, of one of 90 all count."""
    shown = Sketch()
    assert shown.share(rows(WORDS[:110])) == 1.0
    assert shown.share(rows(WORDS[20:110])) < 0.2
    assert shown.share(rows(WORDS[1_000:2_050])) == 1.0
    assert shown.share(rows(WORDS[1_000:1_950])) < 0.1


def test_a_part_of_a_page_that_is_several_times_as_long_is_new() -> None:
    """A mail, of which there was the thread; the thread, of which there were the mails, is not."""
    shown = Sketch()
    shown.share(rows(WORDS[:900]))
    assert shown.share(rows(WORDS[100:220])) > 0.9
    assert shown.share(rows(WORDS[300:420]), of_any=True) == 0.0
    for at in range(2_000, 2_900, 150):
        shown.share(rows(WORDS[at : at + 150]))
    assert shown.share(rows(WORDS[2_000:2_900])) < 0.1


def test_how_often_a_page_was_said_is_counted() -> None:
    """By what is its own: the menu was said by others, more often."""
    shown, menu = Sketch(), WORDS[:20]
    one, other = menu + WORDS[100:190], menu + WORDS[200:290]
    assert [shown.times_said(rows(one), 0.2, 3) for _ in range(5)] == [0, 1, 2, 3, 3]
    one[40] = "changed"
    assert shown.times_said(rows(one), 0.2, 3) == 3
    assert [shown.times_said(rows(other), 0.2, 3) for _ in range(4)] == [0, 1, 2, 3]
