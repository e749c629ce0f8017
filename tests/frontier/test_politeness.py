"""Gaps, snoozes and parks, with the clock and the dice in the test's hand."""

from dataclasses import replace
from math import inf

import pytest

from larmspider.errors import ConfigError
from larmspider.frontier.hosts import HostPace, HostRecord, HostRules, HostState
from larmspider.frontier.politeness import Limits, Politeness, failure_kind

LIMITS = Limits(
    crawl_delay_max=60.0, response_factor=2.0, retry_after_max=300.0, backoff=10.0,
    backoff_max=60.0, jitter=0.5, quiet=100.0, max_failures=5, park=1000.0, max_parks=2,
)  # fmt: skip
NOW = 1_000_000.0


def politeness(*rules, dice=0.5):
    return Politeness(LIMITS, HostRules(rules, HostPace(delay=2.0, connections=1)), lambda: dice)


def ready(**fields):
    return HostRecord("wiki:80", state=HostState.READY, robots_until=NOW + 9e4, **fields)


@pytest.mark.parametrize(
    "crawl_delay, response, seconds, rule",
    [
        (None, 0.0, 2.0, "delay"),
        (1.0, 0.5, 2.0, "delay"),
        (5.0, 0.0, 5.0, "robots.txt Crawl-delay"),
        (500.0, 0.0, 60.0, "robots.txt Crawl-delay 500 s, cut"),
        (None, 1.5, 3.0, "2 x last response time"),
        (5.0, 4.0, 8.0, "2 x last response time"),
        (9.0, 4.0, 9.0, "robots.txt Crawl-delay"),
    ],
)
def test_the_largest_rule_sets_the_gap_and_is_named(crawl_delay, response, seconds, rule):
    record = ready(crawl_delay=crawl_delay, response=response)
    assert politeness().gap(record) == (seconds, rule)


def test_a_rule_for_the_host_sets_its_delay():
    assert politeness(HostPace("wiki", delay=7.0)).gap(ready()).seconds == 7.0
    assert politeness(HostPace("other*", delay=7.0)).gap(ready()).seconds == 2.0


def test_the_gap_counts_from_when_the_request_was_sent():
    record = ready(next_time=NOW + 1.0)
    politeness().answered(record, NOW + 0.6, 0.6, sent=NOW + 0.5)
    assert record.next_time == NOW + 2.5
    assert (record.response, record.slot_secs) == (0.6, 0.6)


def test_an_answer_never_brings_the_next_request_forward():
    record = ready(next_time=NOW + 50.0)
    politeness().answered(record, NOW, 0.1, sent=NOW)
    assert record.next_time == NOW + 50.0


def test_one_failure_may_be_enough_to_park_a_host():
    record, once = ready(), replace(LIMITS, max_failures=1)
    Politeness(once, HostRules((), HostPace()), lambda: 0.5).failed(record, NOW, 1.0, "tls")
    assert record.reason == "1 failure in a row: tls"


def test_backoff_doubles_up_to_its_limit_and_parks_at_the_fifth_failure():
    record, now, snoozes = ready(), NOW, []
    for _ in range(4):
        politeness().failed(record, now, 1.0, "timeout")
        snoozes.append(record.until - now)
        assert (record.state, record.reason) == (HostState.SNOOZED, "timeout")
        now = record.until
        record.wake()
    assert snoozes == [10.0, 20.0, 40.0, 60.0]
    politeness().failed(record, now, 1.0, "timeout")
    assert (record.state, record.until) == (HostState.PARKED, now + 1000.0)
    assert record.reason == "5 failures in a row: timeout"


@pytest.mark.parametrize("dice, seconds", [(0.0, 5.0), (0.5, 10.0), (0.999999, 15.0)])
def test_jitter_spreads_a_snooze(dice, seconds):
    record = ready()
    politeness(dice=dice).failed(record, NOW, 1.0, "timeout")
    assert record.until - NOW == pytest.approx(seconds, abs=0.01)


@pytest.mark.parametrize(
    "retry_after, seconds",
    [(None, 10.0), (1.0, 1.0), (70.0, 70.0), (9999.0, 300.0), (0.0, 10.0), (-5.0, 10.0)],
)
def test_retry_after_is_obeyed_up_to_its_limit(retry_after, seconds):
    record = ready()
    politeness().failed(record, NOW, 1.0, "http-503", retry_after)
    assert record.until - NOW == seconds


def test_some_answers_in_a_row_undo_a_doubling():
    """429 to each tenth request."""
    polite, record, now = politeness(), ready(), NOW
    for _ in range(20):
        polite.failed(record, now, 1.0, "http-429")
        assert record.until - now <= 20.0
        now = record.until
        record.wake()
        for _ in range(9):
            polite.answered(record, now + 1, 0.1, now + 1)
            now += 1


def test_an_answer_ends_the_row_but_only_quiet_forgives_the_doublings():
    record = ready()
    politeness().failed(record, NOW, 1.0, "http-500")
    record.wake()
    politeness().answered(record, NOW + 20, 0.1, NOW + 20)
    politeness().failed(record, NOW + 30, 1.0, "http-500")
    assert (record.failures, record.until) == (1, NOW + 50)
    record.wake()
    politeness().answered(record, NOW + 500, 0.1, NOW + 500)
    politeness().failed(record, NOW + 510, 1.0, "http-500")
    assert record.until == NOW + 520


def test_a_parked_host_is_on_probation_then_given_up():
    record = ready(parks=1)
    politeness().failed(record, NOW, 1.0, "refused")
    assert (record.until, record.reason) == (NOW + 2000.0, "probe 1 failed: refused")
    record.wake()
    politeness().failed(record, NOW + 2000, 1.0, "refused")
    assert (record.until, record.reason) == (inf, "given up: probe 2 failed: refused")


