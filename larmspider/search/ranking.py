"""How a query finds and orders pages: clauses (query.py) become a Tantivy query.

Any of the words may match (OR). A page's score is the sum of the scores of each word in each view
of the page, by BM25 and the weights below. Pages with all words score more, and so do pages on
which neighbours in the query are neighbours. ``os.path.join()`` is three neighbours. Phrases and
fields must match, an excluded word must not.

The weights were tuned on the first half of the manuals of benchmarks/manuals.py and checked on the
other half (`python -m benchmarks.findability`; docs/internals/ has the figures). No weight is
delicate: halving or doubling one moved the mean MRR of names by 0.015 at most.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import c_float
from itertools import pairwise
from math import log, sqrt
from typing import NamedTuple, Self

import tantivy
from tantivy import Occur, Query

from larmspider.errors import NoWordError, QueryError
from larmspider.index.access import Limited
from larmspider.index.joined import joined_parts, joined_word
from larmspider.index.normal import normalized
from larmspider.index.queries import kind_of
from larmspider.index.schema import (
    ExactAnalyzer,
    label,
    own_word,
    without_accents,
)
from larmspider.index.signs import operator_sign, signs
from larmspider.index.stems import Stems
from larmspider.search.operators import OPERATORS
from larmspider.search.query import MAX_WORDS, Clause
from larmspider.search.request import ParsedQuery
from larmspider.search.rerank import Reranker
from larmspider.search.results import Document
from larmspider.search.snippets import SnippetMaker, Sought

STEMMED_WEIGHTS = {"body": 0.8, "title": 0.3, "description": 0.3}
EXACT_WEIGHTS = {"exact": 1.0, "anchors": 0.7, "url_words": 0.5, "rest": 0.2}
FORM_WEIGHT = 0.8
"""Weight of another form of a word in `FORM_FIELDS`, divided by the square root of the number of
forms: a word with many forms counts no more than a word with few."""
FORM_FIELDS = ("exact", "anchors", "url_words")
STOP_WEIGHT = 0.15
"""Weight of a word that says little (stops.py), if the query has words that say more."""
LABEL_WEIGHT = 2.0
"""Weight of a link text or title that equals the query, times the number of its words and its
rarity: other pages earn something for each word, too."""
FORM_LABEL_WEIGHT, KNOWN_FORM_LABEL_WEIGHT = 1.6, 0.6
"""The same for another form of a query's only word: if no page has the word itself, and if pages
have it."""
SYNONYM_WEIGHT = 0.8
"""Weight of a synonym's score. The best of a word and its synonyms counts."""
RELATED_WEIGHT = 0.6
"""Weight of a related word's score. The best related word counts."""
SIGN_WEIGHT = 3.0
"""Weight of the sign ``--prefix`` as typed, times its rarity."""
BARE_WEIGHT = 0.4
"""Weight of the word "prefix" beside its sign."""
CODE_WEIGHT = 3.0
"""Weight of a word or code in several parts as one term (joined.py), times its rarity; so that
``max_length`` is worth more than both of its words."""
COMPOUND_WEIGHT = 0.3
"""Weight of a compound that has the word, or both of its parts, in German and similar languages."""
PAIR_WEIGHT = 1.5
"""Weight of two neighbours in the query that are neighbours in title or body."""
MANY_PAGES = 100_000
"""Pages of an index from which on pages with all words are looked for first, and other pages only
if these are too few. In a smaller index one search for all is faster."""
FREQUENT_PAGES, FREQUENT_SHARE = 1_000, 0.05
"""A word says little, and takes longest, if it is on more pages than this number plus this share
of all pages. The search leaves out its compounds, and pairs of two such words that were not typed
as one (``java.lang``)."""
WIDESPREAD_SHARE = 0.1
"""Share of the pages of an index of `MANY_PAGES`. The search takes a word on more pages as typed,
and its other forms only in titles and link texts, whose lists are short. Pages with only these
words and words that say little come last."""
NAME_PART_WEIGHT = 0.5
"""Weight of one word of ``pg_stat_activity``, beside the whole name."""
ALL_WORDS_BONUS = 4.0
"""Score added if a page has every word; a rare word in the body scores 5 to 10."""

_LIKE_CHARS = 20_000  # characters of a page in which its salient words are looked for

_UNSTEMMED = ("exact", "anchors", "rest")
SALIENT_WORDS = 20
"""Words of a page that the search for similar pages uses."""
_LOOKED_UP = 200  # the most frequent words of a page, from which the salient ones are chosen
_SHORTEST = 3  # letters
_TOO_OFTEN = 0.5  # share of the pages; a word on more pages says nothing
_FEW_PAGES = 50  # in an index with fewer pages no word is on too many
_REMEMBERED = 10_000  # words whose IDF was looked up

