"""larmspider/plugins/warc/archives.py"""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import brotli
import pytest
from scrapy import Request

from larmspider.errors import ConfigError
from larmspider.fetch import plain_files
from larmspider.fetch.blobs import Room
from larmspider.fetch.errors import BadResponse, TooBig
from larmspider.fetch.sites.lookup import read_sites_file
from larmspider.items import Page
from larmspider.plugins.warc.archive_handler import ArchiveHandler
from larmspider.plugins.warc.archives import Answer, Archive, Capture
from larmspider.plugins.warc.records import Original, info_record, page_records
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
    """The latest of several captures; robots.txt, files and records without a page are left out."""
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
    """File names are URLs; the type is taken from the name, or is HTML by the first words."""
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


# Records and files of foreign archives.


def _record(
    url: str,
    http: bytes = b"HTTP/1.1 200 OK\r\n\r\n<p>x",
    date: str = "2023-11-14T22:13:20Z",
    length: str = "",
) -> bytes:
    return (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"Content-Length: {length or len(http)}\r\n\r\n"
    ).encode() + http + b"\r\n\r\n"  # fmt: skip


def _archive(path: Path, *records: bytes) -> Archive:
    path.write_bytes(b"".join(map(gzip.compress, records)))
    return Archive([path])


@pytest.mark.parametrize(
    "status",
    [
        "99999",
        "0",
        "-1",
        "100",
        "102",
        "199",
        "600",
        "999",
        "\uff12\uff10\uff10",
        "2_00",
        "2e2",
        "",
    ],
)
def test_a_status_that_no_answer_has_is_a_bad_response(tmp_path: Path, status: str) -> None:
    """99999 fits no record of the frontier: the import never ended."""
    http = f"HTTP/1.1 {status} OK\r\n\r\n<p>x".encode()
    archive = _archive(tmp_path / "a.warc.gz", _record("http://h/", http))
    with pytest.raises(BadResponse, match=r"bad status line|expected 200 to 599"):
        _read(archive, "http://h/")


@pytest.mark.parametrize(
    ("date", "why"),
    [
        ("0001-01-01T00:00:00+14:00", "its date lies before 1990"),
        ("1969-12-31T23:59:59Z", "its date lies before 1990"),
        ("9999-12-31T23:59:59Z", "its date lies in the future"),
        ("nan", "it has no date"),
        ("\uff12\uff10\uff12\uff13-11-14T22:13:20Z", "it has no date"),
    ],
)
def test_a_date_that_no_capture_has_is_refused(tmp_path: Path, date: str, why: str) -> None:
    """It would be the latest capture for ever. The other records count."""
    path = tmp_path / "a.warc.gz"
    good = _record("http://h/", b"HTTP/1.1 200 OK\r\n\r\ngood")
    archive = _archive(path, good, _record("http://h/", date=date))
    assert _read(archive, "http://h/").body == b"good"
    place = len(gzip.compress(good))
    assert archive.refused == [f"{path}: 1 entry refused: {why} (the record at byte {place:,})"]
    assert (archive.refused_entries, archive.damages) == (1, [])


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://h:99999/", "its URL cannot be fetched"),
        ("http://[::1/", "its URL cannot be fetched"),
        ("http://h/" + "a" * 70_000, "its URL cannot be fetched"),
        ("http://h/\0a", "its URL holds a control character"),
        ("http://h/\x1b[31m", "its URL holds a control character"),
        ("http://user:secret@h:99999/", "its URL cannot be fetched"),
    ],
)
def test_a_url_that_none_can_be_is_refused(tmp_path: Path, url: str, why: str) -> None:
    archive = _archive(tmp_path / "a.warc.gz", _record(url), _record("http://h/"))
    assert list(archive.urls()) == ["http://h/"]
    (line,) = archive.refused
    assert f": 1 entry refused: {why} (http://" in line
    assert line.isprintable()
    assert "secret" not in line


def test_a_user_name_in_a_url_is_left_out(tmp_path: Path) -> None:
    archive = _archive(tmp_path / "a.warc.gz", _record("http://user:secret@h/#top"))
    assert list(archive.urls()) == ["http://h/"]


def test_many_refusals_are_a_line_each_reason(tmp_path: Path) -> None:
    bad = [_record(f"http://h:9999{n}/") for n in range(7)]
    archive = _archive(tmp_path / "a.warc.gz", *bad, _record("http://h/"))
    assert archive.refused == [
        f"{tmp_path}/a.warc.gz: 7 entries refused: its URL cannot be fetched (http://h:99990/,"
        " http://h:99991/, http://h:99992/, ...)"
    ]


