"""larmspider/plugins/versions/versions.py: visits and versions of a page, and what changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider import settings as defaults
from larmspider.crawl.compact import compact
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import utc
from larmspider.items import Kept, Page
from larmspider.plugins.versions.versions import MAX_CHANGES, changes, history, moment, text_of
from larmspider.reports.documents import documents
from larmspider.workdir.removals import Removals, Rule
from tests.support.stored_crawl import StoredCrawl

URL = "http://h/"


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    """Four versions; a visit that saw the last one again."""
    stored = StoredCrawl(tmp_path / "crawl", refresh=True)
    for number in range(1, 5):
        text = f"<title>Rates</title><p>Always here. The rate is {number} euros. And this stays."
        stored.store(URL, Page(URL, URL, mime="text/html", body=text.encode()))
        stored.store(
            "http://h/other", Page("http://h/other", "http://h/other", mime="text/html", body=b"x")
        )
    kept = Kept(URL, URL, URL, "", 0, 0, "not-modified", "", stored.clock + 1, 304)
    for store in stored.stores:
        store.process_item(kept)
    stored.end()
    return CrawlDir(stored.path)


def test_each_time_has_its_version(crawl: CrawlDir) -> None:
    found = history(crawl, URL)
    assert [visit.message for visit in found.visits] == ["", "", "", "", "kept: not-modified"]
    assert [version.time for version in found.versions] == [
        utc(1_001), utc(1_003), utc(1_005), utc(1_007),
    ]  # fmt: skip
    for when, rate in ((1_001, b"1"), (1_004.5, b"2"), (9_999, b"4")):
        assert b"rate is " + rate in crawl.body(found.at(when)[1])
    with pytest.raises(CrawlDirError, match=r"not stored by 1970.*; the first version is of 1970"):
        found.at(1_000)


def test_what_compact_took_away_says_so(crawl: CrawlDir) -> None:
    compact(crawl, versions=1, heap_bytes=15_000_000)
    found = history(crawl, URL)
    assert [version.page is None for version in found.versions] == [True, True, False, False]
    assert b"rate is 3" in crawl.body(found.at(1_005)[1])
    with pytest.raises(CrawlDirError, match="was deleted by scrapy compact"):
        found.at(1_001)


def test_the_report_has_the_bytes_of_old_versions(crawl: CrawlDir) -> None:
    """Two pages have four versions each."""
    found = documents(crawl, None)  # type: ignore[arg-type] # no page has failed
    one = len(crawl.body(history(crawl, URL).at(9_999)[1]))
    assert (found.count, found.of_old) == (2, 6)
    assert found.of_old_bytes == 3 * one + 3


def test_what_was_taken_out_does_not_come_back(tmp_path: Path) -> None:
    """Not even before a compaction; a page that comes back starts a new history."""
    stored = StoredCrawl(tmp_path / "crawl", refresh=True)
    for body in (b"first", None, b"second"):
        page = None if body is None else Page(URL, URL, mime="text/plain", body=body)
        stored.store(URL, page)
    stored.end()
    crawl = CrawlDir(stored.path)
    found = history(crawl, URL)
    for when, why in ((1_001, "does not count since the page was removed"), (1_002, "gone")):
        with pytest.raises(CrawlDirError, match=why):
            found.at(when)
    assert crawl.body(found.at(1_003)[1]) == b"second"


def test_versions_of_a_page_that_has_moved_are_those_of_its_new_url(tmp_path: Path) -> None:
    """Over two moves and a compaction, for readers who may see the old host."""
    old, older, new = "http://h/a", "http://g/a", "https://h/a"
    stored = StoredCrawl(tmp_path / "crawl", refresh=True)
    for url, word in ((older, "0"), (old, "1"), (old, "2"), (new, "3")):
        stored.store(url, Page(url, url, mime="text/plain", body=word.encode() * 40))
    stored.store(older, None, moved_to=old)
    stored.store(old, None, moved_to=new)
    stored.end()
    crawl, now = CrawlDir(stored.path), 1_000.0 + 90 * 86_400

    def bodies(may_see: Callable[[str], bool] = bool) -> list[tuple[str, bytes]]:
        found = history(crawl, new, now, may_see).versions
        return [(one.url, crawl.body(one.page)[:1]) for one in found if one.page]

    assert bodies() == [(older, b"0"), (old, b"1"), (old, b"2"), ("", b"3")]
    assert bodies(lambda url: "/h/" in url)[0] == (old, b"1")
    found = history(crawl, new, now)
    assert [(visit.result, visit.message) for visit in found.visits][-2:] == [
        ("moved", f"from {older}"),
        ("moved", f"from {old}"),
    ]
    assert crawl.body(found.at(1_003)[1])[:1] == b"2"
    assert crawl.body(found.at(9_999)[1])[:1] == b"3"
    compact(crawl, versions=1, heap_bytes=15_000_000, now=now)
    assert bodies() == [(older, b"0"), (old, b"2"), ("", b"3")]
    without_new = Removals(crawl.path / "removed.txt", [Rule("url", new)])
    compact(crawl, versions=1, heap_bytes=15_000_000, now=now, removals=without_new)
    assert (old, b"2") not in bodies(), "an operator has taken the page out"
    assert bodies()[-1] == ("", b"3")
    compact(crawl, versions=0, heap_bytes=15_000_000, now=now)
    assert bodies() == [("", b"3")]


def test_changes_are_those_of_the_text(crawl: CrawlDir) -> None:
    """With what stands beside them."""
    settings = Settings()
    settings.setmodule(defaults)
    first, *_, last = history(crawl, URL).versions
    assert first.page is not None
    assert last.page is not None
    old, new = (text_of(crawl, page, settings) for page in (first.page, last.page))
    assert changes(old, new) == (
        [
            (" ", "Always here."),
            ("-", "The rate is 1 euros."),
            ("+", "The rate is 4 euros."),
            (" ", "And this stays."),
        ],
        "",
    )


def test_many_changes_are_cut() -> None:
    lines, left = changes(["a"] * 300, ["b"] * 300)
    assert (len(lines), left) == (MAX_CHANGES, "400 further lines not shown")


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("1970-01-01", "1970-01-01T23:59:59.999Z"),
        ("1970-01-02T12:00", "1970-01-02T12:00:00.000Z"),
        ("1970-01-02T12:00:00+02:00", "1970-01-02T10:00:00.000Z"),
    ],
)
def test_moments(text: str, when: str) -> None:
    assert utc(moment(text)) == when


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "0001-01-01T00:00+14:00"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--at {text}".replace("+", r"\+") + ": expected a date"):
        moment(text)
