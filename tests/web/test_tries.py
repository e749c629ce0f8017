"""Wrong tokens: one limit for all ways to sign in; a signed-in user does not wait."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.web import tries as tries_module
from larmspider.web.auth import Guard, cookie_name
from larmspider.web.readers import Readers
from larmspider.web.server import Binding
from larmspider.web.tries import Tries, network_of
from tests.support.web.serving import TOKEN, Got, Served

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}
RIGHT = urlencode({"token": TOKEN})


def ask(
    site: Served, method: str, path: str, headers: Mapping[str, str] | None = None,
    body: str = "", source: str = "127.0.0.1",
) -> Got:  # fmt: skip
    """A request from one of the addresses of this machine."""
    host = urlsplit(site.url).netloc
    one = http.client.HTTPConnection(host, timeout=30, source_address=(source, 0))
    try:
        one.request(method, path, body or None, {**(FORM if body else {}), **(headers or {})})
        answer = one.getresponse()
        return Got(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        one.close()


def wrong(site: Served, way: str, number: int, source: str = "127.0.0.1") -> Got:
    if way == "form":
        return ask(site, "POST", "/login", {}, f"token={number}", source)
    if way == "script":
        return ask(site, "GET", "/hosts", {"Authorization": f"Bearer {number}"}, "", source)
    if way == "script that acts":
        headers = {"Authorization": f"Bearer {number}"}
        return ask(site, "POST", "/control/pause", headers, "a=b", source)
    name = cookie_name(urlsplit(site.url).netloc)
    return ask(site, "GET", "/hosts", {"Cookie": f"{name}=x{number}"}, "", source)


WAYS = ("form", "script", "script that acts", "cookie")


def guarded(per_address: int = 5, in_all: int = 200) -> Guard:
    return Guard(TOKEN, closed=True, tries=Tries(per_address, in_all))


def sign_in(site: Served, source: str = "127.0.0.1") -> dict[str, str]:
    got = ask(site, "POST", "/login", {}, RIGHT, source)
    assert got.status == 303
    return {"Cookie": got.headers["Set-Cookie"].partition(";")[0]}


@pytest.mark.parametrize("first", WAYS)
def test_all_ways_share_a_limit(served: Callable[..., Served], tmp_path: Path, first: str) -> None:
    """Then even the right token waits, from this address alone; a session does not."""
    site = served(tmp_path, guard=guarded())
    session = sign_in(site)
    assert {wrong(site, first, number).status for number in range(5)} <= {401, 403}
    for way in WAYS:
        got = wrong(site, way, 9)
        assert got.status == 429, way
        assert 0 < int(got.headers["Retry-After"]) <= 61
    assert ask(site, "POST", "/login", {}, RIGHT).status == 429
    assert ask(site, "GET", "/hosts", BEARER).status == 429
    assert ask(site, "GET", "/stats.json", session).status == 404, "there is no crawl"
    assert ask(site, "GET", "/stats.json", BEARER, source="127.0.0.9").status == 404
    assert ask(site, "GET", "/healthz").status != 429
    assert ask(site, "GET", "/login").status == 200, "nothing is tried there"


def test_two_hundred_wrong_sign_ins_hold_up_nobody(
    served: Callable[..., Served], tmp_path: Path
) -> None:
    """All at once, each in a connection that stays open."""
    site = served(tmp_path, guard=Guard(TOKEN, closed=True))
    session, address = sign_in(site), urlsplit(site.url)
    line = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-"
    line += b"urlencoded\r\nContent-Length: 9\r\n\r\ntoken=abc"
    opened = [socket.create_connection((address.hostname, address.port)) for _ in range(200)]
    try:
        for one in opened:
            one.sendall(line)
        begun = time.monotonic()
        assert ask(site, "GET", "/stats.json", session).status == 404
        assert ask(site, "GET", "/login").status == 200
        assert ask(site, "GET", "/stats.json", BEARER, source="127.0.0.9").status == 404
        assert time.monotonic() < begun + 5
    finally:
        for one in opened:
            one.close()


def test_forms_that_do_not_come_hold_up_nobody(
    served: Callable[..., Served], tmp_path: Path
) -> None:
    """200 connections whose bodies are awaited are no busy ones."""
    site = served(tmp_path, guard=Guard(TOKEN, closed=True))
    address = urlsplit(site.url)
    line = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-"
    line += b"urlencoded\r\nContent-Length: 9\r\n\r\ntoken"
    opened = [socket.create_connection((address.hostname, address.port)) for _ in range(200)]
    try:
        for one in opened:
            one.sendall(line)
        while len(site.site.connections) < 180:
            time.sleep(0.01)
        assert ask(site, "GET", "/stats.json", BEARER).status == 404
    finally:
        for one in opened:
            one.close()


def test_the_limit_in_all_locks_nobody_out(served: Callable[..., Served], tmp_path: Path) -> None:
    """Many addresses use it up: then each has one wrong token, and the right one is taken."""
    site = served(tmp_path, guard=guarded(per_address=5, in_all=6))
    session = sign_in(site, "127.0.0.8")
    for number in range(6):
        assert wrong(site, WAYS[number % 4], number, f"127.0.1.{number}").status in (401, 403)
    for number in range(6, 10):
        assert wrong(site, WAYS[number % 4], number, f"127.0.1.{number}").status == 429
    assert ask(site, "POST", "/login", {}, RIGHT, "127.0.1.7").status == 429
    assert ask(site, "GET", "/stats.json", session, source="127.0.1.7").status == 404
    assert ask(site, "GET", "/stats.json", BEARER, source="127.0.0.9").status == 404
    assert sign_in(site, "127.0.0.9")


def test_a_session_that_has_ended_is_taken_back(
    served: Callable[..., Served], tmp_path: Path
) -> None:
    """The browser then sends no more cookie that would be counted."""
    site = served(tmp_path, guard=guarded())
    session = sign_in(site)
    site.guard.end_sessions(lambda _: True)
    got = ask(site, "GET", "/hosts", session)
    name = session["Cookie"].partition("=")[0]
    assert got.headers["Set-Cookie"].startswith(f'{name}="";')
    assert "Max-Age=0" in got.headers["Set-Cookie"]


def test_what_needs_no_token_is_shown_all_the_same(
    served: Callable[..., Served], tmp_path: Path
) -> None:
    """A foreign token, which a proxy passes on with each request, counts once; the header of a
    trusted proxy distinguishes its clients."""
    guard = Guard(TOKEN, closed=True, open_paths=("/metrics",), tries=Tries(2))
    readers = Readers(proxies=(ip_network("127.0.0.0/30"),))
    site = served(tmp_path, guard=guard, readers=readers)
    for _ in range(5):
        assert ask(site, "GET", "/metrics", {"Authorization": "Bearer jwt"}).status == 200
    assert wrong(site, "script", 1).status == 401
    assert wrong(site, "script", 1).status == 429
    client = {"X-Forwarded-For": "10.0.0.9, 10.0.0.1"}
    assert ask(site, "GET", "/stats.json", {**client, **BEARER}).status == 404
    for number in (1, 2, 3):
        headers = {"X-Forwarded-For": f"10.0.0.{number}, 10.0.0.1", "Authorization": "Bearer x"}
        assert ask(site, "GET", "/hosts", headers).status == (429 if number == 3 else 401)
    assert ask(site, "GET", "/hosts", {**headers, "X-Forwarded-For": "10.0.0.2"}).status == 401
    for _ in range(3):
        spoofed = ask(site, "GET", "/hosts", headers, source="127.0.0.9")
        headers["X-Forwarded-For"] += "0"
    assert spoofed.status == 429


@pytest.mark.parametrize(
    ("remote", "forwarded", "client"),
    [
        ("127.0.0.1", "10.0.0.7", "10.0.0.7"),
        ("127.0.0.1", "1.1.1.1, 10.0.0.7,127.0.0.2", "10.0.0.7"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "10.0.0.7, unknown", "127.0.0.1"),
        ("127.0.0.9", "10.0.0.7", "127.0.0.9"),
        ("::ffff:127.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("", "10.0.0.7", ""),
    ],
)
def test_the_address_of_a_client(remote: str, forwarded: str, client: str) -> None:
    assert Readers(proxies=(ip_network("127.0.0.0/30"),)).client(remote, forwarded) == client


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_addresses_that_count_as_one(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same


def test_a_count_ends_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    tries = Tries(2, clock=lambda: now[0])
    assert [tries.failed("a", "x") for _ in range(3)] == [0.0, 0.0, 60.0]
    now[0] = 59.0
    assert tries.wait("a") == 1.0
    now[0] = 60.0
    assert tries.wait("a") == 0.0
    monkeypatch.setattr(tries_module, "MAX_ADDRESSES", 50)
    for number in range(200):
        tries.failed(f"10.0.0.{number}", "x")
    assert len(tries) == 50


def test_commands_of_the_crawls_user_do_not_wait(
    served: Callable[..., Served], tmp_path: Path
) -> None:
    """They send a key of the server's own, which cannot be guessed."""
    guard = guarded()
    site = served(tmp_path, guard=guard)
    for number in range(9):
        wrong(site, "form", number)
    got = ask(site, "GET", "/stats.json", {"Authorization": f"Bearer {guard.key}"})
    assert got.status == 404


@pytest.mark.parametrize("name", ["LARM_WEB_WRONG_TOKENS", "LARM_WEB_WRONG_TOKENS_IN_ALL"])
@pytest.mark.parametrize("value", ["many", "0", "-1", "1.5", ""])
def test_a_limit_that_is_no_number_is_refused(name: str, value: str) -> None:
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    settings.set(name, value)
    with pytest.raises(ConfigError, match=f"{name}={value}: expected an integer >= 1"):
        Binding.from_settings(settings)
