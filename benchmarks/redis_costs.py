"""What a crawl of many workers costs Redis: memory, taking over partitions, membership.

    python -m benchmarks.redis_costs memory [--urls 1000000] [--hosts 1000]
    python -m benchmarks.redis_costs takeover [--urls 200000] [--hosts 1000]
    python -m benchmarks.redis_costs pages [--files /usr/share/doc/openjdk-17-doc/api]
    python -m benchmarks.redis_costs membership [--blocks 256 1024] [--workers 2 16]

Each starts a redis-server of its own.

``memory``: what a URL costs in Redis' memory, queued or visited, and what other ways of keeping the
visited ones would cost. The frontier's backend writes them, in commits of 20,000 URLs;
``used_memory`` is read before and after.

``takeover``: one worker fills Redis with visited URLs, or queued ones; another, with an empty
directory, takes all partitions. URLs a second, by the clock and by its CPU.

``pages``: what it costs beside the visited table that a page may stand for other spellings of its
URL, by pages that a commit stores: memory, and CPU of the next owner. The URLs are of the files in
a directory.

``membership``: workers join until each has its share of the partitions. Printed is what Redis works
on each of these, in microseconds, during which it answers nobody else: a sign of life (each worker,
every third of LARM_LEASE_SECS), a look whether the crawl is at its end (each worker that has
nothing to do, twice a second), and the look into all inboxes that comes before the end. "MB" is all
that the membership keeps in Redis; "bytes" a worker sends with each sign of life.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from larmspider.cluster.keys import Keys
from larmspider.cluster.membership import Membership
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.redis_records import member
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.frontier.hosts import HostRecord, pack_host
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, host_of, url_key
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from tests.support.servers.redis import RedisServer

_ADDRESS = "127.39.255.3"
BATCH = 20_000
RECORD = FetchRecord(
    UrlState.STORED,
    1.8e9,
    200,
    etag='"5f2c91d0a3b4e6f7"',
    last_modified="Wed, 21 Oct 2026 07:28:00 GMT",
    digest=bytes(range(28)),
    signature=bytes(range(8)),
    link_signature=bytes(range(8)),
    due=1.9e9,
)
"""What a page leaves that is to be visited again."""


def urls(number: int, hosts: int) -> Iterator[str]:
    """URLs of about 60 characters, as in docs/internals/performance.md."""
    for n in range(number):
        yield f"http://wiki-{n % hosts}.example/team/handbook/page-{n:010}.html"


def memory(client: Any) -> int:
    return int(client.info("memory")["used_memory"])


def entry(url: str) -> QueuedUrl:
    page = url[:-5] + "-from.html"
    return QueuedUrl(url, url, url_key(url), host_of(url), depth=3, from_page=page)


def commit(backend: RedisBackend, number: int) -> None:
    backend.checkpoint({"store.log": b"%d" % number})


def print_memory(client: Any, number: int, hosts: int, folder: Path, blocks: int) -> None:
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
        backend.acknowledge([(e.key, RECORD) for e in got])
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
    kept = [client.memory_usage(key) for key in client.scan_iter(match="*:visits:*", count=10_000)]
    report(f"visits again: {len(kept):,} hashes", sum(kept), number, "a URL")
    backend.close()


def alternatives(client: Any, number: int, hosts: int, blocks: int) -> None:
    print("what the visited table would cost otherwise:")
    keys = [url_key(url) for url in urls(number, hosts)]
    block = Keys("x", blocks).partition_of_key

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


_TIMES = 20


def crew(server: RedisServer, workers: int, blocks: int) -> list[Membership]:
    """Workers that have their shares."""
    members = [
        Membership(server.client(), "intranet", f"w{number}", lease_secs=600, partitions=blocks)
        for number in range(workers)
    ]
    for one in members:
        one.join("{}")
    moving = True
    while moving:
        moving = False
        for one in members:
            beat = one.beat()
            if beat.excess:
                one.release(sorted(one.held)[-beat.excess :])
            moving = moving or bool(beat.given) or bool(beat.excess)
    return members


def rest(one: Membership) -> None:
    """It says that it has nothing to do, and looks whether the crawl is at its end."""
    one.idle(len(one.held))


def worked(client: Any, *commands: str) -> float:
    """Microseconds that Redis has worked on these commands."""
    found = client.info("commandstats")
    return sum(float(found.get(f"cmdstat_{name}", {}).get("usec", 0)) for name in commands)


def print_membership(server: RedisServer, workers: int, blocks: int) -> None:
    client = server.client()
    client.flushall()
    before = memory(client)
    members = crew(server, workers, blocks)
    size = memory(client) - before
    found: dict[str, list[float]] = {"beat": [], "look": [], "inboxes": []}
    for _ in range(_TIMES):
        for name, ask in (("beat", members[0].beat), ("look", lambda: rest(members[0]))):
            before = worked(client, "evalsha")
            ask()
            found[name].append(worked(client, "evalsha") - before)
        before = worked(client, "llen")
        with client.pipeline(transaction=False) as pipe:
            for block in range(blocks):
                pipe.llen(f"intranet:inbox:{{{block}}}")
            pipe.execute()
        found["inboxes"].append(worked(client, "llen") - before)
    for one in members:  # all have nothing to do: each look goes through all blocks
        rest(one)
    before, looks = worked(client, "evalsha"), _TIMES
    for _ in range(looks):
        rest(members[0])
    all_idle = (worked(client, "evalsha") - before) / looks
    beat, look, inboxes = (statistics.median(times) for times in found.values())
    received = client.info()["total_net_input_bytes"]
    members[0].beat()
    sent = client.info()["total_net_input_bytes"] - received
    print(
        f"| {blocks:,} | {workers} | {beat:,.0f} | {look:,.0f} | {all_idle:,.0f} | {inboxes:,.0f}"
        f" | {size / 1e6:.2f} | {sent:,} |",
        flush=True,
    )


def print_takeover(client: Any, number: int, hosts: int, scratch: Path) -> None:
    for what, done in (("visited", True), ("queued", False)):
        client.flushall()
        folder = scratch / what
        first = backend(client, folder / "first", "first")
        first.recover()
        empty = take(client, folder / "second", "second")
        third = backend(client, folder / "third", "third")
        third.recover()
        fill(third, number, hosts, done=done)
        full = take(client, folder / "fourth", "fourth")
        clock, cpu = (number / max(b - a, 1e-3) for a, b in zip(empty, full, strict=True))
        print(
            f"{what}: {clock:,.0f} URLs a second, {cpu:,.0f} a CPU second of the worker;"
            f" {_BLOCKS} empty partitions {empty[0]:.2f} s"
        )


def print_pages(client: Any, folder: Path, files: Path) -> None:
    found = [
        f"http://wiki.example/{path.relative_to(files)}" for path in sorted(files.rglob("*.html"))
    ]
    forms = UrlForms(Canonicalizer(), HostResolver())
    other = sum(forms(url).normalized != forms(url).exact for url in found)
    print(f"{len(found):,} URLs, {other / len(found):.0%} with another canonical form")
    random.Random(1).shuffle(found)
    for size in (10, 100, 1_000, 10_000):
        bytes_, seconds = [], []
        for with_pages in (False, True):
            client.flushall()
            link = RedisLink(client, "the benchmark")
            link.check()

            used = UrlForms(Canonicalizer(), HostResolver()) if with_pages else None
            keys, place = Keys("intranet", _BLOCKS), folder / f"{size}-{with_pages}"
            one = RedisBackend(place / "w1", link, keys, worker="w1", forms=used)
            one.recover()
            commit(one, 0)
            before = memory(client)
            for at in range(0, len(found), size):
                one.add([entry(url) for url in found[at : at + size]])
                for got in one.pop("wiki.example:80", 0.0, size):
                    digest = bytes(20) + blake2b(got.key, digest_size=8).digest()
                    visit = FetchRecord(UrlState.STORED, 1.0, 200, digest=digest)
                    one.acknowledge([(got.key, visit)])
                commit(one, at)
            commit(one, 0)
            bytes_.append(memory(client) - before)
            one.close()
            began = time.process_time()
            two = RedisBackend(place / "w2", link, keys, worker="w2", forms=used)
            two.recover()
            seconds.append(time.process_time() - began)
            two.close()
        more, taking = ((with_ - without) / len(found) for without, with_ in (bytes_, seconds))
        print(
            f"{size:,} pages a commit: {more:.1f} bytes a page beside {bytes_[0] / len(found):.1f};"
            f" {1e6 * taking:.0f} us of the next owner"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("memory", "takeover", "pages", "membership"))
    parser.add_argument("--urls", type=int, help="1,000,000, for takeover 200,000")
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--files", type=Path, default=Path("/usr/share/doc/openjdk-17-doc/api"))
    parser.add_argument("--blocks", type=int, nargs="+", default=[256, 1024, 4096, 16384])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 16])
    options = parser.parse_args()
    with RedisServer(_ADDRESS, appendonly="no") as server, tempfile.TemporaryDirectory() as name:
        client = server.client()
        if options.what == "memory":
            urls = options.urls or 1_000_000
            print(f"{urls:,} URLs, {options.hosts:,} hosts, {_BLOCKS} partitions")
            print_memory(client, urls, options.hosts, Path(name), _BLOCKS)
            client.flushall()
            alternatives(client, urls, options.hosts, _BLOCKS)
        elif options.what == "takeover":
            print_takeover(client, options.urls or 200_000, options.hosts, Path(name))
        elif options.what == "pages":
            print_pages(client, Path(name), options.files.resolve())
        else:
            print("| blocks | workers | us: beat | look | all idle | inboxes | MB | bytes |")
            print("|---" * 8 + "|")
            for blocks in options.blocks:
                for workers in options.workers:
                    print_membership(server, workers, blocks)


if __name__ == "__main__":
    main()
