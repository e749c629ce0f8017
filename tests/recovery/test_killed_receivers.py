"""kill -9 of senders and of real servers: what they end with is what the crawl has, each version.

``pytest tests/recovery/test_killed_receivers.py --kills 120`` kills 20 times for each server, while
5,000 versions pass.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from scrapy.settings import Settings

from larmspider.errors import ConfigError
from larmspider.items import Page, Removed
from larmspider.pipelines.outbox.outbox import SenderProcess
from larmspider.pipelines.outbox.receiver import AwayError, Receiver, RefusedError
from larmspider.pipelines.outbox.spool import FOLDER, Cursor
from larmspider.plugins.dynamodb.receiver import DynamoDbReceiver
from larmspider.plugins.objects.receiver import ObjectsReceiver
from larmspider.plugins.streams.receiver import StreamReceiver
from tests.support.recovery.receivers import (
    of_dynamodb,
    of_kafka,
    of_messages,
    of_nats,
    of_objects,
    of_redis,
    sha1,
)
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.stores import DynaliteServer, NatsServer, SeaweedServer, StoreServer
from tests.support.spooled import page, removed, spooled

pytestmark = pytest.mark.acceptance

ENTRIES_A_KILL = 250


def crawled(entries: int, chance: random.Random) -> list[Page | Removed]:
    """``entries`` versions of a third as many pages, some of them removals."""
    found: list[Page | Removed] = []
    for number in range(entries):
        name = f"p{chance.randrange(entries // 3)}"
        if chance.random() < 0.05:
            found.append(removed(name))
        else:
            found.append(page(name, f"version {number} ".encode() * chance.randrange(1, 200)))
    return found


def last_versions(items: list[Page | Removed]) -> dict[str, str]:
    """The digest of the body by URL, without what was taken out."""
    found: dict[str, str] = {}
    for item in items:
        if isinstance(item, Removed):
            found.pop(item.url, None)
        else:
            found[item.url] = sha1(item.body)
    return found


def kill_while_it_sends(
    receiver: type[Receiver],
    settings: dict[str, str],
    server: StoreServer | RedisServer | None,
    crawl: Path,
    kills: int,
) -> list[Page | Removed]:
    """Send with kills of sender and server in turn, until all is sent; what was."""
    chance, entries = random.Random(7), ENTRIES_A_KILL * kills
    items = crawled(entries, chance)
    end = spooled(crawl, *items)
    sender = SenderProcess(receiver, Settings(settings), crawl / FOLDER)
    sender.may_send(end)
    limit = time.monotonic() + 300

    def sent() -> int:
        return (Cursor.read(crawl / FOLDER, receiver.__name__) or Cursor()).number

    with closing(sender):
        for kill in range(kills + 1):
            # the last batches are sent without a kill
            until = entries if kill == kills else entries * (kill + 1) // (kills + 2)
            while sent() < until:
                assert time.monotonic() < limit, Cursor.read(crawl / FOLDER, receiver.__name__)
                sender._begun = 0  # at once, in this test
                sender.keep_running()
                time.sleep(0.01)
            if kill == kills:
                break
            if kill % 2 and server is not None:
                server.kill()
                time.sleep(chance.uniform(0, 0.5))
                server.start()
            elif sender.pid:
                with suppress(ProcessLookupError):
                    os.kill(sender.pid, 9)
    cursor = Cursor.read(crawl / FOLDER, receiver.__name__)
    assert cursor is not None
    assert (cursor.number, cursor.offset, cursor.dead) == (entries, end.offset, 0)
    return items


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return max(3, int(request.config.getoption("--kills")) // 6)


@pytest.fixture(scope="module")
def weed() -> Iterator[SeaweedServer]:
    with SeaweedServer() as server:
        yield server


@pytest.fixture(scope="module")
def nats_server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture(scope="module")
def kafka() -> str:
    """The addresses of two mock brokers, which librdkafka has for tests."""
    client = Producer({"test.mock.num.brokers": 2, "log_level": 0})
    _MOCKS.append(client)
    brokers = client.list_topics(timeout=60).brokers.values()
    return ",".join(f"{one.host}:{one.port}" for one in brokers)


_MOCKS: list[Producer] = []
"""They end with the process."""


def test_objects_and_manifests_have_each_version(
    tmp_path: Path, weed: SeaweedServer, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in weed.environment.items():
        monkeypatch.setenv(name, value)
    url = {"LARM_OBJECTS_URL": "s3://crawls/intranet"}
    items = kill_while_it_sends(ObjectsReceiver, url, weed, tmp_path / "crawl", kills)
    assert of_objects(weed.store("crawls"), "intranet") == last_versions(items)


def test_a_table_of_dynamodb_has_the_last_versions(
    tmp_path: Path, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not DynaliteServer.is_installed():
        pytest.skip("dynalite is not installed (npm install -g --prefix .venv dynalite@4.0.0)")
    with DynaliteServer() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        table = {"LARM_DYNAMODB_TABLE": "intranet"}
        items = kill_while_it_sends(DynamoDbReceiver, table, server, tmp_path / "crawl", kills)
        found = of_dynamodb(server.client(), "intranet")
    assert {url: digest for url, (_, _, digest) in found.items()} == last_versions(items)


def test_a_redis_stream_has_each_version_at_least_once(
    tmp_path: Path, kills: int, redis_server: Callable[..., RedisServer]
) -> None:
    server = redis_server(appendfsync="no")
    settings = {"LARM_STREAM_URL": server.url, "LARM_STREAM_NAME": "pages"}
    items = kill_while_it_sends(StreamReceiver, settings, server, tmp_path / "crawl", kills)
    messages = of_redis(server.client(), "pages")
    assert len({(one["url"], one["stamp"]) for one in messages}) == len(items)
    assert set(of_messages(messages)) == set(last_versions(items))


def test_jetstream_has_each_version_once(
    tmp_path: Path, nats_server: NatsServer, kills: int
) -> None:
    """It drops by itself what comes twice."""
    settings = {"LARM_STREAM_URL": nats_server.url, "LARM_STREAM_NAME": "larm-pages"}
    items = kill_while_it_sends(StreamReceiver, settings, nats_server, tmp_path / "crawl", kills)
    messages = of_nats(nats_server.url, "larm-pages")
    assert len(messages) == len(items)
    assert len({(one["url"], one["stamp"]) for one in messages}) == len(items)
    assert set(of_messages(messages)) == set(last_versions(items))


def test_a_topic_of_kafka_has_each_version_at_least_once(
    tmp_path: Path, kills: int, kafka: str
) -> None:
    """The mock brokers live in this process and are not killed. The URL is the key, so a compacted
    topic keeps the last version."""
    settings = {"LARM_STREAM_URL": f"kafka://{kafka}", "LARM_STREAM_NAME": "pages"}
    items = kill_while_it_sends(StreamReceiver, settings, None, tmp_path / "crawl", kills)
    found = of_kafka(kafka, "pages")
    assert all(one["url"] == key for key, one in found)
    messages = [one for _, one in found]
    assert len({(one["url"], one["stamp"]) for one in messages}) == len(items)
    assert set(of_messages(messages)) == set(last_versions(items))


def test_what_servers_say_is_told_without_passwords(
    weed: SeaweedServer, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line; a wrong password is refused, a missing server counts as away."""
    for name, value in weed.environment.items():
        monkeypatch.setenv(name, value)
    away = {"LARM_STREAM_NAME": "x", "LARM_STREAM_URL": "redis://:s3cr3t@127.0.0.1:1/0"}
    nobody = away | {"LARM_STREAM_URL": "nats://127.0.0.1:1"}
    wrong = nats_server.url.replace("s3cr3t", "wr0ng")
    nobody_of_kafka = away | {"LARM_STREAM_URL": "kafka://larm:s3cr3t@127.0.0.1:1"}
    cases: list[tuple[type[Receiver], dict[str, str], type[Exception], str]] = [
        (StreamReceiver, away, AwayError, "refused"),
        (StreamReceiver, away | {"LARM_STREAM_URL": wrong}, RefusedError, "Authorization"),
        (StreamReceiver, nobody, AwayError, "(?i)connect"),
        (StreamReceiver, nobody_of_kafka, AwayError, "topic x: .*127.0.0.1:1/bootstrap: .*refused"),
        (ObjectsReceiver, {"LARM_OBJECTS_URL": "s3://B/x"}, RefusedError, "InvalidBucketName"),
    ]
    for receiver_class, settings, kind, said in cases:
        receiver = receiver_class.from_settings(Settings(settings))
        with pytest.raises(kind, match=said) as error:
            receiver.connect()
        receiver.close()
        assert not {"s3cr3t", "wr0ng", "\n"} & set(str(error.value).split(" "))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng")
    receiver = ObjectsReceiver("s3://crawls/intranet")
    with pytest.raises(RefusedError, match="SignatureDoesNotMatch") as error:
        receiver.connect()
    assert "wr0ng" not in str(error.value)


