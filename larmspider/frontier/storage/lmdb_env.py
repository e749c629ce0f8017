"""One LMDB environment: opening, format version, growth, one write at a time, readers.

``frontier/data.mdb`` holds four named databases: urls, queue, hosts, meta. The map (the most the
file may reach) begins at 64 MB and doubles when full; that costs nothing on disk before it is used.
A batch that does not fit is rolled back by LMDB, so it is kept, the map grows, and it is written
again.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import lmdb

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.backend import BackendError, FormatError
from larmspider.workdir.files import lock

# The batch of changes since the last commit, as a layer over the database.
#
# A URL that is added and fetched within one checkpoint interval never touches the disk's queue:
# its
# two changes cancel here.


@dataclass(slots=True)
class WriteBatch:
    """Changes by named database; None in ``queue`` marks a deletion."""

    urls: dict[bytes, bytes] = field(default_factory=dict)
    queue: dict[bytes, bytes | None] = field(default_factory=dict)
    hosts: dict[bytes, bytes] = field(default_factory=dict)
    meta: dict[bytes, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.urls) + len(self.queue) + len(self.hosts) + len(self.meta)

    def over(self, older: WriteBatch) -> WriteBatch:
        """Both as one batch; where both name a key, this one, being the newer, holds."""
        older.urls.update(self.urls)
        older.queue.update(self.queue)
        older.hosts.update(self.hosts)
        older.meta.update(self.meta)
        return older


FORMAT = b"larmspider frontier 1"
FIRST_MAP_BYTES = 64 << 20
FULL_BYTES = 1 << 20
"""With less room than this a disk counts as full: a write was cut short."""
_NAMES = ("urls", "queue", "hosts", "meta")


class BeingMade(CrawlDirError):  # noqa: N818 - named for what happens
    """The files are there and nothing is in them yet: a crawl is just beginning."""


class LmdbFiles:
    """The environment. ``readonly`` opens it beside a running crawl, in another process.

    A process may hold one at a time for a directory, and not over a fork (LMDB's rule).
    FormatError: another version's or foreign files. CrawlDirError: cannot be opened.
    """

    def __init__(
        self, path: Path, *, readonly: bool = False, map_bytes: int = FIRST_MAP_BYTES
    ) -> None:
        self.path = path
        self._resize = threading.Lock()  # no transaction of ours may be open while the map grows
        self._lock_file: IO[str] | None = None
        try:
            if not readonly:
                path.mkdir(parents=True, exist_ok=True)
                self._lock_file = _sole_writer(path)
            # metasync, sync: left on; a commit is on disk. readahead off: keys are hashes
            self.env = lmdb.open(
                str(path),
                # 0: as large as the file says; a smaller map than the file is raised by LMDB itself
                map_size=0 if readonly else map_bytes,
                max_dbs=len(_NAMES) + 1,  # a subclass may have one more
                readonly=readonly,
                create=not readonly,
                readahead=False,
                max_readers=126,
            )
        except (lmdb.Error, OSError) as error:
            self._unlock()
            foreign = isinstance(error, (lmdb.InvalidError, lmdb.VersionMismatchError))
            kind = FormatError if foreign else CrawlDirError
            raise kind(f"cannot open the frontier in {path}: {error}") from error
        try:
            self._fill_up()
            self._open_databases(readonly)
        except BaseException:
            self.close()
            raise

    def _fill_up(self) -> None:
        """A file that was cut short gets zeros for what is missing: LMDB calls these damaged, where
        the end of the file would end the process (SIGBUS)."""
        data = self.path / "data.mdb"
        size = (self.env.info()["last_pgno"] + 1) * self.env.stat()["psize"]
        with suppress(OSError):
            if data.stat().st_size < size:
                os.truncate(data, size)

    def _open_databases(self, readonly: bool) -> None:
        names = [name.encode() for name in _NAMES]
        try:
            with self.env.begin() as txn:
                new = txn.stat()["entries"] == 0
            if new and readonly:
                raise BeingMade(f"the frontier in {self.path} is only just being made")
            if new:
                with self.env.begin(write=True) as txn:  # wholly or not at all
                    made = {name: self.env.open_db(name, txn=txn) for name in names}
                    txn.put(b"format", FORMAT, db=made[b"meta"])
            dbs = [self.env.open_db(name, create=False) for name in names]
            self.urls, self.queue, self.hosts, self.meta = dbs
            with self.env.begin() as txn:
                found = txn.get(b"format", db=self.meta)
        except lmdb.Error as error:
            raise FormatError(f"{self.path} is not a frontier: {error}") from error
        if found != FORMAT:
            has = "of no known format" if found is None else repr(found.decode("utf-8", "replace"))
            raise FormatError(
                f"the frontier in {self.path} is {has}, this version reads {FORMAT.decode()!r}"
            )

    @contextmanager
    def read(self) -> Iterator[Any]:
        """A short read transaction; values are bytes. Follows a map that another process grew."""
        with self._resize:
            try:
                txn = self.env.begin()
            except lmdb.MapResizedError:
                self.env.set_mapsize(0)
                txn = self.env.begin()
            except lmdb.Error as error:
                raise CrawlDirError(f"the frontier in {self.path} is closed: {error}") from error
            try:
                yield txn
            except lmdb.Error as error:
                raise self._damaged(error) from error
            finally:
                txn.abort()

    def get(self, key: bytes, db: Any) -> bytes | None:
        """One value. 1.5 us, half of what it takes through read()."""
        with self._resize:
            txn = self.env.begin()
            try:
                value: bytes | None = txn.get(key, None, db)
            except lmdb.Error as error:
                raise self._damaged(error) from error
            finally:
                txn.abort()
        return value

    def _damaged(self, error: lmdb.Error) -> FormatError:
        return FormatError(f"the frontier in {self.path} is damaged: {error}")

    @property
    def commits(self) -> int:
        """Number of the last transaction that was written."""
        return int(self.env.info()["last_txnid"])

    def write(self, batch: WriteBatch) -> None:
        """One transaction, synced to disk. BackendError: nothing of it was written."""
        self.insist(lambda: self._write(batch))

    def insist(self, write: Callable[[], None]) -> None:
        """Do a whole write transaction; again where the map had to grow. Raises as write()."""
        while True:
            try:
                write()
            except lmdb.MapFullError:
                with self._resize:
                    self.env.set_mapsize(self.env.info()["map_size"] * 2)
            except lmdb.Error as error:
                raise BackendError(
                    f"cannot write the frontier in {self.path}: {self._why(error)}"
                ) from error
            else:
                return

    def _why(self, error: lmdb.Error) -> str:
        """What the error says; a write cut short by a full disk is EIO to LMDB (mdb.c)."""
        free = shutil.disk_usage(self.path).free
        full = str(error).endswith(os.strerror(errno.EIO)) and free < FULL_BYTES
        return f"{os.strerror(errno.ENOSPC)} ({free:,} bytes are free)" if full else str(error)

    def _write(self, batch: WriteBatch) -> None:
        gone = sorted(key for key, value in batch.queue.items() if value is None)
        puts = sorted((key, value) for key, value in batch.queue.items() if value is not None)
        with self.env.begin(write=True) as txn:
            for key in gone:
                txn.delete(key, db=self.queue)
            # sorted: neighbours share pages, and putmulti keeps its place between them
            txn.cursor(self.queue).putmulti(puts)
            txn.cursor(self.urls).putmulti(sorted(batch.urls.items()))
            txn.cursor(self.hosts).putmulti(sorted(batch.hosts.items()))
            txn.cursor(self.meta).putmulti(sorted(batch.meta.items()))

    def close(self) -> None:
        """May be called twice. Waits for a read that is under way in a thread."""
        with self._resize:
            self.env.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock_file is not None:
            self._lock_file.close()


def _sole_writer(path: Path) -> IO[str]:
    """LMDB lets writers of several processes take turns; two crawls in one directory must not."""
    try:
        return lock(path / "writer.lock")
    except BlockingIOError as error:
        raise CrawlDirError(f"another crawl is writing to {path}") from error


# One LMDB environment a process and directory, as LMDB wants it, for all who read there.
#
#     files = borrow(Path("crawl/frontier"))      # the crawl's own where this process runs it
#     ...
#     give_back(files)
#
# A crawl lends its environment to the pages that it serves; ``scrapy serve`` has one for all
# threads.

_LOCK = threading.Lock()
_OWNED: dict[Path, LmdbFiles] = {}
_READ: dict[Path, list[LmdbFiles]] = {}
"""One entry for each who has borrowed it; the last one closes."""


def lend(files: LmdbFiles) -> None:
    """The environment of a crawl in this process: who reads there takes it from now on."""
    with _LOCK:
        _OWNED[files.path.resolve()] = files


def withdraw(files: LmdbFiles) -> None:
    """It is about to be closed. May be called twice."""
    with _LOCK:
        if _OWNED.get(files.path.resolve()) is files:
            del _OWNED[files.path.resolve()]


def borrow(path: Path) -> LmdbFiles:
    """For reading, until give_back(). Raises as LmdbFiles does."""
    where = path.resolve()
    with _LOCK:
        if where in _OWNED:
            return _OWNED[where]
        borrowed = _READ.setdefault(where, [])
        try:
            borrowed.append(borrowed[0] if borrowed else LmdbFiles(path, readonly=True))
            return borrowed[-1]
        finally:
            if not borrowed:
                del _READ[where]


def give_back(files: LmdbFiles) -> None:
    """What borrow() gave, once."""
    where = files.path.resolve()
    with _LOCK:
        borrowed = _READ.get(where, [])
        if borrowed and borrowed[0] is files:
            borrowed.pop()
            if not borrowed:
                del _READ[where]
                files.close()
