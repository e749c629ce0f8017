"""What is counted at a crawl's end: URLs by state, and what is left because a budget is used up."""

from __future__ import annotations

from typing import NamedTuple

from larmspider import stats
from larmspider.frontier.frontier import Frontier


class Left(NamedTuple):
    """How many queued URLs the same command would not fetch: beyond LARM_MAX_PAGES, of ``hosts``
    hosts whose own budget is used up, or held as traps."""

    max_pages: int = 0
    host_budget: int = 0
    hosts: int = 0
    traps: int = 0


def left_by_budgets(frontier: Frontier) -> Left:
    """O(hosts that have a budget)."""
    counts, limit = frontier.backend.counts(), frontier.limits.max_pages
    if limit and counts.stored >= limit:
        return Left(max_pages=counts.queued)
    spent, held = [], counts.held
    for name, host in frontier.hosts.items():
        if host.rule.budget is not None:
            of_host = frontier.backend.counts(name)
            if of_host.queued and of_host.stored >= host.rule.budget:
                spent.append(of_host.queued)
                held -= of_host.held
    return Left(host_budget=sum(spent), hosts=len(spent), traps=held)


def final_counts(frontier: Frontier) -> dict[str, int]:
    """By stats key: the whole crawl's URLs by state, and what the budgets hold back."""
    counts = frontier.backend.counts()
    states = ("discovered", "queued", "stored", "failed", "refused", "merged")
    left, merger = left_by_budgets(frontier), frontier.merger
    rules = {} if merger is None else merger.hosts_by_rule()
    by_rule = {stats.ALIASES.format(rule=r, state=s): n for (r, s), n in rules.items()}
    by_state = {stats.FRONTIER.format(state=name): getattr(counts, name) for name in states}
    refresh = frontier.refresh
    if refresh is not None and refresh.mode:
        known = counts.stored + counts.failed
        by_state[stats.REFRESH_NOT_ASKED] = max(0, known - refresh.visited)
    return (
        by_state
        | by_rule
        | {
            stats.LEFT.format(why="max_pages"): left.max_pages,
            stats.LEFT.format(why="host_budget"): left.host_budget,
            stats.HOSTS_SPENT: left.hosts,
            stats.LEFT.format(why="traps"): left.traps,
        }
    )
