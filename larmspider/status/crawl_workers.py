"""The workers of a crawl: which of them run, where each is served, and how they are controlled.

>>> workers_of(Path("crawl/atlas-1"))
WorkerList(own='atlas-1', root=Path('crawl'), rows=(WorkerRow(...), ...))

``scrapy serve`` shows all of them as one; the server of a worker shows what that worker has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from larmspider.crawl.reader import read_manifest
from larmspider.crawl.state import RunState, State
from larmspider.errors import CrawlDirError
from larmspider.files import replace_file
from larmspider.status.snapshot import Gauges
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.manifest import is_shared

SERVER_FILE = "web.json"
"""Where a crawl is served, and its token, for its own user alone to read."""


class Access(NamedTuple):
    """How a command of the crawl's user reaches its server: ``key`` is sent instead of the token.
    Wrong tokens of other users do not block it. ``socket``: a Unix socket, "" for a port."""

    url: str
    key: str
    socket: str = ""


def write_server_file(
    directory: Path, url: str, token: str, key: str, *, socket: str = "", name: str = SERVER_FILE
) -> None:
    """Write where the crawl in ``directory`` is served: ``socket`` is a file there. Raises
    OSError."""
    content = json.dumps({"url": url, "token": token, "key": key, "socket": socket}).encode()
    replace_file(directory / name, content, private=True, synced=False)


def read_server_file(directory: Path) -> tuple[str, str] | None:
    """Address and token; None if the file is absent, or if this user may not read it. The
    address is "" if no browser can reach the crawl."""
    found = _server_file(directory)
    if found is None:
        return None
    return ("" if found.get("socket") else found["url"]), found["token"]


def own_access(directory: Path, name: str = SERVER_FILE) -> Access | None:
    """Address, and a key that commands of the crawl's user send instead of the token, because wrong
    tokens of other users cannot block it. None if the crawl has no server, or none for this
    user."""
    found = _server_file(directory, name)
    if found is None:
        return None
    file = found.get("socket", "")
    socket = str(directory / Path(file).name) if isinstance(file, str) and file else ""
    return Access(found["url"], found["key"], socket)


def _server_file(directory: Path, name: str = SERVER_FILE) -> dict[str, str] | None:
    try:
        found = json.loads((directory / name).read_text("utf-8"))
        url, known = found["url"], (found["token"], found["key"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    is_one = isinstance(url, str) and url.startswith("http://")
    return found if is_one and all(isinstance(one, str) for one in known) else None


class Controller(Protocol):
    """A running crawl, in this process or another (control/controller.py): its data beyond the
    directory, and its actions. Called on the event loop."""

    async def gauges(self) -> Gauges | None:
        """The gauges of the crawl now; None if it cannot be reached."""
        ...

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        """Carry out an operator's action and return its result. Raises HttpError."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """``url`` is the address of its own pages, by its server file; "" if it is not known, or
    the worker does not run."""

    name: str
    state: str
    url: str


@dataclass(frozen=True, slots=True)
class WorkerList:
    """``own``: the worker that these pages are about, "" for all. ``root``: the crawl's
    LARM_DIR."""

    own: str
    root: Path
    rows: Sequence[WorkerRow]


def workers_of(path: Path) -> WorkerList | None:
    """None for a crawl of one process, or no crawl."""
    if _shares(path):
        own, root = "", path
    elif _shares(path.parent):
        own, root = path.name, path.parent
    else:
        return None
    return WorkerList(own, root, tuple(map(_row, worker_dirs(root))))


def _shares(path: Path) -> bool:
    try:
        return is_shared(read_manifest(path))
    except CrawlDirError:
        return False


def _row(worker: Path) -> WorkerRow:
    state = RunState.of(worker).state
    server = read_server_file(worker) if state is State.RUNNING else None
    return WorkerRow(worker.name, state.value, server[0] if server else "")
