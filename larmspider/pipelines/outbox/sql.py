"""SqlReceiver: pages, links and versions in PostgreSQL or SQLite.

    LARM_SQL_URL=postgresql://larm:secret@db.example/intranet scrapy crawl intranet ...

    pages      the last version of each page that there is
    links      the links of these versions
    versions   when each page was stored, or removed (status 0, with the reason)

A batch is one transaction. An entry that was written before, or is older than the stored one,
changes nothing: `versions` has the newest stamp of each URL, also of removed ones. Several crawls
and workers may write into one database; a lock lets one write at a time.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider import options
from larmspider.errors import ConfigError
from larmspider.files import in_words, why_no_lock
from larmspider.pipelines.outbox.receiver import (
    AwayError,
    BatchError,
    Receiver,
    RefusedError,
    Sent,
)
from larmspider.pipelines.outbox.spool import Entry
from larmspider.redaction import keep_secrets_of

if TYPE_CHECKING:
    from larmspider.options import Settings

TABLES: Mapping[str, Mapping[str, str]] = {
    "pages": {
        "url": "text PRIMARY KEY", "normalized": "text", "stored": "time NOT NULL",
        "fetched": "time", "status": "integer NOT NULL", "mime": "text", "charset": "text",
        "language": "text", "title": "text", "text": "text", "description": "text",
        "author": "text", "modified": "time", "from_page": "text", "depth": "integer",
        "size": "bigint", "digest": "text", "etag": "text", "last_modified": "text",
        "noindex": "boolean", "unread": "text", "fields": "json", "body": "bytes",
    },
    "links": {
        "from_page": "text NOT NULL", "to_page": "text NOT NULL", "to_page_normalized": "text",
        "link_type": "integer", "anchor": "text",
    },
    "versions": {
        "url": "text NOT NULL", "stored": "time NOT NULL", "fetched": "time",
        "status": "integer NOT NULL", "mime": "text", "size": "bigint", "digest": "text",
        "title": "text", "reason": "text",
    },
}  # fmt: skip
"""Columns by table, with types of our own that a dialect translates."""
INDEXES = (
    "CREATE UNIQUE INDEX IF NOT EXISTS versions_url_stored ON versions (url, stored)",
    "CREATE INDEX IF NOT EXISTS pages_normalized ON pages {hash} (normalized)",
    "CREATE INDEX IF NOT EXISTS links_from_page ON links {hash} (from_page)",
    "CREATE INDEX IF NOT EXISTS links_to_page ON links {hash} (to_page_normalized)",
)
"""Links may be longer than a B-tree of PostgreSQL allows; hashes are not."""
CONNECT_SECS, STATEMENT_SECS = 10, 120
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHUT = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
"""SQLite's codes for a file that another path, or other rights, would mend."""
URLS = "postgresql://user:password@host/database or sqlite:FILE"


