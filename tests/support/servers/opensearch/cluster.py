"""Real nodes of OpenSearch on free loopback ports, with their data in a folder of their own.

    with OpenSearchCluster(3) as cluster:
        cluster.url("intranet")             # of the first node
        cluster.nodes[1].kill()             # kill -9
        cluster.nodes[1].start()            # with what it had, on the same ports
        cluster.ask("GET", "/_cluster/health")

A node is a process of Java (building.py) that ends by its pid.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.servers.opensearch.building import class_path
from tests.support.servers.processes import end, free_port, wait_for

HOST = "127.0.0.1"
START_SECS = 600.0
"""A start takes 4 s of CPU: minutes on a machine that runs other tests."""
_ANSWER_SECS = 300.0
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""With the second compiler a start takes 8 s of CPU, without it 4 s."""
SETTINGS = {
    "http.type": "netty4",
    "transport.type": "netty4",
    "http.host": HOST,
    "transport.host": HOST,
    "node.processors": "2",
    "cluster.routing.allocation.disk.threshold_enabled": "false",  # whatever disk tests run on
}


def asked(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and answer. Raises OSError."""
    connection = HTTPConnection(HOST, port, timeout=_ANSWER_SECS)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class Node:
    def __init__(
        self,
        folder: Path,
        name: str,
        heap: str,
        settings: dict[str, str],
        jvm: Sequence[str] = JVM,
    ) -> None:
        self.folder, self.heap, self._jvm = folder, heap, jvm
        self.port, self.transport = free_port(HOST), free_port(HOST)
        self.settings = settings | {
            "path.home": str(folder),
            "path.data": str(folder / "data"),
            "node.name": name,
            "http.port": str(self.port),
            "transport.port": str(self.transport),
        }
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._child.pid if self._child else 0

    @property
    def log(self) -> Path:
        return self.folder / "output"

    def begin(self) -> None:
        """Start it, and do not wait until it answers."""
        self.folder.mkdir(exist_ok=True)
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [
                    *(
                        "java",
                        f"-Xms{self.heap}",
                        f"-Xmx{self.heap}",
                        *self._jvm,
                        "-cp",
                        class_path(),
                    ),
                    *("OpenSearchNode", *(f"{one}={is_}" for one, is_ in self.settings.items())),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait(self, others: Sequence[Node] = ()) -> None:
        """Until it is part of a cluster with ``others``. Raises RuntimeError."""
        assert self._child is not None

        def is_up() -> bool:
            for one in others:
                one.check()
            return self._is_up()

        wait_for(self._child, self.log, is_up, START_SECS, every=0.2)

    def check(self) -> None:
        """Raises RuntimeError if it has ended by itself, as when its port was taken meanwhile."""
        if self._child is not None and self._child.poll() is not None:
            raise RuntimeError(f"{self.log} ended: {self.log.read_text()[-2000:]}")

    def start(self) -> None:
        self.begin()
        self.wait()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._child is not None:
            end(self._child, how, 60)
            self._child = None

    def _is_up(self) -> bool:
        try:
            return asked(self.port, "GET", "/_cluster/health")[0] == 200
        except OSError:
            return False


class Searched:
    """Asks OpenSearch at ``port``."""

    port: int

    def url(self, index: str) -> str:
        return f"http://{HOST}:{self.port}/{index}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Raises RuntimeError for an error."""
        status, answer = asked(self.port, method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def documents(self, index: str) -> dict[str, dict[str, Any]]:
        """All documents of an index or alias, by id."""
        self.ask("POST", f"/{index}/_refresh")
        return {hit["_id"]: hit["_source"] for hit in self._hits(index)}

    def _hits(self, index: str) -> Iterator[dict[str, Any]]:
        wanted: dict[str, Any] = {"size": 1_000, "sort": ["_doc"], "query": {"match_all": {}}}
        answer = self.ask("POST", f"/{index}/_search?scroll=5m", wanted)
        while answer["hits"]["hits"]:
            yield from answer["hits"]["hits"]
            more = {"scroll": "5m", "scroll_id": answer["_scroll_id"]}
            answer = self.ask("POST", "/_search/scroll", more)
        self.ask("DELETE", "/_search/scroll", {"scroll_id": answer["_scroll_id"]})


class OpenSearchCluster(Searched):
    def __init__(
        self, size: int = 1, heap: str = "512m", jvm: Sequence[str] = JVM, **settings: str
    ) -> None:
        """``settings`` of its nodes; ``__`` stands for a dot."""
        self._size, self._heap, self._jvm = size, heap, jvm
        self._settings = SETTINGS | {
            name.replace("__", "."): value for name, value in settings.items()
        }
        self.nodes: list[Node] = []
        self._running = ExitStack()

    @property
    def port(self) -> int:
        """Of the first node that runs."""
        return next(node.port for node in self.nodes if node.pid)

    def wait_for_nodes(self, number: int) -> None:
        """Raises RuntimeError."""
        last = time.monotonic() + START_SECS
        while self.ask("GET", "/_cluster/health")["number_of_nodes"] != number:
            if time.monotonic() > last:
                raise RuntimeError(f"the cluster does not have {number} nodes")
            time.sleep(0.2)

    def __enter__(self) -> Self:
        folder = tempfile.TemporaryDirectory(prefix="opensearch-")
        with ExitStack() as running:
            home = Path(running.enter_context(folder))
            names = [f"node-{number}" for number in range(1, self._size + 1)]
            for name in names:
                self.nodes.append(Node(home / name, name, self._heap, self._settings, self._jvm))
                running.callback(self.nodes[-1].kill)
            for node in self.nodes:
                if self._size == 1:
                    node.settings["discovery.type"] = "single-node"
                else:
                    hosts = (f"{HOST}:{one.transport}" for one in self.nodes)
                    node.settings["discovery.seed_hosts"] = ",".join(hosts)
                    node.settings["cluster.initial_cluster_manager_nodes"] = ",".join(names)
                node.begin()
            for node in self.nodes:
                node.wait(self.nodes)
            self.wait_for_nodes(self._size)
            self._running = running.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.close()
        self.nodes = []
