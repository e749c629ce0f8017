"""Addresses of names: a cache before threads; those that hang take nothing from the rest."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable

import pytest

from larmspider.fetch import dns as module
from larmspider.fetch.dns import (
    FAILED_SECS,
    MAX_LOOK_UPS,
    STALE_AGAIN_SECS,
    STALE_SECS,
    DnsCache,
    Resolution,
)
from tests.support.crawling import PROJECT

TTL, LONG = 300.0, 20.0
WIKI = Resolution(("10.0.0.7",))
NOBODY = Resolution(problem="no such name", final=True)


class World:
    """Names that hang are looked up until ``go`` is set; what is not in ``known`` is NOBODY."""

    def __init__(self, patience: float = LONG, slow: float = LONG, ttl: float = TTL) -> None:
        self.known = {"wiki": WIKI}
        self.asked: list[str] = []
        self.go = threading.Event()
        self.now = 0.0
        self.on_resolved: list[tuple[str, Resolution]] = []
        self.on_capacity = 0
        self.names = DnsCache(patience, ttl, self.resolve, lambda: self.now, slow)
        self.names.on_resolved = lambda name, answer: self.on_resolved.append((name, answer))
        self.names.on_capacity = self._ease

    def _ease(self) -> None:
        self.on_capacity += 1

    def resolve(self, name: str) -> Resolution:
        self.asked.append(name)
        if name.startswith("hangs"):
            assert self.go.wait(LONG)
        return self.known.get(name, NOBODY)

    async def ask(self, name: str) -> Resolution:
        return await asyncio.wait_for(asyncio.shield(self.names.look_up(name)), LONG)


def play(world: World, story: Callable[[World], Awaitable[None]]) -> None:
    async def tell() -> None:
        try:
            await story(world)
        finally:
            world.go.set()
            world.names.close()

    asyncio.run(tell())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LONG):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("name, ttl, answer", [("wiki", TTL, WIKI), ("x", FAILED_SECS, NOBODY)])
def test_known_after_a_look_up_until_it_is_old(name: str, ttl: float, answer: Resolution) -> None:
    async def story(world: World) -> None:
        assert world.names.known(name) is None
        assert await world.ask(name) == answer
        world.now = ttl - 0.1
        assert world.names.known(name) == answer
        world.now = ttl
        assert world.names.known(name) is None
        assert world.on_resolved == [(name, answer)]

    play(World(), story)


def test_one_look_up_serves_all_who_ask_meanwhile() -> None:
    async def story(world: World) -> None:
        first, second = world.names.look_up("hangs"), world.names.look_up("hangs")
        world.known["hangs"] = WIKI
        world.go.set()
        assert [await first, await second] == [WIKI, WIKI]
        assert world.asked == ["hangs"]

    play(World(), story)


def test_without_a_cache_an_answer_serves_the_fetch_that_it_was_got_for() -> None:
    async def story(world: World) -> None:
        await world.ask("wiki")
        assert world.names.known("wiki") == WIKI
        world.now = 1.0
        assert world.names.known("wiki") is None

    play(World(ttl=0), story)


def test_names_that_hang_hold_up_no_others() -> None:
    """Many more of them than may be looked up at once."""

    async def story(world: World) -> None:
        for number in range(5 * MAX_LOOK_UPS):
            world.names.look_up(f"hangs{number}")
        assert await world.ask("wiki") == WIKI
        assert len(world.names._threads) == 5 * MAX_LOOK_UPS

    play(World(slow=0.02), story)


def test_only_so_many_at_once_while_they_are_quick() -> None:
    async def story(world: World) -> None:
        for number in range(MAX_LOOK_UPS + 1):
            assert not world.names.saturated
            world.names.look_up(f"hangs{number}")
            if number == MAX_LOOK_UPS - 1:
                break
        assert world.names.saturated
        world.names.look_up("wiki")
        await until(lambda: len(world.asked) == MAX_LOOK_UPS)
        assert len(world.names._threads) == MAX_LOOK_UPS
        assert "wiki" not in world.asked
        assert not world.on_capacity
        world.go.set()
        assert await world.ask("wiki") == WIKI

    play(World(), story)


def test_whoever_waits_hears_when_it_is_not_crowded_any_more() -> None:
    async def story(world: World) -> None:
        for number in range(MAX_LOOK_UPS):
            world.names.look_up(f"hangs{number}")
        assert world.names.saturated
        await until(lambda: world.on_capacity)
        assert not world.names.saturated

    play(World(slow=0.02), story)


def test_threads_have_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_THREADS", 20)

    async def story(world: World) -> None:
        for number in range(40):
            world.names.look_up(f"hangs{number}")
        await until(lambda: world.on_capacity >= 20)
        assert len(world.names._threads) == 20
        assert world.names.saturated

    play(World(slow=0.01), story)


def test_a_silent_server_of_names_is_given_up_and_what_it_says_at_last_is_kept() -> None:
    async def story(world: World) -> None:
        answer = await world.ask("hangs")
        assert (answer.addresses, answer.final) == ((), False)
        assert "no DNS server answered for hangs" in answer.problem
        assert world.names.known("hangs") == answer
        world.now = FAILED_SECS
        again = world.names.look_up("hangs")
        world.known["hangs"] = WIKI
        world.go.set()
        assert await again == WIKI
        assert world.asked == ["hangs"], "it hung there still"

    play(World(patience=0.05), story)


def test_an_old_address_serves_while_its_renewal_hangs() -> None:
    async def story(world: World) -> None:
        world.known["hangs"] = WIKI
        world.go.set()
        await world.ask("hangs")
        world.go.clear()
        world.now = TTL
        assert await world.ask("hangs") == WIKI
        assert world.names.known("hangs") == WIKI
        world.now = TTL + STALE_AGAIN_SECS
        assert world.names.known("hangs") is None

    play(World(slow=0.02), story)


@pytest.mark.parametrize("age, final", [(TTL, True), (STALE_SECS, False)])
def test_an_old_address_does_not_serve(age: float, final: bool) -> None:
    """Where a server of names says that there is none now, and when it is a day old."""

    async def story(world: World) -> None:
        await world.ask("wiki")
        world.known["wiki"] = gone = Resolution(problem="gone", final=final)
        world.now = age
        assert await world.ask("wiki") == gone

    play(World(), story)


def test_an_old_address_serves_where_nobody_can_be_asked() -> None:
    async def story(world: World) -> None:
        await world.ask("wiki")
        world.known["wiki"] = Resolution(problem="try again")
        world.now = TTL
        assert await world.ask("wiki") == WIKI

    play(World(), story)


def test_the_cache_is_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NAMES", 2)

    async def story(world: World) -> None:
        for name in ("wiki", "b", "c"):
            await world.ask(name)
        assert [world.names.known(name) for name in ("wiki", "b", "c")] == [None, NOBODY, NOBODY]

    play(World(), story)


def test_nothing_is_heard_once_it_is_closed() -> None:
    async def story(world: World) -> None:
        before = set(threading.enumerate())  # look-ups of other tests may go on for long
        future = world.names.look_up("hangs")
        (thread,) = set(threading.enumerate()) - before
        world.names.close()
        world.go.set()
        await asyncio.to_thread(thread.join)
        await asyncio.sleep(0)
        assert future.cancelled()
        assert world.on_resolved == []
        assert (await world.names.look_up("wiki")).problem == "the crawl has ended"

    play(World(), story)


def test_a_look_up_under_way_does_not_hold_up_the_end_of_the_process() -> None:
    """It may take half a minute where no server of names answers."""
    program = """
import asyncio, time
from larmspider.fetch.dns import DnsCache

async def play():
    names = DnsCache(30.0, 300.0, lambda name: time.sleep(60))
    for number in range(9):
        names.look_up(f"wiki{number}")
    await asyncio.sleep(0.1)
    names.close()

asyncio.run(play())
"""
    subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=True, timeout=20)


def test_stacks_of_its_threads_are_its_own_affair() -> None:
    async def story(world: World) -> None:
        before = threading.stack_size()
        await world.ask("wiki")
        assert threading.stack_size() == before

    play(World(), story)


def test_a_thread_that_cannot_be_had_is_a_name_that_cannot_be_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def story(world: World) -> None:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        answer = await world.ask("wiki")
        assert answer.problem == "wiki cannot be looked up: can't start new thread"

    play(World(), story)
