"""Parses a query: ``host:wiki.example "log in" os.path.join() -draft lisence~``.

Clauses are of five kinds: a filter, a phrase, a word, an excluded word, a fuzzy word. The parser is
lenient: pasted text is not a mistake (``C++``, ``foo(bar)``, ``:)``, an odd quote,
``std::vector``). OR, AND and NOT in capitals are operators between two clauses. The names of other
search engines for filters work too (`ALIASES`). A query without any word raises NoWordError.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType

import tantivy
from tantivy import FieldType, Occur, Query

from larmspider.errors import NoWordError, QueryError
from larmspider.index.normal import normalized
from larmspider.index.queries import kind_of
from larmspider.index.schema import FILES, HOST_LIMIT, KINDS, own_word, tongue_of, typed_host
from larmspider.index.signs import operator_sign, signs
from larmspider.index.stems import STEMMERS_OF
from larmspider.search.labels import Label
from larmspider.urls.media_types import type_by_name

MAX_QUERY_CHARS = 1_000
"""Characters of a query."""
MAX_WORDS = 64
"""Clauses of a query, and words of all of them, ``os.path.join()`` being three: about 0.5 ms each
where all are frequent."""
MAX_FUZZY_WORDS = 4
"""Fuzzy words of a query; each walks the whole dictionary."""

FIELDS = ("title", "url", "host", "lang", "mime", "author")
ALIASES = MappingProxyType(
    {"site": "host", "intitle": "title", "inurl": "url", "language": "lang"}
    | {"type": "type", "filetype": "type", "ext": "type", "before": "before", "after": "after"}
)
"""Filters by the names that other search engines give them. A field in LARM_FIELDS of the same name
comes first. With a value that cannot be meant (``type:error``) such a clause is a word."""
_LANGUAGE_NAMES = {name: tongue for tongue, name in STEMMERS_OF.items()}
_DATE = re.compile(r"([0-9]{4})(?:[-/.]([0-9]{1,2})(?:[-/.]([0-9]{1,2}))?)?")
_NO_FILTER = re.compile(r"([^\W\d_]{2,}[\w-]*):(?=[^\W\d]|\d+[^\W\d])")
OPERATORS = ("OR", "AND", "NOT")

_MAYBE_OWN = re.compile(r"(?<![^\s-])([a-z][a-z0-9_-]*):", re.IGNORECASE)
_QUOTES = re.compile(r"(?<=\w:)(\"[^\"]*\")|\"")
_FUZZY = re.compile(r"(?P<word>.+?)~(?P<distance>[12])?")
_CURLY = "\u201c\u201d\u201e\u201f\u275d\u275e\u301d\u301e\u301f\uff02"
# Between straight quotes any other quotes may stand. Guillemets of one direction are separators in
# pasted text: Home \xbb Docs \xbb Install
_PAIRED = re.compile(
    f'"[^"]*"|["{_CURLY}][^"{_CURLY}]*["{_CURLY}]|\xab[^\xab\xbb"]*\xbb|\xbb[^\xab\xbb"]*\xab'
)

# nothing else may follow: "host unreachable: no route" may be pasted
_REACH_TYPED = r"unreachable(?=:(?:yes|no|only)(?:\s|$))"

DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
"""Days of the periods that end now."""
MAX_VALUES = 32
"""Alternatives of one filter."""
_LAST_YEAR = 2200  # Tantivy's nanoseconds end in 2262
_MAX_VALUE = HOST_LIMIT  # hosts are the longest values

UNREACHABLE = "unreachable"
"""Filter for pages that were not reached at their last visit (index/unreached.py)."""
LABEL = "label"
"""Filter for pages with a label (labels.py)."""
REACH = ("yes", "no", "only")
"""Values of unreachable: "yes" also finds unreached pages, "no" leaves them out, "only" finds no
others."""

FILTER_FIELDS = {"host": "host", "type": "kind", "language": "tongue", "date": "date"}
"""The index's field of each filter, by the filter's name for people."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a query: ``text`` as typed, without its signs.

    ``field`` is one of `FIELDS`, a value of `ALIASES`, a field in LARM_FIELDS or None. A ``phrase``
    was quoted. ``fuzzy`` is the number of letters that may differ. The first of ``covers`` clauses
    with synonyms holds them in ``also``. ``related`` words find no further pages, but order the
    found ones. ``either``: OR joins this clause to the one before. ``at`` is where ``text`` begins
    in the normalized query.
    """

    text: str
    field: str | None = None
    phrase: bool = False
    excluded: bool = False
    fuzzy: int = 0
    also: tuple[str, ...] = ()
    covers: int = 1
    related: tuple[str, ...] = ()
    either: bool = False
    at: int = dataclasses.field(default=-1, compare=False)

    @property
    def plain(self) -> bool:
        """Whether this is a word and nothing else."""
        return not (self.field or self.phrase or self.excluded or self.fuzzy)

    @property
    def bare(self) -> str:
        """The text without the marks of a sentence around it."""
        return self.text.strip("?!.,;:")

    @property
    def no_filter(self) -> str:
        """The name before the colon of a word that looks like a filter but is not one; else ""."""
        found = _NO_FILTER.match(self.text) if self.plain else None
        return found[1] if found else ""

    def as_flag(self) -> Clause:
        """An excluded word as a word that begins with a minus."""
        return replace(self, text=f"-{self.text}", excluded=False, at=self.at - 1)


@lru_cache(64)
def _clauses_with(fields: tuple[str, ...]) -> re.Pattern[str]:
    # A minus excludes, but two of them, or one before one character, are an option: --help, -m;
    # one before signs alone is one of them: ->>
    return re.compile(
        rf"(?P<minus>-(?!-|\S(?:\s|$)|[^\w\s\"]+(?:\s|$)))?"
        rf"(?:(?P<field>{'|'.join(fields)}|{_REACH_TYPED}):)?"
        r"(?:\"(?P<phrase>[^\"]*)\"|\"?(?P<word>[^\s\"]+))",
        re.IGNORECASE,
    )


def straight(query: str) -> str:
    """``query`` with straight quotes for curly ones and guillemets that are a pair; each character
    keeps its position."""
    return query if query.isascii() else _PAIRED.sub(lambda found: f'"{found[0][1:-1]}"', query)


def without_quotes(query: str) -> str:
    """The query without the quotes around phrases; ``title:"log in"`` stays."""
    plain = _QUOTES.sub(lambda found: found[0] if found[1] else " ", straight(query))
    return " ".join(plain.split())


def parse_query(query: str, is_own: Callable[[str], bool] = lambda _: False) -> list[Clause]:
    """The clauses in their order, at least one. ``is_own`` says whether a name is a field of the
    index from LARM_FIELDS.

    Raises QueryError for a query that is empty or too long, or a field without a value.
    """
    query = query.replace("\0", " ")
    if not query.strip():
        raise QueryError("the query is empty")
    if len(query) <= MAX_QUERY_CHARS:
        # a lone surrogate (an argument in a foreign encoding) is not a word, and Tantivy refuses it
        query = straight(normalized(query.encode("utf-8", "replace").decode()))
    if len(query) > MAX_QUERY_CHARS:  # a character may become eighteen
        raise QueryError(
            "the query is too long: at most {most} characters are allowed", most=MAX_QUERY_CHARS
        )
    named = sorted({name.lower() for name in _MAYBE_OWN.findall(query)}.difference(FIELDS))
    fields = (*FIELDS, *filter(is_own, named))
    aliases = tuple(name for name in ALIASES if name not in fields)
    found = _clauses_with((*fields, *aliases)).finditer(query)
    clauses = _with_operators([_clause(match, fields) for match in found])
    if all(clause.excluded and not clause.field and not clause.phrase for clause in clauses):
        # "-Werror" alone is an option too: there is nothing to exclude it from
        clauses = [clause.as_flag() for clause in clauses]
    many = len(clauses) > MAX_WORDS
    if not clauses or (many and not any(clause.field or _means(clause.text) for clause in clauses)):
        raise NoWordError("the query has no word to look for: {query!r:.100}", query=query)
    if many:
        raise QueryError(
            "the query has {number} words, at most {most} are allowed",
            number=len(clauses),
            most=MAX_WORDS,
        )
    if sum(1 for clause in clauses if clause.fuzzy) > MAX_FUZZY_WORDS:
        raise QueryError("the query has more than {most} fuzzy words", most=MAX_FUZZY_WORDS)
    return clauses


def each_once(clauses: Iterable[Clause]) -> list[Clause]:
    """The clauses without phrases, fields, fuzzy and excluded words that were typed before. Words
    stay: "line by line" is a name."""
    found: dict[object, Clause] = {}
    for number, clause in enumerate(clauses):
        same = (clause.text.lower(), clause.field, clause.phrase, clause.excluded, clause.fuzzy)
        found.setdefault(number if clause.plain else same, clause)
    return list(found.values())


def _means(text: str) -> bool:
    """Whether a word has a character to search for; ``*`` has none."""
    return any(map(str.isalnum, text)) or bool(signs(text) or operator_sign(text))


def _clause(match: re.Match[str], fields: Sequence[str]) -> Clause:
    field: str | None = (match["field"] or "").lower() or None
    excluded = match["minus"] is not None
    phrase: str | None = match["phrase"]
    if phrase is not None:
        at = match.start("phrase")
        if field is not None and field in ALIASES and field not in fields:
            aliased = _aliased(match, field, phrase, excluded=excluded)
            return replace(aliased, phrase=True, at=at)
        return Clause(phrase, field, phrase=True, excluded=excluded, at=at)
    word, at = match["word"], match.start("word")
    if field is not None and field in ALIASES and field not in fields:
        return _aliased(match, field, word, excluded=excluded)
    if field is None and word[-1] == ":" and match[0].lower().strip("-:") in fields:
        raise QueryError("{field} needs a value right after the colon", field=match[0])
    if field is None and not excluded and (fuzzy := _FUZZY.fullmatch(word)):
        # two letters may differ in a long word; in a short word that would match anything
        distance = int(fuzzy["distance"] or (1 if len(fuzzy["word"]) <= 5 else 2))
        return Clause(fuzzy["word"], fuzzy=distance, at=at)
    return Clause(word, field, excluded=excluded, at=at)


def _aliased(match: re.Match[str], name: str, value: str, *, excluded: bool) -> Clause:
    """A filter by another name; a word, if it cannot have this ``value``."""
    at = match.end() - len(value)
    meant = ALIASES[name]
    if meant == "lang":
        value = _LANGUAGE_NAMES.get(value.lower(), value)
    if meant == "host" and "/" in value:  # site:wiki.example/it
        host, _, path = value.partition("://")[2 if "://" in value else 0].partition("/")
        meant, value = ("url", f"{host}/{path}") if path else ("host", host)
    known: object = True
    if meant == "type":
        known = value.lower() in KINDS or media_type(value)
    elif meant in ("before", "after"):
        known = day_of(value)
    elif meant == "lang":
        known = 2 <= len(tongue_of(value)) <= 3
    if not known:
        return Clause(f"{name}:{value}", excluded=excluded, at=match.start("field"))
    return Clause(value, meant, excluded=excluded, at=at)


def media_type(value: str) -> str:
    """The media type of ``text/html``, or of files that end in ``docx``; "" for another text."""
    value = value.lower().lstrip(".")
    return value if "/" in value else type_by_name(f"x.{value}")


def day_of(value: str) -> datetime | None:
    """The start of a day, month or year: 2026-01-31, 2026-01, 2026; None for another text."""
    found = _DATE.fullmatch(value)
    if found is None:
        return None
    year, month, day = (int(part or 1) for part in found.groups())
    with suppress(ValueError):
        if 1970 <= year <= _LAST_YEAR:
            return datetime(year, month, day, tzinfo=UTC)
    return None


def _with_operators(typed: list[Clause]) -> list[Clause]:
    """The clauses that `OPERATORS` join. An operator needs a clause after it, OR and AND also one
    before. NOT between words in capitals is a word: IS NOT NULL."""
    found, pending = list[Clause](), ""
    for number, clause in enumerate(typed):
        around = typed[max(0, number - 1) : number] + typed[number + 1 : number + 2]
        is_last = number + 1 == len(typed)
        if clause.plain and clause.text in OPERATORS and not is_last:
            in_capitals = all(one.plain and one.text.isupper() for one in around)
            if (found or pending) if clause.text != "NOT" else not in_capitals:
                pending = clause.text
                continue
        if pending == "NOT" and not (clause.excluded or clause.fuzzy):
            # a phrase: it is not to be taken for a flag
            clause = replace(clause, excluded=True, phrase=True)
        elif pending == "OR" and not (clause.excluded or found[-1].excluded):
            clause = replace(clause, either=True)
        found.append(clause)
        pending = ""
    if all(clause.excluded for clause in found):
        return typed
    for at, clause in enumerate(found):
        # alternatives are all required, or none is
        if clause.either and found[at - 1].plain != clause.plain:
            first = at - 1
            while found[first].either:
                first -= 1
            last = next((n for n in range(at, len(found)) if not found[n].either), len(found))
            found[first:last] = [_required(one) for one in found[first:last]]
    return found


def _required(clause: Clause) -> Clause:
    return replace(clause, phrase=True) if clause.plain else clause


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits of a search beside its words. They do not change the order of the results.

        Filters(hosts=("wiki.example",), kinds=("pdf",), since=since_time("month", now=time.time()))

    Values of one filter are alternatives; all filters must hold. ``hosts`` are exact names
    or FILES, ``kinds`` are schema.KINDS, ``languages`` primary subtags (de, en). ``since`` and
    ``until`` (exclusive) are seconds since the epoch, when a page was modified or, if unknown,
    fetched.
    ``fields`` are (name, value) of own fields (LARM_FIELDS), ignoring case of values;
    ``collections`` are names of crawls, where several are searched (collections.py).
    ``labels`` are of labels.py.
    ``unreachable``: "no" leaves out pages that were not reached at their last visit, "only" leaves
    out the others."""

    hosts: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    fields: tuple[tuple[str, str], ...] = ()
    collections: tuple[str, ...] = ()
    unreachable: str = ""
    labels: tuple[Label, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        hosts: Iterable[str] = (),
        kinds: Iterable[str] = (),
        languages: Iterable[str] = (),
        since: float | None = None,
        until: float | None = None,
        fields: Iterable[tuple[str, str]] = (),
        collections: Iterable[str] = (),
        unreachable: str = "",
        labels: Iterable[Label] = (),
    ) -> Filters:
        """Filters as a person typed them. Raises QueryError for filters that can match nothing."""
        if since is not None and until is not None and since >= until:
            raise QueryError("the dates are the wrong way round: the first is not before the last")
        reach = unreachable.strip().lower()
        if reach and reach not in REACH:
            raise QueryError(
                "unreachable {value!r:.50} is unknown; expected one of {values}",
                value=unreachable,
                values=", ".join(REACH),
            )
        found = cls(
            hosts=_distinct("host", map(typed_host, hosts)),
            kinds=_distinct("type", (kind.strip().lower() for kind in kinds)),
            languages=_distinct("language", languages),
            since=since,
            until=until,
            fields=tuple(dict.fromkeys(fields)),
            collections=_distinct("collection", collections),
            unreachable="" if reach == REACH[0] else reach,
            labels=tuple(dict.fromkeys(labels)),
        )
        if len(found.fields) > MAX_VALUES:
            raise QueryError(
                "{number} values of {name}, at most {most} are allowed",
                number=len(found.fields),
                name="fields",
                most=MAX_VALUES,
            )
        for kind in found.kinds:
            if kind not in KINDS:
                raise QueryError(
                    "type {kind!r:.50} is unknown; expected one of {kinds}",
                    kind=kind,
                    kinds=", ".join(KINDS),
                )
        tongues = tuple(dict.fromkeys(map(tongue_of, found.languages)))
        if "" in tongues:
            bad = next(language for language in found.languages if not tongue_of(language))
            raise QueryError(
                "language {language!r:.50} is not a language tag; expected one such as de or en-GB",
                language=bad,
            )
        return replace(found, languages=tongues)

    @property
    def by_field(self) -> dict[str, list[str]]:
        """The values of own fields by name."""
        found: dict[str, list[str]] = {}
        for name, value in self.fields:
            found.setdefault(name, []).append(value)
        return found

    def check(self, is_own: Callable[[str], bool]) -> None:
        """Raise QueryError for a name of a field that the index does not have."""
        for name in self.by_field:
            if not is_own(name):
                raise QueryError("no page of the index has a field {name!r:.50}", name=name)

    def queries(self, schema: tantivy.Schema, unreached: Query | None = None) -> dict[str, Query]:
        """A query without score for each filter that is set, by its name in `FILTER_FIELDS`, or by
        the name of a field from LARM_FIELDS in the index. ``unreached``: all pages that were not
        reached."""
        kind, found = kind_of(schema), dict[str, Query]()
        if self.unreachable:
            found[UNREACHABLE] = by_reach(self.unreachable, unreached, kind)
        if self.labels:
            either = [(Occur.Should, label.query(schema)) for label in self.labels]
            found[LABEL] = kind.boolean_query(either)
        for name, own in self.by_field.items():
            words = [own_word(name, value) for value in own]
            found[f"own.{name}"] = kind.term_set_query(schema, "own_words", words)
        hosts = ["" if host == FILES else host for host in self.hosts]
        for name, values in (
            ("host", hosts),
            ("type", self.kinds),
            ("language", self.languages),
        ):
            if values:
                found[name] = kind.term_set_query(schema, FILTER_FIELDS[name], list(values))
        if self.since is not None or self.until is not None:
            found["date"] = kind.range_query(
                schema,
                FILTER_FIELDS["date"],
                FieldType.Date,
                None if self.since is None else datetime.fromtimestamp(self.since, UTC),
                None if self.until is None else datetime.fromtimestamp(self.until, UTC),
                include_upper=self.until is None,  # Tantivy needs this if there is no upper end
            )
        return {name: kind.const_score_query(query, 0.0) for name, query in found.items()}


