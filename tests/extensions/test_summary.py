"""larmspider/extensions/summary.py"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from scrapy.utils.test import get_crawler

from larmspider.extensions.summary import Summary, _size


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (32_452, "32.5 kB"),
        (50_000_000, "50.0 MB"),
        (7.25e9, "7.2 GB"),
        (3e15, "3,000.0 TB"),
    ],
)
def test_sizes_are_for_people(number: float, text: str) -> None:
    """Decimal units, as page files have."""
    assert _size(number) == text


def test_counts_are_sorted_and_known_links_apart() -> None:
    """Filters by how much they refused; links to known pages are no refusals."""
    crawler = get_crawler(settings_dict={"LARM_DIR": "/x"})
    crawler.stats = _Counters()
    lines = list(Summary.of(crawler).lines())
    assert lines == [
        "ended     finished",
        "stored    1,200 pages, 3.0 MB (HTTP 200 1,190, HTTP 404 10) in /x",
        "refused   12 links (scope 9, traps 3); 4,000 more led to pages already known",
        f"failed    2 fetches (dns 2), each with its reason in {Path('/x/fetch.log')}",
        "in all    1,300 URLs: 1,190 stored, 0 refused by robots.txt or a store, 10 failed",
        "left      100 URLs, for the same command to go on with",
    ]
    assert Summary.of(crawler).exit_status == 0


@pytest.mark.parametrize(
    ("counted", "status"),
    [
        ({"finish_reason": "finished"}, 1),
        ({"finish_reason": "finished", "larm/frontier/stored": 7}, 0),
        ({"finish_reason": "shutdown"}, 0),
        ({"finish_reason": "finished", "larm/page_files/pages": 1}, 0),
        (
            {
                "finish_reason": "finished",
                "larm/page_files/pages": 1,
                "larm/checkpoint/broken": "x",
            },
            1,
        ),
        ({"larm/page_files/pages": 1}, 1),
    ],
)
def test_status_tells_an_end_from_a_break(counted: dict[str, object], status: int) -> None:
    """0: ended or stopped, with pages now or earlier; 1: nothing stored, broken off, or no end."""
    crawler = get_crawler(settings_dict={"LARM_DIR": "/x"})
    crawler.stats = SimpleNamespace(get_stats=lambda: counted)
    assert Summary.of(crawler).exit_status == status


class _Counters:
    def __init__(self, counters: dict[str, object] | None = None) -> None:
        self.counters = counters

    def get_stats(self) -> dict[str, object]:
        return self.counters or {
            "finish_reason": "finished",
            "larm/page_files/pages": 1200,
            "larm/page_files/bytes": 3_000_000,
            "larm/page_files/status/404": 10,
            "larm/page_files/status/200": 1190,
            "larm/visited/rejected": 4000,
            "larm/traps/rejected": 3,
            "larm/scope/rejected": 9,
            "larm/fetch/failed": 2,
            "larm/fetch/failed/dns": 2,
            "larm/frontier/discovered": 1300,
            "larm/frontier/stored": 1190,
            "larm/frontier/failed": 10,
            "larm/frontier/queued": 100,
        }
