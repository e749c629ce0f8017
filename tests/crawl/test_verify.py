"""Damage on the disk is reported: file, place, fault; and no whole file is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.checksums import STRETCH, Sums, kept_checksums, read_sums, sum_anew, sums_path
from larmspider.control.repair import repair
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.verify import check as module
from larmspider.crawl.verify.bodies import check_bodies
from larmspider.crawl.verify.check import check, quick_check
from larmspider.crawl.verify.findings import Findings
from larmspider.crawl.verify.frontier import check_seal
from larmspider.crawl.verify.logs import check_log, hole, is_hole
from larmspider.crawl.verify.others import check_manifest
from larmspider.errors import ConfigError
from larmspider.extraction.processes.process import Readers
from larmspider.extraction.texts.language import Languages
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_env import LmdbFiles
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import (
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    host_of,
    url_key,
)
from larmspider.index.unreached import UnreachedLog
from larmspider.index.writer import seal_index
from larmspider.items import Link, Page
from larmspider.learned.revisits.host import HostKnowledge
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS
from larmspider.pipelines.records import RecordLog, read_records
from larmspider.pipelines.reextract import reextracted
from larmspider.workdir.directory import write_manifest
from larmspider.workdir.manifest import CHECKSUMS, SHARED
from larmspider.workdir.manifest_copy import NOTE
from tests.support.stored_crawl import StoredCrawl

URLS = [f"http://h/{number}" for number in range(4)]


def say(_what: str, _done: int, _total: int) -> None:
    """No progress."""


def log_of(path: Path, pages: int = 4) -> int:
    log = RecordLog(path / "links.log", LINK_LOG_COLUMNS, summed=True)
    for page in range(pages):
        log.append(f"http://h/{page}", "http://h/to", "http://h/to", "0", f"text of {page}")
    log.close()
    return (path / "links.log").stat().st_size


def flip(path: Path, at: int, bits: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.write_bytes(data)


def found_in(path: Path, end: int) -> Findings:
    found = Findings(path)
    check_log(found, path / "links.log", end, say)
    return found


def test_a_whole_log_is_whole(tmp_path: Path) -> None:
    assert found_in(tmp_path, log_of(tmp_path)).damages == []


def test_a_bit_in_a_text_is_found_by_the_checksum(tmp_path: Path) -> None:
    """Though the line is a record like any other."""
    end = log_of(tmp_path)
    flip(tmp_path / "links.log", end - 2)
    (damage,) = found_in(tmp_path, end).damages
    assert damage.file == tmp_path / "links.log"
    assert damage.at == 0
    assert "do not match their checksum" in damage.what


@pytest.mark.parametrize("byte", [b"\xff", b"\t", b"\n", b"\0"])
def test_a_line_that_is_no_record_is_found_where_it_begins(tmp_path: Path, byte: bytes) -> None:
    """No UTF-8, a column more, a line more; also without checksums."""
    end = log_of(tmp_path)
    sums_path(tmp_path / "links.log").unlink()
    with (tmp_path / "links.log").open("r+b") as log:
        log.seek(end // 2 - 5)
        log.write(byte)
    damages = found_in(tmp_path, end).damages
    assert damages
    assert all(damage.what == "a line is not a record of links.log" for damage in damages)
    assert 0 < (damages[0].at or 0) <= end // 2


def test_what_was_committed_and_is_not_there_is_named(tmp_path: Path) -> None:
    end = log_of(tmp_path)
    os.truncate(tmp_path / "links.log", end // 2)
    found = found_in(tmp_path, end)
    assert f"ends at {end // 2:,}, {end:,} bytes were committed" in {d.what for d in found.damages}
    assert found.short == {tmp_path / "links.log": end}
    (tmp_path / "links.log").unlink()
    assert "is gone" in found_in(tmp_path, end).damages[0].what


def test_what_lies_behind_the_last_checkpoint_is_no_damage(tmp_path: Path) -> None:
    end = log_of(tmp_path)
    with (tmp_path / "links.log").open("ab") as log:
        log.write(b"a line that was cut o")
    assert found_in(tmp_path, end).damages == []


@pytest.mark.parametrize("size", [2, 5, 16, 17, 18, 300])
def test_a_hole_is_no_record_and_no_damage(tmp_path: Path, size: int) -> None:
    end = log_of(tmp_path)
    with (tmp_path / "links.log").open("ab") as log:
        log.write(hole(size))
    assert len(hole(size)) == size
    assert is_hole(hole(size))
    assert found_in(tmp_path, end + size).damages == []
    assert len([*read_records(tmp_path / "links.log", 5)]) == 4


def test_checksums_go_on_where_a_run_ended(tmp_path: Path) -> None:
    """And cover what a killed run left without a line; a damaged line of theirs is named."""
    file = tmp_path / "a.log"
    sums, content = Sums(file, 0), b"x" * (STRETCH + 5)
    file.write_bytes(content)
    sums.add(content)
    sums.end_stretch()
    sums.write()
    file.write_bytes(content + b"of a killed run")
    sums = Sums(file, file.stat().st_size)
    file.write_bytes(file.read_bytes() + b"of the next")
    sums.add(b"of the next")
    sums.end_stretch(1)
    sums.write()
    stretches, bad = read_sums(file)
    assert not bad
    assert [(one.start, one.end) for one in stretches] == [
        (0, STRETCH + 5),
        (STRETCH + 5, STRETCH + 31),
    ]
    flip(sums_path(file), 3)
    assert read_sums(file)[1] == [1]
    Sums(file, STRETCH + 5)  # a crawl went back
    assert read_sums(file)[0] == []


def test_a_frontier_that_changed_since_the_last_run_is_known(tmp_path: Path) -> None:
    LmdbFiles(tmp_path).close()
    assert check_seal(tmp_path) == ""
    data = tmp_path / "data.mdb"
    flip(data, data.stat().st_size // 2)
    assert "does not match its checksum" in check_seal(tmp_path)
    LmdbFiles(tmp_path).close()
    assert check_seal(tmp_path) == ""


# whole crawls


def page(url: str, number: int) -> Page:
    links = [
        Link(other, other, anchor=f"to {other}", exact=other) for other in URLS if other != url
    ]
    body = f"<p>page {number} of words".encode() * 50
    return Page(
        url, url, status=200, body=body, text="words", mime="text/html", links=links, exact=url
    )


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    """Four stored pages, and a frontier that knows them."""
    stored = StoredCrawl(tmp_path / "crawl", refresh=True)
    for number, url in enumerate(URLS):
        stored.store(url, page(url, number))
    stored.end()
    backend = LmdbBackend(stored.path / "frontier")
    backend.recover()
    backend.add([QueuedUrl(url, url, url_key(url), host_of(url)) for url in URLS])
    for number, url in enumerate(URLS):
        backend.pop("h:80", 0.0)
        digest = bytes.fromhex(page(url, number).digest or "") or _sha1(page(url, number).body)
        visit = FetchRecord(UrlState.STORED, time=1000.0, status=200, digest=digest, url=url)
        backend.acknowledge([(url_key(url), visit)])
    backend.checkpoint(stored.positions)
    backend.close()
    manifest = json.loads((stored.path / "crawl.json").read_text()) | {"spider": "intranet"}
    write_manifest(stored.path, manifest)
    return CrawlDir(stored.path)


def _sha1(body: bytes) -> bytes:
    return hashlib.sha1(body, usedforsecurity=False).digest()


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk in another process takes a second; it is tested by whole crawls."""
    monkeypatch.setattr(module, "walked", lambda *_: "")
    monkeypatch.setattr("larmspider.crawl.verify.index.walked", lambda *_: "")


