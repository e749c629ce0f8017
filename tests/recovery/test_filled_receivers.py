"""scrapy outbox --fill and --retry-dead: a late receiver has what one has that was there."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from larmspider.pipelines.outbox.spool import FOLDER
from tests.support.crawling import FAST, Ran, begin, crawl, scrapy
from tests.support.recovery.receivers import (
    of_dynamodb,
    of_messages,
    of_nats,
    of_objects,
    sha1,
    stored_pages,
)
from tests.support.servers.postgres import PROGRAMS, PostgresServer
from tests.support.servers.scripted import ScriptedServer
from tests.support.servers.stores import DynaliteServer, NatsServer, SeaweedServer

pytestmark = pytest.mark.acceptance

MODULE = "tests.support.recovery.receivers"
SQL = "larmspider.pipelines.outbox.sql.SqlReceiver"
SECOND = f"{MODULE}.SecondReceiver"
OBJECTS = "larmspider.plugins.objects.receiver.ObjectsReceiver"
SECOND_STREAM = f"{MODULE}.SecondStreamReceiver"
DYNAMODB = "larmspider.plugins.dynamodb.receiver.DynamoDbReceiver"
LATIN = {"Content-Type": "text/html; charset=iso-8859-2", "ETag": '"7"', "Last-Modified": "x"}
SITE: dict[str, Any] = {
    "/": "<title>Start</title><a href=/a>to a</a><a href=/gone>gone</a><a href=/move>on</a>"
    "<a href=/latin>l</a><a href=/b.pdf>pdf</a><a href=/hidden>h</a><a href=/a>to a</a>",
    "/a": "<html lang=de><title>A &amp; B</title><meta name=description content=d>text <a href=/>",
    "/gone": (404, {"Content-Type": "text/html"}, b"<title>No</title>gone <a href=/a>a</a>"),
    "/move": (302, {"Location": "/a"}, b""),
    "/latin": (200, LATIN, "<title>Žluť</title>Žluťoučký kůň".encode("iso-8859-2")),
    "/b.pdf": (200, {"Content-Type": "application/pdf"}, b"no pdf"),
    "/hidden": (200, {"X-Robots-Tag": "noindex"}, b"<p>hidden"),
}


@pytest.fixture
def sent(
    scripted_server: Callable[..., ScriptedServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A crawl that has sent to first.db; SecondReceiver, of second.db, is added then."""
    monkeypatch.setenv("LARM_SQL_URL", f"sqlite:{tmp_path / 'first.db'}")
    monkeypatch.setenv("SECOND_SQL_URL", f"sqlite:{tmp_path / 'second.db'}")
    monkeypatch.setenv("TEST_RECEIVERS", SQL)
    ran = crawl(scripted_server(SITE).url("/"), cwd=tmp_path, settings_module=MODULE, timeout=60)
    assert ran.status == 0, ran.err
    monkeypatch.setenv("TEST_RECEIVERS", f"{SQL} {SECOND}")
    return tmp_path


def outbox(cwd: Path, *arguments: str) -> Ran:
    return scrapy("outbox", *arguments, cwd=cwd, settings_module=MODULE)


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_a_late_receiver_has_what_an_early_one_has(sent: Path) -> None:
    """Field by field, but for the stamp; a second time nothing changes."""
    ran = outbox(sent, "--fill", "SecondReceiver")
    assert (ran.status, ran.out) == (0, "SecondReceiver: 7 pages and deletes sent\n"), ran.err
    columns = [
        name
        for _, name, *_ in rows(sent / "first.db", "PRAGMA table_info(pages)")
        if name not in ("stored", "fetched")
    ]
    query = f"SELECT {', '.join(columns)} FROM pages ORDER BY url"
    first, second = (
        [dict(zip(columns, row, strict=True)) for row in rows(sent / name, query)]
        for name in ("first.db", "second.db")
    )
    assert second == first
    links = "SELECT * FROM links ORDER BY from_page, to_page, anchor"
    assert rows(sent / "second.db", links) == rows(sent / "first.db", links)
    times = "SELECT url, stored, fetched FROM pages ORDER BY url"
    for one, other in zip(
        rows(sent / "first.db", times), rows(sent / "second.db", times), strict=True
    ):
        assert other[1] <= one[1]
        assert other[2][:22] == one[2][:22]
    versions = "SELECT * FROM versions ORDER BY url"
    before = rows(sent / "second.db", versions), rows(sent / "first.db", versions)
    for name in ("SecondReceiver", "SqlReceiver"):
        assert outbox(sent, "--fill", name).status == 0
    assert (rows(sent / "second.db", versions), rows(sent / "first.db", versions)) == before


