from __future__ import annotations

import pytest

from larmspider.index.joined import MAX_JOINED, joined_parts, joined_word, joined_words


@pytest.mark.parametrize(
    "text, joined",
    [
        ("6178-4B40-40B2", "61784b4040b2"),
        ("AB-12/3", "ab123"),
        ("10.2.1", "1021"),
        ("00:1A:2B:3C:4D:5E", "001a2b3c4d5e"),
        ("978-3-16-148410-0", "9783161484100"),
        ("030/901820-0", "0309018200"),
        ("12.000", "12000"),
        ("1.234.567,89", "123456789"),
        ("HIST_IGNORE_DUPS", "histignoredups"),
        ("en-tête", "entête"),
        ("3.11", ""),  # two numbers
        ("14:30", ""),
        ("and/or", ""),  # two words
        ("a-b", ""),
        ("http://a.example/1-2", ""),
        ("61784B4040B2", ""),
        ("-".join("1" * 9), ""),
        ("a" * 40 + "-1", ""),
    ],
)
def test_a_code_in_parts_is_one_term(text: str, joined: str) -> None:
    """Hyphens and underscores join words, other separators only codes with digits."""
    assert joined_word(text) == joined
    assert joined_words(f"Teil {text}, am Lager") == ([joined] if joined else [])


def test_a_code_with_spaces_is_one_term() -> None:
    """Words with digits, eight characters and more of them."""
    assert joined_words("Teil 6178 4B40 40B5 am Lager") == ["61784b4040b5"]
    assert joined_words("IBAN DE89 3704 0044 0532 0130 00.") == ["de89370400440532013000"]
    assert joined_parts(["030", "901820-0"]) == "0309018200"
    assert joined_words("in 10 of 5 cases, 10 5") == []
    assert joined_words(" ".join("12345" for _ in range(9))) == []


def test_the_end_that_was_left_out_is_filled_in() -> None:
    """Vor- und Nachteil: one of the ends of the second word belongs to the first."""
    assert "vorteilsliste" in joined_words("Vor- und Nachteilsliste")
    assert "eingang" in joined_words("Ein- und Ausgang")
    assert "beladezone" in joined_words("die Be- oder Entladezone dort")
    assert joined_words("nach- und so") == []


def test_the_terms_of_a_text_have_a_limit() -> None:
    """However many codes it has."""
    assert len(joined_words(" ".join(f"x-{n}" for n in range(10_000)))) == MAX_JOINED
