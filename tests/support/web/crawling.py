"""A crawl that runs in another process and serves its own pages, and the site that it crawls.

with Crawling(tmp_path, server.url("/")) as crawl:
    crawl.get("/stats.json").json["numbers"]["pages"]
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.crawling import begin
from tests.support.servers.scripted import Reply, Request
from tests.support.web.serving import Got, request

WAIT_SECS = 60.0
SETTINGS = {
    "DOWNLOAD_DELAY": "0.05",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "LARM_BACKOFF_SECS": "0.1",
    "LARM_MONITOR_SECS": "0.2",
    "LARM_CHECKPOINT_SECS": "0.3",
    "LARM_WEB_PORT": "0",
}


def endless(links: int = 3) -> Callable[[Request], Reply]:
    """A page at any path, with some links to pages that were not linked before."""

    def page(asked: Request) -> Reply:
        number = int(re.sub(r"\D", "", asked.target) or 0)
        to = "".join(f"<a href=/{number * links + n + 1}>page</a>" for n in range(links))
        return Reply(200, {"Content-Type": "text/html"}, f"<title>{number}</title>{to}".encode())

    return page


class Crawling:
    """``settings`` over SETTINGS; ends with SIGINT unless it has ended."""

    def __init__(self, folder: Path, start: str, **settings: str) -> None:
        self.folder, self.directory = folder, folder / "crawl"
        arguments = ["crawl", "intranet", "-a", f"start={start}"]
        for name, value in ({**SETTINGS} | settings).items():
            arguments += ["-s" if name.isupper() else "-a", f"{name}={value}"]
        self._arguments = arguments
        self.url = ""

    def __enter__(self) -> Self:
        self._said = (self.folder / "said").open("w+")
        self.process = begin(*self._arguments, cwd=self.folder, out=self._said)
        found = self.until(
            lambda: re.search(r"Web pages of this crawl: (http://\S+)/\n", self.said),
            "its address",
        )
        self.url = found[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                self.process.wait(WAIT_SECS)
        finally:
            self.process.kill()
            self.process.wait()
            self._said.close()

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text("utf-8", "replace")

    @property
    def token(self) -> str:
        return (self.directory / "web.token").read_text().strip()

    def get(self, target: str, **headers: str) -> Got:
        return request(
            self.url + target, headers={name.replace("_", "-"): v for name, v in headers.items()}
        )

    def act(self, name: str, form: Mapping[str, str] | None = None) -> Got:
        """As a script does it, with the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return request(f"{self.url}/control/{name}", "POST", headers, form or {"x": ""})

    @property
    def gauges(self) -> Any:
        return self.get("/stats.json").json["numbers"]

    def until(self, true: Callable[[], Any], what: str) -> Any:
        """The first true value."""
        end = time.monotonic() + WAIT_SECS
        while time.monotonic() < end:
            if value := true():
                return value
            if self.process.poll() is not None:
                raise AssertionError(f"ended before {what}: {self.said[-3000:]}")
            time.sleep(0.05)
        raise AssertionError(f"not in {WAIT_SECS:g} s: {what}; {self.said[-2000:]}")
