"""The download handler against real servers: what is sent, and what comes back."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from larmspider.errors import ConfigError
from larmspider.fetch import curl_handler
from larmspider.fetch.curl_handler import CurlHandler
from larmspider.fetch.curl_options import bind_address_from
from larmspider.fetch.errors import kind_of
from larmspider.requests import NOTHING_SECRET
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.nginx import Nginx
from tests.support.servers.scripted import Raw, Reply, ScriptedServer
from tests.support.servers.scripted import Request as Asked

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]
HTML = {"Content-Type": "text/html"}


def sent(server: ScriptedServer) -> list[str]:
    """The lines of the last request."""
    return server.log[-1].head.rstrip("\r\n").split("\r\n")


def test_a_response_is_what_the_server_sent(scripted_server: Start, fetcher: Make) -> None:
    """Status, headers in order with their duplicates, body, URL without fragment, address."""
    headers = [("Content-Type", "text/html"), ("Set-Cookie", "a=1"), ("x-one", "1"),
               ("Set-Cookie", "b=2")]  # fmt: skip
    server = scripted_server({"/p": Reply(404, headers, b"<p>gone")})
    response = fetcher().get(server.url("/p?q=1#part"))
    assert isinstance(response, HtmlResponse)
    assert (response.status, response.body, response.flags) == (404, b"<p>gone", [])
    assert response.url == server.url("/p?q=1")
    assert response.headers.getlist("Set-Cookie") == [b"a=1", b"b=2"]
    assert list(response.headers) == [b"Content-Type", b"Set-Cookie", b"X-One", b"Content-Length"]
    assert response.headers["X-One"] == b"1"
    assert response.ip_address == ip_address("127.0.0.1")
    assert response.protocol == "HTTP/1.1"
    assert response.certificate is None


def test_a_request_without_secrets_has_a_connection_of_its_own(
    scripted_server: Start, fetcher: Make, tmp_path: Path
) -> None:
    """Negotiate and NTLM sign in connections, so one that others have opened says who we are."""
    server = scripted_server({"*": "x"})
    sites = tmp_path / "sites.toml"
    sites.write_text(
        f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\nheaders = {{ X-Key = "1" }}\n'
    )
    own = fetcher(LARM_SITES_FILE=str(sites))
    for meta in ({}, {}, NOTHING_SECRET, NOTHING_SECRET, {}):
        own.get(server.url(), meta=dict(meta))
    asked = [(one.connection, "x-key" in one.headers) for one in server.log]
    assert asked == [(1, True), (1, True), (2, False), (3, False), (1, True)]


def test_what_a_request_says_is_sent_and_nothing_else(
    scripted_server: Start, fetcher: Make
) -> None:
    """Its headers in order, each as often as it stands there; Host; no Accept of libcurl's own."""
    server = scripted_server({"*": "x"})
    headers = [("X-B", "2"), ("Accept-Encoding", "identity"), ("X-A", "1"), ("X-B", "3"),
               ("X-Empty", ""), ("X-Bytes", b"\xe4")]  # fmt: skip
    fetcher().get(server.url("/"), headers=headers)
    host = f"Host: 127.0.0.1:{server.port}"
    assert sent(server) == [
        "GET / HTTP/1.1", host, "X-B: 2", "X-B: 3", "Accept-Encoding: identity", "X-A: 1",
        "X-Empty:", "X-Bytes: \xe4",
    ]  # fmt: skip


def test_without_headers_only_accept_encoding_is_added(
    scripted_server: Start, fetcher: Make
) -> None:
    """As HttpCompressionMiddleware would; not where COMPRESSION_ENABLED is off."""
    server = scripted_server({"*": "x"})
    fetcher().get(server.url())
    assert sent(server)[2:] == ["Accept-Encoding: gzip, deflate, br, zstd"]
    fetcher(COMPRESSION_ENABLED=False).get(server.url())
    assert sent(server)[2:] == []


