"""SqlReceiver: the tables have the last version of each page, whatever comes twice or late."""

from __future__ import annotations

import re
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.pipelines.outbox.receiver import AwayError, BatchError, RefusedError
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER, Cursor, Entry
from larmspider.pipelines.outbox.sql import Sqlite, SqlReceiver
from tests.support.servers.postgres import PROGRAMS, PostgresServer
from tests.support.spooled import entries, page, removed, spooled

DOCS = Path(__file__).parents[3] / "docs" / "stores.md"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if not PROGRAMS.exists():
        pytest.skip("PostgreSQL is not installed (Debian package postgresql-15)")
    with PostgresServer() as server:
        yield server


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.acceptance)],
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'pages.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    with server.connection() as connection:
        connection.execute("DROP TABLE IF EXISTS pages, links, versions")
    return server.url


def receiver_for(url: str, **settings: Any) -> SqlReceiver:
    return SqlReceiver.from_settings(Settings({"LARM_SQL_URL": url, **settings}))


@pytest.fixture
def receiver(url: str) -> Iterator[SqlReceiver]:
    found = receiver_for(url)
    found.connect()
    yield found
    found.close()


Rows = Callable[[str], list[Any]]


@pytest.fixture
def rows(receiver: SqlReceiver) -> Rows:
    def select(query: str) -> list[Any]:
        found: list[Any] = receiver.database.connection.execute(query).fetchall()
        return found

    return select


def test_a_page_has_its_row_and_its_links(
    tmp_path: Path, receiver: SqlReceiver, rows: Rows
) -> None:
    """With odd characters, and times; a link that is repeated is one row."""
    one = page("a", b"\x00\xff", text="nul \0 and \ud800", fields={"room": ["1\0"]}, modified=1e15)
    one.links *= 2
    receiver.send(entries(tmp_path, one))
    ((status, title, text, body, size),) = rows("SELECT status, title, text, body, size FROM pages")
    assert (status, title, bytes(body), size) == (200, "a", b"\x00\xff", 2)
    assert text.replace("\N{REPLACEMENT CHARACTER}", "\0") == "nul \0 and ?"
    assert rows("SELECT count(*) FROM pages WHERE fetched < stored AND modified IS NULL") == [(1,)]
    assert rows("SELECT to_page, to_page_normalized, link_type, anchor FROM links") == [
        ("http://h/next", "http://h/next", 0, "on"),
        ("http://h/N", "http://h/n", 0, ""),
    ]


def test_tables_that_take_no_page_any_more_bury_nothing(
    tmp_path: Path, receiver: SqlReceiver, rows: Rows
) -> None:
    """Somebody has changed them: the sender says so, and sends all once they are mended."""
    end = spooled(tmp_path, *(page(str(number)) for number in range(9))).offset
    database, said = receiver.database, []
    is_sqlite = isinstance(database, Sqlite)

    def wait(seconds: float) -> bool:
        if seconds:
            cursor = Cursor.read(tmp_path / FOLDER, "SqlReceiver")
            assert cursor is not None
            said.append((cursor.trouble, cursor.dead, cursor.sent))
            database.connect()
            drop = "TRIGGER no" if is_sqlite else "TABLE no_more CASCADE"
            database.connection.execute(f"DROP {drop}")
            database.connection.commit()
        return True

    if is_sqlite:
        refuse = "CREATE TRIGGER no BEFORE INSERT ON pages BEGIN SELECT RAISE(ABORT, 'none'); END"
    else:
        refuse = (
            "CREATE TABLE no_more (url text PRIMARY KEY);"
            " ALTER TABLE pages ADD CONSTRAINT no FOREIGN KEY (url) REFERENCES no_more"
        )
    database.connection.execute(refuse)
    database.connection.commit()
    Sender(receiver, tmp_path / FOLDER, wait).send_up_to(end)
    ((trouble, dead, sent),) = said
    assert trouble.startswith("it refuses everything (9 entries): ")
    assert (dead, sent) == (0, 0)
    receiver.connect()
    assert rows("SELECT count(*) FROM pages") == [(9,)]


def test_the_query_that_is_shown_works(tmp_path: Path, receiver: SqlReceiver, rows: Rows) -> None:
    (shown,) = re.findall(r"^    (SELECT .*)$", DOCS.read_text("utf-8"), re.MULTILINE)
    receiver.send(
        entries(tmp_path, page("a"), page("next", status=404, normalized="http://h/next"))
    )
    assert rows(shown) == [("http://h/a", "http://h/next"), ("http://h/next", "http://h/next")]


