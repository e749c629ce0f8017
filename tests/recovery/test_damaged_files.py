"""Bytes after the last checkpoint are dropped at the start; bytes missing before it are an
error."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from larmspider.frontier.storage.lmdb_reader import FrontierReader
from tests.support.crawling import crawl as run_crawl
from tests.support.recovery.killed_crawl import Kill, KilledCrawl, Site
from tests.support.servers.scripted import ScriptedServer

LOGS = ("store.log", "links.log", "fetch.log")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledCrawl]:
    """A crawl that was killed after some hundred pages."""
    with Site() as site:
        crawl = KilledCrawl(site, tmp_path_factory.mktemp("killed"))
        log = crawl.crawl / "store.log"
        while not log.exists() or log.stat().st_size <= 1000:  # a busy machine commits few pages
            assert not crawl.run(Kill("committed", 1)), "the crawl ended"
        yield crawl


def _last_page_file(crawl: Path) -> Path:
    return max(crawl.glob("pagefile_*.pfl"), key=lambda path: int(path.stem[9:]))


def _committed(crawl: Path) -> dict[str, tuple[Path, int]]:
    """Each log, and the last page file, with its length at the last commit."""
    with FrontierReader(crawl / "frontier") as frontier:
        positions = frontier.positions()
    number, length, log = map(int, positions["PageFilesPipeline"].split())
    return {
        "store.log": (crawl / "store.log", log),
        "links.log": (crawl / "links.log", int(positions["LinkLogPipeline"])),
        "fetch.log": (crawl / "fetch.log", int(positions["FetchLogPipeline"])),
        "page file": (crawl / f"pagefile_{number}.pfl", length),
    }


def _content(crawl: Path) -> dict[str, bytes]:
    """The bytes of logs and page files."""
    paths = [*(crawl / name for name in LOGS), *crawl.glob("pagefile_*.pfl")]
    return {path.name: path.read_bytes() for path in paths}


def _set_frontier_format(crawl: Path) -> None:
    with lmdb.open(str(crawl / "frontier"), max_dbs=4) as env:
        meta = env.open_db(b"meta", create=False)
        with env.begin(write=True, db=meta) as txn:
            txn.put(b"format", b"larmspider frontier 99")


def _set_lmdb_version(crawl: Path) -> None:
    """In both meta pages: 16 bytes of page header, the magic number, the version."""
    path = crawl / "frontier" / "data.mdb"
    data = bytearray(path.read_bytes())
    for page in (0, 4096):
        assert data[page + 16 : page + 20] == b"\xde\xc0\xef\xbe"
        data[page + 20] += 7
    path.write_bytes(data)


def _overwrite(crawl: Path) -> None:
    (crawl / "frontier" / "data.mdb").write_bytes(b"something else " * 1000)


def _remove(crawl: Path) -> None:
    shutil.rmtree(crawl / "frontier", ignore_errors=True)


def _empty(crawl: Path) -> None:
    (crawl / "frontier" / "data.mdb").write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_remove, "frontier: the frontier is gone, and LARM_DIR="),
        (_empty, "put it back, or scrapy verify --repair rebuilds it from the stored pages"),
        (_set_frontier_format, "has format 'larmspider frontier 99', this larmspider reads"),
        (_set_lmdb_version, "LMDB data format v8 is not supported"),
        (_overwrite, "MDB_INVALID"),
    ],
)
def test_a_frontier_that_cannot_be_gone_on_with_is_refused(
    killed: KilledCrawl, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    """Status 1, or 2 for another format; one line says so, and nothing is changed or fetched."""
    crawl = KilledCrawl(killed.site, tmp_path)
    shutil.copytree(killed.crawl, crawl.crawl)
    damage(crawl.crawl)
    before, seen = _content(crawl.crawl), killed.site.seen.total()
    assert crawl.start_fails(2 if damage is _set_frontier_format else 1).startswith(
        "scrapy crawl: "
    )
    assert message in crawl.start_fails(2 if damage is _set_frontier_format else 1)
    assert _content(crawl.crawl) == before
    assert killed.site.seen.total() == seen


@pytest.mark.parametrize("name", [*LOGS, "page file"])
def test_a_file_that_lacks_what_was_committed_is_an_error(
    killed: KilledCrawl, tmp_path: Path, name: str
) -> None:
    """By one byte: status 1 and its name, twice; with it back the crawl can go on."""
    crawl = KilledCrawl(killed.site, tmp_path)
    shutil.copytree(killed.crawl, crawl.crawl)
    path, committed = _committed(crawl.crawl)[name]
    whole, seen = path.read_bytes(), killed.site.seen.total()
    path.write_bytes(whole[: committed - 1])
    for _ in range(2):
        assert crawl.start_fails().startswith(
            f"scrapy crawl: {path} has {committed - 1} bytes, {committed} were committed"
        )
    assert killed.site.seen.total() == seen
    path.write_bytes(whole)
    assert not crawl.run(Kill("popped", 1))


@pytest.mark.acceptance
def test_torn_ends_are_dropped(killed: KilledCrawl, tmp_path: Path) -> None:
    """Half a record in each log, half a body, a whole page file too many: the end is exact."""
    crawl = KilledCrawl(killed.site, tmp_path)
    shutil.copytree(killed.crawl, crawl.crawl)
    for name in LOGS:
        with (crawl.crawl / name).open("ab") as log:
            log.write(b"http://127.1.0.1/half\thttp://127.1.0.1/a reco")
    last = _last_page_file(crawl.crawl)
    with last.open("ab") as bodies:
        bodies.write(b"<html><p>half a bo")
    later = last.with_name(f"pagefile_{int(last.stem[9:]) + 1}.pfl")
    later.write_bytes(b"of a body that was not committed")
    assert crawl.run(None)
    crawl.check_end()


def _halve(frontier: Path) -> None:
    data = (frontier / "data.mdb").read_bytes()
    (frontier / "data.mdb").write_bytes(data[: len(data) // 2])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda frontier: _remove(frontier.parent), "the frontier is gone, and LARM_DIR="),
        (_halve, "MDB_CORRUPTED"),
    ],
)
def test_a_frontier_that_is_gone_or_cut_short_deletes_no_page(
    scripted_server: Callable[..., ScriptedServer],
    tmp_path: Path,
    damage: Callable[[Path], None],
    message: str,
) -> None:
    """Status 1 and a line that says so, twice; with the frontier back the crawl is what it was."""
    paths = [f"/{number}" for number in range(300)]
    server = scripted_server({"/": "".join(f"<a href={path}>x</a>" for path in paths), "*": "page"})
    assert run_crawl(server.url(), tmp_path, LARM_MAX_PAGES="50").status == 0
    crawl, seen = tmp_path / "crawl", len(server.log)
    before = _content(crawl)
    shutil.copytree(crawl / "frontier", tmp_path / "kept")
    damage(crawl / "frontier")
    for _ in range(2):
        ran = run_crawl(server.url(), tmp_path)
        assert ran.status == 1
        last = ran.err.splitlines()[-1]
        assert last.startswith("scrapy crawl: ")
        assert str(crawl / "frontier") in last
        assert message in last
        assert _content(crawl) == before
    shutil.rmtree(crawl / "frontier", ignore_errors=True)
    (tmp_path / "kept").rename(crawl / "frontier")
    assert run_crawl(server.url(), tmp_path, LARM_MAX_PAGES="50").status == 0
    assert (_content(crawl), len(server.log)) == (before, seen)
