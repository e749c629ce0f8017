"""The spool keeps what it was given, in order, from any position to any other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from larmspider.errors import CommittedGoneError, CrawlDirError
from larmspider.pipelines.outbox.spool import (
    FOLDER,
    Cursor,
    Position,
    Spool,
    first_page_file,
    read_entries,
    segments,
    standings,
    write_committed,
)
from larmspider.pipelines.page_files import sync_files
from larmspider.pipelines.records import AppendFile
from tests.support.spooled import entries, page, removed, spooled


def test_an_entry_is_as_it_was_given(tmp_path: Path) -> None:
    """Links once each, odd characters replaced, no user and password, a removal with its reason."""
    one = page("a", b"\x00\xff", text="lone \ud800", fields={"room": ["1"]})
    one.url = "http://me:secret@h/a"
    one.links *= 2
    first, second = entries(tmp_path, one, removed("b"))
    assert (first.url, first.removed, first.body) == ("http://h/a", None, b"\x00\xff")
    assert (first.page["text"], first.page["fields"]) == ("lone ?", {"room": ["1"]})
    assert [(link.url, link.normalized) for link in first.links] == [
        ("http://h/next", "http://h/next"),
        ("http://h/N", "http://h/n"),
    ]
    assert (second.url, second.removed, second.body) == ("http://h/b", "gone", b"")


def test_stamps_grow_although_the_clock_is_set_back(tmp_path: Path) -> None:
    stamps = [entries(tmp_path, page("a"), now=now)[0].stamp for now in (1000.0, 500.0, 1000.5)]
    assert stamps == [1_000_000_000, 1_000_000_001, 1_000_500_000]


def test_a_body_is_read_from_the_page_files(tmp_path: Path) -> None:
    """It is not written twice; one that is cut short is an error that names the file."""
    one = page("a", b"body")
    one.stored_at = (3, 2)
    (tmp_path / "pagefile_3.pfl").write_bytes(b"--body--")
    (entry,) = entries(tmp_path, one)
    assert "body" not in entry.page
    assert entry.body == b"body"
    assert first_page_file(tmp_path, Position(entry.end)) == 3
    (tmp_path / "pagefile_3.pfl").write_bytes(b"--bo")
    (entry,) = read_entries(tmp_path / FOLDER, 0, entry.end)
    with pytest.raises(CrawlDirError, match=r"pagefile_3\.pfl: bytes are missing"):
        entry.body  # noqa: B018


def test_recovery_drops_what_was_not_committed(tmp_path: Path) -> None:
    """Whole segments, too; entries go on from there."""
    spool = Spool(tmp_path / FOLDER, segment_bytes=700)
    spool.open()
    ends = []
    for number in range(6):
        spool.append(page(str(number)), 1000.0, body=True)
        ends.append(spool.end)
    spool.close()
    assert len(segments(spool.directory)) > 2
    again = Spool(spool.directory, segment_bytes=700)
    again.recover(ends[2])
    again.open()
    again.append(page("new"), 1000.0, body=True)
    end = again.flush()
    again.close()
    found = list(read_entries(spool.directory, 0, end.offset))
    assert [entry.url[9:] for entry in found] == ["0", "1", "2", "new"]
    assert (end.number, len({entry.stamp for entry in found})) == (4, 4)


def test_a_segment_that_fills_up_while_it_is_synced_is_synced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path / FOLDER, segment_bytes=700)
    spool.open()
    spool.append(page("0"), 1000.0, body=True)
    spool.flush()

    def slow(files: Iterable[AppendFile]) -> None:
        sync_files(files)
        for number in range(1, 6):
            spool.append(page(str(number)), 1000.0, body=True)

    with monkeypatch.context() as patched:
        patched.setattr("larmspider.pipelines.outbox.spool.sync_files", slow)
        asyncio.run(spool.sync())
    spool.flush()
    synced: dict[int, int] = {}
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.update({os.fstat(fd).st_ino: os.fstat(fd).st_size})
    )
    asyncio.run(spool.sync())
    files = [path.stat() for path in segments(spool.directory).values()]
    assert len(files) > 1
    assert [synced.get(file.st_ino) for file in files] == [file.st_size for file in files]
    spool.close()


def test_segments_go_when_all_have_them(tmp_path: Path) -> None:
    """The last one stays; reading begins where a receiver is."""
    spool = Spool(tmp_path / FOLDER, segment_bytes=700)
    spool.open()
    for number in range(6):
        spool.append(page(str(number)), 1000.0, body=True)
    end = spool.flush().offset
    starts = list(segments(spool.directory))
    spool.forget(starts[2] + 1)
    assert list(segments(spool.directory)) == starts[2:]
    spool.forget(end)
    assert list(segments(spool.directory)) == starts[-1:]
    spool.close()
    with pytest.raises(CrawlDirError, match="byte 0 is gone"):
        list(read_entries(spool.directory, 0, end))


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_what_was_committed_and_is_gone_is_an_error(tmp_path: Path, damage: str) -> None:
    end = spooled(tmp_path, page("a"))
    (file,) = segments(tmp_path / FOLDER).values()
    file.unlink() if damage == "gone" else file.write_bytes(b"x")
    with pytest.raises(CommittedGoneError, match="outbox"):
        Spool(tmp_path / FOLDER).recover(end)


def test_a_damaged_spool_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    end = spooled(tmp_path, page("a"), page("b"))
    (file,) = segments(tmp_path / FOLDER).values()
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CrawlDirError, match=r"000\.spool: damaged before byte"):
        list(read_entries(tmp_path / FOLDER, 0, end.offset))


def test_standings_of_workers_are_added_up(tmp_path: Path) -> None:
    """What waits is what was committed and not taken; a file that cannot be read counts nothing."""
    for name, cursor in (("w1", Cursor(number=3, sent=3)), ("w2", Cursor(5, 4, 2, 2, "full"))):
        (tmp_path / name / FOLDER).mkdir(parents=True)
        write_committed(tmp_path / name / FOLDER, Position(100, 10))
        cursor.write(tmp_path / name / FOLDER, "SqlReceiver")
    (tmp_path / "w2" / FOLDER / "OtherReceiver.json").write_text("{")
    found = standings([tmp_path / "w1", tmp_path / "w2", tmp_path / "none"])
    assert found == {"SqlReceiver": (13, 5, 2, "full")}
