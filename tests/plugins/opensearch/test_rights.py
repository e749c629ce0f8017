"""Who sees which documents in OpenSearch: exactly those that our own index shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from larmspider.access.lists import POSIX, AccessList
from larmspider.access.rights import UNREADABLE, Rights
from larmspider.index.access import Access
from larmspider.index.schema import FILES
from larmspider.index.writer import IndexWriter
from larmspider.items import Link, Page, Part
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver
from larmspider.search.searcher import Searcher
from tests.plugins.opensearch.test_node import receiver_for
from tests.support.servers.opensearch.shared import SharedNode
from tests.support.spooled import entries, spooled

pytestmark = pytest.mark.acceptance

RESTRICTED = ("pay.example", FILES)


def reader(*principals: str, allowed: tuple[str, ...] = ()) -> Access:
    more = {"authenticated"} if principals else set()
    return Access(RESTRICTED, allowed, frozenset({"everyone", *principals, *more}))


PEOPLE = {
    "anna": reader("user:anna", "group:hr", "uid:1", "gid:7", allowed=("pay.example",)),
    "ben": reader("user:ben", "group:it", "uid:2", "gid:8"),
    "carl": reader("user:carl", "group:hr", "group:it", "uid:3"),
    "nobody": reader(),
}
HR, IT = AccessList.simple(["group:hr"]), AccessList.simple(["group:it"])
MINE = AccessList(POSIX, (("owner", 1, 6), ("owning-group", 8, 4), ("other", 0, 0)))
SHUT = AccessList(POSIX, (("owner", 1, 7), ("owning-group", 7, 1), ("other", 0, 0)))
SEEN = AccessList(POSIX, (("owner", 1, 7), ("owning-group", 7, 5), ("other", 0, 5)))


def in_folder(one: AccessList, folder: AccessList = SEEN) -> Rights:
    return Rights(one, "file:///s/*", [("file:///s", folder)])


RIGHTS: dict[str, Rights | None] = {
    "http://wiki.example/open": None,
    "http://wiki.example/hr/a": Rights(HR),
    "http://wiki.example/hr/b": Rights(HR),
    "http://wiki.example/it": Rights(IT),
    "http://wiki.example/anna": Rights(AccessList.simple(["user:anna"])),
    "http://wiki.example/named": Rights(AccessList.simple(["authenticated"])),
    "http://wiki.example/lost": UNREADABLE,
    "http://pay.example/open": None,
    "http://pay.example/hr": Rights(HR),
    "file:///s/a": in_folder(SEEN),
    "file:///s/b": in_folder(SEEN),
    "file:///s/c": in_folder(MINE),
}


def canary(url: str) -> str:
    return "canary" + "".join(chr(97 + ord(one) % 26) for one in url if one.isalnum())


def page(url: str) -> Page:
    parts = [Part("in.txt", text=f"inside {canary(url)}x")] if url.endswith("/a") else []
    links = [Link("http://wiki.example/open", "http://wiki.example/open", anchor=canary(url))]
    if "//pay." in url:
        links = []  # facts.py judges hosts
    return Page(
        url, normalized=url, exact=url, title=canary(url), text=f"tide {canary(url)} rises",
        mime="text/html", language="en", fetched=1e9, body=url.encode(), parts=parts,
        digest=f"{hash(url) & 0xFFFFFFFF:08x}", links=links,
    )  # fmt: skip


class Both:
    """A crawl's own index, and an index of OpenSearch."""

    def __init__(self, crawl: Path, node: SharedNode, name: str) -> None:
        self.crawl, self.node, self.name = crawl, node, name
        self.writer = IndexWriter(crawl / "index")
        self.receiver = receiver_for(node.url(name), crawl)

    def write(self, rights: dict[str, Rights | None], now: float) -> None:
        pages = [page(url) for url in rights]
        for one in pages:
            self.writer.access.give(one.url, rights[one.url])
            self.writer.add(one, one.digest)
        self.writer.commit()
        sent = self.receiver.send(entries(self.crawl, *pages, now=now))
        assert (dict(sent.rejected), list(sent.again)) == ({}, [])

    def change(self, rights: dict[str, Rights | None]) -> None:
        for url, one in rights.items():
            self.writer.access.give(url, one)
        self.writer.access.flush()

    def ask(self, access: Access, **more: Any) -> dict[str, Any]:
        seen = OpenSearchReceiver.seen_by([self.crawl], access)
        query = {"bool": {"must": [{"match": {"exact": "tide"}}], "filter": [seen]}}
        self.node.ask("POST", f"/{self.name}/_refresh")
        body = {"query": query, "size": 50, **more}
        found: dict[str, Any] = self.node.ask("POST", f"/{self.name}/_search", body)
        return found

    def theirs(self, access: Access) -> list[str]:
        hits = self.ask(access)["hits"]["hits"]
        return sorted(hit["_source"]["page"]["url"] for hit in hits)

    def ours(self, access: Access) -> list[str]:
        with_access = Searcher.open(self.crawl / "index").seen_by(access)
        return sorted(hit.url for hit in with_access.search("tide", limit=50).hits)


@pytest.fixture
def both(opensearch: SharedNode, tmp_path: Path) -> Iterator[Both]:
    found = Both(tmp_path, opensearch, f"test-{uuid4().hex}")
    found.receiver.connect()
    yield found
    found.receiver.close()
    found.writer.close()


