"""Ends the crawls that run without a server, before larmspider is upgraded or removed."""

from __future__ import annotations

import time

from larmspider.errors import CrawlDirError
from larmspider.formatting import counted
from larmspider.server.home import Home
from larmspider.server.runs.process import STOP, Launcher
from larmspider.server.runs.runs import read_runs

_WAIT_SECS = 60.0
"""A crawl takes its last checkpoint within 5 s; a full disk of many crawls takes longer."""
_LOOK_SECS = 0.2


def halt(home: Home) -> str:
    """Each crawl takes a checkpoint and ends; the next server continues it. Raises CrawlDirError
    for a crawl that does not end."""
    launcher, running = Launcher(home), {}
    for name in home.crawls():
        run = read_runs(home.runs_of(name)).run
        found = launcher.adopt(name, run.pid if run else 0, run.born if run else 0)
        if found is not None:
            found.signal(STOP)
            running[name] = found
    deadline = time.monotonic() + _WAIT_SECS
    while left := [name for name, one in running.items() if one.status() is None]:
        if time.monotonic() > deadline:
            raise CrawlDirError(f"{', '.join(left)}: still running {_WAIT_SECS:g} s after SIGTERM")
        time.sleep(_LOOK_SECS)
    return f"{counted(len(running), 'crawl')} ended"
