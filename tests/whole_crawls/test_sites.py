"""LARM_SITES_FILE in whole crawls, against real servers: what each host needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import records, scrapy
from tests.support.servers.certificate import Authority
from tests.support.servers.digest import DigestGuard
from tests.support.servers.kerberos import REALM, KerberosSite
from tests.support.servers.nginx import Nginx
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.sites_crawling import ALL, GIVE_UP, crawl_with, folder_with_pages, stored

Start = Callable[..., ScriptedServer]


def test_basic(nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    """robots.txt is asked for with the password too: all of the host is behind it."""
    (tmp_path / "htpasswd").write_text("joe:{PLAIN}word\n")
    root = folder_with_pages(tmp_path / "site")
    inside = f'root "{root}"; auth_basic "x"; auth_basic_user_file "{tmp_path}/htpasswd";'
    server = nginx({"127.31.0.1": inside})
    rule = f'[[site]]\nhosts = "http://127.31.0.1:{server.port}"\nauth = "basic"\nuser = "joe"\n'
    ran = crawl_with(f'{rule}password = "word"', server.url(), tmp_path)
    assert ran.status == 0
    assert stored(tmp_path) == ALL
    assert {request.status for request in server.requests(at_least=4)} == {200}


def test_a_wrong_password_is_a_page_with_status_401(scripted_server: Start, tmp_path: Path) -> None:
    """Nothing is tried again: it would be as wrong."""
    server = scripted_server({"*": Reply(401, {"WWW-Authenticate": "Basic realm=x"}, b"no")})
    rule = f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\nauth = "basic"\nuser = "joe"\n'
    crawl_with(f'{rule}password = "word"', server.url(), tmp_path)
    assert stored(tmp_path) == {"/": "401"}
    assert [request.path for request in server.log] == ["/robots.txt", "/"]


def test_digest_costs_one_more_request_a_nonce(scripted_server: Start, tmp_path: Path) -> None:
    """And not one a page: handles of a host keep what the server has told them."""
    guard = DigestGuard("joe", "word")
    pages = {f"/{number}": f"<title>{number}</title>" for number in range(30)}
    pages["/"] = "<title>start</title>" + "".join(f"<a href={path}>x</a>" for path in pages)
    routes = {path: guard.protect(text.encode()) for path, text in pages.items()}
    server = scripted_server(routes)
    rule = f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\nauth = "digest"\nuser = "joe"\n'
    crawl_with(
        f'{rule}password = "word"', server.url(), tmp_path, CONCURRENT_REQUESTS_PER_DOMAIN="1"
    )
    assert len(stored(tmp_path)) == 31
    assert set(stored(tmp_path).values()) == {"start", *map(str, range(30))}
    assert guard.accepted == 31
    assert guard.challenged == 1


def test_negotiate(kerberos: KerberosSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ticket in the crawler's cache; a crawl without one stores 401s."""
    rule = f'[[site]]\nhosts = "http://localhost:{kerberos.port}"\nauth = "negotiate"\n'
    for environment, expected in (
        (kerberos.stranger, {"/index.html": "401"}),
        (kerberos.client, {"/index.html": "", "/next.html": ""}),
    ):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        crawl_with(rule, kerberos.url("/index.html"), tmp_path, fresh="yes,yes")
        assert stored(tmp_path) == expected
    assert {user for status, user, *_ in kerberos.requests(served=1) if status == 200} == {
        f"crawler@{REALM}"
    }


