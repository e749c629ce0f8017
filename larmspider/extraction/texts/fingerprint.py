"""Compares pages by their text: the one place where two fetches are judged to be one page or two.

    fingerprint(page)                         # 8 bytes, kept with each stored page
    Details.of(page)                          # of a page that differs from one it should equal
    mine.differing(other)                     # the numbers that differ; None: more differs

    volatile.learn(first, second)             # two fetches of one page in a row
    same_page(stored, page, volatile)         # whether a page equals its stored body
    signature(page, volatile)                 # 8 bytes: without changes from fetch to fetch
    link_signature(page, volatile)            # the same of its links and indexed fields

    simhash(text)                             # 64 bits; texts that are nearly equal differ in few

A comparison covers title and text. A page with little text (a frame set, a menu) is compared by its
links, too, and a document without either by its bytes. Markup never counts: forms have tokens, and
scripts have times. Numbers are dates, counters and ids: words with a digit in them.

A clock, a count of users, or a token changes a page's text with each fetch. Volatile words are
learned per host, from pages that are fetched twice in a row: a word with a digit, or a long word of
letters in both cases, that differed between the two fetches. A volatile word is known by two words
beside it and the number of volatile words between. It does not count where these words are again
before or after it. All other words count: a price or a telephone number is news.

Words may alternate, too (A/B tests, teasers): a fetch has new words in place of the stored ones,
and the next fetch, 2 s later, does not have them any more. Neither counts from then on between the
same words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice
from typing import NamedTuple, Self, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from larmspider.extraction.pages.markup_guard import Screen
from larmspider.items import Link, Page
from larmspider.urls.session_ids import tokens_of, without

LITTLE_TEXT = 200
"""Characters; a page with fewer is compared by its links as well."""
MAX_NUMBERS = 2_000
"""Numbers of a page that are compared one by one."""
MAX_BYTES = 1 << 20
"""A longer text is not searched for numbers; 10 ms."""
_LETTER = re.compile(r"[^\W_]")
_NUMBER = re.compile(rb"(?<![0-9A-Za-z])[A-Za-z]*+[0-9][0-9A-Za-z]*+")
_CONTEXT = 10
MAX_SHAPES = 512
"""Contexts and parameters that are remembered of a host, 4 bytes each: 2 KB. The latest ones."""
PAIRS = 3
"""Pages of each class of URLs that are fetched twice in a row."""
MAX_CLASSES = 64
"""Classes of a host; further classes count as one."""
_AROUND = 2
"""Words without a digit before a volatile one, or after it, that it is known by."""
_REACH = 120
"""Characters on each side in which these words are looked for."""
_MAX_COMPARED = 2_000
"""Words between the first and the last that differ in two fetches; more are not compared."""
_TOGETHER = 3
"""Two places where texts differ count as one if fewer words than this are between them."""
_MOST_DIFFERING = 0.2
"""Share of a text's words that may differ in places that change from fetch to fetch."""
_NAMES = (
    "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
    "|[AaPp][Mm]|GMT|UTC|CES?T"
)
LONG_WORD = 48
"""Bytes of a word on average, beyond which a text has no spaces between words: 16 characters of
Chinese, and names such as pandas.tseries.offsets.YearEnd.apply are words."""
SLOT_BITS = 16
"""Each row votes once: the last row votes of all that have these first bits in common. 8 of 1,000
different rows do not vote, and 2,800 of 20,000. In nearly equal texts nearly the same rows do not
vote.
"""
WORD, SEPARATOR, ROW = 8, 0x20, 3
"""Bytes of a word's beginning, end and, if it is longer, middle that tell it from others; the
largest byte that stands between words; words of a row."""
PLACES = (
    0x9E3779B97F4A7C15,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0xD6E8FEB86659FD93,
    0xA0761D6478BD642F,
)
"""Factors of the words of a row."""
SHIFTS, MIXED = (32, 29), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Constants that mix a number's bits, as in MurmurHash3 and SplitMix64."""
_SPACED = bytes([0x20] * (SEPARATOR + 1)) + bytes(range(SEPARATOR + 1, 256))
_64_BITS = (1 << 64) - 1
_MAX_WORDS = 20_000
_WORD = re.compile(r"\S+")
MAX_VARIANTS, VARIANT_WORDS = 64, 60
"""Texts of a host that come and go, the latest ones, and words of each; 20 KB."""
MAX_EXCHANGED = 2_048
"""Words of a host that changes have brought or taken, 4 bytes each; the latest ones."""
RESTLESS = 3
"""Changes in a row without a new word that make a page volatile."""
MAX_RESTLESS = 2_000
"""Pages of a host whose last change had no new word, 10 bytes each; the latest ones."""
MORE_PAIRS = 5
"""Further pages of a host that are fetched twice in a run, where pages have one change in common:
words that alternate may be the same ones in both fetches."""
_MORE_COMPARED = 50
"""Pages of a host in which such a change is looked for, in a run."""
_MINUTES = re.compile(r"(?<![\d:])\d{1,2}:\d\d(?![:\d])")
_MIXED = r"(?=\S*[a-z])(?=\S*[A-Z])[\w+/=.~-]{16,}"
_VARIABLE_WORD = re.compile(rf"\S*\d\S*|{_MIXED}")
# linear: the second branch takes a word in which the first one has found no digit
_LIKELY = re.compile(r"(?<!\S)(?:[^\s\d]*+\d\S*+|\S{16,}+)")
_DATE_NAME = re.compile(rf"\W*(?:{_NAMES})\W*")
_CLOCK = re.compile(r"\d:\d\d")
_DATE = rf"\W?(?:{_NAMES}|\d{{1,2}}(?:st|nd|rd|th)?|\d{{4}}|\d+[-./]\d+[-./]\d+)\W?"
_PASSWORD = (b"password", b"Password", b"PASSWORD")
_MAY_ASK = Screen(rb"(?i)password")  # two thirds of the time of two words that are looked for
# <input, at most 1,000 bytes without ">", type=password: looked for from its end, as 7 MB of
# "<input " took 21 s from its beginning
_TYPE = re.compile(rb"\btype\s{0,9}=\s{0,9}[\"']?\Z")
_INPUT = re.compile(rb"<input\b")
_TAG_BYTES, _TYPE_BYTES = 1_000, 24
_MAX_LOOKED_AT = 10_000
"""Places where a page has the word; 10 ms."""
_DATE_BEFORE = re.compile(rf"(?<!\S)(?:{_DATE}\s+){{1,6}}$")
_DATE_BEHIND = re.compile(rf"(?:\s+{_DATE}(?!\S)){{1,6}}")