def test_a_receiver_that_was_restored_from_a_backup_loses_what_was_taken_out(sent: Path) -> None:
    """And pages that came later are there again."""
    backup = (sent / "first.db").read_bytes()
    url = rows(sent / "first.db", "SELECT url FROM pages WHERE title = 'A & B'")[0][0]
    assert scrapy("remove", url, cwd=sent, settings_module=MODULE).status == 0
    assert outbox(sent, "--send").status == 0
    after = rows(sent / "first.db", "SELECT url, title FROM pages ORDER BY url")
    for path in sent.glob("first.db*"):
        path.unlink()
    (sent / "first.db").write_bytes(backup)
    assert outbox(sent, "--fill", "SqlReceiver").status == 0
    assert rows(sent / "first.db", "SELECT url, title FROM pages ORDER BY url") == after


def test_dead_letters_are_sent_again(sent: Path) -> None:
    """Once the receiver takes them; those that it still refuses are dead letters as before."""
    log = sent / "crawl" / FOLDER / "SecondReceiver.dead.log"
    assert outbox(sent, "--fill", "SecondReceiver").status == 0
    with closing(sqlite3.connect(sent / "second.db")) as connection:
        connection.executescript(
            "DELETE FROM pages; DELETE FROM versions; DELETE FROM links;"
            "CREATE TRIGGER no BEFORE INSERT ON pages WHEN NEW.title IN ('No', 'Start')"
            " BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
    ran = outbox(sent, "--fill", "SecondReceiver")
    assert (ran.status, ran.out) == (
        0,
        "SecondReceiver: 5 pages and deletes sent, 2 dead letters\n",
    )
    assert len(log.read_text().splitlines()) == 2
    with closing(sqlite3.connect(sent / "second.db")) as connection:
        connection.executescript(
            "DROP TRIGGER no; CREATE TRIGGER no BEFORE INSERT ON pages WHEN NEW.title = 'No'"
            " BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
    ran = outbox(sent, "--retry-dead")
    assert (ran.status, ran.out[:58]) == (
        1, "SqlReceiver: 0 pages and deletes sent\nSecondReceiver: 1 pa"
    ), ran  # fmt: skip
    assert outbox(sent, "--json").json["SecondReceiver"]["dead"] == 1
    assert "not this one" in log.read_text()
    with closing(sqlite3.connect(sent / "second.db")) as connection:
        connection.execute("DROP TRIGGER no")
    ran = outbox(sent, "--retry-dead", "SecondReceiver")
    assert (ran.status, ran.out) == (0, "SecondReceiver: 1 page or delete sent\n")
    assert outbox(sent, "--json").json["SecondReceiver"]["dead"] == 0
    assert log.read_text() == ""
    assert rows(sent / "second.db", "SELECT count(*) FROM pages") == [(7,)]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--fill", "Nobody"], 2, "--fill Nobody: no receiver of this name is in ITEM_PIPELINES"),
        (["--retry-dead", "DummyReceiver"], 2, "expected SqlReceiver or SecondReceiver; the set"),
        (["--fill", "SqlReceiver", "--send"], 2, "--send and --fill: expected one of them"),
        (["--fill", "SqlReceiver", "--dir", "."], 2, "it has no crawl.json"),
        (["--fill", "SqlReceiver", "--dir", "none"], 2, "is not a directory"),
        (["--retry-dead", ""], 2, "no receiver of this name"),
        (["--retry-dead", "--dir", "none"], 2, "is not a directory"),
    ],
)
def test_bad_arguments_change_nothing(
    sent: Path, arguments: list[str], status: int, said: str
) -> None:
    before = sorted(sent.rglob("*"))
    ran = outbox(sent, *arguments)
    assert (ran.status, said in ran.err, ran.err.count("\n")) == (status, True, 1), ran.err
    assert sorted(sent.rglob("*")) == before


