"""scrapy workers: the demo intranet by several processes is the crawl of one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.intranet.expected import load
from examples.intranet.serve import DemoServer
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import CrawlDirError
from larmspider.workdir.directory import locked, worker_dirs
from tests.support.crawling import FAST, PROJECT, Ran, records, scrapy
from tests.support.servers.redis import RedisServer
from tests.support.servers.scripted import ScriptedServer

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        shutil.which("redis-server") is None,
        reason="redis-server is not installed (Debian: redis-server)",
    ),
]
HTML = {"Content-Type": "text/html"}
SETTINGS = FAST | {"LARM_MONITOR_SECS": "0.5", "LARM_LEASE_SECS": "15"}


def options(**settings: str) -> list[str]:
    """Command-line options: keywords in capitals are settings, others spider arguments."""
    words = []
    for name, value in (SETTINGS | settings).items():
        words += ["-s" if name.isupper() else "-a", f"{name}={value}"]
    return words


def workers(number: int, cwd: Path, **settings: str) -> Ran:
    return scrapy("workers", "-n", str(number), *options(**settings), cwd=cwd)


def stored(root: Path) -> list[str]:
    """URLs of all shards, with their pages as often as they are there."""
    return sorted(page.url for page in open_crawl(root).pages())


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer() as running:
        yield running


@pytest.fixture(scope="module")
def demo(server: DemoServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """The demo crawled by three workers: where, and what they said."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, workers(3, folder, start=server.url)


def test_three_workers_store_what_one_does(server: DemoServer, demo: tuple[Path, Ran]) -> None:
    """Every page that is listed, once over all directories, and no other."""
    folder, ran = demo
    assert ran.status == 0, ran.err
    shards = worker_dirs(folder / "crawl")
    assert len(shards) == 3
    lines = [line for shard in shards for line in records(shard / "store.log")]
    fetched = [(line["url"].replace(server.url, "/"), int(line["http-code"])) for line in lines]
    assert load().differences(fetched) == []


def test_pages_and_failed_of_the_progress_are_those_of_the_summary(demo: tuple[Path, Ran]) -> None:
    """Each URL once: one that ended in a server error has failed, though its answer is kept."""
    _, ran = demo
    progress = next(line for line in ran.err.splitlines() if "all workers have ended" in line)
    assert re.search(r": 63 pages \(.*/s\), 2 failed$", progress), ran.err
    in_all, idle = ran.out.splitlines()[-2:]
    assert in_all.split(", in /")[0].split(None, 1)[1] == "63 pages stored, 2 refused, 2 failed"
    assert re.fullmatch("[12] of 3 workers had nothing to do: 1 host", idle)  # it may move


def test_the_last_lines_are_of_each_worker_and_of_all(demo: tuple[Path, Ran]) -> None:
    """The pages stored, refused and failed, as the shards have them."""
    folder, ran = demo
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == [
        shard.name for shard in worker_dirs(folder / "crawl")
    ]
    total = len(load().stored) - 2  # the answers of the two that failed are stored too
    assert lines[3].startswith(f"total       {total} pages stored, 2 refused, 2 failed, in ")
    assert sum(int(line.split()[1]) for line in lines[:3]) == total
    assert "3 workers:" in ran.err


def test_nothing_is_left_running(demo: tuple[Path, Ran]) -> None:
    """The private redis-server ended with the workers, and its data stays."""
    folder, _ = demo
    redis = folder / "crawl" / "redis"
    assert not (redis / "redis.sock").exists()
    assert (redis / "appendonlydir").is_dir()


def test_the_crawl_is_read_as_one(server: DemoServer, demo: tuple[Path, Ran]) -> None:
    """By every command, although the queues cannot be asked any more."""
    folder, _ = demo
    found = scrapy("search", "Reisekosten", "--json", cwd=folder).json
    assert found["total"] == 1
    url = found["hits"][0]["url"]
    assert "Reisekosten" in scrapy("page", url, cwd=folder).out
    explained = scrapy("explain", url, "--json", cwd=folder).json
    assert (explained["state"], explained["rejected_by"]) == ("stored", None)
    (host,) = scrapy("hosts", "--json", cwd=folder).json["hosts"]
    assert (host["queued"], host["failed"], host["refused"]) == (0, 2, 2)


