"""Settings of a crawl that sends to receivers, and comparisons of these with its files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import nats
from confluent_kafka import Consumer, TopicPartition
from scrapy.settings import BaseSettings, Settings

from larmspider.pipelines.outbox import sender
from larmspider.pipelines.outbox.receiver import AwayError, Receiver, RefusedError, Sent
from larmspider.pipelines.outbox.spool import Entry
from larmspider.pipelines.outbox.sql import SqlReceiver
from larmspider.plugins.streams.receiver import StreamReceiver
from larmspider.settings import *  # noqa: F403
from larmspider.settings import ITEM_PIPELINES
from tests.support.crawling import body_of, records


class SecondReceiver(SqlReceiver):
    """Another database."""

    settings = ()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return super().from_settings(Settings({"LARM_SQL_URL": os.environ["SECOND_SQL_URL"]}))


class SecondStreamReceiver(StreamReceiver):
    """Another stream."""

    settings = ("LARM_STREAM_NAME",)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        other = {"LARM_STREAM_URL": os.environ["SECOND_STREAM_URL"]}
        name = {"LARM_STREAM_NAME": settings.get("LARM_STREAM_NAME")}
        return super().from_settings(Settings(other | name))


class GateReceiver(Receiver):
    """Writes URLs into GATE_FOLDER/taken, about as many as the file "open" beside it says."""

    max_entries = 50

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls()

    def connect(self) -> None:
        if not Path(os.environ["GATE_FOLDER"]).exists():
            raise RefusedError("no such folder")
        sender.MAX_SECS = 0.5

    def send(self, batch: Sequence[Entry]) -> Sent:
        folder = Path(os.environ["GATE_FOLDER"])
        with (folder / "taken").open("a+") as taken:
            taken.seek(0)
            if sum(1 for _ in taken) >= int((folder / "open").read_text()):
                raise AwayError("the gate is closed")
            taken.writelines(f"{entry.url}\n" for entry in batch)
        return Sent()


LARM_SQL_URL = os.environ.get("LARM_SQL_URL", "")
LARM_STREAM_URL = os.environ.get("LARM_STREAM_URL", "")
LARM_STREAM_NAME = os.environ.get("LARM_STREAM_NAME", "larm-pages")
LARM_OBJECTS_URL = os.environ.get("LARM_OBJECTS_URL", "")
LARM_DYNAMODB_TABLE = os.environ.get("LARM_DYNAMODB_TABLE", "")
LARM_OPENSEARCH_URL = os.environ.get("LARM_OPENSEARCH_URL", "")
ITEM_PIPELINES = {
    **ITEM_PIPELINES,
    **{
        path: number
        for number, path in enumerate(os.environ.get("TEST_RECEIVERS", "").split(), 600)
    },
}

Stored = dict[str, tuple[int, bytes, str]]
"""Status, body and title by URL."""


def stored_pages(crawl: Path) -> Stored:
    """The pages in the page files."""
    found: Stored = {}
    for record in records(crawl / "store.log"):
        if record["http-code"] == "0":
            found.pop(record["url"], None)
        else:
            body = body_of(crawl, record)
            found[record["url"]] = int(record["http-code"]), body, record["title"]
    return found


def stored_links(crawl: Path) -> set[tuple[str, ...]]:
    """The links in links.log."""
    return {
        (line["from-page"], line["to-page"], line["anchor"])
        for line in records(crawl / "links.log")
    }


def pages_of(connection: Any) -> Stored:
    """The pages in a database."""
    rows = connection.execute("SELECT url, status, body, title FROM pages").fetchall()
    return {url: (status, bytes(body), title) for url, status, body, title in rows}


def check_database(connection: Any, crawl: Path) -> None:
    """It has the crawl's pages, each once, byte for byte, with their links, and no more."""
    expected = stored_pages(crawl)
    assert pages_of(connection) == expected
    links = connection.execute("SELECT from_page, to_page, anchor FROM links").fetchall()
    assert sorted(map(tuple, links)) == sorted(stored_links(crawl))
    versions = connection.execute("SELECT url, count(*) FROM versions GROUP BY url").fetchall()
    assert dict(versions) == dict.fromkeys(expected, 1)


def of_messages(messages: list[Any]) -> dict[str, Any]:
    """The messages that a reader keeps by their stamps."""
    found: dict[str, Any] = {}
    for one in messages:
        if one["url"] not in found or one["stamp"] >= found[one["url"]]["stamp"]:
            found[one["url"]] = one
    return {url: one for url, one in found.items() if "removed" not in one}


def of_nats(url: str, name: str) -> list[Any]:
    """The messages of a stream, which has as many as were read."""

    async def read() -> list[Any]:
        client = await nats.connect(url)
        stream = client.jetstream()
        info = await stream.stream_info(name)
        subscription = await stream.pull_subscribe(name, "reader")
        found: list[Any] = []
        while len(found) < info.state.messages:
            batch = await subscription.fetch(500, timeout=60)
            found += [json.loads(one.data) for one in batch]
            for one in batch:
                await one.ack()
        await client.close()
        return found

    return asyncio.run(read())


def of_kafka(servers: str, topic: str) -> list[tuple[str, Any]]:
    """Key and value of all messages."""
    found: list[tuple[str, Any]] = []
    with closing(Consumer({"bootstrap.servers": servers, "group.id": "reader"})) as consumer:
        for partition in consumer.list_topics(topic).topics[topic].partitions:
            at = TopicPartition(topic, partition, 0)
            end = consumer.get_watermark_offsets(at)[1]
            consumer.assign([at])
            count = 0
            while count < end:
                for one in consumer.consume(min(500, end - count), 60):
                    found.append((one.key().decode(), json.loads(one.value())))
                    count += 1
    return found


def of_redis(client: Any, name: str) -> list[Any]:
    """The messages of a stream."""
    return [json.loads(fields[b"page"]) for _, fields in client.xrange(name)]


def of_objects(store: Any, folder: str) -> dict[str, str]:
    """The digest of each page by its manifests, whose object has that."""
    names = [one["path"] for batch in store.list(f"{folder}/") for one in batch]
    lines: list[Any] = []
    for name in (name for name in names if "/manifests/" in name):
        lines += map(json.loads, bytes(store.get(name).bytes()).splitlines())
    digests = {url: one["digest"] for url, one in of_messages(lines).items()}
    objects = {name.rpartition("/")[2]: name for name in names if "/objects/" in name}
    for digest in set(digests.values()):
        assert sha1(bytes(store.get(objects[digest]).bytes())) == digest
    return digests


def sha1(body: bytes) -> str:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()


def of_dynamodb(client: Any, table: str) -> dict[str, tuple[Any, Any, str]]:
    """Status, title and the digest of the body of each page, by its last version."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for batch in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for item in batch["Items"]:
            found = {name: next(iter(value.values())) for name, value in item.items()}
            rows.setdefault(found["row"], []).append(found)
    pages = {}
    for items in rows.values():
        items.sort(key=lambda item: item["time"])
        last = max(item["time"] for item in items if "url" in item)
        head, *pieces = (item for item in items if item["time"].startswith(last))
        if "removed" not in head:
            bodies = [item["piece"] for item in pieces if " body " in item["time"]]
            assert len(bodies) == int(head.get("body_pieces", 0))
            body = b"".join(bodies) or head.get("body", b"")
            pages[head["url"]] = int(head["status"]), head.get("title", ""), sha1(body)
    return pages
