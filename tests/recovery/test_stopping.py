"""SIGTERM and Ctrl-C: the crawl stops soon and can go on, whatever the servers do."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.frontier.storage.records import UrlState
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from tests.support.crawling import records
from tests.support.recovery.killed_crawl import RunningCrawl, counts, description, visit, wait_until
from tests.support.servers.scripted import Raw, ScriptedServer

Start = Callable[..., ScriptedServer]
STOP_SECS = 60.0
"""The docs promise 5, a quiet machine takes 2.5; the requests that hang here last longer."""
PATIENT = """
from larmspider.settings import *
import larmspider.extensions.stop as stop
stop.STOP_SECS = 600
"""
"""A first signal waits for what hangs."""
PAGES = [f"/{number}" for number in range(20)]
HANGING = ["/mute", "/slow-head", "/trickle"]
HANG_UP = pytest.param(
    signal.SIGHUP,
    marks=pytest.mark.skipif(
        signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="run by nohup"
    ),
)
"""A terminal is closed."""
HARD = b"<p>hard</p>" + b"<i>" * 20_000 + b"</u>" * 1_000_000
LEADS_A_GROUP = "import os\nfrom larmspider.settings import *\nos.setpgrp()\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n"


def _for_ever(chunk: bytes) -> Iterator[bytes]:
    yield _HEAD
    while True:
        yield chunk


@pytest.fixture
def server(scripted_server: Start) -> ScriptedServer:
    """20 pages, and three URLs that are never answered to the end."""
    links = "".join(f'<a href="{path}">x</a>' for path in [*PAGES, *HANGING])
    return scripted_server(
        {
            "/": links,
            **dict.fromkeys(PAGES, "<p>a page</p>"),
            "/mute": Raw(b"", hang=True),
            "/slow-head": Raw([b"HTTP/1.1 200 OK\r\nX: "] + [b"y"] * 3600, pause=0.05),
            "/trickle": lambda _: Raw(_for_ever(b"<p>"), pause=0.05),
        }
    )


def _answer_all(server: ScriptedServer) -> None:
    for path in HANGING:
        server.routes[path] = "<p>at last</p>"


def _all_but_the_hanging_are_stored(server: ScriptedServer, crawl: Path) -> bool:
    asked = {request.target for request in server.log}
    return asked >= {*HANGING, *PAGES} and all(visit(crawl, server.url(path)) for path in PAGES)


def _pages(crawl: Path) -> int:
    """Pages that have passed all stores, as the crawl's Monitor.log says."""
    log = crawl / "Monitor.log"
    lines = log.read_text().split("\n")[1:-1] if log.exists() else []
    return int(lines[-1].split("\t")[1]) if lines else 0


def _complete(server: ScriptedServer, crawl: Path) -> None:
    stored = Counter(line["url"] for line in records(crawl / "store.log"))
    assert stored == Counter([server.url(path) for path in ["/", *PAGES, *HANGING]])
    asked = Counter(request.target for request in server.log)
    assert {path: times for path, times in asked.items() if times > 1 and path in PAGES} == {}
    assert counts(crawl).stored == len(PAGES) + len(HANGING) + 1


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, HANG_UP])
def test_stops_in_time_while_servers_hang_and_goes_on(
    server: ScriptedServer, tmp_path: Path, sent: signal.Signals
) -> None:
    """Everything stored is committed, what hung is queued; the same command ends complete."""
    with RunningCrawl(server.url(), tmp_path) as crawl:
        wait_until(lambda: _all_but_the_hanging_are_stored(server, crawl.crawl), "pages")
        crawl.process.send_signal(sent)
        status = crawl.end(STOP_SECS)
    assert (status, description(crawl.crawl)["end"]) == (0, "shutdown"), crawl.err
    left = counts(crawl.crawl)
    assert (left.stored, left.queued, left.leased) == (len(PAGES) + 1, len(HANGING), 0)
    _answer_all(server)
    with RunningCrawl(server.url(), tmp_path) as crawl:
        assert crawl.end() == 0, crawl.err
    assert "Continuing the crawl" in crawl.err
    assert description(crawl.crawl)["end"] == "finished"
    _complete(server, crawl.crawl)