def test_the_same_command_goes_on_and_another_is_refused_once(
    server: DemoServer, demo: tuple[Path, Ran], tmp_path: Path
) -> None:
    """With nothing to do it ends well; another scope is refused in one line, one process too."""
    folder, _ = demo
    before = stored(folder / "crawl")
    asked = len(server.log)
    again = workers(2, folder, start=server.url)
    assert again.status == 0, again.err
    assert stored(folder / "crawl") == before
    assert len(server.log) == asked
    other = workers(2, folder, start=server.url, restrict="http://x/.*")
    assert (other.status, len(other.err.splitlines())) == (2, 1)
    assert "other LARM_RESTRICT" in other.err
    alone = scrapy("crawl", "intranet", "-a", f"start={server.url}", cwd=folder)
    assert alone.status == 1
    assert "holds a crawl of many workers" in alone.err
    assert stored(folder / "crawl") == before


def test_fresh_starts_over_for_all(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Asked twice where pages are stored; the queues of before are gone too."""
    server = scripted_server({"/": (200, HTML, b"<a href=/a>a</a>"), "/a": (200, HTML, b"a")})
    assert workers(2, tmp_path, start=server.url("/")).status == 0
    refused = workers(2, tmp_path, start=server.url("/"), fresh="yes")
    assert refused.status == 2
    assert "-a fresh=force deletes them" in refused.err
    assert len(stored(tmp_path / "crawl")) == 2
    again = workers(2, tmp_path, start=server.url("/"), fresh="yes,yes")
    assert again.status == 0, again.err
    assert stored(tmp_path / "crawl") == [server.url("/"), server.url("/a")]
    assert [access.path for access in server.log].count("/a") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "-n 0: expected"),
        (["-n", "2", "-s", "LARM_WORKER=a"], "LARM_WORKER names a single worker"),
        (["-n", "2", "-s", "LARM_MAX_PAGE=1"], "did you mean LARM_MAX_PAGES?"),
        (["-n", "2", "-s", "DNS_TIMEOUT=x"], "DNS_TIMEOUT=x: expected a number of seconds"),
        (["-n", "2", "-s", "LOG_LEVEL=LOUD"], "LOG_LEVEL=LOUD: expected DEBUG, INFO"),
        (["-n", "2", "-a", "begin=http://h/"], "unknown argument begin"),
        (["-n", "2", "--logfile", "x"], "each worker logs to"),
        (["-n", "2", "nobody"], "Spider not found: nobody"),
        (["-n"], "-n : expected an integer"),
        (["--rebuild", "-n"], "--rebuild: expected no -n with it"),
        (["--rebuild", "-n", "2"], "--rebuild: expected no -n with it"),
        (["--rebuild", "--dry-run"], "unknown option --dry-run"),
        (["--dry-run"], "unknown option --dry-run"),
    ],
)
def test_what_cannot_be_used_is_refused_once(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    """One line and status 2; nothing is made."""
    ran = scrapy("workers", "-a", "start=http://127.33.0.3/", *arguments, cwd=tmp_path)
    assert ran.status == 2, ran.err
    assert len(ran.err.splitlines()) == 1
    assert message in ran.err
    assert list(tmp_path.iterdir()) == []


def test_without_redis_server_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line; nothing is made."""
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = workers(2, tmp_path, start="http://127.33.0.3/")
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert "apt install redis-server" in ran.err
    assert list(tmp_path.iterdir()) == []


class Site:
    """A host with links from its start page to 100 others. ``options`` make a crawl that commits
    often, ``slow`` one that takes a minute."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.options = {
            "start": server.url("/"),
            "CONCURRENT_REQUESTS_PER_DOMAIN": "1",
            "LARM_CHECKPOINT_SECS": "0.3",
        }
        self.slow = self.options | {"DOWNLOAD_DELAY": "0.6"}

    @property
    def asked(self) -> list[str]:
        """Requested paths of pages, in order."""
        return [access.path for access in self.server.log if access.path != "/robots.txt"]

    def stored_in(self, root: Path) -> list[str]:
        """Paths, as often as they are there, once the first shard is."""
        return [path.rpartition("/")[2] for path in stored(root)] if worker_dirs(root) else []


@pytest.fixture
def site(scripted_server: Callable[..., ScriptedServer]) -> Site:
    pages = {f"/{n}": (200, HTML, b"x") for n in range(100)}
    links = "".join(f"<a href={path}>x</a>" for path in pages)
    return Site(scripted_server({"/": (200, HTML, links.encode()), **pages}))


@contextmanager
def running_workers(site: Site, folder: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Two, until some pages are committed."""
    environment = {"PYTHONPATH": str(PROJECT), "SCRAPY_SETTINGS_MODULE": "larmspider.settings"}
    with (folder / "said").open("w") as said:
        running = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "scrapy",
                "workers",
                "-n",
                "2",
                *options(**site.slow | more),
            ],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=said,
            stderr=said,
        )
        try:
            until(lambda: len(site.stored_in(folder / "crawl")) > 10)
            yield running
        finally:
            running.terminate()  # in order, or its Redis stays
            try:
                running.wait(300)
            finally:
                running.kill()
                running.wait()


