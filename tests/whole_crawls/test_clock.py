"""The time of day is set while a crawl runs: by NTP, or because the machine slept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.crawling import scrapy
from tests.support.servers.scripted import ScriptedServer

SETTINGS = """
import time

from larmspider.settings import *

LARM_CHECKPOINT_SECS = DOWNLOAD_DELAY = 0.1
DOWNLOADER_MIDDLEWARES = {**DOWNLOADER_MIDDLEWARES, "stepped_settings.Step": 999}
as_it_was, steps = time.time, []
time.time = lambda: as_it_was() + sum(steps)


class Step:
    def process_response(self, request, response):
        if not steps or request.url.endswith("/1"):
            steps.append(5 * 3600)
        return response
"""


def test_a_clock_that_jumps_ahead_makes_no_server_slow(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """During the fetch of robots.txt, and of a page: neither took five hours, nor is the gap so."""
    (tmp_path / "stepped_settings.py").write_text(SETTINGS)
    routes = {"/": "<a href=/1>x</a>", "/1": "<a href=/2>x</a>", "/2": "x"}
    server = scripted_server(routes)
    arguments = ["crawl", "intranet", "-a", f"start={server.url()}"]
    ran = scrapy(*arguments, cwd=tmp_path, settings_module="stepped_settings", timeout=30)
    assert ran.status == 0, ran.err
    assert [request.target for request in server.log] == ["/robots.txt", "/", "/1", "/2"]
