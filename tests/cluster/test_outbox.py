"""Links to other workers' URLs count there, each, and cost a message with a number a commit."""

from __future__ import annotations

from contextlib import closing

import pytest

from larmspider.cluster.keys import Keys
from larmspider.cluster.outbox import LinkCounts, Outbox, pack_links, unpack_links
from larmspider.cluster.redis_client import APPLY
from larmspider.frontier.storage.records import pack_entry, url_key
from larmspider.frontier.strategies import Backlinks, BreadthFirst
from tests.support.frontier.conformance import entries, urls
from tests.support.frontier.redis_store import RedisStore
from tests.support.frontier.simulation import AllowAll, Clock, build

POPULAR, SIBLINGS = "http://b/popular", [f"http://b/{n}" for n in range(4)]
KEY = url_key(POPULAR)


class Worker:
    """``backlinks`` or breadth first, over a crawl that it shares."""

    def __init__(self, store: RedisStore, name: str, *, backlinks: bool = True) -> None:
        epoch = store.client.incr(store.keys.crawl("token"))
        store.client.hset(store.keys.crawl("workers"), name, f"{epoch} 9999999999999")
        self.backend = store.open(name, epoch=epoch)
        self.frontier = build(
            self.backend,
            Clock(),
            delay=0.0,
            parse=lambda body: AllowAll(),
            strategy=Backlinks() if backlinks else BreadthFirst(),
            shared=self.backend,
        )

    def page(self, *links: str) -> None:
        """A page with these links: what is known is counted, the rest added."""
        known = self.frontier.known(links)
        new = [url for url, met in zip(links, known, strict=True) if not met]
        self.frontier.add([self.frontier.entry(url, url) for url in new])

    def checkpoint(self) -> None:
        self.frontier.checkpoint({})
        self.frontier.partitions.committed()
        self.frontier.add_forwarded(self.backend.take_inbox(), self.backend.take_links())

    def order(self) -> list[str]:
        return urls(self.backend.pop("b:80", 0.0, 9))


class Crawl:
    """w1 has the block of http://a, w2 all others."""

    def __init__(self, store: RedisStore, *, backlinks: bool = True) -> None:
        self.store = store
        self.one, self.two = (Worker(store, name, backlinks=backlinks) for name in ("w1", "w2"))
        mine = store.keys.partition_of("a:80")
        self.block = store.keys.partition_of("b:80")
        assert mine != self.block
        self.take(self.one, mine)
        self.take(self.two, *(set(range(8)) - {mine}))

    def take(self, worker: Worker, *blocks: int) -> None:
        tokens = {block: self.store.client.incr(self.store.keys.crawl("token")) for block in blocks}
        worker.frontier.partitions.enter(worker.backend.load(tokens))

    @property
    def inbox(self) -> list[bytes]:
        return self.store.client.lrange(self.store.keys.partition("inbox", self.block), 0, -1)

    def score(self, url: str) -> float | None:
        queue = self.store.keys.requests(self.block, "b:80")
        return self.store.client.zscore(queue, url_key(url))

    def close(self) -> None:
        self.one.backend.close()
        self.two.backend.close()


@pytest.fixture
def store(shared_redis, tmp_path):
    with closing(RedisStore(shared_redis.client(), tmp_path)) as store:
        yield store


@pytest.fixture
def crawl(store):
    crawl = Crawl(store)
    yield crawl
    crawl.close()


def links_to_a_foreign_page(crawl: Crawl, times: int) -> None:
    """Its siblings and it are known to their owner; then so many pages of the other link to it."""
    crawl.one.page(*SIBLINGS, POPULAR)
    crawl.one.checkpoint()
    crawl.two.checkpoint()
    crawl.two.checkpoint()
    assert not crawl.inbox
    for _ in range(times):
        crawl.one.page(POPULAR)


def test_a_page_that_other_workers_pages_link_to_goes_first(crawl):
    links_to_a_foreign_page(crawl, 5)
    crawl.one.checkpoint()
    crawl.two.checkpoint()
    assert crawl.two.backend.count_links([KEY]) == [1 + 5 + 1]
    assert crawl.two.order() == [POPULAR, *SIBLINGS]


def test_its_score_in_redis_changes_with_the_owners_commit(crawl):
    links_to_a_foreign_page(crawl, 5)
    before = crawl.score(POPULAR)
    assert before > crawl.score(SIBLINGS[-1])
    crawl.one.checkpoint()
    crawl.two.checkpoint()
    assert crawl.score(POPULAR) == before, "read, not committed"
    crawl.two.checkpoint()
    assert crawl.score(POPULAR) < crawl.score(SIBLINGS[0])
    assert not crawl.inbox


def test_many_links_are_one_message_with_a_number(crawl):
    links_to_a_foreign_page(crawl, 300)
    for _ in range(200):
        crawl.one.page(SIBLINGS[0])
    assert crawl.one.backend.pending == 2
    crawl.one.checkpoint()
    (message,) = crawl.inbox
    assert len(message) == 16 + 2 * 20
    assert unpack_links(message) == {KEY: 300, url_key(SIBLINGS[0]): 200}
    assert crawl.one.backend.pending == 0
    crawl.one.checkpoint()
    assert crawl.inbox == [message], "it is sent once"


def test_links_alone_are_no_reason_for_a_commit(crawl):
    """LARM_BATCH_URLS is of URLs that wait to be fetched."""
    crawl.one.frontier.known([])
    crawl.one.backend.forward_links(url_key(f"http://b/{n}") for n in range(1_500))
    assert crawl.one.backend.pending == 1_500
    assert not crawl.one.frontier.wants_checkpoint


