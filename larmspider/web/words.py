"""The languages of the pages: templates/words.toml translates the English words.

    say = Words("de")
    say("{n} page found in {ms} ms|{n} pages found in {ms} ms", n=1234, ms=5)
    # "1.234 Seiten gefunden in 5 ms"
    say.date(0.0), say.size(1_234_567)       # ("01.01.1970", "1,2 MB")
    say.told("Running since 2026-01-31T12:00:00Z.")    # a sentence that the crawl has made

One table replaces gettext, whose catalogues would have to be compiled, and Babel's 30 MB of
locales: there are three languages.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

from markupsafe import Markup, escape

from larmspider import formatting
from larmspider.errors import LarmspiderError
from larmspider.web.render import packaged

LANGUAGES = ("en", "de", "fr")
"""Languages of the pages. The first is for browsers that ask for none of these."""
_SEPARATORS = {"en": (",", "."), "de": (".", ","), "fr": ("\u202f", ",")}
_MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "fr": [
        "janv.",
        "févr.",
        "mars",
        "avr.",
        "mai",
        "juin",
        "juil.",
        "août",
        "sept.",
        "oct.",
        "nov.",
        "déc.",
    ],
}
_MAX_ASKED = 20  # languages of a header that are looked at
_TIMES = {"en": "{date} {time}", "de": "{2}.{1}.{0} {time}", "fr": "{2}/{1}/{0} {time}"}
_DAYS = {"de": "T", "fr": "j"}  # of durations; hours, minutes and seconds are the same in all
_IN_TEXT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)?Z?")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?%?")
_DURATION = re.compile(r"[\d.,]+ (?:s|min|h|d)(?: \d+ (?:s|min|h))?")
_SIZE = re.compile(r"[\d.,]+ [kMGT]?B")
_NEXT_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
_TOLD_CHARS = 1_000
"""Longer texts are not translated: they come from pages and logs."""
_START = 3  # characters by which sentences are found


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """``words``, ``sentences``, ``states``, ``kinds`` and ``languages`` of words.toml."""
    return tomllib.loads((packaged("templates", "words.toml") or b"").decode("utf-8"))


@dataclass(frozen=True, slots=True)
class Words:
    """Translates texts into one of LANGUAGES."""

    language: str = LANGUAGES[0]

    @classmethod
    def asked_for(cls, accept_language: str) -> Words:
        """The words for the header ``de-AT, de;q=0.9, en;q=0.5``."""
        wanted: list[tuple[float, int, str]] = []
        for part in accept_language.split(",")[:_MAX_ASKED]:
            tag, _, weight = part.partition(";")
            try:
                quality = float(weight.strip().removeprefix("q=")) if weight else 1.0
            except ValueError:
                continue
            language = tag.strip().partition("-")[0].lower()
            if language in LANGUAGES and quality > 0:
                wanted.append((-quality, len(wanted), language))
        return cls(min(wanted)[2]) if wanted else cls()

    def __call__(self, text: str, **values: Any) -> str:
        """The translation of ``text``, which has to be in the table, with its values. Whole numbers
        get the language's separators. ``n`` chooses between "one|many"."""
        if self.language != LANGUAGES[0]:
            text = table()["words"][text][LANGUAGES.index(self.language) - 1]
        one, several, many = text.partition("|")
        if several:
            n = values["n"]
            text = one if n == 1 or (n == 0 and self.language == "fr") else many
        shown = {k: self.number(v) if type(v) is int else v for k, v in values.items()}
        if any(isinstance(value, Markup) for value in values.values()):
            return escape(text).format(**shown)
        return text.format(**shown) if values else text

    def error(self, error: LarmspiderError) -> str:
        """The message of an error; in English if the table does not have it."""
        if error.text in table()["words"]:
            return self(error.text, **error.values)
        return self.told(str(error))

    def told(self, text: str) -> str:
        """A sentence, or several, that other parts of the program have made, with times and
        numbers. It stays English where the table does not have it."""
        return self.times(text) if self.language == LANGUAGES[0] else _told(self.language, text)

    def state(self, word: str) -> str:
        """The translation of a state, role or outcome; ``word`` itself if there is none."""
        return self._named("states", word)

    def count(self, number: float) -> str:
        return self._localized(formatting.count(number))

    def counted(self, number: int, what: str, many: str = "") -> str:
        """See formatting.counted()."""
        forms = f"{{n}} {what}|{{n}} {many or what + 's'}"
        return self(forms, n=number)

    def rate(self, number: float) -> str:
        return self._localized(formatting.rate(number))

    def rounded(self, number: float, digits: int = 1) -> str:
        return self._localized(f"{number:.{digits}f}")

    def duration(self, seconds: float) -> str:
        return self._duration(formatting.duration(seconds))

    def _duration(self, text: str) -> str:
        if self.language == LANGUAGES[0]:
            return text
        return self._localized(self.state(text)).replace(" d", f" {_DAYS[self.language]}")

    def when(self, epoch: float) -> str:
        """``2026-01-31 12:00:00``, UTC, as the language writes it; "" for 0 and never."""
        return self.times(formatting.utc(epoch)) if epoch and math.isfinite(epoch) else ""

    def times(self, text: str) -> str:
        """``text`` with the logs' times in the form of when()."""
        form = _TIMES[self.language]
        return _IN_TEXT.sub(
            lambda found: form.format(*found[1].split("-"), date=found[1], time=found[2]), text
        )

    def number(self, number: float) -> str:
        return self._localized(f"{number:,}")

    def size(self, number: float) -> str:
        """Bytes."""
        if number < 1000:
            return self("{size} bytes", size=f"{number:.0f}")
        return self._size(formatting.size(number))

    def _size(self, text: str) -> str:
        size = self._localized(text)
        return size.replace("B", "o") if self.language == "fr" else size

    def date(self, epoch: float) -> str:
        """The day, UTC."""
        day = datetime.fromtimestamp(epoch, UTC)
        if self.language == "de":
            return f"{day:%d.%m.%Y}"
        number = "1er" if self.language == "fr" and day.day == 1 else day.day
        return f"{number} {_MONTHS[self.language][day.month - 1]} {day.year}"

    def kind(self, kind: str) -> str:
        """The name of one of schema.KINDS."""
        return self._named("kinds", kind)

    def tongue(self, tag: str) -> str:
        """The name of a language by its primary tag, else the tag: "English" for en-us."""
        return self._named("languages", tag, tag.partition("-")[0].lower())

    def _named(self, group: str, name: str, key: str = "") -> str:
        names = table()[group].get(key or name)
        return names[LANGUAGES.index(self.language)] if names else name

    def _localized(self, number: str) -> str:
        group, point = _SEPARATORS[self.language]
        return number.translate({ord(","): group, ord("."): point})


