"""A store that fails on a page costs that page; one that cannot write at all ends the crawl."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import UrlState
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from tests.support.crawling import Ran, crawl, records, scrapy
from tests.support.recovery.failing_stores import settings_with
from tests.support.recovery.killed_crawl import (
    KilledCrawl,
    RunningCrawl,
    Site,
    counts,
    description,
    visit,
    wait_until,
)
from tests.support.servers.scripted import Reply, Request, ScriptedServer

Start = Callable[..., ScriptedServer]
PAGES = [f"/{number}" for number in range(30)]
INDEX = "larmspider.pipelines.search_index.SearchIndexPipeline"


def _links(*paths: str) -> str:
    return "<title>home</title>" + "".join(f'<a href="{path}">x</a>' for path in paths)


@pytest.mark.parametrize(
    ("store", "state", "reason"),
    [
        ("Raises", UrlState.FAILED, "a store raised ValueError('no bad pages here')"),
        ("Drops", UrlState.REFUSED, "no bad pages here"),
    ],
)
@pytest.mark.parametrize("place", [100, 350, 900])
def test_a_page_that_a_store_does_not_take_is_done_with(
    scripted_server: Start, tmp_path: Path, store: str, state: UrlState, reason: str, place: int
) -> None:
    """Its end has the reason, the others are stored, and the next run does not fetch it again."""
    server = scripted_server({"/": _links("/bad", "/good"), "/bad": "b", "/good": "g"})
    module = settings_with(tmp_path, {store: place})
    for _ in range(2):
        with RunningCrawl(server.url(), tmp_path, settings_module=module) as crawl:
            assert crawl.end() == 0, crawl.err
    found = visit(crawl.crawl, server.url("/bad"))
    assert found is not None
    assert (found.state, found.reason) == (state, reason)
    total = counts(crawl.crawl)
    assert (total.discovered, total.stored, total.failed + total.refused) == (3, 2, 1)
    assert len(server.requests("/bad")) == 1
    assert len(server.requests("/good")) == 1


def test_checkpoints_go_on_after_a_store_raised(scripted_server: Start, tmp_path: Path) -> None:
    """While the crawl runs, the failed page and the other pages get their committed ends."""
    server = scripted_server(
        {
            "/": _links("/bad", "/good", "/late"),
            "/bad": "b",
            "/good": "g",
            "/late": Reply(delay=300),
        }
    )
    module = settings_with(tmp_path, {"Raises": 350})
    with RunningCrawl(server.url(), tmp_path, settings_module=module) as crawl:
        wait_until(
            lambda: all(visit(crawl.crawl, server.url(path)) for path in ("/", "/bad", "/good")),
            "a checkpoint with the page that failed",
        )
        assert crawl.running
        assert counts(crawl.crawl).failed == 1


def _complete(server: ScriptedServer, crawl: Path) -> None:
    urls = [server.url(path) for path in ["/", *PAGES]]
    assert Counter(line["url"] for line in records(crawl / "store.log")) == Counter(urls)
    assert Counter(line["url"] for line in records(crawl / "fetch.log")) == Counter(urls)
    assert len(records(crawl / "links.log")) == len(PAGES)
    assert counts(crawl).stored == len(urls)
    found = Searcher.open(crawl / "index").search(SearchRequest("word", limit=100, copies=True))
    assert sorted(hit.url for hit in found.hits) == sorted(urls[1:])


@pytest.fixture
def server(scripted_server: Start) -> ScriptedServer:
    """30 pages that take their time, so that checkpoints fall between them."""
    return scripted_server(
        {
            "/": _links(*PAGES),
            **{
                path: Reply(headers={"Content-Type": "text/html"}, body=b"word", delay=0.2)
                for path in PAGES
            },
        }
    )


@pytest.mark.acceptance
def test_an_index_that_cannot_commit_ends_the_crawl(server: ScriptedServer, tmp_path: Path) -> None:
    """Status 1 and a message; with an index that can, the same command ends complete."""
    module = settings_with(tmp_path, {INDEX: None, "UncommittedIndex": 500})
    connections = {"CONCURRENT_REQUESTS_PER_DOMAIN": "2"}
    with RunningCrawl(server.url(), tmp_path, settings_module=module, **connections) as crawl:
        assert crawl.end() == 1
    assert crawl.err.count("The crawl stops because of an error") == 1
    assert "scrapy crawl: the crawl broke off: UncommittedIndex cannot write: " in crawl.err
    assert "no such device; run the same command to continue" in crawl.err
    assert description(crawl.crawl)["end"] == "broken"
    assert counts(crawl.crawl).stored < len(PAGES)
    with RunningCrawl(server.url(), tmp_path, **connections) as crawl:
        assert crawl.end() == 0, crawl.err
    _complete(server, crawl.crawl)


@pytest.mark.acceptance
def test_an_index_that_went_away_ends_the_crawl_until_it_is_back(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Moved away while the crawl runs: it breaks off, and does not begin again without it."""
    connections = {"CONCURRENT_REQUESTS_PER_DOMAIN": "2"}
    last = server.routes[PAGES[-1]]
    server.routes[PAGES[-1]] = Reply(delay=300)  # it does not end before the index is away
    with RunningCrawl(server.url(), tmp_path, **connections) as crawl:
        wait_until(lambda: bool(visit(crawl.crawl, server.url("/3"))), "a few pages")
        index, away = crawl.crawl / "index", tmp_path / "index"
        index.rename(away)
        assert crawl.end() == 1
    assert "cannot write the index" in crawl.err
    assert "scrapy crawl: the crawl broke off: " in crawl.err
    assert not index.exists()
    with RunningCrawl(server.url(), tmp_path, **connections) as crawl:
        assert crawl.end() == 1
    assert f"scrapy crawl: {index}: the search index is gone" in crawl.err
    away.rename(index)
    server.routes[PAGES[-1]] = last
    with RunningCrawl(server.url(), tmp_path, **connections) as crawl:
        assert crawl.end() == 0, crawl.err
    _complete(server, crawl.crawl)


