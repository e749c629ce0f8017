"""`scrapy workers -a fresh=force` with a mistake: refused before the old crawl is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.crawl.worker_dirs import open_crawl
from tests.support.crawling import FAST, Ran, scrapy
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import ScriptedServer

pytestmark = pytest.mark.skipif(
    REDIS_SERVER is None, reason="redis-server is not installed (Debian package redis-server)"
)
HOST = "127.41.4.1"
FAST_OPTIONS = [word for name, value in FAST.items() for word in ("-s", f"{name}={value}")]


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedServer]:
    html = {"Content-Type": "text/html"}
    pages = {"/": (200, html, b"<a href=/a>a</a>"), "/a": (200, html, b"a")}
    with ScriptedServer(pages, HOST) as server:
        yield server


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer("127.41.4.2") as server:
        yield server


@pytest.fixture(scope="module", params=["private", "shared"])
def run(
    request: pytest.FixtureRequest,
    site: ScriptedServer,
    redis: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Callable[..., Ran]]:
    """Where a crawl has ended, and how the command is given there again."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "rules").write_text("not a rule")
    where = ["-s", f"REDIS_URL={redis.url if request.param == 'shared' else ''}"]

    def workers(*arguments: str) -> Ran:
        seed = ("-a", f"start={site.url('/')}")
        return scrapy("workers", "-n", "1", *seed, *FAST_OPTIONS, *where, *arguments, cwd=folder)

    assert workers().status == 0
    return folder, workers


def everything(folder: Path, redis: RedisServer) -> tuple[list[str], list[tuple[str, bytes]], int]:
    """Pages, all files with what is in them but for logs of workers, and keys in Redis."""
    pages = sorted(page.url for page in open_crawl(folder / "crawl").pages())
    files = sorted(path for path in (folder / "crawl").rglob("*") if path.is_file())
    return (
        pages,
        [(str(path), path.read_bytes()) for path in files],
        int(redis.client().dbsize()),
    )


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (("-a", "restrict=("), "does not compile"),
        (("-s", "LARM_PATH_DEPTH_LIMIT=x"), "LARM_PATH_DEPTH_LIMIT=x: expected"),
        (("-a", "hostresolver=rules"), "rules:1: 'not' lacks a parenthesis"),
        (("-s", "LARM_SITES_FILE=rules"), "rules: "),
        (("-s", "LARM_MONITOR_SECS=x"), "LARM_MONITOR_SECS=x: expected"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_deletes_nothing(
    run: tuple[Path, Callable[..., Ran]],
    redis: RedisServer,
    mistake: tuple[str, ...],
    said: str,
) -> None:
    """One line, status 2, no worker started."""
    folder, workers = run
    before = everything(folder, redis)
    assert len(before[0]) == 2
    ran = workers("-a", "fresh=force", *mistake)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1), ran.err
    assert ran.err.startswith("scrapy workers: ")
    assert said in ran.err
    assert everything(folder, redis) == before


def test_without_a_mistake_it_starts_over(
    run: tuple[Path, Callable[..., Ran]], redis: RedisServer
) -> None:
    """What the test above would see if something was deleted."""
    folder, workers = run
    before = everything(folder, redis)
    assert workers("-a", "fresh=force").status == 0
    after = everything(folder, redis)
    assert after[0] == before[0]
    assert after[1] != before[1]