@pytest.mark.parametrize(
    "target",
    ["/a/../b", "/a//b", "/?", "/?a?b", "/x;y=1", "/%7Ea%2Fb", "/a|b[]^`{}", "/p?q=%zz&r=a+b"],
)
def test_the_target_is_sent_as_the_url_has_it(
    scripted_server: Start, fetcher: Make, target: str
) -> None:
    """No dot segment is resolved, nothing is escaped or unescaped."""
    server = scripted_server({"*": "x"})
    request = Request(server.url())
    request._url = server.url(target)  # as it stands: Request itself escapes some of these
    fetcher().fetch(request)
    assert server.log[-1].target == target


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"])
def test_method_and_body_are_sent(scripted_server: Start, fetcher: Make, method: str) -> None:
    """Any bytes, with a length, without a type that the request lacks, and without Expect."""
    server = scripted_server({"*": "x"})
    body = b"a=1\0\xff" * 1000
    one = fetcher()
    one.get(server.url(), method=method, body=body)
    request = server.log[-1]
    assert (request.method, request.body) == (method, body)
    assert set(request.headers) == {"host", "content-length", "accept-encoding"}
    one.get(server.url(), method=method, headers={"Content-Type": "x/y"}, body="b")
    assert server.log[-1].headers["content-type"] == "x/y"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_post_without_a_body_says_so(scripted_server: Start, fetcher: Make, method: str) -> None:
    """RFC 9110 8.6: Content-Length 0, and no type of what is not there."""
    server = scripted_server({"*": "x"})
    fetcher().get(server.url(), method=method)
    assert server.log[-1].headers["content-length"] == "0"
    assert set(server.log[-1].headers) == {"host", "content-length", "accept-encoding"}


def test_a_header_without_a_value_is_not_sent(scripted_server: Start, fetcher: Make) -> None:
    """None, as Scrapy has it: nothing of libcurl's or of ours stands in for it."""
    server = scripted_server({"*": "x"})
    names = ("User-Agent", "Accept", "Content-Type", "Accept-Encoding", "Expect")
    one, headers = fetcher(), dict.fromkeys(names)
    one.get(server.url(), headers=headers)
    assert set(server.log[-1].headers) == {"host"}
    for body in (b"", b"x", b"x" * 2_000_000):
        one.get(server.url(), method="POST", headers=headers, body=body)
        assert set(server.log[-1].headers) == {"host", "content-length"}


def test_a_header_with_an_empty_value_is_sent(scripted_server: Start, fetcher: Make) -> None:
    server = scripted_server({"*": "x"})
    names = ("User-Agent", "Accept", "Content-Type", "Accept-Encoding", "X-Empty")
    fetcher().get(server.url(), method="POST", headers=dict.fromkeys(names, ""), body="x")
    assert sorted(sent(server)[2:]) == sorted(
        [*(f"{name}:" for name in names), "Content-Length: 1"]
    )


def test_a_handle_forgets_the_request_before(scripted_server: Start, fetcher: Make) -> None:
    """A GET after a POST, a HEAD and one with headers is a plain GET."""
    server = scripted_server({"*": "body"})
    one = fetcher()
    one.get(server.url(), method="POST", body=b"secret", headers={"X-Secret": "1"})
    assert one.get(server.url(), method="HEAD").body == b""
    assert one.get(server.url()).body == b"body"
    assert sent(server)[0] == "GET / HTTP/1.1"
    assert set(server.log[-1].headers) == {"host", "accept-encoding"}
    assert len(one.handler._idle) == 1


def test_what_may_have_had_an_effect_is_not_sent_again(
    scripted_server: Start, fetcher: Make
) -> None:
    """Where a kept connection ends without an answer, libcurl repeats the request on a new one."""
    server, one = scripted_server({"/": "x", "/form": Raw(b"")}), fetcher()
    one.get(server.url())
    one.failure(server.url("/form"), method="POST", body=b"name=x")
    assert len(server.requests("/form")) == 1
    one.get(server.url())
    assert server.connections <= 3


def test_head_has_no_body_but_its_headers(scripted_server: Start, fetcher: Make) -> None:
    """A length beyond the limit is no reason to refuse what does not come."""
    server = scripted_server({"*": Reply(headers={"Content-Length": "99999999"} | HTML)})
    response = fetcher(DOWNLOAD_MAXSIZE=1000).get(server.url(), method="HEAD")
    assert (response.body, response.headers["Content-Length"]) == (b"", b"99999999")


