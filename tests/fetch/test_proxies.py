"""meta["proxy"]: plain, through a tunnel, over SOCKS; its password goes to it and no further."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware

from larmspider.fetch.errors import BadUrl, kind_of, message_of
from larmspider.fetch.proxies import ProxyUrl, read_proxy
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import ScriptedServer

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]
CANARY = base64.b64encode(b"joe:canary").decode()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_a_page_comes_through_a_proxy(
    scripted_server: Start, fetcher: Make, scheme: str, tls: bool
) -> None:
    """With user and password in the URL, or as HttpProxyMiddleware writes them."""
    server = scripted_server({"*": "through"}, tls=tls)
    one, other = (fetcher(DOWNLOAD_VERIFY_CERTIFICATES=False) for _ in range(2))
    with ProxyServer(user="joe", password="canary") as proxy:
        url = proxy.url(scheme)
        named = url.replace("://", "://joe:canary@")
        assert one.get(server.url("/1"), meta={"proxy": named}).body == b"through"
        headers = {"Proxy-Authorization": f"Basic {CANARY}"}
        meta = {"proxy": url}
        assert other.get(server.url("/2"), meta=meta, headers=headers).body == b"through"
        assert len(proxy.log) == 2
    assert [request.target for request in server.log] == ["/1", "/2"]
    assert not any("proxy-authorization" in request.headers for request in server.log)
    assert "canary" not in str(server.log)


def test_a_proxy_without_a_scheme_is_http(scripted_server: Start, fetcher: Make) -> None:
    """Also as HttpProxyMiddleware rewrites it."""
    server, one = scripted_server({"*": "through"}), fetcher()
    with ProxyServer() as proxy:
        request = Request(server.url(), meta={"proxy": f"127.0.0.1:{proxy.port}"})
        assert one.fetch(request).body == b"through"
        HttpProxyMiddleware().process_request(request)
        assert request.meta["proxy"].startswith("//")
        assert one.fetch(request).body == b"through"
        assert proxy.log == [("GET", server.url())] * 2


def test_what_is_no_proxy_is_not_looked_up(fetcher: Make) -> None:
    error = fetcher().failure("http://h/", meta={"proxy": "foo://x.invalid"})
    assert (kind_of(error), message_of(error)[:9]) == ("bad-url", "no proxy:")


def test_a_tunnel_is_asked_for_without_a_user_agent(scripted_server: Start, fetcher: Make) -> None:
    """The request's one is for its server; libcurl's own is never sent."""
    server = scripted_server({"*": "x"}, tls=True)
    with ProxyServer() as proxy:
        one = fetcher(DOWNLOAD_VERIFY_CERTIFICATES=False)
        one.get(server.url(), meta={"proxy": proxy.url("http")}, headers={"User-Agent": "larm"})
        assert proxy.heads[0].startswith("CONNECT ")
        assert "user-agent" not in proxy.heads[0].lower()
    assert server.log[-1].headers["user-agent"] == "larm"


def test_the_next_fetch_needs_no_proxy(scripted_server: Start, fetcher: Make) -> None:
    """And tells its server nothing of it."""
    server, one = scripted_server({"*": "x"}), fetcher()
    with ProxyServer(user="joe", password="canary") as proxy:
        meta = {"proxy": proxy.url("http").replace("://", "://joe:canary@")}
        one.get(server.url(), meta=meta)
        one.get(server.url())
        assert len(proxy.log) == 1


def test_proxy_authorization_without_a_proxy_stays_here(
    scripted_server: Start, fetcher: Make
) -> None:
    server = scripted_server({"*": "x"})
    fetcher().get(server.url(), headers={"Proxy-Authorization": f"Basic {CANARY}"})
    assert "proxy-authorization" not in server.log[-1].headers


def test_a_proxy_that_is_not_there(fetcher: Make) -> None:
    error = fetcher().failure("http://h/", meta={"proxy": "http://joe:canary@127.0.0.1:9"})
    assert kind_of(error) == "refused"
    assert "canary" not in message_of(error)


def test_a_name_that_only_the_proxy_knows(scripted_server: Start, fetcher: Make) -> None:
    """socks5h hands the name over."""
    server = scripted_server({"*": "inside"})
    with ProxyServer(names={"wiki.internal": "127.0.0.1"}) as proxy:
        meta = {"proxy": proxy.url("socks5h")}
        url = f"http://wiki.internal:{server.port}/"
        assert fetcher().get(url, meta=meta).body == b"inside"


# The parts of meta["proxy"]: a scheme, a host, a port, and a user.


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("proxy:3128", ("http", "proxy", 3128, None, "")),
        ("//proxy:3128", ("http", "proxy", 3128, None, "")),
        ("proxy", ("http", "proxy", 80, None, "")),
        ("joe:a%40b@proxy:3128/", ("http", "proxy", 3128, "joe", "a@b")),
        ("//joe@proxy:3128", ("http", "proxy", 3128, "joe", "")),
        ("[::1]:3128", ("http", "::1", 3128, None, "")),
        ("HTTPS://proxy", ("https", "proxy", 443, None, "")),
        ("socks4://proxy", ("socks4", "proxy", 1080, None, "")),
        ("socks4a://proxy", ("socks4a", "proxy", 1080, None, "")),
        ("socks5://proxy", ("socks5", "proxy", 1080, None, "")),
        ("socks5h://proxy:80", ("socks5h", "proxy", 80, None, "")),
    ],
)
def test_a_proxy(text: str, proxy: tuple[str, str, int, str | None, str]) -> None:
    assert read_proxy(text) == ProxyUrl(*proxy)


@pytest.mark.parametrize(
    "text",
    ["", "foo://x", "foo://x:80", "https:x", "http://", "//", ":3128", "http://x:none", "x:none",
     "x:0", "x:65536", "http://[::1", "http:////x:80"],
)  # fmt: skip
def test_what_is_no_proxy(text: str) -> None:
    with pytest.raises(
        BadUrl, match="no proxy: expected http, https, socks4, socks4a, socks5, socks5h"
    ):
        read_proxy(text)
