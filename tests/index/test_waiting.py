"""Pages that wait for a commit until it pays."""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.errors import CrawlDirError
from larmspider.index import waiting, writer
from larmspider.index.packed import PackedPages
from larmspider.index.rebuild import rebuild, stored_documents
from larmspider.index.schema import indexed_page
from larmspider.index.writer import IndexWriter
from larmspider.items import Page, Part, part_url
from larmspider.search.searcher import Searcher
from tests.index.conftest import MakePage

URL = "http://wiki.example/a"
Found = Callable[[str], list[str]]


@pytest.fixture(autouse=True)
def _nothing_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "FIRST", 0)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[IndexWriter]:
    with IndexWriter(tmp_path / "index", collects=True) as index:
        yield index


@pytest.fixture
def found(slow: IndexWriter) -> Found:
    """The last URL segments of the committed pages that a query finds."""
    return lambda query: found_in(slow.directory, query)


@pytest.fixture
def add(slow: IndexWriter, make_page: MakePage) -> Callable[..., None]:
    """Pages with one word, and a checkpoint."""

    def adding(*names: str, text: str = "word") -> None:
        for name in names:
            slow.add(make_page(name, text))
        slow.checkpoint()

    return adding


def found_in(directory: Path, query: str) -> list[str]:
    hits = Searcher.open(directory).search(query).hits
    return sorted(hit.url.rpartition("/")[2] for hit in hits)


def after_a_kill(directory: Path, query: str) -> list[str]:
    """The pages that the next writer finds after its first checkpoint, if this one ends here."""
    copy = directory.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    with IndexWriter(copy, collects=True) as index:
        index.checkpoint()
        return found_in(copy, query)


def archive(make_page: MakePage, text: str, *parts: str) -> Page:
    page = make_page("a", text)
    page.parts = [Part(f"{part}.txt", "text/plain", text=part) for part in parts]
    return page


def test_a_page_is_written_once_with_the_texts_that_come_while_it_waits(
    slow: IndexWriter, found: Found, add: Callable[..., None]
) -> None:
    """A checkpoint to which no page came has it."""
    add("a")
    for number in range(3):
        slow.add_anchors(f"http://h/{number}", [(URL, f"text{number}")])
        add(f"other{number}", text="else")
        assert found("word") == []
    slow.checkpoint()
    assert [found(query) for query in ("word", "text0", "text1", "text2")] == [["a"]] * 4
    assert slow.refresh_anchors(10) == 0


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_PAGES", 3), ("MAX_CHARS", 15), ("MAX_CHECKPOINTS", 3)]
)
def test_the_first_pages_go_where_no_more_may_wait(
    add: Callable[..., None],
    found: Found,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
) -> None:
    """Three quarters are left."""
    monkeypatch.setattr(waiting, limit, value)
    for name in "abc":
        add(name)
        assert found("word") == []
    add("d")
    assert found("word") == ["a", "b"] if limit == "MAX_PAGES" else ["a"]


