"""A page of thousands of links: judged in parts, followed once each, logged whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider import stats
from larmspider.middlewares.filter_middleware import SLICE
from larmspider.pipelines.store import MANY_LINKS
from tests.support.crawling import FAST, crawl, records
from tests.support.servers.scripted import ScriptedServer


@pytest.mark.parametrize("links", [SLICE, 3 * SLICE, MANY_LINKS + 1])
def test_each_target_is_followed_once_and_each_link_logged(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path, links: int
) -> None:
    """Links to 5 pages, over and over."""
    body = "".join(f"<a href=/{n % 5}>{n}</a>" for n in range(links))
    server = scripted_server({"/": body, **{f"/{n}": "x" for n in range(5)}})
    ran = crawl(server.url(), tmp_path, ROBOTSTXT_OBEY="0", **FAST)
    assert f"'{stats.FOLLOW_NEW_URLS}': 6" in ran.err
    assert len(server.log) == 6
    logged = records(tmp_path / "crawl" / "links.log")
    assert [line["anchor"] for line in logged] == [str(n) for n in range(links)]
