"""The history of a page, in plain words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from larmspider.control.deletes import write_approved
from larmspider.extraction.texts.fingerprint import RESTLESS, Volatile
from larmspider.frontier.storage.records import url_key
from larmspider.learned.deletes.moves import HostMove
from larmspider.learned.deletes.notes import WHOLE_HOST, HostDeletes, Waiting, note_of
from larmspider.learned.revisits.host import HostKnowledge
from larmspider.reports.page_history import history_in_words

OLD, NEW = "http://wiki/vpn", "https://wiki/vpn"


class Notes:
    def __init__(self, **notes: bytes) -> None:
        self.notes = notes

    def note(self, name: str) -> bytes | None:
        return self.notes.get(name)


def crawl(folder: Path) -> Any:
    lines = [
        f"2026-03-02T04:10:00.000Z\t{OLD}\t{OLD}\tmoved 2 times over 1.1 days, to {NEW}",
        "2026-03-02T04:10:00.000Z\thttp://wiki/x\thttp://wiki/x\tgone",
    ]
    (folder / "deleted.log").write_text("".join(f"{line}\n" for line in lines))
    return SimpleNamespace(parts=[SimpleNamespace(path=folder)], stored=lambda _: None)


def test_a_move_is_told_at_both_urls(tmp_path: Path) -> None:
    move = HostMove("wiki:80", "wiki:443", 1.7723e9, 30, 28)
    notes: Any = Notes(**{note_of("wiki:80"): HostDeletes(move=move).pack()})
    report = f"host: {move.report()}"
    assert list(history_in_words(crawl(tmp_path), notes, OLD)) == [
        f"left the search 2026-03-02T04:10:00.000Z: moved 2 times over 1.1 days, to {NEW}",
        report,
    ]
    assert list(history_in_words(crawl(tmp_path), notes, NEW)) == [
        f"was {OLD} until 2026-03-02T04:10:00.000Z (scrapy page {OLD} --versions)",
        report,
    ]
    assert list(history_in_words(crawl(tmp_path), notes, "http://other/")) == []
    move.to, move.others = "first:80", ["wiki:443"]
    notes = Notes(**{note_of("wiki:80"): HostDeletes(move=move).pack()})
    assert f"host: {move.report()}" in [*history_in_words(crawl(tmp_path), notes, NEW)]


def test_a_page_that_is_back_says_so(tmp_path: Path) -> None:
    back = crawl(tmp_path)
    back.stored = {OLD: "its page"}.get
    assert "is back: it was stored again since" in history_in_words(back, None, OLD)


def test_a_page_that_stays_is_told_with_the_reason(tmp_path: Path) -> None:
    page = Waiting(OLD, "login", "login: kept, however often", 1.7723e9, "")
    note = HostDeletes(undecided={url_key(OLD): page}).pack()
    notes: Any = Notes(**{note_of("wiki:80"): note})
    (tmp_path / "none").mkdir()
    parts: Any = SimpleNamespace(parts=[SimpleNamespace(path=tmp_path / "none")])
    assert list(history_in_words(parts, notes, OLD)) == [
        "different since 2026-02-28 (login), and stays: a login form never removes a page by itself"
    ]


def test_approvals_and_restless_pages_are_told(tmp_path: Path) -> None:
    """An approval is over once its page is back, or has left."""
    page, since = url_key(OLD), 1.8e9
    write_approved(tmp_path, {"wiki:80": {page: since}, "dead:80": {WHOLE_HOST: since}})
    restless = Volatile(restless={page[8:]: RESTLESS})
    waits = HostDeletes(undecided={page: Waiting(OLD, "locked", "locked", since, "")})
    notes: Any = Notes(
        **{
            "refresh wiki:80": HostKnowledge(volatile=restless).pack(),
            note_of("wiki:80"): waits.pack(),
        }
    )
    _, line, approved, _ = history_in_words(crawl(tmp_path), notes, OLD)  # it has moved, besides
    assert line.startswith("restless: it changed at its last visits, but without a word")
    assert approved.startswith("removal approved: the next refresh visits it")
    del notes.notes[note_of("wiki:80")]
    assert "approved" not in " ".join(history_in_words(crawl(tmp_path), notes, OLD))
    stored = crawl(tmp_path)
    assert list(history_in_words(stored, notes, "http://dead/a")) == []
    stored.stored = {"http://dead/a": "its page"}.get
    (line,) = history_in_words(stored, notes, "http://dead/a")
    assert line.startswith("removal approved with all pages of its host, if the host does not")


def test_a_page_that_left_is_told_with_what_was_seen_and_when_it_is_asked_for_again(
    tmp_path: Path,
) -> None:
    known = HostKnowledge(gone=[(1.7723e9, "http://wiki/x", 1)])
    notes: Any = Notes(**{"refresh wiki:80": known.pack()})
    assert list(history_in_words(crawl(tmp_path), notes, "http://wiki/x")) == [
        "left the search 2026-03-02T04:10:00.000Z: gone (HTTP 410)",
        "requested once more by the first refresh after 2026-03-30, because it may return",
    ]
