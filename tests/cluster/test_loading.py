"""Blocks of hosts pass from worker to worker with all that is known of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec.structs import replace

from larmspider.cluster.keys import Keys
from larmspider.cluster.loading import partitions_of
from larmspider.cluster.membership import PARTITIONS
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.redis_records import pack_outdated
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.cluster.shared_refresh import SharedRefresh
from larmspider.errors import ConfigError
from larmspider.frontier import dispatch
from larmspider.frontier.hosts import HostPace, HostState, Lease
from larmspider.frontier.links import CrawlLimits
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.part import NotesMemory
from larmspider.frontier.partition import Partitions
from larmspider.frontier.politeness import Limits
from larmspider.frontier.storage.backend import Fenced, FormatError
from larmspider.frontier.storage.records import (
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    pack_visit,
    unpack_positions,
    unpack_visit,
    url_key,
)
from larmspider.learned.deletes.delete_gate import DeleteGate
from larmspider.learned.deletes.table import Observation
from larmspider.learned.learning import Learning, LearningFrontier
from larmspider.learned.revisits.plan import ASKED, PLANNED, SIGNALLED
from larmspider.learned.revisits.revisiting import RevisitOptions
from larmspider.pipelines.compaction import DONE, PLAN, finish
from larmspider.urls.canonical import Canonicalizer
from larmspider.urls.equivalence import PATH_CASE
from larmspider.urls.host_resolver import HostResolver
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.conformance import OK, entries, entry, urls
from tests.support.frontier.redis_store import DyingLink, Killed, RedisStore
from tests.support.frontier.simulation import AllowAll, Clock, build
from tests.support.frontier.site import Answer, Handler, Site, twins
from tests.support.servers.redis import REDIS_SERVER, RedisServer

U, Q, L, S, F, R, M = UrlState
BLOCKS = range(8)


@pytest.fixture
def store(shared_redis, tmp_path):
    with closing(RedisStore(shared_redis.client(), tmp_path)) as store:
        yield store


@pytest.fixture
def workers(store):
    """Starts workers; all are closed at the end."""
    running = []

    def start(*names, **options):
        running.extend(store.join(name, **options) for name in names)
        return running[-len(names) :]

    yield start
    for worker in running:
        worker.close()


def pass_on(store, giver, taker, blocks=BLOCKS):
    giver.give_up(blocks)
    return store.assign(taker, blocks)


def test_all_that_is_known_of_a_block_comes_with_it(store, workers):
    """Queues in their order, times, attempts, links seen, states, host records, notes, counters."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add([entry(f"http://a/{n}", priority=5 - n % 3, payload=b"\0") for n in range(9)])
    one.add(entries("1", "2", host="b"))
    first, second, third, held = one.pop("a:80", 0.0, 4)
    one.acknowledge([(first.key, OK), (second.key, FetchRecord(F, reason="dns"))])
    one.release([(third.key, 50.0, 2)])
    one.hold([(held.key, 7)])
    one.refuse([(entry("http://a/no"), "robots.txt")])
    one.count_links([url_key("http://b/2")] * 3)
    one.put_hosts({"a:80": b"slow", "b:80": b"quick"})
    one.put_note("robots a:80", b"Disallow: /no")
    one.put_note("traps a:80", b"7")
    one.checkpoint({})
    counts = one.counts(), one.counts("a:80"), one.counts("b:80")
    assert sorted(pass_on(store, one, two)) == ["a:80", "b:80"]
    assert (two.counts(), two.counts("a:80"), two.counts("b:80")) == counts
    assert two.audit() == counts[0]
    known = [first.key, second.key, third.key, url_key("http://a/no"), url_key("http://b/1")]
    assert two.check(known) == [S, F, Q, R, Q]
    assert two.visit(first.key) == one.visit(first.key)
    assert (two.visit(first.key).shard, one.visit(first.key).shard) == ("w1", "")
    assert two.hosts() == two.host_records(["a:80", "b:80", "c:80"])
    assert two.hosts() == {"a:80": b"slow", "b:80": b"quick"}
    assert (two.note("robots a:80"), two.note("traps a:80")) == (b"Disallow: /no", b"7")
    assert (two.counts().held, two.unhold("a:80", 7, 9), two.counts().held) == (1, 1, 0)
    assert two.count_links([url_key("http://b/2")]) == [5]
    assert two.add([first, entry("http://a/3")]) == [False, False]
    again, *rest = two.pop("a:80", 60.0, 99)
    assert (again.key, again.attempts, again.payload) == (third.key, 2, b"\0")
    assert urls(rest) == [f"http://a/{n}" for n in (1, 4, 7, 0, 3, 6)]


