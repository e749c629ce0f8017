"""All backends, the model, LMDB and Redis, keep the contract."""

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
        self.path, self.options = path, options

    def open(self):
        return LmdbBackend(self.path, **self.options)

    def crash(self, backend):
        backend.close()  # writes nothing


class TestMemory(BackendConformance):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class TestLmdb(BackendConformance):
    @pytest.fixture
    def store(self, tmp_path):
        return LmdbStore(tmp_path / "frontier")


class TestLmdbWithShortHeadsAndASmallMap(BackendConformance):
    @pytest.fixture
    def store(self, tmp_path):
        return LmdbStore(tmp_path / "frontier", head_entries=1, map_bytes=64 << 10)


class TestRedis(BackendConformance):
    @pytest.fixture
    def store(self, shared_redis, tmp_path):
        return RedisStore(shared_redis.client(), tmp_path)


class TestRedisWithOneBlockShortHeadsAndASmallMap(BackendConformance):
    @pytest.fixture
    def store(self, shared_redis, tmp_path):
        options = {"blocks": 1, "head_entries": 1, "map_bytes": 64 << 10, "batch_entries": 1}
        return RedisStore(shared_redis.client(), tmp_path, **options)
