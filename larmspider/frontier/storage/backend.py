"""The frontier's memory: what every backend must keep, hand out and bring back after a crash.

A backend knows URLs and hosts, but no politeness: the frontier decides *when* a host may be asked,
the backend *which* of its URLs is next and what has become of each. For example, while the crawler
fetches ``http://wiki/a`` that URL is leased; if the machine dies now, the next start finds it
queued again at its old place.

States of a URL, of which it has exactly one:

========  ==================================================================================
unknown   never added; the backend holds nothing about it
queued    waits in its host's queue, perhaps not before an earliest time
leased    handed out by pop(), not yet answered; becomes queued again by a crash
stored    fetched, and every store has its page; final for this crawl
failed    given up after its retries, with a reason; final
refused   will not be fetched (robots.txt, a store dropped it, ...), with a reason; final
========  ==================================================================================

    unknown --add--> queued --pop--> leased --acknowledge--> stored | failed | refused
                     queued <--give_back-- leased;  unknown | queued --refuse--> refused

At all times ``discovered = queued + leased + stored + failed + refused``, in all and by host.

States of a host (kept by the frontier, opaque here, see host.py): new, loading robots, ready,
snoozed until a time, parked with a reason. A backend keeps the packed record as bytes.

Keys. A URL is named by 16 bytes (keys.url_key): 4 from its host and 12 from its canonical form.
Equal keys count as equal URLs, so a collision loses one page. Among URLs of one host the odds are
n^2 / 2^97: 6e-16 at 10 million, against 3e-6 for 8 bytes in all. The host's part comes first, so
that the links of a page, most of them to its own host, are neighbours on disk. A host is named
``host:port`` (at most 300 characters, ASCII), without scheme; blocks of hosts for several workers
are a hash of that name.

What survives a restart. Operations gather in a batch and become durable together, at checkpoint(),
with the positions of the stores. A crash loses the whole batch and nothing else; what was popped
since is queued on disk and is handed out again. cut() ends the batch, so that a page that is
acknowledged while the stores still flush belongs to the next one:

    backend.cut()                    # event loop, while no page is between two stores
    positions = of the stores        # at the same moment; to write them out may take its time
    backend.commit(positions)        # may run in a thread; everything before cut(), or nothing
    backend.settle()                 # event loop: forget the batch, trim what is in memory

A page that passes the stores after their positions were taken is cut off by recovery, so its URL
must not be in this commit; one that is in the positions must be, or it is stored twice.

Batches. Operations take sequences, so that a backend behind a network pays one round trip for a
page of 140 links. Costs (embedded backend, one operation of a batch) stand at each method. All
methods but commit() are called from one thread. Times are seconds since the epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from larmspider.errors import CrawlDirError, LarmspiderError
from larmspider.frontier.storage.records import Counts, FetchRecord, QueuedUrl, Recovery, UrlState


class BackendError(LarmspiderError):
    """The backend cannot write; its durable state is that of the last commit. Says why."""


class Fenced(BackendError):  # noqa: N818 - named for what happened
    """Others have taken over what this worker owned: it may hand out and commit nothing more."""


class FormatError(CrawlDirError):
    """The backend's files were written by another version, or are not a frontier."""


