"""Estimates when the crawl will end, from its queues, and which hosts take longest.

>>> forecast([HostLoad("slow:80", queued=600, gap=10.0, gap_rule="Crawl-delay")], rate=20.0)
Forecast(seconds=6000.0, ..., slowest=[HostForecast('slow:80', 600, 6000.0, ...)])

A host needs the gap between two requests, or the time that a request holds its connection, for
each of its queued URLs. The crawl ends with the last of its hosts, and not before the crawler has
fetched all of them at its recent rate. How many URLs will still be found is only estimated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, inf

from larmspider.formatting import count, counted, duration
from larmspider.frontier.hosts import HostState
from larmspider.learned.describe import HostRow

DAY = 86_400.0
MOVES_AWAY = 0.95
"""URLs found for each one fetched from which on there is no forecast."""
CLEARLY = 1.5
"""The crawler is the limit if it takes this many times as long as the slowest host."""


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The load of a host, times in seconds: ``gap`` between two requests by ``gap_rule``;
    ``hold``: how long a request takes, with ``connections`` at once; ``wait`` until the next one,
    because of ``why``.

    ``budget``: pages that may still be stored, None for any number. ``open``: the share of a day in
    which the host may get requests. ``never``: why it gets none in this run. ``paused``: the
    operator has paused the host, and the crawl does not end before it is resumed."""

    host: str
    queued: int
    gap: float = 0.0
    gap_rule: str = ""
    hold: float = 0.0
    connections: int = 1
    wait: float = 0.0
    why: str = ""
    budget: int | None = None
    open: float = 1.0
    never: str = ""
    paused: bool = False

    @classmethod
    def of(cls, row: HostRow, now: float) -> HostLoad:
        record, rule, counts = row.record, row.rule, row.counts
        queued = counts.to_fetch + counts.leased
        budget = None if rule.budget is None else max(0, rule.budget - counts.stored)
        never = row.reason if row.next_time == inf and queued else ""
        waits = (
            record.state in (HostState.SNOOZED, HostState.PARKED)
            or row.next_time > now + 1 + row.gap.seconds
        )
        share = 1.0 if rule.window is None else ((rule.window[1] - rule.window[0]) % 24 or 24) / 24
        return cls(
            host=row.host,
            queued=queued,
            gap=row.gap.seconds,
            gap_rule=row.gap.rule,
            hold=record.slot_secs or 0.0,
            connections=rule.connections or 1,
            wait=0.0 if never else max(0.0, row.next_time - now),
            why=(row.reason or row.state) if waits else "",
            budget=budget,
            open=share,
            never=never,
            paused=bool(never) and row.state == "paused",
        )


@dataclass(frozen=True, slots=True)
class HostForecast:
    """``seconds`` until the host's queue is empty, and why so long."""

    host: str
    queued: int
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """``seconds`` until the end, None if unknown; ``reasons`` are sentences.

    ``slowest``: the hosts that finish last, the last one first; ``never``: hosts with URLs that
    this run will not fetch, ``left`` in all.
    """

    seconds: float | None
    reasons: list[str]
    slowest: list[HostForecast] = field(default_factory=list)
    never: list[HostForecast] = field(default_factory=list)
    left: int = 0


def host_forecast(load: HostLoad) -> HostForecast:
    """How long a host needs by itself, and why."""
    return HostForecast(load.host, load.queued, seconds_of(load), load.never or _reason(load))


def seconds_of(load: HostLoad) -> float:
    """How long a host needs by itself; inf: the host gets no requests in this run."""
    if load.never:
        return inf
    wanted = load.queued if load.budget is None else min(load.queued, load.budget)
    if not wanted:
        return 0.0
    seconds = max(0, wanted - 1) * max(load.gap, load.hold / load.connections) + load.hold
    return load.wait + (seconds if load.open >= 1 else _within_hours(seconds, load.open))


