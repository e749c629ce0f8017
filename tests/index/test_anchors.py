from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import lmdb
import pytest

from larmspider.errors import CrawlDirError
from larmspider.files import in_words
from larmspider.index.anchors import (
    DIRTY,
    DUE,
    MAX_COPIES,
    MAX_TEXT,
    MAX_TEXTS,
    MAX_TEXTS_BYTES,
    AnchorTable,
    LinkTexts,
    page_key,
)
from larmspider.index.link_access import LinkAccess

VPN = "http://wiki.example/vpn"
NUMBERS = count()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[AnchorTable]:
    table = AnchorTable(tmp_path / "anchors")
    yield table
    table.close()


def add(table: AnchorTable, *anchors: str, pages: int = 1) -> None:
    """``pages`` further pages have links with these texts."""
    for _ in range(pages):
        table.add(f"http://h/{next(NUMBERS)}", {(VPN, anchor) for anchor in anchors})


@pytest.mark.parametrize(
    "pages, copies", [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (9999, 4)]
)
def test_a_text_weighs_with_the_logarithm_of_its_pages(
    table: AnchorTable, pages: int, copies: int
) -> None:
    """A navigation bar on 99 pages weighs four times a single link."""
    add(table, "Home", pages=pages)
    table.flush()
    assert table.texts(VPN) == ["Home"] * copies
    assert copies <= MAX_COPIES


def test_texts_of_a_target_are_bounded(table: AnchorTable) -> None:
    """At most 1,000 texts and 16 KB: the texts of the most pages, of any number."""
    add(table, *(f"text {n}" for n in range(1100)))
    add(table, "text 999")
    table.flush()
    assert len(set(table.texts(VPN))) == MAX_TEXTS
    assert table.texts(VPN)[:2] == ["text 999"] * 2
    table.add("http://h/long", {("http://h/x", f"{n:0100}") for n in range(1000)})
    table.flush()
    assert sum(map(len, table.texts("http://h/x"))) == 16_300 <= MAX_TEXTS_BYTES


@pytest.mark.parametrize(
    "indexed, texts, state",
    [(0, 0, []), (0, 1, [DUE]), (4, 4, []), (4, 5, [DIRTY]), (4, 7, [DIRTY]), (4, 8, [DUE]),
     (4, 2, [DIRTY])],
)  # fmt: skip
def test_due_when_doubled(table: AnchorTable, indexed: int, texts: int, state: list[int]) -> None:
    """An indexed page is due when its texts have doubled, dirty when they have changed at all."""
    for number, mark in ((indexed, {}), (texts, {VPN: indexed})):
        table.add("http://h/", {(VPN, f"text {n}") for n in range(number)})
        table.flush(mark)
    assert [DUE for _ in table.changed(9, due_only=True)] == [one for one in state if one == DUE]
    assert len(table.changed(9, due_only=False)) == len(state)


def test_another_text_in_place_of_one_makes_a_page_dirty(table: AnchorTable) -> None:
    """The same number of copies, but others."""
    table.add("http://h/", {(VPN, "before")})
    table.flush()
    table.add("http://h/", {(VPN, "after")})
    table.flush({VPN: 1})
    assert table.changed(9, due_only=False) == [(VPN, LinkTexts(["after"], 1))]


def test_what_a_page_gives_takes_the_place_of_what_it_gave(tmp_path: Path) -> None:
    """After any versions, the table has the texts of the last ones."""
    rng = random.Random(1)
    targets = [f"http://h/{n}" for n in range(5)]
    last: dict[str, set[tuple[str, str]]] = {}
    with closing(AnchorTable(tmp_path / "a")) as table, closing(AnchorTable(tmp_path / "b")) as new:
        for _ in range(200):
            page = rng.choice(targets)
            links = {
                (rng.choice(targets), f"text {rng.randrange(9)}") for _ in range(rng.randrange(4))
            }
            last[page] = links
            table.add(page, links)
            if rng.random() < 0.5:
                table.flush({rng.choice(targets): rng.choice([0, None])})
        for page, links in last.items():
            new.add(page, links)
        for one in (table, new):
            one.flush(dict.fromkeys(targets))
        assert [*table.links_to(targets)] == [*new.links_to(targets)]
        for page in targets:
            table.add(page, ())
        table.flush()
        assert table.sizes() == dict.fromkeys(table.sizes(), 0)


