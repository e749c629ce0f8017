"""Signing in by a real slapd."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import ldap3
import msgspec
import pytest

from larmspider.errors import ConfigError, HttpError
from larmspider.plugins.ldap.directory import LdapDirectory
from larmspider.server.config.sign_in_settings import DISABLED, Ldap
from tests.server.test_app import Console
from tests.support.servers.slapd import ADMIN, GROUP_SID, MANY, PASSWORD, SID, SUFFIX, Slapd
from tests.support.web.serving import Got, request

pytestmark = pytest.mark.acceptance

ANNAS = {
    "user:anna", "uid:1007", "gid:100", f"sid:{SID}", "group:hr", "group:staff", "group:all",
    "group:round", "group:again", "group:devs", "gid:2001", "group:leavers",
}  # fmt: skip


@pytest.fixture(scope="module")
def slapd() -> Iterator[Slapd]:
    with Slapd() as server:
        yield server


def directory(slapd: Slapd, **changed: object) -> LdapDirectory:
    settings = msgspec.convert(slapd.settings | changed, Ldap)
    settings.check()
    return LdapDirectory(settings, PASSWORD)


def test_a_person_with_groups_of_groups(slapd: Slapd) -> None:
    """By ldaps, by StartTLS; a circle of groups ends. The name is the directory's."""
    started = f"ldap://127.0.0.1:{slapd.port}"
    for changed in ({}, {"url": started}, {"url": started, "start_tls": False}):
        found = directory(slapd, **changed).check("ANNA", "secret of 0")
        assert found == ("anna", ANNAS), changed
    none = directory(slapd, nested="none").look_up("anna")
    assert none is not None
    assert none[1] == ANNAS - {"group:staff", "group:all", "group:again"}
    bob = directory(slapd).look_up("bob")
    assert bob is not None
    assert "group:Über, \\ uns" in bob[1]


def test_sids_of_active_directory(slapd: Slapd) -> None:
    """tokenGroups, which the server only names for the person itself."""
    found = directory(slapd, nested="walk")
    found._is_active_directory = True
    assert found.look_up("anna") == ("anna", ANNAS | {f"sid:{GROUP_SID}"})


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("anna", "wrong"), ("anna", ""), ("", "secret of 0"), ("nobody", "secret of 0"),
        ("*", "secret of 0"), ("ann*", "secret of 0"), ("anna)(objectClass=*", "secret of 0"),
        ("anna\0", "secret of 0"), ("\\61nna", "secret of 0"), ("x" * 300, "secret of 0"),
        ("eve*)(uid=*", "secret of 0"), ("\ud800", "secret of 0"), ("anna", "\ud800"),
        ("anna", "a\x07b"),
    ],
)  # fmt: skip
def test_names_and_passwords_that_are_wrong(slapd: Slapd, name: str, password: str) -> None:
    """None signs in: neither by a filter in the name, nor by a bind without a password."""
    assert directory(slapd).check(name, password) is None


def test_names_with_signs_of_filters(slapd: Slapd) -> None:
    for number, name in ((3, "eve*)(uid=*"), (4, "Zoë")):
        found = directory(slapd).check(name, f"secret of {number}")
        assert found is not None
        assert found[0] == name


def test_too_many_groups(slapd: Slapd) -> None:
    """They are refused, as leaving some out could show what one of them is denied."""
    assert MANY > 2_000
    with pytest.raises(HttpError, match=r"more than 2,000 groups") as raised:
        directory(slapd).check("many", "secret of 2")
    assert raised.value.status == 403


def test_a_referral_that_leads_to_itself(slapd: Slapd, caplog: pytest.LogCaptureFixture) -> None:
    """It is not followed: a search beside it finds, a search below it is refused at once."""
    with pytest.raises(HttpError) as raised:
        directory(slapd, base=f"ou=else,ou=people,{SUFFIX}").look_up("anna")
    assert raised.value.status == 503
    assert "name the server that it refers to" in caplog.text


