"""Finds the language of a page: the declared one, or a guess from its text.

    languages = Languages(["de", "en", "fr"])
    await languages.of(page)          # "de"
    languages.close()

The language of a page that declares none is guessed (py3langid, restricted to these languages). One
page in 20 of a host that declares languages is guessed, too; after two false declarations all pages
of the host are guessed. No guess is made for a text of less than 60 characters, or a text that is
like none of the languages; Korean is known by its letters, in any length. A separate process
guesses: its model takes 1 s to load and 130 MB; a page takes 0.4 ms there, and 0.05 ms here. If the
last pages of a host were all in one language, and a page's function words belong to that language
(function_words.py), the page needs no guess.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.extraction.processes.helper_process import Answers, ExtractionStopped, HelperProcess
from larmspider.extraction.texts.function_words import language_of
from larmspider.items import Page, Part

if TYPE_CHECKING:
    from larmspider.options import Settings

logger = logging.getLogger(__name__)

_KNOWN = """
    af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fo fr fy ga gd gl gu ha he
    hi hr ht hu hy id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mk ml mn mr ms mt
    my ne nl nn no oc om or pa pl ps pt qu ro ru rw sa se si sk sl sn so sq sr st sv sw ta te tg th
    tk tl tr tt ug uk ur uz vi vo wa xh yo zh zu
