"""One search: the reader's request, and the query, parsed once for all parts that use it.

    request = SearchRequest('how to "log in" -draft', filters=Filters(kinds=("pdf",)))
    query = ParsedQuery.of(request.query, searcher, synonyms)
    query.clauses     # each with its synonyms, related words and other spellings
    query.words       # the plain words, each with whether it matters: "how" and "to" do not

Code after the parser does not read the typed text again, except to show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

from larmspider.errors import QueryError
from larmspider.index.signs import signs
from larmspider.search.labels import Label
from larmspider.search.query import NO_FILTERS, Clause, Filters, each_once, parse_query
from larmspider.search.stops import matter, stand_out
from larmspider.search.synonyms import NO_SYNONYMS, Synonyms, Words, respelled, with_related

MAX_LIMIT = 1_000
"""Hits that one search may ask for."""
MAX_OFFSET = 10_000
"""Hits that one search may skip: a page far down costs the time of all pages before it."""
FLAG_SHARE = 100
"""``-x`` is a flag if at least one of 100 pages with "x" has it."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """``limit`` hits (1 to 1,000) after the first ``offset`` (up to 10,000).

    facets    count all matches by value, too
    verbatim  search the typed words alone: no better query, no synonyms
    copies    each copy of a page is a hit; else the best one stands for all
    newest    pages with all words that matter, if there are any, by date
    suggest   look for a better query to show beside the hits
    labels    the labels that are counted with the facets
    snippets  without them hits take half of the time, and have no section
    """

    query: str
    limit: int = 10
    offset: int = 0
    filters: Filters = NO_FILTERS
    facets: bool = False
    verbatim: bool = False
    copies: bool = False
    newest: bool = False
    suggest: bool = False
    snippets: bool = True
    labels: tuple[Label, ...] = ()

    def check(self) -> None:
        """Raise QueryError if ``limit`` or ``offset`` is out of range."""
        if not 1 <= self.limit <= MAX_LIMIT or not 0 <= self.offset <= MAX_OFFSET:
            raise QueryError(
                f"limit={self.limit}, offset={self.offset}: expected 1 to {MAX_LIMIT} and 0 to"
                f" {MAX_OFFSET}"
            )


class Vocabulary(Words, Protocol):
    """Look-ups of the parser in one index or several."""

    def has_field(self, name: str) -> bool:
        """Whether a page has this own field (LARM_FIELDS)."""


@dataclass(frozen=True)
class ParsedQuery:
    """``text`` as typed, and its ``clauses`` (query.py) as they are searched."""

    text: str
    clauses: tuple[Clause, ...] = ()

    @classmethod
    def of(
        cls,
        text: str,
        known: Vocabulary,
        synonyms: Synonyms = NO_SYNONYMS,
        *,
        verbatim: bool = False,
    ) -> Self:
        """Words with synonyms are widened, unless ``verbatim``. Raises QueryError."""
        clauses = parse_query(text, known.has_field)
        clauses = each_once(_with_signs(clauses, known))
        if not verbatim:
            clauses = respelled(with_related(synonyms.widened(clauses)), known)
        return cls(text, tuple(clauses))

    @cached_property
    def words(self) -> list[tuple[Clause, bool]]:
        """Plain and fuzzy words, any of which may match, and whether each matters."""
        return weighed(c for c in self.clauses if not (c.field or c.phrase or c.excluded))

    @cached_property
    def told(self) -> list[tuple[Clause, bool]]:
        """Plain words and phrases (the subject of a page), and whether each matters."""
        return weighed(c for c in self.clauses if not (c.excluded or c.field or c.fuzzy))

    @cached_property
    def shown(self) -> list[tuple[Clause, bool]]:
        """Clauses that are marked in texts, and whether each matters."""
        return weighed(c for c in self.clauses if not c.excluded and c.field in (None, "title"))

    @property
    def name(self) -> str:
        """The only word that matters, as typed; "" if there are several."""
        names = [clause.bare for clause, counts in self.told if counts]
        return names[0] if len(names) == 1 else ""

    @property
    def also(self) -> tuple[str, ...]:
        """Synonyms that are searched too."""
        return tuple(dict.fromkeys(text for clause in self.clauses for text in clause.also))

    @property
    def no_filters(self) -> tuple[str, ...]:
        """Words such as ``colour:red`` that look like filters, and are searched as words."""
        return tuple(dict.fromkeys(c.text for c in self.clauses if c.no_filter))

    @property
    def has_phrase(self) -> bool:
        """Whether words must stand side by side somewhere on the page."""
        return any(c.phrase and not (c.excluded or c.field) for c in self.clauses)

    def is_one_word(self, known: Words) -> bool:
        """Whether any match has all words, because there is only one; ``read_csv`` is two."""
        return len(self.clauses) < 2 and all(len(known.words(c.text)) < 2 for c in self.clauses)

    def is_name(self, known: Words) -> bool:
        """Whether this is one name of several words (``read_csv``)."""
        is_alone = len(self.clauses) == 1 and self.clauses[0].plain
        return is_alone and not self.is_one_word(known)


def weighed(clauses: Iterable[Clause]) -> list[tuple[Clause, bool]]:
    """Each clause, and whether it matters among these."""
    clauses = list(clauses)
    typed = [clause.bare for clause in clauses]
    counts = matter([word.lower() for word in typed])
    named = stand_out(typed)
    return [(one, full or name) for one, full, name in zip(clauses, counts, named, strict=True)]


def _with_signs(clauses: Sequence[Clause], known: Words) -> list[Clause]:
    """``-Wall`` or ``-std=c11`` beside other words is a flag and no exclusion, if pages have
    ``-Wall`` or ``-std``; ``operator <<`` is one word."""
    found = list[Clause]()
    for clause in clauses:
        sign = f"operator{clause.text}"
        if clause.excluded and not (clause.phrase or clause.field) and _is_flag(clause, known):
            found.append(clause.as_flag())
        elif found and _is_operator(found[-1]) and clause.plain and signs(sign) == [sign]:
            found[-1] = replace(found[-1], text=sign)
        else:
            found.append(clause)
    return found


def _is_flag(clause: Clause, known: Words) -> bool:
    sign = next(iter(signs(f"-{clause.text}")), "")
    flagged = known.frequencies([sign], "signs").get(sign, 0)
    words = known.words(sign)
    having = known.frequencies(words)
    return flagged * FLAG_SHARE > min((having.get(word, 0) for word in words), default=0)


def _is_operator(clause: Clause) -> bool:
    """Whether this is the word "operator"."""
    return clause.plain and clause.text.lower() == "operator"
