"""LARM_SITES_FILE in whole crawls, against real servers: what each host needs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.support.crawling import (
    ALL,
    GIVE_UP,
    PAGES,
    Ran,
    crawl,
    crawl_with,
    folder_with_pages,
    records,
    scrapy,
    stored,
)
from tests.support.servers.certificate import Authority
from tests.support.servers.kerberos import REALM, KerberosSite
from tests.support.servers.nginx import Nginx
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import DigestGuard, Raw, Reply, Request, ScriptedServer
from tests.support.web.serving import Served

Start = Callable[..., ScriptedServer]


def test_basic(nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    """robots.txt is fetched with the password too: the whole host is behind it."""
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


# LARM_SITES_FILE in whole crawls: proxies, and that no other host learns anything.


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_proxy(scripted_server: Start, tmp_path: Path, scheme: str) -> None:
    """For names that only it can resolve; the other host is asked directly."""
    inside = scripted_server(PAGES | {"/": PAGES["/index.html"]})
    direct = scripted_server({"/": "<title>direct</title>"}, "127.31.0.1")
    with ProxyServer("joe", "gate", names={"wiki.inside.example": "127.0.0.1"}) as proxy:
        sites = f"""
            [[site]]
            hosts = "*.inside.example:*"
            proxy = "{proxy.url(scheme)}"
            proxy_user = "joe"
            proxy_password = "gate"
            """
        start = f"http://wiki.inside.example:{inside.port}/ {direct.url('/')}"
        crawl_with(sites, start, tmp_path)
        titles = {record["title"] for record in records(tmp_path / "crawl" / "store.log")}
        assert titles == {"start", "a", "b", "direct"}
        assert len(inside.log) == 4
        assert all("127.31.0.1" not in target for _, target in proxy.log)
        assert all("proxy-authorization" not in request.headers for request in inside.log)


def test_redirects_carry_nothing_to_the_next_host(scripted_server: Start, tmp_path: Path) -> None:
    """Header, cookie and password go to the origin they are bound to: not to another port, host or
    scheme that it redirects or links to, and neither does what stands before an @ there."""
    other = scripted_server({"*": "<title>other</title>"}, "127.31.0.2")
    port = scripted_server({"*": "<title>port</title>"})  # another server of the same host
    tls = scripted_server({"*": "<title>tls</title>"}, tls=True)
    links = (
        f"<a href={other.url('/link').replace('//', '//eve:evil@')}>x</a><a href={tls.url()}>y</a>"
    )
    server = scripted_server(
        {
            "/": f"{links}<a href=/a>a</a><a href=/b>b</a>",
            "/robots.txt": Reply(302, {"Location": other.url("/robots-moved")}),
            "/a": Reply(302, {"Location": other.url("/redirected").replace("//", "//eve:evil@")}),
            "/b": Reply(302, {"Location": port.url("/redirected")}),
        }
    )
    port.routes["/robots.txt"] = Reply(302, {"Location": server.url("/robots-of-port")})
    sites = f"""
        [[site]]
        hosts = "http://127.0.0.1:{server.port}"
        auth = "basic"
        user = "joe"
        password = "word"
        cookies = {{ sid = "1" }}
        headers = {{ X-Key = "2" }}

        [[site]]
        hosts = "127.0.0.1:{tls.port}"
        verify = false
        """
    seeds = f"{other.url()} {server.url()}"
    ran = crawl_with(sites, seeds, tmp_path, restrict=".*", LOG_LEVEL="DEBUG")
    word = "Basic " + base64.b64encode(b"joe:word").decode()
    named_by_port = server.requests("/robots-of-port")
    assert len(named_by_port) == 1
    own = [request for request in server.log if request not in named_by_port]
    assert {request.headers.get("authorization") for request in own} == {word}
    assert {request.path for request in other.log} == {
        "/", "/robots.txt", "/robots-moved", "/link", "/redirected",
    }  # fmt: skip
    assert {request.path for request in port.log} == {"/robots.txt", "/redirected"}
    assert {request.path for request in tls.log} == {"/robots.txt", "/"}
    for request in (*other.log, *port.log, *tls.log, *named_by_port):
        assert not {"authorization", "cookie", "x-key"} & set(request.headers), request
    assert "eve:evil" not in ran.err + (tmp_path / "crawl" / "links.log").read_text()


FOREIGN = """
import scrapy

class Foreign(scrapy.Spider):
    name = "foreign"
    start_urls = ["{url}"]

    def parse(self, response):
        yield scrapy.Request("{url}next", self.after)

    def after(self, response):
        yield scrapy.Request("{plain}proxied", self.done, meta={{"proxy": "{proxy}"}})

    def done(self, response):
        pass
