"""The score of one page for a query, part by part, and the parts of the query that the page lacks.

    found = searcher.examined("vpn login", ["http://wiki.example/vpn"])["http://wiki.example/vpn"]
    found.score, found.parts          # 9.3, {'"vpn" in the title': 2.1, ..., "all words": 4.0}
    found.missing                     # ["login"]

The parts come from Tantivy's own explanation of a score, for any query of ranking.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import log2
from typing import TYPE_CHECKING, Any

from tantivy import Query

from larmspider.errors import QueryError
from larmspider.index.access import statistics
from larmspider.index.queries import kind_of
from larmspider.index.schema import MACHINE_MADE_FACTOR, PRIOR
from larmspider.search.query import Clause, narrowed
from larmspider.search.ranking import ALL_WORDS_BONUS
from larmspider.search.request import ParsedQuery

if TYPE_CHECKING:
    from larmspider.search.reading import ShardQuery

PLACES: Mapping[str, str] = {
    "exact": "in the text",
    "body": "in the text, as a stem",
    "title": "in the title",
    "description": "in the description",
    "anchors": "in texts of links to it",
    "url_words": "in the URL",
    "rest": "around the text",
}
"""Fields of the index for people."""
ALL_WORDS = "all words that matter"
OR_RELATED = "all words that matter, or related ones"
SIDE_BY_SIDE = "words side by side"
FUZZY = "words like the fuzzy ones"
REREAD = "title, headings, best passage and length, as one of the first hits"
NOT_REACHED = "not reached at its last visit"
WHOLE = "a title or link text that is the query, or a sign such as --prefix"
_TERM = re.compile(r'Term=Term\(field=(\d+), type=Str, "(.*)"\)', re.DOTALL)
_SAME = 1e-3  # difference of two scores that count as equal


@dataclass(frozen=True, slots=True)
class Examined:
    """The score of one page. ``score`` orders hits: the sum of ``parts`` times ``prior``, a factor
    for the kind of page (``because``); 0.0 for a page that is not a hit. ``missing`` words earn
    nothing. ``lacks`` says why a page is not a hit: missing phrases and fields, excluded words that
    it has, and the names of ``filters`` that it does not pass."""

    score: float = 0.0
    prior: float = 1.0
    parts: dict[str, float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    filters: list[str] = field(default_factory=list)

    @property
    def because(self) -> str:
        """What ``prior`` is for."""
        return (
            "for links to it" if self.prior >= 1 else "for an index or source code made of others"
        )

    def without_numbers(self) -> Examined:
        """The same for a reader who does not see all pages: a hit has the score 1.0."""
        return replace(self, score=float(self.score > 0), prior=1.0, parts={})

    def times(self, factor: float, name: str) -> Examined:
        """The same with a further part, ``name``, that multiplies the score."""
        if factor == 1.0 or not self.parts:
            return self
        parts = {name: sum(self.parts.values()) * (factor - 1)} | self.parts
        parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
        return replace(self, score=self.score * factor, parts=parts)


def examine(asked: ShardQuery, fields: Sequence[str], key: str) -> Examined | None:
    """Examine the page ``key``; None if it is not in this index. ``fields``: names in the order of
    the schema."""
    reading, ranking, clauses = asked.reading, asked.reading.ranking, asked.query.clauses
    reader, shard = reading.reader, reading.shard
    page = kind_of(shard.schema).term_query(shard.schema, "key", key)
    hits = reader.search(page, 1, count=False).hits
    if not hits:
        return None
    address = hits[0][1]

    def matches(query: Query) -> bool:
        return bool(reader.search(narrowed(page, [query]), 1, count=False).hits)

    missing, lacks = [], []
    said = any(clause.plain and ranking.words(clause.text) for clause in clauses)
    at = 0
    while at < len(clauses):
        clause, run = clauses[at], list(clauses[at : at + clauses[at].covers])
        at += len(run)
        if clause.plain and said and not ranking.words(clause.text):
            continue  # "->>" means nothing beside words
        with suppress(QueryError):  # no word to look for
            alone = ParsedQuery("", (replace(run[0], excluded=False), *run[1:]))
            has = matches(ranking.build(alone).matching)
            if has and clause.excluded:
                lacks.append(f"it has {written(clause)}, which is excluded")
            elif not has and not clause.excluded and (clause.phrase or clause.field):
                lacks.append(f"it has no {written(clause)}")
            elif not has and not clause.excluded:
                missing.append(" ".join(each.text for each in run))
    refused = [name for name, query in asked.by_filter.items() if not matches(query)]
    found = Examined(missing=missing, lacks=lacks, filters=refused)
    behind = [asked.built.behind] if asked.built.behind is not None else []
    ranked = [query for query in (*asked.built.ranked, *behind) if matches(query)]
    if refused or not ranked:
        return found
    # the first one has the most
    explained = json.loads(ranked[0].explain(statistics(reader), address).to_json())
    parts: dict[str, float] = {}
    related = any(clause.related for clause in clauses)
    for name, value in _parts(explained, fields):
        name = OR_RELATED if name == ALL_WORDS and related else name
        parts[name] = parts.get(name, 0.0) + value
    linked = reader.fast_field_values(PRIOR, [address])[0] or 0.0
    factor = MACHINE_MADE_FACTOR * log2(2 + max(0.0, linked))
    parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
    return replace(found, score=explained["value"] * factor, prior=factor, parts=parts)


def written(clause: Clause) -> str:
    """A clause as it may be typed, without its minus."""
    text = f'"{clause.text}"' if clause.phrase else clause.text
    return f"{clause.field}:{text}" if clause.field else text


def _parts(node: Mapping[str, Any], fields: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The shares of an explanation's leaves in its value."""
    value, what, inside = node["value"], node["description"], node.get("details", [])
    if not value:
        return
    if term := _TERM.search("".join(node.get("context") or ())):
        name = fields[int(term[1])] if int(term[1]) < len(fields) else "?"
        yield f'"{term[2]}" {PLACES.get(name, f"in {name}")}', value
    elif what.startswith("Phrase"):
        yield SIDE_BY_SIDE, value
    elif what.startswith("Const"):
        yield (ALL_WORDS if abs(value - ALL_WORDS_BONUS) < _SAME else WHOLE), value
    elif what.startswith("Automaton"):
        yield FUZZY, value
    elif inside:
        best = max(inside, key=lambda each: each["value"])
        if abs(best["value"] - value) < _SAME * value:  # only the best part counts
            inside = [best]
        total = sum(each["value"] for each in inside)
        for each in inside:
            for name, share in _parts(each, fields):
                yield name, share * value / total
    else:
        yield what, value
