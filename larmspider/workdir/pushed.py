"""Documents that a server was given for a collection: push.sqlite in LARM_DIR (docs/server.md).

    with Pushed.open(directory) as pushed:
        pushed.put([Document(url, exact, b"...", "text/plain", version=7)])
        pushed.orders(after=0)             # what the crawl has to store or take out
        pushed.done([Done(number)])        # every store has it

A document waits here with its body until every store has it. Afterwards its facts stay: version,
digest, and the fields that came beside its body. The server writes documents, the crawl ends their
orders.
Each call is one transaction, on disk when it returns.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
from msgspec import Struct

from larmspider.errors import CrawlDirError, LarmspiderError
from larmspider.files import in_words, make_folder, sync_folder
from larmspider.items import Page

FILE = "push.sqlite"
FILES = (FILE, f"{FILE}-wal", f"{FILE}-shm")
BUSY_SECS = 30.0
"""How long a transaction waits for another process."""
Version = int | float | str | None

_SCHEMA = """
CREATE TABLE about (id TEXT NOT NULL, last INTEGER NOT NULL, waiting_bytes INTEGER NOT NULL);
CREATE TABLE documents (
    exact TEXT PRIMARY KEY, url TEXT NOT NULL, number INTEGER NOT NULL, waits INTEGER NOT NULL,
    version TEXT NOT NULL, digest BLOB NOT NULL, content_type TEXT NOT NULL, size INTEGER NOT NULL,
    facts BLOB NOT NULL, stored_facts BLOB, outcome TEXT NOT NULL, pushed REAL NOT NULL,
    stored REAL NOT NULL
);
CREATE INDEX numbers ON documents (number);
CREATE INDEX waiting ON documents (number) WHERE waits > 0;
CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
PRAGMA user_version = 1;
"""
_STORE, _TAKE_OUT = 1, 2  # values of waits; 0: no order
FAILED = "failed: "
"""The outcome of a document that no store has begins so: the same document again is stored."""


class DiskFullError(LarmspiderError):
    """There is no room for the documents; nothing of them is kept."""


class Facts(Struct, frozen=True, omit_defaults=True):
    """Facts that are sent beside the body of a document. ``modified`` in seconds since the epoch.
    ``access``: principals who may see it."""

    title: str = ""
    language: str = ""
    modified: float | None = None
    fields: dict[str, list[str]] = {}
    access: list[str] = []

    def fill(self, page: Page) -> None:
        """Set these fields of the page that was read from the body."""
        page.title = self.title or page.title
        page.language = self.language or page.language
        page.modified = page.modified if self.modified is None else self.modified
        page.fields = {**page.fields, **self.fields}


class Document(NamedTuple):
    """A document that is pushed. ``exact``: the exact form of its URL."""

    url: str
    exact: str
    body: bytes
    content_type: str
    facts: Facts = Facts()
    version: Version = None

    @property
    def digest(self) -> bytes:
        """A hash of everything except the version."""
        said = msgspec.json.encode([self.content_type, self.facts])
        return hashlib.sha256(b"%d %b%b" % (len(said), said, self.body)).digest()


class Put(NamedTuple):
    """The result for a document: created, updated, same, or conflict with the reason."""

    word: str
    why: str = ""


class Order(NamedTuple):
    """A document that is to be stored, or removed."""

    number: int
    url: str
    exact: str
    takes_out: bool


class Waiting(NamedTuple):
    """A document whose stores wait for it."""

    number: int
    content_type: str
    body: bytes
    facts: Facts


class Done(NamedTuple):
    """The end of an order: its number, or the exact form of a page that the operator has removed.
    ``outcome``: why the document was not read, or not all of it; "" if it was. ``stored``: whether
    the stores have it."""

    order: int | str
    outcome: str = ""
    stored: bool = True


class State(NamedTuple):
    """A document and its state: ``state`` is waiting, stored, failed or leaving."""

    url: str
    version: Version
    state: str
    outcome: str
    pushed: float
    stored: float


class Pushed:
    """The file of pushed documents, for one thread at a time. All methods raise DiskFullError or
    CrawlDirError."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        with self._failing():
            self.id: str = connection.execute("SELECT id FROM about").fetchone()[0]
            """Another file has another one: positions of this file mean nothing there."""

    @classmethod
    def open(cls, directory: Path) -> Self:
        """The file of a directory; both are made if missing."""
        path = directory / FILE
        try:
            is_new = not path.exists()
            make_folder(directory)
            connection = _connected(path)
            if is_new:
                sync_folder(directory)
            return cls(path, connection)
        except OSError as error:
            raise CrawlDirError(f"{path}: {error.strerror or error}") from None

    @classmethod
    def found(cls, directory: Path) -> Self | None:
        """The file of pushed documents in a directory; None if it is missing."""
        path = directory / FILE
        return cls(path, _connected(path)) if path.exists() else None

    def close(self) -> None:
        """May be called twice."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # the server

    def put(self, documents: Sequence[Document]) -> list[Put]:
        """Keep documents, in order."""
        with self._writing() as write:
            return [self._put(write, document) for document in documents]

    def _put(self, write: sqlite3.Cursor, new: Document) -> Put:
        digest = new.digest
        row = write.execute(
            "SELECT number, waits, version, digest, outcome FROM documents WHERE exact = ?",
            (new.exact,),
        ).fetchone()
        is_known = row is not None and row[1] != _TAKE_OUT
        if is_known:
            version = _unpacked(row[2])
            if why := _why_not(new.version, version, same=row[3] == digest):
                return Put("conflict", why)
            has_failed = row[1] != _STORE and row[4].startswith(FAILED)
            if row[3] == digest and _order(version) == _order(new.version) and not has_failed:
                return Put("same")
        number = self._next(write, len(new.body))
        if row is not None:
            self._drop_body(write, row[0])
        write.execute("INSERT INTO bodies VALUES (?, ?)", (number, new.body))
        write.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', ?, 0)"
            " ON CONFLICT (exact) DO UPDATE SET url = excluded.url, number = excluded.number,"
            " waits = excluded.waits, version = excluded.version, digest = excluded.digest,"
            " content_type = excluded.content_type, size = excluded.size, facts = excluded.facts,"
            " pushed = excluded.pushed",
            (
                *(new.url, new.exact)[::-1], number, _STORE, _packed(new.version), digest,
                new.content_type, len(new.body), msgspec.json.encode(new.facts), time.time(),
            ),
        )  # fmt: skip
        return Put("updated" if is_known else "created")

    def remove(self, exact: str) -> bool:
        """Have a document removed; False if there is none."""
        with self._writing() as write:
            row = write.execute(
                "SELECT number, waits FROM documents WHERE exact = ?", (exact,)
            ).fetchone()
            if row is None or row[1] == _TAKE_OUT:
                return False
            self._drop_body(write, row[0])
            write.execute(
                "UPDATE documents SET waits = ?, number = ? WHERE exact = ?",
                (_TAKE_OUT, self._next(write, 0), exact),
            )
            return True

    def state(self, exact: str) -> State | None:
        """The state of a document; None for an unknown document."""
        row = self._one(
            "SELECT url, version, waits, outcome, pushed, stored, stored_facts FROM documents"
            " WHERE exact = ?",
            exact,
        )
        if row is None:
            return None
        url, version, waits, outcome, pushed, stored, facts = row
        words = ("failed" if facts is None else "stored", "waiting", "leaving")
        return State(url, _unpacked(version), words[waits], outcome, pushed, stored)

    def waiting_bytes(self) -> int:
        """Bytes of the bodies that wait."""
        found = self._one("SELECT waiting_bytes FROM about")
        return 0 if found is None else int(found[0])

    def has_orders(self) -> bool:
        return self._one("SELECT 1 FROM documents WHERE waits > 0 LIMIT 1") is not None

    # the crawl

    def orders(self, after: int, limit: int = 200) -> list[Order]:
        """Orders with a number above ``after``, the oldest first."""
        with self._failing():
            rows = self._connection.execute(
                "SELECT number, url, exact, waits FROM documents WHERE waits > 0 AND number > ?"
                " ORDER BY number LIMIT ?",
                (after, limit),
            ).fetchall()
        return [Order(number, url, exact, waits == _TAKE_OUT) for number, url, exact, waits in rows]

    def is_open(self, number: int) -> bool:
        """Whether an order has not ended, and no later one has taken its place."""
        found = self._one("SELECT 1 FROM documents WHERE number = ? AND waits > 0", number)
        return found is not None

    def document(self, exact: str) -> Waiting | None:
        """The document of an order that waits to be stored; None if there is none."""
        row = self._one(
            "SELECT number, content_type, body, facts FROM documents JOIN bodies USING (number)"
            " WHERE exact = ? AND waits = 1",
            exact,
        )
        if row is None:
            return None
        number, content_type, body, facts = row
        return Waiting(number, content_type, body, msgspec.json.decode(facts, type=Facts))

    def done(self, orders: Sequence[Done]) -> None:
        """End orders. Orders that have ended, or that a later order has replaced, stay
        unchanged."""
        if not orders:
            return
        now = time.time()
        with self._writing() as write:
            for order, outcome, stored in orders:
                if isinstance(order, str):
                    row = write.execute(
                        "SELECT number FROM documents WHERE exact = ?", (order,)
                    ).fetchone()
                    if row is not None:
                        self._drop_body(write, row[0])
                        write.execute("DELETE FROM documents WHERE exact = ?", (order,))
                    continue
                write.execute("DELETE FROM documents WHERE number = ? AND waits = 2", (order,))
                write.execute(
                    "UPDATE documents SET waits = 0, outcome = ?, stored = ?,"
                    " stored_facts = CASE WHEN ? THEN facts ELSE stored_facts END"
                    " WHERE number = ? AND waits = 1",
                    (outcome, now, stored, order),
                )
                self._drop_body(write, order)

    def stored_facts(self, exact: str) -> Facts | None:
        """The facts of the stored document; None if none is stored."""
        row = self._one("SELECT stored_facts FROM documents WHERE exact = ?", exact)
        if row is None or row[0] is None:
            return None
        found: Facts = msgspec.json.decode(row[0], type=Facts)
        return found

    def access(self) -> Iterator[tuple[str, list[str]]]:
        """The documents that the stores have and that have principals, by exact form."""
        sql = "SELECT exact, stored_facts FROM documents WHERE instr(stored_facts, ?)"
        with self._failing():
            for exact, facts in self._connection.execute(sql, (b'"access"',)):
                if access := msgspec.json.decode(facts, type=Facts).access:
                    yield exact, access

    # SQL

    @staticmethod
    def _next(write: sqlite3.Cursor, size: int) -> int:
        write.execute(
            "UPDATE about SET last = last + 1, waiting_bytes = waiting_bytes + ?", (size,)
        )
        found: int = write.execute("SELECT last FROM about").fetchone()[0]
        return found

    @staticmethod
    def _drop_body(write: sqlite3.Cursor, number: int) -> None:
        row = write.execute(
            "SELECT length(body) FROM bodies WHERE number = ?", (number,)
        ).fetchone()
        if row is not None:
            write.execute("DELETE FROM bodies WHERE number = ?", (number,))
            write.execute("UPDATE about SET waiting_bytes = waiting_bytes - ?", (row[0],))

    def _one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        with self._failing():
            found: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
            return found

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Cursor]:
        with self._failing(), closing(self._connection.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield cursor
                cursor.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _error(self.path, error) from None


class PushWatch:
    """Tells whether documents wait in a directory; reads files that have changed since."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[list[tuple[int, int]], bool]] = {}

    def waits(self, directory: Path) -> bool:
        """Whether documents wait in a directory; False if the file cannot be read."""
        found = []
        for name in FILES[:2]:
            with suppress(OSError):
                status = (directory / name).stat()
                found.append((status.st_mtime_ns, status.st_size))
        if not found:
            return False
        known = self._seen.get(directory)
        if known is None or known[0] != found:
            has_orders = False
            with suppress(LarmspiderError):
                if (pushed := Pushed.found(directory)) is not None:
                    with pushed:
                        has_orders = pushed.has_orders()
            known = self._seen[directory] = found, has_orders
        return known[1]


