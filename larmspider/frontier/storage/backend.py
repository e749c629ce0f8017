"""The contract of a backend: what the frontier's memory keeps, hands out and recovers.

A backend knows URLs and hosts, but no politeness: the frontier decides *when* a host gets a
request, the backend *which* of its URLs is next and what has become of each. For example, while the
crawler fetches ``http://wiki/a`` that URL is leased; if the machine dies now, the next start finds
it queued again at its old place.

States of a URL, of which it has exactly one:

========  ==================================================================================
unknown   never added; the backend holds nothing about it
queued    in its host's queue, perhaps not before an earliest time, or held
leased    handed out by pop(), not finished; a crash makes it queued again
stored    fetched, and every store has its page
failed    given up after its retries, with a reason
refused   will not be fetched (robots.txt, a store dropped it, ...), with a reason
merged    another URL stands for it: another spelling of the same page, as far as is known
========  ==================================================================================

    unknown --add--> queued --pop--> leased --acknowledge--> stored | failed | refused
                     queued <--release, hold-- leased;  unknown | queued --refuse--> refused
                     queued <--reopen-- refused
    unknown | leased --merge--> merged --unmerge--> queued
    stored | failed | refused --forget--> unknown

A URL that is stored, failed or refused may have a time at which it is due again (FetchRecord.due).
It keeps its state and its record while it waits for that, and while due() has it leased: a crash
makes it due again.

At all times ``discovered = queued + leased + stored + failed + refused + merged``, in all and by
host.

States of a host belong to the frontier (frontier/hosts.py); a backend keeps the packed record of a
host as bytes.

Keys. A URL is named by 16 bytes (records.url_key): 4 from its host and 12 from its exact form.
Equal keys count as equal URLs, so a collision loses one page. Among URLs of one host the odds are
n^2 / 2^97: 6e-16 at 10 million, against 3e-6 for 8 bytes in all. The host's part comes first, so
that the links of a page, most of them to its own host, are neighbours on disk. A host is named
``host:port`` (at most 300 characters, ASCII), without scheme; its partition, where several workers
share a crawl, is a hash of that name.

The backend survives a restart. Operations gather in a batch and become durable together, at
checkpoint(), with the positions of the stores. A crash loses the whole batch and nothing else: URLs
popped since then are queued on disk, and are handed out again. seal() ends the batch, so that a
page that is acknowledged while the stores still flush belongs to the next batch:

    backend.seal()                   # event loop, while no page is between two stores
    positions = of the stores        # at the same moment; to write them out may take its time
    backend.commit(positions)        # may run in a thread; everything before seal(), or nothing
    backend.discard()                # event loop: the batch leaves memory

A page that passes the stores after their positions were taken is cut off by recovery, so its URL
must not be in this commit; a page that is in the positions must be, or it is stored twice.

Batches. Operations take sequences, so that a backend behind a network pays one round trip for a
page of 140 links. Each method names its cost (embedded backend, one operation of a batch). All
methods except commit() are called from one thread. Times are seconds since the epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from larmspider.errors import CrawlDirError, LarmspiderError, TemporaryError
from larmspider.frontier.storage.records import (
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    Recovery,
    UrlState,
)


class BackendError(LarmspiderError):
    """The backend cannot write, and why. The last commit stays on disk."""


class Fenced(BackendError, TemporaryError):  # noqa: N818 - named for what happened
    """Other workers have taken over from this worker, which may no longer hand out or commit
    anything."""


class FormatError(CrawlDirError):
    """The backend's files are damaged, or are not a frontier."""


