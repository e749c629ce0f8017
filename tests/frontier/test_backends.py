"""Both backends, the model and LMDB, keep the contract."""

import pytest
from conformance import BackendConformance
from memory_backend import Disk, MemoryBackend

from larmspider.frontier.lmdb_backend import LmdbBackend


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
