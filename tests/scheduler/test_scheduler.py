"""larmspider/scheduler/scheduler.py: Requests become entries; leases stay with their Request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler

from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.requests import LEASE, page_request
from larmspider.scheduler.leases import lease_of
from larmspider.scheduler.scheduler import FrontierScheduler


@pytest.fixture
def scheduler(
    crawler_for: Callable[..., Crawler], monkeypatch: pytest.MonkeyPatch
) -> Iterator[FrontierScheduler]:
    no_loop_runs: Callable[..., None] = lambda *_: None  # noqa: E731
    monkeypatch.setattr("larmspider.scheduler.probes.call_later", no_loop_runs)
    settings = {"ROBOTSTXT_OBEY": False, "LARM_SITEMAPS": False, "DOWNLOAD_DELAY": 0}
    crawler = crawler_for(**settings, LARM_DELAY_RESPONSE_FACTOR=0)
    crawler.request_fingerprinter = None
    scheduler = FrontierScheduler(crawler)
    assert crawler.spider is not None
    scheduler.open(crawler.spider)
    yield scheduler
    asyncio.run(scheduler.close_async("finished"))


def fetched(scheduler: FrontierScheduler, url: str, **options: Any) -> Request:
    """A Request that was queued and handed out."""
    assert scheduler.enqueue_request(page_request(scheduler.crawler.spider, url, **options))
    request = scheduler.next_request()
    assert request is not None
    return request


def test_a_request_is_known_by_its_exact_form(scheduler: FrontierScheduler) -> None:
    """Also where no filter has made it: a spider without our filters has the frontier's order."""
    assert scheduler.enqueue_request(Request("http://h/%61/./b/.."))
    assert not scheduler.enqueue_request(Request("http://H:80/a/#x"))
    assert scheduler.frontier.known(["http://h/a/"]) == [True]


def test_inherited_meta_is_about_another_page(scheduler: FrontierScheduler) -> None:
    """Request(url, meta=response.meta) is a new page, not the old one once more."""
    first = fetched(
        scheduler,
        "http://127.0.0.1/a",
        from_page="http://127.0.0.1/",
        link_type=2,
        redirects=3,
        depth=2,
    )
    child = Request("http://127.0.0.1/b", meta=first.meta)
    assert scheduler.enqueue_request(child)
    assert not {"from_page", "link_type", "redirects", "dont_redirect"} & child.meta.keys()
    entry = scheduler.frontier.backend.entry(url_key("http://127.0.0.1/b"))
    assert entry is not None
    assert (entry.normalized, entry.from_page, entry.redirects) == ("http://127.0.0.1/b", "", 0)
    assert entry.depth == 2, "the depth counts on"


def test_a_spiders_own_meta_of_our_names_is_no_error(scheduler: FrontierScheduler) -> None:
    """The names are common words; only what has our type is taken for ours."""
    meta = {"depth": "deep", "from_page": 7, "link_type": None, "redirects": -1}
    assert scheduler.enqueue_request(Request("http://127.0.0.1/a", meta=meta))
    request = scheduler.next_request()
    assert request is not None
    assert {name: request.meta[name] for name in meta} == meta


@pytest.mark.parametrize("link_type", [256, 65_535, True])
def test_a_link_type_of_a_spiders_own_is_no_error(
    scheduler: FrontierScheduler, link_type: int
) -> None:
    """One byte is kept of ours."""
    request = Request("http://127.0.0.1/a", meta={"link_type": link_type})
    assert scheduler.enqueue_request(request)
    handed_out = scheduler.next_request()
    assert handed_out is not None
    assert handed_out.meta["link_type"] == link_type


def test_a_priority_counts_among_requests_of_one_depth(scheduler: FrontierScheduler) -> None:
    """As with Scrapy's scheduler: the higher goes first, those below 0 go last."""
    for priority in (-1, 0, 1, 100, 7):
        assert scheduler.enqueue_request(Request(f"http://127.0.0.1/{priority}", priority=priority))
    order = []
    while (request := scheduler.next_request()) is not None:
        order.append(request.priority)
        scheduler.leases.acknowledge(request, FetchRecord(UrlState.STORED, time=1.0, status=200))
    assert order == [100, 7, 1, 0, -1]


