"""A key of the crawl in Redis is gone, or has become something else: it is named, or made again."""

from __future__ import annotations

from contextlib import closing

import pytest

from larmspider.cluster.joining import join
from larmspider.cluster.keys import Keys, type_of
from larmspider.cluster.loading import partitions_of
from larmspider.cluster.membership import KEYS, Membership
from larmspider.cluster.redis_client import Lost
from larmspider.cluster.worker import FACTOR, SharedOverrides
from larmspider.errors import ConfigError
from larmspider.frontier.overrides import HostOverride, Overrides
from larmspider.frontier.storage.records import Counts, pack_counts
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from tests.cluster.test_loading import BLOCKS, everything_of
from tests.support.frontier.conformance import OK, entries
from tests.support.frontier.redis_store import RedisStore, WatchedLink


@pytest.fixture
def store(shared_redis, tmp_path):
    with closing(RedisStore(shared_redis.client(), tmp_path)) as store:
        yield store


def overwrite(client, key):
    """By a value of another type."""
    kind = client.type(key)
    client.delete(key)
    client.rpush(key, "other") if kind == b"string" else client.set(key, "other")


@pytest.fixture
def filled(store):
    """Two workers with a record of each kind in one partition: its number."""
    forms = UrlForms(Canonicalizer(), HostResolver())
    one, two = (store.join(name, forms=forms) for name in ("w1", "w2"))
    store.assign(one, BLOCKS)
    everything_of(one, two, "wiki")
    (partition,) = {one.partition_of("wiki:80")}
    yield one, two, partition
    one.close()
    two.close()


def test_each_key_of_a_partition_has_its_type(filled, store):
    keys = store.client.keys(f"{store.keys.prefix}:*")
    assert len(keys) > 15
    wrong = [key for key in keys if type_of(key) != store.client.type(key)]
    assert wrong == []


@pytest.mark.parametrize(
    "name",
    [
        "dupefilter", "entries", "counts", "owner", "requests", "delayed", "hosts", "notes",
        "visits", "merged", "pages", "inbox",
    ],
)  # fmt: skip
def test_a_key_of_another_type_is_named(filled, store, name):
    _, two, partition = filled
    key = store.keys.partition(name, partition)
    key += {"dupefilter": b":0", "requests": b":wiki:80"}.get(name, b"")
    overwrite(store.client, key)
    wanted = type_of(key).decode()
    said = rf"{key.decode()} is a string, expected a {wanted}\).* --rebuild".replace("{", r"\{")
    with pytest.raises(ConfigError, match=said):
        store.assign(two, [partition])


@pytest.mark.parametrize("name", ["counts", "entries", "visits", "merged", "pages", "dupefilter"])
def test_a_value_that_cannot_be_read_is_an_error_in_one_line(filled, store, name):
    _, two, partition = filled
    key, client = store.keys.partition(name, partition), store.client
    if name == "pages":
        client.lset(key, 0, "other")
    elif name == "dupefilter":
        key += b":0"
        client.srem(key, client.srandmember(key))
        client.sadd(key, "other")
    else:
        client.hset(key, client.hkeys(key)[0], "other")
    with pytest.raises(Lost, match=r"a value cannot be read: .* --rebuild"):
        store.assign(two, [partition])


def test_a_worker_that_had_only_links_for_others_misses_its_commit(store):
    """Its steps have numbers in the partitions of others: it would wait for them without end."""
    one, two = store.join("w1", BLOCKS), store.join("w2")
    two.forward(entries("1"))
    two.checkpoint({})
    two.close()
    one.close()
    store.client.delete(store.keys.commit("w2"))
    with pytest.raises(Lost, match=r"the last commit of worker w2.* --rebuild"):
        store.join("w2")


def test_a_lost_list_of_outdated_pages_is_missed(store):
    """Pages that another worker has newer would be found for ever."""
    one, two = store.join("w1", BLOCKS), store.join("w2")
    one.add(entries("1"))
    (got,) = one.pop("a:80", 0.0, 1)
    one.acknowledge([(got.key, OK)])
    one.checkpoint({})
    one.give_up(BLOCKS)
    store.assign(two, BLOCKS)
    two.forget([got.key])
    two.checkpoint({})
    outdated, totals = store.keys.outdated("w1"), store.keys.crawl("totals")
    assert store.client.hget(totals, "outdated:w1") == b"1"
    kept = store.client.dump(outdated)
    store.close()
    store.client.delete(outdated)
    with pytest.raises(Lost, match=r"0 of 1 lists of outdated pages of worker w1.* --rebuild"):
        store.join("w1")
    store.close()
    store.client.restore(outdated, 0, kept)
    one = store.join("w1")
    one.checkpoint({})
    assert [page.key for page in one.take_outdated()] == [got.key]
    one.checkpoint({})
    assert store.client.hget(totals, "outdated:w1") == b"0"
    assert not store.client.exists(outdated)


