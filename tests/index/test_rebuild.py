"""larmspider/index/rebuild.py: an index is rebuilt, beside the old one."""

from __future__ import annotations

import shutil
from hashlib import sha1
from pathlib import Path

import pytest

from larmspider.errors import CrawlDirError
from larmspider.index.rebuild import files_of, finish, rebuild
from larmspider.index.schema import indexed_page
from larmspider.index.version import META_NAME, has_index
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.search.searcher import Searcher


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An index of three pages, the first of which links to the others."""
    with IndexWriter(tmp_path / "index") as writer:
        for name in "abc":
            writer.add(Page(f"http://wiki.example/{name}", title=name, text=f"page {name}"))
        texts = [(f"http://wiki.example/{name}", f"about {name}") for name in "bc"]
        writer.add_anchors("http://wiki.example/a", texts)
    return tmp_path / "index"


def test_an_index_has_the_same_pages_afterwards(old: Path) -> None:
    """Stored texts, times, ranks by link texts; progress is reported, and nothing is left beside
    it."""
    before = Searcher.open(old).search("page", limit=100, facets=True)
    told: list[tuple[int, int]] = []
    count = rebuild(old, progress=lambda done, total: told.append((done, total)))
    after = Searcher.open(old).search("page", limit=100, facets=True)
    assert told[-1] == (count, count)
    assert {hit.normalized: (hit.fetched, hit.title, hit.snippet) for hit in after.hits} == {
        hit.normalized: (hit.fetched, hit.title, hit.snippet) for hit in before.hits
    }
    assert (after.total, after.facets) == (before.total, before.facets)
    assert [path.name for path in old.parent.iterdir()] == ["index"]
    with IndexWriter(old) as writer:
        writer.refresh_all_anchors()
    modes = {path.stat().st_mode & 0o777 for path in old.iterdir() if path.is_file()}
    assert len(modes) == 1, "Tantivy's metadata, too, are for those who may read the rest"


def test_link_texts_of_another_format_come_from_the_logs(old: Path) -> None:
    """Nothing is read of an index of another format."""
    (old / META_NAME).write_text('{"schema": 9, "stemmer": "english"}')
    with pytest.raises(CrawlDirError, match="has format 9"):
        rebuild(old)
    page = Page("http://wiki.example/b", text="word")
    target = "http://wiki.example/b"
    links = [("http://wiki.example/a", [(target, "zebra")])]
    assert rebuild(old, (1, iter([(target, indexed_page(page, ""))])), lambda _: iter(links)) == 1
    searcher = Searcher.open(old)
    assert [searcher.search(word).total for word in ("word", "zebra", "about")] == [1, 1, 0]


def test_what_cannot_be_read_is_made_from_elsewhere(old: Path) -> None:
    """Link texts are kept; without another source the error says what is wrong."""
    (old / "meta.json").write_text("{")
    with pytest.raises(CrawlDirError, match="old index cannot be read"):
        rebuild(old)
    pages = [Page(f"http://wiki.example/{name}", text=f"word {name}") for name in "ab"]
    found = [(page.url, indexed_page(page, "")) for page in pages]
    assert rebuild(old, (3, iter([*found, (pages[0].url, None)]))) == 1
    assert [hit.url for hit in Searcher.open(old).search("word").hits] == ["http://wiki.example/b"]
    assert (old / "anchors" / "data.mdb").exists()


def _complete(old: Path) -> tuple[Path, Path]:
    """A new index beside the old one, as before the first rename."""
    kept = shutil.copytree(old, old.with_name("kept"))
    rebuild(old)
    new, aside = files_of(old)
    old.rename(new)
    kept.rename(old)
    (new / "complete").write_text(sha1((old / "meta.json").read_bytes()).hexdigest())
    return new, aside


@pytest.mark.parametrize("killed", ["before", "between", "after", "early"])
def test_a_crash_while_they_are_swapped_is_mended(old: Path, killed: str) -> None:
    """Whatever was done by then, the index is whole, and nothing is left beside it."""
    new, aside = _complete(old)
    if killed == "early":
        (new / "complete").unlink()
    if killed in ("between", "after"):
        old.rename(aside)
    if killed == "after":
        new.rename(old)
    finish(old)
    assert has_index(old)
    assert [path.name for path in old.parent.iterdir()] == ["index"]
    assert not (old / "complete").exists()


@pytest.mark.parametrize("since", [False, True])
def test_a_complete_index_of_the_same_version_counts(old: Path, since: bool) -> None:
    """A compaction that was killed before the renames, say; but not if a crawl went on since."""
    rebuild(old)
    new, _ = files_of(old)
    shutil.copytree(old, new)
    (new / "complete").write_text(sha1((old / "meta.json").read_bytes()).hexdigest())
    with IndexWriter(new) as writer:
        writer.add(Page("http://h/new", text="zebra"))
    if since:
        with IndexWriter(old) as writer:
            writer.add(Page("http://h/late", text="quagga"))
    finish(old)
    assert Searcher.open(old).search("zebra").total == (not since)
    assert [path.name for path in old.parent.iterdir()] == ["index"]
