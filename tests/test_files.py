"""larmspider/files.py: what a write that is refused is called."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from larmspider.crawl.log_index.update import Update
from larmspider.errors import CrawlDirError
from larmspider.files import in_words, replace_file, why_unwritable
from larmspider.frontier.storage.backend import BackendError
from larmspider.frontier.storage.lmdb_env import LmdbFiles, WriteBatch
from larmspider.index.anchors import AnchorTable
from larmspider.index.version import create_index
from larmspider.workdir.directory import write_manifest


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.EDQUOT, "Disk quota exceeded"), (errno.EFBIG, "File too large: RLIMIT_FSIZE is")],
)
@pytest.mark.parametrize("text", ["mdb_txn_commit: Input/output error", "disk I/O error"])
def test_a_write_that_is_cut_short_has_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str, text: str
) -> None:
    """A quota stands for itself: the write of a probe is refused as it would be."""

    def refuse(file: int, data: bytes, offset: int) -> int:
        raise OSError(number, os.strerror(number))

    assert in_words(Exception(text), tmp_path) == text
    monkeypatch.setattr(os, "pwrite", refuse)
    assert in_words(Exception(text), tmp_path).startswith(said)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may have more than 100 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_a_file_that_a_limit_cuts_is_called_too_large(tmp_path: Path) -> None:
    """By SQLite, LMDB and whole files alike; the file is named, and no signal ends the process."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE a (b)")
        database.execute("INSERT INTO a VALUES (zeroblob(99999))")
        with pytest.raises(sqlite3.OperationalError) as met:
            database.commit()
    assert in_words(met.value, tmp_path).startswith("File too large: RLIMIT_FSIZE is 100,000")
    with pytest.raises(OSError, match=r"File too large: '.*whole'"):
        replace_file(tmp_path / "whole", bytes(200_000))
    files = LmdbFiles(tmp_path / "frontier")
    rows = {b"%d" % number: bytes(400) for number in range(2_000)}
    with pytest.raises(BackendError, match="File too large"):
        files.write(WriteBatch(meta=rows))
    files.close()


@pytest.mark.parametrize(
    ("open_it", "limit"),
    [
        (AnchorTable, 200),
        (lambda path: create_index(path, "english"), 200),
        (LmdbFiles, 200),
        (LmdbFiles, 9_000),  # the file is made, and holds no table
        (lambda path: write_manifest(path, {"seeds": ["x" * 300]}), 200),
    ],
)
def test_a_directory_without_room_asks_for_room_and_no_repair(
    tmp_path: Path, open_it: Callable[[Path], object], limit: int
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises((CrawlDirError, BackendError)) as met:
            open_it(tmp_path / "index")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "File too large" in str(met.value)
    assert "; raise the limit (ulimit -f), and run the same command again" in str(met.value)
    assert "verify" not in str(met.value)


def test_the_index_of_the_logs_that_a_limit_cuts_says_so(tmp_path: Path) -> None:
    lines = "".join(f"http://h/{n}\thttp://h/t{n}\thttp://h/t{n}\t0\t\n" for n in range(9_000))
    (tmp_path / "links.log").write_text(lines)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(CrawlDirError, match=r"index of the logs in .*: File too large"):
            Update(tmp_path, {"links.log": len(lines)}, "b").run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_trial_of_a_folder_is_not_seen_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that starts beside another one refuses a folder with files of strangers."""
    (tmp_path / "data").write_bytes(b"x" * 100)
    seen = list[str]()
    monkeypatch.setattr("os.fsync", lambda _: seen.extend(os.listdir(tmp_path)))  # noqa: PTH208
    assert why_unwritable(tmp_path) is None
    assert seen == ["data"]
