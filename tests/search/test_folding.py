"""Texts in lower case, without accents."""

from __future__ import annotations

import unicodedata
from string import ascii_lowercase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from larmspider.search.folding import folded

GREEK = "αεηιουωρ"
STROKES = str.maketrans("øłđħŧıς", "oldhtiσ")


def slowly(text: str) -> str:
    """The same, each character by itself."""
    found = ""
    for char in text:
        parts = unicodedata.normalize("NFD", char.lower())
        base, marks = parts[0], parts[1:]
        plain = (
            bool(marks)
            and base in ascii_lowercase + GREEK
            and all(map(unicodedata.combining, marks))
        )
        found += base if plain else char.lower() if len(char.lower()) == 1 else char
    return found.translate(STROKES)


CASED = st.characters(exclude_categories=["Cs"], max_codepoint=0x2FFF)


@given(st.text(CASED | st.sampled_from("漢🔥")))
@example("ÄÖÜ “Quoted” İstanbul \N{ANGSTROM SIGN}")
@example("Łódź, Ærøskøbing, Straße, ΟΔΟΣ ΟΔΟΣ, 🔥")
def test_letters_lose_their_accents_and_keep_their_place(text: str) -> None:
    """Whether few others stand around them, or many; in a long text and in a short one."""
    for long in (text, f"A{text}Z" + 300 * "Word ", f"A{text}Z" + 2_000 * "Wört "):
        assert folded(long) == slowly(long)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("HÄUSER", "hauser"),
        ("Tiếng Việt", "tieng viet"),
        ("Été à l’École, ça et là " * 90, "ete a l’ecole, ca et la " * 90),
        ("Слово й " * 900, "слово й " * 900),
        ("漢字", "漢字"),
        ("ΟΔΟΣ οδος", "οδοσ οδοσ"),
        ("Straße", "straße"),
        ("Λιμάνι ΆΪΰ", "λιμανι αιυ"),
        ("İ" * 9, "i" * 9),
    ],
)
def test_what_is_folded(text: str, expected: str) -> None:
    """Latin and Greek letters alone; what is no single letter then stays."""
    assert folded(text) == expected
