"""larmspider/workers/outcome.py: the last lines of `scrapy workers`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from larmspider.frontier.storage.records import UrlState
from larmspider.status.totals import Totals
from larmspider.workers.outcome import Outcome


@pytest.mark.parametrize(
    ("idle", "number", "hosts", "line"),
    [
        (2, 4, 3, "2 of 4 workers had nothing to do: 3 hosts"),
        (1, 2, 1, "1 of 2 workers had nothing to do: 1 host"),
        (0, 4, 9, ""),
        (4, 4, 0, ""),
    ],
)
def test_workers_that_had_nothing_to_do_are_named(
    idle: int, number: int, hosts: int, line: str
) -> None:
    """Not where all were busy, and not where a crawl that had ended was begun again."""
    done = {"a": Counter({UrlState.STORED: 2})}
    *_, last = Outcome(Path("/crawl"), done, None, idle, number, hosts).lines()
    assert last == line or (not line and last.startswith("total"))


def test_what_all_workers_have_seen_of_known_pages_is_one_line() -> None:
    """As one process says it; of this run alone, also of a worker that was started again."""
    before = Totals(1, {"larm/refresh/same": 7, "larm/refresh/requests": 9, "larm/run/stored": 5})
    found = [
        Totals(2, {"larm/refresh/same": 40, "larm/refresh/requests": 43, "larm/run/stored": 6}),
        Totals(1, {"larm/refresh/changed": 1, "larm/refresh/missing": 1, "larm/refresh/same": 30}),
        Totals(1, {"larm/refresh/requests": 32, "larm/refresh/not_asked": 9}),
    ]
    done = {"a": Counter({UrlState.STORED: 40}), "b": Counter({UrlState.STORED: 30})}
    run = Totals.together(found).since(before)
    *_, visits, requests = Outcome(Path("/crawl"), done, refresh=run).lines()
    assert visits == (
        "refresh     1 changed, 1 new, 1 missing (removed after 3 such visits over 2 days),"
        " 63 as before"
    )
    assert requests == "            66 requests for known pages; 4 known pages not visited"
