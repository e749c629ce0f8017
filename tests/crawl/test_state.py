"""The state of a directory."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from larmspider.crawl.state import RunState, State
from larmspider.workdir.manifest import SHARED

BEGAN, ENDED = "2026-01-31T12:00:00Z", "2026-01-31T13:00:00Z"


def crawl(path: Path, **more: Any) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "crawl.json").write_text(json.dumps({"format": 2, "began": BEGAN, **more}))
    (path / "lock").touch()
    return path


def test_one_crawl(tmp_path: Path) -> None:
    """Killed, running, ended: by who holds the lock, and by what crawl.json says."""
    path = crawl(tmp_path / "c")
    assert RunState.of(path).state is State.KILLED
    with (path / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert RunState.of(path).state is State.RUNNING
    crawl(path, end="finished", ended=ENDED)
    found = RunState.of(path)
    assert (found.state, found.reason, found.ended) == (State.ENDED, "finished", ENDED)
    assert found.sentence == f"Finished at {ENDED}."


def test_a_directory_that_may_not_be_read(tmp_path: Path) -> None:
    """It says which file, and is as good as none."""
    path = crawl(tmp_path / "c")
    user = os.geteuid()
    path.chmod(0)
    try:
        if user == 0:
            os.seteuid(65_534)
        found = RunState.of(path)
    finally:
        os.seteuid(user)
        path.chmod(0o700)
    assert found.state is State.NONE
    assert str(tmp_path) in found.sentence
    assert found.sentence.endswith("cannot be read: Permission denied.")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}', "\0"])
def test_a_description_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    """It is no crawl, and says why."""
    (tmp_path / "crawl.json").write_text(text)
    found = RunState.of(tmp_path)
    assert found.state is State.NONE
    assert "crawl.json" in found.sentence


def test_many_workers(tmp_path: Path) -> None:
    """Together they run while one does, and ended when all have."""
    root = crawl(tmp_path / "c", **{SHARED: True})
    assert RunState.of(root).state is State.KILLED
    first, second = crawl(root / "a-1"), crawl(root / "a-2", end="finished", ended=ENDED)
    found = RunState.of(root)
    assert found.state is State.KILLED
    assert "1 of 2 was killed" in found.sentence
    with (first / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert RunState.of(root).sentence.startswith("1 of 2 workers here runs; it began")
    os.utime(first / "crawl.json", (0, 0))
    found = RunState.of(root)
    assert found.state is State.ENDED, "the others have finished what the first one left"
    assert "1 more was killed before" in found.sentence
    crawl(second, end="shutdown", ended=ENDED)
    assert RunState.of(root).state is State.KILLED
    crawl(second, end="finished", ended=ENDED)
    crawl(first, end="shutdown", ended=BEGAN)
    found = RunState.of(root)
    assert (found.state, found.reason) == (State.ENDED, "finished")
    assert second.name == "a-2"