@contextmanager
def facts_of(directory: Path) -> Iterator[Callable[[Page], None]]:
    """A function that sets the facts of a pushed page, which its body lacks; it does nothing in a
    crawl without pushed documents. Raises CrawlDirError."""
    pushed = Pushed.found(directory)
    if pushed is None:
        yield lambda _: None
        return

    def fill(page: Page) -> None:
        if (facts := pushed.stored_facts(page.name)) is not None:
            facts.fill(page)

    with pushed:
        yield fill


def stored_access(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """The result of `Pushed.access` for the file in a directory. Raises CrawlDirError."""
    if (pushed := Pushed.found(directory)) is not None:
        with pushed:
            yield from pushed.access()


def _connected(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_SECS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                _make(connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _error(path, error) from None
    return connection


def _make(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:  # no other process has
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES (?, 0, 0)", (uuid.uuid4().hex,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _error(path: Path, error: sqlite3.Error) -> LarmspiderError:
    said = in_words(error, path)
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL or "space left" in said:
        return DiskFullError(f"{path}: the disk is full")
    return CrawlDirError(f"{path}: {said}")


def _packed(version: Version) -> str:
    return msgspec.json.encode(version).decode()


def _unpacked(version: object) -> Version:
    found: Version = msgspec.json.decode(str(version))
    return found


def _order(version: Version) -> tuple[int, int | float | str]:
    """Numbers are compared as numbers, also if they are written as text; other text as text."""
    if version is None:
        return 0, 0
    if isinstance(version, str):
        return (1, int(version)) if version.isascii() and version.isdecimal() else (2, version)
    return 1, version


def _why_not(new: Version, known: Version, *, same: bool) -> str:
    """Why a version does not take the place of a known one; "" if it does, or is the same."""
    kind, order = _order(new)
    known_kind, known_order = _order(known)
    if kind != known_kind and known_kind:
        return f"version {new!r}: the stored one is {known!r}: expected a later one of that kind"
    if kind != known_kind or not kind:
        return ""
    if order < known_order:  # type: ignore[operator]
        return f"version {new!r} is older than the stored one, {known!r}"
    if order == known_order and not same:
        return f"version {new!r} is stored with other content: expected a later version"
    return ""
