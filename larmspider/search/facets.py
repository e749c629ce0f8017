"""Counts of matches by host, kind, language and age.

A facet is counted without its own filter: with one host chosen, the others still show their counts.
Counts of several indexes add up::

    facets = merge([one.facets, other.facets])
    facets.hosts, facets.dates       # {"wiki.example": 12, ...}, {"day": 0, "week": 3, ...}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

import tantivy
from tantivy import Query

from larmspider.index.schema import FILES
from larmspider.search.query import DAYS, FILTER_FIELDS, LABEL, REACH, UNREACHABLE, narrowed

MAX_VALUES = 20
"""Values of a facet that are listed: the values with the most pages."""
_DAY_SECS = 86_400.0
Dates = tuple[float, float]
"""Dates of the oldest and the newest page of an index, in nanoseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Facets:
    """Pages by value, most first. A page without a language counts under none. The host of files is
    FILES. ``other_hosts`` counts pages of hosts beyond the first `MAX_VALUES`. ``dates`` are the
    periods of query.DAYS, each including the shorter ones. ``fields`` are own fields by name
    (LARM_FACETS). ``collections`` are the crawls, if several are searched."""

    hosts: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    languages: dict[str, int] = field(default_factory=dict)
    dates: dict[str, int] = field(default_factory=dict)
    other_hosts: int = 0
    fields: dict[str, dict[str, int]] = field(default_factory=dict)
    collections: dict[str, int] = field(default_factory=dict)
    unreachable: dict[str, int] = field(default_factory=dict)
    """Pages that the values "no" and "only" of this filter leave; empty where no page of the index
    is known as not reached."""
    labels: dict[str, int] = field(default_factory=dict)
    """All labels that matches have; a page may have several."""


def count_facets(
    searcher: tantivy.Searcher,
    wanted: Query,
    narrowing: Mapping[str, Query],
    now: float,
    own: Iterable[str] = (),
    dates: Dates = (-inf, inf),
    unreached: Query | None = None,
    labels: Mapping[str, Query] | None = None,
) -> tuple[Facets, int | None]:
    """Counts of the matches of ``wanted``; ``narrowing`` are the queries of the filters
    (`Filters.queries`), the periods end at ``now``, in seconds since the epoch. ``own`` are the own
    fields that are counted; If all pages belong to one period, ``dates`` saves a look at the date
    of each match. Also returns the number of matches that pass all filters; None if no facet shows
    it. ``unreached``: all pages that were not reached at their last visit. ``labels``: all pages
    with each label."""
    starts = {name: (now - days * _DAY_SECS) * 1e9 for name, days in DAYS.items()}
    oldest, newest = dates
    dividing = sorted(start for start in starts.values() if oldest < start <= newest)
    # one pass for all facets without a filter of their own
    passes: dict[str | None, dict[str, Any]] = {}
    paths = {name: f"own.{name}" for name in own}
    for name in (*FILTER_FIELDS, *paths.values()):
        itself = name if name in narrowing else None
        passes.setdefault(itself, {})[name] = _aggregation(name, dividing)
    counted: dict[str, Any] = {}
    total, of_dates = None, 0
    for itself, counts in passes.items():
        if not dividing and "type" in counts:
            counts.pop("date", None)
        others = [query for name, query in narrowing.items() if name != itself]
        found = searcher.aggregate(narrowed(wanted, others), counts)
        matches = _total(found)
        if itself is None:
            total = matches
        if itself == ("date" if "date" in narrowing else None):
            of_dates = matches or 0
        counted |= found
    facets = Facets(
        hosts={host or FILES: pages for host, pages in _terms(counted["host"]).items()},
        kinds=_terms(counted["type"]),
        languages=_terms(counted["language"]),
        dates={
            name: of_dates if start <= oldest else _since(start, counted.get("date", {}))
            for name, start in starts.items()
        },
        other_hosts=int(counted["host"]["sum_other_doc_count"]),
        fields={name: _without_mark(_terms(counted[path])) for name, path in paths.items()},
        unreachable={} if unreached is None else _by_reach(searcher, wanted, narrowing, unreached),
        labels=_by_label(searcher, wanted, narrowing, labels) if labels else {},
    )
    return facets, total


def _by_reach(
    searcher: tantivy.Searcher, wanted: Query, narrowing: Mapping[str, Query], unreached: Query
) -> dict[str, int]:
    others = [query for name, query in narrowing.items() if name != UNREACHABLE]
    missed = count_of(searcher, narrowed(wanted, [*others, unreached]))
    every = count_of(searcher, narrowed(wanted, others))
    return dict(zip(REACH[1:], (every - missed, missed), strict=True))


