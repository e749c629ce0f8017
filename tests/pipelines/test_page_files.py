"""larmspider/pipelines/page_files.py"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem

from larmspider.errors import ConfigError
from larmspider.fetch.blobs import Blob
from larmspider.items import Page
from larmspider.pipelines.page_files import BLOBS, PageFilesPipeline, blob_file, sync_files
from larmspider.pipelines.records import AppendFile
from larmspider.workdir.frames import open_stored
from tests.support.crawling import body_of, records

CrawlerFor = Callable[..., Crawler]


def stored(crawler_for: CrawlerFor, *pages: Page, **settings: object) -> list[dict[str, str]]:
    crawler = crawler_for(**settings)
    store = PageFilesPipeline.from_crawler(crawler)
    store.open_spider()
    try:
        for page in pages:
            store.process_item(page)
    finally:
        store.close_spider()
    return records(Path(crawler.settings["LARM_DIR"]) / "store.log")


@pytest.mark.parametrize("compression", ["", "zstd"])
def test_bodies_lie_where_store_log_says(
    crawler_for: CrawlerFor, tmp_path: Path, compression: str
) -> None:
    """Any bytes, of any length from 0, one after the other; compressed as well."""
    bodies = [b"one", b"", bytes(range(256)) * 1_000, b"\n\t", b"last"]
    pages = [Page(f"http://h/{n}", body=body) for n, body in enumerate(bodies)]
    lines = stored(crawler_for, *pages, LARM_COMPRESSION=compression)
    assert [body_of(tmp_path / "crawl", line) for line in lines] == bodies
    page_file = tmp_path / "crawl" / "pagefile_0.pfl"
    with open_stored(page_file) as file:
        assert file.read() == b"".join(bodies)
    assert page_file.exists() == (not compression)
    assert (tmp_path / "crawl" / "store.log.zst").exists() == bool(compression)


def test_page_files_go_on_in_the_form_that_they_have(
    crawler_for: CrawlerFor, tmp_path: Path
) -> None:
    """The setting decides about new ones; what was not committed is dropped in either form."""
    limits = {"LARM_PAGEFILE_BYTES": 100, "DOWNLOAD_MAXSIZE": 100}
    stored(crawler_for, Page("http://h/1", body=b"x" * 60), **limits)
    pages = [Page(f"http://h/{n}", body=b"y" * 30) for n in range(3)]
    crawler = crawler_for(LARM_COMPRESSION="zstd", **limits)
    store = PageFilesPipeline.from_crawler(crawler)
    store.open_spider()
    store.process_item(pages[0])
    position = store.flush()
    for page in pages[1:]:
        store.process_item(page)
    store.close_spider()
    crawl = tmp_path / "crawl"
    assert {path.name for path in crawl.iterdir() if path.is_file()} == {
        *("pagefile_0.pfl", "pagefile_1.pfl.zst", "store.log"),
    }
    store.recover(position)
    assert {path.name for path in crawl.iterdir() if path.is_file()} == {
        "pagefile_0.pfl",
        "store.log",
    }
    assert len(records(crawl / "store.log")) == 2


def test_store_log_has_larms_ten_columns(crawler_for: CrawlerFor) -> None:
    """In LARM's order, a nasty title included."""
    page = Page(
        url="http://H/A",
        normalized="http://h/a",
        status=404,
        mime="text/html",
        body=b"12345",
        from_page="http://h/",
        link_type=1,
        title="a\tb\nc",
    )
    (line,) = stored(crawler_for, page)
    assert list(line.values()) == [
        "http://h/", "http://H/A", "http://h/a", "1", "404", "text/html", "5", "a b c", "0", "0",
    ]  # fmt: skip


