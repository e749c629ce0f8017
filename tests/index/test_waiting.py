"""Pages that wait until more links to them are known."""

from __future__ import annotations

import random
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.errors import CrawlDirError
from larmspider.index import waiting
from larmspider.index.packed import PackedPages
from larmspider.index.rebuild import stored_documents
from larmspider.index.search import Searcher
from larmspider.index.writer import IndexWriter
from larmspider.items import Part
from tests.index.conftest import MakePage

URL = "http://wiki.example/a"
Found = Callable[[str], list[str]]


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[IndexWriter]:
    with IndexWriter(tmp_path / "index", waits=2) as index:
        yield index


@pytest.fixture
def found(slow: IndexWriter) -> Found:
    """The last segments of what is found of what was committed."""
    return lambda query: found_in(slow.directory, query)


def found_in(directory: Path, query: str) -> list[str]:
    hits = Searcher.open(directory).search(query).hits
    return sorted(hit.url.rpartition("/")[2] for hit in hits)


def after_a_kill(directory: Path, query: str) -> list[str]:
    """What the next writer has found after its first commit, if this one ends here."""
    copy = directory.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    with IndexWriter(copy, waits=2) as index:
        index.commit()
        return found_in(copy, query)


def test_a_page_is_written_once_with_the_texts_of_three_commits(
    slow: IndexWriter, found: Found, make_page: MakePage
) -> None:
    """The third has it, whether it is idle or others come."""
    slow.add(make_page("a", "word"))
    for number in range(3):
        assert found("word") == []
        slow.add_anchors(f"http://h/{number}", [(URL, f"text{number}")])
        slow.commit()
        slow.add(make_page(f"other{number}", "else"))
    assert [found(query) for query in ("word", "text0", "text1", "text2")] == [["a"]] * 4
    assert slow.refresh_anchors(10) == 0
    assert found("else") == []


def test_all_pages_are_there_when_link_texts_are_brought_up_to_date_and_at_the_end(
    slow: IndexWriter, found: Found, make_page: MakePage
) -> None:
    slow.add(make_page("a", "word"))
    slow.commit()
    slow.refresh_all_anchors()
    assert found("word") == ["a"]
    slow.add(make_page("b", "word"))
    slow.close()
    assert found("word") == ["a", "b"]
    assert list(slow.directory.glob("waiting-*")) == []


def test_another_version_takes_the_place_of_one_that_waits(
    slow: IndexWriter, found: Found, make_page: MakePage
) -> None:
    """It waits no longer than that."""
    slow.add(make_page("a", "first"))
    slow.commit()
    slow.add(make_page("a", "second"))
    slow.commit()
    assert after_a_kill(slow.directory, "first OR second") == ["a"]
    assert after_a_kill(slow.directory, "first") == []
    slow.commit()
    assert (found("first"), found("second")) == ([], ["a"])


def test_a_page_with_parts_does_not_wait(
    slow: IndexWriter, found: Found, make_page: MakePage
) -> None:
    slow.add(make_page("a", "first"))
    slow.commit()
    archive = make_page("a", "second")
    archive.parts = [Part("one.txt", "text/plain", text="part")]
    slow.add(archive)
    slow.commit()
    assert (found("second"), found("part")) == (["a"], ["one.txt"])
    assert (after_a_kill(slow.directory, "first"), after_a_kill(slow.directory, "part")) == (
        [],
        ["one.txt"],
    )
    slow.add(make_page("a", "third"))
    slow.refresh_all_anchors()
    assert (found("part"), found("third")) == ([], ["a"])


@pytest.mark.parametrize("commits", [0, 1, 3])
def test_a_page_that_is_removed_does_not_come_back(
    slow: IndexWriter, found: Found, make_page: MakePage, commits: int
) -> None:
    """Neither one that waits nor one that has waited, also if the process is killed."""
    slow.add(make_page("a", "word"))
    slow.add(make_page("b", "word"))
    for _ in range(commits):
        slow.commit()
    slow.remove(URL)
    slow.commit()
    assert "a" not in found("word")
    assert after_a_kill(slow.directory, "word") == ["b"]
    slow.commit()
    assert after_a_kill(slow.directory, "word") == ["b"]


