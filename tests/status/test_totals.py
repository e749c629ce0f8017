"""What a crawl has counted over all its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from larmspider import stats
from larmspider.status.totals import TOTALS_FILE, Totals


def test_runs_are_summed(tmp_path: Path) -> None:
    """Ours and whole numbers only; what is no count of a run is left out."""
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
    """larm/fetch/failed is no kind of larm/fetch/failed/{kind}, nor is a deeper key."""
    totals = Totals(1, {stats.FETCH_FAILED: 1, stats.FETCH_FAILED + "/": 2,
                        stats.FETCH_FAILED_KIND.format(kind="dns"): 3,
                        stats.FETCH_FAILED_KIND.format(kind="a/b"): 4})  # fmt: skip
    assert totals.matching(stats.FETCH_FAILED_KIND) == {"dns": 3}
