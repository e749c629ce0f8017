"""One node of OpenSearch for all tests of a run, in whatever process they run.

node = shared_node(folder)      # starts it, unless another process of the run has
node.url("intranet-17")         # an index that no other test uses
end_shared_node(folder)         # at the end of the run
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.support.servers.opensearch.cluster import SETTINGS, Node, Searched
from tests.support.servers.processes import STOP_SECS

_HEAP = "512m"
_FILE = "running"
_started: list[Node] = []  # a process object that is forgotten is taken for an error


class SharedNode(Searched):
    def __init__(self, port: int) -> None:
        self.port = port


def shared_node(folder: Path) -> SharedNode:
    """The node with its data in ``folder``. Raises RuntimeError."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        running = folder / _FILE
        if not running.exists():
            node = Node(folder, "shared", _HEAP, SETTINGS | {"discovery.type": "single-node"})
            try:
                node.start()
            except RuntimeError:
                node.kill()
                raise
            _started.append(node)
            running.write_text(json.dumps([node.pid, node.port]))
        return SharedNode(json.loads(running.read_text())[1])


def end_shared_node(folder: Path) -> None:
    """End the node of `shared_node`, if there is one."""
    if not (folder / _FILE).exists():
        return
    pid, _ = json.loads((folder / _FILE).read_text())
    program = Path(f"/proc/{pid}/cmdline")
    for how in (signal.SIGTERM, signal.SIGKILL):
        last = time.monotonic() + STOP_SECS
        while _is_ours(program, folder) and time.monotonic() < last:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            time.sleep(0.1)
    (folder / _FILE).unlink()


def _is_ours(program: Path, folder: Path) -> bool:
    """Whether it is the node, and no other program of this number."""
    try:
        return f"path.home={folder}".encode() in program.read_bytes()
    except OSError:
        return False
