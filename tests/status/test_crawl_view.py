"""larmspider/status/crawl_view.py: whose pages a crawl may show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.index.version import note_restricted_of
from larmspider.index.writer import IndexWriter
from larmspider.status.crawl_view import Source


def a_crawl(directory: Path, **more: object) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    manifest = {"format": 2, "began": "b", "seeds": ["http://wiki/"], "settings": {}, **more}
    (directory / "crawl.json").write_text(json.dumps(manifest))
    return directory


def source(path: Path, **settings: str) -> Source:
    return Source(path, lambda _: Settings(settings))


@pytest.fixture
def of_workers(tmp_path: Path) -> Path:
    root = a_crawl(tmp_path / "crawl", workers={"redis": "redis://127.0.0.1:1/0"})
    a_crawl(root / "w1")
    a_crawl(root / "w2", credentials=["hr"])
    return root


def test_one_worker_makes_a_crawl_private(of_workers: Path) -> None:
    """Though crawl.json of all does not know the host; so does one that cannot be read."""
    assert source(of_workers).is_private
    assert source(of_workers).restricted == ("file://", "hr")
    (of_workers / "w2" / "crawl.json").write_text("{")
    assert source(of_workers).is_private
    a_crawl(of_workers / "w2")
    assert not source(of_workers).is_private


def test_a_crawl_with_access_lists(tmp_path: Path) -> None:
    """Rules count before the first page is indexed, and the lists of an index whatever the rules
    are now; of several crawls those of one."""
    crawl, other = a_crawl(tmp_path / "crawl"), a_crawl(tmp_path / "other")
    assert not source(crawl).has_access_lists
    for name, value in (
        ("LARM_ACCESS_RULES", {"/hr/*": ["group:hr"]}),
        ("LARM_ACCESS_SENT", {"cms.example": "X-Read-Access"}),
    ):
        assert source(crawl, **{name: json.dumps(value)}).has_access_lists
    with IndexWriter(crawl / "index") as index:
        index.commit()
        assert not source(crawl).has_access_lists
        index.access.give("http://wiki/hr/a", Rights(AccessList.simple(["group:hr"])))
        index.commit()
    assert source(crawl).has_access_lists
    both = Source(other, lambda _: Settings(), name="a", others=[source(crawl)])
    assert both.has_access_lists
    assert not both.is_private


def test_a_crawl_is_private_by_its_sites_file_alone(tmp_path: Path) -> None:
    """An operator adds a host to it, which counts at once."""
    crawl = a_crawl(tmp_path / "crawl")
    sites = tmp_path / "sites.toml"
    sites.write_text("")
    seen = source(crawl, LARM_SITES_FILE=str(sites))
    assert not seen.is_private
    sites.write_text('[[site]]\nhosts = "hr"\ncookies = { a = "b" }\n')
    assert seen.is_private
    assert seen.restricted == ("file://", "hr")
    sites.write_text("[[site]")
    assert seen.restricted == ("*", "file://")


def test_a_crawl_without_crawl_json_is_private(tmp_path: Path) -> None:
    """Where there are pages; an empty directory is none."""
    assert not source(tmp_path).is_private
    (tmp_path / "store.log").touch()
    assert source(tmp_path).is_private


def test_an_index_from_before_a_restriction_is_named(tmp_path: Path) -> None:
    crawl = a_crawl(tmp_path / "crawl", credentials=["hr"])
    IndexWriter(crawl / "index").close()
    (said,) = source(crawl).stale_link_texts
    assert said.startswith("crawl: readers who may not see all pages")
    note_restricted_of(crawl / "index", ["file://", "hr"])
    assert source(crawl).stale_link_texts == []