"""


def test_requests_of_a_foreign_spider(scripted_server: Start, tmp_path: Path) -> None:
    """User and password in a URL are not sent and in no log. A proxy that a Request names is asked
    instead of the site's, without the password of that one."""
    server = scripted_server({"*": "ok"})
    with ProxyServer("joe", "gate") as proxy, ProxyServer() as own:
        url = server.url().replace("//", "//eve:evil@")
        spider = FOREIGN.format(url=url, plain=server.url(), proxy=own.url("http"))
        (tmp_path / "foreign.py").write_text(spider)
        (tmp_path / "sites.toml").write_text(
            f'[[site]]\nhosts = "127.0.0.1:{server.port}"\nproxy = "{proxy.url("http")}"\n'
            'proxy_user = "joe"\nproxy_password = "gate"'
        )
        settings = ["-s", "DOWNLOAD_DELAY=0", "-s", "LARM_SITES_FILE=sites.toml", "-s",
                    "LARM_FILTER_LOGS=yes"]  # fmt: skip
        ran = scrapy(
            "runspider", "foreign.py", "-s", "LOG_LEVEL=DEBUG", *settings, cwd=tmp_path, timeout=120
        )
        assert [target for _, target in own.log] == [server.url("/proxied")]
        assert "proxy-authorization" not in own.heads[0].lower()
        assert {target for _, target in proxy.log} == {
            server.url(path) for path in ("/robots.txt", "/", "/next")
        }
    assert [request for request in server.log if "authorization" in request.headers] == []
    assert "eve:" not in ran.err
    for path in (tmp_path / "crawl").rglob("*"):
        assert path.is_dir() or b"eve:evil" not in path.read_bytes(), path


def test_a_proxy_is_not_asked_for_denied_addresses(scripted_server: Start, tmp_path: Path) -> None:
    """It would connect where the crawler itself must not (LARM_DENY_ADDRESSES)."""
    with ProxyServer(names={"169.254.169.254": "127.0.0.1"}) as proxy:
        server = scripted_server({"*": "metadata"})
        sites = f'[[site]]\nhosts = "*:*"\nproxy = "{proxy.url("http")}"'
        crawl_with(sites, f"http://169.254.169.254:{server.port}/", tmp_path, **GIVE_UP)
        assert proxy.log == []
    assert server.log == []


def test_a_proxy_that_opens_no_tunnel_is_named(scripted_server: Start, tmp_path: Path) -> None:
    """Behind a tunnel there is no page: the proxy's 407 is the reason why the fetch failed."""
    server = scripted_server({"*": "inside"}, tls=True)
    with ProxyServer("joe", "gate") as proxy:
        sites = (
            f'[[site]]\nhosts = "127.0.0.1:*"\nverify = false\nproxy = "{proxy.url("http")}"\n'
            'proxy_user = "joe"\nproxy_password = "wrong"'
        )
        settings = GIVE_UP | {"ROBOTSTXT_OBEY": "False"}
        crawl_with(sites, server.url(), tmp_path, **settings)
        assert ("CONNECT", f"127.0.0.1:{server.port}") in proxy.log
    (failed,) = records(tmp_path / "crawl" / "fetch.log")
    assert failed["result"] == "refused"
    assert "407" in failed["message"]
    assert server.log == []


# A secret of the sites file shows nowhere: no file of the crawl, no log, no message, no answer.


CANARY = "canary-7d1f0b"
USER = "jonas-9c2e"
WHERE = ("password", "token", "cookie", "header", "digest", "key", "proxy")
SECRETS = {where: f"{CANARY}-{where}" for where in WHERE}

PAGE = "<title>inside</title><a href=/wrong>w</a><a href=/broken>b</a><a href=/away>r</a>"


def spellings() -> Iterator[bytes]:
    """In what forms a secret could show."""
    yield CANARY.encode()
    yield USER.encode()
    for secret in SECRETS.values():
        yield base64.b64encode(secret.encode()).rstrip(b"=")[:-1]
        yield base64.b64encode(f"{USER}:{secret}".encode()).rstrip(b"=")[:-1]
        yield quote(secret.replace("-", "\n")).encode()