def _text(page: Page, volatile: Volatile | None = None) -> str | None:
    """None for a document that has neither text nor links, or holds other documents."""
    if page.parts:
        return None
    if page.unread and not page.body:  # its content is unknown
        return page.digest if page.file_bytes else page.url
    text = f"{page.title}\n{page.text}"
    if len(text) < LITTLE_TEXT:
        links = [link.normalized or link.url for link in page.links]
        if volatile:
            links = [volatile.without_parameters(url) for url in links]
        if not page.text and not links:
            return None
        text = "\n".join([text, *links])
    return text


def _content(page: Page) -> bytes:
    text = _text(page)
    return page.body if text is None else text.encode("utf-8", "surrogatepass")


def fingerprint(page: Page, changing: Collection[bytes] = ()) -> bytes:
    """8 bytes. Takes 12 us for 10 KB of text. ``changing``: contexts of numbers that do not count,
    from Details.differing(), for the first MAX_NUMBERS; 3 us for each number."""
    content = _content(page)
    if changing and len(content) <= MAX_BYTES:
        content = _NUMBER.sub(
            lambda number: b"0" if _before(number) in changing else number[0], content, MAX_NUMBERS
        )
    return blake2b(content, digest_size=8).digest()


def _before(number: re.Match[bytes]) -> bytes:
    """A hash of the text before a number, without other numbers, whatever their length."""
    at = number.start()
    words = _NUMBER.sub(b"", number.string[max(0, at - 4 * _CONTEXT) : at])
    return blake2b(words[-_CONTEXT:], digest_size=4).digest()


@dataclass(frozen=True, slots=True)
class Details:
    """``rest``: a hash of the content without its numbers; ``numbers`` in their order, each with a
    hash of the text before it."""

    rest: bytes
    numbers: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def of(cls, page: Page) -> Self | None:
        """The details of a page; None if it has too many numbers, or is too long."""
        content = _content(page)
        if len(content) > MAX_BYTES:
            return None
        numbers = islice(_NUMBER.finditer(content), MAX_NUMBERS + 1)
        found = [(_before(number), number[0][:40]) for number in numbers]
        if len(found) > MAX_NUMBERS:
            return None
        rest = blake2b(_NUMBER.sub(b"0", content), digest_size=8).digest()
        return cls(rest, tuple(found))

    def differing(self, other: Details) -> set[bytes] | None:
        """The contexts of the numbers that differ between two pages; None if they differ in more
        than numbers."""
        if self.rest != other.rest:
            return None
        pairs = zip(self.numbers, other.numbers, strict=True)
        return {mine[0] for mine, its in pairs if mine[1] != its[1]}


