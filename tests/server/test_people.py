"""Local users: passwords, roles, sessions and tokens of a server, and what each may see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from larmspider.errors import ConfigError
from larmspider.server import kept_list
from larmspider.server.api.api import BASE
from larmspider.server.people import users as users_module
from larmspider.server.people.provider_acts import _is_ended
from larmspider.server.people.tokens import TokenStore
from larmspider.server.people.users import Users, narrowed
from larmspider.web.auth import Guard, Identity, Provider, cookie_name
from larmspider.web.reader import MAX_PRINCIPALS, ROLES, checked_groups, checked_name
from tests.server.test_app import SEEDS, Console
from tests.support.web.serving import Got, request

PASSWORD = "correct horse"


class SignedIn(NamedTuple):
    """A person whom a provider has signed in (plugins/oidc/provider.py)."""

    name: str
    principals: frozenset[str]
    session: Provider
    target: str


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with Console(tmp_path) as running:
        for role in ROLES:
            running.users.add(f"the-{role}", role, PASSWORD)
        yield running


class Person:
    """A browser of a person."""

    def __init__(self, console: Console, name: str, password: str = PASSWORD) -> None:
        self.url = console.url
        form = {"name": name, "password": password, "next": "/"}
        self.got = request(self.url + "/login", "POST", {"Accept": "text/html"}, form)
        self.cookie = self.got.headers.get("Set-Cookie", "").partition(";")[0]

    def get(self, path: str) -> Got:
        return request(self.url + path, headers={"Cookie": self.cookie, "Accept": "text/html"})

    def post(self, path: str, **form: str) -> Got:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get("/account").text)
        csrf = {"csrf": found[1]} if found else {}
        return request(self.url + path, "POST", {"Cookie": self.cookie}, csrf | form)


def test_each_role_sees_its_pages(console: Console) -> None:
    """Operators all, editors the crawls without file and logs, readers the search."""
    operate = console.token("operate")
    console.ask(f"{BASE}/crawls", "POST", {"name": "wiki", "crawl": SEEDS}, operate)
    operator, editor, reader = (Person(console, f"the-{role}") for role in ROLES)
    assert "HttpOnly" in operator.got.headers["Set-Cookie"]
    assert "SameSite=Strict" in operator.got.headers["Set-Cookie"]
    for path, editors, readers in (
        ("/manage/wiki", 200, 403), ("/new", 200, 403), ("/", 200, 303), ("/acts", 403, 403),
        ("/users", 403, 403), ("/see", 403, 403), ("/manage/wiki/file", 403, 403),
        ("/metrics", 403, 403), ("/crawls/wiki/hosts", 403, 403), ("/crawls/wiki/", 303, 303),
        ("/crawls/wiki/search?q=a", 404, 404), ("/search?q=a", 404, 404), ("/account", 200, 200),
    ):  # fmt: skip
        assert operator.get(path).status in (200, 404), path
        assert (editor.get(path).status, reader.get(path).status) == (editors, readers), path
    assert "seeds = [" in operator.get("/manage/wiki").text
    assert "seeds = [" not in editor.get("/manage/wiki").text
    assert "/manage/wiki/preview" not in editor.get("/manage/wiki").text  # it shows queued URLs
    assert "/manage/wiki/preview" in operator.get("/manage/wiki").text
    assert "user:the-reader" in reader.get("/account").text
    assert reader.post("/manage/wiki/start").status == 403
    assert editor.post("/manage/wiki/start").status == 303
    assert editor.post("/users/role", name="the-editor", role="operator").status == 403
    assert reader.post("/see", name="anna").status == 403
    console.tick()
    assert [one[0] for one in console.machine.started] == ["wiki"]
    assert "\tthe-editor\t127.0.0.1\tstart\twiki\t" in (
        (console.machine.home / "audit.log").read_text()
    )


def test_an_editor_gives_no_secret_away(console: Console) -> None:
    """An editor may keep the secret of a host, but not name one for another host, and sees neither
    names of secrets nor settings."""
    console.users.add("ed", "editor", PASSWORD)
    token = console.tokens.make("eds", "edit", user="ed")
    edit, operate = {"Authorization": f"Bearer {token}"}, console.token("operate")
    secret = console.machine.home / "secrets" / "wiki"
    secret.write_text("hosts: wiki.example evil.example\nhidden\n")
    secret.chmod(0o600)
    host = {"host": "wiki.example", "secret": "wiki", "user": "crawler"}
    body = {"name": "wiki", "crawl": SEEDS | {"hosts": [host]}}
    assert console.ask(f"{BASE}/crawls", "POST", body, edit).status == 403
    assert console.ask(f"{BASE}/crawls", "POST", body, operate).status == 201
    for changed, status in (
        ([host | {"delay": 3}], 200), ([host | {"host": "evil.example"}], 403),
        ([host | {"scheme": "http"}], 403), ([], 200),
    ):  # fmt: skip
        sent = {"crawl": {"hosts": changed}}
        got = console.ask(f"{BASE}/crawls/wiki", "PATCH", sent, edit)
        assert got.status == status, (changed, got.text)
    rights = {"crawl": {"access": {"*": ["everyone"]}}}
    assert console.ask(f"{BASE}/crawls/wiki", "PATCH", rights, edit).status in (400, 403)
    found = console.ask(f"{BASE}/crawls/wiki", headers=edit).json
    assert (found["file"], found["secrets"], found["directory"]) == ("", [], "")
    for path in ("/tokens", "/users", "/audit", "/crawls/wiki/runs/1/log"):
        assert console.ask(BASE + path, headers=edit).status == 403, path
    assert console.ask(f"{BASE}/crawls", headers=edit).status == 200


def test_a_session_ends_with_role_password_and_user(console: Console) -> None:
    """At once, and so do the tokens of a user that is deleted."""
    console.users.add("anna", "operator", PASSWORD)
    token = console.tokens.make("annas", "operate", user="anna")
    bearer = {"Authorization": f"Bearer {token}"}
    for change in (
        lambda: console.users.set_role("anna", "editor"),
        lambda: console.users.set_password("anna", PASSWORD),
        lambda: console.users.set_role("anna", "reader"),
        lambda: console.users.remove("anna"),
    ):
        anna = Person(console, "anna")
        assert anna.get("/account").status == 200
        change()
        assert anna.get("/account").status == 303
    assert console.ask(f"{BASE}/crawls", headers=bearer).status == 401
    console.users.add("anna", "reader", PASSWORD)
    console.tokens.remove_of("anna")
    assert console.ask(f"{BASE}/crawls", headers=bearer).status == 401
    anna = Person(console, "anna")
    assert anna.post("/logout").status == 303
    assert anna.get("/account").status == 303


def test_a_session_does_not_go_by_a_later_token_of_the_same_name(console: Console) -> None:
    thief = _by_token(console, console.tokens.make("backup", "operate"))
    console.tokens.remove("backup")
    owner = _by_token(console, console.tokens.make("backup", "operate"))
    assert (thief.get("/account").status, owner.get("/account").status) == (303, 200)


def _by_token(console: Console, token: str) -> Person:
    person = Person(console, "", "")
    got = request(console.url + "/login", "POST", {"Accept": "text/html"}, {"token": token})
    person.cookie = got.headers.get("Set-Cookie", "").partition(";")[0]
    return person


def test_a_kill_while_a_user_is_deleted_leaves_no_token(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else another user of the same name would have it."""
    console.users.add("anna", "operator", PASSWORD)
    token = console.tokens.make("annas", "operate", user="anna")
    bearer = {"Authorization": f"Bearer {token}"}
    assert console.ask(f"{BASE}/crawls", headers=bearer).status == 200
    with monkeypatch.context() as patched:
        patched.setattr(kept_list, "replace_file", killed_after(kept_list.replace_file, 1))
        with pytest.raises(KeyboardInterrupt):
            console.users.remove("anna", console.tokens.remove_of)
    assert [one.name for one in console.tokens.all() if one.user == "anna"] == []
    with suppress(ConfigError):
        console.users.remove("anna")
    console.users.add("anna", "operator", PASSWORD)
    assert console.ask(f"{BASE}/crawls", headers=bearer).status == 401


