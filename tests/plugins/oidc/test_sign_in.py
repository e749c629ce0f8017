"""Signing in at the server by a real provider of OpenID Connect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.server.test_app import Console
from tests.support.servers.glewlwyd import Glewlwyd
from tests.support.servers.oidc import SECRET, Browser, OidcServer, Page
from tests.support.web.serving import request

ROLES = {"operator": ["group:admins"], "editor": ["user:ed@corp"]}
pytestmark = pytest.mark.acceptance


@pytest.fixture
def console(oidc: OidcServer, tmp_path: Path) -> Iterator[Console]:
    oidc.secret_in(tmp_path)
    with Console(tmp_path, oidc=oidc.settings, roles=ROLES) as running:
        yield running


class Person:
    """A browser at our server and at the provider."""

    def __init__(self, console: Console, oidc: OidcServer) -> None:
        self.here, self.there = Browser(console.url), Browser(oidc.issuer)

    def get(self, path: str) -> Page:
        return self.here.ask(path)

    def sign_in(self, name: str) -> Page:
        begun = self.get("/oidc/start?next=/account")
        return self.get(self.there.sign_in(begun.location, name))


def test_who_signs_in(console: Console, oidc: OidcServer) -> None:
    """Name, groups and role come from the provider; the session is at the wanted page."""
    page = request(f"{console.url}/login", headers={"Accept-Language": "de"}).text
    assert "Mit Corp anmelden" in page
    anna = Person(console, oidc)
    begun = anna.get("/oidc/start?next=/account")
    sent = parse_qs(urlsplit(begun.location).query)
    assert sent["code_challenge_method"] == ["S256"]
    got = anna.get(anna.there.sign_in(begun.location, "anna"))
    assert (got.status, 'content="0;url=/account"' in got.text) == (200, True)
    account = anna.get("/account").text
    for principal in ("user:anna@corp", "group:hr", "group:staff", "authenticated", "everyone"):
        assert f"<li>{principal}</li>" in account
    assert anna.get("/manage/wiki").status == 403
    for name, path, status in (("root", "/users", 200), ("ed", "/new", 200), ("ed", "/users", 403)):
        person = Person(console, oidc)
        person.sign_in(name)
        assert person.get(path).status == status, (name, path)
    log = (console.machine.home / "audit.log").read_text()
    assert "\tanna@corp\t127.0.0.1\tsign in\tCorp\tdone" in log
    assert SECRET not in log


def test_what_is_refused(
    console: Console, oidc: OidcServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Another browser, a state twice, a code that is made up, 10,000 groups."""
    anna, eve = Person(console, oidc), Person(console, oidc)
    begun = anna.get("/oidc/start")
    back = anna.there.sign_in(begun.location, "anna")
    assert "started in another browser" in eve.get(back).text
    assert eve.get("/account").status == 303
    assert anna.get(back).status == 200  # the other browser has used nothing up
    assert anna.get(back).status == 400
    begun = anna.get("/oidc/start")
    back = anna.there.sign_in(begun.location, "anna")
    got = anna.get(re.sub(r"code=[^&]+", "code=made-up", back))
    assert (got.status, "invalid_grant" in got.text) == (403, True)
    many = Person(console, oidc).sign_in("many")
    assert "let the provider name only the groups" in many.text
    assert many.status == 403
    assert anna.get("/oidc/callback?error=access_denied&state=x").status == 400
    code = parse_qs(urlsplit(back).query)["code"][0]
    assert code not in caplog.text
    assert SECRET not in caplog.text


def test_new_keys_of_the_provider(console: Console, oidc: OidcServer) -> None:
    assert Person(console, oidc).sign_in("anna").status == 200
    oidc.control("rotate")
    console.people.provider._keys_at -= 11  # keys are fetched at most every 10 s
    assert Person(console, oidc).sign_in("anna").status == 200


def test_signing_out_ends_both_sessions(console: Console, oidc: OidcServer) -> None:
    """Here: the browser is led to the provider. There: its logout token ends the session here."""
    anna = Person(console, oidc)
    anna.sign_in("anna")
    found = re.search(r'name="csrf" value="([^"]+)"', anna.get("/account").text)
    assert found
    cookies = list(anna.here.cookies)
    got = anna.here.ask("/logout", {"csrf": found[1]})
    leads = re.search(r'content="0;url=([^"]+)"', got.text)
    assert leads
    assert leads[1].startswith(f"{oidc.issuer}/session/end?id_token_hint=")
    for cookie in cookies:
        anna.here.cookies.set_cookie(cookie)
    assert anna.get("/account").status == 303
    oidc.control(f"set?backchannel={quote(console.url + '/oidc/logout')}")
    console.people.provider._keys_at -= 11
    anna = Person(console, oidc)
    anna.sign_in("anna")
    other = Person(console, oidc)
    other.sign_in("root")
    assert anna.get("/account").status == 200
    page = anna.there.ask("/session/end").text
    form = dict(re.findall(r'name="(xsrf|logout)" value="([^"]+)"', page)) | {"logout": "yes"}
    anna.there.ask("/session/end/confirm", form)
    assert anna.get("/account").status == 303
    assert other.get("/account").status == 200
    assert anna.here.ask("/oidc/logout", {"logout_token": "a.b.c"}).status == 400
    assert (
        "\tCorp\t127.0.0.1\tsign out\t1 sessions\tdone"
        in (console.machine.home / "audit.log").read_text()
    )


def test_a_provider_that_is_away(tmp_path: Path) -> None:
    """One line, in the language of the browser; local users still sign in."""
    with OidcServer() as oidc:
        oidc.secret_in(tmp_path)
        with Console(tmp_path, oidc=oidc.settings) as console:
            console.users.add("ada", "operator", "correct horse")
            oidc.__exit__(None, None, None)
            got = request(f"{console.url}/oidc/start", headers={"Accept-Language": "fr"})
            assert got.status == 503
            assert "Corp est injoignable" in got.text
            form = {"name": "ada", "password": "correct horse"}
            assert request(f"{console.url}/login", "POST", form=form).status == 303


def test_a_provider_of_another_make(oidc: OidcServer, tmp_path: Path) -> None:
    """Glewlwyd: the sign-in, its claims, and a code that is used twice."""
    oidc.secret_in(tmp_path)
    with Glewlwyd() as other, Console(tmp_path, oidc=other.settings) as console:
        other.register(f"{console.url}/oidc/callback")
        browser = Browser(console.url)
        back = other.sign_in(browser.ask("/oidc/start?next=/account").location)
        got = browser.ask(back)
        assert (got.status, 'content="0;url=/account"' in got.text) == (200, True), got.text
        account = browser.ask("/account").text
        for principal in ("user:anna@corp", "group:hr", "group:staff"):
            assert f"<li>{principal}</li>" in account
        assert browser.ask(back).status == 400