class Database(ABC):
    """The differences between databases. Errors of the driver pass through `errors`."""

    types: Mapping[str, str]
    hash: str
    mark: str
    """The placeholder of a parameter."""

    def __init__(self) -> None:
        self.connection: Any = None

    @abstractmethod
    def connect(self) -> None: ...

    @abstractmethod
    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raises AwayError, RefusedError or BatchError for the driver's."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that no other writer has beside it."""

    def copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        columns = TABLES[table]
        marks = ", ".join([self.mark] * len(columns))
        self.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        cursor = self.connection.cursor()
        cursor.executemany(statement, list(rows))
        cursor.close()

    def time(self, micros: int) -> Any:
        """A time in microseconds since the epoch, in the form that the driver takes."""
        return _EPOCH + timedelta(microseconds=micros)

    def text(self, value: str | None) -> str | None:
        return value

    def make_tables(self) -> None:
        """Make the missing tables. Raises RefusedError if a table has other columns."""
        self.begin()
        for table, columns in TABLES.items():
            declared = ", ".join(
                f"{name} {' '.join(self.types.get(word, word) for word in kind.split())}"
                for name, kind in columns.items()
            )
            self.connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({declared})")
            found = self.connection.execute(f"SELECT * FROM {table} LIMIT 0")  # noqa: S608
            there = {column[0] for column in found.description}
            if missing := [name for name in columns if name not in there]:
                raise RefusedError(
                    f"its table {table} has no column {missing[0]}, so it is not larmspider's:"
                    " expected an empty database or schema, or one that SqlReceiver has made"
                )
        for statement in INDEXES:
            self.connection.execute(statement.format(hash=self.hash))
        self.connection.commit()

    def newest(self, urls: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """When the last known version of each URL was stored or removed, and when its last page was
        stored, or None."""
        marks = ", ".join([self.mark] * len(urls))
        rows = self.connection.execute(
            "SELECT url, max(stored), max(CASE WHEN reason IS NULL THEN stored END)"  # noqa: S608
            f" FROM versions WHERE url IN ({marks}) GROUP BY url",
            list(urls),
        )
        return {url: (last, page) for url, last, page in rows.fetchall()}

    def pages(self, urls: Sequence[str]) -> dict[str, Any]:
        """When the row in `pages` of each URL was stored."""
        marks = ", ".join([self.mark] * len(urls))
        rows = self.connection.execute(
            f"SELECT url, stored FROM pages WHERE url IN ({marks})",  # noqa: S608
            list(urls),
        )
        return dict(rows.fetchall())

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


class Postgres(Database):
    """PostgreSQL, by psycopg 3."""

    types = {"time": "timestamptz", "bytes": "bytea", "json": "jsonb"}  # noqa: RUF012
    hash, mark = "USING hash", "%s"
    _LOCK = 0x6C61726D
    """The key for pg_advisory_xact_lock: "larm"."""

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError:
            raise ConfigError(
                "LARM_SQL_URL: postgresql:// needs psycopg: pip install 'larmspider[sql]'"
            ) from None
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:  # it may say what the password is
            raise ConfigError(f"LARM_SQL_URL=postgresql://...: expected {URLS}") from None
        self._url, self._psycopg = url, psycopg

    def connect(self) -> None:
        with self.errors():
            self.connection = self._psycopg.connect(
                self._url, connect_timeout=CONNECT_SECS, application_name="larmspider"
            )
            self.connection.execute(f"SET statement_timeout = '{STATEMENT_SECS}s'")
        encoding = self.connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise RefusedError(f"its encoding is {encoding}: expected a database in UTF8")

    @contextmanager
    def errors(self) -> Iterator[None]:
        psycopg = self._psycopg
        try:
            yield
        except psycopg.Error as error:
            state, text = error.sqlstate or "", " ".join(str(error).split())
            if not state and "FATAL" in text and self.connection is None:
                # the server has answered: it does not know the user, the password, the database
                waits = ("starting up", "shutting down", "too many", "recovery")
                raise (AwayError if any(one in text for one in waits) else RefusedError)(
                    text
                ) from None
            if state[:2] in ("42", "3D", "3F", "28"):  # rights, names and types of columns
                raise RefusedError(text) from None
            if isinstance(error, psycopg.OperationalError) and state[:2] != "54":
                raise AwayError(text) from None
            if isinstance(error, (psycopg.DataError, psycopg.IntegrityError)) or state[:2] == "54":
                raise BatchError(text, unfit=state[:2] == "54") from None
            raise AwayError(text) from None

    def begin(self) -> None:
        self.connection.execute("SELECT pg_advisory_xact_lock(%s)", [self._LOCK])

    def copy(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        columns = ", ".join(TABLES[table])
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def text(self, value: str | None) -> str | None:
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if value else value


class Sqlite(Database):
    """One file; times are text, ``2026-01-31T12:00:00.000000Z``."""

    types = {"time": "text", "bytes": "blob", "json": "text"}  # noqa: RUF012
    hash, mark = "", "?"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def connect(self) -> None:
        with self.errors():
            self.connection = sqlite3.connect(self._path, timeout=CONNECT_SECS)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError) as error:
            raise BatchError(str(error)) from None
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in _SHUT:
                raise RefusedError(f"{self._path}: {self._why_shut() or error}") from None
            raise AwayError(f"{self._path}: {in_words(error, self._path)}") from None
        except sqlite3.DatabaseError as error:  # no database, or a damaged one
            raise RefusedError(f"{self._path}: {error}") from None

    def _why_shut(self) -> str | None:
        """Why the file cannot be opened for writing, in words."""
        folder = self._path.parent
        if not folder.is_dir():
            return f"{folder} is not a directory: expected a file in one that exists"
        if self._path.is_dir():
            return "it is a directory: expected a file"
        if self._path.exists() and not os.access(self._path, os.R_OK | os.W_OK):
            return f"it cannot be written: {os.strerror(errno.EACCES)}"
        why = why_no_lock(folder)
        return f"{folder} cannot be written: {why}" if why else None

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def time(self, micros: int) -> str:
        found: datetime = super().time(micros)
        return found.isoformat(timespec="microseconds")[:26] + "Z"


def database(url: str) -> Database:
    """Raises ConfigError."""
    keep_secrets_of("LARM_SQL_URL", url)
    scheme, _, rest = url.partition(":")
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        return Postgres(url)
    if scheme == "sqlite" and rest.strip("/"):
        path = rest[2:] if rest.startswith("///") else rest
        if not path.startswith("//"):
            return Sqlite(Path(path).expanduser().absolute())
    raise ConfigError(f"LARM_SQL_URL={scheme + ':...' if url else ''}: expected {URLS}")


class SqlReceiver(Receiver):
    """Writes to LARM_SQL_URL."""

    settings = ("LARM_SQL_URL", "LARM_SQL_BODIES")

    def __init__(self, database: Database, *, bodies: bool = True) -> None:
        self.database, self.bodies = database, bodies

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        bodies = options.boolean(settings, "LARM_SQL_BODIES")
        return cls(database(options.text(settings, "LARM_SQL_URL").strip()), bodies=bodies)

    def connect(self) -> None:
        self.database.close()
        self.database.connect()
        with self.database.errors():
            self.database.make_tables()

    def send(self, batch: Sequence[Entry]) -> Sent:
        db = self.database
        try:
            with db.errors():
                db.begin()
                self._write(batch)
                db.connection.commit()
        except BatchError:
            with db.errors():
                db.connection.rollback()
            raise
        return Sent()

    def _write(self, batch: Sequence[Entry]) -> None:
        db = self.database
        of_url: dict[str, list[Entry]] = {}
        for entry in batch:
            of_url.setdefault(entry.url, []).append(entry)
        known, rows = db.newest(list(of_url)), db.pages(list(of_url))
        newer = [
            entry
            for url, entries in of_url.items()
            for entry in entries
            if url not in known or db.time(entry.stamp) > known[url][0]
        ]
        last = {entry.url: entry for entry in sorted(newer, key=lambda one: one.stamp)}
        for url in of_url.keys() - last.keys():
            # nothing new, but `pages` may have been emptied, or come from an older backup
            entry = max(of_url[url], key=lambda one: one.stamp)
            stored, page = known[url]
            is_older = url not in rows or rows[url] < db.time(entry.stamp)
            if is_older and (entry.removed is not None or page == stored):
                last[url] = entry
        gone = [[url] for url in last if url in known or url in rows]
        db.many(f"DELETE FROM pages WHERE url = {db.mark}", gone)  # noqa: S608
        db.many(f"DELETE FROM links WHERE from_page = {db.mark}", gone)  # noqa: S608
        db.copy("versions", map(self._version, newer))
        pages = [entry for entry in last.values() if entry.removed is None]
        db.copy("pages", map(self._page, pages))
        db.copy("links", (row for entry in pages for row in self._links(entry)))

    def _page(self, entry: Entry) -> list[Any]:
        db, page = self.database, entry.page
        values = {
            **page,
            "stored": db.time(entry.stamp),
            "fetched": self._secs(page["fetched"]),
            "modified": self._secs(page["modified"]),
            "fields": json.dumps(page["fields"], ensure_ascii=True).replace("\\u0000", "\\ufffd"),
            "body": entry.body if self.bodies and entry.body_file is None else None,
            "size": entry.size,
        }
        return [
            db.text(value) if isinstance(value := values.get(name), str) else value
            for name in TABLES["pages"]
        ]

    def _version(self, entry: Entry) -> list[Any]:
        db, page = self.database, entry.page
        values = {
            "status": 0,
            **page,
            "stored": db.time(entry.stamp),
            "fetched": self._secs(page.get("fetched")),
            "size": entry.size,
            "reason": entry.removed,
        }
        return [
            db.text(value) if isinstance(value := values.get(name), str) else value
            for name in TABLES["versions"]
        ]

    def _links(self, entry: Entry) -> Iterator[Sequence[Any]]:
        text = self.database.text
        for url, normalized, kind, anchor in entry.links:
            yield text(entry.url), text(url), text(normalized), kind, text(anchor)

    def _secs(self, seconds: float | None) -> Any:
        """A time in seconds; None if there is none, or if it lies outside of what databases can
        store."""
        if not seconds:
            return None
        with suppress(OverflowError, ValueError):
            return self.database.time(round(seconds * 1_000_000))
        return None

    def close(self) -> None:
        with suppress(AwayError, RefusedError, BatchError), self.database.errors():
            self.database.close()