def test_a_store_that_cannot_open_commits_nothing(scripted_server: Start, tmp_path: Path) -> None:
    """The first store refuses to open, so the others never do: their positions stay."""
    server = scripted_server({"/": _links("/late"), "/late": Reply(delay=300)})
    with RunningCrawl(server.url(), tmp_path) as crawl:
        wait_until(lambda: bool(visit(crawl.crawl, server.url())), "a page")
    with FrontierReader(crawl.crawl / "frontier") as frontier:
        before = frontier.positions()
    module = settings_with(tmp_path, {INDEX: 100})
    other = {"settings_module": module, "LARM_INDEX_STEMMER": "german"}
    with RunningCrawl(server.url(), tmp_path, **other) as crawl:
        assert crawl.end() == 1
    assert "scrapy crawl: " in crawl.err
    assert "stemmed for english" in crawl.err
    with FrontierReader(crawl.crawl / "frontier") as frontier:
        assert frontier.positions() == before
    server.routes["/late"] = "late"
    with RunningCrawl(server.url(), tmp_path) as crawl:
        assert crawl.end() == 0, crawl.err
    stored = [line["url"] for line in records(crawl.crawl / "store.log")]
    assert stored == [server.url(), server.url("/late")]


def test_two_stores_of_one_name_are_refused(scripted_server: Start, tmp_path: Path) -> None:
    """Positions are kept by name: each would go back to the other's."""
    server = scripted_server({"/": "home"})
    module = settings_with(tmp_path, {"LinkLogPipeline": 350})
    with RunningCrawl(server.url(), tmp_path, settings_module=module) as crawl:
        assert crawl.end() == 2
        assert "two stores called LinkLogPipeline" in crawl.err.splitlines()[-1]
    assert server.requests() == []


# A full disk ends the crawl with a message; when there is room again, nothing is missing.


BROKE_OFF = re.compile(
    r"^scrapy crawl: the crawl broke off: (.*?);"
    r" (?:make room, and |raise the limit \(ulimit -f\), and )?run the same",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def _break(crawl: KilledCrawl, file_limit: int = 0) -> str:
    """A run that must break off; its reason."""
    assert not crawl.run(None, file_limit=file_limit, may_break=True)
    found = BROKE_OFF.search(crawl.log)
    assert found, crawl.log
    assert crawl.log.count("The crawl stops because of an error") <= 1
    return found[1]


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("limit", "page_file", "compression", "first"),
    [
        (200_000, 1_000_000, "", r"File too large: '.*/pagefile_0.pfl'"),
        # links.log compressed: it would be the first to reach the limit on a busy machine
        (
            *(70_000, 60_000, "zstd"),
            r"cannot write (anchors|the frontier in .*): .*mdb_txn_commit|cannot write the index: ",
        ),
    ],
)
def test_files_that_may_not_grow_end_the_crawl(
    site: Site, tmp_path: Path, limit: int, page_file: int, compression: str, first: str
) -> None:
    """RLIMIT_FSIZE: a write fails with EFBIG, of a page file or of an LMDB table, and names it."""
    site.seen.clear()
    sizes = {"LARM_PAGEFILE_BYTES": str(page_file), "DOWNLOAD_MAXSIZE": "60000"}
    crawl = KilledCrawl(site, tmp_path, LARM_COMPRESSION=compression, **sizes)
    for run in range(2):
        reason = _break(crawl, limit)
        assert run or re.search(first, reason), reason
        assert crawl.log.count("Traceback") <= 16, "not one for each page that waits"
        assert description(crawl.crawl)["end"] == "broken"
    assert crawl.run(None)
    crawl.check_end()


