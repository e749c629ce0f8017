"""larmspider/status/freshness.py: how fresh a crawl is thought to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, host_of, url_key
from larmspider.learned.revisits.host import HostKnowledge
from larmspider.learned.revisits.refresh import DAY, Checks
from larmspider.status.freshness import Freshness, freshness

NOW = 1_000 * DAY


def _frontier(path: Path, visits: dict[str, FetchRecord], *, known: bool) -> Freshness:
    backend = LmdbBackend(path)
    backend.recover()
    entries = [QueuedUrl(url, url, url_key(url), host_of(url)) for url in visits]
    backend.add(entries)
    for entry in entries:
        backend.pop(entry.host, 0.0)
    backend.acknowledge([(entry.key, visits[entry.url]) for entry in entries])
    if known:
        # one in 10 days; of 100 pages chosen at random 95 were as stored, others are too old
        checks = {999: [60, 58], 990: [40, 37], 960: [50, 1]}
        backend.put_note("refresh h:80", HostKnowledge(39.0, 340 * DAY, Checks(checks)).pack())
    backend.checkpoint({})
    backend.close()
    with FrontierReader(path) as reader:
        return freshness(reader, NOW)


def _visit(url: str, days: float, due: float = 0.0, **more: float) -> FetchRecord:
    at = NOW - days * DAY
    return FetchRecord(
        UrlState.STORED, time=at, status=200, url=url, due=due and NOW + due * DAY, **more
    )


def test_each_page_counts_by_its_own_rate_else_that_of_its_host(tmp_path: Path) -> None:
    """And what is due when; pages that failed are none."""
    urls = [f"http://h/{number}" for number in range(4)]
    visits = {
        urls[0]: _visit(urls[0], 10, -1, a=1.0, b=10 * DAY),  # one half
        urls[1]: _visit(urls[1], 0, 0.5, a=1.0, b=10 * DAY),
        urls[2]: _visit(urls[2], 15, 30),  # 0.5, 5 days: one half, too
        urls[3]: FetchRecord(UrlState.FAILED, time=NOW, status=404, url=urls[3]),
    }
    found = _frontier(tmp_path, visits, known=True)
    assert (found.pages, found.looked_at, found.is_known) == (3, 3, True)
    assert found.current == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert found.due == {"now": 1, "within a day": 1, "within a week": 0, "later": 1}
    assert found.changes == pytest.approx({"h:80": 3 * 0.1})
    assert found.sentences == [
        "66.7% of 3 pages are as stored (estimate); random pages show something else: trust these",
        "95 of 100 pages chosen at random, and visited in the last 30 days, were as stored:"
        " 88.8% to 97.8% of all with a confidence of 95%",
    ]


def test_a_page_that_was_not_there_is_not_current(tmp_path: Path) -> None:
    """However lately it was visited."""
    urls = [f"http://h/{number}" for number in range(20)]
    visits = {url: _visit(url, 0) for url in urls}
    visits[urls[3]] = _visit(urls[3], 0, missing_since=NOW - DAY)
    visits[urls[3]].missing_as = "missing"
    found = _frontier(tmp_path, visits, known=True)
    assert (found.current, found.missing, found.agrees) == (pytest.approx(0.95), 1, True)
    assert found.sentences[0] == (
        "95.0% of 20 pages are as stored (estimate); 1 page not reached at the last visit"
    )


def test_before_any_visit_again_nothing_is_known(tmp_path: Path) -> None:
    found = _frontier(tmp_path, {"http://h/": _visit("http://h/", 1)}, known=False)
    assert (found.is_known, found.looked_at) == (False, 1)
    assert len(found.sentences) == 1
