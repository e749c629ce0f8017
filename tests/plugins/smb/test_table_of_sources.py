"""8 people, 60 documents, 5 sources in one crawl: each person finds what the sources let this
person open. smbclient, the kernel and the servers say what that is."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import quote

import pytest

from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.server.api.api import BASE
from larmspider.web.auth import Guard
from larmspider.web.readers import Readers
from larmspider.web.request import WebRequest
from larmspider.workdir.restricted import restricted_hosts
from tests.server.test_app import Console
from tests.support.access import Person, acl, kernel_reads, reader_of
from tests.support.servers.samba import GROUPS, PEOPLE, Samba, needs_samba
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.web.serving import TOKEN, Served

pytestmark = [pytest.mark.acceptance, needs_samba]

PERSONS = ("anna", "ben", "clara", "dora", "emil", "frida", "gustav", "hanna")
EACH = 12
CLOSED = "http://127.0.0.2"
READ, DENY, EVERYONE = "ALLOWED/0x0/READ", "DENIED/0x0/READ", "S-1-1-0"
STAFF, HR = (GROUPS[name][0] for name in ("staff", "hr"))
ON_SHARE = [
    (f"{EVERYONE}:{READ}",), (f"staff:{READ}",), (f"hr:{READ}",), (f"anna:{DENY}", f"hr:{READ}"),
    (f"staff:{DENY}", f"{EVERYONE}:{READ}"), (f"gustav:{READ}", f"hanna:{READ}"), (),
    (f"S-1-5-11:{READ}",), (f"ben:{READ}",), (f"hr:{DENY}", f"staff:{READ}"),
    (f"clara:{DENY}", f"{EVERYONE}:{READ}"), (f"staff:{READ}", f"frida:{READ}"),
]  # fmt: skip
ON_DISK: list[tuple[str, int, int, list[tuple[str, int, int]]]] = [
    ("anna", STAFF, 0o644, []), ("anna", STAFF, 0o640, []), ("ben", HR, 0o600, []),
    ("dora", HR, 0o604, []), ("anna", HR, 0o044, []), ("clara", 0, 0o600, [("user", 3007, 4)]),
    ("clara", 0, 0o600, [("user", 3008, 4), ("mask", 0, 1)]), ("anna", 0, 0o000, []),
    ("clara", 0, 0o600, [("group", STAFF, 0), ("group", HR, 4)]), ("admin", STAFF, 0o640, []),
    ("admin", 0, 0o644, [("user", 3005, 0)]), ("hanna", HR, 0o640, []),
]  # fmt: skip
LISTS = [
    ["everyone"], ["authenticated"], ["group:staff"], ["group:hr"], ["user:anna"], [],
    ["user:gustav", "group:hr"], ["group:staff", "group:hr"], ["user:hanna"], ["user:clara"],
    ["group:nobody"], ["user:emil", "user:frida"],
]  # fmt: skip


def groups_of(name: str) -> list[str]:
    return [group for group, (_, some) in GROUPS.items() if name in some]


def person(name: str) -> Person:
    groups = [GROUPS[group][0] for group in groups_of(name)]
    return Person(name, PEOPLE[name], (PEOPLE[name], *groups))


def named(name: str) -> frozenset[str]:
    groups = {f"group:{group}" for group in groups_of(name)}
    return frozenset({"everyone", "authenticated", f"user:{name}", *groups})


def canary(source: str, number: int) -> str:
    return f"canary{source}{chr(97 + number)}"


class Sources:
    def __init__(self, folder: Path, samba: Samba) -> None:
        self.folder, self.samba, self.files = folder, samba, folder / "files"
        self.sent = dict(enumerate(LISTS))
        self.rules = dict(enumerate(LISTS))
        self.staff = {"anna", "ben", "emil"}
        self.files.mkdir()
        self.files.chmod(0o755)
        (samba.share / "t").mkdir()
        (samba.share / "t").chmod(0o777)
        samba.acl("t", f"{EVERYONE}:{READ}")
        own = folder / "upload"
        for number in range(EACH):
            own.write_text(f"harbour {canary('share', number)}")
            said = samba.smbclient("admin", f'put "{own}" "t/{number}.txt"')
            assert "putting file" in said, said
            samba.acl(f"t/{number}.txt", *ON_SHARE[number])
            path = self.files / f"{number}.txt"
            path.write_text(f"harbour {canary('disk', number)}")
            self.on_disk(number, *ON_DISK[number])
        # a server with credentials is restricted at all its ports
        self.web = ScriptedServer({"*": self._web}, host="127.0.0.3")
        self.closed = ScriptedServer({"*": self._closed}, host="127.0.0.2")

    def on_disk(
        self, number: int, owner: str, group: int, mode: int, more: list[tuple[str, int, int]]
    ) -> None:
        path = self.files / f"{number}.txt"
        os.chown(path, PEOPLE[owner], group)
        path.chmod(mode)
        if more:
            acl(path, more)

    def _web(self, request: Request) -> Reply:
        kind, _, number = request.path.strip("/").partition("/")
        if not number:
            links = "".join(f"<a href=/{one}/{n}>x</a>" for one in ("sent", "rule")
                            for n in range(EACH))  # fmt: skip
            return Reply(200 if request.path == "/" else 404, {"X-Access": "gid:0"}, links.encode())
        lists = self.sent if kind == "sent" else self.rules
        who, asks = lists[int(number)], request.headers.get("x-person")
        if asks is not None and not named(asks) & {*who}:
            return Reply(403)
        headers = {"Content-Type": "text/html"}
        if kind == "sent":
            headers["X-Access"] = ", ".join(who)
        return Reply(200, headers, f"<p>harbour {canary(kind, int(number))}".encode())

    def _closed(self, request: Request) -> Reply:
        asks = request.headers.get("x-person")
        right = "Basic " + b64encode(b"crawler:pw").decode()
        if asks not in self.staff and request.headers.get("authorization") != right:
            return Reply(401, {"WWW-Authenticate": "Basic realm=x"})
        number = request.path.strip("/")
        if not number:
            links = "".join(f"<a href=/{n}>x</a>" for n in range(EACH))
            head = "<meta name=robots content=noindex>"
            return Reply(200, {"Content-Type": "text/html"}, f"{head}{links}".encode())
        if not number.isdigit():
            return Reply(404)
        body = f"<p>harbour {canary('closed', int(number))}"
        return Reply(200, {"Content-Type": "text/html"}, body.encode())

    def crawl(self, **more: str) -> None:
        sites = self.samba.sites(self.folder)
        sites.write_text(
            f'{sites.read_text()}[[site]]\nhosts = "http://127.0.0.2:*"\nauth = "basic"\n'
            'user = "crawler"\npassword = "pw"\n'
        )
        web = self.web.url("")
        rules = {f"{web}/rule/{number}": who for number, who in self.rules.items() if who}
        rules |= {
            f"{web}/rule/{number}": ["user:-"] for number, who in self.rules.items() if not who
        }
        rules[f"{web}/"] = ["user:-"]
        ran = self.samba.crawl(
            f"smb://127.0.0.1/share/t/ file://{self.files}/ {web}/ {self.closed.url()}",
            self.folder,
            LARM_SITES_FILE=str(sites), LARM_FILE_ROOTS=str(self.files),
            LARM_ACCESS_RULES=json.dumps(rules),
            LARM_ACCESS_SENT=json.dumps({f"127.0.0.3:{self.web.port}": "X-Access"}),
            **more,
        )  # fmt: skip
        assert ran.status == 0, ran.err[-3000:]

    def opens(self, name: str, urls: list[str]) -> set[str]:
        """The documents that the sources let a person open."""
        paths = [f"t/{number}.txt" for number in range(EACH)]
        found = {f"smb://127.0.0.1/share/{one}" for one in self.samba.opens(name, paths)}
        files = [self.files / f"{number}.txt" for number in range(EACH)]
        kernel = kernel_reads(person(name), files)
        found |= {f"file://{path}" for path, is_open in kernel.items() if is_open}
        for server, answer in ((self.web, self._web), (self.closed, self._closed)):
            begin = server.url("")
            for url in urls:
                if url.startswith(f"{begin}/"):
                    asked = Request(0.0, "GET", url.removeprefix(begin), {"x-person": name})
                    if answer(asked).status == 200:
                        found.add(url)
        return found


@pytest.fixture(scope="module")
def sources() -> Iterator[Sources]:
    folder = Path(tempfile.mkdtemp(prefix="table-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        with Samba(folder) as samba:
            found = Sources(folder, samba)
            with samba.inside(), found.web, found.closed:
                yield found
    finally:
        shutil.rmtree(folder)


def check(sources: Sources) -> int:
    """Compare for all people; the number of rows that agree."""
    crawl = sources.folder / "crawl"
    whole = Searcher.open(crawl / "index")
    request = SearchRequest("harbour", 100, facets=True, copies=True, verbatim=True)
    every = sorted(hit.url for hit in whole.search(request).hits)
    assert len(every) == 5 * EACH
    readers = Readers({"staff": ("127.0.0.2",)}, "X-Groups", (ip_network("127.0.0.1"),))
    words = {url: word_of(url) for url in every}
    shown, sees, known = 0, dict[str, tuple[str, set[str]]](), dict[str, frozenset[str]]()
    for name in PERSONS:
        principals = named(name) | reader_of(person(name)) | sources.samba.principals(name)
        groups = groups_of(name) if name in sources.staff else []
        access = readers.access(restricted_hosts([crawl]), groups, principals)
        seen, expected = whole.seen_by(access), sources.opens(name, every)
        sees[name], known[name] = (",".join([*groups, *principals]), expected), principals
        results = seen.search(request)
        assert {hit.url for hit in results.hits} == expected, name
        assert results.total == results.total_all == seen.count() == len(expected)
        assert results.facets is not None
        assert sum(results.facets.kinds.values()) == len(expected)
        for url, word in words.items():
            assert bool(seen.frequencies([word])) == (url in expected), (name, url)
            assert (seen.get(url) is not None) == (url in expected)
            completed = [label for head in ("harb", word[:-1]) for label, _ in
                         seen.completions(head, 100)]  # fmt: skip
            assert url in expected or not any(word in label for label in completed)
        shown += len(expected)
    over_http(crawl, readers, sees, words)
    over_api(crawl, {name: expected for name, (_, expected) in sees.items()}, known)
    assert 2 * EACH < shown < len(PERSONS) * len(every)
    return len(PERSONS) * len(every)


def over_http(
    crawl: Path, readers: Readers, sees: dict[str, tuple[str, set[str]]], words: dict[str, str]
) -> None:
    """The same for the JSON of the search page, `_search`, facets, copies and suggestions."""
    guard = Guard(TOKEN, closed=True, open_paths=("/search", "/copy"))
    with pytest.MonkeyPatch.context() as patch, Served(crawl, guard, readers=readers) as site:
        patch.setattr(WebRequest, "principals", property(lambda self: frozenset(self.groups)))
        for name, (groups, expected) in sees.items():
            pages = [
                site.get(f"/search?q=harbour&copies=1&page={n}&format=json", X_Groups=groups).json
                for n in range(1, 7)
            ]
            assert {hit["url"] for page in pages for hit in page["hits"]} == expected, name
            assert sum(pages[0]["facets"]["type"].values()) == len(expected)
            found = site.get("/search/_search?q=harbour&size=100", X_Groups=groups)
            assert {hit["_source"]["url"] for hit in found.json["hits"]["hits"]} <= expected
            assert found.json["hits"]["total"]["value"] == len(expected), name
            for url, word in words.items():
                copy = site.get(f"/search/copy?u={quote(url)}", X_Groups=groups)
                assert (copy.status == 200, word in copy.text) == (url in expected,) * 2, (
                    name,
                    url,
                )
                listed = site.get(f"/search/_search?q={word}", X_Groups=groups)
                assert bool(listed.json["hits"]["hits"]) == (url in expected), (name, url)
                suggested = site.get(f"/search/suggest?q={word[:-1]}", X_Groups=groups)
                assert url in expected or word not in suggested.text


def over_api(crawl: Path, sees: dict[str, set[str]], principals: dict[str, frozenset[str]]) -> None:
    """The same for `/api/v1/search` and `/api/v1/page` with the token of each person, whose names
    in the sources a table has. The closed host is for no group of this server."""
    own = {one: {f"group:{one}", f"gid:{n}", f"sid:S-1-22-2-{n}"} for one, (n, _) in GROUPS.items()}
    groups = set[str]().union(*own.values()) | {"everyone", "authenticated"}
    same = [sorted(one) for one in own.values()]
    same += [sorted(principals[name] - groups) for name in PERSONS]
    within = [
        f'"group:{one}" = {json.dumps([f"user:{name}" for name in members if name in PERSONS])}'
        for one, (_, members) in GROUPS.items()
    ]
    home = Path(tempfile.mkdtemp(prefix="home-", dir=crawl.parent))
    (home / "principals.toml").write_text(
        "\n".join([f"same = {json.dumps(same)}", "[within]", *within])
    )
    with Console(home, sessions={}) as console:
        console.manager.home.write("all", 'seeds = ["http://127.0.0.3/"]\n', new=True)
        shutil.copytree(crawl, home / "data" / "all", dirs_exist_ok=True)
        for name, expected in sees.items():
            console.users.add(name, "reader", "correct horse")
            token = console.tokens.make(f"of-{name}", "search", user=name)
            headers = {"Authorization": f"Bearer {token}"}
            pages = [
                console.ask(f"{BASE}/search?q=harbour&size=50&page={n}", headers=headers).json
                for n in (1, 2)
            ]
            found = {hit["url"] for page in pages for hit in page["hits"]}
            assert found == {url for url in expected if not url.startswith(CLOSED)}, name
            assert pages[0]["total"] == len(found)
            for url in sorted(set[str]().union(*sees.values())):
                page = console.ask(f"{BASE}/page?url={quote(url)}", headers=headers)
                assert page.status == (200 if url in found else 404), (name, url)
    shutil.rmtree(home)


def word_of(url: str) -> str:
    number = int(Path(url).stem)
    for begin, source in (("smb:", "share"), ("file:", "disk"), (CLOSED, "closed")):
        if url.startswith(begin):
            return canary(source, number)
    return canary(url.split("/")[3], number)


def test_table_of_eight_people_and_five_sources(sources: Sources) -> None:
    sources.crawl()
    assert check(sources) == 480


def test_table_after_twelve_changes(sources: Sources) -> None:
    """Each counts after one refresh."""
    if not (sources.folder / "crawl").exists():
        sources.crawl()
    sources.samba.acl("t/0.txt", f"hr:{READ}")  # taken away from the others
    sources.samba.acl("t/3.txt", f"hr:{READ}")  # a deny is gone
    sources.samba.acl("t/6.txt", f"gustav:{READ}")  # given to one
    sources.samba.acl("t/7.txt", f"emil:{DENY}", f"S-1-5-11:{READ}")  # a deny is added
    sources.on_disk(0, "anna", STAFF, 0o600, [])
    sources.on_disk(7, "anna", HR, 0o640, [])
    sources.on_disk(10, "admin", 0, 0o644, [("user", PEOPLE["gustav"], 0)])
    sources.sent[0] = ["user:ben"]  # everybody's before
    sources.sent[5] = ["everyone"]  # operators' before
    sources.rules[2] = ["user:hanna"]
    sources.rules[4] = ["everyone"]
    sources.staff.remove("emil")  # who leaves the group that sees the closed host
    sources.crawl(refresh="all")
    assert check(sources) == 480
