"""Finds broken views of a host: classes of URLs (url_class.py) that fail while the rest works.

    watch.blame(lease, "http-500", None)   # Blame.DOUBT: the host is not parked before it is probed
    watch.answered(lease)              # a URL of the host worked
    watch.in_words("wiki:80")          # view /broken/*: 40 of 40 failed with 500; the rest ...

A server error is most often about one program of a host. Five in a row of one class of URLs
(urls/url_class.py) say nothing about the other classes. Before such a row parks a host, the URL
that worked last is fetched again. Where none has worked, a URL of another class comes first.

A view that fails while its host works is broken: its URLs wait behind all others of the host, its
failures do not count against the host, and few of its URLs are retried.

The first names of a folder are classes of their own (``/wiki/Start?do=chart``). If the URLs of two
such classes fail, they are one view, ``/wiki/*?do=chart``, until one of its URLs works.

A host without failures has no record here: a page that succeeds costs one look-up.
The records of a host are its note ``views wiki:80``, which moves with its partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from larmspider.formatting import counted
from larmspider.frontier.hosts import Host, Lease
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.part import Blame, HostNotes, Note, Part
from larmspider.frontier.politeness import failure_kind
from larmspider.frontier.storage.records import MAX_PRIORITY, QueuedUrl
from larmspider.frontier.strategies import FIRST, LATER
from larmspider.learned.traps.host_traps import MAX_LEVEL
from larmspider.urls.schemes import is_source
from larmspider.urls.url_class import UrlClasses

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier
    from larmspider.learned.traps.trap_watch import TrapWatch

NOTE = "views {host}"
MAX_VIEWS = 200
"""Failing views of a host that are remembered, about 200 bytes each."""
MAX_TEXT = 300
"""Characters of a view's name."""
RETRIES = 10
"""Retries of all URLs of a broken view in a run, until one of its URLs works."""
BROKEN_ROW = 5
"""Failures in a row of a view while the host works: then the view is broken."""
RECHECK = 50
"""Failures in a row of broken views after which the host is probed again."""
LOOK_AHEAD = 1_000
"""Queued URLs of a host among which one of another view is looked for, 25 us each."""
_BATCH = 100
BEHIND = FIRST + (MAX_LEVEL + 1) * LATER
"""The priority of a broken view's URLs: behind the last level of the traps."""
_OF_ONE_VIEW = re.compile(r"http-(?:5\d\d|408)|timeout|slow|reset")
"""Failures that one slow or broken program causes. The others are about the host."""
_SOFT = frozenset({"http-503", "http-408", "timeout", "slow", "reset"})
"""Failures that an overloaded host causes, too."""


class ViewRecord(msgspec.Struct, array_like=True):
    """New fields go to the end, with a default. ``asked`` and ``failed``: requests and failures
    since the view's first failure. ``row``: failures since its last success. ``kind``: the kind of
    the last failure. ``broken``: the view failed while its host worked."""

    asked: int = 0
    failed: int = 0
    row: int = 0
    kind: str = ""
    broken: bool = False
    retries: int = 0


class HostViews(Note):
    """The failed views of one host, by name. ``row``: the views that failed since a URL of the host
    last worked. ``blames_host``: at least one of these failures was about the host itself.
    ``soft``: at least one of them may have been about the host. ``spared``: the failures of broken
    views in the same time."""

    records: dict[str, ViewRecord] = {}
    row: set[str] = set()
    blames_host: bool = False
    soft: bool = False
    spared: int = 0
    wants_probe: bool = False
    probe: str = ""
    """The URL that is being asked for, to see whether the host works."""
    split: set[str] = set()
    """Shapes that are no single view: a URL of another class worked."""

    def name_of(self, view: str) -> str:
        """The name of the record that a class belongs to; the class if it has none."""
        if view in self.records:
            return view
        return next((shape for shape in _shapes(view) if shape in self.records), view)

    def record(self, view: str) -> tuple[str, ViewRecord]:
        """The record of a class that failed, and its name. A class joins another one that fails and
        differs in one segment of the path."""
        view = self.name_of(view)
        found = self.records.get(view)
        if found is None and (joined := self._join(view)):
            return joined
        if found is None:
            if len(self.records) >= MAX_VIEWS:
                self._drop_one()
            found = self.records[view] = ViewRecord()
        return view, found

    def _join(self, view: str) -> tuple[str, ViewRecord] | None:
        shapes = set(_shapes(view)) - self.split
        for other, record in self.records.items() if shapes else ():
            if record.row and (shape := next(filter(shapes.__contains__, _shapes(other)), "")):
                del self.records[other]
                self.records[shape] = record
                if other in self.row:
                    self.row.remove(other)
                    self.row.add(shape)
                return shape, record
        return None

    def worked(self, view: str) -> None:
        """Note that a URL of a class worked."""
        name = self.name_of(view)
        if name != view:
            del self.records[name]
            self.row.discard(name)
            if len(self.split) < MAX_VIEWS:
                self.split.add(name)
        elif (record := self.records.get(view)) is not None:
            record.asked += 1
            record.row = record.retries = 0
            record.broken = False

    def _drop_one(self) -> None:
        """The oldest view that is not broken, else the oldest one."""
        oldest = next(iter(self.records))
        del self.records[next((v for v, r in self.records.items() if not r.broken), oldest)]

    def probe_released(self) -> None:
        """The probe was not fetched."""
        self.probe = ""

    def host_works(self, but: str = "") -> None:
        """A URL of the host worked that belongs to none of the failing views."""
        for view in self.row:
            if view != but and (record := self.records.get(view)) is not None:
                record.broken |= record.row >= BROKEN_ROW
        self.row.clear()
        self.blames_host = self.soft = False
        self.spared = 0

    def begin_run(self) -> None:
        self.row.clear()
        self.blames_host = self.soft = self.wants_probe = False
        self.spared, self.probe = 0, ""
        for record in self.records.values():
            record.retries = 0


