"""Redis comes back without its last second, before each single command of a commit.

Whatever moment it goes back to, a page counts as done only where the stores of its worker have it,
and no link of a page that counts is forgotten.
"""

from __future__ import annotations

from itertools import count

import pytest

from larmspider.cluster.membership import Membership
from larmspider.frontier.storage.backend import Fenced
from larmspider.frontier.storage.records import UrlState, pack_entry
from tests.support.frontier.conformance import OK, entry, urls
from tests.support.frontier.redis_store import Killed, RedisStore, RewindingLink

U, Q, _, S, *_ = UrlState
HOSTS = [f"h{n}" for n in range(6)]
MINE, THEIRS = range(3), range(3, 4)


class Scene:
    """w1 owns three partitions of four and commits batch 1, 2 and 3: of each host a page is stored,
    with links to its own host and to one of w2's; a message has come from there before."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self.link = store.link(RewindingLink)
        self.one = store.join("w1", MINE, link=self.link)
        self.others = store.link(RewindingLink)
        self.two = store.join("w2", THEIRS, link=self.others)
        self.own = [e for h in HOSTS if self.one.owns((e := entry(f"http://{h}/")).key)]
        self.foreign = next(e for h in HOSTS if self.two.owns((e := entry(f"http://{h}/")).key))
        self.stored, self.found, self.posted = [set()], [{e.url for e in self.own}], [set()]
        self.mail = [entry(f"{e.url}mail") for e in self.own]
        self.one.add(self.own)
        self.two.forward(self.mail)
        self.two.checkpoint({})
        self.one.checkpoint({"log": b"0"})
        self.link.prefix = store.keys.prefix

    def commit(self, number: int) -> bool:
        """Fetch, and commit: whether w1 may go on."""
        one, found, stored, posted = self.one, set(), set(), set()
        one.add(one.take_inbox())
        for e in self.own:
            (got,) = one.pop(e.host, 0.0, 1)
            one.acknowledge([(got.key, OK)])
            stored.add(got.url)
            found |= {f"{e.url}{number}-{n}" for n in range(2)}
            posted.add(f"{self.foreign.url}{number}-{e.host}")
        one.add([entry(url) for url in sorted(found)])
        one.forward([entry(url) for url in sorted(posted)])
        self.stored.append(self.stored[-1] | stored)
        self.found.append(self.found[-1] | found)
        self.posted.append(self.posted[-1] | posted)
        try:
            one.checkpoint({"log": b"%d" % number})
        except (Fenced, Killed):
            return False
        return True

    def die_in(self, number: int) -> None:
        """Commit, and be killed when only the commit record is in Redis."""
        self.link.lives = 1
        assert not self.commit(number)
        self.link.lives = 1_000
        self.link.prefix = ""
        self.one.close()
        self.store.fence("w1")

    def others_go_back(self, at: int, to: int) -> None:
        """Before w2's next command but ``at`` Redis is what it was before command ``to`` of w1."""
        self.others.prefix = self.store.keys.prefix
        self.others.images = self.link.images[: to + 1]
        self.others.at, self.others.to = to + 1 + at, to

    def check(self) -> int:
        """Who begins again as w1 goes back to a commit, and in Redis is what that one left: its
        number."""
        self.link.prefix = self.others.prefix = ""
        self.one.close()
        self.store.fence("w1")
        one = self.store.join("w1", MINE)
        number = int(one._positions.get("log", b"0"))
        stored, found = self.stored[number], self.found[number]
        known = self.found[-1].union(urls(self.mail))
        states = {url: one.check([entry(url).key])[0] for url in known}
        assert {url for url, state in states.items() if state is S} == stored
        assert {url for url, state in states.items() if state is Q} >= found - stored
        assert one.counts() == one.audit()
        one.checkpoint({})
        self.two.checkpoint({})
        for owner, urls_sent in ((one, urls(self.mail)), (self.two, self.posted[number])):
            arrived = set(urls(owner.take_inbox()))
            lost = {url for url in urls_sent if owner.check([entry(url).key]) == [U]} - arrived
            assert not lost, "a link to another worker's host is forgotten"
        one.close()
        self.two.close()
        return number