Boost = Callable[[str, Sequence[str]], float]
"""The factor for a word or phrase of a field, over the score in its own index."""


class Boosts(NamedTuple):
    """Factors for the scores of one index: for terms ``scored`` by Tantivy, and for terms
    ``counted`` by what the reader sees; None: 1.0."""

    scored: Boost | None = None
    counted: Boost | None = None


class Built(NamedTuple):
    """The queries for Tantivy. A page's score is the best that any of ``ranked`` gives it. With two
    of them, the first one finds the pages with all words that matter, and ``nearly`` finds the
    pages with the rarer half of these words. ``behind`` ranks every match; it is used once
    ``ranked`` is exhausted. ``matching`` finds all matches unordered, which is faster. ``every``
    finds the pages with all words that matter."""

    ranked: tuple[Query, ...]
    matching: Query
    every: Query
    behind: Query | None = None
    nearly: Query | None = None


class _Terms(NamedTuple):
    """The queries for one word of a query, or for a term with synonyms.

    earned    finds its pages, by plain terms where possible: Tantivy adds and counts these fastest
    beside    what the found pages earn in addition
    needed    finds the pages with the word, for "all words"; empty for a word that says little
    enough    the same, also with a related word in its place
    telling   whether the word neither says little nor is widespread
    pages     about the number of pages with the word; 0: not counted
    words     number of words in ``needed``: several for a term with synonyms
    either    whether this is an alternative to the word before
    """

    earned: list[Query]
    beside: list[Query]
    needed: list[Query]
    enough: list[Query]
    telling: bool
    pages: int = 0
    words: int = 1
    either: bool = False


