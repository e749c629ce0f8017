"""A server whose crawls run elsewhere: jobs of real scrapyd nodes, workers over a real Redis."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.test_server import QUICK
from tests.support.crawling import scrapy
from tests.support.deploy.jobs import PAGES, SlowSite, everything, lines, stored
from tests.support.servers.redis import RedisServer
from tests.support.servers.scrapyd import PASSWORD, Scrapyd
from tests.support.web.console import first_token, serving, until

pytestmark = pytest.mark.acceptance
Start = Callable[..., Scrapyd]


def home(folder: Path, site: SlowSite, run: str, nodes: dict[str, Scrapyd]) -> None:
    """A home with the crawl wiki and the nodes, whose password is a secret."""
    (folder / "home" / "crawls").mkdir(parents=True)
    (folder / "home" / "secrets").mkdir()
    text = f"seeds = ['{site.url()}']\nexclude = ['.*/private/.*']\n{QUICK}"
    text += f"CONCURRENT_REQUESTS_PER_DOMAIN = 2\n[run]\n{run}\n"
    (folder / "home" / "crawls" / "wiki.toml").write_text(text)
    tables = [
        f"[nodes.{name}]\nurl = '{node.url()}'\ndirectory = '{folder / name}'\n"
        f"user = '{node.username}'\nsecret = 'node'\n"
        for name, node in nodes.items()
    ]
    (folder / "home" / "server.toml").write_text("".join(tables))
    secret = folder / "home" / "secrets" / "node"
    secret.touch(0o600)
    secret.write_text(f"hosts: 127.0.0.1 127.0.0.2\n{PASSWORD}\n")


def test_a_crawl_on_a_node(scrapyd: Start, egg: Path, site: SlowSite, tmp_path: Path) -> None:
    """It starts there, is stopped, continues, is found by the next server after a kill -9, and its
    log is here; the password is in no page."""
    node = scrapyd()
    node.add_version("larmspider", "1", egg)
    home(tmp_path, site, "nodes = ['node1']", {"node1": node})
    there = tmp_path / "node1" / "wiki"

    def state() -> str:
        return str(server.api("/crawls/wiki")["summary"]["state"])

    with serving(tmp_path) as server:
        server.token = first_token(server)
        server.api("/crawls/wiki/start", "POST")
        until(lambda: lines(there / "store.log") >= 2, "two pages are stored on the node")
        refused = server.raw("/crawls/wiki/pause", "POST")
        assert (refused.status, "cannot pause it" in refused.text) == (409, True)
        server.api("/crawls/wiki/stop", "POST")
        until(lambda: state() == "ended", "it has stopped")
        run = server.api("/crawls/wiki/runs")["runs"][0]
        assert run["outcome"] == "shutdown"
        assert "ended       shutdown" in server.api("/crawls/wiki/runs/1/log")["text"]
        server.api("/crawls/wiki/start", "POST")
        until(lambda: node.state("larm-wiki-2-0") == "running", "it continues")
        server.process.kill()
        server.process.wait()
    with serving(tmp_path) as server:
        assert "still running: wiki" in server.said
        server.token = scrapy("server", "--home", "home", "token", "bob", cwd=tmp_path).out.strip()
        assert state() == "running"
        site.hurried = True
        until(lambda: state() == "ended", "it has ended")
        runs = server.api("/crawls/wiki/runs")["runs"]
        assert [run["outcome"] for run in runs] == ["finished", "shutdown"]
        found = server.raw("/crawls/wiki").text
        assert "It runs on node1" in found
        assert PASSWORD not in found
    assert Counter(stored(there)) == everything(site)
    jobs = node.read("listjobs", project="larmspider")["finished"]
    assert {job["id"] for job in jobs} == {"larm-wiki-1-0", "larm-wiki-2-0"}


def test_refusals(scrapyd: Start, egg: Path, site: SlowSite, tmp_path: Path) -> None:
    """A node that is away is retried; scrapyd's refusal, a refused crawl and an unknown node are
    told."""
    node = scrapyd()
    home(tmp_path, site, "nodes = ['node1']", {"node1": node})

    def outcome(number: int) -> tuple[str, str]:
        def run() -> dict[str, str] | None:
            runs = server.api("/crawls/wiki/runs")["runs"]
            found = [one for one in runs if one["number"] == number and one["outcome"]]
            return found[0] if found else None

        found = until(run, f"run {number} has ended")
        return found["outcome"], found["said"]

    with serving(tmp_path) as server:
        server.token = first_token(server)
        server.api("/crawls/wiki/start", "POST")
        word, said = outcome(1)
        assert (word, "node node1: project 'larmspider' not found" in said) == ("refused", True)
        node.add_version("larmspider", "1", egg)
        file = tmp_path / "home" / "crawls" / "wiki.toml"
        wrong = "LARM_TRAPS = 'sometimes'"
        file.write_text(file.read_text().replace("LARM_CHECKPOINT_SECS = 0.3", wrong))
        server.api("/crawls/wiki/start", "POST")
        word, said = outcome(2)
        assert (word, "LARM_TRAPS" in said) == ("refused", True)
        node.stop()
        server.api("/crawls/wiki/start", "POST")
        word, said = outcome(3)
        assert (word, "cannot be reached" in said) == ("temporary failure", True)
        file.write_text(file.read_text().replace("node1", "nodeX"))
        server.api("/crawls/wiki/start", "POST")
        word, said = outcome(4)
        assert word == "refused"
        assert "server.toml has no node 'nodeX': expected one of node1" in said


def test_workers_on_two_nodes_share_a_redis(
    scrapyd: Start, egg: Path, site: SlowSite, tmp_path: Path
) -> None:
    """Each page is stored once, by one of the jobs."""
    site.hurried = True
    with RedisServer() as redis:
        environment = {"REDIS_URL": redis.url}
        nodes = {
            "node1": scrapyd("127.0.0.1", environment=environment),
            "node2": scrapyd("127.0.0.2", environment=environment),
        }
        for node in nodes.values():
            node.add_version("larmspider", "1", egg)
        home(tmp_path, site, "nodes = ['node1', 'node2']\nworkers = 1", nodes)
        with serving(tmp_path) as server:
            server.token = first_token(server)
            server.api("/crawls/wiki/start", "POST")
            until(
                lambda: server.api("/crawls/wiki")["summary"]["last_outcome"], "it has ended", 120
            )
            run = server.api("/crawls/wiki/runs")["runs"][0]
            assert run["outcome"] == "finished", server.api("/crawls/wiki/runs/1/log")["text"]
            log = server.api("/crawls/wiki/runs/1/log")["text"]
            assert "== larm-wiki-1-0 on node1" in log
            assert "== larm-wiki-1-1 on node2" in log
    urls = [url for log in tmp_path.glob("node*/wiki/*/store.log") for url in stored(log.parent)]
    assert Counter(urls) == everything(site)


def test_workers_on_this_machine(site: SlowSite, tmp_path: Path) -> None:
    """Two processes with a Redis of their own: stopped, killed, continued, searched."""
    home(tmp_path, site, "workers = 2", {})
    directory = tmp_path / "home" / "data" / "wiki"

    def summary() -> dict[str, object]:
        found: dict[str, object] = server.api("/crawls/wiki")["summary"]
        return found

    with serving(tmp_path) as server:
        server.token = first_token(server)
        server.api("/crawls/wiki/start", "POST")
        until(lambda: any(map(lines, directory.glob("*/store.log"))), "a page is stored")
        assert "paused" in server.api("/crawls/wiki/pause", "POST")["done"]
        server.api("/crawls/wiki/resume", "POST")
        server.api("/crawls/wiki/stop", "POST")
        until(lambda: summary()["state"] == "ended", "it has stopped")
        assert server.api("/crawls/wiki/runs")["runs"][0]["outcome"] == "shutdown"
        server.api("/crawls/wiki/start", "POST")
        until(lambda: summary()["state"] == "running", "it runs")
        pid = json.loads((tmp_path / "home/runs/wiki/state.json").read_text())["run"]["pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: summary()["state"] != "running", "it is seen")
        site.hurried = True
        until(lambda: server.raw("/crawls/wiki/start", "POST").status == 200, "it can be started")
        until(
            lambda: server.api("/crawls/wiki/runs")["runs"][0]["outcome"] == "finished", "its end"
        )
        assert summary()["pages"] == PAGES + 1
    urls = [url for log in directory.glob("*/store.log") for url in stored(log.parent)]
    assert Counter(urls) == everything(site)