def test_visits_again_are_due_with_the_next_owner(store, workers):
    """With their records; the next owner plans visits of this run alone again."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries(*"1234"))
    visits = [replace(OK, due=50.0 + n, signature=b"12345678", a=1.5) for n in range(4)]
    one.acknowledge([(e.key, v) for e, v in zip(one.pop("a:80", 0.0, 4), visits, strict=True)])
    one.checkpoint({})
    keys = [e.key for e in entries(*"1234")]
    one.schedule([(keys[0], PLANNED), (keys[1], 0.0), (keys[2], SIGNALLED)])
    one.checkpoint({})
    one.schedule([(keys[3], ASKED)])
    (leased,) = one.due("a:80", 60.0, until=SIGNALLED)
    with pytest.raises(RuntimeError, match="leased"):
        one.give_up(BLOCKS)
    one.release([(leased.key, 0.0, 0)])
    pass_on(store, one, two)
    one.checkpoint({})
    assert one.next_due("a:80") is None
    assert not list(one.due_times())
    assert [key for key, visit in one.visits(b"", 9) if visit] == []
    one.schedule([(keys[0], 1.0)])
    assert not list(one.due_times())
    assert sorted(two.due_times()) == [SIGNALLED, 50.0, 53.0]
    assert {key for key, visit in two.visits(b"", 9) if visit} == set(keys)
    found = two.due("a:80", 60.0, 9)
    assert [e.url for e in found] == ["http://a/3", "http://a/1", "http://a/4"]
    assert [(e.visit.signature, e.visit.a, e.visit.shard) for e in found[:1]] == [
        (b"12345678", 1.5, "w1")
    ]
    same, changed, gone = found
    two.acknowledge([(same.key, replace(same.visit, time=70.0, due=99.0))])
    two.acknowledge([(changed.key, replace(OK, time=70.0, due=98.0))])
    two.forget([gone.key])
    two.checkpoint({})
    pass_on(store, two, one)
    assert one.check(keys) == [S, S, S, U]
    shards = {key: one.visit(key).shard for key in keys[:3]}
    assert shards == {keys[0]: "w2", keys[1]: "", keys[2]: ""}, "who has the version that counts"
    assert [one.visit(key).stored for key in keys[:3]] == [70.0, OK.time, OK.time]
    assert sorted(one.due_times()) == [98.0, 99.0]
    assert one.counts() == one.audit() == Counts(discovered=3, stored=3)


def test_a_worker_that_comes_back_after_a_kill_has_what_was_committed_of_visits_again(store):
    one = store.join("w1", BLOCKS)
    one.add(entries("1", "2"))
    one.acknowledge([(e.key, replace(OK, due=50.0)) for e in one.pop("a:80", 0.0, 2)])
    one.checkpoint({})
    first, second = one.due("a:80", 60.0, 2)
    one.acknowledge([(first.key, replace(first.visit, due=80.0))])
    one.checkpoint({})
    one.forget([second.key])
    store.crash(one)
    store.fence("w1")
    again = store.join("w1", BLOCKS)
    assert sorted(again.due_times()) == [50.0, 80.0]
    assert again.check([first.key, second.key]) == [S, S]
    assert urls(again.due("a:80", 60.0, 9)) == [second.url]
    again.close()


def test_who_has_the_version_before_hears_that_it_counts_no_more(store, workers):
    """Also of a page that was taken out; not where it has stored the page again since."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1", "2", "3"))
    one.acknowledge([(e.key, replace(OK, due=9.0)) for e in one.pop("a:80", 0.0, 3)])
    one.checkpoint({})
    pass_on(store, one, two)
    same, changed, gone = two.due("a:80", 60.0, 3)
    two.acknowledge([(same.key, replace(same.visit, time=OK.time + 1))])
    two.acknowledge([(changed.key, replace(OK, time=OK.time + 1, due=9.0))])
    two.forget([gone.key])
    two.checkpoint({})
    one.checkpoint({})
    found = one.take_outdated()
    assert sorted((page.url, page.time) for page in found) == [
        (changed.url, OK.time + 1),
        (gone.url, inf),
    ]
    assert one.check([same.key, changed.key, gone.key]) == [S, U, U]
    one.checkpoint({})
    assert one.take_outdated() == []
    assert store.client.llen(store.keys.outdated("w1")) == 0
    pass_on(store, two, one)
    (back,) = [e for e in one.due("a:80", 60.0, 3) if e.key == changed.key]
    one.acknowledge([(back.key, replace(OK, time=OK.time + 2))])
    one.checkpoint({})
    two.checkpoint({})
    assert [page.key for page in two.take_outdated()] == [changed.key]
    store.client.rpush(store.keys.outdated("w1"), pack_outdated(found))
    one.checkpoint({})
    assert [page.key for page in one.take_outdated()] == [gone.key]


def test_a_version_that_counts_no_more_is_let_go_while_its_partition_comes(store, workers):
    """Before the commit that forgets the own record: Redis and the other worker keep theirs."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1"))
    one.acknowledge([(e.key, replace(OK, due=9.0)) for e in one.pop("a:80", 0.0, 1)])
    one.checkpoint({})
    pass_on(store, one, two)
    (page,) = two.due("a:80", 60.0)
    two.acknowledge([(page.key, replace(OK, time=OK.time + 1, due=9.0))])
    two.checkpoint({})
    one.checkpoint({})
    assert [found.key for found in one.take_outdated()] == [page.key]
    pass_on(store, two, one)
    one.checkpoint({})
    two.checkpoint({})
    assert two.take_outdated() == []
    assert one.visit(page.key).shard == "w2"
    pass_on(store, one, two)
    assert urls(two.due("a:80", 60.0)) == [page.url]


def test_killed_before_each_command_of_a_commit_all_hear_once_of_what_it_replaced(store):
    one, keys = store.join("w1", BLOCKS), [e.key for e in entries(*"123456789")]
    one.add(entries(*"123456789"))
    one.acknowledge([(e.key, replace(OK, due=9.0)) for e in one.pop("a:80", 0.0, 9)])
    one.checkpoint({})
    one.give_up(BLOCKS)
    killed = 0
    for lives in range(8):
        link = store.link(DyingLink)
        two = store.join("w2", BLOCKS, link=link)
        (page,) = two.due("a:80", 60.0)
        two.acknowledge([(page.key, replace(OK, time=OK.time + 1, due=99.0))])
        link.lives = lives
        try:
            two.checkpoint({"log": b"%d" % lives})
        except Killed:
            killed += 1
        store.crash(two)
        store.fence("w2")
    two = store.join("w2", BLOCKS)
    changed = [key for key in keys if two.visit(key).time > OK.time]
    assert 0 < len(changed) < len(keys)
    assert killed > 3
    one.checkpoint({})
    assert sorted(page.key for page in one.take_outdated()) == sorted(changed)
    assert {two.visit(key).shard for key in changed} == {""}
    one.close()
    two.close()


def test_the_budget_of_all_is_what_the_commits_have_left(store, workers):
    one, two = workers("w1", "w2")
    refresh = SharedRefresh(store.client, store.keys)
    assert refresh.refill(1_000.0, 48.0) == 48, "a day's visits at the first time"
    for backend, visits in ((one, 5), (two, 3)):
        for _ in range(visits):
            backend.count_visit()
        assert backend.uncounted_visits == visits
        backend.checkpoint({"log": b"%d" % visits})
        assert backend.uncounted_visits == 0
    assert refresh.refill(1_000.0, 48.0) == 40
    assert refresh.refill(4_600.0, 48.0) == 42
    assert refresh.refill(1_000.0, 48.0) == 42, "a clock that was set back"
    assert refresh.refill(100 * 86_400.0, 48.0) == 7 * 48
    assert refresh.began("all", 5.0) == refresh.began("all", 9.0) == 5.0
    assert refresh.began("due", 9.0) == 9.0


def test_a_worker_that_comes_after_the_end_of_its_run_begins_no_other(store):
    refresh = SharedRefresh(store.client, store.keys)
    assert refresh.began("all", 5.0, "monday") == 5.0
    assert refresh.began("all", 6.0, "by another name") == 5.0, "it goes on with the one under way"
    store.client.delete(store.keys.crawl("refresh"))  # the crawl has come to its end
    assert refresh.began("all", 9.0, "by another name") == 5.0
    assert refresh.began("https?://wiki/.*", 9.0, "by another name") == 9.0
    assert refresh.began("all", 10.0) == 10.0


def test_what_waits_and_what_the_brake_has_counted_come_with_the_host(store, workers):
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    (page,) = entries("1")
    one.add([page])
    notes = map(NotesMemory, (one, two))
    before, after = (DeleteGate(each, lambda *_: None, shared=True) for each in notes)
    assert before.why_not(page, Observation.SCOPE, "scope", 1_000.0)
    before.brake.took("a:80", 1_000.0)
    before.save()
    one.checkpoint({})
    pass_on(store, one, two)
    before.forget("a:80")
    after.enter("a:80")
    assert before.brake.lately(1_000.0) == 0
    assert after.brake.lately(1_000.0, "a:80") == after.brake.lately(1_000.0) == 1
    assert after.undecided.still_waiting("a:80", {page.key: 1_000.0}) == {page.key: 1_000.0}


def test_merged_urls_come_with_their_block_and_go_again(store, workers):
    """Their records, what their hosts have proved, and that one of them is queued again."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    waiting, gone, stays = entries("Page", "page", "PAGE")
    waiting.guess = gone.key
    one.add([waiting])
    one.merge([MergedUrl(gone, 1, waiting.key), MergedUrl(stays, 1, waiting.key)])
    one.put_note("aliases a:80", b"proven")
    one.checkpoint({})
    counts = one.counts()
    assert counts.merged == 2
    pass_on(store, one, two)
    one.checkpoint({})
    assert one.check([gone.key]) == [U]
    assert one.merged_of("a:80", 9) == []
    assert two.counts() == two.audit() == counts
    assert two.note("aliases a:80") == b"proven"
    assert two.check([waiting.key, gone.key, stays.key]) == [Q, M, M]
    assert two.merged(gone.key) == MergedUrl(gone, 1, waiting.key)
    assert two.merged_of("a:80", 9) == two.merged_into(waiting.key, 9)
    assert two.guessed([gone.key]) == [[]], "of test entries the canonical form is the URL"
    assert two.unmerge([gone.key]) == [gone]
    two.checkpoint({})
    pass_on(store, two, one)
    assert one.check([waiting.key, gone.key, stays.key]) == [Q, Q, M]
    assert one.merged_into(waiting.key, 9) == [stays.key]
    assert one.counts() == one.audit() == Counts(discovered=3, queued=2, merged=1)


