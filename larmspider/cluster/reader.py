"""The queues of a crawl of many workers, read from Redis: as of each owner's last checkpoint.

    with waiting_of(Path("crawl"), description, settings) as (reader, why_not):
        reader.hosts() if reader else why_not       # record and counters of all hosts
        reader.state(url_key("http://wiki/a"))      # QUEUED, also while it is fetched

The workers' directories have the outcomes of URLs. A call is one round trip or two, and raises
CrawlDirError if Redis does not answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from larmspider import options
from larmspider.cluster.keys import Keys
from larmspider.cluster.loading import begun_with, refuse_lost_format, refuse_other_format
from larmspider.cluster.lost_parts import (
    OWNER_FIELDS,
    is_commit_lost,
    lost_outdated,
    lost_parts,
    stored_pages,
)
from larmspider.cluster.membership import PARTITIONS
from larmspider.cluster.redis_client import UNREACHABLE, name_of, pairs, sound, wrong_types
from larmspider.cluster.redis_records import buckets, member, unpack_queued
from larmspider.errors import ConfigError, CrawlDirError, TemporaryError
from larmspider.formatting import counted
from larmspider.frontier.storage import records
from larmspider.frontier.storage.records import Counts, MergedUrl, QueuedUrl, UrlState
from larmspider.workdir.directory import REDIS_DIR, REDIS_SOCKET
from larmspider.workdir.manifest import SHARED

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


ANSWER_SECS = 2.0
_KEYS_AT_ONCE = 1_000


@contextmanager
def waiting_of(
    root: Path, manifest: dict[str, Any], settings: BaseSettings, *, strict: bool = False
) -> Iterator[tuple[RedisReader | None, str]]:
    """The reader, or None and the reason. With ``strict`` raises Lost for a Redis that lacks a part
    of the crawl.

    Asks the Redis of REDIS_URL, or the private one of ``scrapy workers`` while that runs.
    """
    where = str(manifest.get(SHARED, {}).get("redis", "Redis"))
    wanted = settings
    if not options.many_workers(settings):
        socket = root / REDIS_DIR / REDIS_SOCKET
        if not socket.exists():
            yield None, f"the queues of this crawl are in Redis ({where}): REDIS_URL names it"
            return
        wanted = settings.copy()
        wanted.set("REDIS_URL", f"unix://{quote(str(socket))}", priority="cmdline")
    # here, as most crawls have no Redis: its client costs every command 0.1 s
    from larmspider.cluster.redis_client import Lost, connect

    try:
        client, where = connect(
            wanted, socket_timeout=ANSWER_SECS, socket_connect_timeout=ANSWER_SECS
        )
        reader = RedisReader.of(client, str(manifest.get("spider")))
    except (ConfigError, CrawlDirError, TemporaryError) as error:
        if strict and isinstance(error, Lost):
            raise
        why = " ".join(str(error).split())
        yield None, f"the queues of this crawl are in Redis ({where}), which does not answer: {why}"
        return
    try:
        yield reader, ""
    finally:
        client.close()


@contextmanager
def answered() -> Iterator[None]:
    """Raise CrawlDirError if Redis does not answer within."""
    try:
        yield
    except UNREACHABLE as error:
        raise CrawlDirError(f"Redis cannot be read: {' '.join(str(error).split())}") from None


_STATES = (UrlState.STORED, UrlState.FAILED, UrlState.REFUSED)
MAX_BUCKETS = 2_000
"""Sets of a partition that are searched for a URL: a million URLs."""


class RedisReader:
    def __init__(self, client: Any, keys: Keys) -> None:
        self._client, self._keys, self._name = client, keys, name_of(client)

    @classmethod
    def of(cls, client: Any, spider: str) -> Self:
        """A reader with the crawl's number of partitions. Raises CrawlDirError if Redis does not
        answer, or has a crawl of another format; Lost for a crawl without a format."""
        keys = Keys(spider, PARTITIONS)
        reader = cls(client, keys)
        (known,) = reader._run([("GET", keys.crawl("format"))])
        refuse_lost_format(reader._run, spider, known, reader._name)
        refuse_other_format(known, "REDIS_URL")
        return cls(client, Keys(spider, begun_with(known) or PARTITIONS))

    def _run(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        keys = {word for command in commands for word in command[1:2]}
        with (
            answered(),
            sound(self._client, self._name, sorted(keys)),
            self._client.pipeline(transaction=False) as pipe,
        ):
            for command in commands:
                pipe.execute_command(*command)
            return list(pipe.execute())

    def _queued(self, key: bytes) -> tuple[bytes, bytes] | None:
        """Place in the queue, packed entry."""
        name = self._keys.partition("entries", self._keys.partition_of_key(key))
        (found,) = self._run([("HGET", name, key)])
        if found is None:
            return None
        place, _, packed = unpack_queued(found)
        return place, packed

    def state(self, key: bytes) -> UrlState:
        """QUEUED also while it is fetched."""
        partition = self._keys.partition_of_key(key)
        queued, merged, visited = self._run(
            [
                ("HEXISTS", self._keys.partition("entries", partition), key),
                ("HEXISTS", self._keys.partition("merged", partition), key),
                ("HGET", self._keys.partition("owner", partition), "visited"),
            ]
        )
        if merged:
            return UrlState.MERGED
        return UrlState.QUEUED if queued else self._final(key, partition, int(visited or 0))

    def _final(self, key: bytes, partition: int, visited: int) -> UrlState:
        searched = range(min(MAX_BUCKETS, buckets(visited)))
        members = [member(key, state) for state in _STATES]
        found = self._run(
            [("SMISMEMBER", self._keys.dupefilter(partition, at), *members) for at in searched]
        )
        hits = {state for row in found for state, hit in zip(_STATES, row, strict=True) if hit}
        return min(hits, default=UrlState.UNKNOWN)

    def entry(self, key: bytes) -> QueuedUrl | None:
        """The entry of a queued URL."""
        found = self._queued(key)
        return None if found is None else records.unpack_entry(found[1])

    def merged(self, key: bytes) -> MergedUrl | None:
        """See Backend.merged()."""
        name = self._keys.partition("merged", self._keys.partition_of_key(key))
        (found,) = self._run([("HGET", name, key)])
        return None if found is None else records.unpack_merged(found)

    def all_merged(self) -> Iterator[MergedUrl]:
        """See FrontierReader.all_merged(). Takes a round trip for each partition with merged
        URLs."""
        names = [self._keys.partition("merged", at) for at in range(self._keys.partitions)]
        sizes = self._run([("HLEN", name) for name in names])
        for name, size in zip(names, sizes, strict=True):
            if size:
                (found,) = self._run([("HVALS", name)])
                yield from map(records.unpack_merged, found)

    def place(self, key: bytes, limit: int = 10_000) -> tuple[int, float] | None:
        """See FrontierReader.place()."""
        found = self._queued(key)
        if found is None:
            return None
        place, packed = found
        if records.run_of(place) == records.DELAYED:
            return 0, records.earliest_of(place)
        host = records.unpack_entry(packed).host
        queue = self._keys.requests(self._keys.partition_of_key(key), host)
        (before,) = self._run([("ZRANK", queue, key)])
        return min(limit, before or 0), 0.0

    def queued(self, host: str, limit: int = 10) -> list[QueuedUrl]:
        """The next entries of a host."""
        partition = self._keys.partition_of(host)
        (names,) = self._run([("ZRANGE", self._keys.requests(partition, host), 0, limit - 1)])
        if not names:
            return []
        (found,) = self._run([("HMGET", self._keys.partition("entries", partition), *names)])
        return [records.unpack_entry(unpack_queued(row)[2]) for row in found if row is not None]

    def hosts(self) -> dict[str, tuple[bytes, Counts]]:
        """The hosts, in the form of FrontierReader.hosts()."""
        partitions = range(self._keys.partitions)
        names = [
            self._keys.partition(name, at) for at in partitions for name in ("hosts", "counts")
        ]
        found = [pairs(answer) for answer in self._run([("HGETALL", name) for name in names])]
        rows = {}
        for hosts, counts in zip(found[::2], found[1::2], strict=True):
            for host, packed in counts.items():
                rows[host.decode()] = hosts.get(host, b""), records.unpack_counts(packed)
        return rows

    def crawl_id(self) -> str:
        """The result of FrontierReader.shared_crawl(); "" if Redis has no crawl."""
        (found,) = self._run([("GET", self._keys.crawl("id"))])
        return (found or b"").decode()

    def owners(self) -> dict[str, dict[int, int]]:
        """Visited URLs by partition, of the partitions in which a worker committed last."""
        partitions = range(self._keys.partitions)
        commands: list[tuple[Any, ...]] = [
            ("HMGET", self._keys.partition("owner", at), "worker", "visited") for at in partitions
        ]
        found: dict[str, dict[int, int]] = {}
        for at, (worker, visited) in zip(partitions, self._run(commands), strict=True):
            if worker and int(visited or 0):
                found.setdefault(worker.decode(), {})[at] = int(visited)
        return found

    def lost_parts(self) -> list[str]:
        """The parts of the crawl that Redis has lost, in words."""
        with sound(self._client, self._name):
            return [*self._lost_parts()]

    def _lost_parts(self) -> Iterator[str]:
        keys = self._keys
        partitions = range(keys.partitions)
        rows = self._run([("HGETALL", keys.partition("owner", at)) for at in partitions])
        owners = [pairs(row) for row in rows]
        untouched = {at for at, owner in enumerate(owners) if not owner.get(b"worker")}
        fields = [name.encode() for name in OWNER_FIELDS]
        values = {at: [owner.get(name) for name in fields] for at, owner in enumerate(owners)}
        yield from lost_parts(self._run, keys, values, untouched)
        steps = (b"applied:", b"posted:")
        names = {name for owner in owners for name in owner if name.startswith(steps)}
        for worker in sorted({name.partition(b":")[2].decode() for name in names}):
            if is_commit_lost(self._run, keys, worker):
                yield f"the last commit of worker {worker}"
        (totals,) = self._run([("HGETALL", keys.crawl("totals"))])
        for name in sorted(pairs(totals)):
            told, _, worker = name.decode().partition("outdated:")
            if not told and (what := lost_outdated(self._run, keys, worker)):
                yield what

    def wrong_types(self) -> list[str]:
        """The keys of the crawl that have another type, in words. O(keys of the database)."""
        pattern = re.sub(r"([*?\[\]\\^-])", r"\\\1", self._keys.prefix) + ":*{*}*"
        found: list[str] = []
        with answered():
            keys = self._client.scan_iter(match=pattern, count=_KEYS_AT_ONCE)
            while some := list(islice(keys, _KEYS_AT_ONCE)):
                found += wrong_types(self._client, some)
        return found

    def uncounted(self) -> str:
        """Say if the totals count fewer stored pages than the hosts; "": they do not."""
        with sound(self._client, self._name):
            total, stored = stored_pages(self._run, self._keys)
        if total >= stored:
            return ""
        key = self._keys.crawl("totals").decode()
        return f"{key} counts {total:,} of {counted(stored, 'stored page')}"

    def partition_of_key(self, key: bytes) -> int:
        """See Keys.partition_of_key()."""
        return self._keys.partition_of_key(key)

    def host(self, name: str) -> tuple[bytes, Counts]:
        """See FrontierReader.host()."""
        partition = self._keys.partition_of(name)
        record, counts = self._run(
            [
                ("HGET", self._keys.partition(where, partition), name)
                for where in ("hosts", "counts")
            ]
        )
        return record or b"", records.unpack_counts(counts) if counts else Counts()

    def note(self, name: str) -> bytes | None:
        """A note of a host: ``robots wiki:80``."""
        partition = self._keys.partition_of(name.rpartition(" ")[2])
        (found,) = self._run([("HGET", self._keys.partition("notes", partition), name)])
        return bytes(found) if found is not None else None
