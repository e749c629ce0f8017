"""Words as numbers, all at once."""

from __future__ import annotations

import random

import pytest

from larmspider.extraction.texts.fingerprint import simhash
from larmspider.extraction.texts.words import Words

CHANCE = random.Random(7)
LONG = " ".join(f"{CHANCE.random()}"[2 : CHANCE.randrange(4, 20)] for _ in range(2_000))


NAMES = " ".join(f"example.manual.Page{n:x}.contents of" for n in range(0, 90_000, 600))
TEXTS = [
    *("", " ", "a", "a b", "a b c", "\ud800 b", LONG, LONG.upper(), LONG.replace(" ", " \n\t")),
    *(
        "a b c " * 50 + LONG,
        " ".join(f"{n:x}" for n in range(70_000)),
        NAMES,
        NAMES.replace(" of", ""),
    ),
    *("x" * 300, "\u6f22\u5b57 " + "\u5b57\u6f22" * 100, "\u00dcber\xa0uns " * 300),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_simhash_is_the_same_one_word_after_the_other(text: str) -> None:
    assert Words([text]).simhashes() == [simhash(text)]


def test_each_of_many_texts_is_as_if_it_was_alone() -> None:
    """In any order, side by side."""
    texts = [*TEXTS, *TEXTS[::-1]]
    known = Words(texts)
    alone = [Words([text]) for text in texts]
    assert known.simhashes() == [one.simhashes()[0] for one in alone]
    assert known.rows(5, 8) == [one.rows(5, 8)[0] for one in alone]
    for number, one in enumerate(alone):
        blocks = [(at, at + 1) for at in range(one.number(0))]
        assert known.number(number) == one.number(0)
        assert known.places(number, blocks) == one.places(0, blocks)


def test_rows_go_by_the_words_wherever_they_stand() -> None:
    """One in eight words begins one."""
    words = Words([LONG, f"Na\u00efve {LONG} words", "one two"])
    rows, moved, none = (dict(zip(*found, strict=True)) for found in words.rows(5, 8))
    assert {at + 1: row for at, row in rows.items()}.items() <= moved.items()
    assert 0.1 < len(rows) / words.number(0) < 0.15
    assert len(set(rows.values())) == len(rows)
    assert none == {}


def test_words_have_a_place_in_the_text() -> None:
    text = " \u0130stanbul  is \ud800 a\tcity "
    spans = Words([text]).places(0, [(0, 1), (1, 3), (4, 5)])
    assert [text[start:end] for start, end in spans] == ["\u0130stanbul", "is \ud800", "city"]