NO_FILTERS = Filters()


def by_reach(value: str, unreached: Query | None, kind: type[Query]) -> Query:
    """The pages for a value of `REACH`. ``unreached``: all pages that were not reached, None if
    there are none."""
    if value == "only":
        return kind.empty_query() if unreached is None else unreached
    if value == REACH[0] or unreached is None:
        return kind.all_query()
    return kind.boolean_query([(Occur.Must, kind.all_query()), (Occur.MustNot, unreached)])


def narrowed(ranked: Query, filters: Iterable[Query]) -> Query:
    """``ranked`` and all filters, in the order of ``ranked``."""
    must = [(Occur.Must, query) for query in filters]
    return type(ranked).boolean_query([(Occur.Must, ranked), *must]) if must else ranked


def since_time(text: str, now: float) -> float:
    """The start of a period: one of `DAYS` before ``now``, or a day as ``2026-01-31`` (UTC).

    In seconds since the epoch. Raises QueryError for another text.
    """
    word = text.strip().lower()
    if word in DAYS:
        return now - timedelta(days=DAYS[word]).total_seconds()
    try:
        if len(word) != len("2026-01-31"):
            raise ValueError
        day = datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=UTC)
        if not 1970 <= day.year <= _LAST_YEAR:
            raise ValueError
        return day.timestamp()
    except ValueError:
        raise QueryError(
            "date {date!r:.50} is unknown; expected {periods} or a day as in 2026-01-31",
            date=text,
            periods=", ".join(DAYS),
        ) from None


def until_time(text: str) -> float:
    """The end of the day ``2026-01-31`` (UTC), for `Filters.until`. Raises QueryError."""
    with suppress(QueryError):
        if text.strip().lower() not in DAYS:
            return since_time(text, 0.0) + timedelta(days=1).total_seconds()
    raise QueryError("date {date!r:.50} is unknown; expected a day as in 2026-01-31", date=text)


def _distinct(name: str, values: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(value for value in values if value))
    if len(found) > MAX_VALUES:
        raise QueryError(
            "{number} values of {name}, at most {most} are allowed",
            number=len(found),
            name=name,
            most=MAX_VALUES,
        )
    for value in found:
        if len(value) > _MAX_VALUE or not value.isprintable():
            raise QueryError("{name} {value!r:.50} cannot be in the index", name=name, value=value)
    return found
