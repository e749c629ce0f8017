"""The data of the web pages: a crawl's directory, and the running crawl if it can be reached.

    source.crawl               CrawlDir; raises CrawlDirError while there is no crawl
    source.settings            the settings of the crawl
    source.hosts()             a HostRow for each host, read at most every HOSTS_SECS
    source.keep_logs_indexed() the index of links: as of when
    source.searcher()          the index; raises CrawlDirError without an index
    source.controller          gauges and actions of the running crawl; None if it is unreachable

Methods are called in threads (work.py), several at a time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from larmspider import options, program
from larmspider.access.lists import Reader
from larmspider.access.table import NO_SLOT, AccessTable, has_lists
from larmspider.access.verdicts import Verdicts
from larmspider.crawl.log_index.builder import IndexBuilder, IndexProgress
from larmspider.crawl.log_index.index import BrokenCache
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.search_engines import searcher_of
from larmspider.crawl.state import RunState, State
from larmspider.crawl.worker_dirs import CrawlOfWorkers, open_crawl
from larmspider.errors import CrawlDirError
from larmspider.formatting import counted
from larmspider.index.access import Access, without_rights
from larmspider.index.link_access import covered
from larmspider.index.schema import FILES
from larmspider.index.version import has_index, restricted_of
from larmspider.learned.describe import HostRow, host_rows
from larmspider.learned.factory import politeness_from
from larmspider.search.gather import AGAIN_SECS
from larmspider.search.searcher import Searcher
from larmspider.status.crawl_workers import WorkerList, workers_of
from larmspider.status.refreshing import RefreshingCache
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.manifest import MANIFEST
from larmspider.workdir.restricted import restricted_or_all

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.frontier.politeness import Politeness
    from larmspider.status.crawl_workers import Controller

T = TypeVar("T")

HOSTS_SECS = 5.0
"""The age limit of the table of hosts; a checkpoint is taken as often."""
QUICK_SECS = 0.1
"""A table of hosts that is made in less, some 5,000 hosts, is made again after each checkpoint, so
that all pages and commands have the same numbers."""


class Source:
    """``settings_of`` gives the settings to read a crawl's directory with, ``opened`` opens it."""

    def __init__(
        self,
        path: Path,
        settings_of: Callable[[CrawlDir], BaseSettings],
        controller: Controller | None = None,
        opened: Callable[[Path], CrawlDir] = open_crawl,
        name: str = "",
        others: Sequence[Source] = (),
        is_planned: bool = False,
    ) -> None:
        """``others`` are further crawls; the search covers the pages of all. Each crawl then has a
        ``name``. Everything else shows this one. ``is_planned``: a server has a file for the crawl,
        so a missing directory means that it has not begun."""
        self.name, self.others, self._is_planned = name, others, is_planned
        self.path, self.controller, self._open_crawl = path, controller, opened
        self._settings_of = settings_of
        self._lock = threading.Lock()
        self._opened: tuple[object, CrawlDir, BaseSettings] | None = None
        self._hosts = RefreshingCache(self._read_hosts, HOSTS_SECS)
        self._commits = 0  # when the hosts were read
        self._workers = RefreshingCache(lambda: (workers_of(path),), HOSTS_SECS)
        self._kept: dict[str, RefreshingCache[Any]] = {}
        self._searcher: tuple[object, Searcher] | None = None
        self._open_again = 0.0  # when indexes that did not open are tried again
        self._verdicts: dict[Path, Verdicts] = {}
        self._indexing = IndexBuilder()
        self.broken = BrokenCache()

    @property
    def run_state(self) -> RunState:
        found = RunState.of(self.path)
        if self._is_planned and found.state is State.NONE and not os.path.lexists(self.path):
            return RunState(State.EMPTY, "Not begun yet.")
        return found

    @property
    def crawl(self) -> CrawlDir:
        """Raises CrawlDirError while there is no crawl in the directory."""
        return self._open()[1]

    @property
    def settings(self) -> BaseSettings:
        """The crawl's settings. Raises CrawlDirError as ``crawl`` does."""
        return self._open()[2]

    def _open(self) -> tuple[object, CrawlDir, BaseSettings]:
        """Opened again when crawl.json was replaced: another crawl may lie there now."""
        seen = _identity(self.path / MANIFEST)
        with self._lock:
            if self._opened is not None and isinstance(self._opened[1], CrawlOfWorkers):
                seen = (seen, len(worker_dirs(self.path)))
            if self._opened is None or seen is None or self._opened[0] != seen:
                self._opened = None
                crawl = self._open_crawl(self.path)
                if isinstance(crawl, CrawlOfWorkers):
                    seen = (_identity(self.path / MANIFEST), len(worker_dirs(self.path)))
                self._opened = (seen, crawl, self._settings_of(crawl))
                self._searcher = None
                self._hosts.forget()
                self._kept.clear()
            return self._opened

    @property
    def is_private(self) -> bool:
        """Whether the crawl had credentials or read files, according to all of its crawl.json; then
        its pages are not for every user. True if a crawl.json cannot be read, False without a
        crawl."""
        settings, places = None, [self.path]
        with suppress(CrawlDirError):
            settings, places = self.settings, self.crawl.places
        own = bool(restricted_or_all(places, settings))
        return own or any(other.is_private for other in self.others)

    @property
    def has_access_lists(self) -> bool:
        """Whether some pages have access lists, by the rules or by an index: not all readers may
        see URLs and titles of all pages. False without a crawl."""
        found = False
        with suppress(CrawlDirError):
            rules = ("LARM_ACCESS_RULES", "LARM_ACCESS_SENT")
            found = any(options.mapping(self.settings, name) for name in rules)
            found = found or any(has_lists(part.index_dir) for part in self.crawl.parts)
        return found or any(other.has_access_lists for other in self.others)

    @property
    def restricted(self) -> tuple[str, ...]:
        """Patterns of the hosts whose pages are not for everybody, and `FILES`. Raises
        CrawlDirError without a crawl."""
        found = restricted_or_all(self.crawl.places, self.settings)
        return tuple(sorted({*found, FILES}))

    @property
    def directories(self) -> list[Path]:
        """The directories of the logs: one, or one for each worker."""
        return [part.path for part in self.crawl.parts]

    @property
    def workers(self) -> WorkerList | None:
        """The workers of the crawl, some seconds old; None for a crawl of one process."""
        return self._workers.get()[0]

    @property
    def politeness(self) -> Politeness:
        return politeness_from(self.settings)

    def hosts(self, *, wait: bool = False) -> Mapping[str, HostRow]:
        """The hosts by name, as of the last checkpoint; empty for a crawl under another scheduler.
        ``wait``: see RefreshingCache.get()."""
        crawl = self._open()[1]
        if self._hosts.seconds_to_make < QUICK_SECS:
            with crawl.frontier() as frontier:
                commits = 0 if frontier is None else frontier.commits
            if commits != self._commits:
                self._hosts.forget()
            self._commits = commits
        return self._hosts.get(wait=wait)

    def kept(self, name: str, make: Callable[[], T], seconds: float) -> T:
        """The result of ``make``, which takes long: made now, later renewed in the background."""
        self._open()
        found: T = self._kept.setdefault(name, RefreshingCache(make, seconds)).get()
        return found

    def forget(self) -> None:
        """Read hosts again, after a change."""
        self._hosts.forget()

    def now(self) -> float:
        """The time by the clock of the crawl's frontier."""
        return options.clock(self.settings)()

    def _read_hosts(self) -> dict[str, HostRow]:
        with self.crawl.frontier() as frontier:
            found = () if frontier is None else host_rows(frontier, self.politeness, self.now())
            return {row.host: row for row in found}

    def keep_logs_indexed(self) -> IndexProgress:
        """How far the index of the logs is; starts a process where the logs have grown."""
        return self._indexing.keep(self.crawl)

    def searcher(self) -> Searcher:
        """Raises CrawlDirError if the index is missing, damaged, or of another version."""
        crawl, settings = self.crawl, self.settings
        seen = [_identity(part.index_dir) for part in crawl.parts]
        with self._lock:
            known = self._searcher
            is_due = bool(known and known[1].unopened) and time.monotonic() >= self._open_again
            if known is None or known[0] != seen or is_due:
                searcher = searcher_of(crawl, settings)
                searcher.count()  # files of the index may be missing, or the server away
                self._searcher = known = (seen, searcher)
                self._open_again = time.monotonic() + AGAIN_SECS
            return known[1]

    @property
    def all(self) -> Sequence[Source]:
        """This crawl and the others."""
        return (self, *self.others)

    @property
    def collections(self) -> list[str]:
        """The names of the crawls if several are searched; else empty."""
        return [source.name for source in self.all if source.name]

    def seen_by(self, access_of: Callable[[Source], Access]) -> Searcher:
        """The pages of all crawls that ``access_of`` each crawl opens. Raises CrawlDirError if no
        crawl has an index."""
        if not self.others:
            return self.searcher().seen_by(access_of(self))
        found = []
        for source in self.all:
            with suppress(CrawlDirError):
                found.append((source.name, source.searcher().seen_by(access_of(source))))
        if not found:
            raise CrawlDirError(f"{self.path}: there is no search index of larmspider here")
        return Searcher.of_collections(found)

    def admits(self, url: str, reader: Reader | None) -> bool:
        """Whether a page's access list lets ``reader`` see it, by the lists of all crawls. True if
        ``reader`` is None, because the lists do not count then. Raises CrawlDirError."""
        if reader is None:
            return True
        answers, is_hidden = list[bool](), False
        for source in self.all:
            crawl = source.crawl
            name = crawl.forms(url).exact
            for part in crawl.parts:
                verdicts = source.verdicts_of(part.index_dir)
                slot = verdicts.table.slot_of(name)
                if slot:
                    answers.append(verdicts.may_see(name, reader))
                is_hidden |= slot == NO_SLOT
        return all(answers) if answers else not is_hidden

    def verdicts_of(self, index: Path) -> Verdicts:
        """The access lists of an index. Raises CrawlDirError."""
        with self._lock:
            found = self._verdicts.get(index)
            if found is None:
                found = self._verdicts[index] = Verdicts(AccessTable(index))
            found.table.refresh()
            return found

    @property
    def unsearched(self) -> list[str]:
        """The crawls, of several, whose pages are not found: the name of each, and why."""
        found = []
        for source in self.all if self.others else ():
            try:
                source.searcher()
            except CrawlDirError as error:
                found.append(f"{source.name}: its pages are not found: {error}")
        return found

    @property
    def stale_link_texts(self) -> list[str]:
        """The indexes with link texts from before some host was restricted, and what to do. Raises
        CrawlDirError without a crawl."""
        restricted = self.restricted
        return [
            f"{part.path.name}: readers who may not see all pages find none by link texts, because"
            " hosts have become restricted since the texts were indexed: the next run removes"
            f" the texts of these hosts, or {program.NAME} reindex does"
            for part in self.crawl.parts
            if has_index(part.index_dir) and not covered(restricted, restricted_of(part.index_dir))
        ]

    @property
    def unknown_rights(self) -> list[str]:
        """The indexes with files whose rights are not known, how many, and what to do."""
        return [
            f"{part.path.name}: {counted(number, 'document')} without known rights, which only"
            " operators find: the next run looks at the rights of all files, and its log says which"
            f" cannot be read. {program.NAME} reindex looks, too"
            for part in self.crawl.parts
            if has_index(part.index_dir) and (number := without_rights(part.index_dir))
        ]

    def without_paths(self, text: str) -> str:
        """An error of these crawls without paths of this machine: ``crawl/index: cannot be
        read``."""
        places = {source.path for source in self.all}
        for source in self.all:
            with suppress(CrawlDirError):
                places.update(source.directories)
        for place in sorted(places, key=lambda place: -len(str(place))):
            text = text.replace(str(place), place.name)
        return text

    def close(self) -> None:
        """End the processes that index the logs."""
        for source in self.all:
            source._indexing.stop()

    def exists(self) -> bool:
        """Whether the directory holds a crawl, even one that cannot be opened."""
        try:
            return self.crawl is not None
        except CrawlDirError:
            return self.run_state.state not in (State.NONE, State.EMPTY)


def _identity(path: Path) -> object:
    """A value that changes when another file or folder takes the place of this one."""
    try:
        found = path.stat()
    except OSError:
        return None
    changed = found.st_mtime_ns if path.suffix else 0
    return found.st_dev, found.st_ino, changed
