"""The host record: its states, its packed form."""

from math import inf

import pytest

from larmspider.frontier.hosts import (
    HostPace,
    HostRecord,
    HostRules,
    HostState,
    HostTable,
    pack_host,
    unpack_host,
)
from larmspider.frontier.storage.records import QueuedUrl, url_key
from tests.support.frontier.memory_backend import Disk, MemoryBackend

N, L, R, S, P = HostState


def test_the_usual_life():
    record = HostRecord("wiki:80")
    for state in (L, R, S):
        record.change(state)
    record.robots_until = 5.0
    record.wake()
    assert record.state is R
    record.change(P, 99.0, "refused")
    assert (record.until, record.reason) == (99.0, "refused")


@pytest.mark.parametrize("before, after", [(N, S), (R, N), (R, R), (P, L), (S, L), (L, L), (P, S)])
def test_states_that_cannot_follow(before, after):
    with pytest.raises(ValueError, match=f"{before.name} cannot become {after.name}"):
        HostRecord("wiki:80", state=before).change(after)


def test_whether_a_host_is_on_probation_is_not_kept():
    told = HostRecord("h:80", state=S, reason="dns", last_kind="dns", robots_answer="404")
    told.robots_time, told.silent_since = 1_700_000_000.0, 1_700_000_001.0
    assert unpack_host(pack_host(told)) == told
    told.on_probation = True
    assert not unpack_host(pack_host(told)).on_probation


def test_without_rules_it_wakes_as_new():
    record = HostRecord("wiki:80", state=S, until=9.0, reason="dns")
    record.wake()
    assert record == HostRecord("wiki:80")


@pytest.mark.parametrize("state", [N, L, R])
def test_waking_who_is_awake_does_nothing(state):
    record = HostRecord("wiki:80", state=state)
    record.wake()
    assert record.state is state


@pytest.mark.parametrize(
    "record, state",
    [
        (HostRecord("h", state=L), N),
        (HostRecord("h", state=P, until=inf, parks=4, level=9, robots_until=1.0), R),
        (HostRecord("h", state=P, until=inf), N),
        (HostRecord("h", state=P, until=1e9), P),
        (HostRecord("h", state=S, until=1e9), S),
        (HostRecord("h", state=R), R),
    ],
)
def test_what_a_restart_makes_of_it(record, state):
    record.restart()
    assert record.state is state
    if record.until == 0.0:
        assert record.parks == record.level == 0


@pytest.mark.parametrize(
    "record",
    [
        HostRecord("wiki:80"),
        HostRecord(
            "[::1]:8080", "https", P, inf, "5 failures: ü", 1.5, 2.5, 3.5, 4.5, 5.5, 6, 7, 8.5, 9
        ),
        HostRecord("h:1", slot_secs=0.0, crawl_delay=0.0),
    ],
)
def test_comes_back_from_its_packed_form(record):
    assert unpack_host(pack_host(record)) == record


@pytest.mark.parametrize(
    "host, scheme, url",
    [
        ("wiki:80", "http", "http://wiki/robots.txt"),
        ("wiki:443", "https", "https://wiki/robots.txt"),
        ("wiki:443", "http", "http://wiki:443/robots.txt"),
        ("wiki:8080", "http", "http://wiki:8080/robots.txt"),
        ("[::1]:80", "http", "http://[::1]/robots.txt"),
    ],
)
def test_where_its_rules_are(host, scheme, url):
    assert HostRecord(host, scheme).robots_url == url


# All hosts by name, and which records a commit writes.


RULES = HostRules([HostPace("slow", delay=9.0)], HostPace(delay=2.0))


def table(disk):
    backend = MemoryBackend(disk)
    backend.recover()
    return HostTable(backend, RULES.of), backend


def test_a_host_is_made_once_with_its_rule():
    hosts, _ = table(Disk())
    host = hosts.of("slow:80", scheme="https")
    assert hosts.of("slow:80") is host
    assert (host.rule.delay, host.record.scheme) == (9.0, "https")
    assert hosts == {"slow:80": host}


def test_only_records_that_changed_are_written():
    hosts, backend = table(Disk())
    one, two = hosts.of("one:80"), hosts.of("two:80")
    hosts.save()
    assert set(backend.hosts()) == {"one:80", "two:80"}, "new ones too"
    one.record.failures = two.record.failures = 3
    hosts.touch(one)
    hosts.save()
    failures = {name: unpack_host(data).failures for name, data in backend.hosts().items()}
    assert failures == {"one:80": 3, "two:80": 0}


def test_after_a_restart_records_are_there_and_hosts_without_one_are_new():
    disk = Disk()
    hosts, backend = table(disk)
    hosts.of("one:80").record.change(HostState.LOADING)
    backend.add([QueuedUrl(f"http://{n}/", "", url_key(f"http://{n}/"), f"{n}:80") for n in "ab"])
    hosts.of("a:80").record.failures = 2
    hosts.save()
    backend.checkpoint({})
    hosts, _ = table(disk)
    assert {host.record.host for host in hosts.load()} == {"a:80", "b:80"}
    assert hosts["a:80"].record.failures == 2
    assert hosts["one:80"].record.state is HostState.NEW, "what was asked is asked again"


# Hosts whose names resolve to one address share gap and limit of requests; nothing else.
