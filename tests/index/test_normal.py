"""larmspider/index/normal.py: one spelling for each word."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from larmspider.index.normal import _SIGNS, FOLDED, IGNORED, Offsets, normalized, offset_in

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
    for char, plain in FOLDED.items():
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
        ("\u043e\u0442\u0447\u0435\u0308\u0442", "\u043e\u0442\u0447\u0435\u0442"),
    ],
)
def test_what_is_left_out_and_what_stands_apart(text: str, expected: str) -> None:
    assert normalized(text) == expected


@pytest.mark.parametrize("before", ["", "x" * 2_500, "e\u0301 " * 400])
def test_a_place_in_the_normal_form_is_one_in_the_text(before: str) -> None:
    """Accents and hyphens belong to the letter before them."""
    text = f"{before}see cafe\u0301s and more"
    start = normalized(text).index("cafés")
    assert text[offset_in(text, start) : offset_in(text, start + 5)] == "cafe\u0301s"
    assert Offsets(text[len(before) :]).span(4, 8) == (4, 9)
