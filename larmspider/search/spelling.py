"""Did you mean: a query with words of the index in place of words that the index does not know.

A candidate differs by one letter (inserted, left out, changed, or two swapped), or by two in a long
word; the most frequent of the nearest candidates wins. All candidates are words of the index, so a
suggestion finds something::

    did_you_mean(searcher, "lisence server")     # Suggestion("license server", 12)

If no word is one letter away, two words that were typed as one are split, if pages have them side
by side. A word is right if pages have it in another form or as a flag (``-Werror``), or if it has
related words. A flag with a mistake can only become a flag of the index, and keeps its dash.
Capital letters stay. Digits of a word are never wrong.

For one wrong letter among the first four, each possible word is looked up, 1 us each. For a wrong
letter after them, the words with the same first four letters are looked through. For two wrong
letters, also the words whose first four letters differ by one change. If very many words begin
alike, they are not looked through: for one letter each possible word is looked up, and two wrong
letters are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from larmspider.errors import QueryError
from larmspider.index.normal import normalized
from larmspider.index.signs import signs
from larmspider.search.distance import distance
from larmspider.search.query import NO_FILTERS, Clause, Filters
from larmspider.search.ranking import MANY_PAGES
from larmspider.search.request import ParsedQuery, Vocabulary
from larmspider.search.results import SURE, Suggestion
from larmspider.search.stops import all_stops
from larmspider.search.synonyms import is_related

MAX_WORDS = 4
"""Words of a query for which candidates are looked up."""
_SHORTEST, _LONGEST = 4, 40  # letters of a word that is looked at
_SHORTEST_IN_NAME = 3  # letters, for a word in a name of several words
_LONGEST_NAME = 6  # words
_TRIED = 10  # words in one place of a name
_TWO_ERRORS = 7  # letters from which on two may be wrong
_HEAD = 4  # first letters, by which the dictionary is looked through
_LOOKED_THROUGH = 8_000  # words of the dictionary for one word of a query
_ALIKE = 2_000  # words with one head, from which on each possible word is looked up
_RARE = 100  # a word counts as a mistake if a similar word is 100 times as frequent
RIGHT_SHARE = 0.001
"""Share of the pages of an index of `MANY_PAGES`: a word on more pages is right. A word 100 times
as frequent is on 10% of the pages and says little; looking for it takes 7 ms in a million pages."""

_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяёєії",
    "αβγδεζηθικλμνξοπρστυφχψω",
)
_NAME = re.compile(r"\w+")
_WORD = re.compile(r"[^\W_]+")  # "init" of __init__


class Dictionary(Vocabulary, Protocol):
    """The words of an index, or of several, whose counts add up."""

    def totals(self, query: str, filters: Filters = NO_FILTERS) -> tuple[int, int]:
        """Number of pages that a query finds, with synonyms, and of pages with all words that
        matter. Raises QueryError."""

    def parsed(self, text: str) -> ParsedQuery:
        """A query taken apart, with synonyms. Raises QueryError."""

    @property
    def sees_all(self) -> bool:
        """Whether no page is hidden from the reader."""

    def occurrences(self, word: str) -> int:
        """About how many pages a search for this word finds."""

    def documents(self) -> int:
        """Pages of the index: no word is on more."""

    def one_commit(self) -> AbstractContextManager[None]:
        """Within it all questions are about one state of the index."""

    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        """The words that begin with ``head``; None if they are more than ``most``. Unless
        ``exactly``, which takes longer, a few may belong to hidden pages (`frequencies` knows the
        visible ones)."""


class _Doubtful(NamedTuple):
    """A plain word that may be wrong: its place in the query, the word as typed and as the index
    writes it, and its ``sign`` in lower case, or "". If it belongs to a name that no page has
    (``url_fro``), also the name's words before and after it."""

    at: int
    typed: str
    word: str
    sign: str
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


def did_you_mean(
    dictionary: Dictionary, query: ParsedQuery, filters: Filters = NO_FILTERS
) -> Suggestion | None:
    """A better query, or None. A word with synonyms is right."""
    typed = normalized(query.text)
    pieces, replaced, end = list[str](), list[tuple[str, str]](), 0
    for one in _doubtful_words(dictionary, query.clauses):
        if typed.startswith(one.typed, one.at) and (better := _better(dictionary, one)):
            pieces += typed[end : one.at], better
            replaced.append((one.word, better.lower()))
            end = one.at + len(one.typed)
    if not pieces:
        return None
    suggested = "".join((*pieces, typed[end:]))
    try:
        total, total_all = dictionary.totals(suggested, filters)
        if filters != NO_FILTERS:  # pages that have the word may not pass them
            before, before_all = dictionary.totals(typed, filters)
            total = total if total > before or total_all > before_all else 0
    except QueryError:  # a word became longer than a query may be
        return None
    return Suggestion(suggested, total, total_all, tuple(replaced)) if total else None


