"""LARM_NOTIFY gets one message for each event that waits for an operator."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from larmspider.control.deletes import approved_in, write_approved
from larmspider.extensions import notify
from larmspider.extensions.notify import NotifyExtension
from larmspider.frontier.part import NotesMemory
from larmspider.frontier.storage.backend import Backend
from larmspider.learned.deletes.delete_gate import DeleteGate
from larmspider.learned.deletes.notes import (
    DELETES,
    LOGIN,
    MOVED,
    NO_ANSWER,
    SCOPE,
    UNDECIDED,
    HostDeletes,
    Notice,
    Waiting,
    note_of,
)
from larmspider.learned.deletes.table import Observation
from tests.support.frontier.memory_backend import MemoryBackend


def run(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *whats: str,
    seen: tuple[Observation, ...] = (),
    backend: Backend | None = None,
    killed: bool = False,
    hosts: tuple[str, ...] = ("h:80",),
    late: tuple[str, ...] = (),
    notices: Sequence[Notice] = (),
) -> dict[bytes, float]:
    """A run in which these things are found, ``late`` ones after the last checkpoint but one; what
    it makes due."""
    due: dict[bytes, float] = {}
    gate = DeleteGate(
        NotesMemory(backend or MemoryBackend()),
        lambda _, keys, at: due.update(dict.fromkeys(keys, at)),
    )
    scheduler: Any = SimpleNamespace(
        frontier=SimpleNamespace(gate=gate, hosts=dict.fromkeys(hosts)),
        directory=SimpleNamespace(path=folder),
        closed=False,
        opened=True,
        wake=lambda: None,
    )
    monkeypatch.setattr(notify, "scheduler_of", lambda _: scheduler)
    command = f"sh -c 'cat >> {folder}/told'"
    extension = NotifyExtension(None, command, folder)  # type: ignore[arg-type]

    async def crawl() -> None:
        extension.spider_opened()
        for _ in range(2):
            gate.notes.notices += notices
            gate.notes.notices += [Notice(what, "h:80", f"{what} of h:80") for what in whats]
            extension.look()
        for one in seen:
            gate.saw("h:80", b"k", one)
        if not killed:
            gate.notes.notices += [Notice(what, "h:80", f"{what} of h:80") for what in late]
            scheduler.closed = True
            extension.committed()
            gate.notes.kept.get = gate.notes.kept.of = closed  # type: ignore[method-assign]
            await extension.spider_closed()

    asyncio.run(crawl())
    return due


def closed(_host: str) -> Any:
    raise AssertionError("notes cannot be read once the scheduler has closed")


def told(folder: Path) -> list[str]:
    return sorted((folder / "told").read_text().splitlines())


def test_each_thing_is_told_once_over_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also in the log. Pages that wait are another matter once the list was empty."""
    for _ in range(3):
        run(tmp_path, monkeypatch, LOGIN, NO_ANSWER, seen=(Observation.LOGIN,))
    assert told(tmp_path) == ["dead of h:80", "login of h:80"] == sorted(caplog.messages)
    run(tmp_path, monkeypatch, DELETES)
    run(tmp_path, monkeypatch, DELETES)
    assert told(tmp_path).count("deletes of h:80") == 2


def test_a_move_that_the_end_of_a_run_finds_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights are looked at then, in the notes of all hosts."""
    run(tmp_path, monkeypatch, hosts=("h:80", "other:80"), late=(MOVED, SCOPE))
    assert told(tmp_path) == ["moved of h:80", "scope of h:80"]


def test_undecided_pages_of_an_expired_login_or_a_move_are_not_told_of_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = MemoryBackend()
    page = Waiting("http://h/a", "login", "kept", 1_000.5, "")
    backend.put_note(note_of("h:80"), HostDeletes(undecided={b"k" * 16: page}).pack())
    for seen, cause in (("login", LOGIN), ("moved", MOVED), ("locked", LOGIN)):
        notice = Notice(UNDECIDED, "h:80", f"{seen} for 7 days", seen)
        for earlier in (cause, ""):
            folder = tmp_path / f"{seen}-{earlier}"
            folder.mkdir()
            with monkeypatch.context() as context:
                whats = [earlier] if earlier else []
                run(folder, context, *whats, backend=backend, notices=[notice])
            is_told = f"{seen} for 7 days" in told(folder)
            assert is_told == (seen == "locked" or not earlier)


def test_workers_tell_together_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose host another one has now does not take it for over."""
    backend = MemoryBackend()
    page = Waiting("http://h/a", "missing", "3 times", 1_000.5, "20 pages left")
    backend.put_note(note_of("h:80"), HostDeletes(waiting={b"k" * 16: page}).pack())
    run(tmp_path, monkeypatch, DELETES, backend=backend)
    run(tmp_path, monkeypatch, hosts=("other:80",))
    run(tmp_path, monkeypatch, DELETES, backend=backend)
    assert told(tmp_path) == ["deletes of h:80"]
    (tmp_path / notify.TOLD).write_text("{dam")
    run(tmp_path, monkeypatch, DELETES, backend=backend)
    assert told(tmp_path) == ["deletes of h:80"] * 2


def test_what_was_over_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login, once the necessary number of pages were there, and no form."""
    run(tmp_path, monkeypatch, LOGIN, NO_ANSWER)
    run(tmp_path, monkeypatch, seen=(Observation.SAME,) * 4)
    run(tmp_path, monkeypatch, LOGIN, NO_ANSWER)
    assert told(tmp_path) == ["dead of h:80", "dead of h:80", "login of h:80"]
    run(tmp_path, monkeypatch, seen=(Observation.SAME,) * 9 + (Observation.LOGIN,))
    run(tmp_path, monkeypatch, LOGIN)
    run(tmp_path, monkeypatch, seen=(Observation.SAME,) * 5)
    run(tmp_path, monkeypatch, LOGIN)
    assert told(tmp_path).count("login of h:80") == 2
    for times in (3, 4):  # a 304 is an answer, too
        run(tmp_path, monkeypatch, NO_ANSWER)
        run(tmp_path, monkeypatch, seen=(Observation.NOT_MODIFIED,))
        assert told(tmp_path).count("dead of h:80") == times


def test_an_approval_lasts_until_its_page_has_left_or_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over runs that are killed; a page that came back, and is gone again, was never shown."""
    backend, key = MemoryBackend(), b"k" * 16

    def waits(since: float) -> None:
        page = Waiting("http://h/a", "missing", "3 times", since, "20 pages left")
        backend.put_note(note_of("h:80"), HostDeletes(waiting={key: page}).pack())

    waits(1_000.5)
    write_approved(tmp_path, {"h:80": {key: 1_000.5}})
    for killed in (True, True, False, False):
        assert run(tmp_path, monkeypatch, backend=backend, killed=killed) == {key: 1.0}
    waits(2_000.5)
    assert run(tmp_path, monkeypatch, backend=backend) == {}
    assert approved_in(tmp_path) == {}