@pytest.mark.parametrize(
    ("path", "headers", "body", "cls"),
    [
        ("/", {"Content-Type": "text/html; charset=utf-8"}, b"x", HtmlResponse),
        ("/", {"Content-Type": "APPLICATION/XHTML+XML"}, b"x", HtmlResponse),
        ("/", {"Content-Type": "text/xml"}, b"x", XmlResponse),
        ("/", {"Content-Type": "text/plain"}, b"x", TextResponse),
        ("/", {"Content-Type": "image/png"}, b"\x89PNG\1", Response),
        ("/", {}, b"<html>", HtmlResponse),
        ("/a.html", {}, b"x", HtmlResponse),
        ("/", {"Content-Disposition": "attachment; filename=a.xml"}, b"x", XmlResponse),
    ],
)
def test_the_class_is_the_one_that_scrapy_chooses(
    scripted_server: Start,
    fetcher: Make,
    path: str,
    headers: dict[str, str],
    body: bytes,
    cls: type[Response],
) -> None:
    server = scripted_server({"*": Reply(200, headers, body)})
    assert type(fetcher().get(server.url(path))) is cls


def test_connections_are_kept_and_used_again(nginx: Callable[..., Nginx], tmp_path: Path,
                                             fetcher: Make) -> None:  # fmt: skip
    """Ten fetches one after the other go over one connection, by nginx's own log."""
    (tmp_path / "a.html").write_bytes(b"<p>a" * 20_000)
    server, one = nginx({"127.77.2.1": tmp_path}), fetcher()
    timings = [one.get(server.url(path="/a.html")).meta["larm_timing"] for _ in range(10)]
    assert len({request.connection for request in server.requests(at_least=10)}) == 1
    assert timings[0]["connect"] > 0
    assert [timing["connect"] for timing in timings[1:]] == [0.0] * 9


def test_no_more_connections_are_kept_than_allowed(scripted_server: Start, fetcher: Make) -> None:
    """The one unused for longest makes room."""
    servers = [scripted_server({"*": "x"}, host=f"127.77.2.{n}") for n in range(2, 5)]
    one = fetcher(LARM_KEPT_CONNECTIONS=2)
    for server in [*servers, servers[2], servers[0]]:
        one.get(server.url())
    assert [server.connections for server in servers] == [2, 1, 1]


def test_a_connection_that_the_server_closed_is_made_again(
    scripted_server: Start, fetcher: Make
) -> None:
    """The crawl goes on, and its socket is not watched for ever."""
    server, one = scripted_server({"*": Reply(body=b"x", close=True)}), fetcher()
    for _ in range(3):
        assert one.get(server.url()).body == b"x"
    assert server.connections == 3


def test_fetches_run_at_once(scripted_server: Start, fetcher: Make) -> None:
    """Twenty answers that each take 0.2 s are under way together."""
    server, one = scripted_server({"*": Reply(body=b"x", delay=0.2)}), fetcher()

    async def all_of_them() -> list[Response]:
        requests = [Request(server.url(f"/{number}")) for number in range(20)]
        return await asyncio.gather(*map(one.handler.download_request, requests))

    assert [response.status for response in one.run(all_of_them)] == [200] * 20
    assert server.peak_open == 20


def test_the_timing_of_a_fetch(scripted_server: Start, fetcher: Make) -> None:
    """In seconds, no step done before the one it needs; Scrapy's latency among them."""
    server = scripted_server({"*": Raw([b"HTTP/1.1 200 OK\r\n\r\n", b"x", b"y"], pause=0.1)},
                             tls=True)  # fmt: skip
    meta = fetcher(DOWNLOAD_VERIFY_CERTIFICATES=False).get(server.url()).meta
    timing = meta["larm_timing"]
    steps = [timing[name] for name in ("dns", "connect", "tls", "first_byte", "total")]
    assert steps == sorted(steps)
    assert 0 < timing["connect"] < timing["tls"] < timing["total"]
    assert timing["total"] - timing["first_byte"] > 0.15
    assert meta["download_latency"] == timing["first_byte"]


