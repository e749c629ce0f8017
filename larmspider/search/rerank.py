"""Reranks the first hits by the query as a whole, which only their texts can match.

BM25 adds up words wherever they stand, and prefers short pages. The score of the first `LOOKED_AT`
hits is multiplied by a factor: how much of the query their title, the headings of their sections
and their best passage have, and how long they are::

    reranker = Reranker({"reset": 5.1, "password": 3.2}, Stems("english"), said_by_all)
    reranker.factor({"title": "Accounts", "body": "...", "sections": [(9, "", "Reset passwords")]})

A heading is worth its F1: the share of the query that it has, weighted by the rarity of words, and
the share of the heading that the query has. In ``pandas.Series.isna`` the last word counts most. A
passage is worth BM25 of 200 characters. A table of contents has passages too, the first one with
the title. The weights were tuned like the weights of ranking.py, and on 67 questions of people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp, log
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from larmspider.index.normal import normalized
from larmspider.index.packed import BEGINNING_CHARS
from larmspider.search.folding import folded
from larmspider.search.stops import all_stops

if TYPE_CHECKING:
    from larmspider.index.stems import Stems

LOOKED_AT = 10
"""Hits that are reranked: a first page. 12 would gain 0.0008 of MRR, 60 would gain 0.002. Each hit
costs the same."""
NAMED_WEIGHT = 0.4
"""Weight of the F1 of the title or the best heading."""
COVERED_WEIGHT = 0.2
"""Weight of the share of the query that the title or a heading has."""
QUALIFIER = 0.3
"""Weight, in a heading, of a word that the query lacks and that qualifies the next word."""
PASSAGE_WEIGHT = 0.33
"""Weight of the best passage, for a query of two words or more."""
LENGTH_WEIGHT = 0.11
"""Weight of the logarithm of the length."""
LIST_PENALTY = 0.4
"""Taken off for a page that is mostly links (outside_links.py) and names nothing of the query in
its title and headings."""
SHORT, LONG = 600, 30_000
"""The length counts as log((characters + SHORT) / SHORT), up to 29,400 characters."""

PASSAGE_CHARS = 200
MAX_OCCURRENCES, LEAST_OCCURRENCES = 30, 10
"""Occurrences of each word that are looked at: 30 in a query of up to 20 words, and at least 10 in
a query of more words."""
_OCCURRENCES_OF_ALL = 600
MAX_PLACES = 300
"""Occurrences of the letters that the forms of a word begin with."""
_K1 = 1.2  # BM25's
_EARNED = [n * (_K1 + 1) / (n + _K1) for n in range(PASSAGE_CHARS)]
_GAINS = [after - before for before, after in pairwise(_EARNED)]
"""The gain of one more occurrence of a word."""
_WORD = re.compile(r"[^\W_]+")
_QUALIFYING = re.compile(r"([^\W_]+)(\.(?=\w)|::)?")  # "pandas" in pandas.merge, "std" in std::move
_COMPOUND = re.compile(r"\w(?:[._#-]|::?)\w")
_OWNER = re.compile(r"(.+\w)(?:[.#]|::?)([^\W\d][\w-]*)(?:\(.*\)|/(\d))?")
_FOLDED = "folded"  # a key beside the stored fields of a page
PLACES = "places"
"""A further key of this kind: where words of the folded text begin with the letters of a query's
word, all places or at least the first `LEAST_OCCURRENCES`. Snippets reuse them."""


class Reranker:
    """Reranks hits by the words of one query, in lower case, and the rarity of each."""

    def __init__(
        self,
        words: Mapping[str, float],
        stems: Stems,
        said_by_all: Callable[[str], bool],
        related: Mapping[str, Sequence[str]] = MappingProxyType({}),
        name: str = "",
    ) -> None:
        """``said_by_all``: whether a word is in most titles, as the name of a site does.
        ``related`` words count as the word. A section whose anchor is ``name`` has all of the
        query, if the name has several parts (``os.path``)."""
        self._stems, self._said_by_all = stems, said_by_all
        self._rarities: list[float] = []
        self._numbers: dict[str, int] = {}  # of the query's words, by stem
        for word, rarity in words.items():
            found = _stems_of(word, stems)
            if found and self._numbers.keys().isdisjoint(found):
                self._numbers |= dict.fromkeys(found, len(self._rarities))
                self._rarities.append(rarity)
        self._all = sum(self._rarities)
        looked_for, numbers = [*words], self._numbers
        for word, others in related.items():
            number = next((numbers[s] for s in stems.analyze(word) if s in numbers), -1)
            for other in others if number >= 0 else ():
                found = _stems_of(other, stems)
                if found and numbers.keys().isdisjoint(found):
                    numbers |= dict.fromkeys(found, number)
                    looked_for.append(other)
        self._name = name if _COMPOUND.search(name) else ""
        self._beginnings = tuple({beginning_of(word, stems.analyze(word)) for word in looked_for})
        self._known: dict[str, int | None] = {}  # words of texts
        self._worths: dict[str, tuple[float, float]] = {}  # of headings, which pages share

    def __bool__(self) -> bool:
        return self._all > 0

    def factor(self, stored: dict[str, Any]) -> float:
        """The factor for the stored fields of a page."""
        contents = stored.get("contents", "")
        named = list(self._named(stored["title"], stored.get("sections", ())))
        worth = NAMED_WEIGHT * max((f1 for f1, _ in named), default=0.0)
        worth += COVERED_WEIGHT * max((share for _, share in named), default=0.0)
        length = len(stored["body"]) + len(contents)
        worth += LENGTH_WEIGHT * log(max(1.0, min(length + SHORT, LONG) / SHORT))
        if stored.get("apart") is not None and not named:
            worth -= LIST_PENALTY
        if len(self._rarities) > 1:
            passage = self._passage(folded_text(stored), stored.setdefault(PLACES, {}))
            if contents:
                listed = folded(f"{stored['title']} {contents[:BEGINNING_CHARS]}")
                passage = max(passage, self._passage(listed, {}))
            worth += PASSAGE_WEIGHT * passage
        return exp(worth)

    def _named(
        self, title: str, sections: Sequence[tuple[int, str, str]]
    ) -> Iterator[tuple[float, float]]:
        """F1 and share of the query, of the title and of each heading with a word of it."""
        words = _QUALIFYING.findall(folded(normalized(title)))
        ours = {one for one, _ in words if self._number(one) is not None}
        if ours:
            yield self._worth([w for w in words if w[0] in ours or not self._said_by_all(w[0])])
        if not sections:
            return
        if self._name and (
            section_called(self._name, sections) is not None
            or member_called(self._name, title, sections) is not None
        ):
            yield 1.0, 1.0
        headings = folded("\n".join([heading for _, _, heading in sections]))
        seen = set[int]()
        for beginning in self._beginnings:
            at = headings.find(beginning)
            while at >= 0:
                start, end = headings.rfind("\n", 0, at) + 1, headings.find("\n", at)
                end = end if end >= 0 else len(headings)
                if start not in seen:
                    seen.add(start)
                    heading = headings[start:end]
                    if heading not in self._worths:
                        words = _QUALIFYING.findall(normalized(heading))
                        self._worths[heading] = self._worth(words)
                    yield self._worths[heading]
                at = headings.find(beginning, end)

    def _worth(self, words: Sequence[tuple[str, str]]) -> tuple[float, float]:
        """F1 and covered share of a title. ``words`` are its words, each with the sign that makes
        it qualify the next one. Words that say little count only if the query has them."""
        known, little = self._known, all_stops()
        numbers, matched, others = set[int](), 0, 0.0
        for word, qualifies in words:
            number = known[word] if word in known else self._number(word)
            if number is not None:
                numbers.add(number)
                matched += 1
            elif word not in little:
                others += QUALIFIER if qualifies else 1.0
        if not numbers:
            return 0.0, 0.0
        share = sum(self._rarities[number] for number in numbers) / self._all
        precision = matched / (matched + others)
        return 2 * share * precision / (share + precision), share

    def _passage(self, body: str, begun: dict[str, list[int]]) -> float:
        """BM25 of the best passage, divided by the score of each word once; up to 2.2. Notes in
        ``begun`` where words begin like the words of the query."""
        places: dict[int, int] = {}
        known = self._known
        find, word_at = body.find, _WORD.match
        share = max(LEAST_OCCURRENCES, _OCCURRENCES_OF_ALL // len(self._rarities))
        for beginning in self._beginnings:
            size, starts = len(beginning), list[int]()
            at, left = find(beginning), min(MAX_OCCURRENCES, share)
            for _ in range(MAX_PLACES):
                if at < 0 or not left:
                    break
                if (at == 0 or not body[at - 1].isalnum()) and (found := word_at(body, at)):
                    starts.append(at)
                    word = found[0]
                    number = known[word] if word in known else self._number(word)
                    if number is not None:
                        places[at] = number
                        left -= 1
                at = find(beginning, at + size)
            if at < 0 or not left:
                begun[beginning] = starts
        counts = [0] * len(self._rarities)
        earned = best = 0.0
        first, in_order = 0, sorted(places.items())
        for at, number in in_order:
            earned += _GAINS[counts[number]] * self._rarities[number]
            counts[number] += 1
            while in_order[first][0] <= at - PASSAGE_CHARS:
                gone = in_order[first][1]
                counts[gone] -= 1
                earned -= _GAINS[counts[gone]] * self._rarities[gone]
                first += 1
            if earned > best:
                best = earned
        return best / self._all

    def _number(self, word: str) -> int | None:
        """The number of the query's word that ``word`` is a form of."""
        if word not in self._known:
            stems = self._stems.analyze(word) if word.startswith(self._beginnings) else ()
            found = next((stem for stem in stems if stem in self._numbers), None)
            self._known[word] = None if found is None else self._numbers[found]
        return self._known[word]


