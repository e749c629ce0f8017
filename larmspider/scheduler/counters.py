"""The counters at a crawl's end: URLs by state, and URLs left because a budget is used up."""

from __future__ import annotations

import time
from typing import NamedTuple

from larmspider import program, stats
from larmspider.formatting import counted
from larmspider.learned.deletes.notes import LOGIN_EXPIRED
from larmspider.learned.learning import LearningFrontier
from larmspider.learned.revisits.plan import DUE

SHOWN = 3
"""Hosts that the end of a refresh names."""


class Left(NamedTuple):
    """How many queued URLs the same command would not fetch: beyond LARM_MAX_PAGES, of ``hosts``
    hosts whose own budget is used up, or held as traps."""

    max_pages: int = 0
    host_budget: int = 0
    hosts: int = 0
    traps: int = 0


def left_by_budgets(frontier: LearningFrontier) -> Left:
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


def final_counts(frontier: LearningFrontier) -> dict[str, int]:
    """The whole crawl's URLs by state, and the URLs that budgets hold back, by stats key."""
    counts = frontier.backend.counts()
    states = ("discovered", "queued", "stored", "failed", "refused", "merged")
    left = left_by_budgets(frontier)
    rules = frontier.merger.hosts_by_rule() if frontier.merger.is_on else {}
    by_rule = {stats.ALIASES.format(rule=r, state=s): n for (r, s), n in rules.items()}
    by_state = {stats.FRONTIER.format(state=name): getattr(counts, name) for name in states}
    refresh = frontier.refresh
    if refresh.mode:
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


def end_of_refresh(frontier: LearningFrontier) -> dict[str, str]:
    """When the next visit is due, and the pages that wait, by stats key; empty in a first crawl."""
    refresh, gate = frontier.refresh, frontier.gate
    if not refresh.mode:
        return {}
    found, parts = dict[str, str](), list[str]()
    if refresh.mode == DUE:
        next_time = time.localtime(refresh.next_visit(frontier.clock()))
        found[stats.REFRESH_NEXT] = time.strftime("%d %b %H:%M", next_time)
    silent = [name for name, host in frontier.hosts.items() if host.record.is_away]
    waiting = {
        name: number
        for name, host in frontier.hosts.items()
        if not host.record.is_silent and (number := gate.undecided.waiting(name, frontier.clock()))
    }
    if waiting:
        pages = counted(sum(waiting.values()), "page")
        parts.append(f"{pages} of {_some(list(waiting))} for `{program.NAME} deletes`")
    records = ((name, host.record) for name, host in frontier.hosts.items())
    if expired := [name for name, record in records if record.reason == LOGIN_EXPIRED]:
        parts.append(f"{_some(expired)}: {LOGIN_EXPIRED}")
    if refused := [n for n in silent if frontier.hosts[n].record.last_kind == "sign-in"]:
        parts.append(f"the account for {_some(refused)} is refused")
        silent = [name for name in silent if name not in refused]
    if silent:
        verb = "does" if len(silent) == 1 else "do"
        parts.append(f"{_some(silent)} {verb} not answer")
    if lacking := [name for name, host in frontier.hosts.items() if host.record.lacks_share]:
        parts.append(f"a share or folder of {_some(lacking)} is away")
    return found | ({stats.REFRESH_WAITS: "; ".join(parts)} if parts else {})


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {counted(more, 'host')} more" if more > 0 else "")
