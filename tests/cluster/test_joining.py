"""A worker joins a crawl in Redis, or is refused because it would crawl something else."""

from __future__ import annotations

import json

import pytest

from larmspider.cluster.joining import SharedCrawl, description, join
from larmspider.cluster.keys import Keys
from larmspider.cluster.membership import Membership
from larmspider.cluster.redis_client import RedisLink
from larmspider.errors import ConfigError

LENGTH = "larmspider.middlewares.length.LengthFilter"
TRAPS = "larmspider.middlewares.traps.TrapsFilter"
KEYS = Keys("test", 8)


@pytest.fixture
def server(redis_server):
    return redis_server()


@pytest.fixture
def crawler(server, crawler_for):
    def make(*filters):
        listed = dict.fromkeys(filters, 600)
        return crawler_for(REDIS_URL=server.url, LARM_BLOCKS=8, SPIDER_MIDDLEWARES=listed)

    return make


def membership(server, name):
    return Membership(server.client(), "test", name, lease_secs=15, partitions=8)


def written_by_an_earlier_version(crawler):
    """The description that a version wrote in which the filters had other modules."""
    described = description(crawler)
    paths = described["crawl"]["filters"]
    described["crawl"]["filters"] = [f"larm.older.{path.rpartition('.')[2]}" for path in paths]
    return json.dumps(described, sort_keys=True)


@pytest.mark.parametrize("at_work", [False, True])
def test_filters_are_compared_by_class_name(server, crawler, at_work):
    """A crawl of an earlier version is gone on with, beside its workers or after they have left."""
    text = written_by_an_earlier_version(crawler(LENGTH, TRAPS))
    first, second = membership(server, "w1"), membership(server, "w2")
    first.join(text)
    if not at_work:
        first.leave()
    link = RedisLink(server.client(), "r")
    with pytest.raises(ConfigError, match="has other filters: "):
        SharedCrawl.of(crawler(LENGTH)).refuse_other(crawler(LENGTH))
    with pytest.raises(ConfigError, match="has other filters: "):
        join(second, link, KEYS, crawler(LENGTH))
    SharedCrawl.of(crawler(LENGTH, TRAPS)).refuse_other(crawler(LENGTH, TRAPS))
    join(second, link, KEYS, crawler(LENGTH, TRAPS))
    assert second.beat().workers == 1 + at_work
    join(membership(server, "w3"), link, KEYS, crawler(LENGTH, TRAPS))
