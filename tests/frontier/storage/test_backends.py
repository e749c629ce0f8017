"""All backends, the model, LMDB and Redis, keep the contract."""

import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.frontier.conformance import BackendConformance, entry
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.redis_store import RedisStore
from tests.support.servers.redis import RedisServer


class MemoryStore:
    def __init__(self):
        self.disk = Disk()

    def open(self):
        return MemoryBackend(self.disk)

    def crash(self, backend):
        pass


class LmdbStore:
    def __init__(self, path, **options):
        self.path, self.options, self.opened = path, options, []

    def open(self):
        self.opened.append(LmdbBackend(self.path, **self.options))
        return self.opened[-1]

    def close(self):
        for backend in self.opened:
            backend.close()

    def crash(self, backend):
        backend.close()  # writes nothing


class TestMemory(BackendConformance):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class TestLmdb(BackendConformance):
    @pytest.fixture
    def store(self, tmp_path):
        with closing(LmdbStore(tmp_path / "frontier")) as store:
            yield store


class TestLmdbWithShortHeadsAndASmallMap(BackendConformance):
    @pytest.fixture
    def store(self, tmp_path):
        with closing(LmdbStore(tmp_path / "frontier", head_entries=1, map_bytes=64 << 10)) as store:
            yield store


class TestRedis(BackendConformance):
    @pytest.fixture
    def store(self, shared_redis, tmp_path):
        with closing(RedisStore(shared_redis.client(), tmp_path)) as store:
            yield store


class TestRedisWithOneBlockShortHeadsAndASmallMap(BackendConformance):
    @pytest.fixture
    def store(self, shared_redis, tmp_path):
        options = {"blocks": 1, "head_entries": 1, "map_bytes": 64 << 10, "batch_entries": 1}
        with closing(RedisStore(shared_redis.client(), tmp_path, **options)) as store:
            yield store


# Any sequence of operations, crashes included, gives the same from LMDB and from Redis as from
# the model.


HOSTS = ("a", "b")
NUMBERS = st.integers(0, 40)
BATCH = st.lists(st.tuples(st.sampled_from(HOSTS), NUMBERS, st.integers(0, 3)), max_size=25)
PICK = st.lists(st.integers(0, 1000), max_size=6)
FINAL = st.sampled_from([UrlState.STORED, UrlState.FAILED, UrlState.REFUSED])


