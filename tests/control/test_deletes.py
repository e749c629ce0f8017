"""Lists of pages that wait, and their approval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from larmspider.commands.deletes import REASONS, _show
from larmspider.control.deletes import (
    DeadHost,
    Row,
    Waits,
    approve,
    approved_in,
    dead_hosts,
    moved_hosts,
    remember_shown,
    shown_in,
    silent_hosts,
    waiting_lists,
    what_waits,
    write_approved,
)
from larmspider.errors import ConfigError
from larmspider.frontier.hosts import HostRecord, pack_host
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState, url_key
from larmspider.learned.clock import ClockJumps
from larmspider.learned.deletes.moves import HostMove
from larmspider.learned.deletes.notes import SCOPE, WHOLE_HOST, HostDeletes, Waiting, note_of
from larmspider.learned.revisits.budget import RunNote
from larmspider.learned.revisits.revisiting import NOTE


class Frontier:
    """A reader of two hosts: three pages that are missing, two out of scope."""

    def __init__(self) -> None:
        self.notes = {
            note_of("a:80"): self.packed("missing", range(3)),
            note_of("b:80"): self.packed("scope", range(2)),
        }

    @staticmethod
    def packed(seen: str, numbers: Iterable[int]) -> bytes:
        waiting = {
            bytes([n]) * 16: Waiting(f"http://h/{n}", seen, "why", 1.8e9, "brake") for n in numbers
        }
        return HostDeletes(waiting=waiting).pack()

    def hosts(self) -> dict[str, tuple[bytes, Counts]]:
        since = {"a:80": 0.0, "b:80": 1.8e9 - 91 * 86_400, "c:80": 1.8e9 - 89 * 86_400}
        return {
            name: (pack_host(HostRecord(name, silent_since=at)), Counts(stored=7))
            for name, at in since.items()
        }

    def note(self, name: str) -> bytes | None:
        return self.notes.get(name)

    def visits(self) -> Iterator[tuple[bytes, FetchRecord]]:
        for number, host in enumerate("abc" * 7):
            visit = FetchRecord(UrlState.STORED, url=f"http://{host}/{number}")
            yield url_key(visit.url), visit


def test_an_approval_is_for_the_list_that_was_shown(tmp_path: Path) -> None:
    frontier = Frontier()
    lists = what_waits(frontier, 1.8e9)
    assert {name: len(rows) for name, rows in lists.lists.items()} == {"a:80": 3, SCOPE: 2}
    with pytest.raises(ConfigError, match="was not shown yet"):
        approve([tmp_path], "a:80", lists, shown_in(tmp_path).get("a:80"))
    remember_shown(tmp_path, lists)
    frontier.notes[note_of("a:80")] = frontier.packed("missing", range(4))
    changed = what_waits(frontier, 1.8e9)
    with pytest.raises(ConfigError, match="has changed since it was shown"):
        approve([tmp_path], "a:80", changed, shown_in(tmp_path).get("a:80"))
    assert approved_in(tmp_path) == {}
    said = approve([tmp_path], "a:80", lists, shown_in(tmp_path).get("a:80"))
    assert said.startswith("3 pages of a:80 approved")
    approve([tmp_path], SCOPE, lists, shown_in(tmp_path).get(SCOPE))
    assert {host: len(keys) for host, keys in approved_in(tmp_path).items()} == {
        "a:80": 3,
        "b:80": 2,
    }
    assert set(approved_in(tmp_path)["b:80"].values()) == {1.8e9}
    write_approved(tmp_path, {"a:80": {}})
    assert not (tmp_path / "deletes-approved.json").exists()


def test_a_host_that_is_silent_for_ninety_days_is_named() -> None:
    (dead,) = dead_hosts(Frontier(), 1.8e9)
    assert (dead.host, dead.since, dead.pages) == ("b:80", 1.8e9 - 91 * 86_400, 7)


def test_pages_that_are_not_decided_for_seven_days_are_on_the_list_of_their_host() -> None:
    frontier, now = Frontier(), 1.8e9 + 8 * 86_400
    kept = {
        b"\0" * 16: Waiting("http://h/0", "failed", "", 1.8e9, ""),  # the brake has it, too
        b"l" * 16: Waiting("http://h/l", "login", "", 1.8e9, ""),
        b"k" * 16: Waiting("http://h/k", "login", "", now - 7.5 * 86_400, ""),
        b"m" * 16: Waiting("http://h/m", "missing", "", 1.8e9, "only 0 of 6 pages are there"),
        b"n" * 16: Waiting("http://h/n", "missing", "missing 1 time", 1.8e9, ""),
        b"y" * 16: Waiting("http://h/y", "failed", "", now - 6 * 86_400, ""),
    }
    waiting = HostDeletes.unpack(frontier.notes[note_of("a:80")]).waiting
    frontier.notes[note_of("a:80")] = HostDeletes(waiting=waiting, undecided=kept).pack()
    rows = {row.page.url: row.page.why for row in waiting_lists(frontier, now)["a:80"]}
    assert rows == {
        "http://h/0": "brake",
        "http://h/1": "brake",
        "http://h/2": "brake",
        "http://h/k": "not decided for up to 8 days: a login form never removes a page by itself",
        "http://h/l": "not decided for up to 8 days: a login form never removes a page by itself",
        "http://h/m": "not decided for up to 8 days: only 0 of 6 pages are there",
    }


def test_a_night_with_a_clock_a_year_back_is_no_year_on_the_list() -> None:
    """The page was first missed in that night, eight days ago."""
    frontier, wrong, now = Frontier(), 1.8e9 - 366 * 86_400, 1.8e9 + 8 * 86_400
    jumps = ClockJumps(jumps=[(wrong + 60, 1.8e9 + 86_400, 366 * 86_400.0)])
    frontier.notes = {
        note_of("a:80"): HostDeletes(
            undecided={b"l" * 16: Waiting("http://h/l", "login", "", wrong, "")}
        ).pack(),
        NOTE: msgspec.msgpack.encode(RunNote(jumps=jumps)),
    }
    (row,) = waiting_lists(frontier, now)["a:80"]
    assert row.page.why.startswith("not decided for up to 8 days: ")


def test_an_approval_is_void_if_other_things_are_seen_of_the_same_pages(tmp_path: Path) -> None:
    frontier, now = Frontier(), 1.8e9 + 8 * 86_400
    page = Waiting("http://h/l", "login", "", 1.8e9, "")
    frontier.notes = {note_of("a:80"): HostDeletes(undecided={b"l" * 16: page}).pack()}
    remember_shown(tmp_path, what_waits(frontier, now))
    page.seen = "failed"
    frontier.notes = {note_of("a:80"): HostDeletes(undecided={b"l" * 16: page}).pack()}
    with pytest.raises(ConfigError, match="has changed since it was shown"):
        approve([tmp_path], "a:80", what_waits(frontier, now), shown_in(tmp_path)["a:80"])


def test_hosts_that_have_moved_are_listed_unless_they_have_moved_back() -> None:
    frontier, now = Frontier(), 1.8e9
    frontier.notes = {
        note_of("a:80"): HostDeletes(
            move=HostMove("a:80", "a:443", now - 40 * 86_400, 30, 28)
        ).pack(),
        note_of("b:80"): HostDeletes(move=HostMove("b:80", "c:80", now - 9 * 86_400, 3, 3)).pack(),
        note_of("c:80"): HostDeletes(move=HostMove("c:80", "b:80", now - 5 * 86_400, 3, 1)).pack(),
    }
    assert [move.report() for move in moved_hosts(frontier, now)] == [
        "http://c moved to http://b: 3 pages (first seen 2027-01-10; 1 left the search for their"
        " new URLs)",
        "http://a moved to https://a: 30 pages (first seen 2026-12-06; 28 left the search for their"
        " new URLs)",
    ]


def test_a_host_that_is_silent_for_seven_days_is_listed() -> None:
    assert [one.host for one in silent_hosts(Frontier(), 1.8e9)] == ["b:80", "c:80"]


def test_all_pages_of_a_host_that_does_not_answer_are_one_list(tmp_path: Path) -> None:
    """As they were shown: the same silence, and no page more."""
    frontier = Frontier()
    page = Waiting("http://h/0", "failed", "why", 1.8e9, "brake")
    kept = HostDeletes(undecided={bytes(16): page})
    frontier.notes[note_of("c:80")] = kept.pack()
    waits = what_waits(frontier, 1.8e9, samples=2)
    assert [(one.host, one.samples) for one in waits.dead] == [
        ("b:80", ("http://b/1", "http://b/4")),
        ("c:80", ("http://c/2", "http://c/5")),
    ]
    assert "c:80" not in waits.lists
    remember_shown(tmp_path, waits)
    shown = shown_in(tmp_path)["c:80"]
    since, pages = waits.dead[1].since, waits.dead[1].pages
    for changed in (
        DeadHost("c:80", since + 9 * 86_400, pages),
        DeadHost("c:80", since, pages + 1),
    ):
        with pytest.raises(ConfigError, match="has changed since it was shown"):
            approve([tmp_path], "c:80", Waits({}, [changed]), shown)
    said = approve([tmp_path], "c:80", waits, shown)
    assert said.startswith("7 pages of c:80 approved: the next refresh tries the host once more")
    assert approved_in(tmp_path) == {"c:80": {WHOLE_HOST: since}}


def test_a_list_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--approve d:80: expected one of .* a:80, scope, b:80"):
        approve([tmp_path], "d:80", what_waits(Frontier(), 1.8e9), None)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b'{"a:80": ["zz"]}', b'{"a:80": 1}'])
def test_files_that_somebody_has_damaged_approve_nothing(tmp_path: Path, content: bytes) -> None:
    for name in ("deletes-approved.json", "deletes-shown.json"):
        (tmp_path / name).write_bytes(content)
    assert approved_in(tmp_path) == {}
    with pytest.raises(ConfigError):
        approve([tmp_path], "a:80", what_waits(Frontier(), 1.8e9), shown_in(tmp_path).get("a:80"))


def test_a_list_shows_some_reasons_and_counts_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each of many pages that have moved names its own new URL."""
    whys = [f"not decided for 8 days: http://new/p{number} is not stored" for number in range(9)]
    pages = [
        Waiting(f"http://h/p{number}", "moved", "", 1.8e9, whys[number]) for number in range(9)
    ]
    rows = [Row("h:80", bytes([number]) * 16, page) for number, page in enumerate(pages)]
    _show({"h:80": rows, "i:80": rows[:1]}, [], 2)
    said = capsys.readouterr().out
    assert said.count("is not stored") == REASONS + 1
    assert "  and 6 other reasons\n" in said
    assert "i:80: 1 page waits\n" in said
    _show({"h:80": rows}, [], 9)
    assert capsys.readouterr().out.count("is not stored") == 9
