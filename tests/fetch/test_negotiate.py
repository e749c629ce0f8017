"""auth = "negotiate" against a real KDC and Apache's mod_auth_gssapi."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pycurl
import pytest

from larmspider.fetch.sites.curl import apply_site
from larmspider.fetch.sites.lookup import Sites, read_sites_file
from tests.support.servers.kerberos import REALM, KerberosSite


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