def checked(crawl: CrawlDir) -> Findings:
    return check(crawl.path, Settings(), say, running=False)


def of_files(found: Findings) -> set[str]:
    return {damage.file.name for damage in found.damages}


def test_a_whole_crawl_is_whole(crawl: CrawlDir) -> None:
    found = checked(crawl)
    assert [str(damage) for damage in found.damages] == []
    assert found.pages == 4


def test_a_body_that_is_not_what_its_digest_says_is_named_and_made_due(crawl: CrawlDir) -> None:
    """By a repair, once; then it is no damage any more, but awaited."""
    flip(crawl.path / "pagefile_0.pfl", 3)
    found = checked(crawl)
    assert [(one.file.name, one.at, one.url) for one in found.damages] == [
        ("pagefile_0.pfl", 0, URLS[0])
    ]
    assert list(repair(found, Settings(), say)) == []
    with FrontierReader(crawl.path / "frontier") as frontier:
        visit = frontier.visit(url_key(URLS[0]))
        assert visit is not None
        assert visit.due == 1.0
        known = HostKnowledge.unpack(frontier.note("refresh h:80"))
        assert known.doubtful == {url_key(URLS[0])}
    again = checked(crawl)
    assert [str(damage) for damage in again.damages] == []
    assert list(again.awaited.values()) == [URLS[0]]


