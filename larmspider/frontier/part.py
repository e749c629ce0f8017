"""A Part learns something about hosts; HostNotes are the values that Parts keep, one for each host.

    class SlowHosts(Part):
        def __init__(self, notes: NotesMemory) -> None:
            self._hosts = HostNotes(notes, "slow", Slowest)

        def answered(self, lease: Lease) -> None:
            record = lease.host.record
            self._hosts.of(record.host).seconds = record.response
            self._hosts.touch(record.host)

The frontier calls its Parts in one order. A method that a Part does not override costs nothing:
Parts lists the others once.

All HostNotes of a crawl share one bound of memory. Beyond the bound the values that were used
longest ago become notes of the backend, and are read again when a Part needs them.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

import msgspec

from larmspider.frontier.storage.records import packed

if TYPE_CHECKING:
    from larmspider.frontier.hosts import Host, Lease
    from larmspider.frontier.own_fetch import OwnFetch
    from larmspider.frontier.storage.backend import Backend
    from larmspider.frontier.storage.records import FetchRecord, MergedUrl, QueuedUrl

MAX_BYTES = 32 << 20
"""Memory of all HostNotes of a crawl, as estimated: 100,000 hosts cost no more than 30,000."""
TIMES_PACKED = 4
"""Bytes of memory for each byte of a note, about: numbers and short texts take 3 to 5."""


class Blame(IntEnum):
    """The meaning of a failure for its host."""

    HOST = 0
    """It counts against the host, and may park it."""
    DOUBT = 1
    """It counts against the host. The host is probed before it is parked."""
    VIEW = 2
    """Nothing: one view of the host is known to be broken."""


class Part:
    """Something that is learned about hosts. Every method does nothing unless overridden.

    A host is named ``wiki:80``. Times are in seconds since the epoch.
    """

    # life

    def recover(self, hosts: Sequence[str]) -> None:
        """Take up these hosts at the start of a run, after the backend's recovery."""

    def enter(self, host: str) -> None:
        """Called when the host has come from another worker."""
        self.recover([host])

    def entered(self) -> None:
        """Hosts with stored pages have come from another worker."""

    def forget(self, host: str) -> None:
        """Another worker has the host from now on."""

    def save(self) -> None:
        """Give changes to the backend, for the batch that ends now."""

    # work

    def look_ahead(self, now: float) -> bool:
        """One slice of work, before hosts take turns; True if more is left."""
        return False

    def work(self, now: float) -> bool:
        """One slice of work, while no host is due; True if URLs may have become due."""
        return False

    def has_work(self, *, spent: bool) -> bool:
        """Whether the Part still has work, so that the crawl cannot end yet. ``spent``:
        LARM_MAX_PAGES allows no new page."""
        return False

    # URLs

    def admit(self, entries: Sequence[QueuedUrl]) -> Sequence[QueuedUrl]:
        """The URLs of a batch that the backend is to queue."""
        return entries

    def linked(self, exact: str, key: bytes) -> None:
        """A link leads to a merged URL, by its exact form."""

    def doubted(self, entries: Sequence[QueuedUrl]) -> None:
        """Called if another worker's stores may have other versions of these pages than the records
        say."""

    def admits(self, entry: QueuedUrl) -> bool:
        """Whether a leased URL is fetched. After False its lease has ended."""
        return True

    def is_question(self, key: bytes, host: str) -> bool:
        """Whether a URL was queued only to compare pages; such a URL does not become a page."""
        return False

    def ended(self, entry: QueuedUrl, visit: FetchRecord) -> FetchRecord:
        """The record that the backend keeps of a URL in its final state."""
        return visit

    def final(self, host: str, key: bytes, visit: FetchRecord) -> None:
        """A URL of a host is stored, failed, refused or forgotten; the backend knows."""

    def merged(self, merged: MergedUrl) -> None:
        """A page that was fetched is merged into another URL's."""

    # hosts

    def next_time(self, host: str) -> float | None:
        """When a fetch of the Part's own is due; None: never."""
        return None

    def blocks(self, host: Host) -> bool:
        """Whether nothing else of the host is fetched now."""
        return False

    def own_fetch(self, host: Host, now: float, allowed: Callable[[str], bool]) -> OwnFetch | None:
        """A fetch of the Part's own, if one is due. robots.txt decides which URLs are
        ``allowed``."""
        return None

    # answers

    def answered(self, lease: Lease) -> None:
        """A response is complete, and does not blame its host."""

    def blame(self, lease: Lease, kind: str, retry_after: float | None) -> Blame:
        """The meaning of a failure that may be the host's (politeness.KINDS)."""
        return Blame.HOST

    def silent(self, host: str, since: float, now: float) -> None:
        """A host has failed once more, and has not answered since the time ``since``."""

    def gives_up(self, entry: QueuedUrl) -> bool:
        """Whether a failed URL is not retried, whatever its number of attempts."""
        return False

    def retried(self, entry: QueuedUrl) -> None:
        """A failed URL is retried."""

    def gave_up(self, host: str, kind: str) -> None:
        """A URL has failed for good."""

    def robots_failed(self, host: str, kind: str) -> None:
        """The robots.txt of a host could not be fetched."""

    # revisits: one Part at most decides them

    visits_again: bool = False
    """Whether this run visits stored pages again."""
    waits_for_silent: bool = True
    """Whether the run waits for hosts that do not answer."""
    asks_silent_once: bool = False
    """Whether a host that was silent in the last run is given up after one failure."""

    @property
    def next_plan(self) -> float | None:
        """When look_ahead() next has work; None: never."""
        return None

    def revisit_time(self, host: str) -> float | None:
        """When the next page of the host is due again; 0.0 for now, None if no page is."""
        return None

    def revisit(self, host: str, now: float) -> QueuedUrl | None:
        """Lease the next page of a host that is visited again."""
        return None


