"""extraction/texts/function_words.py: texts whose language is certain, and all others."""

from __future__ import annotations

import pytest

from larmspider.extraction.texts import function_words
from larmspider.extraction.texts.function_words import language_of

ENGLISH = (
    "Returns the element at the given index. If the list is not sorted, then the method throws an"
    " exception, which must be caught by the caller. "
)
GERMAN = (
    "Die Abrechnung der Reise ist bis zum Ende des Monats bei der Abteilung abzugeben, die für sie"
    " zuständig ist, und wird von ihr nicht mehr als zwei Wochen geprüft. "
)
FRENCH = (
    "Les factures sont à remettre au service dans un délai de deux semaines, par le responsable qui"
    " est en charge du projet, et ne sont pas payées sans cette signature. "
)
DUTCH = (
    "De rekening is voor het einde van de maand in te leveren bij de afdeling die er over gaat, en"
    " wordt door haar niet langer dan twee weken nagekeken. "
)
POLISH = "Użytkownik musi zmienić hasło do konta w ciągu siedmiu dni od zalogowania się. "


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (GERMAN, "de"), (FRENCH, "fr")])
def test_prose_has_the_language_of_its_function_words(text: str, language: str) -> None:
    assert language_of(text * 3) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the and of",
        "the and of " * 20,
        FRENCH.upper() * 3,
        "Fächer Hamburg Bremen Köln " * 20,
        "for (int i = 0; i < n; i++) { sum += values[i]; } return sum; " * 9,
        DUTCH * 4,
        POLISH * 9,
        GERMAN * 4 + ENGLISH,
        ENGLISH * 2 + POLISH * 4,
        "これは日本語の文章です。" * 9 + ENGLISH,
        "\ud800" * 80,
    ],
)
def test_what_is_not_certain_has_none(text: str) -> None:
    assert language_of(text) is None


BROWSER = "JavaScript is disabled on your browser. No usage of javax.print.PrintService"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (BROWSER, "en"),
        ("Kontakt und Impressum der Werke zu Köln", "de"),
        ("JavaScript is off. No usage", None),
        ("Het kantoor is dicht. Het loket is open. De lift is stuk, bel de portier.", None),
        (f"{BROWSER} und", None),
        (f"{BROWSER} {POLISH * 3}", None),
        (ENGLISH * 2 + POLISH * 4, None),
    ],
)
def test_of_the_usual_language_a_few_words_will_do_in_a_short_text(
    text: str, language: str | None
) -> None:
    assert language_of(text, language or "en") == language
    assert language_of(text, "fr") is None
    assert language_of(text) is None


def test_one_word_three_times_may_be_of_another_language() -> None:
    assert language_of("Dice que no viene. Parece que llueve. Espero que nos veamos", "fr") is None


def test_words_are_those_between_spaces_that_are_small_letters() -> None:
    """Whatever ASCII has, as in a text with other letters."""
    characters = "".join(map(chr, range(128)))
    text = " ".join(f"{one}ab cd{one}ef gh{one}" for one in characters)
    words = [word for word in text.split() if word.islower() and word.isalpha()]
    assert function_words._words(text) == [word.encode() for word in words]
    assert function_words._words(f"{text} für") == [*words, "für"]