def test_no_page_file_exceeds_its_limit(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """A body that does not fit opens the next file; one that just fits does not."""
    pages = [Page(f"http://h/{size}", body=b"x" * size) for size in (60, 40, 1, 100, 99)]
    limits = {"LARM_PAGEFILE_BYTES": 100, "DOWNLOAD_MAXSIZE": 100}
    lines = stored(crawler_for, *pages, **limits)
    places = [(line["page-file"], line["offset"]) for line in lines]
    assert places == [("0", "0"), ("0", "60"), ("1", "0"), ("2", "0"), ("3", "0")]
    sizes = [path.stat().st_size for path in sorted((tmp_path / "crawl").glob("*.pfl"))]
    assert sizes == [100, 1, 100, 99]


def test_goes_on_behind_what_is_there(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """A second run appends: offsets count from the start of the file."""
    stored(crawler_for, Page("http://h/1", body=b"one"))
    lines = stored(crawler_for, Page("http://h/2", body=b"two"))
    assert [body_of(tmp_path / "crawl", line) for line in lines] == [b"one", b"two"]


def test_drops_a_body_that_no_page_file_holds(crawler_for: CrawlerFor) -> None:
    """An item from elsewhere may be larger than any download: refused by name."""
    with pytest.raises(DropItem, match="has 101 bytes, a page file holds 100"):
        stored(
            crawler_for,
            Page("http://h/", body=b"x" * 101),
            LARM_PAGEFILE_BYTES=100,
            DOWNLOAD_MAXSIZE=100,
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"LARM_PAGEFILE_BYTES": 0}, "LARM_PAGEFILE_BYTES=0: expected"),
        ({"LARM_PAGEFILE_BYTES": "many"}, "LARM_PAGEFILE_BYTES=many: expected"),
        ({"LARM_PAGEFILE_BYTES": 1.5}, "LARM_PAGEFILE_BYTES=1.5: expected"),
        ({"LARM_PAGEFILE_BYTES": 10_000}, "does not fit LARM_PAGEFILE_BYTES=10000"),
        ({"LARM_DOCUMENT_MAXSIZE_BYTES": 50_000_001}, "does not fit LARM_PAGEFILE_BYTES=50000000"),
        ({"LARM_DOCUMENT_MAXSIZE_BYTES": 1}, "must be between 16777216 and 50000000"),
        ({"LARM_DOCUMENT_MAXSIZE_BYTES": "48 MB"}, "LARM_DOCUMENT_MAXSIZE_BYTES=48 MB: expected"),
        ({"DOWNLOAD_MAXSIZE": 0}, r"DOWNLOAD_MAXSIZE=0 \(no limit\) does not fit"),
    ],
)
def test_refuses_sizes_that_cannot_work(
    crawler_for: CrawlerFor, settings: dict[str, object], message: str
) -> None:
    """At the start, so that no document is lost later."""
    with pytest.raises(ConfigError, match=message):
        PageFilesPipeline.from_crawler(crawler_for(**settings))