@pytest.mark.parametrize(
    "length", ["-1", "1_0", "\uff15", "nan", "9" * 30, "5\r\nContent-Length: 6"]
)
@pytest.mark.parametrize("packed", [True, False])
def test_a_record_without_one_length_is_damage(tmp_path: Path, length: str, packed: bool) -> None:
    path, good = tmp_path / "a.warc", _record("http://h/")
    bad = _record("http://h/bad", length=length)
    path.write_bytes(gzip.compress(good) + gzip.compress(bad) if packed else good + bad)
    archive = Archive([path])
    assert list(archive.urls()) == ["http://h/"]
    (line,) = archive.damages
    assert line.endswith("has no Content-Length that is one number; 1 page before that")


def test_a_head_without_an_end_is_not_held_in_memory(tmp_path: Path) -> None:
    """Neither a record's nor an HTTP head: 100 KB of gzip may be 100 MB of one line."""
    good, name = _record("http://h/"), b"WARC/1.0\r\nX: "
    path = tmp_path / "a.warc.gz"
    archive = _archive(path, good, name + b"x" * 400_000 + b"\r\n\r\n")
    assert archive.damages[0].endswith("has a head of more than 307,200 bytes; 1 page before that")
    for head in (b"X: " + b"x" * 400_000 + b"\r\n", b"X: y\r\n" * 6_000):
        archive = _archive(path, _record("http://h/", b"HTTP/1.1 200 OK\r\n" + head + b"\r\nx"))
        with pytest.raises(BadResponse, match="its head of HTTP has"):
            _read(archive, "http://h/")


