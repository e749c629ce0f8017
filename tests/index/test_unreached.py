"""larmspider/index/unreached.py: which pages count as not reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.index.unreached import NAME, Unreached, UnreachedLog, carry_over

DAY = 86_400.0
OLD, NEW = "http://wiki.example/old", "http://wiki.example/new"


def marks(folder: Path, **visits: list[tuple[str, float]]) -> Unreached:
    log = UnreachedLog(folder)
    for name, outcomes in visits.items():
        for outcome, at in outcomes:
            log.missed(f"http://wiki.example/{name}", outcome, at)
    log.write()
    return Unreached.read(folder)


@pytest.mark.parametrize(
    ("visits", "since"),
    [
        ([("missing", 9.0)], 9.0),
        ([("robots", 9.0), ("moved", 99.0)], 9.0),
        ([("missing", 99.0), ("missing", 9.0)], 9.0),  # the clock was set back
        ([("http-503", 9.0)], None),
        ([("http-503", 9.0), ("timeout", 9.0 + DAY / 2)], None),
        ([("http-503", 9.0), ("timeout", 9.0 + DAY)], 9.0),
        ([("login", 9.0), ("missing", 99.0)], 9.0),
    ],
)
def test_a_failure_counts_once_it_lasts_and_a_missing_page_at_once(
    tmp_path: Path, visits: list[tuple[str, float]], since: float | None
) -> None:
    assert marks(tmp_path, old=visits).since(OLD) == since


def test_a_page_that_answers_has_no_mark(tmp_path: Path) -> None:
    marks(tmp_path, old=[("missing", 9.0)], new=[("missing", 9.0)])
    log = UnreachedLog(tmp_path)
    log.reached(OLD)
    log.write()
    assert Unreached.read(tmp_path) == Unreached({NEW: 9.0})


def test_all_pages_of_a_silent_host_count_and_none_of_another_port(tmp_path: Path) -> None:
    log = UnreachedLog(tmp_path)
    log.set_hosts({"http://wiki.example": 9.0})
    log.write()
    found = Unreached.read(tmp_path)
    assert found.since(OLD) == 9.0
    assert found.since(f"{OLD}#!/part.txt") == 9.0
    assert found.since("http://wiki.example:8080/old") is None
    assert found.since("http://wiki.example.org/old") is None


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    """The next writer takes the marks from the frontier."""
    marks(tmp_path, old=[("missing", 9.0)])
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-3])
    assert not Unreached.read(tmp_path)
    assert UnreachedLog(tmp_path).is_new


def test_marks_of_several_indexes_are_carried_over(tmp_path: Path) -> None:
    for name in ("a", "b", "to"):
        (tmp_path / name).mkdir()
    marks(tmp_path / "a", old=[("missing", 9.0)])
    marks(tmp_path / "b", new=[("missing", 5.0)])
    carry_over([tmp_path / "a", tmp_path / "b"], tmp_path / "to", lambda at, _: at == 1)
    assert Unreached.read(tmp_path / "to") == Unreached({NEW: 5.0})
