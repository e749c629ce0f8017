"""Which views of a host are broken while the rest of it works: failures by class of URL.

    watch.failed(lease, "http-500")    # Blame.DOUBT: the host is not parked before it is probed
    watch.answered(lease)              # a URL of the host worked
    watch.in_words("wiki:80")          # view /broken/*: 40 of 40 failed with 500; the rest ...

A server error is most often about one program of a host. Five in a row of one class of URLs
(urls/url_class.py) say nothing about the other classes. Before such a row parks a host, the URL
that worked last is fetched again. Where none has worked, a URL of another class comes first.

A view that fails while its host works is broken: its URLs wait behind all others of the host, its
failures do not count against the host, and few of its URLs are retried.

A host without failures has no record here: a page that succeeds costs one look at ``Host.views``.
The records of a host are its note ``views wiki:80``, which moves with its partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import msgpack

from larmspider.formatting import counted
from larmspider.frontier.hosts import Host, Lease
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.politeness import failure_kind
from larmspider.frontier.storage.records import MAX_PRIORITY, QueuedUrl
from larmspider.frontier.strategies import FIRST, LATER
from larmspider.frontier.traps import MAX_LEVEL
from larmspider.urls.file_urls import FILES
from larmspider.urls.url_class import UrlClasses

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier

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


class Blame(Enum):
    """The meaning of a failure for its host."""

    HOST = 0
    """It counts against the host, and may park it."""
    DOUBT = 1
    """It counts against the host. The host is probed before it is parked."""
    VIEW = 2
    """Nothing: the view is known to be broken."""


@dataclass(slots=True)
class ViewRecord:
    """``asked`` and ``failed`` count from the view's first failure on, ``row`` the failures since
    its last success. ``kind`` of the last failure. ``broken``: the host worked while it failed."""

    asked: int = 0
    failed: int = 0
    row: int = 0
    kind: str = ""
    broken: bool = False
    retries: int = 0


@dataclass(slots=True)
class HostViews:
    """Records of one host's views that have failed, by name. ``row``: views that failed since a
    URL of the host worked; ``blames_host``: a failure among them was about the host; ``soft``: one
    may have been. ``spared``: failures of broken views since then."""

    records: dict[str, ViewRecord] = field(default_factory=dict)
    row: set[str] = field(default_factory=set)
    blames_host: bool = False
    soft: bool = False
    spared: int = 0
    wants_probe: bool = False
    probe: str = ""
    """The URL that is being asked for, to see whether the host works."""

    def record(self, view: str) -> ViewRecord:
        found = self.records.get(view)
        if found is None:
            if len(self.records) >= MAX_VIEWS:
                self._drop_one()
            found = self.records[view] = ViewRecord()
        return found

    def _drop_one(self) -> None:
        """The oldest view that is not broken, else the oldest one."""
        oldest = next(iter(self.records))
        del self.records[next((v for v, r in self.records.items() if not r.broken), oldest)]

    def probe_released(self) -> None:
        """The probe was not fetched."""
        self.probe = ""

    def host_works(self, but: str = "") -> None:
        """A URL of the host worked, of another view than those that fail."""
        for view in self.row:
            if view != but and (record := self.records.get(view)) is not None:
                record.broken |= record.row >= BROKEN_ROW
        self.row.clear()
        self.blames_host = self.soft = False
        self.spared = 0

    def pack(self) -> bytes:
        rows = [(v, r.asked, r.failed, r.row, r.kind, r.broken) for v, r in self.records.items()]
        packed: bytes = msgpack.packb(rows)
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> HostViews:
        records = {view: ViewRecord(*fields) for view, *fields in msgpack.unpackb(data)}
        return cls(records)


class ViewWatch:
    """Judges a host's failures by the classes of their URLs."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._own: dict[str, UrlClasses] = {}
        """Classes of hosts, where nothing learns traps."""
        self._changed: set[str] = set()
        self.passed = 0
        """URLs that were put behind others when their turn came."""

    def _view_of(self, entry: QueuedUrl) -> str:
        traps = self._frontier.traps
        if traps is not None:
            classes = traps.known(entry.host).classes
        else:
            classes = self._own.setdefault(entry.host, UrlClasses())
        return str(classes.of(entry.normalized))[:MAX_TEXT]

    # answers

    def answered(self, host: Host, entry: QueuedUrl) -> None:
        """A URL of a host with failing views was answered without an error."""
        views = host.views
        assert views is not None
        view = self._view_of(entry)
        if (record := views.records.get(view)) is not None:
            record.asked += 1
            record.row = record.retries = 0
            record.broken = False
            self._changed.add(entry.host)
        views.host_works(but=view)

    def failed(self, lease: Lease, kind: str, retry_after: float | None) -> Blame:
        """Count a failure that blames the host, and say what it means for the host."""
        host, entry = lease.host, lease.entry
        if entry is None or entry.host == FILES:
            return Blame.HOST
        if host.views is None:
            host.views = HostViews()
        views, view = host.views, self._view_of(entry)
        record = views.record(view)
        record.asked += 1
        record.failed += 1
        record.row += 1
        is_known = record.broken and record.kind == kind
        record.kind = kind
        self._changed.add(entry.host)
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
        """Whether a URL of another view is queued; those before it are put behind it."""
        backend, now = self._frontier.backend, self._frontier.clock()
        looked, found = list[QueuedUrl](), False
        while not found and len(looked) < LOOK_AHEAD:
            entries = backend.pop(host, now, _BATCH)
            looked += entries
            found = any(self._view_of(entry) != view for entry in entries)
            if len(entries) < _BATCH:
                break
        backend.release([(entry.key, 0.0, entry.attempts) for entry in looked])
        self._put_behind([entry for entry in looked if self._view_of(entry) == view])
        return found or len(looked) >= LOOK_AHEAD

    # retries and order

    def gives_up(self, host: Host, entry: QueuedUrl) -> bool:
        """Whether a URL is not retried: its view is broken, and has had its retries."""
        if host.views is None:
            return False
        record = host.views.records.get(self._view_of(entry))
        return record is not None and record.broken and record.retries >= RETRIES

    def retried(self, host: Host, entry: QueuedUrl) -> None:
        """A URL is retried."""
        if host.views is not None:
            record = host.views.records.get(self._view_of(entry))
            if record is not None and record.broken:
                record.retries += 1

    def puts_behind(self, host: Host, entry: QueuedUrl) -> bool:
        """Whether a leased URL of a failing view goes behind the others of its host instead. Each
        URL does so once."""
        views = host.views
        if views is None or entry.visit is not None or entry.priority >= self._behind:
            return False
        record = views.records.get(self._view_of(entry))
        if record is None or record.row < BROKEN_ROW:
            return False
        self._frontier.backend.release([(entry.key, 0.0, entry.attempts)])
        self._put_behind([entry])
        self.passed += 1
        return True

    @property
    def _behind(self) -> int:
        return BEHIND if self._frontier.strategy.has_levels else MAX_PRIORITY

    def _put_behind(self, entries: Iterable[QueuedUrl]) -> None:
        behind = self._behind
        changes = [(entry.key, behind) for entry in entries if entry.priority < behind]
        self._frontier.backend.reprioritize(changes)

    # probes

    def wants_probe(self, host: Host) -> bool:
        """Whether a URL that worked is to be fetched before anything else of the host: five
        failures in a row were of single views, or such failures have parked the host."""
        views = host.views
        if views is None or not host.worked or views.probe:
            return False
        return views.wants_probe or bool(host.record.parks and views.row and not views.blames_host)

    def is_in_doubt(self, name: str) -> bool:
        """Whether failures in a row ask for a probe now."""
        host = self._frontier.hosts.get(name)
        views = None if host is None else host.views
        return views is not None and views.wants_probe and not views.probe

    def is_probing(self, host: Host) -> bool:
        return host.views is not None and bool(host.views.probe)

    def own_fetch(self, host: Host, allowed: Callable[[str], bool]) -> OwnFetch | None:
        """The page that worked, if it is to be fetched now."""
        if not self.wants_probe(host):
            return None
        views = host.views
        assert views is not None
        if not allowed(host.worked):
            host.worked, views.wants_probe = "", False
            return None
        views.probe = host.worked
        return OwnFetch(
            FetchKind.VIEW_PROBE,
            views.probe,
            views.probe_released,
            lambda answer, *_: self._probe_ended(host, views, answer),
        )

    def _probe_ended(self, host: Host, views: HostViews, answer: str) -> None:
        """After the host was judged by the answer."""
        works = not failure_kind(answer).blames_host
        views.probe = ""
        views.wants_probe = not works and not host.record.parks
        if works:
            for view in views.row:
                if (record := views.records.get(view)) is not None:
                    record.broken = True
            views.host_works()
            self._changed.add(host.record.host)

    # memory

    def recover(self, hosts: Iterable[Host]) -> None:
        """Take up what is known of hosts."""
        for host in hosts:
            if note := self._frontier.backend.note(NOTE.format(host=host.record.host)):
                host.views = HostViews.unpack(note)

    def forget(self, host: str) -> None:
        """Another worker has the host."""
        self._changed.discard(host)
        self._own.pop(host, None)

    def save(self) -> None:
        """Hand what has changed to the backend, for the batch that ends now."""
        for name in self._changed:
            host = self._frontier.hosts.get(name)
            if host is not None and host.views is not None:
                self._frontier.backend.put_note(NOTE.format(host=name), host.views.pack())
        self._changed.clear()


def views_in_words(note: bytes | None) -> Iterator[str]:
    """A sentence for each broken view of a host, those with most failures first.

    >>> views = HostViews({"/broken/*": ViewRecord(40, 40, 40, "http-500", broken=True)})
    >>> list(views_in_words(views.pack()))
    ['view /broken/*: 40 of 40 failed with 500; the rest of the host works']
    """
    records = HostViews.unpack(note).records if note else {}
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
    record = HostViews.unpack(note).records.get(view)
    if record is None or not record.broken:
        return ""
    return (
        f"{view_in_words(view, record)}. Its URLs come after the others of the host, and"
        f" {counted(RETRIES, 'retry', 'retries')} in all are made until one works"
    )
