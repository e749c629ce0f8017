"""larmspider/fetch/sites/curl.py: a host gets its secrets, and no other host gets them."""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pycurl
import pytest

from larmspider.fetch.sites.curl import apply_site
from larmspider.fetch.sites.lookup import Sites, read_sites_file
from tests.support.fetch.fetching import CANARY, E_PROXY, BareCurl, echo, fails
from tests.support.servers.certificate import Authority
from tests.support.servers.kerberos import REALM, KerberosSite
from tests.support.servers.nginx import Nginx
from tests.support.servers.proxy import ProxyServer
from tests.support.servers.scripted import DigestGuard, Reply, ScriptedServer

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
    """Code that mixes them up gets an error, and a handle without a secret."""
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


# larmspider/fetch/sites/curl.py: proxies, their passwords and what the environment says.


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
    """407, and then the answer to it; the password is never sent, and only the proxy gets the
    answer. Also if the nonce has become old."""
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


# larmspider/fetch/sites/curl.py: certificates and TLS versions, as nginx sees them.


def test_own_ca_and_verify_false(
    bare: BareCurl, nginx: Callable[..., Nginx], tmp_path: Path
) -> None:
    """A certificate of a CA that only the site knows; and a certificate that cannot be verified,
    for one host and no other."""
    authority = Authority(tmp_path)
    blocks = {}
    for address in ("127.31.0.1", "127.31.0.2"):
        certificate, key = authority.issue(address)
        blocks[address] = (
            f'ssl_certificate {certificate}; ssl_certificate_key {key}; return 200 "inside";'
        )
    server = nginx(blocks, tls=blocks)
    one, two = (server.url(address) for address in blocks)
    with fails(pycurl.E_SSL_CACERT, pycurl.E_SSL_CACERT_BADFILE):
        bare.get(one)
    bare.configure(f'[[site]]\nhosts = "127.31.0.1:{server.port}"\nca_file = "{authority.ca}"\n')
    assert bare.get(one) == "200 inside"
    with fails(pycurl.E_SSL_CACERT, pycurl.E_SSL_CACERT_BADFILE):
        bare.get(two)
    bare.configure(f'[[site]]\nhosts = "127.31.0.2:{server.port}"\nverify = false\n')
    assert bare.get(two) == "200 inside"
    with fails(pycurl.E_SSL_CACERT, pycurl.E_SSL_CACERT_BADFILE):
        bare.get(one)
    other = Authority(tmp_path, "another authority")
    bare.configure(f'[[site]]\nhosts = "127.31.0.1:{server.port}"\nca_file = "{other.ca}"\n')
    with fails(pycurl.E_SSL_CACERT, pycurl.E_SSL_CACERT_BADFILE):
        bare.get(one)


@pytest.mark.parametrize("password", ["", "pass phrase"])
def test_client_certificate(
    bare: BareCurl, nginx: Callable[..., Nginx], tmp_path: Path, password: str
) -> None:
    """nginx verifies it (ssl_verify_client) and says whose it is; without one it is a 400."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.31.0.1")
    inside = (
        f"ssl_certificate {certificate}; ssl_certificate_key {key};"
        f" ssl_client_certificate {authority.ca}; ssl_verify_client on;"
        ' location / { return 200 "$ssl_client_s_dn"; }'
    )
    server = nginx({"127.31.0.1": inside}, tls=["127.31.0.1"])
    rule = f'[[site]]\nhosts = "127.31.0.1:{server.port}"\nca_file = "{authority.ca}"\n'
    bare.configure(rule)
    assert bare.get(server.url()).startswith("400")
    mine, mine_key = authority.issue("crawler", password)
    word = f'client_key_password = "{password}"\n' if password else ""
    bare.configure(f'{rule}client_cert = "{mine}"\nclient_key = "{mine_key}"\n{word}')
    assert bare.get(server.url()) == "200 CN=crawler"
    stranger, stranger_key = Authority(tmp_path, "another authority").issue("stranger")
    bare.configure(f'{rule}client_cert = "{stranger}"\nclient_key = "{stranger_key}"\n')
    assert bare.get(server.url()).startswith("400")


@pytest.mark.parametrize(
    "tls_min, offered, works",
    [
        ("1.3", "TLSv1.2", False),
        ("1.2", "TLSv1.2", True),
        ("1.2", "TLSv1.1", False),
        ("1.0", "TLSv1", True),
        ("1.1", "TLSv1.1", True),
        ("1.1", "TLSv1", False),
    ],
)
def test_tls_min(
    bare: BareCurl,
    nginx: Callable[..., Nginx],
    tmp_path: Path,
    tls_min: str,
    offered: str,
    works: bool,
) -> None:
    """A server that offers less is refused; an old one can be spoken to, if told so."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.31.0.1")
    inside = (
        f"ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols {offered};"
        ' ssl_ciphers "DEFAULT:@SECLEVEL=0"; return 200 $ssl_protocol;'
    )
    server = nginx({"127.31.0.1": inside}, tls=["127.31.0.1"])
    bare.configure(
        f'[[site]]\nhosts = "127.31.0.1:{server.port}"\nca_file = "{authority.ca}"\n'
        f'tls_min = "{tls_min}"'
    )
    if works:
        assert bare.get(server.url()) == f"200 {offered}"
    else:
        with fails(pycurl.E_SSL_CONNECT_ERROR):
            bare.get(server.url())


# auth = "negotiate" against a real KDC and Apache's mod_auth_gssapi.


def fetch(curl: pycurl.Curl, url: str, sites: Sites) -> tuple[int, str]:
    body = BytesIO()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.WRITEFUNCTION, body.write)
    site = sites.for_url(url)
    if site is not None:
        apply_site(curl, site, url)
    curl.perform()
    return curl.getinfo(pycurl.RESPONSE_CODE), body.getvalue().decode()


def sites_of(folder: Path, hosts: str) -> Sites:
    path = folder / "sites.toml"
    path.write_text(f'[[site]]\nhosts = "{hosts}"\nauth = "negotiate"\n')
    return read_sites_file(path)


def test_a_ticket_opens_the_site(
    kerberos: KerberosSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither user nor password stands in the file; who it is says Kerberos."""
    for name, value in kerberos.client.items():
        monkeypatch.setenv(name, value)
    sites = sites_of(tmp_path, f"http://localhost:{kerberos.port}")
    curl = pycurl.Curl()
    assert fetch(curl, kerberos.url("/next.html"), sites) == (200, "two")
    assert fetch(curl, kerberos.url("/index.html"), sites)[0] == 200
    curl.close()
    served = kerberos.requests(served=2)
    assert {user for status, user, _, _ in served if status == 200} == {f"crawler@{REALM}"}
    assert [status for status, *_ in served].count(200) == 2


def test_without_a_ticket_it_is_a_401(
    kerberos: KerberosSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page like any other, not an error."""
    for name, value in kerberos.stranger.items():
        monkeypatch.setenv(name, value)
    curl = pycurl.Curl()
    sites = sites_of(tmp_path, f"http://localhost:{kerberos.port}")
    assert fetch(curl, kerberos.url("/next.html"), sites)[0] == 401
    curl.close()


def test_http_has_to_be_said(
    kerberos: KerberosSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for every other secret: a ticket goes over https only, unless the file says http."""
    for name, value in kerberos.client.items():
        monkeypatch.setenv(name, value)
    curl = pycurl.Curl()
    sites = sites_of(tmp_path, f"localhost:{kerberos.port}")
    assert fetch(curl, kerberos.url("/next.html"), sites)[0] == 401
    curl.close()
