"""How URLs ended, as keys to count under, and what a crawl leaves because a budget is used up.

>>> list(keys_of(FetchRecord(UrlState.FAILED, status=503, reason="http-503")))
['larm/run/failed', 'larm/run/failed/http-503']
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from larmspider import stats
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.storage.records import FetchRecord, UrlState

_WORD = re.compile(r"[a-z0-9-]{1,20}")
_RAISED = {"a store raised": "store", "the spider raised": "spider"}


def keys_of(visit: FetchRecord) -> Iterator[str]:
    """Stats keys for a URL that has its final state."""
    yield stats.RUN.format(state=visit.state.name.lower())
    if visit.state is UrlState.STORED:
        yield stats.RUN_STATUS.format(status=visit.status or _word(visit.reason))
    elif visit.state is UrlState.FAILED:
        yield stats.RUN_FAILED.format(kind=_word(visit.reason))


def _word(reason: str) -> str:
    """The reason if it is a word, else what kind of sentence it is."""
    if _WORD.fullmatch(reason):
        return reason
    return next((word for start, word in _RAISED.items() if reason.startswith(start)), "other")


class Left(NamedTuple):
    """Queued URLs that the same command would not fetch: beyond LARM_MAX_PAGES, or of ``hosts``
    hosts whose own budget is used up."""

    max_pages: int = 0
    host_budget: int = 0
    hosts: int = 0


def left_by_budgets(frontier: Frontier) -> Left:
    """O(hosts that have a budget)."""
    counts, limit = frontier.backend.counts(), frontier.limits.max_pages
    if limit and counts.stored >= limit:
        return Left(max_pages=counts.queued)
    spent = []
    for name, host in frontier.hosts.items():
        if host.rule.budget is not None:
            of_host = frontier.backend.counts(name)
            if of_host.queued and of_host.stored >= host.rule.budget:
                spent.append(of_host.queued)
    return Left(host_budget=sum(spent), hosts=len(spent))


def final_counts(frontier: Frontier) -> dict[str, int]:
    """By stats key: the whole crawl's URLs by state, and what the budgets hold back."""
    counts = frontier.backend.counts()
    states = ("discovered", "queued", "stored", "failed", "refused")
    left = left_by_budgets(frontier)
    return {stats.FRONTIER.format(state=name): getattr(counts, name) for name in states} | {
        stats.LEFT.format(why="max_pages"): left.max_pages,
        stats.LEFT.format(why="host_budget"): left.host_budget,
        stats.HOSTS_SPENT: left.hosts,
    }
