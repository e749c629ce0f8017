"""The texts of a page in two languages, compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser

DATA = (
    "code, pre, .url, .hits, .bets, article, title, textarea, option[value], .facet, #narrow li,"
    " [dir=auto], tbody[lang=en], pre"
)
"""CSS selectors of elements whose texts come from pages, settings and commands."""
_WORDS = re.compile(r"[A-Za-z]{3,} [a-z]{2,}")
SAME = re.compile(
    r"larmspider|robots\.txt|LARM_|SIREN|Siren|\bfilter\b|http://|Wiki|[A-Za-z]+\.(html|pdf|txt|py)"
)
"""Names, and texts of pages, that are the same in all languages."""


def texts(page: str) -> Iterator[str]:
    """Texts, and attributes that are read aloud or shown."""
    tree = LexborHTMLParser(page)
    for one in tree.css(f"script, style, {DATA}"):
        one.decompose()
    for one in tree.css("body *"):
        for name in ("aria-label", "title", "placeholder"):
            if value := one.attributes.get(name):
                yield value.strip()
        if text := one.text(deep=False).strip():
            yield " ".join(text.split())


def untranslated(english: str, other: str) -> list[str]:
    """The texts that a page has in both languages, names and texts of pages excepted."""
    same = set(texts(english)) & set(texts(other))
    return sorted(text for text in same if _WORDS.search(text) and not SAME.search(text))
