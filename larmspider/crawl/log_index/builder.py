"""Keeps the index of the logs up to date beside the web pages, in a process of lowest priority.

    builder = IndexBuilder()
    builder.keep(crawl)      # IndexProgress(time=1769860800.0, running=True, done=0.4)

A process starts when a page that needs the index is viewed and the logs have grown. Only one runs
at a time; the next starts after ten times the duration of the last. Without viewers it costs
nothing; with constant viewers it takes 9% of a processor that is otherwise idle.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from larmspider.crawl.log_index.index import IndexBusyError
from larmspider.crawl.log_index.update import Progress, Update
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import LarmspiderError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.learned.describe import stand_in
from larmspider.learned.spellings.merging import UNDONE
from larmspider.workdir.access import follow_mode

REST = 10
"""The pause between two updates, in durations of the last update."""
MIN_REST_SECS = 10.0
_BUSY = 3
"""Exit status while another process brings the index up to date."""
_PROGRAM = """\
import sys
sys.path[:] = {path!r}
from larmspider.crawl.log_index.builder import child
child({directory!r}, {workers!r}, {parent!r})
"""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """``time``: the time of the index's last update, 0.0 without an index. ``done``: the share of
    the logs' bytes in the index. ``running``: whether the index is being updated now. ``problem``:
    why the index cannot be made."""

    time: float = 0.0
    running: bool = False
    done: float = 0.0
    problem: str = ""

    @property
    def ready(self) -> bool:
        """Whether the index has been whole once: before, its lists lack most of the crawl."""
        return self.time > 0 or (self.done >= 1 and not self.running)


def bring_up_to_date(crawl: CrawlDir, progress: Progress = lambda _done, _all: None) -> None:
    """Update the index in this process. Raises CrawlDirError; IndexBusyError while another process
    does it."""
    ends = crawl.committed()
    with crawl.frontier() as frontier:
        merged = {} if frontier is None else _merged(crawl, frontier)
        undone = 0 if frontier is None else int(frontier.note(UNDONE) or b"0")
    Update(
        crawl.path,
        ends,
        crawl.began,
        lambda url: crawl.forms(url).exact,
        merged=merged,
        undone=undone,
        progress=progress,
    ).run()


def _merged(crawl: CrawlDir, frontier: FrontierReader) -> dict[bytes, bytes]:
    """The exact form of each merged URL, and of the URL that stands for it."""
    pairs = ((one.entry.url, stand_in(frontier, one)) for one in frontier.all_merged() if one.rules)
    exact = ((crawl.forms(url).exact, crawl.forms(page).exact) for url, page in pairs if page)
    return {url.encode(): page.encode() for url, page in exact}


class IndexBuilder:
    """``start`` makes the process; threads may use it together."""

    def __init__(
        self,
        start: Callable[[CrawlDir], subprocess.Popen[bytes]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start, self._clock = start or _start_process, clock
        self._child: subprocess.Popen[bytes] | None = None
        self._began = self._due = 0.0
        self._problem = ""
        self._lock = threading.Lock()

    def keep(self, crawl: CrawlDir) -> IndexProgress:
        """How far the index is; starts a process where the logs have grown. 1 ms."""
        with crawl.logs.index() as index:
            state = {} if index is None else index.state()
        ends = crawl.committed()
        positions = state.get("positions", {})
        read = sum(min(end, positions.get(log, 0)) for log, end in ends.items())
        whole = sum(ends.values())
        with self._lock:
            self._reap()
            if self._child is None and read < whole and self._clock() >= self._due:
                self._began = self._clock()
                self._child = self._start(crawl)
            return IndexProgress(
                time=float(state.get("time", 0.0)),
                running=self._child is not None,
                done=read / whole if whole else 1.0,
                problem=self._problem,
            )

    def _reap(self) -> None:
        if self._child is None or (status := self._child.poll()) is None:
            return
        took = self._clock() - self._began
        self._due = self._clock() + max(MIN_REST_SECS, REST * took)
        self._child = None
        self._problem = "" if status in (0, _BUSY) else f"its process ended with status {status}"

    def stop(self) -> None:
        """End the process; its finished batches are kept."""
        with self._lock:
            if self._child is not None:
                with suppress(ProcessLookupError):
                    self._child.kill()
                self._child.wait()
                self._child = None
            self._due = float("inf")


def _start_process(crawl: CrawlDir) -> subprocess.Popen[bytes]:
    workers = [str(part.path) for part in crawl.parts if part is not crawl]
    program = _PROGRAM.format(
        path=sys.path, directory=str(crawl.path), workers=workers, parent=os.getpid()
    )
    return subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
        [sys.executable, "-W", "ignore", "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        process_group=0,  # signals to the crawl's group are for the crawl
    )


def child(directory: str, workers: list[str], parent: int) -> None:
    """The process's program; it ends with its parent."""
    os.nice(19)

    def still_wanted(_done: int, _all: int) -> None:
        if os.getppid() != parent:
            raise SystemExit(1)

    try:
        crawl = open_crawl(Path(directory), [*map(Path, workers)])
        follow_mode(crawl.manifest, *crawl.places)
        bring_up_to_date(crawl, still_wanted)
    except IndexBusyError:
        raise SystemExit(_BUSY) from None
    except LarmspiderError as error:
        raise SystemExit(f"The index of the logs cannot be built: {error}") from None