def test_what_is_merged_while_a_block_leaves_goes_to_its_next_owner(store, workers):
    """It is in no commit of the owner before: the next one decides."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    first, second = entries("Page", "page")
    one.add([first])
    one.checkpoint({})
    one.merge([MergedUrl(second, 1, first.key)])
    tokens = pass_on(store, one, two)
    assert tokens
    one.checkpoint({})
    two.checkpoint({})
    two.add(two.take_inbox())
    assert two.check([first.key, second.key]) == [Q, Q]


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("dupefilter", "0 of 2 visited"),
        ("entries", "0 of 3 queued"),
        ("counts", "no counters"),
        ("owner", "no owner record"),
        ("requests", "1 of 3 places in queues"),
        ("delayed", "2 of 3 places in queues"),
        ("hosts", "0 of 1 records of hosts"),
        ("notes", "0 of 2 notes about hosts"),
        ("visits", "0 of 2 records of visited URLs"),
        ("merged", "0 of 1 merged URLs"),
        ("pages", "0 of 1 lists of spellings"),
        ("inbox", "0 of 1 messages from other workers"),
    ],
)
def test_a_partition_that_redis_has_lost_a_part_of_is_refused(store, workers, gone, said):
    """Nothing is fetched again, and what the worker has on its disk stays for a rebuild."""
    one, two = workers("w1", "w2", forms=UrlForms(Canonicalizer(), HostResolver()))
    store.assign(one, BLOCKS)
    host = next(f"h{n}" for n in range(99) if one.owns(entry(f"http://h{n}/").key))
    everything_of(one, two, host)
    (partition,) = {one.partition_of(f"{host}:80")}
    key = store.keys.partition(gone, partition)
    key += {"dupefilter": b":0", "requests": f":{host}:80".encode()}.get(gone, b"")
    assert store.client.delete(key) == 1
    kept = store.client.keys("*")
    for backend, words in ((two, said), (one, "0 of 2 visited" if gone == "owner" else said)):
        with pytest.raises(ConfigError, match=f"partition {partition} .*{words}.* --rebuild"):
            store.assign(backend, [partition])
    assert set(kept) <= {*store.client.keys("*"), store.keys.partition("owner", partition)}
    assert one.visit(entry(f"http://{host}/0").key) is not None
    assert one.entry(entry(f"http://{host}/4").key) is not None


def everything_of(owner, other, host):
    """A host with a record of each kind, by two commits: 2 URLs visited, 3 queued, 1 merged."""
    done = [replace(OK, digest=bytes(20) + b"%08d" % n) for n in range(2)]
    queued = [entry(f"http://{host}/{n}") for n in range(5)]
    owner.add(queued)
    popped = owner.pop(f"{host}:80", 0.0, 2)
    owner.acknowledge([(got.key, visit) for got, visit in zip(popped, done, strict=True)])
    owner.put_hosts({f"{host}:80": b"slow"})
    owner.put_note(f"robots {host}:80", b"Disallow: /no")
    owner.checkpoint({})
    (late,) = owner.pop(f"{host}:80", 0.0, 1)
    owner.release([(late.key, 50.0, 1)])
    owner.merge([MergedUrl(entry(f"http://{host}/5"), 1, queued[0].key)])
    owner.put_note(f"traps {host}:80", b"7")
    owner.checkpoint({})
    other.forward([entry(f"http://{host}/6")])
    other.checkpoint({})


def test_a_worker_whose_commit_alone_is_gone_keeps_its_pages(store, workers):
    """With no commit its stores would be cut back to nothing, and its pages fetched again."""
    (one,) = workers("w1")
    store.assign(one, BLOCKS)
    one.add(entries("0"))
    one.acknowledge([(got.key, OK) for got in one.pop("a:80", 0.0, 1)])
    one.checkpoint({"log": b"7"})
    one.checkpoint({"log": b"7"})
    one.close()
    store.client.delete(store.keys.commit("w1"))
    with pytest.raises(ConfigError, match=r"the last commit of worker w1.* --rebuild"):
        workers("w1")
    assert not store.client.exists(store.keys.commit("w1"))


def test_a_new_url_stands_behind_those_of_the_owner_before(store, workers):
    """Serial numbers go on where the other worker's ended."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries(*"123456789"))
    one.checkpoint({})
    pass_on(store, one, two)
    two.add(entries("new"))
    assert urls(two.pop("a:80", 0.0, 99))[-1] == "http://a/new"


def test_who_gives_up_a_block_counts_it_no_more(store, workers):
    """In memory at once, on its disk from the next commit on; what it fetched itself it keeps."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1", "2") + entries("1", host="b"))
    (done,) = one.pop("a:80", 0.0)
    one.acknowledge([(done.key, OK)])
    one.put_hosts({"a:80": b"x"})
    one.checkpoint({})
    one.put_hosts({"a:80": b"later"})
    block = one.partition_of("a:80")
    pass_on(store, one, two, [block])
    assert one.owned == set(BLOCKS) - {block}
    assert one.host_names() == ["b:80"]
    assert one.hosts() == {}
    assert one.counts() == Counts(discovered=1, queued=1) == one.audit()
    assert one.pop("a:80", 0.0) == []
    one.checkpoint({})
    with one.files.read() as txn:
        assert txn.stat(one.files.queue)["entries"] == 1
    assert one.visit(done.key).etag == OK.etag
    assert two.hosts() == {"a:80": b"x"}


def test_a_block_that_comes_back_brings_what_happened_meanwhile(store, workers):
    """There and back: own visits and the other worker's."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries(*"1234"))
    for backend, other in ((one, two), (two, one)):
        (got,) = backend.pop("a:80", 0.0)
        backend.acknowledge([(got.key, OK)])
        backend.checkpoint({})
        pass_on(store, backend, other)
    assert one.check([one_.key for one_ in entries(*"1234")]) == [S, S, Q, Q]
    assert [one.visit(url_key(f"http://a/{n}")).status for n in (1, 2)] == [200, 200]
    assert [one.visit(url_key(f"http://a/{n}")).shard for n in (1, 2)] == ["", "w2"]
    assert one.counts() == one.audit() == Counts(discovered=4, queued=2, stored=2)
    assert urls(one.pop("a:80", 0.0, 9)) == ["http://a/3", "http://a/4"]