"""
KNOWN = tuple(_KNOWN.split())
"""Languages that can be guessed, ISO 639."""

SHORTEST = 60
"""Characters of a text that is guessed, and that a filter judges by its language."""
LOOKED_AT = 2_000
"""Characters that are looked at: of a longer text, its beginning, middle and end."""
SAMPLE = 20
"""One page in this number is guessed, on a host whose pages declare their language."""
CONTRADICTIONS = 2
"""Pages that declare a false language, after which a host is not believed."""
USUAL = 5
"""Pages of a host in a row that are guessed to be in one language, after which it is its usual
one."""
_CERTAIN = 0.9
_SURE = 0.5  # among the languages asked for
_SURE_OTHERWISE = 0.9  # for a language other than the declared one
_MAX_HOSTS = 100_000
_TRIED = 3  # processes that end without an answer
_KOREAN = "ko"
_HANGUL = re.compile("[\u1100-\u11ff\uac00-\ud7a3]")
_HANGUL_SHARE = 0.3  # least share of the letters: the rest may be names and code
_SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id"}
_PROGRAM = (
    "from larmspider.extraction.processes.helper_child import guess_languages;"
    " guess_languages({languages!r})"
)


class Languages:
    """Finds the languages of one crawl's pages, and remembers which hosts are not believed."""

    def __init__(self, languages: Sequence[str], guesser: Guesser | None = None) -> None:
        """Without ``languages`` no language is guessed, and declared languages count. ``guesser``
        replaces the usual guesser."""
        self.guesser = guesser or (Guesser(languages) if languages else None)
        self._likely = frozenset(languages)
        self._saying: dict[str, int] = {}  # pages of a host that said their language
        self._wrong: dict[str, int] = {}
        self._row: dict[str, tuple[str, int]] = {}  # the language guessed last, and how many times

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        languages = list(dict.fromkeys(options.strings(settings, "LARM_LANGUAGES")))
        if unknown := sorted(set(languages).difference(KNOWN)):
            raise ConfigError(
                f"LARM_LANGUAGES={','.join(unknown)}: expected languages of {' '.join(KNOWN)}"
            )
        return cls(languages)

    def start(self) -> None:
        """Start the process that guesses, so that the first page does not wait for its model."""
        if self.guesser is not None:
            self.guesser.start()

    async def of(self, page: Page) -> str | None:
        """The language of ``page``, a tag, or None. Notes the language of its parts in them. Raises
        ExtractionStopped."""
        if usual := self._usual(page):
            return usual
        self._spell(page)
        if self.guesser is not None:
            for part in _silent(page):
                guessed, sure = await self.guesser.guess(sample(part.text))
                part.language = guessed if sure >= _SURE else None
        text = self._doubtful(page)
        if text is None or self.guesser is None:
            return page.language
        return self._judged(page, *await self.guesser.guess(text))

    def of_now(self, page: Page) -> str | None:
        """`of` for a thread that may wait, one at a time."""
        if usual := self._usual(page):
            return usual
        self._spell(page)
        if self.guesser is not None:
            for part in _silent(page):
                guessed, sure = self.guesser.guess_now(sample(part.text))
                part.language = guessed if sure >= _SURE else None
        text = self._doubtful(page)
        if text is None or self.guesser is None:
            return page.language
        return self._judged(page, *self.guesser.guess_now(text))

    def _usual(self, page: Page) -> str | None:
        """The usual language of the host, if a page declares none and its words are in this
        language."""
        usual, times = self._row.get(page.url.split("/", 3)[2], ("", 0))
        if times < USUAL or page.language is not None or page.parts or len(page.text) < SHORTEST:
            return None
        return usual if language_of(_sample_of(page), usual) == usual else None

    def _spell(self, page: Page) -> None:
        """Note the language of texts in the letters of one language, of any length."""
        texts: list[Page | Part] = [page, *page.parts]
        for text in texts if _KOREAN in self._likely else ():
            if text.language is None and is_korean(text.text):
                text.language = _KOREAN

    def _doubtful(self, page: Page) -> str | None:
        """The text for a guess; None: the declared language counts."""
        if self.guesser is None or len(page.text) < SHORTEST or _is_list_of_parts(page):
            return None
        if not self._is_doubtful(page.url.split("/", 3)[2], page.language):
            return None
        return _sample_of(page)

    def _is_doubtful(self, host: str, said: str | None) -> bool:
        if said is None or self._wrong.get(host, 0) >= CONTRADICTIONS:
            return True
        if len(self._saying) >= _MAX_HOSTS:
            self._saying.clear()
        number = self._saying[host] = self._saying.get(host, -1) + 1
        return number % SAMPLE == SAMPLE - 1 and primary(said) in self._likely

    def _judged(self, page: Page, guessed: str, sure: float) -> str | None:
        host, said = page.url.split("/", 3)[2], page.language
        if said is None:
            self._note(host, guessed, sure)
            return guessed if sure >= _SURE else None
        if primary(said) == guessed or primary(said) not in self._likely or sure < _SURE_OTHERWISE:
            return said
        self._wrong[host] = self._wrong.get(host, 0) + 1
        return guessed

    def _note(self, host: str, guessed: str, sure: float) -> None:
        if len(self._row) >= _MAX_HOSTS:
            self._row.clear()
        language, times = self._row.get(host, ("", 0))
        if sure >= _CERTAIN:
            self._row[host] = guessed, times + 1 if guessed == language else 1
        elif guessed != language:  # a short text in the usual language is no other one
            self._row[host] = "", 0

    def close(self) -> None:
        """May be called twice."""
        if self.guesser is not None:
            self.guesser.close()


