"""A real scrapyd with directories, a port and a password of its own, ended by its process id.

    with Scrapyd(tmp_path) as node:
        node.add_version("larmspider", "1", egg)
        job = node.schedule("intranet", start=site.url(), settings={"LARM_DIR": "/tmp/x"})
        node.state(job)        # pending, running, finished
        node.log(job)          # over http

Its jobs import the deployed egg: this process's PYTHONPATH is not handed on.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.support.crawling import PROJECT
from tests.support.servers.certificate import Authority
from tests.support.servers.nginx import NGINX
from tests.support.servers.processes import end, free_port, listens, wait_for

_START_SECS = 60.0
_STOP_SECS = 30.0
_ANSWER_SECS = 120.0  # addversion.json starts a process and waits for it

PASSWORD = "mole pier tide"
"""For the tests' own nodes."""


class Scrapyd:
    """``config``: a whole scrapyd.conf, where it is not the tests' own; ``environment`` is added to
    this process's. ``command`` is what starts it, in ``folder``."""

    def __init__(
        self,
        folder: Path,
        address: str = "127.0.0.1",
        *,
        config: str = "",
        environment: Mapping[str, str] = {},
        command: Sequence[str] = (sys.executable, "-W", "ignore", "-m", "scrapyd", "--pidfile="),
    ) -> None:
        self.folder, self.address = folder, address
        self.port = 0
        self.username, self.password = "larm", PASSWORD
        self._config, self._environment, self._command = config, environment, command
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, path: str = "/") -> str:
        return f"http://{self.address}:{self.port}{path}"

    def get(self, path: str, *, password: str | None = None) -> tuple[int, str]:
        """Status and body of a page."""
        return self._ask(Request(self.url(path)), password)

    def call(self, name: str, **fields: Any) -> dict[str, Any]:
        """A POST of scrapyd's interface (``cancel`` for cancel.json), which must answer "ok"."""
        body = urlencode(fields, doseq=True).encode()
        status, text = self._ask(Request(self.url(f"/{name}.json"), body))
        answer: dict[str, Any] = json.loads(text)
        assert (status, answer["status"]) == (200, "ok"), text
        return answer

    def read(self, name: str, **query: str) -> dict[str, Any]:
        """A GET of the same."""
        status, text = self.get(f"/{name}.json?{urlencode(query)}")
        answer: dict[str, Any] = json.loads(text)
        assert (status, answer["status"]) == (200, "ok"), text
        return answer

    def add_version(self, project: str, version: str, egg: Path) -> dict[str, Any]:
        """Deploy ``egg``; the answer has the number of its spiders."""
        mark = uuid.uuid4().hex
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in (("project", project), ("version", version))
        ]
        head = f'--{mark}\r\nContent-Disposition: form-data; name="egg"; filename="p.egg"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
        body = b"".join([*parts, head.encode(), egg.read_bytes(), f"\r\n--{mark}--\r\n".encode()])
        request = Request(self.url("/addversion.json"), body)
        request.add_header("Content-Type", f"multipart/form-data; boundary={mark}")
        answer: dict[str, Any] = json.loads(self._ask(request)[1])
        assert answer["status"] == "ok", answer
        return answer

    def schedule(self, spider: str, settings: Mapping[str, str] = {}, **arguments: str) -> str:
        """The id of a new job of project ``larmspider``."""
        values = [f"{name}={value}" for name, value in settings.items()]
        answer = self.call(
            "schedule", project="larmspider", spider=spider, setting=values, **arguments
        )
        return str(answer["jobid"])

    def state(self, job: str) -> str | None:
        """pending, running or finished; None for a job that scrapyd does not know."""
        state: str | None = self.read("status", job=job)["currstate"]
        return state

    def log(self, job: str, spider: str = "intranet") -> str:
        """The job's log so far, fetched over http."""
        status, text = self.get(f"/logs/larmspider/{spider}/{job}.log")
        assert status == 200, text
        return text

    def stop(self, *, group: bool = False) -> int:
        """SIGTERM, to its jobs too where ``group``; its exit status, negative for a signal."""
        assert self._process is not None
        if group:
            os.killpg(self._process.pid, signal.SIGTERM)
        else:
            self._process.terminate()
        return self._process.wait(_STOP_SECS)

    def own_log(self) -> str:
        """The log of scrapyd itself."""
        return (self.folder / "scrapyd.log").read_text("utf-8", "replace")

    def _ask(self, request: Request, password: str | None = None) -> tuple[int, str]:
        secret = self.password if password is None else password
        if secret:
            pair = base64.b64encode(f"{self.username}:{secret}".encode()).decode()
            request.add_header("Authorization", f"Basic {pair}")
        try:
            with urlopen(request, timeout=_ANSWER_SECS) as answer:
                return answer.status, answer.read().decode("utf-8", "replace")
        except HTTPError as error:
            with error:
                return error.code, error.read().decode("utf-8", "replace")

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port(self.address)
        own = f"[scrapyd]\nusername = {self.username}\npassword = {self.password}\n"
        own += "poll_interval = 0.2\nmax_proc = 2\n"
        (self.folder / "scrapyd.conf").write_text(self._config or own, "utf-8")
        environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
        environment |= {
            "HOME": str(self.folder),  # ~/.scrapyd.conf is another one's
            "SCRAPYD_BIND_ADDRESS": self.address,
            "SCRAPYD_HTTP_PORT": str(self.port),
            **self._environment,
        }
        with (self.folder / "scrapyd.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            up = partial(listens, self.address, self.port)
            wait_for(self._process, self.folder / "scrapyd.log", up, _START_SECS)
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
        if self._process is None:
            return
        end(self._process, secs=_STOP_SECS)  # with its jobs, which scrapyd leaves behind
        self._process = None


# deploy/nginx.conf before two real scrapyd nodes, with certificates of the tests' own.


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
