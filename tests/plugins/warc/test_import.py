"""scrapy import: an archive becomes a crawl, which continues at the servers if the user wants."""

from __future__ import annotations

import gzip
import json
import signal
import time
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import pytest

from larmspider import open_crawl
from larmspider.plugins.warc.pipeline import warc_files
from larmspider.settings import ITEM_PIPELINES
from tests.support.crawling import FAST, begin, records, scrapy
from tests.support.servers.scripted import Reply, ScriptedServer

pytestmark = pytest.mark.acceptance
WARC = json.dumps(ITEM_PIPELINES | {"larmspider.plugins.warc.pipeline.WarcPipeline": 250})
FAST_OPTIONS = [word for name, value in FAST.items() for word in ("-s", f"{name}={value}")]


SITES = """[[site]]
hosts = "http://127.0.0.1:*"
auth = "basic"
user = "crawler"
password = "SECRET"
cookies = { id = "SECRET" }
headers = { X-Key = "SECRET" }
"""


def _check_heads(content: bytes) -> None:
    """As they were sent and came, without what the sites file adds, and cookies."""
    assert b"SECRET" not in content
    assert b64encode(b"crawler:SECRET") not in content
    assert content.count(b"\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n") == 4
    assert b"GET /a HTTP/1.1\r\nHost: 127.0.0.1:" in content
    assert b"\r\nX-Archive-Orig-Content-Encoding: gzip\r\nX-Archive-Orig-Content-Length:" in content
    assert b"\r\nContent-Length: 16\r\n\r\n<title>A</title>\r\n" in content


