"""Labels that begin alike are looked through once per commit, and no user waits long for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from time import monotonic

import pytest

from larmspider.index.access import Access, Limited
from larmspider.index.schema import MIDDLE
from larmspider.index.version import note_restricted_of
from larmspider.search import searcher as searching
from larmspider.search import shard
from larmspider.search.completions import KEPT, LOOKED_UP, MAX_THREADS, Asked, Counted, Labels
from larmspider.search.reading import all_count
from larmspider.search.searcher import Searcher
from larmspider.search.shard import TITLES

LONG = 20.0
MANY = [(f"guide {n:04}", 9) for n in range(400, 400 + KEPT)]


class Dictionary:
    """Labels in memory, and which beginnings were looked through; that waits while ``open`` is not
    set."""

    def __init__(self, labels: Counted, gone: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.labels, self.gone = dict(labels), gone
        self.looked_through, self.looked_up = list[str](), list[str]()
        self.open = threading.Event()
        self.open.set()
        self.begun = threading.Semaphore(0)

    def asked(self, head: str, commit: object = 1, reader: Hashable = None) -> Asked:
        return Asked(
            head,
            3,
            commit,
            reader,
            self._seen if reader else self._through,
            self._pages,
            lambda: ([], True),
        )

    def _through(self, head: str, most: int) -> Counted:
        self.looked_through.append(head)
        self.begun.release()
        assert self.open.wait(LONG)
        found = [one for one in self.labels.items() if one[0].startswith(head)]
        return sorted(found, key=lambda one: (-one[1], one[0]))[:most]

    def _seen(self, head: str, most: int) -> Counted:
        return [one for one in self._through(head, KEPT + 10**6) if one[0] not in self.gone][:most]

    def _pages(self, label: str) -> int:
        self.looked_up.append(label)
        return 0 if label in self.gone else self.labels.get(label, 0)


def late() -> float:
    return monotonic()


def in_time() -> float:
    return monotonic() + LONG


def test_what_was_looked_through_is_remembered_for_longer_beginnings() -> None:
    """Where the list has enough of them, or all."""
    words = Dictionary([*MANY, ("guide", 20), ("guide 0900 x", 1), ("guide 0900 yz", 1)])
    labels = Labels()
    first = labels.most_frequent(words.asked("gu"), in_time())
    assert first == [("guide", 20), ("guide 0400", 9), ("guide 0401", 9)]
    assert labels.most_frequent(words.asked("guide 05"), in_time())[0] == ("guide 0500", 9)
    assert words.looked_through == ["gu"]
    assert len(labels.most_frequent(words.asked("guide 0900"), in_time())) == 2
    assert labels.most_frequent(words.asked("guide 0900 y"), in_time()) == [("guide 0900 yz", 1)]
    assert words.looked_through == ["gu", "guide 0900"]


def test_a_new_commit_is_looked_through_anew_and_who_asks_first_has_what_was_known() -> None:
    """With the numbers of today."""
    words, labels = Dictionary([("guide", 20), ("guild", 5)]), Labels()
    labels.most_frequent(words.asked("gu"), in_time())
    words.labels |= {"guide": 30, "gull": 9}
    words.gone = {"guild"}
    words.open.clear()
    assert labels.most_frequent(words.asked("gu", 2), late()) == [("guide", 30)]
    words.open.set()
    assert labels.most_frequent(words.asked("gu", 2), in_time()) == [("guide", 30), ("gull", 9)]
    assert words.looked_through == ["gu", "gu"]


def test_who_asks_too_early_has_some_titles_and_nothing_is_looked_through_twice() -> None:
    """Longer beginnings typed meanwhile are not looked through, and others only a few at a time."""
    words, labels = Dictionary([*MANY, ("guide", 20)]), Labels()
    words.open.clear()
    titles = replace(words.asked("gu"), titles=lambda: (["guide 0401", "gone", "guide"], True))
    for _ in range(2):
        assert labels.most_frequent(titles, late()) == [("guide", 20), ("guide 0401", 9)]
    assert labels.most_frequent(words.asked("guide"), late()) == []
    for head in ("in", "java", "py"):
        assert labels.most_frequent(words.asked(head), late()) == []
    for _ in range(MAX_THREADS):
        assert words.begun.acquire(timeout=LONG)
    assert sorted(words.looked_through) == ["gu", "in"]
    words.open.set()
    assert labels.most_frequent(titles, in_time())[0] == ("guide", 20)
    assert len(words.looked_through) == MAX_THREADS


def test_who_types_on_meanwhile_has_a_list_of_his_own_where_the_other_does_not_do() -> None:
    """A longer beginning waits for a shorter one first."""
    words, labels = Dictionary([*MANY, ("guide 0900 x", 1)]), Labels()
    words.open.clear()
    labels.look_ahead(words.asked("gu"))
    threading.Timer(0.05, words.open.set).start()
    assert labels.most_frequent(words.asked("guide 0900"), in_time()) == [("guide 0900 x", 1)]
    assert words.looked_through == ["gu", "guide 0900"]


def test_few_that_begin_so_are_found_while_others_are_looked_through() -> None:
    words, labels = Dictionary([*MANY, ("java", 1)]), Labels()
    words.open.clear()
    for head in ("gu", "in"):
        labels.most_frequent(words.asked(head), late())
        assert words.begun.acquire(timeout=LONG)
    few = Dictionary([("java", 1)])
    asked = replace(few.asked("ja"), titles=lambda: ([], False))
    assert labels.most_frequent(asked, late()) == [("java", 1)]
    words.open.set()


def test_who_sees_few_of_the_pages_has_a_list_of_his_own() -> None:
    """The list has the labels that the reader sees, whichever labels hidden pages have."""
    words, labels = Dictionary([*MANY, ("guide", 20), ("guide 0900 x", 1)]), Labels()
    words.gone = {label for label, _ in MANY}
    asked = words.asked("gu", reader="him")
    assert labels.most_frequent(asked, in_time()) == [("guide", 20), ("guide 0900 x", 1)]
    assert not words.gone.intersection(words.looked_up)
    assert labels.most_frequent(asked, in_time()) == [("guide", 20), ("guide 0900 x", 1)]
    assert len(words.looked_through) == 1


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Nothing is looked through before this is called."""
    go = threading.Event()

    def looks_through(searcher: Limited, pages: int) -> Callable[[str, int], Counted]:
        def look(head: str, most: int) -> Counted:
            assert go.wait(LONG)
            return searcher.terms_with_prefix("labels", head, limit=most)

        return look

    monkeypatch.setattr(shard, "SMALL", 0)
    monkeypatch.setattr(searching, "WAIT_SECS", 0.0)
    monkeypatch.setattr(searching, "LIMITED_WAIT_SECS", 0.0)
    monkeypatch.setattr(shard, "_looks_through", looks_through)

    def release() -> None:
        go.set()
        monkeypatch.setattr(searching, "WAIT_SECS", LONG)
        monkeypatch.setattr(searching, "LIMITED_WAIT_SECS", LONG)

    return release


