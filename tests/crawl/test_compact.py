"""A compaction gives back what does not count, and changes nothing that is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from larmspider.crawl import compact as module
from larmspider.crawl.compact import compact
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.items import Link, Page
from larmspider.pipelines import compaction
from larmspider.pipelines.compaction import DONE, finish
from larmspider.pipelines.outbox.spool import FOLDER, Cursor, read_entries, write_committed
from larmspider.plugins.versions.versions import history
from larmspider.workdir.removals import Removals, Rule
from tests.crawl.test_versions import known
from tests.support.spooled import spooled
from tests.support.stored_crawl import StoredCrawl

URLS = [f"http://{host}/{page}" for host in ("a", "b") for page in range(3)]


def page(url: str, word: str) -> Page:
    links = [Link(other, other, anchor=word, exact=other) for other in URLS[: len(word)]]
    body = word.encode() * 3_000
    return Page(url, url, body=body, text=word, mime="text/html", links=links, exact=url)


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    """Three versions of each page, the last one of them removed."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    for word in ("word", "home", "next"):
        for url in URLS:
            crawl.store(url, page(url, word))
    crawl.store(URLS[-1], None)
    crawl.end()
    crawl.make_frontier(URLS[:-1])
    return CrawlDir(crawl.path)


def positions(crawl: CrawlDir) -> dict[str, bytes]:
    backend = LmdbBackend(crawl.path / "frontier")
    found = backend.recover().positions
    backend.close()
    return found


def run(crawl: CrawlDir, versions: int = 0, **more: Any) -> Any:
    return compact(crawl, versions=versions, heap_bytes=15_000_000, **more)


def test_what_does_not_count_is_given_back(crawl: CrawlDir) -> None:
    """And all else is read as before; a crawl goes on there, and a second time frees nothing."""
    before = known(crawl.path)
    freed = run(crawl)
    of_pages, of_index = 13 * 4 * 3_000, 1_000  # the index may grow a little: it is rebuilt
    assert freed.before - freed.after > of_pages - of_index
    assert known(crawl.path) == before
    assert sum(file.stat().st_size for file in crawl.path.glob("*.pfl")) == 5 * 4 * 3_000
    assert run(crawl) == (freed.after, freed.after)
    again = StoredCrawl(crawl.path, refresh=True, positions=positions(crawl))
    again.store(URLS[0], page(URLS[0], "new"))
    again.end()
    assert (URLS[0], b"new" * 3_000) in known(crawl.path)["pages"]


def test_a_crawl_of_which_no_page_is_left_goes_on(crawl: CrawlDir) -> None:
    rules = [Rule("url", url) for url in URLS]
    again = StoredCrawl(crawl.path, refresh=True, positions=positions(crawl))
    for url in URLS[:-1]:
        again.store(url, None)
    again.end()
    again.make_frontier([])
    run(crawl, removals=Removals(crawl.path / "removed.txt", rules))
    assert not list(crawl.path.glob("*.pfl"))
    again = StoredCrawl(crawl.path, refresh=True, positions=positions(crawl))
    again.store(URLS[0], page(URLS[0], "new"))
    again.end()
    assert known(crawl.path)["pages"] == [(URLS[0], b"new" * 3_000)]


def test_old_versions_are_kept(crawl: CrawlDir) -> None:
    run(crawl, versions=1)
    lines = [fields[1] for _, fields in crawl.logs.search("store.log", None, 0)]
    assert lines == URLS[:-1] * 2


def test_a_page_that_left_by_itself_stays_for_thirty_days(crawl: CrawlDir) -> None:
    """In the page files alone, where --at finds it; not one that an operator has taken out."""

    def of_gone() -> list[tuple[str, bytes]]:
        versions = [one for one in history(crawl, URLS[-1], now).versions if one.page]
        return [(one.time, crawl.body(one.page)) for one in versions if one.page]

    before, now = known(crawl.path), 1_000.0 + 29 * 86_400
    for _ in range(2):
        run(crawl, now=now)
        assert known(crawl.path) == before
        assert [body for _, body in of_gone()] == [b"next" * 3_000]
        assert not crawl.stored(URLS[-1])
    with pytest.raises(CrawlDirError, match="was removed"):
        history(crawl, URLS[-1], now).at(now)
    with_rule = Removals(crawl.path / "removed.txt", [Rule("url", URLS[-1])])
    run(crawl, now=now, removals=with_rule)
    assert of_gone() == []
    assert sum(file.stat().st_size for file in crawl.path.glob("*.pfl")) == 5 * 4 * 3_000
    assert known(crawl.path) == before


def test_after_thirty_days_it_is_gone(crawl: CrawlDir) -> None:
    freed = run(crawl, now=1_000.0), run(crawl, now=1_100.0 + 30 * 86_400)
    assert freed[1].after < freed[0].after
    lines = [fields[1] for _, fields in crawl.logs.search("store.log", None, 0)]
    assert URLS[-1] not in lines


@pytest.mark.parametrize(
    "moment",
    [1, 4, *(pytest.param(n, marks=pytest.mark.acceptance) for n in (0, 2, 3, 5, 6, 7, 8))],
)
def test_a_compaction_that_is_killed_has_happened_or_not(
    crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Whatever the step at which it ends; the next one, or the next run, completes it."""
    before, steps = known(crawl.path), iter(range(moment, -1, -1))

    def step(*arguments: Any) -> None:
        if next(steps, 0) == 0:
            raise KeyboardInterrupt
        real(*arguments)

    real = module.sync_folder
    with monkeypatch.context() as patched:
        patched.setattr(module, "sync_folder", step)
        patched.setattr(compaction, "sync_folder", step)
        replace = os.replace
        patched.setattr(
            os,
            "replace",
            lambda *two: (replace(*two), step(crawl.path)),  # both are steps
        )
        try:
            run(crawl)
        except KeyboardInterrupt:
            pass
    finish(crawl.path)
    assert not (crawl.path / DONE).exists()
    assert known(crawl.path) == before
    run(crawl)
    assert known(crawl.path) == before


def test_bodies_that_a_receiver_waits_for_stay_where_they_are(tmp_path: Path) -> None:
    """Page files before them are compacted, the others once the receiver has all."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    crawl.stores[1].max_bytes = 6 * 4 * 3_000  # type: ignore[attr-defined]
    ends = []
    for word in ("word", "home"):
        stored = [page(url, word) for url in URLS]
        for one in stored:
            crawl.store(one.url, one)
        ends.append(spooled(crawl.path, *stored))
    crawl.end()
    crawl.make_frontier(URLS)
    outbox, found = crawl.path / FOLDER, CrawlDir(crawl.path)
    write_committed(outbox, ends[-1])
    waiting = list(read_entries(outbox, 0, ends[-1].offset))
    Cursor(0).write(outbox, "SqlReceiver")
    run(found)
    assert [entry.body for entry in waiting] == [b"word" * 3_000] * 6 + [b"home" * 3_000] * 6
    Cursor(ends[0].offset).write(outbox, "SqlReceiver")
    run(found)
    assert [entry.body for entry in read_entries(outbox, ends[0].offset, ends[1].offset)] == [
        b"home" * 3_000
    ] * 6
    assert sum(file.stat().st_size for file in crawl.path.glob("*.pfl")) == 6 * 4 * 3_000
