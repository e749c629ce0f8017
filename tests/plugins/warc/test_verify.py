"""``scrapy verify`` names damage in WARC files, and mends it."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from pathlib import Path

import pytest
from scrapy.http.headers import Headers
from scrapy.settings import Settings

from larmspider.control.repair import repair
from larmspider.crawl.verify.findings import Findings
from larmspider.items import Page
from larmspider.plugins.warc.pipeline import _padded, cdxj_of, warc_files
from larmspider.plugins.warc.records import cdxj_line, info_record, page_records
from larmspider.plugins.warc.verify import check_warc, members_of
from tests.crawl.test_verify import flip, say


def a_warc(folder: Path) -> tuple[Path, list[int]]:
    """A file of six pages, and where each one begins, and where the last one ends."""
    folder.mkdir()
    path = folder / "crawl-00000.warc.gz"
    starts, lines = [], []
    with path.open("wb") as out:
        for number in range(6):
            starts.append(out.tell())
            fields = json.dumps({"url": f"http://h/{number}", "offset": str(out.tell())})
            lines.append(f"h)/{number} 20260101000000 {fields}\n")
            text = random.Random(number).randbytes(900).hex()
            out.write(gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n\r\n" + text.encode()))
        starts.append(out.tell())
    cdxj_of(path).write_text("".join(lines))
    return path, starts


def warc_found(path: Path, length: int) -> Findings:
    found = Findings(path)
    check_warc(found, b"0 %d" % length, say)
    return found


def test_every_damaged_record_of_a_warc_file_is_named(tmp_path: Path) -> None:
    path, starts = a_warc(tmp_path / "warc")
    for start in (starts[1] + 40, starts[2], starts[4] + 60):
        flip(path, start, 0xFF)
    found = warc_found(tmp_path, starts[6])
    assert [(one.at, one.url) for one in found.damages] == [
        (starts[number], f"http://h/{number}") for number in (1, 2, 4)
    ]
    assert all("Copy the file back" in one.what for one in found.damages)
    assert sorted(found.due.values()) == ["http://h/1", "http://h/2", "http://h/4"]
    damaged = path.read_bytes()
    assert list(repair(found, Settings(), say, make_due=len)) == []
    assert warc_found(tmp_path, starts[6]).damages == []
    assert path.with_name(f"{path.name}.damaged").read_bytes() == damaged
    with gzip.open(path) as file:
        assert file.read().count(b"WARC-Type: response") == 3


@pytest.mark.parametrize("kept", [2.5, 5.5, 3, 0, None, "folder"])
def test_a_warc_file_that_lacks_its_end_is_filled_up(
    tmp_path: Path, kept: float | str | None
) -> None:
    """Cut in a record, in the last one, between two, to nothing; gone; gone with its folder. The
    next run found less than was committed, and sent the operator here, for ever."""
    path, starts = a_warc(tmp_path / "warc")
    if kept == "folder":
        shutil.rmtree(path.parent)
    elif isinstance(kept, float | int):
        os.truncate(path, starts[int(kept)] + (900 if kept % 1 else 0))
    else:
        path.unlink()
    found = warc_found(tmp_path, starts[6])
    (damage,) = found.damages
    assert not damage.mend, "--repair repairs it"
    whole = int(kept) if isinstance(kept, float | int) else 0
    lost = [] if kept == "folder" else [f"http://h/{number}" for number in range(whole, 6)]
    assert sorted(found.due.values()) == lost
    list(repair(found, Settings(), say, make_due=len))
    assert warc_found(tmp_path, starts[6]).damages == []
    (path,) = warc_files(tmp_path / "warc").values()
    assert path.stat().st_size == starts[6]
    with path.open("ab") as file:
        file.write(gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n\r\n"))
    with gzip.open(path) as file:
        assert file.read().count(b"WARC/1.1\r\n") == whole + 2


def test_the_pages_of_a_full_warc_file_that_is_gone_are_due(tmp_path: Path) -> None:
    """Its CDXJ names them, and goes with the repair."""
    path, starts = a_warc(tmp_path / "warc")
    shutil.copy(path, path.with_name("crawl-00001.warc.gz"))
    cdxj_of(path.with_name("crawl-00001.warc.gz")).touch()
    path.unlink()
    found = Findings(tmp_path)
    check_warc(found, b"1 %d" % starts[6], say)
    assert [one.file for one in found.damages] == [path]
    pages = len(starts) - 1  # the last one is the end
    assert f"is gone: {pages} pages of it lost" in found.damages[0].what
    assert "Copy the file back from where you keep it; else --repair makes" in str(found.damages[0])
    assert (len(found.due), found.gone) == (pages, [cdxj_of(path)])
    assert found.warc_lost == {}


def real_warc(folder: Path, name: str, pages: int = 4, *, words: str = "") -> tuple[Path, int]:
    """A file as a crawl writes it, and its length."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-00000.warc.gz"
    lines, content = [], info_record(path.name).member
    for number in range(pages):
        page = Page(f"http://h/{number}", body=f"{words}{number}".encode(), mime="text/html")
        page.status, page.fetched = 200, 1_700_000_000.0
        page.headers = Headers({"Content-Type": "text/html; charset=utf-8"})
        first, *others = page_records(page, None)
        lines.append(cdxj_line(first, path.name, len(content), len(first.member)))
        content += first.member + b"".join(record.member for record in others)
    path.write_bytes(content)
    cdxj_of(path).write_text("".join(sorted(lines)))
    return path, len(content)


