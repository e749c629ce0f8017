"""sealed.json: small files as the last run left them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from larmspider.checksums import SEAL
from larmspider.control.repair import repair
from larmspider.crawl.verify.findings import Findings
from larmspider.crawl.verify.others import check_left
from larmspider.workdir.directory import write_manifest
from larmspider.workdir.frames import open_stored, packed_frames
from larmspider.workdir.left import KEPT_BYTES, changing, leave, read_left
from larmspider.workdir.removals import Removals, Rule

MANIFEST = {"format": 2, "began": "2026-01-01T00:00:00Z", "seeds": ["http://h/"]}


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    path = tmp_path / "crawl"
    for name in ("outbox", "sums", "warc"):
        (path / name).mkdir(parents=True)
    write_manifest(path, MANIFEST)
    (path / "removed.txt").write_text("host old.example\n")
    (path / "totals.json").write_text('{"runs": 1}')
    (path / "control.log").write_text("one\n")
    (path / "outbox" / "SqlReceiver.json").write_text('{"offset": 7}')
    (path / "sums" / "links.log").write_text("0 4 00000000 00000000\n")
    (path / "synonyms.txt").write_text("car, auto\n")
    (path / "pagefile_0.pfl.zst").write_bytes(b"".join(packed_frames(b"body" * 9, 1)[0]))
    leave(path)
    return path


def changed(path: Path) -> dict[str, str]:
    left = read_left(path)
    assert left is not None
    return {one.name: one.what for one in left.changed()}


def found_in(path: Path) -> Findings:
    found = Findings(path)
    check_left(found, MANIFEST)
    return found


SMALL = ("removed.txt", "totals.json", "outbox/SqlReceiver.json", "sums/links.log")


@pytest.mark.parametrize("name", [*SMALL, "pagefile_0.pfl.zst"])
def test_a_file_that_is_not_as_it_was_left_is_named(crawl: Path, name: str) -> None:
    file = crawl / name
    whole = file.read_bytes()
    other = b"".join(packed_frames(b"another" * 9, 1)[0])
    for content in (whole[:-1], bytes([whole[0] ^ 1, *whole[1:]]), other, None):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        assert list(changed(crawl)) == [name]
    assert [one.file for one in found_in(crawl).damages] == [file]


def test_small_files_are_written_again_and_a_changed_list_stays(crawl: Path) -> None:
    for name in SMALL:
        (crawl / name).write_text("changed")
    (crawl / "sums" / "links.log").unlink()
    found = found_in(crawl)
    assert list(repair(found, {}, lambda *_: None, make_due=len)) == []  # type: ignore[arg-type]
    assert (crawl / "removed.txt").read_text() == "host old.example\n"
    assert (crawl / "removed.txt.changed").read_text() == "changed"
    assert json.loads((crawl / "outbox" / "SqlReceiver.json").read_bytes()) == {"offset": 7}
    assert found_in(crawl).damages == []


def test_commands_change_files_and_logs_grow(crawl: Path) -> None:
    removals = Removals.read(crawl)
    Removals(removals.path, [*removals.rules, Rule("host", "new.example")]).write()
    with (crawl / "control.log").open("a") as log:
        log.write("two\n")
    assert changed(crawl) == {}
    with changing(crawl, "outbox/*"):
        (crawl / "outbox" / "SqlReceiver.json").write_text('{"offset": 8}')
        assert changed(crawl) == {}, "a command that is killed leaves no damage"
    assert changed(crawl) == {}
    (crawl / "outbox" / "SqlReceiver.json").write_text('{"offset": 7}')
    assert list(changed(crawl)) == ["outbox/SqlReceiver.json"]


def test_operators_change_their_files_at_any_time(crawl: Path) -> None:
    (crawl / "synonyms.txt").unlink()
    found = found_in(crawl)
    assert (found.damages, len(found.notes)) == ([], 1)


@pytest.mark.parametrize("damage", ["a bit", "cut", "of another crawl"])
def test_a_damaged_record_of_the_last_run_is_named_alone(crawl: Path, damage: str) -> None:
    file = crawl / SEAL
    data = bytearray(file.read_bytes())
    if damage == "of another crawl":
        write_manifest(crawl, MANIFEST | {"began": "2026-01-02T00:00:00Z"})
        leave(crawl)
        write_manifest(crawl, MANIFEST)
    else:
        data[len(data) // 2] ^= 1
        file.write_bytes(data if damage == "a bit" else data[: len(data) // 2])
    (crawl / "totals.json").write_text('{"runs": 2}')
    found = found_in(crawl)
    assert [one.file for one in found.damages] == [file]
    list(repair(found, {}, lambda *_: None, make_due=len))  # type: ignore[arg-type]
    assert found_in(crawl).damages == []


def test_a_long_file_is_recognized_and_not_kept(crawl: Path) -> None:
    (crawl / "removed.txt").write_text("# long\n" * KEPT_BYTES)
    leave(crawl)
    (crawl / "removed.txt").write_text("# long\n")
    (damage,) = found_in(crawl).damages
    assert "copy it back" in damage.mend


def test_a_compressed_file_of_another_crawl_is_written_with_the_same_content(crawl: Path) -> None:
    file = crawl / "pagefile_0.pfl.zst"
    file.write_bytes(b"".join(packed_frames(b"another", 1)[0]))
    found = found_in(crawl)
    assert found.foreign == {file}
    list(repair(found, {}, lambda *_: None, make_due=len))  # type: ignore[arg-type]
    with open_stored(crawl / "pagefile_0.pfl") as content:
        assert content.read() == b"another"
    assert found_in(crawl).damages == []
