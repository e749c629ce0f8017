"""Where scrapy crawl says how it ended: on the terminal, and in LOG_FILE where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.crawling import FAST, PROJECT, crawl
from tests.support.servers.scripted import ScriptedServer


def test_the_summary_is_in_the_log_file_too(scripted_server, tmp_path):
    server: ScriptedServer = scripted_server({"/": "<p>hello"})
    ran = crawl(server.url(), tmp_path, LOG_FILE="log")
    assert ran.status == 0
    log = (tmp_path / "log").read_text("utf-8")
    for line in ran.out.splitlines():
        assert f"INFO: {line}" in log


def test_what_was_refused_is_in_the_log_file_too(tmp_path):
    ran = crawl("gopher://h/", tmp_path, LOG_FILE="log")
    assert ran.status == 2
    assert f"CRITICAL: {ran.err.removeprefix('scrapy crawl: ').strip()}" in (
        tmp_path / "log"
    ).read_text("utf-8")


def test_a_crawl_whose_reader_has_left_ends_well(scripted_server, tmp_path: Path):
    """scrapyd, which reads a job's output, may be gone before its jobs."""
    server: ScriptedServer = scripted_server({"/": "<p>hello"})
    command = [sys.executable, "-m", "scrapy", "crawl", "intranet", "-a", f"start={server.url()}"]
    for name, value in {**FAST, "LOG_FILE": "log"}.items():
        command += ["-s", f"{name}={value}"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ
            | {"SCRAPY_SETTINGS_MODULE": "larmspider.settings", "PYTHONPATH": str(PROJECT)},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "stored    1 page," in (tmp_path / "log").read_text("utf-8")
