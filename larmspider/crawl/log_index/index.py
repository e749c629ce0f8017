"""What the index answers; the logs' lines themselves are read by crawl_dir.py.

with shared.of(Path("crawl/logs.idx")) as index:
    index.place("stored", "http://wiki/a")     # 81_264: where its line in store.log begins
"""

from __future__ import annotations

import fcntl
import json
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from heapq import nlargest
from pathlib import Path, PurePath
from typing import Any, Generic, NamedTuple, Protocol, TextIO, TypeVar

import lmdb
import msgpack

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.records import host_prefix, url_key

# The LMDB environment of the index: opening, growth, and who may write.

FORMAT = 2
FOLDER = "logs.idx"
FIRST_MAP_BYTES = 64 << 20
TABLES = (
    "targets", "sources", "stored", "fetched", "broken", "hosts", "edges", "results", "failures",
    "meta",
)  # fmt: skip


class IndexBusyError(CrawlDirError):
    """Another process brings the index up to date."""


class IndexFiles:
    """``readonly`` opens it beside its writer. Raises CrawlDirError; IndexBusyError for a second
    writer. One handle a process (shared_handles.py), threads may use it together."""

    def __init__(self, path: Path, *, readonly: bool = True) -> None:
        self.path = path
        self._lock_file: TextIO | None = None
        try:
            if not readonly:
                path.mkdir(parents=True, exist_ok=True)
                self._lock_file = _sole_writer(path / "writer.lock")
            # metasync: a crash of the machine may undo the last commit, never damage the file
            self.env = lmdb.open(
                str(path),
                map_size=0 if readonly else FIRST_MAP_BYTES,
                max_dbs=len(TABLES),
                readonly=readonly,
                create=not readonly,
                readahead=False,
                metasync=False,
            )
            self.tables = {
                name: self.env.open_db(name.encode(), create=not readonly) for name in TABLES
            }
        except (lmdb.Error, OSError) as error:
            self._unlock()
            raise CrawlDirError(f"cannot open the index of the logs in {path}: {error}") from error

    @contextmanager
    def read(self) -> Iterator[Any]:
        """A short read transaction; follows a file that its writer grew."""
        try:
            txn = self.env.begin()
        except lmdb.MapResizedError:
            self.env.set_mapsize(0)
            txn = self.env.begin()
        try:
            yield txn
        except lmdb.Error as error:
            raise CrawlDirError(f"the index of the logs in {self.path}: {error}") from error
        finally:
            txn.abort()

    def get(self, table: str, key: bytes) -> bytes | None:
        """One value."""
        with self.read() as txn:
            value: bytes | None = txn.get(key, db=self.tables[table])
        return value

    def state(self) -> dict[str, Any]:
        """What the last commit said of itself, {} for a new index or one of another format."""
        state = json.loads(self.get("meta", b"state") or b"{}")
        return state if isinstance(state, dict) and state.get("format") == FORMAT else {}

    def grow(self) -> None:
        """Room for twice as much; no transaction may be open."""
        self.env.set_mapsize(self.env.info()["map_size"] * 2)

    def close(self) -> None:
        """May be called twice."""
        self.env.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock_file is not None:
            self._lock_file.close()


def _sole_writer(path: Path) -> TextIO:
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise IndexBusyError(
            f"another process brings the index of the logs in {path.parent} up to date"
        ) from None
    return file


# What the index keeps, packed: counters and positions as big-endian numbers.

CARRIERS = 50
"""Pages whose place is kept for each target; of a menu's links the first 50 of 10,000 pages."""

_COUNT = struct.Struct(">I")
_PLACE = 6
"""Bytes of a position in a log: up to 256 TB."""
_HOST = struct.Struct(">QQ")
_RESULT = struct.Struct(">QQQI")


class Target(NamedTuple):
    """``pages`` that carry a link to it, ``places`` of the first `CARRIERS` links in links.log."""

    pages: int
    places: tuple[int, ...]


def pack_target(pages: int, places: Sequence[int], earlier: bytes | None = None) -> bytes:
    """``places`` come behind those of an ``earlier`` record, as far as there is room."""
    known = earlier[_COUNT.size :] if earlier else b""
    room = CARRIERS - len(known) // _PLACE
    more = [place.to_bytes(_PLACE, "big") for place in places[:room]]
    return b"".join((_COUNT.pack(min(pages, 0xFFFFFFFF)), known, *more))


