"""`scrapy verify` of a crawl that workers share: lost directories, copies, and a lost Redis."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import redis

from larmspider.cluster.redis_server import PrivateRedis
from larmspider.crawl.reader import read_manifest
from larmspider.workdir.directory import locked
from larmspider.workdir.manifest import LOCK
from tests.support.crawling import FAST, Ran, scrapy
from tests.support.servers.scripted import Reply, ScriptedServer

pytestmark = pytest.mark.acceptance


PAGE = Reply(200, {"Content-Type": "text/html"}, b"<title>a</title><a href=/b>b</a>")
SITE = {"/a": PAGE, "/b": PAGE, "/robots.txt": Reply(404)}


def crawl(folder: Path, server: ScriptedServer, *more: str, workers: int = 1) -> None:
    given = [part for name, value in FAST.items() for part in ("-s", f"{name}={value}")]
    start = f"start={server.url('/a')}"
    ran = scrapy("workers", "-n", str(workers), "-a", start, *given, *more, cwd=folder)
    assert ran.status == 0, ran.err


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By one worker, as a second one may get the partition once its pages are stored."""
    folder = tmp_path_factory.mktemp("verified")
    with ScriptedServer(SITE) as server:
        crawl(folder, server)
    return folder


def verify(folder: Path, *more: str) -> Ran:
    return scrapy("verify", "--dir", "copy", *more, cwd=folder)


@pytest.fixture
def folder(crawled: Path, tmp_path: Path) -> Path:
    shutil.copytree(crawled / "crawl", tmp_path / "copy")
    return tmp_path


def the_worker(folder: Path, name: str = "copy") -> Path:
    """The one that stored the pages."""
    logs = (folder / name).glob("*/store.log")
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
    ran = verify(folder, "--shard", str(folder / "copy" / "redis"))
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert "redis: expected a worker's directory" in ran.err


def test_a_lost_directory_is_named_where_another_worker_has_its_partition(tmp_path: Path) -> None:
    """Another worker has seen that the pages are as they were, so the first one still has them."""
    with ScriptedServer(SITE) as server:
        crawl(tmp_path, server)
        first = the_worker(tmp_path, "crawl")
        with locked(first / LOCK):
            crawl(tmp_path, server, "-a", "refresh=all")
    first.rename(tmp_path / first.name)
    ran = scrapy("verify", cwd=tmp_path)
    assert ran.status == 1
    assert f"{first}: is gone: worker {first.name} stored 2 pages" in ran.out


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


@pytest.mark.parametrize("table", ["hosts", "notes", "visits", "pages"])
def test_a_table_that_redis_has_lost_is_named_with_the_rebuild(folder: Path, table: str) -> None:
    """By verify, and by the next start, which fetches nothing."""
    with PrivateRedis(folder / "copy" / "redis") as private:
        client = redis.Redis.from_url(private.url)
        (key,) = client.keys(f"intranet:{table}:{{*}}")
        client.delete(key)
        client.close()
    ran = verify(folder)
    assert ran.status == 1
    assert "Redis has lost a part of the crawl: partition" in ran.out
    assert "scrapy workers --rebuild" in ran.out
    (seed,) = read_manifest(folder / "copy")["seeds"]
    again = ["-a", "resume=anyway", "-s", "LARM_DIR=copy"]
    started = scrapy("workers", "-n", "1", "-a", f"start={seed}", *again, cwd=folder)
    assert started.status == 2, started.err
    assert "Redis at" in started.err
    assert "has lost a part of the crawl (partition" in started.err
    shutil.rmtree(folder / "copy" / "redis")
    ran = scrapy("workers", "--rebuild", "--complete", "-s", "LARM_DIR=copy", cwd=folder)
    assert ran.status == 0, ran.err
    assert verify(folder).status == 0


def damage(folder: Path, key: str, *, gone: bool) -> str:
    """The key, deleted or overwritten."""
    with (
        PrivateRedis(folder / "copy" / "redis") as private,
        redis.Redis.from_url(private.url) as client,
    ):
        (found,) = client.keys(key)
        client.delete(found)
        if not gone:
            client.sadd(found, "other")
        return found.decode()