def test_pages_that_the_last_link_has_left_are_named_once(table: AnchorTable) -> None:
    """Those that are indexed; how many pages link to each is known of all."""
    for page in ("a", "b"):
        table.add(page, {("http://h/x", "x"), ("http://h/y", "y")})
    table.flush({"http://h/x": 2})
    assert table.numbers(["http://h/x", "http://h/y", "http://h/z"]) == [2, 2, 0]
    table.add("a", [])
    table.flush()
    assert (table.numbers(["http://h/x"]), table.unlinked) == ([1], [])
    table.add("b", [])
    table.flush()
    assert (table.numbers(["http://h/x"]), table.unlinked) == ([0], ["http://h/x"])


def test_two_tables_are_one_without_what_does_not_count(tmp_path: Path) -> None:
    """A page that both have, of several workers of a crawl, gives what one of them has."""
    with closing(AnchorTable(tmp_path / "a")) as table:
        table.add("http://h/both", {(VPN, "older"), (VPN, "VPN")})
        table.add("http://h/a", {(VPN, "VPN")})
        table.flush()
    with closing(AnchorTable(tmp_path / "b")) as table:
        table.add("http://h/both", {(VPN, "newer")})
        table.flush()
    with closing(AnchorTable(tmp_path / "c")) as table:
        table.take(tmp_path / "a", lambda page: page != page_key("http://h/both"))
        table.take(tmp_path / "b", lambda page: True)
        assert table.texts(VPN) == ["VPN", "newer"]
        table.add("http://h/a", ())
        table.flush()
        assert table.texts(VPN) == ["newer"]


@pytest.mark.parametrize("anchor", ["", " \n ", "¶", "»", "x" * (MAX_TEXT + 1)])
def test_texts_that_say_nothing_are_dropped(table: AnchorTable, anchor: str) -> None:
    """Empty ones, symbols, and paragraphs made links."""
    add(table, anchor)
    table.flush()
    assert table.texts(VPN) == []


def test_texts_are_merged_over_flushes(table: AnchorTable) -> None:
    """Counts add up, spaces and lone surrogates are made harmless."""
    add(table, "remote  access", "VPN")
    table.flush()
    add(table, "remote\naccess", "\ud800x")
    table.flush()
    assert table.texts(VPN) == ["remote access", "remote access", "?x", "VPN"]


def test_texts_wait_for_flush(table: AnchorTable) -> None:
    """Until then they count as waiting and are not seen."""
    add(table, "VPN", pages=2)
    assert (len(table), table.texts(VPN)) == (2, [])
    table.flush()
    assert (len(table), table.texts(VPN)) == (0, ["VPN", "VPN"])


def test_what_is_due_survives_a_restart(tmp_path: Path) -> None:
    """An interrupted crawl knows which pages to index again."""
    table = AnchorTable(tmp_path)
    table.flush({VPN: 0})
    add(table, "VPN")
    table.flush()
    table.close()
    again = AnchorTable(tmp_path)
    assert again.changed(10, due_only=True) == [(VPN, LinkTexts(["VPN"], 1))]
    again.flush({VPN: 1})
    assert again.changed(10, due_only=False) == []
    again.close()


def test_a_full_map_grows_and_loses_nothing(tmp_path: Path) -> None:
    """20,000 targets fit a table that began with 64 KB."""
    table = AnchorTable(tmp_path, map_bytes=1 << 16)
    table.add("http://h/", {(f"http://h/{n}", f"page {n}") for n in range(20_000)})
    table.flush()
    assert all(table.texts(f"http://h/{n}") == [f"page {n}"] for n in range(20_000))
    table.close()