def test_only_the_last_version_counts(tmp_path: Path, receiver: SqlReceiver, rows: Rows) -> None:
    """In whatever order they come, and however often; `versions` has each once."""
    first = entries(tmp_path, page("a", b"1"), page("b", b"1"), now=1000.0)
    second = entries(tmp_path, page("a", b"2"), removed("b"), page("c", b"2"), now=2000.0)
    for batch in ([*first, *second], second, first, second[:1], first + second):
        receiver.send(batch)
        pages = rows("SELECT url, body FROM pages ORDER BY url")
        assert [(url[9:], bytes(body)) for url, body in pages] == [("a", b"2"), ("c", b"2")]
        assert rows("SELECT from_page, count(*) FROM links GROUP BY from_page ORDER BY 1") == [
            ("http://h/a", 2), ("http://h/c", 2),
        ]  # fmt: skip
    assert rows("SELECT url, status, reason FROM versions ORDER BY url, stored") == [
        ("http://h/a", 200, None), ("http://h/a", 200, None), ("http://h/b", 200, None),
        ("http://h/b", 0, "gone"), ("http://h/c", 200, None),
    ]  # fmt: skip


def test_an_older_version_that_comes_late_brings_nothing_back(
    tmp_path: Path, receiver: SqlReceiver, rows: Rows
) -> None:
    """Another worker had the page before, and its sender was away."""
    late = entries(tmp_path, page("a", b"1"), now=1000.0)
    receiver.send(entries(tmp_path, removed("a"), now=2000.0))
    receiver.send(late)
    assert rows("SELECT count(*) FROM pages") == rows("SELECT count(*) FROM links") == [(0,)]


def filled(entry: Entry) -> Entry:
    """The entry as --fill sends it: with an earlier stamp."""
    again = copy(entry)
    again.stamp -= 1
    return again


@pytest.mark.parametrize("lost", ["pages", "links", "versions"])
def test_a_table_that_was_emptied_is_filled_again(
    tmp_path: Path, receiver: SqlReceiver, rows: Rows, lost: str
) -> None:
    """The other tables have later stamps than --fill gives. A removed page stays removed."""
    batch = entries(tmp_path, page("a", b"1"), page("b", b"1"), removed("c"), now=1000.0)
    receiver.send(batch)
    tables = ("pages", "links", "versions")
    full = [rows(f"SELECT count(*) FROM {table}") for table in tables]
    assert full == [[(2,)], [(4,)], [(3,)]]
    receiver.database.connection.execute(f"DELETE FROM {lost}")
    if lost == "links":
        receiver.database.connection.execute("DELETE FROM pages")
    receiver.database.connection.commit()
    again = [*map(filled, batch)]
    for _ in range(2):
        receiver.send(again)
        assert [rows(f"SELECT count(*) FROM {table}") for table in tables] == full


def test_pages_from_an_older_backup_are_brought_up_to_date(
    tmp_path: Path, receiver: SqlReceiver, rows: Rows
) -> None:
    """`versions` has all of them."""
    old = entries(tmp_path, page("a", b"1"), page("b", b"1"), now=1000.0)
    new = entries(tmp_path, page("a", b"2"), removed("b"), now=2000.0)
    receiver.send(old)
    receiver.database.connection.execute("CREATE TEMPORARY TABLE kept AS SELECT * FROM pages")
    receiver.send(new)
    receiver.database.connection.execute("DELETE FROM pages")
    receiver.database.connection.execute("INSERT INTO pages SELECT * FROM kept")
    receiver.database.connection.commit()
    receiver.send(old)
    receiver.send([*map(filled, new)])
    ((url, body),) = rows("SELECT url, body FROM pages")
    assert (url, bytes(body)) == ("http://h/a", b"2")


def test_a_page_may_come_back(tmp_path: Path, receiver: SqlReceiver, rows: Rows) -> None:
    for item in (page("a", b"1"), removed("a"), page("a", b"3")):
        receiver.send(entries(tmp_path, item))
    assert [bytes(body) for (body,) in rows("SELECT body FROM pages")] == [b"3"]


def test_bodies_can_be_left_out(tmp_path: Path, url: str, rows: Rows) -> None:
    receiver = receiver_for(url, LARM_SQL_BODIES="no")
    receiver.connect()
    receiver.send(entries(tmp_path, page("a")))
    receiver.close()
    assert rows("SELECT body, size FROM pages") == [(None, 4)]


