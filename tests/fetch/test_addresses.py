"""Addresses of names: a cache in front of threads, told in the event loop."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from larmspider.fetch import addresses
from larmspider.fetch.addresses import FAILED_TTL_SECS, TTL_SECS, Addresses, smallest_address
from tests.crawling import PROJECT


class Names:
    """A look-up that blocks until ``go`` is set; what is not in ``known`` raises ``error``."""

    def __init__(self, error: Exception | None = None) -> None:
        self.known = {"wiki": "10.0.0.7"}
        self.error = error or socket.gaierror("no such name")
        self.asked: list[str] = []
        self.go = threading.Event()
        self.now = 0.0
        self.told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.threads: set[threading.Thread] = set()
        self.addresses = Addresses(self._known, self.look_up, lambda: self.now)

    def look_up(self, name: str) -> str:
        self.asked.append(name)
        assert self.go.wait(10)
        if name not in self.known:
            raise self.error
        return self.known[name]

    def _known(self, name: str, address: str) -> None:
        self.threads.add(threading.current_thread())
        self.told.put_nowait((name, address))

    async def learn(self, name: str) -> tuple[str, str]:
        assert self.addresses.of(name) is None
        self.go.set()
        return await asyncio.wait_for(self.told.get(), 10)


def test_unknown_at_first_then_told_in_the_event_loop_and_kept() -> None:
    async def play() -> None:
        names = Names()
        assert names.addresses.of("wiki") is None
        assert await names.learn("wiki") == ("wiki", "10.0.0.7")
        assert names.addresses.of("wiki") == "10.0.0.7"
        assert names.asked == ["wiki"]
        assert names.threads == {threading.current_thread()}
        names.addresses.close()

    asyncio.run(play())


@pytest.mark.parametrize("name, ttl", [("wiki", TTL_SECS), ("nobody", FAILED_TTL_SECS)])
def test_looked_up_again_when_it_is_old(name: str, ttl: float) -> None:
    async def play() -> None:
        names = Names()
        await names.learn(name)
        names.now = ttl - 1
        assert names.addresses.of(name) is not None
        names.now = ttl
        names.known[name] = "10.0.0.8"
        assert await names.learn(name) == (name, "10.0.0.8")
        names.addresses.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    "error", [socket.gaierror("no name"), UnicodeError("too long"), ValueError("no address")]
)
def test_a_name_that_does_not_resolve_is_its_own_address(error: Exception) -> None:
    async def play() -> None:
        names = Names(error)
        assert await names.learn("nobody") == ("nobody", "nobody")
        names.addresses.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    "name, address",
    [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0:0::1]", "::1"),
        ("[::ffff:10.0.0.7]", "10.0.0.7"),
    ],
)
def test_an_address_needs_no_look_up(name: str, address: str) -> None:
    names = Names()
    assert names.addresses.of(name) == address
    assert names.asked == []


def test_the_cache_is_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        monkeypatch.setattr(addresses, "MOST_NAMES", 2)
        names = Names()
        for name in ("wiki", "b", "c"):
            await names.learn(name)
        assert names.addresses.of("c") == "c"
        assert names.addresses.of("b") == "b"
        assert await names.learn("wiki") == ("wiki", "10.0.0.7")
        names.addresses.close()

    asyncio.run(play())


def test_nothing_is_told_once_it_is_closed() -> None:
    async def play() -> None:
        names = Names()
        assert names.addresses.of("wiki") is None
        names.addresses.close()
        names.go.set()
        for thread in names.addresses._threads:  # the look-up is over
            await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)
        assert names.told.empty()
        assert names.addresses.of("wiki") is None

    asyncio.run(play())


@pytest.mark.parametrize(
    "answers, smallest",
    [
        (["10.0.0.9", "10.0.0.10"], "10.0.0.10"),
        (["::1", "127.0.0.1"], "127.0.0.1"),
        (["fe80::1%eth0"], "fe80::1"),
    ],
)
def test_of_several_addresses_always_the_same(
    answers: list[str], smallest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their order."""

    def resolver(rows: list[str]) -> Callable[..., object]:
        return lambda *_, **__: [(2, 1, 6, "", (address, 0)) for address in rows]

    for rows in (answers, answers[::-1]):
        monkeypatch.setattr(socket, "getaddrinfo", resolver(rows))
        assert smallest_address("wiki") == smallest


def test_a_look_up_under_way_does_not_hold_up_the_end_of_the_process() -> None:
    """It may take half a minute where no server of names answers."""
    program = """
import asyncio, time
from larmspider.fetch.addresses import Addresses

async def play():
    addresses = Addresses(print, lambda name: time.sleep(60))
    for number in range(9):
        addresses.of(f"wiki{number}")
    await asyncio.sleep(0.1)
    addresses.close()

asyncio.run(play())
"""
    subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=True, timeout=20)
