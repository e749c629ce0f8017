"""larmspider/plugins/export/export.py"""

from __future__ import annotations

import base64
import csv
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pyarrow import parquet

from larmspider import open_crawl
from larmspider.crawl.api import Crawl
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import Page
from larmspider.plugins.export.export import export
from tests.support.crawling import FAST, begin, records, scrapy
from tests.support.documents.corpus import zipped
from tests.support.servers.scripted import Request, ScriptedServer
from tests.support.stored_crawl import GONE, PDF, A, B, StoredCrawl, two_pages
from tests.support.warcs import check, pages_in

BODIES = {A: b"<title>A</title><p>new text", B: b"=1+1"}
PAIRS = {
    ("wiki:80", "blog.intra:81", 1),
    ("wiki:80", "wiki:80", 1),
    ("blog.intra:81", "wiki:80", 1),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_pages(tmp_path_factory.mktemp("export") / "crawl")


@pytest.fixture
def crawl(path: Path) -> Iterator[Crawl]:
    with open_crawl(path) as crawl:
        yield crawl


def test_json_lines_have_exact_values(crawl: Crawl, tmp_path: Path) -> None:
    """Pages come with their bodies if ``bodies`` is set."""
    out = tmp_path / "pages.jsonl"
    done = export(crawl, "pages", out, bodies=True)
    first, second = map(json.loads, out.read_text().splitlines())
    assert (done.rows, done.bytes) == (2, out.stat().st_size)
    assert {**first, "body_base64": ""} == {
        "url": A, "status": 200, "mime": "text/html", "size": 27, "title": "A", "depth": 0,
        "fetched": "2023-11-14T22:13:20.000Z", "from_page": B, "body_base64": "",
    }  # fmt: skip
    assert base64.b64decode(second["body_base64"]) == BODIES[B]


def test_csv_runs_no_formula(crawl: Crawl, tmp_path: Path) -> None:
    """As all CSV here."""
    out = tmp_path / "text.csv"
    assert export(crawl, "text", out).rows == 2
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["url"], row["text"]) for row in rows] == [(A, "new text"), (B, "'=1+1")]


def test_parquet_has_types(crawl: Crawl, tmp_path: Path) -> None:
    """Times and bytes have their own types; links come from each page's last version."""
    export(crawl, "pages", tmp_path / "pages.parquet", bodies=True)
    rows = parquet.read_table(tmp_path / "pages.parquet").to_pylist()
    assert {row["url"]: row["body"] for row in rows} == BODIES
    assert rows[0]["fetched"].isoformat() == "2023-11-14T22:13:20+00:00"
    export(crawl, "links", tmp_path / "links.parquet", host="wiki")
    links = parquet.read_table(tmp_path / "links.parquet").to_pylist()
    assert [(link["to_page"], link["type"]) for link in links] == [(B, 0), (PDF, 2)]


def test_warc_has_what_counts(crawl: Crawl, tmp_path: Path) -> None:
    """Old versions and pages that were taken out are not in it."""
    out = tmp_path / "pages.warc.gz"
    assert export(crawl, "pages", out).rows == 2
    check(out)
    assert pages_in(out) == BODIES


def test_the_graph_of_hosts(crawl: Crawl, tmp_path: Path) -> None:
    """As a table and as GraphML."""
    export(crawl, "hosts", tmp_path / "hosts.jsonl")
    rows = map(json.loads, (tmp_path / "hosts.jsonl").read_text().splitlines())
    assert {(row["from_host"], row["to_host"], row["links"]) for row in rows} == PAIRS
    export(crawl, "hosts", tmp_path / "hosts.graphml")
    graph = ElementTree.parse(tmp_path / "hosts.graphml").getroot()
    edges = graph.iter("{http://graphml.graphdrawing.org/xmlns}edge")
    assert {
        (one.get("source"), one.get("target"), int(one[0].text or "")) for one in edges
    } == PAIRS


def test_what_warc_files_keep_of_pages_that_were_taken_out(path: Path, tmp_path: Path) -> None:
    """Records from before the removal, by the exact form of their URL."""
    copy = shutil.copytree(path, tmp_path / "crawl")
    (removed,) = records(copy / "deleted.log")
    folder = copy / "warc"
    folder.mkdir()
    lines = [
        f"k {stamp} "
        + json.dumps({"url": url, "mime": "text/html", "offset": "7", "length": str(length)})
        for length, (stamp, url) in enumerate(
            [("19700101000000", "http://WIKI:80/gone"), ("20500101000000", GONE), ("1970", B)]
        )
    ]
    (folder / "a-00000.warc.gz").touch()
    (folder / "a-00000.cdxj").write_text("\n".join([*lines[:2], "k 1970010"]))
    with open_crawl(copy) as crawl:
        assert export(crawl, "removed", tmp_path / "removed.jsonl").rows == 1
    assert json.loads((tmp_path / "removed.jsonl").read_text()) == {
        "url": "http://WIKI:80/gone", "captured": "1970-01-01T00:00:00Z",
        "removed": removed["time"], "reason": "gone", "offset": 7, "length": 0,
        "file": str(folder / "a-00000.warc.gz"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("what", "name", "options", "message"),
    [
        ("page", "a.csv", {}, "page: expected one of pages, text, passages, links, hosts, removed"),
        (
            "links",
            "a.warc.gz",
            {},
            "a.warc.gz: expected a name that ends in one of .jsonl, .csv",
        ),
        ("hosts", "a.txt", {}, r"a.txt: expected .* .jsonl, .csv, .parquet, .graphml, for hosts"),
        ("links", "a.csv", {"bodies": True}, "--bodies: expected pages as one of jsonl, csv, pa"),
        (
            "links",
            "a.csv",
            {"since": "2026-01-31"},
            "--since: expected pages, text or passages, not links",
        ),
        ("pages", "a.csv", {"since": "now"}, "since=now: expected a date such as 2026-01-31"),
        ("pages", "no/a.csv", {}, "no/a.csv: expected the name of a file in a folder that exists"),
        ("pages", "there.csv", {}, "there.csv exists; --force replaces it"),
    ],
)
def test_refuses_what_cannot_be_done(
    crawl: Crawl, tmp_path: Path, what: str, name: str, options: dict[str, object], message: str
) -> None:
    """And writes nothing."""
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(ConfigError, match=message):
        export(crawl, what, tmp_path / name, **options)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]
    assert (tmp_path / "there.csv").read_text() == "mine"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet", "a.warc.gz"])