def test_each_person_finds_what_our_own_index_shows(both: Both) -> None:
    both.write(RIGHTS, now=1000.0)
    seen = {name: both.ours(access) for name, access in PEOPLE.items()}
    assert [len(one) for one in seen.values()] == [10, 6, 7, 1]
    assert {name: both.theirs(access) for name, access in PEOPLE.items()} == seen
    for name, access in PEOPLE.items():
        told = json.dumps(both.ask(
            access,
            aggs={
                "hosts": {"terms": {"field": "host", "size": 100}},
                "words": {"significant_text": {"field": "exact", "min_doc_count": 1, "size": 500}},
            },
        ))  # fmt: skip
        for url in RIGHTS:
            assert (canary(url) in told) == (url in seen[name]), (name, url)
    # a list changes: a row of the table, and nothing is sent
    table = both.writer.access
    table.enter([("file:///s", SHUT)])
    slot = table.slot_of("http://wiki.example/hr/a")
    assert slot is not None
    table.replace(slot, -1, table.number_of(IT))
    table.flush()
    assert both.receiver.behind() == 0
    # one document gets another list: hidden at once, and written once
    both.change({"file:///s/b": in_folder(MINE, SHUT)})
    # an open one gets a list, and a list is taken away
    both.change({"http://wiki.example/open": Rights(HR), "http://wiki.example/it": None})
    both.writer.commit()
    now = {name: both.ours(access) for name, access in PEOPLE.items()}
    assert now != seen
    for name, access in PEOPLE.items():
        assert {*both.theirs(access)} <= {*now[name]}
    assert both.receiver.behind() == 3
    both.receiver.renew_access()
    assert both.receiver.behind() == 0
    assert {name: both.theirs(access) for name, access in PEOPLE.items()} == now


def test_documents_inside_follow_their_document(both: Both) -> None:
    url = "http://wiki.example/hr/a"
    both.write({url: None}, now=1000.0)
    assert len(both.node.documents(both.name)) == 2
    both.change({url: Rights(HR)})
    both.writer.commit()
    both.receiver.renew_access()
    for name, number in {"anna": 2, "ben": 0}.items():
        seen = OpenSearchReceiver.seen_by([both.crawl], PEOPLE[name])
        answer = both.node.ask("POST", f"/{both.name}/_count", {"query": seen})
        assert answer["count"] == number


def test_a_page_with_a_list_gives_no_link_texts(both: Both) -> None:
    """Also one that gets a list later."""
    target, hidden, later = (f"http://wiki.example/{one}" for one in ("open", "hr/b", "named"))
    both.write({target: None, hidden: Rights(HR), later: None}, now=1000.0)
    both.receiver.catch_up()

    def texts() -> list[str]:
        found = both.node.documents(both.name).values()
        ((one,),) = [[doc] for doc in found if doc["page"]["url"] == target]
        return list(one["link_texts"]["texts"])

    assert texts() == [canary(later)]
    both.change({later: Rights(HR)})
    both.writer.commit()
    both.receiver.renew_access()
    assert both.receiver.left == 1
    both.receiver.catch_up()
    assert texts() == []


def test_another_table_hides_all_documents_until_they_are_written(both: Both) -> None:
    """Its numbers mean something else. So the documents get another name."""
    both.write(RIGHTS, now=1000.0)
    both.writer.close()
    (both.crawl / "index" / "access").unlink()
    both.writer = IndexWriter(both.crawl / "index")
    both.change({"http://wiki.example/hr/a": Rights(IT)})
    both.writer.commit()
    assert all(both.theirs(access) == [] for access in PEOPLE.values())
    assert both.receiver.behind() > 0
    while both.receiver.behind():
        both.receiver.renew_access()
    assert "http://wiki.example/hr/a" in both.theirs(PEOPLE["ben"])
    assert "http://wiki.example/hr/a" not in both.theirs(PEOPLE["anna"])


def test_nothing_is_shown_where_nothing_is_known(both: Both, tmp_path: Path) -> None:
    """Without the table, and without the state."""
    both.write(RIGHTS, now=1000.0)
    (state,) = tmp_path.glob("outbox/links/*/slots.json")
    content = state.read_bytes()
    state.unlink()
    assert all(both.theirs(access) == [] for access in PEOPLE.values())
    state.write_bytes(content)
    (both.crawl / "index" / "access").rename(both.crawl / "index" / "away")
    assert all(both.theirs(access) == [] for access in PEOPLE.values())


def test_a_sender_writes_changed_rights_without_a_new_page(both: Both) -> None:
    """After a kill, too: a new sender knows what is left."""
    end = spooled(both.crawl, *(page(url) for url in RIGHTS))
    for url, one in RIGHTS.items():
        both.writer.access.give(url, one)
        both.writer.add(page(url))
    both.writer.commit()
    sender = Sender(both.receiver, both.crawl / FOLDER, lambda _: True)
    sender.send_up_to(end.offset)
    both.change({"http://wiki.example/it": Rights(HR)})
    both.writer.commit()
    both.receiver.close()
    again = receiver_for(both.node.url(both.name), both.crawl)
    Sender(again, both.crawl / FOLDER, lambda _: True).renew_access()
    assert again.behind() == 0
    again.close()
    assert "http://wiki.example/it" in both.theirs(PEOPLE["anna"])
    assert "http://wiki.example/it" not in both.theirs(PEOPLE["ben"])
