"""Words as numbers, all at once."""

from __future__ import annotations

import random

import pytest

from larmspider.extraction.fingerprint import simhash
from larmspider.extraction.words import Words

CHANCE = random.Random(7)
LONG = " ".join(f"{CHANCE.random()}"[2 : CHANCE.randrange(4, 20)] for _ in range(2_000))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "a", "a b", "a b c", "\ud800 b", LONG, LONG.upper(), LONG.replace(" ", " \n\t")),
        *("x" * 300, "\u6f22\u5b57 " + "\u5b57\u6f22" * 100, "\u00dcber\xa0uns " * 300),
    ],
)
def test_a_simhash_is_the_same_one_word_after_the_other(text: str) -> None:
    assert Words(text).simhash() == simhash(text)


def test_rows_go_by_the_words_wherever_they_stand() -> None:
    """One in eight words begins one."""
    one, other = Words(LONG), Words(f"Na\u00efve {LONG} words")
    rows, moved = one.rows(5, 8), other.rows(5, 8)
    assert {at + 1: row for at, row in rows.items()}.items() <= moved.items()
    assert 0.1 < len(rows) / len(one) < 0.15
    assert len(set(rows.values())) == len(rows)
    assert Words("one two").rows(5, 8) == {}


def test_words_have_a_place_in_the_text() -> None:
    text = " \u0130stanbul  is \ud800 a\tcity "
    spans = Words(text).places([(0, 1), (1, 3), (4, 5)])
    assert [text[start:end] for start, end in spans] == ["\u0130stanbul", "is \ud800", "city"]
