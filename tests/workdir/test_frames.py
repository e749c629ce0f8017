"""larmspider/workdir/frames.py: compressed files, read and cut by the offsets inside."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from larmspider.errors import CommittedGoneError, CrawlDirError
from larmspider.pipelines.records import FramedFile, open_appending, read_records
from larmspider.workdir import frames
from larmspider.workdir.frames import (
    FRAME_BYTES,
    Frames,
    compressed_name,
    cut_stored,
    open_stored,
    present,
    stored_size,
)

TEXT = b"".join(b"http://wiki/%d\ta page\n" % number for number in range(40_000))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "links.log"


def write(path: Path, *pieces: bytes) -> list[int]:
    """Append each piece and flush; the ends."""
    file = open_appending(path, compressed=True)
    ends = []
    for piece in pieces:
        file.write(piece)
        ends.append(file.flush())
    file.close()
    return ends


def content(path: Path) -> bytes:
    with open_stored(path) as file:
        return file.read()


def test_what_is_written_is_read_at_any_offset(path: Path) -> None:
    """Across frames, in lines and in pieces, from a file that grows meanwhile."""
    assert len(TEXT) > 5 * FRAME_BYTES
    assert write(path, TEXT[:100], TEXT[100:]) == [100, len(TEXT)]
    assert compressed_name(path).stat().st_size < len(TEXT) / 4
    random = Random(7)
    with open_stored(path) as file:
        assert file.read() == TEXT
        for _ in range(200):
            start, size = random.randrange(len(TEXT)), random.choice((1, 50, FRAME_BYTES + 9))
            file.seek(start)
            assert file.tell() == start
            assert file.read(size) == TEXT[start : start + size]
            line = file.seek(TEXT.rindex(b"\n", 0, start + 1) + 1 if b"\n" in TEXT[:start] else 0)
            assert file.readline() == TEXT[line : TEXT.index(b"\n", line) + 1]
        assert file.seek(0, os.SEEK_END) == stored_size(path) == len(TEXT)
        assert file.read() == b""
        write(path, b"more\n")
        assert file.read() == b"more\n"
    assert list(read_records(path, 2, len(TEXT)))[:1] == []
    start = TEXT.index(b"http://wiki/39998")
    assert list(read_records(path, 2, start))[1] == ["http://wiki/39999", "a page"]


@pytest.mark.skipif(
    shutil.which("zstdcat") is None, reason="zstd is not installed (Debian package zstd)"
)
def test_zstdcat_prints_it(path: Path) -> None:
    write(path, TEXT[:9], TEXT[9:])
    ran = subprocess.run(["zstdcat", compressed_name(path)], capture_output=True, check=True)
    assert ran.stdout == TEXT


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_it_is_cut_where_a_flush_ended(path: Path, kept: int) -> None:
    """And goes on there; what another process knew of the frames behind is forgotten."""
    ends = [0, *write(path, TEXT[:200_000], b"b" * 10, b"c" * 400_000)]
    other = Frames(compressed_name(path))
    assert other.size == ends[-1]
    cut_stored(path, ends[kept])
    assert stored_size(path) == ends[kept]
    before = content(path)
    assert before == (TEXT[:200_000] + b"b" * 10 + b"c" * 400_000)[: ends[kept]]
    write(path, b"d" * 500_000)
    assert content(path) == before + b"d" * 500_000
    assert other.size == ends[kept] + 500_000


def test_a_file_that_another_process_cut_is_read_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that knew the frames behind the cut finds those that stand there now."""
    (end, _) = write(path, b"kept", TEXT[:300_000])
    assert content(path) == b"kept" + TEXT[:300_000]
    known = frames.frames_of(compressed_name(path))
    cut_stored(path, end)
    pieces = [b"%06d" % n * 2_000 for n in range(100)]
    write(path, *pieces)
    monkeypatch.setitem(frames._frames, compressed_name(path), known)
    assert content(path) == b"kept" + b"".join(pieces)


def test_a_position_that_is_not_there_is_an_error(path: Path) -> None:
    """Behind the end, or inside a frame: the file is another one."""
    write(path, b"a" * 100)
    with pytest.raises(CommittedGoneError, match="has 100 bytes, 101 were committed"):
        cut_stored(path, 101)
    with pytest.raises(CrawlDirError, match="no frame ends at 99"):
        cut_stored(path, 99)