def test_client_certificate_and_own_ca(nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    """Two hosts, two authorities: each is verified by its own, and only one is shown ours."""
    ours, theirs = Authority(tmp_path), Authority(tmp_path, "their authority")
    root = folder_with_pages(tmp_path / "site")
    (root / "index.html").write_text("<title>start</title>")
    blocks = {}
    for address, authority in (("127.31.0.1", ours), ("127.31.0.2", theirs)):
        certificate, key = authority.issue(address)
        blocks[address] = (
            f'root "{root}"; ssl_certificate "{certificate}"; ssl_certificate_key "{key}";'
            f' ssl_client_certificate "{ours.ca}"; ssl_verify_client optional_no_ca;'
            " location = /who { default_type text/html;"
            ' return 200 "<title>$ssl_client_s_dn</title>"; }'
        )
    server = nginx(blocks, tls=blocks)
    mine, mine_key = ours.issue("crawler", "pass phrase")
    sites = f"""
        [[site]]
        hosts = "127.31.0.1:*"
        ca_file = "{ours.ca}"
        client_cert = "{mine}"
        client_key = "{mine_key}"
        client_key_password = "pass phrase"

        [[site]]
        hosts = "127.31.0.2:*"
        ca_file = "{theirs.ca}"
        """
    start = f"{server.url('127.31.0.1', '/who')} {server.url('127.31.0.2', '/who')}"
    crawl_with(sites, start, tmp_path)
    titles = {
        record["url"].split(":")[1]: record["title"]
        for record in records(tmp_path / "crawl" / "store.log")
    }
    assert titles == {"//127.31.0.1": "CN=crawler", "//127.31.0.2": ""}


def test_verify_false_is_for_one_host(scripted_server: Start, tmp_path: Path) -> None:
    """And is said in the log."""
    one = scripted_server({"/": "<title>one</title>"}, "127.31.0.1", tls=True)
    two = scripted_server({"/": "<title>two</title>"}, "127.31.0.2", tls=True)
    sites = f'[[site]]\nhosts = "127.31.0.1:{one.port}"\nverify = false'
    ran = crawl_with(sites, f"{one.url()} {two.url()}", tmp_path, **GIVE_UP)
    assert stored(tmp_path) == {"/": "one"}
    assert f"(127.31.0.1:{one.port}): verify = false" in ran.err
    assert two.log == []


def test_a_bad_file_ends_the_crawl_before_it_begins(tmp_path: Path) -> None:
    """With one line that says what is wrong, and no directory."""
    ran = crawl_with('[[site]]\nhosts = "h"\nauth = "basic"', "http://127.0.0.1:1/", tmp_path)
    assert ran.status == 2
    assert "sites.toml [[site]] 1 (h): auth = 'basic' goes with user and password" in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "crawl").exists()


def test_explain_names_the_tables_that_apply(scripted_server: Start, tmp_path: Path) -> None:
    """Without what is secret in them."""

    def answer(request: Request) -> Reply:
        return Reply(headers={"Content-Type": "text/html"}, body=b"<title>x</title>")

    server = scripted_server({"*": answer})
    sites = f"""
        [[site]]
        hosts = "http://127.0.0.1:{server.port}"
        auth = "basic"
        user = "jonas"
        password = "canary-7d1f"

        [[site]]
        hosts = "127.*"
        proxy = ""
        """
    crawl_with(sites, server.url(), tmp_path)
    ran = scrapy("explain", server.url(), cwd=tmp_path)
    lines = [line for line in ran.out.splitlines() if line.startswith("site ")]
    assert lines == [
        f"site         {tmp_path}/sites.toml [[site]] 1 (http://127.0.0.1:{server.port})",
        "site         basic",
    ]
    assert "canary" not in ran.out + ran.err
    assert "jonas" not in ran.out + ran.err
    other = scrapy("explain", "--json", "http://127.0.0.9/", cwd=tmp_path)
    assert other.json["sites"] == [f"{tmp_path}/sites.toml [[site]] 2 (127.*)", "no proxy"]
    (tmp_path / "sites.toml").unlink()
    without = scrapy("explain", server.url(), cwd=tmp_path)
    assert without.status == 0
    assert f"site         {tmp_path}/sites.toml: No such file" in without.out


def test_scrapy_fetch_uses_the_file_too(scripted_server: Start, tmp_path: Path) -> None:
    """As shell, parse and view do."""
    guard = DigestGuard("joe", "word")
    server = scripted_server({"*": guard.protect(b"inside")})
    (tmp_path / "sites.toml").write_text(
        f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\nauth = "digest"\nuser = "joe"\n'
        'password = "word"'
    )
    ran = scrapy("fetch", "--nolog", server.url(), "-s", "LARM_SITES_FILE=sites.toml", cwd=tmp_path)
    assert ran.out.strip() == "inside"