def test_tables_of_others_are_left_alone(url: str) -> None:
    """One line says which, and what is expected."""
    with closing(receiver_for(url)) as receiver:
        receiver.database.connect()
        receiver.database.connection.execute("CREATE TABLE pages (id integer)")
        receiver.database.connection.commit()
        with pytest.raises(RefusedError, match="table pages has no column url"):
            receiver.connect()
    with closing(receiver_for(url)) as receiver, pytest.raises(RefusedError):
        receiver.connect()


@pytest.mark.parametrize(
    "url", ["", "mysql://h/x", "sqlite:", "sqlite://h/x", "postgresql://u:pw@[h/d", "pages.db"]
)
def test_bad_urls_are_refused_without_saying_them(url: str) -> None:
    with pytest.raises(ConfigError, match=r"LARM_SQL_URL=.*: expected postgresql://") as refused:
        receiver_for(url).connect()
    assert "pw" not in str(refused.value)


def test_files_that_are_no_database_or_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no database, " * 100)
    for path, kind, said in (
        (tmp_path / "x", RefusedError, "not a database"),
        (tmp_path / "none" / "x", RefusedError, "none is not a directory: expected a file in one"),
        (tmp_path / "x" / "y", RefusedError, "x is not a directory"),
        (tmp_path, RefusedError, "it is a directory"),
    ):
        with closing(receiver_for(f"sqlite:{path}")) as one, pytest.raises(kind, match=said):
            one.connect()


def test_a_locked_or_full_database_is_away(tmp_path: Path) -> None:
    """Nothing is half written; when there is room, the same batch is taken."""
    path = tmp_path / "pages.db"
    receiver = receiver_for(f"sqlite:{path}")
    receiver.connect()
    batch = entries(tmp_path, page("a", b"x" * 100_000))
    connection = receiver.database.connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(AwayError, match="full"):
        receiver.send(batch)
    receiver.close()
    receiver.connect()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM versions").fetchone() == (0,)
        other.execute("BEGIN IMMEDIATE")
        receiver.database.connection.execute("PRAGMA busy_timeout = 1")
        with pytest.raises(AwayError, match="locked"):
            receiver.send(batch)
    receiver.send(batch)
    assert receiver.database.connection.execute("SELECT size FROM pages").fetchone() == (100_000,)
    receiver.close()


@pytest.mark.acceptance
def test_what_postgresql_says_is_told_without_the_password(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """Nobody there, a wrong password, no such database, no rights."""
    secret = postgres.url.split(":")[2].split("@")[0]
    for url, kind, said in (
        (postgres.url.replace(str(postgres.port), "1"), AwayError, "refused"),
        (postgres.url.replace(secret, "wrong"), RefusedError, "password authentication failed"),
        (postgres.url + "x", RefusedError, 'database "larmx" does not exist'),
        (postgres.url + "?options=-csearch_path%3Dnone", RefusedError, "no schema has been select"),
    ):
        with closing(receiver_for(url)) as one, pytest.raises(kind, match=said) as refused:
            one.connect()
        assert secret not in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.acceptance
def test_a_server_that_goes_away_and_an_entry_that_it_does_not_take(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """The first is sent again; the second, a URL longer than its index holds, is refused."""
    with postgres.connection() as connection:
        connection.execute("DROP TABLE IF EXISTS pages, links, versions")
    receiver = receiver_for(postgres.url)
    receiver.connect()
    batch = entries(tmp_path, page("away"))
    postgres.kill()
    with pytest.raises(AwayError):
        receiver.send(batch)
    receiver.close()
    with pytest.raises(AwayError):
        receiver.connect()
    postgres.start()
    receiver.connect()
    receiver.send(batch)
    chance = "".join(str(number) for number in range(5000))
    with pytest.raises(BatchError, match="index row"):
        receiver.send(entries(tmp_path, page(chance)))
    receiver.send(entries(tmp_path, page("after")))
    receiver.close()


def test_a_database_that_a_limit_cuts_is_called_too_large(tmp_path: Path) -> None:
    """SQLite calls it a disk I/O error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    database = Sqlite(tmp_path / "pages.db")
    database.connect()
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with (
            pytest.raises(AwayError, match=r"File too large: RLIMIT_FSIZE is 20,000"),
            database.errors(),
        ):
            database.connection.execute("CREATE TABLE large AS SELECT zeroblob(100000) AS it")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        database.connection.close()
