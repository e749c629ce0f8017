"""What the frontier hears about names: one address each, out of a cache or told later."""

from __future__ import annotations

import asyncio

import pytest

from larmspider.fetch.dns import Addresses, DnsCache, Resolution, smallest

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