def test_a_signal_stops_all_and_the_same_command_goes_on(site: Site, tmp_path: Path) -> None:
    """SIGTERM once: everything is committed, status 0. Pages are fetched once over both runs, and
    what waits is known from Redis while that runs. A second command is refused meanwhile."""
    with running_workers(site, tmp_path) as running:
        second = workers(1, tmp_path, **site.slow)
        assert (second.status, len(second.err.splitlines())) == (2, 1), second.err
        waiting = next(str(n) for n in range(99, 0, -1) if f"/{n}" not in site.asked)
        url = site.server.url(f"/{waiting}")
        explained = scrapy("explain", url, "--json", cwd=tmp_path).json
        assert explained["state"] in ("queued", "stored")
        assert explained["notes"] == []
        running.send_signal(signal.SIGTERM)
        assert running.wait(300) == 0, (tmp_path / "said").read_text()
    left = sorted({str(n) for n in range(100)} - set(site.stored_in(tmp_path / "crawl")))
    assert left, "it was stopped in mid-crawl"
    asked = scrapy("explain", site.server.url(f"/{left[0]}"), "--json", cwd=tmp_path).json
    assert "the queues of this crawl are in Redis" in asked["notes"][0]
    ran = workers(2, tmp_path, **site.options)
    assert ran.status == 0, ran.err
    assert len(stored(tmp_path / "crawl")) == 101
    assert len(site.asked) == len(set(site.asked)) == 101


@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="run by nohup")
def test_workers_stop_in_order_when_the_terminal_is_closed(site: Site, tmp_path: Path) -> None:
    """Everything is committed: the same command asks for nothing twice."""
    with running_workers(site, tmp_path) as running:
        running.send_signal(signal.SIGHUP)
        running.send_signal(signal.SIGHUP)
        assert running.wait(300) == 0, (tmp_path / "said").read_text()
    assert len(site.asked) < 101
    assert workers(2, tmp_path, **site.options).status == 0
    assert len(site.asked) == len(set(site.asked)) == 101


def test_whoever_is_killed_is_started_again(site: Site, tmp_path: Path) -> None:
    """The private Redis, then each worker: they go on in their directories, the terminal says so,
    and in the end every page is stored once."""
    said = tmp_path / "said"
    with running_workers(site, tmp_path, DOWNLOAD_DELAY="0.25") as running:
        crawling = _crawling(running.pid)
        assert len(crawling) == 2
        [server] = [pid for pid in _children(running.pid) if pid not in crawling]
        os.kill(server, signal.SIGKILL)
        until(lambda: "redis-server ended by SIGKILL: started again" in said.read_text())
        for pid in crawling:
            os.kill(pid, signal.SIGKILL)
        assert running.wait(300) == 0, said.read_text()
    assert said.read_text().count("it ended by SIGKILL: started again in 1 s") == 2
    assert sorted(site.stored_in(tmp_path / "crawl")) == sorted(["", *map(str, range(100))])
    assert len(worker_dirs(tmp_path / "crawl")) == 2