class RecentPages:
    """The texts of the last fetched pages by URL key, in about ``room`` bytes at most."""

    def __init__(self, room: int = 4 << 20) -> None:
        self._room, self._pages = room, dict[bytes, _Text]()

    def __len__(self) -> int:
        return len(self._pages)

    def put(self, key: bytes, page: Page) -> None:
        """A page whose bytes are what counts is not kept."""
        self._drop(key)
        if page.text or page.links:
            links = page.links if len(page.title) + len(page.text) < LITTLE_TEXT else []
            kept = _Text(page.url, page.title, page.text, links)
            self._pages[key] = kept
            self._room -= _size(kept)
        while self._room < 0:
            self._drop(next(iter(self._pages)))

    def stand_in(self, key: bytes, fetched: bytes) -> None:
        """Use the page under ``fetched``, another fetch, in place of an unknown one."""
        if key not in self._pages and (page := self._pages.get(fetched)) is not None:
            self._pages[key] = page
            self._room -= _size(page)

    def _drop(self, key: bytes) -> None:
        if (page := self._pages.pop(key, None)) is not None:
            self._room += _size(page)

    def differing(self, one: bytes, other: bytes) -> set[bytes] | None:
        """Where two pages differ (`differing_places`). None for pages that are no longer known, or
        differ in more."""
        mine, its = self._pages.get(one), self._pages.get(other)
        if mine is None or its is None:
            return None
        links = [[link.normalized or link.url for link in page.links] for page in (mine, its)]
        if links[0] != links[1]:  # a page with little text
            return None
        return differing_places(*(f"{page.title}\n{page.text}" for page in (mine, its)))

    def details(self, key: bytes) -> Details | None:
        """None for a page that is no longer known."""
        page = self._pages.get(key)
        if page is None:
            return None
        return Details.of(page.as_page())


class _Text(NamedTuple):
    url: str
    title: str
    text: str
    links: list[Link]

    def as_page(self) -> Page:
        return Page(self.url, title=self.title, text=self.text, links=self.links)


def _size(page: _Text) -> int:
    return 1_000 + len(page.text) + 500 * len(page.links)


