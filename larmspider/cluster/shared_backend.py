"""The frontier's storage in Redis, for one of several workers; backend.py has the contract.

    backend = RedisBackend(Path("crawl/w1/frontier"), link, Keys("intranet", 256), worker="w1")
    backend.recover()                               # alone: it owns all partitions from now on
    loaded = backend.load({17: token})              # among others: in a thread, ...
    hosts = backend.take(loaded)                    # ... and then on the event loop
    backend.forward(entries)                        # URLs of partitions that it does not own
    backend.add(backend.take_inbox())               # URLs that others found for it

Hosts are divided into partitions, and a partition has one owner (docs/internals/workers.md). The
owner has a copy of its partitions on its own disk, the same files as without Redis, and reads only
these. Redis gets the changes of each commit before the disk does (commit.py), and is right if they
differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from pathlib import Path

from msgspec.structs import replace

from larmspider.cluster.commit import Committer
from larmspider.cluster.keys import Keys
from larmspider.cluster.loading import Loading, take_up
from larmspider.cluster.local_copy import LocalCopy, SharedFiles, SharedWriteOverlay
from larmspider.cluster.memory import MemoryWatch, change_bytes
from larmspider.cluster.outbox import Outbox
from larmspider.cluster.owned import Loaded, Owned
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.redis_records import Outdated, compact, unpack_outdated
from larmspider.frontier.partition import SharedBackend
from larmspider.frontier.storage import records
from larmspider.frontier.storage.lmdb_backend import HEAD_ENTRIES, LmdbBackend
from larmspider.frontier.storage.lmdb_env import FIRST_MAP_BYTES
from larmspider.frontier.storage.records import (
    FORGOTTEN,
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    Recovery,
    UrlState,
)
from larmspider.urls.normalizer import UrlForms

BATCH_ENTRIES = 256
"""LARM_LOCAL_QUEUE: queued URLs of a partition that are read, and held in memory, at a time."""
BATCH_URLS = 1_000
"""LARM_BATCH_URLS: URLs for other workers that are a reason for a commit."""
MANY = 20_000
"""``pending`` at which a commit is due: frontier.CHECKPOINT_AT."""
_FOR_EVER = 9_999_999_999_999  # a time in 2286


class RedisBackend(LmdbBackend, SharedBackend):
    """``epoch`` is the worker's number in the crawl's membership; None: the worker is alone, and
    any later worker with another epoch fences it off. ``batch_entries``, ``batch_urls`` as the
    constants say. ``forms`` of URLs: pages may stand for other spellings of their URLs.
    A commit waits until ``memory`` has room.
    """

    files: SharedFiles
    _overlay: SharedWriteOverlay

    def __init__(
        self,
        path: Path,
        link: RedisLink,
        keys: Keys,
        *,
        worker: str,
        epoch: int | None = None,
        batch_entries: int = BATCH_ENTRIES,
        batch_urls: int = BATCH_URLS,
        map_bytes: int = FIRST_MAP_BYTES,
        head_entries: int | None = None,
        forms: UrlForms | None = None,
        memory: MemoryWatch | None = None,
    ) -> None:
        self.link, self.keys, self.worker, self.epoch = link, keys, worker, epoch
        head = min(HEAD_ENTRIES, batch_entries * keys.partitions)
        files = SharedFiles(path, map_bytes=map_bytes)
        super().__init__(
            path,
            head_entries=head if head_entries is None else head_entries,
            overlay=SharedWriteOverlay(files, keys),
        )
        self._batch_urls = batch_urls
        self._owned = Owned(keys)
        self._outbox = Outbox(keys)
        self._committer = Committer(
            link, keys, worker, files, self._owned, self._outbox, forms, memory
        )
        self._local = LocalCopy(files, keys)
        self._loading = Loading(self._committer, self._local, batch_entries)
        self._unchanged: set[bytes] = set()  # leased URLs whose records only seal() has touched
        self._url_bytes_new = self._url_bytes_sealed = 0
        self._visits_new = self._visits_sealed = 0
        self._not_done: dict[bytes, UrlState] = {}  # URLs of the batch under way
        self._outdated: list[bytes] = []  # lists that were taken in the batch under way
        self.committed_bytes = 0
        """Bytes that commit() has brought to Redis since the start, about."""

    def recover(self) -> Recovery:
        """See Backend.recover(). Raises FormatError. Raises CrawlDirError if Redis holds a crawl
        other than that in the files, or none."""
        record = take_up(self._committer, self._local)
        self._positions = dict(record.positions)
        self._queues.serial = int.from_bytes(self._overlay.meta(b"serial") or b"", "big")
        leases = self._overlay.meta(b"leases") or b""
        if self.epoch is None:
            self._take_all()
        else:
            self._committer.epoch = self.epoch
        requeued = [at for at in range(0, len(leases), 16) if self.owns(leases[at : at + 16])]
        return Recovery(dict(self._positions), len(requeued), fresh=not record.serial)

    def _take_all(self) -> None:
        name = self.keys.crawl
        (token,) = self.link.run([("INCR", name("token"))])
        self._committer.epoch = int(token)
        self.link.run([("HSET", name("workers"), self.worker, f"{token} {_FOR_EVER}")])
        self.take(self.load(dict.fromkeys(range(self.keys.partitions), int(token))))

    @property
    def known(self) -> str:
        """See Committer.known."""
        return self._committer.known

    @property
    def serial(self) -> int:
        """The number of this worker's last commit."""
        return self._committer.serial

    # partitions

    @property
    def owned(self) -> frozenset[int]:
        """The partitions of this worker."""
        return frozenset(self._owned.tokens)

    def owns(self, key: bytes) -> bool:
        """Whether a URL is in a partition of this worker."""
        return self.keys.partition_of_key(key) in self._owned.tokens

    def owns_partition(self, partition: int) -> bool:
        return partition in self._owned.tokens

    def partition_of(self, host: str) -> int:
        """The partition of a host, by its name in the queue."""
        return self._owned.partition_of(host)

    def partition_of_key(self, key: bytes) -> int:
        return self.keys.partition_of_key(key)

    def load(self, partitions: Mapping[int, int]) -> Loaded:
        """Make this worker the owner of partitions (number -> token) in Redis, and copy them to the
        disk. May be called in any thread while no commit() runs. Call take() next. Raises Fenced,
        BackendError."""
        given_up = self._owned.given_up
        self._local.purge({at: given_up.pop(at) for at in partitions if at in given_up})
        self._committer.table.drop(partitions)
        return self._loading.load(partitions)

    def take(self, loaded: Loaded) -> list[str]:
        """Own the loaded partitions from now on. Returns the hosts that have or had URLs."""
        self._owned.take(loaded)
        forgotten = [key for key, record in self._overlay.new.urls.items() if record == FORGOTTEN]
        for key in forgotten:
            if self.keys.partition_of_key(key) in loaded.tokens:  # by _is_outdated()
                del self._overlay.new.urls[key]
        for host, counts in loaded.counts.items():
            self._counters.put(host, counts)
            self._revisits.forget(host)
        self._queues.serial = max(self._queues.serial, loaded.serial)
        self._outbox.mark(loaded.tokens)
        return list(loaded.counts)

    def host_records(self, hosts: Iterable[str]) -> dict[str, bytes]:
        """The records of these hosts, without hosts that have none."""
        found = {host: self._overlay.host(host) for host in hosts}
        return {host: record for host, record in found.items() if record is not None}

    def give_up(self, partitions: Collection[int]) -> None:
        """Give up partitions, which stay in Redis for the next owner. RuntimeError if one of their
        URLs is leased, or has finished without a commit.

        Changes of the batch under way in queued URLs, and in the times of revisits, are
        dropped; URLs that it has added are forwarded to the next owner.
        """
        gone = frozenset(partitions) & self.owned
        leased = (*self._leases, *self._revisits.leased)
        if any(self.keys.partition_of_key(key) in gone for key in leased):
            raise RuntimeError(f"some of partitions {sorted(gone)} are leased")
        added = self._drop_changes(gone)
        for host in self._owned.give_up(gone, list(self._counters.by_host)):
            self._forget(host)
        self._outbox.give_up(gone)
        self._outbox.forward_again(added)

    def _drop_changes(self, gone: Collection[int]) -> list[QueuedUrl]:
        """Drop changes of queued URLs and schedules. Returns the entries of URLs that Redis does
        not have."""
        batches, added = (self._overlay.new, self._overlay.sealed), []
        changed = {key for batch in batches for key in batch.urls}
        keys = [key for key in changed if self.keys.partition_of_key(key) in gone]
        for key in keys:
            record, on_disk = self._overlay.url(key), self.files.get(key, self.files.urls)
            if record is None:
                raise RuntimeError(f"URLs of {sorted(gone)} were forgotten, and not committed")
            if record[0] == UrlState.MERGED:
                if on_disk is None:  # came while the partition was leaving: its next owner decides
                    added.append(records.unpack_merged(record).entry)
                continue
            if records.is_final(record) and on_disk is not None:
                if _is_scheduled(on_disk, record):
                    continue
                raise RuntimeError(f"the end of some URLs of {sorted(gone)} is not committed")
            if records.is_waiting(record) and on_disk is None:
                entry = self.entry(key)
                assert entry is not None
                added.append(entry)
        for key in keys:
            for batch in batches:
                record = batch.urls.pop(key, None)
                if record is not None and records.is_waiting(record):
                    batch.queue.pop(records.unpack_waiting(record)[2], None)
        for batch in batches:
            places = [at for at in batch.revisits if self.keys.partition_of_key(at[14:]) in gone]
            for place in places:
                del batch.revisits[place]
        return added

    def _forget(self, host: str) -> None:
        self._counters.forget(host)
        self._queues.forget(host)
        self._revisits.forget(host)
        for batch in (self._overlay.new, self._overlay.sealed):
            for name in (b"h" + host.encode(), b"c" + host.encode()):
                batch.hosts.pop(name, None)
            for note in records.HOST_NOTES:
                batch.meta.pop(note + host.encode(), None)

    def replay(self, worker: str) -> bool:
        """Apply the committed changes of a dead worker; in any thread."""
        return self._committer.replay(worker)

    # what goes to other workers, and comes from them

    def forward(self, entries: Iterable[QueuedUrl]) -> int:
        """Forward URLs to the owners of their partitions, with the next commit: how many were not
        forwarded lately."""
        entries = list(entries)
        self._url_bytes_new += _url_bytes(entries)
        return self._outbox.forward(entries)

    def forward_again(self, entries: Iterable[QueuedUrl]) -> None:
        """Forward URLs to the owners of their partitions, whether they were forwarded lately or
        not."""
        self._outbox.forward_again(entries)

    def forwarded_lately(self, key: bytes) -> bool:
        """Whether a URL was forwarded lately; at least the last 65,536 are remembered."""
        return self._outbox.forwarded_lately(key)

    def has_mail(self) -> bool:
        """Ask Redis whether other workers have found URLs for this worker's partitions since the
        last commit. May be called in any thread while no commit() runs."""
        (marks,) = self.link.run([self._outbox.marks_command()])
        self._outbox.note_marks(marks)
        return bool(self._outbox.marked(self._owned.tokens))

    def mark_inboxes(self, partitions: Iterable[int] | None = None) -> None:
        """Read these inboxes with the next commit; without ``partitions`` all inboxes."""
        if partitions is None:
            self._outbox.mark_all()
        else:
            self._outbox.mark(partitions)

    def take_inbox(self) -> list[QueuedUrl]:
        """URLs that others found for this worker's partitions, as read by the last commit. Add them
        in the same batch, which removes them from the inbox."""
        return self._outbox.take()

    def has_outdated(self) -> bool:
        """Whether Redis has lists of outdated pages. May be called in any thread while no commit()
        runs."""
        (length,) = self.link.run([("LLEN", self.keys.outdated(self.worker))])
        return bool(int(length))

    def take_outdated(self) -> list[Outdated]:
        """Pages in the directory of this worker that no longer count, as read by the last commit.
        Remove them from the stores in the same batch; its commit then forgets them."""
        lists, self._committer.outdated = self._committer.outdated, ()
        self._outdated += lists
        found = [page for packed in lists for page in unpack_outdated(packed)]
        return [page for page in found if self._is_outdated(page)]

    def _is_outdated(self, page: Outdated) -> bool:
        record = self._overlay.url(page.key)
        if record is None or not records.is_final(record) or records.is_elsewhere(record):
            return True
        visit = records.unpack_visit(record)
        outdated = (visit.stored or visit.time) < page.time
        if outdated and not self.owns(page.key):
            self._overlay.forget_url(page.key)
        return outdated

    def count_visit(self) -> None:
        """A revisit that the budget of the crawl pays."""
        self._visits_new += 1

    @property
    def uncounted_visits(self) -> int:
        """Visits again that Redis does not know of yet."""
        return self._visits_new + self._visits_sealed

    # URLs

    def add(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        for entry in entries:
            self._owned.learn(entry)
            if not self.owns(entry.key):
                partition = self.keys.partition_of_key(entry.key)
                raise RuntimeError(
                    f"{entry.url} is in partition {partition}, which is not this worker's"
                )
        self._url_bytes_new += _url_bytes(entries)
        return super().add(entries)

    def refuse(self, items: Sequence[tuple[QueuedUrl, str]]) -> None:
        for entry, _ in items:
            self._owned.learn(entry)
        super().refuse(items)

    def reopen(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        for entry in entries:
            self._owned.learn(entry)
        reopened = super().reopen(entries)
        for entry in compress(entries, reopened):
            self._not_done[entry.key] = UrlState.REFUSED
        return reopened

    def forget(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            sealed = self._overlay.sealed.urls.get(key)
            before = sealed or self.files.get(key, self.files.urls)
            if before is not None and records.is_final(before) and self.owns(key):
                self._not_done[key] = UrlState(before[0])
        super().forget(keys)

    def merge(self, items: Sequence[MergedUrl]) -> None:
        for item in items:
            self._owned.learn(item.entry)
        super().merge(items)

    def _finish(self, key: bytes, visit: FetchRecord, entry: QueuedUrl) -> None:
        if not visit.stored and visit.has_page:
            visit = replace(visit, stored=visit.time)
        super()._finish(key, visit, entry)

    def _final(self, key: bytes) -> FetchRecord | None:
        return super()._final(key) if self.owns(key) else None

    def visits(self, after: bytes, limit: int) -> list[tuple[bytes, FetchRecord | None]]:
        found = super().visits(after, limit)
        return [(key, visit if self.owns(key) else None) for key, visit in found]

    def hosts(self) -> dict[str, bytes]:
        found, owned = super().hosts(), self._owned.tokens
        return {host: data for host, data in found.items() if self.partition_of(host) in owned}

    def audit(self) -> Counts:
        own = {key: record for key, record in self._overlay.all_urls() if self.owns(key)}
        counted, names = self._count(own.items()), set(map(compact, own))
        for partition in self._owned.tokens:
            for name, state in self._local.others(partition).items():
                if name not in names:  # else it was queued again since
                    of_state = state.name.lower()
                    setattr(counted, of_state, getattr(counted, of_state) + 1)
                    counted.discovered += 1
        return counted

    # durability

    @property
    def pending(self) -> int:
        many = MANY if len(self._outbox) >= self._batch_urls else 0
        return max(self.uncommitted, many)

    @property
    def uncommitted(self) -> int:
        """Changes that wait for a commit."""
        return len(self._overlay) + len(self._outbox)

    @property
    def uncommitted_bytes(self) -> int:
        """The bytes that these changes will take in Redis, about."""
        return change_bytes(self.uncommitted, self._url_bytes_new + self._url_bytes_sealed)

    @property
    def leased(self) -> int:
        """URLs that are handed out."""
        return len(self._leases)

    def seal(self) -> None:
        new, sealed = self._overlay.new.urls, self._overlay.sealed.urls
        self._unchanged -= new.keys()
        self._unchanged.update(key for key in self._leases if key not in new and key not in sealed)
        self._outbox.seal()
        self._url_bytes_sealed += self._url_bytes_new
        self._url_bytes_new = 0
        self._visits_sealed += self._visits_new
        self._visits_new = 0
        self._committer.not_done |= self._not_done
        self._not_done = {}
        self._committer.outdated_done += self._outdated
        self._outdated = []
        super().seal()

    def commit(self, positions: Mapping[str, bytes]) -> None:
        """See Backend.commit(). Waits for Redis without a limit, or until link.stop is set. Raises
        Fenced if other workers have taken over."""
        self._positions.update(positions)
        changes = len(self._overlay.sealed) + self._outbox.sealed
        brought = change_bytes(changes, self._url_bytes_sealed)
        write = partial(super().commit, positions)
        self._committer.commit(
            self._overlay.sealed, self._unchanged, self._positions, write, self._visits_sealed
        )
        self.committed_bytes += brought
        self._url_bytes_sealed = self._visits_sealed = 0
        while self._owned.given_up:
            partition, hosts = self._owned.given_up.popitem()
            self._local.purge({partition: hosts})
            self._committer.table.drop([partition])

    def discard(self) -> None:
        self._unchanged.clear()
        self._outbox.deliver()
        super().discard()


def _is_scheduled(before: bytes, now: bytes) -> bool:
    """Whether a record of a URL differs from that before in the time of its next visit alone."""
    if not records.is_final(before):
        return False
    visit = records.unpack_visit(before)
    return replace(records.unpack_visit(now), due=visit.due) == visit


def _url_bytes(entries: Sequence[QueuedUrl]) -> int:
    return sum(len(e.url) + len(e.normalized) + len(e.from_page) for e in entries)
