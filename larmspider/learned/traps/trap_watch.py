"""Holds URLs that are traps, and learns from each page which are: traps.py over the frontier.

    watch.admits(entry)            # a URL whose turn has come; False: it is held now
    watch.saw(entry, page)         # before the stores have it

A URL is judged when it is next, not when it is found: one judgement for each fetch, and a URL that
is never fetched costs only its place in the queue. A held URL stays queued, is counted as held, and
is handed out when its class opens again.

A host has three notes, ``traps wiki:80``, ``novelty wiki:80`` and ``values wiki:80``, which move
with its partition. Small notes are written at each checkpoint. Large ones are written when a class
opens or closes, and otherwise after enough pages that each page costs little. A crash loses the
evidence since then, and no URL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider.extraction.texts.fingerprint import error_signature
from larmspider.extraction.texts.novelty import Bloom, Sketch, apart_of, rows_of
from larmspider.formatting import counted
from larmspider.frontier.part import HostNotes, Part
from larmspider.frontier.strategies import LATER, level_of
from larmspider.items import REDIRECT, REQUISITE, Page
from larmspider.learned.traps.host_traps import (
    BRANCHES,
    MAX_LEVEL,
    NEW,
    SAMPLES,
    SOME,
    Budgets,
    ClassRecord,
    HostTraps,
    Met,
)
from larmspider.urls.file_urls import FILES
from larmspider.urls.schemes import is_source
from larmspider.urls.view_of import is_format_of, names_formats, view_of

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier
    from larmspider.frontier.part import NotesMemory
    from larmspider.frontier.storage.records import QueuedUrl
    from larmspider.learned.spellings.trials import Trials

NOTE, SHOWN, VALUES = "traps {host}", "novelty {host}", "values {host}"
LEARN, REPORT, OFF = MODES = ("learn", "report", "off")
"""LARM_TRAPS."""
NOT_TRAPS = "not-traps.txt"
"""In LARM_DIR: the classes that are not traps, a name_of() a line."""
VISITED = "visited"
"""The filter that rejects links to known URLs (middlewares/visited.py)."""
SLICE = 500
"""Held URLs that are handed out again at a time: 15 ms."""
CLASSES_A_PAGE, BYTES_A_PAGE = 200, 16 << 10
"""At most 200 classes and 16 KB of novelty are written for each page judged since the last
checkpoint."""
LOOKED_THROUGH = 20
"""The first 20 pages of a host, and then one in 20, are looked through for links to formats."""
MARKS = 500
"""Pages with parameters of a host that are remembered: later pages may be views of them."""
COPIES = 4
"""Pages with nothing new that count as copies of one page; further ones use up budgets."""
_REVISION = re.compile(r"[/=](?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}(?=[/?&;.]|$)")
"""A hash in a URL: a page of a revision is not a version of a manual, of which each counts."""
MAX_BYTES = 15 << 20
"""Memory of what is known of the hosts, as estimated: 100,000 classes take 19 MB."""
MAX_SAID_TEXT = 4_000
"""Characters of a page that may be an error page, as others of its host."""
MAX_MENU = 2_000
"""Characters of a page among which the menu of its host is looked for."""
_CLASS_BYTES, _LITERAL_BYTES, _HOST_BYTES, _MARK_BYTES = 360, 70, 2_000, 200


@dataclass(slots=True, weakref_slot=True)
class _Known:
    """The knowledge of one host. ``pages`` were judged in this run."""

    traps: HostTraps
    shown: Sketch
    run: bytes = b""
    urgent: bool = False
    pages: int = 0
    saved_pages: int = 0
    saved_shown: int = 0
    shown_pages: int = 0
    """The number of judged pages when the note of texts was last written."""
    menu: str | None = None
    """The words that all new pages of this run begin with; None before the first one."""
    shown_by: dict[int, tuple[tuple[ClassRecord, ...], int]] = field(default_factory=dict)
    """The groups and the page size that last showed a new row, for the last new pages with
    parameters."""

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        return cls(HostTraps.unpack(data, ""), Sketch())

    def pack(self) -> bytes:
        return self.traps.pack()

    def begin_run(self) -> None:
        """Every value outlasts the run."""

    def memory(self, packed_bytes: int) -> int:
        """Bytes of memory, about."""
        traps = self.traps
        return (
            _HOST_BYTES
            + _CLASS_BYTES * len(traps.records)
            + _LITERAL_BYTES * len(traps.classes)
            + len(self.shown)
            + len(self.traps.seen)
            + len(self.menu or "")
            + _MARK_BYTES * len(self.shown_by)
        )

    @property
    def is_due(self) -> bool:
        """Whether the note of the classes has to be written."""
        more = self.pages - self.saved_pages
        return self.urgent or len(self.traps.records) <= CLASSES_A_PAGE * max(1, more)

    @property
    def is_shown_due(self) -> bool:
        """Whether the notes of texts and of URL values have to be written."""
        more = self.pages - self.shown_pages
        size = len(self.shown) + len(self.traps.seen)
        return self.shown.size > self.saved_shown and size <= BYTES_A_PAGE * more


class _Notes(HostNotes[_Known]):
    """A host has three notes. Large ones are written after enough pages that each page costs
    little; an eviction writes all of them."""

    def __init__(self, memory: NotesMemory, prepare: Any) -> None:
        super().__init__(memory, "traps", _Known, prepare=prepare, max_bytes=MAX_BYTES)
        self._backend = memory.backend

    def save(self) -> None:
        for host in list(self._changed):
            known = self._values[host]
            if known.is_due:
                self._put(host, known, shown=known.is_shown_due)
                del self._changed[host]
            else:
                self._weigh(host, known, 0)

    def _write(self, host: str, known: _Known) -> None:
        self._put(host, known, shown=known.shown.size > known.saved_shown)

    def _put(self, host: str, known: _Known, *, shown: bool) -> None:
        super()._write(host, known)
        if shown:
            self._backend.put_note(SHOWN.format(host=host), known.shown.pack())
            known.saved_shown, known.shown_pages = known.shown.size, known.pages
            if known.traps.views:
                self._backend.put_note(VALUES.format(host=host), known.traps.seen.pack())
        known.urgent, known.saved_pages = False, known.pages


class TrapWatch(Part):
    """``mode`` LEARN holds URLs; REPORT only learns which it would hold. ``not_traps`` is a file of
    classes that are never held. URLs that ``trials`` compare are fetched."""

    def __init__(
        self,
        frontier: Frontier,
        trials: Trials,
        budgets: Budgets,
        mode: str = LEARN,
        not_traps: Path | None = None,
    ) -> None:
        self._frontier, self._trials = frontier, trials
        self._budgets, self._mode = budgets, mode
        self._not_traps, self._read = not_traps, 0
        self._names: frozenset[str] = frozenset()
        """Classes that the operator has marked as no traps."""
        self._hosts = _Notes(frontier.notes, self._prepare)
        self._opening: set[str] = set()
        """Hosts with held URLs that are to be handed out again."""
        self._alike: dict[str, None] = {}
        """Hosts of which many pages say one text, in this run."""

    # what is known

    def _prepare(self, host: str, known: _Known) -> None:
        note, traps = self._frontier.backend.note, known.traps
        if traps.host:  # evicted, and held by a caller
            return
        traps.host, traps.budgets = host, self._budgets
        known.shown = Sketch.unpack(note(SHOWN.format(host=host)))
        traps.seen = Bloom.unpack(note(VALUES.format(host=host)))
        if traps.never(self._names):
            self._opening.add(host)
        known.saved_shown = known.shown.size
        known.pages = sum(r.judged for r in traps.records.values())
        known.saved_pages = known.shown_pages = known.pages

    def known(self, host: str) -> HostTraps:
        """The groups of a host."""
        return self._hosts.of(host).traps

    def recover(self, hosts: Sequence[str]) -> None:
        """Continue with the notes of these hosts, by the budgets and the mode of this run."""
        self._read_names()
        for host in hosts:
            if not self._frontier.backend.counts(host).held:
                continue
            traps = self._hosts.of(host).traps
            traps.reconsider()
            traps.never(self._names)
            if self._mode != LEARN or host == FILES:
                traps.opened.add(0)
            if traps.opened:
                self._opening.add(host)
            self._frontier.notes.trim()

    def forget(self, host: str) -> None:
        self._hosts.forget(host)
        self._opening.discard(host)
        self._alike.pop(host, None)

    def alike(self) -> list[str]:
        """A sentence for each host that answered 200 with one text to many URLs in this run."""
        found = ((host, self.known(host).said_most()) for host in self._alike)
        return [
            f"{host.removesuffix(':80').removesuffix(':443')} answers 200 with one text to"
            f" {counted(said.pages, 'URL')} that had nothing new, such as {said.url}:"
            f' "{said.begins}"; check whether that is an error'
            for host, said in found
            if said is not None
        ]

    def _read_names(self) -> bool:
        """Read the operator's file again. Returns whether it has changed."""
        if self._not_traps is None:
            return False
        try:
            changed = self._not_traps.stat().st_mtime_ns
            if changed == self._read:
                return False
            self._names = frozenset(self._not_traps.read_text("utf-8").split("\n"))
        except FileNotFoundError:
            if not self._read:
                return False
            changed, self._names = 0, frozenset()
        except (OSError, ValueError):
            return False
        self._read = changed
        return True

    def save(self) -> None:
        before = self._names
        if self._read_names():
            names = before | self._names
            for host in {name.partition("/")[0].partition(" ")[0] for name in names}:
                if host in self._frontier.hosts and self.known(host).never(self._names):
                    self._hosts.touch(host)
                    self._hosts.of(host).urgent = True
                    self._opening.add(host)
        self._hosts.save()

    # URLs and pages

    def admits(self, entry: QueuedUrl) -> bool:
        """Whether a leased URL is to be fetched; else it is held from now on, or put behind others.
        Always fetched: seeds, files (their number has a natural limit), URLs that are compared with
        others, and Requests that are more than a URL."""
        if self._mode == OFF or entry.visit is not None or entry.link_type == REQUISITE:
            return True
        if entry.payload or not entry.from_page or is_source(entry.url):
            return True
        if self._trials.is_party(entry.key, entry.host):
            return True
        known = self._hosts.of(entry.host)
        may_wait = self._mode == LEARN and self._frontier.strategy.has_levels
        level = level_of(entry.priority) if may_wait else MAX_LEVEL
        met = known.traps.meet(entry.normalized, entry.depth, level)
        if not met.records[0].params and is_format_of(entry.normalized, entry.from_page):
            known.traps.views += 1  # a suffix is a view like a parameter
        self._hosts.touch(entry.host)
        if met.later:
            self._frontier.backend.release([(entry.key, 0.0, entry.attempts)])
            put_back = entry.priority + (met.later - level) * LATER
            self._frontier.backend.reprioritize([(entry.key, put_back)])
            return False
        if met.blocked is not None and not met.probe:
            known.traps.note_held(met, entry.normalized, entry.depth)
            if self._mode == LEARN:
                self._frontier.backend.hold([(entry.key, met.group)])
                return False
        entry.met = met
        return True

    def saw(self, entry: QueuedUrl, page: Page) -> str:
        """The page of a URL has arrived. Returns what is held from now on, and why, or ""."""
        met: Met | None = entry.met
        entry.met = None
        if met is None:
            return ""
        known = self._hosts.of(entry.host)
        pages = met.records[-1].pages
        looks = pages <= LOOKED_THROUGH or pages % LOOKED_THROUGH == 0
        if looks and not known.traps.has_views:
            known.traps.views += names_formats(page.url, [link.url for link in page.links])
        news = self._saw_links(entry, page, met, known)
        if not known.traps.wants_verdict(met):
            return news
        of = _view_of(page, met, known.traps)
        if (share := self._share(page, met, known, bool(of))) is None:
            return news
        known.pages += 1
        self._hosts.touch(entry.host)
        sample = (page.url, page.from_page)
        if share < NEW and of:
            if known.traps.has_no_parameters and not known.traps.has_views:
                known.traps.views_by_path += 1
                known.traps.views += 1
            known.traps.note_view(met, page.url, of)
        if share >= NEW:
            known.menu = _common(page.text, known.menu)
        elif _may_be_error(page):
            signature = int.from_bytes(error_signature(page), "big")
            said = _behind_menu(page.text, known.menu or "")
            if known.traps.note_said(signature, page.url, said):
                self._alike[entry.host] = None
        blocked = [record for record in met.records if record.is_blocked]
        changed = known.traps.judge(met, share, sample)
        if known.traps.opened and self._mode == LEARN:
            self._opening.add(entry.host)
        if not changed:
            return news
        known.urgent = True
        held = [one for one in met.records if one.is_blocked and one not in blocked]
        return "; ".join(filter(None, (news, *map(self._held_in_words, held))))

    def _held_in_words(self, record: ClassRecord) -> str:
        what = "are held from now on" if self._mode == LEARN else "would be held"
        return f"URLs {record.text} {what}: {record.in_words()}"

    def _saw_links(self, entry: QueuedUrl, page: Page, met: Met, known: _Known) -> str:
        """Note the links of a page: the pages of its class may lead to new URLs of the class
        without end. Returns what saw() returns."""
        start = f"{'/'.join(page.url.split('/', 3)[:3])}/"
        new = [
            link.normalized
            for link in page.links
            if link.rejected_by is None and link.normalized and link.url.startswith(start)
        ]
        if len(new) < BRANCHES and met.group not in known.traps.growing:
            return ""
        here = (page.url, page.from_page)
        old = (
            link.normalized
            for link in page.links
            if link.rejected_by == VISITED and link.normalized and link.url.startswith(start)
            if link.url not in here
        )
        if not known.traps.saw_links(met, new, old):
            return ""
        own = met.records[0]
        known.urgent = True
        self._hosts.touch(entry.host)
        if own.is_blocked:
            own.text = own.text or known.traps.names(entry.normalized, entry.depth)[0]
            own.samples = [*(own.samples or ()), (page.url, page.from_page)][-SAMPLES:]
            return self._held_in_words(own)
        if self._mode == LEARN:
            self._opening.add(entry.host)
        return ""

    def _share(self, page: Page, met: Met, known: _Known, view: bool) -> float | None:
        """The share of the page that is new. The page may be a ``view`` of the page with the link
        to it. None for a redirect to a new page, because that page is judged itself."""
        if page.status != 200:
            first = page.links[:1]
            leads_on = any(link.type == REDIRECT and link.rejected_by is None for link in first)
            return None if leads_on else 0.0
        rows, own = rows_of(page), met.records[0]
        is_part = met.named and page.url.startswith(page.from_page)  # /mail/7/raw of /mail/7/
        share = known.shown.share(rows, of_any=is_part)
        # where pages have parameters, lists and views are links for the most part, too
        if not known.traps.views and (apart := apart_of(page)) is not None:
            share = max(share, known.shown.share_apart(apart, rows.size, of_any=is_part))
        if share >= NEW and own.params:
            known.shown_by[known.shown.mark] = met.records[:-1], rows.size
            if len(known.shown_by) > MARKS:
                del known.shown_by[next(iter(known.shown_by))]
        elif share < NEW:
            for mark in rows.rows & known.shown_by.keys():
                views, size = known.shown_by[mark]
                is_view = views[0].params > own.params and not views[0].is_established
                if is_view and abs(size - rows.size) <= 1:
                    del known.shown_by[mark]
                    for record in views:
                        record.retract()
                    share = 1.0  # else the content would wait behind its views
        is_version = not view and share < SOME and not _REVISION.search(page.url)
        if is_version and known.shown.times_said(rows, NEW, COPIES) < COPIES:
            return SOME  # one more version of a manual is not new, and no step of a trap
        return share

    # what is left to do

    def has_work(self, *, spent: bool) -> bool:
        return not spent and bool(self._opening)

    def work(self, now: float) -> bool:
        """Hand some held URLs out again. Returns False if there were none."""
        backend = self._frontier.backend
        for host in list(self._opening):
            known = self._hosts.of(host)
            opened = known.traps.opened
            while opened:
                group = min(opened)
                if backend.unhold(host, group or None, SLICE):
                    known.urgent = True
                    self._hosts.touch(host)
                    if (found := self._frontier.hosts.get(host)) is not None:
                        self._frontier.reschedule(found)
                    return True
                opened.discard(group)
            self._hosts.touch(host)
            known.urgent = True
            self._opening.discard(host)
        return False


