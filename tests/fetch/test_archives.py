"""larmspider/fetch/archives.py"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from scrapy import Request

from larmspider.errors import ConfigError
from larmspider.fetch.archive_handler import ArchiveHandler
from larmspider.fetch.archives import Answer, Archive
from larmspider.fetch.blobs import Room
from larmspider.fetch.errors import BadResponse, TooBig
from larmspider.fetch.sites.lookup import read_sites_file
from larmspider.items import Page
from larmspider.pipelines.warc_records import Original, info_record, page_records
from larmspider.requests import NOTHING_SECRET

NOON = 1_700_000_000.0


def _warc(path: Path, *pages: Page, original: Original | None = None) -> bytes:
    """Each page in a record; the last one is a revisit of ``original``, if there is one."""
    members = [info_record(path.name).member]
    for page in pages:
        page.fetched = page.fetched or NOON
        found = original if page is pages[-1] else None
        members += [record.member for record in page_records(page, found)]
    path.write_bytes(b"".join(members))
    return path.read_bytes()


def _read(archive: Archive, url: str, most: int = 0) -> Answer:
    capture = archive.find(url)
    assert capture is not None
    return capture.source.read(capture, Room(most))


def test_warc_files_give_pages_with_time_and_head(tmp_path: Path) -> None:
    """Of several captures the latest; robots.txt, files and what is no page are left out."""
    pages = [
        Page("http://h/a", status=404, mime="text/plain", body=b"new", fetched=NOON + 9),
        Page("http://h/a", body=b"old"),
        Page("http://h/robots.txt", body=b"Disallow: /"),
        Page("file:///srv/a", body=b"file"),
        Page("http://[::1/a", body=b"no URL"),
        Page("http://h/b", status=203, mime="text/html", body=b"new"),
    ]
    _warc(tmp_path / "1.warc.gz", *pages, original=Original("http://h/a", "2023-11-14T22:13:29Z"))
    (tmp_path / "2.warc").write_bytes(gzip.decompress(_warc(tmp_path / "x", Page("https://h/c"))))
    archive = Archive([tmp_path / "1.warc.gz", tmp_path / "2.warc"])
    assert list(archive.urls()) == ["http://h/a", "http://h/b", "https://h/c"]
    assert _read(archive, "http://h/a") == Answer(404, [("Content-Type", "text/plain")], b"new")
    assert _read(archive, "http://h/b") == Answer(203, [("Content-Type", "text/html")], b"new")
    found = archive.find("http://h/a")
    assert found is not None
    assert found.time == NOON + 9
    with pytest.raises(TooBig, match="more than 2 bytes"):
        _read(archive, "http://h/a", 2)
    assert not archive.damages


def test_a_body_that_is_larger_than_memory_is_a_file(tmp_path: Path) -> None:
    """From each kind of archive; one that is still larger is refused."""
    body = bytes(range(256)) * 40
    _warc(tmp_path / "1.warc.gz", Page("http://h/a", body=body), Page("http://h/"))
    (tmp_path / "mirror" / "h").mkdir(parents=True)
    (tmp_path / "mirror" / "h" / "a").write_bytes(body)
    for path in (tmp_path / "1.warc.gz", tmp_path / "mirror"):
        archive = Archive([path])
        capture = archive.find("http://h/a")
        assert capture is not None
        answer = capture.source.read(capture, Room(1_000, len(body), tmp_path / "blobs"))
        assert answer.blob is not None
        assert (answer.body, answer.blob.path.read_bytes()) == (b"", body)
        with pytest.raises(TooBig, match="LARM_BLOB_BYTES"):
            capture.source.read(capture, Room(1_000, len(body) - 1, tmp_path / "blobs"))
        del answer
    assert not list((tmp_path / "blobs").iterdir())


@pytest.mark.parametrize("size", [500, 100_000])
@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_warc_is_read_up_to_there(tmp_path: Path, damage: str, size: int) -> None:
    """And says so, with the place."""
    path = tmp_path / "a.warc.gz"
    bodies = (Random(n).randbytes(size // 2).hex().encode() for n in range(6))
    data = _warc(path, *(Page(f"http://h/{n}", body=body) for n, body in enumerate(bodies)))
    middle, zeros = len(data) // 2, 99 if size == 500 else 2000
    rest = b"" if damage == "cut" else bytes(zeros) + data[middle + zeros :]
    path.write_bytes(data[:middle] + rest)
    archive = Archive([path])
    assert 2 <= len(list(archive.urls())) < 6
    (line,) = archive.damages
    assert line.startswith(f"{path}: ")
    assert line.endswith(" pages before that")
    for url in archive.urls():
        assert len(_read(archive, url).body) == size


def test_a_record_with_a_wrong_checksum_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has more bytes than it says; what comes behind it is lost."""
    path = tmp_path / "a.warc.gz"
    behind = _warc(path, *(Page(f"http://h/{n}", body=os.urandom(50_000)) for n in range(5)))
    whole = _warc(path, Page("http://h/a", body=b"a"))
    page = Page("http://h/b", body=b"b", fetched=NOON)
    record = gzip.decompress(next(iter(page_records(page, None))).member)
    member = gzip.compress(record + b"2" * 300_000)
    path.write_bytes(whole + member[:-8] + bytes(4) + member[-4:] + behind)
    archive = Archive([path])
    assert list(archive.urls()) == ["http://h/a"]
    assert archive.damages == [
        f"{path}: the record at byte {len(whole):,} is damaged; 1 page before that"
    ]
    assert not capsys.readouterr().err