def test_what_was_answered_since_the_last_checkpoint_is_committed_by_the_stop(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """With a checkpoint an hour away, the stop itself is one."""
    seldom = {"LARM_CHECKPOINT_SECS": "3600", "LARM_MONITOR_SECS": "0.2"}
    with RunningCrawl(server.url(), tmp_path, **seldom) as crawl:
        wait_until(lambda: _pages(crawl.crawl) == len(PAGES) + 1, "pages")
        assert counts(crawl.crawl).stored == 0
        crawl.process.send_signal(signal.SIGTERM)
        assert crawl.end() == 0
    assert counts(crawl.crawl).stored == len(PAGES) + 1
    assert len(records(crawl.crawl / "store.log")) == len(PAGES) + 1


def test_a_second_signal_stops_at_once(server: ScriptedServer, tmp_path: Path) -> None:
    """Status 1, no end in crawl.json, nothing lost: the same command ends complete."""
    (tmp_path / "patient.py").write_text(PATIENT)
    with RunningCrawl(server.url(), tmp_path, settings_module="patient") as crawl:
        wait_until(lambda: _all_but_the_hanging_are_stored(server, crawl.crawl), "pages")
        _interrupt_twice(crawl)
        assert crawl.end(STOP_SECS) == 1, crawl.err
    assert "end" not in description(crawl.crawl)
    _answer_all(server)
    with RunningCrawl(server.url(), tmp_path) as crawl:
        assert crawl.end() == 0, crawl.err
    _complete(server, crawl.crawl)


def _interrupt_twice(crawl: RunningCrawl) -> None:
    """The kernel makes one of two signals that come at once."""
    crawl.process.send_signal(signal.SIGINT)
    wait_until(lambda: "Received SIGINT" in crawl.said, "the first signal")
    assert crawl.running, "the first signal waits for what hangs"
    crawl.process.send_signal(signal.SIGINT)


def test_stops_while_a_host_waits_for_its_robots_txt(
    scripted_server: Start, tmp_path: Path
) -> None:
    """A robots.txt that never comes is let go of as well, and asked for again by the next run."""
    server = scripted_server({"/": "<p>home</p>", "/robots.txt": Raw(b"", hang=True)})
    with RunningCrawl(server.url(), tmp_path) as crawl:
        wait_until(lambda: bool(server.log), "robots.txt")
        crawl.process.send_signal(signal.SIGTERM)
        assert crawl.end(STOP_SECS) == 0, crawl.err
    assert visit(crawl.crawl, server.url()) is None
    server.routes["/robots.txt"] = (404, {}, b"")
    with RunningCrawl(server.url(), tmp_path) as crawl:
        assert crawl.end() == 0, crawl.err
    found = visit(crawl.crawl, server.url())
    assert found is not None
    assert found.state is UrlState.STORED


def test_a_second_signal_ends_what_is_read_too(scripted_server: Start, tmp_path: Path) -> None:
    hard = [f"/hard{number}" for number in range(4)]
    links = "".join(f'<a href="{path}">x</a>' for path in hard)
    server = scripted_server({"/": links, **dict.fromkeys(hard, HARD)})
    (tmp_path / "patient.py").write_text(PATIENT + READING)
    with RunningCrawl(server.url(), tmp_path, settings_module="patient") as crawl:
        wait_until((tmp_path / "reading").exists, "a document is read")
        _interrupt_twice(crawl)
        assert crawl.end(STOP_SECS) == 1, crawl.err


def test_stops_in_time_while_documents_are_read(scripted_server: Start, tmp_path: Path) -> None:
    """Each takes seconds in the process that reads large ones, one after the other; those that wait
    are fetched again, and none is stored unread, whichever processes get the signal."""
    hard = [f"/hard{number}" for number in range(6)]
    links = "".join(f'<a href="{path}">x</a>' for path in hard)
    server = scripted_server({"/": links, **dict.fromkeys(hard, HARD)})
    (tmp_path / "leads.py").write_text(LEADS_A_GROUP)
    with RunningCrawl(server.url(), tmp_path, settings_module="leads") as crawl:
        wait_until(lambda: len(server.log) == 2 + len(hard), "requests")
        time.sleep(1.0)  # one is being read
        os.killpg(crawl.process.pid, signal.SIGTERM)
        status = crawl.end(STOP_SECS)
    assert (status, description(crawl.crawl)["end"]) == (0, "shutdown"), crawl.err
    assert "Traceback" not in crawl.err
    left = counts(crawl.crawl)
    assert left.queued
    assert (left.stored + left.queued, left.leased) == (1 + len(hard), 0)
    server.routes |= dict.fromkeys(hard, "<p>easy</p>")
    with RunningCrawl(server.url(), tmp_path) as crawl:
        assert crawl.end() == 0, crawl.err
    fetched = Counter((line["url"], line["message"]) for line in records(crawl.crawl / "fetch.log"))
    assert fetched == Counter([(server.url(path), "") for path in ["/", *hard]])


# SIGTERM and Ctrl-C while a crawl is only just beginning, and while it is ending already.


PATHS = [f"/{number}" for number in range(20)]
SLOW = "tests.support.recovery.slow_stores"
WRITER = f"""
from larmspider.settings import *
import larmspider.pipelines.search_index as store
from {SLOW} import {{name}}
store.IndexWriter = {{name}}
"""
READING = """
from larmspider.settings import *
import larmspider.extraction.processes.process as reader
reader._PROGRAM = "import time, pathlib; pathlib.Path('reading').touch(); time.sleep(600)"
LARM_EXTRACTION_SECS = 600
"""
OPENING = f"""
from larmspider.settings import *
ITEM_PIPELINES = {{{{**ITEM_PIPELINES, "{SLOW}.SlowToOpen": 600}}}}
del ITEM_PIPELINES["larmspider.pipelines.search_index.SearchIndexPipeline"]
"""


@pytest.fixture
def small_server(scripted_server: Start) -> ScriptedServer:
    links = "".join(f'<a href="{path}">text of {path[1:]}</a>' for path in PATHS)
    return scripted_server({"/": links, **dict.fromkeys(PATHS, "<p>a page</p>")})


@pytest.fixture(params=[signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.acceptance)])
def sent(request: pytest.FixtureRequest) -> signal.Signals:
    found: signal.Signals = request.param
    return found