def guarded(name: str, value: str) -> dict[str, object]:
    """Routes of a server that gives pages to who sends the header alone."""

    def answer(request: Request) -> Reply:
        known = request.headers.get(name) == value and request.path != "/wrong"
        if request.path == "/robots.txt":
            return Reply(404)
        if not known:
            return Reply(401, {"WWW-Authenticate": "Basic realm=x"}, b"who?")
        if request.path == "/away":
            return Reply(302, {"Location": "http://127.33.0.99:1/stolen"})
        return Reply(headers={"Content-Type": "text/html"}, body=PAGE.encode())

    return {"*": answer, "/broken": Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx")}


@pytest.fixture
def crawled(scripted_server: Start, tmp_path: Path) -> Iterator[tuple[Path, Ran, list[str]]]:
    """The directory, the crawl, and its seeds."""
    basic = "Basic " + base64.b64encode(f"{USER}:{SECRETS['password']}".encode()).decode()
    accepted = {
        "127.33.0.1": ("authorization", basic),
        "127.33.0.2": ("authorization", f"Bearer {SECRETS['token']}"),
        "127.33.0.3": ("cookie", f"sid={SECRETS['cookie']}"),
        "127.33.0.4": ("x-key", SECRETS["header"]),
    }
    servers = {
        host: scripted_server(guarded(*what), host)  # type: ignore[arg-type]
        for host, what in accepted.items()
    }
    guard = DigestGuard(USER, SECRETS["digest"])
    servers["127.33.0.5"] = scripted_server({"*": guard.protect(b"inside")}, "127.33.0.5")
    servers["127.33.0.6"] = scripted_server({"*": "tls"}, "127.33.0.6", tls=True)
    servers["127.33.0.7"] = scripted_server({"*": "tls"}, "127.33.0.7", tls=True)
    servers["127.33.0.8"] = scripted_server({"*": "by proxy"}, "127.33.0.8")
    servers["127.33.0.9"] = scripted_server({"*": "by no proxy"}, "127.33.0.9")
    certificate, key = Authority(tmp_path).issue("crawler", SECRETS["key"])
    with ProxyServer(USER, SECRETS["proxy"]) as proxy, ProxyServer(USER, "other") as unkind:
        basic_keys = f'auth = "basic"\nuser = "{USER}"\npassword = "{SECRETS["password"]}"'
        client = (
            f'client_cert = "{certificate}"\nclient_key = "{key}"\n'
            f'client_key_password = "{SECRETS["key"]}"\n'
            f'headers = {{ X-Key = "{SECRETS["header"]}" }}'
        )
        to_proxy = f'proxy_user = "{USER}"\nproxy_password = "{SECRETS["proxy"]}"'
        tables = {
            "127.33.0.1": basic_keys,
            "127.33.0.2": f'auth = "bearer"\ntoken = "{SECRETS["token"]}"',
            "127.33.0.3": f'cookies = {{ sid = "{SECRETS["cookie"]}" }}',
            "127.33.0.4": f'headers = {{ X-Key = "{SECRETS["header"]}" }}',
            "127.33.0.5": f'auth = "digest"\nuser = "{USER}"\npassword = "{SECRETS["digest"]}"',
            "127.33.0.6": f"{client}\nverify = false",
            "127.33.0.7": f'{client}\nproxy = "{unkind.url("http")}"\n{to_proxy}',
            "127.33.0.8": f'{basic_keys}\nproxy = "{proxy.url("socks5h")}"\n{to_proxy}',
            "127.33.0.9": f'{basic_keys}\nproxy = "{unkind.url("socks5")}"\n{to_proxy}',
        }
        text = ""
        for host, keys in tables.items():
            scheme = "https" if servers[host].tls else "http"
            text += f'[[site]]\nhosts = "{host}:*"\nscheme = "{scheme}"\n{keys}\n'
        (tmp_path / "sites.toml").write_text(text)
        seeds = [server.url() for server in servers.values()]
        (tmp_path / "crawls").mkdir()
        ran = crawl(
            " ".join(seeds),
            tmp_path / "crawls",
            LARM_SITES_FILE="../sites.toml",
            LOG_LEVEL="DEBUG",
            LARM_FILTER_LOGS="yes",
            LARM_RETRY_TIMES="1",
            LARM_HOST_MAX_FAILURES="2",
            LARM_HOST_MAX_PARKS="0",
            restrict=r"http.*127\.33\..*",
        )
        yield tmp_path / "crawls", ran, seeds


def pages(seeds: list[str]) -> Iterator[str]:
    """The paths of the dashboard."""
    yield from ("/", "/hosts", "/search?q=inside", "/control", "/stats.json", "/metrics")
    for seed in seeds:
        yield f"/url?u={quote(seed, '')}"
        parts = urlsplit(seed)
        yield f"/hosts/{parts.hostname}:{parts.port}"


def test_no_secret_shows_anywhere(crawled: tuple[Path, Ran, list[str]]) -> None:
    """And the crawl did use them all: what they open is stored, and what refuses them was asked."""
    folder, ran, seeds = crawled
    store = (folder / "crawl" / "store.log").read_text()
    for seed in seeds[:6] + seeds[7:8]:
        assert f"\t{seed}\t" in store, (seed, ran.err[-3000:])
    assert f"{seeds[0]}wrong\t" in store
    assert "Failed" in ran.err
    said = {"log": (ran.out + ran.err).encode()}
    for seed in seeds[5:8]:
        explained = scrapy("explain", seed, cwd=folder)
        said[f"explain {seed}"] = (explained.out + explained.err).encode()
    for command in ("hosts", "search"):
        arguments = ["inside"] if command == "search" else []
        answered = scrapy(command, *arguments, cwd=folder)
        said[command] = (answered.out + answered.err).encode()
    with Served(folder / "crawl") as served:
        for target in pages(seeds):
            got = served.get(target)
            assert got.status == 200, target
            said[target] = got.body
    for path in folder.rglob("*"):
        if path.is_file():
            said[str(path)] = path.read_bytes()
    assert len(said) > 20
    for name, data in said.items():
        for spelling in spellings():
            assert spelling not in data, (name, spelling)
