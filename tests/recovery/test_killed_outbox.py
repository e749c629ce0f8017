"""kill -9 of crawler, senders and servers at random: all receivers end with exactly the pages.

``pytest tests/recovery/test_killed_outbox.py --kills 120`` kills 20 times; a sixth as often.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

import pytest

from larmspider.files import replace_file
from larmspider.pipelines.outbox.spool import standings
from tests.support.crawling import begin, scrapy
from tests.support.forking import Forked
from tests.support.recovery.killed_crawl import SETTINGS, Site
from tests.support.recovery.receivers import (
    check_database,
    of_dynamodb,
    of_messages,
    of_nats,
    of_objects,
    of_redis,
    sha1,
    stored_pages,
)
from tests.support.servers.postgres import PROGRAMS, PostgresServer
from tests.support.servers.redis import RedisServer
from tests.support.servers.stores import DynaliteServer, NatsServer, SeaweedServer

pytestmark = pytest.mark.acceptance

MODULE = "tests.support.recovery.receivers"
SQL = "larmspider.pipelines.outbox.sql.SqlReceiver"
SECOND = f"{MODULE}.SecondReceiver"
GATE = f"{MODULE}.GateReceiver"
DUMMY = "larmspider.pipelines.outbox.dummy.DummyReceiver"
OBJECTS = "larmspider.plugins.objects.receiver.ObjectsReceiver"
STREAM = "larmspider.plugins.streams.receiver.StreamReceiver"
SECOND_STREAM = f"{MODULE}.SecondStreamReceiver"
DYNAMODB = "larmspider.plugins.dynamodb.receiver.DynamoDbReceiver"
OPENSEARCH = "larmspider.plugins.opensearch.receiver.OpenSearchReceiver"
NOBODY = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_DEFAULT_REGION": "x",
    "AWS_ACCESS_KEY_ID": "larm", "AWS_SECRET_ACCESS_KEY": "s3cr3t",
}  # fmt: skip
FOR_ALL = {**SETTINGS, "LARM_LANGUAGES": "", "LARM_OUTBOX_END_SECS": "240"}


def senders_of(crawler: int) -> list[int]:
    """Process ids of its children that send."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == crawler and b"outbox.sender" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def open_gate(folder: Path, entries: int) -> None:
    """Let ``entries`` through, in all."""
    replace_file(folder / "open", str(entries).encode())


def wait_until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 240
    while not true():
        assert time.monotonic() < end, f"timeout: {what}"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if not PROGRAMS.exists():
        pytest.skip("PostgreSQL is not installed (Debian package postgresql-15)")
    with PostgresServer() as server:
        yield server


class SendingCrawl:
    """A crawl of the site in ``folder``/crawl that sends to these receivers."""

    def __init__(self, site: Site, folder: Path, *receivers: str, **variables: str) -> None:
        self.folder, self.crawl = folder, folder / "crawl"
        self.variables = {"TEST_RECEIVERS": " ".join(receivers), **variables}
        self._start = ["-a", f"start={site.start}", "-a", r"restrict=http://127\.1\..*"]
        self.said = folder / "said"

    def begin(self, **settings: str) -> Forked:
        options = [f"-s{name}={value}" for name, value in ({**FOR_ALL} | settings).items()]
        with self.said.open("w") as out:
            return begin(
                *("crawl", "intranet", *options, *self._start),
                cwd=self.folder,
                out=out,
                settings_module=MODULE,
                **self.variables,
            )

    def end(self, process: Forked) -> str:
        """Wait until it has ended by itself; what it said."""
        status, said = process.wait(480), self.said.read_text("utf-8")
        assert status == 0, said
        return said

    @property
    def sent(self) -> int:
        """How many entries the receiver that is furthest behind has sent."""
        return min((one.sent for one in standings([self.crawl]).values()), default=0)