def rewound(store: RedisStore, at: int, to: int) -> tuple[int, list[int]]:
    """Commits 1 to 3, where Redis goes back to what it was before command ``to`` when ``at`` is
    due: the number of the commit that counts in the end, and where each commit began."""
    scene, began = Scene(store), []
    scene.link.at, scene.link.to = at, to
    for number in (1, 2, 3):
        began.append(len(scene.link.images))
        if not scene.commit(number):
            break
    return scene.check(), began


READS = 2
"""The last commands of a commit: it is finished, and its worker asks which inboxes were filled, and
which of its pages are outdated."""


@pytest.fixture
def stores(shared_redis, tmp_path):
    """A new crawl each time."""
    client = shared_redis.client()
    return (RedisStore(client, tmp_path / str(number), blocks=4) for number in count())


@pytest.fixture(scope="module")
def began(shared_redis, tmp_path_factory):
    """The number of the first command of each commit, where nothing happens."""
    store = RedisStore(shared_redis.client(), tmp_path_factory.mktemp("still"), blocks=4)
    number, began = rewound(store, 1_000_000, 0)
    assert number == 3
    assert began[2] - began[1] >= 7, "record, messages, three partitions, log, marks"
    return began


def test_back_to_where_the_commit_began_before_each_of_its_commands(stores, began):
    """The commit begins again; once it was finished its worker is fenced, and goes back too."""
    _, second, third = began
    for at in range(second + 1, third - READS + 2):
        number, _ = rewound(next(stores), at, second)
        assert number == (3 if at < third - READS else 1), f"before command {at}"


def test_back_to_where_its_steps_began_before_each_later_one(stores, began):
    """The commit record is there, and its changes are not: it is applied again."""
    _, second, third = began
    for at in range(second + 2, third - READS + 2):
        assert rewound(next(stores), at, second + 1)[0] == 3, f"before command {at}"


@pytest.mark.acceptance
def test_back_to_before_any_command_before_any_other(stores, began):
    """Also into the commit before, whose log is applied then."""
    first, second, third = began
    for at in range(second, third + 1):
        for to in range(at):
            number, _ = rewound(next(stores), at, to)
            lost = 3 if to == first else 2 if to <= second and at >= third - READS else 0
            assert number == 3 - lost, f"before command {at}, back to before {to}"


def test_whoever_applies_the_log_of_a_dead_worker(stores, began):
    """Before each command Redis goes back to where the commit was not there, and the log that was
    read is of no commit any more; and to where it was there, and not applied."""
    second = began[1]
    for back, number in ((second, 1), (second + 1, 2)):
        for at in (1, 3, 5):
            scene = Scene(next(stores))
            assert scene.commit(1)
            scene.die_in(2)
            scene.link.prefix = scene.store.keys.prefix
            scene.link.note()
            scene.others_go_back(at, back)
            scene.two.replay("w1")
            assert scene.check() == number


@pytest.mark.parametrize("at", [1, 5, 7, 9, 15])
def test_whoever_takes_the_partitions_of_a_dead_worker(stores, began, at):
    """Its last log is applied before they are owned, or the new owner is fenced; what waits is
    never without it."""
    scene = Scene(next(stores))
    assert scene.commit(1)
    scene.die_in(2)
    scene.link.prefix = scene.store.keys.prefix
    scene.link.note()
    scene.others_go_back(at, began[1] + 1)
    scene.store.assign(scene.two, MINE)
    went_back = scene.others.at < len(scene.others.images)
    try:
        scene.two.checkpoint({"log": b"1"})
    except Fenced:
        assert went_back
        scene.two.close()
        scene.two = scene.store.join("w2", THEIRS)
    assert scene.check() == 2