class BothBackends(RuleBasedStateMachine):
    @initialize(head=st.sampled_from([1, 65_536]))
    def begin(self, head):
        self.folder = Path(tempfile.mkdtemp())
        self.head, self.disk, self.now, self.names = head, Disk(), 1000.0, 0
        self.prepare()
        self.open()

    def prepare(self):
        pass

    def open_real(self):
        return LmdbBackend(self.folder, head_entries=self.head, map_bytes=64 << 10)

    def open(self):
        self.model = MemoryBackend(self.disk)
        self.real = self.open_real()
        expected, found = self.model.recover(), self.real.recover()
        assert (dict(found.positions), found.requeued, found.fresh) == (
            dict(expected.positions),
            expected.requeued,
            expected.fresh,
        )

    def both(self, call):
        expected, found = call(self.model), call(self.real)
        assert found == expected
        return found

    def leased(self, picks):
        keys = sorted(one.key for one in self.model.leases())
        return list(dict.fromkeys(keys[pick % len(keys)] for pick in picks)) if keys else []

    @rule(batch=BATCH)
    def add(self, batch):
        new = [entry(f"http://{host}/{n}", priority=priority) for host, n, priority in batch]
        self.both(lambda backend: backend.add(new))

    @rule(host=st.sampled_from(HOSTS), limit=st.integers(1, 6))
    def pop(self, host, limit):
        self.both(lambda backend: backend.pop(f"{host}:80", self.now, limit))

    @rule(seconds=st.integers(1, 30))
    def wait(self, seconds):
        self.now += seconds

    @rule(picks=PICK, state=FINAL, due=st.sampled_from([0.0, 0.0, 1005.0, 1020.0]))
    def acknowledge(self, picks, state, due):
        visits = [
            (key, FetchRecord(state, self.now, 200, reason="r", due=due))
            for key in self.leased(picks)
        ]
        self.both(lambda backend: backend.acknowledge(visits))

    @rule(
        picks=PICK, earliest=st.sampled_from([0.0, 0.0, 1000.0, 1030.0]), attempts=st.integers(0, 3)
    )
    def release(self, picks, earliest, attempts):
        items = [(key, earliest, attempts) for key in self.leased(picks)]
        self.both(lambda backend: backend.release(items))

    @rule(batch=BATCH)
    def refuse(self, batch):
        items = [(entry(f"http://{host}/{n}"), "no") for host, n, _ in batch[:4]]
        self.both(lambda backend: backend.refuse(items))

    @rule(batch=BATCH)
    def count_links(self, batch):
        keys = [entry(f"http://{host}/{n}").key for host, n, _ in batch]
        self.both(lambda backend: backend.count_links(keys))

    @rule(batch=BATCH)
    def reprioritize(self, batch):
        changes = [(entry(f"http://{host}/{n}").key, priority) for host, n, priority in batch]
        self.both(lambda backend: backend.reprioritize(changes))

    @rule(batch=BATCH, due=st.sampled_from([0.0, 1.0, 1010.0, 1100.0]))
    def schedule(self, batch, due):
        items = [(entry(f"http://{host}/{n}").key, due + priority) for host, n, priority in batch]
        self.both(lambda backend: backend.schedule(items))

    @rule(host=st.sampled_from(HOSTS), limit=st.integers(1, 6), ahead=st.integers(-2000, 100))
    def due(self, host, limit, ahead):
        until = max(5.0, self.now + ahead)
        self.both(
            lambda backend: [
                (one, one.visit) for one in backend.due(f"{host}:80", self.now, limit, until)
            ]
        )

    @rule(batch=BATCH)
    def forget(self, batch):
        keys = [entry(f"http://{host}/{n}").key for host, n, _ in batch[:4]]
        self.both(lambda backend: backend.forget(keys))

    @rule(host=st.sampled_from(HOSTS), value=st.binary(max_size=3))
    def keep(self, host, value):
        self.both(lambda backend: backend.put_hosts({host: value}))
        self.both(lambda backend: backend.put_note(host, value))

    @rule()
    def seal(self):
        self.both(lambda backend: backend.seal())

    @rule()
    def commit_and_settle(self):
        if self.model.frozen is not None:
            self.names += 1
            positions = {f"store{self.names % 3}": str(self.names).encode()}
            self.both(lambda backend: backend.commit(positions))
            self.both(lambda backend: backend.discard())

    @rule()
    def commit_and_crash(self):
        if self.model.frozen is not None:
            self.both(lambda backend: backend.commit({}))
            self.crash()

    @rule()
    def crash(self):
        self.real.close()
        self.open()

    @invariant()
    def looks_the_same(self):
        if not hasattr(self, "model"):
            return
        keys = [entry(f"http://{host}/{n}").key for host in HOSTS for n in range(41)]
        self.both(lambda backend: backend.check(keys))
        self.both(lambda backend: [backend.entry(key) for key in keys])
        self.both(lambda backend: [backend.visit(key) for key in keys])
        for host in (*(f"{name}:80" for name in HOSTS), None):
            self.both(lambda backend, host=host: backend.counts(host))
        self.both(lambda backend: [backend.next_time(f"{host}:80") for host in HOSTS])
        self.both(lambda backend: [backend.next_due(f"{host}:80") for host in HOSTS])
        self.both(lambda backend: [backend.visiting(host) for host in (None, "a:80", "b:80")])
        self.both(lambda backend: (sorted(backend.due_times()), backend.visits(b"", 30)))
        self.both(lambda backend: (backend.audit(), backend.hosts(), backend.note("a")))
        assert self.real.counts().balanced()

    def teardown(self):
        if hasattr(self, "real"):
            self.real.checkpoint({})
            counts = self.real.counts()
            with self.real.files.read() as txn:
                in_queue = txn.stat(self.real.files.queue)["entries"]
                again = txn.stat(self.real.files.revisits)["entries"]
            assert in_queue == counts.queued + counts.leased
            assert again == sum(bool(visit.due) for visit in self.model.now.visits.values())
            self.drain()
            self.real.close()
            shutil.rmtree(self.folder)

    def drain(self):
        """At the end every queued URL comes out, once, in the model's order."""
        for host in HOSTS:
            self.both(lambda backend, host=host: backend.pop(f"{host}:80", self.now + 99, 1000))
            self.both(lambda backend, host=host: backend.due(f"{host}:80", self.now + 999, 1000))


class RedisAndModel(BothBackends):
    """The same, one worker alone on a crawl in Redis."""

    server: ClassVar[RedisServer]

    def prepare(self):
        self.client = redis.Redis.from_url(self.server.unix_url)
        options = {"head_entries": self.head, "map_bytes": 64 << 10, "blocks": 3}
        self.store = RedisStore(self.client, self.folder, **options)

    def open_real(self):
        return self.store.open()

    def teardown(self):
        super().teardown()
        if hasattr(self, "client"):
            self.client.close()


def _settings(examples):
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


BothBackends.TestCase.settings = _settings(25)
RedisAndModel.TestCase.settings = _settings(10)
TestBothBackends = BothBackends.TestCase


@pytest.mark.usefixtures("shared_redis")
class TestRedisAndModel(RedisAndModel.TestCase):
    @pytest.fixture(autouse=True)
    def server(self, shared_redis):
        RedisAndModel.server = shared_redis