class Ranking:
    """Builds queries for an index with this schema. ``boosts`` are for an index that is one of
    several, and for a reader who does not see all pages."""

    def __init__(
        self,
        schema: tantivy.Schema,
        stems: Stems,
        boosts: Boosts = Boosts(),  # noqa: B008 - a tuple
        *,
        link_texts: bool = True,
        unreached: Callable[[], Query | None] = lambda: None,
    ) -> None:
        """Without ``link_texts`` texts of links neither find nor rank pages. ``unreached`` returns
        all pages that were not reached at their last visit."""
        self.unreached = unreached
        self.schema = schema
        self._queries = kind_of(schema)
        self._boosts = boosts
        self._exact = ExactAnalyzer()
        self._stems = stems
        missing = {"anchors"} if not link_texts else set()
        self._link_texts = link_texts
        self._form_fields = tuple(field for field in FORM_FIELDS if field not in missing)
        self._exact_weights = {f: w for f, w in EXACT_WEIGHTS.items() if f not in missing}
        self._unstemmed = [field for field in _UNSTEMMED if field not in missing]

    def build(self, query: ParsedQuery) -> Built:
        """Build the Tantivy queries. Raises QueryError if no clause has a word to find, or if there
        are more than `MAX_WORDS` words."""
        count = sum(len(self._exact.analyze(clause.text)) for clause in query.clauses)
        if count > MAX_WORDS:
            raise QueryError(
                "the query has {number} words, at most {most} are allowed",
                number=count,
                most=MAX_WORDS,
            )
        must: list[Query] = []
        must_not: list[Query] = []
        filters: dict[str, list[Query]] = {}
        last = ""  # the field of the clause before; "": it is required
        for clause in query.clauses:
            if not (clause.field or clause.phrase or clause.excluded):
                continue
            if required := self._required(clause):
                field = "" if clause.field in (None, "title", "url") else str(clause.field)
                if clause.excluded:
                    must_not.append(required)
                elif clause.either and field != last:  # of two kinds
                    before = [must.pop()] if not last else filters.pop(last)
                    must.append(_any([*before, required]))
                    field = ""
                elif not field:
                    either = [must.pop()] if clause.either and must else []
                    must.append(_any([*either, required]))
                else:
                    filters.setdefault(field, []).append(required)
                last = field
        found = self._words(query)
        if not (found or must or filters):
            if must_not:
                raise QueryError("the query only excludes: add a word to look for")
            text = " ".join(clause.text for clause in query.clauses)
            raise NoWordError("the query has no word to look for: {query!r:.100}", query=text)
        # two hosts: on either of them
        either = [self._queries.const_score_query(_any(each), 0.0) for each in filters.values()]
        if found and not (must or must_not or either):
            return found

        def whole(*words: Query) -> Query:
            return self._queries.boolean_query(
                [(Occur.Must, query) for query in (*must, *words, *either)]
                + [(Occur.MustNot, query) for query in must_not]
            )

        if not found:
            return Built((whole(),), whole(), whole())
        return Built(
            tuple(whole(query) for query in found.ranked),
            whole(found.matching),
            whole(found.every),
            found.behind and whole(found.behind),
            found.nearly and whole(found.nearly),
        )

    def snippet_maker(self, query: ParsedQuery) -> SnippetMaker:
        """Marks the words of the query in the pages found."""
        clauses = [clause for clause, counts in query.shown if counts or clause.phrase]
        words = [clause.text for clause in clauses]
        synonyms = [text for clause in clauses for text in clause.also]
        if any(map(operator_sign, words)) and not any(map(self._exact.analyze, words)):
            words = ["operator"]
        words += [other for word in words for other in self._stems.spellings(word)]
        synonyms += [other for word in synonyms for other in self._stems.spellings(word)]
        singles = [*words, *(word for word in synonyms if " " not in word)]
        sought = Sought(
            words,
            stems=[term for word in singles for term in self._compounds(word)],
            wanted=[clause.bare.lower() for clause, counts in query.shown if counts],
            phrases=[clause.text for clause in clauses if clause.phrase],
            flags=[flag for one in clauses if not one.field for flag in self._flags(one.text)],
            codes=[code for one in clauses if not one.field and (code := self._code(one.text))],
            name=query.name,
            synonyms=synonyms,
            fuzzy={
                word: clause.fuzzy
                for clause in clauses
                if clause.fuzzy
                for word in self._exact.analyze(clause.text)
            },
        )
        return SnippetMaker(sought, self._exact, self._stems)

    def reranker(self, query: ParsedQuery, pages: int) -> Reranker:
        """Makes the reranker of the first hits, by the words that matter; it is false without words
        that matter. ``pages``: the number of pages in the index, including deleted pages, which
        BM25 counts."""
        found: dict[str, float] = {}
        typed = [(clause.bare.lower(), clause, counts) for clause, counts in query.told]
        if self._stems.searcher is not None:
            for text, _, counts in typed:
                share = BARE_WEIGHT if self._is_sign(text) else 1.0
                for word in self._exact.analyze(text) if counts else ():
                    found[word] = share * idf(pages, self._stems.having("exact", word))
                    if self._boosts.counted is not None:
                        found[word] *= self._boosts.counted("exact", [word])
        related = {
            text: others
            for text, clause, _ in typed
            if (others := [other for other in clause.related if " " not in other])
        }
        return Reranker(found, self._stems, self._stems.in_most_titles, related, query.name)

    def words(self, text: str) -> list[str]:
        """The words of a text as in the exact fields."""
        return self._exact.analyze(normalized(text.encode("utf-8", "replace").decode()))

    def titles(self, text: str) -> Iterable[list[str]]:
        """The words of a text as titles have them: one list for each language."""
        return self._stems.alternatives(text)

    def terms(self, word: str) -> list[tuple[str, str]]:
        """The fields and terms in which a plain word is searched, at least one."""
        found = [(field, word) for field in self._exact_weights]
        stems = self._stems.analyze(word)
        return found + [(field, stem) for field in STEMMED_WEIGHTS for stem in stems]

    def more_like_this(self, document: Document, searcher: tantivy.Searcher) -> Query:
        """Pages that share the salient words of this one."""
        text = normalized(f"{document.title} {document.text[:_LIKE_CHARS]}")
        words = salient_words(
            self._exact.analyze(text),
            lambda word: searcher.doc_freq("exact", word),
            searcher.num_docs,
        )
        if not words:
            return self._queries.empty_query()
        alike = [self.term("exact", word) for word in words]
        itself = self.term("key", document.normalized)
        return self._queries.boolean_query([(Occur.Must, _any(alike)), (Occur.MustNot, itself)])

    def _words(self, query: ParsedQuery) -> Built | None:
        """Plain and fuzzy words: OR, with a bonus for all words and for neighbours. Tantivy adds up
        terms side by side much faster than groups of them."""
        clauses = [clause for clause, _ in query.words]
        full = [counts for _, counts in query.words]
        found = _with_alternatives(self._terms_and_synonyms(clauses, full))
        if not found:
            return self._operators(clauses)
        matching = _any([query for each in found for query in each.earned])
        needed = [query for each in found for query in each.needed]
        beside = [query for each in found for query in each.beside]
        beside += self._pairs(clauses, full)
        if self._link_texts:
            beside += self._labels(clauses, full)
        every = _every(needed) if needed else matching
        if self._pages() >= MANY_PAGES:
            return _in_parts(found, beside, matching, every)
        if sum(each.words for each in found if each.needed) > 1:
            enough = _every([query for each in found for query in each.enough])
            beside.append(self._queries.const_score_query(enough, ALL_WORDS_BONUS))
        return Built((_with([matching], beside),), matching, every)

    def _operators(self, clauses: Sequence[Clause]) -> Built | None:
        """Pages with operators that are typed alone (``->>``)."""
        typed = [operator_sign(clause.text) for clause in clauses if not clause.fuzzy]
        each = [
            self._whole("signs", sign, SIGN_WEIGHT) for sign in dict.fromkeys(filter(None, typed))
        ]
        return Built((_any(each),), _any(each), _every(each)) if each else None

    def _pairs(self, clauses: Sequence[Clause], full: Sequence[bool]) -> Iterator[Query]:
        """Neighbours in the query."""
        tokens: list[tuple[str | None, int]] = []  # None: not in pairs
        for number, (clause, counts) in enumerate(zip(clauses, full, strict=True)):
            if not clause.fuzzy:
                words = self._exact.analyze(clause.text) if counts else [None]
                tokens += [(word, number) for word in words]
        for (one, first), (other, second) in pairwise(tokens):
            if one is None or other is None or (first != second and clauses[second].either):
                continue
            if first == second or not self._frequent([one, other]):
                yield self._queries.boost_query(self.sequence("exact", (one, other)), PAIR_WEIGHT)

    def _terms_and_synonyms(
        self, clauses: Sequence[Clause], full: Sequence[bool]
    ) -> Iterator[_Terms]:
        """The terms of each word, or of each term with synonyms: a page with a synonym counts as a
        page with the word. "line by line" counts "line" once."""
        at, known = 0, set[tuple[str, int]]()
        while at < len(clauses):
            covered = clauses[at : at + clauses[at].covers]
            parts = [clause.text for clause in covered]
            others = [self._synonym(text, parts) for text in clauses[at].also]
            also = [
                self._queries.boost_query(query, SYNONYM_WEIGHT) for _, query in others if query
            ]
            earned, beside, telling = list[Query](), list[Query](), False
            needed, enough, pages = list[Query](), list[Query](), 0
            for number in range(at, at + clauses[at].covers):
                text, fuzzy = clauses[number].text.lower(), clauses[number].fuzzy
                if (text, fuzzy) in known:
                    continue
                known.add((text, fuzzy))
                terms, more = self._word(clauses[number], 1.0 if full[number] else STOP_WEIGHT)
                earned += terms
                beside += more
                if terms and full[number]:
                    needed.append(self._whole_word(clauses[number], terms))
                    related = list(self._related(clauses[number]))
                    enough.append(_any([*needed[-1:], *related]))
                    if related:
                        best = self._queries.disjunction_max_query(related)
                        beside.append(self._queries.boost_query(best, RELATED_WEIGHT))
                    telling |= fuzzy > 0 or not self._widespread(text)
                    pages = 0 if fuzzy else self._having_all(self._exact.analyze(text))
            if also and earned:
                best = self._queries.disjunction_max_query([_with([_any(earned)], beside), *also])
                whole = _every(needed or [_any(earned)])
                either = self._queries.const_score_query(_any([whole, *also]), 0.0)
                found = [*earned, *(query for terms, _ in others for query in terms)]
                found = [self._queries.boost_query(query, 0.0) for query in found]
                several = _Terms(found, [best], [either], [either], telling, words=len(needed))
                yield several._replace(either=clauses[at].either)
            elif earned:
                is_other = clauses[at].either
                yield _Terms(earned, beside, needed, enough, telling, pages, either=is_other)
            at += clauses[at].covers

    def _whole_word(self, clause: Clause, terms: list[Query]) -> Query:
        """Pages found by its ``terms``, or by all parts of a name or of its other spellings
        (``read_csv``)."""
        if clause.fuzzy or len(set(self._exact.analyze(clause.text))) < 2:
            return _any(terms)
        spellings = [clause.text, *self._stems.spellings(clause.text)]
        parts = [dict.fromkeys(self._exact.analyze(text)) for text in spellings]
        whole = [_every([_any(self._word(Clause(one))[0]) for one in each]) for each in parts]
        if code := self.joined(clause.text):
            whole += self._whole_code(code)
        return _with([_any(terms), self._queries.const_score_query(_any(whole), 0.0)], [])

    def _related(self, clause: Clause) -> Iterator[Query]:
        """Each related word that the index knows, in text and title."""
        for text in filter(self._is_known, clause.related):
            words = self._exact.analyze(text)
            found = [self.sequence("exact", words)]
            if len(words) == 1:
                weight = STEMMED_WEIGHTS["title"]
                stems = self._stems.analyze(text)
                found += [
                    self._queries.boost_query(self.term("title", stem), weight) for stem in stems
                ]
                found += self._forms(words[0], ("exact",), 1.0)
            yield _any(found)

    def _is_known(self, text: str) -> bool:
        return self._having_all(self._exact.analyze(text)) > 0

    def _synonym(self, text: str, typed: Sequence[str]) -> tuple[list[Query], Query | None]:
        """The queries for a synonym: they find pages with the word, or with several words side by
        side; and the query that scores these pages as if the synonym had been typed. ``typed``: the
        words in whose place it stands. If these are only the parts of the synonym, they find the
        pages that have both."""
        if len(self._exact.analyze(text)) > 1:
            phrase = self._required(Clause(text, phrase=True))
            return [phrase] if phrase else [], phrase
        has_parts = len(typed) > 1 and text == "".join(typed)
        terms, beside = self._word(Clause(text), has_parts=has_parts)
        if joined_parts(typed) == text:
            beside = [*beside, self._whole("exact", text, CODE_WEIGHT)]
        return terms, _with([_any(terms)], beside) if terms else None

    def _labels(self, clauses: Sequence[Clause], full: Sequence[bool]) -> Iterator[Query]:
        """A query for link texts that equal the query, with or without words that say little at its
        ends."""
        first, last = full.index(True), len(full) - full[::-1].index(True)
        texts = {
            label(" ".join(clause.text for clause in clauses)),
            label(" ".join(clause.text for clause in clauses[first:last])).rstrip("?!"),
        }
        known = [text for text in texts if text and self._has("labels", text)]
        for text in known:
            yield self._label(text)
        if not known and len(clauses) == 1:
            yield from self._form_labels(self._exact.analyze(clauses[0].text))

    def _label(self, text: str) -> Query:
        words = len(self._exact.analyze(text))
        return self._whole("labels", text, LABEL_WEIGHT * max(1, words))

    def _form_labels(self, words: Sequence[str]) -> Iterator[Query]:
        """Link texts that are another form of the only word: TimeZone for "timezones"."""
        for form in self._stems.forms(words[0]) if len(words) == 1 else ():
            if self._has("labels", form):
                known = self._stems.having("exact", words[0]) > 0
                weight = KNOWN_FORM_LABEL_WEIGHT if known else FORM_LABEL_WEIGHT
                yield self._whole("labels", form, weight)

    def _word(
        self, clause: Clause, weight: float = 1.0, *, has_parts: bool = False
    ) -> tuple[list[Query], list[Query]]:
        """The queries for a word and its forms in each field, times ``weight`` (empty for a text
        without a letter), and the queries that add to the scores of the found pages. ``has_parts``:
        the search looks for the word's parts anyway."""
        exact = self._exact.analyze(clause.text)
        typed = signs(clause.text)
        if clause.fuzzy and exact:
            fuzzy = self._queries.fuzzy_term_query
            return [
                self._queries.boost_query(
                    fuzzy(self.schema, field, token, distance=clause.fuzzy), weight
                )
                for token in exact
                for field in self._unstemmed
            ], []
        earned = [self._found_by("signs", sign) for sign in typed]
        beside = [self._whole("signs", sign, SIGN_WEIGHT * weight) for sign in typed]
        if not exact:
            return earned, beside
        if code := self.joined(clause.text):
            earned += self._whole_code(code)
            beside += self._code_beside(code, exact, weight)
        share = weight
        if self._is_sign(clause.text):
            share *= BARE_WEIGHT
        elif len(exact) > 1 and "_" in clause.text:
            share *= NAME_PART_WEIGHT
        spellings = [clause.text, *self._stems.spellings(clause.text)]
        stems = [stem for text in spellings for stem in self._stems.analyze(text)]
        exact += [token for text in spellings[1:] for token in self._exact.analyze(text)]
        widespread = self._widespread(clause.text)
        stemmed = {"title": STEMMED_WEIGHTS["title"]} if widespread else STEMMED_WEIGHTS
        earned += [
            self._queries.boost_query(self.term(field, token), field_weight * share)
            for known, tokens in ((self._exact_weights, exact), (stemmed, stems))
            for field, field_weight in known.items()
            for token in dict.fromkeys(tokens)
            if field == "exact" or self._has(field, token)
        ]
        fields = ("anchors",) if widespread else self._form_fields
        for token in exact if self._link_texts or not widespread else ():
            earned += self._forms(token, fields, share)
        for text in spellings if not has_parts else ():
            if compounds := self._compounds(text):
                earned += [self._found_by("body", term) for term in compounds]
                best = self._queries.disjunction_max_query(
                    [self.term("body", t) for t in compounds]
                )
                beside.append(self._queries.boost_query(best, COMPOUND_WEIGHT * weight))
            if parts := [self.term("body", term) for term in self._stems.split(text)]:
                earned.append(self._queries.boost_query(_every(parts), COMPOUND_WEIGHT * weight))
        return earned, beside

    def joined(self, text: str) -> str:
        """A word or code as one term, if a page has it in one piece or in several parts; else
        ""."""
        text = without_accents(text.rstrip("?!.,;:").lower())
        code = joined_word(text)
        if code and self._has("exact", code):
            return code
        code = code or (text if text.isalnum() else "")
        return code if code and self._has("signs", code) else ""

    def _code(self, text: str) -> str:
        """The result of `joined` for a code with digits, or for a word that no page has in its
        typed form."""
        code = self.joined(text)
        is_code = not code.isalpha() or not self._has("exact", code)
        return code if is_code and (text.isalnum() or not code.isalpha()) else ""

    def _whole_code(self, code: str) -> list[Query]:
        """Pages with a code in one piece, and in any parts."""
        found = [self._found_by("signs", code)] if self._has("signs", code) else []
        if self._has("exact", code):
            found.append(self.term("exact", code))
        return found

    def _code_beside(self, code: str, words: Sequence[str], weight: float) -> Iterator[Query]:
        """Additional scores of pages with a code, typed in these ``words``."""
        apart = len(words) > 1
        if self._has("signs", code) and (apart or not self._has("exact", code)):
            yield self._whole("signs", code, CODE_WEIGHT * weight)
        if apart and not code.isalpha() and self._has("exact", code):
            yield self._whole("exact", code, CODE_WEIGHT * weight)

    def _is_sign(self, text: str) -> bool:
        """Whether pages have a sign such as ``--prefix`` exactly as it is typed."""
        found = signs(text)
        return bool(found) and self._stems.having("signs", found[0]) > 0

    def _flags(self, text: str) -> list[str]:
        """Flags and key chords that pages have, as they are typed."""
        return [
            text[at : at + len(sign)]
            for sign in (signs(text) if "-" in text else ())
            if not sign.startswith("operator") and (at := text.lower().find(sign)) >= 0
            if self._stems.having("signs", sign)
        ]

    def _compounds(self, text: str) -> list[str]:
        if not self._stems.has_compounds or self._frequent(self._exact.analyze(text)):
            return []
        return self._stems.compounds(text)

    def _frequent(self, words: Sequence[str]) -> bool:
        """Whether each of the words is."""
        return self._having_all(words) > FREQUENT_PAGES + FREQUENT_SHARE * self._pages()

    def _widespread(self, text: str) -> bool:
        """Whether each of its words is."""
        pages = self._pages()
        if pages < MANY_PAGES or self._is_sign(text):
            return False
        return self._having_all(self._exact.analyze(text)) > WIDESPREAD_SHARE * pages

    def _having_all(self, words: Sequence[str]) -> int:
        """At most this number of pages have all of the words; 0 without words."""
        return min((self._stems.having("exact", word) for word in words), default=0)

    def _has(self, field: str, token: str) -> bool:
        """Whether any page has a term: Tantivy looks up each term of a query, and often."""
        return self._stems.searcher is None or self._stems.having(field, token) > 0

    def _found_by(self, field: str, token: str) -> Query:
        """Pages that earn something for this term elsewhere."""
        return self._queries.boost_query(self._plain_term(field, token), 0.0)

    def _forms(self, word: str, fields: Sequence[str], share: float) -> Iterator[Query]:
        """Other forms of a word. Each is weighted by the rarity of all forms together."""
        forms, searcher = self._stems.forms(word, fields[0]), self._stems.searcher
        if not forms or searcher is None:
            return
        pages = searcher.num_docs
        known = self._stems.having("exact", word)
        together = idf(pages, min(pages, known + sum(forms.values())))
        weight = share * (FORM_WEIGHT / sqrt(len(forms)) if known else 1.0)
        for form, having in forms.items():
            rarity = together / idf(pages, having)
            for field in fields:
                if not self._has(field, form):
                    continue
                factor = EXACT_WEIGHTS[field] * weight * rarity
                yield self._queries.boost_query(self.term(field, form), factor)

    def _whole(self, field: str, token: str, weight: float) -> Query:
        """A token that counts by its rarity alone: a page with a hundred flags is no worse a match
        for one of them."""
        rarity = idf(self._pages(), self._stems.having(field, token))
        found = self._queries.const_score_query(
            self._queries.term_query(self.schema, field, token), weight * rarity
        )
        return _boosted(found, self._boosts.counted, field, [token])

    def _pages(self) -> int:
        searcher = self._stems.searcher
        return searcher.num_docs if searcher else 1

    def _required(self, clause: Clause) -> Query | None:
        """The query for a phrase, a field or an excluded word: the clause's words side by side, in
        this order."""
        if clause.field:
            operator = OPERATORS.get(clause.field)
            if operator is None:
                return self.term("own_words", own_word(clause.field, clause.text))
            return operator(self, clause.text)
        tokens = self._exact.analyze(clause.text)
        if not tokens:
            return None
        # an excluded word is searched in the page, not in texts of links to it
        fields = ("exact",) if clause.excluded else self._unstemmed
        found = [
            self._queries.boost_query(self.sequence(field, tokens), self._exact_weights[field])
            for field in fields
        ]
        whole = "" if clause.excluded else label(clause.text)
        if whole:
            if self._link_texts:
                found.append(self._label(whole))
            return _with([_any(found)], self._beside(clause.text, tokens))
        return _any(found)

    def _beside(self, text: str, tokens: Sequence[str]) -> list[Query]:
        """Queries that score pages with a phrase if title or URL have it, too."""
        words = [
            ("url_words", tokens),
            *(("title", stems) for stems in self._stems.alternatives(text) if stems),
        ]
        weights = EXACT_WEIGHTS | STEMMED_WEIGHTS
        return [
            self._queries.boost_query(self.sequence(field, each), weights[field])
            for field, each in words
        ]

    def sequence(self, field: str, tokens: Sequence[str]) -> Query:
        """Pages that have these tokens side by side in a field."""
        if len(tokens) == 1:  # Tantivy panics at a phrase of one word
            return self.term(field, tokens[0])
        phrase = self._queries.phrase_query(self.schema, field, list(tokens))
        return _boosted(phrase, self._boosts.scored, field, tokens)

    def term(self, field: str, token: str) -> Query:
        """Pages that have this token in a field."""
        return _boosted(self._plain_term(field, token), self._boosts.scored, field, [token])

    def _plain_term(self, field: str, token: str) -> Query:
        # Tantivy would open positions as well, which takes longer than to read a short list
        return self._queries.term_query(self.schema, field, token, index_option="freq")


