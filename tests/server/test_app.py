"""The web application of the server: who may do what, the API and its description, forms."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jsonschema
import msgspec
import pytest
from scrapy.settings import Settings

from larmspider.server.api.api import BASE, OPERATIONS, Operation
from larmspider.server.api.api import Server as Crawls
from larmspider.server.api.crawls import Crawls as Acts
from larmspider.server.api.openapi import as_text, description
from larmspider.server.api.push import Pushes
from larmspider.server.app import build_server
from larmspider.server.audit import Audit
from larmspider.server.config.crawl_schema import Crawl
from larmspider.server.config.secrets import Secrets
from larmspider.server.config.server_settings import ServerSettings
from larmspider.server.form import groups, values_of
from larmspider.server.people.people import ServerPeople
from larmspider.server.people.tokens import TokenGuard, TokenStore, first_key
from larmspider.server.runs.look import Looks
from larmspider.status.crawl_view import Source
from larmspider.web.prefix import prefixed
from larmspider.web.server import Binding, Server
from tests.support.crawl_machine import Machine
from tests.support.crawling import PROJECT
from tests.support.web.serving import Got, request

SEEDS = {"seeds": ["http://wiki.example/"]}


class Console:
    """A server in a thread, over a machine without processes."""

    def __init__(self, home: Path, **sign_in: object) -> None:
        """``sign_in``: tables of server.toml."""
        self.machine = Machine(home)
        self.manager = self.machine.manager(parallel=1)
        self.tokens = TokenStore(home)
        audit = Audit(home)
        looks, pushes = Looks(self.manager.home), Pushes(self.manager, audit)
        acts = Acts(self.manager, audit)
        self.users = self.tokens.users
        settings = msgspec.convert(sign_in, ServerSettings)
        self.people = ServerPeople.open(home, self.users, settings)
        self.crawls = Crawls(acts, self.tokens, Secrets(home), looks, self.people, pushes)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.url = ""
        self.open_search = () if sign_in else ("/search", "/opensearch.xml")
        self.routes: list[tuple[str, str]] = []
        self.cookie = ""
        self._csrf = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        settings = Settings()
        settings.setmodule("larmspider.settings")

        def source_of(name: str, path: Path, others: Any) -> Source:
            return Source(path, lambda _: settings, None, name=name, others=others, is_planned=True)

        binding = Binding.from_settings(settings, has_tokens=True)
        guard = self.guard = TokenGuard(
            self.tokens, closed=True, open_paths=("/first", "/api/", "/oidc/", *self.open_search)
        )
        app = build_server(self.crawls, guard, binding, source_of)
        for route in app.router.routes():
            if route.resource is not None:
                self.routes.append((route.method, route.resource.canonical))
        server = await Server.start(app, "127.0.0.1", 0)
        self.url = server.url.rstrip("/")
        self._ready.set()
        await self._stop.wait()
        await server.stop()

    def tick(self) -> None:
        asyncio.run(self.manager.tick())

    def token(self, scope: str) -> dict[str, str]:
        names = {one.name for one in self.tokens.all()}
        name = f"{scope}-{len(names)}"
        return {"Authorization": f"Bearer {self.tokens.make(name, scope)}"}

    def ask(self, path: str, method: str = "GET", body: object = None, headers: Any = None) -> Got:
        given = dict(headers or {})
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        return request(self.url + path, method, given, data)

    def sign_in(self) -> str:
        """By a form; returns the CSRF token of a page."""
        token = self.token("operate")["Authorization"].removeprefix("Bearer ")
        got = request(self.url + "/login", "POST", form={"token": token, "next": "/"})
        assert got.status == 303
        self.cookie = got.headers["Set-Cookie"].partition(";")[0]
        found = re.search(r'name="csrf" value="([^"]+)"', self.page("/new").text)
        assert found
        self._csrf = found[1]
        return self._csrf

    def page(self, path: str) -> Got:
        return request(self.url + path, headers={"Cookie": self.cookie})

    def send(self, path: str, **fields: str) -> Got:
        """A form; returns the page to which it leads."""
        got = request(
            self.url + path, "POST", {"Cookie": self.cookie}, {"csrf": self._csrf} | fields
        )
        return self.page(got.headers["Location"]) if got.status == 303 else got


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with Console(tmp_path) as running:
        yield running


def test_who_comes_before_the_first_operator_is_told_of_the_key(console: Console) -> None:
    before = console.ask("/search", headers={"Accept": "text/html"})
    console.token("operate")
    after = console.ask("/search", headers={"Accept": "text/html"})
    assert (before.status, after.status) == (404, 404)
    assert "Open the address with the one-time key" in before.text
    assert "no crawl has begun" in after.text


def paths(console: Console) -> list[tuple[str, str]]:
    """Every route with its parameters filled in."""
    found = []
    for method, path in console.routes:
        for name, value in (("name", "wiki"), ("crawl", "wiki"), ("number", "1"), ("act", "start"),
                            ("tail", "control/pause")):  # fmt: skip
            path = path.replace(f"{{{name}}}", value)
        found.append(("POST" if method == "*" else method, path))
    return found


def test_every_route_is_guarded(console: Console) -> None:
    """Nothing is changed without a proof, from another origin, by a foreign form or a read token;
    no GET changes or starts anything."""
    operate, read, push = (console.token(scope) for scope in ("operate", "read", "push"))
    assert (
        console.ask(f"{BASE}/crawls", "POST", {"name": "wiki", "crawl": SEEDS}, operate).status
        == 201
    )
    console.sign_in()
    cookie = {"Cookie": console.cookie}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    before = console.manager.home.text_of("wiki")
    routes = paths(console)
    assert len(routes) > 30
    for method, path in routes:
        url = console.url + path
        assert request(url, method, {"Host": "evil.example"}).status == 421, path
        if method in ("GET", "HEAD"):
            for headers in ({}, operate, read, cookie):
                assert request(url, method, headers).status < 500, path
            continue
        login = path in ("/login", "/first", "/logout")
        for headers in ({}, read, push, {"Authorization": "Bearer wrong"}):
            status = request(url, method, form | headers, b"x=1").status
            pushes = headers is push and path.endswith("/index")  # the body is looked at
            allowed = (400, 404, 415) if pushes else (401, 403, 404, 405, 410)
            assert status in allowed, (method, path, headers, status)
        for origin in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            got = request(url, method, form | operate | origin, b"x=1")
            assert got.status in (403, 404, 405), (method, path, got.status)
        if not login:
            status = request(url, method, form | cookie, b"x=1").status
            assert status in (403, 404, 405), (method, path, status)
    console.tick()
    assert console.machine.started == []
    assert console.manager.home.text_of("wiki") == before
    assert [one.name for one in console.tokens.all()][:3] == ["operate-0", "read-1", "push-2"]


def check_answer(operation: Operation, got: Got, status: int) -> None:
    """The answer has this status, and fits its schema in the description."""
    assert got.status == status, got.text
    assert got.headers["Content-Type"] == "application/json; charset=utf-8"
    document = description()
    answers = document["paths"][BASE + operation.path][operation.method.lower()]["responses"]
    schema = answers[str(status)]["content"]["application/json"]["schema"]
    jsonschema.validate(got.json, schema | {"components": document["components"]})


def test_the_api_answers_as_it_is_described(console: Console) -> None:
    """Each operation is asked, and each answer fits its schema; so do errors."""
    operate = console.token("operate")
    asked = set()

    def ask(name: str, path: str, body: object = None, status: int = 0) -> Any:
        operation = next(one for one in OPERATIONS if one.name == name)
        got = console.ask(BASE + path, operation.method, body, operate)
        check_answer(operation, got, status or operation.status)
        asked.add(name)
        return got.json

    ask("create", "/crawls", {"name": "wiki", "crawl": SEEDS})
    detail = ask("crawl", "/crawls/wiki")
    assert detail["summary"]["state"] == "new"
    changes = {"limits": {"pages": 7}, "exclude": ["a"]}
    changed = ask("change", "/crawls/wiki", {"crawl": changes, "seen": detail["version"]})
    assert (changed["crawl"]["limits"]["pages"], changed["crawl"]["exclude"]) == (7, ["a"])
    ask("change", "/crawls/wiki", {"crawl": {}, "seen": detail["version"]}, 409)
    bad = ask("change", "/crawls/wiki", {"crawl": {"limits": {"pages": -1}, "seeds": []}}, 400)
    assert [one["key"] for one in bad["problems"]] == ["seeds", "limits.pages"]
    for name, value in (("LARM_DIR", "/etc"), ("LARM_NOTIFY", "rm")):
        bad = ask("change", "/crawls/wiki", {"crawl": {"settings": {name: value}}}, 400)
        assert bad["problems"][0]["key"] == "settings"
    ask("create", "/crawls", {"name": "WIKI", "crawl": SEEDS}, 400)
    text = "# the wiki\nseeds = ['http://t.example/']  # its start\n"
    assert ask("create", "/crawls", {"name": "text", "crawl": text})["file"] == text
    refused = ask("create", "/crawls", {"name": "t", "crawl": text + "\n[settings]\nA = 1\n"}, 400)
    assert refused["problems"][0]["key"] == "settings"
    assert (
        ask("create", "/crawls", {"name": "t", "crawl": "a = ["}, 400)["problems"][0]["line"] == 1
    )
    ask("create", "/crawls", {"name": "t", "crawl": {"seeds": [None]}}, 400)
    ask("delete", "/crawls/text", {"name": "text"})
    ask("create", "/crawls", {"name": "../x", "crawl": SEEDS}, 400)
    ask("create", "/crawls", {"nom": "x"}, 400)
    assert ask("start", "/crawls/wiki/start")["done"] == "wiki starts"
    ask("start", "/crawls/wiki/start", status=400)
    ask("delete", "/crawls/wiki", {"name": "wik"}, 400)
    console.tick()
    ask("delete", "/crawls/wiki", {"name": "wiki"}, 409)
    listed = ask("crawls", "/crawls")
    assert [(one["name"], one["state"]) for one in listed["crawls"]] == [("wiki", "running")]
    ask("pause", "/crawls/wiki/pause")
    ask("resume", "/crawls/wiki/resume")
    assert console.machine.acts == [("wiki", "pause"), ("wiki", "resume")]
    ask("log", "/crawls/wiki/runs/1/log", status=404)
    folder = console.manager.home.runs_of("wiki")
    (folder / "1.log").write_text("a\nb <script>\n")
    assert ask("log", "/crawls/wiki/runs/1/log?bytes=12")["text"] == "b <script>\n"
    console.machine.now += 1_000
    console.tick()
    assert ask("runs", "/crawls/wiki/runs")["runs"][0]["outcome"] == "finished"
    ask("visit", "/crawls/wiki/visit", {"what": "url", "value": "nonsense"}, 400)
    ask("visit", "/crawls/wiki/visit", {"what": "pattern", "value": "("}, 400)
    ask("visit", "/crawls/wiki/visit", {"what": "some"}, 400)
    ask("visit", "/crawls/wiki/visit", {"what": "url", "value": "http://wiki.example/a?b"})
    console.tick()
    assert console.machine.started[-1][2] == r"http://wiki\.example/a\?b"
    edit = {"crawl": {"seeds": ["http://w/"], "limits": {"pages": 5}}}
    found = ask("preview-change", "/crawls/wiki/preview", edit)
    assert (found["seeds_added"], found["seeds_removed"]) == (["http://w/"], SEEDS["seeds"])
    assert {"key": "limits.pages", "before": "7", "after": "5"} in found["keys"]
    ask("preview-change", "/crawls/wiki/preview", {"crawl": {"restrict": "("}}, 400)
    ask("stop", "/crawls/wiki/stop")
    console.tick()
    ask("stop", "/crawls/wiki/stop", status=400)
    made = ask("make-token", "/tokens", {"name": "backup", "scope": "read", "days": 3})
    assert made["token"] not in (console.machine.home / "tokens.json").read_text()
    assert ask("tokens", "/tokens")["tokens"][-1]["name"] == "backup"
    reader = {"Authorization": f"Bearer {made['token']}"}
    assert console.ask(f"{BASE}/crawls", headers=reader).status == 200
    assert console.ask(f"{BASE}/crawls/wiki", headers=reader).status == 403
    ask("remove-token", "/tokens/backup")
    ask("remove-token", "/tokens/backup", status=400)
    assert console.ask(f"{BASE}/crawls", headers=reader).status == 401
    password = ask("add-user", "/users", {"name": "anna", "role": "reader"})["password"]
    ask("add-user", "/users", {"name": "Anna", "role": "reader"}, 400)
    ask("set-role", "/users/anna", {"role": "editor"})
    assert ask("reset-password", "/users/anna/reset")["password"] != password
    assert ask("users", "/users")["users"][0]["role"] == "editor"
    ask("make-token", "/tokens", {"name": "push", "scope": "push", "user": "anna"})
    ask("make-token", "/tokens", {"name": "all", "scope": "operate", "user": "anna"}, 400)
    ask("see-as", "/see-as?person=anna")
    ask("see-as", "/see-as", status=400)
    ask("see-as", "/see-as?person=anna&query=x", status=404)
    ask("delete-user", "/users/anna")
    assert [one["name"] for one in ask("tokens", "/tokens")["tokens"]] == ["operate-0"]
    ask("delete", "/crawls/wiki", {"name": "wiki", "pages": True})
    ask("crawl", "/crawls/wiki", status=404)
    assert not folder.exists()
    acts = [one["act"] for one in ask("audit", "/audit")["acts"]]
    assert acts[:3] == ["delete", "delete user", "see as"]
    assert password not in (console.machine.home / "audit.log").read_text()
    assert acts[-1] == "create"
    assert made["token"] not in (console.machine.home / "audit.log").read_text()
    ask("create", "/crawls", {"name": "hr", "crawl": {"kind": "push"}})
    ask("push", "/index?collection=hr", {"url": "http://h/a", "text": "a"})
    ask("push", "/index", {"url": "http://h/a", "text": "a"}, 200)
    ask("push", "/index", {"url": "h", "text": "a"}, 400)
    ask("push-file", "/index?url=http://h/f&title=F", {"any": "file"})
    assert ask("pushed", "/index?url=http://h/f")["state"] == "waiting"
    assert ask("unpush", "/index?url=http://h/f")["done"] == "the document leaves hr"
    ask("visit", "/crawls/hr/visit", {"what": "all"}, 400)
    ask("preview", "/preview", {"crawl": {"kind": "push"}}, 400)
    ask("preview", "/preview", {"crawl": SEEDS, "name": "nix"}, 404)
    ask("preview", "/preview", {"crawl": {"seeds": ["x"]}}, 400)
    ask("search", "/search?q=x", status=404)  # the others are in test_search_api.py
    ask("page", "/page?url=http://h/a", status=404)
    assert asked == {one.name for one in OPERATIONS}  # test_server.py has a preview that is made


def test_the_description_is_up_to_date() -> None:
    """`python -m larmspider.server.api.openapi > docs/openapi.json`"""
    assert (PROJECT / "docs" / "openapi.json").read_text("utf-8") == as_text()


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"\xff", "application/json", 400),
        (b'{"name": 1, "crawl": {}}', "application/json", 400),
        (b'{"name": "a", "crawl": {"seeds": ["\\ud800"]}}', "application/json", 400),
        (b"name=a", "application/x-www-form-urlencoded", 415),
        (b"x" * 1_100_000, "application/json", 413),
    ],
)
def test_bodies_that_cannot_be(console: Console, body: bytes, kind: str, status: int) -> None:
    """Each is refused as JSON, and nothing is kept."""
    headers = console.token("operate") | {"Content-Type": kind}
    got = request(f"{console.url}{BASE}/crawls", "POST", headers, body)
    assert got.status == status, got.text
    assert got.json["error"]
    assert console.manager.entries() == {}


def test_a_token_ends(tmp_path: Path) -> None:
    """By its date, or when it is removed."""
    now = [1_000.0]
    store = TokenStore(tmp_path, clock=lambda: now[0])
    token = store.make("a", "read", days=1)
    assert store.find(token) is not None
    now[0] += 86_401
    assert store.find(token) is None
    assert store.all() == []
    assert first_key(tmp_path) == first_key(tmp_path)
    assert (tmp_path / "tokens.json").stat().st_mode & 0o77 == 0


def test_forms(console: Console) -> None:
    """A new crawl with a mistake shows it beside its field, with all that was typed; then change,
    start, stop and delete, each shown on the next page."""
    assert console.ask("/", headers={"Accept": "text/html"}).status == 303
    console.sign_in()
    assert "There is no crawl yet" in console.page("/").text
    page = console.send("/new", name="wiki", seeds="htp//x", restrict="(").text
    assert 'aria-invalid="true"' in page
    assert "does not compile" in page
    assert "crawl:1" not in page
    assert ">htp//x</textarea>" in page
    page = console.send("/preview", name="wiki", seeds="htp//x", collection="Staff").text
    assert 'aria-invalid="true"' in page
    assert 'value="Staff"' in page
    page = console.send("/new", name="a/b", seeds="http://w/").text
    assert "expected 1 to 64 of the letters" in page
    page = console.send(
        "/new", name="wiki", seeds="http://w/ http://v/", start="yes", **{"schedule.run": "watch"}
    ).text
    assert "wiki is created; wiki starts" in page
    console.tick()
    assert "running" in console.page("/").text
    assert 'seeds = ["http://w/"' in console.page("/manage/wiki/file").text.replace("\n    ", "")
    copied = console.page("/new?copy=wiki").text
    assert ">http://w/\nhttp://v/</textarea>" in copied
    console.send("/new", name="twin", seeds="http://v/b")
    assert (
        "v may be crawled by wiki, too: their requests to it share one delay"
        in console.page("/manage/twin").text
    )
    reader = console.token("read")
    for path in ("/manage/wiki", "/manage/wiki/file", "/manage/wiki/log/1", "/acts", "/new"):
        assert console.ask(path, headers=reader).status == 403, path
    assert console.ask("/", headers=reader).status == 200
    page = console.send("/manage/wiki/change", seeds="http://w/", **{"limits.pages": "many"}).text
    assert "expected a whole number from 0 to" in page
    page = console.send("/manage/wiki/change", seeds="http://w/", collection="<b>").text
    assert "wiki is changed" in page
    assert "<b>" not in page
    assert "wiki stops" in console.send("/manage/wiki/stop").text
    console.tick()
    assert "is not wiki: nothing is deleted" in console.send("/manage/wiki/delete", typed="x").text
    assert "wiki is deleted" in console.send("/manage/wiki/delete", typed="wiki").text
    gone = console.send("/manage/wiki/change", seeds="http://w/")
    assert gone.status == 404
    assert "create" in console.page("/acts").text
    for path in ("/metrics", "/healthz", "/manage/wiki/log/1", "/crawls/wiki/", "/search?q=x"):
        assert console.page(path).status in (200, 404), path


def test_a_file_with_a_refused_name(console: Console) -> None:
    """The page of a crawl file ``...toml`` says why, and deletes this file alone; the others are
    shown."""
    console.sign_in()
    console.send("/new", name="wiki", seeds="http://w/")
    home = console.manager.home
    odd = home.path / "crawls" / "...toml"
    odd.write_text("seeds = ['http://w/']")
    (home.path / "crawls" / os.fsdecode(b"b\xff.toml")).write_text("seeds = ['http://w/']")
    (home.path / "crawls" / "folder.toml").mkdir()
    answer = console.ask("/api/v1/crawls", headers=console.token("read"))
    assert [one["name"] for one in json.loads(answer.text)["crawls"]] == [
        "...toml", "b\\udcff.toml", "folder", "wiki"
    ]  # fmt: skip
    page = console.page("/manage/...toml")
    assert page.status == 200
    assert "expected 1 to 64 of the letters" in page.text
    assert "is deleted" in console.send("/manage/...toml/delete", typed="...toml", pages="yes").text
    assert not odd.exists()
    assert (home.path / "runs").is_dir()
    assert "delete it by hand" in console.send("/manage/folder/delete", typed="folder").text
    assert "wiki" in console.manager.entries()


def test_a_crawl_whose_file_breaks_while_it_runs_can_be_stopped(console: Console) -> None:
    console.sign_in()
    console.send("/new", name="wiki", seeds="http://w/", start="yes")
    console.tick()
    (console.manager.home.path / "crawls" / "wiki.toml").write_text("seeds = 7")
    page = console.page("/manage/wiki").text
    assert "wiki.toml:1: seeds: 7: expected a list" in page
    assert 'action="/manage/wiki/stop"' in page
    assert "wiki stops" in console.send("/manage/wiki/stop").text
    console.tick()
    page = console.page("/manage/wiki").text
    assert 'action="/manage/wiki/start"' not in page
    assert 'action="/manage/wiki/stop"' not in page


def test_values_of_a_form() -> None:
    """Empty fields take keys out of a crawl that is there, and are nothing for a new one."""
    form = {"seeds": " http://a/\r\nhttp://b/ ", "restrict": "", "limits.delay": "0.5"}
    assert values_of(form) == {"seeds": ["http://a/", "http://b/"], "limits": {"delay": 0.5}}
    assert values_of({"restrict": "", "limits.pages": ""}, given=True) == {
        "restrict": None, "limits": {"pages": None},
    }  # fmt: skip


def test_hosts_of_a_form() -> None:
    """Rows in which nothing but choices was typed are no hosts; numbers are numbers, other text
    stays for the check to name."""
    crawl = Crawl(seeds=["http://w/"], hosts=[], languages=["de", "en"])
    form = {one.key: one.value for group in groups(crawl) for one in group.fields}
    assert values_of(form) == {
        "seeds": ["http://w/"], "languages": ["de", "en"], "schedule": {"missed": "run"},
        "refresh": {"mode": "due"},
    }  # fmt: skip
    form |= {"hosts.1.host": "a", "hosts.1.delay": "2.5", "hosts.1.window": "22-6"}
    form |= {"hosts.0.connections": "two", "schedule.window": "8 18"}
    found = values_of(form, given=True)
    assert found["hosts"] == [
        {"connections": "two"}, {"host": "a", "delay": 2.5, "window": [22, 6]}
    ]  # fmt: skip
    assert (found["schedule"]["window"], found["limits"]["pages"]) == ([8, 18], None)
    assert values_of(form | {"hosts.0.connections": "", "hosts.1.host": ""})["hosts"] == [
        {"delay": 2.5, "window": [22, 6]}
    ]
    keys = [one.key for group in groups(None, form) for one in group.fields]
    assert "hosts.3.host" in keys
    assert "hosts.4.host" not in keys


def test_hosts_in_the_browser(console: Console) -> None:
    """A mistake stands beside its field in its row; a host is kept with its comments, and goes
    when its row is emptied."""
    console.sign_in()
    secret = console.machine.home / "secrets" / "wiki"
    secret.touch(0o600)
    secret.write_text("hosts: wiki\nc4nary\n")
    typed = {"hosts.1.host": "wiki", "hosts.1.delay": "slow"}
    page = console.send("/new", name="wiki", seeds="http://w/", **typed).text
    assert 'id="d-hosts.1.delay" class="bad">Error: &#34;slow&#34;: expected a number' in page
    assert '<option value="wiki">wiki</option>' in page
    typed |= {"hosts.1.delay": "3", "hosts.1.secret": "wiki", "hosts.1.user": "ann"}
    for key, value, said in (
        ("hosts.1.secret", "nix", "there is none of that name: expected one of wiki"),
        ("hosts.1.host", "other", "wiki does not go to other"),
    ):
        wrong = typed | {key: value}
        page = console.send("/new", name="wiki", seeds="http://w/", **wrong).text
        assert 'id="d-hosts.1.secret" class="bad"' in page
        assert said in page
        assert "c4nary" not in page
    assert "wiki is created" in console.send("/new", name="wiki", seeds="http://w/", **typed).text
    text = console.manager.home.text_of("wiki")
    assert 'host = "wiki"\ndelay = 3\nsecret = "wiki"\nuser = "ann"' in text
    path = console.manager.home.file_of("wiki")
    path.write_text(text.replace("delay = 3", "delay = 3  # slow machine"))
    page = console.page("/manage/wiki").text
    same = {"hosts.0.host": "wiki", "hosts.0.delay": "3", "hosts.0.secret": "wiki"}
    same |= {"hosts.0.user": "ann"}
    console.send("/manage/wiki/change", seeds="http://w/ http://v/", **same)
    assert "# slow machine" in path.read_text()
    console.send("/manage/wiki/change", **{"hosts.0.host": ""})
    assert "hosts" not in path.read_text()


def test_scopes_that_take_nothing_or_everything(console: Console) -> None:
    """Nothing: refused beside the field. Everything, or not all seeds: a warning on the page."""
    console.sign_in()
    for key, value in (("restrict", "http://v/.*"), ("exclude", ".*")):
        page = console.send("/new", name="wiki", seeds="http://w/ http://x/", **{key: value}).text
        assert f'id="d-{key}" class="bad">Error: accepts none of 2 seeds: http://w/' in page
    seeds = {"seeds": "http://w/ http://v/", "restrict": "http://v/.*"}
    console.send("/new", name="wiki", **seeds)
    assert "The scope refuses 1 of 2 seeds, such as http://w/" in console.page("/manage/wiki").text
    console.send("/manage/wiki/change", restrict="https?://.*")
    assert "takes every URL of every host" in console.page("/manage/wiki").text


def test_a_change_is_shown_before_it_is_saved(console: Console) -> None:
    console.sign_in()
    console.send("/new", name="wiki", seeds="http://w/")
    before = console.manager.home.text_of("wiki")
    page = console.send(
        "/manage/wiki/preview", seeds="http://v/", seen="old", **{"limits.pages": "7"}
    ).text
    assert "Nothing is saved yet" in page
    assert "new seed: http://v/" in page
    assert "no longer a seed: http://w/" in page
    assert "limits.pages: nothing becomes 7" in page
    assert 'name="seen" value="old"' in page
    assert 'aria-invalid="true"' in console.send("/manage/wiki/preview", restrict="(").text
    assert console.manager.home.text_of("wiki") == before


def test_pages_are_moved_below_a_path() -> None:
    """Links of templates, not text of pages, whose quotes are escaped."""
    page = b'<body><a href="/a"><form action="/b"><a href="//c"><a href="http://d/"> href=&#34;/e'
    assert prefixed(page, "/crawls/w", mounted=True) == (
        b'<body data-base="/crawls/w"><a href="/crawls/w/a"><form action="/crawls/w/b">'
        b'<a href="//c"><a href="http://d/"> href=&#34;/e'
    )
