"""larmspider/access/connected.py: rights that come with a connector's answer, and its passes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.access.connected import RIGHTS_HEADER, AwayError, ConnectedRights, packed
from larmspider.access.file_rights import files_of
from larmspider.access.lists import OPERATORS_ONLY, AccessList, UnreadableError
from larmspider.access.nt import of_sddl
from larmspider.access.renewal import Renewed, renew_connected
from larmspider.access.rights import Checked, Document, Rights
from larmspider.access.sources import Sources
from larmspider.access.table import NO_SLOT, AccessWriter

SHARE = ("smb://nas/s/", AccessList.simple(["authenticated"]))
HR, IT = (of_sddl(f"D:(A;;FR;;;S-1-5-21-1-2-3-{number})") for number in (1, 2))


def document(name: str, *values: str) -> Document:
    return Document(name, {RIGHTS_HEADER.encode(): [value.encode() for value in values]})


def test_rights_come_with_the_answer() -> None:
    rights = Rights(HR, "", (SHARE,))
    found = ConnectedRights().access_of(document("smb://nas/s/a.txt", packed(rights)))
    assert found == Rights(HR, "smb://nas/s/*", (SHARE,))


def test_no_server_can_send_them() -> None:
    rights = packed(Rights(AccessList.simple(["everyone"])))
    assert ConnectedRights().access_of(document("http://nas/a.txt", rights)) is None


@pytest.mark.parametrize(
    ("values", "why"),
    [((), "not given"), (("x",), "damaged"), ((packed("the server is shy"),), "the server is shy")],
)
def test_rights_that_cannot_be_read(values: tuple[str, ...], why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        ConnectedRights().access_of(document("smb://nas/s/a.txt", *values))


class Server:
    """A reader of rights."""

    known: dict[object, AccessList] | None = None

    def __init__(self) -> None:
        self.lists = {"smb://nas/s/a.txt": HR, "smb://nas/s/b.txt": HR}
        self.marks = dict[str, str]()
        self.mounted, self.away = True, False

    def root_of(self, name: str) -> str:
        return SHARE[0]

    def is_mounted(self, root: str) -> bool:
        return self.mounted

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        return [SHARE]

    def files(self, folder: str, names: list[str]) -> Iterator[Checked]:
        for name in names:
            if self.away and name.endswith("b.txt"):
                raise AwayError("the connection ended")
            why = "" if name in self.lists else "gone"
            yield Checked(name, self.lists.get(name, OPERATORS_ONLY), why, self.marks.get(name, ""))


def test_a_document_that_another_one_has_replaced_is_for_operators(tmp_path: Path) -> None:
    table, server, names = AccessWriter(tmp_path), Server(), ["smb://nas/s/a.txt"]
    sources = Sources()
    sources.connected._readers["smb"] = server

    def run() -> tuple[AccessList, int]:
        said = renew_connected(table, sources, lambda begin: names * (begin == "smb:"))
        return table.list_of(table.slot_of(names[0]) or NO_SLOT), said.replaced

    table.give(names[0], Rights(HR, "smb://nas/s/*", (SHARE,)))
    table.note_read(names[0], "old")
    server.marks[names[0]] = "old"
    server.lists[names[0]] = IT
    assert run() == (IT, 0)  # the same document
    server.lists[names[0]], server.marks[names[0]] = HR, "new"
    assert run() == (OPERATORS_ONLY, 1)
    table.flush()
    table = AccessWriter(tmp_path)
    assert run() == (OPERATORS_ONLY, 1)
    server.marks[names[0]] = "old"  # it is back
    assert run() == (HR, 0)


def test_a_pass_takes_new_lists_and_keeps_those_of_a_server_that_is_away(tmp_path: Path) -> None:
    table, server = AccessWriter(tmp_path), Server()
    sources = Sources()
    sources.connected._readers["smb"] = server
    names = list(server.lists)

    def run() -> None:
        renew_connected(
            table, sources, lambda begin: [one for one in names if one.startswith(begin)]
        )

    def lists() -> list[AccessList]:
        return [table.list_of(table.slot_of(name) or NO_SLOT) for name in names]

    for name in names:
        table.give(name, Rights(HR, "smb://nas/s/*", (SHARE,)))
    server.lists["smb://nas/s/a.txt"] = IT
    run()
    assert lists() == [IT, HR]
    server.lists = dict.fromkeys(names, AccessList.simple(["everyone"]))
    server.away = True
    run()
    assert lists() == [IT, HR]
    server.away, server.mounted = False, False
    run()
    assert lists() == [IT, HR]
    server.mounted = True
    del server.lists["smb://nas/s/b.txt"]
    run()
    assert lists() == [AccessList.simple(["everyone"]), OPERATORS_ONLY]


class Shares:
    """A reader of 2 shares with 3 folders each, a file in each folder. ``fails``: by share."""

    known: dict[object, AccessList] | None = None

    def __init__(self, **fails: Exception) -> None:
        self.fails, self.asked = fails, list[str]()
        self.names = [f"smb://nas/{share}/{at}/a.txt" for share in "rs" for at in range(3)]

    def root_of(self, name: str) -> str:
        return name[:12]

    def is_mounted(self, root: str) -> bool:
        return True

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        return []

    def files(self, folder: str, names: list[str]) -> Iterator[Checked]:
        self.asked.append(folder)
        if error := self.fails.get(folder[10]):
            raise error
        yield from (Checked(name, IT) for name in names)


def passed(
    folder: Path, shares: Shares, stop: Callable[[], bool] = lambda: False
) -> tuple[Renewed, list[AccessList]]:
    """A pass over files that all have the list HR: what it says, and their lists."""
    table, sources = AccessWriter(folder), Sources()
    sources.connected._readers["smb"] = shares
    for name in shares.names:
        table.give(name, Rights(HR, files_of(name)))
    said = renew_connected(table, sources, lambda begin: shares.names * (begin == "smb:"), stop)
    return said, [table.list_of(table.slot_of(name) or NO_SLOT) for name in shares.names]


def test_a_change_of_one_file_changes_no_file_of_another_folder(tmp_path: Path) -> None:
    """Files with equal lists, unlike their neighbours', have one slot on the whole share."""
    table, server, sources = AccessWriter(tmp_path), Server(), Sources()
    sources.connected._readers["smb"] = server
    one, two = "smb://nas/s/", "smb://nas/s/two/"
    server.lists = {f"{one}a": HR, f"{one}b": IT, f"{two}a": AccessList.simple([]), f"{two}b": IT}
    for name, rights in server.lists.items():
        table.give(name, Rights(rights, files_of(name), (SHARE,)))
    assert table.slot_of(f"{one}b") == table.slot_of(f"{two}b")
    opened, shut = AccessList.simple(["everyone"]), AccessList.simple(["user:boss"])
    for name, rights in ((f"{two}b", opened), (f"{one}b", shut), (f"{two}b", IT), (f"{one}b", IT)):
        server.lists[name] = rights
        renew_connected(table, sources, lambda begin: server.lists if begin == "smb:" else [])
        found = {one: table.list_of(table.slot_of(one) or NO_SLOT) for one in server.lists}
        assert found == server.lists