def test_a_block_with_a_lease_cannot_be_given_up(store, workers):
    """Nor one where the end of a URL is not committed."""
    (one,) = workers("w1")
    store.assign(one, BLOCKS)
    one.add(entries("1"))
    one.checkpoint({})
    (got,) = one.pop("a:80", 0.0)
    with pytest.raises(RuntimeError, match="leased"):
        one.give_up(BLOCKS)
    one.acknowledge([(got.key, OK)])
    with pytest.raises(RuntimeError, match="not committed"):
        one.give_up(BLOCKS)


def test_what_was_added_since_the_commit_goes_to_the_next_owner_by_mail(store, workers):
    """A counted link is dropped, a new URL is not."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1", "2"))
    one.checkpoint({})
    one.add(entries("3"))
    one.count_links([url_key("http://a/1")])
    one.reprioritize([(url_key("http://a/2"), 7)])
    pass_on(store, one, two)
    one.checkpoint({})
    two.checkpoint({})
    assert urls(two.take_inbox()) == ["http://a/3"]
    assert urls(two.pop("a:80", 0.0, 9)) == ["http://a/1", "http://a/2"]


def test_posted_urls_come_to_their_owner_once(store, workers):
    """With the commits of both, and out of the inbox with the commit that adds them."""
    one, two = workers("w1", "w2")
    mine = one.keys.partition_of("a:80")
    store.assign(one, [mine])
    store.assign(two, set(BLOCKS) - {mine})
    foreign = entry("http://b/1", depth=3, from_page="http://a/")
    assert not one.owns(foreign.key)
    assert one.forward([foreign]) == 1
    assert one.forward([foreign]) == 0
    assert one.pending == 1
    two.checkpoint({})
    assert two.take_inbox() == []
    one.checkpoint({})
    assert one.pending == 0
    two.checkpoint({})
    assert two.take_inbox() == [foreign]
    assert two.take_inbox() == []
    inbox = two.keys.partition("inbox", two.partition_of("b:80"))
    two.checkpoint({})  # the one that takes it out
    assert store.client.llen(inbox) == 0
    later = entry("http://b/2")
    one.forward([later])
    one.checkpoint({})
    two.checkpoint({"s": b"1"})  # it does not remove the same number once more
    two.checkpoint({"s": b"2"})
    assert two.take_inbox() == [later]
    two.checkpoint({})
    assert store.client.llen(inbox) == 0
    assert two.take_inbox() == []


def test_mail_that_is_not_committed_stays_for_the_next_owner(store, workers):
    """Taken by w2, which crashes before its next commit."""
    one, two, three = workers("w1", "w2", "w3")
    mine = one.keys.partition_of("a:80")
    store.assign(one, [mine])
    store.assign(two, set(BLOCKS) - {mine})
    one.forward(entries("1", "2", host="b"))
    one.checkpoint({})
    two.checkpoint({})
    two.add(two.take_inbox()[:1])
    store.fence("w2")
    store.assign(three, set(BLOCKS) - {mine})
    three.checkpoint({})
    assert urls(three.take_inbox()) == ["http://b/1", "http://b/2"]


def test_many_posts_are_a_reason_for_a_commit(store, workers):
    """At LARM_BATCH_URLS ``pending`` says so."""
    (one,) = workers("w1", batch_urls=10)
    one.forward(entries(*"123456789"))
    assert one.pending == 9
    one.forward(entries("10"))
    assert one.pending == 20_000


def test_a_url_of_another_block_is_not_added(store, workers):
    """It would be lost: no worker would write it to Redis."""
    (one,) = workers("w1")
    with pytest.raises(RuntimeError, match="not this worker's"):
        one.add(entries("1"))


def test_names_of_one_host_are_in_one_block(store, workers):
    """The canonical URL decides the block; the host as found decides the queue."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    canonical = "http://wiki/1"
    aliases = [f"www{n}.wiki:80" for n in range(20)]
    found = [
        QueuedUrl(f"http://{host[:-3]}/{n}", f"{canonical}{n}", url_key(f"{canonical}{n}"), host)
        for n, host in enumerate(aliases)
    ]
    one.add(found)
    one.put_hosts(dict.fromkeys(aliases, b"r"))
    one.put_note(f"robots {aliases[0]}", b"n")
    one.checkpoint({})
    block = one.partition_of("wiki:80")
    assert {one.partition_of(host) for host in aliases} == {block}
    assert sorted(pass_on(store, one, two, [block])) == sorted(aliases)
    assert two.counts() == two.audit() == Counts(discovered=20, queued=20)
    assert sorted(two.hosts()) == sorted(aliases)
    assert two.note(f"robots {aliases[0]}") == b"n"
    assert {two.partition_of(host) for host in aliases} == {block}
    assert two.pop(aliases[3], 0.0) == [found[3]]


def test_a_worker_whose_lease_ran_out_commits_nothing(store, workers):
    """Not even if no worker has taken its blocks yet."""
    (one,) = workers("w1")
    store.assign(one, BLOCKS)
    one.add(entries("1"))
    store.fence("w1")
    with pytest.raises(Fenced, match="took over"):
        one.checkpoint({"s": b"1"})
    two = store.join("w2", BLOCKS)
    assert two.counts() == Counts()
    two.close()


def test_an_older_token_takes_no_block(store, workers):
    """An answer of the membership that comes too late."""
    one, two = workers("w1", "w2")
    late = store.client.incr(store.keys.crawl("token"))
    store.assign(two, [3])
    with pytest.raises(Fenced, match="later owner"):
        one.load({3: late})