def _by_label(
    searcher: tantivy.Searcher,
    wanted: Query,
    narrowing: Mapping[str, Query],
    labels: Mapping[str, Query],
) -> dict[str, int]:
    others = [query for name, query in narrowing.items() if name != LABEL]
    found = {
        name: count_of(searcher, narrowed(wanted, [*others, query]))
        for name, query in labels.items()
    }
    return dict(Counter({name: pages for name, pages in found.items() if pages}).most_common())


def count_of(searcher: tantivy.Searcher, query: Query) -> int:
    """The number of pages that match. Scores are not computed: they would take six times as long.
    The kinds of the pages are counted, because each page has one kind. To order pages by date and
    count them takes 1.5 times as long."""
    found = searcher.aggregate(query, {"pages": {"value_count": {"field": FILTER_FIELDS["type"]}}})
    return int(found["pages"]["value"])


def languages_by_host(
    searcher: tantivy.Searcher, every: Query, hosts: int
) -> dict[str, dict[str, int]]:
    """The pages by language, most first, for each of the ``hosts`` hosts with most pages of
    ``every`` page. Hosts without a known language are left out."""
    languages = {"terms": {"field": FILTER_FIELDS["language"], "size": MAX_VALUES}}
    by_host = {"terms": {"field": FILTER_FIELDS["host"], "size": hosts}, "aggs": {"in": languages}}
    counted = searcher.aggregate(every, {"hosts": by_host})
    buckets = counted["hosts"]["buckets"]
    found = {bucket["key"] or FILES: _terms(bucket["in"]) for bucket in buckets}
    return {host: tongues for host, tongues in found.items() if tongues}


def merge(parts: Iterable[Facets]) -> Facets:
    """The sum over several indexes, exact for hosts that are in one index only."""
    hosts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    dates: Counter[str] = Counter()
    fields: dict[str, Counter[str]] = {}
    unreachable: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    others = 0
    for part in parts:
        hosts.update(part.hosts)
        kinds.update(part.kinds)
        languages.update(part.languages)
        dates.update(part.dates)
        others += part.other_hosts
        unreachable.update(part.unreachable)
        labels.update(part.labels)
        for name, counts in part.fields.items():
            fields.setdefault(name, Counter()).update(counts)
    first = dict(hosts.most_common(MAX_VALUES))
    return Facets(
        hosts=first,
        kinds=dict(kinds.most_common(MAX_VALUES)),
        languages=dict(languages.most_common(MAX_VALUES)),
        dates={name: dates[name] for name in DAYS},
        other_hosts=others + hosts.total() - sum(first.values()),
        fields={name: dict(counts.most_common(MAX_VALUES)) for name, counts in fields.items()},
        unreachable=dict(unreachable),
        labels=dict(labels.most_common()),
    )


def date_span(searcher: tantivy.Searcher) -> Dates:
    """The dates of the oldest and the newest page."""
    ends = {name: {name: {"field": FILTER_FIELDS["date"]}} for name in ("min", "max")}
    found = searcher.aggregate(Query.all_query(), ends)
    return found["min"]["value"] or 0.0, found["max"]["value"] or 0.0


def _aggregation(name: str, dividing: Sequence[float]) -> dict[str, Any]:
    if name != "date":
        return {"terms": {"field": FILTER_FIELDS.get(name, name), "size": MAX_VALUES}}
    if not dividing:
        return {"value_count": {"field": FILTER_FIELDS["type"]}}  # each page has one
    # Tantivy takes nanoseconds, and adds a range before the first
    ranges = [{"from": start, "to": end} for start, end in pairwise(dividing)]
    return {"range": {"field": FILTER_FIELDS[name], "ranges": [*ranges, {"from": dividing[-1]}]}}


def _total(found: Mapping[str, Any]) -> int | None:
    """Matches of a pass, in which each counts once by type, and once by date."""
    for name in ("type", "date"):
        if name in found:
            buckets = found[name].get("buckets")
            counts = (
                [found[name]["value"]] if buckets is None else [b["doc_count"] for b in buckets]
            )
            return sum(map(int, counts))
    return None


def _terms(counted: Mapping[str, Any]) -> dict[str, int]:
    return {bucket["key"]: int(bucket["doc_count"]) for bucket in counted["buckets"]}


def _without_mark(counts: Mapping[str, int]) -> dict[str, int]:
    return {value[1:]: count for value, count in counts.items()}


def _since(start: float, counted: Mapping[str, Any]) -> int:
    """Pages from this time on. An index without pages has no ranges."""
    after = start - 1e9  # Tantivy gives the start of a range back, nearly
    return sum(
        int(bucket["doc_count"])
        for bucket in counted.get("buckets", ())
        if bucket.get("from", 0.0) > after
    )
