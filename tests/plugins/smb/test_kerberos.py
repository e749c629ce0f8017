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
from tests.support.servers.kerberos import REALM, make_realm
from tests.support.servers.samba import Samba, needs_samba

pytestmark = [
    pytest.mark.acceptance,
    needs_samba,
    pytest.mark.skipif(
        not all(map(find_spec, ("gssapi", "krb5"))) or shutil.which("krb5kdc") is None,
        reason="needs a KDC, and the packages gssapi and krb5",
    ),
]

URL = "smb://localhost/share/a.txt"
_OF_LOCALHOST = f"[domain_realm]\n    localhost = {REALM}\n"
_WITHOUT_PAC = "        disable_pac = true\n"
"""Samba without a domain refuses tickets with a PAC."""


@pytest.fixture(scope="module")
def server() -> Iterator[Samba]:
    folder = Path(tempfile.mkdtemp(prefix="smb-", dir="/tmp"))
    lines = (
        f"required\n realm = {REALM}\n kerberos method = dedicated keytab\n"
        f" dedicated keytab file = FILE:{folder}/keytab"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(folder / "krb5.conf"))
        patch.setenv("KRB5_KDC_PROFILE", str(folder / "kdc.conf"))
        with Samba(folder, encrypt=lines) as running:
            (running.share / "a.txt").write_text("harbour")
            keytabs = {"cifs/localhost": "keytab", "crawler": "own-keytab"}
            make_realm(folder, 88, running.run, keytabs, client=_OF_LOCALHOST, kdc=_WITHOUT_PAC)
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
