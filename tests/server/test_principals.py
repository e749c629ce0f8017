"""Names that a person has in several sources; and an operator who searches as another person."""

from __future__ import annotations

import asyncio
import grp
import json
import os
import pwd
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.errors import ConfigError, HttpError
from larmspider.index.version import note_restricted_of
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.server.api.api import BASE
from larmspider.server.config.server_settings import ServerSettings
from larmspider.server.people import principals
from larmspider.server.people.people import ServerPeople
from larmspider.server.people.principals import PrincipalTable
from larmspider.server.people.users import Users
from larmspider.web.reader import MAX_PRINCIPALS
from tests.server.test_app import SEEDS, Console
from tests.server.test_people import Person

SID = "sid:S-1-5-21-1-2-3-1105"
TABLE = f"""
same = [["user:anna@corp", "uid:1007", "{SID}"], ["group:hr", "gid:2001", "group:CORP\\\\HR"]]
[within]
"group:staff" = ["group:hr", "group:it"]
"group:all" = ["group:staff", "group:round"]
"group:round" = ["group:all"]
"""


def table(home: Path, text: str) -> PrincipalTable:
    (home / "principals.toml").write_text(text)
    found = PrincipalTable(home)
    found.read()
    return found


def test_names_of_one_person(tmp_path: Path) -> None:
    """From any name to all others, and from a group to the groups that have it; circles end."""
    found = table(tmp_path, TABLE)
    assert found.expanded({SID}) == {"user:anna@corp", "uid:1007", SID}
    groups = {"group:staff", "group:all", "group:round"}
    assert found.expanded({"gid:2001"}) == {"group:hr", "gid:2001", "group:CORP\\HR"} | groups
    assert found.expanded({"group:it"}) == {"group:it"} | groups
    assert found.expanded({"user:bob"}) == {"user:bob"}
    assert found.knows("user:anna@corp")
    assert not found.knows("user:bob")


def test_a_table_that_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It counts from the next request on; one with a mistake leaves the last good one in force,
    and is named in the log once."""
    found = table(tmp_path, TABLE)
    path = tmp_path / "principals.toml"
    path.write_text('same = [["group:people", "gid:2001"]]')
    assert found.expanded({"gid:2001"}) == {"group:people", "gid:2001"}
    path.write_text("same = 7")
    for _ in range(2):
        assert found.expanded({"gid:2001"}) == {"group:people", "gid:2001"}
    assert caplog.text.count("the last valid table stays in force") == 1
    path.unlink()
    assert found.expanded({"gid:2001"}) == {"gid:2001"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("same = [", "is not TOML"), ("same = [7]", "expected same, a list of lists"),
        ("samme = []", "unknown field"), ('same = [["anna"]]', "expected a kind and a name"),
        ('same = [["user:anna", "king:anna"]]', "expected a kind and a name"),
        ('same = [["user:a\\u202eb"]]', "expected a kind and a name"),
        ('same = [["user:a", "uid:1"], ["user:b", "uid:1"]]', "'uid:1' is in two lists"),
        ('[within]\n"staff" = ["group:a"]', "expected a kind and a name"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        table(tmp_path, text)


def test_users_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked up once in ten minutes; the machine's own users are no people."""
    asked: list[str] = []

    def user(name: str) -> Any:
        asked.append(name)
        if name not in ("anna", "root"):
            raise KeyError(name)
        return SimpleNamespace(pw_uid=1007 if name == "anna" else 0, pw_gid=100)

    monkeypatch.setattr(pwd, "getpwnam", user)
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, 2001])
    monkeypatch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name=f"g{gid}"))
    found = table(tmp_path, "posix = true")
    for _ in range(3):
        assert found.expanded({"user:anna"}) == {
            "user:anna", "uid:1007", "gid:100", "gid:2001", "group:g100", "group:g2001",
        }  # fmt: skip
        assert found.expanded({"user:root", "user:bob"}) == {"user:root", "user:bob"}
    assert sorted(asked) == ["anna", "bob", "root"]


def test_a_slow_machine_holds_up_no_other_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its names are looked up in threads, for 10 s at most; without them nothing is answered."""
    answers = threading.Event()

    def user(name: str) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        answers.wait(60)
        return SimpleNamespace(pw_uid=1007, pw_gid=100)

    monkeypatch.setattr(pwd, "getpwnam", user)
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid])
    monkeypatch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name="users"))
    monkeypatch.setattr(principals, "LOOK_UP_SECS", 0.05)
    found = table(tmp_path, "posix = true")

    async def run() -> frozenset[str]:
        await found.prepare({"group:it"})
        for _ in range(2):
            with pytest.raises(HttpError) as raised:
                await found.prepare({"user:anna"})
            assert raised.value.status == 503
        unknown = set[str]()
        assert found.expanded({"user:anna"}, unknown) == {"user:anna"}
        assert unknown == {"anna"}
        answers.set()
        monkeypatch.setattr(principals, "LOOK_UP_SECS", 60.0)
        await found.prepare({"user:anna"})
        return found.expanded({"user:anna"}, unknown := set())

    assert asyncio.run(run()) == {"user:anna", "uid:1007", "gid:100", "group:users"}


def test_a_person_in_too_many_groups_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is left out could be one that is denied: such a person does not sign in by a
    provider, and others are nobody in particular."""
    groups = "\n".join(f'"group:g{n}" = ["group:hr"]' for n in range(MAX_PRINCIPALS))
    found = table(tmp_path, f"[within]\n{groups}")
    assert found.expanded({"user:anna", "group:hr"}) == frozenset()
    assert "user:anna has more than 2000 principals" in caplog.text
    people = ServerPeople(tmp_path, Users(tmp_path), ServerSettings())
    with pytest.raises(ConfigError, match="anna has more than 2,000 groups and other names"):
        people.identity_of("anna", frozenset({"user:anna", "group:hr"}))


