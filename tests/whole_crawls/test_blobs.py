"""Bodies that are too large for memory (LARM_BLOB_BYTES): in a crawl, visited again, killed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from larmspider import open_crawl
from larmspider.plugins.warc.pipeline import warc_files
from larmspider.search.searcher import Searcher
from larmspider.settings import ITEM_PIPELINES
from tests.support.crawling import FAST, begin, crawl, records, scrapy
from tests.support.recovery.killed_crawl import WAIT_SECS, run_through_kills
from tests.support.servers.scripted import Reply, Request, Route, ScriptedServer
from tests.support.servers.threaded import ThreadedServer
from tests.support.warcs import check, pages_in
from tests.support.workers.crew import shared_crawl

pytestmark = pytest.mark.acceptance

HTML, FILM = {"Content-Type": "text/html"}, {"Content-Type": "video/mp4"}
MB = 1_000_000
FILMS = 12
"""100 of them take a minute more, and no more memory."""
LIMITS = {
    "DOWNLOAD_MAXSIZE": "4000",
    "LARM_DOCUMENT_MAXSIZE_BYTES": "4500",
    "LARM_BLOB_BYTES": "100000",
}
WITH_WARC = {
    "ITEM_PIPELINES": json.dumps(
        ITEM_PIPELINES | {"larmspider.plugins.warc.pipeline.WarcPipeline": 250}
    )
}


def _body(number: int, size: int = 20_000) -> bytes:
    return random.Random(number).randbytes(size)


class Films(ThreadedServer):
    """A page with links to ``number`` films of 100 MB, which are made while they are sent: three
    that differ. Each third is a PDF, as far as its head says, and of unknown length."""

    size = 100 * MB

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.port = 0

    async def listen(self) -> list[asyncio.Server]:
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return [server]

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            if path == "/":
                links = "".join(f'<a href="/{n}.mp4">film {n}</a>' for n in range(self.number))
                writer.write(_head("text/html", len(links)) + links.encode())
            elif path.endswith(".mp4"):
                kind = int(path[1:-4]) % 3
                piece = bytes([kind]) * MB
                writer.write(_head("video/mp4", self.size) if kind else _UNKNOWN)
                for _ in range(self.size // MB):
                    writer.write(piece)
                    await writer.drain()
                if not kind:
                    return
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()


_UNKNOWN = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nConnection: close\r\n\r\n"


def _head(kind: str, size: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\r\n".encode()


def test_films_of_100_mb_stay_below_400_mb_of_memory(tmp_path: Path) -> None:
    """With 4 slots; documents that do not announce their size, too. Equal ones are one file."""
    options = FAST | {
        "CONCURRENT_REQUESTS": "4",
        "LARM_BLOB_BYTES": "128000000",
        "DOWNLOAD_TIMEOUT": "600",
    }
    with Films(FILMS) as server, (tmp_path / "said").open("w") as out:
        command = [f"-s{name}={value}" for name, value in options.items()]
        start = f"start=http://127.0.0.1:{server.port}/"
        process = begin("crawl", "intranet", "-a", start, *command, cwd=tmp_path, out=out)
        peak = 0
        while process.poll() is None:
            with suppress(OSError, StopIteration):
                status = Path(f"/proc/{process.pid}/status").read_text()
                line = next(one for one in status.splitlines() if one.startswith("VmHWM"))
                peak = max(peak, int(line.split()[1]))
            with suppress(TimeoutExpired):
                process.wait(0.2)
    said = (tmp_path / "said").read_text()
    assert process.returncode == 0, said
    print(f"peak {peak:,} kB")
    assert 0 < peak < 400_000
    stored = records(tmp_path / "crawl" / "store.log")
    assert [line["size"] for line in stored].count(str(100 * MB)) == FILMS
    assert len(list((tmp_path / "crawl" / "blobs").iterdir())) == 3


def _site() -> dict[str, Route]:
    big = {f"/{n}.mp4": (200, FILM, _body(n % 4)) for n in range(6)}
    links = "".join(f'<a href="{path}">the film {path}</a>' for path in [*big, "/a.pdf", "/b.pdf"])
    pdf = {"Content-Type": "application/pdf"}
    return {
        "/": (200, HTML, links.encode()),
        "/a.pdf": (200, pdf, _body(7, 5000)),
        "/b.pdf": (200, pdf, _body(8, 200_000)),
        **big,
    }


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(_site()) as server:
        yield server


def test_large_bodies_are_kept_found_and_given_back(server: ScriptedServer, tmp_path: Path) -> None:
    """By scrapy page, open_crawl, export and WARC; one that is still larger has no body."""
    ran = crawl(server.url("/"), tmp_path, **LIMITS, **WITH_WARC)
    assert ran.status == 0, ran.err
    folder = tmp_path / "crawl" / "blobs"
    digests = {hashlib.sha1(_body(n)).hexdigest() for n in range(4)}
    digests.add(hashlib.sha1(_body(7, 5000)).hexdigest())
    assert {path.name.partition("-")[2] for path in folder.iterdir()} == digests
    with open_crawl(tmp_path / "crawl") as found:
        pages = {page.url.rpartition("/")[2]: page for page in found.pages()}
        assert (pages["5.mp4"].body, pages["5.mp4"].size) == (b"", 20_000)
        assert (file := pages["5.mp4"].body_file) is not None
        assert file.read_bytes() == _body(1)
        assert pages["5.mp4"].text == ""
        assert pages[""].body_file is None
        assert (pages["b.pdf"].body_file, pages["b.pdf"].size) == (None, 0)
    said = {line["url"]: line for line in records(tmp_path / "crawl" / "fetch.log")}
    line = said[server.url("/a.pdf")]
    assert line["size"] == "5000"
    assert line["message"] == (
        "too-large: too large to read: it has 5,000 bytes, LARM_DOCUMENT_MAXSIZE_BYTES is 4,500"
    )
    searcher = Searcher.open(tmp_path / "crawl" / "index")
    (hit,) = searcher.search('"the film /3.mp4"').hits
    assert (hit.size, "too large to read" in hit.snippet.text) == (20_000, True)
    (tmp_path / "out").write_bytes(b"")
    with (tmp_path / "out").open("wb") as out:
        done = begin("page", server.url("/0.mp4"), cwd=tmp_path, out=out)
        assert done.wait(WAIT_SECS) == 0
    assert (tmp_path / "out").read_bytes() == _body(0)
    exported = tmp_path / "pages.warc.gz"
    assert scrapy("export", "pages", str(exported), cwd=tmp_path).status == 0
    for paths in ([exported], list(warc_files(tmp_path / "crawl" / "warc").values())):
        bodies = pages_in(*paths)
        assert all(check(path) for path in paths)
        assert bodies[server.url("/5.mp4")] == _body(1)
        assert bodies[server.url("/b.pdf")] == b""
    options = [f"-s{name}={value}" for name, value in LIMITS.items()]
    again = scrapy("import", str(exported), "-sLARM_DIR=again", *options, cwd=tmp_path)
    assert again.status == 0, again.err
    with open_crawl(tmp_path / "again") as found:
        assert (page := found.page(server.url("/5.mp4"))) is not None
        assert page.body_file is not None
        assert page.body_file.read_bytes() == _body(1)


def test_files_and_object_stores_have_blobs_too(tmp_path: Path) -> None:
    """A file of a share is copied; a receiver of bodies gets it from there."""
    share, objects = tmp_path / "share", tmp_path / "objects"
    share.mkdir()
    (share / "film.mp4").write_bytes(_body(1))
    receiver = "larmspider.plugins.objects.receiver.ObjectsReceiver"
    ran = crawl(
        f"{share.as_uri()}/",
        tmp_path,
        LARM_FILE_ROOTS=str(share),
        LARM_OBJECTS_URL=objects.as_uri(),
        ITEM_PIPELINES=json.dumps(ITEM_PIPELINES | {receiver: 600}),
        **LIMITS,
    )
    assert ran.status == 0, ran.err
    digest = hashlib.sha1(_body(1)).hexdigest()
    (kept,) = (tmp_path / "crawl" / "blobs").iterdir()
    assert (kept.name, kept.read_bytes()) == (f"0-{digest}", _body(1))
    assert (objects / "objects" / digest[:2] / digest).read_bytes() == _body(1)


def test_of_many_workers_they_are_read_and_merged(server: ScriptedServer, tmp_path: Path) -> None:
    shared_crawl(tmp_path, {"w1": server.url("/"), "w2": server.url("/")}, **LIMITS)
    merged = scrapy("merge", "whole", cwd=tmp_path)
    assert merged.status == 0, merged.err
    for name in ("crawl", "whole"):
        with open_crawl(tmp_path / name) as found:
            files = {page.url[-5:]: page.body_file for page in found.pages() if page.body_file}
            assert {at: file.read_bytes() for at, file in files.items()} == {
                f"{n}.mp4": _body(n % 4) for n in range(6)
            } | {"a.pdf": _body(7, 5000)}
    assert len(list((tmp_path / "whole" / "blobs").iterdir())) == 5


def test_a_visit_again_and_compact_keep_what_counts(server: ScriptedServer, tmp_path: Path) -> None:
    """A changed body is another file; the one that no page names any more goes."""
    assert crawl(server.url("/"), tmp_path, **LIMITS).status == 0
    server.routes["/2.mp4"] = (200, FILM, _body(99))
    ran = crawl(server.url("/"), tmp_path, refresh="all", **LIMITS)
    assert ran.status == 0, ran.err
    folder = tmp_path / "crawl" / "blobs"
    assert len(list(folder.iterdir())) == 6
    with open_crawl(tmp_path / "crawl") as found:
        assert (page := found.page(server.url("/2.mp4"))) is not None
        assert page.body_file is not None
        assert page.body_file.read_bytes() == _body(99)
    assert scrapy("compact", cwd=tmp_path).status == 0
    kept = {path.name.partition("-")[2] for path in folder.iterdir()}
    assert hashlib.sha1(_body(2)).hexdigest() not in kept
    assert len(kept) == 5
    removed = scrapy("remove", "--yes", "--erase", server.url("/3.mp4"), cwd=tmp_path)
    assert removed.status == 0, removed.err
    assert len(list(folder.iterdir())) == 4
    server.routes["/1.mp4"] = (200, FILM, _body(98))
    assert crawl(server.url("/"), tmp_path, refresh="all", **LIMITS).status == 0
    with open_crawl(tmp_path / "crawl") as found:
        files = {page.url[-5:]: page.body_file for page in found.pages() if page.body_file}
    assert files["1.mp4"].read_bytes() == _body(98)
    assert files["5.mp4"].read_bytes() == _body(1)
    assert "3.mp4" not in files


def test_what_kills_leave_is_whole(tmp_path: Path) -> None:
    """Each body once, and no file that no page names."""

    def film(request: Request) -> Reply:
        return Reply(200, FILM, _body(int(request.path[1:-4]) % 60), delay=0.05)

    links = "".join(f'<a href="/{n}.mp4">{n}</a>' for n in range(90)).encode()
    routes: dict[str, Route] = {f"/{n}.mp4": film for n in range(90)}
    options = FAST | LIMITS | WITH_WARC
    options |= {"LARM_CHECKPOINT_SECS": "0.1", "CONCURRENT_REQUESTS_PER_DOMAIN": "2"}
    with ScriptedServer({"/": (200, HTML, links), **routes}) as server:
        run_through_kills(server, server.url("/"), tmp_path, **options)
    with open_crawl(tmp_path / "crawl") as found:
        stored = {page.url: page.body_file for page in found.pages() if page.body_file}
    numbers = {int(url.rpartition("/")[2][:-4]): file for url, file in stored.items()}
    assert {n: file.read_bytes() for n, file in numbers.items()} == {
        n: _body(n % 60) for n in range(90)
    }
    assert set((tmp_path / "crawl" / "blobs").iterdir()) == set(numbers.values())
    assert len(set(numbers.values())) == 60
    assert len(records(tmp_path / "crawl" / "store.log")) == 91
    paths = list(warc_files(tmp_path / "crawl" / "warc").values())
    assert all(check(path) for path in paths)
    assert len(pages_in(*paths)) == 91


def test_a_full_disk_ends_the_crawl_which_goes_on_later(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """RLIMIT_FSIZE stands for it: no file may be as large as a body."""
    options = FAST | LIMITS
    command = [f"-s{name}={value}" for name, value in options.items()]
    command = ["crawl", "intranet", "-a", f"start={server.url('/')}", *command]
    server.routes["/3.mp4"] = (200, FILM, _body(3, 90_000))
    with (tmp_path / "said").open("w") as out:
        process = begin(*command, "-sLARM_INDEX_HEAP_BYTES=15000000", cwd=tmp_path, out=out)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (85_000, 85_000))
        assert process.wait(WAIT_SECS) == 1
    said = (tmp_path / "said").read_text()
    assert "the crawl broke off: a body cannot be written: " in said
    assert not list((tmp_path / "crawl" / "blobs").glob(".*"))
    assert crawl(server.url("/"), tmp_path, **LIMITS).status == 0
    with open_crawl(tmp_path / "crawl") as found:
        assert (page := found.page(server.url("/3.mp4"))) is not None
        assert page.size == 90_000