def test_a_receiver_that_is_away_is_75_and_one_that_refuses_2(
    sent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted((sent / "crawl").rglob("*"))
    monkeypatch.setenv("LARM_SQL_URL", "postgresql://larm:s3cr3t@127.0.0.1:1/x")
    ran = outbox(sent, "--fill", "SqlReceiver")
    assert (ran.status, "SqlReceiver cannot be reached: " in ran.err) == (75, True)
    with closing(sqlite3.connect(sent / "second.db")) as connection:
        connection.execute("CREATE TABLE pages (other text)")
    ran = outbox(sent, "--fill", "SecondReceiver")
    assert (ran.status, "cannot be used: its table pages has no column url" in ran.err) == (2, True)
    assert sorted((sent / "crawl").rglob("*")) == before


def test_a_fill_goes_on_after_kills_while_the_crawl_runs(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 of the command at any moment; in the end each page is there once."""
    site: dict[str, Any] = {
        f"/{n}": f"<title>{n}</title><p>{n}"
        + "".join(f"<a href=/{3 * n + k}>{k}</a>" for k in (1, 2, 3))
        for n in range(900)
    }
    server = scripted_server({"/": site["/0"]} | site)
    monkeypatch.setenv("SECOND_SQL_URL", f"sqlite:{tmp_path / 'second.db'}")
    monkeypatch.setenv("TEST_RECEIVERS", SECOND)
    options = [f"-s{name}={value}" for name, value in FAST.items()]
    with (tmp_path / "said").open("w") as out, (tmp_path / "filled").open("w") as filled:
        running = begin(
            *("crawl", "intranet", "-a", f"start={server.url('/')}", *options),
            cwd=tmp_path, out=out, **os.environ,
        )  # fmt: skip
        command = "outbox", "--fill", "SecondReceiver"
        for number in range(6):
            time.sleep(1 + number / 2)
            filling = begin(
                *command, cwd=tmp_path, out=filled, settings_module=MODULE, **os.environ
            )
            time.sleep(1 + number / 3)
            filling.kill()
            filling.wait(60)
        assert running.wait(240) == 0, (tmp_path / "said").read_text()
    ran = outbox(tmp_path, "--fill", "SecondReceiver")
    assert ran.status == 0, ran.err
    pages = stored_pages(tmp_path / "crawl")
    assert len(pages) > 700
    found = rows(tmp_path / "second.db", "SELECT url, status, body, title FROM pages")
    assert {url: (status, body, title) for url, status, body, title in found} == pages
    assert rows(tmp_path / "second.db", "SELECT max(n) FROM (SELECT count(*) AS n FROM versions"
                " GROUP BY url)") == [(1,)]  # fmt: skip


def test_servers_of_each_kind_are_filled(sent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: what is there already changes nothing."""
    if not PROGRAMS.exists():
        pytest.skip("PostgreSQL is not installed (Debian package postgresql-15)")
    dynalite = DynaliteServer()
    if not dynalite.is_installed():
        pytest.skip("dynalite is not installed")
    pages = stored_pages(sent / "crawl")
    digests = {url: sha1(body) for url, (_, body, _) in pages.items()}
    with PostgresServer() as postgres, SeaweedServer() as weed, NatsServer() as nats, dynalite:
        for name, value in {
            **dynalite.environment, **weed.environment,
            "TEST_RECEIVERS": " ".join((SQL, OBJECTS, SECOND_STREAM, DYNAMODB)),
            "LARM_SQL_URL": postgres.url, "LARM_OBJECTS_URL": "s3://crawls/filled",
            "SECOND_STREAM_URL": nats.url, "LARM_STREAM_NAME": "filled",
            "LARM_DYNAMODB_TABLE": "filled",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        for _ in range(2):
            for name in (
                "SqlReceiver",
                "ObjectsReceiver",
                "SecondStreamReceiver",
                "DynamoDbReceiver",
            ):
                ran = outbox(sent, "--fill", name)
                assert (ran.status, ran.out) == (0, f"{name}: 7 pages and deletes sent\n"), ran.err
        with postgres.connection() as connection:
            assert connection.execute("SELECT count(*) FROM versions").fetchone() == (7,)
        assert of_objects(weed.store("crawls"), "filled") == digests
        assert of_messages(of_nats(nats.url, "filled")).keys() == pages.keys()
        assert of_dynamodb(dynalite.client(), "filled") == {
            url: (status, title, digests[url]) for url, (status, _, title) in pages.items()
        }