@pytest.mark.parametrize("torn", [1, 5, 19, 20, 25, -1])
def test_a_torn_end_does_not_count(path: Path, torn: int) -> None:
    """As after a crash: readers stop before it, and the next writer drops it."""
    write(path, b"whole")
    packed = compressed_name(path)
    end = packed.stat().st_size
    write(path, b"torn off")
    os.truncate(packed, end + torn if torn > 0 else packed.stat().st_size + torn)
    assert content(path) == b"whole"
    write(path, b" again")
    assert content(path) == b"whole again"


def test_a_damaged_frame_is_named(path: Path) -> None:
    write(path, TEXT[:1000])
    packed = compressed_name(path)
    data = bytearray(packed.read_bytes())
    data[16] ^= 1  # its checksum
    packed.write_bytes(data)
    with pytest.raises(CrawlDirError, match=r"links\.log\.zst: damaged at byte 0"):
        content(path)


def test_a_file_keeps_the_form_that_it_began_with(path: Path) -> None:
    """Whatever the setting says later; one that is empty has none yet."""
    path.touch()
    write(path, b"a\n")
    assert present(path) == compressed_name(path)
    file = open_appending(path, compressed=False)
    assert isinstance(file, FramedFile)
    file.write(b"b\n")
    file.close()
    assert content(path) == b"a\nb\n"
    plain = path.with_name("plain.log")
    plain.write_bytes(b"a\n")
    write(plain, b"b\n")
    assert plain.read_bytes() == content(plain) == b"a\nb\n"
    assert stored_size(plain) == 4


def test_a_full_disk_is_told_each_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by AppendFile: nothing behind the failure counts."""
    compressed_name(path).symlink_to("/dev/full")
    monkeypatch.setattr(Frames, "end_of", lambda *_: 0)
    monkeypatch.setattr("os.truncate", lambda *_: None)
    file = FramedFile(compressed_name(path))
    file.write(b"a")
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            file.flush()
    file.close()


def broken(path: Path, number: int, at: int) -> int:
    """Change the byte ``at`` of frame ``number`` and its header; returns the frame's offset."""
    packed = compressed_name(path)
    data = bytearray(packed.read_bytes())
    places = [match.start() for match in re.finditer(re.escape(frames._START), data)]
    data[places[number] + at] ^= 0x55
    packed.write_bytes(data)
    frames.forget(packed)
    return places[number]


@pytest.fixture
def met() -> Iterator[dict[tuple[Path, int], str]]:
    """Damages that are met."""
    frames.damages.clear()
    yield frames.damages
    frames.damages.clear()


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("at", [0, 5, 9, 12])
def test_a_damaged_header_is_made_up_for(
    path: Path, met: dict[tuple[Path, int], str], number: int, at: int
) -> None:
    """Its magic number or sizes: all is read, and it is said."""
    write(path, TEXT[:300_000], TEXT[300_000:])
    place = broken(path, number, at)
    assert content(path) == TEXT
    assert met == {(compressed_name(path), place): "the header of a frame, which is made up for"}


@pytest.mark.parametrize("header", [False, True])
def test_what_is_behind_a_damaged_frame_is_read(
    path: Path, met: dict[tuple[Path, int], str], header: bool
) -> None:
    """By those who ask for that, at its offset, whether the header is damaged, too; a record that
    is damaged is none."""
    write(path, TEXT)
    place = broken(path, 1, 4000)
    if header:
        broken(path, 1, 9)
    with pytest.raises(CrawlDirError, match=f"damaged at byte {place:,}: "):
        content(path)
    with open_stored(path, skip=True) as file:
        read = file.read()
    assert read[:FRAME_BYTES] == TEXT[:FRAME_BYTES]
    assert read[2 * FRAME_BYTES :] == TEXT[2 * FRAME_BYTES :]
    whole = {line for line in TEXT.split(b"\n") if line}
    records = [line for line in read.split(b"\n") if line and line.count(b"\t") == 1]
    assert whole.issuperset(records)
    assert len(records) > 20_000
    assert "are lost, and passed over" in met[compressed_name(path), place]