def test_a_crawl_that_has_just_begun_finds_its_first_pages(
    add: Callable[..., None], found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as there are few."""
    monkeypatch.setattr(waiting, "FIRST", 4)
    add("a")
    assert found("word") == ["a"]
    add("b", "c", "d", "e", "f")
    assert found("word") == ["a", "b", "c", "d", "e"]
    add("g")
    assert "f" not in found("word")


def test_all_pages_are_there_when_link_texts_are_brought_up_to_date_and_at_the_end(
    slow: IndexWriter, found: Found, add: Callable[..., None]
) -> None:
    add("a")
    slow.refresh_all_anchors()
    assert found("word") == ["a"]
    add("b")
    slow.close()
    assert found("word") == ["a", "b"]
    assert list(slow.directory.glob("waiting-*")) == []


def test_a_writer_in_a_hurry_leaves_what_waits_to_the_next_one(
    slow: IndexWriter, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_LAST_SECS", -1.0)
    add("a", "b")
    slow.remove(URL)
    slow.close(hurry=lambda: True)
    assert found_in(slow.directory, "word") == []
    assert after_a_kill(slow.directory, "word") == ["b"]


def test_a_crawl_that_is_stopped_waits_for_no_page_that_is_due(
    slow: IndexWriter, found: Found, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither at a checkpoint nor before link texts are brought up to date: each indexes one page
    here before ``stop`` says so, and those behind it wait on."""
    monkeypatch.setattr(writer, "_ROUND", 1)
    add("a", "b", "c", "d")
    told = iter([True, False, True, False, True, True])
    slow.checkpoint(lambda: next(told))
    assert (found("word"), slow.waiting) == (["a"], 3)
    slow.refresh_all_anchors(lambda: next(told))
    assert (found("word"), slow.waiting) == (["a", "b"], 2)
    assert after_a_kill(slow.directory, "word") == ["a", "b", "c", "d"]


def test_another_version_takes_the_place_of_one_that_waits(
    slow: IndexWriter, found: Found, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits no longer than that."""
    monkeypatch.setattr(waiting, "MAX_CHECKPOINTS", 2)
    add("a", text="first")
    add("a", text="second")
    assert after_a_kill(slow.directory, "first OR second") == ["a"]
    assert after_a_kill(slow.directory, "first") == []
    add("b")
    assert (found("first"), found("second")) == ([], ["a"])


def test_pages_with_parts_wait_with_them(
    slow: IndexWriter, found: Found, add: Callable[..., None], make_page: MakePage
) -> None:
    add("a", text="first")
    slow.add(archive(make_page, "second", "one", "two"))
    slow.checkpoint()
    for query, names in (("first", []), ("second", ["a"]), ("one OR two", ["one.txt", "two.txt"])):
        assert after_a_kill(slow.directory, query) == names
    slow.checkpoint()
    assert found("one") == ["one.txt"]
    slow.add(archive(make_page, "third", "two"))
    slow.refresh_all_anchors()
    assert (found("one"), found("two"), found("third")) == ([], ["two.txt"], ["a"])
    slow.remove(URL)
    slow.checkpoint()
    assert (found("two"), found("third")) == ([], [])


@pytest.mark.parametrize("committed", [False, True])
def test_a_page_that_is_removed_does_not_come_back(
    slow: IndexWriter, found: Found, add: Callable[..., None], committed: bool
) -> None:
    """Neither one that waits nor one of the index, which it leaves at the next checkpoint; also if
    the process is killed."""
    add("a", "b")
    if committed:
        slow.checkpoint()
    slow.remove(URL)
    add("c")
    assert found("word") == (["b", "c"] if committed else [])
    assert after_a_kill(slow.directory, "word") == ["b", "c"]
    slow.checkpoint()
    assert after_a_kill(slow.directory, "word") == ["b", "c"]


def test_a_removal_that_comes_while_others_are_committed_is_in_the_next_commit(
    slow: IndexWriter, found: Found, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    add("a", "b")
    slow.checkpoint()
    slow.remove("http://wiki.example/b")
    with monkeypatch.context() as patched:
        patched.setattr(IndexWriter, "refresh_anchors", lambda index, _limit: index.remove(URL))
        slow.checkpoint()
    assert found("word") == ["a"]
    add("c")
    assert "a" not in found("word")


def test_what_waits_survives_a_kill_between_any_two_checkpoints(
    slow: IndexWriter, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost, nothing is listed twice, and a rebuilt index has it; files are
    deleted when the index has all pages that they have first."""
    monkeypatch.setattr(waiting, "MAX_CHECKPOINTS", 4)
    for number in range(8):
        add(f"{number}")
        names = [f"{one}" for one in range(number + 1)]
        assert after_a_kill(slow.directory, "word") == names
        _, documents = stored_documents(slow.directory)
        assert sorted(key.rpartition("/")[2] for key, _ in documents) == names
        assert len(list(slow.directory.glob("waiting-*"))) <= 4


def test_an_index_that_is_made_anew_has_what_waits(
    slow: IndexWriter, add: Callable[..., None], make_page: MakePage
) -> None:
    """And not what waits to be removed."""
    add("a", "b", "c")
    slow.checkpoint()
    slow.add(archive(make_page, "second", "part"))
    slow.remove("http://wiki.example/b")
    with slow._lock:
        slow._drain()
        slow._keep()
    copy = slow.directory.with_name("copy")
    shutil.copytree(slow.directory, copy)
    rebuild(copy)
    assert [found_in(copy, query) for query in ("word", "second", "part")] == [
        ["c"],
        ["a"],
        ["part.txt"],
    ]


def test_a_file_that_cannot_be_read_is_named(slow: IndexWriter, add: Callable[..., None]) -> None:
    add("a")
    (slow.directory / "waiting-1").write_bytes(b"\xc1")
    with pytest.raises(CrawlDirError, match="waiting-1: cannot be read"):
        after_a_kill(slow.directory, "word")


def test_pages_that_memory_has_no_room_for_are_in_the_next_commit(
    slow: IndexWriter,
    add: Callable[..., None],
    found: Found,
    make_page: MakePage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two checkpoints the first ones go to Tantivy, which they do not come back from."""
    monkeypatch.setattr(waiting, "MAX_PAGES", 8)
    monkeypatch.setattr(writer, "_MAX_PACKS", 0.1)  # seven pages
    for n in range(10):
        slow.add(make_page(f"{n}", "word"))
    add("last")
    assert found("word") == ["0", "1", "2", "3", "4"]
    slow.remove("http://wiki.example/0")
    slow.checkpoint()
    assert "0" not in after_a_kill(slow.directory, "word")


def test_texts_that_memory_has_no_room_for_wait_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Including the characters of all parts, also of parts that a file has brought back."""
    monkeypatch.setattr(waiting, "MAX_CHARS", 1_000)
    pages = waiting.WaitingPages(tmp_path, PackedPages(tmp_path))
    part = Part("in.txt", "text/plain", 30, text="c" * 30)
    page = indexed_page(Page(URL, text="a" * 100, parts=[part]), "")
    page.rest = "b" * 20
    for n in range(10):
        pages.put(f"{n}", page)
    assert pages.too_many() == 5  # 1,500 characters, 750 may be left
    pages.write()
    again = waiting.WaitingPages(tmp_path, PackedPages(tmp_path))
    assert again.too_many() == 5
    again.take(5)
    assert again.too_many() == 0


def test_long_texts_are_handed_over_in_smaller_packs(
    tmp_path: Path, make_page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PACK_CHARS", 100)
    with IndexWriter(tmp_path / "index") as index:
        index.add(make_page("short", "word"))
        assert "1 pages queued" in repr(index)
        index.add(make_page("long", "word " * 20))
        assert "0 pages queued" in repr(index)


def test_texts_that_come_while_a_page_is_indexed_again_are_not_forgotten(
    slow: IndexWriter, found: Found, add: Callable[..., None]
) -> None:
    """Others that waited are indexed with them in the same commit."""
    add("a")
    slow.refresh_all_anchors()
    slow.add_anchors("http://h/1", [(URL, "first")])
    add("b")
    assert slow.refresh_anchors(10) == 1
    slow.add_anchors("http://h/2", [(URL, "second")])
    slow.commit()
    assert (found("word"), found("first")) == (["a", "b"], ["a"])
    assert (slow.refresh_all_anchors(), found("second")) == (1, ["a"])


def test_a_checkpoint_indexes_few_pages_again(
    slow: IndexWriter, add: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose link texts doubled: one for twenty that waited, and 20 at least."""
    limits: list[int] = []
    monkeypatch.setattr(IndexWriter, "refresh_anchors", lambda _writer, limit: limits.append(limit))
    for pages in (0, 10, 600):
        add(*(f"{number}" for number in range(pages)))
        slow.checkpoint()
    assert limits == [20, 30]


@pytest.mark.parametrize("collects", [False, True])
def test_pages_outlast_a_commit_that_is_refused(
    tmp_path: Path, make_page: MakePage, collects: bool
) -> None:
    """Those that wait, and those that were about to be replaced: it is closed without another
    commit, which would have no more than their deletion."""
    directory, draw = tmp_path / "index", random.Random(1)
    index = IndexWriter(directory, collects=collects)
    for n in range(20):
        text = "word " + " ".join(f"w{draw.getrandbits(40):x}" for _ in range(2_000))
        index.add(make_page(f"{n}", text))
        index.add_anchors(f"http://h/{n}", [(f"http://wiki.example/{n}", "text")])
    index.checkpoint()
    if not collects:
        index.commit()
        assert index.refresh_anchors(100) == 20
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, before[1]))
    try:
        with pytest.raises(CrawlDirError):
            index.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for refused in (index.commit, index.checkpoint):
        with pytest.raises(CrawlDirError, match="cannot write the index"):
            refused()
    index.close()
    with IndexWriter(directory, collects=collects) as again:
        again.checkpoint()
        again.commit()
        assert again.count() == 20


def test_a_damaged_page_is_named(slow: IndexWriter, add: Callable[..., None]) -> None:
    add("a")
    path = slow.directory / "waiting-1"
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    with pytest.raises(CrawlDirError, match="waiting-1"):
        waiting.WaitingPages(slow.directory, PackedPages(slow.directory))


_ENDLESS = """
import sys
from pathlib import Path
from larmspider.index import waiting
from larmspider.index.writer import IndexWriter
from larmspider.items import Part, Page

waiting.FIRST, waiting.MAX_PAGES = 10, 250
writer = IndexWriter(Path(sys.argv[1]), collects=True)
n = int(sys.argv[2])
while True:
    for n in range(n, n + 100):
        page = Page(f"http://h/{n}", text=f"word number{n}")
        if n % 10 == 0:
            page.parts = [Part("part.txt", text=f"part number{n}")]
        writer.add(page)
        writer.add_anchors(page.url, [(f"http://h/{n // 2}", f"text {n}")])
        if n % 7 == 0:
            writer.remove(f"http://h/{n // 7}")
    n += 1
    writer.checkpoint()
    print(n, flush=True)
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.acceptance)])
def test_kill_9_at_any_moment_loses_nothing_of_a_checkpoint(tmp_path: Path, kills: int) -> None:
    """Each time the next process goes on behind the last checkpoint."""
    chance, done = random.Random(kills), 0
    for _ in range(kills):
        command = [sys.executable, "-c", _ENDLESS, str(tmp_path), str(done)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            done = int(process.stdout.readline())
            time.sleep(chance.random())
            process.kill()
            done = int([done, *process.stdout.read().split()][-1])
    with IndexWriter(tmp_path, collects=True) as index:
        index.refresh_all_anchors()
    searcher = Searcher.open(tmp_path)
    removed = {n // 7 for n in range(0, done, 7)}
    in_doubt = {n // 7 for n in range(done, done + 100)}  # of a checkpoint that was not told
    for n in {*range(done)} - in_doubt:
        url = f"http://h/{n}"
        page, part = searcher.get(url), searcher.get(part_url(url, "part.txt"))
        assert (page is None) is (n in removed), n
        assert page is None or page.text == f"word number{n}"
        assert (part is None) is (n in removed or n % 10 != 0), n
    target = (done - 1) // 2
    assert target in in_doubt or searcher.search(f'"text {done - 1}"').total == 1
