"""larmspider/pipelines/records.py: what a store that is one log does between start and end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from larmspider.errors import CrawlDirError
from larmspider.items import Page
from larmspider.pipelines.records import LogStore


class TitleLog(LogStore):
    file_name = "titles.log"
    columns = ("url", "title")

    def write(self, page: Page) -> None:
        self.log.append(page.url, page.title)


@pytest.fixture
def store(tmp_path: Path) -> TitleLog:
    return TitleLog(tmp_path / "crawl")


def test_it_goes_back_to_what_a_checkpoint_named(store: TitleLog) -> None:
    """And goes on from there."""
    store.open_spider()
    store.write(Page("http://h/1", title="one"))
    position = store.flush()
    store.write(Page("http://h/2", title="two"))
    store.close_spider()
    store.recover(position)
    store.open_spider()
    store.write(Page("http://h/3", title="three"))
    assert store.flush() > position
    assert (store.directory / "titles.log").read_text() == "http://h/1\tone\nhttp://h/3\tthree\n"
    store.close_spider()


def test_the_position_holds_for_what_was_written_and_after_the_end(store: TitleLog) -> None:
    """The last checkpoint comes after close_spider()."""
    store.open_spider()
    store.write(Page("http://h/1", title="one"))
    store.close_spider()
    assert store.flush() == b"15"


def test_a_store_that_was_never_opened_has_nothing_to_say(store: TitleLog) -> None:
    """A crawl that fails at its start ends them all the same."""
    assert store.flush() == b""
    asyncio.run(store.commit())
    store.close_spider()
    assert not store.directory.exists()


def test_a_file_shorter_than_its_position_is_refused(store: TitleLog) -> None:
    """What was committed is not there."""
    with pytest.raises(CrawlDirError, match="has 0 bytes, 15 were committed"):
        store.recover(b"15")