def test_a_block_that_has_a_new_owner_takes_no_step_of_the_old_one(store, workers):
    """Even if its worker were not fenced."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1"))
    store.assign(two, [one.partition_of("a:80")])
    with pytest.raises(Fenced, match="another owner"):
        one.checkpoint({})


def test_a_worker_whose_last_commit_is_gone_from_redis_ends(store, workers):
    """A Redis that came back without its last second has lost what this worker relies on."""
    (one,) = workers("w1")
    store.assign(one, BLOCKS)
    for n in range(2):
        one.add(entries(str(n)))
        one.checkpoint({})
    store.client.hset(store.keys.commit("w1"), "serial", "1")
    one.add(entries("2"))
    with pytest.raises(Fenced, match=r"at commit 1 of worker w1, not at 2"):
        one.checkpoint({})


def test_nothing_is_written_where_nothing_has_changed(store, workers):
    """Else the workers would never see that all is at rest."""
    (one,) = workers("w1")
    store.assign(one, BLOCKS)
    one.add(entries("1", "2"))
    one.pop("a:80", 0.0)
    one.checkpoint({"s": b"1"})
    commits = store.client.get(store.keys.crawl("commits"))
    one.checkpoint({"s": b"1"})
    one.checkpoint({})
    assert store.client.get(store.keys.crawl("commits")) == commits
    one.checkpoint({"s": b"2"})
    assert store.client.get(store.keys.crawl("commits")) == commits, "a position is no work"
    packed = store.client.hget(store.keys.commit("w1"), "positions")
    assert unpack_positions(packed) == {"s": b"2"}
    one.add(entries("3"))
    one.checkpoint({"s": b"2"})
    assert store.client.get(store.keys.crawl("commits")) > commits


def test_stored_pages_of_all_workers_are_counted(store, workers):
    """For budgets."""
    one, two = workers("w1", "w2")
    store.assign(one, range(4))
    store.assign(two, range(4, 8))
    for backend in (one, two):
        own = [e for n in range(20) for e in entries("1", host=f"h{n}") if backend.owns(e.key)]
        backend.add(own)
        for got in own[:3]:
            backend.pop(got.host, 0.0)
        visits = [FetchRecord(S), FetchRecord(S), FetchRecord(F)]
        backend.acknowledge([(e.key, v) for e, v in zip(own, visits, strict=False)])
        backend.checkpoint({})
    assert store.client.hget(store.keys.crawl("totals"), "stored") == b"4"


def test_the_lease_of_a_dead_worker_waits_again_at_its_place(store, workers):
    """In Redis it never left the queue."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1", "2", "3"))
    one.pop("a:80", 0.0, 2)
    one.checkpoint({})
    store.fence("w1")
    store.assign(two, BLOCKS)
    assert two.counts() == two.audit() == Counts(discovered=3, queued=3)
    assert urls(two.pop("a:80", 0.0, 9)) == ["http://a/1", "http://a/2", "http://a/3"]


def test_another_number_of_blocks_is_refused(store, tmp_path):
    """Hosts would change their owners in mid-crawl."""
    store.join("w1").close()
    other = RedisStore(store.client, tmp_path, blocks=9)
    other.keys.prefix = store.keys.prefix
    backend = other.open("w2")
    with pytest.raises(FormatError, match=r"8 blocks.*9 blocks"):
        backend.recover()
    backend.close()


def test_a_lease_that_ends_between_two_cuts_is_in_their_commit(store, workers):
    """Where the first cut was not committed, the second is of both."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1"))
    one.checkpoint({})
    (got,) = one.pop("a:80", 0.0)
    one.seal()
    one.release([(got.key, 50.0, 3)])
    one.checkpoint({})
    pass_on(store, one, two)
    assert two.next_time("a:80") == 50.0
    assert two.entry(got.key).attempts == 3


def test_round_trips_do_not_grow_with_pages(store, workers):
    """Four a commit: record, mail, own blocks, and the end; one more where mail has come for us."""
    one, two = workers("w1", "w2")
    store.assign(one, range(6))
    store.assign(two, range(6, 8))
    all_urls = [entry(f"http://h{n % 50}/{n}") for n in range(2_000)]
    one.add([e for e in all_urls if one.owns(e.key)])
    one.forward([e for e in all_urls if not one.owns(e.key)])
    before = one.link.round_trips
    one.checkpoint({})
    assert one.link.round_trips - before == 4
    one.checkpoint({})
    assert one.link.round_trips - before == 5
    before = two.link.round_trips
    two.checkpoint({})
    assert two.link.round_trips - before == 2, "it had nothing to commit"
    assert len(two.take_inbox()) > 100


def test_a_commit_reads_the_inboxes_that_were_filled_and_no_others(store, workers):
    """Whatever their number; those that came with their partition are read once, and one that
    was not read to its end is read on."""
    one, two = workers("w1", "w2")
    store.assign(one, range(6))
    store.assign(two, range(6, 8))
    asked = []
    read = two._outbox.read_commands
    two._outbox.read_commands = lambda at: asked.extend(at) or read(at)
    two.checkpoint({})
    assert asked == [6, 7]
    asked.clear()
    two.checkpoint({})
    assert asked == []
    assert not two.has_mail()
    urls = [entry(f"http://h{n}/") for n in range(60)]
    mail = [e for e in urls if two.keys.partition_of_key(e.key) == 7]
    one.forward(mail)
    one.checkpoint({})
    assert two.has_mail()
    two.checkpoint({})
    assert asked == [7]
    assert {e.url for e in two.take_inbox()} == {e.url for e in mail}
    two.mark_inboxes()
    two.checkpoint({})
    assert asked == [7, 6, 7]


def test_an_existing_crawl_keeps_its_number_of_partitions(workers):
    """LARM_BLOCKS=0 takes it from Redis; a new crawl has 4,096."""
    (worker,) = workers("w1")
    link = worker.link
    assert partitions_of(link, worker.keys.prefix, 0) == len(BLOCKS)
    assert partitions_of(link, worker.keys.prefix, 64) == 64
    assert partitions_of(link, "another", 0) == PARTITIONS == 4096


def test_a_note_that_is_of_no_host_stays_with_its_worker(store, workers):
    """The operator's orders for it, whichever worker owns the block of the name."""
    one, two = workers("w1", "w2")
    store.assign(two, BLOCKS)
    one.put_note("orders", b"{}")
    one.checkpoint({})
    two.put_note("orders", b"{'factor': 2}")
    two.checkpoint({})
    pass_on(store, two, one)
    assert (one.note("orders"), two.note("orders")) == (b"{}", b"{'factor': 2}")
    store.crash(one)
    one = store.join("w1")
    assert one.note("orders") == b"{}"
    one.close()


@pytest.mark.parametrize(
    "visit",
    [
        FetchRecord(F, reason="dns", url="http://a/1"),
        replace(
            OK, url="http://a/b/1?\udcff", from_page="http://a/b/2", shard="w1", stored=OK.time
        ),
        replace(OK, url="http://a/1", from_page="http://b/", stored=3.25, due=5.5, a=0.5, b=9.0),
        replace(OK, url="http://a/1", from_page="http://a/c", missing_as="gone", confirmations=3),
        replace(OK, url="http://a/", last_modified="Sun, 06 Nov 1994 08:49:37 GMT", stored=1.0),
        replace(OK, url="http://a/", last_modified="Sunday, 06-Nov-94 08:49:37 GMT", stored=1.0),
        replace(OK, url="http://a/", last_modified="Mon, 06 Nov 1994 08:49:37 GMT", stored=1.0),
        replace(OK, url="http://a/", last_modified="Sun, 06 Nov 1994 08:49:97 GMT", stored=1.0),
    ],
)
def test_records_come_back_as_they_were(visit: FetchRecord) -> None:
    packed = pack_visit(visit, 7)
    found = unpack_visit(packed)
    assert found == visit
    assert (found.stored, found.shard, found.inlinks) == (visit.stored, visit.shard, 7)