def test_what_waits_survives_a_kill_between_any_two_commits(
    slow: IndexWriter, make_page: MakePage
) -> None:
    """Nothing is lost, nothing is there twice; old files are deleted."""
    for number in range(4):
        slow.add(make_page(f"{number}", "word"))
        slow.commit()
        names = [f"{one}" for one in range(number + 1)]
        assert after_a_kill(slow.directory, "word") == names
        _, documents = stored_documents(slow.directory)
        assert sorted(key.rpartition("/")[2] for key, _ in documents) == names
        assert len(list(slow.directory.glob("waiting-*"))) <= 2


def test_a_file_that_cannot_be_read_is_named(slow: IndexWriter, make_page: MakePage) -> None:
    slow.add(make_page("a", "word"))
    slow.commit()
    (slow.directory / "waiting-1").write_bytes(b"\xc1")
    with pytest.raises(CrawlDirError, match="waiting-1: cannot be read"):
        after_a_kill(slow.directory, "word")


@pytest.mark.parametrize("limit", ["MAX_PAGES", "MAX_CHARS"])
def test_what_waits_is_bounded(
    slow: IndexWriter,
    found: Found,
    make_page: MakePage,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    """Of more pages the first ones are indexed at the next commit."""
    monkeypatch.setattr(waiting, limit, 8)
    for number in range(10):
        slow.add(make_page(f"{number}", "w"))
    slow.commit()
    assert found("w") == ["0", "1"]


def test_texts_that_come_while_a_page_is_indexed_again_are_not_forgotten(
    slow: IndexWriter, found: Found, make_page: MakePage
) -> None:
    """Others that waited are indexed with them in the same commit."""
    slow.add(make_page("a", "word"))
    slow.refresh_all_anchors()
    slow.add_anchors("http://h/1", [(URL, "first")])
    slow.add(make_page("b", "word"))
    slow.commit()
    slow.commit()
    assert slow.refresh_anchors(10) == 1
    slow.add_anchors("http://h/2", [(URL, "second")])
    slow.commit()
    assert (found("word"), found("first")) == (["a", "b"], ["a"])
    assert (slow.refresh_all_anchors(), found("second")) == (1, ["a"])


@pytest.mark.parametrize("waits", [0, 2])
def test_pages_outlast_a_commit_that_is_refused(
    tmp_path: Path, make_page: MakePage, waits: int
) -> None:
    """Those that wait, and those that were about to be replaced: it is closed without another
    commit, which would have no more than their deletion."""
    directory, draw = tmp_path / "index", random.Random(1)
    index = IndexWriter(directory, waits=waits)
    for n in range(20):
        text = "word " + " ".join(f"w{draw.getrandbits(40):x}" for _ in range(2_000))
        index.add(make_page(f"{n}", text))
        index.add_anchors(f"http://h/{n}", [(f"http://wiki.example/{n}", "text")])
    index.commit()
    index.commit()
    if not waits:
        assert index.refresh_anchors(100) == 20
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, before[1]))
    try:
        with pytest.raises(CrawlDirError):
            index.commit(every=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises(CrawlDirError, match="cannot write the index"):
        index.commit()
    index.close()
    with IndexWriter(directory, waits=waits) as again:
        again.commit()
        assert again.count() == 20


def test_what_is_removed_while_there_is_no_room_stays_removed(
    slow: IndexWriter, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MAX_PAGES", 8)
    for n in range(10):
        slow.add(make_page(f"{n}", "word"))
    with slow._lock:
        slow._drain()
    slow.remove("http://wiki.example/0")
    slow.commit()
    assert "0" not in after_a_kill(slow.directory, "word")


def test_a_damaged_page_is_named(slow: IndexWriter, make_page: MakePage) -> None:
    slow.add(make_page("a", "word"))
    slow.commit()
    path = slow.directory / "waiting-1"
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    with pytest.raises(CrawlDirError, match="waiting-1"):
        waiting.WaitingPages(slow.directory, PackedPages(slow.directory), 2)
