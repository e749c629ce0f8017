"""A worker is killed before each single command of a commit; another takes over, and it comes back.

Nothing is lost and nothing doubled: either all of the batch counts, or nothing of it.
"""

from __future__ import annotations

import itertools
from contextlib import closing

import pytest

from larmspider.cluster.write_ahead_log import unpack_log
from larmspider.frontier.storage.records import Counts, FetchRecord, UrlState
from tests.support.frontier.conformance import OK, entry, urls
from tests.support.frontier.redis_store import DyingLink, Killed, RedisStore

U, Q, L, S, F, R, _ = UrlState
HOSTS = [f"h{n}" for n in range(12)]
MINE, THEIRS = range(6), range(6, 8)


@pytest.fixture
def store(shared_redis, tmp_path):
    with closing(RedisStore(shared_redis.client(), tmp_path)) as store:
        yield store


class Scene:
    """w1 owns six blocks of eight and has a batch of everything to commit; w2 owns two."""

    def __init__(self, store):
        self.store = store
        self.link = store.link(DyingLink)
        self.one = store.join("w1", MINE, link=self.link)
        self.two = store.join("w2", THEIRS)
        self.own = [e for h in HOSTS if self.one.owns((e := entry(f"http://{h}/0")).key)]
        self.foreign = [e for h in HOSTS if self.two.owns((e := entry(f"http://{h}/0")).key)]
        assert len(self.own) > 3
        assert len(self.foreign) > 1
        self.one.add([entry(f"{e.url}{n}") for e in self.own for n in range(4)])
        mail = [entry(f"{e.url}mail") for e in self.own]
        self.two.forward(mail)
        self.one.checkpoint({"log": b"1"})
        self.two.checkpoint({"log": b"1"})
        self.one.checkpoint({"log": b"1"})
        self.before = self.one.counts()
        # the batch
        self.one.add(self.one.take_inbox())
        for e in self.own:
            done, failed, late = self.one.pop(e.host, 0.0, 3)
            self.one.acknowledge([(done.key, OK), (failed.key, FetchRecord(F, reason="dns"))])
            self.one.release([(late.key, 60.0, 1)])
            self.one.put_hosts({e.host: b"after"})
        self.posted = [entry(f"{e.url}{n}") for e in self.foreign for n in range(3)]
        self.one.forward(self.posted)
        self.after = self.one.counts()
        assert self.after == Counts(
            discovered=5 * len(self.own),
            queued=3 * len(self.own),
            delayed=len(self.own),
            stored=len(self.own),
            failed=len(self.own),
        )

    def die(self, lives):
        """Whether it was killed, at this command of the commit."""
        self.one.seal()
        self.link.lives = lives
        try:
            self.one.commit({"log": b"2"})
        except Killed:
            return True
        finally:
            self.link.lives = 1_000_000
            self.one.close()
        return False

    def take_over(self):
        """By w2, as the membership has it."""
        self.store.fence("w1")
        self.two.replay("w1")
        self.store.assign(self.two, MINE)
        self.two.checkpoint({})  # brings the mail

    def check(self, committed):
        """The findings of w2, and the rest in Redis."""
        two = self.two
        assert two.counts() == two.audit() == (self.after if committed else self.before)
        arrived = two.take_inbox()
        expected = self.posted if committed else [entry(f"{e.url}mail") for e in self.own]
        assert sorted(urls(arrived)) == sorted(urls(expected))
        assert all(two.add(arrived))
        states = [two.check([entry(f"{e.url}{n}").key for n in range(4)]) for e in self.own]
        assert states == [[S, F, Q, Q] if committed else [Q] * 4] * len(self.own)
        for e in self.own:
            waits = [f"{e.url}2", f"{e.url}3", f"{e.url}mail"]
            all_of_it = waits if committed else [f"{e.url}{n}" for n in range(4)] + waits[2:]
            assert urls(two.pop(e.host, 99.0, 9)) == all_of_it
        assert two.hosts() == ({e.host: b"after" for e in self.own} if committed else {})
        for e in (*self.own, *self.posted):
            for got in two.leases():
                two.acknowledge([(got.key, OK)])
            two.pop(e.host, 99.0, 9)
        two.checkpoint({})
        assert not two.counts().queued
        assert two.counts() == two.audit()
        left = {key.split(b":")[1] for key in self.store.client.keys(f"{two.keys.prefix}:*")}
        assert left.isdisjoint({b"entries", b"requests", b"delayed", b"inbox"})

    def come_back(self, committed):
        """w1 again, with the positions of the committed batch, and its visits."""
        again = self.store.join("w1")
        try:
            assert again._positions == {"log": b"2" if committed else b"1"}
            for e in self.own:
                visit = again.visit(entry(f"{e.url}0").key)
                assert (visit and visit.etag) == (OK.etag if committed else None)
        finally:
            again.close()