def test_the_next_request_can_be_conditional(scripted_server: Start, fetcher: Make) -> None:
    """With the headers that meta has; of a response with nothing for it, none."""

    def answer(request: Asked) -> Reply:
        known = request.headers.get("if-none-match"), request.headers.get("if-modified-since")
        validators = {"ETag": '"1"', "Last-Modified": "Sun, 01 Nov 2026 08:00:00 GMT"}
        return Reply(304) if known == tuple(validators.values()) else Reply(200, validators, b"x")

    server, one = scripted_server({"/": answer, "/none": "x"}), fetcher()
    first = one.get(server.url())
    again = one.get(server.url(), headers=first.meta["larm_validators"])
    assert (first.status, again.status, again.body) == (200, 304, b"")
    assert one.get(server.url("/none")).meta["larm_validators"] == {}


def test_redirects_and_cookies_are_left_to_others(scripted_server: Start, fetcher: Make) -> None:
    headers = {"Location": "/b", "Set-Cookie": "a=1"}
    server, one = scripted_server({"/a": Reply(302, headers), "/b": "b"}), fetcher()
    assert one.get(server.url("/a")).status == 302
    one.get(server.url("/b"))
    assert "cookie" not in server.log[-1].headers


def test_credentials_in_a_url_are_not_sent(scripted_server: Start, fetcher: Make) -> None:
    """Nor do they confuse the host."""
    server = scripted_server({"*": "x"})
    fetcher().get(f"http://joe:secret@127.0.0.1:{server.port}/")
    assert "authorization" not in server.log[-1].headers
    assert server.log[-1].headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("value", ["127.77.2.9", ("127.77.2.9", 0), ["127.77.2.9", 0]])
def test_connections_come_from_the_address_asked_for(
    scripted_server: Start, fetcher: Make, value: object
) -> None:
    """meta bindaddress, and DOWNLOAD_BIND_ADDRESS; a socket bound to it proves that it counts."""
    server = scripted_server({"*": "x"})
    assert fetcher(DOWNLOAD_BIND_ADDRESS=value).get(server.url()).status == 200
    assert fetcher().get(server.url(), meta={"bindaddress": value}).status == 200
    error = fetcher().failure(server.url(), meta={"bindaddress": "192.0.2.1"})
    assert error.kind == "refused"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "value", ["wiki", "127.0.0.1:80", ("127.0.0.1",), ("127.0.0.1", 70_000), ("x", 0), 7, [], {}]
)
def test_a_bind_address_of_another_form_is_refused(fetcher: Make, value: object) -> None:
    """A name would be looked up while everything waits. An empty address is no address."""
    if value:
        error = fetcher().failure("http://127.0.0.1:9/", meta={"bindaddress": value})
        assert kind_of(error) == "bad-url"
        with pytest.raises(ConfigError, match=r"DOWNLOAD_BIND_ADDRESS=.* an IP address, or one"):
            bind_address_from(Settings({"DOWNLOAD_BIND_ADDRESS": value}))
    else:
        assert bind_address_from(Settings({"DOWNLOAD_BIND_ADDRESS": value})) is None


def test_both_schemes_have_one_handler(scripted_server: Start, fetcher: Make) -> None:
    """And so one multi handle and one limit."""
    one, other = fetcher(), fetcher()
    assert CurlHandler.from_crawler(one.crawler) is one.handler
    assert other.handler is not one.handler


def test_a_closed_handler_holds_no_crawler() -> None:
    with Fetcher() as one:
        crawler = weakref.ref(one.crawler)
    del one
    gc.collect()
    assert crawler() is None


def test_another_event_loop_than_asyncio_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(curl_handler, "is_asyncio_available", lambda: False)
    with pytest.raises(NotConfigured, match="AsyncioSelectorReactor"):
        CurlHandler.from_crawler(get_crawler())


def test_the_environment_sets_nothing(
    scripted_server: Start, fetcher: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """http_proxy is HttpProxyMiddleware's to read; libcurl would by itself."""
    server = scripted_server({"*": "x"})
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert fetcher().get(server.url()).status == 200


def test_http2_turned_on_asks_a_server_without_it(fetcher: Make, scripted_server: Start) -> None:
    """In HTTP/1.1: which it is, ALPN tells."""
    server = scripted_server({"*": "x"}, tls=True)
    one = fetcher(LARM_HTTP2=True, DOWNLOAD_VERIFY_CERTIFICATES=False)
    assert one.get(server.url()).protocol == "HTTP/1.1"