def _command_of(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def test_after_the_command_itself_is_killed(site: Site, tmp_path: Path) -> None:
    """Its workers stop in order; the redis-server that was left is taken over by the next run."""
    root = tmp_path / "crawl"
    with running_workers(site, tmp_path) as running:
        running.kill()
        until(lambda: all(not _is_locked(shard / "lock") for shard in worker_dirs(root)))
    assert (root / "redis" / "redis.sock").exists()
    ran = workers(2, tmp_path, **site.options)
    assert ran.status == 0, ran.err
    assert not (root / "redis" / "redis.sock").exists()
    assert len(stored(root)) == 101
    assert len(site.asked) == len(set(site.asked)) == 101


def test_the_number_of_blocks_stays(
    site: Site, redis_server: Callable[..., RedisServer], tmp_path: Path
) -> None:
    """Another one is refused in one line, before a worker starts; with a private Redis too."""
    for redis in ({}, {"REDIS_URL": redis_server().url}):
        where = redis | {"LARM_DIR": f"crawl-{len(redis)}", "LARM_MAX_PAGES": "5"}
        ran = workers(1, tmp_path, **site.options | where)
        assert ran.status == 0, ran.err
        ran = workers(1, tmp_path, **site.options | where, LARM_BLOCKS="128")
        assert ran.status == 2
        assert len(ran.err.splitlines()) == 1
        assert "LARM_BLOCKS=128: expected 4096, with which the crawl" in ran.err


def test_nobody_waits_for_workers_that_were_killed(site: Site, tmp_path: Path) -> None:
    """With all that they were, but for their redis-server: no lease is waited for, nothing lost."""
    long = {"LARM_LEASE_SECS": "60"}
    with running_workers(site, tmp_path, **long) as running:
        running.send_signal(signal.SIGSTOP)  # else it starts them again
        for pid in _crawling(running.pid):
            os.kill(pid, signal.SIGKILL)
        running.kill()
    ran = workers(2, tmp_path, **site.options | long)
    assert ran.status == 0, ran.err
    logs = "".join(path.read_text() for path in (tmp_path / "crawl").glob("*/worker.log"))
    assert "Waiting up to" not in ran.err + logs
    assert sorted(site.stored_in(tmp_path / "crawl")) == sorted(["", *map(str, range(100))])


def _children(supervisor: int) -> list[int]:
    """Process ids."""
    return [*map(int, Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split())]


def _crawling(supervisor: int) -> list[int]:
    """The processes of the workers."""
    return [pid for pid in _children(supervisor) if b"crawl" in _command_of(pid)]


def _is_locked(path: Path) -> bool:
    try:
        locked(path).close()
    except CrawlDirError:
        return True
    return False


def test_workers_with_a_redis_of_their_own(
    site: Site, redis_server: Callable[..., RedisServer], tmp_path: Path
) -> None:
    """No other is started. While they work no one starts over, neither alone nor with others; then
    the whole crawl starts over."""
    redis = redis_server()
    with running_workers(site, tmp_path, REDIS_URL=redis.url) as running:
        fresh = options(start=site.server.url("/"), fresh="yes,yes", REDIS_URL=redis.url)
        for command in (["workers", "-n", "2"], ["crawl", "intranet"]):
            ran = scrapy(*command, *fresh, "-s", "LARM_DIR=other", cwd=tmp_path)
            assert ran.status == 2, ran.err
            assert "work on it: stop them first" in ran.err
        other = options(start=site.server.url("/1"), REDIS_URL=redis.url)
        for command in (["workers", "-n", "2"], ["crawl", "intranet"]):
            ran = scrapy(*command, *other, "-s", "LARM_DIR=other", cwd=tmp_path)
            assert ran.status == 2, ran.err
            assert ran.err.count("has other seeds") == 1
            assert "Traceback" not in ran.err
        assert not (tmp_path / "other").exists()
        running.send_signal(signal.SIGTERM)
        assert running.wait(300) == 0
    assert not (tmp_path / "crawl" / "redis").exists()
    before = len(site.asked)
    ran = workers(2, tmp_path, **site.options, REDIS_URL=redis.url, fresh="yes,yes")
    assert ran.status == 0, ran.err
    assert len(stored(tmp_path / "crawl")) == 101
    assert len(site.asked) == before + 101


def until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