def test_a_failure_that_was_in_flight_when_the_host_was_parked_is_no_probe():
    record = ready()
    record.change(HostState.PARKED, NOW + 1000.0, "why")
    record.parks = 1
    politeness().failed(record, NOW, 1.0, "refused")
    assert (record.parks, record.until, record.reason) == (1, NOW + 1000.0, "why")


def test_an_answer_after_a_park_clears_the_record():
    record = ready(parks=2, slot_secs=30.0)
    politeness().answered(record, NOW, 0.3, NOW)
    assert (record.parks, record.slot_secs) == (0, 0.3)


def test_the_expected_holding_time_follows_the_answers():
    record = ready(slot_secs=1.0)
    politeness().answered(record, NOW, 10.0, NOW)
    assert record.slot_secs == pytest.approx(4.0)


@pytest.mark.parametrize("attempts, wait", [(1, 10.0), (2, 20.0), (3, 40.0), (4, 60.0), (99, 60.0)])
def test_a_url_waits_longer_each_time(attempts, wait):
    assert politeness().retry_time(NOW, attempts) == NOW + wait


@pytest.mark.parametrize(
    "kind, retry, blames, snoozes",
    [
        ("dns", True, True, True),
        ("timeout", True, True, True),
        ("http-500", True, True, False),
        ("http-502", True, True, False),
        ("http-503", True, True, True),
        ("http-429", True, True, True),
        ("http-404", False, False, False),
        ("too-big", False, False, False),
        ("bad-response", True, False, False),
        ("unheard-of", True, False, False),
    ],
)
def test_kinds_of_failure(kind, retry, blames, snoozes):
    assert failure_kind(kind)[:3] == (retry, blames, snoozes)


def test_a_broken_page_does_not_hold_up_its_host_but_five_in_a_row_park_it():
    """Without a snooze a failure only counts; a Retry-After is obeyed all the same."""
    record = HostRecord("a:80", state=HostState.READY, robots_until=NOW + 100)
    rules = politeness()
    for _ in range(rules.limits.max_failures - 1):
        rules.failed(record, NOW, 0.1, "http-500", snooze=False)
        assert record.state is HostState.READY
    rules.failed(record, NOW, 0.1, "http-500", snooze=False)
    assert record.state is HostState.PARKED
    other = HostRecord("b:80", state=HostState.READY, robots_until=NOW + 100)
    rules.failed(other, NOW, 0.1, "http-500", 30.0, snooze=False)
    assert (other.state, other.until) == (HostState.SNOOZED, NOW + 30.0)


RULES = HostRules(
    [
        HostPace("wiki", delay=9.0),
        HostPace("*.lab:8080", connections=4, budget=0),
        HostPace("w*", delay=1.0, budget=5, window=(22, 6)),
    ],
    HostPace(delay=2.0, connections=1),
)


@pytest.mark.parametrize(
    "host, rule",
    [
        ("wiki:80", HostPace("*", 9.0, 1, 5, (22, 6))),
        ("a.lab:8080", HostPace("*", 2.0, 4, 0, None)),
        ("a.lab:80", HostPace("*", 2.0, 1, None, None)),
        ("web:443", HostPace("*", 1.0, 1, 5, (22, 6))),
    ],
)
def test_the_first_rule_that_sets_a_field_holds(host, rule):
    assert RULES.of(host) == rule


@pytest.mark.parametrize(
    "pattern, matches",
    [
        ("OLD-Wiki*", ["old-wiki:80", "old-wiki.example:8080"]),
        ("[::1]", ["[::1]:80", "[::1]:8080"]),
        ("[::1]:80", ["[::1]:80"]),
        ("?-wiki", []),
        ("???-wiki", ["old-wiki:80"]),
        ("*:8080", ["old-wiki.example:8080", "[::1]:8080"]),
    ],
)
def test_a_pattern_matches_in_any_case_and_an_address_too(pattern, matches):
    hosts = ["old-wiki:80", "old-wiki.example:8080", "[::1]:80", "[::1]:8080"]
    assert [host for host in hosts if HostPace(pattern).matches(host)] == matches


@pytest.mark.parametrize(
    "pattern", ["", "http://wiki", "wiki/", "wiki wiki", "me@wiki", "b\u00fccher*"]
)
def test_a_pattern_that_no_host_can_match_is_refused(pattern):
    with pytest.raises(ConfigError, match=r"it matches no host: expected host or host:port"):
        HostPace(pattern)


@pytest.mark.parametrize(
    "window, hour, wait",
    [
        (None, 12.0, 0),
        ((8, 18), 12.0, 0),
        ((8, 18), 18.0, 14),
        ((8, 18), 7.5, 0.5),
        ((22, 6), 23.0, 0),
        ((22, 6), 5.9, 0),
        ((22, 6), 6.0, 16),
        ((0, 24), 23.9, 0),
    ],
)
def test_windows_by_hour(window, hour, wait):
    opens = HostPace(window=window).opens(NOW, lambda now: hour)
    assert opens - NOW == pytest.approx(wait * 3600)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"delay": -1.0}, r"delay -1.0: expected seconds >= 0"),
        ({"connections": 0}, r"connections 0: expected an integer >= 1"),
        ({"budget": -1}, r"budget -1: expected pages >= 0"),
        ({"window": (8, 25)}, r"window \(8, 25\): expected two different hours"),
        ({"window": (5, 5)}, r"window \(5, 5\): expected two different hours from 0 to 24"),
        ({"window": (24, 0)}, r"window \(24, 0\): expected two different hours"),
    ],
)
def test_bad_values_are_named(fields, words):
    with pytest.raises(ConfigError, match=words):
        HostPace("wiki", **fields)
