"""The frontier's memory in Redis, for one of several workers; the contract is backend.py's.

    backend = RedisBackend(Path("crawl/w1/frontier"), link, Keys("intranet", 256), worker="w1")
    backend.recover()                               # alone: it owns all blocks from now on
    loaded = backend.load({17: token})              # among others: in a thread, ...
    hosts = backend.take(loaded)                    # ... and then on the event loop
    backend.post(entries)                           # URLs of blocks that it does not own
    backend.post_links(keys)                        # links to such that were posted before
    backend.add(backend.take_inbox())               # what others found for it; take_links()

Hosts fall into blocks, and a block has one owner (docs/workers.md). The owner has a copy of its
blocks on its own disk, the same files as without Redis, and asks only these; Redis gets what has
changed at each commit, before the files do, and is right where they differ:

    redis_keys.py       names, and the block of a URL
    redis_link.py       commands in pipelines, again until they are done
    redis_commit.py     the commit: written ahead, carried out, dropped
    redis_changes.py    what a batch changes;  redis_redo.py  as commands;  redis_mail.py  mail
    redis_blocks.py     what a new owner reads;  redis_local.py  where it keeps that
    redis_visited.py    the visited table
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from larmspider.cluster.commit import Changes, Committer, Step, WriteAheadLog
from larmspider.cluster.loading import (
    Loaded,
    Loading,
    LocalCopy,
    Recovering,
    SharedFiles,
    SharedWriteOverlay,
    pack_visits,
)
from larmspider.cluster.outbox import Outbox
from larmspider.cluster.redis_client import Keys, RedisLink
from larmspider.frontier.storage import records
from larmspider.frontier.storage.lmdb_backend import HEAD_ENTRIES, LmdbBackend
from larmspider.frontier.storage.lmdb_env import FIRST_MAP_BYTES
from larmspider.frontier.storage.records import Counts, QueuedUrl, Recovery, UrlState

# The blocks that a worker owns, as it has them in memory.
#
# owned = Owned(keys)
# owned.take(loaded)
# owned.tokens                    # block -> fencing token
# owned.block_of("www.wiki:80")   # where the resolver says that it is wiki: wiki's


class Owned:
    """``visited``: totals of the visited tables. ``left``: blocks given up that are still on disk,
    with their hosts."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.tokens: dict[int, int] = {}
        self.visited: dict[int, int] = {}
        self.left: dict[int, list[str]] = {}
        self._elsewhere: dict[str, int] = {}  # hosts whose block is not that of their name

    def owns(self, key: bytes) -> bool:
        """Whether a URL is in one of the blocks."""
        return self._keys.block_of_key(key) in self.tokens

    def block_of(self, host: str) -> int:
        """Of a host, by its name in the queue."""
        block = self._elsewhere.get(host)
        return self._keys.block_of(host) if block is None else block

    def learn(self, entry: QueuedUrl) -> None:
        """The block of its host, which may not be known yet."""
        self._note(entry.host, self._keys.block_of_key(entry.key))

    def _note(self, host: str, block: int) -> None:
        if block != self._keys.block_of(host):
            self._elsewhere[host] = block

    def take(self, loaded: Loaded) -> None:
        """Blocks that were loaded."""
        self.tokens.update(loaded.tokens)
        self.visited.update(loaded.visited)
        for host, block in loaded.hosts.items():
            self._note(host, block)

    def give_up(self, gone: Collection[int], hosts: Iterable[str]) -> list[str]:
        """Those of ``hosts`` that are in these blocks."""
        for block in gone:
            del self.tokens[block]
            self.visited.pop(block, None)
            self.left[block] = []
        leaving = [host for host in hosts if self.block_of(host) in gone]
        for host in leaving:
            self.left[self.block_of(host)].append(host)
            self._elsewhere.pop(host, None)
        return leaving


BATCH_ENTRIES = 256
"""LARM_LOCAL_QUEUE: queued URLs of a block that are fetched, and held in memory, at a time."""
BATCH_URLS = 1_000
"""LARM_BATCH_URLS: URLs for others that are a reason for a commit."""
MANY = 20_000
"""``pending`` at which a commit is due: frontier.CHECKPOINT_AT."""
_FOR_EVER = 9_999_999_999_999  # in 2286