def test_a_worker_whose_partitions_are_forgotten_is_fenced(stores):
    """Also one that has nothing to commit: what it believes of them may not be so any more."""
    scene = Scene(next(stores))
    assert scene.commit(1)
    store, two, others = scene.store, scene.two, scene.others
    scene.one.give_up(MINE)
    others.prefix = store.keys.prefix
    others.note()
    others.prefix = ""
    store.assign(two, MINE)
    membership = Membership(
        store.client, store.keys.prefix, "w2", lease_secs=9, partitions=store.keys.partitions
    )
    membership.epoch = two.epoch
    assert membership.idle(0, two.known) == ("", False)
    others.prefix = store.keys.prefix
    others.go_back(0)
    others.prefix = ""
    with pytest.raises(Fenced, match="come back without"):
        membership.idle(0, two.known)
    two.add([entry(f"{scene.own[0].url}more")])
    with pytest.raises(Fenced, match="took partitions that it does not know of"):
        two.checkpoint({})
    assert not membership.leave(two.known)
    scene.one.close()
    two.close()


def test_an_inbox_that_goes_back_is_read_again(stores):
    """The end of the read messages is forgotten, and another message has come: a trim removes only
    the messages that it names."""
    scene = Scene(next(stores))
    one, client, keys = scene.one, scene.store.client, scene.store.keys
    scene.link.prefix = ""
    one.take_inbox()
    one.checkpoint({"log": b"1"})
    url = scene.own[0].url
    inbox = keys.partition("inbox", keys.partition_of_key(entry(url).key))
    first, second, third = (entry(f"{url}{name}") for name in ("first", "second", "third"))
    scene.two.forward([first, second])
    scene.two.checkpoint({})
    one.checkpoint({"log": b"2"})
    assert one.add(one.take_inbox()) == [True, True]
    client.rpop(inbox)
    client.rpush(inbox, pack_entry(third))
    one.checkpoint({"log": b"3"})
    assert client.llen(inbox) == 2
    assert one.add(one.take_inbox()) == [False, True]
    one.checkpoint({"log": b"4"})
    assert client.llen(inbox) == 0
    assert one.check([e.key for e in (first, second, third)]) == [Q] * 3
    one.close()
    scene.two.close()


def test_nothing_is_free_while_redis_has_a_log_that_is_not_applied(stores):
    """It has forgotten that it was; the next owner applies it again."""
    scene = Scene(next(stores))
    store = scene.store
    assert scene.commit(1)
    scene.die_in(2)
    store.client.hset(store.keys.crawl("dead"), scene.one.epoch, "w1")
    two = Membership(store.client, store.keys.prefix, "w2", lease_secs=9, partitions=4)
    assert not two.reap(scene.one.epoch, "w1")
    assert scene.two.replay("w1")
    assert two.reap(scene.one.epoch, "w1")
    assert not store.client.exists(store.keys.crawl("dead"))
    assert scene.check() == 2


def test_a_log_of_an_earlier_version_is_applied(stores):
    """Its commit record has no id, and its steps are not counted."""
    scene = Scene(next(stores))
    assert scene.commit(1)
    scene.die_in(2)
    fields = ("id", "steps", "applied", "partitions", "taken")
    scene.store.client.hdel(scene.store.keys.commit("w1"), *fields)
    assert scene.two.replay("w1")
    assert scene.check() == 2


def test_a_log_that_cannot_be_applied_is_told_of_and_dropped(stores, caplog):
    """Another worker has the partition, which no script would allow."""
    scene = Scene(next(stores))
    scene.die_in(1)
    keys, client = scene.store.keys, scene.store.client
    partition = keys.partition_of_key(scene.own[0].key)
    client.hset(keys.partition("owner", partition), mapping={"token": 1 << 60, "worker": "w9"})
    assert scene.two.replay("w1")
    assert not client.hexists(keys.commit("w1"), "redo")
    assert "Commit 2 of worker w1 cannot be applied wholly: 1 partition of it" in caplog.text
    scene.two.close()