def _reason(load: HostLoad) -> str:
    wanted = load.queued if load.budget is None else min(load.queued, load.budget)
    held = load.hold / load.connections
    each = max(load.gap, held)
    pace = f"one every {duration(each)}"
    what = load.gap_rule if load.gap >= held else f"answers take {duration(load.hold)}"
    reason = f"{pace} ({what})" if each else "without delay"
    if load.why:
        reason = f"waits {duration(load.wait)}: {load.why}; then {reason}"
    if wanted < load.queued:
        reason += f"; its budget allows {count(wanted)} of {count(load.queued)}"
    if load.open < 1:
        reason += f"; only {load.open * 24:g} hours a day"
    return reason


def _within_hours(seconds: float, share: float) -> float:
    """The time in which ``seconds`` of work are done in a ``share`` of each day."""
    day = DAY * share
    whole = max(0, ceil(seconds / day) - 1)
    return whole * DAY + (seconds - whole * day)


def forecast(
    loads: Iterable[HostLoad],
    rate: float,
    found: float = 0.0,
    top: int = 8,
    most: int | None = None,
) -> Forecast:
    """``rate``: URLs fetched a second, all hosts together, 0 for unknown; ``found``: URLs found a
    second. ``most``: pages that may still be stored in all."""
    waiting = [(seconds_of(load), load) for load in loads if load.queued]
    out = sorted((load for need, load in waiting if need == inf), key=lambda load: -load.queued)
    ends = sorted((one for one in waiting if one[0] < inf), key=lambda one: -one[0])
    left, queued = sum(load.queued for load in out), sum(load.queued for _, load in ends)
    held = [load for load in out if load.paused]
    never = [host_forecast(load) for load in out[:top]]
    slowest = [host_forecast(load) for _, load in ends[:top]]
    reasons = []
    if not ends:
        reasons.append("Nothing is queued that this run would fetch.")
    if out:
        what = f"{counted(left, 'URL')} of {counted(len(out), 'host')}"
        reasons.append(f"{what} {'is' if left == 1 else 'are'} not fetched in this run.")
    if held:
        who = f"{held[0].host} and {count(len(held) - 1)} more" if held[1:] else held[0].host
        are = "are" if held[1:] else "is"
        reasons.insert(0, f"No end while {who} {are} paused by the operator.")
    if not ends:
        return Forecast(None if held else 0.0, reasons, slowest, never, left)
    by_host, by_rate = ends[0][0], queued / rate if rate else 0.0
    coming = queued / (1 - found / rate) if 0 < found <= MOVES_AWAY * rate else float(queued)
    if most is not None and (most < coming or found > MOVES_AWAY * rate > 0):
        # whatever host would take longest, and whatever is still found
        pace = f", at {rate:.3g} a second" if rate else ""
        reasons.append(
            f"LARM_MAX_PAGES ends the crawl after {counted(most, 'more page')}{pace}."
            if most
            else "LARM_MAX_PAGES is reached: the crawl ends."
        )
        seconds = most / rate if rate else 0.0 if not most else by_host
        return Forecast(None if held else seconds, reasons, [], never, left)
    seconds = max(by_host, by_rate)
    if by_host >= by_rate / CLEARLY:
        reasons.append(f"{slowest[0].host} takes longest: {slowest[0].reason}.")
        others = sum(1 for need, _ in ends if need > by_host / 2)
        if others > 1:
            reasons.append(f"{count(others)} hosts need more than half as long.")
    else:
        reasons.append(
            f"{counted(queued, 'URL')} at {rate:.3g} a second {'takes' if queued == 1 else 'take'}"
            " longer than any host by itself:"
            " the crawler, its slots or its network are the limit."
        )
    if found > MOVES_AWAY * rate > 0:
        reasons.append(
            f"URLs are found as fast as fetched, or faster ({found:.3g} and {rate:.3g} a second),"
            " so the crawl will take longer."
        )
    elif found > 0.05 * rate > 0:
        seconds /= 1 - found / rate
        reasons.append(
            f"{found:.3g} new URLs a second are still found; the forecast allows for more of them."
        )
    return Forecast(None if held else seconds, reasons, slowest, never, left)
