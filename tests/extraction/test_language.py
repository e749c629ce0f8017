"""larmspider/extraction/texts/language.py: what a page says, and what its text is like."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from unicodedata import normalize

import pytest
from scrapy.settings import Settings

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.extraction.processes.helper_process import ExtractionStopped
from larmspider.extraction.texts.language import (
    CONTRADICTIONS,
    LOOKED_AT,
    SAMPLE,
    SHORTEST,
    USUAL,
    Guesser,
    Languages,
    in_languages,
    is_in_another,
    languages_in,
    sample,
)
from larmspider.items import Page, Part

GERMAN = "Die Reisekostenabrechnung ist bis zum Monatsende bei der Abteilung abzugeben"
ENGLISH = "The report on travel costs has to be handed in by the end of the month"
POLISH = "Użytkownik musi zmienić hasło do konta w ciągu siedmiu dni od zalogowania się"


@pytest.fixture(scope="module")
def guesser() -> Iterator[Guesser]:
    found = Guesser(("de", "en", "fr"))
    yield found
    found.close()


@pytest.fixture
def languages(guesser: Guesser) -> Languages:
    return Languages(("de", "en", "fr"), guesser)


def of(languages: Languages, text: str, said: str | None = None, host: str = "h") -> str | None:
    return languages.of_now(Page(f"http://{host}/", text=text, language=said))


def test_a_page_that_says_none_is_guessed(languages: Languages) -> None:
    """Not where it is short, or like none of the languages."""
    assert of(languages, GERMAN) == "de"
    assert of(languages, ENGLISH) == "en"
    assert of(languages, GERMAN[: SHORTEST - 1]) is None
    assert of(languages, POLISH) is None
    assert of(languages, "\ud800" + GERMAN) == "de"


def test_a_host_that_says_a_wrong_language_twice_is_guessed_throughout(
    languages: Languages,
) -> None:
    said = [of(languages, GERMAN, "en-us") for _ in range(SAMPLE * CONTRADICTIONS + 1)]
    expected = ["en-us"] * (SAMPLE * CONTRADICTIONS + 1)
    expected[SAMPLE - 1] = expected[2 * SAMPLE - 1] = expected[-1] = "de"
    assert said == expected
    assert of(languages, GERMAN, "en-us", host="other") == "en-us"
    # and yet no page of it is taken for another language that cannot be guessed
    assert of(languages, POLISH, "pl") == "pl"


def test_pages_in_the_usual_language_of_a_host_are_not_guessed(
    languages: Languages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are: in another language or in two, lists of names, and pages of other hosts."""
    guesser = languages.guesser
    assert guesser is not None
    guessed: list[str] = []
    guess = guesser.guess_now
    monkeypatch.setattr(guesser, "guess_now", lambda text: guessed.append(text) or guess(text))
    english = f"{ENGLISH} and to the office where it can be found. " * 3
    german = f"{GERMAN} und wird von der Leitung nach einer Frist geprüft, wenn sie für alle gilt. "
    for number in range(USUAL):
        assert of(languages, english) == "en"
        assert len(guessed) == number + 1
    assert [of(languages, english), len(guessed)] == ["en", USUAL]
    assert [of(languages, english, host="other"), len(guessed)] == ["en", USUAL + 1]
    names = "Stylesheet Hamburg Munich Cologne Stuttgart Hannover Leipzig Bremen Dresden"
    for text in (german * 3, f"{english} {german}", names):
        of(languages, text)
        assert guessed[-1] == text
    # only the first was certain to be in another language: the row restarts
    assert of(languages, english) == "en"
    assert guessed[-1] == english


def test_korean_is_known_by_its_letters() -> None:
    """However short, and with other letters in it; where it is among the languages."""
    default = Settings({"LARM_LANGUAGES": options.defaults()["LARM_LANGUAGES"]})
    korean = "새로운 컴퓨터를 설치했습니다"
    with closing(Languages.from_settings(default)) as languages:
        assert of(languages, korean) == "ko"
        assert of(languages, normalize("NFD", korean)) == "ko"
        assert of(languages, f"VPN Linux: {korean}") == "ko"
        assert of(languages, korean, "en") == "en"
        assert of(languages, "日本語の文書、한국") is None
        page = Page("http://h/", parts=[Part("a.txt", text=korean)])
        assert languages.of_now(page) is None
        assert page.parts[0].language == "ko"
    with closing(Languages(["de"])) as languages:
        assert of(languages, korean) is None


def test_a_page_that_says_the_right_one_keeps_it(languages: Languages) -> None:
    assert [of(languages, GERMAN, "de-at") for _ in range(SAMPLE)] == ["de-at"] * SAMPLE


def test_none_is_guessed_without_languages() -> None:
    languages = Languages.from_settings(Settings({"LARM_LANGUAGES": ""}))
    assert of(languages, GERMAN) is None
    languages.close()


def test_the_process_is_started_before_the_first_page() -> None:
    languages = Languages(("de", "en"))
    languages.start()
    languages.start()  # of one crawl that begins twice there is one
    assert languages.guesser is not None
    languages.guesser.process.pool.shutdown(wait=True)
    child = languages.guesser.process.child
    assert child is not None
    assert child.poll() is None
    languages.close()
    assert child.poll() is not None