class Backend(ABC):
    """What the frontier asks of its memory; run by tests/support/frontier/conformance.py."""

    @abstractmethod
    def recover(self) -> Recovery:
        """Start from the last commit: leases become queued at their old places. Called once, first.

        Costs the leases of the last commit and the number of hosts, not of URLs.
        """

    # URLs

    @abstractmethod
    def check(self, keys: Sequence[bytes]) -> list[UrlState]:
        """The state of each key. 1-3 us each."""

    @abstractmethod
    def add(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        """Queue those that are unknown; True where it was. The caller sets every field of an entry.

        Two entries of one key in a batch: the first is added. About 10 us for a new one.
        """

    @abstractmethod
    def pop(self, host: str, now: float, limit: int = 1) -> list[QueuedUrl]:
        """Lease the next URLs of a host: due ones that were given back, then by priority (0 first),
        then in the order they were added. At most ``limit``; [] when none may go now. 5-10 us.
        """

    @abstractmethod
    def next_time(self, host: str) -> float | None:
        """0.0: pop() has a URL now. Else the earliest time of those given back; None: empty."""

    @abstractmethod
    def acknowledge(self, visits: Sequence[tuple[bytes, FetchRecord]]) -> None:
        """Leased URLs reach a final state. The backend sets ``url`` and ``depth`` of the visit.

        A key that is not leased is an error of the caller: KeyError, and nothing changes for it or
        the ones after it.
        """

    @abstractmethod
    def give_back(self, items: Sequence[tuple[bytes, float, int]]) -> None:
        """Leased URLs return: (key, earliest time, attempts so far); time 0.0: the old place.

        KeyError as for acknowledge().
        """

    @abstractmethod
    def refuse(self, items: Sequence[tuple[QueuedUrl, str]]) -> None:
        """Unknown or queued URLs become refused for a reason. Any other state: left as it is."""

    @abstractmethod
    def count_links(self, keys: Sequence[bytes], more: Sequence[int] | None = None) -> list[int]:
        """One more link to each key, or ``more`` of each: its count (the add() was the first), 0
        for one that is not queued. Only for orders that count links. 3-5 us each."""

    @abstractmethod
    def move(self, changes: Sequence[tuple[bytes, int]]) -> None:
        """Give queued URLs a new priority, behind those that have it. Others stay as they are."""

    @abstractmethod
    def entry(self, key: bytes) -> QueuedUrl | None:
        """The entry of a queued or leased URL."""

    @abstractmethod
    def visit(self, key: bytes) -> FetchRecord | None:
        """What became of a stored, failed or refused URL."""

    @abstractmethod
    def leases(self) -> list[QueuedUrl]:
        """The URLs that are leased now."""

    # hosts, notes, counters

    @abstractmethod
    def put_hosts(self, records: Mapping[str, bytes]) -> None:
        """Keep a packed host record each; replaces the one before."""

    @abstractmethod
    def hosts(self) -> dict[str, bytes]:
        """All host records."""

    @abstractmethod
    def put_note(self, name: str, value: bytes) -> None:
        """Keep bytes under a name (at most 400 bytes of UTF-8): robots.txt bodies, arguments."""

    @abstractmethod
    def note(self, name: str) -> bytes | None:
        """The note of that name."""

    @abstractmethod
    def counts(self, host: str | None = None) -> Counts:
        """Counters of a host, or of all. Kept, not counted: O(1)."""

    @abstractmethod
    def host_names(self) -> list[str]:
        """Every host that has or had a URL."""

    @abstractmethod
    def audit(self) -> Counts:
        """Counters of all, counted afresh from the records: slow, O(URLs), for tests and repair."""

    # durability

    @property
    @abstractmethod
    def pending(self) -> int:
        """Changes that the next commit will write. Memory grows with it: about 1 KB each, so commit
        when it passes some 20,000."""

    @abstractmethod
    def cut(self) -> None:
        """End the batch. Without a commit() before the next cut() the two become one.

        Not while commit() runs in a thread.
        """

    @abstractmethod
    def commit(self, positions: Mapping[str, bytes]) -> None:
        """Make the batch durable with the stores' positions, wholly or not at all: BackendError.

        After an error the batch is kept; commit() again, or end. A store that is not named keeps
        its earlier position.
        """

    @abstractmethod
    def settle(self) -> None:
        """After a commit() that went well: let go of the batch."""

    def checkpoint(self, positions: Mapping[str, bytes]) -> None:
        """cut, commit and settle at one go."""
        self.cut()
        self.commit(positions)
        self.settle()

    @abstractmethod
    def close(self) -> None:
        """Release everything, committing nothing. May be called twice."""