class Backend(ABC):
    """The frontier's memory. tests/support/frontier/conformance.py is its contract as tests."""

    @abstractmethod
    def recover(self) -> Recovery:
        """Start from the last commit: leases become queued at their old places. Called once, first.

        The cost grows with the leases of the last commit and with hosts, not with URLs.
        """

    # URLs

    @abstractmethod
    def check(self, keys: Sequence[bytes]) -> list[UrlState]:
        """The state of each key. 1-3 us each."""

    @abstractmethod
    def add(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        """Queue the unknown entries. Returns True for each of them. The caller sets every field of
        an entry. The first of two entries with one key is added. About 10 us for a new entry.
        """

    @abstractmethod
    def pop(self, host: str, now: float, limit: int = 1) -> list[QueuedUrl]:
        """Lease the next URLs of a host, at most ``limit``: released ones whose time has come, then
        by priority (0 first), then in the order they were added. [] when none may go. 5-10 us.
        """

    @abstractmethod
    def next_time(self, host: str) -> float | None:
        """0.0 if pop() has a URL now. Else the earliest time of a released URL. None if there is
        none; held URLs may exist."""

    @abstractmethod
    def acknowledge(self, visits: Sequence[tuple[bytes, FetchRecord]]) -> None:
        """Leased URLs reach a final state. The backend sets ``url`` and ``depth`` of the visit, and
        where the URL was found. For a URL that due() leased, this record replaces the earlier one.
        A key that is not leased is an error of the caller. It raises KeyError, and nothing changes
        for this key and the keys after it.
        """

    @abstractmethod
    def release(self, items: Sequence[tuple[bytes, float, int]]) -> None:
        """Leased URLs are queued again: (key, earliest time, attempts so far). 0.0: the old place.
        URLs that due() leased are due again from that time on; a restart forgets the time. Raises
        KeyError as acknowledge() does.
        """

    @abstractmethod
    def hold(self, items: Sequence[tuple[bytes, int]]) -> None:
        """Leased URLs are queued again and held: they are not handed out before unhold() of their
        group, a number below 2**47. Not for URLs that due() leased. 15 us each. Raises KeyError as
        acknowledge() does.
        """

    @abstractmethod
    def unhold(self, host: str, group: int | None, limit: int) -> int:
        """At most ``limit`` held URLs of a host and group (None: all groups) may be handed out
        again, at their old places. Returns their number. 2 ms, and 25 us each."""

    @abstractmethod
    def refuse(self, items: Sequence[tuple[QueuedUrl, str]]) -> None:
        """Unknown or queued URLs become refused, for a reason. Others stay as they are."""

    @abstractmethod
    def reopen(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        """Queue URLs again that are refused; True for each that was. Others stay as they are. The
        caller sets every field, as for add(); key and host are the refused URL's."""

    @abstractmethod
    def guessed(self, guesses: Sequence[bytes]) -> list[list[bytes]]:
        """For each url_key() of a canonical form, the keys of URLs that were added with it as
        ``guess``, in no order, some 8 at most. URLs that another worker fetched are there only with
        status 200. 2-4 us each."""

    @abstractmethod
    def merge(self, items: Sequence[MergedUrl]) -> None:
        """Unknown or leased URLs become merged, and merged URLs get a new record. Other URLs stay
        as they are. A leased URL without ``rules`` was fetched only for a comparison, and does not
        count."""

    @abstractmethod
    def unmerge(self, keys: Sequence[bytes]) -> list[QueuedUrl]:
        """Merged URLs become queued, as they were to be: their entries. Others stay as they are."""

    @abstractmethod
    def merged(self, key: bytes) -> MergedUrl | None:
        """The record of a merged URL; None for other URLs."""

    @abstractmethod
    def merged_of(self, host: str, limit: int) -> list[bytes]:
        """Keys of merged URLs of a host."""

    @abstractmethod
    def merged_into(self, key: bytes, limit: int) -> list[bytes]:
        """Keys of the URLs that a URL stands for."""

    @abstractmethod
    def count_links(self, keys: Sequence[bytes]) -> list[int]:
        """Count one more link to each key: the new counts, 0 for a key that is not queued. add()
        was the first link. Only for orders that count. 3-5 us each."""

    @abstractmethod
    def reprioritize(self, changes: Sequence[tuple[bytes, int]]) -> None:
        """Give queued URLs a new priority. They go behind the URLs that already have it. Other URLs
        stay as they are. A URL that waits for a time keeps its place until then, and has the
        priority afterwards."""

    @abstractmethod
    def entry(self, key: bytes) -> QueuedUrl | None:
        """The entry of a queued or leased URL."""

    @abstractmethod
    def visit(self, key: bytes) -> FetchRecord | None:
        """The record of a stored, failed or refused URL."""

    @abstractmethod
    def leases(self) -> list[QueuedUrl]:
        """The URLs that are leased now."""

    # revisits

    @abstractmethod
    def schedule(self, items: Sequence[tuple[bytes, float]]) -> None:
        """Set when URLs are due again: (key, time), in place of an earlier time; 0.0: never. Only
        for URLs in a final state; other URLs, and URLs that due() has leased, stay as they are."""

    @abstractmethod
    def due(
        self, host: str, now: float, limit: int = 1, until: float | None = None
    ) -> list[QueuedUrl]:
        """Lease at most ``limit`` URLs of a host that are due by ``until`` (None: ``now``).
        Released URLs whose time has come are first, then URLs by due time. Each entry has its
        record in ``visit``; its ``normalized`` equals ``url``."""

    @abstractmethod
    def next_due(self, host: str, until: float = inf) -> float | None:
        """0.0 if due() has a URL of a host by ``until``. Else the earliest time for which a URL was
        released; None if there is none."""

    @abstractmethod
    def visiting(self, host: str | None = None) -> int:
        """How many URLs due() has leased, of a host or in all."""

    @abstractmethod
    def forget(self, keys: Sequence[bytes]) -> None:
        """URLs in a final state, leased by due() or not, become unknown. Others stay as they
        are."""

    @abstractmethod
    def visits(self, after: bytes, limit: int) -> list[tuple[bytes, FetchRecord | None]]:
        """Key and record of at most ``limit`` URLs, in the order of their keys, after ``after``.
        The record is None for a URL without a final state. As of the last commit; 6 us each."""

    @abstractmethod
    def due_times(self) -> Iterator[float]:
        """The time of each URL that is due at some time, in no order. The backend must not be
        changed meanwhile. 0.5 us each."""

    # hosts, notes, counters

    @abstractmethod
    def put_hosts(self, records: Mapping[str, bytes]) -> None:
        """Store packed host records, replacing the earlier ones."""

    @abstractmethod
    def hosts(self) -> dict[str, bytes]:
        """All host records by name."""

    @abstractmethod
    def put_note(self, name: str, value: bytes) -> None:
        """Keep bytes under a name (at most 400 bytes of UTF-8): robots.txt bodies, arguments."""

    @abstractmethod
    def note(self, name: str) -> bytes | None:
        """The note of a name; None if there is none."""

    @abstractmethod
    def counts(self, host: str | None = None) -> Counts:
        """Counters of a host, or of all hosts. O(1)."""

    @abstractmethod
    def host_names(self) -> list[str]:
        """Every host that has or had a URL."""

    @abstractmethod
    def audit(self) -> Counts:
        """The counters of all hosts counted from the records: O(URLs), for tests and repair."""

    # durability

    @property
    @abstractmethod
    def pending(self) -> int:
        """Changes that the next commit will write. Each takes about 1 KB of memory: commit when
        there are some 20,000."""

    @abstractmethod
    def seal(self) -> None:
        """End the batch. Without a commit() before the next seal() the two batches become one.

        Not while commit() runs in a thread.
        """

    @abstractmethod
    def commit(self, positions: Mapping[str, bytes]) -> None:
        """Make the sealed batch and the stores' positions durable. Raises BackendError; then
        nothing is durable, and the batch is kept: call commit() again, or end. A store that is not
        named keeps its earlier position.
        """

    @abstractmethod
    def discard(self) -> None:
        """Drop the sealed batch from memory. Called after a successful commit()."""

    def checkpoint(self, positions: Mapping[str, bytes]) -> None:
        """seal(), commit() and discard()."""
        self.seal()
        self.commit(positions)
        self.discard()

    @abstractmethod
    def close(self) -> None:
        """Release everything, committing nothing. May be called twice."""