def test_a_crawl_without_a_format_is_refused(store):
    """With another number of partitions all of it would look new."""
    store.join("w1", BLOCKS).close()
    store.client.delete(store.keys.crawl("format"))
    with pytest.raises(Lost, match=r"the key .*:\{crawl\}:format.* --rebuild"):
        partitions_of(store.link(), store.keys.prefix, 0)


@pytest.mark.parametrize("moment", range(1, 12))
def test_another_worker_may_begin_the_crawl_at_any_moment_of_a_start(store, moment):
    """Keys and directories that were not there a moment ago are not lost ones."""

    def begin():
        other = store.join("w2", BLOCKS)
        other.add(entries("1", host="wiki"))
        other.checkpoint({})

    link = store.link(WatchedLink)
    link.moment, link.happens = moment, begin
    partitions_of(link, store.keys.prefix, 0)
    store.join("w1", link=link).checkpoint({})
    assert link.sent >= moment
    assert partitions_of(link, store.keys.prefix, 0) == len(BLOCKS)


@pytest.mark.parametrize("lost", ["workers", "dead", "blocks", "pulse", "token", "idle", "commits"])
def test_blocks_come_to_a_living_worker_whatever_key_is_gone(shared_redis, lost):
    client = shared_redis.client()
    name = f"crawl-{lost}"
    first, second = (
        Membership(client, name, of, lease_secs=1, partitions=6, server=lambda: (now, "run"))
        for of in ("w1", "w2")
    )
    now = 1_800_000_000_000
    first.join("it")
    assert len(first.beat().given) == 6
    if lost == "dead":
        first.expire(["w1"])
    client.delete(f"{name}:{{crawl}}:{lost}")
    now += 20_000  # its lease is over
    second.join("it")
    for _ in range(4):
        now += 400
        beat = second.beat()
        for epoch, who in beat.dead.items():
            assert second.reap(epoch, who)
    assert len(beat.held) == 6


@pytest.mark.parametrize("name", ["workers", "pulse", "token", "description"])
def test_a_key_of_the_membership_of_another_type_is_named(shared_redis, name):
    client, crawl = shared_redis.client(), f"typed-{name}"
    first, second = (
        Membership(client, crawl, of, lease_secs=1, partitions=6) for of in ("w1", "w2")
    )
    first.join("it")
    first.beat()
    assert name in KEYS
    overwrite(client, f"{crawl}:{{crawl}}:{name}")
    with pytest.raises(Lost, match=rf"{crawl}:.crawl.:{name} is a .*, expected a .* --rebuild"):
        second.join("it")


def test_totals_and_description_are_made_again(redis_server, crawler_for, caplog):
    server = redis_server()
    crawler = crawler_for(REDIS_URL=server.url, LARM_BLOCKS=8)
    keys, client = Keys("test", 8), server.client()
    worker = Membership(client, "test", "w1", lease_secs=15, partitions=8)
    link = RedisStore(client, server.folder).link()
    client.set(keys.crawl("id"), "it")
    client.hset(keys.partition("counts", 3), "wiki:80", pack_counts(Counts(stored=7)))
    join(worker, link, keys, crawler)
    assert worker.stored() == 7
    assert "it counts 0 of 7 stored pages" in caplog.text
    assert "has no description of the crawl" in caplog.text
    assert client.exists(keys.crawl("description"))


def test_orders_that_redis_has_lost_come_back(shared_redis):
    keys = Keys("orders", 8)
    orders = SharedOverrides(shared_redis.client(), keys)
    own = Overrides(2.0, {"wiki:80": HostOverride(paused=True), "blog:80": HostOverride(delay=3.0)})
    assert orders.keep_host("blog:80", HostOverride())  # taken back since
    orders.read(own)
    assert orders.give_back(own) == 2
    found = shared_redis.client().hgetall(keys.crawl("orders"))
    assert (found[b"wiki:80"], found[b"blog:80"]) == (b'{"paused": true}', b"{}")
    assert found[FACTOR.encode()] == b"2.0"
