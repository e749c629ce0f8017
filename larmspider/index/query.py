"""What a person typed, taken apart: ``host:wiki.example "log in" os.path.join() -draft lisence~``.

Five clauses: a filter, a phrase, a word, an excluded word, a fuzzy word. The reader is lenient.
What people paste is no mistake (``C++``, ``foo(bar)``, ``:)``, an odd quote, ``std::vector``), and
AND, OR and NOT are words like others. Only what cannot mean anything raises QueryError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from larmspider.errors import QueryError

QUERY_LIMIT = 1_000
"""Characters of a query."""
CLAUSES_LIMIT = 32
"""Clauses of a query; each costs a few term lookups an index segment."""
FUZZY_LIMIT = 4
"""Fuzzy words of a query; each walks the whole dictionary."""

FIELDS = ("title", "url", "host", "lang", "mime")

# A minus excludes, but two of them, or one before one character, are an option: --help, -m.
_CLAUSE = re.compile(
    rf"(?P<minus>-(?!-|\S(?:\s|$)))?(?:(?P<field>{'|'.join(FIELDS)}):)?"
    r"(?:\"(?P<phrase>[^\"]*)\"|\"?(?P<word>[^\s\"]+))",
    re.IGNORECASE,
)
_FUZZY = re.compile(r"(?P<word>.+?)~(?P<distance>[12])?")
_FIELD_ALONE = re.compile(rf"-?(?:{'|'.join(FIELDS)}):", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a query: ``text`` as typed, without its signs.

    ``field`` is one of `FIELDS` or None, ``phrase`` says that it was quoted, ``fuzzy`` is the
    number of letters that may differ (0 for none).
    """

    text: str
    field: str | None = None
    phrase: bool = False
    excluded: bool = False
    fuzzy: int = 0


def parse_query(query: str) -> list[Clause]:
    """The clauses in their order, at least one.

    Raises QueryError for a query that is empty or too long, or a field without a value.
    """
    if not query.strip():
        raise QueryError("the query is empty")
    if len(query) > QUERY_LIMIT:
        raise QueryError(f"the query has {len(query)} characters, {QUERY_LIMIT} are the most")
    # a lone surrogate (an argument in a foreign encoding) is no word, and Tantivy refuses it
    query = query.encode("utf-8", "replace").decode()
    clauses = [_clause(match) for match in _CLAUSE.finditer(query)]
    if all(clause.excluded and not clause.field and not clause.phrase for clause in clauses):
        # "-Werror" alone is an option too: there is nothing to exclude it from
        clauses = [replace(clause, excluded=False) for clause in clauses]
    if not clauses:
        raise QueryError(f"the query has no word to look for: {query!r:.100}")
    if len(clauses) > CLAUSES_LIMIT:
        raise QueryError(f"the query has {len(clauses)} words, {CLAUSES_LIMIT} are the most")
    if sum(1 for clause in clauses if clause.fuzzy) > FUZZY_LIMIT:
        raise QueryError(f"the query has more than {FUZZY_LIMIT} fuzzy words")
    return clauses


def _clause(match: re.Match[str]) -> Clause:
    field = (match["field"] or "").lower() or None
    excluded = match["minus"] is not None
    phrase: str | None = match["phrase"]
    if phrase is not None:
        return Clause(phrase, field, phrase=True, excluded=excluded)
    word: str = match["word"]
    if field is None and _FIELD_ALONE.fullmatch(match[0]):
        raise QueryError(f"{match[0]} needs a value right behind the colon")
    if field is None and not excluded and (fuzzy := _FUZZY.fullmatch(word)):
        # two letters may differ in a long word; in a short one that would match anything
        distance = int(fuzzy["distance"] or (1 if len(fuzzy["word"]) <= 5 else 2))
        return Clause(fuzzy["word"], fuzzy=distance)
    return Clause(word, field, excluded=excluded)