def test_many_groups_take_little_time(tmp_path: Path) -> None:
    """500 groups of a table with 50,000 names are expanded in less than 3 ms."""
    names = ", ".join(f'["group:g{n}", "gid:{n}"]' for n in range(25_000))
    found, groups = table(tmp_path, f"same = [{names}]"), [f"group:g{n}" for n in range(500)]
    best = 1.0
    for _ in range(20):
        begun = time.perf_counter()
        assert len(found.expanded(groups)) == 1_000
        best = min(best, time.perf_counter() - begun)
    assert best < 0.003


def indexed(folder: Path) -> None:
    """A crawl with a page for all and two of a host with credentials."""
    folder.mkdir(parents=True)
    manifest = {
        "format": 2, "began": "2026", "seeds": SEEDS["seeds"], "settings": {},
        "credentials": ["http://pay.hr.example"],
    }  # fmt: skip
    (folder / "crawl.json").write_text(json.dumps(manifest))
    with IndexWriter(folder / "index") as index:
        for url, title in (
            ("http://wiki.example/", "public"), ("http://pay.hr.example/a", "Gehalt"),
            ("http://pay.hr.example/b", "Gehalt zwei"),
        ):  # fmt: skip
            index.add(Page(url, text=f"canteen opens at {url}", title=title, mime="text/html"))
    note_restricted_of(folder / "index", ["http://pay.hr.example"])
    (folder / "store.log").write_text("")


def test_see_as_another_person(tmp_path: Path) -> None:
    """In the browser and by the API: what a reader finds, logged; then as the operator again."""
    with Console(tmp_path) as console:
        operate = console.token("operate")
        console.ask(f"{BASE}/crawls", "POST", {"name": "wiki", "crawl": SEEDS}, operate)
        indexed(tmp_path / "data" / "wiki")
        console.users.add("ada", "operator", "correct horse")
        console.users.add("anna", "reader", "correct horse")
        ada = Person(console, "ada")
        assert "Gehalt" in ada.get("/search?q=canteen").text
        assert ada.post("/see", name="anna").headers["Location"] == "/search"
        page = ada.get("/search?q=canteen").text
        assert "You see what anna finds" in page
        assert "Gehalt" not in page
        assert "Gehalt" not in ada.get("/crawls/wiki/search?q=canteen").text
        assert ada.get(f"{BASE}/search?q=canteen").json["total"] == 1
        assert ada.get(f"{BASE}/page?url=http://pay.hr.example/a").status == 404
        assert "public" in page
        assert ada.get("/users").status == 200
        ada.post("/see/end")
        assert "Gehalt" in ada.get("/search?q=canteen").text
        assert Person(console, "anna").post("/see", name="ada").status == 403

        def asked(person: str) -> Any:
            path = f"{BASE}/see-as?person={person}&query=canteen"
            return console.ask(path, headers=operate).json

        everybody = ["authenticated", "everyone"]
        for person, total, principals, source in (
            ("anna", 1, [*everybody, "user:anna"], "a user of this server"),
            ("ada", 3, [*everybody, "user:ada"], "a user of this server"),
            ("nobody", 1, everybody, "no source knows this person"),
        ):
            found = asked(person)
            shown = found["total"], found["principals"], found["source"]
            assert shown == (total, principals, source), person
        log = (tmp_path / "audit.log").read_text()
        assert "\tada\t127.0.0.1\tsee as\tanna: a user of this server; authenticated, " in log
        assert "\tsee as\tnobody: no source knows this person; " in log
        assert "Gehalt" not in log


def test_a_person_who_has_signed_in_finds_the_own_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name, by the numbers that this machine has for the name, and by the machine's groups;
    in the browser and by a token."""
    numbers = {"anna": 1007, "ben": 1008}
    monkeypatch.setattr(
        pwd, "getpwnam", lambda name: SimpleNamespace(pw_uid=numbers[name], pw_gid=2000)
    )
    monkeypatch.setattr(os, "getgrouplist", lambda name, gid: [gid, numbers[name] + 1_000])
    monkeypatch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name=f"g{gid}"))
    lists = {
        "by-name": "user:anna", "by-number": "uid:1007", "by-group": "group:g2007",
        "by-gid": "gid:2008", "of-ben": "user:ben", "of-both": "gid:2000",
        "signed": "authenticated",
    }  # fmt: skip
    with Console(tmp_path) as console:
        console.ask(
            f"{BASE}/crawls", "POST", {"name": "wiki", "crawl": SEEDS}, console.token("operate")
        )
        folder = tmp_path / "data" / "wiki"
        indexed(folder)
        with IndexWriter(folder / "index") as index:
            for name, principal in lists.items():
                url = f"http://wiki.example/{name}"
                index.access.give(url, Rights(AccessList.simple([principal])))
                index.add(Page(url, text="canteen", title=name, mime="text/html"))
        (tmp_path / "principals.toml").write_text("posix = true")
        for name, found in (
            ("anna", ["by-group", "by-name", "by-number", "of-both", "public", "signed"]),
            ("ben", ["by-gid", "of-ben", "of-both", "public", "signed"]),
        ):
            console.users.add(name, "reader", "correct horse")
            answers = [
                Person(console, name).get("/search?q=canteen&format=json"),
                console.ask(f"{BASE}/search?q=canteen", headers={
                    "Authorization": f"Bearer {console.tokens.make(name, 'search', user=name)}"
                }),
            ]  # fmt: skip
            for answer in answers:
                assert answer.status == 200, answer.text
                assert sorted(hit["title"] for hit in answer.json["hits"]) == found
