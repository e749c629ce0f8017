"""A real nginx for tests and measurements: static folders on loopback addresses, one free port.

    with Nginx({"127.0.0.1": docs, "127.0.0.2": wiki}) as server:
        server.url("127.0.0.2", "/index.html")    # http://127.0.0.2:<port>/index.html
        server.requests()                         # what it was asked, from its own access log

It runs as a child in the foreground with its own configuration, logs and process id in a temporary
folder, and ends with its context by that id.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.servers.processes import end, free_port, listens, wait_for

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
"""The program, None where it is not installed."""

_LOG_SECS = 60.0

_CONFIG = """\
daemon off;
{user}
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    types {{
        text/html html htm; text/css css; text/plain txt; text/xml xml;
        application/javascript js; application/pdf pdf;
        image/png png; image/gif gif; image/jpeg jpg jpeg; image/svg+xml svg;
    }}
    default_type application/octet-stream;
    log_format tests '$msec\\t$server_addr\\t$request_method\\t$request_uri\\t$status\\t'
                     '$body_bytes_sent\\t$connection\\t$http_user_agent';
    access_log {folder}/access.log tests;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    sendfile on;
    autoindex off;
    keepalive_requests 1000000;
{servers}
}}
"""

_SERVER = """\
    server {{
        listen {address}:{port}{tls};
        server_name _;
        {inside}
    }}
"""


@dataclass(frozen=True, slots=True)
class NginxRequest:
    """One line of the access log. ``time`` is the end of the request in seconds since the epoch,
    ``target`` the path with query as sent, ``sent`` the body's bytes, ``connection`` its number."""

    time: float
    address: str
    method: str
    target: str
    status: int
    sent: int
    connection: int
    user_agent: str


class Nginx:
    """Serves ``roots`` (loopback address -> folder, or the inside of a server block as text).

    Raises RuntimeError with nginx's own message where it does not come up. ``workers`` is the
    number of its processes; one is enough for thousands of pages a second. The addresses in ``tls``
    speak https; their blocks name a certificate. ``port`` 0: a free one.
    """

    def __init__(
        self,
        roots: Mapping[str, Path | str],
        workers: int = 1,
        tls: Collection[str] = (),
        port: int = 0,
    ) -> None:
        self.roots = dict(roots)
        self._wanted_port = port
        self.tls = frozenset(tls)
        self.workers = workers
        self.port = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of nginx's master process; 0 while it does not run."""
        return self._child.pid if self._child else 0

    @property
    def folder(self) -> Path:
        """Where configuration and logs are; gone after the context."""
        if self._folder is None:
            raise RuntimeError("this nginx does not run")
        return Path(self._folder.name)

    def url(self, address: str | None = None, path: str = "/") -> str:
        """The URL of ``path`` on ``address``, by default on the first one."""
        address = address or next(iter(self.roots))
        return f"http{'s' * (address in self.tls)}://{address}:{self.port}{path}"

    def requests(self, at_least: int = 0) -> list[NginxRequest]:
        """The access log so far.

        nginx writes a line after its answer has left, so that a client may be quicker: ``at_least``
        waits for that many lines. Raises TimeoutError after 5 seconds.
        """
        end = time.monotonic() + _LOG_SECS
        while True:
            text = (self.folder / "access.log").read_text("utf-8", "replace")
            lines = text[: text.rfind("\n") + 1].splitlines()
            if len(lines) >= at_least:
                return [_parse_line(line) for line in lines]
            if time.monotonic() > end:
                raise TimeoutError(f"nginx has logged {len(lines)} of {at_least} requests")
            time.sleep(0.002)

    def __enter__(self) -> Self:
        if NGINX is None:
            raise RuntimeError("nginx is not installed (Debian package nginx-light)")
        self._folder = tempfile.TemporaryDirectory(prefix="nginx-")
        self.folder.chmod(0o755)
        self.port = self._wanted_port or free_port(*self.roots)
        config = self.folder / "nginx.conf"
        config.write_text(self._config(), "utf-8")
        arguments = [NGINX, "-p", str(self.folder), "-c", str(config), "-e", "stderr"]
        with (self.folder / "stderr").open("wb") as stderr:
            self._child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            for address in self.roots:
                up = partial(listens, address, self.port)
                wait_for(self._child, self.folder / "stderr", up)
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
        if self._child is not None:
            end(self._child)
            self._child = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _config(self) -> str:
        servers = "".join(
            _SERVER.format(
                address=address,
                port=self.port,
                tls=" ssl" * (address in self.tls),
                inside=_inside(root),
            )
            for address, root in self.roots.items()
        )
        # Started as root, its workers would run as a user who may not read a test's folder.
        user = "user root;" if Path("/proc/self").stat().st_uid == 0 else ""
        return _CONFIG.format(folder=self.folder, servers=servers, workers=self.workers, user=user)


def _inside(root: Path | str) -> str:
    if isinstance(root, str):
        return root
    quoted = str(root.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    return f'root "{quoted}"; index index.html index.htm;'


def _parse_line(line: str) -> NginxRequest:
    when, address, method, target, status, sent, connection, agent = line.split("\t", 7)
    return NginxRequest(
        float(when), address, method, target, int(status), int(sent), int(connection), agent
    )


# Real documentation sites on disk: folders of Debian packages, served by nginx in the tests.


DOCS_SITES = {
    "python3.11-doc": Path("/usr/share/doc/python3.11-doc/html"),
    "postgresql-doc-15": Path("/usr/share/doc/postgresql-doc-15/html"),
}
"""Debian package -> the folder of its pages."""


def docs_site(package: str) -> Path:
    """The folder of a package's pages; skips the test where the package is not installed."""
    folder = DOCS_SITES[package]
    if not (folder / "index.html").exists():
        pytest.skip(f"Debian package {package} is not installed: {folder} has no index.html")
    return folder