def test_a_warc_becomes_the_crawl_that_it_is_of(tmp_path: Path) -> None:
    """The same pages, bodies, links and times, without a request. A damaged one ends with status 1,
    what is none with 2 and no directory."""
    html = {"Content-Type": "text/html"}
    coding = {"Content-Encoding": "gzip", "Set-Cookie": "id=SECRET"}
    coded = Reply(headers=html | coding, body=gzip.compress(b"<title>A</title>"))
    busy = Reply(status=503, headers=html | {"Retry-After": "3600"}, body=b"busy")
    with ScriptedServer(
        {"/": "<a href=/a>a</a><a href=/gone>g</a><a href=/busy>b</a>", "/a": coded, "/busy": busy}
    ) as server:
        start = ["-a", f"start={server.url()}"]
        sites = tmp_path / "sites.toml"
        sites.write_text(SITES)
        sites.chmod(0o600)
        options = [*FAST_OPTIONS, "-s", "LARM_RETRY_TIMES=0", "-s", f"ITEM_PIPELINES={WARC}"]
        options += ["-s", f"LARM_SITES_FILE={sites}", "-s", "LARM_RETRY_AFTER_MAX_SECS=0.1"]
        ran = scrapy("crawl", "intranet", *start, *options, cwd=tmp_path)
        assert ran.status == 0, ran.err
        (warc,) = warc_files(tmp_path / "crawl" / "warc").values()
        _check_heads(gzip.decompress(warc.read_bytes()))
        assert server.requests("/a")[0].headers["x-key"] == "SECRET"
        asked = len(server.requests())
        other = ["-s", "LARM_DIR=other", *FAST_OPTIONS]
        ran = scrapy("import", str(warc), *other, cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert "stored      2 pages" in ran.out
        assert len(server.requests()) == asked
        with open_crawl(tmp_path / "crawl") as crawl, open_crawl(tmp_path / "other") as imported:
            before = {page.url: page for page in crawl.pages()}
            after = {page.url: page for page in imported.pages()}
            urls = set(map(server.url, ("/", "/a", "/gone", "/busy")))
            assert after.keys() == before.keys() == urls
            for url, page in after.items():
                assert (page.body, page.status, page.title) == (
                    before[url].body, before[url].status, before[url].title,
                )  # fmt: skip
                times = before[url].fetched, page.fetched
                assert times[0] is not None
                assert times[0].replace(microsecond=0) == times[1]
            assert set(imported.links()) == set(crawl.links())
        roots = ["-s", f"LARM_FILE_ROOTS={tmp_path / 'crawl'}"]
        seed = ["crawl", "intranet", "-a", f"start={warc.as_uri()}", *roots, *FAST_OPTIONS]
        ran = scrapy(*seed, "-s", "LARM_DIR=seeded", cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert len(server.requests()) == asked
        with open_crawl(tmp_path / "seeded") as seeded:
            assert {page.url: page.body for page in seeded.pages()} == {
                url: page.body for url, page in before.items()
            }
        whole = warc.read_bytes()
        warc.write_bytes(whole[: len(whole) * 2 // 3])
        ran = scrapy("import", str(warc), "-s", "LARM_DIR=cut", *FAST_OPTIONS, cwd=tmp_path)
        assert ran.status == 1
        assert ran.err.splitlines()[-1].endswith(" pages before that")
        assert records(tmp_path / "cut" / "store.log")
        ran = scrapy(*seed, "-s", "LARM_DIR=seeded cut", cwd=tmp_path)
        assert ran.status == 1
        assert ran.err.splitlines()[-1].endswith(" pages before that")
        warc.write_bytes(whole[:20])
        ran = scrapy(*seed, "-s", "LARM_DIR=no", cwd=tmp_path)
        assert ran.status == 2
        assert ran.err.splitlines()[-1].startswith(f"scrapy crawl: {warc}: it is damaged after ")
        ran = scrapy("import", "none", "-s", "LARM_DIR=no", *FAST_OPTIONS, cwd=tmp_path)
        last = ran.err.splitlines()[-1]
        assert (ran.status, last) == (2, "scrapy import: none: there is no such file or folder")
        assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("{root}/none.warc.gz", "there is no such file or folder"),
        ("{root}/out.warc.gz", "out.warc.gz: it leads out of LARM_FILE_ROOTS (docs/files.md)"),
        ("{root}/a.warc http://wiki/", "http://wiki/: expected WARC files as the only seeds"),
        ("{root}/../b.warc", "no file below LARM_FILE_ROOTS (docs/files.md)"),
    ],
)
def test_a_warc_that_is_no_seed_is_refused(tmp_path: Path, start: str, said: str) -> None:
    """Status 2, and nothing is made."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "out.warc.gz").symlink_to(tmp_path / "b.warc")
    options = ["-a", f"start={start.format(root=root.as_uri())}", "-s", f"LARM_FILE_ROOTS={root}"]
    ran = scrapy("crawl", "intranet", *options, cwd=tmp_path)
    assert ran.status == 2
    assert ran.err.splitlines()[-1].endswith(said)
    assert not (tmp_path / "crawl").exists()


def test_links_that_an_archive_lacks_are_fetched_later(tmp_path: Path) -> None:
    """By the crawl that goes on in the directory of the import, with resume=anyway."""
    with ScriptedServer({"/": "new start", "/new": "new"}) as server:
        name = server.url().split("/")[2]
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("<title>old</title><a href=/new>n</a>")
        ran = scrapy("import", str(tmp_path), *FAST_OPTIONS, cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert server.requests() == []
        start = ["-a", f"start={server.url()}"]
        ran = scrapy("crawl", "intranet", *start, *FAST_OPTIONS, cwd=tmp_path)
        assert ran.status == 1
        assert "resume=anyway" in ran.err
        start += ["-a", "resume=anyway"]
        ran = scrapy("crawl", "intranet", *start, *FAST_OPTIONS, cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert [one.path for one in server.requests()] == ["/robots.txt", "/new"]
        urls = [line["url"] for line in records(tmp_path / "crawl" / "store.log")]
        assert urls == [server.url(), server.url("/new")]


def _record(url: str, http: bytes, date: str = "2023-11-14T22:13:20Z", length: int = 0) -> bytes:
    return (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        f"Content-Length: {length or len(http)}\r\n\r\n"
    ).encode() + http + b"\r\n\r\n"  # fmt: skip


def test_a_hostile_archive_ends_as_any_other(tmp_path: Path) -> None:
    """Each status ends the import: 99999 never did. Refused records are listed, with status 0."""
    said = [
        "200",
        "99999",
        "0",
        "-1",
        "101",
        "199",
        "204",
        "304",
        "401",
        "429",
        "503",
        "599",
        "600",
    ]
    pages = [
        _record(f"http://h/{n}", f"HTTP/1.1 {status} X\r\nRetry-After: 9\r\n\r\nword".encode())
        for n, status in enumerate(said)
    ]
    future = _record("http://h/0", b"HTTP/1.1 200 OK\r\n\r\nfalse", "9999-01-01T00:00:00Z")
    (tmp_path / "a.warc").write_bytes(b"".join([*pages, future]))
    ran = scrapy("import", "a.warc", *FAST_OPTIONS, cwd=tmp_path, timeout=60)
    assert ran.status == 0, ran.err
    assert "a.warc: 1 entry refused: its date lies in the future (the record at byte" in ran.err
    assert "bad-response 6" in ran.out
    assert "'larm/import/refused': 1" in ran.err
    with open_crawl(tmp_path / "crawl") as crawl:
        found = {page.url: page for page in crawl.pages()}
    assert found["http://h/0"].body == b"word"
    assert "http://h/1" not in found


def test_links_in_a_mirror_make_no_local_file_a_page(tmp_path: Path) -> None:
    """A host folder, a folder below one and a file that are links; a pipe, which hung."""
    outside, host = tmp_path / "outside", tmp_path / "mirror" / "h"
    for folder in (outside, host):
        folder.mkdir(parents=True)
    (outside / "secret.html").write_text("<title>secretword</title>")
    (host / "index.html").write_text("<title>good</title>")
    (tmp_path / "mirror" / "wiki.example").symlink_to(outside)
    (host / "folder").symlink_to(outside)
    (host / "x.html").symlink_to(outside / "secret.html")
    (host / "hard.html").hardlink_to(outside / "secret.html")
    (tmp_path / "link").symlink_to(tmp_path / "mirror")
    ran = scrapy("import", "link", *FAST_OPTIONS, cwd=tmp_path, timeout=60)
    assert ran.status == 0, ran.err
    assert "link: 3 entries refused: it is a symbolic link (h/folder, h/x.html, wiki" in ran.err
    assert "1 entry refused: it has another name outside of the folder (a hard link)" in ran.err
    assert [line["url"] for line in records(tmp_path / "crawl" / "store.log")] == ["http://h/"]
    stored = [path.read_bytes() for path in (tmp_path / "crawl").rglob("*") if path.is_file()]
    assert not any(b"secretword" in data for data in stored)


def _has_open(pid: int, path: Path) -> bool:
    with suppress(OSError):  # a descriptor was closed meanwhile
        return any(one.resolve() == path for one in Path(f"/proc/{pid}/fd").iterdir())
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_import_ends_while_it_looks_through_an_archive(tmp_path: Path, number: int) -> None:
    """A record of 4 TB, that takes no place on the disk."""
    size = 1 << 42
    with (tmp_path / "a.warc").open("wb") as file:
        file.write(_record("http://h/", b"HTTP/1.1 200 OK\r\n\r\n", length=size))
        file.truncate(size)
    with (tmp_path / "log").open("w") as log:
        process = begin("import", "a.warc", *FAST_OPTIONS, cwd=tmp_path, out=log)
        try:
            end = time.monotonic() + 60
            while not _has_open(process.pid, tmp_path / "a.warc") and time.monotonic() < end:
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.05)
            process.send_signal(number)
            assert process.wait(10) == 1
        finally:
            process.kill()
    last = (tmp_path / "log").read_text().splitlines()[-1]
    name = signal.Signals(number).name
    assert last == f"scrapy import: ended by {name} before all archives were read"
    assert not (tmp_path / "crawl").exists()
