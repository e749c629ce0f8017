"""The forecast of the end: arithmetic over what hosts have before them."""

from __future__ import annotations

from math import inf

import pytest

from larmspider.frontier.hosts import HostPace, HostRecord, HostState
from larmspider.frontier.politeness import Gap
from larmspider.frontier.storage.records import Counts
from larmspider.learned.describe import HostRow
from larmspider.status.forecast import DAY, HostLoad, forecast, host_forecast


@pytest.mark.parametrize(
    "load, seconds, words",
    [
        (HostLoad("a:80", 1), 0.0, "without delay"),
        (HostLoad("a:80", 101, gap=2.0, gap_rule="delay"), 200.0, "one every 2 s (delay)"),
        (HostLoad("a:80", 11, gap=1.0, gap_rule="delay", hold=5.0), 55.0, "answers take 5 s"),
        (HostLoad("a:80", 11, gap=1.0, gap_rule="delay", hold=5.0, connections=5), 15.0, "(delay)"),
        (
            HostLoad("a:80", 11, gap=1.0, gap_rule="delay", wait=600.0, why="parked: http-503"),
            610.0,
            "waits 10 min 00 s: parked: http-503; then one every 1 s",
        ),
        (HostLoad("a:80", 11, gap=1.0, gap_rule="d", budget=6), 5.0, "budget allows 6 of 11"),
        (HostLoad("a:80", 11, gap=1.0, gap_rule="d", budget=0), 0.0, "budget allows 0 of 11"),
        (HostLoad("a:80", 11, never="given up: refused"), inf, "given up: refused"),
    ],
)
def test_a_host_by_itself(load: HostLoad, seconds: float, words: str) -> None:
    """Queue times gap, or answer time where that is longer, after its wait, within its budget."""
    found = host_forecast(load)
    assert found.seconds == pytest.approx(seconds)
    assert words in found.reason


def test_hours_of_a_day_stretch_the_work() -> None:
    """12 hours of work, in 8 hours a day, end 4 hours into the second day's."""
    load = HostLoad("a:80", 12 * 3600 + 1, gap=1.0, gap_rule="delay", open=8 / 24)
    found = host_forecast(load)
    assert found.seconds == pytest.approx(DAY + 4 * 3600)
    assert "only 8 hours a day" in found.reason


def test_the_last_host_ends_the_crawl() -> None:
    """Hosts that are never asked are listed apart, and count for nothing."""
    loads = [
        HostLoad("quick:80", 1000, gap=0.1, gap_rule="delay"),
        HostLoad("slow:80", 61, gap=10.0, gap_rule="robots.txt Crawl-delay"),
        HostLoad("dead:80", 7, never="given up"),
        HostLoad("done:80", 0, gap=99.0),
    ]
    found = forecast(loads, rate=100.0)
    assert found.seconds == pytest.approx(600.0)
    assert [one.host for one in found.slowest] == ["slow:80", "quick:80"]
    assert [one.host for one in found.never] == ["dead:80"]
    assert found.left == 7
    text = " ".join(found.reasons)
    assert "7 URLs of 1 host are not fetched in this run" in text
    assert "slow:80 takes longest: one every 10 s (robots.txt Crawl-delay)" in text


def test_the_crawler_may_be_the_limit() -> None:
    """Thousands of hosts without delay take as long as all their URLs at the crawler's rate."""
    found = forecast([HostLoad(f"h{n}:80", 100) for n in range(100)], rate=50.0)
    assert found.seconds == pytest.approx(200.0)
    assert "the crawler, its slots or its network are the limit" in found.reasons[-1]


@pytest.mark.parametrize("others", [[], [HostLoad("quick:80", 10, gap=1.0, gap_rule="delay")]])
def test_no_end_is_foretold_while_a_host_is_paused(others: list[HostLoad]) -> None:
    """A crawl waits for hosts that the operator paused; for those that are given up it does not."""
    held = HostLoad("held:80", 7, never="paused by the operator", paused=True)
    found = forecast([held, *others], rate=1.0)
    assert found.seconds is None
    assert found.reasons[0] == "No end while held:80 is paused by the operator."


@pytest.mark.parametrize(
    "found_rate, seconds, words",
    [
        (0.0, 20.0, ""),
        (50.0, 40.0, "are still found"),
        (100.0, 20.0, "will take longer"),
        (120.0, 20.0, "will take longer"),
    ],
)
def test_what_is_still_found_moves_the_end(found_rate: float, seconds: float, words: str) -> None:
    """Half as much found as fetched: twice as long. More found than fetched: said, not computed."""
    found = forecast([HostLoad("a:80", 2000)], rate=100.0, found=found_rate)
    assert found.seconds == pytest.approx(seconds)
    assert words in " ".join(found.reasons)


def test_nothing_queued_and_a_limit_of_pages() -> None:
    """0 seconds; and no more than LARM_MAX_PAGES allows."""
    assert forecast([], rate=9.0).seconds == 0.0
    load = HostLoad("a:80", 2000, gap=1.0, gap_rule="delay")
    limited = forecast([load], rate=1.0, found=2.0, most=50)
    assert limited.seconds == pytest.approx(50.0)
    assert limited.reasons == [
        "LARM_MAX_PAGES ends the crawl after 50 more pages, at 1 a second."
    ], "no host decides, nor what is still found"
    assert limited.slowest == []
    for found, pages in ((2.0, 90_000), (0.5, 3_000)):  # what is found would outgrow the limit
        forecast_of_more = forecast([load], rate=1.0, found=found, most=pages)
        assert forecast_of_more.seconds == pages
        assert any("LARM_MAX_PAGES ends" in line for line in forecast_of_more.reasons)
    reached = forecast([load], rate=1.0, most=0)
    assert (reached.seconds, reached.reasons) == (
        0.0,
        ["LARM_MAX_PAGES is reached: the crawl ends."],
    )


def test_ten_thousand_hosts_are_quick() -> None:
    """Only the slowest are listed."""
    loads = [HostLoad(f"h{n}:80", n + 1, gap=0.5, gap_rule="delay") for n in range(10_000)]
    assert len(forecast(loads, rate=100.0).slowest) == 8


@pytest.mark.parametrize(
    "state, wait, why, never",
    [
        (HostState.READY, 4.0, "", ""),  # its gap is no wait
        (HostState.READY, 7.0, "ready", ""),
        (HostState.SNOOZED, 3.0, "http-503", ""),
        (HostState.PARKED, inf, "http-503", "http-503"),
    ],
)
def test_a_load_is_what_the_table_of_hosts_says(
    state: HostState, wait: float, why: str, never: str
) -> None:
    """URLs in flight count as queued; the budget is what is left; the window a share of the day."""
    now = 1_000_000.0
    record = HostRecord("a:80", state=state, slot_secs=0.5, reason="http-503")
    rule = HostPace(delay=5.0, connections=2, budget=10, window=(22, 6))
    counts = Counts(discovered=9, queued=4, leased=1, stored=4)
    reason = "" if state is HostState.READY else "http-503"
    row = HostRow(
        "a:80", state.name.lower(), counts, Gap(5.0, "delay"), now + wait, reason, record, rule
    )
    load = HostLoad.of(row, now)
    assert (load.queued, load.budget, load.connections, load.hold) == (5, 6, 2, 0.5)
    assert load.open == pytest.approx(8 / 24)
    assert (load.why, load.never) == (why, never)
    assert load.wait == (0.0 if never else wait)
