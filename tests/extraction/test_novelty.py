"""The share of a page that is new to its host."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain
from uuid import UUID

from larmspider.extraction.texts.novelty import Rows, Sketch, apart_of, rows_of
from larmspider.items import Link, Page

_DRAW = random.Random(18)
WORDS = ["".join(_DRAW.choices("abcdefghijklmnop", k=6)) for _ in range(6_000)]


def rows(words: list[str]) -> Rows:
    return rows_of(Page("http://wiki/page", text=" ".join(words)))


def test_a_view_is_known_whichever_sample_was_taken_of_its_page() -> None:
    """A page of 110 words left one row in four, a page of 90 words all rows."""
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


def apart(
    shown: Sketch, *lines: Sequence[str], menu: Sequence[str] = WORDS[4_000:4_800]
) -> tuple[float, float]:
    """The novelty of a page with a menu of this number of links, and of its text outside of links:
    lines with a link between each."""
    text = " ".join([*menu, *(f"{' '.join(line)} item" for line in lines)])
    page = Page("http://wiki/page", text=text)
    page.links = [Link("http://wiki/x", anchor=word) for word in [*menu, *["item"] * len(lines)]]
    found, of_all = apart_of(page), rows_of(page)
    share = shown.share(of_all)
    return share, shown.share_apart(found, of_all.size) if found else 0.0


def test_an_error_page_is_not_new_for_its_reference_and_its_time() -> None:
    shown, draw = Sketch(), random.Random(5)
    said = "An error occurred while the server processed your request. Reference"
    for number in range(20):
        moment = f"2026-11-30 06:{number:02}:48"
        for reference in (str(UUID(int=draw.getrandbits(128))), str(draw.randrange(10**9, 10**12))):
            page = Page(
                f"http://h/item/{number}", text=f"{said} {reference} of {moment}; please retry"
            )
            share = shown.share(rows_of(page))
            assert share < 0.2 or not number


def test_few_words_beside_a_long_menu_are_new_by_themselves() -> None:
    """Once: a page that says the same, or a part of it, is not."""
    shown = Sketch()
    apart(shown, WORDS[:40])
    for at in range(100, 1_000, 100):
        of_all, outside = apart(shown, WORDS[at : at + 40])
        assert of_all < 0.2 < 0.9 < outside
    assert apart(shown, WORDS[100:140])[1] == 0.0
    assert apart(shown, WORDS[110:130])[1] == 0.0


def test_a_list_of_links_that_are_chosen_and_sorted_says_nothing_outside_of_them() -> None:
    """Nor does a table without links in its lines, whose rows of words are others each time."""
    shown, draw = Sketch(), random.Random(5)
    lines = [WORDS[at : at + 5] for at in range(0, 200, 5)]
    for _ in range(5):
        apart(shown, *draw.sample(lines, 20))
        apart(shown, [*chain(*draw.sample(lines, 20))])
    for size in range(5, 40, 5):
        assert apart(shown, *draw.sample(lines, size))[1] == 0.0
        assert apart(shown, [*chain(*draw.sample(lines, size))])[1] == 0.0


def test_prices_and_hours_outside_of_links_are_no_text() -> None:
    shown, draw = Sketch(), random.Random(5)
    line = WORDS[:40]
    apart(shown, line)
    for _ in range(9):
        numbers = [f"{draw.randrange(10**6)}" for _ in range(40)]
        assert apart(shown, line, *(numbers[at : at + 5] for at in range(0, 40, 5)))[1] < 0.2


def test_of_a_part_of_a_longer_page_only_what_that_page_has_shown_is_asked_for() -> None:
    """One row in four was remembered of the longer one, which is not mostly links."""
    shown = Sketch()
    shown.share(rows(WORDS[:300]))
    assert apart(shown, WORDS[100:140])[1] == 0.0
    assert apart(shown, WORDS[1_100:1_140])[1] > 0.9
