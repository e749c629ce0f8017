from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from larmspider.errors import ConfigError, CrawlDirError
from larmspider.index.packed import PackedPages
from larmspider.index.writer import _PACK, IndexWriter
from larmspider.items import Part
from larmspider.search.searcher import Searcher
from tests.index.conftest import MakePage


def test_adding_a_page_again_replaces_it(find, writer, make_page) -> None:
    """In one commit or in two, a canonical URL is in the index once."""
    writer.add(make_page("a", "first"))
    writer.add(make_page("a", "second"))
    assert (find("first"), find("second")) == ([], ["a"])
    writer.add(make_page("a", "third"))
    assert (find("second"), find("third")) == ([], ["a"])
    assert Searcher.open(writer.directory).count() == 1


def test_remove(find, writer, make_page) -> None:
    """The later one of adding and removing a page counts."""
    writer.add(make_page("a", "word"))
    writer.remove("http://wiki.example/a")
    assert find("word") == []
    writer.remove("http://wiki.example/a")
    writer.add(make_page("a", "word"))
    assert find("word") == ["a"]
    writer.remove("http://wiki.example/a")
    assert find("word") == []


def test_parts_go_with_their_document(find, writer, make_page) -> None:
    """Replaced, removed, and left alone when only link texts change; in one commit or in two."""
    a = make_page("a.zip", "members")
    a.parts = [Part("one.txt", "text/plain", text="onetext"), Part("two.txt", text="twotext")]
    writer.add(a)
    assert find("onetext") == ["one.txt"]
    writer.add_anchors("http://wiki.example/", [(a.name, "label"), (a.name, "tag")])
    writer.commit()
    assert writer.refresh_anchors(10) == 1
    assert find("label") == ["a.zip"]
    assert find("twotext") == ["two.txt"]
    a.parts = [Part("three.txt", text="threetext")]
    writer.add(a)
    assert (find("onetext"), find("threetext")) == ([], ["three.txt"])
    writer.remove(a.name)
    assert find("threetext") == []
    assert Searcher.open(writer.directory).count() == 0


def test_lone_surrogates_are_indexed_around(find, writer, make_page) -> None:
    """Text that UTF-8 cannot hold loses those characters only."""
    writer.add(make_page("a", "one \ud800 two", title="\udfff"))
    assert find('"one" two') == ["a"]


def test_anchors_found_before_the_page(find, writer, make_page) -> None:
    """A page is indexed with the texts that are known by then."""
    writer.add_anchors("http://h/", [("http://wiki.example/vpn", "remote access")])
    writer.commit()
    writer.add(make_page("vpn", "tunnel"))
    assert find("remote") == ["vpn"]


def test_anchors_found_after_the_page(find, writer, make_page) -> None:
    """The page is due, is indexed again with all else that it had, and then is due no more."""
    page = make_page("vpn", "tunnel", title="Title", depth=2)
    writer.add(page)
    writer.commit()
    before = Searcher.open(writer.directory).get(page.normalized)
    writer.add_anchors("http://h/", [("http://wiki.example/vpn", "remote access")])
    writer.commit()
    assert find("remote") == []
    assert (writer.refresh_anchors(10), find("remote")) == (1, ["vpn"])
    assert Searcher.open(writer.directory).get(page.normalized) == before
    assert (writer.refresh_anchors(10), writer.refresh_all_anchors()) == (0, 0)


def test_a_page_is_indexed_again_only_when_its_anchors_doubled(writer, make_page) -> None:
    """63 texts, one a commit: six times (1, 2, 4, ..., 32), and once more at the end."""
    writer.add(make_page("a", "word"))
    writer.commit()
    rounds = []
    for n in range(1, 64):
        writer.add_anchors(f"http://h/{n}", [("http://wiki.example/a", f"text {n}")])
        writer.commit()
        if writer.refresh_anchors(10):
            rounds.append(n)
            writer.commit()
    assert rounds == [1, 2, 4, 8, 16, 32]
    assert (writer.refresh_all_anchors(), writer.refresh_all_anchors()) == (1, 0)


