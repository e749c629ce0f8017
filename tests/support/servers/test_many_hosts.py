"""Many hosts in one process: each with its address and site, and with a log that would tell."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from math import inf

import pytest

from tests.support.servers.many_hosts import (
    DEAD,
    HEALTHY,
    SLOW,
    HostLog,
    ManyHosts,
    Seen,
    address,
    kind_of,
)


@pytest.fixture
def servers() -> Iterator[ManyHosts]:
    with ManyHosts(20, pages=4, mixed=True, slow_secs=0.2) as running:
        yield running


def _get(servers: ManyHosts, number: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection(address(number), servers.port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


@pytest.mark.parametrize(
    "number, name",
    [(0, "127.1.0.1"), (249, "127.1.0.250"), (250, "127.1.1.1"), (62500, "127.2.0.1")],
)
def test_each_host_has_an_address(number: int, name: str) -> None:
    """250 in each of the last two parts."""
    assert address(number) == name


def test_a_tenth_is_slow_and_a_twentieth_dead() -> None:
    """Of a mixed lot; of another none."""
    kinds = [kind_of(number, mixed=True) for number in range(300)]
    assert [kinds.count(kind) for kind in (HEALTHY, SLOW, DEAD)] == [255, 30, 15]
    assert {kind_of(number, mixed=False) for number in range(300)} == {HEALTHY}


def test_a_site_is_a_tree(servers: ManyHosts) -> None:
    """Page 1 of 4 links to 3, for there is no 4; robots.txt is not there."""
    status, body = _get(servers, 0, "/p1.html")
    assert (status, body.count("<a href"), "/p3.html" in body) == (200, 1, True)
    assert _get(servers, 0, "/p4.html")[0] == 404
    assert _get(servers, 0, "/robots.txt")[0] == 404
    assert servers.seeds[1] == f"http://127.1.0.2:{servers.port}/"


def test_the_log_has_each_request_of_each_host(servers: ManyHosts) -> None:
    """With times of this machine's monotonic clock, and what was open at once."""
    before = time.monotonic()
    _get(servers, 0, "/")
    first, second = (
        socket.create_connection((address(3), servers.port), timeout=10) for _ in range(2)
    )
    for client in (first, second):  # a slow host: both wait at once
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert [client.recv(12) for client in (first, second)] == [b"HTTP/1.1 200"] * 2
    dead = socket.create_connection((address(7), servers.port), timeout=0.3)
    dead.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(TimeoutError):
        dead.recv(1)
    for client in (first, second, dead):
        client.close()
    logs = servers.stop()
    asked = [len(log.times) for log in logs]
    assert (asked[0], asked[3], asked[7], sum(asked)) == (1, 2, 1, 4)
    assert before <= logs[0].times[0] <= time.monotonic()
    assert (logs[3].peak_requests, logs[3].peak_connections) == (2, 2)
    assert (logs[0].peak_requests, logs[0].peak_connections) == (1, 1)


def test_a_connection_ends_where_none_is_kept() -> None:
    """Then each request needs one of its own."""
    with ManyHosts(1, keep_alive=False) as servers:
        connection = HTTPConnection(address(0), servers.port, timeout=10)
        connection.request("GET", "/")
        response = connection.getresponse()
        response.read()
        assert response.will_close
        connection.close()


def test_rates_and_gaps_are_those_of_the_log() -> None:
    """Two hosts, a gap of 2 s: one is asked as often as that allows, one half as often."""
    full = HostLog("a", times=[10.0, 12.0, 14.5, 16.0, 18.0])
    half = HostLog("b", times=[10.5, 14.5, 18.5])
    seen = Seen([full, half], gap=2.0)
    assert seen.begun == 10.0
    assert seen.rate([full], 0.0, 10.0) == 1.0
    assert seen.rate([full, half], 0.0, 8.0) == 0.75
    assert (full.shortest_gap(), half.shortest_gap()) == (1.5, 4.0)
    assert HostLog("c").shortest_gap() == inf