class RedisBackend(LmdbBackend):
    """``epoch`` is the worker's number in the crawl's membership; None: it is alone, and whoever
    comes later under another epoch fences it off. ``batch_entries``, ``batch_urls`` as the
    constants say.
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
    ) -> None:
        self.link, self.keys, self.worker, self.epoch = link, keys, worker, epoch
        head = min(HEAD_ENTRIES, batch_entries * keys.blocks)
        files = SharedFiles(path, map_bytes=map_bytes)
        super().__init__(
            path,
            head_entries=head if head_entries is None else head_entries,
            overlay=SharedWriteOverlay(files, keys),
        )
        self._batch_urls = batch_urls
        self._committer = Committer(link, keys, worker)
        self._local = LocalCopy(files, keys)
        self._loading = Loading(self._committer, self._local, batch_entries)
        self._recovering = Recovering(self._committer, self._local, self._loading)
        self._mail = Outbox(keys)
        self._owned = Owned(keys)
        self.owns, self.block_of = self._owned.owns, self._owned.block_of
        self.post_links, self.take_links = self._mail.links.add, self._mail.take_links
        self._unchanged: set[bytes] = set()  # leased URLs whose records only cut() has touched
        self._committed_positions: dict[str, bytes] = {}
        self._tried_stored = 0  # pages of the last commit, known to be in Redis or not

    # life

    def recover(self) -> Recovery:
        """As Backend.recover(). Raises FormatError, CrawlDirError where Redis holds another crawl
        than the files, or none any more."""
        record = self._recovering.take_up()
        self._positions = dict(record.positions)
        self._committed_positions = dict(record.positions)
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
        self.take(self.load(dict.fromkeys(range(self.keys.blocks), int(token))))

    # blocks

    @property
    def owned(self) -> frozenset[int]:
        """The blocks that are this worker's."""
        return frozenset(self._owned.tokens)

    def load(self, blocks: Mapping[int, int]) -> Loaded:
        """Make blocks (number -> token) this worker's in Redis, and copy them to the disk. In any
        thread, while no commit() runs; take() comes next. Raises Fenced, BackendError."""
        left = self._owned.left
        self._local.purge({block: left.pop(block) for block in blocks if block in left})
        return self._loading.load(blocks)

    def take(self, loaded: Loaded) -> list[str]:
        """What was loaded counts from now on: the hosts that have or had URLs."""
        self._owned.take(loaded)
        for host, counts in loaded.counts.items():
            self._counters.put(host, counts)
        self._queues.serial = max(self._queues.serial, loaded.serial)
        return list(loaded.counts)

    def host_records(self, hosts: Iterable[str]) -> dict[str, bytes]:
        """Of those of them that have one."""
        found = {host: self._overlay.host(host) for host in hosts}
        return {host: record for host, record in found.items() if record is not None}

    def give_up(self, blocks: Collection[int]) -> None:
        """Blocks of which nothing is leased, and nothing that came to its end is uncommitted:
        RuntimeError where that is not so. In Redis they stay as they are, for the next owner.

        What the batch under way changes in URLs that wait is dropped; those that it has added are
        posted to the next owner.
        """
        gone = frozenset(blocks) & self.owned
        if any(self.keys.block_of_key(key) in gone for key in self._leases):
            raise RuntimeError(f"some of blocks {sorted(gone)} are leased")
        added = self._drop_changes(gone)
        for host in self._owned.give_up(gone, list(self._counters.by_host)):
            self._forget(host)
        self._mail.give_up(gone)
        self._mail.post_again(added)

    def _drop_changes(self, gone: Collection[int]) -> list[QueuedUrl]:
        """Of waiting URLs, from the batches: the entries of those that Redis does not know."""
        batches, added = (self._overlay.new, self._overlay.sealed), []
        keys = {key for batch in batches for key in batch.urls}
        for key in [key for key in keys if self.keys.block_of_key(key) in gone]:
            record, on_disk = self._overlay.url(key), self.files.get(key, self.files.urls)
            assert record is not None
            if record[0] > UrlState.LEASED and on_disk is not None:
                raise RuntimeError(f"the end of some URLs of {sorted(gone)} is not committed")
            if record[0] <= UrlState.LEASED and on_disk is None:
                entry = self.entry(key)
                assert entry is not None
                added.append(entry)
        for key in [key for key in keys if self.keys.block_of_key(key) in gone]:
            for batch in batches:
                record = batch.urls.pop(key, None)
                if record is not None and record[0] <= UrlState.LEASED:
                    batch.queue.pop(records.unpack_waiting(record)[2], None)
        return added

    def _forget(self, host: str) -> None:
        self._counters.forget(host)
        self._queues.forget(host)
        for batch in (self._overlay.new, self._overlay.sealed):
            for name in (b"h" + host.encode(), b"c" + host.encode()):
                batch.hosts.pop(name, None)
            batch.meta.pop(b"nrobots " + host.encode(), None)

    def replay(self, worker: str) -> bool:
        """Carry out what a worker that is dead had committed; in any thread."""
        return self._committer.replay(worker)

    # mail

    def post(self, entries: Iterable[QueuedUrl], *, count: bool = False) -> int:
        """URLs of blocks that are not this worker's: to their owners, with the next commit. How
        many were not posted lately; with ``count`` the others are counted as by post_links()."""
        return self._mail.post(entries, count=count)

    def posted_lately(self, key: bytes) -> bool:
        """Whether that was so of a URL; at least the last 65,536 are remembered."""
        return self._mail.posted_lately(key)

    def take_inbox(self) -> list[QueuedUrl]:
        """What others found for this worker's blocks, as brought by the last commit. To be added in
        the same batch, which takes it out of the inbox."""
        return self._mail.take()

    # URLs

    def add(self, entries: Sequence[QueuedUrl]) -> list[bool]:
        for entry in entries:
            self._owned.learn(entry)
            if not self.owns(entry.key):
                block = self.keys.block_of_key(entry.key)
                raise RuntimeError(f"{entry.url} is in block {block}, which is not this worker's")
        return super().add(entries)

    def refuse(self, items: Sequence[tuple[QueuedUrl, str]]) -> None:
        for entry, _ in items:
            self._owned.learn(entry)
        super().refuse(items)

    def hosts(self) -> dict[str, bytes]:
        found, owned = super().hosts(), self._owned.tokens
        return {host: data for host, data in found.items() if self.block_of(host) in owned}

    def audit(self) -> Counts:
        counted = self._count(row for row in self._overlay.all_urls() if self.owns(row[0]))
        for block in self._owned.tokens:
            for state in self._local.others(block):
                name = state.name.lower()
                setattr(counted, name, getattr(counted, name) + 1)
                counted.discovered += 1
        return counted

    # durability

    @property
    def pending(self) -> int:
        many = MANY if self._mail.entries >= self._batch_urls else 0
        return max(len(self._overlay) + len(self._mail), many)

    def cut(self) -> None:
        new, ended = self._overlay.new.urls, self._overlay.sealed.urls
        self._unchanged -= new.keys()
        self._unchanged.update(key for key in self._leases if key not in new and key not in ended)
        self._mail.cut()
        super().cut()

    def commit(self, positions: Mapping[str, bytes]) -> None:
        """As Backend.commit(); waits for Redis as long as it takes, or until link.stop is set.
        Raises Fenced where others have taken over."""
        self._positions.update(positions)
        committer, ended = self._committer, self._overlay.sealed
        counted = 0
        if committer.find_out():
            self._mail.committed()
            counted = self._tried_stored
        redo, changes, visited = self._redo()
        anew = self._positions != self._committed_positions
        writes = bool(redo) or anew or not committer.serial
        if writes:
            visits = pack_visits(changes.visits)
            self._tried_stored = changes.stored
            committer.commit(redo, self._positions, visits, changes.stored - counted)
            self._owned.visited.update(visited)
            self._committed_positions = dict(self._positions)
            self._mail.committed()
        ended.meta[b"redis"] = self._recovering.mark()
        super().commit(positions)
        blocks = sorted(self._owned.tokens)
        asked = self._mail.ask(blocks)
        brought = committer.drop(asked) if writes else self.link.run(asked)
        self._mail.bring(blocks, brought)
        self._purge_given_up()

    def _redo(self) -> tuple[WriteAheadLog, Changes, dict[int, int]]:
        changes = Changes(self.keys, self.files, self._overlay.sealed, self._unchanged)
        changes.gather(self.block_of)
        visited = changes.add_visited(self._owned.visited)
        for block, number in self._mail.trims().items():
            changes.of(block).last("LTRIM", self.keys.block("inbox", block), b"%d" % number, b"-1")
        steps: list[Step] = self._mail.steps(self._committer.posted, self._committer.first_step())
        for block, of_block in changes.by_block.items():
            if of_block and block in self._owned.tokens:
                token, first = b"%d" % self._owned.tokens[block], self._committer.first_step()
                steps += of_block.steps(block, token, self._committer.applied, first)
        return WriteAheadLog(steps), changes, visited

    def _purge_given_up(self) -> None:
        while self._owned.left:
            self._local.purge(dict([self._owned.left.popitem()]))

    def settle(self) -> None:
        self._unchanged.clear()
        self._mail.settle()
        super().settle()