@lru_cache(4096)
def _told(language: str, text: str) -> str:
    say = Words(language)
    if not text or len(text) > _TOLD_CHARS:
        return say.times(text)
    if (whole := _sentence(say, text)) is not None:
        return whole
    if len(sentences := _NEXT_SENTENCE.split(text)) > 1:
        return " ".join(_told(language, one) for one in sentences)
    for between in ("; ", ": "):  # reasons side by side; what, and why
        if between in text:
            joint = f"\u00a0{between}" if language == "fr" else between
            return joint.join(_told(language, one) for one in text.split(between))
    return say.times(text)


def _sentence(say: Words, text: str) -> str | None:
    """One sentence, or a word; None if the table does not have it."""
    if _NUMBER.fullmatch(text):
        return say._localized(text)
    if _DURATION.fullmatch(text):
        return say._duration(text)
    if _SIZE.fullmatch(text):
        return say._size(text)
    number = LANGUAGES.index(say.language) - 1
    if (word := _fixed().get(text)) is not None:
        return word[number]
    for start in (text[:_START], ""):
        for pattern, names in _patterns().get(start, ()):
            found = pattern.fullmatch(text)
            # a value that goes on in the next sentence is none: both are looked up by themselves
            if found and not any(map(_NEXT_SENTENCE.search, found.groups())):
                values = {name: _told(say.language, one) for name, one in found.groupdict().items()}
                return names[number].format(**values)
    return None


@cache
def _fixed() -> dict[str, list[str]]:
    """The words and sentences without a value."""
    words, states = table()["words"], table()["states"]
    fixed = {text: others for text, others in words.items() if not set("{|") & set(text)}
    return {
        **{word: names[1:] for word, names in states.items()},
        **fixed,
        **_sentences(open_=False),
    }


def _sentences(*, open_: bool) -> dict[str, list[str]]:
    """The sentences with values, or without."""
    return {text: names for text, names in table()["sentences"].items() if ("{" in text) is open_}


@cache
def _patterns() -> dict[str, list[tuple[re.Pattern[str], list[str]]]]:
    """The sentences with values, by their first characters; "" if they begin with a value."""
    found: dict[str, list[tuple[re.Pattern[str], list[str]]]] = {}
    for text, names in _sentences(open_=True).items():
        pattern = re.compile("".join(_pieces(text)), re.DOTALL)
        start = text.partition("{")[0][:_START]
        found.setdefault(start if len(start) == _START else "", []).append((pattern, names))
    for patterns in found.values():  # "{word} in the URL" before "{n} URL"
        patterns.sort(key=lambda one: -len(re.sub(r"\(\?P<.*?>\.\+\?\)", "", one[0].pattern)))
    return found


def _pieces(text: str) -> Iterator[str]:
    """The pieces of a regular expression for a sentence with ``{name}``."""
    for number, piece in enumerate(re.split(r"\{(\w+)\}", text)):
        yield f"(?P<{piece}>.+?)" if number % 2 else re.escape(piece)