def _stopped_at(
    point: str, settings: str, small_server: ScriptedServer, folder: Path, sent: signal.Signals
) -> RunningCrawl:
    """The crawl gets the signal at that point, and ends in time with status 0."""
    (folder / "slow_settings.py").write_text(settings)
    crawl = RunningCrawl(
        small_server.url(), folder, settings_module="slow_settings", LARM_CHECKPOINT_SECS="3600"
    )
    with crawl:
        wait_until((folder / point).exists, point)
        crawl.process.send_signal(sent)
        (folder / "signalled").touch()
        assert crawl.end(STOP_SECS) == 0, crawl.err
    return crawl


def _goes_on_to_its_end(small_server: ScriptedServer, folder: Path) -> None:
    """The same command stores what is missing; pages are found by the texts of their links."""
    with RunningCrawl(small_server.url(), folder) as crawl:
        assert crawl.end() == 0, crawl.err
    assert description(crawl.crawl)["end"] == "finished"
    assert len(records(crawl.crawl / "store.log")) == len(PATHS) + 1
    assert counts(crawl.crawl).stored == len(PATHS) + 1
    assert [request.target for request in small_server.log].count(PATHS[7]) == 1
    found = Searcher.open(crawl.crawl / "index").search(
        SearchRequest("text", limit=100, copies=True)
    )
    # the word stands in the home page and in the texts of the links to the others
    assert sorted(hit.url for hit in found.hits) == sorted(map(small_server.url, ["/", *PATHS]))


def test_while_it_opens(small_server: ScriptedServer, tmp_path: Path, sent: signal.Signals) -> None:
    """The engine does not run yet, so Scrapy has nothing to stop."""
    crawl = _stopped_at("opening", OPENING.format(), small_server, tmp_path, sent)
    assert description(crawl.crawl)["end"] == "shutdown", crawl.err
    _goes_on_to_its_end(small_server, tmp_path)


@pytest.mark.parametrize(
    ("point", "name", "end"),
    [
        ("refreshing", "EndlessRefresh", "shutdown"),
        ("closing", "SlowLastCommit", "finished"),
        ("merging", "EndlessMerges", "finished"),
    ],
)
def test_while_it_ends(
    small_server: ScriptedServer,
    tmp_path: Path,
    sent: signal.Signals,
    point: str,
    name: str,
    end: str,
) -> None:
    """All is fetched; nothing was committed before, all is then."""
    crawl = _stopped_at(point, WRITER.format(name=name), small_server, tmp_path, sent)
    assert description(crawl.crawl)["end"] == end, crawl.err
    assert counts(crawl.crawl).stored == len(PATHS) + 1
    _goes_on_to_its_end(small_server, tmp_path)


@pytest.mark.acceptance
def test_while_a_large_document_is_read(
    scripted_server: Start, tmp_path: Path, sent: signal.Signals
) -> None:
    """Reading may take LARM_EXTRACTION_SECS; it is let go of, and done by the next run."""
    large = b"<title>all</title>" + b"<p>word</p>" * 60_000
    small_server = scripted_server(
        {"/": "<a href=/all>all</a>", "/all": (200, {"Content-Type": "text/html"}, large)}
    )
    crawl = _stopped_at("reading", READING, small_server, tmp_path, sent)
    left = counts(crawl.crawl)
    assert (left.stored, left.queued, left.failed) == (1, 1, 0), crawl.err
    with RunningCrawl(small_server.url(), tmp_path) as crawl:
        assert crawl.end() == 0, crawl.err
    titles = {line["url"]: line["title"] for line in records(crawl.crawl / "store.log")}
    assert titles == {small_server.url(): "", small_server.url("/all"): "all"}