def test_killed_before_each_command_of_a_commit(shared_redis, tmp_path):
    """From the first, before which nothing is committed, to the last, and after it."""
    points = 0
    for lives in itertools.count():
        scene = Scene(RedisStore(shared_redis.client(), tmp_path / str(lives)))
        try:
            killed = scene.die(lives)
            scene.take_over()
            scene.check(committed=lives > 0)
            scene.come_back(committed=lives > 0)
        finally:
            scene.two.close()
        if not killed:
            break
        points += 1
    assert points >= 10, "commit record, mail, each own block, the end"


def test_killed_before_each_command_of_a_commit_in_parts(shared_redis, tmp_path):
    """Parts count for nothing before the commit record, and are gone in the end."""
    seen = set()
    for lives in (1, 3, 1_000):
        store = RedisStore(shared_redis.client(), tmp_path / str(lives))
        scene = Scene(store)
        record = store.keys.commit("w1")
        before = store.client.hget(record, "serial")
        scene.link.part_bytes = 3_000
        try:
            scene.die(lives)
            committed = store.client.hget(record, "serial") != before
            seen.add((committed, store.client.hlen(store.keys.log("w1"))))
            scene.take_over()
            scene.check(committed=committed)
            scene.come_back(committed=committed)
            again = store.join("w1")
            again.put_note("n", b"1")
            again.checkpoint({"log": b"3"})
            assert not store.client.exists(store.keys.log("w1"))
            again.close()
        finally:
            scene.two.close()
    assert seen == {(False, 1), (False, 3), (True, 0)}


def test_no_argument_of_a_commit_is_longer_than_redis_takes(redis_server, tmp_path):
    """Its log, the visits and the mail have several megabytes; Redis takes 1 MB an argument."""
    server = redis_server(proto_max_bulk_len="1mb", client_query_buffer_limit="1mb")
    store = RedisStore(server.client(), tmp_path)
    one, two = store.join("w1", MINE), store.join("w2", THEIRS)
    pages = [entry(f"http://h{n % 12}/{n:01000}") for n in range(3_000)]
    own = [page for page in pages if one.owns(page.key)]
    foreign = [page for page in pages if two.owns(page.key)]
    one.add(own)
    one.forward(foreign)
    for host in HOSTS:
        one.acknowledge([(got.key, OK) for got in one.pop(f"{host}:80", 0.0, 100)])
    stored = one.counts().stored
    one.checkpoint({"log": b"1"})
    two.mark_inboxes()
    two.checkpoint({})
    assert len(two.take_inbox()) == len(foreign)
    one.close()
    again = store.join("w1", MINE)
    assert again.counts() == again.audit()
    assert again.counts().stored == stored > 500
    for backend in (again, two):
        backend.close()


def test_killed_after_redis_and_before_its_own_disk(store):
    """Its visits come from the commit record."""
    scene = Scene(store)

    def killed(batch):
        raise Killed

    scene.one.files.write = killed
    scene.one.seal()
    with pytest.raises(Killed):
        scene.one.commit({"log": b"2"})
    scene.one.close()
    scene.take_over()
    scene.check(committed=True)
    scene.come_back(committed=True)
    scene.two.close()


def test_it_comes_back_before_anybody_took_over(store):
    """It carries out its own last commit, and has its blocks again."""
    scene = Scene(store)
    assert scene.die(3)
    again = store.join("w1", MINE)
    try:
        assert again._positions == {"log": b"2"}
        assert again.counts() == again.audit() == scene.after
        assert not store.client.hexists(store.keys.commit("w1"), "redo")
    finally:
        again.close()
        scene.two.close()


def test_the_next_owner_carries_out_what_it_finds_even_if_nobody_did_before(store):
    """load() looks for the redo of the owner before."""
    scene = Scene(store)
    assert scene.die(2)
    store.fence("w1")
    store.assign(scene.two, MINE)
    assert scene.two.counts() == scene.two.audit() == scene.after
    scene.two.close()


def test_two_may_take_over_at_once(store):
    """Each step counts once, from any sender, in any order."""
    scene = Scene(store)
    assert scene.die(1)
    store.fence("w1")
    three = store.join("w3", link=store.link(DyingLink))
    three.link.lives = 4
    with pytest.raises(Killed):
        three.replay("w1")
    three.link.lives = 1_000
    assert scene.two.replay("w1")
    assert not three.replay("w1")
    store.assign(scene.two, MINE)
    scene.two.checkpoint({})
    scene.check(committed=True)
    for backend in (scene.two, three):
        backend.close()


def test_a_stopped_worker_that_goes_on_changes_nothing_any_more(store):
    """It had sent its commit record, was stopped, taken over from, and sends the rest now."""
    scene = Scene(store)
    scene.one.seal()
    scene.link.lives = 1
    with pytest.raises(Killed):
        scene.one.commit({"log": b"2"})
    scene.one.close()
    log = unpack_log(store.client.hget(store.keys.commit("w1"), "redo"))
    scene.take_over()
    scene.link.lives = 1_000
    record = store.keys.commit("w1")
    serial, commit_id = store.client.hmget(record, "serial", "id")
    answers = scene.link.run([step.command(record, int(serial), commit_id) for step in log])
    assert set(answers) <= {b"AGAIN", b"FENCED"}
    scene.check(committed=True)
    scene.two.close()
