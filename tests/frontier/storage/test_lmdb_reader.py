"""One environment a process: readers beside the crawl of the same process and each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import QueuedUrl, UrlState, url_key


def entry(number: int, host: str = "h:80") -> QueuedUrl:
    url = f"http://{host.partition(':')[0]}/{number}"
    return QueuedUrl(url, url, url_key(url), host)


def backend_with(path: Path, entries: list[QueuedUrl]) -> LmdbBackend:
    backend = LmdbBackend(path)
    backend.recover()
    backend.add(entries)
    backend.checkpoint({})
    return backend


def test_a_crawl_is_read_in_its_own_process(tmp_path: Path) -> None:
    """LMDB opens a directory once a process; the reader gets the crawl's environment, sees the
    last commit, and leaves it open."""
    backend = backend_with(tmp_path, [entry(1)])
    backend.add([entry(2)])
    for _ in range(2):
        with FrontierReader(tmp_path / ".") as reader:
            assert reader.state(entry(1).key) is UrlState.QUEUED
            assert reader.state(entry(2).key) is UrlState.UNKNOWN
    backend.checkpoint({})
    reader = FrontierReader(tmp_path)
    assert reader.counts().queued == 2
    backend.close()
    with pytest.raises(CrawlDirError, match="is closed"):
        reader.counts()
    reader.close()
    with FrontierReader(tmp_path) as again:
        assert again.counts().queued == 2


def test_many_threads_read_at_once(tmp_path: Path) -> None:
    """Each opens and closes for itself; the last one lets the files go."""
    backend_with(tmp_path, [entry(n, f"h{n}:80") for n in range(1200)]).close()

    def read(number: int) -> int:
        with FrontierReader(tmp_path) as reader:
            assert reader.state(entry(number, f"h{number}:80").key) is UrlState.QUEUED
            return len(reader.hosts())

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, range(100))) == {1200}
    LmdbBackend(tmp_path).close()  # nobody holds it any more


def test_a_reader_may_be_closed_twice(tmp_path: Path) -> None:
    """And takes nothing away from another one by it."""
    backend_with(tmp_path, [entry(1)]).close()
    first, second = FrontierReader(tmp_path), FrontierReader(tmp_path)
    first.close()
    first.close()
    assert second.counts().queued == 1
    second.close()
