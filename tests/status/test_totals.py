"""The counts of a crawl over all its runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from scrapy.utils.test import get_crawler

from larmspider import stats
from larmspider.settings import ITEM_PIPELINES
from larmspider.status.summary import Summary
from larmspider.status.totals import TOTALS_FILE, Totals


def test_runs_are_summed(tmp_path: Path) -> None:
    """LARM's own whole numbers only; other entries of a run are left out."""
    run = {
        stats.filter_rejected("scope"): 3,
        stats.filter_rejected("traps"): 5,
        stats.FRONTIER.format(state="queued"): 7,
        stats.FOLLOW_HOSTS: 2,
        stats.PAGE_FILES_FILES: 4,
        stats.BROKEN: "the disk is full",
        "item_scraped_count": 9,
    }
    Totals().with_run(run).write(tmp_path)
    totals = Totals.read(tmp_path).with_run(run)
    assert totals.runs == 2
    assert totals.matching(stats.FILTER_REJECTED) == {"traps": 10, "scope": 6}
    assert len(totals.counters) == 2


@pytest.mark.parametrize("text", ["", "[]", "{", '{"runs": 1}', '{"runs": 1, "counters": [1]}'])
def test_a_damaged_file_is_none(tmp_path: Path, text: str) -> None:
    """The crawl counts from 0 again."""
    (tmp_path / TOTALS_FILE).write_text(text)
    assert Totals.read(tmp_path) == Totals()


def test_a_part_of_a_key_has_no_slash() -> None:
    """larm/fetch/failed does not count as larm/fetch/failed/{kind}, nor does a deeper key."""
    totals = Totals(1, {stats.FETCH_FAILED: 1, stats.FETCH_FAILED + "/": 2,
                        stats.FETCH_FAILED_KIND.format(kind="dns"): 3,
                        stats.FETCH_FAILED_KIND.format(kind="a/b"): 4})  # fmt: skip
    assert totals.matching(stats.FETCH_FAILED_KIND) == {"dns": 3}


# larmspider/status/summary.py


def test_counts_are_sorted_and_known_links_apart() -> None:
    """Filters by how much they rejected; links to known pages are not among them."""
    lines = summary_lines({})
    assert lines == [
        "ended       finished",
        "stored      1,190 pages, 3.0 MB in page files (HTTP 200 1,189, replaced 1) in /x",
        "rejected    12 links (scope 9, traps 3); 4,000 links to known pages",
        "failed      20 URLs (10 not found, http-503 8, dns 2), each with its reason in"
        f" {Path('/x/fetch.log')}",
        "known       1,300 URLs: 1,190 stored, 20 failed, 90 queued",
        "left        100 URLs still queued; run the same command to continue",
    ]


def test_one_of_many_workers_says_what_its_numbers_are_of() -> None:
    """Its stored pages are summed over workers; its hosts may have been another's before."""
    own, alone = summary_lines({}, REDIS_URL="redis://127.0.0.1"), summary_lines({})
    assert own[1] == alone[1].replace("pages,", "pages by this worker in this run,")
    assert own[4] == (
        "known       this worker's hosts: 1,300 URLs: 1,190 stored, 20 failed, 90 queued"
    )
    assert own[:1] + own[2:4] + own[5:] == alone[:1] + alone[2:4] + alone[5:]


def summary_lines(
    counted: dict[str, object], pipelines: dict[str, int] = ITEM_PIPELINES, **settings: str
) -> list[str]:
    """The lines for the counters below, changed by ``counted``."""
    crawler = get_crawler(settings_dict={"LARM_DIR": "/x", "ITEM_PIPELINES": pipelines, **settings})
    crawler.stats = _Counters(_Counters().get_stats() | counted)
    return list(Summary.of(crawler).lines())


def test_without_stores_the_frontier_says_what_was_stored() -> None:
    """No bytes, and no file that is not there; what failed is counted even so."""
    lines = summary_lines({}, {})
    assert lines[1].startswith("stored      1,190 pages, without page files (HTTP 200 1,189,")
    assert lines[3] == "failed      20 URLs (10 not found, http-503 8, dns 2)"


def test_nothing_failed_points_nowhere() -> None:
    """No reason is to be found where there is none."""
    kinds = ("http-503", "http-404", "dns")
    counted = {f"larm/run/failed/{kind}": 0 for kind in kinds}
    assert "failed      0 URLs (none)" in summary_lines(counted)


@pytest.mark.parametrize(
    ("counted", "ended", "left"),
    [
        (
            {"larm/left/max_pages": 100},
            "finished; LARM_MAX_PAGES is reached",
            ["100 URLs beyond LARM_MAX_PAGES; run the same command with a larger one"],
        ),
        (
            {"larm/left/host_budget": 60, "larm/left/hosts": 2},
            "finished",
            [
                "60 URLs beyond the budgets of 2 hosts (LARM_HOST_MAX_PAGES, LARM_HOST_RULES);",
                "40 URLs still queued; run the same command to continue",
            ],
        ),
        (
            {"larm/frontier/hosts_given_up": 3},
            "finished",
            ["100 URLs still queued; run the same command to continue; 3 hosts were given up"],
        ),
        ({"larm/frontier/queued": 0}, "finished", []),
    ],
)
def test_what_is_left_says_what_it_needs(
    counted: dict[str, object], ended: str, left: list[str]
) -> None:
    """The same command, or one with a larger budget."""
    lines = summary_lines(counted)
    assert lines[0] == f"ended       {ended}"
    for line, start in zip(lines[5:], left, strict=True):
        assert line.startswith(f"left        {start}")


@pytest.mark.parametrize(
    ("counted", "pages"),
    [
        ({"larm/page_files/pages": 7, "larm/follow/pages": 9, "item_scraped_count": 11}, 7),
        ({"larm/follow/pages": 9, "item_scraped_count": 11}, 9),
        ({"item_scraped_count": 11}, 11),
        ({}, 0),
    ],
)
def test_under_another_scheduler_stores_or_spider_count(
    counted: dict[str, object], pages: int
) -> None:
    """The count nearest to the stored pages is taken."""
    crawler = get_crawler(settings_dict={"LARM_DIR": "/x"})
    crawler.stats = SimpleNamespace(get_stats=lambda: counted)
    assert Summary.of(crawler).pages == pages


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
        ({"finish_reason": "no-seed"}, 1),
        ({"finish_reason": "finished", "larm/run/stored": 1, "larm/run/status/301": 1}, 1),
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
            "larm/run/stored": 1190,
            "larm/run/failed": 20,
            "larm/run/failed/http-404": 10,
            "larm/run/status/200": 1189,
            "larm/run/status/replaced": 1,
            "larm/run/failed/dns": 2,
            "larm/run/failed/http-503": 8,
            "larm/frontier/discovered": 1300,
            "larm/frontier/stored": 1190,
            "larm/frontier/failed": 20,
            "larm/frontier/queued": 100,
        }
