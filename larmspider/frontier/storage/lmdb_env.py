"""The frontier's LMDB environment: opening, format version, growth, reads, one write at a time.

    files = LmdbFiles(Path("crawl/frontier"))
    files.write(batch)                                # one transaction, synced to disk
    files.get(key, files.urls)

``frontier/data.mdb`` holds six named databases: urls, queue, revisits, hosts, meta, aliases. The
map, the limit of the file's size, begins at 64 MB and doubles when full; it takes no room on disk
before it is used. LMDB rolls back a batch that does not fit: the map grows, and the batch is
written again.

A process may open an LMDB environment only once. A crawl shares its environment with its web pages
(share); ``scrapy serve`` has one for all its threads (open_shared). The registry is in this module
because only this environment has two users: the anchor table (index/) belongs to its writer alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import lmdb

from larmspider.checksums import break_seal, seal
from larmspider.errors import MEND, CrawlDirError, OtherFormatError
from larmspider.files import again_with_room, in_words, lock, make_folder, sync_folder
from larmspider.frontier.storage.backend import BackendError, FormatError
from larmspider.frontier.storage.records import FORGOTTEN, guess_rows


@dataclass(slots=True)
class WriteBatch:
    """Changes by named database; None marks a deletion, and FORGOTTEN in ``urls``.

    ``guesses`` are new rows of ``aliases``, joined by their prefix: there are many, and they are
    never deleted.

    A URL that is added and fetched between two commits never touches the queue on disk.
    """

    urls: dict[bytes, bytes] = field(default_factory=dict)
    queue: dict[bytes, bytes | None] = field(default_factory=dict)
    hosts: dict[bytes, bytes] = field(default_factory=dict)
    meta: dict[bytes, bytes] = field(default_factory=dict)
    aliases: dict[bytes, bytes | None] = field(default_factory=dict)
    guesses: dict[bytes, bytes] = field(default_factory=dict)
    revisits: dict[bytes, bytes | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.urls) + len(self.queue) + len(self.hosts) + len(self.meta)

    def over(self, older: WriteBatch) -> WriteBatch:
        """Both as one batch, in ``older``; where both have a key, this newer batch wins."""
        older.urls.update(self.urls)
        older.queue.update(self.queue)
        older.hosts.update(self.hosts)
        older.meta.update(self.meta)
        older.aliases.update(self.aliases)
        older.revisits.update(self.revisits)
        for prefix, rows in self.guesses.items():
            older.guesses[prefix] = older.guesses.get(prefix, b"") + rows
        return older


FORMAT = b"larmspider frontier 3"
"""Increase it with every change of databases, keys or records, except for a field that is added at
the end of a record (docs/internals/formats.md)."""
FIRST_MAP_BYTES = 64 << 20
_NAMES = ("urls", "queue", "hosts", "meta", "aliases", "revisits")


class BeingMade(CrawlDirError):  # noqa: N818 - named for what happens
    """The files exist and are empty: a crawl is just beginning."""


class LmdbFiles:
    """The environment. ``readonly`` opens it beside the crawl of another process.

    A process may have one for a directory, and may not use it after a fork (LMDB's rules). Raises
    OtherFormatError for files of another format, FormatError for files of another program,
    CrawlDirError if they cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        *,
        readonly: bool = False,
        map_bytes: int = FIRST_MAP_BYTES,
        as_it_is: bool = False,
    ) -> None:
        """``as_it_is``: refuse a truncated file instead of filling it up."""
        self.path = path
        self._as_it_is = as_it_is
        self._resize = threading.Lock()  # no transaction may be open while the map grows
        self._lock_file: IO[str] | None = None
        try:
            if not readonly:
                make_folder(path)
                self._lock_file = _sole_writer(path)
                break_seal(path)
            # metasync and sync stay on: a commit is on disk. readahead off: keys are hashes
            self.env = lmdb.open(
                str(path),
                # 0: as the file says; LMDB itself raises a map that is smaller than the file
                map_size=0 if readonly else map_bytes,
                max_dbs=len(_NAMES) + 2,  # a subclass may have two more
                readonly=readonly,
                create=not readonly,
                readahead=False,
                max_readers=126,
            )
        except (lmdb.Error, OSError) as error:
            self._unlock()
            foreign = isinstance(error, (lmdb.InvalidError, lmdb.VersionMismatchError))
            kind = FormatError if foreign else CrawlDirError
            said = in_words(error, path)
            mend = MEND if isinstance(error, lmdb.InvalidError) else again_with_room(said)
            raise kind(
                f"cannot open the frontier in {path}: {said}{mend and f'; {mend}'}"
            ) from error
        try:
            self._fill_up()
            self._open_databases(readonly)
        except BaseException:
            self.close()
            raise

    def _fill_up(self) -> None:
        """Fill up a truncated file with zeros. LMDB reports zeros as damage, while a read after the
        end of the file would kill the process (SIGBUS)."""
        data = self.path / "data.mdb"
        size = (self.env.info()["last_pgno"] + 1) * self.env.stat()["psize"]
        with suppress(OSError):
            if (there := data.stat().st_size) < size:
                if self._as_it_is:
                    raise FormatError(f"{data} ends at {there:,}, it had {size:,} bytes")
                os.truncate(data, size)

    def _open_databases(self, readonly: bool) -> None:
        names = [name.encode() for name in _NAMES]
        try:
            with self.env.begin() as txn:
                new = txn.stat()["entries"] == 0
            if new and readonly:
                raise BeingMade(f"the frontier in {self.path} is just being created")
            if new:
                with self.env.begin(write=True) as txn:  # wholly or not at all
                    made = {name: self.env.open_db(name, txn=txn) for name in names}
                    txn.put(b"format", FORMAT, db=made[b"meta"])
                sync_folder(self.path)  # LMDB syncs the file, and not its name
            self._check_format()
            dbs = [self.env.open_db(name, create=False) for name in names]
            self.urls, self.queue, self.hosts, self.meta, self.aliases, self.revisits = dbs
        except lmdb.Error as error:
            said = in_words(error, self.path)
            if room := again_with_room(said):
                raise CrawlDirError(
                    f"cannot make the frontier in {self.path}: {said}; {room}"
                ) from error
            raise FormatError(f"{self.path} is not a frontier: {said}; {MEND}") from error

    def _check_format(self) -> None:
        meta = self.env.open_db(b"meta", create=False)
        with self.env.begin() as txn:
            found = txn.get(b"format", db=meta)
        if found != FORMAT:
            has = repr((found or b"").decode("utf-8", "replace"))
            raise OtherFormatError(f"the frontier in {self.path}", has, repr(FORMAT.decode()))

    @contextmanager
    def read(self) -> Iterator[Any]:
        """A short read transaction. Follows a map that another process grew."""
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
        """One value. 1.5 us, half of what read() takes."""
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
        return FormatError(f"the frontier in {self.path} is damaged: {error}; {MEND}")

    @property
    def commits(self) -> int:
        """The number of the last transaction that was written."""
        return int(self.env.info()["last_txnid"])

    def write(self, batch: WriteBatch) -> None:
        """One transaction, synced to disk. BackendError: nothing was written."""
        self.insist(lambda: self._write(batch))

    def insist(self, write: Callable[[], None]) -> None:
        """Call ``write``, a whole transaction, and retry it after the map grew. Raises as
        write()."""
        while True:
            try:
                write()
            except lmdb.MapFullError:
                with self._resize:
                    self.env.set_mapsize(self.env.info()["map_size"] * 2)
            except lmdb.Error as error:
                raise BackendError(
                    f"cannot write the frontier in {self.path}: {in_words(error, self.path)}"
                ) from error
            else:
                return

    def _write(self, batch: WriteBatch) -> None:
        gone = sorted(key for key, value in batch.queue.items() if value is None)
        puts = sorted((key, value) for key, value in batch.queue.items() if value is not None)
        with self.env.begin(write=True) as txn:
            for key in gone:
                txn.delete(key, db=self.queue)
            # sorted: neighbours share pages, and putmulti keeps its place between them
            txn.cursor(self.queue).putmulti(puts)
            self._write_urls(txn, batch.urls)
            txn.cursor(self.hosts).putmulti(sorted(batch.hosts.items()))
            txn.cursor(self.meta).putmulti(sorted(batch.meta.items()))
            for rows_of, db in ((batch.aliases, self.aliases), (batch.revisits, self.revisits)):
                for row in sorted(rows_of):
                    if (value := rows_of[row]) is None:
                        txn.delete(row, db=db)
                    else:
                        txn.put(row, value, db=db)
            rows = sorted(row for found in batch.guesses.values() for row in guess_rows(found))
            txn.cursor(self.aliases).putmulti([(row, b"") for row in rows])

    def _write_urls(self, txn: Any, urls: dict[bytes, bytes]) -> None:
        if FORGOTTEN in urls.values():
            for key in [key for key, record in urls.items() if record == FORGOTTEN]:
                txn.delete(key, db=self.urls)
            urls = {key: record for key, record in urls.items() if record != FORGOTTEN}
        txn.cursor(self.urls).putmulti(sorted(urls.items()))

    def close(self) -> None:
        """May be called twice. Waits for a read of another thread."""
        with self._resize:
            self.env.close()
        try:
            if self._lock_file is not None and not self._lock_file.closed:
                with suppress(OSError):  # of a full disk: then nothing vouches for the file
                    seal(self.path, ["data.mdb"])
        finally:
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


