"""`scrapy verify` of a crawl that workers share: lost directories, copies, and a lost Redis."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.crawling import FAST, Ran, scrapy
from tests.support.servers.scripted import Reply, ScriptedServer

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("verified")
    page = Reply(200, {"Content-Type": "text/html"}, b"<title>a</title><a href=/b>b</a>")
    with ScriptedServer({"/a": page, "/b": page, "/robots.txt": Reply(404)}) as server:
        given = [part for name, value in FAST.items() for part in ("-s", f"{name}={value}")]
        ran = scrapy("workers", "-n", "2", "-a", f"start={server.url('/a')}", *given, cwd=folder)
        assert ran.status == 0, ran.err
    return folder


def verify(folder: Path, *more: str) -> Ran:
    return scrapy("verify", "--dir", "copy", *more, cwd=folder)


@pytest.fixture
def folder(crawled: Path, tmp_path: Path) -> Path:
    shutil.copytree(crawled / "crawl", tmp_path / "copy")
    return tmp_path


def the_worker(folder: Path) -> Path:
    """The one that stored the pages."""
    logs = (folder / "copy").glob("*/store.log")
    return max(logs, key=lambda path: path.stat().st_size).parent


def test_a_whole_crawl_is_whole(folder: Path) -> None:
    ran = verify(folder)
    assert (ran.status, ran.out) == (0, "2 stored pages: all is whole\n")


def test_a_lost_directory_is_named_with_its_partitions(folder: Path) -> None:
    lost = the_worker(folder)
    lost.rename(folder / lost.name)
    for more in ([], ["--repair"]):
        ran = verify(folder, *more)
        assert ran.status == 1
        assert f"{lost}: is gone: worker {lost.name} visited 2 URLs of partition" in ran.out
    assert verify(folder, "--shard", str(folder / lost.name)).status == 0


@pytest.mark.parametrize("how", ["copy", "link"])
def test_a_directory_twice_is_named_and_refused_by_a_rebuild(folder: Path, how: str) -> None:
    worker = the_worker(folder)
    twice = worker.with_name("0")
    shutil.copytree(worker, twice) if how == "copy" else twice.symlink_to(worker)
    ran = verify(folder)
    assert ran.status == 1
    assert f"{twice}: is the directory of the worker of {worker} once more" in ran.out
    shutil.rmtree(folder / "copy" / "redis")
    ran = scrapy("workers", "--rebuild", "-s", "LARM_DIR=copy", cwd=folder)
    assert ran.status == 2
    assert "are the directory of one worker twice" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_lost_redis_is_named_with_the_rebuild(folder: Path) -> None:
    for path in (folder / "copy" / "redis").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ran = verify(folder)
    assert ran.status == 1
    assert "Redis has lost the crawl of" in ran.out
    assert "scrapy workers --rebuild" in ran.out