@pytest.mark.parametrize("access", [Access(), Access(("*.hr.example",))])
def test_the_first_answer_has_titles_of_the_best_known_pages(
    writer, make_page, slow, access
) -> None:
    """A reader who does not see all pages waits for the list: the titles are taken from labels of
    all pages."""
    for n in range(TITLES):
        writer.add(make_page(f"{n}", title=f"Guide {n:02} | Intranet", body=b"%d" % n))
        writer.add(make_page(f"http://a.hr.example/{n}", title=f"Guide {n:02} pay"))
    writer.add_anchors("http://a.example/", {("http://wiki.example/17", "Guide of the house")})
    writer.add_anchors("http://b.example/", {("http://wiki.example/17", "Guide of the house")})
    writer.commit()
    writer.add(make_page("17", title="Guide 17 | Intranet", body=b"17"))
    writer.commit()
    note_restricted_of(writer.directory, access.restricted)
    searcher = Searcher.open(writer.directory).seen_by(access)
    first = searcher.completions("guide", limit=5)
    assert len(first) == (0 if access.restricted else 5)
    assert first[:1] == ([] if access.restricted else [("guide 17", 1)])
    found = searcher.completions("guide", limit=200)
    assert any(" pay" in text for text, _ in found) is not bool(access.restricted)
    slow()
    found = searcher.completions("guide", limit=200)
    assert ("guide of the house", 1) in found
    assert any(" pay" in text for text, _ in found) is not bool(access.restricted)