def test_a_file_that_cannot_be_written_is_named(crawl: Crawl, tmp_path: Path, name: str) -> None:
    """In one line: a folder of others, and a disk that runs full."""
    with pytest.raises(ConfigError, match=f"^/proc/{name} cannot be written: No such file"):
        export(crawl, "pages", Path("/proc") / name)
    (tmp_path / f"{name}.part").symlink_to("/dev/full")
    with pytest.raises(LarmspiderError, match=f"/{name} cannot be written: .*No space left"):
        export(crawl, "pages", tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_parquet_without_pyarrow(
    crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that says what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"Parquet needs pyarrow: pip install 'larmspider\[parq"):
        export(crawl, "links", tmp_path / "links.parquet")


def test_an_export_that_fails_leaves_the_file_that_was_there(path: Path, tmp_path: Path) -> None:
    """A page file that is gone: the error names it."""
    copy = tmp_path / "crawl"
    copy.mkdir()
    for file in path.iterdir():
        if not file.name.startswith(("pagefile", "links.log")):
            (copy / file.name).symlink_to(file)
    (tmp_path / "a.warc.gz").write_text("mine")
    with open_crawl(copy) as crawl:
        with pytest.raises(CrawlDirError, match=r"pagefile_0.pfl: No such"):
            export(crawl, "pages", tmp_path / "a.warc.gz", force=True)
        with pytest.raises(CrawlDirError, match=r"has no links.log, or an empty one"):
            export(crawl, "hosts", tmp_path / "a.csv")
    assert (tmp_path / "a.warc.gz").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.warc.gz", "crawl"]


def _endless(request: Request) -> str:
    """Page n leads to two further ones."""
    number = int(request.path[1:])
    links = (f"<a href=/{2 * number + one}>{2 * number + one}</a>" for one in (1, 2))
    return f"<title>{number}</title><p>page {number} {' '.join(links)}"


@pytest.mark.acceptance
def test_a_crawl_that_runs_is_exported(tmp_path: Path) -> None:
    """Whole pages, each once, and more of them later; the crawl goes on."""
    settings = FAST | {"LARM_CHECKPOINT_SECS": "0.5", "DOWNLOAD_DELAY": "0.005"}
    options = [f"-s{name}={value}" for name, value in settings.items()]
    said, log = tmp_path / "said", tmp_path / "crawl" / "store.log"
    limit = time.monotonic() + 120

    def exported(what: str, end: str, *more: str) -> Path:
        out = tmp_path / f"{what}.{end}"
        ran = scrapy("export", what, out.name, "--force", *more, cwd=tmp_path)
        assert ran.status == 0, ran.err
        assert process.poll() is None
        return out

    with ScriptedServer({"/robots.txt": (404, {}, b""), "*": _endless}) as server:
        with said.open("w") as out:
            start = ("crawl", "intranet", "-a", f"start={server.url('/0')}")
            process = begin(*start, *options, cwd=tmp_path, out=out)
        while not log.exists():
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < limit, said.read_text()
            time.sleep(0.05)
        for enough in (100, 200):
            pages: dict[str, Any] = {}
            while len(pages) < enough:  # of the last checkpoint
                assert time.monotonic() < limit, said.read_text()
                lines = exported("pages", "jsonl", "--bodies").read_text().splitlines()
                pages = {page["url"].rpartition("/")[2]: page for page in map(json.loads, lines)}
                assert len(lines) == len(pages)
            for number, page in pages.items():
                body = base64.b64decode(page["body_base64"])
                assert body.startswith(f"<title>{number}</title>".encode())
                assert len(body) == page["size"]
            for link in map(json.loads, exported("links", "jsonl").read_text().splitlines()):
                above, below = (link[end].rpartition("/")[2] for end in ("from_page", "to_page"))
                assert ((int(below) - 1) // 2, link["anchor"]) == (int(above), below)
            assert check(exported("pages", "warc.gz")) > len(pages)
            assert "graphml" in exported("hosts", "graphml").read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0, said.read_text()


def test_texts_of_parts_are_rows(tmp_path: Path) -> None:
    """An archive has the texts of its members alone."""
    url = "http://wiki/a.zip"
    stored = StoredCrawl(tmp_path / "crawl", refresh=True)
    body = zipped({"docs/in it.txt": "first words", "b.bin": b"\0\1"})
    stored.store(url, Page(url, url, body=body, mime="application/zip"))
    stored.checkpoint()
    stored.close()
    stored.make_frontier([], [FetchRecord(UrlState.STORED, time=1.0, status=200, url=url)])
    out = tmp_path / "text.jsonl"
    with open_crawl(tmp_path / "crawl") as crawl:
        export(crawl, "text", out)
    rows = {row["url"]: row["text"] for row in map(json.loads, out.read_text().splitlines())}
    assert rows[f"{url}#!/docs/in%20it.txt"] == "first words"
    assert list(rows) == [url, f"{url}#!/docs/in%20it.txt"]
