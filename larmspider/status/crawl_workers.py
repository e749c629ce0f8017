"""The workers of a crawl, as its pages name them: which of them run, and where each is served.

>>> workers_of(Path("crawl/atlas-1"))
Workers(own='atlas-1', root=Path('crawl'), rows=(Worker('atlas-1', 'running', 'http://...'), ...))

``scrapy serve`` shows all of them as one; the server of a worker shows what that worker has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from larmspider.crawl.reader import read_manifest
from larmspider.crawl.state import RunState, State
from larmspider.errors import CrawlDirError
from larmspider.files import replace_file
from larmspider.status.snapshot import Gauges
from larmspider.workdir.directory import shard_dirs
from larmspider.workdir.manifest import is_shared

# Where a crawl is served and its token, noted in its directory, for its own user alone to read.

SERVER_FILE = "web.json"


def write_server_file(directory: Path, url: str, token: str) -> None:
    """Say where the crawl in ``directory`` is served. Raises OSError."""
    content = json.dumps({"url": url, "token": token}).encode()
    replace_file(directory / SERVER_FILE, content, private=True)


def read_server_file(directory: Path) -> tuple[str, str] | None:
    """Address and token; None where there is no such note, or not for this user."""
    try:
        found = json.loads((directory / SERVER_FILE).read_text("utf-8"))
        url, token = found["url"], found["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(url, str) or not isinstance(token, str) or not url.startswith("http://"):
        return None
    return url, token


# The crawl that runs, as the pages see it: what it can tell beyond its directory, and do.
#
# local.py is the crawl of this process; remote.py one of another process, through its own server.


class Controller(Protocol):
    """Called on the event loop."""

    async def gauges(self) -> Gauges | None:
        """The crawl now; None where it cannot be reached."""
        ...

    async def act(self, name: str, form: Mapping[str, str], who: str) -> str:
        """Do one of acts.ACTS and say what was done. Raises HttpError."""
        ...


@dataclass(frozen=True, slots=True)
class Worker:
    """``url`` is where its own pages are, as it has noted for this user; "" where it is not
    known, or it does not run."""

    name: str
    state: str
    url: str


@dataclass(frozen=True, slots=True)
class Workers:
    """``own``: whose pages these are, "" for those of all. ``root`` is the crawl's LARM_DIR."""

    own: str
    root: Path
    rows: Sequence[Worker]


def workers_of(path: Path) -> Workers | None:
    """None for a crawl of one process, or no crawl."""
    if _shares(path):
        own, root = "", path
    elif _shares(path.parent):
        own, root = path.name, path.parent
    else:
        return None
    return Workers(own, root, tuple(_worker(shard) for shard in shard_dirs(root)))


def _shares(path: Path) -> bool:
    try:
        return is_shared(read_manifest(path))
    except CrawlDirError:
        return False


def _worker(shard: Path) -> Worker:
    state = RunState.of(shard).state
    noted = read_server_file(shard) if state is State.RUNNING else None
    return Worker(shard.name, state.value, noted[0] if noted else "")
