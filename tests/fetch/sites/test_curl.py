"""larmspider/fetch/sites/curl.py: what a host is told, and that no other host is."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import pycurl
import pytest

from larmspider.fetch.sites.curl import apply_site
from tests.support.fetch.bare_curl import CANARY, BareCurl, echo, fails
from tests.support.servers.certificate import Authority
from tests.support.servers.digest import DigestGuard
from tests.support.servers.nginx import Nginx
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import Reply, ScriptedServer

Start = Callable[..., ScriptedServer]


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"joe:{password}".encode()).decode()


@pytest.mark.parametrize("password", ["word", "sp ace:colon", "pässwörd ☃"])
def test_basic_by_nginx(
    bare: BareCurl, nginx: Callable[..., Nginx], tmp_path: Path, password: str
) -> None:
    """nginx checks the password in its own file; without one, or with another, it is a 401."""
    digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()
    (tmp_path / "htpasswd").write_text(f"joe:{{SHA}}{digest}\n")
    (tmp_path / "index.html").write_text("inside")
    guard = f'auth_basic "x"; auth_basic_user_file "{tmp_path}/htpasswd";'
    server = nginx({"127.31.0.1": f'root "{tmp_path}"; index index.html; {guard}'})
    assert bare.get(server.url()).startswith("401")
    rule = f'[[site]]\nhosts = "127.31.0.1:{server.port}"\nauth = "basic"\nuser = "joe"\n'
    bare.configure(f'{rule}scheme = "http"\npassword = "{password}"')
    assert bare.get(server.url()) == "200 inside"
    bare.configure(f'{rule}scheme = "http"\npassword = "{password[:-1]}"')
    assert bare.get(server.url()).startswith("401")
    bare.configure(f'{rule}password = "{password}"')
    assert bare.get(server.url()).startswith("401"), "https only, where http is not said"


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_digest(bare: BareCurl, scripted_server: Start, algorithm: str) -> None:
    """The first page costs a second request; the next ones do not, on a handle of that site."""
    guard = DigestGuard("joe", "word:☃", algorithm)
    server = scripted_server({"*": guard.protect(b"inside")})
    rule = f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\nauth = "digest"\nuser = "joe"\n'
    bare.configure(f'{rule}password = "word:☃"')
    assert bare.get(server.url("/a?b=c")) == "200 inside"
    assert (guard.challenged, guard.accepted) == (1, 1)
    assert bare.get(server.url("/d"), forget=False) == "200 inside"
    assert (guard.challenged, guard.accepted) == (1, 2)
    assert bare.get(server.url("/e")) == "200 inside"
    assert (guard.challenged, guard.accepted) == (2, 3)
    bare.configure(f'{rule}password = "other"')
    assert bare.get(server.url()) == "401 who are you?"
    assert all("word" not in str(request.headers) for request in server.log)


def test_digest_nonces_end(bare: BareCurl, scripted_server: Start) -> None:
    """A nonce that the server has had enough of is replaced on the way."""
    guard = DigestGuard("joe", "word", stale_after=2)
    server = scripted_server({"*": guard.protect(b"inside")})
    bare.configure(
        f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\nauth = "digest"\n'
        'user = "joe"\npassword = "word"'
    )
    pages = [bare.get(server.url(f"/{number}"), forget=False) for number in range(5)]
    assert pages == ["200 inside"] * 5
    assert guard.challenged == 3


def test_bearer_cookies_and_headers(bare: BareCurl, scripted_server: Start) -> None:
    """Sent with the first request, once each; what the request brings along stays."""
    server = scripted_server({"*": echo})
    bare.configure(
        f"""
        [[site]]
        hosts = "http://127.0.0.1:{server.port}"
        auth = "bearer"
        token = "tok.en=="
        cookies = {{ sid = "1", lang = "de" }}
        headers = {{ X-Key = "k e y", Accept-Language = "de" }}
        """
    )
    assert bare.get(server.url()) == "200 ok"
    first = server.log[-1].headers
    assert first["authorization"] == "Bearer tok.en=="
    assert first["cookie"] == "sid=1; lang=de"
    assert first["x-key"] == "k e y"
    bare.get(server.url(), ("accept-language: fr", "Cookie: own=2", "Authorization: Own x"))
    second = server.log[-1].headers
    assert second["accept-language"] == "fr"
    assert second["cookie"] == "own=2; sid=1; lang=de"
    assert second["authorization"] == "Own x"
    assert len(server.log) == 2


def test_a_header_that_is_only_turned_off_is_the_sites(
    bare: BareCurl, scripted_server: Start
) -> None:
    """``Name:`` keeps libcurl's own away; one that is empty, ``Name;``, is the request's."""
    server = scripted_server({"*": echo})
    bare.configure(
        f"""
        [[site]]
        hosts = "http://127.0.0.1:{server.port}"
        scheme = "http"
        headers = {{ User-Agent = "ours", Accept = "text/html", X-Key = "k" }}
        """
    )
    bare.get(server.url(), ("User-Agent:", "Accept:", "X-Key;"))
    sent = server.log[-1].headers
    assert (sent["user-agent"], sent["accept"], sent["x-key"]) == ("ours", "text/html", "")


def everything(port: int, proxy: str = "") -> str:
    """A site with every secret that there is, over http."""
    return f"""
        [[site]]
        hosts = "http://127.0.0.1:{port}"
        auth = "basic"
        user = "joe"
        password = "{CANARY}"
        cookies = {{ sid = "{CANARY}" }}
        headers = {{ X-Key = "{CANARY}" }}
        {proxy}
        """


def test_a_redirect_carries_nothing_over(bare: BareCurl, scripted_server: Start) -> None:
    """Not followed by libcurl; fetched as the new URL that it is, its origin gets nothing."""
    other = scripted_server({"*": echo}, "127.31.0.2")
    server = scripted_server({"/": Reply(302, {"Location": other.url("/stolen")}, b"moved")})
    bare.configure(everything(server.port))
    assert bare.get(server.url()) == "302 moved"
    assert server.log[-1].headers["authorization"] == basic(CANARY)
    assert other.log == []
    assert bare.get(other.url("/stolen")) == "200 ok"
    assert bare.get(other.url("/stolen")) == "200 ok"
    for request in other.log:
        assert not {"authorization", "cookie", "x-key"} & set(request.headers)


def test_even_followed_by_libcurl_it_carries_no_password(
    bare: BareCurl, scripted_server: Start
) -> None:
    """Should a handle be told to follow: the password stays with its host and port."""
    other = scripted_server({"*": echo})
    server = scripted_server({"/": Reply(302, {"Location": other.url()}, b"moved")})
    bare.configure(
        f'[[site]]\nhosts = "http://127.0.0.1:{server.port}"\nauth = "basic"\nuser = "joe"\n'
        f'password = "{CANARY}"'
    )
    bare.get(server.url())
    bare.curl.setopt(pycurl.FOLLOWLOCATION, 1)
    bare.curl.perform()
    assert server.log[-1].headers["authorization"] == basic(CANARY)
    assert "authorization" not in other.log[-1].headers


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{other}/",
        "https://127.0.0.1:{port}/",
        "http://127.31.0.2:{port}/",
        "http://127.0.0.1:{port}@127.31.0.2:{port}/",
        "no url",
    ],
)
def test_a_site_applies_to_its_origin_only(
    bare: BareCurl, scripted_server: Start, url: str
) -> None:
    """Whoever mixes them up gets an error, and a handle without a secret."""
    server = scripted_server({"*": echo})
    bare.configure(everything(server.port))
    site = bare.sites.for_url(server.url())
    assert site is not None
    with pytest.raises(ValueError, match="does not apply") as caught:
        apply_site(bare.curl, site, url.format(port=server.port, other=server.port + 1))
    assert CANARY not in str(caught.value)
    bare.curl.setopt(pycurl.URL, server.url())
    bare.curl.setopt(pycurl.WRITEFUNCTION, len)
    bare.curl.perform()
    assert not {"authorization", "cookie", "x-key"} & set(server.log[-1].headers)


def test_a_forgotten_site_is_forgotten(
    bare: BareCurl, scripted_server: Start, tmp_path: Path
) -> None:
    """A handle that served a site with everything sends nothing of it to the next host."""
    certificate, key = Authority(tmp_path).issue("crawler")
    server = scripted_server({"*": echo})
    plain = scripted_server({"*": echo}, "127.31.0.2")
    tls = scripted_server({"*": echo}, "127.31.0.3", tls=True)
    with ProxyServer("joe", CANARY) as proxy:
        keys = f"""
            proxy = "{proxy.url("http")}"
            proxy_user = "joe"
            proxy_password = "{CANARY}"
            """
        unsafe = f"""
            [[site]]
            hosts = "https://127.31.0.3:{tls.port}"
            verify = false
            tls_min = "1.0"
            client_cert = "{certificate}"
            client_key = "{key}"
            """
        bare.configure(everything(server.port, keys) + unsafe)
        assert bare.get(server.url()) == "200 ok"
        assert bare.get(tls.url()) == "200 ok"
        assert len(proxy.log) == 1
        bare.configure("")
        assert bare.get(plain.url()) == "200 ok"
        assert bare.get(server.url()) == "200 ok"
        for request in (plain.log[-1], server.log[-1]):
            assert not {"authorization", "cookie", "x-key", "proxy-authorization"} & set(
                request.headers
            )
        assert len(proxy.log) == 1
        with fails(pycurl.E_SSL_CACERT, pycurl.E_SSL_CACERT_BADFILE):
            bare.get(tls.url())