class Parts:
    """The Parts of a crawl in their order. Each attribute has the methods of one name, of those
    Parts that override it."""

    def __init__(self, parts: Sequence[Part] = ()) -> None:
        self.all = tuple(parts)
        self.recover = self._of("recover")
        self.enter = [part.enter for part in parts if _overrides(part, "enter", "recover")]
        self.entered = self._of("entered")
        self.forget = self._of("forget")
        self.save = self._of("save")
        self.look_ahead = self._of("look_ahead")
        self.work = self._of("work")
        self.has_work = self._of("has_work")
        self.admit = self._of("admit")
        self.linked = self._of("linked")
        self.doubted = self._of("doubted")
        self.admits = self._of("admits")
        self.is_question = self._of("is_question")
        self.ended = self._of("ended")
        self.final = self._of("final")
        self.merged = self._of("merged")
        self.next_time = self._of("next_time")
        self.blocks = self._of("blocks")
        self.own_fetch = self._of("own_fetch")
        self.answered = self._of("answered")
        self.blame = self._of("blame")
        self.silent = self._of("silent")
        self.gives_up = self._of("gives_up")
        self.retried = self._of("retried")
        self.gave_up = self._of("gave_up")
        self.robots_failed = self._of("robots_failed")
        self.visitor = next((part for part in parts if part.visits_again), Part())
        """The Part that decides which pages are visited again; a Part that does nothing where no
        page is."""

    def __repr__(self) -> str:
        return f"<Parts {', '.join(type(part).__name__ for part in self.all)}>"

    def _of(self, name: str) -> list[Any]:
        return [getattr(part, name) for part in self.all if _overrides(part, name)]


def _overrides(part: Part, *names: str) -> bool:
    return any(getattr(type(part), name) is not getattr(Part, name) for name in names)


class Kept(Protocol):
    """A value of HostNotes. Note has all of this."""

    run: bytes

    def begin_run(self) -> None: ...
    def pack(self) -> bytes: ...
    def memory(self, packed_bytes: int) -> int: ...
    @classmethod
    def unpack(cls, data: bytes | None) -> Self: ...


class Note(msgspec.Struct, array_like=True, weakref=True, eq=False):
    """The knowledge of a Part about one host, and its form on disk. New fields go to the end,
    with a default. ``run`` is the run that wrote the note."""

    least_bytes: ClassVar[int] = 500
    """Memory of a value with nothing in it, about."""

    run: bytes = b""

    def begin_run(self) -> None:
        """Forget what counts in one run only: another run, or another worker, wrote the note."""

    def memory(self, packed_bytes: int) -> int:
        """Bytes of memory, about, of a value whose note has ``packed_bytes``."""
        return self.least_bytes + TIMES_PACKED * packed_bytes

    def pack(self) -> bytes:
        return packed(self)

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        """None: nothing is known of the host."""
        return msgspec.msgpack.decode(data, type=cls) if data else cls()


N = TypeVar("N", bound=Kept)


class NotesMemory:
    """The memory that all HostNotes of a crawl share: at most ``max_bytes``, as estimated."""

    def __init__(self, backend: Backend, max_bytes: int = MAX_BYTES) -> None:
        self.backend, self.max_bytes = backend, max_bytes
        self.run = os.urandom(4)
        self.bytes = 0
        self._kinds: list[HostNotes[Any]] = []

    def __repr__(self) -> str:
        return f"<NotesMemory {self.bytes:,} of {self.max_bytes:,} bytes, {self._kinds!r}>"

    def add(self, kind: HostNotes[Any]) -> None:
        self._kinds.append(kind)

    def trim(self) -> None:
        """Evict values while there are too many bytes: of the largest kind the values that were
        used longest ago. Only where no Part is at work: a value that is changed after its eviction
        has to be touched."""
        for kind in self._kinds:
            while kind.bytes > kind.max_bytes:
                kind.evict()
        while self.bytes > self.max_bytes and any(self._kinds):
            max(self._kinds, key=lambda kind: kind.bytes).evict()


