"""larmspider/workers/outcome.py: the last lines of `scrapy workers`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from larmspider.frontier.storage.records import UrlState
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
    assert last == line or (not line and last.startswith("in all"))
