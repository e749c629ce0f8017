"""scrapy merge: one directory of many workers' directories, which every command reads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from larmspider.crawl.worker_dirs import CrawlOfWorkers, open_crawl
from larmspider.errors import CrawlDirError
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.pipelines.records import open_appending
from larmspider.search.searcher import Searcher
from larmspider.workdir.directory import locked
from larmspider.workdir.frames import compressed_name
from larmspider.workers.merge import merge
from tests.support.crawling import crawl, records, scrapy
from tests.support.documents.corpus import zipped
from tests.support.servers.scripted import Route, ScriptedServer
from tests.support.workers.crew import describe, shared_crawl

pytestmark = pytest.mark.acceptance
HTML = {"Content-Type": "text/html"}


def site(name: str, other: str) -> dict[str, Route]:
    """A start page with links to three pages, one that is gone, and the other site."""
    links = "".join(f"<a href=/{n}>{name} {n}</a>" for n in (1, 2, 3, "gone"))
    links += f"<a href={other}/>{other}</a><a href=/1>walrus</a><a href=/docs.zip>docs</a>"
    routes: dict[str, Route] = {"/": (200, HTML, f"<title>{name}</title>{links}".encode())}
    for n in (1, 2, 3):
        text = f"<title>{name} page {n}</title>siren of {name} <a href=/gone>gone</a>"
        routes[f"/{n}"] = (200, HTML, text.encode())
    member = zipped({"guide/start.md": f"# Narwhals of {name}"})
    routes["/docs.zip"] = (200, {"Content-Type": "application/zip"}, member)
    return routes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of three workers: one for each of two hosts, and one that has the pages of the first
    host again, stored later."""
    folder = tmp_path_factory.mktemp("merge")
    with (
        ScriptedServer({}, "127.33.0.11") as atlas,
        ScriptedServer({}, "127.33.0.12") as boreas,
    ):
        atlas.routes.update(site("atlas", f"http://127.33.0.12:{boreas.port}"))
        boreas.routes.update(site("boreas", f"http://127.33.0.11:{atlas.port}"))
        shared_crawl(folder, {"w1": atlas.url("/"), "w2": boreas.url("/"), "w3": atlas.url("/")})
    assert scrapy("merge", "whole", cwd=folder).status == 0
    return folder


def test_each_page_is_there_once_with_its_body(folder: Path) -> None:
    """The copies of the worker that stored them last, and the other host's."""
    many, one = open_crawl(folder / "crawl"), open_crawl(folder / "whole")
    every = {page.url: many.body(page) for page in many.pages()}
    merged = [page.url for page in one.pages()]
    assert sorted(merged) == sorted(every)
    assert len(merged) == 12, "of both hosts: start page, three pages, the error page, an archive"
    assert {page.url: one.body(page) for page in one.pages()} == every


def test_the_logs_are_those_of_all(folder: Path) -> None:
    """fetch.log in the order of the times; links.log without the second copies."""
    fetches = records(folder / "whole" / "fetch.log")
    each = [records(folder / "crawl" / name / "fetch.log") for name in ("w1", "w2", "w3")]
    assert len(fetches) == sum(map(len, each))
    assert [line["time"] for line in fetches] == sorted(line["time"] for line in fetches)
    links = records(folder / "whole" / "links.log")
    assert len(links) == sum(len(records(folder / "crawl" / w / "links.log")) for w in ("w1", "w2"))


def test_the_commands_say_of_it_what_they_say_of_the_workers(folder: Path) -> None:
    """Search, also by texts of links; broken links; a page."""
    for words, hits in (("siren", 6), ("walrus", 2), ("narwhals", 2)):
        found = {}
        for name in ("crawl", "whole"):
            answer = scrapy("search", words, "--json", "--dir", name, cwd=folder).json
            found[name] = sorted(hit["url"] for hit in answer["hits"])
        assert len(found["whole"]) == hits
        assert set(found["crawl"]) <= set(found["whole"])
    assert all(url.endswith("/docs.zip#!/guide/start.md") for url in found["whole"])
    broken = [
        scrapy("links", "--broken", "--json", "--dir", name, cwd=folder).json["broken"]
        for name in ("crawl", "whole")
    ]
    for links in broken:
        assert [(link["result"], link["pages"], len(link["carriers"])) for link in links] == [
            ("404", 4, 4)
        ] * 2
    url = broken[1][0]["carriers"][0]["page"]
    for command in (("page", url), ("explain", url), ("hosts",), ("report",)):
        ran = scrapy(*command, "--dir", "whole", cwd=folder)
        assert (ran.status, "Traceback" in ran.err) == (0, False), ran.err
    hosts = [
        scrapy("hosts", "--json", "--dir", name, cwd=folder).json["hosts"]
        for name in ("crawl", "whole")
    ]
    counts = [[(row["host"], row["stored"], row["failed"]) for row in rows] for rows in hosts]
    assert counts[0] == counts[1]
    assert len(counts[1]) == 2
    assert scrapy("explain", url, "--json", "--dir", "whole", cwd=folder).json["state"] == "stored"


