"""Flags, operators, key chords: words with more than letters and digits."""

from __future__ import annotations

import pytest

from larmspider.index.signs import MAX_SIGNS, operator_sign, signs


@pytest.mark.parametrize(
    "text, found",
    [
        ("./configure --prefix=/usr (-m) -Wall, ls -la", ["--prefix", "-m", "-wall", "-la"]),
        ("a well-known x-y, 3 -1 - no -- and 2024-01-31", []),
        ("C-x C-f, M-x, C-M-f, M-%, C-SPC", ["c-x", "c-f", "m-x", "c-m-f", "m-%", "c-spc"]),
        ("operator==, operator<<(), operator ()", ["operator==", "operator<<", "operator()"]),
        ("an operator of operators", []),
        ("C++ and C# for (i++; j#)", ["c++", "c#"]),
        ("object.__init__() a__b__c", ["__init__"]),
    ],
)
def test_signs_are_found(text: str, found: list[str]) -> None:
    """In lower case; hyphenated words, numbers and increments are none."""
    assert signs(text) == found


@pytest.mark.parametrize(
    "typed, sign",
    [
        ("->>", "operator->>"),
        ("!=", "operator!="),
        ("[]", "operator[]"),
        ("*", ""),
        (" ->", ""),
        ("->x", ""),
        ("<=>=", ""),
        ("", ""),
    ],
)
def test_an_operator_that_is_typed_alone(typed: str, sign: str) -> None:
    """A single character may be anything, a wildcard or a dash."""
    assert operator_sign(typed) == sign


def test_signs_of_a_text_are_bounded() -> None:
    """Different ones, however often one of them stands there."""
    text = " ".join(f"--x{number} -y" for number in range(10_000))
    assert signs(text) == ["--x0", "-y", *(f"--x{number}" for number in range(1, MAX_SIGNS - 1))]