def test_a_file_whose_name_only_looks_alike_is_no_page_file(
    crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    """A copy that somebody made."""
    (tmp_path / "crawl").mkdir()
    copy = tmp_path / "crawl" / "pagefile_0 (copy).pfl"
    copy.write_bytes(b"x")
    store = PageFilesPipeline.from_crawler(crawler_for())
    store.recover(b"")
    store.open_spider()
    assert store.number == 0
    store.close_spider()
    assert copy.read_bytes() == b"x"


def opened(crawler_for: CrawlerFor, **settings: object) -> PageFilesPipeline:
    store = PageFilesPipeline.from_crawler(crawler_for(**settings))
    store.open_spider()
    return store


def test_a_full_page_file_is_synced_by_the_next_commit(
    crawler_for: CrawlerFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 MB take a disk a while: the crawl does not wait for it, the checkpoint does."""
    synced: list[int] = []
    store = opened(crawler_for, LARM_PAGEFILE_BYTES=100, DOWNLOAD_MAXSIZE=100)
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    folder = (tmp_path / "crawl").stat().st_ino
    for number in range(3):
        store.process_item(Page(f"http://h/{number}", body=b"x" * 60))
    assert synced == []
    assert store.flush().split()[:2] == [b"2", b"60"]
    asyncio.run(store.commit())
    files = [*sorted((tmp_path / "crawl").glob("*.pfl")), tmp_path / "crawl" / "store.log"]
    # and the folder, which has a new name
    assert synced == [inode for file in files for inode in (file.stat().st_ino, folder)]
    synced[:] = [inode for inode in synced if inode != folder]
    asyncio.run(store.commit())
    assert len(synced) == len(files) + 2  # the full ones are done with
    store.process_item(Page("http://h/3", body=b"x" * 60))
    store.close_spider()
    synced[:] = [inode for inode in synced if inode != folder]
    assert synced[-3:] == [file.stat().st_ino for file in (
        tmp_path / "crawl" / "pagefile_2.pfl", tmp_path / "crawl" / "pagefile_3.pfl", files[-1]
    )]  # fmt: skip


def test_a_page_file_that_fills_up_during_a_commit_is_synced_by_the_next(
    crawler_for: CrawlerFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end was written when the disk had the rest."""
    store = opened(crawler_for, LARM_PAGEFILE_BYTES=100, DOWNLOAD_MAXSIZE=100)
    store.process_item(Page("http://h/0", body=b"x" * 30))
    store.flush()

    def slow(files: Iterable[AppendFile]) -> None:
        sync_files(files)
        for number in range(1, 4):
            store.process_item(Page(f"http://h/{number}", body=b"x" * 60))

    with monkeypatch.context() as patched:
        patched.setattr("larmspider.pipelines.page_files.sync_files", slow)
        asyncio.run(store.commit())
    store.flush()
    synced: dict[int, int] = {}
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.update({os.fstat(fd).st_ino: os.fstat(fd).st_size})
    )
    asyncio.run(store.commit())
    files = sorted((tmp_path / "crawl").glob("*.pfl"))
    assert [synced.get(file.stat().st_ino) for file in files] == [90, 60, 60]
    store.close_spider()


@pytest.mark.parametrize("ended", ["commit", "close"])
def test_a_full_page_file_that_cannot_be_synced_is_not_forgotten(
    crawler_for: CrawlerFor, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """No position is named from then on."""

    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    store = opened(crawler_for, LARM_PAGEFILE_BYTES=100, DOWNLOAD_MAXSIZE=100)
    for number in range(2):
        store.process_item(Page(f"http://h/{number}", body=b"x" * 60))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        if ended == "close":
            store.close_spider()
        else:
            with pytest.raises(OSError, match=r"pagefile_0\.pfl"):
                asyncio.run(store.commit())
    for _ in range(2):
        with pytest.raises(OSError, match=r"Input/output error: '.*pagefile_0\.pfl'"):
            store.flush()
    store.close_spider()


def test_a_body_in_a_file_is_kept_once(crawler_for: CrawlerFor, tmp_path: Path) -> None:
    """Under its number; what no checkpoint has goes, and so does what a killed run left."""
    store = PageFilesPipeline.from_crawler(crawler_for())
    store.recover(b"")
    store.open_spider()
    folder, positions = tmp_path / "crawl" / "blobs", []
    for number, content in enumerate([b"one", b"two", b"one", b"three"]):
        blob = Blob(folder)
        blob.write(content)
        blob.finish()
        page = Page(f"http://h/{number}", digest=blob.digest)
        page.body_file, page.file_bytes = blob.path, blob.size
        store.process_item(page)
        assert page.body_file.read_bytes() == content
        positions.append(store.flush())
        del blob
    Blob(folder).write(b"on its way")
    part = folder / ".killed.part"
    part.write_bytes(b"half")
    store.close_spider()
    lines = records(tmp_path / "crawl" / "store.log")
    assert [line["offset"] for line in lines] == ["0", "1", "0", "2"]
    assert {int(line["page-file"]) for line in lines} == {BLOBS}
    assert blob_file(tmp_path / "crawl", 1).read_bytes() == b"two"
    assert sorted(path.name[:2] for path in folder.iterdir()) == [".k", "0-", "1-", "2-"]
    store.recover(positions[1])
    store.open_spider()
    store.close_spider()
    assert sorted(path.name[:2] for path in folder.iterdir()) == ["0-", "1-"]
