"""larmspider/fetch/sites/curl.py: proxies, their passwords and what the environment says."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pycurl
import pytest

from tests.support.fetch.bare_curl import CANARY, E_PROXY, BareCurl, echo, fails
from tests.support.servers.certificate import Authority
from tests.support.servers.digest import DigestGuard
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import ScriptedServer

Start = Callable[..., ScriptedServer]


@pytest.mark.parametrize("scheme", ["http", "https", "socks5", "socks5h"])
@pytest.mark.parametrize("far", ["http", "https"])
def test_proxy(
    bare: BareCurl, scripted_server: Start, tmp_path: Path, scheme: str, far: str
) -> None:
    """With its own password, which the server never sees, as the proxy never sees the server's
    where that speaks TLS. By http and socks5h the proxy resolves names that only it knows."""
    name = "127.0.0.1" if scheme == "socks5" else "only.proxy.example"
    server = scripted_server({"*": echo}, tls=far == "https")
    tls = None
    authority = Authority(tmp_path)
    if scheme == "https":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*authority.issue("127.0.0.1"))
    with ProxyServer("joe", "gate:☃", names={name: "127.0.0.1"}, tls=tls) as proxy:
        rule = f"""
            [[site]]
            hosts = "{far}://{name}:{server.port}"
            headers = {{ X-Key = "{CANARY}" }}
            cookies = {{ sid = "{CANARY}" }}
            {"verify = false" if far == "https" else ""}
            proxy = "{proxy.url(scheme)}"
            {f'proxy_ca_file = "{authority.ca}"' if scheme == "https" else ""}
            """
        url = f"{far}://{name}:{server.port}/page"
        bare.configure(f'{rule}\nproxy_user = "joe"\nproxy_password = "gate:☃"')
        assert bare.get(url) == "200 ok"
        headers = server.log[-1].headers
        assert headers["x-key"] == CANARY
        assert headers["cookie"] == f"sid={CANARY}"
        assert "proxy-authorization" not in headers
        asked = {("SOCKS5", f"{name}:{server.port}")}
        if scheme.startswith("http"):
            asked = {("CONNECT", f"{name}:{server.port}")} if far == "https" else {("GET", url)}
        assert set(proxy.log) == asked
        if far == "https":
            assert all(CANARY not in head for head in proxy.heads)
        bare.configure(f'{rule}\nproxy_user = "joe"\nproxy_password = "{CANARY}"')
        if scheme.startswith("http") and far == "http":
            assert bare.get(url) == "407"
        else:
            with fails(pycurl.E_COULDNT_CONNECT, pycurl.E_RECV_ERROR, E_PROXY):
                bare.get(url)
        assert len(server.log) == 1


@pytest.mark.parametrize("no_proxy", ["", "*"])
def test_the_environment_is_no_match_for_the_file(
    bare: BareCurl, scripted_server: Start, monkeypatch: pytest.MonkeyPatch, no_proxy: str
) -> None:
    """Neither its http_proxy where the file says none, nor its no_proxy where that names one."""
    server = scripted_server({"*": echo})
    with ProxyServer() as proxy:
        monkeypatch.setenv("no_proxy", no_proxy)
        if not no_proxy:
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        rule = f'[[site]]\nhosts = "127.0.0.1:{server.port}"\n'
        bare.configure(f'{rule}proxy = ""')
        assert bare.get(server.url()) == "200 ok"
        assert proxy.log == []
        bare.configure(f'{rule}proxy = "{proxy.url("http")}"')
        assert bare.get(server.url()) == "200 ok"
        assert proxy.log == [("GET", server.url())]


def test_the_password_of_another_proxy_is_not_told(bare: BareCurl, scripted_server: Start) -> None:
    """A request may name a proxy with its password; where the file names one, that is asked."""
    server = scripted_server({"*": echo})
    with ProxyServer() as proxy:
        bare.configure(
            f'[[site]]\nhosts = "127.0.0.1:{server.port}"\nproxy = "{proxy.url("http")}"'
        )
        bare.curl.setopt(pycurl.PROXYUSERNAME, "joe")
        bare.curl.setopt(pycurl.PROXYPASSWORD, CANARY)
        bare.curl.setopt(pycurl.PROXYHEADER, [f"Proxy-Authorization: X {CANARY}"])
        assert bare.get(server.url(), forget=False) == "200 ok"
        assert len(proxy.heads) == 1
        assert "proxy-authorization" not in proxy.heads[0].lower()


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
@pytest.mark.parametrize("far", ["http", "https"])
def test_digest_to_a_proxy(
    bare: BareCurl, scripted_server: Start, far: str, algorithm: str
) -> None:
    """407, and then the answer to it; the password is sent to nobody, the answer to the proxy
    alone. Also where the nonce has become old."""
    server = scripted_server({"*": echo}, tls=far == "https")
    guard = DigestGuard("joe", CANARY, algorithm, stale_after=2)
    with ProxyServer(guard=guard) as proxy:
        rule = f"""
            [[site]]
            hosts = "{far}://127.0.0.1:{server.port}"
            {"verify = false" if far == "https" else ""}
            proxy = "{proxy.url("http")}"
            proxy_auth = "digest"
            proxy_user = "joe"
            """
        bare.configure(f'{rule}\nproxy_password = "{CANARY}"')
        for _ in range(4):
            assert bare.get(server.url("/page")) == "200 ok"
        assert guard.accepted >= (1 if far == "https" else 4)
        assert guard.challenged >= 1
        assert not any("proxy-authorization" in request.headers for request in server.log)
        assert all(CANARY not in head for head in proxy.heads)
        bare.configure(f'{rule}\nproxy_password = "wrong"')
        asked = len(server.log)
        if far == "http":
            assert bare.get(server.url("/page")) == "407"
        else:
            with fails(pycurl.E_COULDNT_CONNECT, pycurl.E_RECV_ERROR, E_PROXY):
                bare.get(server.url("/page"))
        assert len(server.log) == asked