def test_labels_of_few_pages_are_found_behind_those_of_hidden_ones(writer, make_page) -> None:
    for n in range(LOOKED_UP + 10):
        for copy in "ab":
            writer.add(make_page(f"http://{copy}.hr.example/{n}", title=f"Guide {n:02}"))
    writer.add(make_page("a", title="Guide to all"))
    writer.commit()
    note_restricted_of(writer.directory, ["*.hr.example"])
    searcher = Searcher.open(writer.directory)
    limited = searcher.seen_by(Access(("*.hr.example",)))
    assert searcher.completions("guide")[0] == ("guide 00", 2)
    assert limited.completions("guide") == [("guide to all", 1)]


def test_all_workers_look_through_their_labels_at_a_time(
    tmp_path, writer, make_page, monkeypatch
) -> None:
    """Each waits until the other has begun."""
    writer.add(make_page("a", title="Guide"))
    writer.commit()
    both = threading.Barrier(2, timeout=LONG / 4)

    def looks_through(searcher: Limited, pages: int) -> Callable[[str, int], Counted]:
        def look(head: str, most: int) -> Counted:
            if not head.startswith(MIDDLE):  # that comes later
                both.wait()
            return searcher.terms_with_prefix("labels", head, limit=most)

        return look

    monkeypatch.setattr(shard, "SMALL", 0)
    monkeypatch.setattr(shard, "_looks_through", looks_through)
    monkeypatch.setattr("larmspider.search.searcher.WAIT_SECS", LONG)
    shards = [Searcher.open(writer.directory) for _ in range(2)]
    searcher = Searcher.of_workers(shards, all_count)
    assert searcher.completions("gu") == [("guide", 2)]


@pytest.mark.parametrize("number", [100, 2_100])
def test_labels_of_pages_that_are_gone_stand_before_no_others(writer, make_page, number) -> None:
    """In an index that is looked through at once, and in a larger one."""
    for n in range(number):
        writer.add(make_page(f"p{n}", f"text {n}", title=f"Guide {n:04}"))
    writer.commit()
    for n in range(90):
        writer.remove(f"http://wiki.example/p{n}")
    writer.commit()
    found = Searcher.open(writer.directory).shards[0].completions("gu", 8, in_time())
    assert found == [(f"guide {n:04}", 1) for n in range(90, 98)]


def test_a_label_is_suggested_from_its_middle(writer, make_page) -> None:
    """By any of its words, behind labels that begin so; the same label with the name of the site in
    brackets is none of its own."""
    for name, title in (
        ("a", "Connection pool sizes"),
        ("b", "Pool signals"),
        ("c", "Größe der Poolsiedung"),
        ("d", "Pool signals (Wiki)"),
        ("e", "The seven words of a label in all"),
    ):
        writer.add(make_page(name, "text", title=title))
    writer.commit()
    searcher = Searcher.open(writer.directory)
    assert searcher.completions("pool si") == [("pool signals", 1), ("connection pool sizes", 1)]
    assert searcher.completions("sizes") == [("connection pool sizes", 1)]
    assert searcher.completions("poolsied") == [("größe der poolsiedung", 1)]
    assert searcher.completions("label in") == []
