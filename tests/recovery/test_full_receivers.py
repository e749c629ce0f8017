"""Real servers that run full: nothing is lost, and they have all pages once there is room."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
from scrapy.settings import Settings

from larmspider.pipelines.outbox.outbox import SenderProcess
from larmspider.pipelines.outbox.receiver import Receiver
from larmspider.pipelines.outbox.spool import FOLDER, Cursor
from larmspider.pipelines.outbox.sql import SqlReceiver
from larmspider.plugins.dynamodb.receiver import DynamoDbReceiver
from larmspider.plugins.objects.receiver import ObjectsReceiver
from larmspider.plugins.streams.receiver import StreamReceiver
from tests.support.recovery.receivers import (
    of_dynamodb,
    of_messages,
    of_nats,
    of_objects,
    of_redis,
    sha1,
)
from tests.support.servers.postgres import PROGRAMS, PostgresServer
from tests.support.servers.stores import DynaliteServer, NatsServer, SeaweedServer
from tests.support.spooled import page, spooled

pytestmark = pytest.mark.acceptance

PAGES, BODY_BYTES, TEXT_BYTES = 120, 1_000_000, 200_000
ROOM = 10_000_000
"""Less than their texts; the disk is smaller than their bodies."""
Pages = dict[str, str]
"""URL and the digest of the body, or of the text."""


class Full(NamedTuple):
    """A server that has not enough room, until ``make_room`` is called."""

    receiver: type[Receiver]
    settings: dict[str, str]
    environment: dict[str, str]
    make_room: Callable[[], None]
    pages: Callable[[], Pages]


class _Server(Protocol):
    def kill(self) -> None: ...
    def start(self) -> None: ...


@pytest.fixture
def disk(small_disk: tuple[Path, Callable[[str], None]]) -> tuple[Path, Callable[[_Server], None]]:
    """A disk of 100 MB, and a function that gives it a GB and starts a new server on it."""
    folder, resize = small_disk
    resize("100m")

    def enlarge(server: _Server) -> None:
        resize("1g")
        server.kill()
        server.start()

    return folder, enlarge


@contextmanager
def _postgres(request: pytest.FixtureRequest) -> Iterator[Full]:
    if not PROGRAMS.exists():
        pytest.skip("PostgreSQL is not installed (Debian package postgresql-15)")
    folder, enlarge = request.getfixturevalue("disk")
    with PostgresServer(folder) as server:

        def pages() -> Pages:
            with server.connection() as connection:
                rows = connection.execute("SELECT url, body FROM pages").fetchall()
            return {url: sha1(bytes(body)) for url, body in rows}

        settings = {"LARM_SQL_URL": server.url}
        yield Full(SqlReceiver, settings, {}, lambda: enlarge(server), pages)


@contextmanager
def _objects(request: pytest.FixtureRequest) -> Iterator[Full]:
    folder, enlarge = request.getfixturevalue("disk")
    with SeaweedServer(folder) as server:
        settings = {"LARM_OBJECTS_URL": "s3://crawls/x"}
        yield Full(
            *(ObjectsReceiver, settings, server.environment, lambda: enlarge(server)),
            lambda: of_objects(server.store("crawls"), "x"),
        )


@contextmanager
def _dynamodb(request: pytest.FixtureRequest) -> Iterator[Full]:
    if not DynaliteServer.is_installed():
        pytest.skip("dynalite is not installed (npm install -g --prefix .venv dynalite@4.0.0)")
    folder, enlarge = request.getfixturevalue("disk")
    with DynaliteServer(folder) as server:

        def pages() -> Pages:
            found = of_dynamodb(server.client(), "pages")
            return {url: digest for url, (_, _, digest) in found.items()}

        settings = {"LARM_DYNAMODB_TABLE": "pages"}
        yield Full(
            *(DynamoDbReceiver, settings, server.environment, lambda: enlarge(server)), pages
        )


def _texts(messages: list[Any]) -> Pages:
    return {url: sha1(one["text"].encode()) for url, one in of_messages(messages).items()}


@contextmanager
def _nats(request: pytest.FixtureRequest) -> Iterator[Full]:
    server = NatsServer()
    server.max_bytes = ROOM
    with server:

        def make_room() -> None:
            server.max_bytes *= 100
            server.kill()
            server.start()

        settings = {"LARM_STREAM_URL": server.url, "LARM_STREAM_NAME": "larm-pages"}
        yield Full(
            *(StreamReceiver, settings, {}, make_room),
            lambda: _texts(of_nats(server.url, "larm-pages")),
        )


@contextmanager
def _redis(request: pytest.FixtureRequest) -> Iterator[Full]:
    server = request.getfixturevalue("redis_server")(maxmemory_policy="noeviction")
    client = server.client()
    client.config_set("maxmemory", ROOM)
    settings = {"LARM_STREAM_URL": server.url, "LARM_STREAM_NAME": "larm-pages"}
    yield Full(
        *(StreamReceiver, settings, {}, lambda: client.config_set("maxmemory", 0)),
        lambda: _texts(of_redis(client, "larm-pages")),
    )


@pytest.mark.parametrize("kind", [_postgres, _objects, _dynamodb, _nats, _redis])
def test_a_server_that_is_full_has_all_once_there_is_room(
    kind: Callable[[pytest.FixtureRequest], Any],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Meanwhile the cursor says why nothing is sent."""
    items = [
        page(str(number), os.urandom(BODY_BYTES), text=os.urandom(TEXT_BYTES // 2).hex())
        for number in range(PAGES)
    ]
    crawl = tmp_path / "crawl"
    end = spooled(crawl, *items)
    with kind(request) as full:
        for name, value in full.environment.items():
            monkeypatch.setenv(name, value)

        def wait_until(done: Callable[[Cursor], bool]) -> None:
            limit, cursor = time.monotonic() + 240, Cursor()
            while not done(cursor):
                assert time.monotonic() < limit, cursor
                sender.keep_running()
                time.sleep(0.05)
                cursor = Cursor.read(crawl / FOLDER, full.receiver.__name__) or cursor

        with closing(
            SenderProcess(full.receiver, Settings(full.settings), crawl / FOLDER)
        ) as sender:
            sender.may_send(end)
            wait_until(lambda cursor: bool(cursor.trouble))
            cursor = Cursor.read(crawl / FOLDER, full.receiver.__name__)
            assert cursor is not None
            assert cursor.number < PAGES
            full.make_room()
            wait_until(lambda cursor: cursor.number == PAGES)
        cursor = Cursor.read(crawl / FOLDER, full.receiver.__name__)
        assert cursor is not None
        assert (cursor.sent, cursor.dead, cursor.trouble) == (PAGES, 0, "")
        is_stream = full.receiver is StreamReceiver
        assert full.pages() == {
            one.url: sha1(one.text.encode() if is_stream else one.body) for one in items
        }
