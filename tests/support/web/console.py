"""The server as a process: ``with serving(folder) as server: server.api("/crawls")``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.crawling import PROJECT
from tests.support.web.serving import Got, request


class Running:
    """A server process; ``key`` is the one-time key, if it printed one."""

    def __init__(self, process: subprocess.Popen[str], said: str, address: str) -> None:
        self.process, self.said = process, said
        self.url, _, query = address.partition("/first")
        self.url = self.url.rstrip("/")
        self.key = query.partition("key=")[2]
        self.token = ""

    def api(self, path: str, method: str = "GET", body: object = None) -> Any:
        got = self.raw(path, method, body)
        assert got.status < 300, got.text
        return got.json

    def raw(self, path: str, method: str = "GET", body: object = None) -> Got:
        headers = {"Authorization": f"Bearer {self.token}"}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        return request(f"{self.url}/api/v1{path}", method, headers, data)


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Running]:
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "larmspider.settings"}
    environment |= {"PYTHONPATH": str(PROJECT), "LARMSPIDER_PROGRAM": "larmspider"}
    with (folder / "server.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "server", "--home", "home", "--port", "0", *arguments],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        said = []
        while not (line := process.stdout.readline()).startswith("http"):
            assert line, (folder / "server.log").read_text()
            said.append(line)
        yield Running(process, "".join(said), line.strip())
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def until(true: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := true():
            return value
        time.sleep(0.1)
    raise AssertionError(f"not in {seconds:g} s: {what}")


def first_token(server: Running) -> str:
    form = {"key": server.key, "name": "ada", "password": "correct horse"}
    got = request(f"{server.url}/first", "POST", form=form)
    found = re.search(r'<code id="token">([^<]+)</code>', got.text)
    assert found, got.text
    return found[1]
