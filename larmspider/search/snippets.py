"""A snippet: the passage of a page that shows why it was found, with the words of the query marked.

The text of a page is not to be trusted: it may hold markup and, for a terminal, control characters.
A snippet is plain text and ranges, without control characters, and `html` escapes it::

    Snippet("join paths <here>", ((0, 4),)).html       # <b>join</b> paths &lt;here&gt;
    Snippet("join paths", ((0, 4),)).marked("*", "*")  # *join* paths

In a long page the snippet names its section (index/sections.py), so that a link leads there::

    snippet, section = passage_of(stored, maker)
    section.anchor, section.heading      # ("str.join", "str.join(iterable)")
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from itertools import islice
from typing import Any, NamedTuple, Protocol

from larmspider.index.normal import Offsets, normalized, offset_in
from larmspider.index.packed import BEGINNING_CHARS, has_more, text_of
from larmspider.index.schema import PAGE_BREAK, TEXT_LIMIT
from larmspider.index.sections import ends_heading, parted
from larmspider.items import MAX_SECTIONS, Section
from larmspider.search.distance import distance
from larmspider.search.folding import folded
from larmspider.search.rerank import (
    LEAST_OCCURRENCES,
    PLACES,
    beginning_of,
    folded_text,
    member_called,
    section_called,
)

HEAD = 200
"""Characters at the beginning of a page, whose section is the page."""
_SECTION_CHARS = 2_000  # characters of a section whose heading has the words
SNIPPET_LENGTH = 200
"""Usual number of characters of a snippet."""
LONGEST = 320
"""Most characters of a snippet that keeps its sentences whole."""
OTHER_PAGES = 3
"""Further pages of a document that a hit lists."""
FURTHER_BYTES = 1_500_000
"""Bytes of long pages that are searched to their end, for all hits of a query together: if a word
of the query comes late, the snippet is from there. Takes 5 ms."""
PAGES_CHARS = 12_000_000
"""Characters of documents with pages, times the number of words and phrases that are looked for,
for all hits of a query together. In a long document phrases and the longest words choose the page.
A million takes 1.1 ms."""
_LEAST_LOOKED_FOR = 3  # words and phrases, in each document
_OCCURRENCES = LEAST_OCCURRENCES  # occurrences of each word that are looked for
_LOOKED_AT = 50  # places with the first letters of a word
_FUZZY_CHARS = 20_000  # first characters of a text that are searched for fuzzy words
_FLAGS = 100  # occurrences of flags
_LEAD = 40  # characters before the first word, where its sentence begins too far away
_CUT = "\N{HORIZONTAL ELLIPSIS}"
_BETWEEN_LINES = " \N{MIDDLE DOT} "
_LINE_END = re.compile(r"\s*\n\s*")
_WITHOUT_SPACES = "\u2e80"  # scripts from here on, about

_WORD = re.compile(r"\w+(?:\+\+|#)?")
_PART = re.compile(r"[^\W_]+(?:\+\+|#)?")  # of a name such as max_content_length
_ENDS = re.compile(r"[.!?\u2026][\"')\]\u201d\u00bb]*\s+|[\u3002\uff01\uff1f]|\n\s*")
# a dot after it ends no sentence; most numbers with a dot belong to headings or German dates
_ABBREVIATION = re.compile(r"(?<!\w)(?:\w|[A-Z]\w|[0-9]+)\Z")
_LONGEST_ABBREVIATION = 20

# C0 and C1 controls, the marks that turn the direction of writing, and characters for private use,
# as icons of fonts are
_UNSHOWN = re.compile(
    "[\0-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ue000-\uf8ff\U000f0000-\U0010ffff]"
)


class Analyzer(Protocol):
    """Cuts a text into words as the index does."""

    def analyze(self, text: str) -> list[str]: ...


class Breaks(NamedTuple):
    """Where headings part a text. The text begins at ``start`` of the page's text. ``goes_on``:
    the page's text continues after it."""

    places: Sequence[int] = ()
    start: int = 0
    goes_on: bool = False

    def ends_heading(self, end: int) -> bool:
        """Whether a heading, with the space after it, ends before a place of the text."""
        return ends_heading(self.places, self.start + end - 1)

    def put_into(self, piece: str, at: int = 0) -> str:
        """A piece that stands ``at`` a place of the text, with lines."""
        return parted(piece, self.places, self.start + at) if self.places else piece


