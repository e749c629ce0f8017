"""What an edit would change, over a real crawl: seeds, keys, URLs that would leave the scope."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.crawl.worker_dirs import open_crawl
from larmspider.server.config.changes import changes
from larmspider.server.config.crawl_schema import Crawl, Host, Limits
from larmspider.server.runs.failures import failures
from tests.support.crawling import crawl
from tests.support.servers.scripted import ScriptedServer

pytestmark = pytest.mark.acceptance


def test_urls_that_would_leave_the_scope(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Stored pages and queued URLs, each counted once, with examples; nothing without a new
    scope."""
    links = "".join(f"<a href=/hr/{n}>{n}</a> <a href=/it/{n}>{n}</a>" for n in range(20))
    pages = {f"/{part}/{n}": f"<p>{part} {n}" for part in ("hr", "it") for n in range(20)}
    site = scripted_server({"/": f"<p>start <a href=/gone>x</a> {links}", **pages})
    crawl(site.url("/"), tmp_path, LARM_MAX_PAGES="15")
    directory = open_crawl(tmp_path / "crawl")
    failed = failures([("wiki", tmp_path / "crawl"), ("none", tmp_path)])
    shown = [(one.crawl, one.fetch.url, one.fetch.result) for one in failed.rows]
    assert shown == [("wiki", site.url("/gone"), "404")]
    assert failed.left_out == []
    before = Crawl(seeds=[site.url("/")], hosts=[Host(host="a", delay=1)])
    after = Crawl(seeds=[site.url("/")], exclude=[".*/it/.*"], hosts=[Host(host="a", delay=2)])
    found = changes(before, after, directory)
    assert [(one.key, one.after) for one in found.keys] == [
        ("exclude", '[".*/it/.*"]'),
        ("hosts a", '{"host": "a", "delay": 2}'),
    ]
    assert found.queued is not None
    assert found.pages is not None
    with directory.frontier() as frontier:
        assert frontier is not None
        counts = frontier.counts()
    assert (found.pages.known, found.queued.known) == (counts.stored, counts.queued)
    assert found.pages.leave + found.queued.leave == 20
    assert all("/it/" in url for url in found.pages.examples + found.queued.examples)
    assert not found.pages.estimated
    elsewhere = Crawl(seeds=["http://v.example/"])
    found = changes(before, elsewhere, directory)
    assert (found.seeds_added, found.seeds_removed) == (elsewhere.seeds, before.seeds)
    assert found.pages is not None
    assert found.pages.leave == found.pages.known
    same_scope = Crawl(seeds=before.seeds, limits=Limits(pages=1))
    assert changes(before, same_scope, directory).pages is None
    assert changes(before, after, None).queued is None