def section_called(name: str, sections: Sequence[Sequence[Any]]) -> int | None:
    """The number of the section whose anchor is ``name``, rather with the same capital letters:
    "g-list-append" is g_list_append() too."""
    anchors = _as_anchor("\n".join(["", *(anchor for _, anchor, _ in sections), ""]))
    wanted = _as_anchor(name)
    if f"\n{wanted}\n".lower() not in anchors.lower():
        return None
    each = anchors.split("\n")[1:-1]
    if wanted in each:
        return each.index(wanted)
    return [anchor.lower() for anchor in each].index(wanted.lower())


def member_called(name: str, title: str, sections: Sequence[Sequence[Any]]) -> int | None:
    """The number of the section whose anchor is the member of ``owner:member/2``, if the title of
    the page has its owner."""
    found = _OWNER.fullmatch(name)
    if found is None:
        return None
    owner, member, arity = found.groups()
    last = re.split(r"[.#:]+", owner)[-1].lower()
    if last not in re.findall(r"\w+", title.lower()):
        return None
    if arity and (at := section_called(f"{member}-{arity}", sections)) is not None:
        return at
    return section_called(member, sections)


def _stems_of(word: str, stems: Stems) -> list[str]:
    """The stems of a word, and of its folded form."""
    found = stems.analyze(word)
    return found if word.isascii() else [*found, *stems.analyze(folded(word))]


def _as_anchor(text: str) -> str:
    return text.replace("_", "-").replace("::", ".").replace("()", "").replace("/", "-")


def folded_text(stored: dict[str, Any]) -> str:
    """The beginning of a page's text, folded, made once."""
    found: str | None = stored.get(_FOLDED)
    if found is None:
        found = stored[_FOLDED] = folded(stored["body"][:BEGINNING_CHARS])
    return found


def beginning_of(word: str, stems: Sequence[str]) -> str:
    """The common beginning of a word's forms, folded: "librar" for libraries and library."""
    word = folded(word)
    stems = [folded(stem).removesuffix("i") for stem in stems]
    beginnings = [stem for stem in stems if word.startswith(stem)]
    stem = min(beginnings, key=len, default=word)
    return stem if len(stem) >= 3 else word
