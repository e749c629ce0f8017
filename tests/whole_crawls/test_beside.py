"""A crawl that extracts pages in the process beside it stores the same pages as one without."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider import stats
from larmspider.extraction.processes.page_process import LEAST_BYTES, WAITING
from larmspider.search.searcher import Searcher
from tests.support.crawling import crawl, records
from tests.support.recovery.killed_crawl import RunningCrawl, counts, wait_until
from tests.support.servers.scripted import ScriptedServer

pytestmark = pytest.mark.acceptance
PATHS = [f"/{number}" for number in range(30)]
LINKS = "".join(f'<li><a href="{path}">Page {path[1:]}</a>' for path in PATHS)
WHERE = ("page-file", "offset", "from-page")
"""Fields of store.log that depend on the order in which pages came."""


def page(path: str) -> str:
    text = f"What page {path} is about. " * 400
    return f"<title>{path}</title><nav>{LINKS}</nav><main><h2 id=a>Part</h2>{text}</main>"


def lines(folder: Path, log: str) -> Counter[tuple[str, ...]]:
    return Counter(
        tuple(value for name, value in record.items() if name not in WHERE)
        for record in records(folder / "crawl" / log)
    )


def test_all_lines_of_the_logs_are_the_same(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    server = scripted_server({path: page(path) for path in ("/", *PATHS)})
    folders = tmp_path / "on", tmp_path / "off"
    for folder in folders:
        folder.mkdir()
        ran = crawl(server.url(), folder, LARM_EXTRACTION_BESIDE=folder.name)
        assert ran.status == 0, ran.err
        assert (stats.EXTRACTION_BESIDE in ran.err) == (folder.name == "on")
    for log in ("store.log", "links.log"):
        found = lines(folders[0], log)
        assert found == lines(folders[1], log)
        assert len(found) >= len(PATHS)


def processes_beside(crawl: int) -> list[int]:
    """Children of any of its threads that extract ordinary pages."""
    tasks = Path(f"/proc/{crawl}/task").glob("*/children")
    children = [int(pid) for task in tasks for pid in task.read_text().split()]
    return [pid for pid in children if b"process_child import main; main(" in command_of(pid)]


def command_of(pid: int) -> bytes:
    """The command line of a process, empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found by /proc")
def test_kill_9_with_pages_in_the_process_loses_none(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """One that is stopped holds nothing up but the pages that it has; it ends with the crawl, and
    the same command stores them."""
    paths = [f"/{number}" for number in range(2 * WAITING)]
    links = "".join(f"<a href={path}>{path}</a>" for path in paths)
    server = scripted_server({"/": links, **{path: page(path) for path in paths}})
    assert len(links) < LEAST_BYTES, "the crawl itself finds them"
    pages = 1 + len(paths)
    with RunningCrawl(server.url(), tmp_path, LARM_EXTRACTION_BESIDE="on") as crawl:
        wait_until(lambda: bool(processes_beside(crawl.process.pid)), "the process")
        [beside] = processes_beside(crawl.process.pid)
        os.kill(beside, signal.SIGSTOP)
        wait_until(lambda: counts(crawl.crawl).stored >= pages - WAITING, "all others")
        crawl.process.kill()
        crawl.process.wait()
    assert counts(crawl.crawl).stored == pages - WAITING
    wait_until(lambda: not command_of(beside), "its end")
    with RunningCrawl(server.url(), tmp_path, LARM_EXTRACTION_BESIDE="on") as crawl:
        assert crawl.end() == 0, crawl.err
    stored = Counter(line["url"] for line in records(crawl.crawl / "store.log"))
    assert stored == Counter([server.url(path) for path in ("/", *paths)])
    searcher = Searcher.open(crawl.crawl / "index")
    assert all(searcher.get(url) for url in stored)
