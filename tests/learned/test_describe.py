"""What an operator reads about hosts and URLs while the crawl runs."""

from math import inf

import pytest

from larmspider.frontier.dispatch import schedule
from larmspider.frontier.hosts import HostPace, HostRecord, HostState, local_hour, pack_host
from larmspider.frontier.politeness import Limits
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.learned.describe import (
    again_in_words,
    failure_in_words,
    host_rows,
    silent_in_words,
    trouble_of,
    url_report,
)
from larmspider.learned.revisits.refresh import DAY
from tests.support.frontier.memory_backend import MemoryBackend
from tests.support.frontier.simulation import Clock, build

NOW = 1_000_000.0


@pytest.fixture
def seen(tmp_path):
    """A crawl's reader and politeness: a:80 has one stored, one failed once and two queued URLs."""
    clock = Clock(NOW)
    limits = Limits(jitter=0.0, backoff=10.0, response_factor=0.0)
    frontier = build(LmdbBackend(tmp_path), clock, limits=limits, robots=False)
    frontier.add([frontier.entry(f"http://a/{n}", f"http://a/{n}") for n in range(4)])
    frontier.add([frontier.entry("http://gone/", "http://gone/")])
    gone = frontier.hosts["gone:80"]
    gone.record.change(HostState.PARKED, inf, "given up: dns")
    schedule(frontier, gone)
    frontier.acknowledge(frontier.pop(), FetchRecord(UrlState.STORED, NOW, 200))
    clock.now += 2.0
    frontier.failed(frontier.pop(), "http-503", 0.1)
    frontier.checkpoint({})
    frontier.backend.close()
    with FrontierReader(tmp_path) as reader:
        yield reader, frontier.politeness, clock.now


def test_a_row_for_each_host(seen):
    reader, politeness, now = seen
    rows = {row.host: row for row in host_rows(reader, politeness, now)}
    row = rows["a:80"]
    assert (row.state, row.reason, row.next_time) == (
        "snoozed",
        "HTTP 503, attempt 1 of 5",
        now + 10.0,
    )
    assert (row.counts.queued, row.counts.stored) == (3, 1)
    assert row.gap == (2.0, "delay")
    assert rows["gone:80"].next_time == inf


def test_the_pages_of_a_host_that_does_not_answer_any_more_are_stale(seen):
    reader, politeness, now = seen
    for passed, reason in ((89 * DAY, ""), (90 * DAY, "stale, no answer since 1970-01-12; ")):
        rows = {row.host: row for row in host_rows(reader, politeness, now + passed)}
        assert rows["a:80"].reason == f"{reason}HTTP 503, attempt 1 of 5"
        assert rows["gone:80"].reason == "given up: no address found"


@pytest.mark.parametrize(
    "url, lines",
    [
        ("http://a/0", ["URL: stored", "HTTP status 200, fetched 1970-01-12T13:46:40.000Z"]),
        (
            "http://a/1",
            [
                "URL: queued",
                "0 URLs of a:80 before it",
                "after 1 failed fetches, waits 10 s more",
                "host a:80: snoozed, HTTP 503, attempt 1 of 5",
                "host may be asked in 10 s, then every 2 s (delay): about 10 s, given places",
            ],
        ),
        (
            "http://a/3",
            [
                "URL: queued",
                "1 URL of a:80 before it",
                "host a:80: snoozed, HTTP 503, attempt 1 of 5",
                "host may be asked in 10 s, then every 2 s (delay): about 12 s, given places",
            ],
        ),
        (
            "http://gone/",
            [
                "URL: queued",
                "0 URLs of gone:80 before it",
                "host gone:80: parked, given up: no address found",
                "not fetched in this run",
            ],
        ),
        ("http://new/", ["URL: unknown"]),
    ],
)
def test_what_became_of_a_url_or_what_it_waits_for(seen, url, lines):
    reader, politeness, now = seen
    assert url_report(reader, politeness, url_key(url), now) == lines


def test_a_host_outside_its_window_is_asked_when_it_opens(tmp_path):
    """What the rule holds up is no less held up than what a snooze does."""
    now = 1_800_000_000.0
    hour = int(local_hour(now))
    shut, wide = ((hour + 6) % 24, (hour + 7) % 24), (0, 24)
    rules = [HostPace("a", window=shut), HostPace("b", window=wide)]
    frontier = build(LmdbBackend(tmp_path), Clock(now), rules=rules, robots=False)
    frontier.add([frontier.entry(url, url) for url in ("http://a/", "http://b/")])
    frontier.checkpoint({})
    frontier.backend.close()
    with FrontierReader(tmp_path) as reader:
        rows = {row.host: row for row in host_rows(reader, frontier.politeness, now)}
        lines = url_report(reader, frontier.politeness, url_key("http://a/"), now)
    why = f"outside its hours, {shut[0]} to {shut[1]}"
    assert 5 * 3600 < rows["a:80"].next_time - now <= 6 * 3600
    assert rows["a:80"].reason == why
    assert (rows["b:80"].next_time, rows["b:80"].reason) == (0.0, "")
    assert f"host a:80: new, {why}" in lines
    assert lines[-1].startswith(f"host may be asked in {rows['a:80'].next_time - now:.0f} s")