def unpack_target(data: bytes) -> Target:
    places = (
        int.from_bytes(data[at : at + _PLACE], "big") for at in range(_COUNT.size, len(data), 6)
    )
    return Target(_COUNT.unpack_from(data)[0], tuple(places))


def pages_of(data: bytes) -> int:
    """The first half of unpack_target()."""
    pages: int = _COUNT.unpack_from(data)[0]
    return pages


def pack_place(place: int) -> bytes:
    return place.to_bytes(8, "big")


def unpack_place(data: bytes) -> int:
    return int.from_bytes(data, "big")


class LinkedHost(NamedTuple):
    """``links`` counts pairs of a page and a target once; ``from_others``: on other hosts."""

    links: int
    from_others: int
    name: str


def pack_host(host: LinkedHost) -> bytes:
    return _HOST.pack(host.links, host.from_others) + host.name.encode("utf-8", "replace")


def unpack_host(data: bytes) -> LinkedHost:
    links, from_others = _HOST.unpack_from(data)
    return LinkedHost(links, from_others, data[_HOST.size :].decode())


class Fetches(NamedTuple):
    """Of one host with one result: how often, their bytes, their milliseconds, the longest."""

    times: int = 0
    bytes: int = 0
    millis: int = 0
    longest: int = 0

    def plus(self, other: Fetches) -> Fetches:
        return Fetches(
            self.times + other.times,
            self.bytes + other.bytes,
            self.millis + other.millis,
            max(self.longest, other.longest),
        )


def pack_fetches(fetches: Fetches) -> bytes:
    return _RESULT.pack(*fetches[:3], min(fetches.longest, 0xFFFFFFFF))


def unpack_fetches(data: bytes) -> Fetches:
    return Fetches(*_RESULT.unpack(data))


# Where a line lies in the logs of many workers, as one number: whose log, and how far in it.
#
# >>> place_of(2, 81_264) == 2 * 2**38 + 81_264, shard_and_offset(place_of(2, 81_264))
# (True, (2, 81264))
#
# The first worker's places are those of a crawl of one process. Six bytes hold 1,024 workers with
# logs of 256 GB each.

OFFSET_BITS = 38
LOG_BYTES_MOST = 1 << OFFSET_BITS
SHARDS_MOST = 1 << 10
OWN = "."
"""The shard of a crawl of one process: the directory itself."""


def place_of(shard: int, offset: int) -> int:
    """``shard`` is a number in the index's state."""
    return shard << OFFSET_BITS | offset


def shard_and_offset(place: int) -> tuple[int, int]:
    """The reverse."""
    return place >> OFFSET_BITS, place & (LOG_BYTES_MOST - 1)


def shard_of(name: str) -> str:
    """``atlas-1`` of the log ``atlas-1/links.log``."""
    return str(PurePath(name).parent)


def kind_of(name: str) -> str:
    """``links.log`` of the log ``atlas-1/links.log``."""
    return PurePath(name).name


def key_in(shard: int, key: bytes) -> bytes:
    """The key of what each worker may have of a URL."""
    return key + shard.to_bytes(2, "big") if shard else key


# Is this log still the one that was read up to a position? The bytes before it are compared.

_BYTES = 256


def mark_of(log: Path, position: int) -> str:
    """Of the bytes before ``position``; "" where there is no such log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, position - _BYTES))
            before = file.read(position - file.tell())
    except FileNotFoundError:
        return ""
    return blake2b(before, digest_size=16).hexdigest()


def marks(state: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Each log of an index's state: name, position, mark."""
    for name, position in state["positions"].items():
        yield name, position, state["marks"][name]


# The field ``result`` of fetch.log, read: is the link to this URL broken?

NOT_ASKED = frozenset({"robots", "scope", "ignored"})
"""Results of URLs that were not asked for."""


def is_failure(result: str) -> bool:
    """A status from 400 on, or no answer.

    >>> [is_failure(result) for result in ("200", "301", "404", "dns", "robots")]
    [False, False, True, True, False]
    """
    if result.isdecimal():
        return int(result) >= 400
    return result not in NOT_ASKED