def test_a_share_that_is_away_is_asked_once(tmp_path: Path) -> None:
    shares = Shares(r=AwayError("the connection ended"))
    said, lists = passed(tmp_path, shares)
    assert said.unmounted == ["smb://nas/r/ (the connection ended)"]
    assert (said.files, lists) == (3, [HR] * 3 + [IT] * 3)
    assert len(shares.asked) == 4
    below = Shares(r=AwayError("the connection ended", "smb://nas/r/0/"))  # a DFS link leads away
    said, lists = passed(tmp_path, below)
    assert len(below.asked) == 6


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (struct.error("short"), OPERATORS_ONLY),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "odd"), OPERATORS_ONLY),
        (KeyError("x"), OPERATORS_ONLY),
        (OSError(5, "Input/output error"), HR),
    ],
)
def test_a_damaged_answer_ends_no_pass(tmp_path: Path, error: Exception, found: AccessList) -> None:
    """Its documents are closed, or keep their rights: no others are wider."""
    said, lists = passed(tmp_path, Shares(r=error))
    assert lists == [found] * 3 + [IT] * 3
    assert bool(said.unread) != bool(said.unmounted)


def test_a_pass_ends_between_two_files(tmp_path: Path) -> None:
    """The documents of a folder that was not read to its end keep their rights."""
    shares, asked = Shares(), list[int]()
    shares.names = [f"smb://nas/r/0/{number}.txt" for number in range(9)]
    said, lists = passed(tmp_path, shares, lambda: asked.append(1) or len(asked) > 3)
    assert (said.files, lists) == (0, [HR] * 9)
    assert len(asked) < 7


def test_a_document_that_is_fetched_during_the_pass_keeps_its_newer_rights(tmp_path: Path) -> None:
    table, sources, shares = AccessWriter(tmp_path), Sources(), Shares()
    sources.connected._readers["smb"] = shares
    shares.names = names = [f"smb://nas/r/0/{name}.txt" for name in "ab"]
    newer = AccessList.simple(["user:anna"])
    for name in names:
        table.give(name, Rights(HR, files_of(name)))

    original = shares.files

    def files(folder: str, inside: list[str]) -> Iterator[Checked]:
        for one in original(folder, inside):
            yield one
            table.give(names[0], Rights(newer, files_of(names[0])))

    shares.files = files  # type: ignore[method-assign]
    renew_connected(table, sources, lambda begin: names * (begin == "smb:"))
    assert [table.list_of(table.slot_of(name) or NO_SLOT) for name in names] == [newer, IT]
