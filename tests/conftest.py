"""Fixtures of all tests: real servers, each on a free port, and the peers' test data."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import pytest
from scrapy.crawler import Crawler
from scrapy.spiders import Spider
from scrapy.utils.test import get_crawler

from examples.intranet.serve import DemoServer
from larmspider.settings import DOWNLOAD_MAXSIZE
from tests.support.servers.kerberos import KerberosSite, missing_packages
from tests.support.servers.nginx import NGINX, Nginx
from tests.support.servers.opensearch.building import missing_programs
from tests.support.servers.opensearch.shared import SharedNode, end_shared_node, shared_node
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import Route, ScriptedServer

collect_ignore = (
    [] if find_spec("pyarrow") else ["test_shown_commands.py", "pipelines/outbox/test_sql.py"]
)
"""Without extras: the docs show commands that need some, and PostgreSQL needs psycopg."""
NICE = 15
"""Niceness of tests that give way to tests that measure time."""
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")  # a busy machine fails no test
_OPENSEARCH = "opensearch"
LONGEST = Path(__file__).with_name("longest_files.txt")
"""The files of tests that take longest, one a line, the longest first."""
SUITES = Path(__file__).parents[1] / ".." / "shared" / "suites"


@pytest.fixture
def demo_server() -> Iterator[DemoServer]:
    """The demo intranet of examples/intranet, with its access log."""
    with DemoServer() as server:
        yield server


@pytest.fixture
def scripted_server() -> Iterator[Callable[..., ScriptedServer]]:
    """Starts servers that answer from a table: ``scripted_server({"/": "<p>hello"})``."""
    with ExitStack() as running:

        def start(
            routes: Mapping[str, Route] | None = None,
            host: str = "127.0.0.1",
            *,
            tls: bool = False,
        ) -> ScriptedServer:
            return running.enter_context(ScriptedServer(routes, host, tls=tls))

        yield start


@pytest.fixture
def nginx() -> Iterator[Callable[..., Nginx]]:
    """Starts nginx on folders by loopback address: ``nginx({"127.0.0.1": folder})``."""
    if NGINX is None:
        pytest.skip("nginx is not installed (Debian package nginx-light)")
    with ExitStack() as running:

        def start(
            roots: Mapping[str, Path | str], workers: int = 1, tls: Collection[str] = ()
        ) -> Nginx:
            return running.enter_context(Nginx(roots, workers, tls))

        yield start


@pytest.fixture
def redis_server() -> Iterator[Callable[..., RedisServer]]:
    """Starts Redis, each time a new one: ``redis_server(maxmemory="20mb")``."""
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with ExitStack() as running:

        def start(host: str = "127.31.0.1", **options: Any) -> RedisServer:
            return running.enter_context(RedisServer(host, **options))

        yield start


@pytest.fixture(scope="module")
def shared_redis() -> Iterator[RedisServer]:
    """One Redis for the tests of a module, each of which uses keys of its own."""
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer(appendfsync="no") as server:
        yield server


@pytest.fixture(scope="session")
def opensearch(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> SharedNode:
    """One real node for all tests of a run, each of which uses an index of its own."""
    if missing := missing_programs():
        pytest.skip(f"{', '.join(missing)}: not installed (openjdk-17-jdk-headless, maven)")
    base = tmp_path_factory.getbasetemp()
    return shared_node((base if worker_id == "master" else base.parent) / _OPENSEARCH)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In the process that has started all others."""
    factory = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None and not hasattr(session.config, "workerinput"):
        end_shared_node(factory.getbasetemp() / _OPENSEARCH)


@pytest.fixture(scope="module")
def kerberos() -> Iterator[KerberosSite]:
    """A KDC, and an Apache that asks for tickets before it gives /index.html and /next.html."""
    if missing := missing_packages():
        pytest.skip(f"Debian packages are not installed: {', '.join(missing)}")
    with KerberosSite({"/index.html": "<a href=next.html>n</a>", "/next.html": "two"}) as site:
        yield site


@pytest.fixture
def small_disk() -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A file system of 8 MB, and a function that gives it another size. Who may not read what
    pytest keeps for itself may read this."""
    disk = Path(tempfile.mkdtemp(prefix="disk-", dir="/tmp"))

    def mount(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(disk)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    if shutil.which("mount") is None:
        disk.rmdir()
        pytest.skip("there is no mount command (Debian package mount)")
    done = mount("size=8m")
    if done.returncode:
        disk.rmdir()
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield disk, lambda size: mount("remount", f"size={size}").check_returncode()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        disk.rmdir()


@pytest.fixture(scope="session")
def suites() -> Path:
    """The folder of the peers' test data, which does not belong to the project."""
    if not SUITES.exists():
        pytest.skip(f"peer test data is not here: {SUITES}")
    return SUITES


@pytest.fixture
def crawler_for(tmp_path: Path) -> Callable[..., Crawler]:
    """Makes a crawler whose LARM_DIR is ``tmp_path``/crawl; keywords are settings."""

    def make(**settings: Any) -> Crawler:
        defaults = {
            "LARM_DIR": str(tmp_path / "crawl"),
            "DOWNLOAD_MAXSIZE": DOWNLOAD_MAXSIZE,
            "LARM_START": "http://h/",
        }
        crawler = get_crawler(Spider, settings_dict=defaults | settings)
        crawler.spider = Spider("test", start_urls=["http://h/"])
        return crawler

    return make


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """The garbage collector rests meanwhile. Each of several processes compiles its share of the
    files, and finds the others compiled: in a fresh clone that takes 10 seconds for all files."""
    gc.disable()
    given = getattr(session.config, "workerinput", None)
    if given is None:
        return
    root, first = session.config.rootpath, int(given["workerid"].removeprefix("gw"))
    files = sorted(path for one in session.config.args for path in (root / one).rglob("test_*.py"))
    for path in files[first :: given["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # told when the file is collected
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with a test marked ``timed`` come first, then the files in longest_files.txt: a long
    file that began last would run alone at the end. With ``--file-order=SEED`` files come in random
    order: no file needs another."""
    if seed := config.getoption("--file-order"):
        files = sorted({item.path for item in items})
        Random(seed).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))
        return
    timed = {item.path for item in items if item.get_closest_marker("timed")}
    longest = {config.rootpath / name: n for n, name in enumerate(LONGEST.read_text().split())}
    items.sort(key=lambda item: (item.path not in timed, longest.get(item.path, len(longest))))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that measure time get the processors when they want them, while other tests run beside
    them: the process of the other tests gives way from now on."""
    if hasattr(item.config, "workerinput") and not item.get_closest_marker("timed"):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=12, help="kills in tests/recovery/test_kill.py")
    parser.addoption("--faults", type=int, default=3, help="crawls in tests/workers/test_faults.py")
    parser.addoption("--rollbacks", type=int, default=3, help="of Redis, in the same file")
    parser.addoption("--file-order", type=int, default=0, help="seed; 0: slow files come first")
    parser.addoption("--kill-seed", type=int, default=0, help="repeat a run of it; 0: at random")


def pytest_collection_finish() -> None:
    """The collector skips imported objects at the end of each file: 0.09 s."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _leaks_of_this_file() -> Iterator[None]:
    """Leaks of a file are reported at its own last test, and not wherever the garbage
    collector happens to run. Objects that outlive the file are not looked at again: looking at
    all of them at each end takes 0.5 s after 400 files."""
    yield
    gc.collect()
    gc.freeze()
