"""larmspider/extensions/tuning.py: the collector's set-up while a spider is open."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from larmspider.extensions.tuning import (
    THRESHOLDS,
    GarbageExtension,
    LarmLogFormatter,
    LarmSignals,
    TasksExtension,
    show_invisible_in_logs,
    store_in_turn,
)
from tests.support.crawling import PROJECT


def test_what_was_loaded_is_set_aside_until_the_spider_closes(
    crawler_for: Callable[..., Crawler],
) -> None:
    extension = GarbageExtension.from_crawler(crawler_for())
    before = gc.get_threshold()
    extension.spider_opened()
    try:
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == THRESHOLDS
    finally:
        extension.spider_closed()
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


def test_receivers_of_an_item_are_called_in_order_and_waited_for(
    crawler_for: Callable[..., Crawler], caplog: pytest.LogCaptureFixture
) -> None:
    """One that raises is logged, and the others are called."""
    crawler, called = crawler_for(), list[object]()

    def plain(item: str) -> None:
        called.append(item)

    def raises(response: str) -> None:
        raise ZeroDivisionError(response)

    async def slow(item: str, spider: str) -> str:
        await asyncio.sleep(0)
        called.append(spider)
        return spider

    for receiver in (plain, raises, slow):
        crawler.signals.connect(receiver, signal=signals.item_scraped)
    TasksExtension.from_crawler(crawler)
    assert isinstance(crawler.signals, LarmSignals)
    sent = {"item": "an item", "response": "a response", "spider": "a spider"}
    found = asyncio.run(crawler.signals.send_catch_log_async(signals.item_scraped, **sent))
    assert called == ["an item", "a spider"]
    results = dict(found)
    assert results[plain] is None
    assert isinstance(results[raises], ZeroDivisionError)
    assert results[slow] == "a spider"
    assert "Error caught on signal handler" in caplog.text


class _Scraper:
    """What `TasksExtension` needs of Scrapy's, which notes what it is given."""

    def __init__(self, concurrent_items: int) -> None:
        self.concurrent_items = concurrent_items
        self.noted: list[object] = []

    async def handle_spider_output_async(self, *_: object) -> None:
        self.noted.append("by Scrapy")

    async def _process_spidermw_output_async(self, item: object, response: object) -> None:
        self.noted.append(f"{item} begins")
        await asyncio.sleep(0)
        self.noted.append(f"{item} is stored")

    def handle_spider_error(self, failure: Failure, request: object, response: object) -> None:
        self.noted.append(failure.type)


async def _two_and_an_error() -> AsyncIterator[str]:
    yield "one"
    yield "two"
    raise ZeroDivisionError


@pytest.mark.parametrize("is_async", [True, False])
def test_items_of_a_page_are_stored_one_after_the_other(
    crawler_for: Callable[..., Crawler], is_async: bool
) -> None:
    """Also where more than one is stored at a time, by Scrapy itself."""
    hooks = sys.get_asyncgen_hooks()
    try:
        for concurrent_items in (1, 4):
            crawler, scraper = crawler_for(), _Scraper(concurrent_items)
            crawler.engine = SimpleNamespace(scraper=scraper)  # type: ignore[assignment]
            TasksExtension.from_crawler(crawler).spider_opened()
            output = _two_and_an_error() if is_async else ["one", "two"]
            asyncio.run(scraper.handle_spider_output_async(output, "request", "response"))
            if concurrent_items > 1:
                assert scraper.noted == ["by Scrapy"]
            else:
                stored = ["one begins", "one is stored", "two begins", "two is stored"]
                assert scraper.noted == stored + [ZeroDivisionError] * is_async
    finally:
        sys.set_asyncgen_hooks(*hooks)


def test_others_have_a_turn_between_two_items() -> None:
    class Quick(_Scraper):
        async def _process_spidermw_output_async(self, item: object, response: object) -> None:
            self.noted.append(item)

    async def stored() -> list[object]:
        scraper: Any = Quick(1)
        output = store_in_turn(scraper, [1, 2], Request("http://h/"), Response("http://h/"))
        task = asyncio.ensure_future(output)
        await asyncio.sleep(0)
        scraper.noted.append("another")
        await task
        return scraper.noted

    assert asyncio.run(stored()) == [1, "another", 2]


def test_a_generator_that_is_dropped_is_closed(crawler_for: Callable[..., Crawler]) -> None:
    closed = []

    async def generated() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append(sys.get_asyncgen_hooks().firstiter)

    async def dropped() -> None:
        crawler = crawler_for()
        crawler.engine = SimpleNamespace(scraper=_Scraper(1))  # type: ignore[assignment]
        TasksExtension.from_crawler(crawler).spider_opened()
        await anext(generated())
        await asyncio.sleep(0.01)
        assert closed == [None]

    asyncio.run(dropped())


# larmspider/extensions/tuning.py: what large buffers took is the system's again.


PROGRAM = """
import sys
from larmspider.extensions.tuning import fix_mapping_threshold

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "fixed":
    assert fix_mapping_threshold()
bytearray(30 << 20)  # freed: glibc now takes anything smaller from the heap, if it may
kept = []
buffers = []
before = resident()
for _ in range(60):
    buffers.append(bytearray(1 << 20))
    kept.append(bytearray(50_000))  # stays, so that the heap cannot shrink
del buffers
print(resident() - before)
"""


@pytest.mark.acceptance
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_bodies_leave_no_holes_in_the_heap() -> None:
    """60 MB of buffers between small ones that stay: nearly all come back, without it none does."""
    left = {}
    for way in ("fixed", "as it is"):
        command = [sys.executable, "-c", PROGRAM, way]
        ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
        left[way] = int(ran.stdout)
    assert left["fixed"] < 10 << 20 < left["as it is"]


# larmspider/extensions/tuning.py: no line for each page without a reader.


@pytest.mark.parametrize(
    ("level", "wanted"),
    [
        ("DEBUG", True),
        ("debug", True),
        (10, True),
        ("INFO", False),
        ("WARNING", False),
        (30, False),
    ],
)
def test_lines_for_each_page_are_made_for_level_debug(
    crawler_for: Callable[..., Crawler], level: object, wanted: bool
) -> None:
    crawler = crawler_for(LOG_LEVEL=level)
    assert crawler.spider is not None
    lines = LarmLogFormatter.from_crawler(crawler)
    request, response = Request("http://h/"), Response("http://h/")
    assert (lines.crawled(request, response, crawler.spider) is not None) is wanted
    assert (lines.scraped({}, response, crawler.spider) is not None) is wanted


def test_a_log_shows_what_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape sequences, and characters that turn the direction of others, from any logger."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(message)s"))
    monkeypatch.setattr(logging.root, "handlers", [handler])
    for _ in range(2):
        show_invisible_in_logs()
    logging.root.warning("Ignoring %s: \x1b[31mred\tf\u00fcr", "http://wiki/\u202efdp\u200b.exe")
    assert out.getvalue() == "Ignoring http://wiki/\\u202efdp\\u200b.exe: \\x1b[31mred\tf\u00fcr\n"
