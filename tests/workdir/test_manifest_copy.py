"""A crawl.json that a power loss or a bad disk has taken is restored from the frontier."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy.crawler import Crawler

from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.state import RunState, State
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.workdir.directory import CrawlDirectory, worker_dirs
from larmspider.workdir.manifest import FORMAT
from larmspider.workdir.manifest_copy import NOTE, packed, read_or_copy
from larmspider.workdir.restricted import restricted_hosts

CrawlerFor = Callable[..., Crawler]
DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "zeros": lambda file: file.write_bytes(bytes(300)),
    "cut": lambda file: os.truncate(file, file.stat().st_size // 2),
    "flipped": lambda file: file.write_bytes(b"\xff" + file.read_bytes()[1:]),
    "no format": lambda file: file.write_bytes(b'{"seeds": []}'),
    "a list": lambda file: file.write_bytes(b"[]"),
    "gone": lambda file: file.unlink(),
}


def checkpoint(path: Path, notes: dict[str, bytes]) -> None:
    backend = LmdbBackend(path / "frontier")
    backend.recover()
    for name, note in notes.items():
        backend.put_note(name, note)
    backend.checkpoint({"PageFilesPipeline": b"0 0 0"})
    backend.close()


@pytest.fixture
def claimed(crawler_for: CrawlerFor) -> Callable[..., CrawlDirectory]:
    """Makes a crawl that has a checkpoint, with a copy of crawl.json."""

    def make(*, copied: bool = True, **more: Any) -> CrawlDirectory:
        directory = CrawlDirectory.from_crawler(crawler_for())
        directory.claim()
        directory.manifest |= more
        directory.finish("finished")
        checkpoint(directory.path, {NOTE: packed(directory.manifest)} if copied else {})
        return directory

    return make


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_manifest_is_made_anew_from_its_copy(
    damage: str,
    claimed: Callable[..., CrawlDirectory],
    crawler_for: CrawlerFor,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The hosts with credentials among it; in one line. Commands read the copy before that."""
    earlier = claimed(credentials=["secret.example"])
    file = earlier.path / "crawl.json"
    DAMAGES[damage](file)
    assert CrawlDir(earlier.path).manifest["began"] == earlier.manifest["began"]
    assert RunState.of(earlier.path).state is State.ENDED
    caplog.clear()
    directory = CrawlDirectory.from_crawler(crawler_for())
    directory.check()
    with caplog.at_level(logging.WARNING):
        directory.claim()
    directory.finish("finished")
    (said,) = [one.getMessage() for one in caplog.records]
    assert said.startswith(str(file))
    assert said.endswith("it is restored from its copy in the frontier")
    manifest = json.loads(file.read_text())
    assert restricted_hosts([manifest]) == ("secret.example",)
    assert manifest["began"] == earlier.manifest["began"]


def test_a_crawl_that_had_committed_nothing_begins(
    crawler_for: CrawlerFor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "crawl.json").touch()
    (tmp_path / "crawl" / "store.log").write_bytes(b"")
    directory = CrawlDirectory.from_crawler(crawler_for())
    directory.check()
    directory.claim()
    directory.finish("finished")
    assert not directory.resumed
    assert "crawl.json is empty, and nothing was committed: the crawl begins" in caplog.text


def test_without_a_copy_nothing_is_guessed(
    claimed: Callable[..., CrawlDirectory], crawler_for: CrawlerFor
) -> None:
    """The operator says that it is this crawl; which hosts had credentials is unknown, so all its
    pages are restricted."""
    earlier = claimed(copied=False)
    (earlier.path / "crawl.json").write_bytes(b"")
    with pytest.raises(CrawlDirError, match=r"crawl.json is empty, .* -a resume=anyway"):
        CrawlDirectory.from_crawler(crawler_for()).check()
    directory = CrawlDirectory.from_crawler(crawler_for(LARM_RESUME="anyway"))
    directory.claim()
    directory.finish("finished")
    assert directory.resumed
    assert directory.rejudge
    manifest = json.loads((earlier.path / "crawl.json").read_text())
    assert restricted_hosts([manifest]) == ("*",)


@pytest.mark.parametrize("number", [1, 99])
def test_a_manifest_of_another_format_is_not_replaced(
    claimed: Callable[..., CrawlDirectory], number: int
) -> None:
    earlier = claimed()
    (earlier.path / "crawl.json").write_bytes(b'{"format": %d}' % number)
    with pytest.raises(CrawlDirError, match=rf"crawl.json has format {number}, .* reads {FORMAT}"):
        read_or_copy(earlier.path)


def test_a_worker_that_has_lost_its_crawl_json_is_a_worker_by_its_frontier(
    claimed: Callable[..., CrawlDirectory], tmp_path: Path
) -> None:
    """Without a copy of crawl.json there, it is any folder."""
    worker = claimed().path
    (worker / "crawl.json").unlink()
    checkpoint(tmp_path / "other/w2", {})
    assert worker_dirs(worker.parent) == [worker]
    assert worker_dirs(tmp_path / "other") == []
