"""Redis away, slow, restarted or out of memory: a commit waits and goes on, and nothing is lost."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing

import pytest

from larmspider.cluster.redis_client import RedisLink
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError
from larmspider.frontier.storage.backend import BackendError
from larmspider.frontier.storage.records import Counts, FetchRecord
from tests.support.frontier.conformance import OK, entries, entry
from tests.support.frontier.redis_store import RedisStore


def wait_until(true, what):
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, f"timeout: {what}"
        time.sleep(0.01)


@pytest.fixture
def server(redis_server):
    return redis_server()


@pytest.fixture
def store(server, tmp_path):
    with closing(RedisStore(server.client(socket_timeout=1.0), tmp_path, blocks=4)) as store:
        yield store


@pytest.fixture
def backend(store):
    backend = store.open()
    backend.recover()
    yield backend
    backend.close()


class Committing(threading.Thread):
    """A commit in a thread, as a crawl has it."""

    def __init__(self, backend, positions):
        super().__init__(daemon=True)
        self.backend, self.positions, self.error = backend, positions, None
        backend.seal()
        self.start()

    def run(self):
        try:
            self.backend.commit(self.positions)
        except LarmspiderError as error:
            self.error = error

    def end(self):
        self.join(30)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        self.backend.discard()


def check_after(store, backend, counts, positions):
    """Another start, from what Redis holds."""
    backend.close()
    again = store.open()
    assert dict(again.recover().positions) == positions
    assert again.counts() == again.audit() == counts
    again.close()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_commit_waits_until_redis_is_up_again(server, store, backend, caplog, end):
    """Killed, and restarted with its data on disk; the scripts are loaded again."""
    backend.add(entries("1", "2"))
    backend.checkpoint({"s": b"1"})
    (got,) = backend.pop("a:80", 0.0)
    backend.acknowledge([(got.key, OK)])
    backend.add(entries("3"))
    getattr(server, end)()
    with caplog.at_level(logging.WARNING):
        commit = Committing(backend, {"s": b"2"})
        wait_until(lambda: "waiting" in caplog.text, "it says that it waits")
        assert commit.is_alive()
        server.start()
        commit.end()
    said = [record.message for record in caplog.records]
    assert len([line for line in said if "waiting" in line]) == 1
    assert "No matching script" not in caplog.text
    assert "is back after" in said[-1]
    assert backend.link.waited > 0
    check_after(store, backend, Counts(discovered=3, queued=2, stored=1), {"s": b"2"})


def test_a_commit_outlasts_a_redis_that_does_not_answer(server, store, backend, caplog):
    """Connections stand, answers come too late: each step is sent again, and counts once."""
    backend.add(entries("1", "2"))
    (got,) = backend.pop("a:80", 0.0)
    backend.acknowledge([(got.key, OK)])
    server.pause()
    with caplog.at_level(logging.WARNING):
        commit = Committing(backend, {})
        wait_until(lambda: "Timeout" in caplog.text, "it says that it waits")
        server.go_on()
        commit.end()
    assert store.client.hget(store.keys.commit("w1"), "serial") == b"1"
    assert store.client.hget(store.keys.crawl("totals"), "stored") == b"1"
    check_after(store, backend, Counts(discovered=2, queued=1, stored=1), {})


@pytest.mark.acceptance
def test_killed_while_commits_follow_each_other(server, store, backend):
    """Again and again, in the middle of large commits."""
    stop, stored = threading.Event(), 0

    def kill():
        while not stop.wait(0.15):
            server.kill()
            server.start()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        for n in range(12):
            backend.add([entry(f"http://h{m % 9}/{n}/{m}") for m in range(400)])
            for m in range(9):
                for got in backend.pop(f"h{m}:80", 0.0, 20):
                    backend.acknowledge([(got.key, FetchRecord(OK.state))])
                    stored += 1
            backend.checkpoint({"n": b"%d" % n})
    finally:
        stop.set()
        killer.join(30)
    counts = Counts(discovered=4800, stored=stored, queued=4800 - stored)
    assert backend.counts() == counts
    check_after(store, backend, counts, {"n": b"11"})


def test_out_of_memory_waits_until_there_is_some(redis_server, tmp_path, caplog):
    """noeviction: Redis refuses to write, and has changed nothing."""
    server = redis_server(maxmemory_policy="noeviction")
    client = server.client()
    store = RedisStore(client, tmp_path, blocks=4)
    backend = store.open()
    backend.recover()
    backend.add(entries("1"))
    backend.checkpoint({"s": b"1"})
    client.config_set("maxmemory", client.info("memory")["used_memory"])
    backend.add([entry(f"http://a/{n:0500}") for n in range(200)])
    with caplog.at_level(logging.WARNING):
        commit = Committing(backend, {"s": b"2"})
        wait_until(lambda: "maxmemory" in caplog.text, "it says that Redis is full")
        assert commit.is_alive()
        assert client.hget(store.keys.commit("w1"), "serial") == b"1"
        client.config_set("maxmemory", 0)
        commit.end()
    check_after(store, backend, Counts(discovered=201, queued=201), {"s": b"2"})


def test_scripts_that_redis_has_forgotten_are_loaded_without_a_word(server, store, backend, caplog):
    """It was started again between two commits."""
    backend.add(entries("1"))
    backend.checkpoint({"s": b"1"})
    server.client().script_flush()
    backend.add(entries("2"))
    with caplog.at_level(logging.WARNING):
        backend.checkpoint({"s": b"2"})
    assert caplog.records == []
    check_after(store, backend, Counts(discovered=2, queued=2), {"s": b"2"})


@pytest.mark.parametrize("starting", [True, False])
def test_a_user_who_may_not_write_any_more_is_waited_for(
    server, store, backend, tmp_path, caplog, starting
):
    """But not before the crawl is under way: then it is refused."""
    admin, rules = server.client(), ("on", ">secret", "+@all")
    admin.execute_command("ACL", "SETUSER", "weak", *rules, "~nothing")
    link = RedisLink(server.client(username="weak", password="secret"), "redis")
    link.starting = starting
    if starting:
        with pytest.raises(ConfigError, match="Redis at redis refuses: "):
            link.run([("GET", "k")])
        return
    answers = []
    asking = threading.Thread(target=lambda: answers.extend(link.run([("GET", "k")])), daemon=True)
    with caplog.at_level(logging.WARNING):
        asking.start()
        wait_until(lambda: "cannot be used" in caplog.text, "it says what it may not do")
        admin.execute_command("ACL", "SETUSER", "weak", *rules, "~k")
        asking.join(30)
    assert answers == [None]


def test_full_between_the_steps_of_a_commit(redis_server, tmp_path):
    """Each step is done wholly or not at all, so that it can be done again."""
    server = redis_server(maxmemory_policy="noeviction")
    client = server.client()

    class Filling(RedisLink):
        sent = 0

        def _send(self, commands):
            answers = []
            for command in commands:
                self.sent += 1
                if self.sent in (1, 4, 8, 13, 19):
                    client.config_set("maxmemory", 1)
                    threading.Timer(0.05, client.config_set, ("maxmemory", 0)).start()
                answers += super()._send([command])
            return answers

    store = RedisStore(client, tmp_path, blocks=4)
    backend = store.open(link=store.link(Filling))
    backend.recover()
    backend.add([entry(f"http://h{n % 9}/{n}") for n in range(90)])
    done = [got for n in range(9) for got in backend.pop(f"h{n}:80", 0.0, 4)]
    backend.acknowledge([(got.key, OK) for got in done])
    backend.checkpoint({})
    assert backend.link.waited > 0
    counts = Counts(discovered=90, queued=54, stored=36)
    wait_until(lambda: client.config_get("maxmemory")["maxmemory"] == "0", "the last timer")
    check_after(store, backend, counts, {})


def test_waiting_ends_when_the_worker_is_told_to_stop(server, store, backend):
    """With an error; the next start goes on from the commit before."""
    backend.add(entries("1"))
    backend.checkpoint({"s": b"1"})
    backend.add(entries("2"))
    server.kill()
    commit = Committing(backend, {"s": b"2"})
    backend.link.stop.set()
    with pytest.raises(BackendError, match="cannot be used"):
        commit.end()
    server.start()
    check_after(store, backend, Counts(discovered=1, queued=1), {"s": b"1"})


@pytest.mark.parametrize("written", [False, True])
def test_a_commit_after_one_that_was_broken_off(server, store, backend, written):
    """Whether Redis has the first of them or not: both count."""
    backend.add(entries("1"))
    (got,) = backend.pop("a:80", 0.0)
    backend.acknowledge([(got.key, OK)])
    send, link = backend.link._send, backend.link

    def lost(commands):
        if written:
            send(commands)
        link.stop.set()
        raise ConnectionResetError("lost")

    link._send = lost
    with pytest.raises(BackendError, match="lost"):
        backend.checkpoint({"s": b"1"})
    link._send = send
    link.stop.clear()
    backend.add(entries("2"))
    backend.checkpoint({"s": b"2"})
    assert store.client.hget(store.keys.crawl("totals"), "stored") == b"1"
    check_after(store, backend, Counts(discovered=2, queued=1, stored=1), {"s": b"2"})


def test_a_redis_that_has_lost_everything_is_not_taken_for_a_new_one(server, store, backend):
    """Or the stores would go back to the very beginning."""
    backend.add(entries("1"))
    backend.checkpoint({"s": b"1"})
    backend.close()
    server.client().flushall()
    again = store.open()
    with pytest.raises(CrawlDirError, match="LARM_DIR"):
        again.recover()
    again.close()


def test_visits_that_redis_has_lost_are_forgotten_here_too(server, store, backend):
    """The stores go back to the same commit."""
    backend.add(entries("1", "2"))
    backend.checkpoint({"s": b"1"})
    image = {key: store.client.dump(key) for key in store.client.scan_iter()}
    (got,) = backend.pop("a:80", 0.0)
    backend.acknowledge([(got.key, OK)])
    backend.checkpoint({"s": b"2"})
    backend.close()
    store.client.flushall()
    for key, value in image.items():
        store.client.restore(key, 0, value)
    again = store.join("w1")  # before it owns the block again
    assert again._positions == {"s": b"1"}
    assert again.visit(got.key) is None
    store.assign(again, range(4))
    assert again.counts() == again.audit() == Counts(discovered=2, queued=2)
    again.close()


@pytest.mark.parametrize("may_ask", [True, False], ids=["config", "no config"])
@pytest.mark.parametrize(
    "limit", ["proto-max-bulk-len", "client-query-buffer-limit"], ids=["bulk", "buffer"]
)
def test_a_command_that_is_refused_for_its_size_is_no_outage(redis_server, limit, may_ask):
    """Redis ends the connection. The error says which setting to raise; nothing waits."""
    server = redis_server()
    admin = server.client()
    admin.config_set(limit, 1 << 20)
    rules = ("on", ">secret", "~*", "+@all", *([] if may_ask else ["-config"]))
    admin.execute_command("ACL", "SETUSER", "worker", *rules)
    link = RedisLink(server.client(username="worker", password="secret"), "redis")
    with pytest.raises(BackendError, match=f"3,000,000 bytes: raise its .*{limit}"):
        link.run([("SET", "k", b"x" * 3_000_000)])
    assert link.run([("GET", "k")]) == [None]


def test_a_large_command_waits_for_a_redis_that_is_away(server, store):
    """Its connection ends too."""
    link = store.link()
    server.kill()
    threading.Timer(0.3, server.start).start()
    assert link.run([("SET", "k", b"x" * 3_000_000)]) == [True]
    assert link.waited > 0


def test_an_answer_that_waiting_does_not_change_ends_the_commit(server, store, backend):
    """A foreign key in the place of ours."""
    backend.add(entries("1"))
    store.client.set(store.keys.partition("entries", store.keys.partition_of("a:80")), "no hash")
    with pytest.raises(
        BackendError, match=r"entries:\{\d\} is a string, expected a hash\): .*--rebuild"
    ):
        backend.checkpoint({})