def test_a_url_that_the_worker_has_forgotten_counts_when_it_is_found_again(crawl):
    """Known() asks a memory that is bounded; what was posted lately is another."""
    links_to_a_foreign_page(crawl, 0)
    again = crawl.one.frontier.entry(POPULAR, POPULAR)
    crawl.one.frontier.add([again])
    crawl.one.checkpoint()
    assert [unpack_links(message) for message in crawl.inbox] == [{KEY: 1}]


def test_an_entry_that_its_owner_knows_already_is_a_link(crawl):
    """He had found it himself."""
    crawl.two.page(*SIBLINGS, POPULAR)
    crawl.one.page(POPULAR, *SIBLINGS[:1])
    crawl.one.page(POPULAR)
    crawl.one.checkpoint()
    crawl.two.checkpoint()
    keys = [url_key(url) for url in (POPULAR, SIBLINGS[0], SIBLINGS[1])]
    assert crawl.two.backend.count_links(keys) == [4, 3, 2]
    assert crawl.two.order()[:2] == [POPULAR, SIBLINGS[0]]


def test_an_order_that_does_not_count_sends_nothing(store):
    """Not a byte, and no commit."""
    crawl = Crawl(store, backlinks=False)
    try:
        links_to_a_foreign_page(crawl, 5)
        crawl.one.frontier.add([crawl.one.frontier.entry(POPULAR, POPULAR)])
        assert crawl.one.backend.pending == 0
        commits = store.client.get(store.keys.crawl("commits"))
        crawl.one.checkpoint()
        assert not crawl.inbox
        assert store.client.get(store.keys.crawl("commits")) == commits
        crawl.two.page(POPULAR)
        assert crawl.two.order() == [*SIBLINGS, POPULAR]
    finally:
        crawl.close()


def test_links_of_a_commit_that_was_carried_out_twice_count_once(crawl):
    """Its steps are numbered."""
    links_to_a_foreign_page(crawl, 5)
    sent, link = [], crawl.one.backend.link
    run = link.run
    link.run = lambda commands: sent.append(commands) or run(commands)
    crawl.one.checkpoint()
    steps = [command for commands in sent for command in commands if APPLY.digest in command]
    assert len(steps) == 1
    run(steps)
    assert len(crawl.inbox) == 1


def test_counts_that_were_read_and_not_committed_wait_for_the_next_owner(crawl):
    """w2 dies; who takes its block reads the message again, and counts it once."""
    links_to_a_foreign_page(crawl, 5)
    crawl.one.checkpoint()
    crawl.two.checkpoint()
    assert crawl.two.backend.count_links([KEY]) == [7]
    crawl.store.fence("w2")
    crawl.take(crawl.one, crawl.block)
    crawl.one.checkpoint()
    assert crawl.one.backend.count_links([KEY]) == [7]


def test_links_to_a_block_that_leaves_are_for_its_next_owner(crawl):
    """None is dropped with it."""
    links_to_a_foreign_page(crawl, 0)
    crawl.two.frontier.partitions.leave([crawl.block])
    crawl.two.page(POPULAR)
    crawl.two.frontier.seal()
    crawl.two.page(POPULAR)
    crawl.two.frontier.commit({})
    crawl.two.frontier.discard()
    assert crawl.two.frontier.partitions.committed() == {crawl.block}
    crawl.two.page(POPULAR)
    crawl.two.checkpoint()
    crawl.take(crawl.one, crawl.block)
    crawl.one.checkpoint()
    assert crawl.one.backend.count_links([KEY]) == [1 + 3 + 1]


def test_counts_that_came_for_a_block_that_has_left_are_not_taken(crawl):
    """They stay in its inbox."""
    links_to_a_foreign_page(crawl, 5)
    crawl.one.checkpoint()
    crawl.two.frontier.partitions.leave([crawl.block])
    crawl.two.frontier.checkpoint({})
    assert crawl.two.frontier.partitions.committed() == {crawl.block}
    assert crawl.two.backend.take_inbox() == []
    assert crawl.two.backend.take_links() == {}
    crawl.take(crawl.one, crawl.block)
    crawl.one.checkpoint()
    assert crawl.one.backend.count_links([KEY]) == [7]


def test_a_commit_that_failed_keeps_what_it_counted():
    """What comes after its cut is of the next one, or of both in one."""
    counts = LinkCounts()
    counts.add([b"a" * 16, b"b" * 16, b"a" * 16])
    counts.seal()
    assert counts.of_batch() == {b"a" * 16: 2, b"b" * 16: 1}
    counts.add([b"a" * 16])
    counts.seal()  # the first was tried, and whether it is in Redis is not known
    assert len(counts) == 2
    counts.committed()
    assert counts.of_batch() == {b"a" * 16: 1}
    counts.committed()
    assert len(counts) == 0


def test_a_message_has_500_urls_and_is_no_entry():
    many = {n.to_bytes(16): n for n in range(1_001)}
    messages = list(pack_links(many))
    assert [len(message) for message in messages] == [10_016, 10_016, 36]
    assert {k: v for message in messages for k, v in unpack_links(message).items()} == many
    assert unpack_links(pack_entry(entries("1")[0])) is None


def test_urls_sealed_behind_a_commit_whose_answer_was_lost_go_with_the_next_commit():
    outbox = Outbox(Keys("intranet", 8))
    first, second = entries("1", "2", host="b")
    outbox.forward([first])
    outbox.seal()
    outbox.steps(b"posted:w1", 1)
    outbox.forward([second])
    outbox.seal()
    outbox.committed()  # as it turns out now
    (step,) = outbox.steps(b"posted:w1", 2)
    assert step.commands[0][2:] == [pack_entry(second)]
