"""kill -9 of crawler, sender, one node of three, all nodes: OpenSearch has what our own index has.

``pytest tests/recovery/test_killed_opensearch.py --kills 120`` kills 20 times; a sixth as often.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tantivy

from larmspider.index.anchors import AnchorTable
from larmspider.index.packed import PackedPages
from larmspider.index.schema import stored_fields
from larmspider.index.version import open_index
from larmspider.pipelines.outbox.spool import standings
from tests.recovery.test_killed_outbox import OPENSEARCH, SendingCrawl, senders_of, wait_until
from tests.support.recovery.killed_crawl import Site
from tests.support.servers.opensearch.building import missing_programs
from tests.support.servers.opensearch.cluster import OpenSearchCluster

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(bool(missing_programs()), reason="Java or Maven is not installed"),
]

BY_ORDER = ("likeness", "apart", "fetched")
"""Fields that depend on the order of pages, or on the clock."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(scope="module")
def cluster() -> Iterator[OpenSearchCluster]:
    with OpenSearchCluster(3, heap="320m") as cluster:
        yield cluster


def our_documents(crawl: Path) -> dict[str, Any]:
    """Each document of our index, by key: its stored fields and the texts of links to it."""
    index, _ = open_index(crawl / "index")
    searcher, packed = index.searcher(), PackedPages(crawl / "index")
    hits = searcher.search(tantivy.Query.all_query(), 100_000).hits
    found = {}
    table = AnchorTable(crawl / "index" / "anchors")
    for _, address in hits:
        fields = stored_fields(searcher.doc(address), packed)
        found[fields["key"]] = _comparable(fields), sorted(table.texts(fields["key"]))
    table.close()
    return found


def their_documents(cluster: OpenSearchCluster, name: str) -> dict[str, Any]:
    documents = cluster.documents(name).values()
    found = {}
    for one in documents:
        texts = sorted(one["link_texts"]["texts"])
        found[one["page"]["key"]] = _comparable(one["page"]), texts
    assert len(found) == len(documents)
    return found


def _comparable(fields: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in fields.items() if name not in BY_ORDER}
    if "modified" in plain:
        plain["modified"] = str(plain["modified"]).replace(" ", "T").replace("+00:00", "Z")
    return plain


def check(cluster: OpenSearchCluster, crawl: SendingCrawl, name: str) -> int:
    ours, theirs = our_documents(crawl.crawl), their_documents(cluster, name)
    assert theirs.keys() == ours.keys()
    assert theirs == ours
    assert [(one.waiting, one.dead) for one in standings([crawl.crawl]).values()] == [(0, 0)]
    return len(ours)


def test_it_has_what_our_index_has_whatever_is_killed(
    site: Site, cluster: OpenSearchCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    wanted = max(4, request.config.getoption("--kills") // 6)
    seed = request.config.getoption("--kill-seed") or random.randrange(1 << 30)
    print(f"--kill-seed {seed}")
    chance = random.Random(seed)
    kills = {"crawler": 0, "sender": 0, "node": 0, "all nodes": 0}
    pages = crawls = 0
    while sum(kills.values()) < wanted:
        folder = tmp_path / f"crawl-{crawls}"
        folder.mkdir()
        crawl = SendingCrawl(site, folder, OPENSEARCH, LARM_OPENSEARCH_URL=cluster.url(folder.name))
        process = crawl.begin()
        for _ in range(min(4, wanted - sum(kills.values()))):
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
            elif what == "sender":
                for pid in senders_of(process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, 9)
            else:
                killed = cluster.nodes if what == "all nodes" else [chance.choice(cluster.nodes)]
                for node in killed:
                    node.kill()
                for node in killed:
                    node.begin()
                for node in killed:
                    node.wait()
        crawl.end(process)
        cluster.wait_for_nodes(3)
        pages += check(cluster, crawl, folder.name)
        crawls += 1
    print(f"{kills} in {crawls} crawls of {pages} pages")


def test_it_waits_while_two_nodes_of_three_are_lost(
    site: Site, cluster: OpenSearchCluster, tmp_path: Path
) -> None:
    crawl = SendingCrawl(site, tmp_path, OPENSEARCH, LARM_OPENSEARCH_URL=cluster.url("lost"))
    process = crawl.begin()
    wait_until(lambda: crawl.sent > 0 or process.poll() is not None, "the first batch")
    for node in cluster.nodes[1:]:
        node.kill()

    def trouble() -> str:
        return "".join(one.trouble for one in standings([crawl.crawl]).values())

    wait_until(lambda: bool(trouble()), "trouble")
    print(trouble())
    for node in cluster.nodes[1:]:
        node.begin()
    for node in cluster.nodes[1:]:
        node.wait()
    crawl.end(process)
    assert check(cluster, crawl, "lost") > 0