_LOCK = threading.Lock()
_OWNED: dict[Path, LmdbFiles] = {}
_READ: dict[Path, list[LmdbFiles]] = {}
"""One entry for each reader."""


def share(files: LmdbFiles) -> None:
    """Let readers of this process use the environment of a crawl from now on."""
    with _LOCK:
        _OWNED[files.path.resolve()] = files


def unshare(files: LmdbFiles) -> None:
    """Call this before closing a shared environment. May be called twice."""
    with _LOCK:
        if _OWNED.get(files.path.resolve()) is files:
            del _OWNED[files.path.resolve()]


def open_shared(path: Path) -> LmdbFiles:
    """Open the files for reading, until close_shared(). Raises the errors of LmdbFiles."""
    where = path.resolve()
    with _LOCK:
        if where in _OWNED:
            return _OWNED[where]
        readers = _READ.get(where)
        if readers is None:
            readers = _READ[where] = [LmdbFiles(path, readonly=True)]
        else:
            readers.append(readers[0])
        return readers[0]


def close_shared(files: LmdbFiles) -> None:
    """Call this once for each open_shared(); the last reader closes the environment."""
    where = files.path.resolve()
    with _LOCK:
        readers = _READ.get(where, [])
        if readers and readers[0] is files:
            readers.pop()
            if not readers:
                del _READ[where]
                files.close()
