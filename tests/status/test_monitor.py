"""The monitor and the checkpoint in a running crawl: files grow while it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT, records, scrapy
from tests.support.servers.scripted import Reply, Request, ScriptedServer


@pytest.mark.acceptance
def test_logs_and_index_are_readable_while_the_crawl_runs(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """A line of Monitor.log each interval, flushed logs and a searchable index each checkpoint;
    Ctrl-C then ends it with everything written and the reason in crawl.json."""

    def page(request: Request) -> Reply:
        number = int(request.target.strip("/") or 0)
        body = f"<title>Page {number}</title>zebra <a href=/{number + 1}>next</a>"
        return Reply(200, {"Content-Type": "text/html"}, body.encode(), delay=0.02)

    server = scripted_server({"/": page} | {f"/{n}": page for n in range(1, 2000)})
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "larmspider.settings"}
    environment["PYTHONPATH"] = str(PROJECT)
    options = ["LARM_MONITOR_SECS=0.2", "LARM_CHECKPOINT_SECS=0.2", "DOWNLOAD_DELAY=0"]
    arguments = ["crawl", "intranet", "-a", f"start={server.url('/')}"]
    for option in options:
        arguments += ["-s", option]
    child = subprocess.Popen(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        wait_for(lambda: hits(tmp_path), child)
        monitor = (tmp_path / "crawl" / "Monitor.log").read_text("utf-8").splitlines()
        assert records(tmp_path / "crawl" / "store.log")
        assert records(tmp_path / "crawl" / "links.log")
        assert len(monitor) > 1
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=120)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0
    assert out.splitlines()[0] == "ended       shutdown"
    stored = records(tmp_path / "crawl" / "store.log")
    assert f"stored      {len(stored)} pages" in out
    assert hits(tmp_path) == len(stored)
    assert '"end": "shutdown"' in (tmp_path / "crawl" / "crawl.json").read_text("utf-8")


def hits(folder: Path) -> int:
    ran = scrapy("search", "zebra", "--json", "-n", "1", cwd=folder)
    return ran.json["total"] if ran.status == 0 else 0


def wait_for(count: Callable[[], int], child: subprocess.Popen[str]) -> int:
    """The first count above 0; fails when the crawl ends before, or after two minutes."""
    end = time.monotonic() + 120
    while time.monotonic() < end and child.poll() is None:
        if number := count():
            return number
    raise AssertionError("nothing was found while the crawl ran")