def test_a_page_that_leaves_while_its_visit_is_committed_is_known_no_more(store, workers):
    """That commit has its visit, and the next one its removal."""
    one, two = workers("w1", "w2")
    store.assign(one, BLOCKS)
    one.add(entries("1"))
    (page,) = one.pop("a:80", 0.0)
    one.acknowledge([(page.key, replace(OK, due=1.0))])
    one.checkpoint({})
    one.due("a:80", 9.0, until=1.0)
    one.acknowledge([(page.key, replace(OK, time=OK.time + 5, due=9.0))])
    one.seal()
    one.forget([page.key])
    one.commit({})
    one.discard()
    one.checkpoint({})
    pass_on(store, one, two)
    assert two.check([page.key]) == [U]


def test_positions_since_a_compaction_count_until_the_next_commit(store, workers, tmp_path):
    """Redis has those from before it, which the files do not have any more."""
    (one,) = workers("w1")
    before, after = {"LinkLogPipeline": b"90", "Other": b"7"}, {"LinkLogPipeline": b"30"}
    one.checkpoint(before)
    one.close()
    (tmp_path / "w1" / DONE).mkdir()
    plan = {"positions": {"LinkLogPipeline": "30"}, "dropped": []}
    (tmp_path / "w1" / DONE / PLAN).write_text(json.dumps(plan))
    finish(tmp_path / "w1")
    for _ in range(2):
        one = store.join("w1")
        assert one.recover().positions == before | after, "until it is committed"
        one.close()
    one = store.join("w1")
    one.checkpoint({"LinkLogPipeline": b"40"})
    one.close()
    assert store.join("w1").recover().positions == {"LinkLogPipeline": b"40", "Other": b"7"}


# Two frontiers over one Redis: hosts pass from one to the other with all that is known of them.


DELAY = 2.0
KEYS = Keys("intranet", 8)
HOST = "wiki:80"
BLOCK = KEYS.partition_of(HOST)
OTHERS = [block for block in range(8) if block != BLOCK]
ELSEWHERE = next(f"h{n}" for n in range(100) if KEYS.partition_of(f"h{n}:80") != BLOCK)
FORMS = UrlForms(Canonicalizer(), HostResolver())
LIMITS = Limits(response_factor=0.0, jitter=0.0, max_failures=1, park=1000.0, max_parks=1)


class Worker:
    """A frontier of its own over the common Redis; ``epoch`` is also the token of what it takes."""

    def __init__(
        self,
        client: redis.Redis,
        folder: Path,
        clock: Clock,
        epoch: int,
        rules: Sequence[HostPace] = (),
        mode: str = "",
    ) -> None:
        name = f"w{epoch}"
        client.hset("intranet:{crawl}:workers", name, f"{epoch} 9999999999999")
        self.epoch, self.clock = epoch, clock
        self.backend = RedisBackend(
            folder / name, RedisLink(client, "redis"), KEYS, worker=name, epoch=epoch
        )
        self.frontier: LearningFrontier = build(
            self.backend,
            clock,
            delay=DELAY,
            limits=LIMITS,
            crawl_limits=CrawlLimits(max_pages=5),
            parse=lambda body: AllowAll(),
            rules=rules,
            learning=Learning(FORMS, revisits=RevisitOptions(mode)),
        )
        assert isinstance(self.frontier.partitions, Partitions)
        self.blocks = self.frontier.partitions

    def take(self, *blocks: int, new_run: bool = False) -> None:
        loaded = self.backend.load(dict.fromkeys(blocks, self.epoch))
        self.blocks.enter(loaded, new_run=blocks if new_run else ())

    def add(self, *urls: str) -> int:
        """How many were posted."""
        return self.frontier.add([self.frontier.entry(url, url) for url in urls]).forwarded

    def checkpoint(self) -> frozenset[int]:
        """Blocks that were given up with it."""
        self.frontier.checkpoint({})
        gone = self.blocks.committed()
        self.frontier.add_forwarded(self.backend.take_inbox())
        return gone

    def pop(self) -> Lease | None:
        lease = self.frontier.pop()
        if lease is not None and lease.kind is FetchKind.ROBOTS:
            self.frontier.robots_loaded(lease, b"", 0.0)
            self.clock.now += DELAY
            return self.pop()
        return lease

    def store(self, lease: Lease) -> None:
        self.frontier.answered(lease, 0.1)
        self.frontier.acknowledge(lease, FetchRecord(UrlState.STORED, self.clock.now, 200))


@pytest.fixture(scope="module")
def client() -> Iterator[redis.Redis]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer("127.32.0.1", appendonly="no") as server:
        yield server.client()


Pair = tuple[Worker, Worker, Clock]


@pytest.fixture
def pair(client: redis.Redis, tmp_path: Path) -> Iterator[Pair]:
    """The first has all blocks."""
    client.flushall()
    clock = Clock()
    first, second = (Worker(client, tmp_path, clock, epoch) for epoch in (1, 2))
    first.take(*range(8), new_run=True)
    yield first, second, clock
    first.backend.close()
    second.backend.close()


def pass_between(first: Worker, second: Worker) -> None:
    first.blocks.leave([BLOCK])
    assert first.checkpoint() == {BLOCK}
    second.take(BLOCK)


def test_links_to_hosts_of_others_arrive_there(pair: Pair) -> None:
    first, second, _ = pair
    pass_between(first, second)
    assert first.add("http://wiki/a", f"http://{ELSEWHERE}/b") == 1
    assert HOST not in first.frontier.hosts
    assert first.frontier.known(["http://wiki/a"]) == [True], "it is not posted twice"
    first.checkpoint()
    second.checkpoint()
    lease = second.pop()
    assert lease is not None
    assert lease.url == "http://wiki/a"


def test_what_is_under_way_in_a_block_comes_to_its_end_first(pair: Pair) -> None:
    first, _, clock = pair
    first.add("http://wiki/a", "http://wiki/b")
    lease = first.pop()
    assert lease is not None
    first.blocks.leave([BLOCK])
    clock.now += 10 * DELAY
    assert first.pop() is None, "nothing more is handed out"
    assert not first.blocks.idle
    assert not first.checkpoint()
    first.frontier.answered(lease, 0.1)
    assert not first.blocks.idle, "the stores do not have it yet"
    first.frontier.acknowledge(lease, FetchRecord(UrlState.STORED, clock.now, 200))
    assert first.blocks.idle == {BLOCK}
    assert first.checkpoint() == {BLOCK}
    assert HOST not in first.frontier.hosts
    assert BLOCK not in first.backend.owned