def test_pages_are_read_again_without_a_page_file_that_has_none_of_them(tmp_path: Path) -> None:
    """Nor a version that counts: so one lost file stops neither a check nor a new index."""
    log = RecordLog(tmp_path / "store.log", STORE_LOG_COLUMNS)
    for url, status, file in (("/a", "200", "1"), ("/a", "200", "0"), ("/b", "200", "1")):
        log.append(
            "", f"http://h{url}", f"http://h{url}", "0", status, "text/html", "3", "t", file, "0"
        )
    log.append("", "http://h/gone", "http://h/gone", "0", "0", "", "0", "", "1", "0")
    log.close()
    (tmp_path / "pagefile_0.pfl").write_bytes(b"abc")
    crawl = CrawlDir.__new__(CrawlDir)
    crawl.path, crawl.manifest = tmp_path, {}
    given = tmp_path, crawl.forms, Readers(), Languages(())
    _, documents = reextracted(*given, (), lambda url: url != "http://h/b")
    assert [name for name, _ in documents] == ["http://h/a"]
    with pytest.raises(ConfigError, match=r"pagefile_1\.pfl is gone or cut short"):
        reextracted(*given)


def test_a_line_of_another_crawl_about_a_page_without_a_record_is_a_hole(crawl: CrawlDir) -> None:
    """Here the URL is known, as another spelling of a page. The page that lost its line is due."""
    other = "http://h/m"
    backend = LmdbBackend(crawl.path / "frontier")
    backend.recover()
    entry = QueuedUrl(other, other, url_key(other), host_of(other))
    backend.merge([MergedUrl(entry, 1, url_key(URLS[0]))])
    backend.checkpoint({})
    backend.close()
    log = crawl.path / "store.log"
    log.write_bytes(log.read_bytes().replace(b"http://h/3\t", b"http://h/m\t"))
    found = checked(crawl)
    assert "store.log" in of_files(found)
    found.index_lost = False
    assert list(repair(found, Settings(), say)) == []
    assert b"/m" not in log.read_bytes()
    assert URLS[3] in found.due.values()


def test_a_frontier_that_is_made_anew_finds_pages_by_other_spellings(crawl: CrawlDir) -> None:
    """A link to another spelling is compared with the page, as in the first crawl."""
    old, new = b"\thttp://h/1\thttp://h/1\t", b"\thttp://h/X\thttp://h/x\t"
    log = crawl.path / "store.log"
    log.write_bytes(log.read_bytes().replace(old, new))
    sum_anew(log)
    (crawl.path / "frontier" / "data.mdb").unlink()
    found = checked(crawl)
    found.frontier_lost, found.index_lost = True, False
    list(repair(found, Settings(), say))
    backend = LmdbBackend(crawl.path / "frontier")
    backend.recover()
    assert backend.guessed([url_key("http://h/x")]) == [[url_key("http://h/X")]]
    backend.close()