class Servers:
    """One of each kind, whose receivers are in ``names``; dynalite is there where it is installed.
    OpenSearch has a test of its own (test_killed_opensearch.py)."""

    def __init__(self, postgres: PostgresServer, redis: RedisServer) -> None:
        self.names = [SQL, SECOND, DUMMY, OBJECTS, STREAM, SECOND_STREAM]
        self.postgres, self.redis = postgres, redis
        self.weed, self.nats, self.dynalite = SeaweedServer(), NatsServer(), DynaliteServer()
        self.killed = [postgres, redis, self.weed, self.nats]
        if self.dynalite.is_installed():
            self.names.append(DYNAMODB)
            self.killed.append(self.dynalite)

    def variables(self, folder: Path) -> dict[str, str]:
        """For a crawl in ``folder``, by whose name the streams, indexes and so on are called."""
        return {
            "LARM_SQL_URL": self.postgres.url,
            "SECOND_SQL_URL": f"sqlite:{folder / 'pages.db'}",
            "LARM_OBJECTS_URL": f"s3://crawls/{folder.name}",
            "LARM_STREAM_URL": self.redis.url,
            "SECOND_STREAM_URL": self.nats.url,
            "LARM_STREAM_NAME": folder.name,
            "LARM_DYNAMODB_TABLE": folder.name,
            **self.dynalite.environment,
            **self.weed.environment,
        }

    def kill(self, away: float) -> None:
        """Kill all servers for ``away`` seconds plus the time that they take to start."""
        for server in self.killed:
            server.kill()
        time.sleep(away)
        for server in self.killed:
            server.start()

    def check(self, crawl: Path) -> int:
        """Each has exactly the pages of the crawl, as its files have them; how many these are."""
        name, pages = crawl.parent.name, stored_pages(crawl)
        with self.postgres.connection() as connection:
            check_database(connection, crawl)
        with closing(sqlite3.connect(crawl.parent / "pages.db")) as connection:
            check_database(connection, crawl)
        digests = {url: sha1(body) for url, (_, body, _) in pages.items()}
        assert of_objects(self.weed.store("crawls"), name) == digests
        for messages in (of_redis(self.redis.client(), name), of_nats(self.nats.url, name)):
            found = of_messages(messages)
            assert {url: (one["status"], one["title"]) for url, one in found.items()} == {
                url: (status, title) for url, (status, _, title) in pages.items()
            }
        if self.dynalite in self.killed:
            assert of_dynamodb(self.dynalite.client(), name) == {
                url: (status, title, digests[url]) for url, (status, _, title) in pages.items()
            }
        found = standings([crawl])
        assert len(found) == len(self.names)
        assert {(one.waiting, one.dead) for one in found.values()} == {(0, 0)}
        return len(pages)

    def __enter__(self) -> Self:
        with ExitStack() as running:
            for server in (self.weed, self.nats, self.dynalite):
                if server is not self.dynalite or server in self.killed:
                    running.enter_context(server)
            self._running = running.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