class Volatile:
    """The known changes from fetch to fetch in the pages of one host.

    ``pairs`` counts the pages that were fetched twice in a row, by class of URLs. ``variants`` are
    texts that come and go, each with the words before and after it. ``exchanged``: hashes of words
    that changes have brought or taken. ``restless``: the number of times in a row that a page has
    changed without a new word, by URL key.
    """

    def __init__(
        self,
        shapes: Iterable[bytes] = (),
        pairs: dict[str, int] | None = None,
        variants: Iterable[Sequence[str]] = (),
        exchanged: Iterable[bytes] = (),
        restless: dict[bytes, int] | None = None,
    ) -> None:
        self._shapes = dict.fromkeys(shapes)
        self.pairs = pairs or {}
        self._variants = dict.fromkeys(_Variant(*one) for one in variants)
        self._exchanged = dict.fromkeys(exchanged)
        self._restless = restless or {}
        self._changes: set[bytes] = set()  # changed words in pages of this run
        self._compared = self._more = 0

    def __repr__(self) -> str:
        return f"<Volatile {len(self._shapes)} shapes, {sum(self.pairs.values())} pairs>"

    def __bool__(self) -> bool:
        """Whether anything is volatile."""
        return bool(self._shapes or self._variants)

    def wants_pair(self, url: str) -> bool:
        """Whether a page whose text differs from its last visit's should be fetched once more, at
        once, and both texts be given to learn()."""
        return self.pairs.get(self._class_of(url), 0) < PAIRS

    def wants_more(self, stored: Page, page: Page) -> bool:
        """Whether to fetch a page twice because it has a change that another page of this run had,
        too."""
        if self._compared >= _MORE_COMPARED or self._more >= MORE_PAIRS:
            return False
        self._compared += 1
        gaps = _gaps(self._words_of(stored), self._words_of(page))
        found = {_hash("\n".join(gap), 8) for gap in gaps}
        known = not found.isdisjoint(self._changes)
        self._changes |= found
        self._more += known
        return known

    def learn(self, first: Page, second: Page, stored: Page | None = None) -> bool:
        """Learn from two fetches of one page in a row, and from the stored page. Returns whether
        there was something to learn."""
        name = self._class_of(first.url)
        self.pairs[name] = self.pairs.get(name, 0) + 1
        known = len(self._shapes)
        found = [*_differing_words(first, second), *_differing_parameters(first, second)]
        new = [shape for shape in dict.fromkeys(found) if shape not in self._shapes]
        self._shapes.update(dict.fromkeys(new[:MAX_SHAPES]))
        for oldest in list(self._shapes)[:-MAX_SHAPES]:
            del self._shapes[oldest]
        varies = stored is not None and self._learn_variants(stored, first, second)
        return bool(new) or len(self._shapes) != known or varies

    def _learn_variants(self, stored: Page, first: Page, second: Page) -> bool:
        """Learn words that the first fetch had in place of the stored words, and that the second
        fetch no longer has: it has the stored words again, or still other words. An edit of the
        page never looks like this."""
        mine, its, again = (self._words_of(page) for page in (stored, first, second))
        if again == its:
            return False
        text, new = f" {' '.join(again)} ", list[_Variant]()
        thirds = {gap[:2] + gap[3:]: gap[2] for gap in _gaps(its, again)}
        for before, one, other, behind in _gaps(mine, its):
            both = _Variant(before, one, behind), _Variant(before, other, behind)
            third = thirds.get((before, other, behind))
            if both[0].padded in text and both[1].padded not in text:
                new += both
            elif third is not None:
                new += *both, _Variant(before, third, behind)
        known = len(self._variants)
        self._variants.update(dict.fromkeys(new))
        learned = len(self._variants) > known
        for oldest in list(self._variants)[:-MAX_VARIANTS]:
            del self._variants[oldest]
        return learned

    def _words_of(self, page: Page) -> list[str]:
        text = _text(page) or ""
        return [] if len(text) > MAX_BYTES else self._without_numbers(text).split()

    def saw_change(self, key: bytes, stored: Page, page: Page) -> bool:
        """Note that a page differs from the stored one. Returns True if it also differed at its
        last RESTLESS visits, each time without a new word. Numbers are not words here."""
        words = [
            set(map(_masked, (_text(one) or "")[:MAX_BYTES].split())) for one in (stored, page)
        ]
        urls = [
            {self.without_parameters(_name(link)) for link in one.links} for one in (stored, page)
        ]
        came = [_hash(word, 4) for word in words[1] - words[0]]
        left = [_hash(word, 4) for word in words[0] - words[1]]
        has_news = bool(urls[1] - urls[0]) or any(word not in self._exchanged for word in came)
        for word in [*left, *came][:MAX_EXCHANGED]:
            self._exchanged.pop(word, None)
            self._exchanged[word] = None
        for oldest in list(self._exchanged)[:-MAX_EXCHANGED]:
            del self._exchanged[oldest]
        times = 0 if has_news else self._restless.pop(key, 0) + 1
        self._restless.pop(key, None)
        if times:
            self._restless[key] = min(times, RESTLESS)
        if len(self._restless) > MAX_RESTLESS:
            del self._restless[next(iter(self._restless))]
        return times >= RESTLESS

    def is_restless(self, key: bytes) -> bool:
        """Whether a page has changed so often without a new word that a change says nothing."""
        return self._restless.get(key, 0) >= RESTLESS

    def saw_none(self, key: bytes) -> bool:
        """Note that a page is unchanged. Returns whether this changes the known facts about it."""
        times = self._restless.pop(key, 0)
        if times > 1:
            self._restless[key] = times - 1
        return times > 0

    def without(self, text: str) -> str:
        """A text without alternating texts, with ``#`` in place of each volatile word, and of the
        date beside a volatile clock. Takes 5 us for each number in the text."""
        text = self._without_numbers(text)
        if not self._variants:
            return text
        text = f" {' '.join(text.split())} "
        for variant in self._variants:
            if variant.words:
                text = text.replace(variant.padded, variant.gone)
        return text

    def explains_links(self, stored: Page, page: Page) -> bool:
        """Whether two versions differ only in links whose texts are variants."""
        if not self._variants:
            return False
        bare = (replace(one, links=[], rest=[]) for one in (stored, page))
        if len({link_signature(one, self) for one in bare}) > 1:
            return False
        mine, its = (Counter(map(self._link, one.links)) for one in (stored, page))
        anchors = {link[-1] for link in ((mine - its) | (its - mine))}
        texts = [f" {variant.words} " for variant in self._variants]
        return all(anchor and any(f" {anchor} " in text for text in texts) for anchor in anchors)

    def _link(self, link: Link) -> tuple[int, bool, str, str]:
        anchor = " ".join(map(_masked, link.anchor.split()))
        return link.type, link.nofollow, self.without_parameters(_name(link)), anchor

    def _without_numbers(self, text: str) -> str:
        pieces: list[str] = []
        end = len(text)
        for start, behind in sorted(self._volatile(text), reverse=True):
            if behind <= end:
                pieces += [text[behind:end], "#"]
            end = min(end, start)
        return "".join([text[:end], *reversed(pieces)]) if pieces else text

    def _volatile(self, text: str) -> Iterator[tuple[int, int]]:
        """Where volatile words begin and end; some may overlap."""
        shapes = self._shapes
        if not shapes:
            return
        words = (match.span() for match in _LIKELY.finditer(text) if _is_variable(match[0]))
        for start, end in islice(words, MAX_NUMBERS):
            if not any(shape in shapes for shape in _contexts(text, start, end)):
                continue
            if _CLOCK.search(text, start, end):
                reach = max(0, start - _REACH)
                if date := _DATE_BEFORE.search(text[reach:start]):
                    start = reach + date.start()
                if date := _DATE_BEHIND.match(text, end):
                    end = date.end()
            yield start, end

    def without_parameters(self, url: str) -> str:
        """A URL without the parameters that are volatile, of the query and of the path."""
        if not self._shapes:
            return url
        head, mark, query = url.partition("?")
        if drawn := [name for name in tokens_of(head) if _in_path(name) in self._shapes]:
            head = without(head, drawn)
        if not mark:
            return head
        kept = [one for one in query.split("&") if _parameter(one) not in self._shapes]
        return f"{head}?{'&'.join(kept)}"

    def _class_of(self, url: str) -> str:
        name = url_class(url)
        return name if name in self.pairs or len(self.pairs) < MAX_CLASSES else ""

    def kept(self) -> VolatileNote:
        """Its kept form."""
        shapes, exchanged = b"".join(self._shapes), b"".join(self._exchanged)
        variants: list[tuple[str, str, str]] = [*self._variants]
        return VolatileNote(shapes, self.pairs, variants, exchanged, self._restless)

    @classmethod
    def of(cls, kept: VolatileNote) -> Self:
        """The reverse of kept()."""
        shapes, exchanged = _parted(kept.shapes), _parted(kept.exchanged)
        return cls(shapes, kept.pairs, kept.variants, exchanged, kept.restless)


