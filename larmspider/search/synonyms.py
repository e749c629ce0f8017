"""Synonyms: words and phrases that mean the same, in a text file, one group a line.

    # departments have names of their own
    vpn, remote access, home office
    payslip, Gehaltsabrechnung

A query with one of them also finds pages with any other of its line, at a little less weight::

    synonyms, problems = parse_synonyms("vpn, remote access".splitlines())
    synonyms.widened(parse_query("remote access login"))[0].also      # ("vpn",)

Related words (related.txt) are words that people use for one another. They find no page, but order
the pages that a question finds::

    with_related(parse_query("change the password"))[0].related       # ("alter", "modify", ...)

Some words have two spellings; a query also finds the other one, if pages have it::

    respelled(parse_query("e-mail"), searcher)[0].also                # ("email",)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Protocol

from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from larmspider.index.joined import joined_parts
from larmspider.index.normal import normalized
from larmspider.index.schema import stemmed_analyzer
from larmspider.index.signs import signs
from larmspider.search.query import Clause
from larmspider.search.stops import all_stops, matter

MAX_TERMS = 16
"""Words and phrases of a line."""
MAX_TERM_WORDS = 6
MAX_TERM_CHARS = 100
MAX_ALSO = 32
"""Most synonyms in one query; most related words and phrases of one word."""
MAX_CODE_PARTS = 8
"""Words of a query that may be one code: 6178 4B40 40B2."""
LEAST_TELLING = 2
"""Words that matter in a query, from which on related words count."""

Problems = list[tuple[int, str]]
"""Numbers of lines that do not count, from 1 on, and why."""

_NO_TERM = ("",)
"""A word that no term has."""
_FOLDING = (
    TextAnalyzerBuilder(Tokenizer.whitespace())
    .filter(Filter.lowercase())
    .filter(Filter.ascii_fold())
    .build()
)
_MARKS = "?!.,;:"  # after a word
_HYPHENED = re.compile(r"[^\W\d_]+(?:-[^\W_]+)+")
_PARTICLES = frozenset(("in", "out", "up", "on", "off", "down", "over"))  # log in, login
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_APART = re.compile(r"(e)([^\W\d_]{3,})|([^\W\d_]{2,})([0-9]+)", re.IGNORECASE)
_CAMEL = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)+")
_HUMP = re.compile(r"[A-Z]?[a-z]+")
_STEMMED = stemmed_analyzer("english")


def folded(text: str) -> tuple[str, ...]:
    """The words by which an operator's texts and queries are compared: without capital letters,
    accents and punctuation."""
    plain = normalized(text.encode("utf-8", "replace").decode())
    words = (word.strip("?!.,;:()\"'") for word in _FOLDING.analyze(plain))
    return tuple(word for word in words if word)


@dataclass(frozen=True, slots=True)
class Synonyms:
    """``others``: the other texts to look for, by the folded words of a term."""

    others: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def widened(self, clauses: Sequence[Clause]) -> list[Clause]:
        """The clauses; the first clause of a term has the term's synonyms. If two terms begin with
        the same word, the longer one counts. Phrases and fields stay as typed."""
        found, left = list(clauses), MAX_ALSO
        for at, length, others in self.terms_in(clauses):
            also = [one for one in others if (left := left - len(one.split())) >= 0]
            if also:
                found[at] = replace(found[at], also=tuple(also), covers=length)
        return found

    def terms_in(self, clauses: Sequence[Clause]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """For each term: the place where it begins, its number of clauses, and its synonyms."""
        if not self.others:
            return
        words = [folded(clause.text) if clause.plain else _NO_TERM for clause in clauses]
        at = 0
        while at < len(clauses):
            for length in range(min(MAX_TERM_WORDS, len(clauses) - at), 0, -1):
                others = self.others.get(tuple(chain(*words[at : at + length])))
                if others:
                    yield at, length, others
                    at += length - 1
                    break
            at += 1


NO_SYNONYMS = Synonyms()


def with_related(clauses: Sequence[Clause]) -> list[Clause]:
    """The clauses; if all are plain words, the words that matter get related words, except words
    with synonyms."""
    found, left = list(clauses), MAX_ALSO
    if not all(clause.plain for clause in found):
        return found
    typed = [clause.bare.lower() for clause in found]
    counts = matter(typed)
    widened = {
        n for at, clause in enumerate(found) if clause.also for n in range(at, at + clause.covers)
    }
    if sum(counts) >= LEAST_TELLING:
        # people ask with any form of a word: "how to delete", "deleting"
        stems = [replace(clause, text=_stem(clause.text)) for clause in found]
        for at, _, others in _related().terms_in(stems):
            if counts[at] and at not in widened:
                related = tuple(one for one in others if one not in typed)[:left]
                found[at] = replace(found[at], related=related)
                left -= len(related)
    return found


class Words(Protocol):
    """The words of an index, or of several."""

    def frequencies(self, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        """Pages with each word of a field; words without pages are left out."""

    def words(self, text: str) -> list[str]:
        """The words of a text as in the index: lower case, no accents."""

    def has_side_by_side(self, words: Sequence[str]) -> bool:
        """Whether a page has several words side by side; False if all of them are frequent."""


FREQUENT_PAGES, JOINED_SHARE = 1_000, 0.01
"""If two words are on more pages than this, and a smaller share of these pages writes them as one
word, then it does so by chance."""


def respelled(clauses: Sequence[Clause], known: Words) -> list[Clause]:
    """The clauses with other spellings as synonyms: "email" for ``e-mail``, "RFC1034" for
    ``RFC 1034``, and the reverse, if pages have the other spelling and the clause has no synonym.

    No other word is taken apart: "within" is not "with in"."""
    found, at = list(clauses), 0
    while at < len(found):
        clause, length = found[at], found[at].covers
        if clause.plain and not clause.also:
            if code := _code_at(found, at, known):
                found[at] = replace(clause, also=(code[0],), covers=code[1])
                at += code[1]
                continue
            number = found[at + 1] if at + 1 < len(found) else None
            other, width = _other_spelling(clause.text, number)
            if not other and _CAMEL.fullmatch(clause.text):
                lower = clause.text.lower()
                if not (known.frequencies([lower]) or known.frequencies([lower], "signs")):
                    other = " ".join(_HUMP.findall(clause.text))  # localPartSuffix
            if (
                other
                and _have(known, other)
                and not (
                    width > 1 and number and _by_chance(known, clause.text, number.text, other)
                )
            ):
                found[at] = replace(clause, also=(other,), covers=width)
                length = width
        at += length
    return found


def _code_at(clauses: Sequence[Clause], at: int, known: Words) -> tuple[str, int] | None:
    """The code that clauses from this place on make together, if pages have it in one piece or in
    other pieces; and their number."""
    parts = list[str]()
    for clause in clauses[at : at + MAX_CODE_PARTS]:
        if not clause.plain or clause.also or clause.either:
            break
        parts.append(clause.text)
    while len(parts) > 1:
        code = joined_parts(parts)
        if code and (known.frequencies([code]) or known.frequencies([code], "signs")):
            return code, len(parts)
        parts.pop()
    return None


def _have(known: Words, text: str) -> bool:
    """Whether pages have a word, or two side by side."""
    words = known.words(text)
    if not words or len(known.frequencies(words)) < len(set(words)):
        return False
    return len(words) == 1 or known.has_side_by_side(words)


def _by_chance(known: Words, one: str, other: str, joined: str) -> bool:
    """Whether two frequent words, written as one, are a different word: only few pages write them
    so. To look for it beside the two words takes long in a million pages."""
    pages = known.frequencies(word for text in (one, other, joined) for word in known.words(text))
    together = min((pages.get(word, 0) for word in known.words(joined)), default=0)
    apart = min(pages.get(word, 0) for text in (one, other) for word in known.words(text))
    return apart > FREQUENT_PAGES and together < apart * JOINED_SHARE


def _other_spelling(text: str, following: Clause | None) -> tuple[str, int]:
    """Another spelling of a word, or of the word and the next one, and the number of its
    clauses."""
    text = text.rstrip(_MARKS)
    if _HYPHENED.fullmatch(text) and not signs(text):
        return text.replace("-", ""), 1
    if parts := _APART.fullmatch(text):
        return f"{parts[1]}-{parts[2]}" if parts[1] else f"{parts[3]} {parts[4]}", 1
    if following and (not following.plain or following.also or following.either):
        return "", 1
    if following and _LETTERS.fullmatch(text):
        other, stops = following.text.rstrip(_MARKS), all_stops()
        last = other.lower()
        if text.lower() not in stops and (
            other.isdecimal()
            or last in _PARTICLES
            or (_LETTERS.fullmatch(other) and last not in stops)
        ):
            return text + other, 2
    return "", 1


def is_related(typed: str) -> bool:
    """Whether a word, as typed, has related words. Then it is a real word, even if the index lacks
    it."""
    return typed.lower() in _related_words()[1]


def _related() -> Synonyms:
    return _related_words()[0]


@cache
def _related_words() -> tuple[Synonyms, frozenset[str]]:
    """related.txt by the stems of its words, and these words."""
    text = (files(__package__) / "related.txt").read_text(encoding="utf-8")
    synonyms, _ = parse_synonyms(text.splitlines())
    others: dict[tuple[str, ...], dict[str, None]] = {}
    for words, also in synonyms.others.items():
        others.setdefault(tuple(map(_stem, words)), {}).update(dict.fromkeys(also))
    known = frozenset(one for also in synonyms.others.values() for one in also)
    return Synonyms({stems: tuple(also) for stems, also in others.items()}), known


@lru_cache(4_096)
def _stem(word: str) -> str:
    """The English stem of a word, without accents."""
    return "-".join(_STEMMED.analyze(" ".join(folded(word)))) or word


def parse_synonyms(lines: Iterable[str]) -> tuple[Synonyms, Problems]:
    """The synonyms of all good lines, and the bad lines."""
    others: dict[tuple[str, ...], dict[tuple[str, ...], str]] = {}
    problems: Problems = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        terms = {folded(term): " ".join(term.split()) for term in text.split(",")}
        if problem := _problem(text, terms):
            problems.append((number, problem))
            continue
        for words in terms:
            known = others.setdefault(words, {})
            known |= {other: term for other, term in terms.items() if other != words}
    return Synonyms({words: tuple(known.values()) for words, known in others.items()}), problems


def _problem(line: str, terms: Mapping[tuple[str, ...], str]) -> str | None:
    shown = f"{line!r:.60}"
    if "=>" in line:
        return f"{shown}: expected words that mean the same, separated by commas, without =>"
    if () in terms:
        return f"{shown}: a word is missing before or after a comma"
    if not 2 <= len(terms) <= MAX_TERMS:
        return f"{shown}: expected 2 to {MAX_TERMS} different words or phrases, separated by commas"
    for words, term in terms.items():
        if len(words) > MAX_TERM_WORDS or len(term) > MAX_TERM_CHARS:
            return (
                f"{term!r:.60}: expected at most {MAX_TERM_WORDS} words and {MAX_TERM_CHARS}"
                " characters between two commas"
            )
    return None