def _may_be_error(page: Page) -> bool:
    """Whether the page is short, and of a type that applications answer with an error in."""
    is_short = page.status == 200 and 0 < len(page.text) <= MAX_SAID_TEXT
    return is_short and ("html" in page.mime or page.mime == "text/plain")


def _common(text: str, menu: str | None) -> str:
    """The words that a page and the menu of its host begin with.

    >>> _common("Home News Sorry, an error", "Home News Some content")
    'Home News '
    """
    if menu is None:
        return text[:MAX_MENU]
    if text.startswith(menu):
        return menu
    both = zip(text, menu, strict=False)
    end = next((at for at, (one, other) in enumerate(both) if one != other), len(text))
    while end and not text[end - 1].isspace():
        end -= 1
    return text[:end]


def _behind_menu(text: str, menu: str) -> str:
    """The text of a page without the menu that it begins with."""
    return text[len(_common(text, menu)) :] or text


def _view_of(page: Page, met: Met, traps: HostTraps) -> str:
    """The URL of the page of which this page may be a view, or "". On hosts that have views by
    path, /page/7/print is a view of /page/7 if other pages have such a segment, too."""
    if traps.has_no_parameters and traps.repeats:
        if met.named and page.url.startswith(f"{page.from_page}/"):
            return page.from_page
        return view_of(page.url, page.from_page)
    return view_of(page.url, page.from_page) if traps.has_views else ""