class VolatileNote(msgspec.Struct, array_like=True):
    """The fields of Volatile, hashes joined. New fields go to the end, with a default."""

    shapes: bytes = b""
    pairs: dict[str, int] = {}
    variants: list[tuple[str, str, str]] = []
    exchanged: bytes = b""
    restless: dict[bytes, int] = {}


def _parted(hashes: bytes) -> Iterator[bytes]:
    return (hashes[at : at + 4] for at in range(0, len(hashes), 4))


class _Variant(NamedTuple):
    """Words of a text, and the words before and after them."""

    before: str
    words: str
    behind: str

    @property
    def padded(self) -> str:
        return f" {' '.join(filter(None, self))} "

    @property
    def gone(self) -> str:
        """The same without the words."""
        return f" {' '.join(filter(None, (self.before, self.behind)))} "


_Gap: TypeAlias = tuple[str, str, str, str]


def _gaps(one: Sequence[str], other: Sequence[str]) -> Iterator[_Gap]:
    """The places where two texts differ: two words before, the words of each text, two words
    after."""
    at = [0, 0]  # after what both have
    run = list[str]()  # the run that ends there
    places = [*_aligned([[*one], [*other]]), (len(one), len(other))]
    for number, (mine, its) in enumerate(places):
        if mine > at[0] or its > at[1]:
            gap = one[at[0] : mine], other[at[1] : its]
            behind = list[str]()
            for step, place in enumerate(places[number : number + _AROUND]):
                if place == (mine + step, its + step) and place[0] < len(one):
                    behind.append(one[place[0]])
            if len(run) + len(behind) >= _AROUND and max(map(len, gap)) <= VARIANT_WORDS:
                yield tuple(map(" ".join, (run[-_AROUND:], *gap, behind)))  # type: ignore[misc]
            run = []
        if mine < len(one):
            run = [*run[-_AROUND:], one[mine]]
        at = [mine + 1, its + 1]


