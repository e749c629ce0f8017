"""Crawls on other machines, as jobs of scrapyd nodes (docs/deploy.md).

    nodes = Nodes(home, settings, secrets)
    running = nodes.start("wiki", crawl, number=7, refresh="")     # a Running, as of process.py
    running.status()                                               # None while a job runs

A thread for each run schedules its jobs, looks at them every POLL_SECS, cancels them, and keeps the
ends of their logs in the run's log. The jobs have names that the next server finds again:
``larm-wiki-7-0``. Requests to a node that does not answer are retried; its jobs count as running.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit

from larmspider.errors import ConfigError, LarmspiderError
from larmspider.files import make_folder, replace_file
from larmspider.server.config.crawl_file import settings_of
from larmspider.server.config.crawl_schema import Crawl
from larmspider.server.config.secrets import Secrets
from larmspider.server.config.server_settings import Node, ServerSettings
from larmspider.server.home import Home
from larmspider.server.runs.process import UNKNOWN, log_of

logger = logging.getLogger(__name__)

PROJECT, SPIDER = "larmspider", "intranet"
POLL_SECS = 5.0
TIMEOUT_SECS = 20.0
LOG_EVERY = 6
"""Checks of the jobs between two copies of their logs."""
LOG_BYTES = 65_536
"""The end of a job's log that is kept."""
_MAX_ANSWER = 10_000_000
REFUSED, TEMPORARY = 2, 75
"""Exit statuses, as of a crawl here (docs/operations.md)."""


class NodeError(LarmspiderError):
    """A node does not answer, or not as scrapyd."""


class NodeRefusedError(NodeError):
    """scrapyd refuses a request."""