def killed_after(act: Callable[..., Any], times: int) -> Callable[..., Any]:
    """``act``, which is killed before it is called once more."""
    left = iter(range(times))

    def acting(*given: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return act(*given, **named)

    return acting


def test_users_in_the_browser(console: Console) -> None:
    """Added, shown a password once, given a role, a new password; and one's own password."""
    operator = Person(console, "the-operator")
    page = operator.post("/users/add", name="anna", role="reader").text
    found = re.search(r'id="password">([^<]+)<', page)
    assert found
    anna = Person(console, "anna", found[1])
    assert anna.get("/account").status == 200
    wrong = anna.post("/account", old="wrong", new="another horse")
    assert "password is wrong" in anna.get(wrong.headers["Location"]).text
    changed = anna.post("/account", old=found[1], new="another horse")
    assert Person(console, "anna", "another horse").got.status == 303
    assert changed.headers["Set-Cookie"]
    for name, role, why in (
        ("the-operator", "reader", "last operator"), ("nobody", "reader", "there is no user"),
        ("anna", "king", "expected one of"),
    ):  # fmt: skip
        got = operator.post("/users/role", name=name, role=role)
        assert why in operator.get(got.headers["Location"]).text
    operator.post("/users/delete", name="anna")
    assert Person(console, "anna", "another horse").got.status == 403
    log = (console.machine.home / "audit.log").read_text()
    assert found[1] not in log
    assert "another horse" not in log
    assert "\tadd user\tanna (reader)\tdone" in log


def test_wrong_passwords_are_slowed_by_name_and_address(console: Console) -> None:
    """The sixth a minute has to wait, in the language of the browser; another name does not."""
    for _ in range(5):
        got = Person(console, "the-reader", "wrong").got
        assert (got.status, "The name or the password is wrong" in got.text) == (403, True)
    assert Person(console, "the-reader", "wrong").got.status == 429
    slowed = Person(console, "the-reader").got
    assert (slowed.status, 0 < int(slowed.headers["Retry-After"]) <= 61) == (429, True)
    assert Person(console, "the-editor").got.status == 303


def test_a_wrong_password_in_the_browsers_language(console: Console) -> None:
    for language, word in (("de", "Passwort ist falsch"), ("fr", "mot de passe est incorrect")):
        form = {"name": "nobody", "password": "x"}
        got = request(f"{console.url}/login", "POST", {"Accept-Language": language}, form)
        assert word in got.text
        assert f'<html lang="{language}">' in got.text


def test_a_session_that_is_not_used_ends() -> None:
    """After the idle time; looking whether it is there does not use it."""
    now, host = [0.0], "a:1"
    guard = Guard("", clock=lambda: now[0], session_secs=100, idle_secs=10)
    cookies = {cookie_name(host): guard.begin_session(host)}
    now[0] = 9
    assert guard.session(cookies, host, use=False)
    assert guard.session(cookies, host)
    now[0] = 18
    assert guard.session(cookies, host, use=False)
    now[0] = 19
    assert guard.session(cookies, host) is None


def test_a_person_has_few_sessions() -> None:
    """One more ends the oldest of this person, and no other's."""
    guard, host = Guard(""), "a:1"
    other = {cookie_name(host): guard.begin_session(host, Identity("bob"))}
    own = [{cookie_name(host): guard.begin_session(host, Identity("anna"))} for _ in range(21)]
    assert guard.session(own[0], host) is None
    assert guard.session(own[1], host)
    assert guard.session(other, host)


def test_users_that_cannot_be(tmp_path: Path) -> None:
    users = Users(tmp_path)
    users.add("anna", "reader", "")
    for name, role, password in (
        ("", "reader", PASSWORD), ("a b", "reader", PASSWORD), ("ANNA", "reader", PASSWORD),
        ("bob", "king", PASSWORD), ("bob", "reader", "short"), ("operator", "reader", PASSWORD),
        ("bob", "reader", "x" * 201), ("long-enough", "reader", "LONG-enough"),
        ("bob", "reader", "\ud800" * 12),
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            users.add(name, role, password)
    assert [one.name for one in users.all()] == ["anna"]
    assert not users.is_right("anna", "")  # has no password
    assert (tmp_path / "users.json").stat().st_mode & 0o77 == 0
    (tmp_path / "users.json").write_text("[{")
    with pytest.raises(ConfigError, match="cannot be read"):
        users.all()


def test_a_token_has_at_most_its_users_rights(tmp_path: Path) -> None:
    """Also when the user's role changes later."""
    store = TokenStore(tmp_path)
    store.users.add("ada", "operator", "")
    store.users.add("anna", "operator", "")
    tokens = {scope: store.make(scope, scope, user="anna") for scope in ("operate", "read", "push")}
    for role, wanted in (
        ("operator", ("operate", "read", "push")), ("editor", ("edit", "search", "push")),
        ("reader", ("search", "search", None)),
    ):  # fmt: skip
        store.users.set_role("anna", role)
        found = [store.find(token) for token in tokens.values()]
        assert tuple(one and one.scope for one in found) == wanted
        assert {one.name for one in found if one} == {"anna"}
    with pytest.raises(ConfigError, match="expected one of search"):
        store.make("more", "edit", user="anna")
    assert narrowed("search", "editor") == "search"


def test_an_unknown_name_takes_as_long_as_a_known_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One hash is computed for each."""
    users = Users(tmp_path)
    users.add("anna", "reader", PASSWORD)
    checked: list[str] = []

    class Counting:
        def verify(self, digest: str, password: str) -> bool:
            checked.append(digest)
            return True

    monkeypatch.setattr(users_module, "_HASHER", Counting())
    assert users.is_right("anna", "x")
    assert not users.is_right("nobody", "x")
    assert len(checked) == 2


@pytest.mark.parametrize("name", ["", " a", "a\u202eb", "a\x00", "a\nb", "\u200bb", "x" * 257])
def test_names_that_could_pass_for_others(name: str) -> None:
    with pytest.raises(ConfigError):
        checked_name(name, "user")


def test_names_of_companies() -> None:
    """A name has backslashes, colons and letters of all alphabets."""
    for name in ("CORP\\anna", "a:b", "Ännchen Müller", "анна", "أحمد"):
        assert checked_name(name, "user") == name
    assert checked_name("A\u0308", "user") == "Ä"
    with pytest.raises(ConfigError, match=r"in 10,000 groups: expected at most 2,000"):
        checked_groups([f"g{number}" for number in range(10_000)], "anna")
    assert len(checked_groups([f"g{number}" for number in range(MAX_PRINCIPALS)], "a")) == 2_000


@pytest.mark.parametrize(
    ("number", "told", "ended"),
    [
        ("1", ("1", "anna"), True), ("1", ("2", "anna"), False), ("1", ("", "anna"), True),
        ("", ("2", "anna"), True), ("", ("2", ""), False), ("", ("2", "ben"), False),
    ],
)  # fmt: skip
def test_the_sessions_that_a_logout_of_the_provider_ends(
    number: str, told: tuple[str, str], ended: bool
) -> None:
    """A provider may tell the number of its session at the logout alone."""
    assert _is_ended(Provider(number, "anna", "token"), *told) is ended


def test_the_cookie_of_a_sign_in_is_taken_back(console: Console) -> None:
    """Browsers take back a cookie with the prefix __Host- only by one that is secure."""

    class Corp:
        name = "Corp"

        async def finish(self, query: object, cookie: str, origin: str) -> SignedIn:
            session = Provider("1", "2", "token")
            return SignedIn("anna", frozenset({"user:anna"}), session, "/account")

    console.people.provider = Corp()
    url, secure = urlsplit(console.url), {"X-Forwarded-Proto": "https"}
    with closing(HTTPConnection(url.hostname or "", url.port)) as connection:
        connection.request("GET", "/oidc/callback?state=x", headers=secure)
        cookies = connection.getresponse().headers.get_all("Set-Cookie") or []
    [taken] = [one for one in cookies if "_oidc=" in one]
    assert taken.startswith("__Host-")
    assert {"Max-Age=0", "Path=/", "Secure"} <= {*taken.split("; ")}