NO_BREAKS = Breaks()


@dataclass(frozen=True, slots=True)
class Snippet:
    """``text`` has no control characters; ``highlights`` are (start, end) in it, in order.
    ``page``: the number of its page in a text with pages, else 0. ``others`` are pages with the
    same number of query words. ``start``: the place of the first word that the snippet was chosen
    for; -1: none."""

    text: str
    highlights: tuple[tuple[int, int], ...] = ()
    page: int = 0
    others: tuple[int, ...] = ()
    start: int = field(default=-1, compare=False)

    @property
    def html(self) -> str:
        """Escaped, with the words of the query in <b>."""
        return self._joined("<b>", "</b>", escape)

    def marked(self, before: str, after: str, written: Callable[[str], str] = str) -> str:
        """The text with marks around the words of the query; ``written`` changes the text between
        the marks."""
        return self._joined(before, after, written)

    def parts(self) -> Iterator[tuple[str, bool]]:
        """Yields pieces of the text, and whether each is a word of the query."""
        done = 0
        for start, end in self.highlights:
            yield self.text[done:start], False
            yield self.text[start:end], True
            done = end
        yield self.text[done:], False

    def _joined(self, before: str, after: str, written: Callable[[str], str]) -> str:
        return "".join(
            f"{before}{written(text)}{after}" if marked else written(text)
            for text, marked in self.parts()
        )


def one_line(text: str) -> str:
    """``text`` with spaces for control characters and icons; each character keeps its position."""
    return text if text.isprintable() else _UNSHOWN.sub(" ", text)


@dataclass(frozen=True, slots=True)
class Sought:
    """Words, phrases and signs of a query to look for in texts, as typed.

    words     the words that matter, and the words of phrases; each is marked
    stems     other words that are marked
    wanted    the words that matter
    phrases   a passage with a phrase's words side by side is better than any other
    flags     the same for a flag as it is (``-u``, C-x); a letter that is a flag is not a word
    codes     words in several parts, as one (joined.py): marked with any separators
    name      the only word that matters
    synonyms  one word in a passage counts more than all of these; several words are marked if they
              stand side by side
    fuzzy     words, and the number of letters by which an equally good word may differ
    """

    words: Sequence[str] = ()
    stems: Sequence[str] = ()
    wanted: Sequence[str] = ()
    phrases: Sequence[str] = ()
    flags: Sequence[str] = ()
    codes: Sequence[str] = ()
    name: str = ""
    synonyms: Sequence[str] = ()
    fuzzy: Mapping[str, int] = field(default_factory=dict)


