"""Stores that are slow at a crawl's beginning and end, and say when they are there: with a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from larmspider.index.writer import IndexWriter
from larmspider.pipelines.search_index import SearchIndexPipeline


class EndlessMerges(IndexWriter):
    """Its merges never end by themselves."""

    def _wait_for_merges(self, hurry: Callable[[], bool]) -> None:
        _reached("merging")
        while not hurry():
            time.sleep(0.01)
        super()._wait_for_merges(hurry)


class SlowLastCommit(IndexWriter):
    def close(self, hurry: Callable[[], bool] = lambda: False) -> None:
        _reached("closing")
        _signalled()
        super().close(hurry)


class EndlessRefresh(IndexWriter):
    """It never gets all link texts up to date."""

    def refresh_all_anchors(self, stop: Callable[[], bool] = lambda: False) -> int:
        _reached("refreshing")
        while not stop():
            time.sleep(0.01)
        return 0


class SlowToOpen(SearchIndexPipeline):
    def open_spider(self) -> None:
        _reached("opening")
        _signalled()
        super().open_spider()


def _reached(point: str) -> None:
    Path(point).touch()


def _signalled() -> None:
    """Wait until the test has sent its signal, for a minute at most."""
    end = time.monotonic() + 60
    while not Path("signalled").exists() and time.monotonic() < end:
        time.sleep(0.01)
