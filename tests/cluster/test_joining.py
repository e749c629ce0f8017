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


@pytest.mark.parametrize("moment", range(1, 4))
def test_another_worker_may_begin_at_any_moment_of_the_comparison(server, crawler, moment):
    """It begins with the new settings; the last run had others."""
    link = RedisLink(server.client(), "r")
    first = membership(server, "w1")
    first.join(json.dumps(description(crawler()) | {"shared": {"LARM_LEASE_SECS": 12.0}}))
    first.leave()
    shared = SharedCrawl.of(crawler())
    sent = 0

    def watched(ask):
        def answered(*arguments):
            nonlocal sent
            sent += 1
            if sent == moment:
                join(membership(server, "w2"), link, KEYS, crawler())
            return ask(*arguments)

        return answered

    shared.link.run = watched(shared.link.run)
    shared._membership.living = watched(shared._membership.living)
    shared.refuse_other(crawler())
    assert sent == 3


def written_before_the_filters_moved(crawler):
    """The description of a version in which the filters had other modules."""
    described = description(crawler)
    paths = described["crawl"]["filters"]
    described["crawl"]["filters"] = [f"larm.older.{path.rpartition('.')[2]}" for path in paths]
    return json.dumps(described, sort_keys=True)


@pytest.mark.parametrize("at_work", [False, True])
def test_filters_are_compared_by_class_name(server, crawler, at_work):
    """A class that has moved is the same filter, beside its workers or after they have left."""
    text = written_before_the_filters_moved(crawler(LENGTH, TRAPS))
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


def test_the_rules_that_made_the_keys_stay(server, crawler_for):
    """With others the frontier would know no URL; another directory does not say which they are."""
    first, link = membership(server, "w1"), RedisLink(server.client(), "r")

    def crawler(**settings):
        return crawler_for(REDIS_URL=server.url, LARM_BLOCKS=8, LARM_RESUME="anyway", **settings)

    join(first, link, KEYS, crawler())
    first.leave()
    with pytest.raises(ConfigError, match=r"other LARM_BARE_PERCENT: .*: set the old value, "):
        SharedCrawl.of(crawler()).refuse_other(crawler(LARM_BARE_PERCENT="never"))
    join(membership(server, "w2"), link, KEYS, crawler(LARM_PATH_DEPTH_LIMIT=7))


def test_workers_side_by_side_tell_hosts_the_same_and_have_the_same_rules(
    server, crawler_for, tmp_path, monkeypatch, caplog
):
    """Each difference is refused by name while a worker runs; limits of fetches give a warning."""
    sites = tmp_path / "sites.toml"
    sites.write_text(
        '[[site]]\nhosts = ["wiki.example", "https://git.example:*"]\ntls_min = "1.2"\n'
    )
    first, link = membership(server, "w1"), RedisLink(server.client(), "r")

    def crawler(**settings):
        return crawler_for(REDIS_URL=server.url, LARM_BLOCKS=8, **settings)

    join(first, link, KEYS, crawler())
    for name, value, shown in (
        ("USER_AGENT", "other/1", '"other/1" here'),
        ("ROBOTSTXT_USER_AGENT", "other", 'null there, "other" here'),
        ("LARM_GROUP_BY", "address", '"host" there, "address" here'),
        ("LARM_SITES_FILE", str(sites), '"https://git.example:*", "wiki.example"'),
        ("LARM_CANONICAL_RULES", "folder-file=never", "here"),
        ("LARM_TRAPS", "report", '"learn" there, "report" here'),
    ):
        with pytest.raises(ConfigError, match=name) as refused:
            join(membership(server, "w2"), link, KEYS, crawler(**{name: value}))
        assert shown in str(refused.value)
        assert "here; the running workers have that, and all need the same" in str(refused.value)
    with monkeypatch.context() as patch:
        patch.setattr("larmspider.cluster.joining.__version__", "0.1")
        with pytest.raises(ConfigError, match=r'other larmspider version: .* "0\.1" here'):
            join(membership(server, "w2"), link, KEYS, crawler())
    other = crawler(LARM_RETRY_TIMES=7, DOWNLOAD_TIMEOUT=180)
    join(membership(server, "w2"), link, KEYS, other)
    assert "other limits" in caplog.text
    assert "LARM_RETRY_TIMES=7 here, 2 there" in caplog.text
    assert "DOWNLOAD_TIMEOUT" not in caplog.text


def test_workers_agree_that_there_are_credentials(server, crawler_for, tmp_path):
    """For the same hosts: the fetched pages are then not for everybody, in any directory."""
    site = '[[site]]\nhosts = "https://wiki.example"\n%s\n'
    for name, option in (("with", 'auth = "bearer"\ntoken = "x"'), ("without", 'tls_min = "1.2"')):
        (tmp_path / name).write_text(site % option)
    link = RedisLink(server.client(), "r")
    having, lacking = (
        crawler_for(REDIS_URL=server.url, LARM_BLOCKS=8, LARM_SITES_FILE=str(tmp_path / name))
        for name in ("with", "without")
    )
    first = membership(server, "w1")
    join(first, link, KEYS, having)
    with pytest.raises(ConfigError, match='LARM_SITES_FILE: "with credentials" there, null here'):
        join(membership(server, "w2"), link, KEYS, lacking)
    first.leave()
    join(membership(server, "w2"), link, KEYS, lacking)
    with pytest.raises(ConfigError, match='LARM_SITES_FILE: null there, "with credentials" here'):
        join(first, link, KEYS, having)