def test_a_process_that_ends_is_replaced(guesser: Guesser) -> None:
    guesser.guess_now(GERMAN)
    assert guesser.process.child is not None
    guesser.process.child.kill()
    assert guesser.guess_now(GERMAN)[0] == "de"


@pytest.mark.acceptance
def test_pages_are_guessed_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets its own answer, whichever call was cancelled and whenever the process was killed,
    even if its end takes long."""

    async def guessed() -> None:
        languages = Languages(("de", "en", "fr"))
        texts = [GERMAN, ENGLISH, GERMAN * 500, ENGLISH] * 10
        pages = [Page("http://h/", text=text) for text in texts]
        try:
            assert await languages.of(pages[0]) == "de"
            assert languages.guesser is not None
            child = languages.guesser.process.child
            assert child is not None
            child.send_signal(signal.SIGSTOP)
            asked = [asyncio.ensure_future(languages.of(page)) for page in pages]
            await asyncio.sleep(0.1)
            assert asked[1].cancel()
            child.send_signal(signal.SIGCONT)
            found = await asyncio.gather(*asked, return_exceptions=True)
            assert [found[0], *found[2:]] == ["de", *["de", "en"] * 19]
            child.send_signal(signal.SIGSTOP)
            asked = [asyncio.ensure_future(languages.of(page)) for page in pages]
            await asyncio.sleep(0.1)
            child.kill()
            end, ended = languages.guesser.process.end, []

            def slow_end() -> int | None:
                ended.append(child)
                time.sleep(0.2 if len(ended) == 1 else 0)
                return end()

            monkeypatch.setattr(languages.guesser.process, "end", slow_end)
            async with asyncio.timeout(60):
                assert await asyncio.gather(*asked) == ["de", "en"] * 20
        finally:
            languages.close()

    asyncio.run(guessed())


@pytest.mark.parametrize("started", [False, True])
def test_a_stop_ends_the_guesses_under_way(started: bool) -> None:
    """The page is given back, and not stored without its language; also where the process has just
    started."""

    async def stopped() -> None:
        guesser = Guesser(("de", "en"))
        asked = asyncio.ensure_future(guesser.guess(GERMAN))
        await asyncio.sleep(0)
        if started:  # and the event loop does not know yet
            guesser.process.pool.submit(int).result()
        guesser.close()
        with pytest.raises(ExtractionStopped):
            await asked
        with pytest.raises(ExtractionStopped):
            await guesser.guess(GERMAN)

    asyncio.run(stopped())


def test_a_long_text_is_looked_at_in_three_places() -> None:
    text = "a" * 10_000 + "b" * 10_000 + "c" * 10_000
    assert set(sample(text)) == set("abc ")
    assert len(sample(text)) <= LOOKED_AT


@pytest.mark.parametrize("value", ["xx", "de en", "german", ["de", "klingon"]])
def test_unknown_languages_are_an_error(value: object) -> None:
    with pytest.raises(ConfigError, match=r"LARM_LANGUAGES=.*: expected languages of af am ar"):
        Languages.from_settings(Settings({"LARM_LANGUAGES": value}))
    with pytest.raises(ConfigError, match=r"LARM_FOLLOW_LANGUAGES=.*: expected languages such as"):
        languages_in(Settings({"LARM_FOLLOW_LANGUAGES": "german"}), "LARM_FOLLOW_LANGUAGES")


def test_which_pages_are_in_another_language() -> None:
    page = Page("http://h/", text=GERMAN, language="de-at")
    assert is_in_another(page, {"en"})
    assert not is_in_another(page, {"de"})
    page.language = None
    assert not is_in_another(page, {"en"})
    assert not is_in_another(Page("http://h/", text="kurz", language="de"), {"en"})


def test_parts_in_other_languages_are_left_out() -> None:
    german, english = (
        Part(f"{n}.txt", text=t, language=n) for n, t in {"de": GERMAN, "en": ENGLISH}.items()
    )
    archive = Page("http://h/a.zip", text="de.txt en.txt", parts=[german, english])
    assert in_languages(archive, {"de"}) == replace(archive, parts=[german])
    assert in_languages(archive, ()) is archive
    assert in_languages(Page("http://h/", text=GERMAN, language="de"), {"en"}) is None


def test_names_of_parts_are_in_no_language(languages: Languages) -> None:
    parts = [Part(f"the report of the month/{name}.txt") for name in range(9)]
    names = " ".join(part.name for part in parts)
    assert languages.of_now(Page("http://h/a.zip", text=names, parts=parts)) is None
    assert languages.of_now(Page("http://h/a", text=names)) == "en"


def test_parts_of_a_document_have_a_language_each(languages: Languages) -> None:
    """Those that say one keep it, and a short text has none."""
    parts = [
        Part("a.txt", text=GERMAN),
        Part("b.txt", text=ENGLISH),
        Part("c.txt", text=GERMAN, language="nl"),
        Part("d.txt", text="kurz"),
    ]
    page = Page("http://h/mails.mbox", text="a.txt b.txt c.txt d.txt", parts=parts)
    languages.of_now(page)
    assert [part.language for part in parts] == ["de", "en", "nl", None]
