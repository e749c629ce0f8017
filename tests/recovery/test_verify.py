"""`scrapy verify`: each file of a crawl damaged in turn is named, mended, and made as it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scrapy.settings import Settings

from larmspider.checksums import SEAL
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.verify.check import check
from larmspider.crawl.verify.findings import Findings
from larmspider.files import lock
from larmspider.index.version import open_index
from tests.support.crawling import FAST, Ran, environment, scrapy
from tests.support.other_user import scrapy_as_other
from tests.support.servers.scripted import Reply, Request, ScriptedServer

pytestmark = pytest.mark.acceptance

PAGES = 40
STORES = (
    "deleted_log.DeletedLogPipeline", "page_files.PageFilesPipeline",
    "link_log.LinkLogPipeline", "fetch_log.FetchLogPipeline",
    "search_index.SearchIndexPipeline", "outbox.dummy.DummyReceiver",
)  # fmt: skip
SETTINGS = FAST | {
    "LARM_PAGEFILE_BYTES": "40000",
    "DOWNLOAD_MAXSIZE": "40000",
    "LARM_DOCUMENT_MAXSIZE_BYTES": "40000",
    "LARM_BLOB_BYTES": "1000000",
    "LARM_INDEX_HEAP_BYTES": "15000000",
    "LARM_FILTER_LOGS": "yes",
    "LARM_RETRY_TIMES": "0",
    "ITEM_PIPELINES": json.dumps(
        {f"larmspider.pipelines.{name}": order for order, name in enumerate(STORES)}
    ),
}


def page(request: Request) -> Reply:
    number = int(request.path.strip("/p") or 0)
    if number % 10 == 9:
        return Reply(404, {"Content-Type": "text/html"}, b"<h1>gone %d</h1>" % number)
    to = range(number + 1, min(PAGES, number + 5))
    links = "".join(f"<a href='/p{other}'>to {other}</a> " for other in to)
    text = f"<title>Page {number}</title><p>{f'What page {number} says. ' * 40}{links}"
    if number % 13 == 5:
        text += "x" * 60_000  # a body that has a file of its own
    return Reply(200, {"Content-Type": "text/html"}, text.encode())


class Crawls(NamedTuple):
    """``one`` is damaged, with files of ``two`` among others."""

    folder: Path
    server: ScriptedServer
    before: Any = None
    settings: Mapping[str, str] = SETTINGS

    def given(self) -> list[str]:
        return [part for key, value in self.settings.items() for part in ("-s", f"{key}={value}")]

    def run(self, name: str, seed: str, *more: str) -> Ran:
        start = f"start={self.server.url(seed)}"
        where = (*self.given(), "-s", f"LARM_DIR={name}")
        return scrapy("crawl", "intranet", "-a", start, *where, *more, cwd=self.folder)

    def verify(self, name: str, *more: str) -> Ran:
        return scrapy("verify", "--dir", name, *more, cwd=self.folder)

    def content(self, name: str) -> Any:
        """Everything stored: status and body by path, links, and pages in the index."""
        crawl = CrawlDir(self.folder / name)
        pages = {}
        for one in crawl.pages():
            file = crawl.body_file(one)
            body = crawl.body(one) if file is None else file.read_bytes()
            pages[_path(one.url)] = one.status, body
        links = sorted((_path(a), _path(b), text) for a, b, _, _, text in crawl.links())
        index, _ = open_index(crawl.index_dir)
        found = scrapy("search", "--dir", name, "--json", '"page 7 says"', cwd=self.folder)
        hits = [_path(hit["url"]) for hit in found.json["hits"]]
        return pages, links, index.searcher().num_docs, hits


def _path(url: str) -> str:
    return url.split("/", 3)[3]


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawls]:
    with ScriptedServer({"*": page, "/robots.txt": Reply(404)}) as server:
        crawls = Crawls(tmp_path_factory.mktemp("verified"), server)
        for name, seed, removed in (("one", "/p0", "/p8"), ("two", "/p3", "/p11")):
            ran = crawls.run(name, seed)
            assert ran.status == 0, ran.err
            ran = scrapy("remove", "--yes", server.url(removed), "--dir", name, cwd=crawls.folder)
            assert ran.status == 0, ran.err
        yield crawls._replace(before=crawls.content("one"))


def _flip(file: Path, bits: int) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= bits
    file.write_bytes(data)


def _of_another(file: Path) -> None:
    other = file.parents[len(file.relative_to(_root(file)).parts)] / "two"
    same = other / file.relative_to(_root(file))
    if not same.is_file():
        near = [*same.parent.glob(f"*{file.suffix}")] or [*other.rglob(f"*{file.suffix}")]
        same = max(near or [other / "crawl.json"], key=lambda one: one.stat().st_size)
    shutil.copyfile(same, file)


def _root(file: Path) -> Path:
    return next(path for path in file.parents if (path / "crawl.json").exists())


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a byte": lambda file: _flip(file, 0xFF),
    "a bit": lambda file: _flip(file, 1),
    "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
    "empty": lambda file: os.truncate(file, 0),
    "gone": lambda file: file.unlink(),
    "of another crawl": _of_another,
}
FILES = (
    "crawl.json", "store.log", "links.log", "fetch.log", "pagefile_0.pfl", "pagefile_*.pfl",
    "blobs/0-*", "frontier/data.mdb", "index/meta.json", "index/*.store", "index/*.term",
    "index/anchors/data.mdb", "index/larmspider-index.json", "outbox/0*.spool",
    "outbox/DummyReceiver.json", "outbox/committed.json", "index/unreached", "totals.json",
    "Monitor.log", "ScopeFilter.log", "sums/links.log", "sealed.json", "removed.txt",
)  # fmt: skip


def damaged(crawls: Crawls, name: str, file: str, damage: str) -> Path | None:
    """A copy of the crawl with one file damaged: the file, None where nothing has changed."""
    work = crawls.folder / name
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(crawls.folder / "one", work)
    path = max(work.glob(file)) if file.startswith("pagefile_*") else min(work.glob(file))
    return path if damage_it(path, damage) else None


def damage_it(path: Path, damage: str) -> bool:
    """Whether that has changed the file."""
    whole = path.read_bytes()
    DAMAGES[damage](path)
    return not path.exists() or path.read_bytes() != whole


@pytest.mark.parametrize("file", FILES)
def test_whatever_is_done_to_a_file_is_named(crawls: Crawls, file: str) -> None:
    for damage in DAMAGES:
        path = damaged(crawls, "named", file, damage)
        if path is None:
            continue
        found = check(path.parents[len(Path(file).parts) - 1], Settings(), lambda *_: None)
        assert is_named(path, found), (damage, found)


def is_named(path: Path, found: Findings) -> bool:
    """Checksums of another crawl speak against their subject: one of the two is of another."""
    named = [path]
    if path.parent.name == "sums":
        named.append(path.parents[1] / path.name)
    elif path.name == SEAL:
        named += path.parent.iterdir()
    return any(one.is_relative_to(damage.file) for one in named for damage in found.damages)


CASES = [(file, [*DAMAGES][number % len(DAMAGES)]) for number, file in enumerate(FILES)]


@pytest.mark.parametrize(
    ("file", "damage"), [*CASES, ("frontier/data.mdb", "gone"), ("links.log", "of another crawl")]
)
def test_a_damaged_file_is_mended_and_the_crawl_made_as_it_was(
    crawls: Crawls, file: str, damage: str
) -> None:
    if damaged(crawls, "work", file, damage) is None:
        pytest.skip("both crawls have the same")
    assert crawls.verify("work").status == 1
    for _ in range(2):
        mended = crawls.verify("work", "--repair")
        assert mended.status == 0, mended.out + mended.err
    ran = crawls.run("work", "/p0", "-a", "refresh=all")
    assert ran.status == 0, ran.err
    after = crawls.verify("work")
    assert after.status == 0, after.out
    assert "all is whole" in after.out
    assert crawls.content("work") == crawls.before


def test_a_file_in_place_of_the_frontier_is_named_and_mended(crawls: Crawls) -> None:
    shutil.copytree(crawls.folder / "one", crawls.folder / "odd")
    frontier = crawls.folder / "odd" / "frontier"
    shutil.rmtree(frontier)
    frontier.write_text("no folder")
    named = crawls.verify("odd")
    assert (named.status, "frontier/data.mdb: is gone" in named.out) == (1, True), named.err
    assert crawls.verify("odd", "--repair").status == 0
    assert crawls.run("odd", "/p0", "-a", "refresh=all").status == 0
    assert crawls.content("odd") == crawls.before


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _dead_link(file: Path) -> None:
    file.symlink_to("nowhere")


def _link_to_itself(file: Path) -> None:
    file.symlink_to(file.name)


ODD: dict[str, Callable[[Path], None]] = {
    "store.log": Path.mkdir,
    "links.log": _link_to_itself,
    "crawl.json": _pipe,
    "lock": _pipe,
    "index/meta.json": _dead_link,
    "sums/fetch.log": _pipe,
    "blobs/*": Path.mkdir,
}


def test_what_is_no_file_is_named_and_mended(crawls: Crawls) -> None:
    """Nothing waits for the writer of a pipe, and a start is refused."""
    work = crawls.folder / "no-files"
    shutil.copytree(crawls.folder / "one", work)
    odd = [(min(work.glob(file)), make) for file, make in ODD.items()]
    for file, make in odd:
        file.unlink()
        make(file)
    ran = crawls.verify("no-files")
    assert ran.status == 1
    named = [
        line for line in ran.out.splitlines() if "expected a file" in line or "nowhere" in line
    ]
    assert len(named) == len(odd) == 7
    mended = crawls.verify("no-files", "--repair")
    assert mended.status == 0, mended.out + mended.err
    (work / "Monitor.log").unlink()
    (work / "Monitor.log").mkdir()
    ran = crawls.run("no-files", "/p0")
    assert ran.status == 1
    assert "Monitor.log is a directory, expected a file; scrapy verify --repair" in ran.err
    assert crawls.verify("no-files", "--repair").status == 0
    ran = crawls.run("no-files", "/p0", "-a", "refresh=all")
    assert ran.status == 0, ran.err
    assert crawls.verify("no-files").status == 0
    assert crawls.content("no-files") == crawls.before


@pytest.mark.parametrize("more", [bytes(90), b"no line", None], ids=["NULs", "half", "again"])
def test_a_log_that_is_longer_than_the_last_run_left_it_is_cut(
    crawls: Crawls, more: bytes | None
) -> None:
    work = crawls.folder / "longer"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(crawls.folder / "one", work)
    logs = [work / name for name in ("store.log", "fetch.log", "Monitor.log", "ScopeFilter.log")]
    before = [log.read_bytes() for log in logs]
    for log, whole in zip(logs, before, strict=True):
        log.write_bytes(whole + (more or whole.splitlines(keepends=True)[-1]))
    ran = crawls.verify("longer")
    assert ran.status == 1
    assert ran.out.count("behind the end of the last run") == 4, ran.out
    ran = crawls.verify("longer", "--repair")
    assert ran.status == 0, ran.out
    assert [log.read_bytes() for log in logs] == before
    assert crawls.verify("longer").status == 0


def test_a_damaged_line_of_deleted_log_names_no_other_page(crawls: Crawls) -> None:
    shutil.copytree(crawls.folder / "one", crawls.folder / "removed")
    url = crawls.server.url("/p6")
    ran = scrapy("remove", "--yes", url, "--dir", "removed", cwd=crawls.folder)
    assert ran.status == 0, ran.err
    log = crawls.folder / "removed" / "deleted.log"
    sums = crawls.folder / "removed" / "sums" / "deleted.log"
    kept = sums.read_bytes()
    sums.unlink()  # no run has come since
    assert "sums/deleted.log: is gone" in crawls.verify("removed").out
    sums.write_bytes(kept)
    line = log.read_bytes()
    log.write_bytes(b"/p7".join(line.rsplit(b"/p6", 1)))
    assert str(log.relative_to(crawls.folder)) in crawls.verify("removed").out
    assert crawls.verify("removed", "--repair").status == 0
    assert (len(log.read_bytes()), b"/p7" in log.read_bytes()) == (len(line), False)


def test_links_of_a_crawl_without_store_log_are_mended(crawls: Crawls) -> None:
    """The frontier alone says which pages are stored. The crawl is whole, before and after."""
    stores = ("link_log.LinkLogPipeline", "fetch_log.FetchLogPipeline",
              "search_index.SearchIndexPipeline")  # fmt: skip
    listed = {f"larmspider.pipelines.{name}": order for order, name in enumerate(stores)}
    given = "-s", f"ITEM_PIPELINES={json.dumps(listed)}"
    assert crawls.run("bare", "/p0", *given).status == 0
    whole = crawls.verify("bare")
    assert (whole.status, "40 stored pages: all is whole" in whole.out) == (0, True), whole.out
    bare = CrawlDir(crawls.folder / "bare")
    links = sorted(bare.links())
    _flip(bare.path / "links.log", 1)
    assert crawls.verify("bare").status == 1
    mended = crawls.verify("bare", "--repair")
    assert (mended.status, "40 pages to be fetched again" in mended.out) == (0, True), mended.out
    assert crawls.run("bare", "/p0", *given, "-a", "refresh=all").status == 0
    assert crawls.verify("bare").status == 0
    assert sorted(bare.links()) == links


def test_checksums_of_logs_that_no_store_keeps_are_missed(crawls: Crawls) -> None:
    """After the first run, too."""
    shutil.copytree(crawls.folder / "one", crawls.folder / "logs")
    lost = [crawls.folder / "logs/sums" / name for name in ("Monitor.log", "ScopeFilter.log")]
    for file in lost:
        file.unlink()
    ran = crawls.verify("logs")
    assert [
        file for file in lost if f"{file.relative_to(crawls.folder)}: is gone" in ran.out
    ] == lost


def test_a_repair_that_is_killed_is_begun_again(crawls: Crawls) -> None:
    """Whenever it is killed."""
    for name, moment in (("frontier/data.mdb", 1.2), ("store.log", 1.6), ("index/meta.json", 2.2)):
        work = crawls.folder / "killed"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(crawls.folder / "one", work)
        _flip(work / name, 0xFF)
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "verify", "--dir", "killed", "--repair"],
            cwd=crawls.folder,
            env=environment(crawls.folder, "larmspider.settings"),
            stdout=subprocess.DEVNULL,
        )
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        mended = crawls.verify("killed", "--repair")
        assert mended.status == 0, mended.out + mended.err
        ran = crawls.run("killed", "/p0", "-a", "refresh=all")
        assert ran.status == 0, ran.err
        assert crawls.content("killed") == crawls.before


def test_a_repair_beside_a_crawl_is_refused(crawls: Crawls) -> None:
    with lock(crawls.folder / "one" / "lock"):
        ran = crawls.verify("one", "--repair")
        assert ran.status == 2
        assert len(ran.err.splitlines()) == 1
        assert "a crawl runs in" in ran.err
        checked = crawls.verify("one")
        assert checked.status == 0, checked.out


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, so root to become one")
@pytest.mark.parametrize("more", [[], ["--repair"]])
def test_what_this_user_may_not_read_is_no_damage(
    crawls: Crawls, more: list[str], tmp_path: Path
) -> None:
    ran = scrapy_as_other("verify", "--dir", str(crawls.folder / "one"), *more, cwd=tmp_path)
    assert ran.status == 2, ran.out
    assert len(ran.err.splitlines()) == 1
    assert "Permission denied" in ran.err


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_directory_that_is_no_crawl_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = scrapy("verify", "--repair", "--dir", name, cwd=tmp_path)
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
    assert not list((tmp_path / "empty").iterdir())


def test_a_worker_elsewhere_of_a_crawl_of_one_process_is_refused(crawls: Crawls) -> None:
    ran = crawls.verify("one", "--repair", "--shard", "nowhere")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "scrapy verify: --shard nowhere: expected a crawl that workers share\n"


def test_a_damaged_line_is_an_error_in_the_log_of_the_next_run(crawls: Crawls) -> None:
    """And a damaged frontier or index ends it before it has changed anything."""
    work = crawls.folder / "started"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(crawls.folder / "one", work)
    _flip(work / "links.log", 0xFF)
    ran = crawls.run("started", "/p0")
    assert ran.status == 0
    assert "links.log: damaged at byte" in ran.err
    assert "scrapy verify --repair repairs it" in ran.err
    for file in ("frontier/data.mdb", "index/meta.json"):
        shutil.rmtree(work)
        shutil.copytree(crawls.folder / "one", work)
        _flip(work / file, 1)
        before = (work / file).read_bytes()
        ran = crawls.run("started", "/p0")
        assert ran.status == 1
        last = ran.err.splitlines()[-1]
        assert "scrapy verify --repair" in last
        assert len(last) < 400  # Tantivy's error has all of meta.json in it
        assert (work / file).read_bytes() == before
