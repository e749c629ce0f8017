"""The answer to a made-up URL is read as a page: a document in its reader's process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from larmspider.extraction.pages.markup_guard import MAX_BYTES
from larmspider.extraction.processes.process import Readers
from larmspider.fetch.errors import TimedOut
from larmspider.frontier.hosts import Host, HostPace, HostRecord, Lease
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.items import Page
from larmspider.scheduler.probe_fetch import MadeUpFetch, ViewProbeFetch
from tests.support.documents.corpus import SAMPLES
from tests.support.documents.hostile import xlsx_of_two_far_cells


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    with Readers() as readers:
        yield readers


def made_up(readers: Any, body: bytes, content_type: str = "", status: int = 200) -> Page | None:
    crawler = SimpleNamespace(spider=SimpleNamespace(readers=readers))
    fetch = MadeUpFetch(crawler, None, None)  # type: ignore[arg-type]
    headers = {"Content-Type": content_type} if content_type else {}
    response = Response("http://h/larmspider-0", status=status, headers=headers, body=body)
    return asyncio.run(fetch.page_of(response))


def test_a_document_that_ends_its_reader_is_an_answer_that_nobody_can_read(readers: Any) -> None:
    page = made_up(readers, xlsx_of_two_far_cells())
    assert page is not None
    assert page.unread.startswith("reader-died:")
    assert page.text == ""


def test_a_document_and_a_large_page_have_their_text(readers: Any) -> None:
    sample = SAMPLES["docx"]
    page = made_up(readers, sample.body)
    assert page is not None
    assert sample.phrase in page.text
    large = b"<p>Nothing was found" + b" " * MAX_BYTES
    page = made_up(readers, large, "text/html")
    assert page is not None
    assert (page.text, page.body) == ("Nothing was found", large)


@pytest.mark.parametrize(
    ("fetch", "key"),
    [(MadeUpFetch, "larm/refresh/made_up"), (ViewProbeFetch, "larm/frontier/view_probes")],
)
def test_a_probe_without_an_answer_is_counted_as_a_probe(
    crawler_for: Callable[..., Crawler], fetch: type[ViewProbeFetch], key: str
) -> None:
    """And as no sitemap or feed."""
    crawler, url = crawler_for(), "http://h/larmspider-0"
    own = OwnFetch(FetchKind.MADE_UP, url, lambda: None)
    lease = Lease(url, Host(HostRecord("h:80"), HostPace()), None, 0.0, None, own)
    ended: list[str] = []
    frontier: Any = SimpleNamespace(own_ended=lambda _lease, answer, **_: ended.append(answer))
    leases: Any = SimpleNamespace(end_own=lambda lease: ended.append(lease.url))
    probe = fetch(crawler, frontier, leases)
    failure: Any = Failure(TimedOut("took longer than 1 s"))
    failure.request = probe.request(lease)
    probe.failed(failure)
    probe.failed(failure)
    assert ended == ["timeout", url]
    assert crawler.stats is not None
    assert crawler.stats.get_stats() == {key: 1}


def test_what_has_no_reader_says_nothing(readers: Any) -> None:
    assert made_up(readers, b"\x89PNG\r\n\x1a\n", "image/png") is None
    assert made_up(readers, b"<p>Nothing was found", "text/html", status=404) is None
