"""Documents that are pushed: checks and limits of the API, versions, the file that keeps them."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from larmspider.errors import CrawlDirError, HttpError
from larmspider.items import Page
from larmspider.server.api.api import BASE
from larmspider.server.api.openapi import description
from larmspider.server.api.push import FILE_QUERY, MAX_DOCUMENTS
from larmspider.server.api.push_client import check
from larmspider.server.api.rate import Rate
from larmspider.server.config.crawl_file import CrawlFileError, parse_crawl, settings_of
from larmspider.workdir import pushed as pushed_file
from larmspider.workdir.pushed import (
    DiskFullError,
    Document,
    Done,
    Facts,
    Pushed,
    PushWatch,
    Version,
    facts_of,
)
from tests.server.test_app import SEEDS, Console
from tests.support.web.serving import Got, request

PUSH = 'kind = "push"\n'
FIELDS = '[settings.LARM_FIELDS."*"]\nroom = "//nothing"\n'
LINES = {"Content-Type": "application/x-ndjson"}
URL = "http://hr.example/a"
GOOD = {"url": URL, "text": "a"}


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with Console(tmp_path) as running:
        (tmp_path / "crawls" / "hr.toml").write_text(f'{PUSH}collection = "Staff"\n{FIELDS}')
        yield running


def send(console: Console, body: object, headers: Any, query: str = "") -> Got:
    return console.ask(f"{BASE}/index{query}", "POST", body, headers)


def a_document(url: str = URL, body: bytes = b"a", version: Version = None) -> Document:
    return Document(url, url, body, "text/plain", Facts(), version)


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"url": ""}, 400, "expected 1 to 2,083"),
    ({"url": "http://h/" + "a" * 300_000}, 400, "url: it has 300,009 characters"),
    ({"url": "ftp://h/a"}, 400, "expected a URL with http:// or https://"),
    ({"url": "http://[h/a"}, 400, "url: "),
    ({"url": "http://h/a b"}, 400, "url: "),
    ({"url": "http://u:p@h/a"}, 400, "without user and password"),
    ({"url": "http://h/a#b"}, 400, "without #"),
    ({"text": " \n"}, 400, "text: is empty"),
    ({"text": ""}, 400, "expected text or file"),
    ({"text": "a", "file": "YQ=="}, 400, "expected text or file"),
    ({"text": "", "file": "?"}, 400, "Invalid base64"),
    ({"content_type": "pdf"}, 400, "expected a media type"),
    ({"content_type": "application/pdf"}, 400, "is not text: send it as file"),
    ({"date": "yesterday"}, 400, "date: expected a date such as"),
    ({"date": -1}, 400, "date: "),
    ({"date": "99999-01-01"}, 400, "date: "),
    ({"language": "klingon"}, 400, "language 'klingon': expected a tag"),
    ({"language": "qq"}, 400, "language 'qq': expected a tag"),
    ({"version": ""}, 400, "version: expected"),
    ({"version": [1]}, 400, "version"),
    ({"fields": {"floor": "1"}}, 400, "fields: 'floor': expected room"),
    ({"fields": {"room": ["1"] * 21}}, 400, "expected at most 20 values"),
    ({"fields": {"room": "1" * 201}}, 400, "of 1 to 200"),
    ({"access": ["hr"]}, 400, "access: 'hr' is not a principal: expected everyone"),
    ({"access": ["group:hr"] * 10_001}, 400, "access: expected at most 10,000 principals"),
    ({"access": "group:hr"}, 400, "access"),
    ({"text": "a" * 400_001}, 413, "push_bytes"),
    ({"titel": "a"}, 400, "titel"),
    ({"collection": "nix"}, 404, "no collection 'nix'"),
    ({"collection": "wiki"}, 409, "it is crawled"),
]


def test_the_description_names_each_parameter_of_a_file() -> None:
    found = description()["paths"][f"{BASE}/index"]["put"]["parameters"]
    assert [one["name"] for one in found] == [*FILE_QUERY]
    assert "access" in FILE_QUERY


def test_a_document_that_failed_is_taken_again(tmp_path: Path) -> None:
    """The same document once more is no repetition where no store has it."""
    with Pushed.open(tmp_path) as pushed:
        for word in ("created", "updated"):
            assert pushed.put([a_document(version=7)])[0].word == word
            assert pushed.put([a_document(version=7)])[0].word == "same"  # it waits
            [order] = pushed.orders(after=0)
            pushed.done([Done(order.number, "failed: removed by the operator", stored=False)])
        assert pushed.put([a_document(version=6)])[0].word == "conflict"
        assert pushed.put([a_document(version=7)])[0].word == "updated"
        [order] = pushed.orders(after=0)
        pushed.done([Done(order.number, "encrypted")])
        assert pushed.put([a_document(version=7)])[0].word == "same"
        assert pushed.state(URL).state == "stored"  # type: ignore[union-attr]


def test_documents_that_cannot_be(console: Console) -> None:
    """Each is refused in one short line, and nothing is kept."""
    (console.machine.home / "crawls" / "wiki.toml").write_text("seeds = ['http://wiki/']\n")
    console.crawls.pushes.max_bytes, push = 400_000, console.token("push")
    for change, status, said in BAD:
        got = send(console, GOOD | change, push)
        assert (got.status, said in got.json["error"]) == (status, True), got.text
        assert len(got.text) < 400
    assert not (console.machine.home / "data" / "hr").exists()


def test_bodies_that_cannot_be(console: Console) -> None:
    """By their type, coding, size and number; the service continues."""
    push = console.token("push")
    url = f"{console.url}{BASE}/index"
    kind = {"Content-Type": "application/json"}
    for headers, body, status in (
        (kind, b"{", 400),
        (kind, b"[" * 100_000, 400),
        (kind, b"\xff", 400),
        (kind, b'{"text": "a"}', 400),
        (kind, b'{"url": "http://h/\\ud800", "text": "a"}', 400),
        ({"Content-Type": "text/plain"}, b"a", 415),
        (kind | {"Content-Encoding": "gzip"}, b"\x1f\x8b" + b"a" * 100, 415),
        (LINES, b"\n\n", 413),
        (LINES, b"{}\n" * (MAX_DOCUMENTS + 1), 413),
        (kind, b"a" * 22_000_000, 413),
    ):
        got = request(url, "POST", push | headers, body)
        assert (got.status, bool(got.json["error"])) == (status, True), got.text
    assert request(f"{url}?url=a&nix=1", "PUT", push, b"a").status == 400
    assert request(url, "PUT", push, b"a").status == 400
    assert send(console, GOOD, push).status == 201


def test_a_batch_has_an_answer_for_each_line(console: Console) -> None:
    """In their order; good lines are kept beside bad ones. The alias is the same route."""
    push = console.token("push")
    encoded = base64.b64encode(b"\x89PNG").decode()
    lines = [GOOD, {"url": "h"}, "nonsense", GOOD | {"text": "b"},
             {"url": "http://h/p", "file": encoded, "content_type": "image/png"}]  # fmt: skip
    body = b"\n".join(json.dumps(one).encode() for one in lines)
    got = request(f"{console.url}/api/index?collection=Staff", "POST", push | LINES, body)
    assert got.status == 200
    found = [(one["status"], one["result"]) for one in got.json["documents"]]
    assert found == [(201, "created"), (400, "refused"), (400, "refused"), (200, "updated"),
                     (201, "created")]  # fmt: skip
    assert got.json["refused"] == 2
    state = console.ask(f"{BASE}/index?url={URL}", headers=push).json
    assert (state["state"], state["collection"]) == ("waiting", "hr")
    acts = console.crawls.crawls.audit.last(9)
    assert [row[3:] for row in acts] == [
        ["push", "hr: 5 documents", "2 created, 2 refused, 1 updated"]
    ]
    console.tick()
    assert [name for name, _, _ in console.machine.started] == ["hr"]


def test_a_push_token_pushes_and_nothing_else(console: Console) -> None:
    """Nor does a token that reads push."""
    push, read = console.token("push"), console.token("read")
    assert send(console, GOOD, push).status == 201
    for path in ("/crawls", "/crawls/hr", "/tokens", "/audit"):
        assert console.ask(BASE + path, headers=push).status == 403, path
    for path in ("/", "/metrics", "/manage/hr", "/crawls/hr/"):
        assert console.ask(path, headers=push).status in (401, 403), path
    for method in ("POST", "PUT", "DELETE", "GET"):
        assert console.ask(f"{BASE}/index", method, GOOD, read).status == 403, method
        assert console.ask(f"{BASE}/index", method, GOOD).status == 401, method
    assert send(console, GOOD, push | {"Origin": "http://evil.example"}).status == 403


def test_the_pages_of_a_collection(console: Console) -> None:
    """They show it, and nothing is visited. Another directory than its own is refused."""
    console.sign_in()
    for path in ("/", "/manage/hr", "/new?copy=hr"):
        assert console.page(path).status == 200, path
    page = console.send("/manage/hr/visit", what="all").text
    assert "hr is pushed to: nothing is fetched" in page
    assert "hr is changed" in console.send("/manage/hr/change", collection="People").text
    folder = console.machine.home / "data" / "hr"
    folder.mkdir(parents=True)
    (folder / "crawl.json").write_text('{"format": 2, "settings": {}}')
    got = send(console, GOOD, console.token("push"))
    assert (got.status, "holds a crawl" in got.json["error"]) == (409, True)


def test_limits_of_rate_room_and_disk(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """429 says when to come again; 507 keeps nothing."""
    push, pushes = console.token("push"), console.crawls.pushes
    pushes._rate = Rate(2)
    assert [send(console, GOOD, push).status for _ in range(3)] == [201, 200, 429]
    got = send(console, GOOD, push)
    assert 1 <= int(got.headers["Retry-After"]) <= 60
    pushes._rate = Rate(1_000)
    pushes._max_waiting = 0
    got = send(console, GOOD, push)
    assert (got.status, got.headers["Retry-After"]) == (429, "30")
    pushes._max_waiting = 1 << 30
    connected = pushed_file._connected

    def full(path: Path) -> sqlite3.Connection:
        connection = connected(path)
        connection.execute("PRAGMA max_page_count = 16")
        return connection

    monkeypatch.setattr(pushed_file, "_connected", full)
    body = b"\n".join(
        json.dumps({"url": f"http://h/{n}", "text": "a" * 9_000}).encode() for n in range(20)
    )
    got = request(f"{console.url}{BASE}/index", "POST", push | LINES, body)
    assert (got.status, "disk is full" in got.json["error"]) == (507, True)
    monkeypatch.setattr(pushed_file, "_connected", connected)
    for number in (0, 19):
        status = console.ask(f"{BASE}/index?url=http://h/{number}", headers=push).status
        assert status == 404
    console.machine.free = 1
    console.tick()
    assert send(console, GOOD, push).status == 507


def test_the_rate_fills_up_again() -> None:
    """By the clock; senders do not share it."""
    now = [0.0]
    rate = Rate(60, "documents", lambda: now[0])
    rate.took("a", 89)
    rate.check("b")
    with pytest.raises(HttpError) as error:
        rate.check("a")
    assert (error.value.status, error.value.values["seconds"]) == (429, 30)
    now[0] = 31.0
    rate.check("a")


def test_pushing_needs_no_turn(console: Console) -> None:
    """A crawl takes the only turn, and documents are stored beside it. A run that broke off is
    tried again later; a collection without documents is not run."""
    console.manager.home.write("wiki", "seeds = ['http://wiki/']\n", new=True)
    console.manager.start("wiki", "ada")
    console.tick()
    console.tick()
    assert [name for name, _, _ in console.machine.started] == ["wiki"]
    assert send(console, GOOD, console.token("push")).status == 201
    console.tick()
    assert [name for name, _, _ in console.machine.started] == ["wiki", "hr"]
    console.manager.home.write("docs", "seeds = ['http://docs/']\n", new=True)
    console.manager.start("docs", "ada")
    console.tick()
    assert console.manager.queue == ["docs"]
    console.machine.processes["hr"].code = 2
    console.tick()
    assert len(console.machine.started) == 2
    console.machine.now += 61
    console.tick()
    assert [name for name, _, _ in console.machine.started][2:] == ["hr"]


def test_versions(tmp_path: Path) -> None:
    """The same twice changes nothing; older versions and other content conflict."""
    with Pushed.open(tmp_path) as pushed:

        def put(body: bytes, version: Version) -> str:
            return pushed.put([a_document(body=body, version=version)])[0].word

        for body, version, word in (
            (b"a", None, "created"), (b"a", None, "same"), (b"b", None, "updated"),
            (b"b", 9, "updated"), (b"b", 9, "same"), (b"c", 9, "conflict"), (b"b", 8, "conflict"),
            (b"c", "10", "updated"), (b"c", 10, "same"), (b"d", None, "conflict"),
            (b"d", "2026-01-02", "conflict"), (b"d", 10.5, "updated"),
        ):  # fmt: skip
            assert put(body, version) == word, (body, version)
        assert pushed.remove(URL)
        assert not pushed.remove(URL)
        assert put(b"e", "2026-01-02") == "created"
        assert put(b"f", "2026-01-10") == "updated"
        assert put(b"g", "2026-01-09") == "conflict"
        assert pushed.waiting_bytes() == 1
        assert [order.takes_out for order in pushed.orders(0)] == [False]


def test_an_order_ends_once(tmp_path: Path) -> None:
    """The end of an earlier order does not end the later one of its URL. Facts count once their
    document is stored."""
    watch = PushWatch()
    assert not watch.waits(tmp_path)
    with Pushed.open(tmp_path) as pushed:
        titled = a_document()._replace(facts=Facts("A", "en", 5.0, {"room": ["1"]}))
        pushed.put([titled])
        assert watch.waits(tmp_path)
        first = pushed.document(URL)
        assert first is not None
        pushed.put([a_document(body=b"bb", version=1)])
        pushed.done([Done(first.number)])
        second = pushed.document(URL)
        assert second is not None
        assert (second.body, pushed.is_open(first.number)) == (b"bb", False)
        pushed.put([titled._replace(version=2)])
        pushed.done([Done(order.number, "no-text") for order in pushed.orders(0)])
        state = pushed.state(URL)
        assert state is not None
        assert (state.state, state.outcome, pushed.waiting_bytes()) == ("stored", "no-text", 0)
        page = Page(URL, title="Untitled", language="de")
        with facts_of(tmp_path) as fill:
            fill(page)
        assert (page.title, page.language, page.modified) == ("A", "en", 5.0)
        assert page.fields == {"room": ["1"]}
        pushed.remove(URL)
        pushed.done([Done(URL)])
        assert pushed.state(URL) is None
        assert not watch.waits(tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """Nothing is taken for kept then."""
    (tmp_path / pushed_file.FILE).write_bytes(b"nonsense" * 1_000)
    with pytest.raises(CrawlDirError, match=r"push\.sqlite: file is not a database"):
        Pushed.open(tmp_path)
    assert issubclass(DiskFullError, Exception)


def test_crawl_files_of_collections() -> None:
    """Keys about fetching are refused, and a crawl still needs seeds."""
    assert settings_of(parse_crawl(PUSH, "f"))["LARM_PUSH"] is True
    for more, key in (
        ('seeds = ["http://a/"]', "seeds"), ('schedule = {run = "watch"}', "schedule"),
        ("limits = {pages = 1}", "limits"), ("settings = {LARM_PUSH = true}", "settings"),
    ):  # fmt: skip
        with pytest.raises(CrawlFileError) as error:
            parse_crawl(PUSH + more, "f")
        assert [one.key for one in error.value.problems] == [key]
    for text in ("", 'kind = "crawl"'):
        with pytest.raises(CrawlFileError, match="seeds: is missing: expected a list of 1 to"):
            parse_crawl(text, "f")


def test_files_that_the_command_refuses(tmp_path: Path) -> None:
    """Before anything is sent."""
    file = tmp_path / "a.pdf"
    file.write_bytes(b"a")
    check([str(file)], "http://h/")
    check(["-"], "")
    for files, at, said in (
        ([str(file)], "", "expected --at URL"),
        ([str(tmp_path / "nix")], "http://h/", "there is no such file"),
        ([str(file)], "ftp://h/", "expected a URL with"),
        ([str(file), str(file)], "http://h/a", "ends with /"),
    ):
        with pytest.raises(Exception, match=said):
            check(files, at)
    assert SEEDS
