"""A batch into the tables, in one transaction; keys in order, so that neighbours share pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from larmspider.frontier.storage.records import host_of, host_prefix
from larmspider.crawl.log_index.batch import FetchBatch, LinkBatch, StoreBatch, key_of
from larmspider.crawl.log_index.leaders import Leaders
from larmspider.crawl.log_index.places import key_in
from larmspider.crawl.log_index.records import (
    LinkedHost,
    pack_fetches,
    pack_host,
    pack_place,
    pack_target,
    pages_of,
    unpack_fetches,
    unpack_host,
    unpack_place,
)

Tables = dict[str, Any]


def write_links(
    txn: Any, tables: Tables, batch: LinkBatch, shard: int, pages: Leaders, hosts: Leaders
) -> None:
    """Targets, sources, hosts and edges of a shard; ``pages`` and ``hosts`` hear of each count that
    grew."""
    puts = []
    keyed = sorted((key_of(url), found) for url, found in batch.targets.items())
    for key, (count, *places) in keyed:
        record = txn.get(key, db=tables["targets"])
        if record:
            count += pages_of(record)
        puts.append((key, pack_target(count, places, record)))
        pages.offer(key, count)
    txn.cursor(tables["targets"]).putmulti(puts)
    sources = sorted(
        (key_in(shard, key_of(page)), pack_place(at)) for page, at in batch.sources.items()
    )
    txn.cursor(tables["sources"]).putmulti(sources)
    _write_edges(txn, tables, batch, hosts)


def _write_edges(txn: Any, tables: Tables, batch: LinkBatch, leaders: Leaders) -> None:
    names = {
        origin: host_of(origin.decode("utf-8", "replace"))
        for origin in {origin for edge in batch.edges for origin in edge}
    }
    edges: dict[bytes, int] = {}
    hosts: dict[str, LinkedHost] = {}
    for (page, target), count in batch.edges.items():
        source, host = names[page], names[target]
        key = host_prefix(source) + host_prefix(host)
        edges[key] = edges.get(key, 0) + count
        hosts.setdefault(source, LinkedHost(0, 0, source))
        links, from_others, _ = hosts.get(host, (0, 0, ""))
        hosts[host] = LinkedHost(
            links + count, from_others + (0 if host == source else count), host
        )
    for key, count in sorted(edges.items()):
        earlier_count = unpack_place(txn.get(key, b"\0", db=tables["edges"]))
        txn.put(key, pack_place(earlier_count + count), db=tables["edges"])
    for name, found in hosts.items():
        key = host_prefix(name)
        if record := txn.get(key, db=tables["hosts"]):
            earlier = unpack_host(record)
            found = LinkedHost(
                found.links + earlier.links, found.from_others + earlier.from_others, name
            )
        txn.put(key, pack_host(found), db=tables["hosts"])
        leaders.offer(key, found.links)


def write_fetches(
    txn: Any, tables: Tables, batch: FetchBatch, is_newer: Callable[[int, int], bool]
) -> None:
    """The last fetch of each URL, what is broken, results and failures by host. ``is_newer`` says
    whether the fetch at a place was after that at another one."""
    for key, (place, failed) in sorted(batch.fetched.items()):
        known = txn.get(key, db=tables["fetched"])
        if known and not is_newer(place, unpack_place(known)):
            continue
        txn.put(key, pack_place(place), db=tables["fetched"])
        if failed:
            txn.put(key, pack_place(place), db=tables["broken"])
        else:
            txn.delete(key, db=tables["broken"])
    for key, fetches in sorted(batch.results.items()):
        if record := txn.get(key, db=tables["results"]):
            fetches = fetches.plus(unpack_fetches(record))
        txn.put(key, pack_fetches(fetches), db=tables["results"])
    for key in sorted(batch.failures):
        txn.put(key, b"", db=tables["failures"])


def write_stored(txn: Any, tables: Tables, batch: StoreBatch, shard: int) -> None:
    """The last line of each page in a shard."""
    puts = sorted((key_in(shard, key), pack_place(at)) for key, at in batch.stored.items())
    txn.cursor(tables["stored"]).putmulti(puts)