def test_what_the_operator_ordered_is_told(tmp_path):
    """A paused host is, and why; an ordered delay is the one."""
    clock = Clock(NOW)
    frontier = build(LmdbBackend(tmp_path), clock, limits=Limits(response_factor=0.0), robots=False)
    frontier.add(
        [frontier.entry("http://a/", "http://a/"), frontier.entry("http://b/", "http://b/")]
    )
    frontier.control.pause_host("a:80")
    frontier.control.set_delay("b:80", 7.0)
    frontier.checkpoint({})
    frontier.backend.close()
    with FrontierReader(tmp_path) as reader:
        fresh = build(MemoryBackend(), clock).politeness
        rows = {row.host: row for row in host_rows(reader, fresh, NOW)}
        lines = url_report(reader, fresh, url_key("http://a/"), NOW)
    assert (rows["a:80"].state, rows["a:80"].next_time) == ("paused", inf)
    assert rows["b:80"].gap == (7.0, "delay set by the operator")
    assert "host a:80: paused, paused by the operator" in lines


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("address", "an address of LARM_DENY_ADDRESSES"),
        ("http-503", "HTTP 503"),
        ("robots.txt: refused", "connection refused while asking for robots.txt"),
        ("3 failures in a row: timeout", "3 failures in a row: no reply in time"),
        (
            "given up: probe 1 failed: robots.txt: http-500",
            "given up: probe 1 failed: HTTP 500 while asking for robots.txt",
        ),
        ("a kind of tomorrow", "a kind of tomorrow"),
    ],
)
def test_a_failure_in_words(reason: str, words: str) -> None:
    assert failure_in_words(reason) == words


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        (HostState.READY, "", ""),
        (
            HostState.SNOOZED,
            "robots.txt: refused",
            "connection refused while asking for robots.txt, attempt 3 of 5",
        ),
        (HostState.PARKED, "budget of 3 pages", "parked: budget of 3 pages"),
    ],
)
def test_why_a_host_is_left_alone(state: HostState, reason: str, words: str) -> None:
    record = HostRecord("wiki:80", state=state, reason=reason, failures=3)
    assert trouble_of(record, Limits()) == words


@pytest.mark.parametrize(
    ("due", "words"),
    [
        (1.0, "with the next refresh (requested)"),
        (2.0, "with the next refresh (the site says that the page changed)"),
        (3.0, "or the next one (worth most now)"),
        (NOW - 1, "due since 1970-01-12T13:46:39Z (estimate: changes every 10 days)"),
        (NOW + 1, "about 1970-01-12T13:46:41Z (estimate: changes every 10 days)"),
    ],
)  # fmt: skip
def test_when_a_page_is_visited_again_and_why_then(due: float, words: str) -> None:
    visit = FetchRecord(UrlState.STORED, due=due, a=2.0, b=1_728_000.0)
    (line,) = again_in_words(visit, NOW)
    assert line.startswith("next visit ")
    assert line.endswith(words)


def test_a_missing_page_is_told_with_what_it_takes_to_leave() -> None:
    visit = FetchRecord(UrlState.STORED, time=NOW, missing_as="missing", confirmations=2)
    visit.missing_since = NOW - DAY
    (line,) = again_in_words(visit, NOW)
    assert line.startswith("missing 2 times since 1970-01-11T")
    assert line.endswith("; the page leaves after 3 times over 2 days")
    visit.confirmations, visit.missing_since = 5, NOW - 9 * DAY  # canaries or the brake keep it
    (line,) = again_in_words(visit, NOW)
    assert line.endswith("; the page is kept")
    refused = FetchRecord(UrlState.REFUSED, due=NOW + DAY, reason="robots.txt")
    (line,) = again_in_words(refused, NOW)
    assert line.startswith("robots.txt is checked again about 1970-01-13")


def test_a_page_of_a_host_that_does_not_answer_is_told_so() -> None:
    silent = pack_host(HostRecord("a:80", silent_since=NOW - 9.5 * DAY))
    (line,) = silent_in_words(silent, NOW)
    assert line.startswith("its host has not answered since 1970-01-03, 9 days: the page stays")
    assert not [*silent_in_words(silent, NOW - 9 * DAY)]
    assert not [*silent_in_words(b"", NOW)]