def test_headers_are_those_that_may_be_sent(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nA B: x\r\n: y\r\nX: \0\r\nnone\r\nContent-Type: text/html\r\n\r\nx"
    archive = _archive(tmp_path / "a.warc.gz", _record("http://h/", head))
    assert _read(archive, "http://h/").headers == [("Content-Type", "text/html")]


@pytest.mark.parametrize(
    ("head", "body", "found"),
    [
        ("Transfer-Encoding: chunked", b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        ("Transfer-Encoding: chunked", b"not chunked", b"not chunked"),
        ("Transfer-Encoding: chunked", b"3\r\nabc\r\nffffffff\r\nde", b"abcde\r\n\r\n"[:5]),
        ("Transfer-Encoding: chunked", b"3\r\nabc\r\n-5\r\nde", b"abc"),
        ("Content-Encoding: gzip", gzip.compress(b"abc", mtime=0), b"abc"),
        ("Content-Encoding: gzip", b"as it is", b"as it is"),
        ("Content-Encoding: none, such", b"as it is", b"as it is"),
    ],
)
def test_how_a_body_was_sent_is_undone(
    tmp_path: Path, head: str, body: bytes, found: bytes
) -> None:
    """A chunk's size is a claim."""
    http = f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body
    answer = _read(_archive(tmp_path / "a.warc.gz", _record("http://h/", http)), "http://h/")
    assert (answer.body, answer.headers) == (found, [])


@pytest.mark.parametrize("room", [Room(1_000), Room(1_000, 1 << 40, Path("/nowhere"))])
def test_a_coded_bomb_is_refused(tmp_path: Path, room: Room) -> None:
    """Before it is unpacked."""
    coded = brotli.compress(bytes(40 << 20), quality=1)
    http = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n" + coded
    archive = _archive(tmp_path / "a.warc.gz", _record("http://h/", http))
    capture = archive.find("http://h/")
    assert capture is not None
    with pytest.raises(TooBig, match=r"unpack to more than|more than 1000 bytes"):
        capture.source.read(capture, room)


def test_a_revisit_leads_to_a_response_alone(tmp_path: Path) -> None:
    """The file has another record there since it was looked through: one that leads to itself."""
    path = tmp_path / "a.warc.gz"
    digest = "WARC-Payload-Digest: sha1:ABC\r\nContent-Length"
    record = _record("http://h/").replace(b"Content-Length", digest.encode(), 1)
    archive = _archive(path, record)
    path.write_bytes(gzip.compress(record.replace(b"response", b"revisit", 1)))
    with pytest.raises(BadResponse, match="the original of a revisit is not here"):
        _read(archive, "http://h/")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """Beside a file that is none of its."""
    (tmp_path / "secret").write_text("<p>secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.html").write_text("<p>secret")
    folder = tmp_path / "mirror"
    (folder / "h").mkdir(parents=True)
    (folder / "h" / "good.html").write_text("<p>good")
    return folder


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("name", "make", "why"),
    [
        ("other", lambda path: path.symlink_to("../outside"), "it is a symbolic link"),
        ("h/x", lambda path: path.symlink_to("../../outside"), "it is a symbolic link"),
        ("h/x.html", lambda path: path.symlink_to("../../secret"), "it is a symbolic link"),
        ("h/x.html", lambda path: path.symlink_to("good.html"), "it is a symbolic link"),
        ("h/x.html", lambda path: path.hardlink_to(path.parents[2] / "secret"), plain_files.LINKED),
        ("h/x.html", os.mkfifo, "it is a pipe"),
        ("h/x.html", _socket, "it is a socket"),
    ],
    ids=["host", "folder", "file", "inside", "hard", "pipe", "socket"],
)
def test_nothing_but_plain_files_of_a_mirror_is_a_page(
    mirror: Path, name: str, make: Callable[[Path], object], why: str
) -> None:
    make(mirror / name)
    archive = Archive([mirror])
    assert list(archive.urls()) == ["http://h/good.html"]
    assert archive.refused == [f"{mirror}: 1 entry refused: {why} ({name})"]


def test_a_mirror_may_be_named_by_a_link_and_share_its_own_files(mirror: Path) -> None:
    """Two names of one file are both pages, if no third one lies elsewhere."""
    (mirror / "h" / "same.html").hardlink_to(mirror / "h" / "good.html")
    link = mirror.with_name("link")
    link.symlink_to(mirror)
    archive = Archive([link])
    assert list(archive.urls()) == ["http://h/good.html", "http://h/same.html"]
    assert not archive.refused
    assert _read(archive, "http://h/same.html").body == b"<p>good"


@pytest.mark.parametrize(
    "swap",
    [
        lambda host: (host.rename(host.with_name("old")), host.symlink_to("../outside")),
        lambda host: ((host / "a.html").unlink(), (host / "a.html").symlink_to("../../secret")),
        lambda host: ((host / "a.html").unlink(), os.mkfifo(host / "a.html")),
        lambda host: (host.parents[1] / "secret").rename(host / "a.html"),
        lambda host: (host / "a.html").unlink(),
        lambda host: (host / "a.html").write_text("<p>it has grown"),
    ],
    ids=["folder", "link", "pipe", "moved here", "gone", "grown"],
)  # fmt: skip
def test_what_is_swapped_behind_the_look_is_not_read(
    mirror: Path, swap: Callable[[Path], object]
) -> None:
    (mirror / "h" / "a.html").write_text("<p>a")
    archive = Archive([mirror])
    swap(mirror / "h")
    with pytest.raises(BadResponse, match=r"mirror/h/a\.html: "):
        _read(archive, "http://h/a.html")


def test_a_file_that_grows_for_ever_is_read_once(mirror: Path) -> None:
    archive, path = Archive([mirror]), mirror / "h" / "good.html"
    found = archive.find("http://h/good.html")
    assert found is not None

    class Growing(Room):
        def take(self, pieces: Iterable[bytes]) -> tuple[bytes, None]:
            kept = []
            for piece in pieces:
                kept.append(piece)
                with path.open("ab") as file:
                    file.write(b"more")
            return b"".join(kept), None

    with pytest.raises(BadResponse, match="it has changed while it was read"):
        found.source.read(found, Growing())


def test_a_mirror_of_nothing_but_links_has_no_page(tmp_path: Path) -> None:
    (tmp_path / "wiki.example").symlink_to("/etc")
    with pytest.raises(ConfigError, match=r"it is a symbolic link \(wiki.example\)"):
        Archive([tmp_path])


def test_times_of_files_are_no_later_than_now(mirror: Path) -> None:
    """A server may have said anything in Last-Modified, which wget keeps."""
    for name, when in (("a", -5e9), ("b", 2**40)):
        (mirror / "h" / name).write_text("x")
        os.utime(mirror / "h" / name, (when, when))
    archive = Archive([mirror])
    times = [found.time for url in archive.urls() if (found := archive.find(url))]
    assert all(0 <= when <= time.time() for when in times)
    assert times[0] == 0


def _httrack(folder: Path, heads: dict[str, str], extra: Callable[[Path], object] = str) -> None:
    (folder / "hts-cache").mkdir(parents=True)
    (folder / "h").mkdir(exist_ok=True)
    extra(folder)
    with zipfile.ZipFile(folder / "hts-cache" / "new.zip", "w") as cache:
        for url, head in heads.items():
            entry = zipfile.ZipInfo(url, (2023, 11, 14, 12, 0, 0))
            entry.extra = f"HTTP/1.1 200 OK\r\n{head}".encode()
            cache.writestr(entry, b"<p>here")
            entry.extra = b""


_SAVED = "X-StatusCode: 200\r\nX-In-Cache: 0\r\n"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("X-StatusCode: 99999\r\n", "status '99999': expected 200 to 599"),
        ("X-StatusCode: \uff12\r\n", "expected 200 to 599"),
        ("Content-Type: text/html\r\n", "it has no X-StatusCode"),
        (_SAVED + "X-Save: h/link\r\n", "h/link: it is a symbolic link"),
        (_SAVED + "X-Save: in/a.html\r\n", "it is a symbolic link"),
        (_SAVED + "X-Save: h/hard\r\n", "a hard link"),
        (_SAVED + "X-Save: h/pipe\r\n", "h/pipe: it is a pipe"),
        (_SAVED + "X-Save: h/../../secret\r\n", "is outside of the mirror"),
        (_SAVED + "X-Save: /etc/passwd\r\n", "is outside of the mirror"),
        (_SAVED + "X-Save: h/%2e%2e/a\r\n", "No such file"),
        (_SAVED + "X-Save: h\r\n", "h: it is a folder"),
        (_SAVED, "its name leads out of"),
    ],
)  # fmt: skip
def test_httracks_fields_are_checked(tmp_path: Path, head: str, why: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.html").write_text("secret")

    def links(folder: Path) -> None:
        (folder / "in").symlink_to("../outside")
        (folder / "h" / "link").symlink_to("../../secret")
        (folder / "h" / "hard").hardlink_to(tmp_path / "secret")
        os.mkfifo(folder / "h" / "pipe")

    _httrack(tmp_path / "m", {"http://h/": head}, links)
    with pytest.raises(BadResponse, match=re.escape(why)):
        _read(Archive([tmp_path / "m"]), "http://h/")


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to(path.parents[2] / "x.zip")]
)
def test_httracks_cache_is_a_plain_file(tmp_path: Path, make: Callable[[Path], object]) -> None:
    _httrack(tmp_path / "m", {"http://h/": "X-StatusCode: 200\r\n"})
    cache = tmp_path / "m" / "hts-cache" / "new.zip"
    cache.rename(tmp_path / "x.zip")
    make(cache)
    with pytest.raises(ConfigError, match=r"hts-cache/new.zip: it is a .*; expected a plain file"):
        Archive([tmp_path / "m"])


