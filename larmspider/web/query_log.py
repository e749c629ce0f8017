"""Logs the queries of the search: each with its days, how often it came, and its number of hits.

    log = QueryLog(Path("crawl/queries.sqlite"), days=90)
    log.note("VPN  login", hits=3)
    log.rows(without_hits=True)             # queries without a hit, most frequent first
    log.suggested("vp")                     # ["vpn login"]

The log has no user and no address. A query is suggested to other readers after 3 days and 5 times.
views/search.py then checks whether the reader would find anything by it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider import options
from larmspider.files import in_words
from larmspider.index.normal import normalized
from larmspider.index.schema import without_accents

if TYPE_CHECKING:
    from larmspider.options import Settings

logger = logging.getLogger(__name__)

FILE = "queries.sqlite"
"""A file in LARM_DIR, readable for its owner alone."""
MAX_CHARS = 200
"""Characters of a query; longer queries are not logged."""
MAX_ROWS = 100_000
"""Queries and days; beyond this the rarest rows are deleted, the oldest first. About 15 MB."""
LEAST_DAYS, LEAST_TIMES = 3, 5
"""Days and times after which a query is suggested to other readers."""
_CHECKED = 1_000  # notes between two looks at the number of rows
_BUSY_SECS = 1.0  # how long another process may write
_DAY_SECS = 86_400
_TABLE = """CREATE TABLE IF NOT EXISTS queries (
    query TEXT, day INTEGER, times INTEGER, empty INTEGER, hits INTEGER, plain TEXT,
    PRIMARY KEY (query, day)
) WITHOUT ROWID"""
_INDEX = "CREATE INDEX IF NOT EXISTS by_plain ON queries (plain) WHERE plain IS NOT NULL"
"""``plain`` is a query without its accents, NULL for a query without accents."""


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A query that was sent ``times`` times, on ``days`` days. ``empty``: the number of times
    without a hit. ``hits``: the hits of the last time."""

    query: str
    times: int
    empty: int
    days: int
    hits: int
    last: date


class QueryLog:
    """The log in the file ``path``; None: no log. If not ``on``, earlier queries are shown and
    expire. An unusable file is logged once; the search continues."""

    def __init__(
        self,
        path: Path | None = None,
        days: int = 90,
        *,
        on: bool = True,
        max_rows: int = MAX_ROWS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path, self.days, self.on = path, days, on and path is not None
        self._max_rows, self._clock = max_rows, clock
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        self._expired, self._notes, self._failed = 0, 0, False

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Raises ConfigError."""
        return cls(
            options.crawl_root(settings) / FILE,
            options.integer(settings, "LARM_QUERY_LOG_DAYS", minimum=1, maximum=36_500),
            on=options.boolean(settings, "LARM_QUERY_LOG"),
        )

    def note(self, query: str, hits: int) -> None:
        """Note that a query was typed and found so much. 0.1 ms."""
        text = _written(query)
        if not self.on or not text or len(text) > MAX_CHARS:
            return
        self._ask(
            "INSERT INTO queries VALUES (?, ?, 1, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " times = times + 1, empty = empty + excluded.empty, hits = excluded.hits",
            (text, self._today, int(not hits), hits, _plain(text)),
            make=True,
        )
        self._notes += 1
        if self._notes % _CHECKED == 0:
            self._expired = 0

    def suggested(self, typed: str, limit: int) -> list[str]:
        """Queries of other readers that begin with the typed text, most frequent first. A text
        without accents also finds queries with accents. Queries with the typed accents come
        first."""
        head = _written(typed)
        if not self.on or not head:
            return []
        plain = without_accents(head)
        found = self._ask(
            "SELECT query FROM queries"
            " WHERE (query >= ?1 AND query < ?2 OR plain >= ?1 AND plain < ?2) AND day > ?3"
            " GROUP BY query HAVING count(*) >= ?4 AND sum(times) >= ?5"
            " ORDER BY ?1 != ?6 AND substr(query, 1, length(?6)) = ?6 DESC,"
            " sum(times) DESC, query LIMIT ?7",
            (
                plain, f"{plain}\U0010ffff", self._today - self.days, LEAST_DAYS, LEAST_TIMES,
                head, limit,
            ),
        )  # fmt: skip
        return [text for (text,) in found]

    def rows(self, *, without_hits: bool = False, limit: int = 100) -> list[LoggedQuery]:
        """The most frequent queries; ``without_hits``: only queries whose last search had none."""
        found = self._ask(
            # with max() SQLite takes the bare column hits from the row that has the maximum
            "SELECT query, sum(times) AS typed, sum(empty), count(*), hits, max(day) FROM queries"
            " WHERE day > ? GROUP BY query HAVING hits = 0 OR NOT ?"
            " ORDER BY typed DESC, query LIMIT ?",
            (self._today - self.days, without_hits, limit),
        )
        return [
            LoggedQuery(
                query, times, empty, days, hits, datetime.fromtimestamp(day * _DAY_SECS, UTC).date()
            )
            for query, times, empty, days, hits, day in found
        ]

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database, self.path, self.on = None, None, False

    @property
    def _today(self) -> int:
        return int(self._clock() // _DAY_SECS)

    def _ask(self, statement: str, values: tuple[Any, ...], *, make: bool = False) -> list[Any]:
        """The rows of an answer; empty if the file cannot be used. A missing file is made if
        ``make`` is True; else the result is empty, too."""
        with self._lock:
            try:
                if self.path is None or not (make or self.path.exists()):
                    return []
                if self._database is None:
                    self._database = _opened(self.path)
                if self._expired != self._today:
                    self._expire(self._database)
                return self._database.execute(statement, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                if not self._failed:
                    said = in_words(error, self.path.parent) if self.path else error
                    logger.warning("%s: queries are not logged: %s", self.path, said)
                self._failed = True
                return []

    def _expire(self, database: sqlite3.Connection) -> None:
        """Forget rows that are too old or too many."""
        self._expired = self._today
        database.execute("DELETE FROM queries WHERE day <= ?", (self._today - self.days,))
        (rows,) = database.execute("SELECT count(*) FROM queries").fetchone()
        if rows > self._max_rows:
            database.execute(
                "DELETE FROM queries WHERE (query, day) IN"
                " (SELECT query, day FROM queries ORDER BY times, day LIMIT ?)",
                (rows - self._max_rows * 9 // 10,),
            )


def _opened(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600)
    database = sqlite3.connect(
        path, timeout=_BUSY_SECS, isolation_level=None, check_same_thread=False
    )
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA secure_delete = ON")
        database.execute(_TABLE)
        database.execute(_INDEX)
    except BaseException:
        database.close()
        raise
    return database


def _plain(query: str) -> str | None:
    plain = without_accents(query)
    return None if plain == query else plain


def _written(query: str) -> str:
    """The logged form of a query: queries that differ only in capital letters and spaces are
    one."""
    return " ".join(normalized(query.encode("utf-8", "replace").decode()).lower().split())
