"""Learned traps: classes of URLs whose pages only repeat other pages of their host.

    traps = HostTraps(Budgets())
    seen = traps.meet("http://wiki/doku.php?do=edit&id=start", depth=2)
    seen.blocked                      # None: it is fetched
    traps.judge(seen, 0.0)            # ... 20 times, and the class is in quarantine

A URL belongs to several groups, and each has a record: its class (urls/url_class.py), the classes
of its path with the same number of parameters, the URLs deep below the seeds, the host. A group is
in one of these states:

===========  ================================================================================
open         its URLs are fetched
quarantined  fewer than NEW_SHARE of its pages are new, with 95% confidence. Among the classes of
             one path, the class with the fewest parameters is the content: never quarantined
spent        its budget is used up: the pages since the last new page had nothing new
endless      each of its pages led to several others of the class, and no other page links to
             these: random text. Content has pages without such links, or links in common
never        the operator has said that it is not a trap
===========  ================================================================================

A page is new if NEW of its text is new to the host; below SOME it has nothing new.

The URLs of a quarantined, spent or endless class are held. One in PROBE is fetched, fewer the
longer the probes find nothing new. New probes open the class again. A URL that promises a new page
is held only in an endless class (ClassRecord.expects_new()): for example, a URL with a new file
name, where each new name has given a new page and each further revision has not.

On a host with views, a URL waits behind URLs of classes that gave more new pages (_level()). This
module does no I/O: trap_watch.py calls it, and acts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import islice
from math import sqrt
from typing import NamedTuple
from zlib import crc32

import msgspec

from larmspider.extraction.texts.novelty import Bloom
from larmspider.frontier.storage.records import packed
from larmspider.urls.url_class import UrlClass, UrlClasses, split_suffix
from larmspider.urls.view_of import words_path

NEW, SOME = 0.2, 0.1
"""Shares of a page's text that its host did not have. From NEW on a page is new; below SOME it has
nothing new."""
NEW_SHARE = 0.2
"""Share of new pages below which a class is quarantined."""
LEAST_PAGES = 12
"""A class is quarantined after at least 12 judged pages."""
WINDOW = 40
"""A class is judged by its last 40 pages."""
PROBE = 20
"""One held URL in 20 is fetched."""
PROBES_IN_VAIN = 5
"""After each 5 probes without a new page, the share of probed URLs halves."""
NEW_PROBES, NEW_PROBES_OF_ALL = 3, 6
"""A quarantine ends once this number of the last 10 pages were new: for a class, and for all URLs
that wait. Each further quarantine of a class needs one page more."""
MOST_OPENED = 5
"""After 5 quarantines the number of new pages rises no more."""
YOUNG = 3
"""A class gets 3 fetches although similar classes are quarantined; it gets fewer the more pages in
a row of these had nothing new."""
UNLIKE = 0.5
"""A class of views named by a path segment (``/blame/``) is exempt from the quarantine of similar
classes while, with odds of 95 in 100, half of its pages may be new."""
LEAST_VIEWS, LEAST_BARREN, BARREN = 16, 4, 100
"""All waiting URLs of a host are judged as one group once the host has 16 classes with parameters;
or 4 classes with nothing new, if the last 100 pages had nothing new."""
LEAST_URLS = 5
"""A class needs 5 pages to count as the content of its path."""
DEEP = 30
"""Links from a seed."""
SAMPLED, SAMPLED_IN_DOUBT, DOUBTFUL = 16, 4, 10
"""Pages without parameters are sampled on hosts that still have new pages. One in 16 is judged
while the last pages were new, one in 4 otherwise, and all after 10 pages with nothing new."""
LATEST, DOUBT = 12, 2
"""The level of a class depends on its last 12 pages; the share of its path counts as 2 more."""
MOST_COUNTED, MOST_CREDIT = 24, 2.0
"""A tally counts 24 pages with a known value, and 24 with a new one. A class is credited with at
most 2 new pages for each page of its own."""
LEVELS = (0.6, 0.4, 0.2)
"""A class waits one level longer for each of these shares of new pages that it does not reach."""
STEPS = 11
"""Within a level, URLs with more parameters wait behind URLs with fewer, up to 10 steps."""
MAX_LEVEL = STEPS * len(LEVELS) + STEPS - 1
LAST_LEVEL = STEPS * len(LEVELS)
"""URLs from this level on reach none of the shares."""
TRIAL = 8
"""On a host with parameters the first 8 pages of each class are judged."""
MAX_CLASSES, MAX_VALUES = 2_000, 8
SAMPLES = 5
BRANCHES = 2
"""A page of an endless class leads to at least 2 new URLs of the class."""
LEAST_LEAVES, LEAVES = 8, 20
"""A class is endless while at most 8 of its pages, and 1 in 20, lead to nothing new, and at most
the same number of its URLs is linked twice."""
MAX_SAID, SAID_BEGINS = 20, 60
"""Texts of a host that several pages say, and characters that are kept of each."""
LOOKED_AT, MAX_GROWING = 30, 100
"""Links of a page of each kind, and classes of a host, that are looked at for this."""
ANY_PATH = "/**"
HOST, DEEP_URLS = "all pages", f"the pages more than {DEEP} links from a seed"
WAITING = "the pages that wait behind all others"
_Z = 1.645


class ClassState(IntEnum):
    """The numbers are on disk."""

    OPEN = 0
    QUARANTINED = 1
    SPENT = 2
    NEVER = 3
    ENDLESS = 4


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits of pages in a row with nothing new: in a class, among the URLs deep below the seeds,
    on a host. ``endless``: pages of a class in a row that lead to new pages alone. 0: no limit."""

    of_class: int = 150
    deep: int = 50
    of_host: int = 250
    endless: int = 1_000


