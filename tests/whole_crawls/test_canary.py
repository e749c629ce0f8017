"""A secret of the sites file shows nowhere: no file of the crawl, no log, no message, no answer.

One whole crawl at DEBUG, whose hosts accept and refuse each secret, break off, and fail in TLS and
at their proxies; then everything that it wrote and said is searched, as the text and in Base64.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.support.crawling import Ran, crawl, scrapy
from tests.support.servers.certificate import Authority
from tests.support.servers.digest import DigestGuard
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import Raw, Reply, Request, ScriptedServer
from tests.support.web.serving import Served

CANARY = "canary-7d1f0b"
USER = "jonas-9c2e"
WHERE = ("password", "token", "cookie", "header", "digest", "key", "proxy")
SECRETS = {where: f"{CANARY}-{where}" for where in WHERE}

Start = Callable[..., ScriptedServer]
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
    """Of the dashboard."""
    yield from ("/", "/hosts", "/search?q=inside", "/control", "/stats.json", "/metrics")
    for seed in seeds:
        yield f"/url?u={quote(seed, '')}"
        parts = urlsplit(seed)
        yield f"/hosts/{parts.hostname}:{parts.port}"


@pytest.mark.long
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