def test_what_is_kept_of_a_page_is_packed_again_only_if_it_changed(
    writer, make_page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a page without a title is the text of most links to it."""
    packed = list[str]()
    pack = PackedPages.pack

    def noting(self, fields) -> bytes:
        packed.append(fields["key"].rpartition("/")[2])
        return pack(self, fields)

    monkeypatch.setattr(PackedPages, "pack", noting)
    writer.add(make_page("titled", "word", title="Title"))
    writer.add(make_page("untitled", "word", title=""))
    writer.commit()
    links = [(f"http://wiki.example/{name}", "remote access") for name in ("titled", "untitled")]
    writer.add_anchors("http://h/", links)
    assert writer.refresh_all_anchors() == 2
    assert packed == ["titled", "untitled", "untitled"]
    hits = Searcher.open(writer.directory).search("remote").hits
    assert {hit.title for hit in hits} == {"Title", "remote access"}


@pytest.mark.parametrize(("replaced", "left"), [(9, 1), (1, 3)])
def test_segments_are_merged_at_the_end_where_many_pages_were_replaced(
    tmp_path: Path, make_page, replaced: int, left: int
) -> None:
    """Of 24 pages in two segments nine: nothing that was replaced is left. One: it is one commit
    more, and no merge."""
    with IndexWriter(tmp_path) as writer:
        for n in range(24):
            writer.add(make_page(f"{n}", "word"))
            if n % 12 == 11:
                writer.commit()
        links = [(f"http://wiki.example/{n}", "text") for n in range(replaced)]
        writer.add_anchors("http://h/", links)
        assert writer.refresh_all_anchors() == replaced
        assert writer.refresh_all_anchors() == 0
    segments = json.loads((tmp_path / "meta.json").read_bytes())["segments"]
    deleted = [(one["deletes"] or {}).get("num_deleted_docs", 0) for one in segments]
    assert (len(segments), sum(deleted)) == (left, 0 if left == 1 else replaced)
    assert Searcher.open(tmp_path).search("text").total == replaced


def test_refresh_limit_is_kept_and_the_rest_stays_due(writer, make_page) -> None:
    """Five pages due, three now, two later."""
    for n in range(5):
        writer.add(make_page(f"{n}", "word"))
    writer.commit()
    writer.add_anchors("http://h/", [(f"http://wiki.example/{n}", "text") for n in range(5)])
    writer.commit()
    assert writer.refresh_anchors(3) == 3
    assert writer.refresh_anchors(3) == 2  # before the commit: those three are not taken again
    writer.commit()
    assert writer.refresh_anchors(3) == 0


def test_refresh_never_brings_back_an_older_page(find, writer, make_page) -> None:
    """A page that was added again but not committed yet keeps its new text."""
    writer.add(make_page("a", "old"))
    writer.commit()
    writer.add_anchors("http://h/", [("http://wiki.example/a", "text")])
    writer.commit()
    for n in range(_PACK):  # so that Tantivy has got the pack, and the new text with it
        writer.add(make_page("a", "new" if n == _PACK - 1 else "old"))
    writer.refresh_anchors(10)
    assert (find("old"), find("new")) == ([], ["a"])


def test_removed_pages_are_not_refreshed(writer, make_page) -> None:
    """Texts go on coming for a page that has left the index."""
    writer.add(make_page("a", "word"))
    writer.commit()
    writer.remove("http://wiki.example/a")
    writer.add_anchors("http://h/", [("http://wiki.example/a", "text")])
    writer.commit()
    assert writer.refresh_all_anchors() == 0
    assert Searcher.open(writer.directory).count() == 0


def test_due_pages_survive_a_restart(tmp_path: Path, make_page) -> None:
    """A crawl that was interrupted refreshes when it goes on."""
    with IndexWriter(tmp_path) as first:
        first.add(make_page("vpn", "tunnel"))
        first.commit()
        first.add_anchors("http://h/", [("http://wiki.example/vpn", "remote")])
    with IndexWriter(tmp_path) as second:
        assert second.refresh_all_anchors() == 1
    assert Searcher.open(tmp_path).search("remote").total == 1


def test_adds_go_on_while_another_thread_commits(writer, make_page) -> None:
    """No page is lost, none doubled, nothing raises "Already borrowed"."""
    errors: list[Exception] = []
    done = threading.Event()

    def commit_always() -> None:
        try:
            while not done.is_set():
                writer.commit()
                writer.refresh_anchors(5)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test reports it
            errors.append(error)

    thread = threading.Thread(target=commit_always)
    thread.start()
    for n in range(3000):
        writer.add(make_page(f"{n}", f"word number{n}"))
        writer.add_anchors(f"http://h/{n}", [(f"http://wiki.example/{n // 2}", f"text {n}")])
    done.set()
    thread.join()
    writer.refresh_all_anchors()
    searcher = Searcher.open(writer.directory)
    assert errors == []
    assert (searcher.count(), searcher.search("word").total) == (3000, 3000)
    assert searcher.search('"text 2999"').hits[0].url == "http://wiki.example/1499"


class PanicException(BaseException):
    """As Rust's, which no module gives away."""


@pytest.mark.parametrize("error", [lmdb.CorruptedError("x"), struct.error("x"), PanicException()])
@pytest.mark.parametrize("when", ["add", "commit", "refresh"])
def test_whatever_fails_on_the_way_to_the_index_is_an_error_of_the_index(
    writer, make_page, monkeypatch: pytest.MonkeyPatch, error: BaseException, when: str
) -> None:
    """By then the pages have left the queue: a crawl that went on would miss them."""

    def fail(*_: object) -> Iterator[list[str]]:
        raise error

    uses = {
        "add": lambda: [writer.add(make_page(f"{n}", "word")) for n in range(_PACK)],
        "commit": writer.commit,
        "refresh": lambda: writer.refresh_anchors(1),
    }
    with monkeypatch.context() as patched:
        for name in ("links_to", "changed"):
            patched.setattr(writer.anchors, name, fail)
        with pytest.raises(CrawlDirError, match="cannot write the index"):
            uses[when]()


def test_files_of_a_commit_that_was_interrupted_are_no_harm(
    tmp_path: Path, make_page: MakePage
) -> None:
    """Tantivy wrote which pages are deleted, and did not come to its meta.json: the same commit
    gives that file the same name again."""

    def replace(*texts: str) -> None:
        with IndexWriter(tmp_path) as writer:
            for text in texts:
                writer.add(make_page("a", text))
                writer.add(make_page(text, text))
                writer.commit()

    replace("first", "second")
    meta = (tmp_path / "meta.json").read_bytes()
    before = set(tmp_path.glob("*.del"))
    replace("third")
    assert set(tmp_path.glob("*.del")) - before
    (tmp_path / "meta.json").write_bytes(meta)
    replace("third")
    assert [hit.url for hit in Searcher.open(tmp_path).search("second").hits] == [
        "http://wiki.example/second"
    ]


def test_second_writer_is_refused(tmp_path: Path) -> None:
    """In this process or another; the lock goes with the writer."""
    first = IndexWriter(tmp_path)
    with pytest.raises(CrawlDirError, match="another writer has the search index open"):
        IndexWriter(tmp_path)
    first.close()
    IndexWriter(tmp_path).close()


@pytest.mark.parametrize(
    "values",
    [{"heap_bytes": 14_999_999}, {"threads": 5}, {"threads": 0}, {"stemmer": "klingon"}],
)
def test_impossible_values_are_config_errors(tmp_path: Path, values: dict[str, object]) -> None:
    """Before anything is written."""
    with pytest.raises(ConfigError):
        IndexWriter(tmp_path / "index", **values)  # type: ignore[arg-type]
    assert not (tmp_path / "index").exists()


def test_stemmer_belongs_to_the_index(tmp_path: Path, make_page) -> None:
    """German words are stemmed as such, and the index says so to a later writer."""
    with IndexWriter(tmp_path, stemmer="german") as writer:
        writer.add(make_page("a", "die Häuser"))
    assert Searcher.open(tmp_path).search("Haus").total == 1
    with pytest.raises(CrawlDirError, match="stemmed for german"):
        IndexWriter(tmp_path, stemmer="english")


_ENDLESS = """
import sys
from pathlib import Path
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
writer = IndexWriter(Path(sys.argv[1]))
n = 0
while True:
    for _ in range(200):
        writer.add(Page(f"http://h/{n}", text=f"word number{n} " * 50))
        writer.add_anchors(f"http://h/{n}", [(f"http://h/{n - 1}", f"text {n}")])
        n += 1
    writer.commit()
    print(n, flush=True)
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("kill_after_commits", [1, 2, 3])
def test_kill_9_leaves_whole_commits(tmp_path: Path, kill_after_commits: int, make_page) -> None:
    """Committed pages are there, no document is torn, and adding again doubles nothing."""
    process = subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    committed = 0
    for _ in range(kill_after_commits):
        committed = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    searcher = Searcher.open(tmp_path)
    found = searcher.count()
    assert found >= committed
    for n in range(found):
        document = searcher.get(f"http://h/{n}")
        assert document is not None
        assert document.text == f"word number{n} " * 50
    with IndexWriter(tmp_path) as writer:
        for n in range(found + 10):
            writer.add(make_page(f"http://h/{n}", "again"))
    assert (searcher.count(), searcher.search("again").total) == (found + 10, found + 10)
