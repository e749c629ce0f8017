"""Which pages that are gone may leave."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from larmspider.frontier.part import NotesMemory
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, url_key
from larmspider.learned.deletes.delete_gate import MAX_LOGINS, DeleteGate
from larmspider.learned.deletes.notes import SCOPE, HostDeletes, listed_as, note_of
from larmspider.learned.deletes.table import AT_LEAST, Observation
from tests.support.frontier.memory_backend import MemoryBackend

NOW = 1.8e9
HOST = "h:80"


def entry(path: str, depth: int = 1) -> QueuedUrl:
    url = f"http://h/{path}"
    return QueuedUrl(url=url, normalized=url, key=url_key(url), host=HOST, depth=depth)


class World:
    """A host with pages, and a gate in front of it."""

    def __init__(self, pages: int = 10) -> None:
        self.backend, self.due = MemoryBackend(), dict[bytes, float]()
        self.gate = DeleteGate(NotesMemory(self.backend), self.schedule)
        self.entries = [entry("", 0), *(entry(f"p{n}") for n in range(pages - 1))]
        self.backend.add(self.entries)
        for one in self.backend.pop(HOST, NOW, pages):
            self.backend.acknowledge([(one.key, FetchRecord(UrlState.STORED, NOW, 200))])
        self.backend.checkpoint({})

    def schedule(self, host: str, keys: Iterable[bytes], at: float) -> None:
        assert host == HOST
        self.due |= dict.fromkeys(keys, at)

    def why_not(self, one: QueuedUrl, seen: Observation = Observation.MISSING) -> str:
        return self.gate.why_not(one, seen, "missing 3 times", NOW)

    def canaries(self, *answers: Observation) -> None:
        """Each canary is visited; the last answer is for all that are left."""
        first = [key for key, at in self.due.items() if at < 1.0]
        for number, key in enumerate(first):
            self.gate.saw(HOST, key, answers[min(number, len(answers) - 1)])


def test_canaries_are_visited_before_any_page_leaves() -> None:
    world = World()
    gone = world.entries[-1]
    assert "asked first" in world.why_not(gone)
    assert len(world.due) == 6
    assert world.entries[0].key in world.due
    assert world.gate.is_held(HOST, gone.key)
    world.canaries(Observation.SAME)
    assert world.due[gone.key] == 1.0
    world.gate.saw(HOST, gone.key, Observation.MISSING)
    assert not world.gate.is_held(HOST, gone.key)
    assert world.why_not(gone) == ""


def test_canaries_that_were_visited_in_this_run_are_not_asked_again() -> None:
    world = World(4)
    for one in world.entries[:-1]:
        world.gate.saw(HOST, one.key, Observation.NOT_MODIFIED)
    assert world.why_not(world.entries[-1]) == ""
    assert not world.due


@pytest.mark.parametrize(
    "answers, well",
    [
        ([Observation.SAME, Observation.MISSING, Observation.SAME], True),
        ([Observation.MISSING, Observation.SAME], False),
        ([Observation.SAME, Observation.SAME, Observation.LOGIN], False),
        ([Observation.FAILED], False),
    ],
)
def test_a_host_whose_canaries_fail_has_no_deletes(answers: list[Observation], well: bool) -> None:
    """The start page, or half of all."""
    world = World()
    world.why_not(world.entries[-1])
    world.canaries(*answers)
    assert (world.why_not(world.entries[-1]) == "") is well


@pytest.mark.parametrize("later, well", [(Observation.SAME, True), (Observation.FAILED, False)])
def test_a_later_visit_of_a_canary_counts(later: Observation, well: bool) -> None:
    """The start page failed, or was there, when it was asked first."""
    world = World()
    start, gone = world.entries[0], world.entries[-1]
    world.why_not(gone)
    world.canaries(Observation.FAILED if well else Observation.SAME)
    for key in [key for key, at in world.due.items() if at < 1.0]:
        world.gate.saw(HOST, key, Observation.SAME)
    assert world.why_not(gone) == "", "all were found meanwhile"
    other = world.entries[-2]
    world.gate.saw(HOST, start.key, later)
    assert (world.why_not(other) == "") is well


def test_undecided_pages_are_looked_at_once_a_week() -> None:
    """The gate names pages that wait for longest, as many as there are canaries, unless they were
    visited within a week or are due."""
    world = World(pages=12)
    days, now = 86_400, NOW + 20 * 86_400
    waiting = world.entries[:10]
    for number, one in enumerate(waiting):
        world.gate.undecided.keeps(one, Observation.FAILED, "503", NOW + number, NOW + number)
    world.gate.save()

    def visited(number: int, at: float, due: float = 0.0) -> None:
        record = FetchRecord(UrlState.STORED, at, 200, due=due)
        world.backend.schedule([(waiting[number].key, 1.0)])
        world.backend.due(HOST, 1.0)
        world.backend.acknowledge([(waiting[number].key, record)])

    def looked_at() -> list[int]:
        keys = [one.key for one in waiting]
        return [keys.index(key) for key, _ in world.gate.undecided.to_look_at(HOST, now)]

    assert looked_at() == [0, 1, 2, 3, 4, 5]
    visited(0, now - 6 * days)
    visited(1, now - 8 * days)
    visited(2, now - 8 * days, due=2.0)
    assert looked_at() == [1, 3, 4, 5]
    now = NOW + 6 * days
    assert looked_at() == []


def test_an_approval_ends_with_a_visit_that_finds_the_page() -> None:
    world, one = World(), entry("p1")
    assert "--approve scope" in world.why_not(one, Observation.SCOPE)
    world.gate.approve(HOST, {one.key: 0.0})
    assert world.gate.undecided.is_approved(HOST, one.key, Observation.SCOPE)
    world.gate.saw(HOST, one.key, Observation.SAME)
    assert "--approve scope" in world.why_not(one, Observation.SCOPE)
    assert not world.gate.undecided.is_approved(HOST, one.key, Observation.SCOPE)


def test_what_the_brake_holds_waits_until_it_is_approved_and_seen_again() -> None:
    world = World(pages=40)
    world.why_not(world.entries[-1])
    world.canaries(Observation.SAME)
    gone = world.entries[10:]
    held = [one for one in gone if world.why_not(one)]
    assert len(held) == len(gone) - AT_LEAST
    assert [notice.what for notice in world.gate.notes.notices][:1] == ["deletes"]
    world.gate.save()
    again = DeleteGate(NotesMemory(world.backend), world.schedule)
    again.recover([])
    waiting = HostDeletes.unpack(world.backend.note(note_of(HOST))).waiting
    assert set(listed_as(HOST, HOST, waiting)) == {one.key for one in held}
    stored = FetchRecord(UrlState.STORED, status=200)
    seen_gone = replace(stored, time=NOW, missing_as="gone", confirmations=1, missing_since=NOW)
    lost = [one for one in world.entries if again.has_lost(HOST, one.key, seen_gone)]
    assert lost == [one for one in world.entries if one not in held], "what waits is not lost"
    again.approve(HOST, {one.key: NOW for one in held[:5]} | {held[5].key: NOW - 1})
    assert all(world.due[one.key] == 1.0 for one in held[:5])
    again.saw(HOST, held[0].key, Observation.SAME)  # it has come back
    assert [again.why_not(one, Observation.MISSING, "", NOW) for one in held[1:5]] == [""] * 4
    again.save()
    waiting = HostDeletes.unpack(world.backend.note(note_of(HOST))).waiting
    assert waiting.keys() == {one.key for one in held[5:]}


def test_pages_out_of_scope_leave_only_when_somebody_says_so() -> None:
    world = World()
    one, other = world.entries[-2:]
    assert "--approve scope" in world.why_not(one, Observation.SCOPE)
    world.why_not(other, Observation.SCOPE)
    world.gate.save()
    waiting = HostDeletes.unpack(world.backend.note(note_of(HOST))).waiting
    assert set(listed_as(SCOPE, HOST, waiting)) == {one.key, other.key}
    assert not list(listed_as(HOST, HOST, waiting))
    world.gate.approve(HOST, {one.key: 0.0})
    assert world.why_not(one, Observation.SCOPE) == ""
    assert world.why_not(other, Observation.SCOPE)


def test_a_host_waits_after_some_login_forms_in_a_row() -> None:
    world = World()
    seen = [*[Observation.LOGIN] * (MAX_LOGINS - 1), Observation.SAME]
    seen += [Observation.LOGIN] * MAX_LOGINS
    told = [world.gate.saw(HOST, world.entries[0].key, one) for one in seen]
    assert told == [False] * (len(seen) - 1) + [True]
    assert "login expired" in world.gate.notes.notices[0].message


def test_a_page_that_waits_some_seconds_for_canaries_is_not_told_of() -> None:
    """Though it was missing first a week ago: runs may be weekly."""
    world = World()
    gone, now = world.entries[-1], NOW + 14 * 86_400
    world.gate.undecided.keeps(gone, Observation.MISSING, "missing 3 times", NOW, now)
    assert "asked first" in world.gate.why_not(gone, Observation.MISSING, "missing 3 times", now)
    world.canaries(Observation.SAME)
    world.gate.undecided.keeps(gone, Observation.MISSING, "missing 3 times", NOW, now)
    assert world.gate.notes.notices == []