def test_what_is_purged_while_its_block_leaves_is_left_to_the_next_owner(pair: Pair) -> None:
    """The commit that gives it up is under way, and knows nothing of it."""
    first, _, _ = pair
    first.add("http://wiki/a", "http://wiki/b")
    first.checkpoint()
    first.blocks.leave([BLOCK])
    first.frontier.seal()
    assert first.frontier.control.purge_host(HOST) == 0
    first.frontier.commit({})
    first.frontier.discard()
    assert first.blocks.committed() == {BLOCK}
    assert first.frontier.control.purge_host(HOST) == 0


def test_the_next_owner_waits_a_gap_and_knows_robots_txt(pair: Pair) -> None:
    first, second, clock = pair
    first.add("http://wiki/a", "http://wiki/b")
    lease = first.pop()
    assert lease is not None
    first.store(lease)
    pass_between(first, second)
    assert second.frontier.pop() is None
    clock.now += DELAY - 0.01
    assert second.frontier.pop() is None
    clock.now += 0.01
    lease = second.frontier.pop()
    assert lease is not None
    assert lease.url == "http://wiki/b", "robots.txt came with the block"
    second.store(lease)
    assert second.checkpoint() == frozenset()
    assert second.backend.counts(HOST).stored == 2
    second.frontier.audit(deep=True)


@pytest.mark.parametrize("new_run", [False, True])
def test_a_host_that_was_given_up_stays_so_for_the_run(new_run: bool, pair: Pair) -> None:
    first, second, clock = pair
    first.add("http://wiki/a")
    for _ in range(2):
        clock.now += 5000.0
        lease = first.pop()
        assert lease is not None
        first.frontier.failed(lease, "timeout", 1.0)
    assert first.frontier.hosts[HOST].record.until == inf
    first.blocks.leave([BLOCK])
    assert first.checkpoint() == {BLOCK}
    second.take(BLOCK, new_run=new_run)
    record = second.frontier.hosts[HOST].record
    assert (record.state is HostState.PARKED) is not new_run
    assert second.frontier.finished is not new_run


def test_what_was_refused_is_queued_again_by_the_owner_of_its_host(pair: Pair) -> None:
    """The scope was widened: the worker that refused it alone knows why it did. It is fetched once,
    and what has become of it meanwhile stays so."""
    first, second, clock = pair
    first.add("http://wiki/a")
    first.checkpoint()
    entry = first.frontier.entry("http://wiki/a", "http://wiki/a")
    assert first.frontier.control.refuse([entry], "out of scope") == 1
    pass_between(first, second)
    fetched = []
    for _ in range(2):  # a replay may be run again
        assert first.frontier.control.reopen([entry]) == (0, 1)
        first.checkpoint()
        second.checkpoint()
        second.checkpoint()
        second.frontier.audit(deep=True)
        clock.now += 2 * DELAY
        if lease := second.pop():
            fetched.append(lease.url)
            second.store(lease)
            second.checkpoint()
    assert fetched == ["http://wiki/a"]
    second.blocks.leave([BLOCK])
    assert second.checkpoint() == {BLOCK}
    first.epoch = 3  # a later token
    first.take(BLOCK)
    counts = first.frontier.audit(deep=True)
    assert (counts.discovered, counts.stored, counts.refused) == (1, 1, 0)
    assert first.frontier.control.reopen([entry]) == (0, 0)


def test_visits_again_wait_for_the_hours_of_their_host(
    client: redis.Redis, pair: Pair, tmp_path: Path
) -> None:
    """With each owner of the host."""
    first, _, clock = pair
    first.add("http://wiki/a", "http://wiki/b")
    while lease := first.pop():
        first.store(lease)
        clock.now += DELAY
    first.checkpoint()
    first.backend.close()
    clock.now = midnight = 15 * 86_400.0  # virtual days begin at 0 o'clock
    hours = [HostPace("wiki", window=(22, 6))]
    third, fourth = (Worker(client, tmp_path, clock, epoch, hours, "all") for epoch in (3, 4))
    try:
        third.take(*range(8))
        clock.now = midnight + 7 * 3600
        assert [third.pop(), third.pop()] == [None, None]
        assert third.frontier.next_ready_time() == midnight + 22 * 3600
        pass_between(third, fourth)
        assert [fourth.pop(), fourth.pop()] == [None, None]
        assert (third.frontier.finished, fourth.frontier.finished) == (True, False)
        assert fourth.frontier.next_ready_time() == midnight + 22 * 3600
        clock.now = midnight + 22 * 3600
        asked = [fourth.pop()]
        clock.now = midnight + 30 * 3600
        assert fourth.pop() is None, "the other one waits for the next night"
        assert asked[0] is not None
    finally:
        third.backend.close()
        fourth.backend.close()


def test_pages_in_doubt_are_those_of_the_next_owner_of_their_host(pair: Pair) -> None:
    """The worker that has their bodies was killed, and its index cannot go back. Pages that another
    worker has stored, or none, have to leave its own index."""
    first, second, _ = pair
    first.add("http://wiki/a", "http://wiki/b")
    lease = first.pop()
    assert lease is not None
    first.store(lease)
    pass_between(first, second)
    first.clock.now += DELAY
    other = second.pop()
    assert other is not None
    second.store(other)
    names = ["http://wiki/a", "http://wiki/b", "http://wiki/c"]
    assert first.frontier.refresh.doubt(names) == ["http://wiki/b", "http://wiki/c"]
    assert first.frontier.refresh.doubt(names[:1]) == [], "it is forwarded as often as it is said"
    first.checkpoint()
    for _ in range(2):
        second.checkpoint()
    a, b = url_key("http://wiki/a"), url_key("http://wiki/b")
    assert second.frontier.refresh.known(HOST).doubtful == {a}
    assert second.frontier.refresh.doubt(names) == ["http://wiki/a", "http://wiki/c"]
    second.blocks.leave([BLOCK])
    assert second.checkpoint() == {BLOCK}
    first.epoch = 3  # a later token
    first.take(BLOCK)
    assert first.frontier.refresh.known(HOST).doubtful == {a, b}


def test_a_version_stored_before_the_doubt_arrives_is_not_stored_again(
    client: redis.Redis, pair: Pair, tmp_path: Path
) -> None:
    """A killed worker's doubts reach the next owner of the host after its visit."""
    first, _, clock = pair
    first.add("http://wiki/a", "http://wiki/b")
    while lease := first.pop():
        first.store(lease)
        clock.now += DELAY
    first.checkpoint()
    clock.now += 86_400.0
    third = Worker(client, tmp_path, clock, 3, mode="all")
    with closing(third.backend):
        pass_between(first, third)
        clock.now += DELAY
        lease = third.pop()
        assert lease is not None
        third.frontier.answered(lease, 0.1)
        newer = FetchRecord(UrlState.STORED, clock.now, 200, due=clock.now + 86_400.0)
        third.frontier.acknowledge(lease, newer)
        first.frontier.refresh.doubt(["http://wiki/a", "http://wiki/b"])
        first.checkpoint()
        for _ in range(2):
            third.checkpoint()
        other = {"http://wiki/a", "http://wiki/b"} - {lease.url}
        assert third.frontier.refresh.known(HOST).doubtful == set(map(url_key, other))


