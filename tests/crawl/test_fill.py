"""larmspider/crawl/fill.py: what a receiver that comes late is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.crawl.fill import Fill, forget_unfinished, stored_items, unfinished
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import CrawlDirError
from larmspider.items import REDIRECT, Page, Removed
from larmspider.pipelines.outbox.dummy import DummyReceiver
from larmspider.pipelines.outbox.sender import DEAD_LOG_COLUMNS, dead_log
from larmspider.pipelines.outbox.spool import (
    FOLDER,
    RETRY,
    Cursor,
    Standing,
    fill_folder,
    standings,
    write_retried,
)
from larmspider.pipelines.records import RecordLog
from tests.support.stored_crawl import GONE, PDF, A, B, StoredCrawl, two_pages


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    return CrawlDir(two_pages(tmp_path / "crawl"))


def test_the_last_versions_are_sent_with_links_and_times(crawl: CrawlDir) -> None:
    """Then what was taken out; the stamp is the time of the fetch, and offsets lead on."""
    with stored_items(crawl, Settings({"LARM_LANGUAGES": ""})) as items:
        found = list(items.all_from(0))
        rest = list(items.all_from(found[0][0]))
    assert (items.total, len(found)) == (3, 3)
    (_, first, stamp), (end, second, _), (last, gone, taken_out) = found
    assert isinstance(first, Page)
    assert (first.url, first.title, first.text.strip(), first.body[:7]) == (
        A, "A", "new text", b"<title>",
    )  # fmt: skip
    assert [(link.url, link.type, link.anchor) for link in first.links] == [
        (B, 0, "to b"), (PDF, REDIRECT, ""),
    ]  # fmt: skip
    assert (stamp, first.fetched, first.from_page, first.stored_at) == (1003.0, 1003.0, B, (0, 4))
    assert isinstance(second, Page)
    assert (second.url, second.text) == (B, "=1+1")
    assert isinstance(gone, Removed)
    assert (gone.url, gone.reason, taken_out) == (GONE, "gone", 1005.0)
    assert end < last == (crawl.path / "store.log").stat().st_size
    assert [item.url for _, item, _ in rest] == [B, GONE]


def test_only_what_a_checkpoint_has_is_sent(tmp_path: Path) -> None:
    """The crawl goes on meanwhile."""
    stored = StoredCrawl(tmp_path / "crawl", refresh=False)
    stored.store(A, Page(A, A, body=b"1", mime="text/plain"))
    stored.checkpoint()
    stored.make_frontier([A])
    stored.store(B, Page(B, B, body=b"2", mime="text/plain"))
    stored.close()
    with stored_items(CrawlDir(stored.path), Settings({"LARM_LANGUAGES": ""})) as items:
        assert [item.url for _, item, _ in items.all_from(0)] == [A]


def test_a_body_that_is_damaged_is_left_to_the_sender(crawl: CrawlDir) -> None:
    """Which makes a dead letter of that page alone."""
    with (crawl.path / "pagefile_0.pfl").open("r+b") as file:
        file.truncate(20)
    with stored_items(crawl, Settings({"LARM_LANGUAGES": ""})) as items:
        pages = [item for _, item, _ in items.all_from(0) if isinstance(item, Page)]
    assert [(page.body, page.size > 0) for page in pages] == [(b"", True)] * 2


def test_one_command_at_a_time_fills_a_receiver(crawl: CrawlDir) -> None:
    """Meanwhile nothing is compacted; a fill that was killed begins again afterwards."""
    settings = Settings({"LARM_OUTBOX_END_SECS": 1})
    with Fill(crawl, settings, DummyReceiver):
        with pytest.raises(CrawlDirError, match="is in use"):
            Fill(crawl, settings, DummyReceiver).__enter__()
        with pytest.raises(CrawlDirError, match="is in use: `scrapy outbox` sends from there"):
            forget_unfinished(crawl.path)
    (fill_folder(crawl.path, "DummyReceiver") / "state.json").write_text("{}")
    forget_unfinished(crawl.path)
    assert not (fill_folder(crawl.path, "DummyReceiver") / "state.json").exists()


def test_a_fill_has_come_as_far_as_its_receiver_has_taken(crawl: CrawlDir) -> None:
    """The fill has read 40 of 60 entries, and 25 of the 40 are in the outbox still."""
    folder = fill_folder(crawl.path, "DummyReceiver")
    folder.mkdir(parents=True)
    state = {"place": [6_374, 40, 60], "spool": [9_000, 100, 0], "began": "", "mark": ""}
    (folder / "state.json").write_text(json.dumps(state))
    Cursor(offset=5_000, number=75).write(folder, "DummyReceiver")
    assert unfinished(crawl.path) == {"DummyReceiver": (15, 60)}


def test_dead_letters_that_were_sent_again_count_no_more(crawl: CrawlDir) -> None:
    """Three were refused, two of them are taken up, and one is refused again."""
    outbox, folder = crawl.path / FOLDER, fill_folder(crawl.path, "DummyReceiver", RETRY)
    folder.mkdir(parents=True)
    Cursor(sent=7, dead=3).write(outbox, "DummyReceiver")
    Cursor(sent=1, dead=1).write(folder, "DummyReceiver")
    write_retried(folder, 2)
    assert standings([crawl.path]) == {"DummyReceiver": Standing(0, 8, 2, "")}


def test_letters_are_taken_out_of_the_log(crawl: CrawlDir) -> None:
    outbox = crawl.path / FOLDER
    outbox.mkdir()
    log = RecordLog(outbox / dead_log("DummyReceiver"), DEAD_LOG_COLUMNS)
    log.append("t", A, "s", "too old")
    log.close()
    with Fill(crawl, Settings({"LARM_OUTBOX_END_SECS": 1}), DummyReceiver, RETRY) as fill:
        assert fill.take_letters() == {A}
        assert not (outbox / dead_log("DummyReceiver")).exists()
        assert fill.take_letters() == {A}, "after a kill"


@pytest.mark.acceptance
def test_a_fill_that_was_killed_at_its_end_begins_again(
    crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has sent all, and its state is left: the receiver may be another one by now."""
    settings = Settings({"LARM_OUTBOX_END_SECS": 60, "LARM_LANGUAGES": ""})
    unlink, sent = Path.unlink, []
    monkeypatch.setattr(
        Path, "unlink", lambda path, **more: path.name == "state.json" or unlink(path, **more)
    )
    for _ in range(2):
        with (
            Fill(crawl, settings, DummyReceiver) as fill,
            stored_items(crawl, settings) as items,
        ):
            fill.send_all(items)
        sent.append(fill.sent)
    assert sent == [3, 3]
