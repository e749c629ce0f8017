"""The documents of one host take all the time that they get; the documents of another host are
still read, and no page waits. The tests count CPU seconds of the readers, which a busy machine does
not change."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import crawl, records
from tests.support.documents import corpus
from tests.support.servers.scripted import Reply, ScriptedServer

pytestmark = pytest.mark.acceptance
Start = Callable[..., ScriptedServer]

LIMIT, DOCUMENTS, PAGES = 2.0, 30, 20
PDF, HTML = {"Content-Type": "application/pdf"}, {"Content-Type": "text/html"}
_READ = re.compile(r"([0-9.]+) CPU s to read (\S+)|Crawled \(200\) <GET (\S+)>")


def links(*paths: str) -> bytes:
    return b"<title>t</title>" + b"".join(b'<a href="%b">x</a> ' % path.encode() for path in paths)


def hostile(size: int = 0) -> dict[str, Reply]:
    slow = corpus.slow_pdf(size)
    replies = {f"/slow{number}.pdf": Reply(200, PDF, slow) for number in range(DOCUMENTS)}
    return {"/": Reply(200, HTML, links(*replies)), **replies}


def good() -> dict[str, Reply]:
    """Its first page comes after all hostile documents."""
    replies = {
        f"/{number}.pdf": Reply(200, PDF, corpus.pdf([f"good words {number}"]))
        for number in range(DOCUMENTS)
    }
    replies |= {f"/{number}.html": Reply(200, HTML, links()) for number in range(PAGES)}
    return {"/": Reply(200, HTML, links(*replies), delay=1.0), **replies}


class Log:
    """The fetches and reads of a crawl in their order, with the CPU seconds of each document."""

    def __init__(self, text: str, bad: ScriptedServer, well: ScriptedServer) -> None:
        self.found = [
            (float(cost or 0.0), read, fetched) for cost, read, fetched in _READ.findall(text)
        ]
        self.bad, self.well = bad.url(""), well.url("")

    def hostile_cost_until(self, url: str) -> float:
        """CPU seconds that hostile documents had taken when the last good one whose URL ends so was
        read, or was fetched where it is a page."""
        last = max(
            at
            for at, (_, read, fetched) in enumerate(self.found)
            if (read or fetched).startswith(self.well) and (read or fetched).endswith(url)
        )
        return sum(cost for cost, read, _ in self.found[:last] if read.startswith(self.bad))

    def read(self, origin: str) -> int:
        return len({read for _, read, _ in self.found if read.startswith(origin)})


def run(bad: ScriptedServer, well: ScriptedServer, folder: Path, **settings: str) -> Log:
    own = {"LARM_DOCUMENT_SECS": f"{LIMIT:g}", "LOG_LEVEL": "DEBUG"} | settings
    ran = crawl(f"{bad.url()} {well.url()}", folder, timeout=900, **own)
    assert ran.status == 0, ran.err[-2000:]
    return Log(ran.err, bad, well)


@pytest.mark.parametrize("readers", ["0", "1"])
def test_good_documents_are_read_before_hostile_ones_have_cost_three_limits(
    scripted_server: Start, tmp_path: Path, readers: str
) -> None:
    bad, well = scripted_server(hostile()), scripted_server(good())
    log = run(bad, well, tmp_path, LARM_DOCUMENT_READERS=readers)
    assert log.read(log.bad) == log.read(log.well) == DOCUMENTS
    assert log.hostile_cost_until(".pdf") < 3 * LIMIT
    assert log.hostile_cost_until(".html") < 3 * LIMIT
    said = "\n".join(map(str, records(tmp_path / "crawl" / "fetch.log")))
    assert "the limit of its host is 1 s in place of 2 (LARM_DOCUMENT_SECS)" in said


def test_large_documents_that_wait_hold_up_no_page(scripted_server: Start, tmp_path: Path) -> None:
    """Two of them would fill what all pages together may have; they are fetched again later."""
    bad, well = scripted_server(hostile(60_000)), scripted_server(good())
    log = run(bad, well, tmp_path, SCRAPER_SLOT_MAX_ACTIVE_SIZE="100000")
    assert log.read(log.bad) == log.read(log.well) == DOCUMENTS
    assert log.hostile_cost_until(".html") < 3 * LIMIT
    assert log.hostile_cost_until(".pdf") < 3 * LIMIT