def test_a_failed_flush_loses_nothing(table: AnchorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting texts wait on, with the ones that came meanwhile."""

    def fail(*_: object) -> None:
        add(table, "new")
        raise OSError("disk")

    add(table, "old")
    with monkeypatch.context() as patched:
        patched.setattr(table, "_write", fail)
        with pytest.raises(OSError, match="disk"):
            table.flush()
    table.flush()
    assert sorted(table.texts(VPN)) == ["new", "old"]


def test_what_lmdb_refuses_is_a_crawl_dir_error(
    table: AnchorTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is reported in our words, and the texts wait on."""

    def fail(*_: object) -> None:
        raise lmdb.DiskError("no space left")

    monkeypatch.setattr(table, "_write", fail)
    add(table, "VPN")
    with pytest.raises(CrawlDirError, match="cannot write anchors: no space left"):
        table.flush()
    assert len(table) == 1


def test_a_write_that_a_full_disk_cut_short_is_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB calls it an error of input or output, as it does a broken disk."""
    error = lmdb.Error("mdb_txn_commit: Input/output error")
    assert in_words(error, tmp_path) == str(error)
    assert in_words(error, tmp_path / "gone") == str(error)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=12_288))
    assert in_words(error, tmp_path) == "No space left on device (12,288 bytes are free)"
    assert in_words(lmdb.Error("mdb_put: MDB_BAD_TXN"), tmp_path) == "mdb_put: MDB_BAD_TXN"


def wasteful(folder: Path) -> dict[str, int]:
    """A table of which much is in no use; its sizes."""
    with closing(AnchorTable(folder)) as table:
        for text in ("one", "another", "a third"):
            for page in range(3_000):
                links = {(f"{VPN}/{random.Random(page * n).random()}", text) for n in range(4)}
                table.add(f"http://h/{page}", links | {(VPN, f"to {page % 50}")})
            table.flush({VPN: 2})
        return table.sizes()


def content(folder: Path) -> dict[bytes, list[tuple[bytes, bytes]]]:
    with lmdb.open(str(folder), readonly=True, lock=False, max_dbs=6) as env, env.begin() as txn:
        names = [name for name, _ in txn.cursor()]
        return {name: list(txn.cursor(env.open_db(name, txn, create=False))) for name in names}


def test_a_table_with_much_in_no_use_is_written_anew_when_a_crawl_ends(tmp_path: Path) -> None:
    sizes, size = wasteful(tmp_path), (tmp_path / "data.mdb").stat().st_size
    before = content(tmp_path)
    AnchorTable(tmp_path).close(tidy=True)
    assert (tmp_path / "data.mdb").stat().st_size < size / 2
    assert content(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.mdb", "lock.mdb"]
    tidied = (tmp_path / "data.mdb").stat()
    with closing(AnchorTable(tmp_path)) as table:  # it can be used again
        assert table.sizes() == sizes
        table.add("http://h/more", {(VPN, "one more")})
        table.flush()
        assert "one more" in table.texts(VPN)
        table.close(tidy=True)
    assert (tmp_path / "data.mdb").stat().st_ino == tidied.st_ino


def test_a_table_that_cannot_be_written_anew_stays_as_it_is(tmp_path: Path) -> None:
    wasteful(tmp_path)
    before = content(tmp_path)
    file = (tmp_path / "data.mdb").stat()
    (tmp_path / "anew").touch()  # where the folder of the new table would be
    AnchorTable(tmp_path).close(tidy=True)
    assert content(tmp_path) == before
    assert (tmp_path / "data.mdb").stat().st_ino == file.st_ino
    (tmp_path / "anew").unlink()
    (tmp_path / "anew").mkdir()
    (tmp_path / "anew" / "data.mdb").write_bytes(b"what a killed process left")
    AnchorTable(tmp_path).close()
    assert not (tmp_path / "anew").exists()
    assert content(tmp_path) == before


SECRET, OWN, OTHER = "http://hr/a", "http://hr/own", "http://wiki/"


def given(table: AnchorTable) -> dict[str, list[str]]:
    """The texts of the pages that tests of restricted hosts link to."""
    return {url: sorted(table.texts(url)) for url in (OWN, OTHER)}


@pytest.fixture
def told(table: AnchorTable) -> AnchorTable:
    """A page of hr and one of wiki link to a page of each."""
    table.add(SECRET, {(OWN, "canary"), (OTHER, "canary")})
    table.add("http://wiki/b", {(OWN, "robin"), (OTHER, "robin")})
    table.flush()
    table.flush({OWN: 0, OTHER: 0})
    return table


@pytest.mark.parametrize("known", ["log", "names", "nothing"])
def test_texts_of_a_host_that_becomes_restricted_leave_other_hosts(
    told: AnchorTable, known: str
) -> None:
    """Texts for pages of its own host stay, if the page is known to belong to it: by the stored
    pages, or by the indexed pages."""
    every = [SECRET, "http://wiki/b"]
    pages = [(url, url) for url in every] if known == "log" else []
    names = every if known == "names" else []
    gave = told.withdraw(LinkAccess(["hr"]), pages, lambda: names)
    assert gave == (2 if known == "nothing" else 1)
    if known == "nothing":
        assert given(told) == {OWN: [], OTHER: []}
    else:
        assert given(told) == {OWN: ["canary", "robin"], OTHER: ["robin"]}
    assert OTHER in [url for url, _ in told.changed(9, due_only=False)]
    assert told.unlinked == [], "links lead there as before"


def test_a_page_that_was_stored_under_two_urls_is_restricted_by_either(told: AnchorTable) -> None:
    """Its exact form may be on a host that everybody sees."""
    pages = [("http://hr/x", "http://wiki/b"), ("http://wiki/b", "http://wiki/b"), (SECRET, SECRET)]
    told.withdraw(LinkAccess(["hr"]), pages)
    assert given(told) == {OWN: ["canary"], OTHER: []}


def test_a_withdrawal_that_is_stopped_goes_on(told: AnchorTable) -> None:
    """It takes nothing out of which it has not seen whose it is."""
    pages = [("http://wiki/b", "http://wiki/b"), (SECRET, SECRET)]
    told.withdraw(LinkAccess(["hr"]), pages, stop=lambda: True)
    assert given(told) == {OWN: ["canary", "robin"], OTHER: ["canary", "robin"]}
    told.withdraw(LinkAccess(["hr"]), pages)
    assert given(told) == {OWN: ["canary", "robin"], OTHER: ["robin"]}


def test_texts_of_links_to_a_url_that_has_moved_are_those_of_its_new_one(tmp_path: Path) -> None:
    """Whatever the pages with the links say later, also after a restart and in another table."""
    old, new = "http://old/vpn", "http://new/vpn"
    with closing(AnchorTable(tmp_path / "a")) as table:
        table.add("http://p/1", {(old, "remote access")})
        table.add("http://p/2", {(old, "remote access"), (new, "VPN")})
        table.flush({old: 0, new: 0})
        table.move(old, new)
        table.flush({old: None})
        assert (table.texts(old), sorted(table.texts(new))) == (
            [], ["VPN", "remote access", "remote access"],
        )  # fmt: skip
        assert [url for url, _ in table.changed(9, due_only=False)] == [new]
        assert table.unlinked == []
    with closing(AnchorTable(tmp_path / "a")) as table:
        table.add("http://p/1", {(old, "tunnel")})
        table.flush()
        assert sorted(table.texts(new)) == ["VPN", "remote access", "tunnel"]
        table.add("http://p/1", ())
        table.add("http://p/2", {(old, "VPN")})
        table.flush()
        assert table.texts(new) == ["VPN"]
        assert table.sizes() == {"pairs": 1, "pages": 1, "targets": 1}
        table.close(tidy=True)
    with closing(AnchorTable(tmp_path / "b")) as other:
        other.take(tmp_path / "a", lambda _: True)
        assert other.texts(new) == ["VPN"]
        other.add("http://p/2", ())
        other.flush()
        assert (other.texts(new), other.sizes()["pairs"]) == ([], 0)


def test_texts_of_a_url_that_has_moved_back_are_its_own_again(table: AnchorTable) -> None:
    old, new = "http://old/vpn", "http://new/vpn"
    table.add("http://p/1", {(old, "remote access")})
    table.flush()
    table.move(old, new)
    table.flush()
    table.move(new, old)
    table.flush()
    table.add("http://p/2", {(old, "tunnel"), (new, "VPN")})
    table.flush()
    assert (sorted(table.texts(old)), table.texts(new)) == (
        ["VPN", "remote access", "tunnel"], [],
    )  # fmt: skip
    table.add("http://p/1", ())
    table.flush()
    assert sorted(table.texts(old)) == ["VPN", "tunnel"]