@dataclass(frozen=True, slots=True)
class NodeClient:
    """Sends requests to one node."""

    name: str
    node: Node
    password: str

    def read(self, call: str, **query: str) -> dict[str, Any]:
        return self._json(f"{call}.json?{urlencode(query)}")

    def post(self, call: str, fields: list[tuple[str, str]]) -> dict[str, Any]:
        return self._json(f"{call}.json", urlencode(fields).encode())

    def log(self, job: str) -> str:
        """The end of a job's log; "" if there is none."""
        path = f"logs/{PROJECT}/{SPIDER}/{quote(job)}.log"
        for last in (LOG_BYTES, 0):  # Twisted refuses the last bytes of a shorter file
            try:
                return self._ask(path, None, last)[-LOG_BYTES:].decode("utf-8", "replace")
            except NodeError:
                continue
        return ""

    def _json(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        try:
            found = json.loads(self._ask(path, body))
        except (ValueError, RecursionError):
            raise NodeError(f"node {self.name} answers, but not as scrapyd") from None
        if not isinstance(found, dict):
            raise NodeError(f"node {self.name} answers, but not as scrapyd")
        if found.get("status") != "ok":
            raise NodeRefusedError(f"node {self.name}: {str(found.get('message'))[:500]}")
        return found

    def _ask(self, path: str, body: bytes | None, last: int = 0) -> bytes:
        request = urllib.request.Request(self.node.url.rstrip("/") + "/" + path, body)  # noqa: S310
        if last:
            request.add_header("Range", f"bytes=-{last}")
        if self.password:
            pair = base64.b64encode(f"{self.node.user}:{self.password}".encode()).decode()
            request.add_header("Authorization", f"Basic {pair}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
        try:
            with opener.open(request, timeout=TIMEOUT_SECS) as answer:
                found: bytes = answer.read(_MAX_ANSWER)
                return found
        except HTTPError as error:
            with error:
                raise NodeError(f"node {self.name}: HTTP status {error.code}") from None
        except (OSError, HTTPException, ValueError) as error:
            why = getattr(error, "reason", error)
            raise NodeError(f"node {self.name} cannot be reached: {why}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class NodeRun:
    """The jobs of a run; ``born`` is its number."""

    def __init__(
        self, clients: Mapping[str, NodeClient], log: Path, number: int, poll_secs: float
    ) -> None:
        self.pid, self.born = 0, number
        self._clients, self._log, self._poll_secs = clients, log, poll_secs
        self._status: int | None = None
        self._stop = threading.Event()

    def begin(self, fields: Mapping[str, list[tuple[str, str]]]) -> None:
        """Look after the jobs in a thread; schedule the jobs in ``fields`` first."""
        threading.Thread(target=self._run, args=(fields,), daemon=True).start()

    def status(self) -> int | None:
        return self._status

    def signal(self, number: int) -> None:
        self._stop.set()

    def _run(self, fields: Mapping[str, list[tuple[str, str]]]) -> None:
        try:
            self._status = self._schedule(fields) or self._follow()
        except Exception:
            logger.exception("Error while looking after jobs")
            self._status = UNKNOWN

    def _schedule(self, fields: Mapping[str, list[tuple[str, str]]]) -> int:
        done = list[str]()
        for job, values in fields.items():
            try:
                self._clients[job].post("schedule", values)
                done.append(job)
            except NodeError as error:
                logger.error("%s", error)
                self._keep(f"larmspider crawl: {error}\n")
                for one in done:
                    self._cancel(one)
                return REFUSED if isinstance(error, NodeRefusedError) else TEMPORARY
        return 0

    def _follow(self) -> int:
        """Wait for the end of all jobs."""
        looks, cancelled, said = 0, set[str](), ""
        while True:
            states = dict[str, str | None]()
            for job, client in self._clients.items():
                try:
                    states[job] = client.read("status", job=job).get("currstate")
                except NodeError as error:
                    states[job] = "running"
                    if said != str(error):
                        said = str(error)
                        logger.warning("%s", said)
            left = {job for job, state in states.items() if state in ("pending", "running")}
            if not left or looks % LOG_EVERY == 0:
                self._keep_logs()
            if not left:
                return 0
            looks += 1
            if self._stop.is_set():
                for job in left - cancelled:
                    if self._cancel(job):
                        cancelled.add(job)
                threading.Event().wait(self._poll_secs)
            else:
                self._stop.wait(self._poll_secs)

    def _cancel(self, job: str) -> bool:
        try:
            self._clients[job].post("cancel", [("project", PROJECT), ("job", job)])
        except NodeError as error:
            logger.warning("%s", error)
            return False
        return True

    def _keep_logs(self) -> None:
        parts = [
            f"== {job} on {client.name}\n{client.log(job)}\n"
            for job, client in self._clients.items()
        ]
        self._keep("".join(parts))

    def _keep(self, text: str) -> None:
        try:
            replace_file(self._log, text.encode("utf-8", "replace"), private=True, synced=False)
        except OSError as error:
            logger.error("%s: %s", self._log, error.strerror)


class Nodes:
    """Starts and finds runs on the nodes that server.toml names."""

    def __init__(
        self,
        home: Home,
        settings: ServerSettings,
        secrets: Secrets,
        poll_secs: float = POLL_SECS,
    ) -> None:
        self._home, self._settings, self._secrets = home, settings, secrets
        self._poll_secs = poll_secs

    def start(self, name: str, crawl: Crawl, number: int, refresh: str) -> NodeRun:
        """Raises ConfigError for a node that server.toml does not name, or cannot be used."""
        jobs = self._jobs(name, crawl, number)
        run = self._run(name, jobs, number)
        fields = {}
        for at, (job, client) in enumerate(jobs.items()):
            # the machines of two nodes may have one name
            worker = f"{client.name}-{at % crawl.run.workers}" if len(jobs) > 1 else ""
            fields[job] = self._fields(name, crawl, client, job, refresh, worker)
        run.begin(fields)
        return run

    def adopt(self, name: str, crawl: Crawl, number: int) -> NodeRun | None:
        """Take over the run that an earlier server started; None if no job runs. Its number is 0 if
        it is not known."""
        try:
            clients = self._used(crawl)
        except ConfigError as error:
            logger.error("%s: %s", name, error)
            return None
        number = number or max((self._last(client, name) for client in clients), default=0)
        if not number:
            return None
        run = self._run(name, self._jobs(name, crawl, number), number)
        run.begin({})
        return run

    def _last(self, client: NodeClient, name: str) -> int:
        """The number of the run whose jobs a node has now; 0 if it has none."""
        try:
            answer = client.read("listjobs", project=PROJECT)
        except NodeError as error:
            logger.error("%s: %s", name, error)
            return 0
        jobs = [str(one.get("id")) for key in ("pending", "running") for one in answer.get(key, ())]
        found = (job.rsplit("-", 2) for job in jobs)  # a job of wiki-2 begins like one of wiki
        numbers = [parts[1] for parts in found if parts[0] == f"larm-{name}" and len(parts) == 3]
        return max((int(n) for n in numbers if n.isdecimal()), default=0)

    def _run(self, name: str, jobs: Mapping[str, NodeClient], number: int) -> NodeRun:
        folder = self._home.runs_of(name)
        try:
            make_folder(folder)
        except OSError as error:
            raise ConfigError(f"{folder}: {error.strerror}") from None
        return NodeRun(jobs, log_of(folder, number), number, self._poll_secs)

    def _jobs(self, name: str, crawl: Crawl, number: int) -> dict[str, NodeClient]:
        clients = [client for client in self._used(crawl) for _ in range(crawl.run.workers)]
        return {f"larm-{name}-{number}-{n}": client for n, client in enumerate(clients)}

    def _used(self, crawl: Crawl) -> list[NodeClient]:
        found = []
        for name in crawl.run.nodes:
            node = self._settings.nodes.get(name)
            if node is None:
                known = ", ".join(self._settings.nodes)
                expected = f"expected one of {known}" if known else "it has no table [nodes.NAME]"
                raise ConfigError(f"run.nodes: server.toml has no node {name[:64]!r}: {expected}")
            found.append(NodeClient(name, node, self._password(name, node)))
        return found

    def _password(self, name: str, node: Node) -> str:
        if not node.secret:
            return ""
        found = self._secrets.of(node.secret)
        if not found.may_go_to(urlsplit(node.url).netloc):
            raise ConfigError(
                f"node {name}: the secret {node.secret} does not go to {node.url}: its own line"
                f" names {' '.join(found.hosts)}"
            )
        return found.secret.reveal()

    def _fields(
        self, name: str, crawl: Crawl, client: NodeClient, job: str, refresh: str, worker: str
    ) -> list[tuple[str, str]]:
        settings: dict[str, Any] = settings_of(crawl)
        settings |= {"LARM_DIR": f"{client.node.directory.rstrip('/')}/{name}", "LARM_WEB": "no"}
        # "": a separate crawl, not a worker
        settings |= {"LARM_WORKER": worker} if worker else {"REDIS_URL": ""}
        fields = [("project", PROJECT), ("spider", SPIDER), ("jobid", job), ("resume", "anyway")]
        fields += [("refresh", refresh)] if refresh else []
        return [*fields, *(("setting", f"{key}={_text(one)}") for key, one in settings.items())]


def _text(value: Any) -> str:
    """A setting as the command line has it."""
    return value if isinstance(value, str) else json.dumps(value)
