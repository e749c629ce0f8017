"""Word forms: a page is stemmed in its own language, a query in the languages of the index.

The field ``body`` has the stems of all pages. Tantivy stems the pages in the language of the index.
A page in another language comes as stems, which Tantivy stems once more, like the words of a
query::

    stems = Stems("english")
    stems.of_page("Zwei alte Häuser", "de")      # ["zwei", "alt", "haus"]
    stems.look_in(searcher)                      # an index with German pages
    stems.analyze("Häuser")                      # ["hauser", "haus"]
    stems.compounds("Treiber")                   # ["druckertreib", ...]

German, Dutch and the Scandinavian languages write compounds in one word. The field ``parts`` has
the long words of these pages, forwards and, after a ``<``, backwards. The index itself is thus the
list in which compounds that begin or end with a word are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from types import MappingProxyType
from typing import Self, TypeVar, cast

import tantivy

from larmspider.index.access import Limited, words_beginning_with
from larmspider.index.schema import stemmed_analyzer

STEMMERS_OF = MappingProxyType(
    {
        "ar": "arabic",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "es": "spanish",
        "fi": "finnish",
        "fr": "french",
        "hu": "hungarian",
        "it": "italian",
        "nb": "norwegian",
        "nl": "dutch",
        "nn": "norwegian",
        "no": "norwegian",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sv": "swedish",
        "ta": "tamil",
        "tr": "turkish",
    }
)
"""Stemmers by primary language."""
KOREAN, HEBREW, ARABIC, FINNISH = "ko", "he", "ar", "fi"
COMPOUNDING = frozenset(("da", "de", "nb", "nl", "nn", "no", "sv", KOREAN))
"""Languages whose long words are looked up by their parts."""
_WITHOUT_STEMMER = (KOREAN, HEBREW)
_CHANGED = frozenset((*_WITHOUT_STEMMER, ARABIC, FINNISH))
"""Languages whose words are changed here, before or after a stemmer."""

MAX_COMPOUNDS = 20
"""Compounds that a word is looked for in, the most frequent ones."""
LONG, LONGEST = 8, 40
"""Letters of words that may be compounds."""

_PART = 4  # letters of a part, at least
_REST = 3  # letters of the other part, at least
_SHORT_PART, _SHORT_REST, _SHORT_LONG = 2, 1, 3  # the same, and `LONG`, for syllables of Korean
_CLEAR, _CLEAR_REST = 6, 4  # letters of a word and of the other part, which may then be any letters
_BACKWARDS = "<"
_ENGLISH = "english"
_SHORTEST = 3  # letters of a word with forms, and of their common beginning
_LOOKED_UP = 300  # words with this beginning
_REMEMBERED = 10_000  # words that were looked up
_LOOKED_AT = 100  # words that begin or end with a part
_MANY_TITLES = 0.4  # share of the pages
_LINKING = ("", "s", "n", "es", "en", "er", "e", "ns")  # letters between two parts
# Longer ones first. A particle after one syllable is as often a part of the word.
_PARTICLES = re.compile(
    "(?<=[가-힣]{2})(?:에서는|으로는|에게서|으로써|으로서|에서도|까지는|부터는|이라는|이라고|에서|에게|께서|한테"
    "|으로|까지|부터|처럼|보다|마다|조차|밖에|이나|이며|이고|라는|라고|에는|에도|과는|와는|하고"
    "|은|는|이|가|을|를|의|에|와|과|도|만|로|나|야|랑)$"
)
_PREFIXES = {
    # and, so; in, like, to; the article
    ARABIC: re.compile(
        "^[\u0648\u0641]?(?:\u0644\u0644|[\u0628\u0643]?\u0627\u0644|[\u0644\u0628])?(?=\\w{3})"
    ),
    # and, the, in, as, to, from, that: all of them, so that words with and without are alike
    HEBREW: re.compile("^[\u05d5\u05d4\u05d1\u05db\u05dc\u05de\u05e9]+(?=\\w{3})"),
}
"""Prefixes that are written as part of a word, where three letters are left."""
_ARTICLE = "\u0627\u0644"  # of Arabic
_GRADES = (
    *(("kk", "k"), ("pp", "p"), ("tt", "t"), ("ng", "nk"), ("mm", "mp"), ("m", "mp"), ("nn", "nt")),
    *(("ll", "lt"), ("rr", "rt"), ("v", "p"), ("d", "t")),
)
"""The strong and the weak consonants at the end of a Finnish stem: kauppa, kaupan; katu, kadun."""
_VOWELS = "aeiouy\u00e4\u00f6"
_K = TypeVar("_K")
_T = TypeVar("_T")
_UMLAUTS = ((("ae", "ä"), ("oe", "ö"), ("ue", "ü")), (("ä", "ae"), ("ö", "oe"), ("ü", "ue")))


class _Commit:
    """The answers of one commit. Callers take both together: another thread may read the next
    commit meanwhile."""

    def __init__(self, searcher: tantivy.Searcher | None) -> None:
        self.searcher = searcher
        self.forms: dict[str, dict[str, dict[str, int]]] = {}  # by field
        self.compounds: dict[str, list[str]] = {}
        self.splits: dict[str, list[str]] = {}
        self.in_most_titles: dict[str, bool] = {}
        self.having: dict[tuple[str, str], int] = {}


class Stems:
    """The stems of an index with this stemmer; `look_in` names the index that queries compare
    with."""

    def __init__(self, main: str) -> None:
        self._main_name = main
        self._main = stemmed_analyzer(main)
        self._analyzers = {
            name: stemmed_analyzer(name) for name in {*STEMMERS_OF.values()} - {main}
        }
        self._english = stemmed_analyzer(_ENGLISH)
        self._commit = _Commit(None)
        self._analyzed: dict[str, list[str]] = {}
        self._tongues: tuple[str, ...] = ()

    def looking_in(self, searcher: tantivy.Searcher | Limited) -> Self:
        """The same stemmers, for queries to ``searcher``."""
        other = copy(self)
        other._analyzed, other._tongues = {}, ()
        other.look_in(searcher)
        return other

    def look_in(self, searcher: tantivy.Searcher | Limited) -> None:
        """Compare queries with the pages of ``searcher``, until the next call."""
        known = (*STEMMERS_OF, *_WITHOUT_STEMMER)
        tongues = tuple(tongue for tongue in known if searcher.doc_freq("tongue", tongue))
        if tongues != self._tongues:
            self._tongues = tongues
            self._analyzed = {}
        self._commit = _Commit(cast("tantivy.Searcher", searcher))

    # pages

    def of_page(self, text: str, tongue: str) -> list[str] | None:
        """The stems of a normalized text. None if Tantivy makes the stems, or if `forms` are looked
        up for a query."""
        if self._is_main(tongue) or self.has_forms(tongue):
            return None
        return self._own(text, tongue)

    def has_forms(self, tongue: str) -> bool:
        """Whether pages in this language have no field ``body``. In English the letters of a word
        tell enough about its forms, so `forms` finds them in the index's dictionary."""
        if tongue in _WITHOUT_STEMMER:
            return False
        return STEMMERS_OF.get(tongue, self._main_name) == _ENGLISH

    @staticmethod
    def writes_compounds(tongue: str) -> bool:
        """Whether compounds are one word in this language."""
        return tongue in COMPOUNDING

    def parts_of_page(self, text: str, tongue: str) -> str:
        """The field ``parts`` of a page with this normalized text."""
        if tongue not in COMPOUNDING:
            return ""
        least = _SHORT_LONG if tongue == KOREAN else LONG
        words = {
            word
            for word in self._own(text, tongue)
            if least <= len(word) <= LONGEST and word.isalpha()
        }
        return " ".join([*words, *(_BACKWARDS + word[::-1] for word in words)])

    # queries

    @property
    def searcher(self) -> tantivy.Searcher | None:
        """What `look_in` named last."""
        return self._commit.searcher

    def having(self, field: str, term: str) -> int:
        """How many pages have a term; 1 us for each segment of the index, once a commit."""
        commit = self._commit
        searcher = commit.searcher
        if searcher is None:
            return 0
        return _remembered(commit.having, (field, term), lambda one: searcher.doc_freq(*one))

    def forms(self, word: str, field: str = "exact") -> dict[str, int]:
        """Other words of a field with the English stem of ``word``, a word of ``exact``, and the
        number of pages with each in ``exact``."""
        commit = self._commit
        known = commit.forms.setdefault(field, {})
        return _remembered(
            known, word, lambda one: dict(self._look_up_forms(one, field, commit.searcher))
        )

    def _look_up_forms(
        self, word: str, field: str, searcher: tantivy.Searcher | None
    ) -> Iterator[tuple[str, int]]:
        if searcher is None or len(word) < _SHORTEST or not word.isalpha():
            return
        stems = self._english.analyze(word)
        head = _common_head(word, stems)
        if len(head) >= _SHORTEST:
            seen_alone = isinstance(searcher, Limited)
            for other in words_beginning_with(searcher, field, head, _LOOKED_UP):
                if other == word or self._english.analyze(other) != stems:
                    continue
                if not seen_alone or searcher.doc_freq(field, other):
                    yield other, searcher.doc_freq("exact", other)

    def in_most_titles(self, word: str) -> bool:
        """Whether ``word`` is in many titles, as the name of a site does."""
        commit = self._commit
        return _remembered(
            commit.in_most_titles, word, lambda one: self._look_up_titles(one, commit.searcher)
        )

    def _look_up_titles(self, word: str, searcher: tantivy.Searcher | None) -> bool:
        if searcher is None:
            return False
        many, having = _MANY_TITLES * searcher.num_docs, searcher.doc_freq
        return any(having("title", stem) > many for stem in self.analyze(word))

    def analyze(self, text: str) -> list[str]:
        """The words of a normalized text in ``body``, each once, whatever its language."""
        return _remembered(self._analyzed, text, self._analyze)

    def _analyze(self, text: str) -> list[str]:
        return list(dict.fromkeys(word for words in self.alternatives(text) for word in words))

    def alternatives(self, text: str) -> list[list[str]]:
        """The words of a text in ``body``, once for each language that stems them differently."""
        found = [self._main.analyze(text)]
        for tongue in self._tongues:
            if not self._is_main(tongue):
                words = self._final(self._own(text, tongue), tongue)
                if words and words not in found:
                    found.append(words)
        return found

    def spellings(self, text: str) -> list[str]:
        """``text`` with ä for ae and ae for ä, where the index has German pages."""
        if "de" not in self._tongues:
            return []
        found = []
        for pairs in _UMLAUTS:
            other = text.lower()
            for one, two in pairs:
                other = other.replace(one, two)
            if other != text.lower():
                found.append(other)
        return found

    @property
    def has_compounds(self) -> bool:
        """Whether the index has pages in a language that writes them."""
        return not COMPOUNDING.isdisjoint(self._tongues)

    def compounds(self, text: str) -> list[str]:
        """Words of ``body`` that have ``text``, one word, as their first or last part."""
        commit = self._commit
        return _remembered(
            commit.compounds, text, lambda one: self._look_up_compounds(one, commit.searcher)
        )

    def _look_up_compounds(self, text: str, searcher: tantivy.Searcher | None) -> list[str]:
        if searcher is None:
            return []
        found: dict[str, int] = {}
        for tongue in self._compounding():
            for word in self._own(text, tongue):
                if len(word) >= _least(tongue)[0] and word.isalpha():
                    clear = len(text) >= _CLEAR or tongue == KOREAN
                    for compound, pages in self._with_part(word, tongue, searcher, clear):
                        for term in self._final([compound], tongue):
                            found[term] = max(pages, found.get(term, 0))
        return sorted(found, key=lambda term: (-found[term], term))[:MAX_COMPOUNDS]

    def split(self, text: str) -> list[str]:
        """The two words of ``body`` that form ``text``; [] unless it is one compound of words that
        the index has."""
        commit = self._commit
        return _remembered(
            commit.splits, text, lambda one: self._look_up_split(one, commit.searcher)
        )

    def _look_up_split(self, text: str, searcher: tantivy.Searcher | None) -> list[str]:
        if searcher is None:
            return []
        best, best_pages = [], 0
        for tongue in self._compounding():
            for word in self._own(text, tongue):
                part, rest, long = _least(tongue)
                if not (long <= len(word) <= LONGEST and word.isalpha()):
                    continue
                for at in range(part, len(word) - rest + (tongue == KOREAN)):
                    tails = self._final([word[at:]], tongue)
                    having = min((searcher.doc_freq("body", term) for term in tails), default=0)
                    if having <= best_pages:
                        continue
                    for head in _without_linking(word[:at], min(part, _REST)):
                        heads = self._final(self._own(head, tongue), tongue)
                        pages = min([having, *(searcher.doc_freq("body", term) for term in heads)])
                        if len(heads) + len(tails) == 2 and pages > best_pages:
                            best, best_pages = heads + tails, pages
        return best

    def _compounding(self) -> list[str]:
        return [tongue for tongue in self._tongues if tongue in COMPOUNDING]

    def _with_part(
        self, part: str, tongue: str, searcher: tantivy.Searcher, clear: bool
    ) -> Iterator[tuple[str, int]]:
        enough = _SHORT_REST if tongue == KOREAN else _CLEAR_REST
        for word, pages in searcher.terms_with_prefix("parts", part, limit=_LOOKED_AT):
            rest = word[len(part) :]
            if (clear and len(rest) >= enough) or self._is_word(rest, tongue, searcher):
                yield word, pages
        backwards = _BACKWARDS + part[::-1]
        for word, pages in searcher.terms_with_prefix("parts", backwards, limit=_LOOKED_AT):
            compound = word[:0:-1]
            rest = compound[: -len(part)]
            if (clear and len(rest) >= enough) or self._is_word(rest, tongue, searcher):
                yield compound, pages

    def _is_word(self, rest: str, tongue: str, searcher: tantivy.Searcher) -> bool:
        return any(
            searcher.doc_freq("exact", word) or searcher.doc_freq("body", term)
            for word in _without_linking(rest)
            if len(word) >= _REST
            for term in self._final([word], tongue)
        )

    def _is_main(self, tongue: str) -> bool:
        if tongue in _CHANGED:
            return False
        return STEMMERS_OF.get(tongue, self._main_name) == self._main_name

    def _own(self, text: str, tongue: str) -> list[str]:
        if tongue == KOREAN:
            return [_PARTICLES.sub("", word) for word in self._main.analyze(text)]
        if tongue == HEBREW:
            return [_PREFIXES[HEBREW].sub("", word) for word in self._main.analyze(text)]
        if tongue == ARABIC:
            text = re.sub(r"[^\W\d_a-zA-Z]{3,}", _with_arabic_article, text)
        if tongue == FINNISH:
            return list(map(_graded, self._stemmed(text, tongue)))
        return self._stemmed(text, tongue)

    def _stemmed(self, text: str, tongue: str) -> list[str]:
        return self._analyzers.get(STEMMERS_OF.get(tongue, ""), self._main).analyze(text)

    def _final(self, stems: Iterable[str], tongue: str) -> list[str]:
        """Stems as they are in ``body``."""
        return list(stems) if self._is_main(tongue) else self._main.analyze(" ".join(stems))


