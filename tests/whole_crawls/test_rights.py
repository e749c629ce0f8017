"""Each person finds what the source lets this person open: the kernel for files, the server for
pages. Before and after changes of rights, each within one run."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from larmspider.index.access import Access
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.urls.file_urls import path_of, url_of
from larmspider.web.auth import Guard
from larmspider.web.readers import Readers
from larmspider.web.request import WebRequest
from tests.recovery.test_killed_outbox import MODULE, OPENSEARCH
from tests.support.access import PEOPLE, Person, acl, kernel_reads, reader_of
from tests.support.crawling import FAST, Ran, scrapy
from tests.support.servers.opensearch.shared import SharedNode
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.web.serving import TOKEN, Served

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(os.geteuid() != 0, reason="other users are made by root alone"),
]

FILES = {
    "open/all.txt": (1001, 2001, 0o644, []),
    "open/owner.txt": (1001, 2001, 0o600, []),
    "open/group.txt": (1001, 2001, 0o640, []),
    "open/but-the-group.txt": (1001, 2001, 0o604, []),
    "open/but-the-owner.txt": (1001, 2001, 0o044, []),
    "open/named.txt": (1001, 2001, 0o600, [("user", 1003, 4)]),
    "open/masked.txt": (1001, 2001, 0o600, [("user", 1003, 4), ("mask", 0, 1)]),
    "open/two-groups.txt": (1001, 2001, 0o600, [("group", 2002, 0), ("group", 2003, 4)]),
    "open/denied.txt": (1001, 2001, 0o644, [("user", 1006, 0)]),
    "open/none.txt": (1001, 2001, 0o000, []),
    **{f"hr/{n}.txt": (0, 2001, 0o644, []) for n in range(6)},
    "hr/deep/inner.txt": (0, 0, 0o644, []),
    "hr/deep/other.txt": (0, 0, 0o604, []),
    "board/minutes.txt": (0, 2003, 0o640, []),
    "board/agenda.txt": (0, 2003, 0o644, []),
}
FOLDERS = {"open": (0, 0, 0o755), "hr": (0, 2001, 0o750), "hr/deep": (0, 0, 0o711),
           "board": (0, 2003, 0o755)}  # fmt: skip
SENT = {
    f"/cms/{n}": who
    for n, who in enumerate(
        [["everyone"], ["authenticated"], ["group:2001"], ["group:2002", "group:2003"],
         ["user:stranger"], [], ["user:owner", "group:2003"], ["group:2009"]] * 2
    )
}  # fmt: skip
RULES = {
    "/pay/*": ["group:2001"],
    "/plans/*": ["user:named", "group:2003"],
    "/free/*": ["everyone"],
}
BY_RULE = [f"/{folder}/{n}" for folder in ("pay", "plans", "free", "rest") for n in range(5)]


def principals(person: Person) -> frozenset[str]:
    names = {f"user:{person.name.partition(',')[0]}", *(f"group:{gid}" for gid in person.gids)}
    return reader_of(person) | names


class Intranet:
    """A share and a server that know who may open what."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.share = folder, folder / "share"
        self.sent = dict(SENT)
        self.rules = dict(RULES)
        self.silent: set[str] = set()
        self.module = "larmspider.settings"
        for name in FOLDERS:
            (self.share / name).mkdir(parents=True)
        self.share.chmod(0o755)
        for name, (uid, gid, mode, more) in FILES.items():
            path = self.share / name
            path.write_text(f"harbour {_canary(name)}")
            os.chown(path, uid, gid)
            path.chmod(mode)
            if more:
                acl(path, more)
        (self.share / "open/unlisted.html").write_text("<meta name=robots content=noindex>secret")
        for name, (uid, gid, mode) in FOLDERS.items():
            os.chown(self.share / name, uid, gid)
            (self.share / name).chmod(mode)
        pages = [*self.sent, *BY_RULE]
        links = "".join(f"<a href={path}>{_canary(path)} x</a>" for path in pages)
        routes = dict.fromkeys(pages, self._answer)
        self.server = ScriptedServer(
            {"/": f"<title>start</title>{links}", "/robots.txt": (404, {}, b""), **routes}
        )
        self.server.routes["/"] = (200, {"X-Access": "operators:"}, f"<p>{links}".encode())

    def _answer(self, request: Request) -> Reply:
        path = request.path
        if "x-person" in request.headers and not self._admits(request.headers["x-person"], path):
            return Reply(403)
        headers = {"Content-Type": "text/html"}
        if path in self.sent and path not in self.silent:
            headers["X-Access"] = ", ".join(self.sent[path])
        body = f"<title>page {path}</title><p>harbour {_canary(path)}"
        return Reply(200, headers, body.encode())

    def _admits(self, name: str, path: str) -> bool:
        (person,) = (one for one in PEOPLE if one.name == name)
        who = self.sent.get(path)
        if who is None:
            who = self.rules.get(f"/{path.split('/')[1]}/*", ["everyone"])
        return path not in self.silent and bool(principals(person) & set(who))

    def crawl(self, **more: str) -> Ran:
        sent = {f"{self.server.host}:{self.server.port}": "X-Access"}
        rules = self.rules | {"/rest/*": ["everyone"], "/": ["user:operator"]}
        settings = FAST | {
            "LARM_FILE_ROOTS": str(self.share), "LARM_RETRY_TIMES": "0",
            "LARM_ACCESS_RULES": json.dumps(rules), "LARM_ACCESS_SENT": json.dumps(sent),
        }  # fmt: skip
        words = [f"-s{name}={value}" for name, value in settings.items()]
        words += [part for name, value in more.items() for part in ("-a", f"{name}={value}")]
        start = f"file://{self.share} {self.server.url()}"
        ran = scrapy(
            "crawl", "intranet", "-a", f"start={start}", *words, cwd=self.folder,
            settings_module=self.module,
        )  # fmt: skip
        assert ran.status == 0, ran.err[-3000:]
        return ran

    def opens(self, person: Person, urls: list[str]) -> set[str]:
        """The documents that their source lets a person open."""
        files = {url: Path(os.fsdecode(path_of(url))) for url in urls if url.startswith("file:")}
        readable = {path for path in files.values() if path.exists()}
        kernel = kernel_reads(person, sorted(readable))
        found = {url for url, path in files.items() if kernel.get(path)}
        for url in urls:
            if url not in files:
                path = url.removeprefix(self.server.url("")) or "/"
                if path != "/" and self._asked(person, path) == 200:
                    found.add(url)
        return found

    def _asked(self, person: Person, path: str) -> int:
        request = Request(0.0, "GET", path, {"x-person": person.name})
        return self._answer(request).status