@pytest.mark.parametrize("damage", ["cut", "gone", "flipped", "a bit"])
def test_marks_of_pages_that_were_not_reached_are_named_and_made_again(
    crawl: CrawlDir, damage: str
) -> None:
    marks, log = crawl.path / "index" / "unreached", UnreachedLog(crawl.path / "index")
    log.missed(URLS[1], "missing", 2_000.0)
    log.write()
    seal_index(crawl.path / "index")
    assert of_files(checked(crawl)) == set()
    DAMAGES[damage](marks)
    found = checked(crawl)
    assert of_files(found) == {"unreached"}
    assert not found.index_lost
    assert list(repair(found, Settings(), say)) == []
    assert (of_files(checked(crawl)), marks.exists()) == (set(), True)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
    "gone": lambda file: file.unlink(),
    "flipped": lambda file: flip(file, file.stat().st_size // 2, 0xFF),
    "a bit": lambda file: flip(file, file.stat().st_size // 2),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["store.log", "links.log", "fetch.log", "pagefile_0.pfl"])
def test_a_repair_leaves_nothing_that_is_damaged_and_all_that_is_whole(
    crawl: CrawlDir, name: str, damage: str
) -> None:
    before = {
        fields[1] for fields in read_records(crawl.path / "store.log", len(STORE_LOG_COLUMNS))
    }
    assert before == set(URLS)
    DAMAGES[damage](crawl.path / name)
    found = checked(crawl)
    assert name in of_files(found)
    assert found.due
    found.index_lost = False  # its rebuild is tested elsewhere
    assert list(repair(found, Settings(), say)) == []
    again = checked(crawl)
    assert not of_files(again) & {name, "data.mdb"}
    assert {*found.due.values()} >= {*again.awaited.values()}
    # positions are unchanged: a crawl continues
    with FrontierReader(crawl.path / "frontier") as frontier:
        positions = frontier.positions()
    StoredCrawl(crawl.path, refresh=True, positions=positions).close()


def test_the_ends_of_logs_are_looked_at_when_a_crawl_starts(crawl: CrawlDir) -> None:
    with FrontierReader(crawl.path / "frontier") as frontier:
        positions = frontier.positions()
    assert list(quick_check(crawl.path, positions)) == []
    log = crawl.path / "links.log"
    flip(log, log.stat().st_size - 3)
    (said,) = quick_check(crawl.path, positions)
    assert said.startswith(f"{log}: damaged between bytes")


def test_a_page_file_of_50_mb_takes_less_than_a_second(tmp_path: Path) -> None:
    """Of CPU: 2,500 pages of 20 KB."""
    log = RecordLog(tmp_path / "store.log", STORE_LOG_COLUMNS)
    body, at = b"x" * 20_000, 0
    with (tmp_path / "pagefile_0.pfl").open("wb") as file:
        for number in range(2_500):
            url = f"http://h/{number}"
            log.append("", url, url, "0", "200", "text/html", "20000", "t", "0", str(at))
            file.write(body)
            at += len(body)
    log.close()
    end, forms = (tmp_path / "store.log").stat().st_size, CrawlDir.forms
    crawl = CrawlDir.__new__(CrawlDir)
    crawl.path, crawl.manifest = tmp_path, {}
    began = time.process_time()
    found = Findings(tmp_path)
    check_bodies(found, None, lambda url: forms(crawl, url), end, say, complete=False)
    assert found.pages == 2_500
    assert time.process_time() - began < 1.0


LEFT = ("sums/links.log", "sums/pagefile_0.pfl", "frontier/sealed.json", "index/sealed.json")


@pytest.mark.parametrize("is_worker", [False, True])
@pytest.mark.parametrize("damage", ["gone", "cut", "emptied"])
@pytest.mark.parametrize("name", LEFT)
def test_checksums_that_the_last_run_left_are_missed(
    crawl: CrawlDir, name: str, damage: str, is_worker: bool
) -> None:
    """A repair takes them again, in the directory of a worker too."""
    LmdbFiles(crawl.path / "frontier").close()
    seal_index(crawl.path / "index")
    left = {CHECKSUMS: kept_checksums(crawl.path)}
    manifest = json.loads((crawl.path / "crawl.json").read_text()) | left
    write_manifest(crawl.path, manifest)
    assert of_files(checked(crawl)) == set()
    file = crawl.path / name
    if damage == "gone":
        file.unlink()
    else:
        os.truncate(file, file.stat().st_size // 2 if damage == "cut" else 0)
    found = checked(crawl)
    assert {one.file for one in found.damages} == {file}
    make_due = (lambda _: 0) if is_worker else None
    assert list(repair(found, Settings(), say, make_due=make_due)) == []
    assert of_files(checked(crawl)) == set()
    assert file.stat().st_size


def test_each_flipped_byte_of_the_manifest_is_named(crawl: CrawlDir) -> None:
    """Also in the value of a setting that `scrapy reindex` changes, where the copy in the frontier
    may have another value."""
    file = crawl.path / "crawl.json"
    content = file.read_bytes()
    backend = LmdbBackend(crawl.path / "frontier")
    backend.recover()
    backend.put_note(NOTE, content)
    backend.checkpoint({})
    backend.close()
    unnamed = []
    with FrontierReader(crawl.path / "frontier") as frontier:
        for at in range(0, len(content), 7):
            file.write_bytes(content[:at] + bytes((content[at] ^ 4,)) + content[at + 1 :])
            found = Findings(crawl.path)
            check_manifest(found, frontier)
            if not found.damages:
                unnamed.append(content[at - 20 : at + 20])
    assert unnamed == []


def test_a_crawl_without_checksums_misses_none(crawl: CrawlDir) -> None:
    """It was killed."""
    shutil.rmtree(crawl.path / "sums")
    (crawl.path / "frontier" / "sealed.json").unlink(missing_ok=True)
    (crawl.path / "index" / "sealed.json").unlink(missing_ok=True)
    assert of_files(checked(crawl)) == set()


def test_pages_of_a_worker_whose_directory_is_gone_are_named(crawl: CrawlDir) -> None:
    manifest = json.loads((crawl.path / "crawl.json").read_text()) | {SHARED: True}
    write_manifest(crawl.path.parent, manifest)
    url = "http://h/of-another"
    backend = LmdbBackend(crawl.path / "frontier")
    backend.recover()
    backend.add([QueuedUrl(url, url, url_key(url), host_of(url))])
    backend.pop("h:80", 0.0)
    visit = FetchRecord(UrlState.STORED, time=1000.0, status=200, url=url, stored=9.0, shard="w2")
    backend.acknowledge([(url_key(url), visit)])
    backend.checkpoint({})
    backend.close()
    (note,) = checked(crawl).notes
    assert "1 page of worker w2, whose directory is not here" in note
    (crawl.path.parent / "w2").mkdir()
    (crawl.path.parent / "w2" / "store.log").touch()
    assert checked(crawl).notes == []
