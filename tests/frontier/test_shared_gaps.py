"""Gaps at a host that several crawls keep together: by files, with the clock in the test's hand."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from larmspider.frontier.shared_gaps import HOSTS, SharedGaps, file_name

NOW = 1_000_000.0
HOST = "wiki.example:80"


def gaps(folder: Path, name: str, listed: str = HOST) -> SharedGaps:
    (folder / HOSTS).mkdir(exist_ok=True)
    (folder / name).write_text(listed + "\n")
    return SharedGaps(folder / name)


def test_the_larger_gap_counts_for_both(tmp_path: Path) -> None:
    one, other = gaps(tmp_path, "one"), gaps(tmp_path, "other")
    assert one.take(HOST, NOW, 2.0) == 0.0
    assert other.take(HOST, NOW + 1.0, 0.5) == NOW + 2.0
    assert other.take(HOST, NOW + 2.0, 0.5) == 0.0
    assert one.take(HOST, NOW + 2.6, 2.0) == NOW + 4.0
    assert one.take(HOST, NOW + 4.0, 2.0) == 0.0


def test_hosts_that_are_not_listed_are_not_shared(tmp_path: Path) -> None:
    one, other = gaps(tmp_path, "one"), gaps(tmp_path, "other", "*")
    assert one.take("hr.example:80", NOW, 9.0) == 0.0
    assert not (tmp_path / HOSTS / file_name("hr.example:80")).exists()
    assert other.take("hr.example:80", NOW, 9.0) == 0.0
    assert (tmp_path / HOSTS / file_name("hr.example:80")).exists()


def test_a_list_that_changes_is_read_again(tmp_path: Path) -> None:
    now = [0.0]
    (tmp_path / HOSTS).mkdir()
    one = SharedGaps(tmp_path / "one", lambda: now[0])
    assert one.take(HOST, NOW, 9.0) == 0.0
    (tmp_path / "one").write_text(HOST)
    assert one.take(HOST, NOW, 9.0) == 0.0
    assert list((tmp_path / HOSTS).iterdir()) == []
    now[0] = 6.0
    one.take(HOST, NOW, 9.0)
    assert len(list((tmp_path / HOSTS).iterdir())) == 1
    (tmp_path / "one").unlink()
    now[0] = 12.0
    assert one.take(HOST, NOW + 1, 9.0) == 0.0


def test_a_turn_that_is_not_used_is_given_back(tmp_path: Path) -> None:
    """But not the turn of another crawl that came in between."""
    one, other = gaps(tmp_path, "one"), gaps(tmp_path, "other")
    assert one.take(HOST, NOW, 2.0) == 0.0
    one.give_back()
    assert other.take(HOST, NOW + 0.1, 2.0) == 0.0
    one.give_back()
    assert one.take(HOST, NOW + 0.2, 2.0) == NOW + 2.1
    one.give_back()
    assert one.take(HOST, NOW + 0.3, 2.0) == NOW + 2.1


def test_clocks_damage_and_bad_files(tmp_path: Path) -> None:
    """A clock that was set back, or a file that is damaged, stops no crawl."""
    one = gaps(tmp_path, "one", "*")
    assert one.take(HOST, NOW + 1e6, 2.0) == 0.0
    assert one.take(HOST, NOW, 2.0) == NOW + 2.0
    assert one.take(HOST, NOW + 2.0, 2.0) == NOW + 4.0
    (tmp_path / HOSTS / file_name(HOST)).write_bytes(b"x")
    assert one.take(HOST, NOW, 2.0) == 0.0
    (tmp_path / HOSTS / file_name(HOST)).unlink()
    (tmp_path / HOSTS / file_name(HOST)).mkdir()
    assert one.take(HOST, NOW, 2.0) == 0.0
    one.give_back()


def test_names_of_files() -> None:
    assert file_name("wiki.example:80") == "wiki.example:80"
    assert "/" not in file_name("../a:80")
    assert len(file_name("ü" * 250)) < 120
    assert file_name("a" * 300) != file_name("a" * 301)


def _takes(folder: Path, name: str, results: object) -> None:
    one = SharedGaps(folder / name)
    taken = sum(one.take(HOST, NOW, 1.0) == 0.0 for _ in range(200))
    results.put(taken)  # type: ignore[attr-defined]


@pytest.mark.acceptance
def test_one_of_many_processes_has_the_turn(tmp_path: Path) -> None:
    names = [f"crawl{n}" for n in range(6)]
    for name in names:
        gaps(tmp_path, name)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_takes, args=(tmp_path, name, results)) for name in names]
    for one in processes:
        one.start()
    assert sum(results.get(timeout=60) for _ in processes) == 1
    for one in processes:
        one.join()
