"""The languages of the search page: templates/words.toml translates the English words.

    say = Words("de")
    say("{n} page found in {ms} ms|{n} pages found in {ms} ms", n=1234, ms=5)
    # "1.234 Seiten gefunden in 5 ms"
    say.date(0.0), say.size(1_234_567)       # ("01.01.1970", "1,2 MB")

One table replaces gettext, whose catalogues would have to be compiled, and Babel's 30 MB of
locales: there are three languages.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

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


@cache
def table() -> dict[str, dict[str, list[str]]]:
    """``words``, ``kinds`` and ``languages`` of words.toml."""
    return tomllib.loads((packaged("templates", "words.toml") or b"").decode("utf-8"))


@dataclass(frozen=True, slots=True)
class Words:
    """Says things in one of LANGUAGES."""

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
        """``text``, which has to be in the table, with its values; whole numbers as people write
        them. ``n`` chooses between "one|many"."""
        if self.language != LANGUAGES[0]:
            text = table()["words"][text][LANGUAGES.index(self.language) - 1]
        one, several, many = text.partition("|")
        if several:
            n = values["n"]
            text = one if n == 1 or (n == 0 and self.language == "fr") else many
        shown = {k: self.number(v) if type(v) is int else v for k, v in values.items()}
        return text.format(**shown) if values else text

    def error(self, error: LarmspiderError) -> str:
        """The message of an error; in English if the table does not have it."""
        if error.text in table()["words"]:
            return self(error.text, **error.values)
        return str(error)

    def number(self, number: float) -> str:
        return self._localized(f"{number:,}")

    def size(self, number: float) -> str:
        """Bytes."""
        if number < 1000:
            return self("{size} bytes", size=f"{number:.0f}")
        size = self._localized(formatting.size(number))
        return size.replace("B", "o") if self.language == "fr" else size

    def date(self, epoch: float) -> str:
        """The day, UTC."""
        day = datetime.fromtimestamp(epoch, UTC)
        if self.language == "de":
            return f"{day:%d.%m.%Y}"
        return f"{day.day} {_MONTHS[self.language][day.month - 1]} {day.year}"

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
