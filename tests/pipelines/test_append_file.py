"""larmspider/pipelines/records.py"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from larmspider.pipelines.records import BUFFER_BYTES, AppendFile

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
