"""A node is stopped with its jobs, as systemd and containers do it; they go on when told again."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT
from tests.support.deploy.jobs import everything, job, lines, stored, wait_for
from tests.support.recovery.killed_crawl import wait_until
from tests.support.servers.scrapyd import PASSWORD, Scrapyd

pytestmark = pytest.mark.acceptance


def job_log(node: Scrapyd, one: str) -> str:
    """From the disk: the node is down."""
    return (node.folder / f"logs/larmspider/intranet/{one}.log").read_text("utf-8")


def goes_on(folder: Path, site, crawl: Path) -> None:
    """A new scrapyd in the same folder still has the egg; the job is scheduled once more."""
    site.hurried = True
    with Scrapyd(folder) as node:
        again = job(node, site, crawl)
        wait_for(node, again, "finished")
        assert f"Continuing the crawl in {crawl}" in node.log(again)
    assert Counter(stored(crawl)) == everything(site)


def test_systemctl_stop_lets_each_job_take_its_last_checkpoint(site, egg, tmp_path):
    """KillMode=control-group: SIGTERM to all at once, and scrapyd is the first to be gone."""
    crawl = tmp_path / "crawl"
    with Scrapyd(tmp_path / "node") as node:
        node.add_version("larmspider", "1", egg)
        one = job(node, site, crawl)
        wait_until(lambda: lines(crawl / "store.log") >= 2, "two pages are stored")
        pid = node.read("listjobs")["running"][0]["pid"]
        node.stop(group=True)
        wait_until(lambda: "known " in job_log(node, one), "the job has ended")
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "its process has")
        log = job_log(node, one)
    assert "ended       shutdown" in log
    assert "Traceback" not in log
    assert "Traceback" not in node.own_log()
    goes_on(tmp_path / "node", site, crawl)


def test_a_container_stops_when_its_jobs_have(site, egg, tmp_path):
    """node.sh gets the signal alone, and ends last."""
    crawl, folder = tmp_path / "crawl", tmp_path / "node"
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "scrapyd_password").write_text(PASSWORD + "\n", "utf-8")
    environment = {
        "SECRETS": str(secrets),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    config = (PROJECT / "deploy" / "scrapyd.conf").read_text("utf-8")
    command = ("bash", str(PROJECT / "deploy" / "node.sh"))
    with Scrapyd(folder, config=config, environment=environment, command=command) as node:
        assert node.get("/daemonstatus.json", password="")[0] == 401
        node.add_version("larmspider", "1", egg)
        one = job(node, site, crawl)
        wait_until(lambda: lines(crawl / "store.log") >= 2, "two pages are stored")
        assert node.stop() == 0
        assert "ended       shutdown" in job_log(node, one)
    goes_on(folder, site, crawl)


@pytest.mark.parametrize("password", ["", "\n"])
def test_a_container_without_a_password_does_not_start(tmp_path, password):
    """scrapyd would let in everybody."""
    (tmp_path / "scrapyd_password").write_text(password, "utf-8")
    command = ("bash", str(PROJECT / "deploy" / "node.sh"))
    node = Scrapyd(tmp_path / "node", command=command, environment={"SECRETS": str(tmp_path)})
    with pytest.raises(RuntimeError, match="would let in everybody"):
        node.__enter__()
