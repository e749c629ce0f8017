"""Addresses of names: a cache before threads; those that hang take nothing from the rest."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings

from larmspider.fetch import dns as module
from larmspider.fetch.dns import (
    FAILED_SECS,
    MAX_LOOK_UPS,
    STALE_AGAIN_SECS,
    STALE_SECS,
    Addresses,
    DnsCache,
    Endpoint,
    OwnAddress,
    Resolution,
    names_needed,
    needs_look_up,
    resolve,
    resolve_line,
    smallest,
)
from tests.support.crawling import PROJECT

TTL, LONG = 300.0, 20.0
WIKI = Resolution(("10.0.0.7",))
NOBODY = Resolution(problem="no such name", final=True)


class World:
    """Names that hang are looked up until ``go`` is set; unknown names are NOBODY."""

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
    subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=True, timeout=120)


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


# The answers of the system's resolver: addresses in its order, or why there are none.


def resolver(*addresses: str) -> Callable[..., object]:
    return lambda *_, **__: [(2, 1, 6, "", (address, 0)) for address in addresses]


def test_the_hosts_file_counts() -> None:
    assert "127.0.0.1" in resolve("localhost").addresses


def test_each_address_once_in_the_order_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ("::2", "10.0.0.9", "10.0.0.7", "10.0.0.9")
    monkeypatch.setattr(socket, "getaddrinfo", resolver(*found))
    assert resolve("wiki") == Resolution(("::2", "10.0.0.9", "10.0.0.7"))


def test_addresses_with_a_zone_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolver("fe80::1%eth0", "10.0.0.7"))
    assert resolve("wiki") == Resolution(("10.0.0.7",))
    monkeypatch.setattr(socket, "getaddrinfo", resolver("fe80::1%eth0"))
    assert "no address without a zone" in resolve("wiki").problem


@pytest.mark.parametrize(
    "code, final", [(socket.EAI_NONAME, True), (socket.EAI_AGAIN, False), (socket.EAI_FAIL, False)]
)
def test_no_such_name_is_another_thing_than_nobody_to_ask(
    code: int, final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "words of the system")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert resolve("wiki") == Resolution((), "Could not resolve host: wiki", final)


@pytest.mark.parametrize("name", ["a..b.invalid", "x" * 300, "wiki\0", "wikí"])
def test_a_name_that_is_none_has_no_address(name: str) -> None:
    assert resolve(name).addresses == ()


# The frontier's addresses of names: one address each, from a cache or reported later.


KNOWN = {"wiki": Resolution(("10.0.0.9", "10.0.0.7"))}


def test_unknown_at_first_then_told_and_known() -> None:
    async def play() -> None:
        told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        names = DnsCache(20.0, 300.0, lambda name: KNOWN.get(name, Resolution(problem="none")))
        addresses = Addresses(names, lambda *known: told.put_nowait(known), lambda: None)
        for name, address in (("wiki", "10.0.0.7"), ("nobody", "nobody")):
            assert addresses.of(name) is None
            assert await asyncio.wait_for(told.get(), 20) == (name, address)
            assert addresses.of(name) == address
        addresses.close()

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
    names = DnsCache(20.0, 300.0)
    assert Addresses(names, lambda *_: None, lambda: None).of(name) == address


@pytest.mark.parametrize(
    "addresses, found",
    [
        (("10.0.0.9", "10.0.0.10"), "10.0.0.10"),
        (("::1", "127.0.0.1"), "127.0.0.1"),
        (("::ffff:10.0.0.7", "10.0.0.8"), "10.0.0.7"),
        ((), None),
    ],
)
def test_of_several_addresses_always_the_same(addresses: tuple[str, ...], found: str) -> None:
    """Whatever their order."""
    assert smallest(Resolution(addresses)) == smallest(Resolution(addresses[::-1])) == found


# Hosts whose names are looked up here: the ones without a proxy.


SITES = """
[[site]]
hosts = ["by-proxy"]
proxy = "http://proxy:3128"
[[site]]
hosts = ["by-socks"]
proxy = "socks5://proxy:1080"
[[site]]
hosts = ["by-none"]
proxy = ""
"""


@pytest.fixture
def sites(tmp_path: Path) -> Settings:
    (tmp_path / "sites.toml").write_text(SITES)
    return Settings({"LARM_SITES_FILE": str(tmp_path / "sites.toml")})


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    "name, own",
    [
        ("by-proxy", False), ("by-socks", True), ("by-none", True), ("wiki", True),
        ("10.0.0.7", False), ("localhost", False),
    ],
)  # fmt: skip
def test_by_the_sites_file(name: str, own: bool, sites: Settings) -> None:
    assert OwnAddress.from_settings(sites)(f"http://{name}/robots.txt") is own


@pytest.mark.parametrize(
    "url, own",
    [
        ("http://wiki/", False), ("https://wiki/", True), ("http://a.intra/", True),
        ("http://by-none/", True),
    ],
)  # fmt: skip
def test_by_the_environment(
    url: str, own: bool, sites: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "intra")
    assert OwnAddress.from_settings(sites)(url) is own
    sites.set("HTTPPROXY_ENABLED", False)
    assert OwnAddress.from_settings(sites)(url)


# The names that a fetch needs, and how libcurl gets their addresses.


PROXY = ("proxy", 3128)


@pytest.mark.parametrize(
    "url, proxy, needed",
    [
        ("http://wiki", None, [("wiki", 80)]),
        ("https://wiki/a?b", "", [("wiki", 443)]),
        ("http://WIKI:8080/a", None, [("wiki", 8080)]),
        ("http://user:word@wiki/a", None, [("wiki", 80)]),
        ("http://wiki./", None, [("wiki.", 80)]),
        ("http://my_wiki/", None, [("my_wiki", 80)]),
        ("http://%77iki/", None, [("wiki", 80)]),
        ("http://bücher.example/", None, [("xn--bcher-kva.example", 80)]),
        ("http://" + "w" * 400 + "/", None, [("w" * 400, 80)]),
        ("http://10.0.0.7/", None, []),
        ("http://0x0a000007/", None, []),
        ("http://[::1]:80/", None, []),
        ("http://localhost:80/", None, []),
        ("http://a.localhost/", None, []),
        ("http://a.onion/", None, []),
        ("http:///", None, []),
        ("http://wiki:99999/", None, []),
        ("http://wiki/", "http://proxy:3128", [PROXY]),
        ("http://wiki/", "proxy:3128", [PROXY]),
        ("http://wiki/", "//proxy:3128", [PROXY]),
        ("http://wiki/", "http://user:word@proxy:3128/", [PROXY]),
        ("http://wiki/", "http://proxy", [("proxy", 80)]),
        ("http://wiki/", "https://proxy", [("proxy", 443)]),
        ("http://wiki/", "socks5h://proxy:80", [("proxy", 80)]),
        ("http://wiki/", "SOCKS5://proxy", [("wiki", 80), ("proxy", 1080)]),
        ("http://wiki/", "socks4://proxy:443", [("wiki", 80), ("proxy", 443)]),
        ("http://wiki/", "http://10.0.0.7:3128", []),
        ("http://wiki/", "http://[::1]:3128", []),
    ],
)
def test_names_of_host_or_proxy(url: str, proxy: str | None, needed: list[tuple[str, int]]) -> None:
    assert list(names_needed(url, proxy)) == needed


@pytest.mark.parametrize("name", ["", "[::1]", "::1", "10.0.0.7", "localhost.", "a.localhost"])
def test_names_that_nobody_needs_to_be_asked_for(name: str) -> None:
    assert not needs_look_up(name)


def test_addresses_as_libcurl_reads_them() -> None:
    line = resolve_line(Endpoint("wiki", 80), ["::2", "10.0.0.7"])
    assert line == "+wiki:80:[::2],10.0.0.7"
