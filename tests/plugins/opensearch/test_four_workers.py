"""Four workers of one crawl write into one index of OpenSearch: it has what their files have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from larmspider.pipelines.outbox.spool import standings
from larmspider.settings import ITEM_PIPELINES
from tests.support.recovery.receivers import sha1, stored_pages
from tests.support.servers.opensearch.shared import SharedNode
from tests.support.servers.redis import RedisServer
from tests.support.workers.crew import Crew
from tests.support.workers.hosts import Hosts

pytestmark = pytest.mark.acceptance

RECEIVER = "larmspider.plugins.opensearch.receiver.OpenSearchReceiver"
WORKERS = ("w1", "w2", "w3", "w4")


def test_four_workers_write_what_their_files_have(
    redis_server: Callable[..., RedisServer], opensearch: SharedNode, tmp_path: Path
) -> None:
    name = f"test-{uuid4().hex}"
    settings = {
        "ITEM_PIPELINES": json.dumps({**ITEM_PIPELINES, RECEIVER: 900}),
        "LARM_OPENSEARCH_URL": opensearch.url(name),
        "LARM_LEASE_SECS": "15",
        "DOWNLOAD_DELAY": "0.4",  # time for all workers to begin
    }
    with (
        Hosts(12, pages=12, delay=0.0) as hosts,
        Crew(hosts, redis_server(), tmp_path, **settings) as crew,
    ):
        crew.start(*WORKERS)
        crew.end()
        crew.check_stores()
        folders = [log.parent for log in crew.crawl.glob("*/store.log")]
        shares = [stored_pages(folder) for folder in folders]
        assert len(folders) > 1, "on a busy machine a worker may begin after the last page"
        stored = {
            url: (sha1(body), title) for one in shares for url, (_, body, title) in one.items()
        }
        assert stored.keys() == hosts.urls
    documents = opensearch.documents(name).values()
    found = {one["page"]["url"]: (one["page"]["digest"], one["page"]["title"]) for one in documents}
    assert found == stored
    assert len(documents) == len(stored)
    assert [(one.waiting, one.dead) for one in standings(folders).values()] == [(0, 0)]
