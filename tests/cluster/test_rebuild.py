"""An empty Redis is filled from the workers' directories: nothing is lost, and nothing doubled."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest
from msgspec.structs import replace

from larmspider.cluster.loading import partitions_of
from larmspider.cluster.membership import WORKERS_NOTE
from larmspider.cluster.rebuild import Rebuild
from larmspider.errors import ConfigError, CrawlDirError, TemporaryError
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState
from larmspider.workers.rebuilding import Rebuilt
from tests.support.frontier.conformance import OK, entry, urls
from tests.support.frontier.redis_store import DyingLink, Killed, RedisStore

HOSTS = [f"h{n}" for n in range(12)]
BLOCKS = range(8)


@pytest.fixture
def store(shared_redis, tmp_path):
    shared_redis.client().flushall()
    with closing(RedisStore(shared_redis.client(), tmp_path)) as store:
        yield store


@pytest.fixture
def crawl(store):
    """w1 and w2 have half of the partitions each. On each host two URLs are stored, one failed, one
    is refused, one is late and two are queued."""
    one, two = store.join("w1", range(4)), store.join("w2", range(4, 8))
    for backend in (one, two):
        own = [h for h in HOSTS if backend.owns(entry(f"http://{h}/").key)]
        backend.add([entry(f"http://{h}/{n}", depth=n) for h in own for n in range(6)])
        for host in own:
            backend.put_hosts({f"{host}:80": host.encode()})
            backend.put_note(f"robots {host}:80", b"robots of " + host.encode())
            got = backend.pop(f"{host}:80", 0.0, 4)
            backend.acknowledge([(got[0].key, OK), (got[1].key, OK)])
            backend.acknowledge([(got[2].key, FetchRecord(UrlState.FAILED, reason="dns"))])
            backend.release([(got[3].key, 9e9, 1)])
            backend.refuse([(entry(f"http://{host}/no"), "robots.txt")])
        backend.checkpoint({"log": backend.worker.encode()})
    one.close()
    two.close()
    store.client.flushall()
    return store


def rebuild(store, *workers, link=None, complete=True):
    work = Rebuild(link or store.link(), store.keys)
    with ExitStack() as stack:
        for worker in workers:
            reader = stack.enter_context(FrontierReader(store.path / worker / "frontier"))
            work.begin(reader.shared_crawl()[0])
            for _ in work.bring(worker, reader):
                pass
    return work.complete(None) if complete else work


def check_whole(store):
    """A worker that gets all partitions finds what w1 and w2 had."""
    three = store.join("w3", BLOCKS)
    of_host = {"stored": 2, "failed": 1, "refused": 1, "queued": 3}
    assert three.counts() == three.audit()
    expected = Counts(discovered=84, delayed=12, **{n: 12 * c for n, c in of_host.items()})
    assert three.counts() == expected
    for host in HOSTS:
        assert urls(three.pop(f"{host}:80", 0.0, 9)) == [f"http://{host}/{n}" for n in (4, 5)]
        visit = three.visit(entry(f"http://{host}/1").key)
        assert (visit.etag, visit.depth, visit.shard in ("w1", "w2")) == (OK.etag, 1, True)
        assert three.note(f"robots {host}:80") == b"robots of " + host.encode()
        assert three.host_records([f"{host}:80"]) == {f"{host}:80": host.encode()}
    three.close()


@pytest.mark.parametrize("order", [("w1", "w2"), ("w2", "w1"), ("w1", "w2", "w1")])
def test_all_that_the_directories_have_is_in_redis_again(crawl, order):
    """In any order, and a directory may be brought twice."""
    report = rebuild(crawl, *order)
    assert (report.workers, report.visited, report.queued) == (["w1", "w2"], 48, 36)
    assert (report.again, report.lost) == ({}, {})
    check_whole(crawl)
    left = {key.split(b":")[1] for key in crawl.client.keys("*")}
    assert not [name for name in left if name.startswith(b"rebuild")]
    for worker in ("w1", "w2"):
        again = crawl.join(worker)
        assert again._positions == {"log": worker.encode()}
        again.close()


def test_killed_at_any_time_it_can_be_run_again(crawl):
    for lives in (0, 1, 3, 12, 20, 30, 80, 150, 220):
        link = crawl.link(DyingLink)
        link.lives = lives
        with pytest.raises(Killed):
            rebuild(crawl, "w1", "w2", link=link)
        known = crawl.client.get(crawl.keys.crawl("format"))
        assert known in (None, b"larmspider rebuild 3, 8 blocks")
    rebuild(crawl, "w1", "w2")
    check_whole(crawl)


def test_nobody_joins_before_all_is_in(crawl):
    work = rebuild(crawl, "w1", complete=False)
    assert work.brought() == ["w1"]
    for wanted in (0, 8):
        with pytest.raises(ConfigError, match=r"being rebuilt.*--complete"):
            partitions_of(crawl.link(), crawl.keys.prefix, wanted)
    rebuild(crawl, "w2")
    assert partitions_of(crawl.link(), crawl.keys.prefix, 0) == 8


def pass_on(store, one, two):
    one.give_up(BLOCKS)
    store.assign(two, BLOCKS)
    two.checkpoint({})


def lose_redis(store, *backends):
    for backend in backends:
        backend.close()
    store.client.flushall()


def test_pages_whose_directory_is_lost_are_fetched_again(store):
    """w2 has the records of pages that w1 has stored, whose disk is gone."""
    one, two = store.join("w1", BLOCKS), store.join("w2")
    one.add([entry(f"http://a/{n}", depth=n) for n in range(4)])
    one.acknowledge([(got.key, OK) for got in one.pop("a:80", 0.0, 3)])
    one.checkpoint({})
    pass_on(store, one, two)
    lose_redis(store, one, two)
    report = rebuild(store, "w2")
    assert report.again == {"w1": 3}
    three = store.join("w3", BLOCKS)
    assert three.counts() == three.audit() == Counts(discovered=4, queued=4)
    got = three.pop("a:80", 0.0, 9)
    assert sorted((one.url, one.depth) for one in got) == [(f"http://a/{n}", n) for n in range(4)]
    three.close()


def test_a_directory_that_was_not_brought_goes_back_to_nothing_and_says_so(crawl, caplog):
    rebuild(crawl, "w1")
    two = crawl.join("w2", range(4, 8))
    assert two.counts().stored == 0
    assert "has commit 0 of worker w2, its directory has commit " in caplog.text
    two.close()


def test_a_partition_of_which_no_directory_has_more_than_states_is_named(store):
    one, two = store.join("w1", BLOCKS), store.join("w2")
    one.add([entry(f"http://a/{n}") for n in range(3)])
    refused = FetchRecord(UrlState.REFUSED, reason="r")
    one.acknowledge([(got.key, refused) for got in one.pop("a:80", 0.0, 3)])
    one.checkpoint({})
    pass_on(store, one, two)
    lose_redis(store, one, two)
    assert rebuild(store, "w2").lost == {store.keys.partition_of("a:80"): 3}


def test_a_worker_of_which_no_directory_has_anything_but_the_name_is_named(store):
    """Its pages were on hosts that no other worker had or linked to."""
    one, two = store.join("w1", range(4)), store.join("w2", range(4, 8))
    one.put_note(WORKERS_NOTE, b"w1\nw2")
    one.checkpoint({})
    two.checkpoint({})
    lose_redis(store, one, two)
    report = rebuild(store, "w1")
    assert (report.absent, report.again, report.lost) == (["w2"], {}, {})
    assert "w2: directory not brought; URLs that no other" in "\n".join(
        Rebuilt({}, ["w1"], report).lines()
    )
    assert not store.client.exists(store.keys.crawl("rebuild_workers"))


@pytest.mark.parametrize("order", [("w1", "w2"), ("w2", "w1")])
def test_the_newer_of_two_records_counts_and_the_other_page_is_let_go(store, order):
    """w1 has stored a page that w2 has stored later; w1 has not heard of that."""
    one, two = store.join("w1", BLOCKS), store.join("w2")
    one.add([page := entry("http://a/1")])
    one.pop("a:80", 0.0)
    one.acknowledge([(page.key, OK)])
    one.checkpoint({})
    pass_on(store, one, two)
    two.schedule([(page.key, 1.0)])
    two.checkpoint({})
    (again,) = two.due("a:80", 2.0)
    newer = replace(OK, time=OK.time + 100, etag='"v2"')
    two.acknowledge([(again.key, newer)])
    two.checkpoint({})
    lose_redis(store, one, two)
    report = rebuild(store, *order)
    assert (report.visited, report.outdated) == (1, 1)
    one = store.join("w1", BLOCKS)
    visit = one.visit(page.key)
    assert (visit.etag, visit.shard) == ('"v2"', "w2")
    assert one.has_outdated()
    one.checkpoint({})
    let_go = [(found.url, found.time) for found in one.take_outdated()]
    assert let_go == [("http://a/1", newer.time)]
    one.close()


def test_a_redis_that_has_a_crawl_is_refused(crawl):
    """Not one in which workers have only joined: they do that when Redis comes back empty."""
    crawl.client.set(crawl.keys.crawl("id"), "new")
    crawl.client.set(crawl.keys.crawl("description"), "{}")
    rebuild(crawl, "w1", "w2")
    kept = {key: crawl.client.dump(key) for key in crawl.client.keys("*")}
    with pytest.raises(ConfigError, match=r"is not empty, it has .*\(docs/redis.md"):
        rebuild(crawl, "w1")
    assert {key: crawl.client.dump(key) for key in crawl.client.keys("*")} == kept


def test_a_directory_of_another_crawl_is_refused(crawl):
    rebuild(crawl, "w1", complete=False)
    with pytest.raises(ConfigError, match="another crawl is being rebuilt"):
        Rebuild(crawl.link(), crawl.keys).begin("0123456789abcdef")


def test_one_rebuild_writes_at_a_time(crawl):
    rebuild(crawl, "w1", complete=False)
    with pytest.raises(TemporaryError, match="another `scrapy workers --rebuild` writes"):
        Rebuild(crawl.link(), crawl.keys).refuse_beside_another()


def test_an_empty_redis_is_no_new_crawl_where_another_worker_here_has_one(store):
    """Not even for a worker that had committed nothing: w1 would be of another crawl then."""
    one = store.open("w1")
    one.recover()
    one.add([entry("http://a/")])
    one.checkpoint({})
    lose_redis(store, one)
    two = store.open("w2")
    with pytest.raises(CrawlDirError, match=r"has no crawl, .*w1/frontier holds one: .*--rebuild"):
        two.recover()
    assert not store.client.exists(store.keys.crawl("id"))