def test_a_record_that_breaks_later_is_a_bad_response(tmp_path: Path) -> None:
    """The file changed since it was looked through."""
    path = tmp_path / "a.warc.gz"
    _warc(path, Page("http://h/", body=b"x"))
    archive = Archive([path])
    path.write_bytes(b"gone")
    with pytest.raises(BadResponse, match=r"a.warc.gz: the record at byte \d+: "):
        _read(archive, "http://h/")


def _wget(folder: Path) -> None:
    for name, body in {
        "h:81/index.html": b"<title>start",
        "h:81/a/index.html": b"a",
        "h:81/a/b c.txt": b"text",
        "h:81/p?x=1&y=a b": b"<!DOCTYPE html>p",
        "h:81/p?index.html": b"\x89PNG",
        "no host/a": b"",
        "note.txt": b"",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, (NOON, NOON))


def test_folders_of_wget_have_a_folder_for_each_host(tmp_path: Path) -> None:
    """Names are URLs; the type is that of the name, or HTML by its first words."""
    _wget(tmp_path)
    archive = Archive([tmp_path], "https")
    assert sorted(archive.urls()) == [
        "https://h:81/", "https://h:81/a/", "https://h:81/a/b%20c.txt",
        "https://h:81/p?index.html", "https://h:81/p?x=1&y=a%20b",
    ]  # fmt: skip
    start = _read(archive, "https://h:81/")
    modified = ("Last-Modified", "Tue, 14 Nov 2023 22:13:20 GMT")
    assert start == Answer(200, [("Content-Type", "text/html"), modified], b"<title>start")
    assert _read(archive, "https://h:81/p?x=1&y=a%20b").headers[0] == ("Content-Type", "text/html")
    assert _read(archive, "https://h:81/p?index.html").headers == [modified]


def test_httracks_cache_has_heads_and_the_mirror_bodies(tmp_path: Path) -> None:
    """As HTTrack 3.49 writes them; a name that leads out of the mirror is no page."""
    (tmp_path / "hts-cache").mkdir()
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "x.pdf").write_bytes(b"%PDF")
    heads = {
        "http://h/": "X-In-Cache: 1\r\nX-StatusCode: 200\r\nContent-Type: text/html\r\n",
        "h/x.pdf": "X-In-Cache: 0\r\nX-StatusCode: 200\r\nX-Save: h/x.pdf\r\nEtag: 1\r\n",
        "http://h/out": "X-In-Cache: 0\r\nX-StatusCode: 200\r\nX-Save: ../secret\r\n",
    }
    with zipfile.ZipFile(tmp_path / "hts-cache" / "new.zip", "w") as cache:
        for url, head in heads.items():
            entry = zipfile.ZipInfo(url, (2023, 11, 14, 12, 0, 0))
            entry.extra = f"HTTP/1.1 200 OK\r\n{head}".encode()
            cache.writestr(entry, b"<p>start" if url == "http://h/" else b"")
            entry.extra = b""  # it stands before the body alone, not in the directory
    archive = Archive([tmp_path])
    html = [("Content-Type", "text/html")]
    assert _read(archive, "http://h/") == Answer(200, html, b"<p>start")
    assert _read(archive, "http://h/x.pdf") == Answer(200, [("Etag", "1")], b"%PDF")
    with pytest.raises(BadResponse, match="secret is outside of the mirror"):
        _read(archive, "http://h/out")


def _whole(path: Path) -> None:
    data = _warc(path, Page("http://h/", body=b"x"))
    path.write_bytes(gzip.compress(gzip.decompress(data)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no such file or folder"),
        (lambda path: path.write_text("hello"), "expected a WARC file .*, the folder of an HTTr"),
        (lambda path: path.mkdir(), "has no page of http or https"),
        (lambda path: path.write_bytes(b"\x1f\x8b\x08garbage"), "the record at byte 0 is damaged"),
        (_whole, "it is compressed as a whole: expected a gzip member for each record"),
        (lambda path: _warc(path), "has no page of http or https"),
    ],
)
def test_what_is_no_archive_is_refused(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    """By its name, before anything is stored."""
    path = tmp_path / "archive"
    make(path)
    with pytest.raises(ConfigError, match=f"archive:? {message}"):
        Archive([path])


def test_warc_files_without_warcio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to install."""
    _warc(tmp_path / "a.warc.gz", Page("http://h/"))
    monkeypatch.setitem(sys.modules, "warcio.archiveiterator", None)
    with pytest.raises(ConfigError, match=r"read by warcio: pip install 'larmspider\[warc\]'"):
        Archive([tmp_path / "a.warc.gz"])


def test_what_credentials_may_have_opened_is_not_for_pages_of_other_hosts(tmp_path: Path) -> None:
    """A rendered page asks an archive, too, which holds what the crawl of then was shown."""
    _warc(tmp_path / "1.warc.gz", Page("http://closed/a", body=b"x"), Page("http://open/a"))
    path = tmp_path / "sites.toml"
    path.write_text('[[site]]\nhosts = "http://closed"\nheaders = { X-Key = "1" }\n')
    archive = Archive([tmp_path / "1.warc.gz"])
    handler = ArchiveHandler(archive, Room(0), read_sites_file(path))

    def answer(url: str, **meta: bool) -> int:
        return asyncio.run(handler.download_request(Request(url, meta=meta))).status

    assert answer("http://closed/a") == answer("http://open/a", **NOTHING_SECRET) == 200
    with pytest.raises(BadResponse, match="does not know what its server shows to everybody"):
        answer("http://closed/a", **NOTHING_SECRET)