def test_whatever_goes_wrong_in_the_last_checkpoint_the_directory_is_let_go(
    crawler_for: Callable[..., Crawler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is said that the crawl is broken: the same command continues from the one before."""
    crawler = crawler_for(ROBOTSTXT_OBEY=False)
    for _ in range(2):
        scheduler = FrontierScheduler(crawler)
        assert crawler.spider is not None
        scheduler.open(crawler.spider)
        scheduler.spider_opened()
        monkeypatch.setattr(scheduler, "seal", lambda: 1 / 0)
        asyncio.run(scheduler.close_async("finished"))
        assert scheduler.broken == "ZeroDivisionError: division by zero"


def test_a_copied_lease_ends_nothing(scheduler: FrontierScheduler) -> None:
    """The parent is still being stored when its child, made with its meta, is queued."""
    parent = fetched(scheduler, "http://127.0.0.1/a")
    lease = parent.meta[LEASE]
    assert scheduler.enqueue_request(Request("http://127.0.0.1/b", meta=parent.meta))
    assert scheduler.frontier.backend.counts().leased == 1
    scheduler.leases.acknowledge(parent, FetchRecord(UrlState.STORED, time=1.0, status=200))
    assert scheduler.frontier.backend.visit(lease.entry.key).status == 200


def test_a_released_request_waits_once_and_its_child_as_any_other(
    scheduler: FrontierScheduler,
) -> None:
    """Scrapy schedules a Request again that a middleware returns; its URL is queued by then."""
    parent = fetched(scheduler, "http://127.0.0.1/a")
    child = Request("http://127.0.0.1/b", meta=scheduler.leases.release(parent).meta)
    assert scheduler.enqueue_request(parent)
    counts = scheduler.frontier.backend.counts()
    assert (counts.queued, counts.leased) == (1, 0)
    assert scheduler.enqueue_request(child)
    assert scheduler.frontier.backend.counts().queued == 2


def test_a_released_lease_has_no_other_end(scheduler: FrontierScheduler) -> None:
    request = scheduler.leases.release(fetched(scheduler, "http://127.0.0.1/a"))
    assert lease_of(request) is None
    scheduler.leases.acknowledge(request, FetchRecord(UrlState.STORED, time=1.0, status=200))
    counts = scheduler.frontier.backend.counts()
    assert (counts.queued, counts.stored) == (1, 0)


def test_a_replacement_by_a_middleware_ends_the_lease(scheduler: FrontierScheduler) -> None:
    """The downloader names the Request that a middleware went on with as the lease's holder."""
    parent = fetched(scheduler, "http://127.0.0.1/a")
    other = parent.replace(url="http://127.0.0.1/b")
    parent.meta[LEASE].holder = other
    assert scheduler.enqueue_request(other)
    counts = scheduler.frontier.backend.counts()
    assert (counts.stored, counts.leased, counts.queued) == (1, 0, 1)


def test_what_a_middleware_adds_to_a_pages_request_is_kept(scheduler: FrontierScheduler) -> None:
    """Meta that is not ours makes it a Request to be kept whole."""
    request = page_request(scheduler.crawler.spider, "http://127.0.0.1/a")
    request.meta["cookiejar"] = 1
    scheduler.enqueue_request(request)
    assert scheduler.next_request().meta["cookiejar"] == 1


def test_scrapys_form_of_a_bind_address_is_kept(scheduler: FrontierScheduler) -> None:
    """(host, port): other tuples are refused, for they would come back as lists."""
    request = Request("http://127.0.0.1/a", meta={"bindaddress": ("127.0.0.2", 0)})
    assert scheduler.enqueue_request(request)
    assert request.meta["bindaddress"] == ("127.0.0.2", 0)
    handed_out = scheduler.next_request()
    assert handed_out is not None
    assert handed_out.meta["bindaddress"] == ["127.0.0.2", 0]
    assert not scheduler.enqueue_request(Request("http://127.0.0.1/b", meta={"pair": (1, 2)}))


@pytest.mark.parametrize("name", ["authorization", "Proxy-Authorization"])
def test_credentials_in_the_queue_are_warned_of_once(
    scheduler: FrontierScheduler, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    for number in range(2):
        headers = {name: "Basic canary"}
        assert scheduler.enqueue_request(Request(f"http://127.0.0.1/{number}", headers=headers))
    (warning,) = [text for text in caplog.messages if "in the clear" in text]
    assert "LARM_SITES_FILE" in warning
    assert "canary" not in caplog.text


def test_other_headers_are_no_credentials(
    scheduler: FrontierScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.enqueue_request(Request("http://127.0.0.1/", headers={"Accept": "text/html"}))
    assert "in the clear" not in caplog.text