def _canary(name: str) -> str:
    return "canary" + "".join(one for one in name if one.isalnum())


@contextmanager
def served() -> Iterator[Intranet]:
    folder = Path(tempfile.mkdtemp(prefix="rights-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        found = Intranet(folder)
        with found.server:
            yield found
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def intranet() -> Iterator[Intranet]:
    with served() as found:
        yield found


def check(intranet: Intranet, people: tuple[Person, ...] = PEOPLE) -> int:
    """Compare for all people; the number of rows that were compared."""
    whole = Searcher.open(intranet.folder / "crawl" / "index")
    request = SearchRequest("harbour", 100, facets=True, copies=True, verbatim=True)
    every = [hit.url for hit in whole.search(request).hits]
    assert len(every) == len(FILES) + len(SENT) + len(BY_RULE)
    for person in people:
        expected = intranet.opens(person, every)
        seen = whole.seen_by(Access(("file://",), (), principals(person)))
        results = seen.search(request)
        assert {hit.url for hit in results.hits} == expected, person
        assert results.total == results.total_all == seen.count() == len(expected)
        assert results.facets is not None
        assert sum(results.facets.kinds.values()) == len(expected)
        assert {hit.score for hit in results.hits} <= {None}
        for url in every:
            word = _canary(_name(intranet, url))
            is_seen = url in expected
            assert bool(seen.frequencies([word])) == is_seen, (person, url)
            assert (seen.get(url) is not None) == is_seen
            assert bool(seen.search(SearchRequest(word, verbatim=True)).total) == is_seen
            # the start page links to all pages, and is for operators
            assert (word in dict(seen.completions(word[:9], 100))) is False
    return len(people) * len(every)


def _name(intranet: Intranet, url: str) -> str:
    return url.removeprefix(url_of(os.fsencode(intranet.share)) + "/").removeprefix(
        intranet.server.url("")
    )


def test_everybody_finds_what_the_source_lets_open(intranet: Intranet) -> None:
    intranet.crawl()
    assert check(intranet) == 8 * 56


def change_rights(intranet: Intranet) -> None:
    """In 13 ways."""
    share = intranet.share
    (share / "open/all.txt").chmod(0o600)  # taken away from others
    (share / "open/owner.txt").chmod(0o644)  # and given
    os.chown(share / "open/group.txt", 1001, 2003)  # another group
    os.chown(share / "hr/1.txt", 1006, 2001)
    (share / "hr/1.txt").chmod(0o600)  # inheritance broken
    acl(share / "open/two-groups.txt", [("user", 1004, 0), ("group", 2003, 4)])  # deny added
    (share / "board").chmod(0o750)  # a whole folder
    os.setxattr(share / "open/denied.txt", "user.note", b"no right")
    os.removexattr(share / "open/named.txt", "system.posix_acl_access")
    intranet.sent["/cms/0"] = ["group:2001"]  # public before
    intranet.sent["/cms/5"] = ["everyone"]  # for nobody before
    intranet.silent.add("/cms/2")  # the server says nothing any more
    intranet.rules["/pay/*"] = ["group:2002"]
    intranet.rules["/free/*"] = ["user:owner"]  # everybody's before


def test_changes_of_rights_count_after_one_run(intranet: Intranet) -> None:
    if not (intranet.folder / "crawl").exists():
        intranet.crawl()
    change_rights(intranet)
    ran = intranet.crawl(refresh="all")
    assert "Rights: looked at 20 files" in ran.err
    assert check(intranet) == 8 * 56
    assert "only operators find them" in ran.err
    left = tuple(one._replace(gids=(2009,)) for one in PEOPLE)  # everybody leaves the groups
    whole = Searcher.open(intranet.folder / "crawl" / "index")
    for person in left:
        seen = whole.seen_by(Access(("file://",), (), principals(person)))
        files = {hit.url for hit in seen.search(SearchRequest("harbour", 100)).hits
                 if hit.url.startswith("file:")}  # fmt: skip
        assert files == intranet.opens(person, sorted(files))


def test_opensearch_shows_the_same_by_the_filter_for_a_person(
    opensearch: SharedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the changes. Also counts, hosts and link texts are of the person's own."""
    monkeypatch.setenv("TEST_RECEIVERS", OPENSEARCH)
    name = f"test-{uuid4().hex}"
    monkeypatch.setenv("LARM_OPENSEARCH_URL", opensearch.url(name))
    with served() as intranet:
        intranet.module = MODULE
        intranet.crawl()
        assert check_opensearch(intranet, opensearch, name) == 8 * 56
        change_rights(intranet)
        intranet.crawl(refresh="all")
        assert check_opensearch(intranet, opensearch, name) == 8 * 56


def check_opensearch(intranet: Intranet, opensearch: SharedNode, name: str) -> int:
    words = {"match": {"exact": "harbour"}}
    opensearch.ask("POST", f"/{name}/_refresh")
    every = urls_in(opensearch.ask("POST", f"/{name}/_search", {"query": words, "size": 100}))
    assert len(every) == len(FILES) + len(SENT) + len(BY_RULE)
    for person in PEOPLE:
        who = ",".join(sorted(principals(person)))
        ran = scrapy("outbox", "--seen-by", who, cwd=intranet.folder, settings_module=MODULE)
        assert ran.status == 0, ran.err
        query = {"bool": {"must": [words], "filter": [ran.json]}}
        kinds = {"kinds": {"terms": {"field": "kind"}}}
        asked = {"query": query, "size": 100, "aggs": kinds}
        found = opensearch.ask("POST", f"/{name}/_search", asked)
        expected = intranet.opens(person, every)
        assert {*urls_in(found)} == expected, person
        assert found["hits"]["total"]["value"] == len(expected)
        counts = found["aggregations"]["kinds"]["buckets"]
        assert sum(one["doc_count"] for one in counts) == len(expected)
        told = json.dumps(found).replace(url_of(os.fsencode(intranet.share)), "")
        for url in every:
            assert (_canary(_name(intranet, url)) in told) == (url in expected), (person, url)
    return len(PEOPLE) * len(every)


def urls_in(answer: Any) -> list[str]:
    return [hit["_source"]["page"]["url"] for hit in answer["hits"]["hits"]]


def test_no_route_shows_a_word_of_a_hidden_document(
    intranet: Intranet, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (intranet.folder / "crawl").exists():
        intranet.crawl()
    monkeypatch.setattr(
        WebRequest, "principals",
        property(lambda self: frozenset({*self.groups, "everyone", "authenticated"})),
    )  # fmt: skip
    readers = Readers({}, "X-Groups", (ip_network("127.0.0.1"),))
    guard = Guard(TOKEN, closed=True, open_paths=("/search", "/copy", "/view", "/diff"))
    whole = Searcher.open(intranet.folder / "crawl" / "index")
    every = [hit.url for hit in whole.search(SearchRequest("harbour", 100, copies=True)).hits]
    token = {"Authorization": f"Bearer {TOKEN}"}
    with Served(intranet.folder / "crawl", guard, readers=readers) as site:
        unlisted = url_of(os.fsencode(intranet.share / "open/unlisted.html"))
        assert site.get(f"/copy?u={quote(unlisted)}", **token).status == 200
        for person in PEOPLE[::3]:
            headers = {"X_Groups": ",".join(principals(person))}
            expected = intranet.opens(person, every)
            for url in every:
                word = _canary(_name(intranet, url))
                for target in (
                    f"/search?q={word}&exact=1&format=json", f"/search/_search?q={word}",
                    f"/search/copy?u={quote(url)}", f"/copy?u={quote(url)}&download=yes",
                    f"/search?similar={quote(url)}&format=json", f"/view?u={quote(url)}",
                ):  # fmt: skip
                    got = site.get(target, **headers)
                    text = got.text.replace(f'"query": "{word}"', "").replace(url, "")
                    if url not in expected:
                        assert word not in text, (person, target)
                        assert got.status == (200 if "search?q" in target else 404), target
                    elif target.startswith(("/search/copy", "/copy", "/search/_search")):
                        assert word in text, (person, target)
            assert site.get(f"/copy?u={quote(unlisted)}", **headers).status == 404
            for head in ("can", "harbour", "page"):
                suggested = site.get(f"/search/suggest?q={head}", **headers).text
                hidden = [one for one in every if one not in expected]
                assert not any(_canary(_name(intranet, one)) in suggested for one in hidden)
