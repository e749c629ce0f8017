"""The workers of a crawl, as its pages name them: which of them run, and where each is served.

>>> workers_of(Path("crawl/atlas-1"))
Workers(own='atlas-1', root=Path('crawl'), rows=(Worker('atlas-1', 'running', 'http://...'), ...))

``scrapy serve`` shows all of them as one; the server of a worker shows what that worker has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from larmspider.crawl.reader import read_description
from larmspider.crawl.state import Condition, State
from larmspider.errors import CrawlDirError
from larmspider.status.noted import noted_server
from larmspider.workdir.directory import shard_dirs
from larmspider.workdir.manifest import is_shared


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
        return is_shared(read_description(path))
    except CrawlDirError:
        return False


def _worker(shard: Path) -> Worker:
    state = Condition.of(shard).state
    noted = noted_server(shard) if state is State.RUNNING else None
    return Worker(shard.name, state.value, noted[0] if noted else "")
