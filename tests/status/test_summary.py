"""The lines with which a crawl ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from larmspider import stats
from larmspider.learned.revisits.revisiting import Purpose
from larmspider.status.summary import Summary


def summary(**counters: object) -> Summary:
    crawler = get_crawler(Spider, settings_dict={"LARM_REFRESH": "due"})
    assert crawler.stats is not None
    crawler.stats.set_stats({"finish_reason": "finished", **counters})
    return Summary.of(crawler)


def lines(**counters: object) -> list[str]:
    return [line for line in summary(**counters).lines() if not line.startswith("ended")]


def test_a_run_with_nothing_to_do_says_when_something_is_due() -> None:
    found = lines(**{stats.REFRESH_NEXT: "29 Dec 02:22", stats.REFRESH_NOT_ASKED: 12})
    assert found[0] == "refresh     nothing was due (next: 29 Dec 02:22)"


def test_a_refresh_says_what_left_and_came_what_waits_and_what_is_next() -> None:
    found = lines(
        **{
            stats.REFRESH_NEXT: "29 Dec 02:22",
            stats.REFRESH.format(seen="removed"): 1,
            stats.REFRESH_LEFT: "http://h/a (gone)",
            stats.REFRESH_CAME: "http://h/b",
            stats.REFRESH_WAITS: "3 pages of h:80 for `scrapy deletes`",
        }
    )
    assert "1 removed" in found[0]
    assert found[2:6] == [
        "left        http://h/a (gone)",
        "came        http://h/b",
        "waits       3 pages of h:80 for `scrapy deletes`",
        "next        29 Dec 02:22",
    ]


def test_a_refresh_says_the_purposes_of_its_requests() -> None:
    counters = {
        stats.REFRESH_SPENT.format(purpose=Purpose.VISIT): 2_000,
        stats.REFRESH_SPENT.format(purpose=Purpose.PROOF): 7,
    }
    said = "2,007 requests in all: 2,000 visits, 0 second looks, 7 proofs, 0 other"
    assert lines(**counters)[2] == f"            {said}"


@pytest.mark.parametrize(
    ("broken", "advice"),
    [
        ("index: No space left on device", "; make room, and run the same command"),
        ("index: Disk quota exceeded", "; make room, and run the same command"),
        ("index: File too large: RLIMIT_FSIZE is 9", "; raise the limit (ulimit -f), and run"),
        ("Redis has evicted 4 keys: `scrapy workers --rebuild` (Rebuild)", ""),
        ("store.log is cut: scrapy verify --repair repairs it", ""),
    ],
)
def test_no_advice_leads_to_the_same_error_again(broken: str, advice: str) -> None:
    complaint = replace(summary(), broken=broken).complaint
    assert complaint.startswith(f"the crawl broke off: {broken}{advice}")
    assert ("run the same command" in complaint) == bool(advice)