class HostNotes(Generic[N]):
    """One value for each host, kept as the note ``<name> <host>`` of the backend.

        notes = HostNotes(frontier.notes, "scripts", Scripts)
        notes.of("wiki:80").pages += 1
        notes.touch("wiki:80")
        notes.save()                   # at a checkpoint

    ``of_run``: the values belong to this run. They become notes only if memory runs short, and no
    other worker gets them. ``prepare`` completes a value that was made or read. ``max_bytes``: the
    kind's part of the memory, at most.
    """

    def __init__(
        self,
        memory: NotesMemory,
        name: str,
        kind: type[N],
        *,
        of_run: bool = False,
        prepare: Callable[[str, N], None] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.name, self.kind, self._memory, self._of_run = name, kind, memory, of_run
        self._prepare, self.max_bytes = prepare, max_bytes
        self._values: OrderedDict[str, N] = OrderedDict()
        """The values that were used last come last."""
        self._sizes: dict[str, int] = {}
        self._changed: dict[str, None] = {}
        self._evicted: WeakValueDictionary[str, N] = WeakValueDictionary()
        """Values that left memory while a caller holds them."""
        self._kept: set[str] = set()
        """Hosts that have a note whose value belongs to this run only."""
        self.bytes = 0
        memory.add(self)

    def __repr__(self) -> str:
        return f"<HostNotes {self.name}: {len(self)} hosts, {self.bytes:,} bytes>"

    def __len__(self) -> int:
        """Hosts in memory."""
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        """Hosts in memory."""
        return iter(list(self._values))

    def note_of(self, host: str) -> str:
        """The name of the host's note. Notes with a space move with the host's partition."""
        return f"run/{self.name}/{host}" if self._of_run else f"{self.name} {host}"

    def of(self, host: str) -> N:
        """The value of a host; a new one where nothing is known. Call touch() after a change."""
        value = self._values.get(host)
        if value is None:
            return self._take_in(host, self._read(host) or (self.kind.unpack(None), 0))
        self._values.move_to_end(host)
        return value

    def get(self, host: str) -> N | None:
        """The value of a host; None if nothing is known."""
        value = self._values.get(host)
        if value is not None or (self._of_run and host not in self._kept):
            return value
        found = self._read(host)
        return None if found is None else self._take_in(host, found)

    def noted(self, hosts: Iterable[str]) -> Iterator[tuple[str, N]]:
        """The hosts that have a value, each with its value."""
        for host in hosts:
            value = self.get(host)
            if value is not None:
                yield host, value
                self._memory.trim()

    def touch(self, host: str) -> None:
        """The value of a host has changed."""
        self._changed[host] = None
        if host not in self._values:  # evicted, and held by the caller
            self.of(host)

    def save(self) -> None:
        """Hand the values that have changed to the backend."""
        if self._of_run:
            for host in self._changed:
                self._weigh(host, self._values[host], 0)
        else:
            for host in self._changed:
                self._write(host, self._values[host])
        self._changed.clear()

    def forget(self, host: str) -> None:
        """Drop the value of a host: another worker has it."""
        self._values.pop(host, None)
        self._changed.pop(host, None)
        self._evicted.pop(host, None)
        self._kept.discard(host)
        self._count(host, 0)

    def evict(self) -> None:
        """Drop the least recently used value from memory; its note keeps it."""
        host, value = self._values.popitem(last=False)
        if self._of_run or host in self._changed:
            self._write(host, value)
        self._changed.pop(host, None)
        if self._of_run:
            self._kept.add(host)
        self._count(host, 0)
        self._evicted[host] = value

    @property
    def changed(self) -> Collection[str]:
        """Hosts whose values have changed since the last save()."""
        return self._changed.keys()

    # notes

    def _read(self, host: str) -> tuple[N, int] | None:
        """A value and the bytes of its note; None if nothing is known."""
        if self._of_run and host not in self._kept:
            return None
        held = self._evicted.pop(host, None) if self._evicted else None
        if held is not None:
            return held, 0
        data = self._memory.backend.note(self.note_of(host))
        if not data:
            return None
        value = self.kind.unpack(data)
        if value.run != self._memory.run:
            value.begin_run()
        return value, len(data)

    def _take_in(self, host: str, found: tuple[N, int]) -> N:
        value, size = found
        value.run = self._memory.run
        if self._prepare is not None:
            self._prepare(host, value)
        self._values[host] = value
        self._weigh(host, value, size)
        return value

    def _write(self, host: str, value: N) -> None:
        data = value.pack()
        self._memory.backend.put_note(self.note_of(host), data)
        if host in self._values:
            self._weigh(host, value, len(data))

    def _weigh(self, host: str, value: N, packed_bytes: int) -> None:
        """Estimate the memory of a value by the bytes of its note."""
        self._count(host, value.memory(packed_bytes))

    def _count(self, host: str, size: int) -> None:
        difference = size - self._sizes.pop(host, 0)
        if size:
            self._sizes[host] = size
        self.bytes += difference
        self._memory.bytes += difference