def test_what_a_killed_worker_has_indexed_and_not_committed_is_left_out(
    folder: Path, tmp_path: Path
) -> None:
    """A page that waits in its index: one without a worker, and one that another worker has."""
    root = shutil.copytree(folder / "crawl", tmp_path / "crawl")
    whole = Searcher.open(folder / "whole" / "index")
    urls = [page.url for page in open_crawl(root).pages()]
    [other] = [url for url in urls if "127.33.0.12" in url and url.endswith("/3")]
    for url in ("http://127.33.0.11/new", other):
        with IndexWriter(root / "w1" / "index", collects=True) as index:
            index.add(Page(url, normalized=url, exact=url, text="Kraken", fetched=2e9))
    crawl = open_crawl(root)
    assert isinstance(crawl, CrawlOfWorkers)
    merge(crawl, tmp_path / "whole", page_file_bytes=1 << 20, heap_bytes=1 << 25)
    found = Searcher.open(tmp_path / "whole" / "index")
    assert found.search("kraken").total == 0
    assert found.search("siren OR narwhals").total == whole.search("siren OR narwhals").total


def test_no_crawl_goes_on_in_it(folder: Path) -> None:
    """Its queues are empty; and it is no crawl of many workers that could be merged again."""
    manifest = json.loads((folder / "whole" / "crawl.json").read_text())
    ran = crawl(manifest["seeds"][0], folder, LARM_DIR="whole")
    assert ran.status == 1
    assert "was made by 'scrapy merge'" in ran.err
    ran = scrapy("merge", "again", "--dir", "whole", cwd=folder)
    assert ran.status == 2
    assert "expected the crawl of many workers" in ran.err


def test_what_is_in_the_way_is_named_and_nothing_is_left(folder: Path, tmp_path: Path) -> None:
    """A directory with files, a worker at work; then the target is not there."""
    root = shutil.copytree(folder / "crawl", tmp_path / "crawl")
    describe(root, ["w1", "w2", "w3"])
    ran = scrapy("merge", "crawl", cwd=tmp_path)
    assert ran.status == 2
    assert "expected an empty directory" in ran.err
    for inside in ("crawl/whole", "crawl/w1/whole"):
        ran = scrapy("merge", inside, cwd=tmp_path)
        assert (ran.status, "expected a directory outside of" in ran.err) == (2, True)
    with locked(root / "w2" / "lock"):
        ran = scrapy("merge", "whole", cwd=tmp_path)
    assert (ran.status, "is in use" in ran.err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]


def test_a_directory_that_lacks_what_was_committed_is_refused(folder: Path, tmp_path: Path) -> None:
    """Cut logs, a missing frontier or index: named, and not merged as if there was no more."""
    for name, said in (
        ("links.log", "can be read up to byte 10 of"),
        ("fetch.log", "can be read up to byte 10 of"),
        ("frontier", "is missing: the committed length of logs is unknown"),
        ("index", "is missing or broken, other workers have one"),
    ):
        root = shutil.copytree(folder / "crawl", tmp_path / name)
        path = root / "w2" / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            os.truncate(path, 10)
        crawl = open_crawl(root)
        assert isinstance(crawl, CrawlOfWorkers)
        with pytest.raises(CrawlDirError, match=said):
            merge(crawl, tmp_path / "whole", page_file_bytes=1 << 20, heap_bytes=1 << 25)
        assert not (tmp_path / "whole").exists()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


@pytest.mark.parametrize("name", ["links.log", "fetch.log", "store.log"])
def test_a_compressed_log_with_a_damaged_frame_is_refused(
    folder: Path, tmp_path: Path, name: str
) -> None:
    """One of which only the header of a frame is damaged has all, and is merged."""
    root = shutil.copytree(folder / "crawl", tmp_path / "crawl")
    log = root / "w2" / name
    lines = log.read_bytes().splitlines(keepends=True)
    log.unlink()
    file = open_appending(log, compressed=True)
    for at in range(0, len(lines), 2):
        file.write(b"".join(lines[at : at + 2]))
        file.flush()
    file.close()
    packed = compressed_name(log)
    sound = packed.read_bytes()
    packed.write_bytes(flipped(sound, 60))
    ran = scrapy("merge", "whole", cwd=tmp_path)
    assert ran.status == 1
    assert f"{packed}: damaged at byte 0: " in ran.err
    assert "Traceback" not in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]
    packed.write_bytes(flipped(sound, 9))
    ran = scrapy("merge", "whole", "--json", cwd=tmp_path)
    assert f"{packed}: damaged at byte 0: the header of a frame" in ran.err
    crawl = open_crawl(folder / "whole")
    assert (ran.json["links"], ran.json["fetches"], ran.json["pages"]) == (
        len(records(folder / "whole" / "links.log")),
        len(records(folder / "whole" / "fetch.log")),
        len(list(crawl.pages())),
    )