def differing_places(one: str, other: str) -> set[bytes] | None:
    """The places where two texts differ, by the words around them: hashes of numbers, and of words
    in place of other words. None if more than a fifth of the words differs."""
    mine, its = ([*text[:MAX_BYTES].split()] for text in (one, other))
    plain = [list(map(_masked, words)) for words in (mine, its)]
    found, gaps = set[bytes](), list[list[int]]()  # begin and end in each text
    at = [0, 0]
    for here, there in [*_aligned(plain), (len(mine), len(its))]:
        if here > at[0] or there > at[1]:
            if gaps and at[0] - gaps[-1][1] < _TOGETHER:
                gaps[-1][1], gaps[-1][3] = here, there
            else:
                gaps.append([at[0], here, at[1], there])
        elif here < len(mine) and mine[here] != its[there]:
            found.add(_hash("\n".join(["number", *plain[0][max(0, here - _AROUND) : here]]), 4))
        at = [here + 1, there + 1]
    words = sum(max(gap[1] - gap[0], gap[3] - gap[2]) for gap in gaps)
    if words > min(VARIANT_WORDS, max(map(len, plain)) * _MOST_DIFFERING):
        return None
    for start, end, _, _ in gaps:
        before, behind = plain[0][max(0, start - _AROUND) : start], plain[0][end : end + _AROUND]
        found.add(_hash("\n".join(["words", *before, "", *behind]), 4))
    return found


def has_minutes(one: Page, other: Page) -> bool:
    """Whether clocks without seconds differ in two texts."""
    both = [set(_MINUTES.findall((_text(page) or "")[:MAX_BYTES])) for page in (one, other)]
    return both[0] != both[1]


def same_page(stored: Page, page: Page, volatile: Volatile) -> bool:
    """Whether a page equals its stored body except for volatile words, in text and links."""
    texts = {signature(one, volatile) for one in (stored, page)}
    if len(texts) > 1 and fingerprint(stored) != fingerprint(page):
        return False
    links = {link_signature(one, volatile) for one in (stored, page)}
    return (
        len(links) == 1
        or link_signature(stored) == link_signature(page)
        or volatile.explains_links(stored, page)
    )


def signature(page: Page, volatile: Volatile | None = None) -> bytes:
    """8 bytes of the page's content; fingerprint() if nothing is volatile."""
    if not volatile or (text := _text(page, volatile)) is None:
        return page.fingerprint or fingerprint(page)
    return _hash(volatile.without(text), 8)


def link_signature(page: Page, volatile: Volatile | None = None) -> bytes:
    """8 bytes of all other fields by which a page is found: the targets, types and texts of its
    links, its description, author and own fields, and which words are its main text. The last two
    bits say whether it asks for a password, and whether it must not be indexed."""
    links = page.links
    urls = [
        f"0 {link.url}"  # nine of ten
        if not (link.type or link.nofollow or "=" in link.url)
        else f"{link.type}{'n' if link.nofollow else ''} {_name(link)}"
        for link in links
    ]
    own = [f"{name}={value}" for name, values in page.fields.items() for value in values]
    said = " \n ".join([page.description, page.author, *own, *[link.anchor for link in links]])
    if volatile:
        urls = [volatile.without_parameters(url) for url in urls]
        said = " ".join(map(_masked, said.split(" ")))
    words = [page.text.count(" ", start, end) for start, end in page.rest]
    found = _hash("\n".join([*urls, said, f"{words} {page.moved}"]), 8)
    return found[:-1] + bytes([found[-1] & 0xFC | page.noindex << 1 | asks_password(page)])


def asks_password(page: Page) -> bool:
    """Whether the page has a field for a password. 10 us for 20 KB where it has not."""
    body = page.body
    if not _MAY_ASK.may_find(body):
        return False
    if not any(word in body for word in _PASSWORD):
        return False
    lower, at = body.lower(), -1
    for _ in range(_MAX_LOOKED_AT):
        at = lower.find(b"password", at + 1)
        if at < 0:
            break
        if _is_field(lower, at):
            return True
    return False


def _is_field(markup: bytes, at: int) -> bool:
    """Whether the word ``password`` there is the type of an ``input``."""
    begin = max(0, at - _TYPE_BYTES)
    found = _TYPE.search(markup, begin, at)
    behind = markup[at + 8 : at + 9]
    if found is None or behind.isalnum() or behind == b"_":
        return False
    start = found.start()
    tag = markup[max(0, start - _TAG_BYTES - len(b"<input")) : start]
    return _INPUT.search(tag, tag.rfind(b">") + 1) is not None


def asked_password(link_signature: bytes) -> bool:
    """Whether the page of this link_signature() asked for a password; True without a signature."""
    return not link_signature or bool(link_signature[-1] & 1)


