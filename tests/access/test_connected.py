"""larmspider/access/connected.py: rights that come with a connector's answer, and its passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from larmspider.access.connected import RIGHTS_HEADER, AwayError, ConnectedRights, packed
from larmspider.access.lists import OPERATORS_ONLY, AccessList, UnreadableError
from larmspider.access.nt import of_sddl
from larmspider.access.renewal import renew
from larmspider.access.rights import Document, Rights
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
        self.mounted, self.away = True, False

    def root_of(self, name: str) -> str:
        return SHARE[0]

    def is_mounted(self, root: str) -> bool:
        return self.mounted

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        return [SHARE]

    def files(self, folder: str, names: list[str]) -> Iterator[tuple[str, AccessList, str]]:
        for name in names:
            if self.away and name.endswith("b.txt"):
                raise AwayError("the connection ended")
            yield name, self.lists.get(name, OPERATORS_ONLY), "" if name in self.lists else "gone"


def test_a_pass_takes_new_lists_and_keeps_those_of_a_server_that_is_away(tmp_path: Path) -> None:
    table, server = AccessWriter(tmp_path), Server()
    sources = Sources()
    sources.connected._readers["smb"] = server
    names = list(server.lists)

    def run() -> None:
        renew(table, sources, lambda begin: [one for one in names if one.startswith(begin)])

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
