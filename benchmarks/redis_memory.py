"""What a URL costs in Redis' memory: queued, visited, by host; and what other ways would cost.

    python -m benchmarks.redis_memory --urls 1000000 --hosts 1000

A real redis-server (Debian's) gets what the frontier's backend writes, in commits of 20,000 URLs;
``used_memory`` is read before and after.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from larmspider.cluster.commit import member
from larmspider.cluster.redis_client import Keys, RedisLink
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.frontier.hosts import HostRecord, pack_host
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, host_of, url_key
from tests.support.servers.redis import RedisServer

BATCH = 20_000


def urls(number: int, hosts: int) -> Iterator[str]:
    """Of some 60 characters, as in docs/frontier.md."""
    for n in range(number):
        yield f"http://wiki-{n % hosts}.example/team/handbook/page-{n:010}.html"


def memory(client: Any) -> int:
    return int(client.info("memory")["used_memory"])


def entry(url: str) -> QueuedUrl:
    page = url[:-5] + "-from.html"
    return QueuedUrl(url, url, url_key(url), host_of(url), depth=3, from_page=page)


def commit(backend: RedisBackend, number: int) -> None:
    backend.checkpoint({"store.log": b"%d" % number})


def measure(client: Any, number: int, hosts: int, folder: Path, blocks: int) -> None:
    link = RedisLink(client, "the benchmark")
    link.check()
    backend = RedisBackend(folder, link, Keys("intranet", blocks), worker="w1")
    backend.recover()
    commit(backend, 0)
    before = memory(client)
    names = [f"wiki-{n}.example:80" for n in range(hosts)]
    backend.put_hosts({name: pack_host(HostRecord(name)) for name in names})
    commit(backend, 1)
    report("host record", memory(client) - before, hosts, "a host")

    before, began = memory(client), time.monotonic()
    batch: list[QueuedUrl] = []
    for url in urls(number, hosts):
        batch.append(entry(url))
        if len(batch) == BATCH:
            backend.add(batch)
            commit(backend, 2)
            batch = []
    backend.add(batch)
    commit(backend, 3)
    commit(backend, 4)  # the redo and the visits of the one before are gone
    queued = memory(client) - before
    report("queued: entries, queues, counters", queued, number, "a URL")
    print(f"  {number / (time.monotonic() - began):,.0f} URLs added a second, commits included")

    began, trips, done = time.monotonic(), link.round_trips, 0
    while done < number:
        got = [e for name in names for e in backend.pop(name, 0.0, max(1, BATCH // hosts))]
        backend.acknowledge([(e.key, FetchRecord(UrlState.STORED, 1.0, 200)) for e in got])
        done += len(got)
        commit(backend, done)
    commit(backend, 5)
    visited = memory(client) - before
    report("visited, counters included", visited, number, "a URL")
    print(f"  {number / (time.monotonic() - began):,.0f} URLs done a second, commits included")
    print(f"  {link.round_trips - trips} round trips for {number:,} URLs")
    sizes = {}
    for key in client.scan_iter(match="*:dupefilter:*", count=10_000):
        sizes[key] = client.memory_usage(key)
    encodings = {client.object("encoding", key) for key in list(sizes)[:1000]}
    report(f"visited: {len(sizes):,} sets, {encodings}", sum(sizes.values()), number, "a URL")
    backend.close()


def alternatives(client: Any, number: int, hosts: int, blocks: int) -> None:
    print("what the visited table would cost otherwise:")
    keys = [url_key(url) for url in urls(number, hosts)]
    block = Keys("x", blocks).block_of_key

    def one_set(word: Callable[[bytes], Any]) -> Callable[[Any, bytes], None]:
        return lambda pipe, key: pipe.sadd(f"v:{block(key)}", word(key))

    def stored(key: bytes) -> int:
        return member(key, UrlState.STORED)

    def by_hash(pipe: Any, key: bytes) -> None:
        pipe.sadd(f"v:{block(key)}:{key[12]}", stored(key))

    ways: dict[str, Callable[[Any, bytes], None]] = {
        "one set of 40 hex digits (scrapy-redis)": lambda p, key: p.sadd("v", key.hex() + "0" * 8),
        "a set a block, 16-byte keys": one_set(bytes),
        "a set a block, integers": one_set(stored),
        "a hash a block, 16-byte key -> state": lambda p, k: p.hset(f"v:{block(k)}", k, b"3"),
        "256 sets a block by hash, integers": by_hash,
        "a string a block, 8 bytes appended": lambda p, k: p.append(f"v:{block(k)}", k[4:12]),
    }
    for name, put in ways.items():
        client.flushall()
        before = memory(client)
        for at in range(0, number, BATCH):
            with client.pipeline(transaction=False) as pipe:
                for key in keys[at : at + BATCH]:
                    put(pipe, key)
                pipe.execute()
        report(f"  {name}", memory(client) - before, number, "a URL")
    client.flushall()


def report(what: str, size: int, number: int, unit: str) -> None:
    print(f"{what}: {size / number:.1f} bytes {unit} ({size / 1e6:,.1f} MB)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--blocks", type=int, default=256)
    options = parser.parse_args()
    print(f"{options.urls:,} URLs, {options.hosts:,} hosts, {options.blocks} blocks")
    with RedisServer(appendonly="no") as server, tempfile.TemporaryDirectory() as folder:
        client = server.client()
        measure(client, options.urls, options.hosts, Path(folder), options.blocks)
        client.flushall()
        alternatives(client, options.urls, options.hosts, options.blocks)


if __name__ == "__main__":
    main()