def _with_alternatives(each: Iterable[_Terms]) -> list[_Terms]:
    """The words of a query, alternatives (``tls OR ssl``) as one."""
    found = list[_Terms]()
    for one in each:
        if not (one.either and found):
            found.append(one)
            continue
        last = found[-1]
        found[-1] = _Terms(
            [*last.earned, *one.earned],
            [*last.beside, *one.beside],
            _alternatives(last.needed, one.needed),
            _alternatives(last.enough, one.enough),
            last.telling or one.telling,
            last.pages + one.pages if last.pages and one.pages else 0,
        )
    return found


def _alternatives(*each: Sequence[Query]) -> list[Query]:
    """One query for pages that match all queries of at least one group; None without queries."""
    known = [_every(queries) for queries in each if queries]
    return [_any(known)] if known else []


def _boosted(query: Query, boost: Boost | None, field: str, tokens: Sequence[str]) -> Query:
    return query if boost is None else type(query).boost_query(query, boost(field, list(tokens)))


def _in_parts(
    words: Sequence[_Terms], beside: Sequence[Query], matching: Query, every: Query
) -> Built:
    """The queries for an index of `MANY_PAGES`, which does not search all pages at once. Tantivy
    adds up a union of terms much faster without phrases in it."""
    ranked, behind = _with([matching], beside), None
    telling = [query for each in words if each.telling for query in each.earned]
    others = [query for each in words if not each.telling for query in each.earned]
    if telling and others:
        ranked, behind = _with([_with([_any(telling)], others)], beside), ranked
    needed = [query for each in words for query in each.needed]
    if sum(each.words for each in words if each.needed) < 2:
        return Built((ranked,), matching, every, behind)
    kind = type(matching)
    bonus = kind.const_score_query(kind.all_query(), ALL_WORDS_BONUS)
    idle = [query for each in words if not each.needed for query in each.earned]
    with_all = _with([_with([*needed, bonus], idle)], beside)
    by_rarity = sorted((each for each in words if each.needed), key=lambda each: each.pages)
    half = (len(by_rarity) + 1) // 2
    rarer = [query for each in by_rarity[:half] for query in each.needed]
    frequent = [query for each in by_rarity[half:] for query in each.earned]
    nearly = _with([_with(rarer, [*frequent, *idle])], beside)
    return Built((with_all, ranked), matching, every, behind, nearly)