def _doubtful_words(dictionary: Dictionary, clauses: Iterable[Clause]) -> Iterator[_Doubtful]:
    found = covered = 0
    for clause in clauses:
        covered = clause.covers if clause.also else covered - 1
        if clause.field or clause.excluded or clause.fuzzy or covered > 0:
            continue
        typed_signs = signs(clause.text)
        for name, number, at, typed in _named_words(dictionary, clause.text):
            words = dictionary.words(typed)
            if len(words) == 1 and _may_be_wrong(
                words[0], _SHORTEST_IN_NAME if name else _SHORTEST
            ):
                sign = next((sign for sign in typed_signs if words[0] in sign), "")
                if not sign and is_related(typed):
                    continue
                around = tuple(name[:number]), tuple(name[number + 1 :])
                yield _Doubtful(clause.at + at, typed, words[0], sign, *around)
                found += 1
                if found == MAX_WORDS:
                    return


def _named_words(dictionary: Dictionary, text: str) -> Iterator[tuple[list[str], int, int, str]]:
    """Each word of a text: the word as typed, and where it begins. If it belongs to a name that no
    page has, also the words of this name, and the word's number in it."""
    for run in _NAME.finditer(text):
        name = dictionary.words(run[0]) if "_" in run[0] else []
        if not 1 < len(name) <= _LONGEST_NAME or dictionary.has_side_by_side(name):
            name = []
        for number, typed in enumerate(_WORD.finditer(run[0])):
            yield name, number, run.start() + typed.start(), typed[0]


def _may_be_wrong(word: str, shortest: int) -> bool:
    letters = sum(map(str.isalpha, word))
    return (
        letters >= shortest and len(word) <= _LONGEST and word.isalnum() and word not in all_stops()
    )


def _better(dictionary: Dictionary, doubtful: _Doubtful) -> str | None:
    """The replacement of a word, or None."""
    word, sign, known = doubtful.word, doubtful.sign, dictionary.occurrences(doubtful.word)
    pages = dictionary.documents()
    if known > pages * (RIGHT_SHARE if pages >= MANY_PAGES else 1 / _RARE):
        return None  # no word is 100 times as frequent, or none that says much
    if doubtful.before or doubtful.behind:
        named = _making_a_name(dictionary, doubtful)
        if named or len(word) < _SHORTEST:
            return named and _in_case_of(doubtful.typed, named)
    if known and dictionary.frequencies({sign, f"-{word}", f"--{word}"}, "signs"):
        return None
    if sign:
        others = {sign.replace(word, other, 1): other for other in edits(word)}
        flags = dictionary.frequencies(others, "signs")
        candidates = {others[flag]: pages for flag, pages in flags.items()}
    else:
        candidates = one_error(dictionary, word)
    if known:
        # a word of the index may be a mistake too, where another is far more frequent; in a flag
        # that no page has, where one with another is as frequent
        least = known if sign else _RARE * known
        candidates = {other: n for other, n in candidates.items() if n >= least}
    elif not (candidates or sign):
        if apart := _two_words(dictionary, word):
            return _in_case_of(doubtful.typed, apart)
        if len(word) >= _TWO_ERRORS:
            candidates = two_errors(dictionary, word)
    # a mistyped "the" loses nothing; "has" does not help a query for "haus", nor a number one for
    # another number
    digits = _digits(word)
    candidates = {
        other: n
        for other, n in candidates.items()
        if other not in all_stops() and _digits(other) == digits
    }
    if not candidates:
        return None
    letters = sorted(word)

    def likely(other: str) -> int:
        """The first letter is seldom wrong, and often letters have changed places."""
        moved = 2 if sorted(other) == letters else 1
        return candidates[other] * moved * (10 if other[0] == word[0] else 1)

    best = max(sorted(candidates), key=likely)
    return _in_case_of(doubtful.typed, best)


def _making_a_name(dictionary: Dictionary, doubtful: _Doubtful) -> str | None:
    """The most likely word that turns a name into a name that pages have. Words that say little
    count, too."""
    word = doubtful.word
    candidates = one_error(dictionary, word)

    def likely(other: str) -> tuple[bool, bool, int]:
        return sorted(other) == sorted(word), other[0] == word[0], candidates[other]

    for other in sorted(sorted(candidates), key=likely, reverse=True)[:_TRIED]:
        name = (*doubtful.before, other, *doubtful.behind)
        if _digits(other) == _digits(word) and dictionary.has_side_by_side(name):
            return other
    return None