@pytest.mark.parametrize("damage", ["a line", "cut", "gone", "of another file", "changed"])
def test_a_damaged_cdxj_is_written_again_by_the_records(tmp_path: Path, damage: str) -> None:
    path, length = real_warc(tmp_path / "warc", "crawl")
    cdxj = cdxj_of(path)
    whole = cdxj.read_bytes()
    if damage == "gone":
        cdxj.unlink()
    elif damage == "of another file":
        other, _ = real_warc(tmp_path / "other", "other", 2, words="other ")
        shutil.copyfile(cdxj_of(other), cdxj)
    elif damage == "changed":  # a mime type, which no record says otherwise
        cdxj.write_bytes(whole.replace(b"text/html", b"text/htmm", 1))
    else:
        lines = whole.splitlines(keepends=True)
        lines[1:3] = [b"{\n"] if damage == "a line" else []
        cdxj.write_bytes(b"".join(lines))
    found = Findings(tmp_path)
    found.strange |= {cdxj} if damage in ("changed", "of another file") else set()
    check_warc(found, b"0 %d" % length, say)
    assert [one.file for one in found.damages] == [cdxj]
    assert found.due == {}
    assert list(repair(found, Settings(), say, make_due=len)) == []
    assert cdxj.read_bytes() == whole
    assert warc_found(tmp_path, length).damages == []


def test_a_record_of_another_page_in_place_of_one_is_named(tmp_path: Path) -> None:
    path, length = real_warc(tmp_path / "warc", "crawl")
    places = {one.url: one for one in members_of(path, length, (), say) if one.payload}
    at, size = places["http://h/2"].at, places["http://h/2"].size
    page = Page("http://evil/", body=b"2", mime="text/html")
    (member, *_), whole = page_records(page, None), path.read_bytes()
    left = size - len(member.member) - 1
    path.write_bytes(whole[:at] + b"".join(_padded(member.member, left)) + whole[at + size :])
    found = warc_found(tmp_path, length)
    assert [(one.at, one.url) for one in found.damages] == [(at, "http://h/2")]
    assert [*found.due.values()] == ["http://h/2"]
    list(repair(found, Settings(), say, make_due=len))
    assert warc_found(tmp_path, length).damages == []
    assert b"evil" not in gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("pages", [2, 9])
def test_a_warc_file_of_another_crawl_is_named(tmp_path: Path, pages: int) -> None:
    """It is shorter, or longer."""
    path, length = real_warc(tmp_path / "warc", "crawl")
    other, _ = real_warc(tmp_path / "other", "other", pages, words="other ")
    shutil.copyfile(other, path)
    found = warc_found(tmp_path, length)
    assert [one.file for one in found.damages] == [path]
    assert len(found.due) == 4
    list(repair(found, Settings(), say, make_due=len))
    assert path.stat().st_size == length
    assert warc_found(tmp_path, length).damages == []
    assert b"other" not in gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("cut", [0, 100])
def test_a_full_file_that_lacks_its_end_names_no_lost_record(tmp_path: Path, cut: int) -> None:
    """No later page refers to a record behind the end."""
    path, _ = real_warc(tmp_path / "warc", "crawl")
    newest = path.with_name("crawl-00001.warc.gz")
    newest.write_bytes(info_record(newest.name).member)
    cdxj_of(newest).touch()
    places = {one.url: one for one in members_of(path, path.stat().st_size, (), say) if one.payload}
    os.truncate(path, places["http://h/2"].at + cut)
    position = b"1 %d" % newest.stat().st_size
    for expected in (["http://h/2", "http://h/3"], []):
        found = Findings(tmp_path)
        check_warc(found, position, say)
        assert sorted(found.due.values()) == expected
        assert len(found.damages) == bool(expected)
        list(repair(found, Settings(), say, make_due=len))
    assert cdxj_of(path).read_text().count("\n") == 2
