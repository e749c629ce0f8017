"""The LMDB environment of the index: opening, growth, and who may write."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import lmdb

from larmspider.errors import CrawlDirError

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
