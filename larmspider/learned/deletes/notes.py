"""Records and lists of pages that are gone and stay stored.

notes = DeleteNotes(NotesMemory(backend))
notes.kept.of("wiki:80").waiting         # pages that wait for the operator, by URL key
notes.tell(DELETES, "wiki:80", "Pages of wiki:80 wait ...")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from larmspider.frontier.part import HostNotes, Note, NotesMemory
from larmspider.learned.clock import ClockJumps
from larmspider.learned.deletes.moves import HostMove, Successor
from larmspider.learned.deletes.table import DAY, TABLE, Observation

SCOPE = "scope"
"""The name under which pages out of scope are listed and approved; also ``Notice.what`` and
``Notice.host`` of their notice."""
LOGIN_EXPIRED = "login expired"
"""The reason for parking a host whose pages have become login forms."""
DELETES, LOGIN, NO_ANSWER = "deletes", "login", "dead"
"""``Notice.what``: the brake holds pages; a login has expired; a host is silent for DEAD_SECS."""
UNDECIDED, MOVED = "undecided", "moved"
"""``Notice.what``: pages of a host are undecided for UNDECIDED_SECS; the host has moved."""
CLOCK = "clock"
"""``Notice.what``: the clock was set back. ``host`` is the day then."""
SITEMAP = "sitemap"
"""``Notice.what``: a sitemap stops naming pages that are there."""
UNDECIDED_SECS = 7 * DAY
"""An undecided page is listed after this time."""
UNCONFIRMED_SECS = 30 * DAY
"""The same for a page that only waits for its next visits."""
WHOLE_HOST = b""
"""The key of an approval for all pages of a host that does not answer."""


class Waiting(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. A page that is gone and was not removed.
    ``reason``: the brake's reason, or the scope. ``told``: the observation in the notice about the
    page, "" before it."""

    url: str
    seen: str
    reason: str
    since: float
    why: str
    told: str = ""

    @property
    def condition(self) -> str:
        """The observation that the notice about the page names."""
        return self.told or self.seen

    def is_listed(self, now: float) -> bool:
        """Whether the operator should see this undecided page."""
        passed = now - self.since
        if not self.why and self.seen in TABLE:
            return passed > UNCONFIRMED_SECS
        return passed > UNDECIDED_SECS


class Notice(NamedTuple):
    """A condition that the operator should know: ``what`` in a word, about which host. ``seen`` is
    the observation of pages that stay; each observation is a separate condition."""

    what: str
    host: str
    message: str
    seen: str = ""

    @property
    def name(self) -> str:
        """The name of the condition, under which the operator hears of it once."""
        return " ".join(filter(None, (self.what, self.host, self.seen)))


class HostDeletes(Note):
    """The pages of a host that are gone and stay: ``waiting`` for the operator, or ``undecided``,
    by the keys of their URLs. ``move``: the host has moved as a whole."""

    waiting: dict[bytes, Waiting] = {}
    undecided: dict[bytes, Waiting] = {}
    move: HostMove | None = None


class HostVisits(Note):
    """The results of this run's visits to a host. Keys are keys of URLs.

    ``approved``: the operator lets these pages go. ``visited``: whether each page was there.
    ``canaries``: the same for the canaries, None before their visit. ``held``: pages that wait for
    the canaries. ``again``: pages that are visited once more after the canaries. ``logins``: login
    forms in a row. ``expired``: whether there was a login form. ``well``: the number of visits that
    found their page. ``successors``: pages of other hosts to which pages redirect. ``abandoned``:
    the operator has approved the removal of all pages if the host has been silent since this time;
    0.0 without such an approval. ``guests``: pages of hosts that have moved to this one, by host
    and key; they wait for its canaries."""

    least_bytes = 900
    approved: set[bytes] = set()
    canaries: dict[bytes, bool | None] | None = None
    visited: dict[bytes, bool] = {}
    held: set[bytes] = set()
    again: set[bytes] = set()
    logins: int = 0
    expired: bool = False
    well: int = 0
    successors: dict[bytes, Successor] = {}
    abandoned: float = 0.0
    guests: set[tuple[str, bytes]] = set()

    def memory(self, packed_bytes: int) -> int:
        keys = len(self.visited) + len(self.held) + len(self.again) + len(self.approved)
        return self.least_bytes + 150 * keys + 400 * len(self.successors)


class DeleteNotes:
    """The notes of all hosts: ``kept`` on disk, ``visits`` of this run. ``moved``: hosts in memory
    that have moved. ``notices``: messages for the operator; the sender empties the list."""

    def __init__(self, memory: NotesMemory) -> None:
        self.backend, self.jumps = memory.backend, ClockJumps()
        self.kept = HostNotes(memory, "deletes", HostDeletes, prepare=self._prepare)
        self.visits = HostNotes(memory, "visits", HostVisits, of_run=True)
        self.moved: set[str] = set()
        self.notices: list[Notice] = []

    def __repr__(self) -> str:
        return f"<DeleteNotes {self.kept!r}>"

    def tell(self, what: str, host: str, message: str, seen: str = "") -> None:
        self.notices.append(Notice(what, host, message, seen))

    def save(self) -> None:
        self.kept.save()
        self.visits.save()

    def forget(self, host: str) -> None:
        self.kept.forget(host)
        self.visits.forget(host)
        self.moved.discard(host)

    def _prepare(self, host: str, kept: HostDeletes) -> None:
        if kept.move is not None:
            self.moved.add(host)


def note_of(host: str) -> str:
    """The name of the note that has the HostDeletes of a host."""
    return f"deletes {host}"


def listed_as(name: str, host: str, waiting: dict[bytes, Waiting]) -> Iterator[bytes]:
    """The keys of a host's waiting pages in one list: ``name`` is the host, or SCOPE for pages out
    of scope."""
    for key, one in waiting.items():
        if (one.seen == Observation.SCOPE) == (name == SCOPE) and name in (SCOPE, host):
            yield key


def digest_of(keys: Iterable[bytes]) -> str:
    """The name of a list's contents: an approval is for the list that was shown."""
    return blake2b(b"".join(sorted(keys)), digest_size=6).hexdigest()