def _with(required: Sequence[Query], beside: Sequence[Query]) -> Query:
    """All of the required queries, and what their pages earn more."""
    return _kind(required or beside).boolean_query(
        [(Occur.Must, query) for query in required] + [(Occur.Should, query) for query in beside]
    )


def _any(queries: Sequence[Query]) -> Query:
    """Matches at least one of the queries; the scores add up."""
    if len(queries) == 1:
        return queries[0]
    return _kind(queries).boolean_query([(Occur.Should, query) for query in queries])


def _every(queries: Sequence[Query]) -> Query:
    return _kind(queries).boolean_query([(Occur.Must, query) for query in queries])


def _kind(queries: Sequence[Query]) -> type[Query]:
    return type(queries[0]) if queries else Query


def salient_words(words: Iterable[str], frequency: Callable[[str], int], pages: int) -> list[str]:
    """The words that tell a page from the others, by tf-idf, best first.

    ``words`` are all words of the page; ``frequency`` says how many of the ``pages`` have a word. A
    word of this page alone is left out. (Tantivy's more_like_this panics once a page was indexed
    again, because it counts deleted pages in one place and not in another: 0.27.0, "57 >= 67" in
    bm25.rs.)
    """
    counted = Counter(word for word in words if len(word) >= _SHORTEST and not word.isdigit())
    best = list[tuple[float, str]]()
    for word, times in counted.most_common(_LOOKED_UP):
        often, last = (
            1 + log(times),
            best[SALIENT_WORDS - 1][0] if len(best) >= SALIENT_WORDS else 0.0,
        )
        if -often * log(1 + pages / 2) > last:
            break  # no word from here on weighs enough, however rare it is
        having = frequency(word)
        if having >= 2 and (having <= _TOO_OFTEN * pages or pages < _FEW_PAGES):
            insort(best, (-often * log(1 + pages / having), word))
    return [word for _, word in best[:SALIENT_WORDS]]


