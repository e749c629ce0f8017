"""A crawl in a process of its own, beside which the test goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import Counts, FetchRecord, url_key
from larmspider.urls.canonical import canonicalize
from tests.support.crawling import begin

WAIT_SECS = 30.0
QUICK = {
    "DOWNLOAD_DELAY": "0",
    "LARM_DELAY_RESPONSE_FACTOR": "0",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "8",
    "LARM_CHECKPOINT_SECS": "0.1",
}


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Look every 10 ms, for 30 s at most."""
    end = time.monotonic() + WAIT_SECS
    while not true():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.01)


class RunningCrawl:
    """``scrapy crawl intranet`` into ``folder``/crawl, from its start until it has ended.

    ``settings_module`` may lie in ``folder``; keywords are settings.
    """

    def __init__(
        self,
        start: str,
        folder: Path,
        *,
        settings_module: str = "larmspider.settings",
        **settings: str,
    ) -> None:
        self.crawl = folder / "crawl"
        options = [f"-s{name}={value}" for name, value in ({**QUICK} | settings).items()]
        command = ["crawl", "intranet", "-a", f"start={start}", *options]
        self._said = folder / "said"
        with self._said.open("w") as out:
            self.process = begin(*command, cwd=folder, out=out, settings_module=settings_module)
        self.err = ""

    def end(self, timeout: float = 60.0) -> int:
        """Its exit status, once it has ended."""
        status = self.process.wait(timeout)
        self.err = self._said.read_text("utf-8")
        return status

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()


def visit(crawl: Path, url: str) -> FetchRecord | None:
    """What the frontier had committed of a URL's end."""
    try:
        with FrontierReader(crawl / "frontier") as frontier:
            return frontier.visit(url_key(canonicalize(url)))
    except CrawlDirError:
        return None  # the crawl is only just beginning


def counts(crawl: Path) -> Counts:
    """Committed counters of all URLs."""
    with FrontierReader(crawl / "frontier") as frontier:
        return frontier.counts()


def description(crawl: Path) -> dict[str, Any]:
    """crawl.json."""
    found: dict[str, Any] = json.loads((crawl / "crawl.json").read_text("utf-8"))
    return found