class ViewWatch(Part):
    """Judges a host's failures by the classes of their URLs, which ``traps`` keeps."""

    def __init__(self, frontier: Frontier, traps: TrapWatch) -> None:
        self._frontier, self._traps = frontier, traps
        self._hosts = HostNotes(frontier.notes, "views", HostViews)
        self._failing: set[str] = set()
        """Hosts with a view that has failed."""

    def _view_of(self, entry: QueuedUrl) -> str:
        classes = self._traps.known(entry.host).classes
        return str(classes.of(entry.normalized))[:MAX_TEXT]

    def _name_of(self, entry: QueuedUrl) -> str:
        return self._hosts.of(entry.host).name_of(self._view_of(entry))

    def views_of(self, host: str) -> HostViews | None:
        """The records of a host's views; None while no view has failed."""
        return self._hosts.of(host) if host in self._failing else None

    # answers

    def answered(self, lease: Lease) -> None:
        entry = lease.entry
        if entry is None or entry.host not in self._failing:
            return
        views = self._hosts.of(entry.host)
        view = self._view_of(entry)
        if views.row or views.name_of(view) in views.records:
            self._hosts.touch(entry.host)
        views.worked(view)
        views.host_works(but=view)

    def blame(self, lease: Lease, kind: str, retry_after: float | None) -> Blame:
        """Count a failure that blames the host. Returns what it means for the host."""
        host, entry = lease.host, lease.entry
        if entry is None or is_source(entry.url):
            return Blame.HOST
        self._failing.add(entry.host)
        views = self._hosts.of(entry.host)
        view, record = views.record(self._view_of(entry))
        record.asked += 1
        record.failed += 1
        record.row += 1
        is_known = record.broken and record.kind == kind
        record.kind = kind
        self._hosts.touch(entry.host)
        if retry_after or not _OF_ONE_VIEW.fullmatch(kind):
            views.blames_host = True
            return Blame.HOST
        if is_known:
            views.spared += 1
            if views.spared % RECHECK == 0 and host.worked and not views.probe:
                views.wants_probe = True
            return Blame.VIEW
        views.row.add(view)
        views.soft |= kind in _SOFT
        return Blame.DOUBT if self._is_in_doubt(host, views, entry, view) else Blame.HOST

    def _is_in_doubt(self, host: Host, views: HostViews, entry: QueuedUrl, view: str) -> bool:
        """Whether single views may have caused the failures that would park the host."""
        record, most = host.record, self._frontier.politeness.limits.max_failures
        if views.blames_host or record.parks or record.on_probation:
            return False
        if record.failures + 1 < most or views.wants_probe or views.probe:
            return True
        if views.soft and len(views.row) > 1:
            return False
        if host.worked:
            views.wants_probe = True
            return True
        return len(views.row) == 1 and self._has_other(entry.host, view)

    def _has_other(self, host: str, view: str) -> bool:
        """Whether a URL of another view is queued. The URLs before it move behind it."""
        backend, now = self._frontier.backend, self._frontier.clock()
        looked, found = list[QueuedUrl](), False
        while not found and len(looked) < LOOK_AHEAD:
            entries = backend.pop(host, now, _BATCH)
            looked += entries
            found = any(self._name_of(entry) != view for entry in entries)
            if len(entries) < _BATCH:
                break
        backend.release([(entry.key, 0.0, entry.attempts) for entry in looked])
        self._put_behind([entry for entry in looked if self._name_of(entry) == view])
        return found or len(looked) >= LOOK_AHEAD

    # retries and order

    def _record_of(self, entry: QueuedUrl) -> ViewRecord | None:
        views = self.views_of(entry.host)
        return None if views is None else views.records.get(views.name_of(self._view_of(entry)))

    def gives_up(self, entry: QueuedUrl) -> bool:
        """Whether a URL is not retried, because its view is broken and its retries are used up."""
        record = self._record_of(entry)
        return record is not None and record.broken and record.retries >= RETRIES

    def retried(self, entry: QueuedUrl) -> None:
        record = self._record_of(entry)
        if record is not None and record.broken:
            record.retries += 1
            self._hosts.touch(entry.host)

    def admits(self, entry: QueuedUrl) -> bool:
        """Whether a URL is fetched now. The URL of a failing view goes behind the others of its
        host, once."""
        if entry.host not in self._failing:
            return True
        if entry.visit is not None or entry.priority >= self._behind:
            return True
        record = self._record_of(entry)
        if record is None or record.row < BROKEN_ROW:
            return True
        self._frontier.backend.release([(entry.key, 0.0, entry.attempts)])
        self._put_behind([entry])
        return False

    @property
    def _behind(self) -> int:
        return BEHIND if self._frontier.strategy.has_levels else MAX_PRIORITY

    def _put_behind(self, entries: Iterable[QueuedUrl]) -> None:
        behind = self._behind
        changes = [(entry.key, behind) for entry in entries if entry.priority < behind]
        self._frontier.backend.reprioritize(changes)

    # probes

    def wants_probe(self, host: Host) -> bool:
        """Whether the host's next fetch is a URL that worked before. It is if five failures in a
        row belonged to single views, or if such failures have parked the host."""
        if host.record.host not in self._failing or not host.worked:
            return False
        views = self._hosts.of(host.record.host)
        if views.probe:
            return False
        return views.wants_probe or bool(host.record.parks and views.row and not views.blames_host)

    def next_time(self, host: str) -> float | None:
        """0.0 if failures in a row ask for a probe now."""
        if host not in self._failing:
            return None
        views = self._hosts.of(host)
        return 0.0 if views.wants_probe and not views.probe else None

    def blocks(self, host: Host) -> bool:
        name = host.record.host
        return name in self._failing and bool(self._hosts.of(name).probe)

    def own_fetch(self, host: Host, now: float, allowed: Callable[[str], bool]) -> OwnFetch | None:
        """The page that worked, if it has to be fetched now."""
        if not self.wants_probe(host):
            return None
        name = host.record.host
        views = self._hosts.of(name)
        self._hosts.touch(name)
        if not allowed(host.worked):
            host.worked, views.wants_probe = "", False
            return None
        views.probe = host.worked
        return OwnFetch(
            FetchKind.VIEW_PROBE,
            views.probe,
            lambda: self._hosts.of(name).probe_released(),
            lambda answer, *_: self._probe_ended(host, answer),
        )

    def _probe_ended(self, host: Host, answer: str) -> None:
        """Note the answer to a probe. Called after the answer has judged the host."""
        name = host.record.host
        views = self._hosts.of(name)
        self._hosts.touch(name)
        works = not failure_kind(answer).blames_host
        views.probe = ""
        views.wants_probe = not works and not host.record.parks
        if works:
            for view in views.row:
                if (record := views.records.get(view)) is not None:
                    record.broken = True
            views.host_works()

    # memory

    def recover(self, hosts: Sequence[str]) -> None:
        self._failing |= {host for host, _ in self._hosts.noted(hosts)}

    def forget(self, host: str) -> None:
        self._hosts.forget(host)
        self._failing.discard(host)

    def save(self) -> None:
        self._hosts.save()