@pytest.mark.parametrize("broken", ["closed", "silent", "certificate", "account", "starttls"])
def test_a_directory_that_cannot_be_used(
    slapd: Slapd, broken: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Each is one line, within the timeout, and shows no password."""
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        changed: dict[str, object] = {
            "closed": {"url": "ldaps://127.0.0.1:1"},
            "silent": {"url": f"ldaps://127.0.0.1:{port}", "seconds": 1},
            "certificate": {"ca_file": ""},
            "account": {"user": f"cn=nobody,{SUFFIX}"},
            "starttls": {"url": f"ldap://127.0.0.1:{port}", "seconds": 1},
        }[broken]
        with pytest.raises(HttpError) as raised:
            directory(slapd, **changed).check("anna", "secret of 0")
    assert raised.value.status == 503
    assert time.monotonic() - begun < 5
    assert len(caplog.records) == 1
    assert PASSWORD not in caplog.text
    assert "secret of" not in caplog.text


def test_at_the_server(slapd: Slapd, tmp_path: Path) -> None:
    """Name and password on the sign-in page; roles by groups; local users come first, and still
    sign in while the directory is stopped."""
    slapd.secret_in(tmp_path)
    settings = slapd.settings | {"seconds": 1}
    with Console(tmp_path, ldap=settings, roles={"operator": ["group:all"]}) as console:
        console.users.add("bob", "reader", "correct horse")

        def sign_in(name: str, password: str, **headers: str) -> int:
            form = {"name": name, "password": password}
            return request(f"{console.url}/login", "POST", headers, form).status

        form = {"name": "anna", "password": "secret of 0", "next": "/users"}
        got = request(f"{console.url}/login", "POST", {}, form)
        cookie = {"Cookie": got.headers["Set-Cookie"].partition(";")[0]}
        assert request(f"{console.url}/users", headers=cookie).status == 200
        assert "<li>group:staff</li>" in request(f"{console.url}/account", headers=cookie).text
        assert sign_in("anna", "") == 403
        assert sign_in("bob", "secret of 1") == 403  # the local bob has another password
        slapd.process.send_signal(signal.SIGSTOP)
        try:
            assert sign_in("anna", "secret of 0") == 503
            assert sign_in("bob", "correct horse") == 303
        finally:
            slapd.process.send_signal(signal.SIGCONT)
        log = (tmp_path / "audit.log").read_text()
        assert "\tanna\t127.0.0.1\tsign in\tby password\tdone" in log
        assert "\tbob\t127.0.0.1\tsign in\tby password\twrong" in log
        assert "secret of" not in log


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"url": "http://a"}, "expected a URL such as ldaps"),
        ({"url": "ldap://dc1.corp.example", "start_tls": False}, "unencrypted"),
        ({"filter": "(uid=*)"}, "expected a filter such as"),
        ({"user": "cn=a", "password": ""}, "expected the name of a file in secrets"),
        ({"ca_file": "/nowhere"}, "ldap.ca_file /nowhere"),
    ],
)
def test_settings_that_cannot_be(slapd: Slapd, changed: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        directory(slapd, **changed)


def test_a_disabled_account_and_root(slapd: Slapd) -> None:
    """Accounts of people who have left Active Directory are disabled and not deleted."""
    found = directory(slapd, filter=f"(&(uid={{name}})(!({DISABLED})))")
    person = f"cn=person 5,ou=people,{SUFFIX}"
    server = ldap3.Server("127.0.0.1", slapd.port, get_info=ldap3.NONE)
    with ldap3.Connection(server, ADMIN, PASSWORD) as connection:
        for account, numbers, known in (("512", "0", True), ("514", "1012", False)):
            change = {"userAccountControl": [(ldap3.MODIFY_REPLACE, [account])],
                      "uidNumber": [(ldap3.MODIFY_REPLACE, [numbers])]}  # fmt: skip
            assert connection.modify(person, change), connection.result
            leaver = found.look_up("leaver")
            assert (leaver is not None) is known
            assert leaver is None or not any(one.startswith("uid:") for one in leaver[1])


def test_a_person_who_leaves(slapd: Slapd, tmp_path: Path) -> None:
    """Out of a group, while the directory is stopped, and out of the directory: the session follows
    at the next look, and ends with the person."""
    slapd.secret_in(tmp_path)
    person = f"cn=person 5,ou=people,{SUFFIX}"
    with Console(tmp_path, ldap=slapd.settings | {"seconds": 1}) as console:
        form = {"name": "leaver", "password": "secret of 5"}
        got = request(f"{console.url}/login", "POST", {}, form)
        cookie = {"Cookie": got.headers["Set-Cookie"].partition(";")[0]}

        def account() -> Got:
            return request(f"{console.url}/account", headers=cookie)

        assert "group:leavers" in account().text
        server = ldap3.Server("127.0.0.1", slapd.port, get_info=ldap3.NONE)
        with ldap3.Connection(server, ADMIN, PASSWORD) as connection:
            change = {"member": [(ldap3.MODIFY_DELETE, [person])]}
            assert connection.modify(f"cn=leavers,ou=groups,{SUFFIX}", change)
            asyncio.run(console.people.renew(console.guard))
            assert "group:leavers" not in account().text
            slapd.process.send_signal(signal.SIGSTOP)
            try:
                asyncio.run(console.people.renew(console.guard))
            finally:
                slapd.process.send_signal(signal.SIGCONT)
            assert account().status == 200
            assert connection.delete(person)
        asyncio.run(console.people.renew(console.guard))
        assert account().status == 401
