from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from larmspider.access import table as access_table
from larmspider.access.lists import OPERATORS_ONLY, POSIX, AccessList
from larmspider.access.rights import UNREADABLE, Rights
from larmspider.access.rules import slot_name
from larmspider.access.table import NO_SLOT, AccessTable, AccessWriter, has_lists, terms_of
from larmspider.access.verdicts import Verdicts, covering
from larmspider.errors import CrawlDirError

HR, STAFF = AccessList.simple(["group:hr"]), AccessList.simple(["group:staff"])
_HR, _STAFF = frozenset({"everyone", "group:hr"}), frozenset({"everyone", "group:staff"})
OPEN = AccessList(POSIX, (("owner", 1, 7), ("owning-group", 1, 7), ("other", 0, 5)))
PRIVATE = AccessList(POSIX, (("owner", 1, 7), ("owning-group", 1, 7), ("other", 0, 0)))
_OTHER = frozenset({"everyone", "uid:9"})


def _in_folder(*above: AccessList, of: AccessList, name: str = "file:///s/*") -> Rights:
    return Rights(of, name, [(f"file:///{n}", one) for n, one in enumerate(above)])


def test_files_of_a_folder_share_a_slot(tmp_path: Path) -> None:
    table = AccessWriter(tmp_path)
    assert table.slot_of("file:///s/a") == NO_SLOT
    assert table.give("file:///s/a", _in_folder(OPEN, of=OPEN))
    first = table.slot_of("file:///s/a")
    assert first
    table.give("file:///s/b", _in_folder(OPEN, of=OPEN))
    table.give("file:///s/c", _in_folder(OPEN, of=PRIVATE))
    assert table.slot_of("file:///s/b") == first
    assert table.slot_of("file:///s/b#!/in%20it.txt") == first
    assert table.slot_of("file:///s/c") not in (first, NO_SLOT)
    assert table.slot_of("file:///s/") == NO_SLOT  # names are for operators
    assert not table.give("file:///s/c", _in_folder(OPEN, of=PRIVATE))
    seen = Verdicts(table)
    assert [seen.may_see(f"file:///s/{one}", _OTHER) for one in "abc"] == [True, True, False]
    table.give("file:///s/a", UNREADABLE)
    assert table.slot_of("file:///s/a") == NO_SLOT
    assert not seen.may_see("file:///s/a", _OTHER)


def test_a_table_without_a_list_closes_no_page(tmp_path: Path) -> None:
    """Each index has a table; one that cannot be read counts as one with lists."""
    assert not has_lists(tmp_path)
    table = AccessWriter(tmp_path)
    table.flush()
    assert table.path.exists()
    assert not has_lists(tmp_path)
    table.give("file:///s/a", _in_folder(OPEN, of=OPEN))
    table.flush()
    assert has_lists(tmp_path)
    table.path.write_bytes(b"x" * 100)
    assert has_lists(tmp_path)


def test_a_reader_enters_every_folder(tmp_path: Path) -> None:
    table, shut = AccessWriter(tmp_path), AccessList(POSIX, (("other", 0, 4),))
    table.give("file:///s/a", _in_folder(OPEN, shut, OPEN, of=OPEN))
    assert not Verdicts(table).may_see("file:///s/a", _OTHER)
    table.enter([("file:///0", OPEN), ("file:///1", OPEN)])  # one row
    assert Verdicts(table).may_see("file:///s/a", _OTHER)


def test_a_table_of_many_documents_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits are small here: 50,000 names of 60 bytes are more than a record may have."""
    monkeypatch.setattr(access_table, "_LARGEST_RECORD", 1 << 21)
    monkeypatch.setattr(access_table, "_RECORD", 1 << 20)
    monkeypatch.setattr(access_table, "_NUMBERS", 10_000, raising=False)
    names = [f"http://wiki.example/handbook/of/all/departments/page-{n:08}" for n in range(50_000)]
    table = AccessWriter(tmp_path)
    for number, name in enumerate(names):
        table.give(name, Rights(HR if number % 2 else STAFF))
    table.flush()
    table.written(names[1:])
    table.flush()
    for again in (AccessWriter(tmp_path), AccessWriter(tmp_path)):
        assert again.moved == {names[0]}
        assert [again.slot_of(one) for one in names] == [table.slot_of(one) for one in names]
        again._rewrite()


def test_no_list_is_missed_while_a_table_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader in another thread waits, rather than take a document for one without a list."""
    table = AccessWriter(tmp_path)
    table.give("http://a/", Rights(HR))
    table.flush()
    reading = AccessTable(tmp_path)
    reading.refresh()
    table._rewrite()
    found, read = list[int | None](), access_table._records
    ask = threading.Thread(target=lambda: found.append(reading.slot_of("http://a/")))

    def slowly(file: IO[bytes]) -> Iterator[list[Any]]:
        ask.start()
        ask.join(0.2)
        yield from read(file)

    monkeypatch.setattr(access_table, "_records", slowly)
    reading.refresh()
    ask.join(10)
    assert found == [table.slot_of("http://a/")]


def test_readers_follow_a_writer(tmp_path: Path) -> None:
    table = AccessWriter(tmp_path)
    reading = AccessTable(tmp_path)
    first = reading.refresh()
    table.give("http://a/", Rights(HR))
    assert reading.refresh() == first
    table.flush()
    assert reading.refresh() != first
    seen = Verdicts(reading)
    assert seen.may_see("http://a/", _HR)
    assert not seen.may_see("http://a/", _STAFF)
    table.give("http://a/", Rights(STAFF))
    table.give("http://b/", Rights(STAFF))
    table.give("http://b/", None)
    table.flush()
    reading.refresh()
    assert seen.may_see("http://a/", _STAFF)
    assert not seen.may_see("http://a/", _HR)
    assert reading.slot_of("http://b/") is None
    assert reading.moved == {"http://a/", "http://b/"}
    table.written(["http://a/"])
    table.flush()
    again = AccessWriter(tmp_path)
    assert again.moved == {"http://b/"}
    assert again.slot_of("http://a/") == table.slot_of("http://a/")


