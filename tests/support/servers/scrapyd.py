"""A real scrapyd with directories, a port and a password of its own, ended by its process id.

    with Scrapyd(tmp_path) as node:
        node.add_version("larmspider", "1", egg)
        job = node.schedule("intranet", start=site.url(), settings={"LARM_DIR": "/tmp/x"})
        node.state(job)        # pending, running, finished
        node.log(job)          # over http

Its jobs import what is deployed: this process's PYTHONPATH is not handed on.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

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
        """What the job has written so far, asked for over http."""
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
        """What scrapyd itself has written."""
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
