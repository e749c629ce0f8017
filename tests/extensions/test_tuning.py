"""larmspider/extensions/tuning.py: the collector's set-up while a spider is open."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import subprocess
import sys
from collections.abc import Callable

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from larmspider.extensions.tuning import (
    THRESHOLDS,
    GarbageExtension,
    LarmLogFormatter,
    LarmSignals,
    SignalsExtension,
    show_invisible_in_logs,
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
    with pytest.raises(NotConfigured):
        SignalsExtension.from_crawler(crawler)
    assert isinstance(crawler.signals, LarmSignals)
    sent = {"item": "an item", "response": "a response", "spider": "a spider"}
    found = asyncio.run(crawler.signals.send_catch_log_async(signals.item_scraped, **sent))
    assert called == ["an item", "a spider"]
    results = dict(found)
    assert results[plain] is None
    assert isinstance(results[raises], ZeroDivisionError)
    assert results[slow] == "a spider"
    assert "Error caught on signal handler" in caplog.text


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_bodies_leave_no_holes_in_the_heap() -> None:
    """60 MB of buffers between small ones that stay: nearly all come back, without it none does."""
    left = {}
    for way in ("fixed", "as it is"):
        command = [sys.executable, "-c", PROGRAM, way]
        ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
        left[way] = int(ran.stdout)
    assert left["fixed"] < 10 << 20 < left["as it is"]


# larmspider/extensions/tuning.py: no line for each page where nobody reads it.


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
    """Escape sequences, and characters that turn the direction of others, whoever logs them."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(message)s"))
    monkeypatch.setattr(logging.root, "handlers", [handler])
    for _ in range(2):
        show_invisible_in_logs()
    logging.root.warning("Ignoring %s: \x1b[31mred\tf\u00fcr", "http://wiki/\u202efdp\u200b.exe")
    assert out.getvalue() == "Ignoring http://wiki/\\u202efdp\\u200b.exe: \\x1b[31mred\tf\u00fcr\n"