def _shapes(view: str) -> Iterator[str]:
    """The class with ``*`` in place of one segment of its path.

    >>> list(_shapes("/wiki/Start?do=chart"))
    ['/*/Start?do=chart', '/wiki/*?do=chart']
    """
    path, mark, query = view.partition("?")
    segments = path.split("/")
    for at, segment in enumerate(segments):
        if segment and not segment.startswith("*"):
            yield "/".join([*segments[:at], "*", *segments[at + 1 :]]) + mark + query


def views_in_words(note: bytes | None) -> Iterator[str]:
    """A sentence for each broken view of a host, those with most failures first.

    >>> views = HostViews(b"", {"/broken/*": ViewRecord(40, 40, 40, "http-500", broken=True)})
    >>> list(views_in_words(views.pack()))
    ['view /broken/*: 40 of 40 failed with 500; the rest of the host works']
    """
    records = HostViews.unpack(note).records
    broken = [(view, record) for view, record in records.items() if record.broken]
    for view, record in sorted(broken, key=lambda item: -item[1].failed):
        yield view_in_words(view, record)


def view_in_words(view: str, record: ViewRecord) -> str:
    """``view /broken/*: 40 of 40 failed with 500; the rest of the host works``"""
    kind = record.kind.removeprefix("http-")
    return (
        f"view {view}: {record.failed:,} of {record.asked:,} failed with {kind};"
        " the rest of the host works"
    )


def broken_view_of(note: bytes | None, classes: UrlClasses, normalized: str) -> str:
    """The explanation of a URL of a broken view; "" for other URLs. ``classes`` of the host."""
    if not note:
        return ""
    view = str(classes.of(normalized))[:MAX_TEXT]
    views = HostViews.unpack(note)
    view = views.name_of(view)
    record = views.records.get(view)
    if record is None or not record.broken:
        return ""
    return (
        f"{view_in_words(view, record)}. Its URLs come after the others of the host, and"
        f" {counted(RETRIES, 'retry', 'retries')} in all are made until one works"
    )