@pytest.mark.acceptance
def test_a_crawl_that_cannot_write_crawl_json_leaves_nothing_in_the_way(
    site: Site, tmp_path: Path
) -> None:
    """The next run would refuse a directory with files and without crawl.json."""
    site.seen.clear()
    crawl = KilledCrawl(site, tmp_path)
    assert not crawl.run(None, file_limit=2_000, may_break=True)
    assert not (crawl.crawl / "crawl.json").exists()
    assert crawl.run(None), crawl.log
    crawl.check_end()


def _fill(path: Path) -> None:
    """Write until there is no room."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4096))


def test_a_full_file_system_ends_the_crawl(
    site: Site, small_disk: tuple[Path, Callable[[str], None]]
) -> None:
    """ENOSPC, also at the next start while it is still full; with room it ends complete."""
    site.seen.clear()
    disk, resize = small_disk
    crawl = KilledCrawl(site, disk)
    assert "No space left on device" in _break(crawl)
    _fill(disk / "rest")
    assert not crawl.run(None, may_break=True)
    assert "No space left on device" in crawl.log
    (disk / "rest").unlink()
    resize("100m")
    assert crawl.run(None)
    crawl.check_end()


@pytest.fixture
def quota() -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A folder with a quota of 8 MB, and a function that gives it another one. btrfs has quotas
    without a daemon, and most kernels have it."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("mkfs.btrfs is not installed (Debian package btrfs-progs)")
    with tempfile.TemporaryDirectory(prefix="quota-", dir="/tmp") as name:
        image, disk = Path(name) / "image", Path(name) / "disk"
        folder = disk / "limited"
        disk.mkdir()
        with image.open("wb") as file:
            file.truncate(400 << 20)

        def run(*words: str | Path) -> None:
            subprocess.run(words, check=True, capture_output=True, text=True)

        try:
            run("mkfs.btrfs", "--quiet", "--mixed", image)
            run("mount", "-o", "loop", image, disk)
        except subprocess.CalledProcessError as failure:
            pytest.skip(f"btrfs cannot be mounted here: {failure.stderr.strip()}")
        try:
            run("btrfs", "quota", "enable", disk)
            run("btrfs", "subvolume", "create", folder)
            run("btrfs", "qgroup", "limit", "8M", folder)
            folder.chmod(0o777)
            yield folder, lambda size: run("btrfs", "qgroup", "limit", size, folder)
        finally:
            run("umount", "--lazy", disk)


def _large_page(request: Request) -> Reply:
    number = int(request.path.strip("/") or 0)
    others = range(number + 1, min(150, number + 9))
    links = "".join(f'<a href="/{other}">x</a>' for other in others)
    text = f"<title>{number}</title>{links}<p>{f'page {number} ' * 10_000}"
    return Reply(200, {"Content-Type": "text/html"}, text.encode())


@pytest.mark.acceptance
def test_a_quota_ends_the_crawl(
    scripted_server: Start, quota: tuple[Path, Callable[[str], None]]
) -> None:
    """EDQUOT, on a file system with much room. btrfs also refuses to change a mapped page, which
    ends the process: the next start then says why. With more quota the crawl ends complete."""
    server = scripted_server({"*": _large_page, "/robots.txt": Reply(404)})
    folder, limit = quota
    words = "Disk quota exceeded"
    first = crawl_in(folder, server)
    assert first.status in (1, -signal.SIGBUS)
    assert words in first.err or "Fatal Python error: Bus error" in first.err
    _fill(folder / "rest")
    second = crawl_in(folder, server)
    assert second.status == 1, second.err
    assert f"cannot be written: {words}; make room, and run the same command" in second.err
    (folder / "rest").unlink(missing_ok=True)
    limit("200M")
    last = crawl_in(folder, server)
    assert last.status == 0, last.err
    stored = [line["url"] for line in records(folder / "crawl" / "store.log")]
    assert sorted(stored) == sorted(server.url(f"/{n or ''}") for n in range(150))
    assert scrapy("verify", cwd=folder).status == 0


def crawl_in(folder: Path, server: ScriptedServer) -> Ran:
    return crawl(server.url(), folder, LARM_CHECKPOINT_SECS="0.5", LARM_PAGEFILE_BYTES="50000000")