def was_noindex(link_signature: bytes) -> bool:
    """Whether the page of this link_signature() was excluded from the index."""
    return bool(link_signature and link_signature[-1] & 2)


def error_signature(page: Page, *, numbers: bool = False) -> bytes:
    """8 bytes that are the same for all pages that say one thing about any URL, as error pages do:
    without the URL and its parts, and without numbers, unless with ``numbers``."""
    return _hash(" ".join(error_words(page, numbers=numbers)), 8)


def error_words(page: Page, *, numbers: bool = False) -> Iterator[str]:
    """The words of title and text that error_signature() is made of."""
    path = urlsplit(page.url).path
    last = unquote(path).rpartition("/")[2]
    parts = [part for part in {path, unquote(path), last if len(last) > 3 else ""} if len(part) > 1]
    text = f"{page.title}\n{page.text}"[:MAX_BYTES]
    return (
        word
        for word in text.split()
        if not any(part in word for part in parts)
        and (numbers or not _is_variable(word))
        and (_LETTER.search(word) or (numbers and word != "/"))  # "/" is the rest of a number
    )


class _Numbers(dict[bytes, int]):
    """The 64-bit number of a word in lower case, by its first and its last eight bytes. A longer
    word's number also depends on eight bytes in its middle and its length."""

    def __missing__(self, word: bytes) -> int:
        if len(self) >= _MAX_WORDS:
            self.clear()
        first, last = (int.from_bytes(part, "little") for part in (word[:WORD], word[-WORD:]))
        found = first * PLACES[0] + last * PLACES[1]
        if len(word) > 2 * WORD:
            begin = (len(word) - WORD) // 2
            middle = int.from_bytes(word[begin : begin + WORD], "little")
            found += middle * PLACES[2] + len(word) * PLACES[3]
        found = self[word] = _mixed(found)
        return found


_numbers = _Numbers()


def _mixed(number: int) -> int:
    number &= _64_BITS
    for shift, factor in zip(SHIFTS, MIXED, strict=True):
        number = (number ^ number >> shift) * factor & _64_BITS
    return number ^ number >> SHIFTS[0]


def simhash(text: str) -> int:
    """64 bits, as a signed number, after Charikar (2002): each row of three words votes on each
    bit, once, whatever its frequency. Texts that differ in 1 row of 20 are about 6 bits apart. In a
    script without spaces each character is a word. Only the first megabyte of a text counts. 10 KB
    take 2 ms, and 0.1 ms in words.py, which gives the same result."""
    text = text[:MAX_BYTES]
    data = text.encode("utf-8", "surrogatepass")
    words = data.lower().translate(_SPACED).split()
    if len(words) * LONG_WORD < len(data):
        numbers = [_mixed(ord(character) * PLACES[0]) for character in "".join(text.split())]
    else:
        numbers = [_numbers[word] for word in words]
    numbers += [0] * (ROW - len(numbers))
    places = range(len(numbers) - ROW + 1)
    sums = (sum(numbers[at + place] * PLACES[place] for place in range(ROW)) for at in places)
    by_slot = {(row & _64_BITS) >> 64 - SLOT_BITS: row for row in sums}  # the last one in each
    rows = len(by_slot)
    votes = b"".join(_mixed(row).to_bytes(8) for row in by_slot.values())
    found = bytearray(8)
    for place in range(8):
        column = int.from_bytes(votes[place::8])
        for bit in range(8):
            mask = int.from_bytes(bytes([1 << bit]) * rows)
            found[place] |= (2 * (column & mask).bit_count() > rows) << bit
    return int.from_bytes(found, signed=True)


def url_class(url: str) -> str:
    """``/wiki *.php action,title`` for ``http://h/wiki/a/b.php?title=x&action=y``: URLs that one
    program is likely to answer."""
    parts = urlsplit(url)
    first, _, rest = parts.path.lstrip("/").partition("/")
    name, _, extension = parts.path.rpartition("/")[2].rpartition(".")
    names = sorted({one.partition("=")[0] for one in parts.query.split("&") if one})
    kind = f"*.{extension[:8]}" if name else "*"
    return f"/{first[:40] if rest else ''} {kind} {','.join(names)[:80]}"


def _hash(text: str, size: int) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _name(link: Link) -> str:
    """The URL of the page itself, because another URL may stand for it by now. The session id is
    left out, because it differs at each visit."""
    url, normalized = link.url, link.normalized
    if "=" in url and normalized and url.count("=") != normalized.count("="):
        return normalized
    return url


