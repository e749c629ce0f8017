"""larmspider/frontier/part.py: values of hosts in bounded memory, and the order of the Parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from larmspider.frontier.part import HostNotes, Note, NotesMemory, Part, Parts
from larmspider.frontier.storage.records import QueuedUrl
from tests.support.frontier.memory_backend import Disk, MemoryBackend


class Seen(Note):
    """``pages`` of a host, and how many of them in this run."""

    pages: int = 0
    lately: int = 0

    def begin_run(self) -> None:
        self.lately = 0


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend(Disk())


def count(notes: HostNotes[Seen], host: str) -> None:
    notes.of(host).pages += 1
    notes.of(host).lately += 1
    notes.touch(host)


def test_all_notes_of_a_crawl_share_one_bound(backend: MemoryBackend) -> None:
    """What leaves memory is a note, and comes back as it was, in this run and the next one."""
    memory = NotesMemory(backend, max_bytes=40 * Seen.least_bytes)
    kinds = [HostNotes(memory, name, Seen) for name in ("one", "other")]
    for number in range(100):
        for notes in kinds:
            count(notes, f"h{number}:80")
        memory.trim()
        assert memory.bytes <= memory.max_bytes
    assert sum(map(len, kinds)) <= 40
    count(kinds[0], "h0:80")
    assert (kinds[0].of("h0:80").pages, kinds[0].of("h0:80").lately) == (2, 2)
    for notes in kinds:
        notes.save()
    later = HostNotes(NotesMemory(backend), "one", Seen)
    assert [(later.of(host).pages, later.of(host).lately) for host in ("h0:80", "h99:80")] == [
        (2, 0), (1, 0),
    ]  # fmt: skip


def test_a_kind_of_notes_may_have_a_bound_of_its_own(backend: MemoryBackend) -> None:
    memory = NotesMemory(backend)
    few = HostNotes(memory, "few", Seen, max_bytes=10 * Seen.least_bytes)
    many = HostNotes(memory, "many", Seen)
    for number in range(20):
        for kind in (few, many):
            kind.of(f"h{number}:80")
            kind.touch(f"h{number}:80")
            kind.save()
        memory.trim()
    assert 0 < len(few) <= 10
    assert len(many) == 20
    assert few.of("h0:80") is not None


def test_a_value_that_a_caller_holds_stays_the_same_object(backend: MemoryBackend) -> None:
    """An answer is judged while other hosts take their turns."""
    memory = NotesMemory(backend, max_bytes=0)
    notes = HostNotes(memory, "seen", Seen)
    held = notes.of("h:80")
    memory.trim()
    assert len(notes) == 0
    held.pages = 7
    notes.touch("h:80")
    assert notes.of("h:80") is held
    notes.save()
    assert HostNotes(NotesMemory(backend), "seen", Seen).of("h:80").pages == 7


def test_values_of_a_run_are_notes_only_where_memory_asks_for_it(backend: MemoryBackend) -> None:
    memory = NotesMemory(backend)
    notes = HostNotes(memory, "seen", Seen, of_run=True)
    count(notes, "h:80")
    notes.save()
    assert backend.note(notes.note_of("h:80")) is None
    memory.max_bytes = 0
    memory.trim()
    memory.max_bytes = 1 << 20
    assert (notes.of("h:80").pages, notes.get("other:80")) == (1, None)
    later = HostNotes(NotesMemory(backend), "seen", Seen, of_run=True)
    assert later.get("h:80") is None
    notes.forget("h:80")
    assert notes.get("h:80") is None
    assert memory.bytes == 0


class First(Part):
    def admit(self, entries: Sequence[QueuedUrl]) -> Sequence[QueuedUrl]:
        return entries[1:]


class Second(Part):
    visits_again = True

    def admit(self, entries: Sequence[QueuedUrl]) -> Sequence[QueuedUrl]:
        return entries[:1]


def test_parts_are_asked_in_their_order_and_only_for_what_they_override() -> None:
    first, second = First(), Second()
    parts = Parts([first, Part(), second])
    assert parts.admit == [first.admit, second.admit]
    assert parts.work == []
    assert parts.visitor is second
    assert not Parts().visitor.visits_again
