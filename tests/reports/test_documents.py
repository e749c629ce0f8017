"""The end of a log is read backwards, a piece at a time, and no further than it may."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.reports import documents as log_tail
from larmspider.reports.documents import last_lines, last_records


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    "text, lines",
    [
        ("", []),
        ("half", []),
        ("\n", [""]),
        ("one\n", ["one"]),
        ("one\ntwo\nthree\n", ["three", "two", "one"]),
        ("one\n\nthree\nhalf", ["three", "", "one"]),
    ],
)
def test_lines_from_the_last_to_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, lines: list[str], piece: int
) -> None:
    """All of a short log, whatever the pieces; one that has no end is left out."""
    monkeypatch.setattr(log_tail, "_PIECE", piece)
    (tmp_path / "log").write_text(text)
    assert [line.decode() for line in last_lines(tmp_path / "log", 1000)] == lines


@pytest.mark.parametrize("piece", [4, 1000])
def test_no_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """A line that is cut by it is left out."""
    monkeypatch.setattr(log_tail, "_PIECE", piece)
    (tmp_path / "log").write_text("one\ntwo\nthree\nfour\n")
    assert list(last_lines(tmp_path / "log", 8)) == [b"four"]
    assert list(last_lines(tmp_path / "none", 8)) == []


def test_records_are_those_with_all_fields_and_the_needle(tmp_path: Path) -> None:
    """The others are passed over."""
    (tmp_path / "log").write_text("a\t1\nb\t2\nb\t3\t4\na\t5\n")
    assert list(last_records(tmp_path / "log", 2)) == [["a", "5"], ["b", "2"], ["a", "1"]]
    assert list(last_records(tmp_path / "log", 2, needle=b"b")) == [["b", "2"]]
