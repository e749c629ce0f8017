"""Under the backlinks order links from hosts of another worker count, each."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_records import unpack_queued
from larmspider.frontier.storage.records import url_key
from tests.support.servers.redis import REDIS_SERVER, RedisServer
from tests.support.servers.scripted import Request, ScriptedServer
from tests.support.workers.crew import Crew

PAGES, SIBLINGS = 20, 12
BLOCKS = 256
KEYS = Keys("intranet", BLOCKS)


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    hosts: Any = SimpleNamespace(requests=list, restrict=r"http://127\.43\..*")
    settings = {"LARM_LEASE_SECS": "15", "LARM_CHECKPOINT_SECS": "0.2", "DOWNLOAD_DELAY": "0.01"}
    settings |= {"LARM_STRATEGY": "backlinks", "LARM_KEEP_ALIVE": "yes", "DOWNLOAD_TIMEOUT": "100"}
    with RedisServer("127.43.0.1") as server, Crew(hosts, server, tmp_path, **settings) as crew:
        yield crew


def shared_equally(crew: Crew) -> dict[int, bytes]:
    """Wait until each of the two has half of the blocks: the owner of each."""
    client, owners = crew.server.client(), dict[int, bytes]()

    def equal() -> bool:
        found = client.hgetall("intranet:{crawl}:blocks")
        owners.update((int(block), of.split()[0]) for block, of in found.items())
        return sorted(Counter(owners.values()).values()) == [BLOCKS // 2] * 2

    crew.until(equal, "both have their share")
    return owners


def test_what_pages_of_another_worker_link_to_is_fetched_before_its_siblings(crew: Crew) -> None:
    """It was found last, and nothing is fetched of its host until all links to it are counted: its
    robots.txt is late. At the end both workers are at rest, which ends a crawl."""
    crew.start("w1", "w2", start=None)
    owners = shared_equally(crew)
    counted = threading.Event()
    with ExitStack() as stack:
        sites = [
            stack.enter_context(ScriptedServer(host=f"127.43.1.{n}")) for n in range(1, 21)
        ]  # odds of 2^-19 that all have one owner
        owner_of = {s.port: owners[KEYS.partition_of(f"{s.host}:{s.port}")] for s in sites}
        linking = sites[0]
        linked = next(s for s in sites if owner_of[s.port] != owner_of[linking.port])
        siblings = [f"/{n}" for n in range(SIBLINGS)]
        pages = [f"/p{n}" for n in range(PAGES)]
        popular = f'<a href="{linked.url("/popular")}">x</a>'
        first = [*map(linked.url, siblings), linked.url("/popular"), *pages]
        linking.routes = dict.fromkeys(pages, popular)
        linking.routes["/"] = "".join(f'<a href="{url}">x</a>' for url in first)

        def late(request: Request) -> tuple[int, dict[str, str], bytes]:
            counted.wait(100)
            return 200, {"Content-Type": "text/plain"}, b""

        back = f'<a href="{linking.url()}">x</a>'  # to what was fetched long ago
        linked.routes = dict.fromkeys([*siblings, "/popular"], back)
        linked.routes["/robots.txt"] = late
        client = crew.server.client()
        client.rpush("intranet:start_urls", linking.url())
        key = url_key(linked.url("/popular"))

        def links() -> int:
            found = client.hget(KEYS.partition("entries", KEYS.partition_of_key(key)), key)
            return unpack_queued(cast("bytes", found))[1] if found else 0

        try:
            crew.until(lambda: links() == 1 + PAGES, "all links are counted")
        finally:
            counted.set()
        crew.until(lambda: len(linked.log) == SIBLINGS + 2, "all pages are fetched")
        order = [asked.path for asked in linked.log]
        assert order == ["/robots.txt", "/popular", *siblings]
        agents = [{asked.headers["user-agent"] for asked in s.log} for s in (linking, linked)]
        assert agents in ([{"w1"}, {"w2"}], [{"w2"}, {"w1"}])
        inboxes = [KEYS.partition("inbox", block) for block in range(BLOCKS)]

        def at_rest() -> bool:
            return client.hlen("intranet:{crawl}:idle") == 2 and not client.exists(*inboxes)

        crew.until(at_rest, "all counts are sent and read")
        for name in ("w1", "w2"):
            crew.signal(name, signal.SIGTERM)
        assert crew.wait() == [0, 0]
