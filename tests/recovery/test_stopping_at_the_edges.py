"""SIGTERM and Ctrl-C while a crawl is only just beginning, and while it is ending already."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.index.search import Searcher
from tests.recovery.test_stopping import STOP_SECS
from tests.support.crawling import records
from tests.support.recovery.running import RunningCrawl, counts, description, wait_until
from tests.support.servers.scripted import ScriptedServer

Start = Callable[..., ScriptedServer]
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
import larmspider.extraction.process as reader
reader._PROGRAM = "import time, pathlib; pathlib.Path('reading').touch(); time.sleep(60)"
LARM_EXTRACTION_SECS = 60
"""
OPENING = f"""
from larmspider.settings import *
ITEM_PIPELINES = {{{{**ITEM_PIPELINES, "{SLOW}.SlowToOpen": 600}}}}
del ITEM_PIPELINES["larmspider.pipelines.search_index.SearchIndexPipeline"]
"""


@pytest.fixture
def server(scripted_server: Start) -> ScriptedServer:
    links = "".join(f'<a href="{path}">text of {path[1:]}</a>' for path in PATHS)
    return scripted_server({"/": links, **dict.fromkeys(PATHS, "<p>a page</p>")})


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT])
def sent(request: pytest.FixtureRequest) -> signal.Signals:
    found: signal.Signals = request.param
    return found


def _stopped_at(
    point: str, settings: str, server: ScriptedServer, folder: Path, sent: signal.Signals
) -> RunningCrawl:
    """The crawl gets the signal at that point, and ends in time with status 0."""
    (folder / "slow_settings.py").write_text(settings)
    crawl = RunningCrawl(
        server.url(), folder, settings_module="slow_settings", LARM_CHECKPOINT_SECS="3600"
    )
    with crawl:
        wait_until((folder / point).exists, point)
        began = time.monotonic()
        crawl.process.send_signal(sent)
        assert crawl.end() == 0, crawl.err
        assert time.monotonic() - began < STOP_SECS
    return crawl


def _goes_on_to_its_end(server: ScriptedServer, folder: Path) -> None:
    """The same command stores what is missing; pages are found by the texts of their links."""
    with RunningCrawl(server.url(), folder) as crawl:
        assert crawl.end() == 0, crawl.err
    assert description(crawl.crawl)["end"] == "finished"
    assert len(records(crawl.crawl / "store.log")) == len(PATHS) + 1
    assert counts(crawl.crawl).stored == len(PATHS) + 1
    assert [request.target for request in server.log].count(PATHS[7]) == 1
    found = Searcher.open(crawl.crawl / "index").search("text", limit=100)
    # the word stands in the home page and in the texts of the links to the others
    assert sorted(hit.url for hit in found.hits) == sorted(map(server.url, ["/", *PATHS]))


def test_while_it_opens(server: ScriptedServer, tmp_path: Path, sent: signal.Signals) -> None:
    """The engine does not run yet, so Scrapy has nothing to stop."""
    crawl = _stopped_at("opening", OPENING.format(), server, tmp_path, sent)
    assert description(crawl.crawl)["end"] == "shutdown", crawl.err
    _goes_on_to_its_end(server, tmp_path)


@pytest.mark.parametrize(
    ("point", "name", "end"),
    [
        ("refreshing", "EndlessRefresh", "shutdown"),
        ("closing", "SlowLastCommit", "finished"),
        ("merging", "EndlessMerges", "finished"),
    ],
)
def test_while_it_ends(
    server: ScriptedServer,
    tmp_path: Path,
    sent: signal.Signals,
    point: str,
    name: str,
    end: str,
) -> None:
    """All is fetched; nothing was committed before, all is then."""
    crawl = _stopped_at(point, WRITER.format(name=name), server, tmp_path, sent)
    assert description(crawl.crawl)["end"] == end, crawl.err
    assert counts(crawl.crawl).stored == len(PATHS) + 1
    _goes_on_to_its_end(server, tmp_path)


def test_while_a_large_document_is_read(
    scripted_server: Start, tmp_path: Path, sent: signal.Signals
) -> None:
    """Reading may take LARM_EXTRACTION_SECS; it is let go of, and done by the next run."""
    large = b"<title>all</title>" + b"<p>word</p>" * 60_000
    server = scripted_server(
        {"/": "<a href=/all>all</a>", "/all": (200, {"Content-Type": "text/html"}, large)}
    )
    crawl = _stopped_at("reading", READING, server, tmp_path, sent)
    left = counts(crawl.crawl)
    assert (left.stored, left.queued, left.failed) == (1, 1, 0), crawl.err
    with RunningCrawl(server.url(), tmp_path) as crawl:
        assert crawl.end() == 0, crawl.err
    titles = {line["url"]: line["title"] for line in records(crawl.crawl / "store.log")}
    assert titles == {server.url(): "", server.url("/all"): "all"}