def _two_words(dictionary: Dictionary, word: str) -> str | None:
    """The two words that were typed as one, if pages have them side by side."""
    if len(word) < SURE or not word.isalpha():
        return None
    parts = [(word[:end], word[end:]) for end in range(2, len(word) - 1)]
    known = dictionary.frequencies({part for both in parts for part in both})
    likely = sorted(parts, key=lambda both: min(known.get(part, 0) for part in both), reverse=True)
    for both in likely[:_TRIED]:
        if known.keys() >= {*both} and dictionary.has_side_by_side(both):
            return " ".join(both)
    return None


def _digits(word: str) -> str:
    return "" if word.isalpha() else "".join(filter(str.isdigit, word))


def _in_case_of(typed: str, better: str) -> str:
    """``better`` with the capital letters of the typed word, before and after the mistake."""
    if typed.isupper():
        return better.upper()
    if typed[:1].isupper() and typed[1:].islower():
        return better[:1].upper() + better[1:]
    lower = typed.lower()
    head = _alike(lower, better)
    tail = _alike(lower[head:][::-1], better[head:][::-1])
    return typed[:head] + better[head : len(better) - tail] + typed[len(typed) - tail :]


def _alike(one: str, other: str) -> int:
    """How many characters two words begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def edits(word: str, letters: str = "") -> set[str]:
    """All words that are one mistake away. Mistakes use ``letters``, by default the alphabets of
    the word."""
    letters = letters or _letters_of(word)
    splits = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    found = {left + right[1:] for left, right in splits if right}
    found |= {left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1}
    found |= {left + c + right[1:] for left, right in splits if right for c in letters}
    found |= {left + c + right for left, right in splits for c in letters}
    return found - {word}


def _letters_of(word: str) -> str:
    return "".join(alphabet for alphabet in _ALPHABETS if not set(alphabet).isdisjoint(word))


def one_error(dictionary: Dictionary, word: str) -> dict[str, int]:
    """Words of the dictionary one mistake away. For a mistake in the first letters each possible
    word is looked up. For a later mistake the words with the same first letters are compared, which
    takes a sixth of the time, unless there are too many."""
    head, tail, letters = word[:_HEAD], word[_HEAD:], _letters_of(word)
    alike = dictionary.few_beginning_with(head, _ALIKE)
    if alike is None:
        return dictionary.frequencies(edits(word, letters))
    found = {other + tail for other in edits(head, letters)}
    if tail:
        found.add(head[:-1] + tail[0] + head[-1] + tail[1:])
    known = set(word)
    for other in alike:
        if abs(len(other) - len(word)) > 1 or len(known.symmetric_difference(other)) > 2:
            continue  # cheaper to see
        at = _alike(word, other)
        end = _alike(word[at:][::-1], other[at:][::-1])
        mine, its = word[at : len(word) - end], other[at : len(other) - end]
        if (len(mine) < 2 and len(its) < 2 and its in letters) or (
            len(mine) == 2 and its == mine[::-1]
        ):
            found.add(other)
    return dictionary.frequencies(found - {word})


def two_errors(dictionary: Dictionary, word: str) -> dict[str, int]:
    """Words of the dictionary two mistakes away, found by their beginning, unless too many begin
    so."""
    with dictionary.one_commit():
        return _two_errors(dictionary, word)


def _two_errors(dictionary: Dictionary, word: str) -> dict[str, int]:
    head, letters = word[:_HEAD], set(word)
    sizes, found = dict[str, int](), set[str]()
    counted = dictionary.sees_all
    for begin in (head, *sorted(edits(head))):
        if len(begin) < _HEAD:  # too many begin like that; other heads find most of them
            continue
        alike = dictionary.few_beginning_with(begin, _LOOKED_THROUGH, exactly=counted)
        sizes[begin] = _LOOKED_THROUGH // 4 if alike is None else len(alike)
        for other in alike or ():
            if abs(len(other) - len(word)) > 2 or len(letters.symmetric_difference(other)) > 4:
                continue  # cheaper to see
            if distance(word, other, 2) <= 2:
                found.add(other)
        if begin == head and dictionary.frequencies(found):
            break
        if sum(sizes.values()) > _LOOKED_THROUGH and not counted:
            counted = True  # words that are not seen do not end the search
            for one in sizes:
                words = dictionary.few_beginning_with(one, _LOOKED_THROUGH, exactly=True)
                sizes[one] = _LOOKED_THROUGH // 4 if words is None else len(words)
        if sum(sizes.values()) > _LOOKED_THROUGH:
            break
    return dictionary.frequencies(found)
