"""larmspider/crawl/api.py: a crawl for programs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from larmspider import open_crawl
from larmspider.crawl.api import Crawl
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.items import REDIRECT
from tests.support.stored_crawl import GONE, PDF, TIMES, A, B, two_pages


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_pages(tmp_path_factory.mktemp("api") / "crawl")


@pytest.fixture
def crawl(path: Path) -> Iterator[Crawl]:
    with open_crawl(path) as crawl:
        yield crawl


def test_pages_are_those_that_count(crawl: Crawl) -> None:
    """Each once, in its last version, with what the fetch knew, its bytes and its text."""
    first, second = crawl.pages()
    assert first.record() == {
        "url": A, "status": 200, "mime": "text/html", "size": 27, "title": "A",
        "fetched": datetime.fromtimestamp(TIMES[A], UTC), "depth": 0, "from_page": B,
    }  # fmt: skip
    assert first.body == b"<title>A</title><p>new text"
    assert (first.text, second.text) == ("new text", "=1+1")
    assert [link.url for link in first.read().links] == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"host": "wiki"}, [A]),
        ({"host": "*.INTRA"}, [B]),
        ({"host": "blog.intra:81"}, [B]),
        ({"host": "blog.intra:80"}, []),
        ({"since": "2025-01-01"}, [B]),
        ({"since": date(2023, 11, 14)}, [A, B]),
        ({"since": datetime.fromtimestamp(TIMES[B], UTC)}, [B]),
        ({"since": "2025-06-15T15:06:41"}, []),
    ],
)
def test_pages_by_host_and_time(crawl: Crawl, filters: dict[str, object], found: list[str]) -> None:
    assert [page.url for page in crawl.pages(**filters)] == found  # type: ignore[arg-type]


def test_a_page_by_its_url_and_links(crawl: Crawl) -> None:
    """Links of the last versions alone."""
    page = crawl.page("http://WIKI:80/a#part")
    assert page is not None
    assert page.title == "A"
    assert crawl.page(GONE) is None
    found = [(link.from_page, link.to_page, link.type, link.anchor) for link in crawl.links()]
    assert found == [(A, B, 0, "to b"), (A, PDF, REDIRECT, ""), (B, A, 0, "")]
    assert [link.from_page for link in crawl.links(host="blog.intra")] == [B]


def test_errors_are_of_larmspider(crawl: Crawl, tmp_path: Path) -> None:
    """No crawl; an invalid date, before the first page is read."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(CrawlDirError, match="is empty: no crawl has written here yet"):
        open_crawl(tmp_path / "empty")
    with pytest.raises(CrawlDirError, match="is not a crawl's directory"):
        open_crawl(tmp_path)
    with pytest.raises(ConfigError, match="since=yesterday: expected a date such as 2026-01-31"):
        crawl.pages(since="yesterday")