@pytest.mark.parametrize("key", ["{crawl}:format", "{crawl}:commit:*", "{crawl}:id", "counts:*"])
def test_a_key_of_the_crawl_is_named_when_it_is_gone_or_another(folder: Path, key: str) -> None:
    kept = folder / "kept"
    shutil.copytree(folder / "copy" / "redis", kept)
    for gone in (True, False):
        name = damage(folder, f"intranet:{key}", gone=gone)
        ran = verify(folder)
        assert ran.status == 1, ran.out + ran.err
        assert "scrapy workers --rebuild" in ran.out
        assert gone or f"{name} is a set, expected a " in ran.out
        shutil.rmtree(folder / "copy" / "redis")
        shutil.copytree(kept, folder / "copy" / "redis")


def test_totals_that_redis_has_lost_are_counted_again(folder: Path) -> None:
    damage(folder, "intranet:{crawl}:description", gone=True)
    assert verify(folder).status == 0
    damage(folder, "intranet:{crawl}:totals", gone=True)
    ran = verify(folder)
    assert ran.status == 1
    assert "intranet:{crawl}:totals counts 0 of 2 stored pages; the next worker" in ran.out
    (seed,) = read_manifest(folder / "copy")["seeds"]
    again = ["-a", "resume=anyway", "-s", "LARM_DIR=copy"]
    ran = scrapy("workers", "-n", "1", "-a", f"start={seed}", *again, cwd=folder)
    assert ran.status == 0, ran.err
    log = "".join(path.read_text() for path in (folder / "copy").glob("*/worker.log"))
    assert "it counts 0 of 2 stored pages" in ran.err + log
    assert "has no description of the crawl" in ran.err + log
    assert verify(folder).status == 0


def test_damaged_data_of_the_private_redis_is_named_and_rebuilt(folder: Path) -> None:
    kept = folder / "copy" / "redis"
    for data in [path for path in kept.rglob("*") if path.is_file() and path.stat().st_size]:
        if data.name == "redis.log":
            continue
        whole = data.read_bytes()
        middle = len(whole) // 2
        for damaged in (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
                        whole[:middle], b"", None):  # fmt: skip
            data.unlink() if damaged is None else data.write_bytes(damaged)
            ran = verify(folder)
            assert ran.status == 1
            assert f"{data}: " in ran.out
            data.write_bytes(whole)
    data = next(kept.rglob("*.incr.aof"))
    data.write_bytes(data.read_bytes()[:-9])
    ran = scrapy("workers", "--rebuild", "-s", "LARM_DIR=copy", cwd=folder)
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert f"move {kept} away, then fill an empty Redis" in ran.err
    kept.rename(folder / "away")
    ran = scrapy("workers", "--rebuild", "--complete", "-s", "LARM_DIR=copy", cwd=folder)
    assert ran.status == 0, ran.err
    ran = verify(folder)
    assert (ran.status, ran.out) == (0, "2 stored pages: all is whole\n")


@pytest.mark.parametrize("content", [None, "", '{"form'], ids=["gone", "empty", "cut"])
def test_a_rebuild_brings_a_worker_that_has_lost_its_crawl_json(
    folder: Path, content: str | None
) -> None:
    """The copy in its frontier counts, and is put back."""
    worker = the_worker(folder)
    file = worker / "crawl.json"
    file.unlink() if content is None else file.write_text(content)
    shutil.rmtree(folder / "copy" / "redis")
    ran = scrapy("workers", "--rebuild", "--complete", "-s", "LARM_DIR=copy", cwd=folder)
    assert ran.status == 0, ran.err
    assert f"{worker.name}: 2 records brought" in ran.out
    assert "its copy in the frontier counts" in ran.err
    assert read_manifest(worker)["rejudge"] is True


def test_a_rebuild_knows_the_number_of_partitions(tmp_path: Path) -> None:
    """By crawl.json. Another number is refused."""
    begun = "-s", "LARM_BLOCKS=16"
    rebuild = "workers", "--rebuild", "--complete"
    with ScriptedServer(SITE) as server:
        crawl(tmp_path, server, *begun)
        shutil.rmtree(tmp_path / "crawl" / "redis")
        ran = scrapy(*rebuild, "-s", "LARM_BLOCKS=8", cwd=tmp_path)
        assert (ran.status, len(ran.err.splitlines())) == (2, 1)
        assert "LARM_BLOCKS=8: expected 16, with which the crawl in" in ran.err
        assert scrapy(*rebuild, cwd=tmp_path).status == 0
        crawl(tmp_path, server, *begun)