@pytest.mark.skipif(REDIS_SERVER is None, reason="redis-server is not installed")
def test_a_full_or_foreign_redis_is_said(
    tmp_path: Path, redis_server: Callable[..., RedisServer]
) -> None:
    server = redis_server(maxmemory_policy="noeviction")
    server.client().config_set("maxmemory", 1)
    settings = Settings({"LARM_STREAM_URL": server.url, "LARM_STREAM_NAME": "pages"})
    with closing(StreamReceiver.from_settings(settings)) as receiver:
        with pytest.raises(AwayError, match="maxmemory"):
            receiver.send(_entries(tmp_path))
        server.client().config_set("maxmemory", 0)
        assert not receiver.send(_entries(tmp_path)).again
        server.client().delete("pages")
        server.client().set("pages", "x")
        with pytest.raises(RefusedError, match="pages is a string"):
            receiver.connect()


@pytest.mark.skipif(REDIS_SERVER is None, reason="redis-server is not installed")
def test_a_wrong_password_of_redis_is_refused(redis_server: Callable[..., RedisServer]) -> None:
    server = redis_server(password="s3cr3t")
    wrong = server.url.replace("s3cr3t", "wr0ng")
    settings = Settings({"LARM_STREAM_URL": wrong, "LARM_STREAM_NAME": "pages"})
    with (
        closing(StreamReceiver.from_settings(settings)) as receiver,
        pytest.raises(RefusedError, match="invalid username-password pair") as error,
    ):
        receiver.connect()
    assert "wr0ng" not in str(error.value)


def _entries(folder: Path) -> list[Any]:
    from tests.support.spooled import entries

    return entries(folder / "crawl", *(page(str(number), text="x" * 999) for number in range(9)))


def test_a_folder_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"LARM_OBJECTS_URL=file:///proc/x: No such file"):
        ObjectsReceiver("file:///proc/x")


@pytest.mark.parametrize("url", ["", "kafka:", "redis:", "nats://", "http://u:pw@h"])
def test_bad_urls_are_refused(url: str) -> None:
    settings = Settings({"LARM_STREAM_URL": url, "LARM_STREAM_NAME": "x", "LARM_OBJECTS_URL": url})
    for receiver in (StreamReceiver, ObjectsReceiver):
        with pytest.raises(ConfigError, match=r"_URL=.*: expected") as refused:
            receiver.from_settings(settings)
        assert "pw" not in str(refused.value)