class Guesser:
    """The process that guesses; one text after the other. Either `guess` or `guess_now` is used."""

    def __init__(self, languages: Sequence[str]) -> None:
        self.process = HelperProcess(_PROGRAM.format(languages=tuple(languages)), "language")
        self._failed = 0  # times in a row
        self._answers: Answers | None = None
        self._opening = asyncio.Lock()

    def start(self) -> None:
        """Start the process. An error is not reported here: it comes again at the first text."""
        self.process.pool.submit(self.process.started)

    async def guess(self, text: str) -> tuple[str, float]:
        """The most likely language, and how sure that is, from 0 to 1. Raises ExtractionStopped.

        On the event loop: another thread would take turns with it for each text, which took a
        tenth of the crawl's time.
        """
        while self._failed < _TRIED:  # a process that was killed costs no page its language
            answers = await self._open()
            with suppress(EOFError, OSError):
                language, sure = await answers.ask(text)
                self._failed = 0
                return primary(language), sure
            if self._answers is answers:  # the first of the waiting callers
                self._answers = None
                self._note_failure()
                if not self.process.closed:  # in its thread, which also starts the next process
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(self.process.pool, self.process.end)
        return "", 0.0

    async def _open(self) -> Answers:
        """Raises ExtractionStopped."""
        async with self._opening:
            if self._answers is None or self.process.closed:
                loop = asyncio.get_running_loop()
                if self.process.closed:
                    raise ExtractionStopped("the crawl is being stopped")
                child = await loop.run_in_executor(self.process.pool, self.process.started)
                self._answers = await Answers.of(child)
            return self._answers

    def guess_now(self, text: str) -> tuple[str, float]:
        """`guess` for a thread that may wait, one at a time."""
        while self._failed < _TRIED:
            with suppress(EOFError, OSError):
                language, sure = self.process.ask(text)
                self._failed = 0
                return primary(language), sure
            self._note_failure()
        return "", 0.0

    def _note_failure(self) -> None:
        self._failed += 1
        if self._failed == _TRIED:
            logger.error("Languages are not guessed: the process that guesses them ends")

    def close(self) -> None:
        """End the process. May be called twice."""
        if self._answers is not None:
            self._answers.close()
        self.process.close()


def _silent(page: Page) -> list[Part]:
    """The parts of a document without a declared language whose text suffices for a guess."""
    return [part for part in page.parts if not part.language and len(part.text) >= SHORTEST]


def _is_list_of_parts(page: Page) -> bool:
    """Whether the text of a document consists of the names of its parts, which are in no
    language."""
    return bool(page.parts) and " ".join(part.name for part in page.parts).startswith(page.text)


def is_korean(text: str) -> bool:
    """Whether at least `_HANGUL_SHARE` of its letters are Korean. 5 us where none is."""
    if text.isascii() or not _HANGUL.search(looked_at := sample(text)):
        return False
    letters = sum(map(str.isalpha, looked_at))
    return len(_HANGUL.findall(looked_at)) >= letters * _HANGUL_SHARE


def sample(text: str) -> str:
    """`LOOKED_AT` characters of a text."""
    if len(text) <= LOOKED_AT:
        return text
    third = LOOKED_AT // 3
    middle = (len(text) - third) // 2
    return f"{text[:third]} {text[middle : middle + third]} {text[-third:]}"


def _sample_of(page: Page) -> str:
    text = page.main
    return sample(text if len(text) >= SHORTEST else page.text)


def primary(tag: str) -> str:
    """``de`` for de-AT; Norwegian is ``no``, in both of its forms."""
    first = tag.replace("_", "-").partition("-")[0].lower()
    return _SAME.get(first, first)


def in_languages(page: Page, languages: Collection[str]) -> Page | None:
    """``page`` without its parts in other languages; None if the page itself is in another
    language. Without ``languages`` the page stays whole."""
    if not languages:
        return page
    if is_in_another(page, languages):
        return None
    parts = [part for part in page.parts if not is_in_another(part, languages)]
    return page if len(parts) == len(page.parts) else replace(page, parts=parts)


def is_in_another(page: Page | Part, languages: Collection[str]) -> bool:
    """Whether ``page`` has a language that is not one of ``languages`` (primary tags)."""
    if page.language is None or len(page.text) < SHORTEST:
        return False
    return primary(page.language) not in languages


def languages_in(settings: Settings, name: str) -> frozenset[str]:
    """The setting ``name`` as primary languages. Raises ConfigError."""
    values = options.strings(settings, name)
    for value in values:
        if not (2 <= len(value) <= 3 and value.isascii() and value.isalpha()):
            raise ConfigError(f"{name}={value}: expected languages such as de or en")
    return frozenset(map(primary, values))