def _least(tongue: str) -> tuple[int, int, int]:
    """Letters of a part, of the rest and of a compound, at least."""
    if tongue == KOREAN:
        return _SHORT_PART, _SHORT_REST, _SHORT_LONG
    return _PART, _REST, LONG


def _with_arabic_article(word: re.Match[str]) -> str:
    """A word with the article alone before it, because the stemmer takes others for verbs. A last
    heh is often meant as teh marbuta."""
    bare = _PREFIXES[ARABIC].sub("", word[0])
    return _ARTICLE + (f"{bare[:-1]}\u0629" if bare.endswith("\u0647") else bare)


def _graded(stem: str) -> str:
    """A Finnish stem without its last vowel, its consonants in one grade."""
    if stem[-1:] in _VOWELS and len(stem) > _SHORTEST:
        stem = stem[:-1]
    for ending, grade in _GRADES:
        if stem.endswith(ending) and len(stem) > len(ending) + 1:
            return stem[: -len(ending)] + grade
    return stem


def _remembered(known: dict[_K, _T], key: _K, look_up: Callable[[_K], _T]) -> _T:
    """The result of ``look_up`` for ``key``, looked up once a commit."""
    found = known.get(key)
    if found is None:
        if len(known) > _REMEMBERED:
            known.clear()
        found = known[key] = look_up(key)
    return found


def _common_head(word: str, stems: Iterable[str]) -> str:
    """The letters that the forms of ``word`` begin with: "librar" for library and its "librari"."""
    for stem in stems:
        while not word.startswith(stem):
            stem = stem[:-1]
        return stem
    return ""


def _without_linking(part: str, least: int = _REST) -> Iterator[str]:
    for letters in _LINKING:
        if part.endswith(letters) and len(part) - len(letters) >= least:
            yield part.removesuffix(letters)
