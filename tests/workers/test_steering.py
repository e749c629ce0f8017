"""``scrapy serve`` over running workers: its orders reach all of them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from larmspider.control.controller import RemoteController
from larmspider.frontier.overrides import HostOverride, Overrides
from larmspider.status.crawl_workers import read_server_file
from larmspider.workdir.directory import worker_dirs
from tests.support.crawling import FAST, environment
from tests.support.web.serving import TOKEN, Got, Served, request
from tests.support.workers.hosts import CrossLinked

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        shutil.which("redis-server") is None,
        reason="redis-server is not installed (Debian: redis-server)",
    ),
]
WAIT_SECS = 300.0
NUMBER = 3


@dataclass
class Running:
    """Workers that wait for seeds, and the pages of all of them. ``arguments`` of each worker."""

    root: Path
    arguments: list[str]
    sites: CrossLinked
    site: Served
    process: subprocess.Popen[bytes]

    def act(self, name: str, **form: str) -> Got:
        """As a script that has the token of the pages of all."""
        url = f"{self.site.url}/control/{name}"
        return request(url, "POST", {"Authorization": f"Bearer {TOKEN}"}, form)

    def noted(self) -> list[tuple[str, str]]:
        return [noted for path in worker_dirs(self.root) if (noted := read_server_file(path))]

    def each(self, what: Callable[[dict[str, Any]], Any]) -> list[Any]:
        """A part of the numbers of each worker's own server."""
        return [what(request(f"{url}stats.json").json["numbers"]) for url, _ in self.noted()]

    def until(self, done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + WAIT_SECS
        while not done():
            assert self.process.poll() is None, "the workers have ended"
            assert time.monotonic() < end, f"{what}: not after {WAIT_SECS:.0f} s"
            time.sleep(0.1)

    def stored(self) -> int:
        return int(self.site.get("/stats.json").json["urls"]["stored"])


@contextmanager
def begun(command: list[str], folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command's output goes to the file ``name``."""
    own = environment(folder, "larmspider.settings")
    with (
        (folder / name).open("w") as said,
        subprocess.Popen(command, cwd=folder, env=own, stdout=said, stderr=said) as process,
    ):
        yield process


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("steering")
    given = FAST | {
        "LARM_WEB": "yes",
        "LARM_WEB_PORT": "0",
        "LARM_KEEP_ALIVE": "yes",
        "LARM_LEASE_SECS": "15",
        "LARM_CHECKPOINT_SECS": "0.3",
        "LARM_MONITOR_SECS": "0.5",
    }
    root = folder / "crawl"
    with CrossLinked(4, pages=3, net="127.40.1") as sites:
        arguments = ["-a", f"start={sites.seed}", "-a", f"restrict={sites.restrict}"]
        for name, value in given.items():
            arguments += ["-s", f"{name}={value}"]
        command = [sys.executable, "-m", "scrapy", "workers", "-n", str(NUMBER), *arguments]
        with begun(command, folder, "said") as process:
            try:
                end = time.monotonic() + WAIT_SECS
                while not (root / "crawl.json").exists() and time.monotonic() < end:
                    time.sleep(0.1)
                with Served(root, controller=RemoteController(lambda: worker_dirs(root))) as site:
                    found = Running(root, arguments, sites, site, process)
                    found.until(lambda: len(found.noted()) == NUMBER, "all serve")
                    found.until(lambda: found.stored() == 4 * 4, "all is stored")
                    yield found
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(WAIT_SECS)
                except subprocess.TimeoutExpired:
                    process.kill()


def test_each_worker_serves_at_a_port_of_its_own(running: Running) -> None:
    """With the token of all, which lies in LARM_DIR."""
    assert len({urlsplit(url).port for url, _ in running.noted()}) == NUMBER
    token = (running.root / "web.token").read_text().strip()
    assert {found for _, found in running.noted()} == {token}


def test_pages_of_a_worker_say_whose_they_are(running: Running) -> None:
    """And name the others, with their addresses; pages of all name all."""
    noted = {path.name: read_server_file(path) for path in worker_dirs(running.root)}
    urls = {name: found[0] for name, found in noted.items() if found}
    for name, url in urls.items():
        running.until(lambda url=url: request(url).text.count("(running)") == NUMBER, "a new list")
        page = request(url).text
        assert f"These pages show and control the worker <strong>{name}</strong> only" in page
        assert all(f'<a href="{other}">' in page for n, other in urls.items() if n != name)
    page = running.site.get("/").text
    assert "All workers of this crawl together" in page
    assert f"{NUMBER} of {NUMBER} workers here run" in page
    assert all(f'<a href="{url}">' in page for url in urls.values())


def test_all_workers_are_paused_slowed_down_and_resumed(running: Running) -> None:
    assert running.act("pause").json == {"done": "the crawl is paused; fetches under way finish"}
    assert running.each(lambda numbers: numbers["paused"]) == [True] * NUMBER
    assert "Paused." in running.site.get("/").text
    assert running.act("resume").status == 200
    assert running.each(lambda numbers: numbers["paused"]) == [False] * NUMBER
    assert running.act("slow", factor="2").status == 200
    assert running.act("slow", factor="1").status == 200
    for path in worker_dirs(running.root):
        acts = [line.split("\t")[2] for line in (path / "control.log").read_text().splitlines()]
        assert acts == ["pause", "resume", "slow", "slow"]
    assert running.process.poll() is None


def _host(running: Running, number: int) -> str:
    return urlsplit(running.sites.servers[number].url("/")).netloc


def test_a_host_is_paused_by_whoever_has_it(running: Running) -> None:
    """The others keep the order, and no worker loses blocks by it."""
    host = _host(running, 2)
    paused = {"done": f"{host} is paused"}
    running.until(lambda: running.act("pause-host", host=host).json == paused, "somebody has it")
    assert running.act("resume-host", host=host).json == {"done": f"{host} is no longer paused"}
    for act, form in (("purge-host", {}), ("delay", {"seconds": "1"}), ("pause-host", {})):
        answer = running.act(act, host="nobody:80", **form)
        assert (answer.status, "is not a host of this crawl" in answer.json["error"]) == (409, True)


def test_seeds_go_in_once_whoever_is_to_have_them(running: Running) -> None:
    before = running.stored()
    urls = " ".join(server.url("/same") for server in running.sites.servers)
    assert running.act("seeds", urls=urls).json == {"done": "4 of 4 seeds added"}
    running.until(lambda: running.stored() == before + 4, "they are stored")
    for server in running.sites.servers:
        assert sum(asked.path == "/same" for asked in server.log) == 1


def test_the_scope_of_all_is_not_changed(running: Running) -> None:
    answer = running.act("scope", restrict=".*")
    assert answer.status == 409
    assert "stop them and start again with another restrict" in answer.json["error"]


def test_a_worker_that_joins_has_what_was_ordered(running: Running) -> None:
    """The slow-down of all, and the pause of a host of any worker."""
    host = _host(running, 1)
    assert running.act("slow", factor="1.5").status == 200
    assert running.act("pause-host", host=host).status == 200
    folder = running.root.parent
    command = [sys.executable, "-m", "scrapy", "crawl", "intranet", *running.arguments]
    command += ["-s", f"REDIS_URL=unix://{running.root}/redis/redis.sock"]
    command += ["-s", "LARM_WORKER=late"]
    with begun(command, folder, "late") as process:
        try:
            running.until(lambda: bool(read_server_file(running.root / "late")), "it serves")
            noted = read_server_file(running.root / "late")
            assert noted is not None
            expected = Overrides(1.5, {host: HostOverride(paused=True)})

            def ordered() -> bool:
                orders = request(f"{noted[0]}stats.json").json["numbers"]["orders"]
                return Overrides.from_json(orders) == expected

            running.until(ordered, "it has the orders")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_SECS)
    assert running.act("resume-host", host=host).status == 200
    assert running.act("slow", factor="1").status == 200


def test_last_all_stop(running: Running) -> None:
    """In order; then the pages show the state of their last checkpoints."""
    assert running.act("stop").status == 200
    assert running.process.wait(WAIT_SECS) == 0
    found = running.site.get("/stats.json").json
    assert found["state"] == "ended"
    assert found["numbers"] is None
    ends = [
        json.loads((path / "crawl.json").read_text())["end"] for path in worker_dirs(running.root)
    ]
    assert ends == ["shutdown"] * (NUMBER + 1), "and of the one that joined"
    assert (
        "There is nothing here to control"
        in request(f"{running.site.url}/control", headers={"Authorization": f"Bearer {TOKEN}"}).text
    )
