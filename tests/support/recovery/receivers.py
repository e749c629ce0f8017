"""Settings of a crawl that sends to receivers, and comparisons of these with its files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from scrapy.settings import BaseSettings, Settings

from larmspider.pipelines.outbox import sender
from larmspider.pipelines.outbox.receiver import AwayError, Receiver, RefusedError, Sent
from larmspider.pipelines.outbox.spool import Entry
from larmspider.pipelines.outbox.sql import SqlReceiver
from larmspider.settings import *  # noqa: F403
from larmspider.settings import ITEM_PIPELINES
from tests.support.crawling import body_of, records


class SecondReceiver(SqlReceiver):
    """Another database."""

    settings = ()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return super().from_settings(Settings({"LARM_SQL_URL": os.environ["SECOND_SQL_URL"]}))


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
    """What the page files have."""
    found: Stored = {}
    for record in records(crawl / "store.log"):
        if record["http-code"] == "0":
            found.pop(record["url"], None)
        else:
            body = body_of(crawl, record)
            found[record["url"]] = int(record["http-code"]), body, record["title"]
    return found


def stored_links(crawl: Path) -> set[tuple[str, ...]]:
    """What links.log has."""
    return {
        (line["from-page"], line["to-page"], line["anchor"])
        for line in records(crawl / "links.log")
    }


def pages_of(connection: Any) -> Stored:
    """What a database has."""
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
