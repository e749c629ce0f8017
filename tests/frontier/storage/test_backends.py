"""All backends, the model, LMDB and Redis, keep the contract."""

from contextlib import closing

import pytest

from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from tests.support.frontier.conformance import BackendConformance
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.redis_store import RedisStore


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