def test_receivers_have_exactly_the_pages_whatever_is_killed(
    site: Site,
    postgres: PostgresServer,
    redis_server: Callable[..., RedisServer],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """All servers are killed at once."""
    wanted = max(3, request.config.getoption("--kills") // 6)
    seed = request.config.getoption("--kill-seed") or random.randrange(1 << 30)
    print(f"--kill-seed {seed}")
    chance, kills, crawls = random.Random(seed), {"crawler": 0, "sender": 0, "server": 0}, 0
    pages = 0
    with Servers(postgres, redis_server()) as servers:
        while sum(kills.values()) < wanted:
            folder = tmp_path / f"crawl-{crawls}"
            folder.mkdir()
            with postgres.connection() as connection:
                connection.execute("DROP TABLE IF EXISTS pages, links, versions")
            crawl = SendingCrawl(site, folder, *servers.names, **servers.variables(folder))
            process = crawl.begin()
            for _ in range(min(5, wanted - sum(kills.values()))):
                before, limit = crawl.sent, time.monotonic() + chance.uniform(1, 4)
                while process.poll() is None and (crawl.sent == before or time.monotonic() < limit):
                    time.sleep(0.02)
                if process.poll() is not None:
                    break
                what = min(kills, key=lambda one: (kills[one], chance.random()))
                kills[what] += 1
                if what == "crawler":
                    process.kill()
                    process.wait(60)
                    process = crawl.begin()
                elif what == "server":
                    servers.kill(chance.uniform(0, 1))
                else:
                    for pid in senders_of(process.pid):
                        with suppress(ProcessLookupError):
                            os.kill(pid, 9)
            crawl.end(process)
            pages += servers.check(crawl.crawl)
            crawls += 1
    print(f"{kills} in {crawls} crawls of {pages} pages")


def test_servers_that_were_away_have_everything_in_the_end(
    site: Site,
    postgres: PostgresServer,
    redis_server: Callable[..., RedisServer],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """All at once, for 10 seconds (``--kills 120``: a minute) while the crawl goes on."""
    with postgres.connection() as connection:
        connection.execute("DROP TABLE IF EXISTS pages, links, versions")
    with Servers(postgres, redis_server()) as servers:
        crawl = SendingCrawl(site, tmp_path, *servers.names, **servers.variables(tmp_path))
        process = crawl.begin()
        wait_until(lambda: crawl.sent > 0 or process.poll() is not None, "the first batch")
        servers.kill(request.config.getoption("--kills") / 2)
        said = crawl.end(process)
        assert servers.check(crawl.crawl) == len(site.answers)
    assert re.search(r"Receiver: .*; .* in the outbox$", said, re.MULTILINE)
    assert "Receiver takes pages again; " in said


def test_a_receiver_that_is_away_costs_disk_and_not_the_crawl(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crawl ends without it, and says what waits; scrapy outbox shows and sends that."""
    open_gate(tmp_path, 100)
    crawl = SendingCrawl(site, tmp_path, GATE, GATE_FOLDER=str(tmp_path))
    said = crawl.end(crawl.begin(LARM_OUTBOX_END_SECS="1"))
    assert "GateReceiver has not taken" in said
    assert re.search(r"^sent .* to GateReceiver, .* wait: scrapy outbox --send", said, re.MULTILINE)
    for name, value in crawl.variables.items():
        monkeypatch.setenv(name, value)
    ran = scrapy("outbox", "--send", cwd=tmp_path, settings_module=MODULE)
    assert ran.status == 1
    assert re.search(r"GateReceiver: .* taken; .* deletes wait: the gate is closed", ran.out)
    ran = scrapy("outbox", "--send", cwd=tmp_path)
    assert (ran.status, "GateReceiver is not in ITEM_PIPELINES, so" in ran.err) == (2, True)
    open_gate(tmp_path, 1_000_000)
    ran = scrapy("outbox", "--send", "--json", cwd=tmp_path, settings_module=MODULE)
    assert ran.status == 0, ran.err
    pages = stored_pages(crawl.crawl)
    assert ran.json["GateReceiver"]["waiting"] == 0
    assert ran.json["GateReceiver"]["sent"] == len(pages)
    taken = (tmp_path / "taken").read_text("utf-8").splitlines()
    assert Counter(set(taken)) == Counter(list(pages))


def test_a_full_outbox_holds_the_crawl_and_says_for_whom(site: Site, tmp_path: Path) -> None:
    """It goes on when the receiver is back, and ends complete."""
    open_gate(tmp_path, 100)
    crawl = SendingCrawl(site, tmp_path, GATE, GATE_FOLDER=str(tmp_path))
    process = crawl.begin(LARM_OUTBOX_BYTES="100000", LARM_MONITOR_SECS="0.5")
    held = "; waiting for GateReceiver, the gate is closed: the outbox is full"
    wait_until(lambda: held in crawl.said.read_text("utf-8"), "a line of the monitor")
    assert process.poll() is None
    open_gate(tmp_path, 1_000_000)
    said = crawl.end(process)
    assert "Nothing is fetched until there is room: waiting for GateReceiver, " in said
    assert "The outbox has room again" in said
    taken = (tmp_path / "taken").read_text("utf-8").splitlines()
    assert set(taken) == set(stored_pages(crawl.crawl))


@pytest.mark.parametrize(
    ("receiver", "variables", "said"),
    [
        (SQL, {}, "LARM_SQL_URL=: expected postgresql://"),
        (
            SQL,
            {"LARM_SQL_URL": "postgresql://larm:s3cr3t@127.0.0.1:1/x"},
            "SqlReceiver cannot be reached: connection failed: .*refused.*; start the server,"
            " look at LARM_SQL_URL, or take SqlReceiver out of ITEM_PIPELINES",
        ),
        (
            OPENSEARCH,
            {"LARM_OPENSEARCH_URL": "http://larm:s3cr3t@127.0.0.1:1/x"},
            "OpenSearchReceiver cannot be reached: 127.0.0.1:1: .*refused; start the server, look"
            " at LARM_OPENSEARCH_URL, or take",
        ),
        (
            OBJECTS,
            {"LARM_OBJECTS_URL": "s3://b/x", **NOBODY},
            "ObjectsReceiver cannot be reached: .*http://127.0.0.1:1/b/x/.*: Connection refused;"
            r" start the server, look at LARM_OBJECTS_URL and the environment \(AWS_ENDPOINT_URL",
        ),
        (
            DYNAMODB,
            {"LARM_DYNAMODB_TABLE": "pages", **NOBODY},
            r"DynamoDbReceiver cannot be reached: Could not connect .*127.0.0.1:1/\"; start the"
            " server, look at AWS_ENDPOINT_URL, AWS_DEFAULT_REGION and LARM_DYNAMODB_TABLE, or",
        ),
        (GATE, {"GATE_FOLDER": "/none"}, "GateReceiver cannot be used: no such folder; take "),
    ],
)
def test_a_receiver_that_cannot_be_used_is_refused_at_the_start(
    site: Site, tmp_path: Path, receiver: str, variables: dict[str, str], said: str
) -> None:
    """Status 75 where it is away, else 2, and one line; nothing is fetched."""
    site.seen.clear()
    crawl = SendingCrawl(site, tmp_path, receiver, **variables)
    process = crawl.begin()
    assert process.wait(120) == (75 if "cannot be reached" in said else 2)
    lines = crawl.said.read_text("utf-8").splitlines()
    assert re.search(said, lines[-1]), lines
    assert "s3cr3t" not in "".join(lines)
    assert not site.seen
