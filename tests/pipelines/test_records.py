"""larmspider/pipelines/records.py"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.pipelines.records import RecordLog, clean, read_records

NASTY = ["\t", "\r", "\n", "\r\n", "\0", "\v", "\f", "\x1b[2J", "\x85", "\u2028", "\u2029", "\x7f"]


@pytest.mark.parametrize("char", NASTY)
def test_what_breaks_a_record_becomes_spaces(char: str) -> None:
    """A field stays on its line and in its column."""
    cleaned = clean(f"a{char}b")
    assert cleaned.startswith("a ")
    assert cleaned.splitlines() == [cleaned]
    assert "\t" not in cleaned


def test_ordinary_text_is_kept() -> None:
    """Letters of any script, no-break spaces and emoji are nothing to clean."""
    for text in ("Übergröße", "Привет", "日本", "a\u00a0b", "🕷️", "a b"):
        assert clean(text) == text


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=20))
def test_fields_out_are_fields_in(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    """Whatever the text, as many records and fields are read as were written."""
    path = tmp_path_factory.mktemp("log") / "test.log"
    log = RecordLog(path, ("a", "b", "c"))
    assert log.extend(rows) == len(rows)
    log.close()
    assert path.read_bytes().count(b"\n") == len(rows)
    assert [len(fields) for fields in read_records(path, 3)] == [3] * len(rows)


def test_naughty_strings_keep_their_fields(suites: Path, tmp_path: Path) -> None:
    """All 515 of them, as one field among others."""
    strings = json.loads((suites / "naughty-strings" / "blns.json").read_text("utf-8"))
    strings = strings if isinstance(strings, list) else strings["strings"]
    log = RecordLog(tmp_path / "test.log", ("n", "text", "end"))
    log.extend((str(n), text, "end") for n, text in enumerate(strings))
    log.close()
    read = list(read_records(tmp_path / "test.log", 3))
    assert [fields[0] for fields in read] == [str(n) for n in range(len(strings))]
    assert {fields[2] for fields in read} == {"end"}


@pytest.mark.parametrize("beside", ["", "ü", "\ufffd\u200b"])
def test_each_char_that_breaks_a_record_is_seen(tmp_path: Path, beside: str) -> None:
    """Controls of ASCII and beyond, and Unicode's separators, one at a time among many records."""
    chars = [chr(code) for code in (*range(32), *range(127, 160), 0x2028, 0x2029)]
    log = RecordLog(tmp_path / "test.log", ("a", "b"))
    for char in chars:
        log.extend([("a", beside), ("a", f"b{char}c")])
    log.close()
    written = (tmp_path / "test.log").read_text("utf-8")
    assert written == f"a\t{beside}\na\tb c\n" * len(chars)


def test_surrogates_are_written_as_question_marks(tmp_path: Path) -> None:
    """Half of a pair has no UTF-8."""
    log = RecordLog(tmp_path / "test.log", ("a",))
    log.append("x\ud800y")
    log.close()
    assert (tmp_path / "test.log").read_bytes() == b"x?y\n"


def test_refuses_a_record_of_another_width(tmp_path: Path) -> None:
    """A wrong number of fields is an error of ours, and nothing is written."""
    log = RecordLog(tmp_path / "test.log", ("a", "b"))
    with pytest.raises(ValueError, match="2 columns, the record 1"):
        log.extend([("a", "b"), ("a",)])
    log.close()
    assert (tmp_path / "test.log").read_bytes() == b""


def test_a_line_still_being_written_is_not_read(tmp_path: Path) -> None:
    """A last line without its end is left out."""
    (tmp_path / "test.log").write_bytes(b"a\tb\nc\t")
    assert list(read_records(tmp_path / "test.log", 2)) == [["a", "b"]]
