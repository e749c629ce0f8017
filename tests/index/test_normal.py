"""larmspider/index/normal.py: one spelling for each word."""

from __future__ import annotations

import sys
from unicodedata import decimal, normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larmspider.index.normal import (
    _SIGNS,
    DIGITS,
    FOLDED,
    IGNORED,
    Offsets,
    normalized,
    offset_in,
)

ODD = st.text(
    st.one_of(
        st.sampled_from("aeo .\u0301\u0327\u1100\u1161\u11a8\u3099\uff76\uff9e\u09c7\u09be\u2026"),
        st.characters(exclude_categories=["Cs"]),
    )
)


@settings(max_examples=50)
@given(ODD)
def test_is_nfkc_but_for_signs_and_what_is_not_shown(text: str) -> None:
    for char in (*_SIGNS, *IGNORED):
        text = text.replace(char, "")
    expected = normalize("NFKC", text)
    for char, plain in (*FOLDED.items(), *DIGITS.items()):
        expected = expected.replace(char, plain)
    assert normalized(text) == expected


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_normal_text_is_itself(text: str) -> None:
    """The same object, by which callers know that offsets are the same."""
    plain = normalized(text)
    assert normalized(plain) is plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("co\u00adop\u200bera\u200cti\u200dve\ufeff", "cooperative"),
        ("1\u00bd", "1 1\u20442 "),
        ("\u2116 5", " No  5"),
        ("Java\u2122", "Java "),
        ("Ｃ＋＋", "C++"),
        ("I\u0307stanbul", "Istanbul"),
        (
            "\u0627\u0644\u0639\u0627\u0645 \u0662\u0660\u0662\u0664",
            "\u0627\u0644\u0639\u0627\u0645 2024",
        ),
        (
            "\u06f1\u06f4\u06f0\u06f3 \u0968\u0966 \u0e52\u0e55\u0e56\u0e57 \u09e8 \U0001e951",
            "1403 20 2567 2 1",
        ),
        (
            "\u06a9\u0627\u0631\u0645\u0646\u062f\u0627\u0646",
            "\u0643\u0627\u0631\u0645\u0646\u062f\u0627\u0646",
        ),
        (
            "\u0634\u0631\u06a9\u062a \u0645\u06cc\u200c\u06a9\u0646\u062f",
            "\u0634\u0631\u0643\u062a \u0645\u064a\u0643\u0646\u062f",
        ),
        ("\u2460 \u00b2", "1 2"),
        ("\u043e\u0442\u0447\u0435\u0308\u0442", "\u043e\u0442\u0447\u0435\u0442"),
    ],
)
def test_what_is_left_out_and_what_stands_apart(text: str, expected: str) -> None:
    assert normalized(text) == expected


def test_the_digits_of_all_scripts_are_ours() -> None:
    """As far as Python's Unicode knows them (Nd)."""
    digits = [char for char in map(chr, range(sys.maxunicode)) if decimal(char, None) is not None]
    assert {normalized(char) for char in digits} == set("0123456789")
    assert len(digits) > 600


@pytest.mark.parametrize("before", ["", "x" * 2_500, "e\u0301 " * 400])
def test_a_place_in_the_normal_form_is_one_in_the_text(before: str) -> None:
    """Accents and hyphens belong to the letter before them."""
    text = f"{before}see cafe\u0301s and more"
    start = normalized(text).index("cafés")
    assert text[offset_in(text, start) : offset_in(text, start + 5)] == "cafe\u0301s"
    assert Offsets(text[len(before) :]).span(4, 8) == (4, 9)