class Statistics(NamedTuple):
    """An index that Tantivy scores by, and the number of ``pages`` that it counts; ``seen`` is the
    visible part for a reader who does not see all."""

    searcher: tantivy.Searcher
    pages: int
    seen: Limited | None = None

    @classmethod
    def of(cls, reader: tantivy.Searcher | Limited, pages: int) -> Self:
        """``pages``: the number that Tantivy counts where the reader sees all pages."""
        if isinstance(reader, Limited):
            return cls(reader.all, reader.pages_of_all, reader)
        return cls(reader, pages)

    @property
    def counts(self) -> tantivy.Searcher | Limited:
        """The pages that may be counted for the reader."""
        return self.seen or self.searcher

    @property
    def pages_seen(self) -> int:
        return self.pages if self.seen is None else self.seen.num_docs


class GlobalIdf:
    """The global IDF of a query's words over several indexes, each looked up once, 0.3 us.

        global_idf = GlobalIdf([Statistics(searcher_a, 1200), Statistics(searcher_b, 40)])
        boosts = global_idf.boosts(0)             # boosts.scored("body", ["wiki"]) -> 7.3

    BM25 multiplies a word's score by the IDF in its own index. In an index that has only pages of
    the wiki, "wiki" scores nothing; elsewhere it scores much. Scores of two indexes therefore do
    not compare, unless each index's query is boosted, word by word, by global IDF / own IDF. One
    difference remains: each index takes the average length of a page from its own pages.

    Tantivy's own IDF counts all pages of an index. For a reader who sees only some of them, even of
    a single index, the global IDF counts the visible pages alone, so that no order of hits reveals
    how many hidden pages have a word.
    """

    def __init__(self, indexes: Sequence[Statistics]) -> None:
        self._indexes = indexes
        self._pages = sum(one.pages_seen for one in indexes)
        self._overall: dict[tuple[str, str], float] = {}
        limited = any(one.seen is not None for one in indexes)
        self._idf_of = tantivys_idf if limited else idf

    def boosts(self, number: int) -> Boosts:
        """The boosts for queries to one index. The IDF of a phrase is the sum over its words."""
        one = self._indexes[number]
        scored = self._boost(one.searcher, one.pages)
        if one.seen is None:
            return Boosts(scored, scored)
        if len(self._indexes) == 1:
            return Boosts(scored)
        return Boosts(scored, self._boost(one.seen, one.pages_seen))

    def _boost(self, searcher: tantivy.Searcher | Limited, pages: int) -> Boost:
        idf_of = self._idf_of

        def boost(field: str, words: Sequence[str]) -> float:
            own = sum(idf_of(pages, searcher.doc_freq(field, word)) for word in words)
            return sum(self._idf(field, word) for word in words) / own if own else 1.0

        return boost

    def _idf(self, field: str, word: str) -> float:
        found = self._overall.get((field, word))
        if found is None:
            if len(self._overall) >= _REMEMBERED:
                self._overall.clear()
            having = sum(one.counts.doc_freq(field, word) for one in self._indexes)
            found = self._overall[field, word] = self._idf_of(self._pages, having)
        return found


def idf(pages: int, having: int) -> float:
    """Inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)), of a word that n of N pages
    have (Robertson and Zaragoza 2009, 3.3; Tantivy's ``idf()``); never negative."""
    return log(1 + (max(pages, having) - having + 0.5) / (having + 0.5))


def tantivys_idf(pages: int, having: int) -> float:
    """`idf` rounded at each step as Tantivy does: of a word that nearly all pages have little is
    left, and a boost is to bring back just that."""
    ratio = _single(_single(max(pages, having) - having + 0.5) / _single(having + 0.5))
    return _single(log(_single(1 + ratio)))


def _single(number: float) -> float:
    """A number as a float of 32 bits."""
    return c_float(number).value