class SnippetMaker:
    """Makes the snippets of one query's results.

    Tantivy's own generator tokenizes the whole body, 1.5 ms a hit. Here `str.find` finds the words
    and only one passage is tokenized: 0.2 ms a hit.
    """

    def __init__(self, sought: Sought, exact: Analyzer, stemmed: Analyzer) -> None:
        """``exact`` and ``stemmed`` are the analyzers of the index."""
        self.name, self._fuzzy = sought.name, dict(sought.fuzzy)
        self._near: dict[str, str | None] = {}  # words of folded texts, and the one they are near
        self.flags = [*map(_Flag, sought.flags), *map(_Code, sought.codes)]
        of_flags = {part for flag in self.flags for part in _PART.findall(flag.text)}
        letters = {part for part in of_flags if len(part) == 1}
        phrases = map(_words, sought.phrases)
        self._phrases = [_Phrase(words) for words in phrases if len(words) > 1]
        apart = [(text, _words(text)) for text in map(normalized, sought.synonyms)]
        several = [found for _, found in apart if len(found) > 1 and max(found) < _WITHOUT_SPACES]
        self._synonyms: dict[str, _Phrase | None]
        """The phrases of synonyms of several words; None for a synonym of one word, by its
        beginning."""
        self._synonyms = {" ".join(found): _Phrase(found) for found in several}
        self.names = [name for text in sought.wanted for name in _words(text) if "_" in name]
        """Names with underscores, folded; the search takes them as typed."""
        self.typed = {part for text in sought.wanted for part in _PART.findall(folded(text))}
        """The words that matter, folded."""
        self._wanted_beginnings = [
            beginning_of(word, stemmed.analyze(word))
            for typed in sought.wanted
            for word in re.findall(r"[^\W_]+", typed.lower())
            if word not in of_flags
        ]
        self._left, self._left_of_pages = FURTHER_BYTES, PAGES_CHARS
        self._exact, self._stemmed = exact, stemmed
        self._tokens: set[str] = set()
        self._stems = set(sought.stems)
        self._beginnings = dict.fromkeys(map(folded, self._stems))
        self._known: dict[str, bool] = {}  # words of passages: to be marked or not
        singles = [text for text, found in apart if found not in several]
        others: dict[str, None] = {}
        for texts, beginnings in ((sought.words, self._beginnings), (singles, others)):
            for word, alone in (one for text in texts for one in _parts(text.lower())):
                if word in letters:
                    continue
                self._tokens.update(self._exact_words(word))
                stems = stemmed.analyze(word) if word[-1] not in "+#" else []
                self._stems.update(stems)
                if alone:
                    beginnings[beginning_of(word, stems)] = None
        self._synonyms |= {word: None for word in others if word not in self._beginnings}
        self._initials = {word[:1] for word in (*self._tokens, *self._stems)}

    def snippet(
        self,
        body: str,
        description: str,
        stored: dict[str, Any] | None = None,
        breaks: Breaks = NO_BREAKS,
    ) -> Snippet:
        """The best passage of the body, or the description, or the beginning of the body: whole
        sentences, unless they are too long. ``stored`` is the page, if the body is all of its text:
        then places that the reranker has found are not looked for again."""
        page, others = 0, tuple[int, ...]()
        if PAGE_BREAK in body:
            page, body, others = self._best_page(body)
            stored = None
        else:
            body = body[:BEGINNING_CHARS]
        small = folded_text(stored) if stored else folded(body)
        window = self._window(body, small, stored.get(PLACES, {}) if stored else {})
        if window is None and (plain := normalized(body)) is not body:
            # the words are there in another form: with accents apart, or soft hyphens
            window = self._window(plain, folded(plain), {})
            window = window and (offset_in(body, window[0]), offset_in(body, window[1]))
        if window is None:
            passage = _beginning_of(description) if description else _beginning_of(body, breaks)
            return Snippet(one_line(passage), self._highlights(passage))
        passage = _sentences(body, *window, breaks)
        return Snippet(one_line(passage), self._highlights(passage), page, others, window[0])

    def has_left(self, size: int) -> bool:
        """Whether `FURTHER_BYTES` has ``size`` bytes left for searching a page to its end. Takes
        them."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def lacks(self, passage: Snippet) -> list[Callable[[str], bool]]:
        """Tests for the parts of the query that a passage lacks, to be applied to another folded
        text: phrases, flags, and the words that matter if the passage has none of them."""
        lower = folded(passage.text)
        wholes: list[_Phrase | _Flag] = [*self._phrases, *self.flags]
        asked: list[Callable[[str], bool]]
        asked = [one.is_in for one in wholes if not one.is_in(lower)]
        words = self._wanted_beginnings
        if not any(word in lower for word in words):
            asked += [partial(_has, word=word) for word in words]
            if not (words or passage.highlights):
                asked.append(bool)
        return asked

    def not_in(self, lower: str) -> list[str]:
        """The words that matter and are missing in a folded text, as beginnings of their forms."""
        missing = [word for word in self._wanted_beginnings if word not in lower]
        return missing + [flag.text for flag in self.flags if flag.find(lower) < 0]

    def find(self, word: str, lower: str) -> int:
        """The first place of a word that matters in a folded text; -1 if there is none."""
        flag = next((flag for flag in self.flags if flag.text == word), None)
        return flag.find(lower) if flag else next(_beginnings_in(lower, word), -1)

    def _best_page(self, body: str) -> tuple[int, str, tuple[int, ...]]:
        """Number and text of the best page, and the next best pages. The best page has most of the
        query's words, and has them most often: it is the chapter about a subject, not the table of
        contents. 1.1 ms for each word and megabyte."""
        most = max(_LEAST_LOOKED_FOR, self._left_of_pages // len(body))
        wholes: list[_Phrase | _Flag] = [*self._phrases, *self.flags]
        wholes = wholes[: (most + 1) // 2]
        beginnings = sorted(self._beginnings, key=len, reverse=True)[: most - len(wholes)]
        synonyms = [*self._synonyms.items()][: most - len(wholes) - len(beginnings)]
        self._left_of_pages -= (len(wholes) + len(beginnings) + len(synonyms)) * len(body)
        pages = body.split(PAGE_BREAK)
        found: list[tuple[int, int, int]] = []
        for number, page in enumerate(pages, 1):
            lower = folded(page)
            counts = [lower.count(beginning) for beginning in beginnings]
            words = sum(map(bool, counts)) + sum(whole.is_in(lower) for whole in wholes)
            alike = [one.count(lower) if one else lower.count(word) for word, one in synonyms]
            if worth := words * (1 + len(alike)) + sum(map(bool, alike)):
                found.append((-worth, -sum(counts) - sum(alike), number))
        found.sort()
        if not found:
            return 1, pages[0], ()
        most, _, best = found[0]
        others = [number for worth, _, number in found[1 : OTHER_PAGES + 1] if worth == most]
        return best, pages[best - 1], tuple(sorted(others))

    def marked(self, text: str) -> Snippet:
        """A whole text with the words marked; its lines stay."""
        return Snippet("\n".join(map(one_line, text.split("\n"))), self._highlights(text))

    def _highlights(self, passage: str) -> tuple[tuple[int, int], ...]:
        passage = passage.replace("\xa0", " ").replace(_CUT, " ")  # most have no more to normalize
        plain = normalized(passage)
        known = self._known
        wanted = [
            found.span()
            for found in _WORD.finditer(plain)
            if (known[word] if (word := found[0]) in known else self._wanted(word))
        ]
        if self.flags:
            wanted = self._with_flags(plain, wanted)
        if any(self._synonyms.values()):
            wanted = self._with_synonyms(plain, wanted)
        if plain is passage:
            return tuple(wanted)
        offsets = Offsets(passage)
        return tuple(offsets.span(start, end) for start, end in wanted)

    def _with_flags(self, plain: str, wanted: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The words to be marked, and the flags that contain some of them."""
        lower = folded(plain)
        for flag in self.flags if len(lower) == len(plain) else ():
            places = [*flag.spans(lower)]
            for start, end in places:
                wanted = [word for word in wanted if word[1] <= start or word[0] >= end]
            wanted += places
        return sorted(wanted)

    def _with_synonyms(self, plain: str, wanted: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The words to mark, and the words of synonyms that stand side by side."""
        lower, marked = folded(plain), {*wanted}
        for phrase in filter(None, self._synonyms.values() if len(lower) == len(plain) else ()):
            for start, end in phrase.places(lower):
                marked.update(found.span() for found in _WORD.finditer(plain, start, end))
        return sorted(marked)

    def _flag(self, body: str, lower: str) -> tuple[int, int] | None:
        """The place of the flag that has most of the other words around it; preferably as typed,
        and not in a line that only lists them."""
        best, most = None, (0, False, False)
        beginnings = [*self._beginnings, *(flag.text for flag in self.flags)]
        for flag in self.flags:
            for at, end in islice(flag.spans(lower), 1 + _FLAGS // len(self.flags)):
                around = lower[max(0, at - SNIPPET_LENGTH // 2) : at + SNIPPET_LENGTH]
                count = sum(1 for beginning in beginnings if beginning in around)
                listed = not {"[", "|"}.isdisjoint(lower[max(0, at - 2) : at])
                worth = count, body[at:end] == flag.typed, not listed
                if worth > most:
                    best, most = (at, end), worth
        return best

    def _window(
        self, body: str, lower: str, known: Mapping[str, Sequence[int]]
    ) -> tuple[int, int] | None:
        """The first and the last place of the first stretch of text in which most of the query's
        words begin. Synonyms count if the text has none of the words. ``known`` has, for some
        words, the places in ``lower`` where they begin."""
        if len(lower) != len(body):  # one letter that became two moves all others
            lower, known = body, {}
        for phrase in self._phrases:
            if side_by_side := phrase.place(lower):
                return side_by_side
        if self.flags and (flag := self._flag(body, lower)):
            return flag
        for name in self.names:
            if (at := lower.find(name)) >= 0:
                return at, at + len(name)
        places: list[tuple[int, str]] = []
        worths = dict.fromkeys((*self._beginnings, *self._fuzzy), 1 + len(self._synonyms))
        worths |= dict.fromkeys(self._synonyms, 1)
        enough = _OCCURRENCES if len(worths) > 1 else 1
        for word in worths:
            if several := self._synonyms.get(word):
                starts = [start for start, _ in islice(several.places(lower), enough)]
            elif word in known and word[0] < _WITHOUT_SPACES:
                starts = self._of_words(body, known[word], enough)
            else:
                starts = self._of_words(body, _beginnings_in(lower, word), enough)
            places += [(at, word) for at in starts]
        if self._fuzzy:
            places += self._near_places(lower)
        if not places:
            return None
        places.sort()
        span = SNIPPET_LENGTH - _LEAD
        most = sum(worths[word] for word in {word for _, word in places})
        best, last, best_worth, worth, first = 0, 0, 0, 0, 0
        inside = dict.fromkeys(worths, 0)
        for at, word in places:  # ``inside`` are the words between first and at, at most a span
            if not inside[word]:
                worth += worths[word]
            inside[word] += 1
            while places[first][0] <= at - span:
                out = places[first][1]
                inside[out] -= 1
                if not inside[out]:
                    worth -= worths[out]
                first += 1
            if worth > best_worth:
                best, last, best_worth = places[first][0], at, worth
                if best_worth == most:
                    break
        return best, last

    def _of_words(self, body: str, places: Iterable[int], enough: int) -> list[int]:
        """The first places of a whole word of the query. If there are none, the first
        places where a word begins like one, as "Reg" in "Regular"."""
        found, others, known = list[int](), list[int](), self._known
        for at in islice(places, _LOOKED_AT):
            begun = _WORD.match(body, at)
            word = begun[0] if begun else ""
            if word and (known[word] if word in known else self._wanted(word)):
                found.append(at)
                if len(found) == enough:
                    break
            else:
                others.append(at)
        return found or others[:enough]

    def _near_places(self, lower: str) -> Iterator[tuple[int, str]]:
        """The places of words that are near a fuzzy word. Takes 3 ms for the first text, 1.3 ms for
        others."""
        for found in _WORD.finditer(lower, 0, _FUZZY_CHARS):
            if one := self._near_to(found[0]):
                yield found.start(), one

    def _near_to(self, word: str) -> str | None:
        """The fuzzy word that a folded one may be."""
        if word not in self._near:
            letters = {*word}
            near = (
                one
                for one, most in self._fuzzy.items()
                if abs(len(one) - len(word)) <= most
                and len(letters.symmetric_difference(one)) <= 2 * most  # cheaper to see
                and distance(one, word, most) <= most
            )
            self._near[word] = next(near, None)
        return self._near[word]

    def _exact_words(self, word: str) -> list[str]:
        alone = word[-1] in "+#" or (word.isascii() and word.isalnum())
        return [word.lower()] if alone else self._exact.analyze(word)

    def _wanted(self, word: str) -> bool:
        if self._fuzzy and self._near_to(folded(word)):
            self._known[word] = True
            return True
        # the Dutch stemmer takes "ge" off ("gewerkt"): such a form is not marked
        maybe = word[0].lower() in self._initials or not (word.isascii() and word.isalnum())
        known = self._known[word] = maybe and not (
            self._tokens.isdisjoint(self._exact_words(word))
            and self._stems.isdisjoint(self._stemmed.analyze(word))
        )
        return known


def _parts(typed: str) -> list[tuple[str, bool]]:
    """The words of a typed text, and whether to look for each: not for the letter in e-mail."""
    parts = _PART.findall(typed)
    longest = max(map(len, parts), default=0)
    return [(part, len(part) > 1 or longest == 1) for part in parts]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", folded(text))


def _beginnings_in(lower: str, beginning: str) -> Iterator[int]:
    """The places where a word begins with this text; in a script without spaces between words, all
    places of the text."""
    at = lower.find(beginning)
    while at >= 0:
        if at == 0 or not lower[at - 1].isalnum() or beginning[0] >= _WITHOUT_SPACES:
            yield at
        at = lower.find(beginning, at + len(beginning))


class _Phrase:
    """Words side by side, in folded texts."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = sorted({*words}, key=len, reverse=True)
        # `re` tries each character of a text, unless the pattern begins with a letter
        behind = rf"(?<!\w{words[0]})\W+"
        self._whole = re.compile(words[0] + behind + r"\W+".join(words[1:]) + r"(?!\w)")

    def place(self, text: str) -> tuple[int, int] | None:
        """The first one."""
        return next(self.places(text), None)

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        if all(word in text for word in self._words):
            for found in self._whole.finditer(text):
                yield found.span()

    def count(self, text: str) -> int:
        return sum(1 for _ in self.places(text))

    def is_in(self, text: str) -> bool:
        return self.place(text) is not None


class _Flag:
    """A flag or a key chord, as typed. A longer flag that begins with it is another flag."""

    def __init__(self, typed: str) -> None:
        self.typed, self.text = typed, folded(typed)
        self._whole = re.compile(rf"(?<![\w-]){re.escape(self.text)}(?![\w-])")

    def spans(self, lower: str) -> Iterator[tuple[int, int]]:
        """The places of the sign in a folded text. `re` alone would try each character of it."""
        at = lower.find(self.text)
        while at >= 0:
            if self._whole.match(lower, at):
                yield at, at + len(self.text)
            at = lower.find(self.text, at + 1)

    def find(self, lower: str) -> int:
        """The first place of the flag; -1 if there is none."""
        return next(self.spans(lower), (-1, -1))[0]

    def is_in(self, lower: str) -> bool:
        return self.find(lower) >= 0


class _Code(_Flag):
    """A code, with any separators between its letters and digits."""

    def __init__(self, typed: str) -> None:
        self.typed, self.text = typed, folded(typed)
        first, *others = map(re.escape, self.text)
        between = r"(?: |[-_./:,\u2010\u2011])?"
        behind = rf"(?<!\w{first})"  # `re` looks for the first letter
        self._whole = re.compile(f"{first}{behind}{between}{between.join(others)}(?!\\w)")

    def spans(self, lower: str) -> Iterator[tuple[int, int]]:
        for found in self._whole.finditer(lower):
            yield found.span()


def _sentences(body: str, first: int, last: int, breaks: Breaks) -> str:
    """The sentences from the place ``first`` to the place ``last``, and further ones while there is
    room. A sentence that is too long is cut between two words, with an ellipsis."""
    low, high = max(0, first - SNIPPET_LENGTH), min(len(body), first + LONGEST + _LEAD)
    ends = [0] if low == 0 else []
    ends += [low + end for end in _ends(breaks.put_into(body[low:high], low))]
    ends += [high] if high == len(body) and not breaks.goes_on else []
    start = max((end for end in ends if end <= first), default=-1)
    before = after = ""
    if start < 0 or last - start > LONGEST - _LEAD or first - start > SNIPPET_LENGTH - _LEAD:
        start, before = max(0, first - _LEAD), f"{_CUT} "
        if start:  # not in the middle of a word
            space = body.find(" ", start, first)
            start = space + 1 if space >= 0 else first
    least = min(start + _LEAD, len(body))  # no few words alone before a long sentence
    whole = [end for end in ends if max(last + 1, least) <= end <= start + LONGEST]
    whole = [end for end in whole if not breaks.ends_heading(end)]  # nor a heading
    room = [end for end in whole if end <= start + SNIPPET_LENGTH] or whole[:1]
    if room:
        end = room[-1]
    else:
        end = min(len(body), start + SNIPPET_LENGTH)
        if end < len(body) or breaks.goes_on:
            space = body.rfind(" ", last, end)
            if space < 0:  # after the last word, which is a long one
                space = body.find(" ", max(last, end), start + LONGEST)
            end, after = space if space > 0 else end, f" {_CUT}"
    text = _shown(breaks.put_into(body[start:end], start))
    return f"{before}{text}{after}"


def _shown(text: str) -> str:
    """Lines on one line."""
    return _LINE_END.sub(_BETWEEN_LINES, text.strip())


def _ends(text: str) -> Iterator[int]:
    """The places where sentences end, after their white space. A heading ends with its line."""
    for found in _ENDS.finditer(text):
        at, following = found.start(), text[found.end() : found.end() + 1]
        is_end = text[at] != "." or "\n" in found[0]
        if not is_end and (following.islower() or _is_abbreviation(text, at)):
            continue
        yield found.end()


def _is_abbreviation(text: str, end: int) -> bool:
    letters = text[max(0, end - 3) : end]
    if len(letters) == 3 and letters.isalpha():  # most are words: no need to look further
        return False
    return bool(_ABBREVIATION.search(text, max(0, end - _LONGEST_ABBREVIATION), end))


def _beginning_of(text: str, breaks: Breaks = NO_BREAKS) -> str:
    """The first sentences of ``text``. If they are too long, its first words; in a text without
    spaces, its first characters."""
    text = breaks.put_into(text[: LONGEST + 1])
    if len(text) <= SNIPPET_LENGTH:
        return _shown(text)
    if ends := [end for end in _ends(text[:LONGEST]) if end >= SNIPPET_LENGTH // 4]:
        return _shown(text[: max((end for end in ends if end <= SNIPPET_LENGTH), default=ends[0])])
    end = text.rfind(" ", SNIPPET_LENGTH // 2, SNIPPET_LENGTH + 1)
    return f"{_shown(text[: end if end > 0 else SNIPPET_LENGTH])} {_CUT}"


def passage_of(stored: dict[str, Any], maker: SnippetMaker) -> tuple[Snippet, Section | None]:
    """The snippet of a page, and the section that it is in; None: the page as a whole.

    A section counts more than the passage with most of the words if its anchor is the only word, or
    if its heading names the wanted thing. The heading may lack words of the page's title. A page
    with next to no main text shows its core, unless the words stand only around the core. A table
    of contents serves for words, phrases and flags that stand nowhere else.
    """
    body, description = stored["body"], stored["description"]
    if body.startswith(description):  # the index uses the first sentence of a page without one
        description = ""
    places: Sequence[int] = stored.get("breaks", ())
    if core := stored.get("core"):
        at = body.find(core)
        breaks = Breaks(places, at) if at >= 0 else NO_BREAKS
        snippet = maker.snippet(core, description, breaks=breaks)
        if snippet.start >= 0 or maker.snippet(body, "").start < 0:
            return snippet, None
    sections: Sequence[Sequence[Any]] = stored.get("sections", ())
    left = maker.not_in(folded(stored["title"])) if sections else []
    at = section_called(maker.name, sections) if maker.name else None
    if maker.name and at is None:
        at = member_called(maker.name, stored["title"], sections)
    if at is not None:
        start, end = sections[at][0], _end_of(sections, at)
        piece, breaks = _piece(stored, text_of(stored, end), start, end)
        return _found(maker.snippet(piece, "", breaks=breaks), sections[at])
    if left and (at := _named(left, maker, sections)) is not None:
        start = sections[at][0]
        end = start + _SECTION_CHARS
        piece, breaks = _piece(stored, text_of(stored, end), start, end)
        snippet = maker.snippet(piece, description, breaks=breaks)
        if snippet.highlights:  # else it only begins like a word of the query: "Elements"
            return _found(snippet, sections[at])
    snippet = maker.snippet(body, description, stored, Breaks(places))
    if has_more(stored) and (late := maker.not_in(folded_text(stored))):
        snippet = _late(stored, maker, late) or snippet
    if (contents := stored.get("contents")) and (lacking := maker.lacks(snippet)):
        listed = maker.snippet(contents, "")
        there = folded(listed.text)
        if listed.start >= 0 and any(is_there(there) for is_there in lacking):
            return replace(listed, start=-1), None
    if not left or snippet.start < 0:
        return snippet, None
    at = bisect_right(sections, snippet.start, key=lambda section: section[0]) - 1
    if at < 0 or at == MAX_SECTIONS - 1:  # sections after the last one may have been dropped
        return snippet, None
    return _found(snippet, sections[at])


def _piece(stored: dict[str, Any], text: str, start: int, end: int) -> tuple[str, Breaks]:
    """A piece of a page's ``text``, and where it is parted."""
    piece = text[start:end]
    return piece, Breaks(stored.get("breaks", ()), start, goes_on=len(piece) == end - start)


def _late(stored: dict[str, Any], maker: SnippetMaker, words: Sequence[str]) -> Snippet | None:
    """A passage with one of the words, for a long text whose beginning has none of them."""
    if not maker.has_left(stored["size"]):
        return None
    text = text_of(stored, TEXT_LIMIT)
    small = folded(text[BEGINNING_CHARS:])
    start = min((at for word in words if (at := maker.find(word, small)) >= 0), default=-1)
    if start < 0:
        return None
    start = max(0, BEGINNING_CHARS + start - SNIPPET_LENGTH)
    piece, breaks = _piece(stored, text, start, start + _SECTION_CHARS)
    found = maker.snippet(piece, "", breaks=breaks)
    return replace(found, start=start + found.start) if found.start >= 0 else None


def _named(
    words: Iterable[str], maker: SnippetMaker, sections: Sequence[Sequence[Any]]
) -> int | None:
    """The section with the shortest heading and anchor that have all the words, flags unchanged.
    The section's own name should have most of the words that matter."""
    names = [f"{heading} {anchor}".replace("\n", " ") for _, anchor, heading in sections]
    everything = folded("\n".join(names))
    if any(word not in everything for word in words):
        return None
    lower = enumerate(everything.split("\n"))
    found = [one for one in lower if all(word in one[1] for word in words)]
    found = [one for one in found if all(maker.find(word, one[1]) >= 0 for word in words)]
    for flag in maker.flags if len(found) > 1 else ():
        found = [one for one in found if flag.typed in names[one[0]]] or found
    wanted = [*maker.not_in(""), *maker.names]
    having = list[tuple[int, int, int, int, int]]()
    for at, name in found:
        own = _own(sections[at])
        as_typed = -len(maker.typed.intersection(_PART.findall(own)))
        having.append((-_having(wanted, name), as_typed, -_having(wanted, own), len(name), at))
    return min(having)[-1] if having else None


def _end_of(sections: Sequence[Sequence[Any]], at: int) -> int:
    """Where the text of a section ends; a section with next to no text includes the next one."""
    start: int = sections[at][0]
    behind = (section[0] for section in sections[at + 1 :])
    longest = start + _SECTION_CHARS
    return next((end for end in behind if end >= start + SNIPPET_LENGTH // 4), longest)


def _has(text: str, word: str) -> bool:
    return word in text


def _having(words: Iterable[str], text: str) -> int:
    return sum(word in text for word in words)


def _own(section: Sequence[Any]) -> str:
    """The section's own name: "date" of flask.Request.date."""
    _, anchor, heading = section
    return folded(f"{heading} {anchor.rpartition('.')[2]}")


def _found(snippet: Snippet, section: Sequence[Any]) -> tuple[Snippet, Section | None]:
    return snippet, Section(*section) if section[0] >= HEAD else None
