"""How long a worker needs to take over blocks: what another left is read from Redis to its disk.

    python -m benchmarks.takeover [--urls 200000] [--hosts 1000]

One worker fills a real redis-server with visited URLs, or queued ones; another, with an empty
directory, takes all blocks. Printed are URLs a second, by the clock and by its
CPU, which other work on the machine disturbs less, and what empty blocks cost.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.redis_memory import BATCH, commit, entry, urls
from larmspider.cluster.redis_client import Keys, RedisLink
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.servers.redis import RedisServer

_ADDRESS = "127.39.255.5"
_BLOCKS = 256


def backend(client: Any, folder: Path, worker: str) -> RedisBackend:
    link = RedisLink(client, "the benchmark")
    link.check()
    return RedisBackend(folder, link, Keys("intranet", _BLOCKS), worker=worker)


def fill(one: RedisBackend, number: int, hosts: int, *, done: bool) -> None:
    """So many URLs more, which are visited or stay queued."""
    names = [f"wiki-{n}.example:80" for n in range(hosts)]
    path = "/done-" if done else "/page-"
    found = [entry(url.replace("/page-", path)) for url in urls(number, hosts)]
    for at in range(0, number, BATCH):
        one.add(found[at : at + BATCH])
        commit(one, at)
        while done and (got := [e for name in names for e in one.pop(name, 0.0, BATCH)]):
            one.acknowledge([(e.key, FetchRecord(UrlState.STORED, 1.0, 200)) for e in got])
            commit(one, at)


def take(client: Any, folder: Path, worker: str) -> tuple[float, float]:
    """Seconds, and CPU seconds of the worker."""
    one = backend(client, folder, worker)
    began, used = time.monotonic(), time.process_time()
    one.recover()
    took = time.monotonic() - began, time.process_time() - used
    one.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--urls", type=int, default=200_000)
    parser.add_argument("--hosts", type=int, default=1_000)
    options = parser.parse_args()
    with (
        RedisServer(_ADDRESS, appendonly="no") as server,
        tempfile.TemporaryDirectory() as name,
    ):
        client = server.client()
        for what, done in (("visited", True), ("queued", False)):
            client.flushall()
            folder = Path(name, what)
            first = backend(client, folder / "first", "first")
            first.recover()
            empty = take(client, folder / "second", "second")
            third = backend(client, folder / "third", "third")
            third.recover()
            fill(third, options.urls, options.hosts, done=done)
            full = take(client, folder / "fourth", "fourth")
            clock, cpu = (options.urls / max(b - a, 1e-3) for a, b in zip(empty, full, strict=True))
            print(
                f"{what}: {clock:,.0f} URLs a second, {cpu:,.0f} a CPU second of the worker;"
                f" {_BLOCKS} empty blocks {empty[0]:.2f} s"
            )


if __name__ == "__main__":
    main()
