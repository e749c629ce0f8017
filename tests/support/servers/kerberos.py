"""A Kerberos realm of our own and a web server that asks for its tickets: a real KDC and Apache.

    with KerberosSite({"/index.html": "inside"}) as site:
        site.url("/index.html")     # http://localhost:<port>/index.html
        site.client                 # environment of a client that has a ticket
        site.stranger               # and of one that has none

Debian packages krb5-kdc, krb5-admin-server, krb5-user, apache2-bin, libapache2-mod-auth-gssapi.
Everything lives in a temporary folder; both servers are children and end with the context.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.servers.processes import end, free_port, listens, wait_for

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAMS = {
    "krb5kdc": "krb5-kdc",
    "kdb5_util": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "apache2": "apache2-bin",
}
_MODULES = Path("/usr/lib/apache2/modules")


def missing_packages() -> list[str]:
    """Debian packages that are needed and not installed."""
    missing = {package for name, package in _PROGRAMS.items() if not shutil.which(name, path=_PATH)}
    if not (_MODULES / "mod_auth_gssapi.so").exists():
        missing.add("libapache2-mod-auth-gssapi")
    return sorted(missing)


REALM = "TEST.EXAMPLE"
_HOST = "localhost"
_LOG_SECS = 60.0

_KRB5 = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    {realm} = {{
        kdc = 127.0.0.1:{port}
    }}
{more}"""
_KDC = """\
[kdcdefaults]
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {realm} = {{
        database_name = {folder}/principal
        key_stash_file = {folder}/stash
        max_life = 1h
{more}    }}
"""
_APACHE = """\
ServerRoot {folder}
ServerName {host}
PidFile {folder}/apache.pid
Mutex file:{folder}
Listen 127.0.0.1:{port}
{user}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authn_core_module {modules}/mod_authn_core.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule authz_user_module {modules}/mod_authz_user.so
LoadModule auth_gssapi_module {modules}/mod_auth_gssapi.so
ErrorLog {folder}/error.log
LogFormat "%>s %u %k %U" tests
CustomLog {folder}/access.log tests
DocumentRoot {folder}/site
ForceType text/html
StartServers 1
<Location "/">
    AuthType GSSAPI
    AuthName "tickets"
    GssapiCredStore keytab:{folder}/http.keytab
    Require valid-user
{lines}
</Location>
"""
_PROXY = """
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_http_module {modules}/mod_proxy_http.so
LoadModule headers_module {modules}/mod_headers.so
ProxyPreserveHost On
ProxyPass "/" "{behind}"
"""


def make_realm(
    folder: Path,
    port: int,
    run: Callable[..., object],
    keytabs: Mapping[str, str],
    client: str = "",
    kdc: str = "",
) -> None:
    """The files of a realm in ``folder``, and a keytab file for each principal, by name.

    ``run`` runs a command with KRB5_CONFIG and KRB5_KDC_PROFILE set to krb5.conf and kdc.conf in
    ``folder``. ``client`` and ``kdc`` are more lines of these two."""
    folder.chmod(0o755)
    (folder / "krb5.conf").write_text(_KRB5.format(realm=REALM, port=port, more=client))
    (folder / "kdc.conf").write_text(_KDC.format(realm=REALM, port=port, folder=folder, more=kdc))
    run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    for name, keytab in keytabs.items():
        for query in (f"addprinc -randkey {name}", f"ktadd -k {folder}/{keytab} {name}"):
            run("kadmin.local", "-r", REALM, "-q", query)


class KerberosSite:
    """Serves ``pages`` (path -> text) to clients with a ticket of the realm, or what is at the URL
    ``behind``; then ``lines`` are more lines of Apache's configuration."""

    def __init__(self, pages: Mapping[str, str], behind: str = "", lines: str = "") -> None:
        self.pages, self._behind, self._lines = dict(pages), behind, lines
        self.port = 0
        self._folder = tempfile.TemporaryDirectory(prefix="kerberos-")
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    @property
    def client(self) -> dict[str, str]:
        """For a process that may fetch; a ticket is in its cache."""
        return self.stranger | {"KRB5CCNAME": f"FILE:{self.folder}/ticket"}

    @property
    def stranger(self) -> dict[str, str]:
        """For a process that knows the realm and has no ticket."""
        return {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5CCNAME": f"FILE:{self.folder}/no-ticket",
        }

    def url(self, path: str = "/") -> str:
        return f"http://{_HOST}:{self.port}{path}"

    def requests(self, served: int = 0) -> list[tuple[int, str, int, str]]:
        """Apache's log so far: status, user or "-", requests before on its connection, path.

        Apache writes a line after its answer has left. This waits, for at most 5 seconds,
        until ``served`` lines have status 200."""
        end_time = time.monotonic() + _LOG_SECS
        while True:
            text = (self.folder / "access.log").read_text()
            parts = (line.split(" ", 3) for line in text[: text.rfind("\n") + 1].splitlines())
            found = [(int(status), user, int(nth), path) for status, user, nth, path in parts]
            enough = sum(status == 200 for status, *_ in found) >= served
            if enough or time.monotonic() > end_time:
                return found
            time.sleep(0.01)

    def __enter__(self) -> Self:
        try:
            self._make_realm()
            self._start_apache()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in reversed(self._children):
            end(child)
        self._children.clear()
        self._folder.cleanup()

    def _make_realm(self) -> None:
        folder, port = self.folder, free_port("127.0.0.1")
        keytabs = {f"HTTP/{_HOST}": "http.keytab", "crawler": "client.keytab"}
        make_realm(folder, port, self._run, keytabs)
        (folder / "http.keytab").chmod(0o644)  # Apache's workers are another user
        self._start("krb5kdc", "-n", "-r", REALM, "-P", str(folder / "kdc.pid"))
        self._wait_for("krb5kdc", port)
        self._run("kinit", "-k", "-t", str(folder / "client.keytab"), "crawler")

    def _start_apache(self) -> None:
        folder = self.folder
        (folder / "site").mkdir()
        for path, text in self.pages.items():
            file = folder / "site" / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.port = free_port("127.0.0.1")
        user = "User nobody\nGroup nogroup" if os.getuid() == 0 else ""
        config = _APACHE.format(
            folder=folder,
            host=_HOST,
            port=self.port,
            modules=_MODULES,
            user=user,
            lines=self._lines,
        )
        if self._behind:
            config = _PROXY.format(modules=_MODULES, behind=self._behind) + config
        (folder / "apache.conf").write_text(config)
        self._start("apache2", "-f", str(folder / "apache.conf"), "-DFOREGROUND")
        self._wait_for("apache2", self.port)

    def _environment(self) -> dict[str, str]:
        profile = {"KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"), "PATH": _PATH}
        return {**os.environ, **self.client, **profile}

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")

    def _start(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("wb") as out:
            self._children.append(
                subprocess.Popen(
                    command,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )

    def _wait_for(self, name: str, port: int) -> None:
        up = partial(listens, "127.0.0.1", port)
        wait_for(self._children[-1], self.folder / f"{name}.out", up)
