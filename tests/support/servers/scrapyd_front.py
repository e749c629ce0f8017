"""deploy/nginx.conf before two real scrapyd nodes, with certificates of the tests' own.

    with Front({"127.34.0.1": node.port, ...}, tmp_path) as front:
        front.ask("127.34.0.1", "/daemonstatus.json", headers)    # (status, headers, body)

Only addresses, paths and who is allowed differ from the example.
"""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Mapping
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.crawling import PROJECT
from tests.support.servers.certificate import Authority
from tests.support.servers.nginx import NGINX
from tests.support.servers.processes import end, free_port, listens, wait_for

_EXAMPLE = PROJECT / "deploy" / "nginx.conf"
_AROUND = """\
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{inside}
}}
"""


class Front:
    """``nodes``: port of scrapyd by the address that it and nginx listen on."""

    def __init__(self, nodes: Mapping[str, int], folder: Path) -> None:
        self.nodes, self.folder = nodes, folder
        self.ports = {address: free_port(address) for address in nodes}
        self.authority = Authority(folder)
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, address: str, path: str = "/") -> str:
        return f"https://{address}:{self.ports[address]}{path}"

    def ask(
        self, address: str, path: str, headers: Mapping[str, str] = {}, body: str | None = None
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers by lower-case name, and body; a POST where there is a ``body``."""
        context = ssl.create_default_context(cafile=str(self.authority.ca))
        client = HTTPSConnection(address, self.ports[address], context=context, timeout=60)
        try:
            client.request("POST" if body is not None else "GET", path, body, dict(headers))
            answer = client.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read().decode("utf-8", "replace")
        finally:
            client.close()

    def config(self) -> str:
        """The whole nginx.conf: the map and the zone once, a server for each node."""
        text = _EXAMPLE.read_text("utf-8")
        top, server = text[: text.index("server {")], text[text.index("server {") :]
        servers = []
        for address, port in self.nodes.items():
            certificate, key = self.authority.issue(address)
            replaced = {
                "10.0.0.1:6843": f"{address}:{self.ports[address]}",
                "/etc/nginx/tls/node1.crt": str(certificate),
                "/etc/nginx/tls/node1.key": str(key),
                "127.0.0.1:6800": f"{address}:{port}",
                "10.0.0.0/24": "127.0.0.0/8",
            }
            own = server
            for there, here in replaced.items():
                assert there in own, f"{_EXAMPLE} has no {there}"
                own = own.replace(there, here)
            servers.append(own)
        user = "user root;" if Path("/proc/self").stat().st_uid == 0 else ""
        inside = "\n".join([top, *servers])
        return _AROUND.format(user=user, folder=self.folder, inside=inside)

    def __enter__(self) -> Self:
        if NGINX is None:
            raise RuntimeError("nginx is not installed (Debian package nginx-light)")
        path = self.folder / "nginx.conf"
        path.write_text(self.config(), "utf-8")
        arguments = [NGINX, "-p", str(self.folder), "-c", str(path), "-e", "stderr"]
        tested = subprocess.run([*arguments, "-t"], capture_output=True, text=True, check=False)
        if tested.returncode or "warn" in tested.stderr:
            raise RuntimeError(f"nginx -t: {tested.stderr}")
        with (self.folder / "stderr").open("wb") as log:
            self._process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            for address, port in self.ports.items():
                wait_for(self._process, self.folder / "stderr", partial(listens, address, port))
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
        if self._process is not None:
            end(self._process)
            self._process = None