def test_a_torn_record_is_left_out(tmp_path: Path) -> None:
    table = AccessWriter(tmp_path)
    table.give("http://a/", Rights(HR))
    table.flush()
    whole = (tmp_path / "access").read_bytes()
    table.give("http://b/", Rights(STAFF))
    table.flush()
    torn = (tmp_path / "access").read_bytes()[:-3]
    (tmp_path / "access").write_bytes(torn)
    again = AccessWriter(tmp_path)
    assert (tmp_path / "access").read_bytes() == whole
    assert again.slot_of("http://b/") is None
    (tmp_path / "access").write_bytes(whole[:-3] + b"abc")
    with pytest.raises(CrawlDirError, match="access lists cannot be read"):
        AccessWriter(tmp_path)


def test_rules_come_first(tmp_path: Path) -> None:
    table = AccessWriter(tmp_path)
    table.give("http://a/hr/x", Rights(STAFF))
    for pattern, rights in (("/hr/*", HR), ("/free/*", AccessList.simple(["everyone"]))):
        table.put(slot_name(pattern), rights)
    assert table.set_rules(["/hr/*", "/free/*", "/unknown/*"], ["cms.example:* X-Access"])
    assert not table.set_rules(["/hr/*", "/free/*", "/unknown/*"], ["cms.example:* X-Access"])
    slot = table.slot_of("http://a/hr/x")
    assert slot == table.slot_of("http://b/hr/y") == table.slot_of("file:///hr/z")
    assert slot
    assert table.is_by_rule(slot)
    assert table.list_of(slot) == HR
    assert table.slot_of("http://a/free/x") is None  # for everybody is not a list
    assert table.slot_of("http://a/unknown/x") == NO_SLOT
    assert table.slot_of("http://cms.example/x") == NO_SLOT  # it has not said yet
    assert table.slot_of("http://a/x") is None
    table.put(slot_name("/hr/*"), STAFF)
    assert table.slot_of("http://a/hr/x") == slot
    assert Verdicts(table).may_see("http://a/hr/x", _STAFF)
    table.flush()
    assert AccessTable(tmp_path).refresh()
    again = AccessWriter(tmp_path)
    assert again.slot_of("http://a/hr/x") == slot
    assert again.slot_of("http://cms.example/x") == NO_SLOT


def test_a_slot_that_is_not_known_yet_is_hidden(tmp_path: Path) -> None:
    table = AccessWriter(tmp_path)
    assert Verdicts(table).hidden([NO_SLOT, 4_711], _HR) == [NO_SLOT, 4_711]
    assert table.list_of(NO_SLOT) == OPERATORS_ONLY


def test_a_table_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larmspider.access.table._WASTE", 1_000)
    table = AccessWriter(tmp_path)
    for number in range(200):
        table.give("http://a/", Rights((HR, STAFF)[number % 2]))
        table.flush()
    large = (tmp_path / "access").stat().st_size
    again = AccessWriter(tmp_path)
    assert (tmp_path / "access").stat().st_size < large / 5
    assert again.slot_of("http://a/") == table.slot_of("http://a/")
    assert again.moved == {"http://a/"}


def test_terms_cover_hidden_slots_and_no_others() -> None:
    draw = random.Random(44)
    for _ in range(50):
        slots = draw.sample(range(4_096, 4_096 * 4), 300)
        edge = draw.randrange(4_096, 4_096 * 4)
        hidden = {one for one in slots if one < edge or draw.random() < 0.02}
        terms = set(covering(hidden, set(slots) - hidden))
        assert {one for one in slots if terms & set(terms_of(one))} == hidden


def test_slots_with_one_list_are_neighbours(tmp_path: Path) -> None:
    table = AccessWriter(tmp_path)
    for number in range(1_000):
        for rights in (OPEN, PRIVATE):
            name = f"file:///s/{number}/{rights is OPEN}/"
            above = [("file:///", OPEN), ("file:///s/", OPEN), (name, OPEN)]
            table.give(f"{name}a", Rights(rights, f"{name}*", above))
    slots = [one for one in table.slots if one < 1 << 30]
    hidden = set(Verdicts(table).hidden(slots, _OTHER))
    assert len(hidden) == 1_001
    assert len(covering(hidden, set(slots) - hidden)) <= 8


def test_marks_of_documents_outlive_a_rewritten_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("larmspider.access.table._FEW_MARKS", 10)
    table = AccessWriter(tmp_path)
    for number in range(100):
        table.note_read(f"file:///{number}", "old")
    table.flush()
    bytes_before = table.path.stat().st_size
    for number in range(0, 100, 2):
        table.note_read(f"file:///{number}", "new")
    table.note_read("file:///99", "old")
    table.flush()
    assert table.path.stat().st_size - bytes_before < 50 * 12 + 60  # changes alone are written
    table._rewrite()
    table = AccessWriter(tmp_path)
    for number in range(100):
        is_new = number % 2 == 0
        assert table.is_replaced(f"file:///{number}", "old") is is_new
        assert table.is_replaced(f"file:///{number}", "new") is not is_new
    assert not table.is_replaced("file:///unknown", "old")
    assert not table.is_replaced("file:///1", "")