@pytest.mark.parametrize("make", [os.mkfifo, _socket])
def test_what_is_given_is_a_plain_file(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """A pipe would hang."""
    make(tmp_path / "a.warc")
    with pytest.raises(ConfigError, match=r"a.warc: it is a (pipe|socket): expected a WARC file"):
        Archive([tmp_path / "a.warc"])


@pytest.fixture
def for_all() -> Iterator[Path]:
    """A folder that every user may look into."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def _as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_may_not_be_read_is_refused(for_all: Path) -> None:
    """A path that the user named is refused as a whole; a file or folder in a mirror by itself."""
    for name in ("h", "closed", "mirror/h/closed", "mirror/h/open"):
        (for_all / name).mkdir(parents=True)
    _warc(for_all / "a.warc.gz", Page("http://h/"))
    for name in ("mirror/h/a", "mirror/h/b", "mirror/h/closed/c"):
        (for_all / name).write_text("x")
    for name in ("a.warc.gz", "closed", "mirror/h/a", "mirror/h/closed"):
        (for_all / name).chmod(0)
    with _as_nobody():
        for name in ("a.warc.gz", "closed"):
            with pytest.raises(ConfigError, match=f"{name}: Permission denied$"):
                Archive([for_all / name])
        archive = Archive([for_all / "mirror"])
    assert list(archive.urls()) == ["http://h/b"]
    assert archive.refused == [
        f"{for_all}/mirror: 2 entries refused: Permission denied (h/a, h/closed)"
    ]


def test_a_read_that_hangs_does_not_hold_up_the_crawl() -> None:
    """So SIGTERM, which the event loop acts on, ends it."""
    hanging = threading.Event()

    class Hangs:
        def captures(self) -> Iterator[Capture]:
            yield from ()

        def read(self, capture: Capture, room: Room) -> Answer:
            hanging.wait(60)
            raise BadResponse("ended")

    class One(Archive):
        def __init__(self) -> None:
            pass

        def find(self, url: str) -> Capture:
            return Capture(url, NOON, Hangs(), None)

    async def read() -> None:
        handler = ArchiveHandler(One(), Room())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handler.download_request(Request("http://h/")), 0.05)

    try:
        asyncio.run(read())
    finally:
        hanging.set()
