"""The state of the access lists that OpenSearch has, and filters without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from larmspider.access import table as access_table
from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.access.table import AccessWriter, terms_of
from larmspider.index.access import EVERYTHING, Access
from larmspider.index.schema import FILES
from larmspider.plugins.opensearch import rights as rights_module
from larmspider.plugins.opensearch.rights import SentRights, filter_for

HR, IT = Rights(AccessList.simple(["group:hr"])), Rights(AccessList.simple(["group:it"]))
PERSON = Access((FILES,), (), frozenset({"everyone", "authenticated", "group:hr"}))
NOTHING: dict[str, Any] = {"match_none": {}}
A, B = "http://wiki.example/a", "http://wiki.example/b"


class Crawl:
    def __init__(self, path: Path) -> None:
        (path / "index").mkdir(exist_ok=True)
        self.path, self.folder = path, path / "outbox" / "links" / "OpenSearchReceiver"
        self.table = AccessWriter(path / "index")
        self.sent = self.again()

    def again(self) -> SentRights:
        found = SentRights(self.path, self.folder)
        found.follow()
        return found

    def give(self, name: str, rights: Rights | None) -> None:
        self.table.give(name, rights)
        self.table.flush()
        self.table.written([name])
        self.table.flush()
        self.sent.follow()

    def seen(self, access: Access = PERSON) -> Any:
        return filter_for([(self.path, self.folder)], access)["bool"]["filter"][0]

    @property
    def allowed(self) -> Any:
        """The terms of a reader, and the documents that are left out."""
        (one,) = self.seen()["bool"]["should"]
        if one == NOTHING:
            return None
        ((terms,), hidden) = one["bool"]["should"], one["bool"]["must_not"]
        name = terms["terms"]["slot"][0].partition(":")[0]
        left_out = hidden[0]["terms"]["key"] if hidden else []
        return [term.removeprefix(f"{name}:") for term in terms["terms"]["slot"]], left_out


@pytest.fixture
def crawl(tmp_path: Path) -> Crawl:
    return Crawl(tmp_path)


def test_a_document_that_moves_is_left_out_until_it_is_written(crawl: Crawl) -> None:
    assert crawl.sent.terms(A)[1:] == [f"{crawl.sent.terms(A)[0]}:open"]
    crawl.give(A, HR)
    crawl.give(B, IT)
    slot = crawl.table.slot_of(A)
    assert slot is not None
    name = crawl.sent.terms(A)[0]
    assert crawl.sent.terms(A) == [name, *(f"{name}:{one}" for one in terms_of(slot))]
    assert crawl.sent.behind == 2
    assert crawl.allowed[1] == [A, B]
    crawl.sent.written([A])
    assert crawl.allowed[1] == [A, B]  # as far as all are written
    crawl.give(A, IT)
    crawl.give(A, HR)
    crawl.sent.written([B])
    assert crawl.sent.waiting(9) == [A]  # it has moved since it was written
    crawl.sent.written([A])
    terms, left_out = crawl.allowed
    assert (crawl.sent.behind, crawl.again().behind, left_out) == (0, 0, [])
    assert terms[0] == "open"
    assert terms[1] in terms_of(slot)
    assert not {*terms_of(crawl.table.slot_of(B) or 0)} & {*terms}
    crawl.give(A, IT)
    crawl.sent.written([B])  # not the one that has moved since
    assert (crawl.sent.behind, crawl.allowed[1]) == (1, [A])


def test_a_list_that_changes_is_no_document(crawl: Crawl) -> None:
    crawl.give(A, HR)
    crawl.sent.written([A])
    before = crawl.allowed
    slot = crawl.table.slot_of(A)
    assert slot is not None
    crawl.table.replace(slot, -1, crawl.table.number_of(IT.list))
    crawl.table.flush()
    crawl.sent.follow()
    assert crawl.sent.behind == 0
    assert (crawl.allowed, before[0][0]) == ((["open"], []), "open")
    assert len(before[0]) == 2


def test_a_table_that_was_tidied_is_the_same(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_table, "_WASTE", 0)
    for number in range(200):
        crawl.give(A, HR if number % 2 else IT)
    crawl.sent.written([A])
    name, size = crawl.sent.terms(A)[0], crawl.table.path.stat().st_size
    crawl.table.tidy()
    assert crawl.table.path.stat().st_size < size // 2
    again = crawl.again()
    assert (again.terms(A)[0], again.behind) == (name, 0)
    crawl.sent.follow()
    crawl.give(A, IT)
    assert crawl.again().behind == 1
    crawl.table._rewrite()
    again = crawl.again()  # what moved before is no longer named: all are written again
    assert (again.terms(A)[0] != name, again.former) == (True, [name])


def test_another_table_gives_another_name(crawl: Crawl) -> None:
    crawl.give(A, HR)
    crawl.sent.written([A])
    name = crawl.sent.terms(A)[0]
    crawl.table.path.unlink()
    crawl.table = AccessWriter(crawl.path / "index")
    for rights in (HR, IT, HR):  # more moves than before
        crawl.table.give(A, rights)
        crawl.table.flush()
    assert crawl.allowed is None
    again = crawl.again()
    assert again.terms(A)[0] != name
    assert again.former == [name]
    crawl.table.written([A])
    crawl.table.flush()
    again.follow()
    again.written([A])
    assert again.behind == 1
    again.forget(name)
    assert (crawl.again().former, again.behind) == ([], 0)


def test_a_filter_fails_closed(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filter_for([], PERSON)["bool"]["filter"] == [NOTHING]
    monkeypatch.setattr(rights_module, "MAX_HIDDEN", 1)
    crawl.give(A, HR)
    assert crawl.allowed is not None
    crawl.give(B, HR)
    assert crawl.allowed is None
    crawl.sent.written([A, B])
    assert crawl.allowed is not None
    state = crawl.folder / "slots.json"
    content = state.read_bytes()
    for wrong in (b"", b"{}", content.replace(b'"moves":', b'"moves":9')):
        state.write_bytes(wrong)
        assert crawl.allowed is None, wrong
    assert crawl.seen(EVERYTHING) == {"match_all": {}}


@pytest.mark.parametrize(
    ("access", "hidden"),
    [
        (Access((), (), PERSON.reader), []),
        (Access(("pay.example",), ("pay.example",), PERSON.reader), ["restricted"]),
        (Access((FILES,), (), frozenset({"everyone"})), ["files"]),
        (Access(("*.pay.example", FILES), (), frozenset({"everyone"})), ["files", "restricted"]),
    ],
)  # fmt: skip
def test_hosts_and_files_are_left_out(access: Access, hidden: list[str]) -> None:
    found = filter_for([], access)["bool"]["must_not"]
    kinds = ["restricted" if "filter" in one["bool"] else "files" for one in found]
    assert kinds == hidden


def test_a_terms_clause_has_a_limit(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights_module, "MAX_TERMS", 1)
    crawl.give(A, HR)
    crawl.sent.written([A])
    (one,) = crawl.seen()["bool"]["should"]
    assert [len(part["terms"]["slot"]) for part in one["bool"]["should"]] == [1, 1]