def test_links_found_while_a_block_leaves_are_not_lost(pair: Pair) -> None:
    """From a page here they go to its inbox; out of the inbox they are taken in, as long as the
    block is here, and are not handed out."""
    first, second, clock = pair
    first.add("http://wiki/a")
    lease = first.pop()
    assert lease is not None
    first.blocks.leave([BLOCK])
    assert first.add("http://wiki/b") == 1
    first.checkpoint()
    assert first.backend.counts(HOST).queued == 1
    clock.now += 10 * DELAY
    assert first.pop() is None
    first.add("http://wiki/c")
    first.store(lease)
    assert first.checkpoint() == {BLOCK}
    second.take(BLOCK)
    second.checkpoint()
    assert second.backend.counts(HOST).queued == 2
    assert first.frontier.finished


def test_the_budget_counts_what_others_have_stored(pair: Pair) -> None:
    first, second, _ = pair
    first.add(*(f"http://wiki/{n}" for n in range(9)), *(f"http://{ELSEWHERE}/{n}" for n in "ab"))
    for _ in range(3):
        lease = first.pop()
        assert lease is not None
        first.store(lease)
        first.clock.now += DELAY
    first.checkpoint()
    first.blocks.stored_in_all(3)
    assert not first.frontier.finished
    pass_between(first, second)
    first.blocks.stored_in_all(5)
    second.blocks.stored_in_all(5)
    assert first.frontier.finished
    assert second.frontier.finished
    second.blocks.stored_in_all(4)
    assert not second.frontier.finished


@pytest.fixture
def sites(store: RedisStore) -> Callable[[Handler], tuple[Site, Site]]:
    """Two workers of one site; the first has it."""

    def make(handler: Handler) -> tuple[Site, Site]:
        forms = UrlForms(Canonicalizer(), HostResolver())
        made = []
        for name, epoch in (("w1", 1), ("w2", 2)):
            store.client.hset(store.keys.crawl("workers"), name, f"{epoch} 9999999999999")
            open_ = partial(store.open, name, epoch=epoch, forms=forms)
            made.append(Site(handler, open_))
        first, second = made
        enter(first, 1)
        return first, second

    return make


def enter(site: Site, token: int) -> None:
    backend, partitions = site.frontier.backend, site.frontier.partitions
    assert isinstance(backend, RedisBackend)
    assert partitions is not None
    partitions.enter(backend.load({backend.partition_of("h:80"): token}))


def move(one: Site, other: Site, token: int) -> None:
    backend, partitions = one.frontier.backend, one.frontier.partitions
    assert isinstance(backend, RedisBackend)
    assert partitions is not None
    partitions.leave([backend.partition_of("h:80")])
    one.frontier.checkpoint({})
    assert partitions.committed()
    enter(other, token)


def test_other_spellings_of_pages_of_another_worker_are_merged(sites) -> None:
    """By a proven rule unfetched, by one on trial as if this worker had stored the page."""
    first, second = sites(lambda target: Answer(f"page {target.lower()}"))
    first.add(*twins(5), "/Docs/Other")
    first.run()
    move(first, second, 2)
    second.add("/PAGE1", "/docs/other", "/page9")
    second.run()
    assert second.fetched == ["/page9"]
    assert second.state("/PAGE1") is second.state("/docs/other") is UrlState.MERGED
    move(second, first, 3)
    first.add("/PAGE9", "/PAGE2")
    first.run()
    assert first.stored == [f"/Page{n}" for n in range(5)] + ["/Docs/Other"]
    assert first.counts.stored == 7


@pytest.mark.parametrize("how", ["missing", "redirect", "forgotten", "back"])
def test_a_page_that_is_gone_stands_for_no_other_with_the_next_owner(sites, how: str) -> None:
    """A visit again has found out; "back": the next one finds it there again."""
    first, second = sites(lambda target: Answer(f"page {target.lower()}"))
    first.add(*twins(4), "/Other")
    first.run()
    first.frontier.checkpoint({})
    if how == "forgotten":
        first.frontier.backend.forget([url_key("http://h/Other")])
        first.frontier.checkpoint({})
        first.handler = lambda target: Answer(status=301)
        first.add("/Other")
        first.run()
    else:
        changes = {"status": 301} if how == "redirect" else {"missing_as": "missing"}
        visit_again(first, "/Other", **changes)
    if how == "back":
        visit_again(first, "/Other", missing_as="")
    move(first, second, 2)
    second.add("/other")
    second.run()
    assert second.state("/other") is (UrlState.MERGED if how == "back" else UrlState.STORED)


@pytest.mark.parametrize("is_back", [False, True])
def test_a_worker_that_gets_a_host_back_knows_what_is_gone_meanwhile(sites, is_back: bool) -> None:
    """It stored the page itself, and another worker has visited it since."""
    first, second = sites(lambda target: Answer(f"page {target.lower()}"))
    first.add(*twins(4), "/Another", "/Other")
    first.run()
    move(first, second, 2)
    visit_again(second, "/Other", missing_as="missing")
    if is_back:
        visit_again(second, "/Other", missing_as="")
    move(second, first, 3)
    first.add("/other", "/another")
    first.run()
    assert first.state("/another") is UrlState.MERGED
    assert first.state("/other") is (UrlState.MERGED if is_back else UrlState.STORED)
    backend = first.frontier.backend
    assert backend.audit() == backend.counts()


def visit_again(site: Site, target: str, **changes: Any) -> None:
    backend = site.frontier.backend
    backend.schedule([(url_key(f"http://h{target}"), 1.0)])
    (entry,) = backend.due("h:80", site.clock.now)
    assert entry.visit is not None
    dispatch.finish(site.frontier, entry, replace(entry.visit, **changes))
    site.frontier.checkpoint({})


@pytest.mark.parametrize("fetches", [1, 2, 3])
def test_a_trial_goes_on_with_the_next_owner(sites, fetches: int) -> None:
    """The host moves after ``fetches`` fetches, again and again, and each page has a clock."""
    ticks = count(100)
    here, there = sites(lambda target: Answer(f"{target.lower()} at {next(ticks)} today"))
    here.add(*twins(6))
    for token in range(2, 20):
        for _ in range(fetches):
            here.step()
        move(here, there, token)
        here, there = there, here
    here.run()
    assert here.rules == ["path-case proven 3 times"]
    assert sorted(here.stored + there.stored) == sorted(f"/Page{n}" for n in range(6))
    assert here.counts.merged == here.merger.of("h:80").rule(PATH_CASE).merged == 6
