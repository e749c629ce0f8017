"""smb:// with a ticket of a real KDC, which shares the network of a real Samba."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from larmspider.access.connected import AwayError
from larmspider.fetch import errors
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import read_sites_file
from larmspider.plugins.smb.connector import LINKS, SmbConnector
from tests.support.servers.samba import Samba, needs_samba

pytestmark = [
    pytest.mark.acceptance,
    needs_samba,
    pytest.mark.skipif(
        not all(map(find_spec, ("gssapi", "krb5"))) or shutil.which("krb5kdc") is None,
        reason="needs a KDC, and the packages gssapi and krb5",
    ),
]

REALM = "TEST.EXAMPLE"
URL = "smb://localhost/share/a.txt"
_KRB5 = f"""
[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:88
 }}
[domain_realm]
 localhost = {REALM}
"""
_KDC = """
[kdcdefaults]
 kdc_listen = ""
 kdc_tcp_listen = 127.0.0.1:88
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  disable_pac = true
 }}
"""
"""Samba without a domain refuses tickets with a PAC."""


@pytest.fixture(scope="module")
def server() -> Iterator[Samba]:
    folder = Path(tempfile.mkdtemp(prefix="smb-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "krb5.conf").write_text(_KRB5)
    (folder / "kdc.conf").write_text(_KDC.format(realm=REALM, folder=folder))
    lines = (
        f"required\n realm = {REALM}\n kerberos method = dedicated keytab\n"
        f" dedicated keytab file = FILE:{folder}/keytab"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(folder / "krb5.conf"))
        patch.setenv("KRB5_KDC_PROFILE", str(folder / "kdc.conf"))
        with Samba(folder, encrypt=lines) as running:
            (running.share / "a.txt").write_text("harbour")
            running.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
            for name, keytab in (("cifs/localhost", "keytab"), ("crawler", "own-keytab")):
                for query in (f"addprinc -randkey {name}", f"ktadd -k {folder}/{keytab} {name}"):
                    running.run("kadmin.local", "-r", REALM, "-q", query)
            with subprocess.Popen(
                [*running.prefix(), "krb5kdc", "-n", "-r", REALM, "-P", str(folder / "kdc.pid")]
            ) as kdc:
                try:
                    yield running
                finally:
                    kdc.kill()
    shutil.rmtree(folder)


def ticket(server: Samba, name: str, *options: str) -> str:
    """The cache of a new ticket of the crawl."""
    folder = server.folder.parent
    cache = f"FILE:{folder}/{name}"
    command = ("kinit", "-c", cache, "-k", "-t", f"{folder}/own-keytab", *options, "crawler")
    end = time.monotonic() + 10
    while "Cannot contact" in (said := server.run(*command, check=False)):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert not said
    return cache


def test_a_ticket_signs_in(server: Samba, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sites.toml"
    path.write_text('[[site]]\nhosts = "smb://localhost"\nauth = "negotiate"\n')
    path.chmod(0o600)
    reader = SmbConnector(read_sites_file(path), Limits(total_secs=20.0))
    assert reader.why_not(URL) == ""
    asked = {"If-None-Match": "", "If-Modified-Since": ""}
    with server.inside():
        LINKS.close()
        monkeypatch.setenv("KRB5CCNAME", ticket(server, "ticket"))
        answer = reader.read(URL, asked)
        assert answer.body == b"harbour"
        assert not isinstance(answer.rights, str | None)
        assert reader._link("localhost", 445).is_encrypted
        LINKS.close()
        for cache in (f"FILE:{tmp_path}/none", ticket(server, "short", "-l", "1s")):
            if cache.endswith("short"):
                time.sleep(1.5)
            monkeypatch.setenv("KRB5CCNAME", cache)
            with pytest.raises(errors.SignInRefused, match="with a Kerberos ticket was refused"):
                reader.read(URL, asked)
            with pytest.raises(AwayError):  # rights stay as they were
                list(reader.files(URL[:-5], [URL]))
            LINKS.close()
