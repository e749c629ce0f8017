"""Search operators: which pages ``title:``, ``host:``, ``before:`` and the others match.

    OPERATORS["host"](index, "wiki.example")    # a Tantivy query

Each operator is a function of the index and of the text after the colon. It returns None for a
text without a word. The parser (query.py) knows the names in FIELDS and ALIASES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Protocol

import tantivy
from tantivy import FieldType, Occur, Query

from larmspider.index.queries import kind_of
from larmspider.index.schema import KINDS, typed_host
from larmspider.search.query import UNREACHABLE, by_reach, day_of, media_type


class SearchedIndex(Protocol):
    """The index that an operator searches. Ranking is one."""

    schema: tantivy.Schema

    def words(self, text: str) -> list[str]:
        """The words of a text, without other forms."""

    def titles(self, text: str) -> Iterable[list[str]]:
        """The words of a text as titles have them: one list for each language."""

    def term(self, field: str, token: str) -> Query:
        """Pages that have this token in a field."""

    def sequence(self, field: str, tokens: Sequence[str]) -> Query:
        """Pages that have these tokens side by side in a field."""

    def unreached(self) -> Query | None:
        """Pages that were not reached at their last visit; None if there are none."""


Operator = Callable[[SearchedIndex, str], Query | None]


def words_of(field: str) -> Operator:
    """An operator that matches the words of a field, side by side."""

    def operator(index: SearchedIndex, text: str) -> Query | None:
        words = index.words(text)
        return index.sequence(field, words) if words else None

    return operator


def title(index: SearchedIndex, text: str) -> Query | None:
    found = [index.sequence("title", words) for words in index.titles(text) if words]
    if len(found) < 2:
        return found[0] if found else None
    return type(found[0]).boolean_query([(Occur.Should, query) for query in found])


def url(index: SearchedIndex, text: str) -> Query | None:
    path = text.partition("://")[2] or text
    return words_of("url_words")(index, path.replace("_", " "))


def host(index: SearchedIndex, text: str) -> Query:
    return index.term("domains", typed_host(text))


def kind(index: SearchedIndex, text: str) -> Query | None:
    """One of KINDS, a media type, or the extension of its files."""
    if (name := text.lower()) in KINDS:
        return index.term("kind", name)
    return words_of("mime")(index, media_type(text))


def before(index: SearchedIndex, text: str) -> Query:
    return kind_of(index.schema).range_query(
        index.schema, "date", FieldType.Date, None, day_of(text), include_upper=False
    )


def after(index: SearchedIndex, text: str) -> Query:
    # Tantivy needs an upper end that is included if there is none
    return kind_of(index.schema).range_query(
        index.schema, "date", FieldType.Date, day_of(text), None, include_upper=True
    )


def reach(index: SearchedIndex, text: str) -> Query:
    """One of query.REACH."""
    return by_reach(text.lower(), index.unreached(), kind_of(index.schema))


OPERATORS: MappingProxyType[str, Operator] = MappingProxyType(
    {
        "title": title,
        "url": url,
        "host": host,
        "lang": words_of("language"),
        "mime": words_of("mime"),
        "author": words_of("author"),
        "type": kind,
        "before": before,
        "after": after,
        UNREACHABLE: reach,
    }
)
"""By the name before the colon."""
