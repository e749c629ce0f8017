"""Any sequence of operations, crashes included, gives the same from LMDB as from the model."""

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from conformance import entry
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from memory_backend import Disk, MemoryBackend

from larmspider.frontier.lmdb_backend import LmdbBackend
from larmspider.frontier.records import UrlState, Visit

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
        self.open()

    def open(self):
        self.model = MemoryBackend(self.disk)
        self.lmdb = LmdbBackend(self.folder, head_entries=self.head, map_bytes=64 << 10)
        expected, found = self.model.recover(), self.lmdb.recover()
        assert (dict(found.positions), found.requeued, found.fresh) == (
            dict(expected.positions),
            expected.requeued,
            expected.fresh,
        )

    def both(self, call):
        expected, found = call(self.model), call(self.lmdb)
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

    @rule(picks=PICK, state=FINAL)
    def acknowledge(self, picks, state):
        visits = [(key, Visit(state, self.now, 200, reason="r")) for key in self.leased(picks)]
        self.both(lambda backend: backend.acknowledge(visits))

    @rule(
        picks=PICK, earliest=st.sampled_from([0.0, 0.0, 1000.0, 1030.0]), attempts=st.integers(0, 3)
    )
    def give_back(self, picks, earliest, attempts):
        items = [(key, earliest, attempts) for key in self.leased(picks)]
        self.both(lambda backend: backend.give_back(items))

    @rule(batch=BATCH)
    def refuse(self, batch):
        items = [(entry(f"http://{host}/{n}"), "no") for host, n, _ in batch[:4]]
        self.both(lambda backend: backend.refuse(items))

    @rule(batch=BATCH)
    def count_links(self, batch):
        keys = [entry(f"http://{host}/{n}").key for host, n, _ in batch]
        self.both(lambda backend: backend.count_links(keys))

    @rule(batch=BATCH)
    def move(self, batch):
        changes = [(entry(f"http://{host}/{n}").key, priority) for host, n, priority in batch]
        self.both(lambda backend: backend.move(changes))

    @rule(host=st.sampled_from(HOSTS), value=st.binary(max_size=3))
    def keep(self, host, value):
        self.both(lambda backend: backend.put_hosts({host: value}))
        self.both(lambda backend: backend.put_note(host, value))

    @rule()
    def cut(self):
        self.both(lambda backend: backend.cut())

    @rule()
    def commit_and_settle(self):
        if self.model.frozen is not None:
            self.names += 1
            positions = {f"store{self.names % 3}": str(self.names).encode()}
            self.both(lambda backend: backend.commit(positions))
            self.both(lambda backend: backend.settle())

    @rule()
    def commit_and_crash(self):
        if self.model.frozen is not None:
            self.both(lambda backend: backend.commit({}))
            self.crash()

    @rule()
    def crash(self):
        self.lmdb.close()
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
        self.both(lambda backend: (backend.audit(), backend.hosts(), backend.note("a")))
        assert self.lmdb.counts().balanced()

    def teardown(self):
        if hasattr(self, "lmdb"):
            self.lmdb.checkpoint({})
            counts = self.lmdb.counts()
            with self.lmdb.files.read() as txn:
                in_queue = txn.stat(self.lmdb.files.queue)["entries"]
            assert in_queue == counts.queued + counts.leased
            self.drain()
            self.lmdb.close()
            shutil.rmtree(self.folder)

    def drain(self):
        """At the end every queued URL comes out, once, in the model's order."""
        for host in HOSTS:
            self.both(lambda backend, host=host: backend.pop(f"{host}:80", self.now + 99, 1000))


BothBackends.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestBothBackends = BothBackends.TestCase
