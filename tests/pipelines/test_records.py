"""larmspider/pipelines/records.py"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larmspider.errors import CrawlDirError
from larmspider.items import Page
from larmspider.pipelines.records import (
    BUFFER_BYTES,
    AppendFile,
    LogStore,
    RecordLog,
    clean,
    read_records,
)

VISIBLE = (
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    + ("".join(map(chr, range(0x13430, 0x13440))))
)
"""Format characters that show something: signs of Arabic, Syriac and Kaithi, and hieroglyphs."""
NASTY = ["\t", "\r", "\n", "\r\n", "\0", "\v", "\f", "\x1b[2J", "\x85", "\u2028", "\u2029", "\x7f"]


@pytest.mark.parametrize("char", NASTY)
def test_what_breaks_a_record_becomes_spaces(char: str) -> None:
    """A field stays on its line and in its column."""
    cleaned = clean(f"a{char}b")
    assert cleaned.startswith("a ")
    assert cleaned.splitlines() == [cleaned]
    assert "\t" not in cleaned


INVISIBLES = [
    chr(code) for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) == "Cf" and chr(code) not in VISIBLE
]  # fmt: skip


def test_what_shows_nothing_is_escaped(tmp_path: Path) -> None:
    """Each format character that turns text, or hides in it; the file is ASCII then, and has its
    fields."""
    assert {"\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u061c"} <= {*INVISIBLES}
    log = RecordLog(tmp_path / "test.log", ("a", "b"))
    for char in INVISIBLES:
        log.append("x", f"a{char}b")
    log.close()
    written = (tmp_path / "test.log").read_text("ascii").splitlines()
    assert written == [f"x\ta{char.encode('unicode_escape').decode()}b".replace("\\xad", "\\u00ad")
                       for char in INVISIBLES]  # fmt: skip
    assert clean("\u202eexe.\u0440\t\u202c") == "\\u202eexe.\u0440 \\u202c"


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


@pytest.mark.parametrize("beside", ["", "ü", "\ufffd\u2010"])
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


# larmspider/pipelines/records.py


LIMIT = 100_000


@pytest.fixture
def file(tmp_path: Path) -> Iterator[AppendFile]:
    """A file that may have 100,000 bytes and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = AppendFile(tmp_path / "file")
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, hard))
    yield file
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.close()


def test_the_end_counts_what_is_buffered(file: AppendFile) -> None:
    """flush() gives the length, also when the file is closed."""
    file.write(b"x" * 10)
    assert file.end == file.flush() == 10
    file.close()
    assert file.flush() == file.path.stat().st_size == 10


def test_a_failed_close_is_not_forgotten(file: AppendFile) -> None:
    """close() does not raise, and flush() does not name bytes that were thrown away."""
    file.write(b"x" * (LIMIT + 1))
    file.close()
    for _ in range(2):
        with pytest.raises(OSError, match=f"File too large: '{file.path}'"):
            file.flush()


def test_after_a_failed_write_there_is_no_position(file: AppendFile) -> None:
    """Not even when there is room again: what was lost is not known."""
    with pytest.raises(OSError, match="File too large"):
        file.write(b"x" * (2 * BUFFER_BYTES + LIMIT))  # more than is buffered
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for use in (lambda: file.write(b"y"), file.flush):
        with pytest.raises(OSError, match="File too large"):
            use()


def test_a_file_that_is_closed_while_a_checkpoint_syncs_it_stays_open_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = AppendFile(tmp_path / "log")
    file.write(b"line")
    entered, may_end, fsync = threading.Event(), threading.Event(), os.fsync

    def slow(fd: int) -> None:
        entered.set()
        may_end.wait(10)
        fsync(fd)

    with ThreadPoolExecutor() as threads:
        file.flush()
        monkeypatch.setattr(os, "fsync", slow)
        synced = threads.submit(file.sync)
        assert entered.wait(10)
        monkeypatch.setattr(os, "fsync", fsync)
        closed = threads.submit(file.close)
        with suppress(TimeoutError):
            closed.result(0.2)
        may_end.set()
        synced.result(10)
        closed.result(10)
    assert file.flush() == 4


# larmspider/pipelines/records.py: what a store that is one log does between start and end.


class TitleLog(LogStore):
    file_name = "titles.log"
    columns = ("url", "title")

    def write(self, page: Page) -> None:
        self.log.append(page.url, page.title)


@pytest.fixture
def store(tmp_path: Path) -> TitleLog:
    return TitleLog(tmp_path / "crawl")


def test_it_goes_back_to_what_a_checkpoint_named(store: TitleLog) -> None:
    """And goes on from there."""
    store.open_spider()
    store.write(Page("http://h/1", title="one"))
    position = store.flush()
    store.write(Page("http://h/2", title="two"))
    store.close_spider()
    store.recover(position)
    store.open_spider()
    store.write(Page("http://h/3", title="three"))
    assert store.flush() > position
    assert (store.directory / "titles.log").read_text() == "http://h/1\tone\nhttp://h/3\tthree\n"
    store.close_spider()


def test_the_position_holds_for_what_was_written_and_after_the_end(store: TitleLog) -> None:
    """The last checkpoint comes after close_spider()."""
    store.open_spider()
    store.write(Page("http://h/1", title="one"))
    store.close_spider()
    assert store.flush() == b"15"


def test_a_store_that_was_never_opened_has_nothing_to_say(store: TitleLog) -> None:
    """A crawl that fails at its start ends them all the same."""
    assert store.flush() == b""
    asyncio.run(store.commit())
    store.close_spider()
    assert not store.directory.exists()


def test_a_file_shorter_than_its_position_is_refused(store: TitleLog) -> None:
    """What was committed is not there."""
    with pytest.raises(CrawlDirError, match="has 0 bytes, 15 were committed"):
        store.recover(b"15")