@dataclass(slots=True)
class Growth:
    """The last pages of a class that led to new URLs of the class. ``leaves``: pages in between
    that led to no new URL of the class. ``shared``: hashes of URLs of the class to which more than
    one page led."""

    pages: int = 0
    leaves: int = 0
    shared: set[int] = field(default_factory=set)

    @property
    def ends(self) -> bool:
        return max(self.leaves, len(self.shared)) > LEAST_LEAVES + self.pages // LEAVES


class SaidText(msgspec.Struct, array_like=True):
    """A text that ``pages`` of a host have in common, except for numbers and parts of their URLs.
    ``url`` names the first of these pages that was not new, ``begins`` is how its text begins."""

    url: str
    begins: str
    pages: int = 0


class ClassRecord(msgspec.Struct, array_like=True):
    """The record of one group of URLs. New fields go to the end, with a default.

    ``path`` and ``params`` are the shape of the class; ``wide``: the group has several classes.
    ``pages``: fetched pages. ``ring``: a bit for each of the last judged pages, 1 for a new page,
    after a leading 1. ``barren``: pages with nothing new since the last new page. ``asked``: URLs
    met while the group was blocked; ``vain``: probes in a row that were not new; ``held``: held
    URLs. ``text`` and ``samples`` (URL, referring page) are set once a page had nothing new.

    ``tally`` has four bytes for each of Met.values: pages with a new value, new pages among them,
    pages with a known value, new pages among them. ``credit``: new pages found on, or as parts of,
    each of its last pages. ``found``: new pages that are not views of a page with fewer parameters.
    ``opened``: ended quarantines.
    """

    path: int
    params: int
    wide: bool = False
    state: ClassState = ClassState.OPEN
    pages: int = 0
    ring: int = 1
    barren: int = 0
    asked: int = 0
    vain: int = 0
    held: int = 0
    text: str = ""
    samples: list[tuple[str, str]] | None = None
    tally: bytearray | None = None
    credit: float = 0.0
    found: int = 0
    opened: int = 0

    @property
    def judged(self) -> int:
        return self.ring.bit_length() - 1

    @property
    def new(self) -> int:
        return self.ring.bit_count() - 1

    @property
    def latest(self) -> tuple[int, int]:
        """New pages among the last LATEST judged pages, and the number of these."""
        judged = min(LATEST, self.judged)
        return (self.ring & (1 << judged) - 1).bit_count(), judged

    def count_values(self, values: int, seen: int, is_new: bool) -> None:
        """Count a page whose URL has this number of values. A bit of ``seen`` is set for each value
        that was seen before."""
        if self.tally is None or len(self.tally) < 4 * values:
            self.tally = (self.tally or bytearray()).ljust(4 * values, b"\0")
        for at in range(values):
            place = 4 * at + 2 * (seen >> at & 1)
            if self.tally[place] == MOST_COUNTED:
                self.tally[place] >>= 1
                self.tally[place + 1] >>= 1
            self.tally[place] += 1
            self.tally[place + 1] += is_new

    def share_by_values(self, seen: int, share: float) -> float:
        """The share of new pages among pages like this URL: pages with known values, or pages with
        new values. The value with the largest difference decides. ``share``: new pages among all
        pages of the class."""
        largest = 0.0
        found, tally = share, self.tally or b""
        for at in range(0, len(tally), 4):
            unseen = (tally[at + 1] + DOUBT * share) / (tally[at] + DOUBT)
            known = (tally[at + 3] + DOUBT * share) / (tally[at + 2] + DOUBT)
            if unseen - known > largest:
                largest, found = unseen - known, known if seen >> at // 4 & 1 else unseen
        return found

    def telling(self, values: int) -> int | None:
        """The place among Met.values of the value that predicts new pages: at least half of the
        pages with a new value there were new. None: no value does, or too little is known.
        ``values``: the number of Met.values of the class."""
        largest, found, tally = -1.0, None, self.tally or b""
        if self.found < LEAST_PAGES or len(tally) < 4 * values:
            return None
        for at in range(values // 2, values):
            pages, new, again, new_again = tally[4 * at : 4 * at + 4]
            if pages < LEAST_PAGES or 2 * new < pages:
                continue
            if (more := new / pages - new_again / max(1, again)) > largest:
                largest, found = more, at
        return found

    @property
    def known_are_old(self) -> bool:
        """Whether URLs with a known value gave next to no new pages, while other URLs gave new
        pages."""
        if (at := self.telling(len(self.tally or b"") // 4)) is None or self.tally is None:
            return False
        again, new_again = self.tally[4 * at + 2 : 4 * at + 4]
        return again >= LEAST_PAGES and upper_share(new_again, again) < NEW_SHARE

    def expects_new(self, values: int, seen: int) -> bool:
        """Whether a URL with this number of Met.values and this Met.seen is likely to give a new
        page, even if the last pages gave none. The host's value has to confirm the class's value,
        because the filter reports 1 in 70 new values as known."""
        if seen < 0 or (at := self.telling(values)) is None:
            return False
        return not (seen >> at & 1 and seen >> at - values // 2 & 1)

    @property
    def is_content(self) -> bool:
        """Whether URLs that promise a new page are fetched although the class is blocked."""
        return self.telling(len(self.tally or b"") // 4) is not None

    @property
    def is_of_word(self) -> bool:
        """Whether a segment of the path names the views: ``/works/blame/**``."""
        path = self.text.partition("?")[0]
        return self.wide and path.endswith(ANY_PATH) and path != ANY_PATH

    @property
    def is_near(self) -> bool:
        """Whether the group has the classes of one path, or of one view."""
        return self.text.startswith("/") and not self.text.startswith(ANY_PATH)

    @property
    def is_established(self) -> bool:
        """Whether later pages with fewer parameters cannot make it a class of views."""
        return self.found >= WINDOW

    @property
    def is_blocked(self) -> bool:
        return self.state in (ClassState.QUARANTINED, ClassState.SPENT, ClassState.ENDLESS)

    def note(self, share: float) -> None:
        self.ring = self.ring << 1 | (share >= NEW)
        if self.ring >> WINDOW + 1:
            self.ring = self.ring & (1 << WINDOW) - 1 | 1 << WINDOW
        self.barren = 0 if share >= NEW else self.barren + (share < SOME)
        self.found += share >= NEW
        self.credit *= 1 - 1 / LATEST

    def retract(self) -> None:
        """A page that counted as new turned out to be a view, because the page with fewer
        parameters has come."""
        latest = self.ring & -self.ring
        self.ring ^= latest if latest < self.ring else 0
        self.found = max(0, self.found - 1)

    @property
    def setting(self) -> str:
        """The setting that blocks the group."""
        if self.state is ClassState.QUARANTINED:
            return "LARM_TRAPS"
        if self.state is ClassState.ENDLESS:
            return "LARM_CLASS_ENDLESS_PAGES"
        of = {HOST: "LARM_CLASS_HOST_PAGES", DEEP_URLS: "LARM_CLASS_DEEP_PAGES"}
        return of.get(self.text, "LARM_CLASS_PAGES")

    @property
    def shown(self) -> str:
        """The label of ``samples``."""
        return "leads on" if self.state is ClassState.ENDLESS else "not new"

    def in_words(self) -> str:
        """``quarantined: 1 of its last 40 pages was new``, ``known by id: ...`` for content."""
        were = "was" if self.new == 1 else "were"
        evidence = f"{self.new} of its last {self.judged} pages {were} new"
        if self.state is ClassState.SPENT:
            evidence = f"{self.barren} pages with nothing new in a row"
        if self.state is ClassState.ENDLESS:
            return (
                "without end: its pages led to new pages alone, each to several that no other page"
                " links to"
            )
        if not self.is_blocked and self.held:
            return f"waits behind all others, because all its URLs give little: {evidence}"
        if name := self._told_by():
            return f"known by {name}: {evidence}; URLs with a new {name} are fetched"
        spent = self.state is ClassState.SPENT
        return f"{'its budget is used up' if spent else self.state.name.lower()}: {evidence}"

    def _told_by(self) -> str:
        """The parameter whose new values are fetched; "": all of the class is held."""
        places = len(self.tally or b"") // 4
        if (at := self.telling(places)) is None:
            return ""
        path, _, query = self.text.partition("?")
        varying = [one.partition("=")[0] for one in query.split("&") if one.endswith("=*")]
        names = ["name in the path"] * path.count("*") + varying
        own = at - places // 2
        return names[own] if own < len(names) else "value"


class Met(NamedTuple):
    """The groups of a URL, its class first. ``blocked``: the record that holds the URL, or lets it
    through as a ``probe``. ``later``: the level at which it waits. ``named``: the last segment of
    its path is not ``*``. ``values``: the parts that vary within its class, as hashes for the host
    and, on a host with views, for the class. ``seen``: a bit for each of these values, 1 if the
    value was seen before; -1 on a host without views. ``word``: the index in ``records`` of the
    views that a path segment names (``/works/blame/**``), or 0."""

    records: tuple[ClassRecord, ...]
    group: int
    blocked: ClassRecord | None = None
    probe: bool = False
    query: bool = False
    named: bool = False
    later: int = 0
    values: tuple[int, ...] = ()
    seen: int = -1
    word: int = 0
    level: int = 0


@lru_cache(maxsize=4096)
def group_of(host: str, text: str) -> int:
    """A class of a host as a number of 47 bits."""
    data = f"{host} {text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=6).digest(), "big") >> 1


def name_of(host: str, text: str) -> str:
    """A class in words: ``wiki:80/doku.php?do=edit&id=*``, ``wiki:80 all pages``."""
    return f"{host}{text}" if text.startswith("/") else f"{host} {text}"


@dataclass
class HostTraps:
    """The groups of one host. ``opened``: groups whose held URLs are to be queued; 0: all held
    URLs."""

    budgets: Budgets = field(default_factory=Budgets)
    host: str = ""
    classes: UrlClasses = field(default_factory=UrlClasses)
    records: dict[int, ClassRecord] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    views: int = 0
    """Fetched or delayed pages with parameters, plus views by path."""
    views_by_path: int = 0
    """Views by path, until the first view with parameters."""
    repeats: bool = False
    """Whether some page was not new. From then on, known values are counted for each class."""
    seen: Bloom = field(default_factory=Bloom)
    """Met.values of the fetched URLs."""
    fewest: dict[int, int] = field(default_factory=dict)
    """The fewest parameters of a class, by the shape of its path."""
    growing: dict[int, Growth] = field(default_factory=dict)
    """By group, in this run."""
    said: dict[int, SaidText] = field(default_factory=dict)
    """The texts of pages that were not new, by their error_signature()."""

    # URLs

    def _texts(self, found: UrlClass, depth: int) -> Iterator[tuple[str, str, int]]:
        """Text, path and number of parameters of each group that a URL of this class belongs to.
        The class is first, the host last."""
        params, text = len(found.names), str(found)
        if len(self.records) >= MAX_CLASSES and group_of(self.host, text) not in self.records:
            text = f"the others with {params} parameters"
        yield text, found.path, params
        if params > 1:
            yield f"{found.path} with {params} parameters", found.path, params
        if word := words_path(found.path):
            yield f"{word}{found.query}", word, params
        if found.names:
            yield f"{ANY_PATH}{found.query}", ANY_PATH, params
        if depth > DEEP:
            yield DEEP_URLS, "", 0
        yield HOST, "", 0

    def names(self, url: str, depth: int) -> list[str]:
        """The groups of a URL, in the order of the records of find()."""
        found = [text for text, _, _ in self._texts(self.classes.of(url), depth)]
        if len(self.find(url, depth).records) > len(found):
            found.insert(-1, WAITING)
        return found

    def find(self, url: str, depth: int) -> Met:
        """The groups of a URL, and whether it would be held. Nothing is counted."""
        records: list[ClassRecord] = []
        group, named, word = 0, False, 0
        found = self.classes.of(url)
        for text, path, params in self._texts(found, depth):
            named = named or (not records and not path.endswith(("/", "*")))
            number = group_of(self.host, text)
            record = self.records.get(number)
            if record is None:
                record = ClassRecord(self._shape(path), params, wide=bool(records))
                self.records[number] = record
            if (record.barren or record.samples) and not record.text:
                record.text = text
            group = group or number
            word = len(records) if path.endswith(ANY_PATH) and path != ANY_PATH else word
            records.append(record)
        query = "?" in url
        named, values, seen = named and not query, found.values[:MAX_VALUES], -1
        if self.views or self.repeats:
            values += tuple([value ^ group & 0xFFFFFFFF for value in values])
            seen = sum([1 << at for at, value in enumerate(values) if value in self.seen])
        level = self._level(records, seen)
        if level >= LAST_LEVEL and self._may_be_view(records[0]):
            records.insert(-1, self._waiting())
        blocking = self._blocking(records, found.path)
        may_be_new = blocking is not None and blocking.state is not ClassState.ENDLESS
        if may_be_new and records[0].expects_new(len(values), seen):
            blocking = None
        of = (tuple(records), group, blocking, False, query, named, 0)
        return Met(*of, values, seen, word, level)

    def _may_be_view(self, own: ClassRecord) -> bool:
        """Whether the URLs of a class may be views. A class with parameters may, unless it is known
        to be the content of its path. A class without parameters may if it only repeated pages, on
        a host with views."""
        if not own.params:
            return own.found <= 1 and own.judged >= LEAST_PAGES and self.has_views
        is_least = own.params <= self.fewest.get(own.path, own.params)
        return not (is_least and own.found >= LEAST_PAGES)

    def _waiting(self) -> ClassRecord:
        number = group_of(self.host, WAITING)
        record = self.records.get(number)
        if record is None:
            record = ClassRecord(self._shape(WAITING), 1, wide=True, text=WAITING)
            self.records[number] = record
        return record

    def holds_like(self, url: str) -> bool:
        """Whether URLs of the same class as a fetched URL are held, also if the class is young."""
        own, *wider = self.find(url, 0).records
        if own.is_content and own.state is not ClassState.ENDLESS:
            return False
        if own.is_blocked or own.held or any(one.is_blocked and one.is_of_word for one in wider):
            return True
        quarantined = any(one.state is ClassState.QUARANTINED for one in wider)
        return quarantined and own.new <= 1  # its first view may be new

    def _shape(self, path: str) -> int:
        return group_of(self.host, path) & 0xFFFFFFF

    def _blocking(self, records: list[ClassRecord], path: str) -> ClassRecord | None:
        own, *wider = records
        if own.state is ClassState.NEVER:
            return None
        if own.is_blocked:
            return own
        late = self._late(records)
        for record in wider:
            if record.state is ClassState.SPENT:
                return record
            least = max(1, YOUNG - record.barren // WINDOW)
            if late:
                needs_none = record.is_near or (record is not late and self._has_pages(path))
                least = 0 if needs_none else 1
            is_young = own.pages < least
            if record.state is not ClassState.QUARANTINED or is_young:
                continue
            if not own.new or (record.is_of_word and upper_share(own.new, own.judged) < UNLIKE):
                return record
            if record is late and own.params > self.fewest.get(own.path, own.params):
                return record
        return None

    def _level(self, records: list[ClassRecord], seen: int) -> int:
        """The level of a URL; a higher level waits longer. It depends on the share of new pages
        among the last pages of its class (of similar classes while the class is young), on the new
        pages that these led to, on whether its values are new, and on the parameters that it has
        beyond the content of its path."""
        own, *wider = records[:-1]
        if own.state is ClassState.NEVER or not (self.views or own.barren >= LEAST_BARREN):
            return 0
        share = 1.0
        for record in (*reversed(wider), own):
            new, judged = record.latest
            share = (new + DOUBT * share) / (judged + DOUBT)
        share = own.share_by_values(seen, max(share, min(1.0, own.credit)))
        more = own.params - self.fewest.get(own.path, own.params)
        return STEPS * sum(share < least for least in LEVELS) + max(0, min(more, STEPS - 1))

    def meet(self, url: str, depth: int, level: int = MAX_LEVEL) -> Met:
        """Judge the URL that is next: it is fetched if nothing blocks it, or as a probe. ``level``:
        the level at which it has waited."""
        met = self.find(url, depth)
        blocked, probe = met.blocked, False
        if blocked is None and (later := met.level) > level:
            self.views += met.records[0].params > 0  # before it comes, its pages must be known
            return met._replace(later=later)
        if blocked is not None:
            by = self._late(met.records) or blocked
            by.asked += 1
            probe = by.asked % (PROBE << min(20, by.vain // PROBES_IN_VAIN)) == 0
        if blocked is None or probe:
            self.views += met.records[0].params > 0
            for record in met.records:
                record.pages += 1
            self._note_fewest(met.records[0])
            for value in met.values:
                self.seen.add(value)
        return met._replace(probe=True) if probe else met

    def _has_pages(self, path: str) -> bool:
        """Whether the path without its query is one page among others: /wiki/Start."""
        folder = self.records.get(group_of(self.host, f"{path.rpartition('/')[0]}/*"))
        return folder is not None and folder.pages >= LEAST_URLS

    def _late(self, records: Sequence[ClassRecord]) -> ClassRecord | None:
        """The record of all waiting URLs, if it is blocked."""
        late = records[-2] if len(records) > 1 else records[0]
        return late if late.text == WAITING and late.is_blocked else None

    def _note_fewest(self, own: ClassRecord) -> None:
        if own.pages >= LEAST_URLS and own.params < self.fewest.get(own.path, own.params + 1):
            self.fewest[own.path] = own.params

    # pages

    def wants_verdict(self, met: Met) -> bool:
        """Whether to judge the page of a URL. A site with new pages is only sampled."""
        own, host = met.records[0], met.records[-1]
        is_doubtful = 10 * host.new < host.judged or host.judged < LEAST_PAGES
        is_doubtful |= self.views > 0 and own.judged < TRIAL
        if own.params or met.query or met.probe or is_doubtful or self.has_views:
            return True  # its text must be known when its views come
        barren = max(own.barren, host.barren)
        if own.barren and len(met.values) > 2:
            return True  # one of its values may tell which of its URLs are new
        step = 1 if barren >= DOUBTFUL else SAMPLED_IN_DOUBT if barren else SAMPLED
        return host.pages % step == 0

    @property
    def has_views(self) -> bool:
        """Whether the host has many pages with parameters, as applications do."""
        host = self.records.get(group_of(self.host, HOST))
        return host is not None and self.views >= max(LEAST_URLS, host.pages // 8)

    @property
    def has_no_parameters(self) -> bool:
        """Whether all views of the host that are known are views by path."""
        return self.views == self.views_by_path

    def note_view(self, met: Met, own_url: str, url: str) -> None:
        """The page ``own_url`` is a view of the page ``url`` (view_of.py): its class becomes a
        class of views of the other's class."""
        if not self.has_views:
            return
        of = self._class_of(url)
        base = self.records.get(group_of(self.host, str(of)))
        path, params = (base.path, base.params) if base else (self._shape(of.path), 0)
        own, is_twin = met.records[0], bool(split_suffix(own_url.partition("?")[0])[1])
        for record in (own, met.records[met.word]):
            if record is base:
                continue
            if not record.params:
                record.params, record.path = params + 1, path
            elif record.path != path and not record.wide and (is_twin or record.params > params):
                record.path, record.params = path, max(record.params, params + 1)

    def saw_links(self, met: Met, new: Sequence[str], known: Iterable[str]) -> bool:
        """A page has come, with links to ``new`` URLs of its host and to ``known`` ones other than
        itself and the page it was found on. Returns whether its class changes state."""
        own, growth = met.records[0], self.growing.get(met.group)
        if own.state is ClassState.NEVER or not self.budgets.endless:
            return False
        is_like_it = partial(self._is_of, met.group)
        branches = len(new) >= BRANCHES and sum(map(is_like_it, new[:LOOKED_AT])) >= BRANCHES
        if growth is None:
            if not branches or len(self.growing) >= MAX_GROWING:
                return False
            growth = self.growing[met.group] = Growth()
        growth.pages += 1
        if branches:
            linked = filter(is_like_it, islice(known, LOOKED_AT))
            growth.shared.update(crc32(url.encode("utf-8", "surrogatepass")) for url in linked)
        else:
            growth.leaves += 1
        if own.state is ClassState.ENDLESS:
            own.vain = own.vain + 1 if branches else 0
        if growth.ends:
            del self.growing[met.group]
            if own.state is ClassState.ENDLESS:
                self._open(own, met.group)
                return True
        elif growth.pages >= self.budgets.endless and own.state is ClassState.OPEN:
            own.state, own.vain = ClassState.ENDLESS, 0
            self.growing[met.group] = Growth()
            return True
        return False

    def _is_of(self, group: int, url: str) -> bool:
        return group_of(self.host, str(self.classes.of(url, learn=False))) == group

    def judge(self, met: Met, share: float, sample: tuple[str, str] = ("", "")) -> bool:
        """A page with this share of new text has come. Returns whether a group changes state."""
        is_new, changed = share >= NEW, False
        self.repeats |= not is_new
        is_expected = met.records[0].expects_new(len(met.values), met.seen)
        if met.blocked is not None and met.blocked.state is not ClassState.ENDLESS:
            met.blocked.vain = 0 if is_new else met.blocked.vain + 1
            late = self._late(met.records)
            if late is not None and late is not met.blocked:
                late.vain = late.vain // 2 if is_new else late.vain + 1
        if met.seen >= 0:
            met.records[0].count_values(len(met.values), met.seen, is_new)
        if is_new and self.views:
            self._credit(met, *sample)
        for at, record in enumerate(met.records):
            holder = record if record.is_blocked else None
            if record.text == WAITING and met.blocked is not holder:
                continue  # another record decides: this page is not evidence
            record.note(share)
            if record.state is ClassState.ENDLESS:
                continue  # saw_links() opens it
            if is_new and record.is_blocked:
                if record.state is ClassState.SPENT or not is_expected:
                    changed |= self._opens(record, met, at)
            elif is_new:
                record.samples = None
            else:
                record.samples = [*(record.samples or ()), sample][-SAMPLES:]
                if record.state is ClassState.OPEN:
                    record.state = self._verdict(record, self._budget(met, at))
                    changed |= record.is_blocked
        return changed

    def note_said(self, signature: int, url: str, text: str) -> bool:
        """A page with status 200 was not new. Returns whether so large a number of pages has its
        text that the text may be an error message."""
        found = self.said.get(signature)
        if found is None:
            if len(self.said) >= MAX_SAID:
                del self.said[min(self.said, key=lambda one: self.said[one].pages)]
            begins = " ".join(text[: 2 * SAID_BEGINS].split())[:SAID_BEGINS]
            found = self.said[signature] = SaidText(url, begins)
        found.pages += 1
        return found.pages >= LEAST_PAGES

    def said_most(self) -> SaidText | None:
        """The text that most pages have in common, if these pages are enough; else None."""
        most = max(self.said.values(), key=lambda one: one.pages, default=None)
        return most if most is not None and most.pages >= LEAST_PAGES else None

    def _credit(self, met: Met, url: str, found_on: str) -> None:
        """A page is new: credit the class of the page that links to it, and of the page that it is
        a part of (/mail/7/raw of /mail/7/)."""
        texts = [str(self._class_of(found_on))] if found_on else []
        if "?" not in url:
            texts.append(self._class_of(url).path.rstrip("/").rpartition("/")[0] + "/")
        for text in texts:
            record = self.records.get(group_of(self.host, text))
            if record is not None and record is not met.records[0]:
                record.credit = min(MOST_CREDIT, record.credit + 1 / LATEST)

    def _class_of(self, url: str) -> UrlClass:
        """The class of a URL as it was found: classes have canonical forms."""
        path, mark, query = url.partition("?")
        return self.classes.of(f"{path.lower()}{mark}{query}")

    def _opens(self, record: ClassRecord, met: Met, at: int) -> bool:
        """Whether a new page opens a group. A spent group gets half of its budget back."""
        latest = (record.ring & 0x3FF).bit_count()
        more = min(record.opened, MOST_OPENED)
        if record.text == WAITING and latest < min(NEW_PROBES_OF_ALL + more, 10):
            met.records[0].held = 0
            self.opened.add(met.group)  # similar URLs may have a better level now
            return False
        if record.state is ClassState.QUARANTINED:
            if latest < NEW_PROBES + more:
                return False
            record.opened += 1
        if record.state is ClassState.SPENT:
            record.barren = self._budget(met, at) // 2
        record.ring = (1 << NEW_PROBES + 1) - 1
        self._open(record, 0 if record.wide else met.group)
        return True

    def _open(self, record: ClassRecord, group: int) -> None:
        record.state, record.vain, record.held = ClassState.OPEN, 0, 0
        for one in () if group else self.records.values():
            if not one.is_blocked:
                one.held = 0
        self.opened.add(group)

    def _budget(self, met: Met, at: int) -> int:
        if at == 0:
            return self.budgets.of_class
        if at == len(met.records) - 1:
            return self.budgets.of_host
        return 0 if met.records[at].params or at == met.word else self.budgets.deep

    def _verdict(self, record: ClassRecord, budget: int) -> ClassState:
        if budget and record.barren >= budget:
            return ClassState.SPENT
        may_be_old = not (record.wide or record.params) and record.barren >= LEAST_PAGES
        if may_be_old and record.known_are_old:
            return ClassState.QUARANTINED
        if (
            record.params
            and record.judged >= (WINDOW if record.text == WAITING else LEAST_PAGES)
            and upper_share(record.new, record.judged) < NEW_SHARE
            and not self._is_content(record)
        ):
            return ClassState.QUARANTINED
        return ClassState.OPEN

    def _is_content(self, record: ClassRecord) -> bool:
        """Whether the class has the fewest parameters of its path. A class with two or more
        parameters needs half of the path's pages, too. A group over all paths is content unless it
        has LEAST_URLS classes."""
        if record.text == WAITING:
            own = [one for one in self.records.values() if not one.wide]
            if record.barren >= BARREN:
                return sum(one.barren > 0 for one in own) < LEAST_BARREN
            return sum(one.params > 0 for one in own) < LEAST_VIEWS
        every = [one for one in self.records.values() if not one.wide]
        if record.path == self._shape(ANY_PATH):
            query = record.text.removeprefix(ANY_PATH)
            return sum(one.text.endswith(query) for one in every) < LEAST_URLS
        if record.is_of_word:
            host = self.records.get(group_of(self.host, HOST))
            return host is None or host.found < max(WINDOW, 4 * record.found)
        classes = [one for one in every if one.path == record.path]
        least = min((one.params for one in classes if one.pages >= LEAST_URLS), default=1)
        if record.params > least:
            return False
        return record.params < 2 or 2 * record.pages >= sum(one.pages for one in classes)

    # operators

    def note_held(self, met: Met, url: str, depth: int) -> None:
        """Count a held URL."""
        if met.blocked is None:
            return
        met.blocked.held += 1
        own = met.records[0]
        if own is not met.blocked and met.blocked.text == WAITING:
            own.held += 1
            own.text = own.text or self.names(url, depth)[0]

    def waiting(self) -> list[ClassRecord]:
        """Classes whose URLs are held with all waiting URLs."""
        late = self.records.get(group_of(self.host, WAITING))
        if late is None or not late.is_blocked:
            return []
        every = (one for one in self.records.values() if not one.wide and not one.is_blocked)
        return [one for one in every if one.held and one.text.startswith("/")]

    def blocked(self) -> list[ClassRecord]:
        """The groups that hold URLs."""
        return [record for record in self.records.values() if record.is_blocked]

    def never(self, names: Container[str]) -> bool:
        """Mark groups as no traps, by name_of(), and no others. Returns whether a group opens."""
        changed = False
        for number, record in self.records.items():
            if not record.text or name_of(self.host, record.text) not in names:
                if record.state is ClassState.NEVER:
                    record.state = ClassState.OPEN  # the operator has taken it back
            else:
                if record.is_blocked or record.held:
                    self._open(record, 0 if record.wide else number)
                    changed = True
                record.state = ClassState.NEVER
        return changed

    def reconsider(self) -> None:
        """Open the groups that are within the present budgets."""
        for number, record in self.records.items():
            budget = {HOST: self.budgets.of_host, DEEP_URLS: self.budgets.deep}.get(
                record.text, self.budgets.of_class
            )
            is_within = record.state is ClassState.SPENT and not 0 < budget <= record.barren
            if is_within or (record.state is ClassState.ENDLESS and not self.budgets.endless):
                self._open(record, 0 if record.wide else number)

    # notes

    def pack(self) -> bytes:
        of = self.classes.pack(), self.records, sorted(self.opened), self.said
        return packed(TrapsNote(*of))

    @classmethod
    def unpack(cls, data: bytes | None, host: str, budgets: Budgets | None = None) -> HostTraps:
        """None: nothing is known of the host."""
        traps = cls(budgets or Budgets(), host)
        if data is None:
            return traps
        note = msgspec.msgpack.decode(data, type=TrapsNote)
        traps.classes, traps.opened = UrlClasses.unpack(note.literals), set(note.opened)
        traps.records, traps.said = note.records, note.said
        for record in note.records.values():
            traps.views += record.pages if record.params and not record.wide else 0
            traps.repeats |= bool(record.samples)
            if not record.wide:
                traps._note_fewest(record)
        return traps


class TrapsNote(msgspec.Struct, array_like=True):
    """The note ``traps wiki:80``. New fields go to the end, with a default. ``literals`` as
    UrlClasses packs them; ``records`` by group; ``opened`` and ``said`` as in HostTraps."""

    literals: bytes = b""
    records: dict[int, ClassRecord] = {}
    opened: list[int] = []
    said: dict[int, SaidText] = {}


def upper_share(new: int, judged: int) -> float:
    """The upper bound of a share, with odds of 95 in 100 (Wilson 1927)."""
    share, extra = new / judged, _Z * _Z / judged
    spread = _Z * sqrt(share * (1 - share) / judged + extra / judged / 4)
    return (share + extra / 2 + spread) / (1 + extra)
