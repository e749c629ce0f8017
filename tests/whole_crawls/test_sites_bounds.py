"""LARM_SITES_FILE in whole crawls: proxies, and that no other host learns anything."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import records, scrapy
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import Reply, ScriptedServer
from tests.support.sites_crawling import GIVE_UP, PAGES, crawl_with

Start = Callable[..., ScriptedServer]


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
    port = scripted_server({"*": "<title>port</title>"})
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
    ran = crawl_with(sites, server.url(), tmp_path, restrict=".*", LOG_LEVEL="DEBUG")
    word = "Basic " + base64.b64encode(b"joe:word").decode()
    assert {request.headers.get("authorization") for request in server.log} == {word}
    assert {request.path for request in other.log} == {
        "/robots.txt", "/robots-moved", "/link", "/redirected",
    }  # fmt: skip
    assert {request.path for request in port.log} == {"/robots.txt", "/redirected"}
    assert {request.path for request in tls.log} == {"/robots.txt", "/"}
    for request in (*other.log, *port.log, *tls.log):
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
            "runspider", "foreign.py", "-s", "LOG_LEVEL=DEBUG", *settings, cwd=tmp_path, timeout=60
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