# One open handle a path in a process, however many threads want it: LMDB's rule for environments.
#
# _readers = SharedHandles(FrontierReader)
# with _readers.of(path) as reader:      # opened by the first, closed by the last
#     ...


class Closes(Protocol):
    def close(self) -> object: ...


T = TypeVar("T", bound=Closes)


class SharedHandles(Generic[T]):
    """``make`` opens a handle for a path; what it raises, `of` raises."""

    def __init__(self, make: Callable[[Path], T]) -> None:
        self._make = make
        self._open: dict[Path, tuple[T, int]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def of(self, path: Path) -> Iterator[T]:
        """The handle for ``path``, for as long as the block runs."""
        path = path.absolute()
        with self._lock:
            handle, users = self._open.get(path) or (self._make(path), 0)
            self._open[path] = handle, users + 1
        try:
            yield handle
        finally:
            with self._lock:
                handle, users = self._open[path]
                if users > 1:
                    self._open[path] = handle, users - 1
                else:
                    del self._open[path]
                    handle.close()


# Who leads, in counts that only grow: exact without a look at all of them.
#
# A count that changed is offered. Whoever ends among the first N was among them when its count
# changed last, since what it is compared with only grows.
#
# >>> leaders = TopN(2)
# >>> for key, count in ((b"a", 1), (b"b", 5), (b"c", 3), (b"a", 4)): leaders.offer(key, count)
# >>> leaders.first()
# [(5, b'b'), (4, b'a')]


class TopN:
    """The first ``size`` of all that was offered; ``known`` are those of an earlier round."""

    def __init__(self, size: int, known: Iterable[tuple[int, bytes]] = ()) -> None:
        self.size = size
        self._counts = {key: count for count, key in known}
        self._least = 0
        self._cut()

    def offer(self, key: bytes, count: int) -> None:
        """``count`` is the new one of ``key``, not smaller than before."""
        if count >= self._least:
            self._counts[key] = count
            if len(self._counts) > 2 * self.size:
                self._cut()

    def _cut(self) -> None:
        first = self.first()
        if len(first) == self.size:
            self._least = first[-1][0]
        self._counts = {key: count for count, key in first}

    def first(self) -> list[tuple[int, bytes]]:
        """Count and key, the largest first; of equal ones the larger key."""
        return nlargest(self.size, ((count, key) for key, count in self._counts.items()))


class LogIndex:
    """Read-only; may be used by several threads. Raises CrawlDirError."""

    def __init__(self, path: Path) -> None:
        self._files = IndexFiles(path)

    def state(self) -> dict[str, Any]:
        """``positions`` by log, ``pages``, ``links``, ``pairs``, ``fetches``, ``time`` as of
        which, ``seconds`` that it took; {} while it has nothing yet."""
        return self._files.state()

    def shards(self) -> list[str]:
        """Whose logs are in it, in the order of the numbers in places; of one process "."."""
        return [str(shard) for shard in self.state().get("shards", (OWN,))]

    def end(self, log: str) -> int:
        """How much of a log is in the index, in bytes; ``atlas-1/links.log`` of a shard."""
        return int(self.state().get("positions", {}).get(log, 0))

    def place(self, table: str, url: str, shard: int = 0) -> int | None:
        """Where the line of ``url`` begins: ``stored``, ``fetched`` and ``broken`` by canonical
        form, ``sources`` by the URL as fetched. ``shard``: which one's line, in ``stored`` and
        ``sources``."""
        record = self._files.get(table, key_in(shard, url_key(url)))
        return None if record is None else unpack_place(record)

    def target(self, normalized: str) -> Target | None:
        """The links to a canonical form."""
        return self.target_of(url_key(normalized))

    def target_of(self, key: bytes) -> Target | None:
        """The same by url_key."""
        record = self._files.get("targets", key)
        return None if record is None else unpack_target(record)

    def most_linked(self) -> list[tuple[int, bytes]]:
        """Pages that link to it and url_key of each of the first 1,000."""
        return self._leaders(b"pages")

    def most_linked_hosts(self) -> list[LinkedHost]:
        """The first 1,000 by links."""
        records = (self._files.get("hosts", key) for _, key in self._leaders(b"hosts"))
        return [unpack_host(record) for record in records if record]

    def _leaders(self, name: bytes) -> list[tuple[int, bytes]]:
        return [
            (count, key) for count, key in msgpack.unpackb(self._files.get("meta", name) or b"\x90")
        ]

    def broken(self) -> list[tuple[int, bytes, int]]:
        """All broken targets: pages that carry a link to it, its url_key, its line in fetch.log.
        Those that are linked most come first. 3 us each."""
        found = []
        with self._files.read() as txn:
            targets = self._files.tables["targets"]
            for key, place in txn.cursor(self._files.tables["broken"]):
                record = txn.get(key, db=targets)
                found.append((pages_of(record) if record else 0, key, unpack_place(place)))
        found.sort(key=lambda row: (-row[0], row[2]))
        return found

    def targets(self) -> Iterator[tuple[bytes, Target]]:
        """All targets by url_key, hosts together; in short reads of 1,000."""
        after = b""
        while True:
            with self._files.read() as txn:
                cursor = txn.cursor(self._files.tables["targets"])
                more = cursor.set_range(after)
                rows = [(key, unpack_target(v)) for key, v in _some(cursor, more, 1000)]
            yield from rows
            if not rows:
                return
            after = rows[-1][0] + b"\0"

    def results(self, host: str) -> dict[str, Fetches]:
        """The fetches of a host by result, the most frequent first."""
        found = [(key[8:].decode("utf-8", "replace"), unpack_fetches(value))
                 for key, value in self._of_host("results", host)]  # fmt: skip
        return dict(sorted(found, key=lambda row: -row[1].times))

    def failures(self, host: str, limit: int) -> list[int]:
        """Where the last failed fetches of a host are in fetch.log, the last first; so many of each
        shard."""
        prefix, found = host_prefix(host), []
        numbers = range(len(self.shards()))
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.tables["failures"])
            for number in numbers:
                least = prefix + place_of(number, 0).to_bytes(8, "big")
                behind = prefix + place_of(number + 1, 0).to_bytes(8, "big")
                behind = prefix + b"\xff" * 8 if number == numbers[-1] else behind
                more = cursor.prev() if cursor.set_range(behind) else cursor.last()
                left = limit
                while more and left and cursor.key() >= least:
                    found.append(unpack_place(cursor.key()[8:]))
                    more, left = cursor.prev(), left - 1
        return found

    def edges(self) -> dict[tuple[str, str], int]:
        """Links from host to host, between the 1,000 hosts that are linked most."""
        names = {host_prefix(host.name): host.name for host in self.most_linked_hosts()}
        found = {}
        with self._files.read() as txn:
            for prefix, name in names.items():
                cursor = txn.cursor(self._files.tables["edges"])
                more = cursor.set_range(prefix)
                while more and cursor.key()[:8] == prefix:
                    if to := names.get(cursor.key()[8:]):
                        found[name, to] = unpack_place(cursor.value())
                    more = cursor.next()
        return found

    def _of_host(self, table: str, host: str) -> list[tuple[bytes, bytes]]:
        prefix = host_prefix(host)
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.tables[table])
            more = cursor.set_range(prefix)
            found = []
            while more and cursor.key().startswith(prefix):
                found.append(cursor.item())
                more = cursor.next()
        return found

    def close(self) -> None:
        """May be called twice."""
        self._files.close()


def _some(cursor: Any, more: bool, limit: int) -> Iterator[tuple[bytes, bytes]]:
    while more and limit:
        yield cursor.item()
        more, limit = cursor.next(), limit - 1


class BrokenCache:
    """The rows of LogIndex.broken(), read once for each state of the index; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: tuple[object, Sequence[tuple[int, bytes, int]]] = (None, ())

    def rows(self, index: LogIndex) -> Sequence[tuple[int, bytes, int]]:
        """Those of the index as it is now."""
        state = index.state()
        seen = (state.get("began"), state.get("marks"))
        with self._lock:
            if self._rows[0] != seen:
                self._rows = seen, index.broken()
            return self._rows[1]