def _is_variable(word: str) -> bool:
    """A word with a digit, or a long one of letters in both cases, as tokens are."""
    return _VARIABLE_WORD.fullmatch(word) is not None


@lru_cache(maxsize=8_192)
def _masked(word: str) -> str:
    return "#" if _is_variable(word) or _DATE_NAME.fullmatch(word) else word


def _contexts(text: str, start: int, end: int) -> Iterator[bytes]:
    """The contexts of a word: the text before it, and the text after it. Each reaches to the
    second word that is not a number, or to the end of a text with only one such word. Title and
    text of each page differ, so the beginning and the end of the title are contexts, too."""
    before = text[max(0, start - _REACH) : start].split()
    if start > _REACH:
        before = before[1:]  # its beginning may be cut off
    behind = text[end : end + _REACH].split()
    if end + _REACH < len(text):
        behind = behind[:-1]
    for side, words in (("<", before[::-1]), (">", behind)):
        found, left = [side], _AROUND
        for word in words:
            masked = _masked(word)
            found.append(masked)
            left -= masked != "#"
            if not left:
                break
        if left < _AROUND:
            yield _hash(" ".join(found), 4)
    if start == 0:
        yield _hash("begin", 4)
    if end == text.find("\n"):  # the title ends there
        yield _hash("end of title", 4)


def _differing_words(first: Page, second: Page) -> Iterator[bytes]:
    """The contexts of variable words that differ."""
    texts = [_text(page) or "" for page in (first, second)]
    if texts[0] == texts[1] or max(map(len, texts)) > MAX_BYTES:
        return
    spans = [[match.span() for match in _WORD.finditer(text)] for text in texts]
    words = [
        [text[start:end] for start, end in found] for text, found in zip(texts, spans, strict=True)
    ]
    for mine, its in _aligned([[_masked(word[:_REACH]) for word in found] for found in words]):
        if words[0][mine] != words[1][its] and _is_variable(words[0][mine]):
            yield from _contexts(texts[0], *spans[0][mine])
            yield from _contexts(texts[1], *spans[1][its])


def _aligned(words: list[list[str]]) -> Iterator[tuple[int, int]]:
    """The places of equal words in two texts."""
    one, other = words
    shorter = min(len(one), len(other))
    head = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    tail = next(
        (at for at in range(shorter - head) if one[-1 - at] != other[-1 - at]), shorter - head
    )
    yield from ((at, at) for at in range(head))
    middle = one[head : len(one) - tail], other[head : len(other) - tail]
    if max(map(len, middle)) <= _MAX_COMPARED:
        for mine, its, size in SequenceMatcher(None, *middle, autojunk=False).get_matching_blocks():
            yield from ((head + mine + at, head + its + at) for at in range(size))
    yield from ((len(one) - at, len(other) - at) for at in range(tail, 0, -1))


def _differing_parameters(first: Page, second: Page) -> Iterator[bytes]:
    """The parameters, of query and path, in whose values the links of two pages differ."""
    mine, its = ([_name(link) for link in page.links] for page in (first, second))
    known = set(mine) & set(its)
    ours, theirs = ([url for url in urls if url not in known] for urls in (mine, its))
    pairs_of_links = chain.from_iterable(
        zip(_asking(ours, asks), _asking(theirs, asks), strict=False) for asks in (True, False)
    )
    for one, other in islice(pairs_of_links, _MAX_COMPARED):
        (path, _, query), (its_path, _, its_query) = one.partition("?"), other.partition("?")
        if path != its_path:
            drawn, its_drawn = tokens_of(path), tokens_of(its_path)
            names = [name for name in drawn if drawn[name] != its_drawn.get(name, drawn[name])]
            if without(path, names) != without(its_path, names):
                continue
            yield from map(_in_path, names)
        pairs = zip(query.split("&"), its_query.split("&"), strict=False)
        for parameter, its_parameter in pairs:
            if parameter != its_parameter and _parameter(parameter) == _parameter(its_parameter):
                yield _parameter(parameter)


def _asking(urls: Iterable[str], asks: bool) -> list[str]:
    """The URLs with a query, or the URLs without one."""
    return [url for url in urls if ("?" in url) is asks]


def _in_path(name: str) -> bytes:
    """The hash of a parameter of the path; ``name`` is its name in tokens_of()."""
    return _hash(f"/ {name}", 4)


def _parameter(text: str) -> bytes:
    """The hash of a query parameter, given as ``name=value``."""
    return _hash(f"? {text.partition('=')[0]}", 4)
