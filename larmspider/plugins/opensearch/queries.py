"""Queries for OpenSearch, made by the same methods as Tantivy's (index/queries.py)::

    query = OpenSearchQuery.term_query(SCHEMA, "exact", "vpn")
    query.json()                      # {"term": {"exact": {"value": "vpn"}}}

Words of a person come as values of a term, never as text that OpenSearch parses: a term is
compared as it is, and a phrase is cut at spaces alone, which no term has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from tantivy import Occur, Query

MAX_TERMS = 60_000
"""Terms of one clause; OpenSearch takes 65,536."""
_OCCURS = ((Occur.Must, "must"), (Occur.Should, "should"), (Occur.MustNot, "must_not"))
_NOTHING: dict[str, Any] = {"match_none": {}}


class OpenSearchQuery:
    """A clause of this ``kind``; ``field`` is the field that it searches, if it has one."""

    __slots__ = ("boost", "field", "kind", "params")

    def __init__(
        self, kind: str, params: Mapping[str, Any], field: str = "", boost: float = 1.0
    ) -> None:
        self.kind, self.params, self.field, self.boost = kind, params, field, boost

    def json(self) -> dict[str, Any]:
        """The part of a request to _search."""
        params = dict(self.params)
        if self.boost != 1.0:
            params["boost"] = self.boost
        return {self.kind: {self.field: params} if self.field else params}

    def explain(self, searcher: Any, address: Any) -> Explained:
        return Explained(searcher.score_of(self, address))

    @classmethod
    def all_query(cls) -> Self:
        return cls("match_all", {})

    @classmethod
    def empty_query(cls) -> Self:
        return cls("match_none", {})

    @classmethod
    def term_query(cls, _schema: Any, field: str, token: str, index_option: str = "") -> Self:
        return cls("term", {"value": token}, field)

    @classmethod
    def term_set_query(cls, _schema: Any, field: str, tokens: Sequence[str]) -> Self:
        some = [tokens[at : at + MAX_TERMS] for at in range(0, len(tokens), MAX_TERMS)]
        parts = [{"terms": {field: list(one)}} for one in some]
        if not parts:
            return cls.empty_query()
        either = parts[0] if len(parts) == 1 else {"bool": {"should": parts}}
        return cls("constant_score", {"filter": either})

    @classmethod
    def phrase_query(cls, _schema: Any, field: str, tokens: Sequence[str]) -> Self:
        # not the field's analyzer: these are its words already
        return cls("match_phrase", {"query": " ".join(tokens), "analyzer": "whitespace"}, field)

    @classmethod
    def fuzzy_term_query(cls, _schema: Any, field: str, token: str, distance: int = 1) -> Self:
        params = {"value": token, "fuzziness": distance, "transpositions": True}
        return cls("fuzzy", params | {"rewrite": "constant_score"}, field)

    @classmethod
    def regex_query(cls, _schema: Any, field: str, pattern: str) -> Self:
        """``pattern`` is made of an operator's label, or of a host."""
        return cls("regexp", {"value": pattern, "flags": "NONE"}, field)

    @classmethod
    def range_query(
        cls,
        _schema: Any,
        field: str,
        _type: Any,
        lower: datetime | None,
        upper: datetime | None,
        *,
        include_lower: bool = True,
        include_upper: bool = True,
    ) -> Self:
        params: dict[str, Any] = {"format": "strict_date_optional_time"}
        if lower is not None:
            params["gte" if include_lower else "gt"] = lower.isoformat()
        if upper is not None:
            params["lte" if include_upper else "lt"] = upper.isoformat()
        return cls("range", params, field)

    @classmethod
    def const_score_query(cls, query: Query | OpenSearchQuery, score: float) -> Self:
        return cls("constant_score", {"filter": as_json(query)}, boost=score)

    @classmethod
    def boost_query(cls, query: OpenSearchQuery, boost: float) -> Self:
        return cls(query.kind, query.params, query.field, query.boost * boost)

    @classmethod
    def disjunction_max_query(cls, queries: Sequence[Query | OpenSearchQuery]) -> Self:
        return cls("dis_max", {"queries": list(map(as_json, queries)), "tie_breaker": 0.0})

    @classmethod
    def boolean_query(cls, clauses: Sequence[tuple[Occur, Query | OpenSearchQuery]]) -> Self:
        params: dict[str, Any] = dict(_by_occur(clauses))
        if not params.keys() - {"must_not"}:
            return cls.empty_query()
        if "must" not in params:
            params["minimum_should_match"] = 1
        return cls("bool", params)


class Explained:
    """A score in the form of Tantivy's explanations."""

    def __init__(self, score: float) -> None:
        self._score = score

    def to_json(self) -> str:
        return f'{{"value": {self._score}, "description": "the score that OpenSearch gives"}}'


class Schema:
    """Stands for the schema of an index in OpenSearch."""

    queries = OpenSearchQuery


SCHEMA = Schema()


def as_json(query: Query | OpenSearchQuery) -> dict[str, Any]:
    """A query of Tantivy has got here only if it is empty."""
    return query.json() if isinstance(query, OpenSearchQuery) else _NOTHING


def _by_occur(
    clauses: Sequence[tuple[Occur, Query | OpenSearchQuery]],
) -> Iterator[tuple[str, list[Any]]]:
    for occur, name in _OCCURS:
        if found := [as_json(query) for one, query in clauses if one == occur]:
            yield name, found
