"""larmspider/fetch/sites/curl.py: certificates and TLS versions, as nginx sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pycurl
import pytest

from tests.support.fetch.bare_curl import BareCurl, fails
from tests.support.servers.certificate import Authority
from tests.support.servers.nginx import Nginx
from tests.support.servers.scripted import ScriptedServer

Start = Callable[..., ScriptedServer]


def test_own_ca_and_verify_false(
    bare: BareCurl, nginx: Callable[..., Nginx], tmp_path: Path
) -> None:
    """A certificate of a CA that only the site knows; and one that nobody can verify, for one host
    and no other."""
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
